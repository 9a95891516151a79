//! The simulated system: its parts, its clock, and what is checked while it runs.

mod agents;
mod clients;
mod errands;
mod etcd;
mod history;
mod mutations;
mod network;
mod servers;
mod truth;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use rand::Rng;
use rand_pcg::Pcg64;
use weft_control::directory::etcd::{Answer, Call};
use weft_control::directory::{KeyRing, Refusal, Request};
use weft_control::{NS_PER_MS, NS_PER_S};
use weft_wire::directory::{Key, Secret};

use agents::{AgentNode, TorNode};
use clients::Client;
use errands::Errand;
use etcd::{Etcd, MEMBERS};
pub(crate) use mutations::Mutation;
use network::Faults;
use servers::Server;
use truth::Truth;

/// AAs that updates and packets are about.
pub(crate) const AAS: u64 = 8;
/// Services 0 (common), 1 and 2.
const SERVICES: u32 = 3;
const TORS: u8 = 4;
const SECRET: Secret = Secret::from_bytes([9; 16]);

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
    /// Somebody sends as much as he can.
    abuse: bool,
    mutation: Mutation,
}

impl Plan {
    pub(crate) fn of_seed(seed: u64, mutation: Mutation) -> Self {
        Self {
            seed,
            severity: seed % 4,
            servers: 1 + (seed / 4 % 3) as usize,
            agents: 2 + (seed / 12 % 2) as usize,
            clients: 10 + (seed / 24 % 3) as usize,
            short_lives: (seed / 4).is_multiple_of(2),
            small_caches: (seed / 8).is_multiple_of(3),
            abuse: (seed / 12).is_multiple_of(3),
            mutation,
        }
    }
}

/// Counts of what happened, so that a test can tell that it did.
macro_rules! totals {
    ($($name:ident),* $(,)?) => {
        /// What happened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Totals {
            $(pub(crate) $name: u64,)*
        }

        impl Totals {
            pub(crate) fn all_happened(&self) -> bool {
                [$(self.$name),*].iter().all(|count| *count > 0)
            }

            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

totals! {
    applied,
    refused,
    failed,
    not_done,
    given_up,
    unknown,
    expired,
    applied_before,
    snapshots_written,
    snapshots_loaded,
    jumped,
    passed_over,
    compared,
    watches_given_up,
    watches_compacted,
    lagged,
    frozen,
    left_behind,
    over_quota,
    started_whole,
    fenced_reads,
    hidden,
    installed,
    stale_packets,
    corrections_sent,
    corrected,
}

/// Who asks: a client, its number of the request, and which try it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asker {
    client: usize,
    sequence: u64,
    attempt: u32,
}

impl Asker {
    /// Who does not care for answers.
    const NOBODY: Self = Self { client: usize::MAX, sequence: 0, attempt: 0 };
}

/// What a server says to that.
#[derive(Clone, Debug)]
enum Said {
    /// In the record of this revision.
    Done(u64),
    Refused(Refusal),
    Failed(String),
    /// It may not.
    Denied(String),
}

impl Said {
    /// The service has as much as it may have.
    fn is_of_a_quota(&self) -> bool {
        matches!(self, Self::Failed(why) | Self::Denied(why) if why.contains("may have"))
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
        asker: Asker,
        request: Request,
    },
    /// A client did not hear of its request in time.
    Unheard {
        asker: Asker,
    },
    /// A verdict arrives at a client.
    Verdict {
        asker: Asker,
        said: Said,
    },
    /// Somebody sends as much as he can.
    Flood,
    /// A record may be due at a server.
    Pump {
        server: usize,
        life: u64,
    },
    /// A request may have waited too long.
    Expire {
        server: usize,
        life: u64,
    },
    /// A server tries again to follow the log.
    Follow {
        server: usize,
        life: u64,
    },
    /// It looks after its watch.
    Look {
        server: usize,
        life: u64,
    },
    /// It looks what is due.
    Upkeep {
        server: usize,
        life: u64,
    },
    /// Its watch shows what the cluster had at a revision.
    Watched {
        server: usize,
        life: u64,
        id: u64,
        upto: u64,
    },
    /// A call arrives at a member of the cluster.
    Arrive {
        errand: Errand,
        member: usize,
        call: Arc<Call>,
    },
    /// Its answer arrives at the server.
    Answer {
        errand: Errand,
        answer: Option<Answer>,
        refused: bool,
    },
    /// There is no answer yet.
    Hedge {
        errand: Errand,
    },
    /// There is none in time.
    CallOver {
        errand: Errand,
    },
    LeaseOver {
        lease: i64,
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
    /// A member does nothing for a while.
    Pause {
        member: usize,
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
    /// A server's process does nothing for a while; its clock goes on.
    Freeze {
        server: usize,
        lasts_ns: u64,
    },
    /// The cluster forgets all that was overwritten or deleted, as anybody may tell it to.
    Forget,
    AgentRestart {
        agent: usize,
    },
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
    etcd: Etcd,
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
        let etcd = Etcd::new();
        let truth = Truth::at(etcd.origin.ours(etcd.origin.began));
        let mut world = Self {
            now_ns: 0,
            rng: Pcg64::new(u128::from(plan.seed), 1),
            future: BinaryHeap::new(),
            numbered: 0,
            faults: Faults::of_severity(plan.severity),
            plan: plan.clone(),
            etcd,
            servers: Vec::new(),
            agents: Vec::new(),
            tors: Vec::new(),
            clients: Vec::new(),
            truth,
            totals: Totals::default(),
            quiet: false,
        };
        world.set_up_servers();
        world.set_up_agents();
        world.start_servers();
        world.set_up_clients();
        if plan.abuse {
            world.after(0, Event::Flood);
        }
        world
    }

    /// Lives: faults, then peace, then the checks that need it.
    pub(crate) fn live(mut self) -> Totals {
        const FAULTY_NS: u64 = 5 * NS_PER_S;
        self.plan_packets(FAULTY_NS, 300);
        self.plan_calamities(FAULTY_NS);
        self.run_to(FAULTY_NS);
        self.heal();
        // Longer than anything is left on its way.
        self.run_to(FAULTY_NS + 3 * NS_PER_S / 2);
        // Longer than any mapping of a short life lives.
        self.sweep(24, 50 * NS_PER_MS);
        self.truth.forget_packets();
        self.sweep(6, 50 * NS_PER_MS);
        self.assert_clients_answered();
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
        self.etcd.down_until_ns = self.now_ns;
        self.etcd.paused_until_ns = [self.now_ns; MEMBERS];
        for server in 0..self.servers.len() {
            self.servers[server].cut_until_ns = self.now_ns;
            self.servers[server].isolated_until_ns = self.now_ns;
            self.servers[server].frozen_until_ns = self.now_ns;
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
        for _ in 0..10 * self.plan.severity {
            let at_ns = self.below(until_ns);
            let server = self.below(self.servers.len() as u64) as usize;
            let agent = self.below(self.agents.len() as u64) as usize;
            let member = self.below(MEMBERS as u64) as usize;
            let event = match self.below(11) {
                0 => {
                    self.plan_falls(server, at_ns);
                    continue;
                }
                1 => Event::ServerDown { server, lasts_ns: self.below(NS_PER_S) },
                2 => Event::LeaderDown { lasts_ns: self.below(500 * NS_PER_MS) },
                3 | 4 => Event::Cut { server, lasts_ns: self.below((1 + self.plan.severity) * NS_PER_S) },
                5 => Event::Isolate { server, lasts_ns: self.below(NS_PER_S) },
                6 => Event::Forget,
                7 | 8 => Event::Pause { member, lasts_ns: self.below(NS_PER_S) },
                9 => Event::Freeze { server, lasts_ns: self.below(NS_PER_S) },
                _ => Event::AgentRestart { agent },
            };
            self.at(at_ns, event);
        }
    }

    /// A server falls again and again, soon after it stood up.
    fn plan_falls(&mut self, server: usize, mut at_ns: u64) {
        for _ in 0..4 {
            let lasts_ns = self.below(30 * NS_PER_MS);
            self.at(at_ns, Event::ServerDown { server, lasts_ns });
            at_ns += lasts_ns + self.below(300 * NS_PER_MS);
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

    fn lives(&self, server: usize, life: u64) -> bool {
        self.servers[server].up && self.servers[server].life == life
    }

    /// Whose process must do something about it.
    fn server_of(&self, event: &Event) -> Option<usize> {
        match event {
            Event::Submit { server, .. }
            | Event::Pump { server, .. }
            | Event::Expire { server, .. }
            | Event::Follow { server, .. }
            | Event::Look { server, .. }
            | Event::Upkeep { server, .. }
            | Event::Watched { server, .. } => Some(*server),
            Event::Answer { errand, .. } | Event::Hedge { errand } | Event::CallOver { errand } => Some(errand.server),
            Event::Datagram { to, .. } => self.servers.iter().position(|server| server.address == *to),
            _ => None,
        }
    }

    fn happen(&mut self, event: Event) {
        if let Some(server) = self.server_of(&event)
            && self.now_ns < self.servers[server].frozen_until_ns
        {
            self.totals.frozen += 1;
            return self.at(self.servers[server].frozen_until_ns, event);
        }
        match event {
            Event::Packet { agent, aa } => self.packet(agent, aa),
            Event::Datagram { from, to, bytes } => self.receive(from, to, bytes),
            Event::Think { client } => self.think(client),
            Event::Submit { server, asker, request } => self.submitted(server, asker, request),
            Event::Unheard { asker } => self.unheard(asker),
            Event::Verdict { asker, said } => self.answer(asker, said),
            Event::Flood => self.flood(),
            Event::Pump { server, life } if self.lives(server, life) => self.pump(server),
            Event::Expire { server, life } if self.lives(server, life) => self.expire(server),
            Event::Follow { server, life } if self.lives(server, life) => self.follow_again(server),
            Event::Look { server, life } if self.lives(server, life) => self.look(server),
            Event::Upkeep { server, life } if self.lives(server, life) => self.upkeep(server),
            Event::Watched { server, life, id, upto } if self.lives(server, life) => self.watched(server, id, upto),
            Event::Pump { .. }
            | Event::Expire { .. }
            | Event::Follow { .. }
            | Event::Look { .. }
            | Event::Upkeep { .. }
            | Event::Watched { .. } => {}
            Event::Arrive { errand, member, call } => self.arrive(errand, member, call),
            Event::Answer { errand, answer, refused } => self.answered(errand, answer, refused),
            Event::Hedge { errand } => self.send_call(errand),
            Event::CallOver { errand } => self.call_over(errand),
            Event::LeaseOver { lease } => self.etcd.end_lease(lease),
            Event::Pause { member, lasts_ns } => self.etcd.paused_until_ns[member] = self.now_ns + lasts_ns,
            Event::Freeze { server, lasts_ns } => self.servers[server].frozen_until_ns = self.now_ns + lasts_ns,
            Event::Forget => self.etcd.compacted = self.etcd.revision,
            Event::ServerDown { server, lasts_ns } => self.server_down(server, lasts_ns),
            Event::ServerUp { server, life } => {
                if self.servers[server].life == life && !self.servers[server].up {
                    self.server_up(server);
                }
            }
            Event::LeaderDown { lasts_ns } => self.leader_down(lasts_ns),
            Event::Cut { server, lasts_ns } => self.servers[server].cut_until_ns = self.now_ns + lasts_ns,
            Event::Isolate { server, lasts_ns } => self.servers[server].isolated_until_ns = self.now_ns + lasts_ns,
            Event::AgentRestart { agent } => self.restart(agent),
        }
    }
}
