//! `weft node vtep`, `weft show|reload|stop vtep` and `weft vtep` as an operator types them, in a namespace of the test's own.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::common::{one_lab_at_a_time, run, text, wait_for};

/// A namespace with an uplink `u0` (10.9.0.1) and two ports `p0`, `p1`. It goes with what runs in it.
struct Host {
    name: String,
    dir: tempfile::TempDir,
    daemon: Option<Child>,
}

impl Host {
    fn new(tag: &str) -> Self {
        let name = format!("weft-vtep-test-{tag}-{}", std::process::id());
        let host = Self { name, dir: tempfile::tempdir().unwrap(), daemon: None };
        host.ip(&["netns", "add", &host.name]);
        for port in ["u0", "p0", "p1"] {
            let peer = format!("{port}x");
            host.inside(&["ip", "link", "add", port, "type", "veth", "peer", "name", &peer]);
            host.inside(&["ip", "link", "set", port, "up"]);
            host.inside(&["ip", "link", "set", &peer, "up"]);
        }
        host.inside(&["ip", "link", "set", "u0", "mtu", "1600"]);
        host.inside(&["ip", "address", "add", "10.9.0.1/24", "dev", "u0"]);
        host
    }

    fn ip(&self, args: &[&str]) {
        let output = Command::new("ip").args(args).output().unwrap();
        assert!(output.status.success(), "ip {}: {}", args.join(" "), text(&output.stderr));
    }

    fn inside(&self, args: &[&str]) {
        self.ip(&[&["netns", "exec", &self.name], args].concat());
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("vtep.sock")
    }

    /// The daemon's command line.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, env!("CARGO_BIN_EXE_weft"), "node", "vtep", "--socket"]);
        command.arg(self.socket()).args(args);
        command
    }

    /// A start that must fail.
    fn refused(&self, args: &[&str]) -> Output {
        let output = self.command(args).output().unwrap();
        assert!(!output.status.success(), "weft node vtep {}", args.join(" "));
        assert_eq!(text(&output.stderr).trim().lines().count(), 1, "{}", text(&output.stderr));
        output
    }

    fn start(&mut self, args: &[&str]) {
        let child = self.command(args).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
        self.daemon = Some(child);
        wait_for("the VTEP starts", || self.vtep(&["show", "vtep", "peers"]).status.success());
    }

    fn vtep(&self, args: &[&str]) -> Output {
        let socket = self.socket();
        run(&[args, &["--socket", socket.to_str().unwrap()]].concat())
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.vtep(args);
        assert!(output.status.success(), "weft {}: {}", args.join(" "), text(&output.stderr));
        text(&output.stdout)
    }

    fn show(&self, args: &[&str]) -> Value {
        let shown: Value =
            serde_json::from_str(&self.ok(&[&["show", "vtep"], args, &["-o", "json"]].concat())).unwrap();
        assert_eq!(shown["schema_version"], 1);
        shown
    }

    /// Waits for the end of the daemon; whether it went well.
    fn ended(&mut self) -> bool {
        self.daemon.take().unwrap().wait().unwrap().success()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(mut child) = self.daemon.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

const FLAGS: [&str; 8] = ["--local", "10.9.0.1", "--uplink", "u0", "--peer", "10.9.0.2", "--vni", "100"];

#[test]
fn a_vtep_is_started_by_flags_changed_while_it_runs_and_stopped() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let mut host = Host::new("life");
    host.start(&[&FLAGS[..], &["--port", "p0=100"]].concat());
    let vnis = host.show(&["vni"]);
    assert_eq!(vnis["vnis"][0]["vni"], 100, "{vnis}");
    assert_eq!(vnis["vnis"][0]["ports"][0], "p0", "{vnis}");

    host.ok(&["vtep", "add", "vni", "200-203", "--age", "60"]);
    host.ok(&["vtep", "add", "port", "p1", "--vni", "201"]);
    host.ok(&["vtep", "add", "peer", "10.9.0.3"]);
    host.ok(&[
        "vtep",
        "add",
        "entry",
        "02:00:00:00:00:09",
        "--vni",
        "201",
        "--peer",
        "10.9.0.3",
        "--ip",
        "192.168.0.9",
    ]);
    assert_eq!(host.show(&["vni"])["vnis"].as_array().unwrap().len(), 5);
    let fdb = host.show(&["fdb", "--vni", "201"]);
    assert_eq!(fdb["fdb"][0]["mac"], "02:00:00:00:00:09", "{fdb}");
    assert_eq!(fdb["fdb"][0]["ip"], "192.168.0.9", "{fdb}");
    assert_eq!(host.show(&["peers"])["peers"].as_array().unwrap().len(), 2);
    assert!(host.show(&["counters"])["counters"].as_object().is_some_and(|groups| !groups.is_empty()));
    let table = host.ok(&["show", "vtep", "vni"]);
    assert!(table.contains("VNI") && table.contains("learns 60 s"), "{table}");
    assert!(host.ok(&["show", "vtep", "config"]).contains("10.9.0.3"));

    // What cannot be changes nothing, and says what to do.
    for (args, why) in [
        (&["vtep", "add", "port", "p1", "--vni", "100"][..], "p1"),
        (&["vtep", "add", "port", "ghost", "--vni", "100"], "ghost"),
        (&["vtep", "add", "vni", "0"], "0"),
        (&["vtep", "add", "peer", "10.9.0.1"], "10.9.0.1"),
        (&["vtep", "add", "entry", "02:00:00:00:00:08", "--vni", "999", "--peer", "10.9.0.3"], "999"),
        (&["vtep", "remove", "vni", "201"], "p1"),
    ] {
        let output = host.vtep(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(text(&output.stderr).contains(why), "{args:?}: {}", text(&output.stderr));
    }
    assert_eq!(host.show(&["vni"])["vnis"].as_array().unwrap().len(), 5);

    host.ok(&["vtep", "remove", "entry", "02:00:00:00:00:09", "--vni", "201"]);
    host.ok(&["vtep", "remove", "port", "p1"]);
    host.ok(&["vtep", "remove", "vni", "201-203"]);
    let removed = host.ok(&["reload", "vtep"]);
    assert!(removed.contains("VNI 200, peer 10.9.0.3"), "what goes is named: {removed}");
    assert_eq!(host.show(&["vni"])["vnis"].as_array().unwrap().len(), 1, "a reload goes back to the flags");
    host.ok(&["stop", "vtep"]);
    let daemon = host.daemon.as_mut().unwrap();
    assert!(daemon.try_wait().unwrap().is_some(), "it has ended when `stop` returns, so that a start can follow");
    assert!(host.ended(), "a VTEP that was told to stop ends well");
    let output = host.vtep(&["show", "vtep", "vni"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("weft node vtep"), "{}", text(&output.stderr));
}

#[test]
fn a_vtep_that_cannot_work_is_refused_in_one_line() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let host = Host::new("refused");
    let usage = ["--local", "10.9.0.1", "--uplink", "u0"];
    for (args, why) in [
        (&["--vni", "0"][..], "0"),
        (&["--vni", "16777216"], "16777216"),
        (&["--vni", "100", "--port", "p0", "--port", "p0"], "p0"),
        (&["--vni", "100", "--peer", "10.9.0.1"], "10.9.0.1"),
        (&["--vni", "100", "--port", "ghost"], "ghost"),
    ] {
        let output = host.refused(&[&usage[..], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(why), "{args:?}: {}", text(&output.stderr));
    }
    let output = host.refused(&["--local", "10.9.0.77", "--uplink", "u0", "--vni", "100"]);
    assert!(text(&output.stderr).contains("10.9.0.77"), "{}", text(&output.stderr));
    let output = host.refused(&["--local", "10.9.0.1", "--uplink", "nowhere", "--vni", "100"]);
    assert!(text(&output.stderr).contains("nowhere"), "{}", text(&output.stderr));
}

/// A bpffs in a folder of the test's; it goes with the value.
struct Bpffs(PathBuf);

impl Bpffs {
    fn mount(path: PathBuf) -> Self {
        std::fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount").args(["-t", "bpf", "bpf"]).arg(&path).status().unwrap();
        assert!(mounted.success(), "mounting a bpffs at {}", path.display());
        Self(path)
    }
}

impl Drop for Bpffs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A daemon that ends by a signal leaves its pinned data path at work; `weft stop` removes it afterwards.
#[test]
fn a_data_path_whose_daemon_is_away_is_removed() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let host = Host::new("left");
    let pins = Bpffs::mount(host.dir.path().join("bpf"));
    let dir = pins.0.join("data-path");
    let (socket, config) = (host.socket(), host.dir.path().join("settings.toml"));
    let places = format!("socket = \"{}\"\npin_dir = \"{}\"\n", socket.display(), dir.display());
    let vtep = "local = \"10.9.0.1\"\nuplink = [\"u0\"]\npeers = [\"10.9.0.2\"]\n[[vni]]\nid = 100\n\
                [[port]]\ninterface = \"p0\"\nvni = 100\n";
    let switch = "tier = \"tor\"\nports = [\"u0\"]\nhost_ports = [\"p0\", \"p1\"]\nown_las = [\"10.1.0.1\"]\n";
    let rbridge = "name = \"s1\"\nxdp = \"generic\"\n[[port]]\ninterface = \"u0\"\nkind = \"p2p\"\n\
                   [[port]]\ninterface = \"p0\"\nkind = \"access\"\nvlan = 10\n";
    for (kind, settings, hook, signal) in [
        ("vtep", vtep, "", "TERM"),
        ("vtep", vtep, "filter", "KILL"),
        ("switch", switch, "", "KILL"),
        ("switch", switch, "filter", "TERM"),
        ("rbridge", rbridge, "", "TERM"),
    ] {
        std::fs::write(&config, format!("{places}{settings}")).unwrap();
        let weft = |args: &[&str]| {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &host.name, env!("CARGO_BIN_EXE_weft")]).args(args);
            command.env("WEFT_TC_HOOK", hook);
            command
        };
        let stop = || weft(&["stop", kind, "--socket", socket.to_str().unwrap()]).output().unwrap();
        let mut daemon = weft(&["node", kind, "--config", config.to_str().unwrap()]).spawn().unwrap();
        let show = ["show", kind, "counters", "--socket", socket.to_str().unwrap()];
        wait_for("it starts", || weft(&show).output().unwrap().status.success());
        let signal = format!("-{signal}");
        Command::new("kill").args([&signal, &daemon.id().to_string()]).status().unwrap();
        daemon.wait().unwrap();
        assert!(dir.read_dir().unwrap().count() > 2, "{kind}: its data path is pinned");
        let output = stop();
        let said = text(&output.stderr);
        assert!(output.status.success(), "{kind}: {said}");
        let told = format!("no {kind} was running; the data path that it left at work, pinned in {}", dir.display());
        assert!(said.contains(&told), "{kind}: {said}");
        assert!(!dir.exists(), "{kind}: {:?}", dir.read_dir().unwrap().flatten().collect::<Vec<_>>());
        for (port, side) in [("u0", "ingress"), ("p0", "ingress"), ("p1", "ingress")] {
            let filters = Command::new("tc").args(["-n", &host.name, "filter", "show", "dev", port, side]).output();
            assert_eq!(text(&filters.unwrap().stdout), "", "{kind}: a filter is on {port}");
        }
        let left: Vec<_> = host.dir.path().read_dir().unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert!(left.iter().all(|name| name != "vtep.pins" && name != "vtep.cards"), "{kind}: {left:?}");
        let output = stop();
        assert_eq!(output.status.code(), Some(1), "{kind}: there is nothing to stop");
        assert!(text(&output.stderr).contains(&format!("weft node {kind}")), "{}", text(&output.stderr));
    }
}

#[test]
fn the_log_says_who_changed_what() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let mut host = Host::new("log");
    let config = host.dir.path().join("vtep.toml");
    let settings = "local = \"10.9.0.1\"\nuplink = [\"u0\"]\npeers = [\"10.9.0.2\"]\n[[vni]]\nid = 100\n";
    std::fs::write(&config, settings).unwrap();
    let log = host.dir.path().join("log");
    let mut command = host.command(&["--config", config.to_str().unwrap()]);
    let child = command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    host.daemon = Some(child);
    wait_for("the VTEP starts", || host.vtep(&["show", "vtep", "peers"]).status.success());
    host.ok(&["vtep", "add", "vni", "200"]);
    host.ok(&["vtep", "remove", "vni", "200"]);
    assert!(!host.vtep(&["vtep", "add", "vni", "0"]).status.success());
    host.ok(&["reload", "vtep"]);
    std::fs::write(&config, settings.replace("10.9.0.2", "10.9.0.1")).unwrap();
    assert!(!host.vtep(&["reload", "vtep"]).status.success());
    let pid = host.daemon.as_ref().unwrap().id().to_string();
    Command::new("kill").args(["-HUP", &pid]).status().unwrap();
    let said = || std::fs::read_to_string(&log).unwrap();
    wait_for("the refusal is told", || said().matches("the settings stay as they were").count() == 2);
    Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(host.ended());
    let said = said();
    for line in [
        &["INFO", "added: ", "\"vni\"", "200", "uid 0 (process "][..],
        &["INFO", "removed: ", "\"vni\"", "200", "uid 0 (process "],
        &["WARN", "not added: ", "uid 0"],
        &["INFO", "settings read again", "uid 0"],
        &["WARN", "the settings stay as they were", "uid 0", "10.9.0.1"],
        &["WARN", "the settings stay as they were", "SIGHUP", "10.9.0.1"],
        &["INFO", "ends by SIGTERM or SIGINT"],
    ] {
        let told = said.lines().filter(|one| line.iter().all(|part| one.contains(part))).count();
        assert_eq!(told, 1, "{line:?} in:\n{said}");
    }
}
