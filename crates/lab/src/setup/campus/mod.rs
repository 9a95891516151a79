//! RBridges' IS-IS in virtual time: a campus from the first Hello on. Links lose nothing and take a millisecond; what it costs is
//! the protocol's own, unless [`failures`] adds what the computations take.

pub mod failures;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rand_pcg::Pcg64;
use weft_control::isis::{
    Bounds, Config, Event, Hop, Input, LinkKind, Output, PortConfig, PortId, RBridge, Timing, Wish, cost_of_rate,
};
use weft_control::{Machine, NS_PER_MS, NS_PER_S};
use weft_scenario::engine::{EngineError, Progress};
use weft_testbed::cpu::this_thread_ns;
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::{PDU_LEN_MIN, SystemId};
use weft_wire::vlan::VlanSet;

const DELAY_NS: u64 = NS_PER_MS;
/// All of them start within a second.
const STARTS_NS: u64 = NS_PER_S;

/// RBridges by number, and what is on the way between them.
pub(super) struct Campus {
    rbridges: Vec<RBridge>,
    nicknames: Vec<Option<u16>>,
    /// Of each RBridge's ports, counted from 1: the RBridge and port at the other end.
    cables: Vec<Vec<(usize, PortId)>>,
    /// Ports whose cable carries nothing.
    down: BTreeSet<(usize, PortId)>,
    /// Until when each RBridge's processor is at work; `None`: it takes no time.
    busy_until_ns: Option<Vec<u64>>,
    wakes_ns: Vec<Option<u64>>,
    queue: BTreeMap<u64, Vec<What>>,
    /// PDUs that arrived.
    pub(super) pdus: u64,
    /// When a route or nickname was changed for the last time.
    pub(super) changed_ns: u64,
    /// The same of each RBridge.
    changes_ns: Vec<u64>,
    /// When an LSP last told an RBridge something new.
    told_ns: u64,
    /// CPU time of each computation of an RBridge's routes and trees.
    pub(super) computations_ns: Vec<u64>,
}

enum What {
    Start(usize),
    Wake(usize),
    Pdu { to: (usize, PortId), source: MacAddress, destination: MacAddress, bytes: Arc<[u8]> },
}

impl Campus {
    /// A three-tier fat tree of switches with `k` ports: 5/4 k^2 RBridges.
    pub(super) fn fat_tree(k: usize) -> Self {
        let half = k / 2;
        let (aggregation, core) = (k * half, 2 * k * half);
        let pods = (0..k).flat_map(|pod| (0..half * half).map(move |at| (pod, at / half, at % half)));
        let links = pods.flat_map(|(pod, a, b)| {
            let upper = aggregation + pod * half + a;
            [(pod * half + b, upper), (upper, core + a * half + b)]
        });
        Self::new(core + half * half, links)
    }

    /// VL2's Clos of switches with `d` ports (VL2 4.1): d^2/4 ToRs on two Aggregations each, d of those on all of d/2 Intermediates.
    pub(super) fn clos(d: usize) -> Self {
        let (tors, aggregations, intermediates) = (d * d / 4, d, d / 2);
        let up = (0..tors).flat_map(|tor| [0, 1].map(|way| (tor, tors + (tor + way) % d)));
        let across = (0..aggregations * intermediates)
            .map(|number| (tors + number / intermediates, tors + aggregations + number % intermediates));
        Self::new(tors + aggregations + intermediates, up.chain(across))
    }

    fn new(nodes: usize, links: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut cables = vec![Vec::new(); nodes];
        for (a, b) in links {
            let ends = [a, b].map(|node| PortId(cables[node].len() as u16 + 1));
            cables[a].push((b, ends[1]));
            cables[b].push((a, ends[0]));
        }
        let rbridge = |node: usize| RBridge::new(config(node, cables[node].len()), Pcg64::new(node as u128, 1));
        let starts = (0..nodes).map(|node| (node as u64 * STARTS_NS / nodes as u64, vec![What::Start(node)]));
        Self {
            rbridges: (0..nodes).map(rbridge).collect(),
            nicknames: vec![None; nodes],
            wakes_ns: vec![None; nodes],
            queue: starts.collect(),
            cables,
            down: BTreeSet::new(),
            busy_until_ns: None,
            pdus: 0,
            changed_ns: 0,
            changes_ns: vec![0; nodes],
            told_ns: 0,
            computations_ns: Vec::new(),
        }
    }

    /// How many RBridges.
    pub(super) fn len(&self) -> usize {
        self.rbridges.len()
    }

    /// Lets everything happen up to `until_ns`.
    pub(super) fn run_to(&mut self, until_ns: u64, progress: &dyn Progress) -> Result<(), EngineError> {
        while let Some((now_ns, all)) = self.queue.pop_first() {
            if now_ns > until_ns {
                self.queue.insert(now_ns, all);
                break;
            }
            if progress.interrupted() {
                return Err(EngineError::Interrupted);
            }
            progress.advance(now_ns as f64 / until_ns as f64, "");
            all.into_iter().for_each(|what| self.happen(now_ns, what));
        }
        Ok(())
    }

    fn happen(&mut self, now_ns: u64, what: What) {
        if let Some(at_ns) = self.later(now_ns, &what) {
            if let What::Wake(node) = what {
                self.wakes_ns[node] = Some(at_ns);
            }
            return self.queue.entry(at_ns).or_default().push(what);
        }
        match what {
            What::Start(node) => {
                self.handle(now_ns, node, Input::Deadline);
                (1..=self.cables[node].len()).for_each(|port| {
                    self.handle(now_ns, node, Input::PortUp(PortId(port as u16)));
                });
            }
            What::Wake(node) => {
                if self.wakes_ns[node].take_if(|at_ns| *at_ns == now_ns).is_some() {
                    self.handle(now_ns, node, Input::Deadline);
                }
            }
            What::Pdu { to: (node, port), source, destination, bytes } => {
                self.pdus += 1;
                self.handle(now_ns, node, Input::Pdu { port, vlan: 0, destination, source, bytes: &bytes });
            }
        }
    }

    /// When the RBridge that is concerned has time for it, if not now. As in the daemon, what has come in goes before its own deadlines.
    fn later(&self, now_ns: u64, what: &What) -> Option<u64> {
        let (node, is_own) = match what {
            What::Start(_) => return None,
            What::Wake(node) => (*node, self.wakes_ns[*node] == Some(now_ns)),
            What::Pdu { to, .. } => (to.0, true),
        };
        let until_ns = self.busy_until_ns.as_ref()?[node];
        let at_ns = until_ns + u64::from(matches!(what, What::Wake(_)));
        (is_own && until_ns > now_ns).then_some(at_ns)
    }

    fn handle(&mut self, now_ns: u64, node: usize, input: Input<'_>) {
        let new = |me: &Self| me.rbridges[node].counters().events.get(Event::LspNewer);
        let new_before = new(self);
        let (outputs, took_ns) = self.timed(now_ns, node, input);
        if new(self) > new_before {
            self.told_ns = self.told_ns.max(now_ns);
        }
        // What follows from an input leaves when it is done with.
        let now_ns = now_ns + took_ns;
        if let Some(busy_until_ns) = &mut self.busy_until_ns {
            busy_until_ns[node] = now_ns;
        }
        if let Some(at_ns) = self.rbridges[node].next_deadline_ns().map(|at_ns| at_ns.max(now_ns))
            && self.wakes_ns[node].is_none_or(|planned_ns| at_ns < planned_ns)
        {
            self.wakes_ns[node] = Some(at_ns);
            self.queue.entry(at_ns).or_default().push(What::Wake(node));
        }
        for output in outputs {
            match output {
                Output::Send { port, vlan: _, destination, pdu: bytes } => {
                    if self.down.contains(&(node, port)) {
                        continue;
                    }
                    let to = self.cables[node][usize::from(port.0) - 1];
                    let pdu = What::Pdu { to, source: mac(node, port), destination, bytes };
                    self.queue.entry(now_ns + DELAY_NS).or_default().push(pdu);
                    continue;
                }
                Output::Nicknames(held) => self.nicknames[node] = held.first().copied(),
                Output::ForwardingChanged => {}
                _ => continue,
            }
            self.changed_ns = self.changed_ns.max(now_ns);
            self.changes_ns[node] = now_ns;
        }
    }

    /// What an input leads to, and how long the RBridge's processor is at work on it, if that counts.
    fn timed(&mut self, now_ns: u64, node: usize, input: Input<'_>) -> (Vec<Output>, u64) {
        // What is received is computed with later.
        let may_compute = matches!(input, Input::Deadline) || self.busy_until_ns.is_some();
        let rbridge = &mut self.rbridges[node];
        let (computed, mut outputs) = (rbridge.counters().events.get(Event::Computed), Vec::new());
        let before_ns = may_compute.then(this_thread_ns);
        rbridge.handle(now_ns, input, &mut outputs);
        let took_ns = before_ns.map_or(0, |before_ns| this_thread_ns() - before_ns);
        if rbridge.counters().events.get(Event::Computed) > computed {
            self.computations_ns.push(took_ns);
        }
        (outputs, if self.busy_until_ns.is_some() { took_ns } else { 0 })
    }

    /// Pairs of RBridges whose route is not all of the shortest ways, and RBridges without a nickname of their own.
    pub(super) fn wrong(&self) -> u64 {
        self.wrong_of(&self.rbridges.iter().map(|rbridge| &rbridge.forwarding().routes).collect::<Vec<_>>())
    }

    fn wrong_of(&self, routes: &[&BTreeMap<u16, Vec<Hop>>]) -> u64 {
        let known: BTreeSet<u16> = self.nicknames.iter().flatten().copied().collect();
        let mut wrong = (self.len() - known.len()) as u64;
        for (to, nickname) in self.nicknames.iter().enumerate() {
            let Some(nickname) = nickname else { continue };
            let hops = self.hops_to(to);
            for from in (0..self.len()).filter(|from| *from != to) {
                let works = |at: &usize| !self.down.contains(&(from, PortId(*at as u16 + 1)));
                let nearer = self.cables[from].iter().enumerate().filter(|(_, (next, _))| hops[*next] < hops[from]);
                let nearer = nearer.filter(|(at, _)| works(at));
                let shortest = nearer.map(|(at, _)| at + 1);
                let taken = routes[from].get(nickname).into_iter().flatten().map(|hop| usize::from(hop.port.0));
                wrong += u64::from(!taken.eq(shortest));
            }
        }
        wrong
    }

    /// Hops from each RBridge to this one, by going outwards.
    fn hops_to(&self, to: usize) -> Vec<usize> {
        let mut hops = vec![usize::MAX; self.len()];
        let mut open = VecDeque::from([to]);
        hops[to] = 0;
        while let Some(node) = open.pop_front() {
            for (next, port) in &self.cables[node] {
                if hops[*next] == usize::MAX && !self.down.contains(&(*next, *port)) {
                    hops[*next] = hops[node] + 1;
                    open.push_back(*next);
                }
            }
        }
        hops
    }
}

fn config(node: usize, ports: usize) -> Config {
    let port = |number: usize| {
        let id = PortId(number as u16);
        let cost = cost_of_rate(10_000_000_000);
        PortConfig {
            id,
            mac: mac(node, id),
            cost,
            link: LinkKind::PointToPoint,
            designated_vlan: 1,
            mtu_test: false,
            offers_elision: false,
        }
    };
    let [high, low] = (node as u16 + 1).to_be_bytes();
    Config {
        system: SystemId([0x0a, 0, 0, 0, high, low]),
        hostname: format!("rb{node}"),
        ports: (1..=ports).map(port).collect(),
        nicknames: vec![Wish::Any],
        root_priority: 0x8000,
        vlans: [1, 100 + (node % 7) as u16].into_iter().collect::<VlanSet>(),
        trees_max: 1,
        trees_used: 1,
        lsp_buffer_bytes: PDU_LEN_MIN,
        keys: None,
        timing: Timing::default(),
        bounds: Bounds::default(),
    }
}

fn mac(node: usize, port: PortId) -> MacAddress {
    let ([a, b], [c, d]) = ((node as u16 + 1).to_be_bytes(), port.0.to_be_bytes());
    MacAddress([2, 0, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) struct Silent;

    impl Progress for Silent {
        fn phase(&self, _: &str, _: &str) {}
        fn advance(&self, _: f64, _: &str) {}
        fn note(&self, _: &str) {}
        fn interrupted(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_small_tree_converges_and_what_is_wrong_is_counted() {
        let mut campus = Campus::fat_tree(4);
        assert_eq!((campus.len(), campus.cables.iter().map(Vec::len).sum::<usize>()), (20, 64));
        assert_eq!(campus.wrong(), 20, "nobody has a nickname");
        campus.run_to(20 * NS_PER_S, &Silent).unwrap();
        assert_eq!(campus.wrong(), 0);
        let far = campus.nicknames[19].unwrap();
        let mut routes: Vec<_> = campus.rbridges.iter().map(|rbridge| rbridge.forwarding().routes.clone()).collect();
        routes[0].get_mut(&far).unwrap().pop();
        routes[3].remove(&far);
        let wrong = campus.wrong_of(&routes.iter().collect::<Vec<_>>());
        assert_eq!(wrong, 2, "a way of several, and a route, are missing");
    }

    #[test]
    fn a_small_clos_converges() {
        let mut campus = Campus::clos(4);
        assert_eq!(campus.cables.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2, 2, 4, 4, 4, 4, 4, 4]);
        campus.run_to(20 * NS_PER_S, &Silent).unwrap();
        assert_eq!(campus.wrong(), 0);
        assert!(campus.computations_ns.len() >= campus.len(), "each has computed its routes");
    }
}
