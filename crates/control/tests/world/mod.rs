//! A whole directory system in virtual time from one seed: servers, agents, and a network that loses, delays,
//! duplicates, reorders and damages datagrams. The machines are the shipped ones.

mod faults;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{Ipv4Addr, SocketAddrV4};

use rand::Rng;
use rand_pcg::Pcg64;
use weft_control::Machine;
use weft_control::address::Locator;
use weft_control::agent::{Agent, Bounds, Config, Input, Output, Timing};
use weft_control::directory::{Batch, KeyRing, Request, Responder, Table, Update};
use weft_control::{NS_PER_MS, NS_PER_S};
use weft_wire::block::Block;
use weft_wire::directory::{Entry, Key, Kind, Message, Path, Secret, Status};

use crate::datapath::Datapath;
pub(crate) use faults::Faults;

/// AAs that updates and misses are about.
pub(crate) const AAS: u64 = 12;

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Miss { agent: usize, aa: Ipv4Addr },
    ToAgent { agent: usize, from: SocketAddrV4, bytes: Vec<u8> },
    ToServer { server: usize, from: SocketAddrV4, bytes: Vec<u8> },
    Commit,
    Apply { server: usize },
    Correct { server: usize, agent: usize, aa: Ipv4Addr },
    Down { server: usize, lasts_ns: u64 },
    Up { server: usize },
    Restart { agent: usize },
}

struct Server {
    address: SocketAddrV4,
    table: Table,
    up: bool,
}

struct Node {
    address: SocketAddrV4,
    machine: Agent,
    datapath: Datapath,
}

/// The system and its future.
pub(crate) struct World {
    pub(crate) now_ns: u64,
    pub(crate) faults: Faults,
    rng: Pcg64,
    future: BinaryHeap<Reverse<(u64, u64, Event)>>,
    numbered: u64,
    servers: Vec<Server>,
    agents: Vec<Node>,
    /// Record `i` is at revision `i + 1`.
    log: Vec<Batch>,
    /// The table after the whole log.
    committed: Table,
    /// Every mapping that ever was.
    history: BTreeMap<(Ipv4Addr, u64), Locator>,
    frames: u64,
}

pub(crate) fn aa(k: u64) -> Ipv4Addr {
    Ipv4Addr::from(0x1400_0001 + k as u32)
}

const SECRET: Secret = Secret::from_bytes([9; 16]);

fn key(agent: SocketAddrV4) -> Key {
    SECRET.derive(0, *agent.ip())
}

fn responder() -> Responder {
    Responder { keys: KeyRing::new([(0, SECRET)]) }
}

fn config(local: SocketAddrV4, servers: Vec<SocketAddrV4>) -> Config {
    let timing = Timing {
        lifetime_ns: 2 * NS_PER_S,
        refresh_retry_max_ns: NS_PER_S,
        negative_ns: 50 * NS_PER_MS,
        ..Timing::default()
    };
    let bounds = Bounds { entries_max: 4, lookups_max: 4, frame_bytes_per_aa_max: 40, frame_bytes_max: 120 };
    Config {
        aa: Ipv4Addr::new(20, 255, 0, 1),
        aa_block: Block::of(Ipv4Addr::new(20, 0, 0, 0), 8),
        local,
        servers,
        key: key(local),
        key_id: 0,
        service: 0,
        path_mtu: 1500,
        timing,
        bounds,
    }
}

impl World {
    pub(crate) fn new(seed: u64, servers: usize, agents: usize, faults: Faults) -> Self {
        let mut rng = Pcg64::new(u128::from(seed), 1);
        let server_address = |k: usize| SocketAddrV4::new(Ipv4Addr::new(10, 64, 9, k as u8 + 1), 5300);
        let addresses: Vec<_> = (0..servers).map(server_address).collect();
        let agents = (0..agents)
            .map(|k| {
                let address = SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, k as u8 + 2), 40000);
                let machine = Agent::new(config(address, addresses.clone()), Pcg64::new(rng.next_u64().into(), 2));
                Node { address, machine, datapath: Datapath::default() }
            })
            .collect();
        let servers =
            addresses.iter().map(|address| Server { address: *address, table: Table::default(), up: true }).collect();
        Self {
            now_ns: 0,
            faults,
            rng,
            future: BinaryHeap::new(),
            numbered: 0,
            servers,
            agents,
            log: Vec::new(),
            committed: Table::default(),
            history: BTreeMap::new(),
            frames: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound
    }

    fn chance(&mut self, per_thousand: u64) -> bool {
        self.below(1000) < per_thousand
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.numbered += 1;
        self.future.push(Reverse((at_ns, self.numbered, event)));
    }

    /// Plans misses, updates, corrections, outages and restarts at random times before `until_ns`.
    pub(crate) fn plan(&mut self, until_ns: u64, misses: u64, commits: u64, calamities: u64) {
        for _ in 0..misses {
            let (at_ns, agent, aa) =
                (self.below(until_ns), self.below(self.agents.len() as u64) as usize, self.any_aa());
            self.at(at_ns, Event::Miss { agent, aa });
        }
        for _ in 0..commits {
            let at_ns = self.below(until_ns);
            self.at(at_ns, Event::Commit);
        }
        for _ in 0..calamities {
            let at_ns = self.below(until_ns);
            let server = self.below(self.servers.len() as u64) as usize;
            let agent = self.below(self.agents.len() as u64) as usize;
            let (aa, lasts_ns) = (self.any_aa(), self.below(3 * NS_PER_S));
            match self.below(5) {
                0 => self.at(at_ns, Event::Down { server, lasts_ns }),
                1 => self.at(at_ns, Event::Restart { agent }),
                _ => self.at(at_ns, Event::Correct { server, agent, aa }),
            }
        }
    }

    fn any_aa(&mut self) -> Ipv4Addr {
        aa(self.below(AAS))
    }

    /// Plans one miss of every AA at every agent, spread over `spread_ns` from now.
    pub(crate) fn plan_sweep(&mut self, spread_ns: u64) {
        for agent in 0..self.agents.len() {
            for k in 0..AAS {
                let at_ns = self.now_ns + self.below(spread_ns);
                self.at(at_ns, Event::Miss { agent, aa: aa(k) });
            }
        }
    }

    /// Runs everything that happens before `until_ns`.
    pub(crate) fn run_to(&mut self, until_ns: u64) {
        while let Some((at_ns, agent)) = self.next(until_ns) {
            assert!(at_ns >= self.now_ns, "time goes forward");
            self.now_ns = at_ns;
            match agent {
                Some(agent) => self.drive(agent, Input::Deadline),
                None => {
                    let Reverse((_, _, event)) = self.future.pop().unwrap();
                    self.happen(event);
                }
            }
        }
        self.now_ns = until_ns;
    }

    /// The next thing before `until_ns`: its time, and the agent whose deadline it is.
    fn next(&self, until_ns: u64) -> Option<(u64, Option<usize>)> {
        let event = self.future.peek().map(|Reverse((at_ns, _, _))| (*at_ns, None));
        let deadlines = self
            .agents
            .iter()
            .enumerate()
            .filter_map(|(k, node)| node.machine.next_deadline_ns().map(|at_ns| (at_ns.max(self.now_ns), Some(k))));
        deadlines.chain(event).min().filter(|(at_ns, _)| *at_ns < until_ns)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Miss { agent, aa } => self.miss(agent, aa),
            Event::ToAgent { agent, from, bytes } => self.drive(agent, Input::Datagram { from, bytes: &bytes }),
            Event::ToServer { server, from, bytes } => self.serve(server, from, bytes),
            Event::Commit => self.commit(),
            Event::Apply { server } => self.apply(server),
            Event::Correct { server, agent, aa } => self.correct(server, agent, aa),
            Event::Down { server, lasts_ns } => {
                self.servers[server].up = false;
                self.at(self.now_ns + lasts_ns, Event::Up { server });
            }
            Event::Up { server } => self.servers[server].up = true,
            Event::Restart { agent } => self.restart(agent),
        }
    }

    /// A frame leaves a host: the data path delivers it, or hands it to the agent.
    fn miss(&mut self, agent: usize, aa: Ipv4Addr) {
        let node = &mut self.agents[agent];
        if node.datapath.forward(aa) {
            return;
        }
        self.frames += 1;
        let held = self.frames.to_be_bytes().to_vec();
        node.datapath.missed(aa, self.frames);
        self.drive(agent, Input::Miss { aa, packet_bytes: 100, held });
    }

    fn drive(&mut self, agent: usize, input: Input<'_>) {
        let mut outputs = Vec::new();
        self.agents[agent].machine.handle(self.now_ns, input, &mut outputs);
        for output in outputs {
            if let Output::Send { to, datagram } = output {
                let from = self.agents[agent].address;
                let server = self.servers.iter().position(|server| server.address == to).expect("a known server");
                self.transmit(datagram, |bytes| Event::ToServer { server, from, bytes });
            } else {
                self.agents[agent].datapath.carry_out(output, &self.history);
            }
        }
    }

    fn transmit(&mut self, bytes: Vec<u8>, event: impl Fn(Vec<u8>) -> Event) {
        let copies =
            if self.chance(self.faults.loss) { 0 } else { 1 + u64::from(self.chance(self.faults.duplication)) };
        for _ in 0..copies {
            let mut bytes = bytes.clone();
            if self.chance(self.faults.damage) {
                let bit = self.below(bytes.len() as u64 * 8) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let at_ns = self.now_ns + 20_000 + self.below(self.faults.delay_max_ns);
            self.at(at_ns, event(bytes));
        }
    }

    fn serve(&mut self, server: usize, from: SocketAddrV4, mut bytes: Vec<u8>) {
        let Server { address, table, up } = &self.servers[server];
        let (path, address) = (Path { source: from, destination: *address }, *address);
        if *up && responder().respond(table, &path, &mut bytes).is_ok() {
            self.deliver(address, from, bytes);
        }
    }

    fn deliver(&mut self, from: SocketAddrV4, to: SocketAddrV4, bytes: Vec<u8>) {
        let agent = self.agents.iter().position(|node| node.address == to).expect("a known agent");
        self.transmit(bytes, |bytes| Event::ToAgent { agent, from, bytes });
    }

    /// Commits a batch of updates; every server applies it a while later, in order.
    fn commit(&mut self) {
        let mut updates = Vec::new();
        for _ in 0..=self.below(3) {
            let aa = self.any_aa();
            if updates.iter().any(|update: &Update| update.aa == aa) {
                continue;
            }
            let tor_la = Ipv4Addr::new(10, 1, 0, self.below(200) as u8 + 1);
            let set = Update::set(aa, Locator { tor_la, anycast_la: Ipv4Addr::new(10, 255, 255, 1) });
            updates.push(if self.chance(250) { Update::delete(aa) } else { set });
        }
        let batch = Batch { requests: updates.into_iter().map(|update| Request::once(vec![update])).collect() };
        self.committed.apply(self.log.len() as u64 + 1, &batch);
        self.log.push(batch);
        for k in 0..AAS {
            if let Some(mapping) = self.committed.mapping(aa(k)) {
                self.history.insert((aa(k), mapping.version), mapping.locator);
            }
        }
        for server in 0..self.servers.len() {
            let at_ns = self.now_ns + self.below(self.faults.lag_max_ns);
            self.at(at_ns, Event::Apply { server });
        }
    }

    fn apply(&mut self, server: usize) {
        let table = &mut self.servers[server].table;
        let revision = table.revision() + 1;
        table.apply(revision, &self.log[revision as usize - 1]);
    }

    /// A server corrects an agent unasked, perhaps with an outdated view.
    fn correct(&mut self, server: usize, agent: usize, aa: Ipv4Addr) {
        let Server { address, table, up } = &self.servers[server];
        let entry = table.answer(Entry::question(aa, 0), 0, 0);
        if !up || !matches!(entry.status, Status::Ok | Status::Unknown) {
            return;
        }
        let message = Message {
            kind: Kind::Correct,
            service: 0,
            request_id: 0,
            revision: table.revision(),
            key_id: 0,
            entries: vec![entry],
        };
        let (from, to) = (*address, self.agents[agent].address);
        let bytes = message.emit(&key(to), &Path { source: from, destination: to });
        self.deliver(from, to, bytes);
    }

    /// The agent's process dies and comes back; the data path keeps what is pinned.
    fn restart(&mut self, agent: usize) {
        let servers = self.servers.iter().map(|server| server.address).collect();
        let rng = Pcg64::new(self.rng.next_u64().into(), 3);
        let node = &mut self.agents[agent];
        node.machine = Agent::new(config(node.address, servers), rng);
        for (aa, mapping) in node.datapath.restarted() {
            self.drive(agent, Input::Adopt { aa, mapping });
        }
    }

    /// Ends all faults: every server is up and applies the rest of the log.
    pub(crate) fn heal(&mut self) {
        self.faults = Faults::NONE;
        for server in &mut self.servers {
            server.up = true;
        }
    }

    /// Every agent's data path equals the committed table where it has a mapping, and reaches every AA that has one.
    pub(crate) fn assert_converged(&self) {
        for (k, node) in self.agents.iter().enumerate() {
            for (aa, mapping) in node.datapath.mappings() {
                assert_eq!(Some(mapping), self.committed.mapping(aa), "agent {k}, AA {aa}");
            }
            assert_eq!(node.machine.summary().resolving, 0, "agent {k} has open look-ups");
            assert_eq!(node.machine.summary().waiting_frames, 0, "agent {k} holds frames");
            node.datapath.assert_conserved();
        }
        for server in &self.servers {
            assert_eq!(server.table, self.committed, "servers that applied one log are equal");
        }
    }

    /// Of the last sweep: was the AA reached exactly when it has a mapping?
    pub(crate) fn assert_reached(&self) {
        for (k, node) in self.agents.iter().enumerate() {
            for aa in (0..AAS).map(aa) {
                let reachable = self.committed.mapping(aa).is_some();
                assert_eq!(node.datapath.reached(aa), reachable, "agent {k}, AA {aa}");
            }
        }
    }

    /// Forgets which AAs were reached.
    pub(crate) fn forget_reached(&mut self) {
        for node in &mut self.agents {
            node.datapath.forget_reached();
        }
    }

    /// What all agents counted: mappings replaced, frames released, frames dropped.
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        use weft_control::agent::Event::{Released, Replaced};
        self.agents.iter().map(|node| node.machine.counters()).fold((0, 0, 0), |sum, counters| {
            let events = &counters.events;
            (sum.0 + events.get(Replaced), sum.1 + events.get(Released), sum.2 + counters.dropped.total())
        })
    }
}
