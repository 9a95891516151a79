//! `weft doctor --path`, its VXLAN half: two namespaces, a tunnel between them, real frames through it, and what they say
//! about checksums, offloads, MTU, fragments, source ports and receive queues.
//!
//! Gathering and judging are apart: [`Findings`] are numbers, [`judge`] turns them into lines, each red one with its cause
//! and the command that mends it.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weft_scenario::engine::Progress;
use weft_wire::vxlan::UDP_PORT;
use weft_wire::{ethernet, ipv4};

use super::Check;
use super::transfer::{self, TRANSFER_BYTES};
use super::tunnel::{Ends, INNER, Kind, OUTER, OVERHEAD_BYTES, QUEUES, Tunnel, in_end};
use crate::capture::PacketSocket;
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns::{self, join};
use crate::ping::{Answer, Echo};

const FLOWS: u16 = 300;
const DATAGRAM_BYTES: usize = 4000;
/// Of RFC 7348 section 5; the kernel's own range is as good.
const PORTS_FROM: u16 = 32_768;
const PATIENCE: Duration = Duration::from_secs(2);
/// Frames may be under way for so long after they were sent.
const LAST_FRAMES: Duration = Duration::from_millis(100);

/// What real frames showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    pub(super) kind: Kind,
    pub(super) underlay_mtu: u32,
    pub(super) inner_mtu: u32,
    /// A packet as long as the inner MTU came back, with DF.
    pub(super) full_size_passes: bool,
    /// One byte more was refused by its sender.
    pub(super) over_size_refused: bool,
    /// A datagram that the sender had to fragment arrived whole.
    pub(super) datagram_whole: bool,
    /// Fragments among tunnel packets.
    pub(super) outer_fragments: u64,
    pub(super) tcp_bytes: usize,
    pub(super) tcp_intact: bool,
    /// Packets that the receiver refused for their checksum.
    pub(super) checksum_errors: u64,
    /// The largest buffer that crossed the underlay while TCP sent.
    pub(super) largest_buffer: usize,
    /// Different outer source ports of so many flows.
    pub(super) flows: u16,
    pub(super) source_ports: usize,
    /// Tunnel packets with a source port below the dynamic range.
    pub(super) low_ports: u64,
    /// Tunnel packets by receive queue.
    pub(super) queue_frames: Vec<u64>,
}

impl Findings {
    /// Name of the line about one thing.
    fn named(&self, what: &str) -> String {
        format!("{}: {what}", self.kind.name())
    }
}

/// Sends real frames through a VXLAN tunnel between two namespaces and judges what became of them.
pub(super) fn overlay_checks(kind: Kind, progress: &dyn Progress) -> Result<Vec<Check>, LabError> {
    progress.phase("path", kind.name());
    Ok(judge(&gather(&Tunnel { kind, ..Tunnel::default() })?))
}

/// One line for each thing that breaks overlays silently.
pub(super) fn judge(found: &Findings) -> Vec<Check> {
    vec![mtu(found), fragments(found), checksums(found), offload(found), source_ports(found), queues(found)]
}

fn mtu(found: &Findings) -> Check {
    let name = &found.named("MTU");
    let (inner, underlay) = (found.inner_mtu, found.underlay_mtu);
    let text = format!("{inner} inside {underlay}");
    let narrow = format!("ip link set dev TUNNEL mtu {}", underlay.saturating_sub(OVERHEAD_BYTES));
    match () {
        () if !found.full_size_passes => Check::fail(
            name,
            format!("{text}: packets of the full size vanish, small ones work"),
            format!(
                "some link on the way is narrower than {}; {narrow}, or widen it: ip link set dev LINK mtu {}",
                inner + OVERHEAD_BYTES,
                inner + OVERHEAD_BYTES
            ),
        ),
        () if !found.over_size_refused => Check::fail(
            name,
            format!("{text}: the sender is not told that a packet is too long"),
            format!("path MTU discovery is off; sysctl -w net.ipv4.ip_no_pmtu_disc=0, and {narrow}"),
        ),
        () => Check::ok(name, format!("{text}: the full size passes, one byte more is refused at once")),
    }
}

fn fragments(found: &Findings) -> Check {
    let name = &found.named("fragments");
    let fit = found.underlay_mtu.saturating_sub(OVERHEAD_BYTES);
    match () {
        () if found.outer_fragments > 0 => Check::fail(
            name,
            format!("{} fragments of tunnel packets on the underlay", found.outer_fragments),
            format!(
                "the tunnel's MTU of {} and {OVERHEAD_BYTES} bytes of headers exceed the underlay's {}: each large packet costs two and loses its flow's spread; ip link set dev TUNNEL mtu {fit}",
                found.inner_mtu, found.underlay_mtu
            ),
        ),
        () if !found.datagram_whole => Check::fail(
            name,
            format!("a datagram of {DATAGRAM_BYTES} bytes did not arrive"),
            "fragments inside the tunnel are lost: a firewall on the way may drop them; see: nft list ruleset, ip -s link",
        ),
        () => Check::ok(
            name,
            format!("a datagram of {DATAGRAM_BYTES} bytes arrives whole, no tunnel packet is fragmented"),
        ),
    }
}

fn checksums(found: &Findings) -> Check {
    let name = &found.named("checksum");
    let text = format!("{} of {TRANSFER_BYTES} bytes over TCP", found.tcp_bytes);
    if found.tcp_intact && found.checksum_errors == 0 {
        return Check::ok(name, format!("{text}, intact; no packet refused"));
    }
    let text = format!("{text}; {} packets refused for their checksum", found.checksum_errors);
    Check::fail(
        name,
        text,
        "checksum offload leaves wrong sums in encapsulated packets; ethtool -K UNDERLAY tx-checksum-ip-generic off, or ethtool -K TUNNEL tx off",
    )
}

fn offload(found: &Findings) -> Check {
    let name = &found.named("offload");
    let text = format!("largest buffer on the underlay {} bytes", found.largest_buffer);
    if found.largest_buffer > found.underlay_mtu as usize * 2 {
        return Check::ok(name, format!("{text}: segments stay together"));
    }
    Check::warn(
        name,
        text,
        "every segment is encapsulated alone, several times the CPU; ethtool -K UNDERLAY tx-udp_tnl-segmentation on tx-udp_tnl-csum-segmentation on",
    )
}

fn source_ports(found: &Findings) -> Check {
    let name = &found.named("source ports");
    let text = format!("{} for {} flows", found.source_ports, found.flows);
    let range = match found.kind {
        Kind::Kernel => "ip link add ... type vxlan ... srcport 49152 65535",
        Kind::Weft => "the VTEP uses 49152 to 65535 by itself, so please report it",
    };
    if found.low_ports > 0 {
        let text = format!("{text}; {} packets below {PORTS_FROM}", found.low_ports);
        return Check::warn(name, text, format!("not of the dynamic range that RFC 7348 asks for; {range}"));
    }
    // 300 flows on 16384 ports hardly ever share one.
    if found.source_ports * 10 >= usize::from(found.flows) * 9 {
        return Check::ok(name, text);
    }
    Check::fail(
        name,
        text,
        format!(
            "ECMP and receive queues see few flows, so paths stay idle; make the tunnel anew with a whole range: {range}"
        ),
    )
}

fn queues(found: &Findings) -> Check {
    let name = &found.named("receive queues");
    let text = format!("tunnel packets by queue: {:?}", found.queue_frames);
    let sum: u64 = found.queue_frames.iter().sum();
    let most = found.queue_frames.iter().max().copied().unwrap_or(0);
    // Twice the fair share: with 300 flows that is ten standard deviations away.
    if sum > 0 && most * found.queue_frames.len() as u64 <= sum * 2 {
        return Check::ok(name, text);
    }
    Check::warn(
        name,
        text,
        "one core does the receiving; ethtool -N UNDERLAY rx-flow-hash udp4 sdfn, or echo f > /sys/class/net/UNDERLAY/queues/rx-0/rps_cpus",
    )
}

pub(super) fn gather(tunnel: &Tunnel) -> Result<Findings, LabError> {
    let ends = Ends::new(tunnel)?;
    let (left, right) = (ends.left(), ends.right());
    let (underlay_mtu, inner_mtu) = (tunnel.underlay_mtu, tunnel.inner_mtu);
    let mut found = Findings { kind: tunnel.kind, underlay_mtu, inner_mtu, flows: FLOWS, ..Findings::default() };
    echoes(left, tunnel, &mut found)?;
    let before = in_end(right, refused_for_checksum)??;
    let bulk = watched(left, right, || send_bulk(left, right, &mut found))?;
    found.largest_buffer = bulk.largest;
    found.outer_fragments = bulk.fragments;
    let flows = watched(left, right, || send_flows(left))?;
    found.source_ports = flows.ports.len();
    found.low_ports = flows.ports.iter().filter(|port| **port < PORTS_FROM).count() as u64;
    found.queue_frames = flows.queues();
    found.checksum_errors = in_end(right, refused_for_checksum)??.saturating_sub(before);
    Ok(found)
}

fn echoes(left: &str, tunnel: &Tunnel, found: &mut Findings) -> Result<(), LabError> {
    let echo = |packet_bytes| Echo { packet_bytes, ..Echo::new(INNER[0], INNER[1]) }.send_in(&namespace_path(left));
    // The first one also finds out where the other end is.
    let deadline = Instant::now() + PATIENCE;
    while !matches!(echo(84)?, Answer::Reply(_)) {
        if Instant::now() > deadline {
            return Ok(());
        }
    }
    let inner = tunnel.inner_mtu as usize;
    found.full_size_passes = matches!(echo(inner)?, Answer::Reply(_));
    found.over_size_refused = matches!(echo(inner + 1)?, Answer::TooBig);
    Ok(())
}

/// TCP as fast as it goes, then one datagram that does not fit a packet.
fn send_bulk(left: &str, right: &str, found: &mut Findings) -> Result<(), LabError> {
    let failed = || LabError::io("send data through the tunnel");
    let (from, to) = (namespace_path(left), namespace_path(right));
    let received = transfer::between(&from, &to, INNER[1])?;
    found.tcp_bytes = received.len();
    found.tcp_intact = received == transfer::pattern();
    let receiver = netns::in_namespace(&to, || UdpSocket::bind(SocketAddrV4::new(INNER[1], 0)))?.map_err(failed())?;
    let port = receiver.local_addr().map_err(failed())?.port();
    receiver.set_read_timeout(Some(PATIENCE)).map_err(failed())?;
    let datagram = transfer::pattern()[..DATAGRAM_BYTES].to_vec();
    let sent = netns::in_namespace(&from, || {
        let socket = UdpSocket::bind(SocketAddrV4::new(INNER[0], 0))?;
        // Fragmenting is what is asked for here.
        rustix::net::sockopt::set_ip_mtu_discover(&socket, rustix::net::sockopt::Ipv4PathMtuDiscovery::DONT)?;
        socket.send_to(&datagram, SocketAddrV4::new(INNER[1], port))
    })?;
    sent.map_err(failed())?;
    let mut buffer = vec![0; 2 * DATAGRAM_BYTES];
    found.datagram_whole = receiver.recv(&mut buffer).is_ok_and(|length| buffer[..length] == datagram[..]);
    Ok(())
}

/// Flows that differ in nothing but their source port.
fn send_flows(left: &str) -> Result<(), LabError> {
    let sent: io::Result<()> = in_end(left, || {
        (0..FLOWS).try_for_each(|_| {
            let socket = UdpSocket::bind(SocketAddrV4::new(INNER[0], 0))?;
            socket.send_to(b"weft", SocketAddrV4::new(INNER[1], 9)).map(drop)
        })
    })?;
    sent.map_err(LabError::io("send datagrams through the tunnel"))
}

/// Received packets of UDP and TCP whose checksum was wrong, of the calling thread's namespace.
fn refused_for_checksum() -> Result<u64, LabError> {
    let path = "/proc/thread-self/net/snmp";
    let text = std::fs::read_to_string(path).map_err(LabError::io(format!("read {path}")))?;
    Ok(checksum_errors_in(&text))
}

/// Pairs of lines, names and numbers: `Udp: InDatagrams ... InCsumErrors ...`, `Udp: 7 ... 0 ...`.
fn checksum_errors_in(snmp: &str) -> u64 {
    let lines: Vec<&str> = snmp.lines().collect();
    let pairs = lines.chunks_exact(2).filter_map(|pair| {
        let at = pair[0].split(' ').position(|name| name == "InCsumErrors")?;
        pair[1].split(' ').nth(at)?.parse::<u64>().ok()
    });
    pairs.sum()
}

/// What the underlay saw.
#[derive(Debug, Default)]
struct Seen {
    largest: usize,
    fragments: u64,
    ports: std::collections::BTreeSet<u16>,
    /// By what the kernel notes: 0 to 3, or 1 to 4 where the driver polls.
    by_noted: Vec<u64>,
}

impl Seen {
    /// Frames by queue.
    fn queues(&self) -> Vec<u64> {
        let first = usize::from(self.by_noted[0] == 0);
        self.by_noted[first..first + usize::from(QUEUES)].to_vec()
    }
}

/// Watches what comes in at the right end of the underlay, queue by queue, while `work` runs, and until nothing more is there.
fn watched(left: &str, right: &str, work: impl FnOnce() -> Result<(), LabError>) -> Result<Seen, LabError> {
    debug_assert_ne!(left, right);
    let opened: io::Result<Vec<PacketSocket>> =
        in_end(right, || (0..=QUEUES).map(|noted| PacketSocket::open_queue("u0", noted)).collect())?;
    let taps = opened.map_err(LabError::io("listen at the underlay"))?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(&taps, &over));
        let done = work();
        over.store(true, Ordering::Relaxed);
        let seen = join(watching);
        done.map(|()| seen)
    })
}

fn watch(taps: &[PacketSocket], over: &AtomicBool) -> Seen {
    let mut buffer = vec![0; 128];
    let mut seen = Seen { by_noted: vec![0; taps.len()], ..Seen::default() };
    let mut latest = Instant::now();
    loop {
        let no_more = over.load(Ordering::Relaxed) && latest.elapsed() > LAST_FRAMES;
        for (noted, tap) in taps.iter().enumerate() {
            while let Ok(Some(frame)) = tap.receive_now(&mut buffer) {
                latest = Instant::now();
                let Some(outer) = Outer::read(&buffer[..frame.captured_bytes]) else { continue };
                seen.largest = seen.largest.max(frame.original_bytes as usize);
                seen.fragments += u64::from(outer.is_fragment);
                seen.ports.extend(outer.source_port);
                seen.by_noted[noted] += 1;
            }
        }
        if no_more {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A tunnel packet's outer headers.
struct Outer {
    is_fragment: bool,
    /// Not in fragments.
    source_port: Option<u16>,
}

impl Outer {
    fn read(frame: &[u8]) -> Option<Self> {
        let frame = ethernet::View::new(frame).ok().filter(|frame| frame.ethertype() == ethernet::ethertype::IPV4)?;
        let packet = ipv4::View::of_prefix(frame.payload()).ok()?;
        if packet.protocol() != ipv4::protocol::UDP || packet.source() != OUTER[0] {
            return None;
        }
        if packet.is_fragment() {
            return Some(Self { is_fragment: true, source_port: None });
        }
        let ports: &[u8; 4] = packet.payload().first_chunk()?;
        let [source, destination] = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
        (destination == UDP_PORT).then_some(Self { is_fragment: false, source_port: Some(source) })
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::judge::Verdict;

    use super::*;

    fn healthy() -> Findings {
        Findings {
            kind: Kind::Kernel,
            underlay_mtu: 1500,
            inner_mtu: 1450,
            full_size_passes: true,
            over_size_refused: true,
            datagram_whole: true,
            outer_fragments: 0,
            tcp_bytes: TRANSFER_BYTES,
            tcp_intact: true,
            checksum_errors: 0,
            largest_buffer: 65_000,
            flows: 300,
            source_ports: 298,
            low_ports: 0,
            queue_frames: vec![70, 80, 75, 75],
        }
    }

    #[test]
    fn every_line_that_is_not_green_has_a_cause_and_a_command() {
        assert!(judge(&healthy()).iter().all(|check| check.verdict == Verdict::Pass), "{:?}", judge(&healthy()));
        let broken = [
            (0, Findings { full_size_passes: false, ..healthy() }, "ip link set dev"),
            (0, Findings { over_size_refused: false, ..healthy() }, "sysctl -w"),
            (1, Findings { outer_fragments: 9, inner_mtu: 1500, ..healthy() }, "ip link set dev TUNNEL mtu 1450"),
            (1, Findings { datagram_whole: false, ..healthy() }, "nft list ruleset"),
            (2, Findings { checksum_errors: 1, ..healthy() }, "ethtool -K"),
            (2, Findings { tcp_intact: false, tcp_bytes: 7, ..healthy() }, "ethtool -K"),
            (3, Findings { largest_buffer: 1550, ..healthy() }, "tx-udp_tnl-segmentation on"),
            (4, Findings { source_ports: 1, ..healthy() }, "srcport 49152 65535"),
            (4, Findings { low_ports: 3, ..healthy() }, "srcport 49152 65535"),
            (5, Findings { queue_frames: vec![300, 0, 0, 0], ..healthy() }, "rx-flow-hash udp4 sdfn"),
            (5, Findings { queue_frames: vec![0; 4], ..healthy() }, "rps_cpus"),
        ];
        for (line, found, command) in broken {
            let checks = judge(&found);
            assert!(
                checks[line].verdict != Verdict::Pass && checks[line].remedy.contains(command),
                "{:?}",
                checks[line]
            );
            let others = checks.iter().enumerate().filter(|(place, _)| *place != line);
            assert!(others.clone().all(|(_, check)| check.verdict == Verdict::Pass), "{checks:?}");
        }
    }

    #[test]
    fn a_right_tunnel_is_green_and_wrong_ones_are_seen() {
        if !weft_needs::root() {
            return;
        }
        for kind in [Kind::Kernel, Kind::Weft] {
            let right = gather(&Tunnel { kind, ..Tunnel::default() }).unwrap();
            let red: Vec<Check> = judge(&right).into_iter().filter(|check| check.verdict == Verdict::Fail).collect();
            assert!(red.is_empty(), "{red:?}");
        }
        // The inner MTU forgets the outer header, and all flows share one port.
        let wrong = Tunnel { inner_mtu: 1500, source_ports: Some((50_000, 50_001)), ..Tunnel::default() };
        let found = gather(&wrong).unwrap();
        // Kernels differ in what they do with packets that do not fit: drop them, or fragment the tunnel's.
        assert!(!found.full_size_passes || found.outer_fragments > 0, "{found:?}");
        let checks = judge(&found);
        assert!(checks[..2].iter().any(|check| check.verdict == Verdict::Fail), "{checks:?}");
        assert!(found.source_ports <= 2 && checks[4].verdict == Verdict::Fail, "{found:?}");
        assert_eq!(found.queue_frames.len(), usize::from(QUEUES));
    }

    #[test]
    fn counters_of_both_protocols_are_added() {
        let snmp = "Tcp: InSegs InCsumErrors\nTcp: 9 2\nUdp: InDatagrams InCsumErrors IgnoredMulti\nUdp: 5 3 0\nIp: Forwarding\nIp: 1\n";
        assert_eq!(checksum_errors_in(snmp), 5);
        assert_eq!(checksum_errors_in("junk\n"), 0);
    }

    #[test]
    fn outer_headers_are_read_without_trust() {
        let mut frame = vec![0; 42];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[23] = 17;
        frame[26..30].copy_from_slice(&OUTER[0].octets());
        frame[34..38].copy_from_slice(&[0xc0, 1, 0x12, 0xb5]);
        assert_eq!(Outer::read(&frame).unwrap().source_port, Some(0xc001));
        for short in 0..38 {
            assert!(Outer::read(&frame[..short]).is_none(), "{short}");
        }
        frame[20] = 0x20;
        assert!(Outer::read(&frame).unwrap().is_fragment);
        frame[26] = 1;
        assert!(Outer::read(&frame).is_none());
    }
}
