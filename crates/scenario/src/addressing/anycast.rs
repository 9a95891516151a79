//! Anycast LAs and who owns them while Intermediates fail and return (VL2 4.2.2).
//!
//! All Intermediates share one anycast LA as long as a switch can spread over so many next hops. If there are more,
//! they are dealt out to several groups, none larger than the ECMP width. When the last owner of an address fails,
//! another Intermediate stands in for it until an owner returns; agents notice nothing.
//!
//! In a lab every owner has the address on its loopback and OSPF announces it, so within a group routing and ECMP take
//! over by themselves; only the moves decided here are carried out, by the lab's actuator of faults.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use crate::id::NodeId;
use crate::topology::{Fabric, Role};

/// Where the groups' addresses begin.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 1);
/// Most groups: `10.255.255.1` to `10.255.255.254`.
pub(super) const GROUPS_MAX: usize = 254;

/// Intermediates that share one anycast LA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnycastGroup {
    /// The shared LA.
    pub address: Ipv4Addr,
    /// Who owns it now.
    pub members: Vec<NodeId>,
}

/// A change of an anycast LA's owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnycastChange {
    /// The Intermediate owns the address from now on.
    Takes(NodeId, Ipv4Addr),
    /// The Intermediate gives the address up.
    Releases(NodeId, Ipv4Addr),
}

/// The groups, who belongs where, and who is down.
#[derive(Clone, Debug)]
pub(super) struct Anycast {
    groups: Vec<AnycastGroup>,
    home: BTreeMap<NodeId, usize>,
    failed: BTreeSet<NodeId>,
}

impl Anycast {
    /// Deals the Intermediates out to as few groups as `ecmp_width` allows; the groups differ by one member at most.
    pub(super) fn new(fabric: &Fabric, ecmp_width: usize) -> Self {
        let intermediates: Vec<NodeId> = fabric.with_role(Role::Intermediate).collect();
        let count = intermediates.len().div_ceil(ecmp_width);
        let groups = (0..count)
            .map(|group| AnycastGroup {
                address: Ipv4Addr::from(u32::from(FIRST) + group as u32),
                members: intermediates.iter().copied().skip(group).step_by(count).collect(),
            })
            .collect();
        let home = intermediates.iter().enumerate().map(|(place, node)| (*node, place % count)).collect();
        Self { groups, home, failed: BTreeSet::new() }
    }

    pub(super) fn groups(&self) -> &[AnycastGroup] {
        &self.groups
    }

    /// Takes a failed Intermediate out of every group and finds a stand-in for each address that lost its last owner.
    pub(super) fn fail(&mut self, node: NodeId) -> Vec<(Ipv4Addr, NodeId)> {
        if !self.home.contains_key(&node) || !self.failed.insert(node) {
            return Vec::new();
        }
        for group in &mut self.groups {
            group.members.retain(|member| *member != node);
        }
        let mut moved = Vec::new();
        for orphan in 0..self.groups.len() {
            if self.groups[orphan].members.is_empty()
                && let Some(successor) = self.successor()
            {
                self.groups[orphan].members.push(successor);
                moved.push((self.groups[orphan].address, successor));
            }
        }
        moved
    }

    /// Gives a recovered Intermediate its address back, ends what stood in for it, and lets it take addresses that
    /// nobody owns. What it takes comes first, so that no address is without an owner in between.
    pub(super) fn repair(&mut self, node: NodeId) -> Vec<AnycastChange> {
        if !self.failed.remove(&node) {
            return Vec::new();
        }
        let home = self.home[&node];
        let mut taken = Vec::new();
        let mut released = Vec::new();
        for (place, group) in self.groups.iter_mut().enumerate() {
            if place == home {
                let stand_ins = group.members.extract_if(.., |member| self.home[member] != home);
                released.extend(stand_ins.map(|member| AnycastChange::Releases(member, group.address)));
            }
            if place == home || group.members.is_empty() {
                group.members.push(node);
                group.members.sort_unstable();
                taken.push(AnycastChange::Takes(node, group.address));
            }
        }
        taken.extend(released);
        taken
    }

    /// Who stands in next: of the Intermediates with the fewest addresses, one whose group has the most members left;
    /// of those the lowest id. `None` if all are down.
    fn successor(&self) -> Option<NodeId> {
        let alive = self.home.iter().filter(|(node, _)| !self.failed.contains(node));
        let load = |node: NodeId| self.groups.iter().filter(|group| group.members.contains(&node)).count();
        let spare = |home: usize| self.groups[home].members.len();
        alive.min_by_key(|(node, home)| (load(**node), std::cmp::Reverse(spare(**home)), **node)).map(|(node, _)| *node)
    }
}
