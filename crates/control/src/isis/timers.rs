//! Every timer once: when it is due, and what happens then. They are looked at in this order, each after what those
//! before it did.

use super::RBridge;
use super::io::Output;
use super::port::{Adjacency, Peer, Port};

type OfNeighbor = (fn(&Adjacency) -> Option<u64>, fn(&mut RBridge, u64, usize, Peer, &mut Vec<Output>));
type OfPort = (fn(&Port) -> Option<u64>, fn(&mut RBridge, u64, usize, &mut Vec<Output>));
type OfAll = (fn(&RBridge) -> Option<u64>, fn(&mut RBridge, u64, &mut Vec<Output>));

const OF_NEIGHBOR: [OfNeighbor; 3] = [
    (Adjacency::expires_ns, RBridge::hold_ends),
    (|adjacency| Some(adjacency.probe.as_ref()?.at_ns), RBridge::probe_due),
    (|adjacency| Some(adjacency.echo.as_ref()?.at_ns), RBridge::echo_due),
];

const OF_PORT: [OfPort; 7] = [
    (|port| port.shared.as_ref()?.suspended_until_ns(), RBridge::begin_shared),
    (|port| port.shared.as_ref()?.inhibition_ends_ns(), RBridge::forwarder_follows),
    (|port| port.speaks().then_some(port.hello_at_ns), RBridge::send_hello),
    (|port| port.shared.as_ref()?.list_at_ns, RBridge::send_list_of_neighbors),
    (|port| port.shared.as_ref()?.csnp_at_ns, RBridge::csnp_due),
    (|port| port.flood.psnp_at_ns.filter(|_| !port.adjacencies.is_empty()), RBridge::send_psnp),
    // Goes out with every input, as soon as it may.
    (|port| port.flood.lsps_at_ns().filter(|_| !port.adjacencies.is_empty()), |_, _, _, _| {}),
];

const OF_ALL: [OfAll; 6] = [
    (|me| me.lsdb.next_expiry_ns(), |me, now_ns, _| me.age(now_ns)),
    (RBridge::restart_deadline_ns, RBridge::restart_due),
    (|me| me.leave_at_ns, RBridge::end_leave),
    (|me| me.nicknames.choose_at_ns, RBridge::choose_nicknames),
    (|me| me.compute_at_ns, RBridge::compute),
    (|me| me.origin.next_deadline_ns(), RBridge::describe_and_follow),
];

impl Port {
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        let of_neighbors =
            self.adjacencies.values().flat_map(|with| OF_NEIGHBOR.iter().filter_map(|(at_ns, _)| at_ns(with)));
        OF_PORT.iter().filter_map(|(at_ns, _)| at_ns(self)).chain(of_neighbors).min()
    }

    fn due_neighbors(&self, now_ns: u64, at_ns: fn(&Adjacency) -> Option<u64>) -> Vec<Peer> {
        let is_due = |with: &Adjacency| at_ns(with).is_some_and(|at_ns| at_ns <= now_ns);
        self.adjacencies.iter().filter(|(_, with)| is_due(with)).map(|(peer, _)| *peer).collect()
    }
}

impl RBridge {
    /// The next timer that is no port's.
    pub(super) fn own_deadline_ns(&self) -> Option<u64> {
        OF_ALL.iter().filter_map(|(at_ns, _)| at_ns(self)).min()
    }

    pub(super) fn deadline(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        let is_due = |at_ns: Option<u64>| at_ns.is_some_and(|at_ns| at_ns <= now_ns);
        self.ports_at_ns = None;
        self.touched.extend(0..self.ports.len());
        for index in 0..self.ports.len() {
            for (at_ns, act) in OF_NEIGHBOR {
                for peer in self.ports[index].due_neighbors(now_ns, at_ns) {
                    act(self, now_ns, index, peer, outputs);
                }
            }
            for (at_ns, act) in OF_PORT {
                if is_due(at_ns(&self.ports[index])) {
                    act(self, now_ns, index, outputs);
                }
            }
        }
        for (at_ns, act) in OF_ALL {
            if is_due(at_ns(self)) {
                act(self, now_ns, outputs);
            }
        }
    }
}
