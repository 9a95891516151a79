//! The test centre's frames byte by byte, as they leave by either means: compared with frames that share no code with the program,
//! read by tshark, and taken by the kernel's sockets.
#![allow(unreachable_pub)]

mod common;
#[path = "../../datapath/tests/common/netns.rs"]
#[allow(dead_code)]
mod netns;
#[path = "../../datapath/tests/common/tap.rs"]
#[allow(dead_code)]
mod tap;

use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use netns::{Namespace, link};
use tap::Tap;
use weft_lab::tester::path::{Means, Path, Trial, TrialOrder};
use weft_lab::tester::port::Port;
use weft_lab::tester::replay::{Recorded, ReplayPath};
use weft_lab::tester::sizes::Sizes;
use weft_lab::tester::stream::{IpVersion, Stream, StreamPlan};
use weft_testbed::tester::EmulatedLinks;
use weft_wire::pcapng;

use common::beds::turn;

const NEVER: &(dyn Fn() -> bool + Sync) = &|| false;
/// Longer than a frame is ever under way here.
const WAIT: Duration = Duration::from_secs(5);
const ETHERNET: usize = 14;
const UDP: usize = 8;
const PROBE: usize = 18;
const FCS: usize = 4;
/// tshark's words for "verified" and "wrong".
const GOOD: &str = "1";
const BAD: &str = "0";

/// A kernel bridge between the ports, where frames are looked at as they come in.
struct Bridge {
    sender: Namespace,
    receiver: Namespace,
    bridge: Namespace,
    /// A veth end takes live frames only if its peer has a program.
    _hold: EmulatedLinks,
}

impl Bridge {
    fn new(test: &str) -> Self {
        let [sender, bridge, receiver] = ["a", "br", "b"].map(|node| Namespace::new(test, node));
        link((&sender, "g0"), (&bridge, "s0"), 9000);
        link((&bridge, "s1"), (&receiver, "k0"), 9000);
        bridge.ip("link add dev br0 type bridge mcast_snooping 0");
        for port in ["s0", "s1"] {
            bridge.ip(&format!("link set dev {port} master br0"));
        }
        let hold = bridge.enter(|| {
            let mut links = EmulatedLinks::load().unwrap();
            links.hold("s0").unwrap();
            links
        });
        Self { sender, receiver, bridge, _hold: hold }
    }

    fn up(&self) {
        self.bridge.ip("link set dev br0 up");
    }

    fn ports(&self) -> [Port; 2] {
        [(&self.sender, "g0"), (&self.receiver, "k0")]
            .map(|(namespace, interface)| Port::open(&format!("{}:{interface}", namespace.name)).unwrap())
    }

    fn path(&self, plan: &StreamPlan, sizes: impl Into<Sizes>) -> Path {
        let [sending, receiving] = self.ports();
        Path::open(&sending, &[receiving], plan, sizes).unwrap()
    }

    /// What comes in from the sender.
    fn tap(&self) -> Tap {
        Tap::open_for_all(&self.bridge, "s0", WAIT)
    }
}

fn send(path: &mut Path, frames: u64) -> Trial {
    let order = TrialOrder { frames: Some(frames), ..TrialOrder::paced(5000.0, Duration::from_secs(5)) };
    path.trial(&order, NEVER).unwrap()
}

/// The next frames with a probe.
fn probed(tap: &Tap, count: usize, payload_at: usize) -> Vec<Vec<u8>> {
    let is_probe = |frame: &Vec<u8>| frame.len() >= payload_at + PROBE && frame[payload_at..payload_at + 2] == *b"WP";
    let frames: Vec<_> = std::iter::from_fn(|| tap.next()).filter(is_probe).take(count).collect();
    assert_eq!(frames.len(), count, "all come");
    frames
}

/// The Internet checksum, written anew.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut bytes = parts.concat();
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    let total: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) * 256 + u32::from(pair[1])).sum();
    let once = (total & 0xffff) + (total >> 16);
    !((once & 0xffff) + (once >> 16)) as u16
}

/// Probe and pattern as `weft_wire::probe` draws them; the time is that of the frame.
fn payload(stream: u16, sequence: u32, seed: u8, time: &[u8], length: usize) -> Vec<u8> {
    let numbers = [&b"WP"[..], &stream.to_be_bytes(), &sequence.to_be_bytes(), &[seed], time, &[0, 0]].concat();
    let mut bytes = [&numbers[..], &checksum(&[&numbers]).to_be_bytes()].concat();
    let step = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(2 * u64::from(seed) + 1);
    let mut word = 0u64;
    while bytes.len() < length {
        word = word.wrapping_add(step);
        bytes.extend(word.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// A frame of a stream; what it does not say itself (flow label, seed, time) is taken from `seen`.
fn frame(stream: &Stream, sequence: u32, bytes: usize, seen: &[u8]) -> Vec<u8> {
    let payload_of = |at: usize| payload(stream.number, sequence, seen[at + 8], &seen[at + 9..at + 14], bytes - at);
    let macs = [stream.destination.mac.0, stream.source.mac.0].concat();
    let [from, to] = [stream.source.port, stream.destination.port].map(u16::to_be_bytes);
    match (stream.source.ip, stream.destination.ip) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let payload = payload_of(ETHERNET + 20 + UDP);
            let length = |headers: usize| ((payload.len() + headers) as u16).to_be_bytes();
            let [a, b] = [source, destination].map(|address| address.octets());
            let front = [&[0x45, 0][..], &length(20 + UDP), &[0, 0, 0x40, 0, 64, 17]].concat();
            let sum = checksum(&[&front, &a, &b]).to_be_bytes();
            [&macs[..], &[8, 0], &front, &sum, &a, &b, &from, &to, &length(UDP), &[0, 0], &payload].concat()
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let payload = payload_of(ETHERNET + 40 + UDP);
            let length = ((payload.len() + UDP) as u16).to_be_bytes();
            let [a, b] = [source, destination].map(|address| address.octets());
            let pseudo = [&a[..], &b, &[0, 0], &length, &[0, 0, 0, 17]].concat();
            let udp = [&from[..], &to, &length].concat();
            let sum = checksum(&[&pseudo, &udp, &payload]);
            let sum = if sum == 0 { 0xffff } else { sum }.to_be_bytes();
            let front = [0x86, 0xdd, 0x60, seen[15] & 0x0f, seen[16], seen[17]];
            [&macs[..], &front, &length, &[17, 64], &a, &b, &udp, &sum, &payload].concat()
        }
        ends => panic!("{ends:?}"),
    }
}

/// A field of every frame, for each of `fields`; `None` where there is no tshark.
fn tshark(frames: &[Vec<u8>], fields: &[&str]) -> Option<Vec<String>> {
    if !weft_needs::program("tshark") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frames.pcapng");
    let mut writer = pcapng::Writer::new(std::fs::File::create(&path).unwrap(), "s0").unwrap();
    for frame in frames {
        writer.write(Duration::ZERO, frame.len() as u32, frame).unwrap();
    }
    drop(writer);
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-n", "-o", "udp.check_checksum:TRUE", "-T", "fields", "-E", "separator=;"]);
    let output = command.args(fields.iter().flat_map(|field| ["-e", field])).output().unwrap();
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn ipv6_frames_are_whole_by_either_means_at_any_length() {
    let Some(_turn) = turn() else { return };
    let bridge = Bridge::new("v6");
    bridge.up();
    let plan = StreamPlan { ip: IpVersion::V6, unicast: 3, group: 2, ..StreamPlan::default() };
    let streams = plan.streams().unwrap();
    let mut path = bridge.path(&plan, 84);
    let at = ETHERNET + 40 + UDP;
    let mut all = Vec::new();
    for means in [Means::XdpLiveFrames, Means::PacketSocket] {
        path.set_means(means).unwrap();
        for bytes in [84, 85, 91, 1450] {
            path.set_sizes(bytes).unwrap();
            let tap = bridge.tap();
            let trial = send(&mut path, 20);
            assert_eq!((trial.account.sent, trial.account.is_clean()), (20, true), "{means:?}: {:?}", trial.account);
            let frames = probed(&tap, 20, at);
            for (number, seen) in frames.iter().enumerate() {
                let stream = &streams[number % 5];
                let expected = frame(stream, number as u32 / 5, bytes as usize - FCS, seen);
                assert_eq!(*seen, expected, "{means:?}, {bytes} bytes, frame {number}");
                assert_eq!(seen[14..18], frames[number % 5][14..18], "a stream has one flow label");
            }
            all.extend(frames);
        }
    }
    // The control: a reader that called everything good would pass as well.
    let mut damaged = all[0].clone();
    damaged[at + 9] ^= 1;
    all.push(damaged);
    // What tshark makes of the payload is a guess, by ports.
    let Some(rows) = tshark(&all, &["ipv6.nxt", "ipv6.hlim", "ipv6.plen", "udp.length", "udp.checksum.status"]) else {
        return;
    };
    let (last, whole) = rows.split_last().unwrap();
    let row = |frame: &Vec<u8>, status| format!("17;64;{0};{0};{status}", frame.len() - ETHERNET - 40);
    assert_eq!(*whole, all[..whole.len()].iter().map(|frame| row(frame, GOOD)).collect::<Vec<_>>());
    assert_eq!(*last, row(&all[0], BAD));
}

#[test]
fn the_kernels_sockets_take_ipv6_frames_of_either_means() {
    let Some(_turn) = turn() else { return };
    let bridge = Bridge::new("sock");
    let plan = StreamPlan { ip: IpVersion::V6, ..StreamPlan::default() };
    let station = plan.streams().unwrap()[0].destination;
    // The bridge itself is the station.
    bridge.bridge.ip(&format!("link set dev br0 address {}", station.mac));
    bridge.up();
    bridge.bridge.ip(&format!("addr add {}/64 dev br0 nodad", station.ip));
    let socket = bridge.bridge.enter(|| UdpSocket::bind((station.ip, station.port))).unwrap();
    socket.set_read_timeout(Some(WAIT)).unwrap();
    let mut path = bridge.path(&plan, 84);
    for means in [Means::XdpLiveFrames, Means::PacketSocket] {
        path.set_means(means).unwrap();
        for bytes in [84usize, 101, 1450] {
            path.set_sizes(bytes as u32).unwrap();
            // What trying out the port has sent.
            socket.set_nonblocking(true).unwrap();
            while socket.recv(&mut [0; 2048]).is_ok() {}
            socket.set_nonblocking(false).unwrap();
            assert_eq!(send(&mut path, 20).account.sent, 20);
            for sequence in 0..20u32 {
                let mut datagram = [0; 2048];
                let length = socket.recv(&mut datagram).unwrap_or_else(|error| panic!("{means:?}, {bytes}: {error}"));
                let seen = &datagram[..length];
                assert_eq!(seen, payload(0, sequence, seen[8], &seen[9..14], bytes - FCS - ETHERNET - 40 - UDP));
            }
        }
    }
    let refused = bridge.bridge.enter(|| std::fs::read_to_string("/proc/thread-self/net/snmp6")).unwrap();
    let counters: BTreeMap<&str, u64> = refused
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace))
        .filter_map(|(name, value)| Some((name, value.trim().parse().ok()?)))
        .collect();
    assert_eq!((counters["Udp6InCsumErrors"], counters["Udp6InErrors"]), (0, 0));
}

#[test]
fn a_mix_is_interleaved_alike_by_either_means() {
    let Some(_turn) = turn() else { return };
    let bridge = Bridge::new("mix");
    bridge.up();
    for (ip, header, least) in [(IpVersion::V4, 20, 64), (IpVersion::V6, 40, 84)] {
        let plan = StreamPlan { ip, unicast: 5, ..StreamPlan::default() };
        let streams = plan.streams().unwrap();
        // Four of seven, two and one, as evenly as can be; each stream is one further than the one before.
        let mix: Sizes = format!("imix:{least}x4,571x2,1518x1").parse().unwrap();
        let round = [least, 571, least, 1518, least, 571, least];
        let mut path = bridge.path(&plan, mix);
        for means in [Means::XdpLiveFrames, Means::PacketSocket] {
            path.set_means(means).unwrap();
            let tap = bridge.tap();
            let trial = send(&mut path, 70);
            assert_eq!((trial.account.sent, trial.account.is_clean()), (70, true), "{means:?}: {:?}", trial.account);
            for (number, seen) in probed(&tap, 70, ETHERNET + header + UDP).iter().enumerate() {
                let (stream, sequence) = (number % 5, number / 5);
                let bytes = round[(stream + sequence) % 7] - FCS;
                assert_eq!(*seen, frame(&streams[stream], sequence as u32, bytes, seen), "{means:?}, frame {number}");
            }
        }
    }
}

/// Frames of one station, which are all different, in a file of the classic format.
fn recorded(lengths: &[usize]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let frame = |(number, bytes): (usize, &usize)| -> Vec<u8> {
        let head = [&[2, 0, 0, 9, 9, number as u8][..], &STATION, &[0x88, 0xb6]].concat();
        head.into_iter().chain((14..*bytes).map(|place| (place * 13 + number * 5 + place / 256) as u8)).collect()
    };
    let frames: Vec<_> = lengths.iter().enumerate().map(frame).collect();
    let mut file: Vec<u8> =
        [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1].into_iter().flat_map(u32::to_be_bytes).collect();
    file[4..8].copy_from_slice(&[0, 2, 0, 4]);
    for frame in &frames {
        let length = frame.len() as u32;
        file.extend([1, 2, length, length].into_iter().flat_map(u32::to_be_bytes));
        file.extend(frame);
    }
    (frames, file)
}

const STATION: [u8; 6] = [2, 0, 0, 8, 8, 8];

#[test]
fn frames_of_a_file_leave_as_they_are_by_either_means() {
    let Some(_turn) = turn() else { return };
    let bridge = Bridge::new("file");
    bridge.up();
    let (mut frames, file) = recorded(&[60, 1514, 14, 59, 61, 999, 2999, 333]);
    for frame in &mut frames {
        frame.resize(frame.len().max(60), 0);
    }
    let [sending, receiving] = bridge.ports();
    let mut path = ReplayPath::open(&sending, &receiving, Recorded::of(&file, 9000).unwrap()).unwrap();
    for means in [Means::XdpLiveFrames, Means::PacketSocket] {
        if means == Means::PacketSocket {
            path.use_socket().unwrap();
        }
        assert_eq!(path.means(), means);
        // At a rate, from the first frame on; and once unpaced.
        for (pps, count) in [(Some(5000.0), 21), (None, 40)] {
            let tap = bridge.tap();
            let order = TrialOrder { pps, frames: Some(count), ..TrialOrder::unpaced(WAIT) };
            let account = path.trial(&order, NEVER).unwrap().account;
            assert_eq!((account.sent, account.received), (count, count), "{means:?}: {account:?}");
            assert_eq!((account.lost, account.duplicated), (0, 0), "{means:?}: {account:?}");
            let of_the_file = |frame: &Vec<u8>| frame[6..12] == STATION;
            for number in 0..count as usize {
                let seen = std::iter::from_fn(|| tap.next()).find(of_the_file);
                assert_eq!(seen.as_ref(), Some(&frames[number % 8]), "{means:?}, {pps:?}, frame {number}");
            }
        }
    }
}
