//! What of our LSP goes into which fragment. What has a place keeps it, so that a change touches few fragments and
//! nothing is missing anywhere while it spreads (ISO 10589 section 7.3.3, RFC 7176 section 2.3.6).

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::isis::NodeId;
use weft_wire::listener::Group;

/// Fragments of one LSP.
const FRAGMENTS_MAX: usize = 256;
/// Neighbours in one TLV.
pub(super) const REACH_MAX: usize = 255 / REACH_LEN;
/// Ranges of VLANs in one TLV.
pub(super) const RANGES_MAX: usize = (255 - CAPABILITY_LEN) / RANGE_LEN;
const TLV_HEADER_LEN: usize = 2;
const REACH_LEN: usize = 11;
/// Router ID and flags.
const CAPABILITY_LEN: usize = 5;
const RANGE_LEN: usize = 12;
/// Groups in one TLV, all of one VLAN.
pub(super) const GROUPS_MAX: usize = (255 - SUB_LEN) / RECORD_LEN;
/// Header of a sub-TLV, topology, VLAN, number of records.
const SUB_LEN: usize = 7;
const RECORD_LEN: usize = 7;
/// What a group takes at most: a TLV of its own.
const GROUP_LEN_MAX: usize = TLV_HEADER_LEN + SUB_LEN + RECORD_LEN;

/// The smallest part of what we say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// A link; `nth` tells parallel links of one cost apart.
    Link { neighbor: NodeId, cost: u32, nth: u16 },
    /// A range of VLANs that are alike.
    Vlans(u16, u16, Interest),
    /// An IP multicast group that is listened to.
    Group(Group),
}

/// What is said of a range of VLANs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Interest {
    /// How often we have ceased to be the forwarder of any of them.
    pub(super) forwarder_lost: u32,
    /// Whether every group of IPv4 is wanted, and every one of IPv6.
    pub(super) all_groups: (bool, bool),
}

impl Item {
    /// Whether `self` may say what `old` said before.
    fn replaces(self, old: Self) -> bool {
        match (self, old) {
            (Self::Vlans(first, last, _), Self::Vlans(old_first, old_last, _)) => {
                first <= old_last && old_first <= last
            }
            (Self::Link { neighbor, .. }, Self::Link { neighbor: old, .. }) => neighbor == old,
            _ => self == old,
        }
    }
}

/// How full a fragment is.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    links: usize,
    ranges: usize,
    groups: usize,
}

impl Load {
    fn with(self, item: Item) -> Self {
        match item {
            Item::Link { .. } => Self { links: self.links + 1, ..self },
            Item::Vlans(..) => Self { ranges: self.ranges + 1, ..self },
            Item::Group(_) => Self { groups: self.groups + 1, ..self },
        }
    }

    /// Bytes of the TLVs.
    fn len_bytes(self) -> usize {
        let links = self.links * REACH_LEN + self.links.div_ceil(REACH_MAX) * TLV_HEADER_LEN;
        let capability = TLV_HEADER_LEN + CAPABILITY_LEN;
        let ranges = self.ranges * RANGE_LEN + self.ranges.div_ceil(RANGES_MAX) * capability;
        links + ranges + self.groups * GROUP_LEN_MAX
    }
}

/// Every item's fragment.
#[derive(Debug, Default)]
pub(super) struct Packing {
    places: BTreeMap<Item, u8>,
    /// Pairs of fragments: the first took something over from the second.
    taken_over: BTreeSet<(u8, u8)>,
}

impl Packing {
    /// Finds a place for every item; `room` tells how many bytes of a fragment may be used. Returns whether all fit.
    pub(super) fn pack(&mut self, items: &BTreeSet<Item>, room: impl Fn(u8) -> usize) -> bool {
        let old = std::mem::take(&mut self.places);
        let mut loads = [Load::default(); FRAGMENTS_MAX];
        let mut fits = |at: u8, item: Item| {
            let load = loads[usize::from(at)].with(item);
            let fits = load.len_bytes() <= room(at);
            if fits {
                loads[usize::from(at)] = load;
            }
            fits
        };
        let (kept, new): (Vec<Item>, Vec<Item>) =
            items.iter().partition(|item| old.get(item).is_some_and(|at| fits(*at, **item)));
        self.places.extend(kept.into_iter().map(|item| (item, old[&item])));
        self.taken_over.clear();
        let left: Vec<(Item, u8)> = old.into_iter().filter(|(item, _)| !self.places.contains_key(item)).collect();
        // Fragments that what stays has to leave. They give, and do not take as well while there is room elsewhere: who gives
        // and takes could not be told in an order in which nothing is missing.
        let is_full: BTreeSet<u8> = left.iter().filter(|(item, _)| items.contains(item)).map(|(_, at)| *at).collect();
        let others = || (0..=u8::MAX).filter(|at| !is_full.contains(at)).chain(is_full.iter().copied());
        let mut all_fit = true;
        for item in new {
            let nearby: BTreeSet<u8> =
                left.iter().filter(|(old, _)| item.replaces(*old)).map(|(_, from)| *from).collect();
            let Some(at) = nearby.iter().copied().chain(others()).find(|at| fits(*at, item)) else {
                all_fit = false;
                continue;
            };
            self.places.insert(item, at);
            self.taken_over.extend(nearby.into_iter().filter(|from| *from != at).map(|from| (at, from)));
        }
        all_fit
    }

    /// The items of each fragment that has any, in order.
    pub(super) fn fragments(&self) -> BTreeMap<u8, Vec<Item>> {
        let mut fragments: BTreeMap<u8, Vec<Item>> = BTreeMap::new();
        for (item, at) in &self.places {
            fragments.entry(*at).or_default().push(*item);
        }
        fragments
    }

    /// The order in which `fragments` are to be told: who took something over comes before whom it was taken from.
    pub(super) fn order(&self, fragments: impl IntoIterator<Item = u8>) -> Vec<u8> {
        let mut left: BTreeSet<u8> = fragments.into_iter().collect();
        let mut order = Vec::with_capacity(left.len());
        while let Some(lowest) = left.first().copied() {
            let waits = |at: &u8| self.taken_over.iter().any(|(first, from)| from == at && left.contains(first));
            // In a circle somebody has to begin.
            let next = left.iter().copied().find(|at| !waits(at)).unwrap_or(lowest);
            left.remove(&next);
            order.push(next);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(vlans: impl IntoIterator<Item = u16>) -> BTreeSet<Item> {
        vlans.into_iter().map(|vlan| Item::Vlans(vlan, vlan, Interest::default())).collect()
    }

    #[test]
    fn what_has_a_place_keeps_it() {
        let mut packing = Packing::default();
        let room = |_| 300;
        assert!(packing.pack(&ranges(0..100), room));
        let before = packing.places.clone();
        assert_eq!(packing.fragments().keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert!(packing.pack(&ranges((0..100).filter(|vlan| vlan % 7 != 0)), room));
        assert!(packing.places.iter().all(|(item, at)| before[item] == *at));
        assert!(packing.pack(&ranges(0..100), room), "the holes are filled");
        assert_eq!((packing.fragments().len(), packing.order(0..5)), (5, vec![0, 1, 2, 3, 4]));
    }

    #[test]
    fn what_changes_stays_where_it_was() {
        let mut packing = Packing::default();
        let room = |_| 40;
        let of = |list: &[(u16, u16)]| {
            list.iter().map(|(first, last)| Item::Vlans(*first, *last, Interest::default())).collect()
        };
        assert!(packing.pack(&of(&[(1, 1), (3, 3), (10, 19)]), room));
        assert_eq!(packing.places[&Item::Vlans(10, 19, Interest::default())], 1);
        assert!(packing.pack(&of(&[(3, 3), (9, 19)]), room));
        assert_eq!(packing.places[&Item::Vlans(9, 19, Interest::default())], 1, "though there is room in the first");
    }

    #[test]
    fn who_takes_over_comes_first() {
        let mut packing = Packing::default();
        assert!(packing.pack(&ranges(0..60), |_| 300));
        assert!(packing.pack(&ranges(0..60), |at| if at < 2 { 0 } else { 300 }));
        assert_eq!(packing.order(0..5), [2, 3, 0, 4, 1], "2 and 3 took from 0, 3 and 4 from 1");
    }

    /// Ranges and groups take different room, so that a fragment with too little for one could take another.
    #[test]
    fn who_gives_for_want_of_room_does_not_take() {
        let mac = weft_wire::ethernet::MacAddress([1, 0, 0x5e, 0, 0, 1]);
        let groups = (0..500).map(|vlan| Item::Group(Group { vlan, mac }));
        let items: BTreeSet<Item> = ranges(0..500).into_iter().chain(groups).collect();
        for room in 1440..3000 {
            let mut packing = Packing::default();
            assert!(packing.pack(&items, |_| 3000));
            let before = packing.places.clone();
            assert!(packing.pack(&items, |_| room));
            let moved = items.iter().filter(|item| packing.places[item] != before[item]);
            let order = packing.order(0..=u8::MAX);
            let turn = |at: u8| order.iter().position(|other| *other == at);
            for item in moved {
                let (to, from) = (packing.places[item], before[item]);
                assert!(turn(to) < turn(from), "room {room}: {item:?} from {from} to {to}");
            }
        }
    }

    #[test]
    fn a_fragment_without_room_is_left() {
        let mut packing = Packing::default();
        assert!(packing.pack(&ranges(0..40), |_| 300));
        assert!(packing.pack(&ranges(0..40), |at| if at == 1 { 0 } else { 300 }));
        assert_eq!(packing.fragments().keys().copied().collect::<Vec<_>>(), [0, 2]);
        assert!(!packing.pack(&ranges(0..40), |at| if at < 3 { 100 } else { 0 }), "more than there is room for");
        assert_eq!(packing.places.len(), 3 * 7);
    }
}
