//! Every timer once: when it is due, and what happens then. They are looked at in this order, each after what those
//! before it did.

use super::RBridge;
use super::adjacency::Event as Happening;
use super::io::Output;
use super::port::Port;

type OfPort = (fn(&Port) -> Option<u64>, fn(&mut RBridge, u64, usize, &mut Vec<Output>));
type OfAll = (fn(&RBridge) -> Option<u64>, fn(&mut RBridge, u64, &mut Vec<Output>));

const OF_PORT: [OfPort; 6] = [
    (
        |port| Some(port.adjacency.as_ref()?.until_ns),
        |me, now_ns, index, outputs| me.adjacency_event(now_ns, index, Happening::Expired, outputs),
    ),
    (|port| port.is_up.then_some(port.hello_at_ns), RBridge::send_hello),
    (|port| Some(port.adjacency.as_ref()?.probe.as_ref()?.at_ns), RBridge::probe_due),
    (|port| Some(port.adjacency.as_ref()?.echo.as_ref()?.at_ns), RBridge::echo_due),
    (|port| port.adjacency.as_ref().and(port.flood.psnp_at_ns), RBridge::send_psnp),
    // Goes out with every input, as soon as it may.
    (|port| port.adjacency.as_ref().and(port.flood.lsps_at_ns()), |_, _, _, _| {}),
];

const OF_ALL: [OfAll; 6] = [
    (|me| me.lsdb.next_expiry_ns(), |me, now_ns, _| me.age(now_ns)),
    (RBridge::restart_deadline_ns, RBridge::restart_due),
    (|me| me.leave_at_ns, RBridge::end_leave),
    (|me| me.nickname.choose_at_ns, RBridge::choose_nickname),
    (|me| me.compute_at_ns, RBridge::compute),
    (|me| me.origin.next_deadline_ns(), |me, now_ns, _| me.describe(now_ns)),
];

impl Port {
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        OF_PORT.iter().filter_map(|(at_ns, _)| at_ns(self)).min()
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
