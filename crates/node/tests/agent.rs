//! Agents on a real path: nothing is lost at first contact, at a restart or in a miss, and what cannot work is refused.

mod bed;
mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use bed::{AA, Bed};
use common::{PATIENCE, mapping, wait_until};
use weft_datapath::bpffs;
use weft_datapath::host::HostMaps;
use weft_node::agent::{self, AgentConfig, BroadcastConfig, RateLimitConfig, RateLimitedTraffic};
use weft_node::stop::Stop;
use weft_node::{DaemonKind, socket};
use weft_wire::directory::{Kind, Message, Path};

/// A bpffs of this test alone.
struct Pins(PathBuf);

impl Pins {
    fn new(bed: &Bed) -> Self {
        let path = bed.dir.path().join("bpf");
        bpffs::ensure_mounted(&path).expect("root may mount a bpffs");
        Self(path)
    }

    fn dir(&self, name: &str) -> Option<PathBuf> {
        Some(self.0.join(name))
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        bpffs::unmount(&self.0).expect("nothing holds it");
    }
}

#[test]
fn the_first_ping_is_not_lost() {
    let Some(bed) = Bed::new("first") else { return };
    let _agents = [bed.agent(0, bed.config(0)), bed.agent(1, bed.config(1))];
    let output = bed.ping("-c 10 -i 0.05 -W 30");
    assert!(output.contains("10 packets transmitted, 10 received"), "{output}");
    for k in 0..2 {
        let status = bed.status(k);
        assert_eq!(status.mappings.len(), 1, "{status:?}");
        assert_eq!(status.mappings[0].aa, AA[1 - k]);
        assert!(status.events["released"] >= 1, "{:?}", status.events);
        assert_eq!(status.events["released"], status.events["miss"], "{status:?}");
        assert_eq!(status.dropped.values().chain(status.io.values()).sum::<u64>(), 0, "{status:?}");
        assert_eq!(status.datapath["no_mapping"], 0);
    }
}

#[test]
fn a_reload_takes_effect_without_a_lost_frame_and_a_bad_one_changes_nothing() {
    let Some(bed) = Bed::new("reload") else { return };
    let (file, socket) = (bed.dir.path().join("agent.toml"), bed.socket(0));
    let write = |config: &AgentConfig| std::fs::write(&file, weft_node::settings_text(config)).unwrap();
    let reload = || socket::reload(DaemonKind::Agent, &socket);
    write(&bed.config(0));
    let path = file.clone();
    let daemon = bed.agent_of(0, move || weft_node::read_settings(&path));
    let _other = bed.agent(1, bed.config(1));
    assert!(bed.ping("-c 1 -W 30").contains("1 received"));
    let before = bed.status(0).datapath["encapsulated"];

    let wide = RateLimitConfig { bits_per_s: 1 << 40, burst_bytes: 65_536, traffic: RateLimitedTraffic::All };
    let mut ping = bed.servers[0].command("ping");
    let ping = ping.args(["-c", "100", "-i", "0.02", "-W", "30", &AA[1].to_string()]).stdout(Stdio::piped()).spawn();
    let ping = ping.expect("ping is installed");
    let limited = AgentConfig { rate_limit: Some(wide.clone()), rack_direct: true, ..bed.config(0) };
    for config in [&limited, &bed.config(0), &limited] {
        write(config);
        assert_eq!(reload().unwrap().changed, ["rack_direct", "rate_limit"]);
    }
    let output = String::from_utf8(ping.wait_with_output().unwrap().stdout).unwrap();
    assert!(output.contains("100 packets transmitted, 100 received"), "{output}");
    assert!(bed.status(0).datapath["encapsulated"] >= before + 100, "counters go on");

    // Settings that cannot work, and such as cannot change, leave those that are in force.
    std::fs::write(&file, "interface = \"eth0\"\nrate_limit = 5\n").unwrap();
    let error = reload().unwrap_err().to_string();
    assert!(error.contains("agent.toml") && error.contains("line 2") && !error.contains('\n'), "{error}");
    for (config, says) in [
        (AgentConfig { underlay_mtu: 1500, ..limited.clone() }, "underlay_mtu: cannot change at run time"),
        (AgentConfig { directory_servers: Vec::new(), ..limited.clone() }, "directory_servers: is empty"),
        (AgentConfig { key_file: Some("/nonexistent".into()), ..limited.clone() }, "weft directory key"),
        (
            AgentConfig { rate_limit: Some(RateLimitConfig { burst_bytes: 1, ..wide }), ..limited.clone() },
            "rate_limit: a burst of 1 bytes",
        ),
    ] {
        write(&config);
        let error = reload().unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error} does not say {says}");
    }
    assert_eq!(socket::config(DaemonKind::Agent, &socket).unwrap(), weft_node::settings_text(&limited));
    assert!(bed.ping("-c 1 -W 30").contains("1 received"));

    // A limit that lets hardly anything out, by a hangup; and servers where nobody is.
    let narrow = RateLimitConfig { bits_per_s: 1000, burst_bytes: 2000, traffic: RateLimitedTraffic::All };
    let nobody = vec![SocketAddrV4::new(*bed.directory.listen.ip(), 9)];
    write(&AgentConfig { rate_limit: Some(narrow), directory_servers: nobody, ..bed.config(0) });
    daemon.hang_up();
    wait_until("the limit is in force", || {
        bed.ping("-c 20 -i 0.01 -W 1 -s 1000");
        bed.status(0).datapath["rate_limited"] > 0
    });
    let heard = bed.status(0).events["heard"];
    let ask = |aa: &str| drop(bed.servers[0].command("ping").args(["-c", "1", "-W", "1", aa]).output());
    ask("20.0.0.50");
    assert_eq!(bed.status(0).events["heard"], heard, "who was asked before is not asked any more");
    write(&bed.config(0));
    reload().unwrap();
    ask("20.0.0.51");
    assert!(bed.status(0).events["heard"] > heard);
    assert!(bed.ping("-c 3 -i 0.05 -W 30").contains("3 received"));

    let stopped = socket::ask::<(), (), ()>(DaemonKind::Agent, &socket, &socket::Request::Stop).unwrap();
    assert_eq!(stopped, socket::Answer::Done);
    wait_until("the agent ends", || daemon.ended());
    daemon.finish().unwrap();
    let links = bed.servers[0].command("ip").args(["-br", "link"]).output().unwrap();
    assert!(!String::from_utf8(links.stdout).unwrap().contains("weft-up"), "nothing is left behind");
}

#[test]
fn a_late_registration_is_found_at_the_next_request() {
    let Some(mut bed) = Bed::new("late") else { return };
    bed.admin.del(AA[1]).unwrap();
    let _agents = [bed.agent(0, bed.config(0)), bed.agent(1, bed.config(1))];
    let output = bed.ping("-c 1 -W 1");
    assert!(output.contains("0 received"), "{output}");
    assert!(bed.status(0).dropped["unknown"] >= 1, "{:?}", bed.status(0));
    // Goes on until something is answered. What nobody has is remembered for a second; the rest is for a busy machine.
    let ping = bed.servers[0]
        .command("ping")
        .args(["-c", "1", "-i", "0.1", "-w", "30", &AA[1].to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(200));
    bed.admin.set(mapping(AA[1], 2)).unwrap();
    let output = String::from_utf8(ping.wait_with_output().unwrap().stdout).unwrap();
    assert!(!output.contains(" 0 received"), "{output}");
    assert!(bed.status(0).mappings.iter().any(|mapping| mapping.aa == AA[1]), "{:?}", bed.status(0));
}

#[test]
fn a_restart_under_a_running_ping_loses_nothing() {
    let Some(bed) = Bed::new("restart") else { return };
    let pins = Pins::new(&bed);
    let config = |k: usize| AgentConfig { pin_dir: pins.dir(&format!("server{k}")), ..bed.config(k) };
    let mut agents = [Some(bed.agent(0, config(0))), Some(bed.agent(1, config(1)))];
    let ping = bed.servers[0]
        .command("ping")
        .args(["-c", "300", "-i", "0.01", "-W", "30", &AA[1].to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for k in 0..2 {
        wait_until("it knows the other", || !bed.status(k).mappings.is_empty());
    }
    for (k, slot) in agents.iter_mut().enumerate() {
        let agent = slot.take().expect("it runs");
        agent.finish().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        *slot = Some(bed.agent(k, config(k)));
        assert_eq!(bed.status(k).events["adopted"], 1, "the mapping was taken over");
    }
    let output = String::from_utf8(ping.wait_with_output().unwrap().stdout).unwrap();
    assert!(output.contains("300 packets transmitted, 300 received, 0% packet loss"), "{output}");
    wait_until("the mapping is confirmed", || bed.status(0).events["confirmed"] == 1);
    assert_eq!(bed.status(0).events["removed"] + bed.status(0).events["replaced"], 0);
}

/// Sends `total` bytes from A to B over TCP while `disturb` runs again and again; returns when all arrived.
fn transfer(bed: &Bed, total: usize, mut disturb: impl FnMut()) {
    let listener = bed.servers[1].within(|| TcpListener::bind((AA[1], 5001))).unwrap();
    let sender = bed.servers[0].0.clone();
    let sender = std::thread::spawn(move || {
        bed::Namespace::enter(&sender);
        let mut stream = TcpStream::connect((AA[1], 5001)).unwrap();
        let chunk = vec![7; 1 << 20];
        for _ in 0..total >> 20 {
            stream.write_all(&chunk).unwrap();
        }
    });
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut received, mut buffer) = (0, vec![0; 1 << 20]);
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return received,
                count => received += count,
            }
        }
    });
    while !receiver.is_finished() {
        disturb();
        std::thread::sleep(Duration::from_millis(10));
    }
    sender.join().unwrap();
    assert_eq!(receiver.join().unwrap(), total);
}

#[test]
fn super_frames_survive_the_detour_over_the_agent() {
    let Some(bed) = Bed::new("detour") else { return };
    let pins = Pins::new(&bed);
    let config = |k: usize| AgentConfig { pin_dir: pins.dir(&format!("server{k}")), ..bed.config(k) };
    let _agents = [bed.agent(0, config(0)), bed.agent(1, config(1))];
    let maps = HostMaps::open_pinned(pins.0.join("server0")).unwrap();
    let mut losses = 0;
    transfer(&bed, 256 << 20, || losses += u64::from(maps.remove(AA[1]).unwrap()));
    let status = bed.status(0);
    assert!(losses > 5 && status.events["miss"] > losses, "{losses} {status:?}");
    assert_eq!(status.events["released"], status.events["miss"]);
    assert_eq!(status.dropped.values().sum::<u64>(), 0, "{status:?}");
    // This test may take the mapping away again just before the agent sends the frame; nothing else may be lost.
    let robbed = status.datapath["no_mapping"];
    assert!(robbed <= losses, "{losses} {status:?}");
    assert_eq!(status.io.values().sum::<u64>(), robbed, "{status:?}");
    assert_eq!(status.io["not_released"], robbed, "{status:?}");
    assert_eq!(status.datapath["malformed"], 0, "{:?}", status.datapath);
    drop(maps);
}

#[test]
fn junk_at_the_agents_port_changes_nothing_and_is_counted() {
    let Some(bed) = Bed::new("junk") else { return };
    let _agents = [bed.agent(0, bed.config(0)), bed.agent(1, bed.config(1))];
    assert!(bed.ping("-c 1 -W 30").contains("1 received"));
    let before = bed.status(0);
    // From the directory server's own host, but not from its port.
    let socket = bed.tors[0].within(|| UdpSocket::bind("10.64.0.1:0")).unwrap();
    let question = Message { kind: Kind::Ping, service: 0, request_id: 1, revision: 0, key_id: 0, entries: Vec::new() };
    let source = SocketAddrV4::new([10, 64, 0, 1].into(), socket.local_addr().unwrap().port());
    let path = Path { source, destination: SocketAddrV4::new([10, 64, 0, 2].into(), 5301) };
    let tagged = question.emit(&common::KEY.parse().unwrap(), &path);
    for length in 0..500_usize {
        let datagram = if length % 2 == 0 { vec![length as u8; length] } else { tagged.clone() };
        socket.send_to(&datagram, path.destination).unwrap();
        // No more at a time than its socket has room for.
        if length % 50 == 49 {
            let sent = length as u64 + 1;
            wait_until("all junk is counted", || bed.status(0).ignored.values().sum::<u64>() == sent);
        }
    }
    let after = bed.status(0);
    assert_eq!((after.ignored["malformed"], after.ignored["wrong_source"]), (250, 250));
    assert_eq!((&after.mappings, &after.cache), (&before.mappings, &before.cache));
    assert!(bed.ping("-c 3 -i 0.1 -W 30").contains("3 received"));
}

#[test]
fn packets_that_do_not_fit_are_refused_at_start_or_clamped() {
    let Some(bed) = Bed::new("mtu") else { return };
    let tight = AgentConfig { underlay_mtu: 1500, ..bed.config(0) };
    let error =
        bed.servers[0].within(|| agent::run(&|| Ok(tight.clone()), &Stop::manual().unwrap())).unwrap_err().to_string();
    assert!(error.contains("`eth0` has MTU 1500") && error.contains("ip link set eth0 mtu 1460"), "{error}");
    assert!(!error.contains('\n'), "{error}");
    let clamped = AgentConfig { underlay_mtu: 1500, clamp_mtu: true, ..bed.config(0) };
    let _agents = [bed.agent(0, clamped), bed.agent(1, bed.config(1))];
    let output = bed.ping("-c 2 -i 0.1 -M do -s 1432 -W 30");
    assert!(output.contains("2 received"), "1460 bytes fit: {output}");
    let output = bed.ping("-c 1 -M do -s 1433 -W 1");
    assert!(output.contains("message too long, mtu=1460"), "{output}");
}

#[test]
fn a_wide_interface_keeps_the_aa_route_that_fits() {
    let Some(bed) = Bed::new("wide") else { return };
    let server = &bed.servers[0];
    server.ip("link set eth0 mtu 1600");
    let route = format!("20.0.0.0/8 dev eth0 proto kernel scope link src {}", AA[0]);
    server.ip(&format!("route replace {route} mtu 1500 initcwnd 8"));
    let _agents = [bed.agent(0, bed.config(0)), bed.agent(1, bed.config(1))];
    let shown = server.command("ip").args(["route", "show", "20.0.0.0/8"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&shown.stdout).trim(), format!("{route} mtu 1500 initcwnd 8"));
    let output = bed.ping("-c 2 -i 0.1 -M do -s 1472 -W 2");
    assert!(output.contains("2 received"), "{output}");
    server.ip(&format!("route replace {route} mtu 1561"));
    let beside = AgentConfig { socket: bed.dir.path().join("beside.sock"), ..bed.config(0) };
    let error = server.within(|| agent::run(&|| Ok(beside.clone()), &Stop::manual().unwrap())).unwrap_err().to_string();
    assert!(error.contains("`eth0` has MTU 1600"), "{error}");
}

#[test]
fn packets_from_other_addresses_than_the_hosts_do_not_leave() {
    let Some(bed) = Bed::new("own") else { return };
    let public = Ipv4Addr::new(198, 51, 100, 1);
    bed.servers[0].ip(&format!("addr add {public}/32 dev lo"));
    let say = || {
        bed.servers[0].within(|| {
            let socket = UdpSocket::bind((public, 0)).unwrap();
            // What the program drops may be an error to the sender.
            (0..2).for_each(|_| drop(socket.send_to(b"who am I?", (AA[1], 9))));
        });
    };
    let counted = || {
        let datapath = bed.status(0).datapath;
        (datapath["foreign_source"], datapath["encapsulated"])
    };
    {
        let _agent = bed.agent(0, bed.config(0));
        say();
        wait_until("both are dropped", || counted() == (2, 0));
    }
    let _agent = bed.agent(0, AgentConfig { public_la: Some(public), ..bed.config(0) });
    say();
    wait_until("both leave", || counted() == (0, 2));
}

#[test]
fn a_host_that_sends_too_long_packets_is_told_by_icmp() {
    let Some(bed) = Bed::new("icmp") else { return };
    let _agents = [bed.agent(0, bed.config(0)), bed.agent(1, bed.config(1))];
    for node in [&bed.servers[0], &bed.servers[1]] {
        node.ip("link set eth0 mtu 9000");
    }
    let output = bed.ping("-c 3 -i 0.2 -M do -s 3000 -W 1");
    assert!(output.contains("mtu = 1560") || output.contains("mtu=1560"), "{output}");
    // Of these the first answer tells B in the same way.
    bed.ping("-c 1 -s 3000 -W 1");
    let output = bed.ping("-c 3 -i 0.1 -s 3000 -W 30");
    assert!(output.contains("3 received"), "without DF the hosts cut them themselves: {output}");
    assert!(bed.status(0).dropped["too_big"] >= 1);
    assert_eq!(bed.status(0).io["not_told_too_big"], 0);
}

fn limit(bits_per_s: u64, burst_bytes: u32) -> RateLimitConfig {
    RateLimitConfig { bits_per_s, burst_bytes, traffic: RateLimitedTraffic::NonTcp }
}

/// At a thousand bits a second the bucket gains nothing worth a packet while the test runs.
#[test]
fn what_is_beyond_the_rate_limit_is_dropped_and_counted_and_tcp_is_spared() {
    let Some(bed) = Bed::new("limit") else { return };
    let limited = AgentConfig { rate_limit: Some(limit(1000, 3000)), ..bed.config(0) };
    let _agents = [bed.agent(0, limited), bed.agent(1, bed.config(1))];
    let output = bed.ping("-c 5 -i 0.05 -W 1 -s 1400");
    assert!(output.contains("5 packets transmitted, 2 received"), "{output}");
    let limited = || bed.status(0).datapath["rate_limited"];
    // ping tries again what it is told was dropped.
    let dropped = limited();
    assert!(dropped >= 3, "{dropped}");
    transfer(&bed, 16 << 20, || ());
    assert_eq!((limited(), bed.status(1).datapath["rate_limited"]), (dropped, 0));
}

#[test]
fn settings_that_cannot_work_are_refused_in_one_line_with_the_remedy() {
    let Some(bed) = Bed::new("bad") else { return };
    let good = || bed.config(0);
    let with = |change: &dyn Fn(&mut BroadcastConfig)| {
        let mut broadcast = BroadcastConfig::example();
        change(&mut broadcast);
        AgentConfig { broadcast: Some(broadcast), ..good() }
    };
    let members = |members: &[&str]| {
        with(&|broadcast| broadcast.members = members.iter().map(|member| member.parse().unwrap()).collect())
    };
    for (config, says) in [
        (AgentConfig { aa_block: "20.0.0.0".into(), ..good() }, "aa_block: "),
        (AgentConfig { aa: [21, 0, 0, 1].into(), ..good() }, "outside the AA block"),
        (AgentConfig { aa_block: "100.0.0.0/8".into(), aa: [100, 1, 0, 1].into(), ..good() }, "flow hashes"),
        (AgentConfig { la: [20, 0, 0, 9].into(), ..good() }, "la: 20.0.0.9 is inside the AA block"),
        (AgentConfig { public_la: Some([20, 0, 0, 9].into()), ..good() }, "public_la: 20.0.0.9 is inside the AA block"),
        (AgentConfig { own_tor_la: [20, 0, 0, 9].into(), ..good() }, "own_tor_la: 20.0.0.9 is inside the AA block"),
        (
            AgentConfig { directory_servers: vec!["20.0.0.9:1".parse().unwrap()], ..good() },
            "directory_servers: 20.0.0.9 is inside the AA block",
        ),
        (AgentConfig { la: [10, 64, 0, 77].into(), ..good() }, "is not an address of this host"),
        (AgentConfig { gateway_mac: "02:56".into(), ..good() }, "gateway_mac: not a MAC address"),
        (AgentConfig { interface: "eth7".into(), ..good() }, "`eth7` does not exist"),
        (AgentConfig { interface: "an-interface-with-a-long-name".into(), ..good() }, "is no interface name"),
        (AgentConfig { redirect_interface: "eth0".into(), ..good() }, "exists without `weft-up1`"),
        (AgentConfig { directory_servers: Vec::new(), ..good() }, "directory_servers: is empty"),
        (AgentConfig { key_file: Some("/nonexistent".into()), ..good() }, "weft directory key"),
        (AgentConfig { underlay_mtu: 40, ..good() }, "underlay_mtu: "),
        (AgentConfig { map_entries: 0, ..good() }, "map_entries: "),
        (AgentConfig { rate_limit: Some(limit(0, 3000)), ..good() }, "rate_limit: 0 bit/s"),
        (AgentConfig { rate_limit: Some(limit(1000, 1573)), ..good() }, "rate_limit: a burst of 1573 bytes"),
        (
            with(&|broadcast| broadcast.group = Some([224, 0, 0, 251].into())),
            "224.0.0.251 is none that routers forward",
        ),
        (with(&|broadcast| broadcast.group = Some(bed.config(0).la)), "is none that routers forward"),
        (with(&|broadcast| broadcast.la_block = "10.99.0.0/16".into()), "does not hold the host's LA"),
        (with(&|broadcast| broadcast.la_block = "0.0.0.0/0".into()), "overlaps the AA block"),
        (with(&|broadcast| broadcast.la_block = "all".into()), "broadcast: la_block: `all`"),
        (members(&["20.0.0.1"]), "broadcast: member 20.0.0.1 is outside"),
        (members(&["10.64.9.9", "10.64.9.9"]), "broadcast: member 10.64.9.9 is there twice"),
        (with(&|broadcast| broadcast.bits_per_s = 0), "broadcast: 0 bit/s"),
        (with(&|broadcast| broadcast.burst_bytes = 1573), "broadcast: a burst of 1573 bytes"),
        (AgentConfig { mapping_lifetime_s: 0, ..good() }, "mapping_lifetime_s: "),
        (AgentConfig { pin_dir: Some(bed.dir.path().join("pins")), ..good() }, "bpffs"),
    ] {
        let outcome = bed.servers[0].within(|| {
            let stop = Stop::manual().unwrap();
            stop.request();
            agent::run(&|| Ok(config.clone()), &stop)
        });
        let error = outcome.expect_err(says).to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error} does not say {says}");
    }
    let links = bed.servers[0].command("ip").args(["-br", "link"]).output().unwrap();
    let links = String::from_utf8(links.stdout).unwrap();
    assert!(!links.contains("weft-up"), "nothing is left behind: {links}");
}
