//! The simulated clients: one request at a time, repeated through other servers until it is answered, and what they
//! remember of it all.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use weft_control::NS_PER_MS;
use weft_control::address::Locator;
use weft_control::directory::{Change, PolicyChange, Reason, Refusal, Request, Update};
use weft_wire::directory::{Entry, Kind, Message, Path, Status, View};

use super::history::{Action, Operation, Outcome};
use super::{Event, SERVICES, TORS, World, key, tor_la};

/// Requests that one client makes.
const REQUESTS: u64 = 12;
/// Tries before it gives a request up.
const TRIES: u32 = 8;

/// A client.
pub(super) struct Client {
    pub(super) address: SocketAddrV4,
    /// Its name towards the directory.
    id: u64,
    sequence: u64,
    open: Option<Open>,
    /// Fences of reads under way, by request id.
    reads: BTreeMap<u64, Fence>,
}

/// A request without an answer.
struct Open {
    request: Request,
    attempt: u32,
    server: usize,
    /// Where its operations stand in the histories.
    noted: Vec<(Ipv4Addr, usize)>,
}

/// What a read must not be older than.
#[derive(Clone, Copy)]
struct Fence {
    aa: Ipv4Addr,
    revision: u64,
}

impl World {
    pub(super) fn set_up_clients(&mut self) {
        for k in 0..self.plan.clients {
            let address = SocketAddrV4::new(Ipv4Addr::new(10, 64, 8, k as u8 + 1), 6000);
            let reads = BTreeMap::new();
            self.clients.push(Client { address, id: k as u64 + 1, sequence: 0, open: None, reads });
            self.think_again(k);
        }
    }

    fn think_again(&mut self, client: usize) {
        let wait_ns = self.below(150 * NS_PER_MS);
        self.after(wait_ns, Event::Think { client });
    }

    pub(super) fn think(&mut self, client: usize) {
        if self.quiet || self.clients[client].sequence >= REQUESTS * (1 + self.plan.severity) {
            return;
        }
        let server = self.below(self.servers.len() as u64) as usize;
        let mut request = self.any_request(server);
        self.clients[client].sequence += 1;
        (request.client, request.sequence) = (self.clients[client].id, self.clients[client].sequence);
        let now_ns = self.now_ns;
        let noted = request.updates.iter().map(|update| (update.aa, self.truth.ask(now_ns, update))).collect();
        self.clients[client].open = Some(Open { request, attempt: 0, server, noted });
        self.ask(client);
    }

    fn any_request(&mut self, server: usize) -> Request {
        if self.chance(150) {
            let (from_service, allow) = (1 + self.below(2) as u32, self.chance(500));
            return Request::rules(vec![PolicyChange { from_service, to_service: 3 - from_service, allow }]);
        }
        let mut updates = vec![self.any_update(server)];
        let second = self.any_update(server);
        if self.chance(200) && second.aa != updates[0].aa {
            updates.push(second);
        }
        Request::once(updates)
    }

    fn any_update(&mut self, server: usize) -> Update {
        let aa = self.any_aa();
        let place = Locator { tor_la: tor_la(self.below(TORS.into()) as u8), anycast_la: super::truth::ANYCAST };
        let home = u32::from(aa) % SERVICES;
        let service = if self.chance(100) { self.below(SERVICES.into()) as u32 } else { home };
        let change =
            if self.chance(200) { Change::Delete } else { Change::Set { locator: place, service, host_la: None } };
        // As a careful client does: it looks first, perhaps at a server that lags.
        let seen = self.servers[server].table.record(aa).map_or(0, |record| record.version);
        let if_version = self.chance(400).then_some(seen);
        Update { aa, change, if_version, version: None }
    }

    /// Sends the open request to its server, and waits.
    fn ask(&mut self, client: usize) {
        let Some(open) = &self.clients[client].open else { return };
        let (server, attempt, request) = (open.server, open.attempt, open.request.clone());
        let sequence = request.sequence;
        self.tell(&Event::Submit { server, client, request });
        let wait_ns = 150 * NS_PER_MS + self.below(300 * NS_PER_MS);
        self.after(wait_ns, Event::Unheard { client, sequence, attempt });
    }

    /// The same request goes to another server, a few times.
    pub(super) fn unheard(&mut self, client: usize, sequence: u64, attempt: u32) {
        let servers = self.servers.len();
        let Some(open) = &mut self.clients[client].open else { return };
        if open.request.sequence != sequence || open.attempt != attempt {
            return;
        }
        if attempt >= TRIES && !self.quiet {
            self.totals.given_up += 1;
            self.clients[client].open = None;
            return self.think_again(client);
        }
        open.attempt += 1;
        open.server = (open.server + 1) % servers;
        self.ask(client);
    }

    pub(super) fn judged(&mut self, client: usize, sequence: u64, verdict: Result<u64, Refusal>) {
        let Some(open) = self.clients[client].open.take_if(|open| open.request.sequence == sequence) else { return };
        match &verdict {
            Ok(_) => self.totals.applied += 1,
            Err(_) => self.totals.refused += 1,
        }
        for (number, (aa, place)) in open.noted.iter().enumerate() {
            let outcome = outcome(&verdict, number + 1);
            self.truth.answer(self.now_ns, *aa, *place, outcome);
        }
        if let (Ok(revision), Some((aa, _))) = (verdict, open.noted.first()) {
            self.read_back(client, Fence { aa: *aa, revision });
        }
        self.think_again(client);
    }

    /// Asks any server where the AA is, not older than the update just made.
    fn read_back(&mut self, client: usize, fence: Fence) {
        let server = self.below(self.servers.len() as u64) as usize;
        let request_id = self.below(u64::MAX);
        let question = Message {
            kind: Kind::Ask,
            service: 0,
            request_id,
            revision: fence.revision,
            key_id: 1,
            entries: vec![Entry::question(fence.aa, 0)],
        };
        self.clients[client].reads.insert(request_id, fence);
        let path = Path { source: self.clients[client].address, destination: self.servers[server].address };
        let bytes = question.emit(&key(0, *path.source.ip()), &path);
        self.send(path.source, path.destination, &bytes);
    }

    pub(super) fn client_reads(&mut self, client: usize, from: SocketAddrV4, bytes: &[u8]) {
        let state = &mut self.clients[client];
        let path = Path { source: from, destination: state.address };
        let key = key(0, *state.address.ip());
        let Some(view) = View::new(bytes).ok().filter(|view| view.verify(&key, &path).is_ok()) else { return };
        let Some(fence) = state.reads.remove(&view.request_id()) else { return };
        let entry = view.entry(0).expect("an answer has the entries of its question");
        if entry.status == Status::Behind {
            return;
        }
        self.totals.fenced_reads += 1;
        assert_eq!(entry.aa, fence.aa);
        assert!(view.revision() >= fence.revision && entry.version >= fence.revision, "{entry:?}: before the fence");
    }
}

/// What a verdict on a request says about its update with this number; `None`: nothing, for another was at fault.
fn outcome(verdict: &Result<u64, Refusal>, number: usize) -> Option<Outcome> {
    match verdict {
        Ok(revision) => Some(Outcome::Applied { revision: *revision }),
        Err(Refusal::Update { number: at_fault, reason, .. }) if *at_fault == number => Some(match reason {
            Reason::VersionMismatch { current, .. } => Outcome::Mismatch { current: *current },
            Reason::NotFound => Outcome::NotFound,
            other => panic!("a refusal that nobody earned: {other}"),
        }),
        Err(Refusal::Update { .. }) => None,
        Err(other) => panic!("a refusal that nobody earned: {other}"),
    }
}

/// An update as the judge of histories sees it.
pub(super) fn operation(asked_ns: u64, update: &Update) -> Operation {
    let if_version = update.if_version;
    let action = match update.change {
        Change::Set { locator, .. } => Action::Set { place: u32::from(locator.tor_la).into(), if_version },
        Change::Delete => Action::Delete { if_version },
    };
    Operation { action, asked_ns, answer: None }
}
