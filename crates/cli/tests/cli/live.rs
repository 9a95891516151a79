//! A lab that people change while it is up: links fail, fall silent and come back, and the checks say what the lab does.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{Machine, ok, one_lab_at_a_time, run, text, wait_for, weft};

/// Takes everything down when a test ends, also when it fails.
struct Sweep;

impl Drop for Sweep {
    fn drop(&mut self) {
        let _ = run(&["lab", "down", "--all", "--yes"]);
    }
}

fn validated(arguments: &[&str]) -> (Option<i32>, serde_json::Value) {
    let output = run(&[&["lab", "validate", "--quiet", "-o", "json"], arguments].concat());
    let said = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (output.status.code(), said)
}

#[track_caller]
fn assert_passes(arguments: &[&str]) {
    let (code, said) = validated(arguments);
    assert_eq!(code, Some(0), "{said:#}");
}

/// What a check of this name found, first of all.
fn found(said: &serde_json::Value, check: &str) -> (bool, String) {
    let checks = said["checks"].as_array().expect("there are checks");
    let one = checks.iter().find(|one| one["check"] == check).unwrap_or_else(|| panic!("no {check}: {said:#}"));
    (one["passed"] == true, one["found"].as_str().unwrap_or_default().to_owned())
}

/// State of an interface, as the kernel says it.
fn operstate(node: &str, interface: &str) -> String {
    let shown = ok(&["lab", "exec", node, "--", "ip", "-j", "link", "show", "dev", interface]);
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    shown[0]["operstate"].as_str().unwrap_or_default().to_owned()
}

fn answers(from: &str, to: &str) -> bool {
    run(&["lab", "exec", from, "--", "ping", "-n", "-c", "1", "-W", "1", to]).status.success()
}

#[test]
fn links_and_switches_of_a_lab_fail_and_come_back_while_checks_follow() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    ok(&["lab", "up", "vl2-4servers", "--name", "live", "--quiet"]);
    assert_passes(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let checks = folder.path().join("checks.toml");
    let two_ways = "[[width]]\nfrom = \"tor1\"\nto = \"tor2\"\nleast = 2\n[[path]]\nfrom = \"tor1\"\nto = \"tor2\"\nthrough = [\"agg1\"]\n";
    std::fs::write(&checks, two_ways).expect("it is writable");
    let checks = checks.to_str().expect("plain");
    assert_passes(&[checks]);

    // A link goes down at both ends and stays so; what is left is what the checks want, but for the two ways.
    let said = ok(&["lab", "fail", "agg1", "tor1", "--quiet", "-o", "json"]);
    assert!(
        said.contains(r#"{"kind":"link-down","a":"agg1","b":"tor1"}"#) && !said.contains(r#""routes_s":null"#),
        "{said}"
    );
    assert_eq!((operstate("tor1", "agg1"), operstate("agg1", "tor1")), ("DOWN".into(), "DOWN".into()));
    assert_passes(&[]);
    let (code, said) = validated(&[checks]);
    assert_eq!(code, Some(3), "{said:#}");
    assert_eq!(found(&said, "width"), (false, "1 of 2".into()));
    assert!(found(&said, "ways").0 && !found(&said, "path").0 && found(&said, "reach").0, "{said:#}");

    // Nobody is told that the other one is silent: what the checks want without both cannot be had.
    ok(&["lab", "silence", "tor1", "agg2", "--quiet"]);
    assert_eq!(operstate("tor1", "agg2"), "UP");
    assert!(!answers("s1", "20.0.0.3"), "both links of its ToR carry nothing");
    assert!(answers("s3", "20.0.0.4"), "the other rack's do");
    let nothing = run(&["lab", "repair", "tor2", "agg2"]);
    assert!(text(&nothing.stderr).contains("tor1 agg2 (silent)"), "{}", text(&nothing.stderr));
    ok(&["lab", "repair", "agg2", "tor1", "--quiet"]);
    assert_passes(&[]);

    // A whole switch, beside what is broken already, and all of it mended.
    ok(&["lab", "fail", "int1", "--quiet"]);
    assert_passes(&[]);
    ok(&["lab", "repair", "--all", "--quiet"]);
    assert_passes(&[checks]);
    assert_eq!(operstate("tor1", "agg1"), "UP");
    for (arguments, said) in [
        (&["fail", "s1"][..], "`s1` is no switch; name the two ends of its link, such as s1 tor1"),
        (&["fail", "ghost"], "no node `ghost`; it has: int1, "),
        (&["capture", "ghost", "-w", "-"], "no node `ghost`; it has: int1, "),
        (&["capture", "tor1:agg9", "-w", "-"], "node `tor1` has no interface `agg9`; it has: agg1, agg2, "),
        (&["capture", "tor1:", "-w", "-"], "it is not NODE:INTERFACE"),
        (&["silence", "tor1", "tor2"], "no link between `tor1` and `tor2`"),
        (&["repair", "int1"], "nothing of int1 is broken in lab `live`; broken: nothing"),
        (&["impair", "tor1", "agg1", "--loss", "101%"], "a loss of 101 % cannot be; choose 0 to 100"),
        (&["impair", "tor1", "agg1", "--rate", "0 bit/s"], "a rate of 0 bit/s cannot be"),
        (&["impair", "tor1", "agg1", "--rate", "fast"], "`fast` is not a rate; write for example `20 Mbit/s`"),
        (&["impair", "tor1", "tor2", "--loss", "1%"], "no link between `tor1` and `tor2`"),
        (&["impair", "tor1", "agg1"], "nothing would be worse; give a loss, a rate or a delay"),
        (&["fail", "int1", "--lab", "other"], "no lab called `other`"),
    ] {
        let output = run(&[&["lab"], arguments].concat());
        assert!(!output.status.success() && text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
    assert_passes(&[checks]);
    // Worse links are said to be so, beside what is broken, and are mended in the same way.
    ok(&["lab", "impair", "tor1", "agg1", "--loss", "12.5%", "--rate", "1Mbit/s", "--seed", "7", "--quiet"]);
    ok(&["lab", "silence", "tor1", "agg1", "--quiet"]);
    let (all, one) = (ok(&["lab", "ps"]), ok(&["lab", "ps", "live"]));
    assert!(all.contains("up, 1 broken, 2 impaired"), "{all}");
    for line in ["tor1 agg1", "tor1 -> agg1   loses 12.5 % (seed 7), carries 1 Mbit/s", "agg1 -> tor1 "] {
        assert!(one.contains(line), "{one}");
    }
    ok(&["lab", "repair", "tor1", "agg1", "--quiet"]);
    assert!(!ok(&["lab", "ps", "live"]).contains("loses"));
    assert_passes(&[checks]);
    a_killed_impairment_is_written_down_or_was_none();
    // What is still broken goes with the lab.
    ok(&["lab", "silence", "int2", "--quiet"]);
    ok(&["lab", "impair", "tor1", "agg1", "--loss", "10%", "--quiet"]);
    ok(&["lab", "down", "live"]);
    assert_eq!(before, Machine::now());
}

/// What the kernel says of both ends of a link, queues, classes and programs at XDP, and what the lab has pinned there.
fn both_ends() -> String {
    let said = |node: &str, interface: &str| {
        let ask = |words: &[&str]| ok(&[&["lab", "exec", node, "--"], words, &["dev", interface]].concat());
        [ask(&["tc", "qdisc", "show"]), ask(&["tc", "class", "show"]), ask(&["ip", "link", "show"])].concat()
    };
    let pins = std::fs::read_dir("/run/weft/lab-bpf/live/+faults").into_iter().flatten().flatten();
    let pins: Vec<_> = pins.map(|pin| pin.file_name()).collect();
    format!("{}{}{pins:?}", said("tor1", "agg1"), said("agg1", "tor1"))
}

/// Killed at any moment, a command leaves a link as before or as the lab's state says, and `repair` brings all of it back.
fn a_killed_impairment_is_written_down_or_was_none() {
    let before = both_ends();
    let mut left = 0;
    for ms in [1, 3, 6, 10, 15, 20, 25, 30, 40, 60] {
        let mut command = weft();
        command.args(["lab", "impair", "tor1", "agg1", "--loss", "50%", "--rate", "2Mbit/s", "--quiet"]);
        let mut child = command.stderr(Stdio::null()).spawn().expect("the binary starts");
        std::thread::sleep(Duration::from_millis(ms));
        let _ = child.kill();
        child.wait().expect("the child is ours");
        let is_written = ok(&["lab", "ps", "live"]).contains("loses 50 %");
        left += usize::from(is_written);
        assert!(is_written || both_ends() == before, "killed after {ms} ms");
        ok(&["lab", "repair", "--all", "--quiet"]);
        assert_eq!(both_ends(), before, "killed after {ms} ms");
    }
    eprintln!("{left} of 10 were written down when they were killed");
}

#[test]
fn a_lab_of_rbridges_does_without_a_link_and_has_it_back() {
    do_without_a_link(&[("trill-s1-s6", "rbridge", ["s1", "s3"])]);
}

#[test]
#[ignore = "long: make test-long"]
fn a_lab_of_each_overlay_does_without_a_link_and_has_it_back() {
    do_without_a_link(&[
        ("trill-s1-s6", "bridge", ["s1", "s3"]),
        ("leaf-spine-small", "vtep", ["leaf1", "spine1"]),
        ("leaf-spine-small", "vtep-tor-xdp", ["leaf1", "spine1"]),
        ("leaf-spine-small", "routed", ["leaf1", "spine1"]),
    ]);
}

/// Labs, each of a fabric and an overlay, pass their checks without the link between two nodes and with it again. Frames of a campus
/// and of tunnels at edge switches meet XDP programs, in whose place a silent link's are.
fn do_without_a_link(labs: &[(&str, &str, [&str; 2])]) {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    // Bridges have 802.1D's timers, and remember for a while where stations were on the old tree.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let checks = folder.path().join("checks.toml");
    std::fs::write(&checks, "within_s = 90").expect("it is writable");
    let checks = [checks.to_str().expect("plain")];
    for &(fabric, overlay, [a, b]) in labs {
        ok(&["lab", "up", fabric, "--overlay", overlay, "--quiet"]);
        assert_passes(&checks);
        // A worse link carries what programs at XDP do, and they have their places again afterwards.
        if ["rbridge", "vtep-tor-xdp"].contains(&overlay) {
            ok(&["lab", "impair", a, b, "--loss", "0.001%", "--quiet"]);
            assert_passes(&checks);
            ok(&["lab", "repair", a, b, "--quiet"]);
        }
        // A spanning tree takes seconds for each change, and its bridges have no programs to take the place of.
        let verbs = if overlay == "bridge" { &["fail"][..] } else { &["fail", "silence"] };
        for verb in verbs {
            ok(&["lab", verb, a, b, "--quiet"]);
            assert_passes(&checks);
            ok(&["lab", "repair", a, b, "--quiet"]);
            if overlay != "bridge" {
                assert_passes(&checks);
            }
        }
        ok(&["lab", "down", fabric]);
    }
}

/// A server goes to another rack and home while somebody pings it: nobody but the wire is out of the way.
#[test]
fn a_server_moves_to_another_rack_and_home() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    ok(&["lab", "up", "vl2-4servers", "--name", "moves", "--quiet"]);
    assert!(answers("s1", "20.0.0.3"));
    let queues = |node: &str, port: &str| ok(&["lab", "exec", node, "--", "tc", "class", "show", "dev", port]);
    let at_home = (queues("tor2", "s3"), queues("s3", "eth0"));
    assert!(at_home.0.contains("rate") && at_home.1.contains("rate"), "{at_home:?}");
    let moved = ok(&["lab", "move", "s3", "tor1", "--quiet", "-o", "json"]);
    let moved: serde_json::Value = serde_json::from_str(&moved).expect("JSON");
    assert_eq!((&moved["from"], &moved["to"]), (&"tor2".into(), &"tor1".into()), "{moved}");
    // The sender is corrected: its next packets find the new place.
    wait_for("s1 reaches s3 in its new rack", || answers("s1", "20.0.0.3"));
    let route = ok(&["lab", "exec", "s3", "--", "ip", "-o", "-4", "addr"]);
    assert!(route.contains(moved["la"].as_str().expect("an address")) && route.contains("20.0.0.3"), "{route}");
    assert_eq!((queues("tor1", "s3"), queues("s3", "eth0")), at_home, "its link carries what it did");
    // Two may be away at one switch, a switch that a server has left can fail, and the checks hold meanwhile.
    ok(&["lab", "move", "s4", "tor1", "--quiet"]);
    wait_for("s3 reaches s4 in its new rack", || answers("s3", "20.0.0.4"));
    ok(&["lab", "fail", "tor2", "--quiet"]);
    assert!(
        answers("s3", "20.0.0.4"),
        "nothing of tor2 is on this way any more, and the directory at tor2 is not asked again"
    );
    ok(&["lab", "repair", "--all", "--quiet"]);
    for (arguments, said) in [
        (&["move", "s3", "tor1"][..], "`s3` is at `tor1` already"),
        (&["move", "s3", "agg1"], "`agg1` is no edge switch"),
        (&["move", "int1", "tor1"], "`int1` is no server"),
        (&["move", "ghost", "tor1"], "no node `ghost`"),
        (&["fail", "s3", "tor2"], "take it home before its link fails: weft lab move s3 tor2"),
    ] {
        let output = run(&[&["lab"], arguments].concat());
        assert!(!output.status.success() && text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
    ok(&["lab", "move", "s3", "tor2", "--quiet"]);
    ok(&["lab", "move", "s4", "tor2", "--quiet"]);
    wait_for("s1 reaches s3 at home", || answers("s1", "20.0.0.3"));
    assert!(!ok(&["lab", "ps", "moves", "-o", "json"]).contains("moved"), "nobody is away");
    assert_passes(&[]);
    ok(&["lab", "move", "s1", "tor2", "--quiet"]);
    ok(&["lab", "down", "moves"]);
    assert_eq!(before, Machine::now());
}

/// The smallest VL2 fabric with a third rack of two servers.
fn with_a_rack(folder: &Path) -> String {
    let four = std::fs::read_to_string(of_root("fabrics/vl2-4servers.yaml")).expect("it is there");
    let nodes = "    dir1: {role: directory}\n    tor3: {role: tor}\n    s5: {role: server}\n    s6: {role: server}\n";
    let links = "    - {endpoints: [\"agg1:tor3\", \"tor3:agg1\"]}\n    - {endpoints: [\"agg2:tor3\", \"tor3:agg2\"]}\n    \
                 - {endpoints: [\"tor3:s5\", \"s5:eth0\"], rate: 20 Mbit/s, buffer: 4 MB}\n    \
                 - {endpoints: [\"tor3:s6\", \"s6:eth0\"], rate: 20 Mbit/s, buffer: 4 MB}\n";
    let file = folder.join("six.yaml");
    std::fs::write(&file, four.replace("    dir1: {role: directory}\n", nodes) + links).expect("it is writable");
    file.to_str().expect("plain").to_owned()
}

/// A command on a node that goes on meanwhile.
fn begun(node: &str, command: &[&str]) -> Child {
    let mut exec = weft();
    exec.args(["lab", "exec", node, "--"]).args(command).stdout(Stdio::piped()).spawn().expect("the binary starts")
}

/// Two pings of 100 a second for so long, past the queues of data, whose drops are not a change's.
fn pings(seconds: &str) -> Vec<Child> {
    let begin = |(node, to)| begun(node, &["ping", "-n", "-q", "-Q", "0xc0", "-i", "0.01", "-w", seconds, to]);
    [("s1", "20.0.0.3"), ("s4", "20.0.0.2")].map(begin).into()
}

/// How many answers never came.
fn lost(pings: Vec<Child>) -> Vec<u32> {
    let count = |ping: Child| {
        let said = text(&ping.wait_with_output().expect("it ends").stdout);
        let numbers = said.lines().find(|line| line.contains("packets transmitted")).expect("ping counts");
        let mut numbers = numbers.split(' ').filter_map(|word| word.parse::<u32>().ok());
        numbers.next().expect("sent") - numbers.next().expect("received")
    };
    pings.into_iter().map(count).collect()
}

/// What a command that never ends has printed.
fn told_until_now(mut begun: Child) -> String {
    begun.kill().expect("it is ours");
    text(&begun.wait_with_output().expect("it ends").stdout)
}

/// A fabric without a directory, which no VL2 network is.
const ALONE: &str = r#"name: alone
topology:
  defaults: {kind: linux, link: {rate: 20 Mbit/s, mtu: 1600}}
  nodes: {spine1: {role: spine}, leaf1: {role: leaf}, h1: {role: server}, h2: {role: server}}
  links:
    - endpoints: ["spine1:leaf1", "leaf1:spine1"]
    - endpoints: ["leaf1:h1", "h1:eth0"]
    - endpoints: ["leaf1:h2", "h2:eth0"]
"#;

/// A rack comes while all servers send to each other as much as they can: whether pings between others lost nothing.
fn a_rack_comes(six: &str) -> bool {
    let ring = ["s1", "s2", "s3", "s4"];
    for node in ring {
        ok(&["lab", "exec", node, "--", "iperf3", "-s", "-D", "-1"]);
    }
    let shuffle: Vec<Child> = (0..4usize)
        .map(|place| begun(ring[place], &["iperf3", "-c", &format!("20.0.0.{}", (place + 1) % 4 + 1), "-t", "6", "-J"]))
        .collect();
    let others = pings("6");
    let said = ok(&["lab", "apply", six, "--quiet", "-o", "json"]);
    assert!(said.contains(r#""come":["tor3","s5","s6"],"gone":[],"changed":["agg1","agg2"]"#), "{said}");
    wait_for("the new servers are reached", || answers("s1", "20.0.0.5") && answers("s6", "20.0.0.2"));
    // Who says Hello with other times is not heard, and heard again ten seconds later.
    let log = std::fs::read_to_string("/var/run/frr/weft-grows-tor3/ospfd.log").expect("the new switch routes");
    assert!(log.contains("-> Full") && !log.contains("mismatch"), "{log}");
    let lost = lost(others);
    for flow in shuffle {
        let said = text(&flow.wait_with_output().expect("it ends").stdout);
        let sum: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        let bytes = sum["end"]["sum_received"]["bytes"].as_f64().expect("bytes");
        assert!(bytes > 5e6, "{bytes} bytes in 6 s at 20 Mbit/s");
    }
    eprintln!("{lost:?} lost when it came");
    lost == [0, 0]
}

/// It goes: whether pings between others lost nothing.
fn a_rack_goes() -> bool {
    let others = pings("4");
    std::thread::sleep(Duration::from_millis(500));
    ok(&["lab", "apply", "vl2-4servers", "--quiet"]);
    let lost = lost(others);
    eprintln!("{lost:?} lost when it went");
    lost == [0, 0]
}

#[test]
fn a_rack_comes_and_goes_without_loss_to_others() {
    let Some(_turn) = one_lab_at_a_time().filter(|_| weft_needs::program("iperf3")) else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let six = with_a_rack(folder.path());
    ok(&["lab", "up", "vl2-4servers", "--name", "grows", "--quiet"]);
    let routes = begun("agg1", &["ip", "monitor", "route"]);
    // A kernel whose cores are busy elsewhere loses packets by itself now and then; what the change loses it loses each time. A name
    // that comes again is another case: the daemons still know it.
    let comes_and_goes_well = || {
        let lost_nothing = a_rack_comes(&six);
        a_rack_goes() && lost_nothing
    };
    let times_well = (0..4).filter(|_| comes_and_goes_well()).take(2).count();
    assert_eq!(times_well, 2, "packets are lost each time");
    let told = told_until_now(routes);
    assert!(told.contains("Deleted local 10.128.0.16 "), "the rack that goes is seen to go: {told}");
    for stays in ["10.64.0.0/24", "10.64.1.0/24", "10.255.255.1"] {
        assert!(!told.contains(&format!("Deleted {stays} ")), "{stays} was away: {told}");
    }
    assert_passes(&[]);
    assert!(!answers("s1", "20.0.0.5"), "it has gone");
    // The same again, and what would change what stays is refused.
    ok(&["lab", "apply", &six, "--quiet"]);
    assert_passes(&[]);
    let faster = std::fs::read_to_string(&six).expect("it is there").replace("200 Mbit/s", "100 Mbit/s");
    std::fs::write(folder.path().join("faster.yaml"), faster).expect("it is writable");
    let faster = folder.path().join("faster.yaml");
    let alone = folder.path().join("alone.yaml");
    std::fs::write(&alone, ALONE).expect("it is writable");
    for (arguments, said) in [
        (
            vec!["apply", faster.to_str().expect("plain")],
            "would have another link, or one of another rate, delay, buffer or MTU",
        ),
        (vec!["apply", "trill-s1-s6"], "stays as it is: "),
        (vec!["apply", alone.to_str().expect("plain")], "fabric `alone` has no directory server; VL2 needs one"),
    ] {
        let output = run(&[vec!["lab"], arguments].concat());
        assert!(!output.status.success() && text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
    assert_passes(&[]);
    ok(&["lab", "down", "grows"]);
    assert_eq!(before, Machine::now());
}

/// Whenever the change is killed, `weft lab down` finds all of it.
#[test]
fn a_change_that_is_killed_leaves_nothing_behind() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let six = with_a_rack(folder.path());
    for wait_ms in [60, 300] {
        ok(&["lab", "up", "vl2-4servers", "--name", "killed", "--quiet"]);
        let mut apply =
            weft().args(["lab", "apply", &six, "--quiet"]).stdout(Stdio::null()).spawn().expect("the binary starts");
        std::thread::sleep(Duration::from_millis(wait_ms));
        apply.kill().expect("it is ours");
        apply.wait().expect("it has ended");
        ok(&["lab", "down", "killed"]);
        assert_eq!(before, Machine::now(), "killed after {wait_ms} ms");
    }
}

/// A file of the repository.
fn of_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A real browser: what is clicked there happens in the kernel, and nobody without the token changes anything.
#[test]
fn a_page_breaks_and_mends_a_lab_and_strangers_do_not() {
    let Some(_turn) = one_lab_at_a_time().filter(|_| weft_needs::packages("pages")) else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    ok(&["lab", "up", "vl2-4servers", "--name", "page", "--quiet"]);
    let mut page = Command::new(of_root("scripts/pages/live.py"));
    let output = page
        .args([env!("CARGO_BIN_EXE_weft"), "page", "tor1", "agg1", "--move", "s3", "tor1"])
        .output()
        .expect("python3 is there");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    ok(&["lab", "down", "page"]);
    assert_eq!(before, Machine::now());
}

/// What a server of a lab answers, with the status at the end.
fn asked(url: &str, path: &str, body: Option<&str>) -> String {
    let (address, token) = url.trim().split_once("/#token=").expect("an address with a token");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--max-time", "30", "--write-out", " %{http_code}", "--header"]);
    curl.arg(format!("Authorization: Bearer {token}"));
    curl.args(body.iter().flat_map(|body| ["--header", "Content-Type: application/json", "--data", body]));
    text(&curl.arg(format!("{address}/api/v1/{path}")).output().expect("curl is there").stdout)
}

/// `weft run --watch`: its lab is shown while it is there, and the run alone says what becomes of it.
#[test]
fn a_run_is_watched_and_nobody_breaks_its_lab() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (plan, out) = (folder.path().join("plan.toml"), folder.path().join("out"));
    let text_of_plan =
        std::fs::read_to_string(of_root("crates/cli/tests/cli/plans/small-shuffle.toml")).expect("it is there");
    let text_of_plan =
        text_of_plan.replace("engines = [\"sim\"]", "engines = [\"lab\"]").replace("1 Gbit/s", "10 Mbit/s");
    let text_of_plan = text_of_plan
        .replace("10 Gbit/s", "100 Mbit/s")
        .replace("\"1 ms\"", "\"100 ms\"")
        .replace("\"10 s\"", "\"60 s\"");
    std::fs::write(&plan, text_of_plan).expect("it is writable");
    let in_virtual_time = run(&["run", "vl2/smoke", "--engine", "sim", "--watch"]);
    assert!(text(&in_virtual_time.stderr).contains("--watch shows labs"), "{}", text(&in_virtual_time.stderr));
    let mut command = weft();
    command.arg("run").arg(&plan).arg("--out").arg(&out).args(["--watch", "--quiet"]).stderr(Stdio::piped());
    let mut run_of_plan = command.stdout(Stdio::null()).spawn().expect("the binary starts");
    let mut lines = BufReader::new(run_of_plan.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let url = lines.find_map(|line| line.strip_prefix("watch it: ").map(str::to_owned)).expect("it says where");
    wait_for("links are used", || {
        let said = asked(&url, "document", None);
        let document: serde_json::Value =
            said.rsplit_once(' ').and_then(|(json, _)| serde_json::from_str(json).ok()).unwrap_or_default();
        let used = document["document"]["chunk"]["use_milli"].as_array().into_iter().flatten();
        used.flat_map(|row| row.as_array().into_iter().flatten()).any(|milli| milli.as_u64() > Some(200))
    });
    let refused = asked(&url, "fail", Some(r#"{"what":["tor1","agg1"]}"#));
    assert!(refused.contains("a run has made this lab") && refused.ends_with(" 409"), "{refused}");
    let by_hand = run(&["lab", "fail", "tor1", "agg1"]);
    assert!(text(&by_hand.stderr).contains("belongs to a run"), "{}", text(&by_hand.stderr));
    let rest: Vec<String> = lines.collect();
    assert!(run_of_plan.wait().expect("it ends").success(), "{rest:?}");
    assert_eq!(before, Machine::now());
}
