//! Whom the DRB appoints (RFC 8139 section 2). Any choice conforms in which no VLAN has two forwarders; this one is spread over all who can,
//! and changes only for the VLANs of who comes or goes: for each block of VLANs the candidate with the highest hash (HRW). Who is
//! overloaded is chosen only where nobody else can (section 2.4).

use std::collections::BTreeMap;

use weft_wire::isis::SystemId;
use weft_wire::isis::hello::Appointment;
use weft_wire::vlan::{VLAN_MAX, VlanSet};

use super::Shared;
use crate::isis::config::Role;
use crate::isis::port::{Peer, Port};

/// VLANs of one block: so few that all blocks fit into a Hello.
const BLOCK: u16 = 256;
/// Ranges in one Hello; what does not fit stays with the DRB.
const RANGES_MAX: usize = 24;

/// Who may forward for what.
struct Candidate<'a> {
    system: SystemId,
    /// `None`: the DRB itself, which needs no appointment.
    nickname: Option<u16>,
    vlans: &'a VlanSet,
    is_overloaded: bool,
}

impl Port {
    /// Whom we appoint, if we are DRB and may.
    pub(super) fn appointments(
        &self,
        shared: &Shared,
        nickname: Option<u16>,
        overloaded: &[SystemId],
    ) -> Vec<Appointment> {
        // With mapped VLANs one forwarder serves all of them (RFC 6325 section 4.4.5).
        let is_mapped = shared.mapped_until_ns > 0 || self.adjacencies.values().any(|heard| heard.told.maps_vlans);
        if !self.is_up || shared.is_suspended() || !shared.leads() || is_mapped {
            return Vec::new();
        }
        let mut candidates = self.candidates(shared, nickname);
        candidates.iter_mut().for_each(|one| one.is_overloaded = overloaded.contains(&one.system));
        ranges(&candidates)
    }

    fn candidates<'a>(&'a self, shared: &'a Shared, nickname: Option<u16>) -> Vec<Candidate<'a>> {
        let mut all = Vec::new();
        let candidate = |system, nickname, vlans| Candidate { system, nickname, vlans, is_overloaded: false };
        if shared.config.role != Role::Trunk {
            all.push(candidate(shared.system, None, &shared.config.enabled));
        }
        // Of several ports of one RBridge that with the highest claim serves stations.
        let mut best: BTreeMap<SystemId, (u8, Peer)> = BTreeMap::new();
        for (peer, adjacency) in &self.adjacencies {
            let best = best.entry(peer.system).or_insert((adjacency.told.priority, *peer));
            *best = (adjacency.told.priority, *peer).max(*best);
        }
        for (peer, adjacency) in self.reported().filter(|(peer, _)| best[&peer.system].1 == *peer) {
            let told = &adjacency.told;
            if told.nickname != 0 && Some(told.nickname) != nickname && told.role == Some(Role::Hybrid) {
                all.push(candidate(peer.system, Some(told.nickname), &told.enabled));
            }
        }
        all
    }
}

/// The appointments of all VLANs in as few ranges as may be; what nobody has may be anywhere in them.
fn ranges(candidates: &[Candidate<'_>]) -> Vec<Appointment> {
    let mut ranges: Vec<Appointment> = Vec::new();
    let mut last = None;
    for vlan in 1..=VLAN_MAX {
        let able = candidates.iter().filter(|candidate| candidate.vlans.contains(vlan));
        let strength = |one: &&Candidate<'_>| (!one.is_overloaded, weight(one.system, vlan / BLOCK));
        let Some(chosen) = able.max_by_key(strength) else { continue };
        let goes_on = last == Some(chosen.nickname);
        last = Some(chosen.nickname);
        match (chosen.nickname, ranges.last_mut()) {
            (Some(_), Some(range)) if goes_on => range.end_vlan = vlan,
            (Some(nickname), _) => ranges.push(Appointment { nickname, start_vlan: vlan, end_vlan: vlan }),
            (None, _) => {}
        }
    }
    ranges.truncate(RANGES_MAX);
    ranges
}

/// A hash of the pair (SplitMix64's last step), then the system, so that no two are equal.
fn weight(system: SystemId, block: u16) -> (u64, SystemId) {
    let [a, b, c, d, e, f] = system.0;
    let [high, low] = block.to_be_bytes();
    let mut mixed = u64::from_be_bytes([high, low, a, b, c, d, e, f]).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31), system)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(number: u8, vlans: &VlanSet) -> Candidate<'_> {
        let nickname = (number > 0).then_some(u16::from(number));
        Candidate { system: SystemId([2, 0, 0, 0, 0, number]), nickname, vlans, is_overloaded: false }
    }

    fn forwarders(ranges: &[Appointment], vlan: u16) -> Vec<u16> {
        let of = |range: &&Appointment| (range.start_vlan..=range.end_vlan).contains(&vlan);
        ranges.iter().filter(of).map(|range| range.nickname).collect()
    }

    #[test]
    fn who_goes_moves_only_its_own_vlans() {
        let all = VlanSet::all();
        let of = |numbers: &[u8]| ranges(&numbers.iter().map(|number| candidate(*number, &all)).collect::<Vec<_>>());
        let (five, four) = (of(&[0, 1, 2, 3, 4]), of(&[0, 1, 2, 4]));
        let mut moved = 0;
        for vlan in 1..=VLAN_MAX {
            let (before, after) = (forwarders(&five, vlan), forwarders(&four, vlan));
            assert!(before.len() <= 1 && after.len() <= 1, "{vlan}");
            assert!(before == after || before == [3], "{vlan}: {before:?}, then {after:?}");
            moved += u32::from(before != after);
        }
        assert!((1..3000).contains(&moved), "{moved} VLANs moved");
    }

    #[test]
    fn a_range_never_holds_a_vlan_of_somebody_else() {
        let (odd, even): (VlanSet, VlanSet) = (1..=40).partition_of(|vlan| vlan % 2 == 1);
        let own = VlanSet::of_ranges(&[(50, 60)]);
        let list = ranges(&[candidate(0, &own), candidate(1, &odd), candidate(2, &even)]);
        assert_eq!(list.len(), RANGES_MAX, "what does not fit is left out");
        for vlan in 1..=24 {
            assert_eq!(forwarders(&list, vlan), [if vlan % 2 == 1 { 1 } else { 2 }]);
        }
        assert!((25..=60).all(|vlan| forwarders(&list, vlan).is_empty()));
    }

    trait PartitionOf {
        fn partition_of(self, first: impl Fn(u16) -> bool) -> (VlanSet, VlanSet);
    }

    impl PartitionOf for std::ops::RangeInclusive<u16> {
        fn partition_of(self, first: impl Fn(u16) -> bool) -> (VlanSet, VlanSet) {
            (self.clone().filter(|vlan| first(*vlan)).collect(), self.filter(|vlan| !first(*vlan)).collect())
        }
    }
}
