//! What one fragment of an LSP says that routes, trees and nicknames depend on, read once when it comes in.

use weft_wire::isis::group::GroupSub;
use weft_wire::isis::lsp::{CapabilitySub, InterestedVlans, NicknameRecord, TreeList};
use weft_wire::isis::{NodeId, Tlv, View};
use weft_wire::listener::Group;
use weft_wire::trill::nickname;

/// Most nicknames that one RBridge may hold (RFC 6325 section 3.7.3).
pub(super) const NICKNAMES_MAX: usize = 256;

/// Numbers of trees in an LSP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trees {
    pub(super) compute: u16,
    pub(super) max: u16,
}

/// VLANs that an RBridge is interested in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    /// Whether every IPv4 group is wanted there, and every IPv6 group.
    pub(super) all_groups: (bool, bool),
    /// How often it has ceased to be the forwarder there.
    pub(super) forwarder_lost: u32,
}

/// The useful part of a fragment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest {
    /// Neighbours and the costs of sending to them.
    pub(super) neighbors: Vec<(NodeId, u32)>,
    pub(super) nicknames: Vec<NicknameRecord>,
    pub(super) trees: Option<Trees>,
    /// Roots that the originator asks for.
    pub(super) roots: Vec<TreeList>,
    /// Trees that it says it brings frames onto.
    pub(super) trees_used: Vec<u16>,
    /// VLANs that it is interested in.
    pub(super) vlans: Vec<Range>,
    /// IP multicast groups that it listens to.
    pub(super) groups: Vec<Group>,
    /// Longest LSP that the originator says it takes, bytes; in fragment 0 alone it counts.
    pub(super) lsp_buffer_bytes: Option<u16>,
    /// Nicknames that nobody may hold.
    pub(super) bad_nicknames: usize,
}

impl Digest {
    /// Reads an LSP; a withdrawal says nothing.
    pub(super) fn of(view: &View<'_>) -> Self {
        let mut digest = Self::default();
        if view.lsp().is_some_and(|header| header.lifetime_s > 0) {
            for (code, value) in view.tlvs() {
                digest.take(Tlv::parse(code, value));
            }
        }
        digest
    }

    /// Whether it tells of a neighbour of whom the other does not.
    pub(super) fn has_more_neighbors_than(&self, other: &Self) -> bool {
        let is_there = |node: &NodeId| other.neighbors.iter().any(|(there, _)| there == node);
        self.neighbors.iter().any(|(node, _)| !is_there(node))
    }

    fn take(&mut self, tlv: Tlv) {
        match tlv {
            Tlv::Reach(neighbors) => self.neighbors.extend(neighbors.iter().map(|reach| (reach.node, reach.metric))),
            Tlv::Groups(subs) => self.groups.extend(subs.iter().flat_map(GroupSub::groups)),
            Tlv::LspBufferSize(bytes) => {
                self.lsp_buffer_bytes = Some(self.lsp_buffer_bytes.map_or(bytes, |before| before.min(bytes)));
            }
            Tlv::Capability { subs, .. } => subs.into_iter().for_each(|sub| self.take_capability(sub)),
            _ => {}
        }
    }

    fn take_capability(&mut self, sub: CapabilitySub) {
        match sub {
            CapabilitySub::Nicknames(records) => {
                let (usable, bad): (Vec<_>, Vec<_>) =
                    records.into_iter().partition(|record| nickname::is_usable(record.nickname));
                self.bad_nicknames += bad.len();
                self.nicknames.extend(usable);
                self.nicknames.truncate(NICKNAMES_MAX);
            }
            CapabilitySub::Trees { compute, max, .. } => self.trees = Some(Trees { compute, max }),
            CapabilitySub::TreeRoots(list) => self.roots.push(list),
            CapabilitySub::TreesUsed(list) => self.trees_used.extend(list.roots),
            CapabilitySub::InterestedVlans(interest) => {
                let InterestedVlans { start_vlan, end_vlan, forwarder_lost, .. } = interest;
                let all_groups = (interest.all_ipv4_groups, interest.all_ipv6_groups);
                self.vlans.push(Range { first: start_vlan, last: end_vlan, all_groups, forwarder_lost });
            }
            _ => {}
        }
    }
}
