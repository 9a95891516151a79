//! Questions on their way: coalesced, sent to two servers at a time, remembered until the answer is in or too late.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use rand::Rng;
use rand_pcg::Pcg64;
use weft_wire::directory::{ENTRIES_MAX, Entry, Kind, Message};

use super::repeats::Repeats;
use super::servers::Servers;

/// Servers that one question goes to (VL2 4.3.2: "two in our prototype").
pub(super) const SERVERS_PER_QUESTION: usize = 2;

/// The servers of one question, as places in the configured list, ascending.
pub(super) type Asked = Vec<usize>;

/// Questions that wait for company, and questions that wait for answers.
#[derive(Debug)]
pub(super) struct Asker {
    addresses: Vec<SocketAddrV4>,
    servers: Servers,
    repeats: Repeats,
    /// Waiting questions by the servers that they should avoid.
    pending: BTreeMap<Asked, Vec<Entry>>,
    pending_count: usize,
    flush_at_ns: Option<u64>,
    requests: BTreeMap<u64, Request>,
    /// Requests in order of expiry.
    expiry: VecDeque<(u64, u64)>,
    rng: Pcg64,
}

/// A datagram that was sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) asked: Asked,
    pub(super) aas: Vec<Ipv4Addr>,
}

/// A datagram to send.
pub(super) struct Outgoing {
    pub(super) to: Vec<SocketAddrV4>,
    pub(super) message: Message,
    pub(super) asked: Asked,
}

impl Asker {
    /// Asks these servers, of which an answer is expected within `wait_ns`.
    pub(super) fn new(addresses: Vec<SocketAddrV4>, wait_ns: u64, rng: Pcg64) -> Self {
        Self {
            servers: Servers::new(addresses.len(), wait_ns),
            addresses,
            repeats: Repeats::default(),
            pending: BTreeMap::new(),
            pending_count: 0,
            flush_at_ns: None,
            requests: BTreeMap::new(),
            expiry: VecDeque::new(),
            rng,
        }
    }

    /// Asks these servers from now on. What is known of the old ones is forgotten if they are others.
    pub(super) fn set_servers(&mut self, addresses: &[SocketAddrV4], wait_ns: u64) {
        if self.addresses != addresses {
            self.servers = Servers::new(addresses.len(), wait_ns);
            self.addresses = addresses.to_vec();
        }
    }

    /// A number below `bound` (0 if that is 0), for jitter.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.rng.next_u64() % bound }
    }

    /// Whether a question may be repeated now. `Err`: when it may.
    pub(super) fn may_repeat(&mut self, now_ns: u64) -> Result<(), u64> {
        self.repeats.may(now_ns)
    }

    /// Adds a question, a repeated one if there are servers to avoid; it leaves at `flush_at_ns` at the latest, or as soon as a datagram is full.
    pub(super) fn enqueue(&mut self, question: Entry, avoid: Asked, flush_at_ns: u64) {
        self.pending.entry(avoid).or_default().push(question);
        self.pending_count += 1;
        self.flush_at_ns = Some(self.flush_at_ns.map_or(flush_at_ns, |at| at.min(flush_at_ns)));
    }

    /// When questions have to leave.
    pub(super) fn flush_at_ns(&self) -> Option<u64> {
        self.flush_at_ns
    }

    /// Whether questions should leave now.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.pending_count >= ENTRIES_MAX || self.flush_at_ns.is_some_and(|at| at <= now_ns)
    }

    /// All waiting questions as datagrams, remembered until `remember_until_ns`.
    pub(super) fn flush(
        &mut self,
        now_ns: u64,
        service: u32,
        key_id: u32,
        revision: u64,
        remember_until_ns: u64,
    ) -> Vec<Outgoing> {
        self.flush_at_ns = None;
        self.pending_count = 0;
        let mut outgoing = Vec::new();
        for (avoid, questions) in std::mem::take(&mut self.pending) {
            for entries in questions.chunks(ENTRIES_MAX) {
                let asked = self.choose(now_ns, &avoid);
                let request_id = self.remember(&asked, entries, remember_until_ns);
                let message =
                    Message { kind: Kind::Ask, service, request_id, revision, key_id, entries: entries.to_vec() };
                let to = asked.iter().map(|place| self.addresses[*place]).collect();
                outgoing.push(Outgoing { to, message, asked });
            }
        }
        outgoing
    }

    fn choose(&mut self, now_ns: u64, avoid: &Asked) -> Asked {
        let mut asked = Asked::with_capacity(SERVERS_PER_QUESTION);
        if avoid.is_empty() {
            self.servers.pick(now_ns, SERVERS_PER_QUESTION, &mut self.rng, &mut asked);
        } else {
            let was_asked = |place: usize| avoid.contains(&place);
            self.servers.pick_others(now_ns, SERVERS_PER_QUESTION, was_asked, &mut self.rng, &mut asked);
            self.repeats.spend(asked.len());
        }
        asked
    }

    fn remember(&mut self, asked: &Asked, entries: &[Entry], until_ns: u64) -> u64 {
        let mut request_id = self.rng.next_u64();
        while self.requests.contains_key(&request_id) {
            request_id = self.rng.next_u64();
        }
        let aas = entries.iter().map(|entry| entry.aa).collect();
        self.requests.insert(request_id, Request { asked: asked.clone(), aas });
        self.expiry.push_back((until_ns, request_id));
        request_id
    }

    /// Forgets requests whose time is over. Spans are constant, so they expire in the order in which they were made.
    pub(super) fn expire(&mut self, now_ns: u64) {
        while self.expiry.front().is_some_and(|(until_ns, _)| *until_ns <= now_ns) {
            if let Some((_, request_id)) = self.expiry.pop_front() {
                self.requests.remove(&request_id);
            }
        }
    }

    /// The place of a configured server.
    pub(super) fn place_of(&self, server: SocketAddrV4) -> Option<usize> {
        self.addresses.iter().position(|known| *known == server)
    }

    /// A valid datagram of this server came.
    pub(super) fn heard(&mut self, place: usize) {
        self.servers.heard(place);
    }

    /// The request that this server was asked with.
    pub(super) fn request(&self, request_id: u64, place: usize) -> Option<&Request> {
        self.requests.get(&request_id).filter(|request| request.asked.contains(&place))
    }

    /// An answer told what was asked, which pays for repeats.
    pub(super) fn answered(&mut self, now_ns: u64) {
        self.repeats.answered(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(servers: u8) -> Asker {
        let servers = (1..=servers).map(|k| SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, k), 5300)).collect();
        Asker::new(servers, 20, Pcg64::new(1, 2))
    }

    fn question(k: u8) -> Entry {
        Entry::question(Ipv4Addr::new(20, 0, 0, k), 0)
    }

    #[test]
    fn two_different_servers_are_asked_and_a_retry_goes_elsewhere() {
        let mut asker = asker(4);
        for _ in 0..200 {
            asker.enqueue(question(1), vec![1, 3], 0);
            let sent = asker.flush(0, 0, 0, 0, 10);
            assert_eq!(sent[0].asked, [0, 2]);
        }
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            asker.enqueue(question(1), Vec::new(), 0);
            seen.insert(asker.flush(0, 0, 0, 0, 10)[0].asked.clone());
        }
        assert_eq!(seen.len(), 6, "every pair of four servers is used: {seen:?}");
    }

    #[test]
    fn one_server_is_asked_again_when_there_is_no_other() {
        let mut asker = asker(1);
        asker.enqueue(question(1), vec![0], 0);
        assert_eq!(asker.flush(0, 0, 0, 0, 10)[0].asked, [0]);
    }

    #[test]
    fn questions_share_datagrams_of_forty() {
        let mut asker = asker(2);
        for k in 0..90 {
            assert_eq!(asker.is_due(0), k >= 40);
            asker.enqueue(question(k), Vec::new(), 100);
        }
        let sizes: Vec<usize> = asker.flush(0, 0, 0, 0, 10).iter().map(|sent| sent.message.entries.len()).collect();
        assert_eq!(sizes, [40, 40, 10]);
        assert!(!asker.is_due(u64::MAX));
    }

    #[test]
    fn a_request_is_known_for_its_servers_until_it_expires() {
        let mut asker = asker(3);
        asker.enqueue(question(1), vec![2], 0);
        let id = asker.flush(0, 0, 0, 0, 10)[0].message.request_id;
        let place = |k| asker.place_of(SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, k), 5300));
        let (first, third) = (place(1).unwrap(), place(3).unwrap());
        assert_eq!(place(4), None);
        assert!(asker.request(id, first).is_some());
        assert!(asker.request(id, third).is_none(), "it was not asked");
        assert!(asker.request(id ^ 1, first).is_none());
        asker.expire(10);
        assert!(asker.request(id, first).is_none());
    }
}
