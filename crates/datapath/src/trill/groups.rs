//! IP multicast groups in the forwarding table: which ports get what (RFC 6325 section 4.5.5), in the buckets that programs look
//! into.

use std::collections::{BTreeMap, BTreeSet};

use weft_wire::ethernet::MacAddress;
use weft_wire::listener::{Family, Group, Listeners};
use weft_wire::vlan::VlanSet;

use super::abi::{TREES_MAX, TRILL_BUCKET_SIZE, TRILL_BUCKETS, TRILL_MORE, TrillListeners};
use super::fib::{Fib, PortKind};

const BUCKET_SIZE: usize = TRILL_BUCKET_SIZE as usize;
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Who gets frames for which groups, those of [`all_of`] included. A family of a VLAN that is wanted whole everywhere is not
/// there.
pub(super) fn wanted(fib: &Fib) -> Vec<TrillListeners> {
    if fib.listeners.is_empty() && fib.trees.values().all(|tree| tree.listeners.is_empty()) {
        return Vec::new();
    }
    let mut listed: BTreeMap<(u16, Family), Vec<MacAddress>> = BTreeMap::new();
    for Group { vlan, mac } in listeners(fib).flat_map(|listeners| &listeners.groups) {
        if let Some(family) = Family::of_pruned(*mac) {
            listed.entry((*vlan, family)).or_default().push(*mac);
        }
    }
    let mut wanted = Vec::new();
    for (vlan, family) in vlans(fib).iter().flat_map(|vlan| Family::ALL.map(|family| (vlan, family))) {
        let by_all = ports(fib, vlan, |listeners| listeners.all(family).contains(vlan));
        if by_all == ports(fib, vlan, |_| true) {
            continue;
        }
        let entry = |mac, (native_ports, tree_ports)| TrillListeners {
            group: key(Group { vlan, mac }),
            native_ports,
            tree_ports,
        };
        wanted.push(entry(all_of(family), by_all));
        let groups = listed.get(&(vlan, family)).into_iter().flatten().collect::<BTreeSet<_>>();
        wanted.extend(groups.into_iter().map(|mac| {
            let wants = |listeners: &Listeners| {
                listeners.all(family).contains(vlan) || listeners.groups.contains(&Group { vlan, mac: *mac })
            };
            entry(*mac, ports(fib, vlan, wants))
        }));
    }
    wanted
}

fn listeners(fib: &Fib) -> impl Iterator<Item = &Listeners> {
    fib.listeners.values().chain(fib.trees.values().flat_map(|tree| tree.listeners.values()))
}

/// VLANs that anything carries.
fn vlans(fib: &Fib) -> VlanSet {
    let mut vlans = VlanSet::default();
    for port in fib.ports.values() {
        match &port.kind {
            PortKind::Native { untagged, tagged } => {
                untagged.iter().for_each(|vlan| vlans.add_range(*vlan, *vlan));
                vlans.add_all(tagged);
            }
            PortKind::Shared { carried, .. } => vlans.add_all(carried),
            PortKind::Link { .. } => {}
        }
    }
    fib.trees.values().flat_map(|tree| tree.branches.values()).for_each(|branch| vlans.add_all(branch));
    vlans
}

/// Ports to end stations and branches of each tree that carry the VLAN, of these the ones that say so, or say nothing.
fn ports(fib: &Fib, vlan: u16, wants: impl Fn(&Listeners) -> bool) -> (u64, [u64; TREES_MAX]) {
    let want = |listeners: &BTreeMap<u8, Listeners>, port: u8| listeners.get(&port).is_none_or(&wants);
    let set = |ports: &mut dyn Iterator<Item = u8>| ports.fold(0, |set, port| set | 1 << port);
    let carries = |kind: &PortKind| kind.carries(vlan);
    let natives = fib.ports.iter().filter(|(_, port)| carries(&port.kind)).map(|(number, _)| *number);
    let mut trees = [0; TREES_MAX];
    for (place, tree) in fib.trees.values().enumerate() {
        let branches = tree.branches.iter().filter(|(_, vlans)| vlans.contains(vlan)).map(|(port, _)| *port);
        trees[place] = set(&mut branches.filter(|port| want(&tree.listeners, *port)));
    }
    (set(&mut natives.filter(|port| want(&fib.listeners, *port))), trees)
}

/// Stands for all groups of a family; no such group is ever pruned.
fn all_of(family: Family) -> MacAddress {
    match family {
        Family::Ipv4 => MacAddress([0x01, 0x00, 0x5e, 0, 0, 0]),
        Family::Ipv6 => MacAddress([0x33, 0x33, 0, 0, 0, 0]),
    }
}

/// As programs make it.
fn key(Group { vlan, mac: MacAddress([a, b, c, d, e, f]) }: Group) -> u64 {
    u64::from_ne_bytes([a, b, c, d, e, f, 0, 0]) | u64::from(vlan) << 48
}

/// Every entry with its place. A bucket with more of them than fit says so in its last place.
pub(super) fn places(wanted: &[TrillListeners]) -> impl Iterator<Item = (usize, TrillListeners)> {
    let mut buckets: BTreeMap<usize, Vec<TrillListeners>> = BTreeMap::new();
    for entry in wanted {
        let bucket = (entry.group.wrapping_mul(MIX) >> (64 - TRILL_BUCKETS.ilog2())) as usize;
        buckets.entry(bucket).or_default().push(*entry);
    }
    buckets.into_iter().flat_map(|(bucket, mut entries)| {
        if entries.len() > BUCKET_SIZE {
            entries.truncate(BUCKET_SIZE);
            entries[BUCKET_SIZE - 1] = TrillListeners { group: TRILL_MORE, ..TrillListeners::default() };
        }
        (bucket * BUCKET_SIZE..).zip(entries)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_without_room_for_all_says_so() {
        let entry = |n: u64| TrillListeners { group: (1 << 48) + n, ..TrillListeners::default() };
        let many: Vec<TrillListeners> = (0..20_000).map(entry).collect();
        let placed: Vec<(usize, TrillListeners)> = places(&many).collect();
        assert!(placed.iter().all(|(place, _)| *place < TRILL_BUCKETS as usize * BUCKET_SIZE));
        let more = placed.iter().filter(|(_, entry)| entry.group == TRILL_MORE).count();
        let whole = placed.iter().filter(|(place, _)| place % BUCKET_SIZE == BUCKET_SIZE - 1).count();
        assert!(more > 1500 && more <= whole, "{more} of {whole}");
        let few: Vec<TrillListeners> = (0..100).map(entry).collect();
        assert_eq!(places(&few).count(), 100);
    }
}
