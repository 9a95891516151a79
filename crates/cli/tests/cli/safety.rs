//! What is not a lab's is left alone: links in place of folders, processes and namespaces with names like ours, and daemons at
//! work beside labs; whatever a lab does or whenever it is killed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::common::{ok, run, text, wait_for, weft};
use crate::private::in_private_machine;

/// Everything below a folder: inode, kind and mode, and what is in it. No link is followed.
fn tree(path: &Path) -> BTreeMap<PathBuf, (u64, u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let Ok(data) = path.symlink_metadata() else { return found };
    let content = match data.is_file() {
        true => fs::read(path).unwrap_or_default(),
        false => fs::read_link(path).map(|link| link.into_os_string().into_encoded_bytes()).unwrap_or_default(),
    };
    found.insert(path.to_owned(), (data.ino(), data.mode(), content));
    if data.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            found.append(&mut tree(&entry.path()));
        }
    }
    found
}

fn sh(script: &str) {
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", text(&output.stderr));
}

/// A tree that has whatever a lab's folders may have, and somebody's home.
fn make_victim() -> PathBuf {
    let victim = PathBuf::from("/run/victim");
    for folder in ["home/x", "x", "weft-x", "x/log", "x/run", "labs/x", "weft-tester-1-0-a.log", "agent"] {
        fs::create_dir_all(victim.join(folder)).unwrap();
    }
    for file in
        ["home/x/letter", "x/state.json", "x/processes", "weft-x/zebra.conf", "lock", "weft-tester-1-0-a.vtep.log"]
    {
        fs::write(victim.join(file), "mine").unwrap();
    }
    victim
}

/// Every place where a lab has, or once had, a folder or a file.
const PLACES: [&str; 17] = [
    "/run/weft",
    "/run/weft/labs",
    "/run/weft/labs/x",
    "/run/weft/lab-bpf",
    "/run/weft/lab-bpf/x",
    "/run/weft/bpf",
    "/run/weft/beds",
    "/run/weft/groups",
    "/run/weft/sysctl-journal.json",
    "/run/netns",
    "/run/netns/weft-x-s1",
    "/run/frr/weft-x-s1",
    "/run/frr/weft-x",
    "/var/lib/weft",
    "/var/lib/weft/labs",
    "/var/lib/weft/labs/x",
    "/var/tmp/weft",
];

#[test]
fn links_in_every_place_of_ours_lead_nowhere() {
    if !in_private_machine("safety::links_in_every_place_of_ours_lead_nowhere") {
        return;
    }
    let victim = make_victim();
    let before = tree(&victim);
    for place in PLACES {
        sh("rm -rf /run/weft /run/netns /var/lib/weft; rm -rf /run/frr/*");
        fs::create_dir_all(Path::new(place).parent().unwrap()).unwrap();
        symlink(&victim, place).unwrap();
        let down = run(&["lab", "down", "--all", "--yes"]);
        assert_eq!(before, tree(&victim), "{place}: {}", text(&down.stderr));
        assert!(Path::new(place).is_symlink(), "{place} itself is not ours either");
        let named = run(&["lab", "down", "x"]);
        assert!(!named.status.success(), "there is no lab x");
        assert_eq!(before, tree(&victim), "{place}");
        let said = text(&down.stderr) + &text(&named.stderr);
        let is_old = ["/run/weft/bpf", "/run/weft/beds", "/var/tmp/weft"].contains(&place);
        let name = place.rsplit('/').next().unwrap();
        assert!(is_old || said.contains(name), "{place} is not named: {said}");
        fs::remove_file(place).unwrap();
    }
}

#[test]
fn the_doctor_mounts_nothing_over_a_link() {
    if !in_private_machine("safety::the_doctor_mounts_nothing_over_a_link") {
        return;
    }
    let victim = make_victim();
    fs::create_dir_all("/run/weft").unwrap();
    symlink(&victim, "/run/weft/lab-bpf").unwrap();
    let said = text(&run(&["doctor"]).stdout);
    assert!(said.contains("/run/weft/lab-bpf") && said.contains("labs work only in directories of root's"), "{said}");
}

#[test]
fn a_mount_of_somebody_else_stays_whatever_an_old_marker_says() {
    if !in_private_machine("safety::a_mount_of_somebody_else_stays_whatever_an_old_marker_says") {
        return;
    }
    // By the path: the machine's own mounts stand in /proc/self/mounts too, below this one's /run.
    let mount_of = |path: &str| statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).map(|stat| stat.stx_mnt_id);
    let is_mounted = || mount_of("/run/netns").is_ok_and(|number| number != mount_of("/run").unwrap());
    ok(&["lab", "up", "vl2-4servers", "--name", "x", "--quiet"]);
    let made = fs::read_to_string("/run/weft/netns-dir-made").unwrap();
    ok(&["lab", "down", "--all", "--yes"]);
    assert!(!is_mounted(), "what weft mounted goes with its last lab");
    // Left by a process in a mount namespace that is gone.
    sh("mkdir -p /run/netns /run/weft && mount --bind /run/netns /run/netns");
    fs::write("/run/weft/netns-dir-made", format!("1{made}")).unwrap();
    ok(&["lab", "down", "--all", "--yes"]);
    assert!(is_mounted());
    sh("umount /run/netns");
}

#[test]
fn a_lab_is_not_made_over_a_link() {
    if !in_private_machine("safety::a_lab_is_not_made_over_a_link") {
        return;
    }
    let victim = make_victim();
    let before = tree(&victim);
    for place in [
        "/run/weft",
        "/run/weft/labs",
        "/run/weft/lab-bpf",
        "/run/netns",
        "/run/netns/weft-x-s1",
        "/run/frr/weft-x-tor1",
    ] {
        sh("rm -rf /run/weft /run/netns; rm -rf /run/frr/*");
        fs::create_dir_all(Path::new(place).parent().unwrap()).unwrap();
        symlink(&victim, place).unwrap();
        let up = run(&["lab", "up", "vl2-4servers", "--name", "x", "--quiet"]);
        let said = text(&up.stderr);
        assert!(!up.status.success() && said.contains(place.rsplit('/').next().unwrap()), "{place}: {said}");
        assert_eq!(before, tree(&victim), "{place}");
        fs::remove_file(place).unwrap();
        ok(&["lab", "down", "--all", "--yes"]);
    }
    // Anybody may write here: it is not used.
    fs::create_dir_all("/run/weft/labs").unwrap();
    fs::set_permissions("/run/weft/labs", fs::Permissions::from_mode(0o777)).unwrap();
    let up = run(&["lab", "up", "vl2-4servers", "--name", "x", "--quiet"]);
    assert!(text(&up.stderr).contains("/run/weft/labs may be written by others"), "{}", text(&up.stderr));
}

/// A shell that waits, under another name and with these arguments.
fn impostor(name: &str, arguments: &[&str]) -> Child {
    let folder = Path::new("/run/impostors");
    fs::create_dir_all(folder).unwrap();
    if !folder.join(name).exists() {
        // Another process writes it: what is executed must not be open for writing.
        sh(&format!("cp /bin/sh {}", folder.join(name).display()));
    }
    let mut command = Command::new(folder.join(name));
    command.args(["-c", "sleep 1000; :"]).args(arguments).stdout(Stdio::null()).spawn().unwrap()
}

struct Strangers {
    processes: Vec<Child>,
    files: BTreeMap<PathBuf, (u64, u32, Vec<u8>)>,
}

impl Strangers {
    const FOLDERS: [&'static str; 4] = ["/run/frr/weft-x", "/run/weft/bpf", "/var/lib/weft/directory", "/var/tmp/weft"];
    const NAMESPACES: [&'static str; 4] = ["weft-x-s1", "weft-host", "weft-tester-1-0-a", "weft-doctor-1"];

    fn new() -> Self {
        sh("ip netns add weft-x-s1; ip netns add weft-tester-1-0-a; ip netns add weft-doctor-1
            touch /run/netns/weft-host; mount --bind /proc/self/ns/net /run/netns/weft-host
            mkdir -p /run/frr/weft-x /run/weft/bpf /var/lib/weft/directory /var/tmp/weft/home
            echo mine > /run/frr/weft-x/zebra.conf; chown -R frr:frr /run/frr/weft-x
            mount -t bpf bpf /run/weft/bpf; mkdir /run/weft/bpf/agent /run/weft/bpf/x
            echo mine > /var/lib/weft/directory/table; echo mine > /run/weft/weft-tester-1-0-a.log
            echo mine > /run/weft/vtep.pid");
        let mut processes = vec![
            impostor("etcd", &["--name", "weft-1"]),
            impostor("etcd", &["--data-dir", "/var/lib/weft/labs/x/etcd"]),
            impostor("zebra", &["-N", "weft-x-tor1"]),
            impostor("ospfd", &["-N", "weft-x-tor1"]),
            impostor("weft", &["node", "/run/weft/labs/x/run/s1.agent.toml"]),
        ];
        let inside = ["netns", "exec", "weft-x-s1", "sleep", "1000"];
        processes.push(Command::new("ip").args(inside).spawn().unwrap());
        // Of a daemon that is gone: it is that daemon's to remove.
        drop(std::os::unix::net::UnixListener::bind("/run/weft/agent.sock").unwrap());
        Self { processes, files: Self::files() }
    }

    fn files() -> BTreeMap<PathBuf, (u64, u32, Vec<u8>)> {
        let mut all = BTreeMap::new();
        Self::FOLDERS.iter().for_each(|folder| all.append(&mut tree(Path::new(folder))));
        for name in Self::NAMESPACES {
            let path = Path::new("/run/netns").join(name);
            let inode = path.metadata().map_or(0, |data| data.ino());
            all.insert(path, (inode, 0, Vec::new()));
        }
        for file in ["/run/weft/weft-tester-1-0-a.log", "/run/weft/vtep.pid", "/run/weft/agent.sock"] {
            all.append(&mut tree(Path::new(file)));
        }
        all
    }

    fn check(&mut self, after: &str) {
        for process in &mut self.processes {
            let ended = process.try_wait().unwrap();
            assert!(ended.is_none(), "after {after}: process {} of somebody else was ended: {ended:?}", process.id());
        }
        assert_eq!(self.files, Self::files(), "after {after}");
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Starts a lab and kills the command as soon as this has happened.
fn killed_when(args: &[&str], happened: impl Fn() -> bool) {
    let mut command = weft();
    let mut child = command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the phase in which it is killed", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        happened()
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

fn exists(path: &str) -> bool {
    Path::new(path).symlink_metadata().is_ok()
}

/// What only labs make.
fn is_clean() -> bool {
    let names = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let ours =
        names("/run/netns").chain(names("/run/frr")).filter(|name| name.to_string_lossy().starts_with("weft-y-"));
    ours.count() == 0 && !exists("/run/weft/labs") && !exists("/run/weft/lab-bpf") && !exists("/var/lib/weft/labs")
}

#[test]
fn what_only_looks_like_ours_survives_labs_and_sweeps() {
    if !in_private_machine("safety::what_only_looks_like_ours_survives_labs_and_sweeps") {
        return;
    }
    let mut strangers = Strangers::new();
    let down = run(&["lab", "down", "--all", "--yes"]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    strangers.check("a sweep without labs");
    let said = text(&down.stderr);
    for name in ["weft-x-s1", "weft-host", "/frr/weft-x"] {
        assert!(said.lines().any(|line| line.starts_with("left alone: ") && line.contains(name)), "{name}: {said}");
    }
    assert!(said.contains("weft-host, which is this machine's own namespace"), "{said}");

    let taken = run(&["lab", "up", "vl2-4servers", "--name", "x", "--quiet"]);
    assert!(text(&taken.stderr).contains("weft-x-s1"), "{}", text(&taken.stderr));
    strangers.check("a lab that was refused");

    ok(&["lab", "up", "vl2-4servers", "--name", "y", "--quiet"]);
    strangers.check("lab up");
    ok(&["lab", "down", "y"]);
    strangers.check("lab down");
    assert!(is_clean());

    let up = ["lab", "up", "vl2-4servers", "--name", "y", "--quiet"];
    let phases = [
        ("its name is taken", (|| exists("/run/weft/labs/y")) as fn() -> bool),
        ("the first namespace", || exists("/run/netns/weft-y-s1") || exists("/run/netns/weft-y-int1")),
        ("FRR's folders", || exists("/run/frr/weft-y-tor1")),
        ("zebra", || exists("/run/frr/weft-y-tor1/zserv.api")),
        ("pins", || exists("/run/weft/lab-bpf/y")),
    ];
    for (phase, happened) in phases {
        killed_when(&up, happened);
        ok(&["lab", "down", "--all", "--yes"]);
        strangers.check(phase);
        assert!(is_clean(), "killed at: {phase}");
    }
    // Also with nothing but the marks left.
    ok(&up);
    fs::remove_dir_all("/run/weft/labs").unwrap();
    ok(&["lab", "down", "--all", "--yes"]);
    strangers.check("a sweep without state");
    assert!(is_clean());
    // A lab whose state names a namespace that has become somebody else's meanwhile.
    ok(&up);
    sh("ip netns del weft-y-s1; ip netns add weft-y-s1; ip netns exec weft-y-s1 sleep 1000 >/dev/null 2>&1 &");
    let inode = fs::metadata("/run/netns/weft-y-s1").unwrap().ino();
    let down = run(&["lab", "down", "y"]);
    assert!(text(&down.stderr).contains("left alone: namespace weft-y-s1"), "{}", text(&down.stderr));
    assert_eq!(fs::metadata("/run/netns/weft-y-s1").unwrap().ino(), inode);
    strangers.check("a namespace that changed hands");
}

#[test]
fn daemons_on_loopback_are_known_from_their_first_moment() {
    if !in_private_machine("safety::daemons_on_loopback_are_known_from_their_first_moment") {
        return;
    }
    if !weft_needs::program("etcd") {
        return;
    }
    let running = || {
        let pids =
            fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        pids.filter(|line| text(line).contains("/var/lib/weft/labs/") || text(line).contains("node\0directory")).count()
    };
    for least in [1, 3, 4] {
        killed_when(&["bench", "directory", "--quick", "--store", "etcd3"], || running() >= least);
        ok(&["lab", "down", "--all", "--yes"]);
        assert_eq!(running(), 0, "killed when {least} ran");
        assert!(is_clean());
    }
}

#[test]
fn whoever_is_not_root_is_told_at_once() {
    if !in_private_machine("safety::whoever_is_not_root_is_told_at_once") {
        return;
    }
    sh("cp \"$0\" /run/weft-copy; chmod 755 /run/weft-copy".replace("$0", env!("CARGO_BIN_EXE_weft")).as_str());
    ok(&["lab", "up", "vl2-4servers", "--name", "y", "--quiet"]);
    let _gone = Down;
    for command in ["down y", "down --all", "shell s1", "logs", "ps", "ps y", "exec s1 -- true"] {
        let mut user = Command::new("setpriv");
        user.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "/run/weft-copy", "lab"])
            .args(command.split(' '));
        let output = user.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "lab {command}: {said}");
        assert!(said.contains("root") && said.contains("sudo"), "lab {command}: {said}");
    }
    assert!(ok(&["lab", "ps"]).contains("up"));
}

struct Down;

impl Drop for Down {
    fn drop(&mut self) {
        let _ = run(&["lab", "down", "--all", "--yes"]);
    }
}

/// Daemons as an operator runs them, in namespaces of their own, with pins and sockets where the documentation puts them.
struct Production {
    daemons: Vec<(&'static str, Child)>,
    /// Pins, sockets, stores, and namespaces.
    seen: BTreeMap<PathBuf, (u64, u32, Vec<u8>)>,
}

const NETWORK: &str = "for n in v1 v2 m1 m2 sw rb ag; do ip netns add $n; ip -n $n link set lo up; done
ip -n v1 link add u0 mtu 1600 type veth peer name u0 mtu 1600 netns v2
ip -n v1 address add 10.9.0.1/24 dev u0; ip -n v2 address add 10.9.0.2/24 dev u0
for i in 1 2; do
  ip -n v$i link add p0 type veth peer name eth0 netns m$i
  ip -n v$i link set u0 up; ip -n v$i link set p0 up; ip -n m$i link set eth0 up
  ip -n m$i address add 192.168.0.$i/24 dev eth0
done
for p in swp1 swp2 swp11 swp12; do ip -n sw link add $p type veth peer name ${p}x; ip -n sw link set $p up; done
ip -n rb link add eth1 mtu 1600 type veth peer name eth1x mtu 1600; ip -n rb link add host1 type veth peer name host1x
for p in eth1 host1; do ip -n rb link set $p up; done
ip -n ag link add eth0 mtu 1500 type veth peer name eth0x mtu 1600
ip -n ag address add 10.64.0.2/24 dev eth0; ip -n ag address add 20.0.0.1/8 dev eth0; ip -n ag link set eth0 up
mkdir -p /run/etc /var/lib/weft /run/weft; chmod 755 /run/weft
mkdir /run/weft/bpf; mount -t bpf -o mode=0700 bpf /run/weft/bpf # here: what `ip netns exec` runs has mounts of its own
cd /run/etc
(umask 077; head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \\n' > directory.key)
$WEFT directory key directory.key --la 10.64.0.2 --service 0 --write agent.key
$WEFT node directory --print-example | sed 's/10.64.0.9:5300/127.0.0.1:5300/; s,/etc/weft,/run/etc,' > directory.toml
$WEFT node agent --print-example | sed 's,/etc/weft,/run/etc,' > agent.toml
$WEFT node switch --print-example > switch.toml
printf 'name = \"s1\"\\nxdp = \"generic\"\\npin_dir = \"/run/weft/bpf/rbridge\"\\nsocket = \"/run/weft/rbridge.sock\"\\n' > rbridge.toml
printf '[[port]]\\ninterface = \"eth1\"\\nkind = \"p2p\"\\n[[port]]\\ninterface = \"host1\"\\nkind = \"access\"\\nvlan = 10\\n' >> rbridge.toml";

impl Production {
    fn start() -> Self {
        let weft = env!("CARGO_BIN_EXE_weft");
        sh(&format!("WEFT={weft}\n{NETWORK}"));
        let vtep = |local: &str, peer: &str, name: &str| {
            format!(
                "vtep --local {local} --uplink u0 --peer {peer} --vni 100 --port p0=100 \
                 --socket /run/weft/{name}.sock --pin-dir /run/weft/bpf/{name}"
            )
        };
        let daemons = [
            ("v1", vtep("10.9.0.1", "10.9.0.2", "vtep"), "/run/weft/vtep.sock"),
            ("v2", vtep("10.9.0.2", "10.9.0.1", "vtep-2"), "/run/weft/vtep-2.sock"),
            ("v1", "directory --config /run/etc/directory.toml".to_owned(), "/run/weft/directory/admin.sock"),
            ("ag", "agent --config /run/etc/agent.toml".to_owned(), "/run/weft/agent.sock"),
            ("sw", "switch --config /run/etc/switch.toml".to_owned(), "/run/weft/bpf/switch"),
            ("rb", "rbridge --config /run/etc/rbridge.toml".to_owned(), "/run/weft/rbridge.sock"),
        ];
        let start = |(namespace, command, sign): (&'static str, String, &str)| {
            let mut daemon = Command::new("ip");
            daemon.args(["netns", "exec", namespace, weft, "node"]).args(command.split_whitespace());
            let mut child = daemon.stdout(Stdio::null()).spawn().unwrap();
            wait_for(&command, || {
                assert!(child.try_wait().unwrap().is_none(), "{command} ended at its start");
                exists(sign)
            });
            (namespace, child)
        };
        let daemons: Vec<_> = daemons.map(start).into();
        let mut production = Self { daemons, seen: BTreeMap::new() };
        wait_for("packets through the tunnel", || production.passes());
        production.seen = production.look();
        assert!(production.seen.len() > 30, "pins and sockets: {:?}", production.seen.keys());
        production
    }

    fn passes(&self) -> bool {
        let ping = ["netns", "exec", "m1", "ping", "-n", "-c", "1", "-W", "2", "192.168.0.2"];
        Command::new("ip").args(ping).stdout(Stdio::null()).status().unwrap().success()
    }

    fn look(&self) -> BTreeMap<PathBuf, (u64, u32, Vec<u8>)> {
        let mut seen = tree(Path::new("/run/weft/bpf"));
        // What a map holds changes while daemons work: counters, stations.
        seen.values_mut().for_each(|(_, _, content)| content.clear());
        for name in ["vtep", "vtep-2", "directory", "agent", "rbridge"] {
            seen.append(&mut tree(&PathBuf::from(format!("/run/weft/{name}.sock"))));
        }
        for path in ["/var/lib/weft/directory.redb", "/run/weft", "/var/lib/weft"] {
            let data = fs::symlink_metadata(path).unwrap();
            seen.insert(path.into(), (data.ino(), data.mode(), Vec::new()));
        }
        for name in ["v1", "v2", "m1", "m2", "sw", "rb", "ag"] {
            let path = Path::new("/run/netns").join(name);
            let inode = path.metadata().unwrap().ino();
            seen.insert(path, (inode, 0, Vec::new()));
        }
        seen
    }

    fn check(&mut self, after: &str) {
        for (namespace, daemon) in &mut self.daemons {
            assert!(daemon.try_wait().unwrap().is_none(), "after {after}: the daemon in {namespace} has ended");
        }
        assert_eq!(self.seen, self.look(), "after {after}");
        wait_for("packets through the tunnel", || self.passes());
        for show in [["show", "vtep", "peers"], ["show", "agent", "counters"]] {
            ok(&show);
        }
    }
}

impl Drop for Production {
    fn drop(&mut self) {
        for (_, daemon) in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

#[test]
fn daemons_at_work_beside_labs_notice_nothing() {
    if !in_private_machine("safety::daemons_at_work_beside_labs_notice_nothing") {
        return;
    }
    let mut production = Production::start();
    ok(&["lab", "down", "--all", "--yes"]);
    production.check("a sweep without labs");
    ok(&["lab", "up", "vl2-4servers", "--name", "agent", "--quiet"]);
    production.check("lab up");
    ok(&["lab", "down", "agent"]);
    production.check("lab down");
    for pin in ["/run/weft/lab-bpf/y", "/run/weft/lab-bpf"] {
        killed_when(&["lab", "up", "vl2-4servers", "--name", "y", "--quiet"], || exists(pin));
        production.check("a killed lab");
        ok(&["lab", "down", "--all", "--yes"]);
        production.check("a sweep");
        assert!(is_clean());
    }
}
