//! A lab from end to end: real namespaces, real FRR, real daemons; and nothing left behind, whatever happens.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::common::{Machine, ok, one_lab_at_a_time, our_workers, run, text, wait_for, weft};

/// For answers that must come, seconds: whoever waits for one goes on as soon as it is there.
const PATIENCE_S: &str = "30";

/// Takes everything down when a test ends, also when it fails.
struct Sweep;

impl Drop for Sweep {
    fn drop(&mut self) {
        let _ = run(&["lab", "down", "--all", "--yes"]);
    }
}

#[test]
fn a_lab_comes_up_carries_packets_and_goes_without_a_trace() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    ok(&["lab", "up", "vl2-4servers", "--name", "e2e", "--quiet"]);

    let again = run(&["lab", "up", "vl2-4servers", "--name", "e2e"]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("already up"), "{}", text(&again.stderr));

    let nodes = ok(&["lab", "ps", "-o", "json"]);
    assert!(nodes.contains("\"schema_version\":1") && nodes.contains("\"e2e\""), "{nodes}");

    // The first packet to every other server arrives: it waits at the agent for the directory's answer.
    for aa in ["20.0.0.2", "20.0.0.3", "20.0.0.4"] {
        let ping = ok(&["lab", "exec", "s1", "--", "ping", "-n", "-c", "1", "-W", PATIENCE_S, aa]);
        assert!(ping.contains("1 received"), "{ping}");
    }
    // A virtual layer 2 does not spend the time to live.
    let ping = ok(&["lab", "exec", "s1", "--", "ping", "-n", "-t", "1", "-c", "1", "-W", PATIENCE_S, "20.0.0.4"]);
    assert!(ping.contains("1 received"), "{ping}");

    // The command takes the place of weft: who ends the one ends the other.
    let mut inside = weft();
    inside.args(["lab", "exec", "s1", "--", "sh", "-c", "echo $$ $WEFT_NODE; exit 7"]).stdout(Stdio::piped());
    let inside = inside.spawn().expect("the binary starts");
    let id = inside.id();
    let said = inside.wait_with_output().expect("it ends");
    assert_eq!((text(&said.stdout), said.status.code()), (format!("{id} s1\n"), Some(7)));
    let missing = run(&["lab", "exec", "ghost", "--", "true"]);
    assert!(text(&missing.stderr).contains("ghost"), "{}", text(&missing.stderr));

    ok(&["lab", "down", "e2e"]);
    assert_eq!(before, Machine::now());
}

#[test]
fn the_directory_moves_what_servers_reach() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    ok(&["lab", "up", "vl2-4servers", "--name", "e2e-dir", "--quiet"]);
    let all = ok(&["directory", "get", "-o", "csv"]);
    assert_eq!(all.trim().lines().count(), 1 + 4, "{all}");
    // s2 has not asked for this AA yet; s1 has it cached since the lab's first ping.
    ok(&["directory", "del", "20.0.0.4"]);
    let ping = run(&["lab", "exec", "s2", "--", "ping", "-n", "-c", "1", "-W", "1", "20.0.0.4"]);
    assert!(!ping.status.success(), "an AA that nobody has must not answer");
    let outside = run(&["directory", "set", "192.0.2.1", "--tor", "10.1.0.1", "--anycast", "10.255.255.1"]);
    assert_eq!(outside.status.code(), Some(1), "{}", text(&outside.stderr));
    assert!(text(&outside.stderr).contains("192.0.2.1"), "{}", text(&outside.stderr));
    ok(&["directory", "set", "20.0.0.4", "--tor", "10.1.0.2", "--anycast", "10.255.255.1"]);
    // Its agent remembers for a while that nobody has the AA.
    wait_for("s2 reaches the AA", || {
        run(&["lab", "exec", "s2", "--", "ping", "-n", "-c", "1", "-W", "1", "20.0.0.4"]).status.success()
    });
}

#[test]
fn a_killed_shuffle_of_75_servers_leaves_nothing_after_down_all() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    let out = tempfile::tempdir().expect("a temporary folder");
    let mut child = run_until_traffic("vl2/fig09-shuffle", 75, &out.path().join("killed"));
    child.kill().expect("the child is ours");
    child.wait().expect("the child is ours");
    ok(&["lab", "down", "--all", "--yes"]);
    assert_eq!(before, Machine::now());
    assert!(!out.path().join("killed").join("summary.json").exists(), "half a result was presented as whole");
}

/// A run that is killed when this is dropped.
struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_sweep_is_asked_for_and_spares_what_a_run_is_at_work_with() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    let nothing = ok(&["lab", "down", "--all"]);
    assert_eq!(nothing, "removed 0 labs and 0 leftovers\n", "where nothing would go nobody is asked");
    let out = tempfile::tempdir().expect("a temporary folder");
    let mut child = Held(run_until_traffic("vl2/smoke", 4, &out.path().join("held")));
    ok(&["lab", "up", "leaf-spine-small", "--name", "mine", "--unshaped", "--quiet"]);

    // Without a terminal nobody can be asked: it says what would go, and how to have it so.
    let refused = run(&["lab", "down", "--all"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("lab mine (leaf-spine-small, routed") && said.contains("add --yes"), "{said}");
    assert!(ok(&["lab", "ps"]).contains("mine"));

    let swept = run(&["lab", "down", "--all", "--yes"]);
    let said = text(&swept.stdout) + &text(&swept.stderr);
    assert!(said.contains("removed 1 labs and 0 leftovers"), "{said}");
    let holder = format!("with which process {} is at work", child.0.id());
    assert!(said.contains("spared: lab vl2-testbed") && said.contains(&holder), "{said}");
    assert!(said.contains("run vl2/smoke --engine lab"), "{said}");
    assert!(child.0.try_wait().expect("the child is ours").is_none() && our_workers() >= 4, "the run goes on");

    // A run that was killed holds nothing any more.
    drop(child);
    assert_eq!(run(&["lab", "down", "--all"]).status.code(), Some(2));
    ok(&["lab", "down", "--all", "--yes"]);
    assert_eq!(before, Machine::now());
}

#[test]
fn an_interrupted_run_cleans_up_itself() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    let out = tempfile::tempdir().expect("a temporary folder");
    let child = run_until_traffic("vl2/smoke", 4, &out.path().join("interrupted"));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("the child is ours");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_eq!(before, Machine::now());
}

#[test]
fn both_outer_headers_are_what_an_independent_reader_expects() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    if !weft_needs::program("tshark") {
        return;
    }
    let _sweep = Sweep;
    ok(&["lab", "up", "vl2-4servers", "--name", "e2e-pcap", "--quiet"]);
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("uplinks.pcapng");
    let mut capture = weft();
    capture.args(["lab", "capture", "tor1:agg1", "tor1:agg2", "-w"]).arg(&file);
    let capture = capture.stderr(Stdio::null()).spawn().expect("the binary starts");
    // It listens before it makes the file.
    wait_for("the capture", || file.exists());
    for pattern in 0..8 {
        let pattern = format!("{pattern:02x}");
        ok(&["lab", "exec", "s1", "--", "ping", "-n", "-c", "1", "-W", PATIENCE_S, "-p", &pattern, "20.0.0.4"]);
    }
    assert!(interrupted(capture).success(), "the capture ends well");
    let read = Command::new("tshark")
        .args(["-n", "-o", "ip.check_checksum:TRUE", "-Y", "ip.src==100.64.0.0/10 && icmp.type==8", "-T", "fields"])
        .args(["-e", "ip.dst", "-e", "ip.proto", "-e", "ip.checksum.status", "-r"])
        .arg(&file)
        .output()
        .expect("tshark starts");
    let lines = text(&read.stdout);
    let towards: Vec<&str> = lines.lines().filter(|line| line.contains("20.0.0.4")).collect();
    assert_eq!(towards.len(), 8, "every encapsulated packet was captured once: {lines}");
    for line in towards {
        assert_eq!(line, "10.255.255.1,10.1.0.2,20.0.0.4\t4,4,1\t1,1,1", "anycast LA, ToR LA, AA; checksums good");
    }
}

/// Starts a plan in the lab and waits until all its servers have their workers.
fn run_until_traffic(plan: &str, servers: usize, out: &Path) -> Child {
    let mut command = weft();
    command.args(["run", plan, "--engine", "lab", "--out"]).arg(out);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    wait_for("traffic workers", || {
        if child.try_wait().expect("the child is ours").is_some() {
            let mut errors = String::new();
            let _ = child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut errors));
            panic!("weft run {plan} ended before its traffic: {errors}");
        }
        our_workers() >= servers
    });
    child
}

/// Interrupts it as Ctrl-C does, and waits for its end.
fn interrupted(mut child: Child) -> ExitStatus {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    child.wait().expect("the child is ours")
}
