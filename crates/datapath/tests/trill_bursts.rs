//! Frames for one and frames for many that wait for the same port at once: Linux has one devmap program run on all of them, that of
//! the first. Whoever is sent one gets it as it should be, whatever went before it.

mod common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use common::campus::{ADDRESSES, Campus, HOST, SECOND_HOST, VLAN, interface, mac, nickname};
use common::netns::Namespace;
use common::tap::Tap;
use common::vlan::{TrunkTap, tagged};
use common::{Ipv4, ethernet};
use weft_datapath::trill::{Elision, PortConfig, PortKind, RBridgeDatapath, XdpMode};
use weft_testbed::tester::{Frames, Generator, SendOrder};
use weft_wire::ethernet::MacAddress;
use weft_wire::probe::Probe;
use weft_wire::vlan::VlanSet;

/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);
const FRAME_BYTES: usize = 200;
const HEAD_BYTES: usize = 42;
/// Frames that a device's NAPI takes in one poll, and the kernel sends in one go.
const BURST: u64 = 64;
const BURSTS: usize = 20;
const BROADCAST: [u8; 6] = [0xff; 6];

/// Headers of a UDP datagram from host a.
fn head(to: [u8; 6], address: &str, port: u16) -> Vec<u8> {
    let datagram = FRAME_BYTES - 14 - 20;
    let destination = address.parse().unwrap();
    let packet =
        Ipv4 { payload: vec![0; datagram], source: ADDRESSES[0].parse().unwrap(), destination, ..Ipv4::default() };
    let mut packet = packet.bytes();
    packet[20..28]
        .copy_from_slice(&[&port.to_be_bytes()[..], &[0x13, 0x89], &(datagram as u16).to_be_bytes(), &[0; 2]].concat());
    packet.truncate(HEAD_BYTES - 14);
    ethernet(to, host_mac(0), 0x0800, &packet)
}

/// As the bed's hosts are known here, whatever their interfaces say.
fn host_mac(host: usize) -> [u8; 6] {
    [0x02, 0x52, 0, 0, 0, host as u8]
}

/// Flows from host a: those for everybody between those for b and those for c, by all ways.
fn heads() -> Vec<Vec<u8>> {
    let flow = |number: u16| match number % 3 {
        0 => head(BROADCAST, "10.0.10.255", 4000 + number),
        to => head(host_mac(to.into()), ADDRESSES[usize::from(to)], 4000 + number),
    };
    (0..48).map(flow).collect()
}

/// Frames by their stream, sequence number and bytes up to the probe.
type Seen = BTreeMap<(u16, u32, Vec<u8>), usize>;

fn seen(frames: impl IntoIterator<Item = Vec<u8>>, before: usize) -> Seen {
    let mut seen = Seen::new();
    for frame in frames {
        let probe = frame.get(before + HEAD_BYTES..).and_then(|payload| Probe::parse(payload).ok());
        let (stream, sequence) = probe.map_or((u16::MAX, 0), |probe| (probe.stream, probe.sequence));
        let kept = frame.len().min(before + HEAD_BYTES);
        *seen.entry((stream, sequence, frame[..kept].to_vec())).or_default() += 1;
    }
    seen
}

/// What a burst is, as it was sent: frames whose destination is one of these.
fn sent(heads: &[Vec<u8>], to: &[[u8; 6]]) -> Seen {
    let streams = heads.len() as u64;
    let all = (0..BURST).map(|n| ((n % streams) as u16, (n / streams) as u32, heads[(n % streams) as usize].clone()));
    all.filter(|(.., head)| to.iter().any(|to| head.starts_with(to))).map(|frame| (frame, 1)).collect()
}

/// Takes what has come until it is as much as should, and what comes in a while after that.
fn take(poll: impl Fn() -> Option<Vec<u8>>, expected: usize) -> Vec<Vec<u8>> {
    let (start, mut frames) = (Instant::now(), Vec::new());
    while frames.len() < expected && start.elapsed() < WAIT / 10 {
        frames.extend(poll());
    }
    std::thread::sleep(Duration::from_millis(10));
    frames.extend(std::iter::from_fn(&poll));
    frames
}

#[track_caller]
fn assert_same(who: &str, got: &Seen, expected: &Seen) {
    let beyond = |these: &Seen, those: &Seen| -> Vec<String> {
        let others = these.iter().filter(|(frame, count)| those.get(*frame) != Some(*count));
        others
            .take(3)
            .map(|((stream, n, head), count)| format!("{count} x {stream}/{n}\n{}", common::dump(head)))
            .collect()
    };
    let (more, less) = (beyond(got, expected), beyond(expected, got));
    let [came, wanted] = [got, expected].map(|frames| frames.values().sum::<usize>());
    assert!(
        more.is_empty() && less.is_empty(),
        "{who} got {came} of {wanted}:\n{}instead of\n{}",
        more.concat(),
        less.concat()
    );
}

struct Bursts {
    campus: Campus,
    rbridges: Vec<RBridgeDatapath>,
    generator: Generator,
    heads: Vec<Vec<u8>>,
}

impl Bursts {
    fn new(test: &str, elision: Elision, spread: &[u32]) -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let mut campus = Campus::new(test, 1500);
        (campus.elision, campus.spread) = (elision, spread.to_vec());
        let rbridges = campus.attach(XdpMode::Native)?;
        let heads = heads();
        let frames = Frames::of_one_length(FRAME_BYTES, heads.clone());
        let generator = common::available(campus.hosts[0].enter(|| Generator::load("eth0", &frames)))?;
        let bursts = Self { campus, rbridges, generator, heads };
        for host in 0..3 {
            bursts.say_hello(host);
        }
        // The first frame that a veth is handed may stay there until the next one comes (Linux 6.18).
        (0..2).for_each(|_| bursts.send());
        Some(bursts)
    }

    /// Everybody learns where a host is.
    fn say_hello(&self, host: usize) {
        let frame = ethernet(BROADCAST, host_mac(host), 0x0800, &Ipv4::default().bytes());
        let knows = |rbridge: &RBridgeDatapath| {
            let stations = rbridge.maps().stations().unwrap();
            stations.iter().any(|station| station.mac == MacAddress(host_mac(host)))
        };
        let start = Instant::now();
        while !self.rbridges[..2].iter().all(knows) {
            assert!(start.elapsed() < WAIT, "S1 and S2 do not learn where host {host} is");
            Tap::open(&self.campus.hosts[host], "eth0", WAIT).send(&frame);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn send(&self) {
        let order = SendOrder {
            interval_ns: 0.0,
            duration_ns: 10_000_000_000,
            limit: BURST,
            batch: BURST as u32,
            spin: false,
            slip_ns: 0,
            seed: 1,
            cpu: 0,
        };
        let sent = self.campus.hosts[0].enter(|| self.generator.send(&order, &|| false)).unwrap();
        assert_eq!(sent.frames, BURST);
    }
}

fn tap_of(namespace: &Namespace, interface: &str) -> Tap {
    let tap = Tap::open_for_all(namespace, interface, WAIT);
    take(|| tap.poll(), 0);
    tap
}

fn everybody_gets_what_is_theirs(test: &str, elision: Elision, spread: &[u32]) {
    let Some(bursts) = Bursts::new(test, elision, spread) else { return };
    let taps = [1, 2].map(|host| tap_of(&bursts.campus.hosts[host], "eth0"));
    for _ in 0..BURSTS {
        bursts.send();
        for (host, tap) in (1..).zip(&taps) {
            let expected = sent(&bursts.heads, &[BROADCAST, host_mac(host)]);
            assert_same(["a", "b", "c"][host], &seen(take(|| tap.poll(), expected.len()), 0), &expected);
        }
    }
}

#[test]
fn everybody_gets_what_is_theirs_in_a_burst() {
    everybody_gets_what_is_theirs("tbun", Elision::Off, &[]);
}

#[test]
fn everybody_gets_what_is_theirs_without_outer_headers() {
    everybody_gets_what_is_theirs("tbue", Elision::Agreed, &[]);
}

#[test]
fn everybody_gets_what_is_theirs_from_several_cpus() {
    everybody_gets_what_is_theirs("tbus", Elision::Off, &[0, 1]);
}

/// Host c is on a link that S1 shares with an RBridge: broadcasts go there in both forms, frames for c natively.
fn a_shared_link_gets_both_forms(test: &str, designated_vlan: u16) {
    let Some(mut bursts) = Bursts::new(test, Elision::Off, &[]) else { return };
    let (neighbor, own) = (mac(9, 1), mac(1, SECOND_HOST.into()));
    let carried = VlanSet::of_ranges(&[(VLAN, VLAN)]);
    let kind = PortKind::Shared { untagged: VLAN, designated_vlan, carried, neighbors: [neighbor].into() };
    let config = PortConfig { interface: interface(SECOND_HOST.into()), mac: own, mtu: 1500 + 64, kind };
    let (campus, s1) = (&bursts.campus, &mut bursts.rbridges[0]);
    for (namespace, interface) in [(campus.switch(1), interface(SECOND_HOST.into())), (&campus.hosts[2], "eth0".into())]
    {
        namespace.ip(&format!("link set dev {interface} mtu 1600"));
    }
    campus.switch(1).enter(|| s1.add_port(SECOND_HOST, &config)).unwrap();
    campus.switch(1).wait_up(&interface(SECOND_HOST.into()));
    std::thread::sleep(Duration::from_millis(50));
    s1.maps().set_access_until(u64::MAX).unwrap();
    s1.change(|fib| {
        let tree = fib.trees.get_mut(&nickname(6)).unwrap();
        tree.branches.insert(SECOND_HOST, VlanSet::all());
    })
    .unwrap();
    bursts.say_hello(2);
    let tap = TrunkTap::open(&bursts.campus.hosts[2], "eth0");
    let with_tag = || tap.poll().map(|(vlan, frame)| tagged(vlan, &frame));
    take(with_tag, 0);
    let natives = sent(&bursts.heads, &[BROADCAST, host_mac(2)]);
    let in_trill = |head: &[u8]| {
        let trill = [&[0x08, 8][..], &nickname(6).to_be_bytes(), &nickname(1).to_be_bytes()].concat();
        let inner = [&head[..12], &[0x81, 0, 0, VLAN as u8], &head[12..]].concat();
        let data = [&0x22f3_u16.to_be_bytes()[..], &trill, &inner].concat();
        let [high, low] = designated_vlan.to_be_bytes();
        let tag = if designated_vlan == VLAN { &[][..] } else { &[0x81, 0, high, low] };
        [&[0x01, 0x80, 0xc2, 0, 0, 0x40][..], &own.0, tag, &data].concat()
    };
    let links = sent(&bursts.heads, &[BROADCAST]).into_iter();
    let links: Seen = links.map(|((stream, n, head), count)| ((stream, n, in_trill(&head)), count)).collect();
    for _ in 0..BURSTS {
        bursts.send();
        let frames = take(with_tag, natives.len() + links.len());
        let outer = if designated_vlan == VLAN { 14 } else { 18 };
        let is_trill = |frame: &Vec<u8>| frame[outer - 2..outer] == [0x22, 0xf3];
        let (trill, native): (Vec<_>, Vec<_>) = frames.into_iter().partition(is_trill);
        assert_same("c", &seen(native, 0), &natives);
        assert_same("the RBridge beside c", &seen(trill, outer + 6 + 4), &links);
    }
    assert_eq!(bursts.rbridges[0].fib().ports[&HOST].kind, PortKind::access(VLAN));
}

#[test]
fn a_shared_link_gets_both_forms_in_a_burst() {
    a_shared_link_gets_both_forms("tbuh", VLAN);
}

/// Those in TRILL have a tag there, those for c have none.
#[test]
fn a_shared_link_gets_frames_of_rbridges_with_the_tag_of_the_designated_vlan() {
    a_shared_link_gets_both_forms("tbug", 3000);
}
