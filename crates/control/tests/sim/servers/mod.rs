//! The simulated directory servers: all that is shipped but the threads, the sockets and the clock. What the threads of a
//! server carry is carried here, by events.

mod follower;
mod upkeep;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use weft_control::directory::etcd::{Append, Load, Mute, Tail, Vigil};
use weft_control::directory::record::encode_batch;
use weft_control::directory::replica::{
    Bounds, Done, Failure, Follow, Health, Next, Part, Queue, Settled, Upkeep, UpkeepBounds, foresee,
};
use weft_control::directory::{
    Accounts, Authority, CorrectionLimits, Corrector, CorrectorConfig, Denied, Quota, Received, Request, Responder,
    Table, Weight,
};
use weft_control::{NS_PER_MS, NS_PER_S};
use weft_wire::directory::{Entry, Key, Kind, Message, Path, View};

use super::errands::{Task, Work};
use super::etcd::MEMBERS;
use super::{Asker, Event, Mutation, Said, TORS, World, keys, tor_la};

/// How long a request may take.
const TIMEOUT_NS: u64 = 700 * NS_PER_MS;
/// How often a silent watch is looked after.
const LOOK_NS: u64 = 50 * NS_PER_MS;
/// How often the store is checked, and looked whether something is due.
const UPKEEP_NS: u64 = 250 * NS_PER_MS;
/// What one service may have, for one who abuses it.
const QUOTA: Quota = Quota {
    sessions: 64,
    buffered_bytes: 1 << 20,
    requests_open: 8,
    updates_open: 16,
    rows: 40,
    updates_per_s: 20_000,
    updates_burst: 65_536,
};

/// A server.
pub(super) struct Server {
    pub(super) address: SocketAddrV4,
    pub(super) up: bool,
    /// How many times it started.
    pub(super) life: u64,
    /// It has loaded what the store holds.
    started: bool,
    pub(super) cut_until_ns: u64,
    pub(super) isolated_until_ns: u64,
    /// Its process does nothing until then.
    pub(super) frozen_until_ns: u64,
    pub(super) table: Table,
    corrector: Corrector,
    queue: Queue<Ticket>,
    health: Health,
    follow: Follow,
    upkeep: Upkeep,
    accounts: Accounts,
    /// Requests of services that are not answered.
    open: BTreeMap<u32, usize>,
    tail: Tail,
    watch: Option<Watch>,
    mute: Mute,
    /// The follower waits for the store.
    following: bool,
    /// Upkeep is under way.
    keeping: bool,
    pub(super) tasks: BTreeMap<u64, Task>,
    pub(super) next_task: u64,
    /// The member it asks first.
    pub(super) member: usize,
    /// Names its records and pages, with the number of records.
    pub(super) writer: u64,
    records: u64,
    pub(super) epoch: u64,
    /// The latest record of its own in the log, and when it was told so.
    appended: (u64, u64),
    /// For mutations: the table as it was a while ago, and whether a record was left out.
    old: Table,
    skipped: bool,
}

/// Who waits for an answer.
pub(super) struct Ticket {
    asker: Asker,
    /// Of a service's request.
    account: Option<(u32, Weight)>,
}

/// A watch of the log.
struct Watch {
    id: u64,
    member: usize,
    /// The etcd revision that it shows next.
    next: u64,
    vigil: Vigil,
    /// Nothing comes over it any more, and nobody says so.
    dead: bool,
}

fn corrector(address: SocketAddrV4) -> Corrector {
    Corrector::new(CorrectorConfig {
        local: address,
        agent_port: 5301,
        tor_las: Some((0..TORS).map(tor_la).collect()),
        keys: keys(),
        limits: CorrectionLimits::default(),
    })
}

fn queue(revision: u64) -> Queue<Ticket> {
    let bounds = Bounds {
        window_ns: 2 * NS_PER_MS,
        record_updates: 16,
        records_open: 2,
        requests_waiting: 24,
        updates_waiting: 48,
    };
    Queue::at(revision, bounds)
}

fn upkeep(records: u64, now_ns: u64) -> Upkeep {
    let bounds = UpkeepBounds { snapshot_records: 16, snapshot_updates: 200, compare_every_ns: NS_PER_S };
    Upkeep::new(bounds, records, now_ns)
}

impl World {
    pub(super) fn set_up_servers(&mut self) {
        for k in 0..self.plan.servers {
            let address = SocketAddrV4::new(Ipv4Addr::new(10, 64, 9, k as u8 + 1), 5300);
            self.servers.push(Server {
                address,
                up: false,
                life: 0,
                started: false,
                cut_until_ns: 0,
                isolated_until_ns: 0,
                frozen_until_ns: 0,
                table: Table::default(),
                corrector: corrector(address),
                queue: queue(0),
                health: Health::default(),
                follow: Follow::default(),
                upkeep: upkeep(0, 0),
                accounts: Accounts::default(),
                open: BTreeMap::new(),
                tail: Tail::new(0),
                watch: None,
                mute: Mute::default(),
                following: false,
                keeping: false,
                tasks: BTreeMap::new(),
                next_task: 0,
                member: k % MEMBERS,
                writer: 0,
                records: 0,
                epoch: 0,
                appended: (0, 0),
                old: Table::default(),
                skipped: false,
            });
        }
    }

    /// They start, when the log is there.
    pub(super) fn start_servers(&mut self) {
        (0..self.servers.len()).for_each(|server| self.server_up(server));
    }

    pub(super) fn server_down(&mut self, server: usize, lasts_ns: u64) {
        let in_order = self.chance(300);
        if self.chance(500) {
            self.leave_behind(server, lasts_ns);
        }
        let state = &mut self.servers[server];
        if state.up {
            let waiting = state.queue.drain();
            if in_order {
                self.settle(server, waiting);
            }
            let state = &mut self.servers[server];
            state.up = false;
            state.life += 1;
            state.tasks.clear();
            let life = state.life;
            self.after(lasts_ns, Event::ServerUp { server, life });
        }
    }

    /// What a process sent outlives it, and may come when the next one has begun.
    fn leave_behind(&mut self, server: usize, lasts_ns: u64) {
        let tasks: Vec<_> = self.servers[server].tasks.values().filter_map(Task::sent).collect();
        for (errand, call) in tasks {
            let member = self.below(MEMBERS as u64) as usize;
            let wait_ns = lasts_ns + self.below(100 * NS_PER_MS);
            self.totals.left_behind += 1;
            self.after(wait_ns, Event::Arrive { errand, member, call });
        }
    }

    /// It starts with nothing but what the store has.
    pub(super) fn server_up(&mut self, server: usize) {
        let now_ns = self.now_ns;
        let writer = if self.plan.mutation == Mutation::ReuseWriter { server as u64 + 1 } else { self.below(u64::MAX) };
        let state = &mut self.servers[server];
        state.up = true;
        state.frozen_until_ns = 0;
        state.started = false;
        state.table = Table::default();
        state.corrector = corrector(state.address);
        state.queue = queue(0);
        state.health = Health::default();
        state.upkeep = upkeep(0, now_ns);
        (state.accounts, state.open) = (Accounts::default(), BTreeMap::new());
        (state.watch, state.mute) = (None, Mute::default());
        (state.following, state.keeping) = (true, false);
        (state.writer, state.records, state.epoch, state.appended) = (writer, 0, 0, (0, 0));
        let life = state.life;
        self.load(server);
        self.after(LOOK_NS, Event::Look { server, life });
        self.after(UPKEEP_NS, Event::Upkeep { server, life });
    }

    fn load(&mut self, server: usize) {
        let load = Load::new(Arc::clone(&self.etcd.layout), self.etcd.origin);
        self.begin(server, Work::Load(load));
    }

    /// A request arrives.
    pub(super) fn submitted(&mut self, server: usize, asker: Asker, mut request: Request) {
        let (mutation, now_ns) = (self.plan.mutation, self.now_ns);
        let state = &mut self.servers[server];
        if !state.up || !state.started || now_ns < state.isolated_until_ns {
            return;
        }
        let account = match state.admit(mutation, &mut request) {
            Ok(account) => account,
            Err(said) => {
                self.totals.over_quota += u64::from(said.is_of_a_quota());
                return self.tell_asker(server, asker, said);
            }
        };
        if mutation == Mutation::RefuseFromOwnTable
            && let Err(refusal) = state.table.check(&request)
        {
            return self.tell_asker(server, asker, Said::Refused(refusal));
        }
        let promised = state.table.revision() + 1;
        let taken = state.queue.submit(request, Ticket { asker, account }, now_ns + TIMEOUT_NS, now_ns);
        let life = state.life;
        match taken {
            Ok(look) => {
                self.after(TIMEOUT_NS, Event::Expire { server, life });
                if look {
                    self.pump(server);
                }
            }
            Err(settled) => self.settle(server, vec![settled]),
        }
        if mutation == Mutation::AckBeforeCommit {
            self.tell_asker(server, asker, Said::Done(promised));
        }
    }

    /// Sends records to the store that are due.
    pub(super) fn pump(&mut self, server: usize) {
        loop {
            let mutation = self.plan.mutation;
            let state = &mut self.servers[server];
            match state.queue.next(self.now_ns) {
                Next::Append { number, batch } => {
                    if mutation == Mutation::ForeseeAlways
                        && let Some(verdicts) = foresee(&state.table, &batch)
                    {
                        let done = state.queue.foreseen(number, verdicts);
                        self.settle_records(server, done);
                        continue;
                    }
                    let name = (state.writer, state.records);
                    state.records += u64::from(mutation != Mutation::ReuseNames);
                    let layout = Arc::clone(&self.etcd.layout);
                    let append = Append::new(layout, name, encode_batch(&batch), state.epoch);
                    self.begin(server, Work::Append { number, append });
                }
                Next::Wait(Some(left_ns)) => {
                    let life = state.life;
                    return self.after(left_ns, Event::Pump { server, life });
                }
                Next::Wait(None) => return,
            }
        }
    }

    /// A record is in the log.
    pub(super) fn appended(&mut self, server: usize, number: u64, revision: u64) {
        let ours = self.etcd.origin.ours(revision);
        let state = &mut self.servers[server];
        state.appended = state.appended.max((revision, self.now_ns));
        state.health.note(Part::Append, None);
        let done = if self.plan.mutation == Mutation::AnswerOnAppend {
            state.queue.foreseen(number, vec![Ok(ours); 64])
        } else {
            state.queue.appended(number, ours, self.now_ns)
        };
        self.settle_records(server, done);
        self.pump(server);
    }

    /// A record is not, as far as is known.
    pub(super) fn append_failed(&mut self, server: usize, number: u64, why: &str, unknown: bool) {
        let mutation = self.plan.mutation;
        let state = &mut self.servers[server];
        state.health.note(Part::Append, Some(why.to_owned()));
        if mutation == Mutation::UnknownIsDone && unknown {
            let done = state.queue.foreseen(number, vec![Ok(state.table.revision()); 64]);
            self.settle_records(server, done);
        } else {
            self.totals.unknown += u64::from(unknown);
            let unknown = unknown && mutation != Mutation::UnknownIsFailure;
            let why = format!("{why}{}", if unknown { "" } else { ", nothing was changed" });
            let settled = state.queue.failed(number, &why, unknown, self.now_ns);
            self.settle(server, settled);
        }
        self.pump(server);
    }

    pub(super) fn expire(&mut self, server: usize) {
        let state = &mut self.servers[server];
        if state.queue.expiry_ns().is_none_or(|expiry_ns| expiry_ns > self.now_ns) {
            return;
        }
        let why = state.health.store_error().unwrap_or("the store is slow").to_owned();
        let mut settled = state.queue.expired(self.now_ns, &why);
        self.totals.expired += settled.len() as u64;
        if self.plan.mutation == Mutation::LateIsNothing {
            for (_, outcome) in &mut settled {
                *outcome = Err(Failure::Store("too late, nothing was changed".to_owned()));
            }
        }
        self.settle(server, settled);
    }

    fn settle_records(&mut self, server: usize, records: impl IntoIterator<Item = Done<Ticket>>) {
        for done in records {
            let state = &self.servers[server];
            let settled = done.answers(|request| state.table.check(request));
            self.settle(server, settled);
        }
    }

    fn settle(&mut self, server: usize, settled: Vec<Settled<Ticket>>) {
        for (Ticket { asker, account }, outcome) in settled {
            let state = &mut self.servers[server];
            if let Some((service, weight)) = account {
                state.accounts.close_request(service, weight);
                *state.open.entry(service).or_default() -= 1;
            }
            let shown = state.table.revision();
            let said = match outcome {
                Ok(revision) => {
                    assert!(
                        revision <= shown,
                        "server {server} said {revision} before it was applied there, at {shown}"
                    );
                    Said::Done(revision)
                }
                Err(Failure::Refused(refusal)) => Said::Refused(refusal),
                Err(failure) => Said::Failed(failure.to_string()),
            };
            self.tell_asker(server, asker, said);
        }
    }

    fn tell_asker(&mut self, server: usize, asker: Asker, said: Said) {
        if self.now_ns >= self.servers[server].isolated_until_ns {
            self.tell(&Event::Verdict { asker, said });
        }
    }

    pub(super) fn note(&mut self, server: usize, part: Part, error: Option<String>) {
        let silent = self.plan.mutation == Mutation::SilentHealth;
        self.servers[server].health.note(part, error.filter(|_| !silent));
    }

    /// A datagram arrives at a server.
    pub(super) fn serve(&mut self, server: usize, from: SocketAddrV4, mut bytes: Vec<u8>) {
        let (mutation, now_ns) = (self.plan.mutation, self.now_ns);
        let state = &mut self.servers[server];
        if !state.up || !state.started || now_ns < state.isolated_until_ns {
            return;
        }
        let path = Path { source: from, destination: state.address };
        let question = bytes.clone();
        match (Responder { keys: keys() }).respond(&state.table, &path, &mut bytes) {
            Ok(Received::Answered { .. }) => {
                if let Some(key) = keys().key(1, service_of(&question), *from.ip()) {
                    state.disobey(mutation, &question, &mut bytes, &key, &path);
                }
                self.send(path.destination, from, &bytes);
            }
            Ok(Received::Report(report)) if mutation != Mutation::CorrectNobody => {
                let mut corrections = Vec::new();
                state.corrector.report(now_ns, &state.table, &report, &mut corrections);
                self.totals.corrections_sent += corrections.len() as u64;
                for correction in corrections {
                    self.send(path.destination, correction.to, &correction.datagram);
                }
            }
            Ok(Received::Report(_)) | Err(_) => {}
        }
    }
}

fn service_of(datagram: &[u8]) -> u32 {
    View::new(datagram).map_or(0, |view| view.service())
}

impl Server {
    /// What stands before the queue: a service's request is its own, and within its quota.
    fn admit(&mut self, mutation: Mutation, request: &mut Request) -> Result<Option<(u32, Weight)>, Said> {
        let who = request.authority;
        let Authority::Service(service) = who else { return Ok(None) };
        let asked = request.updates.clone();
        let mut new_rows = 0;
        if mutation != Mutation::AnybodyMay {
            if let Some(verdict) = self.table.judged_before(request) {
                return Err(verdict.map_or_else(Said::Refused, Said::Done));
            }
            new_rows = who.check(&self.table, request).map_err(|denied| match denied {
                Denied::Forbidden(why) => Said::Denied(why),
                Denied::Behind { .. } => Said::Failed(denied.to_string()),
            })?;
        }
        if mutation == Mutation::Untied {
            request.updates = asked;
        }
        let weight = Weight { updates: request.updates.len(), new_rows };
        let opened = self.accounts.open_request(service, weight, self.table.rows(service), &QUOTA);
        if let Err(exceeded) = opened
            && mutation != Mutation::NoQuota
        {
            let why = format!("{exceeded}; nothing was changed");
            return Err(if exceeded.passes { Said::Failed(why) } else { Said::Denied(why) });
        }
        let open = self.open.entry(service).or_default();
        *open += 1;
        assert!(*open <= QUOTA.requests_open, "service {service} has more than its quota");
        Ok(Some((service, weight)))
    }

    /// Replaces a right answer by that of a broken server.
    fn disobey(&self, mutation: Mutation, question: &[u8], answer: &mut Vec<u8>, key: &Key, path: &Path) {
        let Ok(question) = Message::parse(question) else { return };
        let old = |entry: &Entry| self.old.answer(Entry::question(entry.aa, 0), 0, question.service);
        let open = |entry: &Entry| self.table.answer(*entry, question.revision, 0);
        let entries = match mutation {
            Mutation::AnswerOlder => question.entries.iter().map(old).collect(),
            Mutation::TellForeigners => question.entries.iter().map(open).collect(),
            _ => return,
        };
        let message = Message { kind: Kind::Answer, revision: self.table.revision(), entries, ..question };
        *answer = message.emit(key, &path.reversed());
    }
}
