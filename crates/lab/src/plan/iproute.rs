//! What iproute2 is told to make a node, as values: who moves a server or mends a link asks them by their type. Their
//! `Display` is the one place that writes lines of `ip -batch`, `bridge -batch` and `tc -batch`.

use std::fmt::{self, Formatter};
use std::net::Ipv4Addr;

use weft_scenario::topology::InterfaceAddress;
use weft_wire::block::Block;
use weft_wire::ethernet::MacAddress;

/// Everything.
pub(crate) const DEFAULT: Block = Block::of(Ipv4Addr::UNSPECIFIED, 0);

/// A link to be made, by its end in this namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewLink {
    pub(crate) end: End,
    pub(crate) kind: LinkKind,
}

/// An end of a link; what is `None` the kernel chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) device: String,
    pub(crate) mac: Option<MacAddress>,
    pub(crate) mtu: Option<u32>,
}

/// What a link is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkKind {
    /// A pair whose other end may be in another namespace.
    Veth {
        peer: End,
        namespace: Option<String>,
    },
    /// A VXLAN device that learns, without a UDP checksum; or, with its `underlay`, one that is told everything.
    Vxlan {
        vni: u32,
        local: Ipv4Addr,
        underlay: Option<String>,
    },
    Bridge {
        spanning_tree: bool,
    },
}

/// A line of `ip` that configures what is there. All but [`Ip::Add`] may be repeated without harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ip {
    /// Makes a link that needs another one or its addresses first.
    Add(NewLink),
    Set {
        device: String,
        up: bool,
    },
    /// Makes a link a port of a bridge.
    Master {
        device: String,
        bridge: String,
    },
    /// Limits the segments in what TCP hands to a link.
    SegmentLimit {
        device: String,
        segments: u32,
    },
    Address {
        address: InterfaceAddress,
        device: String,
        network: Network,
    },
    /// A neighbour that stays.
    Neighbour {
        address: Ipv4Addr,
        mac: MacAddress,
        device: String,
    },
    Route(Route),
}

/// What an address says of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    OnLink,
    Elsewhere,
    /// The same, and programs that tell others where they are must choose another address.
    Hidden,
}

/// A route; to nowhere without a `device`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) to: Block,
    pub(crate) via: Option<Ipv4Addr>,
    pub(crate) device: Option<String>,
    /// With which address; a gateway is then taken to be on the link, whatever its addresses say.
    pub(crate) source: Option<Ipv4Addr>,
    pub(crate) metrics: Metrics,
}

/// Metrics of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    /// Segments of the initial window and the smallest timeout in milliseconds.
    pub(crate) start: Option<(u32, u64)>,
    /// The largest packet, where the link is wider.
    pub(crate) mtu: Option<u32>,
}

/// An entry of a VXLAN device's forwarding database: to a station, or, with the MAC 0, one of those that what is for many is
/// copied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forward {
    pub(crate) mac: MacAddress,
    pub(crate) device: String,
    pub(crate) peer: Ipv4Addr,
}

/// The queues of a link's end; see [`crate::shaping`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortQueue {
    pub(crate) device: String,
    /// Whether the kernel counts the bytes of layer 1 itself.
    pub(crate) counts_layer1: bool,
    /// Bits per second of both classes.
    pub(crate) rate: u64,
    pub(crate) burst: u64,
    /// The same for routing.
    pub(crate) control_burst: u64,
    /// Bytes by which the classes take turns.
    pub(crate) quantum: u64,
    /// Bytes that wait.
    pub(crate) buffer: u64,
}

impl NewLink {
    /// A pair of devices.
    pub(crate) fn pair(end: End, peer: End, namespace: Option<String>) -> Self {
        Self { end, kind: LinkKind::Veth { peer, namespace } }
    }
}

impl End {
    pub(crate) fn new(device: &str, mac: Option<MacAddress>, mtu: Option<u32>) -> Self {
        Self { device: device.to_owned(), mac, mtu }
    }
}

impl PortQueue {
    /// Lines that give classes that are there this rate.
    pub(crate) fn rates(&self) -> [String; 2] {
        [(1, self.burst), (2, self.control_burst)].map(|(class, burst)| self.class("change", class, burst))
    }

    fn class(&self, verb: &str, class: u32, burst: u64) -> String {
        let Self { device, rate, quantum, .. } = self;
        format!(
            "class {verb} dev {device} parent 1: classid 1:{class} htb rate {rate}bit burst {burst} cburst {burst} quantum {quantum}"
        )
    }

    /// Lines that let frames wait in the classes as they do, in the place of whatever they wait in.
    pub(crate) fn plain(&self) -> [String; 2] {
        self.leaves("replace")
    }

    fn leaves(&self, verb: &str) -> [String; 2] {
        let Self { device, buffer, .. } = self;
        [
            format!("qdisc {verb} dev {device} parent 1:1 handle 10: bfifo limit {buffer}"),
            format!("qdisc {verb} dev {device} parent 1:2 handle 20: pfifo limit 1000"),
        ]
    }

    /// Lines that let frames of both classes wait in the kernel's network emulator, told this; at most `frames` of data.
    pub(crate) fn emulated(&self, told: &str, frames: u64) -> [String; 2] {
        let device = &self.device;
        [(1, 30, frames), (2, 40, 1000)].map(|(class, handle, limit)| {
            format!("qdisc replace dev {device} parent 1:{class} handle {handle}: netem limit {limit} {told}")
        })
    }
}

impl Ip {
    pub(crate) fn up(device: &str) -> Self {
        Self::Set { device: device.to_owned(), up: true }
    }

    pub(crate) fn address(address: Ipv4Addr, length: u8, device: &str, network: Network) -> Self {
        Self::Address { address: InterfaceAddress { address, length }, device: device.to_owned(), network }
    }

    /// A host behind a port: its neighbour and its route.
    pub(crate) fn host(address: Ipv4Addr, mac: MacAddress, device: &str) -> [Self; 2] {
        let to = Block::host(address);
        [Self::Neighbour { address, mac, device: device.to_owned() }, Self::Route(Route::on_link(to, device, None))]
    }

    /// What is nowhere else goes nowhere.
    pub(crate) fn unreachable(to: Block) -> Self {
        Self::Route(Route { to, via: None, device: None, source: None, metrics: Metrics::default() })
    }

    /// The link that it is about.
    pub(crate) fn device(&self) -> Option<&str> {
        match self {
            Self::Add(link) => Some(&link.end.device),
            Self::Set { device, .. }
            | Self::Master { device, .. }
            | Self::SegmentLimit { device, .. }
            | Self::Address { device, .. }
            | Self::Neighbour { device, .. } => Some(device),
            Self::Route(route) => route.device.as_deref(),
        }
    }
}

impl Route {
    /// To what is behind a link.
    pub(crate) fn on_link(to: Block, device: &str, source: Option<Ipv4Addr>) -> Self {
        Self { to, via: None, device: Some(device.to_owned()), source, metrics: Metrics::default() }
    }

    /// To what is behind a gateway.
    pub(crate) fn by(to: Block, via: Ipv4Addr, device: &str, source: Option<Ipv4Addr>) -> Self {
        Self { via: Some(via), ..Self::on_link(to, device, source) }
    }

    /// With what TCP is told.
    pub(crate) fn with(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }
}

impl fmt::Display for NewLink {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "link add dev {} type ", self.end)?;
        match &self.kind {
            LinkKind::Veth { peer, namespace } => {
                write!(f, "veth peer name {peer}")?;
                namespace.iter().try_for_each(|namespace| write!(f, " netns {namespace}"))
            }
            LinkKind::Vxlan { vni, local, underlay } => {
                write!(f, "vxlan id {vni} dstport 4789 local {local}")?;
                match underlay {
                    Some(underlay) => write!(f, " dev {underlay} nolearning"),
                    None => write!(f, " noudpcsum"),
                }
            }
            LinkKind::Bridge { spanning_tree } => {
                write!(f, "bridge{} mcast_snooping 0", if *spanning_tree { " stp_state 1" } else { "" })
            }
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.device)?;
        self.mac.iter().try_for_each(|mac| write!(f, " address {}", mac))?;
        self.mtu.iter().try_for_each(|mtu| write!(f, " mtu {mtu}"))
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(link) => write!(f, "{link}"),
            Self::Set { device, up } => write!(f, "link set dev {device} {}", if *up { "up" } else { "down" }),
            Self::Master { device, bridge } => write!(f, "link set dev {device} master {bridge}"),
            Self::SegmentLimit { device, segments } => write!(f, "link set dev {device} gso_max_segs {segments}"),
            Self::Address { address, device, network } => {
                let network = ["", " noprefixroute", " noprefixroute scope link"][*network as usize];
                write!(f, "addr replace {address} dev {device}{network}")
            }
            Self::Neighbour { address, mac, device } => {
                write!(f, "neigh replace {address} lladdr {mac} dev {device} nud permanent")
            }
            Self::Route(route) => write!(f, "{route}"),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let to = if self.to == DEFAULT { "default".to_owned() } else { self.to.to_string() };
        let Some(device) = &self.device else { return write!(f, "route replace unreachable {to}") };
        write!(f, "route replace {to}")?;
        self.via.iter().try_for_each(|via| write!(f, " via {via}"))?;
        write!(f, " dev {device}")?;
        let kind = if self.via.is_some() { "onlink" } else { "proto kernel scope link" };
        self.source.iter().try_for_each(|source| write!(f, " {kind} src {source}"))?;
        write!(f, "{}", self.metrics)
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.start.iter().try_for_each(|(window, ms)| write!(f, " initcwnd {window} rto_min {ms}ms"))?;
        self.mtu.iter().try_for_each(|mtu| write!(f, " mtu {mtu}"))
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let verb = if self.mac.0 == [0; 6] { "append" } else { "replace" };
        write!(f, "fdb {verb} {} dev {} dst {} self permanent", self.mac, self.device, self.peer)
    }
}

impl fmt::Display for PortQueue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { device, burst, control_burst, .. } = self;
        let stab = if self.counts_layer1 { " stab overhead 24 linklayer ethernet" } else { "" };
        writeln!(f, "qdisc add dev {device} root handle 1:{stab} htb default 1")?;
        for (class, burst) in [(1, burst), (2, control_burst)] {
            writeln!(f, "{}", self.class("add", class, *burst))?;
        }
        write!(f, "{}", self.leaves("add").join("\n"))?;
        let control =
            [("ip", 1, "ip protocol 89 0xff"), ("ip", 1, "ip tos 0xc0 0xfc"), ("arp", 2, "u32 0 0")].into_iter();
        control.into_iter().try_for_each(|(protocol, preference, what)| {
            write!(
                f,
                "\nfilter add dev {device} parent 1: protocol {protocol} prio {preference} u32 match {what} flowid 1:2"
            )
        })
    }
}
