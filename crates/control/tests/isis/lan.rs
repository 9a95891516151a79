//! Shared links of the simulated campus: who is connected to which, in which of its parts, and which of them repeaters join.

use std::collections::BTreeSet;

use weft_control::isis::{PortId, SharedConfig};
use weft_wire::bpdu::BridgeId;
use weft_wire::vlan::VlanSet;

/// One RBridge's port on a shared link, as its owner wants it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) node: usize,
    pub(crate) cost: u32,
    pub(crate) config: SharedConfig,
    /// The VLAN that it wants for the link.
    pub(crate) designated_vlan: u16,
}

/// A port with its state.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    pub(crate) wanted: Member,
    pub(crate) port: PortId,
    pub(crate) is_up: bool,
    /// Ports in different parts do not hear each other.
    pub(crate) part: usize,
}

/// A shared link: bridges and wires that carry every frame to everybody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lan {
    pub(crate) members: Vec<Attached>,
    /// VLANs that its bridges do not carry.
    pub(crate) blocked: VlanSet,
}

/// All shared links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lans {
    pub(crate) all: Vec<Lan>,
    /// Pairs of links whose first parts a repeater joins.
    pub(crate) repeaters: BTreeSet<(usize, usize)>,
}

/// A member by its link and its place there.
pub(crate) type Seat = (usize, usize);

impl Lans {
    pub(crate) fn member(&self, (lan, at): Seat) -> &Attached {
        &self.all[lan].members[at]
    }

    pub(crate) fn seats(&self) -> impl Iterator<Item = Seat> + '_ {
        self.all.iter().enumerate().flat_map(|(lan, link)| (0..link.members.len()).map(move |at| (lan, at)))
    }

    /// All that hears what is sent from a seat, itself included, if its port is up.
    pub(crate) fn domain(&self, seat: Seat) -> Vec<Seat> {
        let reached = self.reached(seat);
        let hears = |seat: &Seat| self.member(*seat).is_up && reached.contains(&(seat.0, self.member(*seat).part));
        self.seats().filter(hears).collect()
    }

    /// Of the bridges that a seat is connected with, one in each part of a link, the root.
    pub(crate) fn root(&self, seat: Seat) -> Option<BridgeId> {
        self.reached(seat).first().map(|(lan, part)| BridgeId([0x80, 0, 2, 0, 0, 0, *lan as u8, *part as u8]))
    }

    /// Parts of links that a seat whose port is up is connected with.
    fn reached(&self, (lan, at): Seat) -> BTreeSet<(usize, usize)> {
        if !self.member((lan, at)).is_up {
            return BTreeSet::new();
        }
        let mut reached = BTreeSet::from([(lan, self.member((lan, at)).part)]);
        loop {
            let joined = self.repeaters.iter().flat_map(|(a, b)| [((*a, 0), (*b, 0)), ((*b, 0), (*a, 0))]);
            let more: Vec<_> = joined.filter(|(from, _)| reached.contains(from)).map(|(_, to)| to).collect();
            let before = reached.len();
            reached.extend(more);
            if reached.len() == before {
                return reached;
            }
        }
    }

    /// Every set of ports that hear each other, once.
    pub(crate) fn domains(&self) -> BTreeSet<Vec<Seat>> {
        self.seats().map(|seat| self.domain(seat)).filter(|domain| !domain.is_empty()).collect()
    }
}
