//! Why a fabric is refused: one line each, with the place.

use super::{DELAY_MAX, OutsideError, RATE_MAX, Role};
use crate::name::{INTERFACE_RULE, RULE};
use crate::overlay::Overlay;
use crate::units::{BitsPerSec, Bytes, Nanos};

/// Why a fabric is refused. Each message names the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Nothing in it.
    #[error("fabric `{0}` has no nodes")]
    Empty(String),
    /// The fabric's name breaks the rule of names.
    #[error("fabric name `{0}` is not usable: {RULE}")]
    BadName(String),
    /// A node's name breaks the rule of names.
    #[error("node name `{0}` is not usable: {RULE}")]
    BadNodeName(String),
    /// Two nodes share a name.
    #[error("two nodes are called `{0}`; rename one")]
    DuplicateNode(String),
    /// The names of two nodes differ in capital letters alone.
    #[error(
        "nodes `{other}` and `{node}` differ in capital letters alone, which names of hosts do not tell apart; rename one"
    )]
    AlikeNodes {
        node: String,
        /// The one before it.
        other: String,
    },
    /// An interface's name is empty, too long or has a character the kernel refuses.
    #[error("interface name `{interface}` on node `{node}` is not usable: {INTERFACE_RULE}")]
    BadInterfaceName { node: String, interface: String },
    /// Two links end at one port.
    #[error("two links end at `{node}:{interface}`; give one of them another interface")]
    DuplicatePort {
        node: String,
        /// The interface named twice.
        interface: String,
    },
    /// A link ends at a node that is not there.
    #[error("link `{link}` ends at node `{node}`, which is not among the nodes")]
    DanglingLink {
        /// The link as written.
        link: String,
        node: String,
    },
    /// A link has both ends at one node.
    #[error("link `{0}` connects a node with itself")]
    SelfLink(String),
    /// A link's rate is zero.
    #[error("link `{0}` has rate 0; give it a rate such as `20 Mbit/s`")]
    ZeroRate(String),
    /// A link's rate is beyond any there is.
    #[error("link `{link}` has rate {rate}; choose at most {RATE_MAX}")]
    AbsurdRate { link: String, rate: BitsPerSec },
    /// A link's delay is beyond any there is.
    #[error("link `{link}` has a delay of {delay}; choose at most {DELAY_MAX}")]
    AbsurdDelay { link: String, delay: Nanos },
    /// A packet is longer than a link carries.
    #[error(
        "packets of {packet_bytes} bytes, outer headers included, do not fit link `{link}`, whose MTU is {mtu_bytes}"
    )]
    PacketAboveMtu {
        link: String,
        /// Length of the IP packet.
        packet_bytes: u32,
        /// The link's MTU.
        mtu_bytes: u32,
    },
    /// A link's buffer cannot hold one frame.
    #[error("link `{link}` has a buffer of {buffer}, less than one frame of {mtu_bytes} bytes")]
    BufferTooSmall { link: String, buffer: Bytes, mtu_bytes: u32 },
    /// An MTU outside what IPv4 and veth allow.
    #[error("link `{link}` has MTU {mtu_bytes}; allowed are 576 to 65535")]
    BadMtu { link: String, mtu_bytes: u32 },
    /// A server is not connected to exactly one edge switch.
    #[error("{role:?} `{node}` has {links} links; it needs exactly one, to a Tor, Leaf or RBridge")]
    ServerLinks {
        node: String,
        role: Role,
        /// How many links it has.
        links: usize,
    },
    /// A server hangs below a switch that does not take servers.
    #[error("server `{node}` hangs below `{switch}`, which is no Tor, Leaf or RBridge")]
    ServerPlace { node: String, switch: String },
    /// A router of VLANs where there are none.
    #[error("router `{0}` is at home among RBridges only")]
    RouterPlace(String),
    /// RBridges beside switches of another kind.
    #[error("`{0}` is no RBridge; in a fabric with RBridges all switches must be such")]
    MixedSwitches(String),
    /// A switch's own kind cannot be.
    #[error("`{node}` cannot forward with `{overlay}`: {reason}")]
    Forwarding {
        node: String,
        /// What its file says.
        overlay: Overlay,
        reason: String,
    },
    /// VLAN or address of a host's link cannot be.
    #[error("link `{link}`: {reason}")]
    Access {
        link: String,
        /// What is wrong, and what to write.
        reason: String,
    },
    /// A gateway's address cannot be.
    #[error("gateway of VLAN {vlan}: {reason}")]
    Gateway { vlan: u16, reason: String },
    /// A service cannot be.
    #[error("service `{service}`: {reason}")]
    Service {
        service: String,
        /// What is wrong, and what to write.
        reason: String,
    },
    /// Broadcast cannot travel so.
    #[error("broadcast: {reason}")]
    Broadcast {
        /// What is wrong, and what to write.
        reason: String,
    },
    /// No DHCP server can be there.
    #[error("dhcp: {reason}")]
    Dhcp {
        /// What is wrong, and what to write.
        reason: String,
    },
    /// What the fabric says of the world outside cannot be.
    #[error(transparent)]
    Outside(#[from] OutsideError),
    /// Not every node can be reached from every other.
    #[error("node `{unreachable}` cannot be reached from `{from}`")]
    Disconnected {
        /// Where the search began.
        from: String,
        /// A node it did not reach.
        unreachable: String,
    },
    /// A generator's parameters make more than anything can carry.
    #[error("the fabric would have {links} links; the most is {most}: choose smaller switches or fewer of them")]
    TooManyLinks {
        /// How many it would have.
        links: u64,
        /// How many are allowed.
        most: u64,
    },
    /// A generator's parameter makes no fabric.
    #[error("{parameter} = {value} makes no fabric: {reason}")]
    BadParameter {
        parameter: &'static str,
        value: u64,
        /// Why it cannot be.
        reason: &'static str,
    },
}
