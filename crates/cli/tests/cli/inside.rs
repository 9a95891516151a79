//! In the nodes of a lab: names, the node's own routing daemons, shells and logs; addresses that are listed answer; and nothing of it
//! is seen outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Machine, ok, one_lab_at_a_time, run, text, wait_for, weft};
use crate::terminal::Terminal;

/// Seconds that an answer may take on a machine that is slow.
const PATIENCE_S: &str = "30";

struct Sweep;

impl Drop for Sweep {
    fn drop(&mut self) {
        let _ = run(&["lab", "down", "--all", "--yes"]);
    }
}

/// Names, lengths and times of everything below `/etc`, and what is mounted: what nobody else may see changed.
fn outside() -> (BTreeMap<PathBuf, (u64, std::time::SystemTime)>, String, String) {
    fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, (u64, std::time::SystemTime)>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(data) = entry.path().symlink_metadata() else { continue };
            found.insert(entry.path(), (data.len(), data.modified().expect("this system has times")));
            if data.is_dir() {
                walk(&entry.path(), found);
            }
        }
    }
    let mut files = BTreeMap::new();
    walk(Path::new("/etc"), &mut files);
    let read = |file: &str| fs::read_to_string(file).expect("procfs is there");
    (files, read("/proc/self/mounts"), read("/proc/sys/kernel/hostname"))
}

fn exec(node: &str, command: &[&str]) -> String {
    ok(&[&["lab", "exec", node], command].concat())
}

#[test]
fn a_node_has_its_name_knows_the_others_and_talks_to_its_own_daemons() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    ok(&["lab", "up", "vl2-4servers", "--lab", "within", "--quiet"]);
    let seen = outside();

    // As people type it, and with what used to be needed.
    for command in
        [&["ping", "-c", "1", "-W", PATIENCE_S, "s4"][..], &["--", "ping", "-n", "-c", "1", "-W", PATIENCE_S, "s4"]]
    {
        let said = exec("s1", command);
        assert!(said.contains("1 received") && said.contains("20.0.0.4"), "{said}");
    }
    let said = ok(&["lab", "exec", "--lab", "within", "tor1", "ping", "-c", "1", "-W", PATIENCE_S, "int2"]);
    assert!(said.contains("1 received"), "{said}");
    // Options behind the command are its own.
    assert_eq!(exec("s1", &["echo", "--lab", "-q", "--", "-x"]), "--lab -q -- -x\n");
    assert_eq!((exec("s1", &["hostname"]), exec("tor2", &["uname", "-n"])), ("s1\n".into(), "tor2\n".into()));
    assert!(exec("s1", &["getent", "hosts", "tor1"]).starts_with("10.1.0.1 "));
    // To a switch a server is where its LA is.
    assert!(exec("tor1", &["getent", "hosts", "s4"]).starts_with("10.64."));
    let unknown = run(&["lab", "exec", "s1", "ping", "-c", "1", "nowhere"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", text(&unknown.stderr));
    let interfaces = exec("tor1", &["ls", "/sys/class/net"]);
    assert!(["agg1", "agg2", "s1", "lo"].iter().all(|name| interfaces.contains(name)), "{interfaces}");
    let below_sys = exec("s1", &["ls", "/sys/fs/cgroup"]);
    let on_host = Command::new("ls").arg("/sys/fs/cgroup").output().expect("it starts");
    assert_eq!(below_sys, text(&on_host.stdout), "what is mounted below /sys stays");

    let neighbours = exec("tor1", &["vtysh", "-c", "show ip ospf neighbor"]);
    assert!(neighbours.contains("agg1") && neighbours.contains("agg2") && !neighbours.contains('%'), "{neighbours}");
    let of_another = exec("tor1", &["vtysh", "-N", "weft-within-int1", "-c", "show ip ospf neighbor"]);
    assert!(of_another.contains("agg1") && !of_another.contains("s1"), "{of_another}");
    // What is written there is not written here.
    run(&["lab", "exec", "tor1", "vtysh", "-c", "write memory"]);
    exec("s1", &["sh", "-c", "echo 192.0.2.7 elsewhere >> /etc/hosts"]);

    // A command that runs on, and one that is killed: the machine does not see what they see.
    let mut running = weft();
    running.args(["lab", "exec", "s1", "sh", "-c", "hostname; exec sleep 600"]).stdout(Stdio::piped());
    let mut running = running.spawn().expect("the binary starts");
    wait_for("the command", || {
        fs::read_to_string(format!("/proc/{}/comm", running.id())).is_ok_and(|name| name.trim() == "sleep")
    });
    assert_eq!(seen, outside());
    running.kill().expect("it is ours");
    running.wait().expect("it is ours");
    assert_eq!(seen, outside());

    // The usual tools find the namespace as before.
    for enter in [&["ip", "netns", "exec", "weft-within-s1"][..], &["nsenter", "--net=/run/netns/weft-within-s1"]] {
        let output =
            Command::new(enter[0]).args(&enter[1..]).args(["ip", "-br", "address"]).output().expect("it starts");
        assert!(text(&output.stdout).contains("20.0.0.1/8"), "{enter:?}: {}", text(&output.stderr));
    }
    let inside = run(&["lab", "exec", "s1", "weft", "lab", "up", "leaf-spine-small"]);
    assert_eq!(inside.status.code(), Some(4), "{}", text(&inside.stderr));
    assert!(text(&inside.stderr).contains("in a node of lab `within`"), "{}", text(&inside.stderr));

    ok(&["lab", "down", "--lab", "within"]);
    assert_eq!(before, Machine::now());
    assert_eq!(seen.0, outside().0);
}

/// Whether a process has this command line.
fn runs(words: &str) -> bool {
    let entries = fs::read_dir("/proc").expect("procfs is there").flatten();
    entries.into_iter().any(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == words.as_bytes()))
}

#[test]
fn a_shell_says_where_it_is_and_ends_with_its_last_commands_code() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    ok(&["lab", "up", "vl2-4servers", "--name", "within", "--quiet"]);
    for shell in ["/bin/bash", "/bin/sh"] {
        let mut terminal = Terminal::open(&format!("SHELL={shell} exec \"$WEFT\" lab shell s1"));
        terminal.wait_for("(within/s1) ");
        terminal.enter("echo name=$(hostname)=");
        terminal.wait_for("name=s1=");
        // Ctrl-C ends what runs in the shell, not the shell.
        terminal.enter("sleep 637; echo after=$?=");
        wait_for("the command", || runs("sleep\x00637\x00"));
        terminal.press("\x03");
        terminal.enter("echo again=$((3 + 4))=");
        terminal.wait_for("again=7=");
        terminal.enter("exit 5");
        let (code, screen) = terminal.end();
        assert_eq!(code, Some(5), "{shell}: {screen}");
    }
    // Without a terminal it is a shell all the same.
    let mut piped = weft();
    piped.args(["lab", "shell", "--lab", "within", "tor1"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut piped = piped.spawn().expect("the binary starts");
    std::io::Write::write_all(&mut piped.stdin.take().expect("a pipe"), b"hostname; exit 6\n").expect("it reads");
    let said = piped.wait_with_output().expect("it ends");
    assert_eq!((text(&said.stdout), said.status.code()), ("tor1\n".into(), Some(6)));
}

#[test]
fn logs_of_a_node_are_listed_shown_and_followed() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    ok(&["lab", "up", "vl2-4servers", "--name", "within", "--quiet"]);
    let all: serde_json::Value = serde_json::from_str(&ok(&["lab", "logs", "-o", "json"])).expect("JSON");
    let logs = all["logs"].as_array().expect("a list");
    let has = |node: &str, daemon: &str| logs.iter().any(|log| log["node"] == node && log["daemon"] == daemon);
    assert!(has("s1", "agent") && has("tor1", "ospfd") && has("tor1", "zebra") && has("dir1", "directory"), "{all:#}");
    let whole = ok(&["lab", "logs", "tor1", "ospfd"]);
    assert!(whole.contains("Full"), "changes of neighbours: {whole}");
    assert_eq!(ok(&["lab", "logs", "s1", "agent", "-n", "1"]).lines().count(), 1);
    assert!(ok(&["lab", "logs", "tor1"]).lines().any(|line| line.starts_with("ospfd ") && line.contains(" | ")));
    let lines: serde_json::Value =
        serde_json::from_str(&ok(&["lab", "logs", "s1", "agent", "-n", "1", "-o", "json"])).expect("JSON");
    assert_eq!((&lines["node"], lines["lines"].as_array().map(Vec::len)), (&"s1".into(), Some(1)), "{lines:#}");
    let unknown = run(&["lab", "logs", "s1", "ospfd"]);
    assert!(text(&unknown.stderr).contains("no log of a daemon `ospfd`; it has: agent"), "{}", text(&unknown.stderr));

    // What comes is shown until the lab is gone.
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let mut following = weft();
    following.args(["lab", "logs", "--lab", "within", "tor1", "ospfd", "-n", "0", "-f"]);
    let mut following = following.stdout(file.reopen().expect("it is ours")).spawn().expect("the binary starts");
    ok(&["lab", "fail", "tor1", "agg1", "--quiet"]);
    wait_for("a line of the neighbour that went", || {
        fs::read_to_string(file.path()).is_ok_and(|text| text.contains("agg1"))
    });
    ok(&["lab", "down", "within"]);
    assert!(following.wait().expect("it is ours").success());
}

/// Of every kind of lab: what `weft lab ps` lists, with a node that reaches it.
#[test]
fn every_address_that_is_listed_answers() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    for (fabric, overlay, headings) in [
        ("vl2-4servers", "routed", &["LA"][..]),
        ("vl2-4servers", "vl2", &["AA", "LA"]),
        ("vl2-4servers", "kernel-vxlan", &["AA", "LA"]),
        ("vl2-4servers", "vtep", &["AA", "LA"]),
        ("vl2-4servers", "vtep-tor", &["LA", "VLAN"]),
        ("trill-s1-s6", "trill", &["VLAN"]),
        ("vl2-internet", "vl2", &["AA", "LA", "public"]),
    ] {
        ok(&["lab", "up", fabric, "--overlay", overlay, "--name", "listed", "--quiet", "--unshaped"]);
        let table = ok(&["lab", "ps", "listed"]);
        let heading = table.lines().next().unwrap_or_default();
        for known in ["AA", "LA", "public", "VLAN"] {
            let is_there = heading.split_whitespace().any(|word| word == known);
            assert_eq!(is_there, headings.contains(&known), "{fabric} {overlay}: {table}");
        }
        if overlay == "vl2" && fabric == "vl2-4servers" {
            // What is listed is where a server is, not where it was.
            ok(&["lab", "move", "s3", "tor1", "--quiet"]);
        }
        let state: serde_json::Value = serde_json::from_str(&ok(&["lab", "ps", "listed", "-o", "json"])).expect("JSON");
        let nodes = state["nodes"].as_array().expect("a list");
        let server = |node: &&serde_json::Value| node["role"] == "server";
        let first_server = nodes.iter().find(server).expect("there are servers");
        let public_server =
            nodes.iter().find(|node| server(node) && node["public"].is_string()).unwrap_or(first_server);
        let net = nodes.iter().find(|node| node["role"] == "internet").unwrap_or(first_server);
        let switch = nodes.iter().find(|node| !server(node) && node["la"].is_string());
        // From which node, which addresses.
        let mut asked: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for node in nodes {
            let mut ask = |from: &serde_json::Value, address: &serde_json::Value| {
                let address = address.as_str().and_then(|address| address.split('/').next());
                let from = from["name"].as_str().expect("a name").to_owned();
                asked.entry(from).or_default().extend(address.map(str::to_owned));
            };
            ask(first_server, &node["aa"]);
            ask(if server(&node) { net } else { public_server }, &node["public"]);
            ask(switch.unwrap_or(first_server), &node["la"]);
            for access in node["access"].as_array().into_iter().flatten() {
                let has = |one: &&serde_json::Value| {
                    one["access"].as_array().is_some_and(|all| all[0]["vlan"] == access["vlan"])
                };
                ask(nodes.iter().find(has).unwrap_or(first_server), &access["address"]);
            }
        }
        assert!(asked.values().map(Vec::len).sum::<usize>() >= 4, "{asked:?}");
        for (from, addresses) in asked {
            let script = format!(
                "for a in {}; do ping -n -q -c 1 -W {PATIENCE_S} $a > /dev/null || echo $a; done",
                addresses.join(" ")
            );
            assert_eq!(exec(&from, &["sh", "-c", &script]), "", "{fabric} {overlay}: no answer to {from}");
        }
        ok(&["lab", "down", "listed"]);
    }
}
