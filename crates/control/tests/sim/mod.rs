//! The simulated system: its parts, its clock, and what is checked while it runs.

mod agents;
mod clients;
mod history;
mod network;
mod servers;
mod store;
mod truth;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddrV4};

use rand::Rng;
use rand_pcg::Pcg64;
use weft_control::directory::{KeyRing, Refusal, Request};
use weft_control::{NS_PER_MS, NS_PER_S};
use weft_wire::directory::{Key, Secret};

use agents::{AgentNode, TorNode};
use clients::Client;
use network::Faults;
use servers::Server;
use store::Store;
use truth::Truth;

/// AAs that updates and packets are about.
pub(crate) const AAS: u64 = 8;
/// Services 0 (common), 1 and 2.
const SERVICES: u32 = 3;
const TORS: u8 = 4;
const SECRET: Secret = Secret::from_bytes([9; 16]);

/// A way to break the system, which the checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    None,
    AckBeforeCommit,
    LoseLastRecord,
    AnswerOlder,
    ForgetSequences,
    RefuseFromOwnTable,
    SkipRecord,
    LosePolicy,
    TellForeigners,
    CorrectNobody,
}

/// What one life is made of.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    seed: u64,
    servers: usize,
    agents: usize,
    clients: usize,
    /// How bad it gets, 0 to 3.
    severity: u64,
    /// Mappings are asked for again soon; otherwise only corrections mend them.
    short_lives: bool,
    /// Agents have room for fewer mappings than there are.
    small_caches: bool,
    mutation: Mutation,
}

impl Plan {
    pub(crate) fn of_seed(seed: u64, mutation: Mutation) -> Self {
        Self {
            seed,
            severity: seed % 4,
            servers: 1 + (seed / 4 % 3) as usize,
            agents: 2 + (seed / 12 % 2) as usize,
            clients: 2 + (seed / 24 % 2) as usize,
            short_lives: (seed / 4).is_multiple_of(2),
            small_caches: (seed / 8).is_multiple_of(3),
            mutation,
        }
    }
}

/// What happened, so that a test can tell that it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) applied: u64,
    pub(crate) refused: u64,
    pub(crate) given_up: u64,
    pub(crate) applied_before: u64,
    pub(crate) appended_again: u64,
    pub(crate) snapshots_loaded: u64,
    pub(crate) fenced_reads: u64,
    pub(crate) hidden: u64,
    pub(crate) installed: u64,
    pub(crate) stale_packets: u64,
    pub(crate) corrections_sent: u64,
    pub(crate) corrected: u64,
}

impl Totals {
    fn all(&self) -> [u64; 12] {
        let Self { applied, refused, given_up, applied_before, appended_again, snapshots_loaded, .. } = *self;
        let Self { fenced_reads, hidden, installed, stale_packets, corrections_sent, corrected, .. } = *self;
        [
            applied,
            refused,
            given_up,
            applied_before,
            appended_again,
            snapshots_loaded,
            fenced_reads,
            hidden,
            installed,
            stale_packets,
            corrections_sent,
            corrected,
        ]
    }

    pub(crate) fn all_happened(&self) -> bool {
        self.all().iter().all(|count| *count > 0)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.applied += other.applied;
        self.refused += other.refused;
        self.given_up += other.given_up;
        self.applied_before += other.applied_before;
        self.appended_again += other.appended_again;
        self.snapshots_loaded += other.snapshots_loaded;
        self.fenced_reads += other.fenced_reads;
        self.hidden += other.hidden;
        self.installed += other.installed;
        self.stale_packets += other.stale_packets;
        self.corrections_sent += other.corrections_sent;
        self.corrected += other.corrected;
    }
}

/// Something that happens at a time.
#[derive(Clone, Debug)]
enum Event {
    /// A server of an agent's host sends a packet.
    Packet {
        agent: usize,
        aa: Ipv4Addr,
    },
    /// A datagram arrives.
    Datagram {
        from: SocketAddrV4,
        to: SocketAddrV4,
        bytes: Vec<u8>,
    },
    /// A client thinks of its next request.
    Think {
        client: usize,
    },
    /// A request arrives at a server.
    Submit {
        server: usize,
        client: usize,
        request: Request,
    },
    /// A client did not hear of its request in time.
    Unheard {
        client: usize,
        sequence: u64,
        attempt: u32,
    },
    /// A verdict arrives at a client.
    Verdict {
        client: usize,
        sequence: u64,
        verdict: Result<u64, Refusal>,
    },
    /// A server sends its waiting requests to the store.
    Flush {
        server: usize,
        life: u64,
    },
    /// A record arrives at the store.
    Append {
        origin: Origin,
        bytes: Vec<u8>,
    },
    /// A server has not seen its record in the log.
    Overdue {
        origin: Origin,
    },
    /// A server reads the log.
    Follow {
        server: usize,
    },
    /// The same, again and again.
    Poll {
        server: usize,
    },
    ServerDown {
        server: usize,
        lasts_ns: u64,
    },
    ServerUp {
        server: usize,
        life: u64,
    },
    LeaderDown {
        lasts_ns: u64,
    },
    /// A server and the store do not hear each other.
    Cut {
        server: usize,
        lasts_ns: u64,
    },
    /// A server and its clients and agents do not hear each other.
    Isolate {
        server: usize,
        lasts_ns: u64,
    },
    Compact,
    AgentRestart {
        agent: usize,
    },
}

/// Which life of which server made a record, and which one of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    server: usize,
    life: u64,
    number: u64,
}

/// An event in order of time; those of one time in the order in which they were planned.
struct Planned {
    at_ns: u64,
    number: u64,
    event: Event,
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Planned {}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}

/// The system and its future.
pub(crate) struct World {
    now_ns: u64,
    rng: Pcg64,
    future: BinaryHeap<Reverse<Planned>>,
    numbered: u64,
    faults: Faults,
    plan: Plan,
    store: Store,
    servers: Vec<Server>,
    agents: Vec<AgentNode>,
    tors: Vec<TorNode>,
    clients: Vec<Client>,
    truth: Truth,
    totals: Totals,
    /// Clients ask no more.
    quiet: bool,
}

fn aa(k: u64) -> Ipv4Addr {
    Ipv4Addr::from(0x1400_0001 + k as u32)
}

fn tor_la(k: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 0, k + 1)
}

fn key(service: u32, la: Ipv4Addr) -> Key {
    SECRET.derive(service, la)
}

fn keys() -> KeyRing {
    KeyRing::new([(1, SECRET)])
}

impl World {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut world = Self {
            now_ns: 0,
            rng: Pcg64::new(u128::from(plan.seed), 1),
            future: BinaryHeap::new(),
            numbered: 0,
            faults: Faults::of_severity(plan.severity),
            plan: plan.clone(),
            store: Store::default(),
            servers: Vec::new(),
            agents: Vec::new(),
            tors: Vec::new(),
            clients: Vec::new(),
            truth: Truth::default(),
            totals: Totals::default(),
            quiet: false,
        };
        world.set_up_servers();
        world.set_up_agents();
        world.set_up_clients();
        world
    }

    /// Lives: faults, then peace, then the checks that need it.
    pub(crate) fn live(mut self) -> Totals {
        const FAULTY_NS: u64 = 3 * NS_PER_S;
        self.plan_packets(FAULTY_NS, 300);
        self.plan_calamities(FAULTY_NS);
        self.run_to(FAULTY_NS);
        self.heal();
        self.run_to(FAULTY_NS + NS_PER_S);
        // Longer than any mapping of a short life lives.
        self.sweep(24, 50 * NS_PER_MS);
        self.truth.forget_packets();
        self.sweep(6, 50 * NS_PER_MS);
        self.assert_history();
        self.assert_agents_agree();
        self.run_to(self.now_ns + NS_PER_S);
        self.assert_agents_at_rest();
        self.assert_servers_equal();
        self.totals
    }

    /// Ends all faults; clients get their last answers and ask no more.
    fn heal(&mut self) {
        self.quiet = true;
        self.faults = Faults::NONE;
        self.store.down_until_ns = self.now_ns;
        for server in 0..self.servers.len() {
            self.servers[server].cut_until_ns = self.now_ns;
            self.servers[server].isolated_until_ns = self.now_ns;
            if !self.servers[server].up {
                self.server_up(server);
            }
        }
    }

    /// Every agent sends to every AA, `times` over.
    fn sweep(&mut self, times: u64, pause_ns: u64) {
        for round in 0..times {
            for agent in 0..self.agents.len() {
                for k in 0..AAS {
                    let at_ns = self.now_ns + round * pause_ns + self.below(pause_ns);
                    self.at(at_ns, Event::Packet { agent, aa: aa(k) });
                }
            }
        }
        self.run_to(self.now_ns + times * pause_ns);
    }

    fn plan_packets(&mut self, until_ns: u64, count: u64) {
        for _ in 0..count {
            let at_ns = self.below(until_ns);
            let (agent, aa) = (self.below(self.agents.len() as u64) as usize, self.any_aa());
            self.at(at_ns, Event::Packet { agent, aa });
        }
    }

    fn plan_calamities(&mut self, until_ns: u64) {
        for _ in 0..6 * self.plan.severity {
            let at_ns = self.below(until_ns);
            let server = self.below(self.servers.len() as u64) as usize;
            let agent = self.below(self.agents.len() as u64) as usize;
            let event = match self.below(8) {
                0 | 1 => Event::ServerDown { server, lasts_ns: self.below(NS_PER_S) },
                2 => Event::LeaderDown { lasts_ns: self.below(500 * NS_PER_MS) },
                3 => Event::Cut { server, lasts_ns: self.below(NS_PER_S) },
                4 => Event::Isolate { server, lasts_ns: self.below(NS_PER_S) },
                5 | 6 => Event::Compact,
                _ => Event::AgentRestart { agent },
            };
            self.at(at_ns, event);
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound
    }

    fn chance(&mut self, per_thousand: u64) -> bool {
        self.below(1000) < per_thousand
    }

    fn any_aa(&mut self) -> Ipv4Addr {
        aa(self.below(AAS))
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.numbered += 1;
        self.future.push(Reverse(Planned { at_ns, number: self.numbered, event }));
    }

    fn after(&mut self, wait_ns: u64, event: Event) {
        self.at(self.now_ns + wait_ns, event);
    }

    /// Runs everything that happens before `until_ns`.
    fn run_to(&mut self, until_ns: u64) {
        loop {
            let event_ns = self.future.peek().map_or(u64::MAX, |Reverse(planned)| planned.at_ns);
            let (deadline_ns, machine) = self.next_deadline();
            let at_ns = event_ns.min(deadline_ns);
            if at_ns >= until_ns {
                break;
            }
            self.now_ns = self.now_ns.max(at_ns);
            if deadline_ns <= event_ns {
                self.deadline(machine);
            } else if let Some(Reverse(planned)) = self.future.pop() {
                self.happen(planned.event);
            }
        }
        self.now_ns = until_ns;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Packet { agent, aa } => self.packet(agent, aa),
            Event::Datagram { from, to, bytes } => self.receive(from, to, bytes),
            Event::Think { client } => self.think(client),
            Event::Submit { server, client, request } => self.submitted(server, client, request),
            Event::Unheard { client, sequence, attempt } => self.unheard(client, sequence, attempt),
            Event::Verdict { client, sequence, verdict } => self.judged(client, sequence, verdict),
            Event::Flush { server, life } => self.flush(server, life),
            Event::Append { origin, bytes } => self.append(origin, bytes),
            Event::Overdue { origin } => self.overdue(origin),
            Event::Follow { server } => self.follow(server),
            Event::Poll { server } => {
                self.follow(server);
                self.after(100 * NS_PER_MS, Event::Poll { server });
            }
            Event::ServerDown { server, lasts_ns } => self.server_down(server, lasts_ns),
            Event::ServerUp { server, life } => {
                if self.servers[server].life == life && !self.servers[server].up {
                    self.server_up(server);
                }
            }
            Event::LeaderDown { lasts_ns } => self.leader_down(lasts_ns),
            Event::Cut { server, lasts_ns } => self.servers[server].cut_until_ns = self.now_ns + lasts_ns,
            Event::Isolate { server, lasts_ns } => self.servers[server].isolated_until_ns = self.now_ns + lasts_ns,
            Event::Compact => self.compact(),
            Event::AgentRestart { agent } => self.restart(agent),
        }
    }
}
