//! What goes into an RBridge's control plane, what comes out.

use std::sync::Arc;

use weft_wire::bpdu::BridgeId;
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::SystemId;
use weft_wire::listener::Listeners;
use weft_wire::vlan::VlanSet;

use super::adjacency::State;
use super::authentication::KeyChain;
use super::config::PortId;
use super::counters::{DropReason, Event};
use super::timing::Timing;
use crate::tally::Tally;

/// What happens to an RBridge.
#[derive(Debug)]
pub enum Input<'a> {
    /// A port can carry frames.
    PortUp(PortId),
    /// A port cannot carry frames any more.
    PortDown(PortId),
    /// An L2-IS-IS frame arrived (step 1 of RFC 6325 section 4.6.2 as corrected by RFC 7780 section 5.1.2).
    Pdu {
        port: PortId,
        /// VLAN of its outer tag, or that of the port for frames without; a point-to-point link does not look at it.
        vlan: u16,
        destination: MacAddress,
        source: MacAddress,
        /// What follows the Ethertype, padding included.
        bytes: &'a [u8],
    },
    /// A data frame with an RBridge Channel message or ESADI came in for us (RFC 7178 section 2.1.2).
    Channel {
        /// The whole frame, from its outer destination on.
        frame: &'a [u8],
    },
    /// A BPDU came in on a shared link, of bridges that have this root and may have heard of our [`Output::TopologyChange`].
    RootBridge { port: PortId, root: BridgeId, acknowledges_change: bool },
    /// The end stations are in these VLANs now, but for those of shared links.
    Interest(VlanSet),
    /// The end stations listen to these IP multicast groups now.
    Listeners(Listeners),
    /// Paths shall, or may again, lead through this RBridge.
    Overload(bool),
    /// Timers and keys are others from now on. What neighbours know is said again, so that they know of it.
    Configure {
        /// When things happen.
        timing: Timing,
        /// How PDUs are signed and checked.
        keys: Option<KeyChain>,
    },
    /// It ends for good, when others have had the time to find other ways:
    /// [`RBridge::has_left`](super::RBridge::has_left) tells when.
    Leave,
    /// The time of [`Machine::next_deadline_ns`](crate::Machine::next_deadline_ns) has come.
    Deadline,
}

/// What an RBridge wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a frame of Ethertype L2-IS-IS.
    Send {
        /// Over this port.
        port: PortId,
        /// In this VLAN; a point-to-point port may leave the tag out.
        vlan: u16,
        destination: MacAddress,
        /// Shared between ports when it is flooded.
        pdu: Arc<[u8]>,
    },
    /// Send a BFD Echo (RFC 7175 section 4).
    Echo {
        /// Over this port.
        port: PortId,
        /// The whole frame.
        frame: Arc<[u8]>,
    },
    /// Tell the bridges of a shared link that stations are behind another port of theirs (RFC 6325 section 4.9.3.3).
    TopologyChange {
        /// Over this port.
        port: PortId,
        /// The whole frame.
        frame: Arc<[u8]>,
    },
    /// An adjacency changed its state.
    Adjacency {
        port: PortId,
        /// With this neighbour.
        neighbor: SystemId,
        /// Whose port has this address.
        mac: MacAddress,
        /// The new state.
        state: State,
    },
    /// A port of a shared link carries frames of end stations in these VLANs from now on, and in no other: it is their
    /// appointed forwarder, and not inhibited (RFC 8139). A port that comes up carries none, but for what a [`Former`](super::Former) life left.
    Access { port: PortId, vlans: VlanSet },
    /// The RBridge holds these nicknames now, first the one that its frames come in with: keep them for the next start.
    Nicknames(Vec<u16>),
    /// Routes or trees are others now. Take over all of [`RBridge::forwarding`](super::RBridge::forwarding) in one step, or
    /// filters of what comes in before what goes out by them (RFC 6325 section 4.5.2).
    ForwardingChanged,
}

/// A next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// Over this port.
    pub port: PortId,
    /// To the neighbour with this address.
    pub mac: MacAddress,
}

/// A branch of a distribution tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreePort {
    /// It begins here.
    pub port: PortId,
    /// VLANs that somebody on it is interested in; frames of others are pruned (RFC 6325 section 4.5.3).
    pub vlans: VlanSet,
    /// IP multicast groups that somebody on it listens to; frames of others are pruned (RFC 6325 section 4.5.5).
    pub listeners: Listeners,
}

/// Everything an RBridge's control plane counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// PDUs, or parts of them, not used.
    pub dropped: Tally<DropReason>,
    /// The rest.
    pub events: Tally<Event>,
}
