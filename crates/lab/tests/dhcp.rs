//! DHCP in a VL2 lab (VL2 4.2.3) with real programs: relayed at the ToR as unicast, the AA is what a server gets.

mod common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::hosts::{four_servers, program, run, seen_during, start};
use common::{Gone, Quiet, can_run, lab_name, options, wait_for};
use weft_lab::{Lab, up};

/// Does what a client's script does on any host, and writes every event down.
const SCRIPT: &str = r#"#!/bin/sh
echo "$1 $interface ${ip:-none}/${mask:-none} from ${serverid:-none} routers ${router:-none} for ${lease:-none} s" >> "$EVENTS"
[ -z "$ip" ] || ip address replace "$ip/$mask" dev "$interface"
"#;

/// A client's script and what it wrote.
struct Client {
    directory: tempfile::TempDir,
}

impl Client {
    /// Another process writes the script: a file open for writing here would be inherited by whatever another test starts at
    /// that moment, and the kernel runs no program that somebody has open for writing (`ETXTBSY`).
    fn new() -> Self {
        let client = Self { directory: tempfile::tempdir().unwrap() };
        let mut install = Command::new("install");
        install.args(["-m", "755", "/dev/stdin"]).arg(client.script()).stdin(Stdio::piped());
        let mut install = install.spawn().expect("install is on every Debian");
        install.stdin.take().expect("a pipe").write_all(SCRIPT.as_bytes()).unwrap();
        assert!(install.wait().unwrap().success());
        client
    }

    fn script(&self) -> PathBuf {
        self.directory.path().join("script")
    }

    fn events(&self, server: &str) -> PathBuf {
        self.directory.path().join(server)
    }

    /// A client that asks on `eth0`, once, with such patience that it says nothing twice, or keeps the lease.
    fn command(&self, server: &str, once: bool) -> Command {
        let mut client = Command::new(program("udhcpc"));
        let patience_s = if once { "30" } else { "3" };
        client.args(["-f", "-n", "-i", "eth0", "-t", "10", "-T", patience_s, "-s"]).arg(self.script());
        client.args(once.then_some("-q")).env("EVENTS", self.events(server));
        client
    }

    /// What the script heard of, but for the first event: that there is no address yet.
    fn heard(&self, server: &str) -> Vec<String> {
        let text = fs::read_to_string(self.events(server)).unwrap_or_default();
        text.lines().filter(|line| !line.starts_with("deconfig")).map(str::to_owned).collect()
    }
}

fn forget_aa(lab: &Lab, server: &str) {
    let aa = format!("{}/8", lab.state.node(server).unwrap().aa.unwrap());
    let (done, said) = run(lab, server, Command::new("ip").args(["address", "del", &aa, "dev", "eth0"]));
    assert!(done, "{said}");
}

fn addresses(lab: &Lab, server: &str) -> String {
    run(lab, server, Command::new("ip").args(["-brief", "address", "show", "dev", "eth0"])).1
}

/// The text that a server whose AA is this one hears: the ToR's address in its rack is the server as far as it knows.
fn bound(event: &str, aa: &str, relay: &str) -> String {
    format!("{event} eth0 {aa}/8 from {relay} routers none for 3600 s")
}

#[test]
fn servers_get_their_aa_through_the_relay_and_nothing_is_flooded() {
    if !can_run() {
        return;
    }
    let name = lab_name("dh");
    let _gone = Gone(name.clone());
    let lab = up(&four_servers("dhcp: {server: dir1}\n"), &options(&name), &Quiet).unwrap();
    let client = Client::new();
    let uplinks = [("tor1", "agg1"), ("tor1", "agg2")];
    let fields = [
        "eth.dst",
        "ip.src",
        "ip.dst",
        "dhcp.option.dhcp",
        "dhcp.ip.relay",
        "dhcp.option.agent_information_option.agent_circuit_id",
    ];
    let seen = seen_during(&lab, &uplinks, "dhcp", &fields, || {
        for server in ["s1", "s2"] {
            forget_aa(&lab, server);
            let (leased, said) = run(&lab, server, &mut client.command(server, true));
            assert!(leased, "{server}: {said}");
        }
    });
    assert_eq!(client.heard("s1"), [bound("bound", "20.0.0.1", "10.64.0.1")]);
    assert_eq!(client.heard("s2"), [bound("bound", "20.0.0.2", "10.64.0.1")], "each port its own answers");
    assert!(addresses(&lab, "s1").contains("20.0.0.1/8"), "{}", addresses(&lab, "s1"));

    let messages: Vec<Vec<&str>> = seen.iter().map(|line| line.split('\t').collect()).collect();
    assert_eq!(messages.len(), 8, "discover, offer, request, acknowledge, for each: {seen:#?}");
    for message in &messages {
        assert!(u8::from_str_radix(&message[0][..2], 16).unwrap() & 1 == 0, "to one station: {message:?}");
        let to_server = message[2] == "10.64.1.4";
        assert!(to_server || (message[1], message[2]) == ("10.64.1.4", "10.64.0.1"), "{message:?}");
        assert_eq!(message[4], "10.64.0.1", "the ToR's address in its rack: {message:?}");
    }
    let mut kinds: Vec<&str> = messages.iter().map(|message| message[3]).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["1", "1", "2", "2", "3", "3", "5", "5"]);
}

#[test]
fn the_dhcp_servers_own_rack_is_served_and_leases_are_renewed_by_unicast() {
    if !can_run() {
        return;
    }
    let name = lab_name("dr");
    let _gone = Gone(name.clone());
    let lab = up(&four_servers("dhcp: {server: dir1}\n"), &options(&name), &Quiet).unwrap();
    let client = Client::new();
    forget_aa(&lab, "s4");
    let (leased, said) = run(&lab, "s4", &mut client.command("s4", true));
    assert!(leased, "{said}");
    assert_eq!(client.heard("s4"), [bound("bound", "20.0.0.4", "10.64.1.1")]);

    forget_aa(&lab, "s1");
    let log = fs::File::create(client.events("said")).unwrap();
    let running = start(&lab, "s1", client.command("s1", false).stdout(log.try_clone().unwrap()).stderr(log));
    let heard = |what: &str, events: usize| wait_for(what, || client.heard("s1").len() == events);
    let said = || fs::read_to_string(client.events("said")).unwrap();
    heard("a lease", 1);
    assert_eq!(client.heard("s1"), [bound("bound", "20.0.0.1", "10.64.0.1")], "{}", said());
    let renewal = ["ip.src", "ip.dst", "dhcp.option.dhcp", "dhcp.ip.client"];
    let seen = seen_during(&lab, &[("tor1", "s1")], "dhcp", &renewal, || {
        // A client that gets this renews at once, as it would after half of the time. It listens for the answer when it has
        // asked, and where a busy machine lets it do so too late, it begins anew with a discover.
        for events in 2..12 {
            let renews = Command::new("kill").args(["-USR1", &running.id().to_string()]).status().unwrap();
            assert!(renews.success());
            heard("a renewal", events);
            if client.heard("s1")[events - 1].starts_with("renew") {
                break;
            }
        }
    });
    let last = client.heard("s1").pop();
    assert_eq!(last, Some(bound("renew", "20.0.0.1", "10.64.0.1")), "{} {seen:#?}", said());
    assert_eq!(seen[0], "20.0.0.1\t10.64.0.1\t3\t20.0.0.1", "from the AA to the ToR, to nobody else: {seen:?}");
}

#[test]
fn what_the_server_handed_out_is_in_the_labs_directory() {
    if !can_run() {
        return;
    }
    let name = lab_name("dl");
    let _gone = Gone(name.clone());
    let lab = up(&four_servers("dhcp: {server: dir1}\n"), &options(&name), &Quiet).unwrap();
    let client = Client::new();
    let (leased, said) = run(&lab, "s3", &mut client.command("s3", true));
    assert!(leased, "{said}");
    let leases = Path::new("/run/weft/labs").join(&name).join("run/dhcp.leases");
    let text = fs::read_to_string(&leases).unwrap();
    let fields: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(&fields[1..4], ["02:01:00:00:00:0a", "20.0.0.3", "s3"], "{text}");
}
