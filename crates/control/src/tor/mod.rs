//! What a ToR does about packets that come to it for AAs that are not behind it (VL2 4.3.2, reactive cache update).
//!
//! The data path drops such packets, counts them and hands a sample of their addresses up. The [`Reporter`] tells a
//! directory server, which corrects the sender's agent. Samples of one pair of AAs are told once in a while only: the
//! correction needs a moment to arrive, and packets that keep coming after it bring the next report, to the next server in
//! turn. So a report that is lost, or a server that is down or behind, costs one such while and no retransmission.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddrV4;

use rand::Rng;
use rand_pcg::Pcg64;
use weft_wire::directory::{ENTRIES_MAX, Entry, Key, Kind, Message, Path};

use crate::directory::Stale;
use crate::directory::policy::COMMON_SERVICE;
use crate::tally::Tally;
use crate::{Machine, NS_PER_MS, counted};

counted! {
    /// What became of samples.
    pub enum Event {
        /// A sample came from the data path.
        Sampled = "sampled",
        /// It was told to a server.
        Reported = "reported",
        /// Its pair was told a moment ago.
        Repeated = "repeated",
        /// Too many pairs at a time: not told.
        Full = "full",
        DatagramSent = "datagram_sent",
    }
}

/// Who the ToR is and whom it tells.
#[derive(Clone, Debug)]
pub struct Config {
    /// The ToR's LA, and the port that reports come from.
    pub local: SocketAddrV4,
    /// Directory servers, at least one.
    pub servers: Vec<SocketAddrV4>,
    /// Key of the tag: derived for service 0 and the ToR's LA.
    pub key: Key,
    /// Which secret it was derived from.
    pub key_id: u32,
    /// When and how much.
    pub limits: Limits,
}

/// When reports leave, and how many pairs are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a sample waits for others that share its datagram.
    pub coalesce_ns: u64,
    /// How long a pair is not told again. Above a round trip to a directory server and on to an agent.
    pub repeat_ns: u64,
    /// Pairs remembered; beyond that samples are dropped and counted.
    pub pairs_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { coalesce_ns: 100_000, repeat_ns: 10 * NS_PER_MS, pairs_max: 4096 }
    }
}

/// What happens to a reporter.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    /// The data path dropped a packet with these ends.
    Sample(Stale),
    /// The time of [`Machine::next_deadline_ns`] has come.
    Deadline,
}

/// What it wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this datagram.
    Send {
        /// To this server.
        to: SocketAddrV4,
        /// Tagged and complete.
        datagram: Vec<u8>,
    },
}

/// The state of a ToR's reporter.
#[derive(Debug)]
pub struct Reporter {
    config: Config,
    waiting: Vec<Stale>,
    flush_at_ns: Option<u64>,
    told: BTreeSet<Stale>,
    /// The pairs in `told`, in the order in which they may be told again.
    expiry: VecDeque<(u64, Stale)>,
    turn: usize,
    rng: Pcg64,
    counts: Tally<Event>,
}

impl Machine for Reporter {
    type Input<'a> = Input;
    type Output = Output;

    fn handle(&mut self, now_ns: u64, input: Input, outputs: &mut Vec<Output>) {
        if let Input::Sample(stale) = input {
            self.sample(now_ns, stale);
        }
        if self.waiting.len() >= ENTRIES_MAX || self.flush_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.flush(outputs);
        }
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.flush_at_ns
    }
}

impl Reporter {
    /// A reporter that has told nothing. `rng` picks the first server and request ids.
    ///
    /// # Panics
    /// Without servers: the caller checks its settings.
    pub fn new(config: Config, mut rng: Pcg64) -> Self {
        assert!(!config.servers.is_empty(), "a reporter has a server to tell");
        let turn = rng.next_u64() as usize % config.servers.len();
        Self {
            config,
            waiting: Vec::new(),
            flush_at_ns: None,
            told: BTreeSet::new(),
            expiry: VecDeque::new(),
            turn,
            rng,
            counts: Tally::default(),
        }
    }

    /// Who it is, and whom it tells and how, from now on.
    ///
    /// # Panics
    /// Without servers.
    pub fn reconfigure(&mut self, config: Config) {
        assert!(!config.servers.is_empty(), "a reporter has a server to tell");
        self.turn %= config.servers.len();
        self.config = config;
    }

    /// What became of samples so far.
    pub fn counts(&self) -> &Tally<Event> {
        &self.counts
    }

    fn sample(&mut self, now_ns: u64, stale: Stale) {
        self.counts.add(Event::Sampled);
        while self.expiry.front().is_some_and(|(until_ns, _)| *until_ns <= now_ns) {
            if let Some((_, pair)) = self.expiry.pop_front() {
                self.told.remove(&pair);
            }
        }
        if self.told.contains(&stale) {
            return self.counts.add(Event::Repeated);
        }
        let Limits { coalesce_ns, repeat_ns, pairs_max } = self.config.limits;
        if self.told.len() >= pairs_max {
            return self.counts.add(Event::Full);
        }
        self.told.insert(stale);
        self.expiry.push_back((now_ns.saturating_add(repeat_ns), stale));
        self.waiting.push(stale);
        self.flush_at_ns.get_or_insert(now_ns.saturating_add(coalesce_ns));
    }

    fn flush(&mut self, outputs: &mut Vec<Output>) {
        self.flush_at_ns = None;
        let waiting = std::mem::take(&mut self.waiting);
        for stale in waiting.chunks(ENTRIES_MAX) {
            let to = self.config.servers[self.turn];
            self.turn = (self.turn + 1) % self.config.servers.len();
            let message = self.message(stale);
            let path = Path { source: self.config.local, destination: to };
            stale.iter().for_each(|_| self.counts.add(Event::Reported));
            self.counts.add(Event::DatagramSent);
            outputs.push(Output::Send { to, datagram: message.emit(&self.config.key, &path) });
        }
    }

    fn message(&mut self, stale: &[Stale]) -> Message {
        let tor_la = *self.config.local.ip();
        let entry = |stale: &Stale| Entry { tor_la, anycast_la: stale.source_aa, ..Entry::question(stale.aa, 0) };
        Message {
            kind: Kind::ReportStale,
            service: COMMON_SERVICE,
            request_id: self.rng.next_u64(),
            revision: 0,
            key_id: self.config.key_id,
            entries: stale.iter().map(entry).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use weft_wire::directory::{Secret, View};

    use super::*;
    use crate::NS_PER_S;
    use crate::directory::{KeyRing, Received, Report, Responder, Table};

    const SECRET: Secret = Secret::from_bytes([7; 16]);
    const TOR_LA: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
    const LOCAL: SocketAddrV4 = SocketAddrV4::new(TOR_LA, 5302);

    fn server(k: u8) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 64, 9, k), 5300)
    }

    fn reporter(limits: Limits) -> Reporter {
        let key = SECRET.derive(0, TOR_LA);
        let servers = (1..=3).map(server).collect();
        Reporter::new(Config { local: LOCAL, servers, key, key_id: 1, limits }, Pcg64::new(5, 6))
    }

    fn stale(k: u8) -> Stale {
        Stale { aa: Ipv4Addr::new(20, 0, 0, k), source_aa: Ipv4Addr::new(20, 0, 1, k) }
    }

    fn input(reporter: &mut Reporter, now_ns: u64, input: Input) -> Vec<(SocketAddrV4, Vec<u8>)> {
        let mut outputs = Vec::new();
        reporter.handle(now_ns, input, &mut outputs);
        outputs.into_iter().map(|Output::Send { to, datagram }| (to, datagram)).collect()
    }

    #[test]
    fn samples_share_a_datagram_that_a_server_believes() {
        let mut reporter = reporter(Limits::default());
        for k in 1..=3 {
            assert_eq!(input(&mut reporter, u64::from(k), Input::Sample(stale(k))), []);
        }
        assert_eq!(reporter.next_deadline_ns(), Some(100_001));
        let mut sent = input(&mut reporter, 100_001, Input::Deadline);
        assert_eq!((sent.len(), reporter.next_deadline_ns()), (1, None));
        let (to, datagram) = &mut sent[0];
        let path = Path { source: LOCAL, destination: *to };
        let responder = Responder { keys: KeyRing::new([(1, SECRET)]) };
        let report = Report { tor_la: TOR_LA, stale: (1..=3).map(stale).collect() };
        assert_eq!(responder.respond(&Table::default(), &path, datagram), Ok(Received::Report(report)));
    }

    #[test]
    fn a_pair_is_told_once_in_a_while_and_to_each_server_in_turn() {
        let mut reporter = reporter(Limits::default());
        let mut asked = Vec::new();
        for at_ms in 0..60 {
            input(&mut reporter, at_ms * NS_PER_MS, Input::Sample(stale(1)));
            let sent = input(&mut reporter, at_ms * NS_PER_MS + 100_000, Input::Deadline);
            asked.extend(sent.into_iter().map(|(to, _)| (at_ms, *to.ip())));
        }
        let times: Vec<u64> = asked.iter().map(|(at_ms, _)| *at_ms).collect();
        assert_eq!(times, [0, 10, 20, 30, 40, 50]);
        assert!(asked.windows(3).all(|three| three[0].1 != three[1].1 && three[1].1 != three[2].1), "{asked:?}");
        let counts = reporter.counts();
        assert_eq!((counts.get(Event::Reported), counts.get(Event::Repeated)), (6, 54));
    }

    #[test]
    fn a_flood_fills_datagrams_and_stays_bounded() {
        let mut reporter = reporter(Limits { pairs_max: 100, ..Limits::default() });
        let mut entries = Vec::new();
        for k in 0..250 {
            let sent = input(&mut reporter, 0, Input::Sample(stale(k)));
            entries.extend(sent.iter().map(|(_, datagram)| View::new(datagram).unwrap().count()));
        }
        assert_eq!(entries, [40, 40]);
        assert_eq!(reporter.counts().get(Event::Full), 150);
        assert_eq!((reporter.told.len(), reporter.expiry.len()), (100, 100));
        input(&mut reporter, NS_PER_S, Input::Sample(stale(7)));
        assert_eq!((reporter.told.len(), reporter.expiry.len()), (1, 1), "all but the last are forgotten");
    }
}
