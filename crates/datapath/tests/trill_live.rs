//! Six RBridges in namespaces of their own: ARP, ping, UDP and TCP between hosts over four paths, broadcasts that arrive
//! once, a frame against the reverse path, restarts without loss, in the driver and in the stack.

mod common;

use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::campus::{ADDRESSES, Campus, HOST, SECOND_HOST, VLAN, mac, nickname, tables};
use common::tap::Tap;
use common::traffic::{Icmp, transfer};
use common::{available, ethernet};
use weft_datapath::probe::{self, XdpFeatures};
use weft_datapath::trill::{Elision, Place, RBridgeDatapath, RBridgeMaps, Tapped, XdpMode};
use weft_datapath::{bpffs, copies};

/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);

fn campus(test: &str, mtu: u32) -> Option<Campus> {
    if !weft_needs::root() {
        return None;
    }
    Some(Campus::new(test, mtu))
}

fn address(host: usize) -> Ipv4Addr {
    ADDRESSES[host].parse().unwrap()
}

/// Of a port, or of all ports together.
fn count(datapath: &RBridgeDatapath, port: Option<u8>, name: &str) -> u64 {
    let counters = datapath.maps().counters().unwrap();
    let ports = counters.iter().filter(|counters| port.is_none_or(|port| counters.port == port));
    ports.flat_map(|port| &port.counts).filter(|(other, _)| *other == name).map(|(_, count)| count).sum()
}

/// What became of all frames, for a failure's message.
fn told(rbridges: &[RBridgeDatapath]) -> String {
    let of_one = |datapath: &RBridgeDatapath| {
        let ports = datapath.maps().counters().unwrap().into_iter();
        let counts = |counts: Vec<(&'static str, u64)>| counts.into_iter().filter(|(_, count)| *count > 0).collect();
        let told = ports.map(|port| (port.port, counts(port.counts)));
        told.filter(|(_, counts): &(u8, Vec<_>)| !counts.is_empty()).collect::<Vec<_>>()
    };
    rbridges.iter().map(|rbridge| format!("{:?}\n", of_one(rbridge))).collect()
}

fn broadcast(campus: &Campus, host: usize, payload: &[u8]) {
    campus.hosts[host].enter(|| {
        let socket = UdpSocket::bind((address(host), 4000)).unwrap();
        socket.set_broadcast(true).unwrap();
        socket.send_to(payload, ("10.0.10.255", 4001)).unwrap();
    });
}

/// Whether each host got as many frames as it should, however long that takes, and no other in a while after that.
fn received<const N: usize>(taps: &[Tap; N], expected: [usize; N]) {
    let (start, mut got) = (Instant::now(), [0; N]);
    let mut look = || {
        got.iter_mut().zip(taps).for_each(|(got, tap)| *got += std::iter::from_fn(|| tap.poll()).count());
        got
    };
    while look().iter().zip(expected).any(|(got, expected)| *got < expected) && start.elapsed() < WAIT {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(look(), expected);
}

/// Waits until a counter of a port is what it should be.
fn wait_for(datapath: &RBridgeDatapath, port: u8, name: &str, expected: u64) {
    let start = Instant::now();
    while count(datapath, Some(port), name) < expected && start.elapsed() < WAIT {
        std::thread::yield_now();
    }
    assert_eq!(count(datapath, Some(port), name), expected, "{name} of port {port}");
}

fn tap(campus: &Campus, host: usize) -> Tap {
    Tap::open(&campus.hosts[host], "eth0", WAIT)
}

fn hosts_reach_each_other(test: &str, mode: XdpMode, elision: Elision) {
    hosts_reach_each_other_by(test, mode, elision, &[]);
}

fn hosts_reach_each_other_by(test: &str, mode: XdpMode, elision: Elision, spread: &[u32]) {
    if mode == XdpMode::Generic && available(copies::are_own()) == Some(false) {
        return weft_needs::skip(
            "this kernel's copies of a broadcast share their bytes in the stack, which the daemon refuses",
        );
    }
    let Some(mut campus) = campus(test, 1500) else { return };
    (campus.elision, campus.spread) = (elision, spread.to_vec());
    let Some(rbridges) = campus.attach(mode) else { return };
    // A veth may keep what a CPU's queue handed it until the next frame comes (Linux 6.18, one run in six: every counter says
    // that the answer has left): so who gets no answer asks again.
    let a = Icmp::open(&campus.hosts[0], WAIT / 10);
    for (sequence, host) in (1..).zip([1, 2, 1]) {
        let answer = (0..10).find_map(|_| a.ping(address(host), 1, sequence, 1000));
        let answer = answer.unwrap_or_else(|| panic!("no answer from {host} to {sequence}: {}", told(&rbridges)));
        assert_eq!(answer.ttl, 64, "TRILL is no router");
    }
    // ARP taught S2 where a is, the answer taught S1 where b is.
    let stations = rbridges[1].maps().stations().unwrap();
    assert!(stations.iter().any(|station| station.place == Place::RBridge(nickname(1)) && station.vlan == VLAN));
    let before: Vec<u64> = (2..6).map(|n| count(&rbridges[n], None, "transit")).collect();
    // 64 flows take all four paths.
    let (sender, receiver) = (0, 1);
    let to = campus.hosts[receiver].enter(|| UdpSocket::bind((address(receiver), 4001)).unwrap());
    to.set_read_timeout(Some(WAIT)).unwrap();
    // Old kernels charge a whole page for each frame that came by XDP.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&to, 1 << 20).unwrap();
    campus.hosts[sender].enter(|| {
        for flow in 0..64 {
            let socket = UdpSocket::bind((address(sender), 5000 + flow)).unwrap();
            socket.send_to(&[7; 700], (address(receiver), 4001)).unwrap();
        }
    });
    for flow in 0..64 {
        assert_eq!(to.recv(&mut [0; 1000]).ok(), Some(700), "datagram {flow}");
    }
    let taken: Vec<u64> = (2..6).zip(before).map(|(n, before)| count(&rbridges[n], None, "transit") - before).collect();
    assert_eq!(taken.iter().sum::<u64>(), 64);
    assert!(taken.iter().all(|flows| *flows > 4), "{taken:?}");

    // A broadcast: once at b and c, not back at a.
    let taps = [0, 1, 2].map(|host| tap(&campus, host));
    let before: Vec<u64> = rbridges.iter().map(|rbridge| count(rbridge, None, "tree_flood")).collect();
    broadcast(&campus, 0, &[9; 100]);
    received(&taps, [0, 1, 1]);
    let along: Vec<u64> =
        rbridges.iter().zip(before).map(|(rbridge, before)| count(rbridge, None, "tree_flood") - before).collect();
    // S3 gets it as well, and nobody is behind it; S4 and S5 are pruned.
    assert_eq!(along, [0, 1, 0, 0, 0, 1]);
    assert!(count(&rbridges[0], Some(4), "copy_pruned") > 0 && count(&rbridges[0], Some(5), "copy_pruned") > 0);
    assert!(count(&rbridges[2], Some(1), "no_receiver") > 0);
    assert_eq!(count(&rbridges[0], Some(4), "copy_sent"), 0);
}

#[test]
fn hosts_reach_each_other_in_the_driver() {
    hosts_reach_each_other("ttdn", XdpMode::Native, Elision::Off);
}

#[test]
fn hosts_reach_each_other_in_the_stack() {
    hosts_reach_each_other("ttdg", XdpMode::Generic, Elision::Off);
}

#[test]
fn hosts_reach_each_other_without_outer_headers() {
    hosts_reach_each_other("ttde", XdpMode::Native, Elision::Agreed);
    hosts_reach_each_other("ttdx", XdpMode::Generic, Elision::Agreed);
}

/// CPUs of this machine, as many as clusters at most.
fn cpus() -> Vec<u32> {
    (0..std::thread::available_parallelism().map_or(1, |count| count.get() as u32).min(16)).collect()
}

#[test]
fn hosts_reach_each_other_with_work_spread_over_all_cpus() {
    hosts_reach_each_other_by("ttdp", XdpMode::Native, Elision::Off, &cpus());
    hosts_reach_each_other_by("ttdq", XdpMode::Native, Elision::Agreed, &cpus());
}

/// S3 sends frames for several RBridges on: those of one nickname on one CPU, those of all on all.
#[test]
fn each_cpu_serves_its_share_of_the_nicknames() {
    let Some(mut campus) = campus("ttdm", 1500) else { return };
    campus.spread = cpus();
    let Some(mut rbridges) = campus.attach(XdpMode::Native) else { return };
    let hop = weft_datapath::trill::Hop { port: 2, mac: mac(2, 3) };
    let s3 = &mut rbridges[2];
    s3.change(|fib| fib.routes.extend((0x200..0x210).map(|beyond| (beyond, vec![hop])))).unwrap();
    let sender = Tap::open(campus.switch(1), &common::campus::interface(3), WAIT);
    let inner = [&[2, 8, 8, 8, 8, 8][..], &[2, 7, 7, 7, 7, 7], &[0x81, 0, 0, VLAN as u8, 8, 0], &[0x45; 46]].concat();
    const EACH: u64 = 20;
    for beyond in 0x200..0x210_u16 {
        let before = s3.maps().by_cpu("transit").unwrap();
        let header = [[0, 9], beyond.to_be_bytes(), nickname(1).to_be_bytes()].concat();
        let frame = ethernet(mac(3, 1).0, mac(1, 3).0, 0x22f3, &[header, inner.clone()].concat());
        (0..EACH).for_each(|_| sender.send(&frame));
        let worked = || -> Vec<u64> {
            s3.maps().by_cpu("transit").unwrap().iter().zip(&before).map(|(after, before)| after - before).collect()
        };
        let deadline = Instant::now() + WAIT;
        while worked().iter().sum::<u64>() < EACH && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let cpu = usize::from(beyond) % 16 % campus.spread.len();
        assert_eq!((worked()[cpu], worked().iter().sum::<u64>()), (EACH, EACH), "{beyond:#x}: {:?}", worked());
    }
}

/// A ping's frame and a broadcast's copy, as they leave.
#[test]
fn frames_without_outer_headers_are_14_bytes_shorter_on_the_wire() {
    let bytes = |test: &str, elision: Elision| {
        let mut campus = campus(test, 1500)?;
        campus.elision = elision;
        let rbridges = campus.attach(XdpMode::Native)?;
        let tap = rbridges[0].tap(1).unwrap();
        let a = Icmp::open(&campus.hosts[0], WAIT);
        assert!(a.ping(address(1), 64, 1, 56).is_some());
        let of = |outcome: &str, frames: &[Tapped]| {
            let frame = frames.iter().find(|frame| frame.outcome == outcome);
            frame.unwrap_or_else(|| panic!("no {outcome}")).bytes.clone()
        };
        let tapped = tap.take().unwrap();
        Some(["ingress", "copy_sent"].map(|outcome| of(outcome, &tapped)))
    };
    let Some(full) = bytes("ttdf", Elision::Off) else { return };
    let Some(short) = bytes("ttdh", Elision::Agreed) else { return };
    for (full, short) in full.iter().zip(&short) {
        assert_eq!(full.len(), short.len() + 14);
        assert_eq!(full[12..14], [0x22, 0xf3]);
        assert_eq!(short[12..14], [0x88, 0xb5]);
        let view = weft_wire::trill::elided::View::new(short).expect("the wire's codec reads it");
        assert_eq!(view.header(), weft_wire::trill::frame::View::new(full).unwrap().header());
    }
    assert_eq!(
        (&full[1][20..26], &short[1][..6]),
        (&[0xff; 6][..], &[0xff; 6][..]),
        "the inner destination comes first"
    );
    assert_eq!(short[0].len(), 14 + 84 + 10, "a ping of 84 bytes with its frame header and ten bytes of TRILL");
}

#[test]
fn long_frames_pass_and_are_not_copied() {
    let Some(campus) = campus("ttdl", 9000) else { return };
    let features = campus.switch(1).enter(|| probe::xdp_features(&common::campus::interface(3)));
    if features.is_ok_and(|features| !features.has(XdpFeatures::RX_SG)) {
        return weft_needs::skip("this kernel redirects no frames in several buffers, which the daemon says");
    }
    let Some(rbridges) = campus.attach(XdpMode::Native) else { return };
    let a = Icmp::open(&campus.hosts[0], WAIT);
    for (sequence, payload) in (1..).zip([56, 3300, 4000, 8972]) {
        let answer = a.ping(address(1), 64, sequence, payload);
        assert_eq!(answer.unwrap_or_else(|| panic!("{payload} bytes: no answer")).icmp.len(), payload + 8);
    }
    let taps = [1, 2].map(|host| tap(&campus, host));
    broadcast(&campus, 0, &[9; 3000]);
    broadcast(&campus, 0, &[9; 5000]);
    // The short one.
    received(&taps, [1, 1]);
    wait_for(&rbridges[0], HOST, "too_long_to_copy", 1);
    const BYTES: usize = 64 << 20;
    let (total, time) = transfer(&campus.hosts[0], &campus.hosts[1], address(1), BYTES);
    assert_eq!(total, BYTES);
    eprintln!("{:.1} Gbit/s", BYTES as f64 * 8e-9 / time.as_secs_f64());
}

/// A frame of S1 on its tree, sent by somebody who is not where S1 is.
#[test]
fn what_comes_from_the_wrong_side_is_dropped() {
    let Some(campus) = campus("ttdr", 1500) else { return };
    let Some(rbridges) = campus.attach(XdpMode::Native) else { return };
    let b = tap(&campus, 1);
    let inner = [&[0xff; 6][..], &[0x02, 7, 7, 7, 7, 7], &[0x81, 0, 0, VLAN as u8, 8, 0], &[0x45; 46]].concat();
    let forged = |from: usize, to: usize, ingress: u16| {
        let header = [[0x08, 5], nickname(6).to_be_bytes(), ingress.to_be_bytes()].concat();
        let frame =
            ethernet([0x01, 0x80, 0xc2, 0, 0, 0x40], mac(from, to).0, 0x22f3, &[header, inner.clone()].concat());
        Tap::open(campus.switch(from), &common::campus::interface(to), WAIT).send(&frame);
    };
    forged(3, 2, nickname(1)); // S3 is no neighbour of S2 on the tree
    forged(6, 1, nickname(3)); // S3's frames come from S3
    forged(6, 1, nickname(1));
    forged(6, 1, nickname(2)); // as it should be
    wait_for(&rbridges[1], 3, "not_on_tree", 1);
    wait_for(&rbridges[0], 6, "rpf", 1);
    wait_for(&rbridges[0], 6, "own_ingress", 1);
    wait_for(&rbridges[0], 6, "tree_flood", 1);
    wait_for(&rbridges[0], SECOND_HOST, "copy_delivered", 1);
    received(&[b], [0]);
}

#[test]
fn tshark_reads_what_the_tap_saw() {
    let Some(campus) = campus("ttdt", 1500) else { return };
    let Some(rbridges) = campus.attach(XdpMode::Native) else { return };
    let tap = rbridges[0].tap(1).unwrap();
    let a = Icmp::open(&campus.hosts[0], WAIT);
    assert!(a.ping(address(1), 64, 1, 56).is_some());
    let tapped = tap.take().unwrap();
    drop(tap);
    let file = std::env::temp_dir().join(format!("weft-ttd-{}.pcapng", std::process::id()));
    let mut writer = weft_wire::pcapng::Writer::new(std::fs::File::create(&file).unwrap(), "s1").unwrap();
    for frame in &tapped {
        writer.write(Duration::from_nanos(frame.time_ns), frame.length, &frame.bytes).unwrap();
    }
    writer.flush().unwrap();
    let fields =
        ["eth.type", "trill.egress_nick", "trill.ingress_nick", "trill.multi_dst", "vlan.id", "frame.protocols"];
    let mut command = Command::new("tshark");
    command.args(["-r", file.to_str().unwrap(), "-Y", "trill", "-T", "fields", "-E", "occurrence=f"]);
    let is_there = weft_needs::program("tshark");
    let output = is_there.then(|| command.args(fields.iter().flat_map(|field| ["-e", field])).output().unwrap());
    let _removed = std::fs::remove_file(&file);
    let Some(output) = output else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = format!("0x22f3\t{}\t{}\t0", nickname(2), nickname(1));
    let unicast = text.lines().find(|line| line.starts_with(&expected) && line.contains(":icmp"));
    assert!(unicast.is_some_and(|line| line.split('\t').nth(4) == Some("10")), "{text}");
    let many = text
        .lines()
        .find(|line| line.contains(":arp") && line.contains(&format!("\t{}\t{}\t1", nickname(6), nickname(1))));
    assert!(many.is_some(), "{text}");
    assert!(!text.contains("malformed"), "{text}");
    assert!(tapped.iter().any(|frame| frame.outcome == "copy_sent" && frame.port == 6));
}

#[test]
fn a_restarted_daemon_takes_over_without_loss() {
    let Some(campus) = campus("ttds", 1500) else { return };
    let Some(mut rbridges) = campus.attach(XdpMode::Native) else { return };
    let mount: PathBuf = std::env::temp_dir().join(format!("weft-ttd-{}-restart", std::process::id()));
    if available(bpffs::ensure_mounted(&mount)).is_none() {
        return;
    }
    let dir = mount.join("s1");
    // The bed's own data path of S1 makes way for a pinned one.
    rbridges.remove(0).detach().unwrap();
    let load = || campus.load(1, XdpMode::Native, Some(dir.clone())).expect("it loads");
    let mut pinned = load();
    pinned.change(|fib| tables(fib, 1)).unwrap();
    let a = Icmp::open(&campus.hosts[0], WAIT);
    assert!(a.ping(address(1), 64, 1, 56).is_some());
    let (fib, stations) = (pinned.fib().clone(), pinned.maps().stations().unwrap().len());

    let stop = AtomicBool::new(false);
    let pinned = std::thread::scope(|scope| {
        let pings = scope.spawn(|| {
            let mut sequence = 1;
            while !stop.load(Ordering::Relaxed) || sequence <= 25 {
                sequence += 1;
                assert!(a.ping(address(1), 64, sequence, 56).is_some(), "ping {sequence} was lost");
            }
            sequence
        });
        for _ in 0..5 {
            drop(pinned);
            pinned = load();
            assert_eq!(pinned.fib(), &fib, "what is forwarded by is what it was");
        }
        stop.store(true, Ordering::Relaxed);
        assert!(pings.join().unwrap() > 20);
        pinned
    });
    assert_eq!(RBridgeMaps::open_pinned(&dir).unwrap().stations().unwrap().len(), stations);
    assert!(count(&pinned, Some(HOST), "ingress") > 20, "counters go on");
    pinned.detach().unwrap();
    assert!(RBridgeMaps::open_pinned(&dir).is_err(), "nothing is left");
    assert!(bpffs::unmount(&mount).unwrap());
}
