//! What is sent: streams between simulated stations, all from a seed.
//!
//! Addresses are of the blocks that IANA set aside for this: 198.18.0.0/15 (RFC 2544 appendix C), senders in its lower half,
//! receivers in its upper half; 2001:2::/48 (RFC 5180 section 8, with erratum 1752), a network for either. Two runs with one seed
//! send the same bytes, up to time stamps.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

use weft_scenario::random::scramble;
use weft_wire::ethernet::{MacAddress, ethertype};
use weft_wire::ipv4::{self, protocol};
use weft_wire::vlan::{TAG_LEN, VLAN_MAX};
use weft_wire::{checksum, ethernet, ipv6, udp};

use super::rate::FrameSize;

/// Most streams at once.
pub const STREAMS_MAX: u16 = 16_384;

const SENDERS: u32 = 0xc612_0000; // 198.18.0.0
const RECEIVERS: u32 = 0xc613_0000; // 198.19.0.0
const GROUPS: u32 = 0xefc6_0000; // 239.198.0.0, administratively scoped (RFC 2365)
const IPV6_SENDERS: [u16; 4] = [0x2001, 2, 0, 1]; // 2001:2:0:1::/64
const IPV6_RECEIVERS: [u16; 4] = [0x2001, 2, 0, 2]; // 2001:2:0:2::/64
const IPV6_GROUPS: [u16; 4] = [0xff15, 0, 0, 0]; // transient groups of the site (RFC 4291, 2.7)
/// In front of a group's number: the hardware addresses of low numbers belong to groups that every station is in.
const IPV6_GROUP_MARK: u16 = 0x5754;

/// Version of the Internet Protocol that stations speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum IpVersion {
    #[default]
    #[serde(rename = "4")]
    V4,
    #[serde(rename = "6")]
    V6,
}

/// What is in front of the probe: Ethernet, perhaps a VLAN tag, IP and UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    pub ip: IpVersion,
    /// There is a VLAN tag.
    pub tagged: bool,
}

impl Headers {
    /// Length of all of them.
    pub const fn bytes(self) -> usize {
        let ip = match self.ip {
            IpVersion::V4 => ipv4::HEADER_LEN,
            IpVersion::V6 => ipv6::HEADER_LEN,
        };
        ethernet::HEADER_LEN + if self.tagged { TAG_LEN } else { 0 } + ip + udp::HEADER_LEN
    }
}

/// Where a stream goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// To one station behind the receiving port.
    Unicast,
    /// To a multicast group: every receiving port must see every frame.
    Group,
    /// To all stations: likewise.
    Broadcast,
}

/// Which streams there are, as pure data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPlan {
    pub ip: IpVersion,
    pub unicast: u16,
    /// Number of multicast streams, each to a group of its own.
    pub group: u16,
    pub broadcast: u16,
    /// VLANs that streams take in turn; none: frames without a tag.
    pub vlans: Vec<u16>,
    /// Who all unicast frames are addressed to at first, where the device under test is a router.
    pub gateway: Option<MacAddress>,
    /// Unicast streams, of 100, that are addressed to their station itself although there is a gateway: it is behind the
    /// last receiving port, in the senders' network. The others' stations are behind the first.
    pub direct_percent: u8,
    /// Whether the stations of unicast streams are behind the receiving ports in turn, not all behind the first.
    pub in_turn: bool,
    /// What addresses and ports come from.
    pub seed: u64,
}

impl Default for StreamPlan {
    fn default() -> Self {
        let (ip, vlans) = (IpVersion::V4, Vec::new());
        Self {
            ip,
            unicast: 1,
            group: 0,
            broadcast: 0,
            vlans,
            gateway: None,
            direct_percent: 0,
            in_turn: false,
            seed: 1,
        }
    }
}

/// One end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Station {
    /// Its hardware address.
    pub mac: MacAddress,
    /// Its address; both ends of a stream have one of the same version.
    pub ip: IpAddr,
    /// Its UDP port.
    pub port: u16,
}

/// Frames that belong together: one five-tuple, one sequence of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Its number, which is in every probe.
    pub number: u16,
    /// Who sends.
    pub source: Station,
    /// Who must receive.
    pub destination: Station,
    /// The VLAN; `None`: no tag.
    pub vlan: Option<u16>,
    /// To one or to many.
    pub cast: Cast,
    /// Who frames are addressed to when they are sent, if not their destination.
    pub gateway: Option<MacAddress>,
    /// Which receiving port a unicast stream comes to.
    pub receiver: Receiver,
}

/// The place of a port among the receiving ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Receiver {
    #[default]
    First,
    /// The last, which of one port is the first.
    Last,
    /// The one with this number, from 0; of fewer ports they are taken in turns.
    Nth(u16),
}

impl Receiver {
    /// The place, of so many.
    pub fn place(self, ports: usize) -> usize {
        match self {
            Self::First => 0,
            Self::Last => ports.saturating_sub(1),
            Self::Nth(number) => usize::from(number).checked_rem(ports).unwrap_or(0),
        }
    }
}

impl StreamPlan {
    /// The headers of all frames.
    pub fn headers(&self) -> Headers {
        Headers { ip: self.ip, tagged: !self.vlans.is_empty() }
    }

    /// The streams in the order in which they take turns.
    ///
    /// # Errors
    /// One line for no or too many streams, for a VLAN that cannot be, for a gateway that is a group, for broadcast over IPv6.
    pub fn streams(&self) -> Result<Vec<Stream>, String> {
        let count = u32::from(self.unicast) + u32::from(self.group) + u32::from(self.broadcast);
        if count == 0 || count > u32::from(STREAMS_MAX) {
            return Err(format!("{count} streams: there must be 1 to {STREAMS_MAX}"));
        }
        if self.ip == IpVersion::V6 && self.broadcast > 0 {
            return Err("IPv6 has no broadcast; send to groups, which come to every receiving port as well".to_owned());
        }
        if let Some(vlan) = self.vlans.iter().find(|vlan| **vlan == 0 || **vlan > VLAN_MAX) {
            return Err(format!("VLAN {vlan} does not exist; use 1 to {VLAN_MAX}"));
        }
        if self.direct_percent > 100 {
            return Err(format!("{} streams of 100 are direct: there can be 0 to 100", self.direct_percent));
        }
        if let Some(mac) = self.gateway.filter(|mac| mac.is_group()) {
            return Err(format!("gateway {mac} is a group address; give the router's own"));
        }
        Ok((0..count as u16).map(|number| self.stream(number)).collect())
    }

    fn stream(&self, number: u16) -> Stream {
        let cast = match number {
            number if number < self.unicast => Cast::Unicast,
            number if number - self.unicast < self.group => Cast::Group,
            _ => Cast::Broadcast,
        };
        let shuffled = shuffled(number, self.seed);
        let ports = scramble(self.seed ^ u64::from(number) << 32);
        // Above the well-known ports; each stream's ports are its own draw.
        let port = |bits: u64| 1024 + (bits % (65_536 - 1024)) as u16;
        let (source_ip, destination_ip) = match self.ip {
            IpVersion::V4 => ipv4_ends(cast, shuffled),
            IpVersion::V6 => ipv6_ends(cast, shuffled),
        };
        let destination_mac = match (cast, destination_ip) {
            (Cast::Unicast, _) => station_mac(1, shuffled),
            (Cast::Group, IpAddr::V4(group)) => MacAddress::of_ipv4_group(group),
            (Cast::Group, IpAddr::V6(group)) => MacAddress::of_ipv6_group(group),
            (Cast::Broadcast, _) => MacAddress::BROADCAST,
        };
        let source = Station { mac: station_mac(0, shuffled), ip: source_ip, port: port(ports & 0xffff_ffff) };
        let direct = self.is_direct(number);
        let gateway = self.gateway.filter(|_| cast == Cast::Unicast && !direct);
        let receiver = match self.gateway {
            Some(_) if direct => Receiver::Last,
            None if self.in_turn => Receiver::Nth(number),
            _ => Receiver::First,
        };
        let destination = Station { mac: destination_mac, ip: destination_ip, port: port(ports >> 32) };
        let turn = usize::from(number).checked_rem(self.vlans.len());
        Stream { number, source, destination, vlan: turn.map(|turn| self.vlans[turn]), cast, gateway, receiver }
    }

    /// Whether a stream is one of the direct ones, which are spread evenly among the others.
    fn is_direct(&self, number: u16) -> bool {
        let before = |number: u32| number * u32::from(self.direct_percent) / 100;
        before(u32::from(number) + 1) > before(u32::from(number))
    }
}

impl Stream {
    /// Headers of a frame of this stream, up to the probe. Over IPv4 the UDP checksum is 0 (none, RFC 768). Over IPv6, where there has
    /// to be one, it covers all but the payload, which whoever sends adds: [`weft_testbed::tester::Frames::of_seed`].
    pub fn head(&self, size: FrameSize) -> Vec<u8> {
        let mut head = Vec::with_capacity(Headers { ip: IpVersion::V6, tagged: true }.bytes());
        head.extend(self.gateway.unwrap_or(self.destination.mac).0);
        head.extend(self.source.mac.0);
        if let Some(vlan) = self.vlan {
            head.extend(ethertype::VLAN.to_be_bytes());
            head.extend(vlan.to_be_bytes());
        }
        let packet_len = size.kernel_bytes() as usize - head.len() - size_of::<u16>();
        match (self.source.ip, self.destination.ip) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                head.extend(ethertype::IPV4.to_be_bytes());
                let udp_len = (packet_len - ipv4::HEADER_LEN) as u16;
                let mut header = [0; ipv4::HEADER_LEN];
                ipv4::Header::new(source, destination, protocol::UDP, udp_len).emit_into(&mut header);
                head.extend(header);
                head.extend(self.udp(udp_len));
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                head.extend(ethertype::IPV6.to_be_bytes());
                let udp_len = (packet_len - ipv6::HEADER_LEN) as u16;
                let mut header = [0; ipv6::HEADER_LEN];
                let plain = ipv6::Header::new(source, destination, protocol::UDP, udp_len);
                ipv6::Header { flow_label: self.flow_label(), ..plain }.emit_into(&mut header);
                head.extend(header);
                let mut udp = self.udp(udp_len);
                // The pseudo-header has the length as well, and the header's bytes are summed where they are.
                let addresses = checksum::of_ipv6_segment(source, destination, protocol::UDP, &[]);
                let sum = checksum::extended(checksum::extended(addresses, &udp_len.to_be_bytes()), &udp);
                udp[6..].copy_from_slice(&(if sum == 0 { 0xffff } else { sum }).to_be_bytes());
                head.extend(udp);
            }
            ends => unreachable!("both ends of a stream speak one version: {ends:?}"),
        }
        head
    }

    /// The UDP header without a checksum.
    fn udp(&self, length: u16) -> [u8; udp::HEADER_LEN] {
        let [[a, b], [c, d], [e, f]] = [self.source.port, self.destination.port, length].map(u16::to_be_bytes);
        [a, b, c, d, e, f, 0, 0]
    }

    /// The same for all frames of a stream, and evenly spread over streams, as RFC 6437 wants it.
    fn flow_label(&self) -> u32 {
        let ports = u64::from(self.source.port) << 16 | u64::from(self.destination.port);
        scramble(u64::from(self.number) << 32 | ports) as u32 & ipv6::FLOW_LABEL_MAX
    }

    /// The stream of the answers: what the receiving station would send. Bridges learn from one such frame where it is.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self { source: self.destination, destination: self.source, gateway: None, ..self.clone() }
    }

    /// The station that frames must arrive at, as the analyser compares it: hardware address and VLAN (0: no tag).
    pub fn arrival(&self) -> ([u8; 6], u16) {
        (self.destination.mac.0, self.vlan.unwrap_or(0))
    }
}

/// Addresses of a sender and of whoever it sends to.
fn ipv4_ends(cast: Cast, host: u16) -> (IpAddr, IpAddr) {
    let of = |block: u32| Ipv4Addr::from(block | u32::from(host));
    let destination = match cast {
        Cast::Unicast => of(RECEIVERS),
        Cast::Group => of(GROUPS),
        Cast::Broadcast => Ipv4Addr::BROADCAST,
    };
    (of(SENDERS).into(), destination.into())
}

/// The same over IPv6, which has no broadcast.
fn ipv6_ends(cast: Cast, host: u16) -> (IpAddr, IpAddr) {
    let of = |[a, b, c, d]: [u16; 4], mark| Ipv6Addr::new(a, b, c, d, 0, 0, mark, host);
    let destination = if cast == Cast::Unicast { of(IPV6_RECEIVERS, 0) } else { of(IPV6_GROUPS, IPV6_GROUP_MARK) };
    (of(IPV6_SENDERS, 0).into(), destination.into())
}

/// A locally administered address: side 0 sends, side 1 receives.
fn station_mac(side: u8, shuffled: u16) -> MacAddress {
    let [high, low] = shuffled.to_be_bytes();
    MacAddress([0x02, 0x57, 0x54, side, high, low])
}

/// Another host number, 1 to 32768, for each stream and, mostly, for each seed: stations must not be neighbours in a
/// table only because they were numbered one after another. An odd factor permutes.
fn shuffled(number: u16, seed: u64) -> u16 {
    let key = scramble(seed);
    let (factor, offset) = (key as u32 | 1, (key >> 32) as u32);
    1 + (u32::from(number).wrapping_mul(factor).wrapping_add(offset) % 0x8000) as u16
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn size(bytes: u32, headers: Headers) -> FrameSize {
        FrameSize::new(bytes, 1500, headers).unwrap()
    }

    const PLAIN: Headers = Headers { ip: IpVersion::V4, tagged: false };
    const TAGGED: Headers = Headers { ip: IpVersion::V4, tagged: true };

    #[test]
    fn stations_are_behind_one_port_or_behind_all_in_turn() {
        let places = |in_turn: bool, ports: usize| -> Vec<usize> {
            let plan = StreamPlan { unicast: 4, in_turn, ..StreamPlan::default() };
            plan.streams().unwrap().iter().map(|stream| stream.receiver.place(ports)).collect()
        };
        assert_eq!(places(false, 4), [0, 0, 0, 0]);
        assert_eq!(places(true, 4), [0, 1, 2, 3]);
        assert_eq!(places(true, 3), [0, 1, 2, 0]);
    }

    #[test]
    fn ten_thousand_stations_are_ten_thousand_stations() {
        for seed in 0..20 {
            let plan = StreamPlan { unicast: STREAMS_MAX, seed, ..StreamPlan::default() };
            let streams = plan.streams().unwrap();
            let count =
                |of: fn(&Stream) -> Station| streams.iter().map(of).map(|s| (s.mac, s.ip)).collect::<HashSet<_>>();
            assert_eq!(count(|stream| stream.source).len(), usize::from(STREAMS_MAX), "seed {seed}");
            assert_eq!(count(|stream| stream.destination).len(), usize::from(STREAMS_MAX), "seed {seed}");
            let IpAddr::V4(first) = streams[0].source.ip else { panic!("IPv4 is the default") };
            assert_eq!(first.octets()[..2], [198, 18]);
            let hosts = streams.iter().map(|stream| match stream.source.ip {
                IpAddr::V4(ip) => u32::from(ip) & 0xffff,
                IpAddr::V6(_) => 0,
            });
            assert!(hosts.clone().all(|host| host != 0 && host != 0xffff), "seed {seed}");
            assert!(streams.iter().all(|stream| stream.source.port >= 1024 && !stream.source.mac.is_group()));
        }
    }

    #[test]
    fn the_seed_decides() {
        let of = |seed| StreamPlan { unicast: 100, seed, ..StreamPlan::default() }.streams().unwrap();
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn groups_and_vlans_take_their_turns() {
        let plan = StreamPlan { unicast: 2, group: 1, broadcast: 1, vlans: vec![10, 20], ..StreamPlan::default() };
        let streams = plan.streams().unwrap();
        assert_eq!(streams.iter().map(|stream| stream.vlan.unwrap()).collect::<Vec<_>>(), [10, 20, 10, 20]);
        assert_eq!(streams[2].cast, Cast::Group);
        let IpAddr::V4(group) = streams[2].destination.ip else { panic!("IPv4 is the default") };
        let [.., b, c, d] = group.octets();
        assert_eq!(streams[2].destination.mac.0, [0x01, 0x00, 0x5e, b & 0x7f, c, d]);
        assert_eq!((streams[3].cast, streams[3].destination.mac), (Cast::Broadcast, MacAddress::BROADCAST));
        assert!(streams[..2].iter().all(|stream| !stream.destination.mac.is_group()));
    }

    #[test]
    fn direct_streams_are_spread_among_those_with_a_gateway() {
        let gateway = MacAddress([2, 0, 0, 0, 0, 9]);
        let of = |direct_percent| {
            StreamPlan { unicast: 100, gateway: Some(gateway), direct_percent, ..StreamPlan::default() }
                .streams()
                .unwrap()
        };
        for percent in [0, 10, 25, 50, 75, 90, 100] {
            let streams = of(percent);
            let direct: Vec<&Stream> = streams.iter().filter(|stream| stream.receiver == Receiver::Last).collect();
            assert_eq!(direct.len(), usize::from(percent));
            assert!(direct.iter().all(|stream| stream.gateway.is_none()));
            let first_half = direct.iter().filter(|stream| stream.number < 50).count();
            assert!(first_half.abs_diff(direct.len() / 2) <= 1, "{percent}: {first_half}");
            assert_eq!(streams.iter().filter(|stream| stream.gateway == Some(gateway)).count(), 100 - direct.len());
            // The same stations, whoever their frames are addressed to.
            assert!(streams.iter().zip(of(0)).all(|(one, other)| one.destination == other.destination));
        }
        assert_eq!((Receiver::First.place(2), Receiver::Last.place(2), Receiver::Last.place(1)), (0, 1, 0));
        let alone = StreamPlan { unicast: 9, direct_percent: 100, ..StreamPlan::default() }.streams().unwrap();
        assert!(
            alone.iter().all(|stream| stream.receiver == Receiver::First),
            "without a gateway there is one network"
        );
    }

    #[test]
    fn heads_are_whole_frames_for_an_independent_reader() {
        let plan = StreamPlan { vlans: vec![42], ..StreamPlan::default() };
        let stream = &plan.streams().unwrap()[0];
        let head = stream.head(size(68, TAGGED));
        assert_eq!(head.len(), TAGGED.bytes());
        assert_eq!(head[12..18], [0x81, 0x00, 0, 42, 0x08, 0x00]);
        let mut packet = head[18..].to_vec();
        packet.resize(68 - 4 - 18, 0);
        let view = ipv4::View::new(&packet).unwrap();
        let ends: [IpAddr; 2] = [view.source().into(), view.destination().into()];
        assert_eq!(ends, [stream.source.ip, stream.destination.ip]);
        let datagram = udp::View::new(view.payload()).unwrap();
        assert_eq!((datagram.source_port(), datagram.payload().len()), (stream.source.port, 18));
        assert_eq!(stream.reversed().head(size(68, TAGGED))[..6], stream.source.mac.0);
        let plain = &StreamPlan::default().streams().unwrap()[0];
        assert_eq!(plain.head(size(1518, PLAIN)).len(), PLAIN.bytes());
    }

    #[test]
    fn ipv6_stations_are_in_their_networks_and_groups_of_the_site() {
        let plan = StreamPlan { ip: IpVersion::V6, unicast: 2, group: 1, ..StreamPlan::default() };
        let streams = plan.streams().unwrap();
        let segments = |ip: IpAddr| match ip {
            IpAddr::V6(ip) => ip.segments(),
            IpAddr::V4(ip) => panic!("{ip}"),
        };
        for stream in &streams {
            assert_eq!(segments(stream.source.ip)[..7], [0x2001, 2, 0, 1, 0, 0, 0]);
        }
        assert_eq!(segments(streams[0].destination.ip)[..7], [0x2001, 2, 0, 2, 0, 0, 0]);
        let group = segments(streams[2].destination.ip);
        assert_eq!(group[..7], [0xff15, 0, 0, 0, 0, 0, 0x5754]);
        let [high, low] = group[7].to_be_bytes();
        assert_eq!(streams[2].destination.mac.0, [0x33, 0x33, 0x57, 0x54, high, low]);
        let labels: HashSet<u32> = streams.iter().map(Stream::flow_label).collect();
        assert_eq!(labels.len(), 3, "each stream has its own");
    }

    #[test]
    fn an_ipv6_head_covers_all_but_the_payload() {
        let headers = Headers { ip: IpVersion::V6, tagged: true };
        let plan = StreamPlan { ip: IpVersion::V6, vlans: vec![42], unicast: 300, ..StreamPlan::default() };
        for stream in plan.streams().unwrap() {
            let mut frame = stream.head(size(88, headers));
            assert_eq!(frame.len(), headers.bytes());
            frame.resize(84, 0);
            assert_eq!(frame[12..18], [0x81, 0x00, 0, 42, 0x86, 0xdd]);
            let header = ipv6::Header::parse(&frame[18..]).unwrap();
            assert_eq!(
                [IpAddr::V6(header.source), header.destination.into()],
                [stream.source.ip, stream.destination.ip]
            );
            assert_eq!((header.payload_len, header.hop_limit, header.next_header), (26, 64, 17));
            let segment = &frame[18 + ipv6::HEADER_LEN..];
            // Over a whole segment with its checksum the sum is nothing.
            assert_eq!(checksum::of_ipv6_segment(header.source, header.destination, 17, segment), 0);
        }
        // 0 would be none, so it is all ones.
        let many = StreamPlan { ip: IpVersion::V6, unicast: STREAMS_MAX, ..StreamPlan::default() };
        let heads = many.streams().unwrap().into_iter().flat_map(|stream| {
            (84..92).map(move |bytes| stream.head(size(bytes, Headers { tagged: false, ..headers })))
        });
        let fields: Vec<_> = heads.map(|head| [head[60], head[61]]).collect();
        assert!(fields.contains(&[0xff; 2]) && !fields.contains(&[0; 2]));
    }

    #[test]
    fn plans_that_cannot_be_are_refused() {
        let refused = |plan: StreamPlan| plan.streams().unwrap_err();
        assert!(refused(StreamPlan { unicast: 0, ..StreamPlan::default() }).contains("0 streams"));
        assert!(refused(StreamPlan { unicast: STREAMS_MAX, group: 1, ..StreamPlan::default() }).contains("16385"));
        assert!(refused(StreamPlan { vlans: vec![1, 4095], ..StreamPlan::default() }).contains("VLAN 4095"));
        assert!(refused(StreamPlan { vlans: vec![0], ..StreamPlan::default() }).contains("VLAN 0"));
        assert!(refused(StreamPlan { direct_percent: 101, ..StreamPlan::default() }).contains("101 streams of 100"));
        let of_ipv6 = StreamPlan { ip: IpVersion::V6, broadcast: 1, ..StreamPlan::default() };
        assert!(refused(of_ipv6).contains("no broadcast"));
        let gateway = Some(MacAddress::BROADCAST);
        assert!(refused(StreamPlan { gateway, ..StreamPlan::default() }).contains("group address"));
    }
}
