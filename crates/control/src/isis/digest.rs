//! What one fragment of an LSP says that routes, trees and nicknames depend on, read once when it comes in.

use weft_wire::isis::lsp::{CapabilitySub, NicknameRecord, TreeList};
use weft_wire::isis::{NodeId, Tlv, View};
use weft_wire::trill::nickname;

/// Most nicknames that one RBridge may hold (RFC 6325 section 3.7.3).
pub(super) const NICKNAMES_MAX: usize = 256;

/// Numbers of trees in an LSP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trees {
    pub(super) compute: u16,
    pub(super) max: u16,
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
    /// The first tree that it says it brings frames onto.
    pub(super) tree_used: Option<u16>,
    /// VLANs that it is interested in, first and last of each range.
    pub(super) vlans: Vec<(u16, u16)>,
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

    fn take(&mut self, tlv: Tlv) {
        match tlv {
            Tlv::Reach(neighbors) => self.neighbors.extend(neighbors.iter().map(|reach| (reach.node, reach.metric))),
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
            CapabilitySub::TreesUsed(list) => self.tree_used = self.tree_used.or(list.roots.first().copied()),
            CapabilitySub::InterestedVlans(interest) => {
                self.vlans.push((interest.start_vlan, interest.end_vlan));
            }
            _ => {}
        }
    }
}
