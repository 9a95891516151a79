//! The simulated directory servers: the shipped table, responder and corrector, and a replica around them that appends,
//! follows, acknowledges, crashes and returns.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use weft_control::NS_PER_MS;
use weft_control::directory::record::{decode_batch, decode_snapshot, encode_batch};
use weft_control::directory::{
    Batch, CorrectionLimits, Corrector, CorrectorConfig, Received, Refusal, Request, Responder, Table,
};
use weft_wire::directory::{Entry, Key, Kind, Message, Path, View};

use super::{Event, Mutation, Origin, TORS, World, keys, tor_la};

/// A server.
pub(super) struct Server {
    pub(super) address: SocketAddrV4,
    pub(super) up: bool,
    /// How many times it started.
    pub(super) life: u64,
    pub(super) cut_until_ns: u64,
    pub(super) isolated_until_ns: u64,
    pub(super) table: Table,
    corrector: Corrector,
    /// Requests that wait for the next record.
    waiting: Vec<(usize, Request)>,
    /// Those in records that are not seen in the log yet.
    sent: BTreeMap<u64, Vec<(usize, Request)>>,
    next_number: u64,
    /// For mutations: the table as it was a while ago, and whether a record was left out.
    old: Table,
    skipped: bool,
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

impl World {
    pub(super) fn set_up_servers(&mut self) {
        for k in 0..self.plan.servers {
            let address = SocketAddrV4::new(Ipv4Addr::new(10, 64, 9, k as u8 + 1), 5300);
            self.servers.push(Server {
                address,
                up: true,
                life: 0,
                cut_until_ns: 0,
                isolated_until_ns: 0,
                table: Table::default(),
                corrector: corrector(address),
                waiting: Vec::new(),
                sent: BTreeMap::new(),
                next_number: 0,
                old: Table::default(),
                skipped: false,
            });
            self.after(0, Event::Poll { server: k });
        }
    }

    pub(super) fn server_down(&mut self, server: usize, lasts_ns: u64) {
        let state = &mut self.servers[server];
        if state.up {
            state.up = false;
            state.life += 1;
            let life = state.life;
            self.after(lasts_ns, Event::ServerUp { server, life });
        }
    }

    /// It starts with nothing but what the store has.
    pub(super) fn server_up(&mut self, server: usize) {
        let state = &mut self.servers[server];
        state.up = true;
        state.table = Table::default();
        state.corrector = corrector(state.address);
        state.waiting.clear();
        state.sent.clear();
        self.follow(server);
    }

    /// A request arrives: it waits a millisecond for company.
    pub(super) fn submitted(&mut self, server: usize, client: usize, request: Request) {
        let mutation = self.plan.mutation;
        let now_ns = self.now_ns;
        let state = &mut self.servers[server];
        if !state.up || now_ns < state.isolated_until_ns {
            return;
        }
        let sequence = request.sequence;
        if mutation == Mutation::RefuseFromOwnTable
            && let Err(refusal) = state.table.check(&request)
        {
            return self.verdict(server, client, sequence, Err(refusal));
        }
        state.waiting.push((client, request));
        let (first, life, promised) = (state.waiting.len() == 1, state.life, state.table.revision() + 1);
        if first {
            self.after(NS_PER_MS, Event::Flush { server, life });
        }
        if mutation == Mutation::AckBeforeCommit {
            self.verdict(server, client, sequence, Ok(promised));
        }
    }

    pub(super) fn flush(&mut self, server: usize, life: u64) {
        let forget = self.plan.mutation == Mutation::ForgetSequences;
        let now_ns = self.now_ns;
        let state = &mut self.servers[server];
        if !state.up || state.life != life || state.waiting.is_empty() {
            return;
        }
        let number = state.next_number;
        state.next_number += 1;
        let waiting = std::mem::take(&mut state.waiting);
        let mut requests: Vec<Request> = waiting.iter().map(|(_, request)| request.clone()).collect();
        if forget {
            requests.iter_mut().for_each(|request| request.client = 0);
        }
        state.sent.insert(number, waiting);
        let cut = now_ns < state.cut_until_ns;
        let origin = Origin { server, life, number };
        if !cut {
            self.tell(&Event::Append { origin, bytes: encode_batch(&Batch { requests }) });
        }
        self.after(300 * NS_PER_MS, Event::Overdue { origin });
    }

    /// The record may be lost or late, or only the news of it: its requests go into another one.
    pub(super) fn overdue(&mut self, origin: Origin) {
        let Origin { server, life, number } = origin;
        let state = &mut self.servers[server];
        if !state.up || state.life != life {
            return;
        }
        if let Some(requests) = state.sent.remove(&number) {
            self.totals.appended_again += 1;
            state.waiting.extend(requests);
            self.flush(server, life);
        }
    }

    /// Reads the log to its end, from a snapshot if its beginning is gone, and answers clients on the way.
    pub(super) fn follow(&mut self, server: usize) {
        let state = &mut self.servers[server];
        if !state.up || self.now_ns < state.cut_until_ns {
            return;
        }
        if state.table.revision() < self.store.compacted {
            self.totals.snapshots_loaded += 1;
            self.load_snapshot(server);
        }
        let from = self.servers[server].table.revision();
        let first = self.store.records.partition_point(|record| record.revision <= from);
        for place in first..self.store.records.len() {
            self.apply(server, place);
        }
    }

    fn load_snapshot(&mut self, server: usize) {
        let Some((revision, pages)) = &self.store.snapshot else { return };
        let lost = |page: &&Vec<u8>| self.plan.mutation == Mutation::LosePolicy && page[1] == 4;
        let pages = pages.iter().filter(|page| !lost(page)).map(Vec::as_slice);
        self.servers[server].table = decode_snapshot(*revision, pages).expect("it was written by us");
    }

    fn apply(&mut self, server: usize, place: usize) {
        let record = &self.store.records[place];
        let (revision, origin) = (record.revision, record.origin);
        let mut batch = decode_batch(&record.bytes).expect("it was written by us");
        let state = &mut self.servers[server];
        if self.plan.mutation == Mutation::SkipRecord && !state.skipped && server == 0 && revision > 40 {
            state.skipped = true;
            batch = Batch::default();
        }
        if place.is_multiple_of(16) {
            state.old = state.table.clone();
        }
        let before: Vec<bool> =
            batch.requests.iter().map(|request| matches!(state.table.check(request), Ok(Some(_)))).collect();
        self.totals.applied_before += before.iter().filter(|before| **before).count() as u64;
        let verdicts = state.table.apply(revision, &batch);
        let Some(origin) = origin.filter(|origin| origin.server == server && origin.life == state.life) else { return };
        let Some(waiting) = state.sent.remove(&origin.number) else { return };
        for ((client, request), verdict) in waiting.into_iter().zip(verdicts) {
            self.verdict(server, client, request.sequence, verdict);
        }
    }

    fn verdict(&mut self, server: usize, client: usize, sequence: u64, verdict: Result<u64, Refusal>) {
        if self.now_ns >= self.servers[server].isolated_until_ns {
            self.tell(&Event::Verdict { client, sequence, verdict });
        }
    }

    /// A datagram arrives at a server.
    pub(super) fn serve(&mut self, server: usize, from: SocketAddrV4, mut bytes: Vec<u8>) {
        let (mutation, now_ns) = (self.plan.mutation, self.now_ns);
        let state = &mut self.servers[server];
        if !state.up || now_ns < state.isolated_until_ns {
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
