//! What the control plane computed, as the table that frames are forwarded by.

use std::collections::BTreeMap;

use weft_control::isis::{Forwarding, Hop, PortId, TreePort, TreeState};
use weft_datapath::trill::abi::HOPS_MAX;
use weft_datapath::trill::{self, Elision, Fib, Port, PortKind, Tree};
use weft_wire::ethernet::MacAddress;
use weft_wire::trill::HOP_COUNT_MAX;
use weft_wire::vlan::VlanSet;

/// Neighbours whose adjacency is in Report, by port: one, but for shared links.
pub(super) type Neighbors = BTreeMap<u8, Vec<Neighbor>>;

/// VLANs whose end stations a port of a shared link serves.
pub(super) type Carried = BTreeMap<u8, VlanSet>;

/// A neighbour on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbor {
    pub(super) mac: MacAddress,
    /// Whether it takes frames without outer header.
    pub(super) takes_elided: bool,
}

/// Makes the table say what was computed. A port that lost its neighbour since then is left out at once: where another
/// hop is equally good, nobody has to wait for the next computation.
pub(super) fn tell(fib: &mut Fib, nicknames: &[u16], neighbors: &Neighbors, forwarding: &Forwarding) {
    fib.nickname = nicknames.first().copied();
    fib.other_nicknames = nicknames.iter().skip(1).copied().collect();
    set_neighbors(fib, neighbors);
    let routes = forwarding.routes.iter();
    fib.routes = routes.map(|(egress, hops)| (*egress, hops_of(hops, neighbors))).collect();
    fib.routes.retain(|_, hops| !hops.is_empty());
    fib.own_trees.deal(&forwarding.own_trees);
    fib.overloaded = forwarding.overloaded;
    fib.relays = hops_of(&forwarding.relays, neighbors);
    fib.trees = forwarding.trees.iter().map(|(root, tree)| (*root, tree_of(tree, neighbors))).collect();
}

/// Leaves everything as it is but for what leads over ports without a neighbour.
pub(super) fn keep(fib: &mut Fib, neighbors: &Neighbors) {
    set_neighbors(fib, neighbors);
    let is_there = |port: &u8| neighbors.contains_key(port);
    fib.routes.values_mut().for_each(|hops| hops.retain(|hop| is_neighbor(hop.port, hop.mac, neighbors)));
    fib.routes.retain(|_, hops| !hops.is_empty());
    fib.relays.retain(|hop| is_neighbor(hop.port, hop.mac, neighbors));
    for tree in fib.trees.values_mut() {
        tree.branches.retain(|port, _| is_there(port));
        tree.listeners.retain(|port, _| is_there(port));
        tree.rpf.retain(|_, port| is_there(port));
    }
}

fn set_neighbors(fib: &mut Fib, neighbors: &Neighbors) {
    for (number, port) in &mut fib.ports {
        let there = neighbors.get(number).map(Vec::as_slice).unwrap_or_default();
        match &mut port.kind {
            PortKind::Link { neighbor, elision, .. } => {
                *neighbor = there.first().map(|there| there.mac);
                *elision = match (*elision, there.first()) {
                    (Elision::Off, _) => Elision::Off,
                    (_, Some(Neighbor { takes_elided: true, .. })) => Elision::Agreed,
                    _ => Elision::Offered,
                };
            }
            PortKind::Shared { neighbors, .. } => *neighbors = there.iter().map(|there| there.mac).collect(),
            PortKind::Native { .. } => {}
        }
    }
}

/// Makes ports of shared links serve the end stations of these VLANs alone.
pub(super) fn set_carried(fib: &mut Fib, by_port: &Carried) {
    for (number, port) in &mut fib.ports {
        if let PortKind::Shared { carried, .. } = &mut port.kind {
            *carried = by_port.get(number).cloned().unwrap_or_default();
        }
    }
}

/// Makes RBridges talk in these VLANs on shared links.
pub(super) fn set_designated(fib: &mut Fib, by_port: &BTreeMap<u8, u16>) {
    for (number, port) in &mut fib.ports {
        if let (PortKind::Shared { designated_vlan, .. }, Some(vlan)) = (&mut port.kind, by_port.get(number)) {
            *designated_vlan = *vlan;
        }
    }
}

/// In which VLAN RBridges talk on a shared link; 0 on a port that is none.
pub(super) fn designated_vlan(fib: &Fib, number: u8) -> u16 {
    match fib.ports.get(&number).map(|port| &port.kind) {
        Some(PortKind::Shared { designated_vlan, .. }) => *designated_vlan,
        _ => 0,
    }
}

/// The VLANs whose end stations each port of a shared link serves.
pub(super) fn carried(fib: &Fib) -> Carried {
    let of_port = |(number, port): (&u8, &Port)| match &port.kind {
        PortKind::Shared { carried, .. } => Some((*number, carried.clone())),
        _ => None,
    };
    fib.ports.iter().filter_map(of_port).collect()
}

fn hops_of(hops: &[Hop], neighbors: &Neighbors) -> Vec<trill::Hop> {
    let hops = hops.iter().filter_map(|hop| Some(trill::Hop { port: there(hop.port, neighbors)?, mac: hop.mac }));
    hops.filter(|hop| is_neighbor(hop.port, hop.mac, neighbors)).take(HOPS_MAX).collect()
}

fn is_neighbor(port: u8, mac: MacAddress, neighbors: &Neighbors) -> bool {
    neighbors.get(&port).is_some_and(|there| there.iter().any(|neighbor| neighbor.mac == mac))
}

/// The port's number in the data path, if it has a neighbour.
fn there(port: PortId, neighbors: &Neighbors) -> Option<u8> {
    u8::try_from(port.0).ok().filter(|port| neighbors.contains_key(port))
}

fn tree_of(tree: &TreeState, neighbors: &Neighbors) -> Tree {
    let branches = || tree.ports.iter().filter_map(|branch| Some((there(branch.port, neighbors)?, branch)));
    let prunes = |(_, branch): &(u8, &TreePort)| !branch.listeners.want_all_of(&branch.vlans);
    Tree {
        // One more than the distance to the farthest RBridge, so that a tree that grew by a hop carries at once.
        hop_count: u8::try_from(tree.depth + 1).unwrap_or(HOP_COUNT_MAX).min(HOP_COUNT_MAX),
        branches: branches().map(|(port, branch)| (port, branch.vlans.clone())).collect(),
        listeners: branches().filter(prunes).map(|(port, branch)| (port, branch.listeners.clone())).collect(),
        rpf: tree.rpf.iter().filter_map(|(ingress, port)| Some((*ingress, there(*port, neighbors)?))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use weft_datapath::trill::OwnTrees;
    use weft_wire::listener::Listeners;

    use super::*;

    fn mac(last: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, last])
    }

    fn neighbor(last: u8) -> Neighbor {
        Neighbor { mac: mac(last), takes_elided: false }
    }

    fn fib() -> Fib {
        let port =
            |number: u8| Port { ifindex: number.into(), mac: mac(100 + number), mtu: 1600, kind: PortKind::link(1) };
        let mut ports: BTreeMap<u8, Port> = (1..4).map(|number| (number, port(number))).collect();
        ports.insert(4, Port { kind: PortKind::access(10), ..port(4) });
        Fib { hop_count: 63, ports, ..Fib::default() }
    }

    fn forwarding() -> Forwarding {
        let hop = |port: u16| Hop { port: PortId(port), mac: mac(port as u8) };
        let branch = |port| TreePort {
            port: PortId(port),
            vlans: [10, 11].into_iter().collect(),
            listeners: Listeners::to_all(),
        };
        let tree = |number| TreeState {
            number,
            depth: 3,
            ports: vec![branch(1), branch(2)],
            rpf: [(7, PortId(1)), (8, PortId(2))].into(),
        };
        Forwarding {
            routes: [(7, vec![hop(1), hop(2)]), (8, vec![hop(2)])].into(),
            costs: [(7, 10), (8, 10)].into(),
            trees: [(7, tree(2)), (8, tree(1))].into(),
            own_trees: [7, 8].into(),
            overloaded: true,
            relays: vec![hop(1), hop(2)],
            ..Forwarding::default()
        }
    }

    #[test]
    fn what_was_computed_is_told_and_a_lost_port_is_left_out() {
        let mut fib = fib();
        let all: Neighbors = [(1, vec![neighbor(1)]), (2, vec![neighbor(2)])].into();
        tell(&mut fib, &[5, 6], &all, &forwarding());
        fib.check().unwrap();
        assert_eq!((fib.nickname, &fib.other_nicknames[..], fib.overloaded), (Some(5), &[6][..], true));
        assert_eq!(fib.own_trees, OwnTrees::of([7, 8]));
        assert_eq!((fib.routes[&7].len(), fib.routes[&8].len()), (2, 1));
        assert_eq!(fib.trees[&8].hop_count, 4);
        assert_eq!(fib.trees[&8].branches[&1], VlanSet::of_ranges(&[(10, 11)]));
        assert_eq!(
            fib.ports[&1].kind,
            PortKind::Link { designated_vlan: 1, neighbor: Some(mac(1)), elision: Elision::Off }
        );
        assert_eq!(fib.ports[&3].kind, PortKind::link(1));

        let one: Neighbors = [(1, vec![neighbor(1)])].into();
        let mut kept = fib.clone();
        keep(&mut kept, &one);
        tell(&mut fib, &[5, 6], &one, &forwarding());
        fib.check().unwrap();
        assert_eq!(fib, kept, "both leave the lost port out");
        assert_eq!(fib.routes.keys().collect::<Vec<_>>(), [&7]);
        assert_eq!(fib.relays.iter().map(|hop| hop.port).collect::<Vec<_>>(), [1]);
        assert_eq!(fib.trees[&7].rpf, [(7, 1)].into());
        tell(&mut fib, &[], &Neighbors::new(), &Forwarding::default());
        assert!(
            fib.routes.is_empty()
                && fib.trees.is_empty()
                && fib.own_trees == OwnTrees::default()
                && !fib.overloaded
                && fib.relays.is_empty()
                && fib.nickname.is_none()
        );
    }

    #[test]
    fn outer_headers_are_left_out_only_where_both_ends_want_it() {
        let mut fib = fib();
        let offers = PortKind::Link { designated_vlan: 1, neighbor: None, elision: Elision::Offered };
        for number in [1, 2] {
            fib.ports.get_mut(&number).unwrap().kind = offers.clone();
        }
        let taking = |last| Neighbor { takes_elided: true, ..neighbor(last) };
        let elision = |fib: &Fib, number: u8| match fib.ports[&number].kind {
            PortKind::Link { elision, .. } => elision,
            _ => panic!("a link"),
        };
        keep(&mut fib, &[(1, vec![taking(1)]), (2, vec![neighbor(2)]), (3, vec![taking(3)])].into());
        let found = [1, 2, 3].map(|number| elision(&fib, number));
        assert_eq!(found, [Elision::Agreed, Elision::Offered, Elision::Off], "the third port has not the option");
        keep(&mut fib, &[(1, vec![neighbor(1)])].into());
        assert_eq!(elision(&fib, 1), Elision::Offered, "the neighbour takes them no more");
        keep(&mut fib, &[(1, vec![taking(1)])].into());
        keep(&mut fib, &Neighbors::new());
        assert_eq!(elision(&fib, 1), Elision::Offered, "a lost neighbour has agreed to nothing");
    }

    #[test]
    fn of_a_shared_link_only_who_is_lost_is_left_out_and_only_what_is_ours_is_carried() {
        let mut fib = fib();
        fib.ports.get_mut(&2).unwrap().kind = PortKind::shared(1);
        let hop = |last| Hop { port: PortId(2), mac: mac(last) };
        let forwarding =
            Forwarding { routes: [(7, vec![hop(21), hop(22)]), (8, vec![hop(22)])].into(), ..forwarding() };
        let all: Neighbors = [(1, vec![neighbor(1)]), (2, vec![neighbor(22), neighbor(21)])].into();
        tell(&mut fib, &[5, 6], &all, &forwarding);
        let ours: Carried = [(2, VlanSet::of_ranges(&[(10, 19)])), (4, VlanSet::all())].into();
        set_carried(&mut fib, &ours);
        fib.check().unwrap();
        let shared = |carried, of: &[u8]| PortKind::Shared {
            designated_vlan: 1,
            untagged: 1,
            carried,
            neighbors: of.iter().map(|last| mac(*last)).collect(),
        };
        assert_eq!(fib.ports[&2].kind, shared(VlanSet::of_ranges(&[(10, 19)]), &[21, 22]));
        assert_eq!(fib.ports[&4].kind, PortKind::access(10), "it is no shared link");
        assert_eq!((fib.routes[&7].len(), fib.routes[&8].len()), (2, 1));
        assert_eq!(carried(&fib), [(2, VlanSet::of_ranges(&[(10, 19)]))].into());

        let one: Neighbors = [(1, vec![neighbor(1)]), (2, vec![neighbor(21)])].into();
        keep(&mut fib, &one);
        set_carried(&mut fib, &Carried::new());
        fib.check().unwrap();
        assert_eq!(fib.ports[&2].kind, shared(VlanSet::default(), &[21]));
        assert_eq!(fib.routes, [(7, vec![trill::Hop { port: 2, mac: mac(21) }])].into());
        assert_eq!(fib.trees[&7].branches.len(), 2, "the link itself is still there");
    }
}
