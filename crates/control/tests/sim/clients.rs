//! The simulated clients: one request at a time, repeated through other servers until it is answered, and what they
//! remember of it all. Beside them, some who send as much as they can.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use weft_control::NS_PER_MS;
use weft_control::address::Locator;
use weft_control::directory::{Authority, Change, PolicyChange, Reason, Refusal, Request, Update};
use weft_wire::directory::{Entry, Kind, Message, Path, Status, View};

use super::history::{Action, Operation, Outcome};
use super::{AAS, Asker, Event, SERVICES, Said, TORS, World, aa, key, tor_la};

/// Requests that one client makes.
const REQUESTS: u64 = 6;
/// Requests that somebody sends at once who sends too much.
const FLOOD: u64 = 16;
/// Tries before it gives a request up.
const TRIES: u32 = 8;

/// A client.
pub(super) struct Client {
    pub(super) address: SocketAddrV4,
    who: Authority,
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
            let who = match k % 4 {
                0 | 1 => Authority::Operator,
                k => Authority::Service(k as u32 - 1),
            };
            self.clients.push(Client { address, who, id: k as u64 + 1, sequence: 0, open: None, reads });
            self.think_again(k);
        }
    }

    /// A service sends all that it can, and does not care for answers.
    pub(super) fn flood(&mut self) {
        if self.quiet {
            return;
        }
        let server = self.below(self.servers.len() as u64) as usize;
        for _ in 0..FLOOD {
            let aa = Ipv4Addr::from(0x1401_0000 + self.below(64) as u32);
            let change = if self.chance(300) { Change::Delete } else { self.set(2) };
            let client = if self.chance(500) { 1000 + self.below(10_000) } else { 0 };
            let update = Update { change, ..Update::delete(aa) };
            let request =
                Request { authority: Authority::Service(2), client, sequence: 1, ..Request::once(vec![update]) };
            let delay_ns = self.delay_ns();
            self.after(delay_ns, Event::Submit { server, asker: Asker::NOBODY, request });
        }
        let wait_ns = self.below(200 * NS_PER_MS);
        self.after(wait_ns, Event::Flood);
    }

    fn set(&mut self, service: u32) -> Change {
        let tor_la = tor_la(self.below(TORS.into()) as u8);
        Change::Set { locator: Locator { tor_la, anycast_la: super::truth::ANYCAST }, service, host_la: None }
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
        let who = self.clients[client].who;
        let mut request = Request { authority: who, ..self.any_request(server, who) };
        self.clients[client].sequence += 1;
        request.sequence = self.clients[client].sequence;
        // Some have no number, and ask once.
        request.client = if self.chance(800) { self.clients[client].id } else { 0 };
        let now_ns = self.now_ns;
        let noted = request.updates.iter().map(|update| (update.aa, self.truth.ask(now_ns, update))).collect();
        self.clients[client].open = Some(Open { request, attempt: 0, server, noted });
        self.ask(client);
    }

    fn any_request(&mut self, server: usize, who: Authority) -> Request {
        if self.chance(150) && who.is_operator() {
            let (from_service, allow) = (1 + self.below(2) as u32, self.chance(500));
            return Request::rules(vec![PolicyChange { from_service, to_service: 3 - from_service, allow }]);
        }
        let mut updates = vec![self.any_update(server, who)];
        let second = self.any_update(server, who);
        if self.chance(200) && second.aa != updates[0].aa {
            updates.push(second);
        }
        Request::once(updates)
    }

    fn any_update(&mut self, server: usize, who: Authority) -> Update {
        let aa = self.any_aa_of(who);
        let home = u32::from(aa) % SERVICES;
        let foreign = self.chance(if who.is_operator() { 100 } else { 20 });
        let service = if foreign { self.below(SERVICES.into()) as u32 } else { home };
        let change = if self.chance(200) { Change::Delete } else { self.set(service) };
        // As a careful client does: it looks first, perhaps at a server that lags, or one that does not.
        let looked = if self.chance(500) { server } else { self.below(self.servers.len() as u64) as usize };
        let seen = self.servers[looked].table.record(aa).map_or(0, |record| record.version);
        let if_version = self.chance(400).then_some(seen);
        Update { aa, change, if_version, version: None }
    }

    /// Services ask for their own most of the time.
    fn any_aa_of(&mut self, who: Authority) -> Ipv4Addr {
        let (any, foreign) = (self.below(AAS), self.chance(50));
        let fits = |aa: &Ipv4Addr| match who {
            Authority::Operator => true,
            Authority::Service(service) => foreign || u32::from(*aa) % SERVICES == service,
        };
        (0..AAS).map(|k| aa((any + k) % AAS)).find(fits).unwrap_or(aa(any))
    }

    /// Sends the open request to its server, and waits.
    fn ask(&mut self, client: usize) {
        let Some(open) = &self.clients[client].open else { return };
        let (server, attempt, request) = (open.server, open.attempt, open.request.clone());
        let asker = Asker { client, sequence: request.sequence, attempt };
        if !self.chance(self.faults.loss) {
            let delay_ns = self.delay_ns();
            self.after(delay_ns, Event::Submit { server, asker, request });
        }
        // Some wait for what the server says, whatever it is.
        let patience_ns = if self.chance(300) { 1500 } else { 150 } * NS_PER_MS;
        let wait_ns = patience_ns + self.below(300 * NS_PER_MS);
        self.after(wait_ns, Event::Unheard { asker });
    }

    /// The same request goes to another server, a few times.
    pub(super) fn unheard(&mut self, asker: Asker) {
        let servers = self.servers.len();
        let Asker { client, sequence, attempt } = asker;
        let Some(open) = &mut self.clients[client].open else { return };
        if open.request.sequence != sequence || open.attempt != attempt {
            return;
        }
        if open.request.client == 0 || attempt >= TRIES && !self.quiet {
            self.totals.given_up += 1;
            self.clients[client].open = None;
            return self.think_again(client);
        }
        open.attempt += 1;
        open.server = (open.server + 1) % servers;
        self.ask(client);
    }

    /// An answer comes to a client.
    pub(super) fn answer(&mut self, asker: Asker, said: Said) {
        let Asker { client, sequence, attempt } = asker;
        if self.clients.get(client).and_then(|client| client.open.as_ref()).is_none_or(|open| {
            let other = open.request.sequence != sequence;
            other || open.attempt != attempt && matches!(said, Said::Failed(_) | Said::Denied(_))
        }) {
            return;
        }
        match said {
            Said::Done(revision) => self.judged(client, Ok(revision)),
            Said::Refused(refusal) => self.judged(client, Err(refusal)),
            // Versions never go back: it will not be true later, and was not before, or its number would be known.
            Said::Denied(why) if attempt == 0 || why.contains("expected version") => self.not_done(client),
            Said::Denied(_) => self.given_up(client),
            Said::Failed(why) => self.not_taken(asker, &why),
        }
    }

    /// The request was not carried out this time, or that is not known.
    fn not_taken(&mut self, asker: Asker, why: &str) {
        let Asker { client, attempt, .. } = asker;
        let nothing = why.contains("nothing was changed");
        assert!(nothing || why.contains("unknown"), "it is not said whether it was carried out: {why}");
        self.totals.failed += 1;
        let numbered = self.clients[client].open.as_ref().is_some_and(|open| open.request.client != 0);
        if nothing && attempt == 0 && (!numbered || self.chance(500)) {
            self.not_done(client);
        } else if !numbered {
            self.given_up(client);
        }
        // Otherwise it asks again when it would have, had it heard nothing.
    }

    /// It was never carried out, and never will be.
    fn not_done(&mut self, client: usize) {
        let Some(open) = self.clients[client].open.take() else { return };
        self.totals.not_done += 1;
        self.truth.never(&open.request);
        for (aa, place) in &open.noted {
            self.truth.answer(self.now_ns, *aa, *place, None);
        }
        self.think_again(client);
    }

    /// In peace everybody is answered.
    pub(super) fn assert_clients_answered(&self) {
        for (k, client) in self.clients.iter().enumerate() {
            assert!(client.open.is_none(), "client {k} was never answered");
        }
    }

    /// Whether it was carried out stays unknown.
    fn given_up(&mut self, client: usize) {
        self.clients[client].open = None;
        self.totals.given_up += 1;
        self.think_again(client);
    }

    fn judged(&mut self, client: usize, verdict: Result<u64, Refusal>) {
        let Some(open) = self.clients[client].open.take() else { return };
        match &verdict {
            Ok(_) => self.totals.applied += 1,
            Err(_) => self.totals.refused += 1,
        }
        let service = !self.clients[client].who.is_operator();
        for (number, (aa, place)) in open.noted.iter().enumerate() {
            // A service's update is tied to the version that was found, whatever it asked for.
            let tied = service && open.request.updates[number].if_version.is_none();
            let outcome =
                outcome(&verdict, number + 1).filter(|outcome| !tied || matches!(outcome, Outcome::Applied { .. }));
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
