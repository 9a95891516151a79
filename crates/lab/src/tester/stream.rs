//! What is sent: streams between simulated stations, all from a seed.
//!
//! Addresses are of the block that IANA set aside for this (198.18.0.0/15, RFC 2544 appendix C): senders in its lower
//! half, receivers in its upper half. Two runs with one seed send the same bytes, up to time stamps.

use std::net::Ipv4Addr;

use weft_scenario::random::scramble;
use weft_wire::ethernet::{MacAddress, ethertype};
use weft_wire::ipv4::{self, protocol};
use weft_wire::vlan::{TAG_LEN, VLAN_MAX};
use weft_wire::{ethernet, udp};

use super::rate::FrameSize;

/// Most streams at once.
pub const STREAMS_MAX: u16 = 16_384;
/// Headers in front of the probe without and with a VLAN tag, bytes.
pub const HEAD_BYTES: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN + udp::HEADER_LEN;
/// The same with a tag.
pub const TAGGED_HEAD_BYTES: usize = HEAD_BYTES + TAG_LEN;

const SENDERS: u32 = 0xc612_0000; // 198.18.0.0
const RECEIVERS: u32 = 0xc613_0000; // 198.19.0.0
const GROUPS: u32 = 0xefc6_0000; // 239.198.0.0, administratively scoped (RFC 2365)

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
    /// What addresses and ports come from.
    pub seed: u64,
}

impl Default for StreamPlan {
    fn default() -> Self {
        Self { unicast: 1, group: 0, broadcast: 0, vlans: Vec::new(), gateway: None, direct_percent: 0, seed: 1 }
    }
}

/// One end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Station {
    /// Its hardware address.
    pub mac: MacAddress,
    /// Its address.
    pub ip: Ipv4Addr,
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
}

impl Receiver {
    /// The place, of so many.
    pub fn place(self, ports: usize) -> usize {
        match self {
            Self::First => 0,
            Self::Last => ports.saturating_sub(1),
        }
    }
}

impl StreamPlan {
    /// Whether frames carry a VLAN tag.
    pub fn is_tagged(&self) -> bool {
        !self.vlans.is_empty()
    }

    /// The streams in the order in which they take turns.
    ///
    /// # Errors
    /// One line for no or too many streams, for a VLAN that cannot be, for a gateway that is a group.
    pub fn streams(&self) -> Result<Vec<Stream>, String> {
        let count = u32::from(self.unicast) + u32::from(self.group) + u32::from(self.broadcast);
        if count == 0 || count > u32::from(STREAMS_MAX) {
            return Err(format!("{count} streams: there must be 1 to {STREAMS_MAX}"));
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
        let source = Station {
            mac: station_mac(0, shuffled),
            ip: Ipv4Addr::from(SENDERS | u32::from(shuffled)),
            port: port(ports & 0xffff_ffff),
        };
        let destination_ip = match cast {
            Cast::Unicast => Ipv4Addr::from(RECEIVERS | u32::from(shuffled)),
            Cast::Group => Ipv4Addr::from(GROUPS | u32::from(shuffled)),
            Cast::Broadcast => Ipv4Addr::BROADCAST,
        };
        let destination_mac = match cast {
            Cast::Unicast => station_mac(1, shuffled),
            Cast::Group => MacAddress::of_ipv4_group(destination_ip),
            Cast::Broadcast => MacAddress::BROADCAST,
        };
        let direct = self.is_direct(number);
        let gateway = self.gateway.filter(|_| cast == Cast::Unicast && !direct);
        let receiver = if self.gateway.is_some() && direct { Receiver::Last } else { Receiver::First };
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
    /// Headers of a frame of this stream, up to the probe: [`HEAD_BYTES`] or [`TAGGED_HEAD_BYTES`]. The UDP checksum is 0
    /// (none, RFC 768): time stamps change with every frame.
    pub fn head(&self, size: FrameSize) -> Vec<u8> {
        let mut head = Vec::with_capacity(TAGGED_HEAD_BYTES);
        head.extend(self.gateway.unwrap_or(self.destination.mac).0);
        head.extend(self.source.mac.0);
        if let Some(vlan) = self.vlan {
            head.extend(ethertype::VLAN.to_be_bytes());
            head.extend(vlan.to_be_bytes());
        }
        head.extend(ethertype::IPV4.to_be_bytes());
        let udp_len = size.kernel_bytes() as usize - head.len() - ipv4::HEADER_LEN;
        let mut header = [0; ipv4::HEADER_LEN];
        ipv4::Header::new(self.source.ip, self.destination.ip, protocol::UDP, udp_len as u16).emit_into(&mut header);
        head.extend(header);
        head.extend(self.source.port.to_be_bytes());
        head.extend(self.destination.port.to_be_bytes());
        head.extend((udp_len as u16).to_be_bytes());
        head.extend([0, 0]);
        head
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

    fn size(bytes: u32, tagged: bool) -> FrameSize {
        FrameSize::new(bytes, 1500, tagged).unwrap()
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
            let hosts = streams.iter().map(|stream| u32::from(stream.source.ip) & 0xffff);
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
        let [.., b, c, d] = streams[2].destination.ip.octets();
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
        let head = stream.head(size(68, true));
        assert_eq!(head.len(), TAGGED_HEAD_BYTES);
        assert_eq!(head[12..18], [0x81, 0x00, 0, 42, 0x08, 0x00]);
        let mut packet = head[18..].to_vec();
        packet.resize(68 - 4 - 18, 0);
        let view = ipv4::View::new(&packet).unwrap();
        assert_eq!((view.source(), view.destination()), (stream.source.ip, stream.destination.ip));
        let datagram = udp::View::new(view.payload()).unwrap();
        assert_eq!((datagram.source_port(), datagram.payload().len()), (stream.source.port, 18));
        assert_eq!(stream.reversed().head(size(68, true))[..6], stream.source.mac.0);
        let plain = &StreamPlan::default().streams().unwrap()[0];
        assert_eq!(plain.head(size(1518, false)).len(), HEAD_BYTES);
    }

    #[test]
    fn plans_that_cannot_be_are_refused() {
        let refused = |plan: StreamPlan| plan.streams().unwrap_err();
        assert!(refused(StreamPlan { unicast: 0, ..StreamPlan::default() }).contains("0 streams"));
        assert!(refused(StreamPlan { unicast: STREAMS_MAX, group: 1, ..StreamPlan::default() }).contains("16385"));
        assert!(refused(StreamPlan { vlans: vec![1, 4095], ..StreamPlan::default() }).contains("VLAN 4095"));
        assert!(refused(StreamPlan { vlans: vec![0], ..StreamPlan::default() }).contains("VLAN 0"));
        assert!(refused(StreamPlan { direct_percent: 101, ..StreamPlan::default() }).contains("101 streams of 100"));
        let gateway = Some(MacAddress::BROADCAST);
        assert!(refused(StreamPlan { gateway, ..StreamPlan::default() }).contains("group address"));
    }
}
