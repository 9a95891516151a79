//! Reactive correction of stale agents (VL2 4.3.2): a ToR reports packets for AAs that are not behind it, and the agent
//! they came from is told by unicast where the AA is now.
//!
//! A report is a claim, and what it costs is a datagram to a third party. So nothing is sent unless the reporter is a
//! ToR that the AA is indeed not behind, and unless the packet's source is an AA whose host is known: the correction goes
//! to that host whatever the packet's sender pretended to be, and says nothing that the host's service may not know. How
//! often one host is told about one AA, how often at all, and what is remembered for that, is bounded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use weft_wire::directory::{Entry, Kind, Message, Path};

use super::keys::KeyRing;
use super::respond::{Report, Stale};
use super::table::{Record, Table};
use crate::NS_PER_MS;
use crate::counted;
use crate::tally::Tally;

counted! {
    /// What became of a sampled packet.
    pub enum Reported {
        /// The agent was told.
        Corrected = "corrected",
        /// The reporter is not a ToR.
        UnknownReporter = "unknown_reporter",
        /// The AA is behind this very ToR, as far as this server knows.
        StillThere = "still_there",
        /// The AA was never set.
        UnknownAa = "unknown_aa",
        /// The source is no AA that has a mapping.
        UnknownSource = "unknown_source",
        /// Nobody said at which host the source is.
        NoAgent = "no_agent",
        /// Told a moment ago, or too many at a time.
        Limited = "limited",
    }
}

/// How often agents are corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorrectionLimits {
    /// One agent hears about one AA at most once in this time. Long enough for the correction to arrive, short enough
    /// that a lost one is soon repeated: packets that keep coming are reported again.
    pub pair_interval_ns: u64,
    /// Span in which the two numbers below are counted.
    pub window_ns: u64,
    /// Entries for one agent.
    pub per_agent_max: u32,
    /// Entries for all agents; no more pairs than these are remembered per `pair_interval_ns`.
    pub total_max: u32,
}

impl Default for CorrectionLimits {
    fn default() -> Self {
        Self { pair_interval_ns: 20 * NS_PER_MS, window_ns: 100 * NS_PER_MS, per_agent_max: 256, total_max: 16_384 }
    }
}

/// What a server corrects with.
#[derive(Clone, Debug)]
pub struct CorrectorConfig {
    /// Address that corrections come from: the one that agents ask.
    pub local: SocketAddrV4,
    /// UDP port that agents listen on.
    pub agent_port: u16,
    /// LAs of all ToRs; `None` if any holder of a switch's key may be one.
    pub tor_las: Option<BTreeSet<Ipv4Addr>>,
    /// Keys of the agents.
    pub keys: KeyRing,
    /// How often.
    pub limits: CorrectionLimits,
}

/// A datagram for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The agent.
    pub to: SocketAddrV4,
    /// Tagged and complete.
    pub datagram: Vec<u8>,
}

/// Turns reports into corrections.
#[derive(Debug)]
pub struct Corrector {
    config: CorrectorConfig,
    limiter: Limiter,
    counts: Tally<Reported>,
}

/// One host's agent, of one service: what one datagram can be for.
type Agent = (Ipv4Addr, u32);

impl Corrector {
    /// A corrector that has told nobody anything yet.
    pub fn new(config: CorrectorConfig) -> Self {
        Self { limiter: Limiter::new(config.limits), config, counts: Tally::default() }
    }

    /// Corrects with other keys, for other ToRs, from now on.
    pub fn reconfigure(&mut self, config: CorrectorConfig) {
        self.config = config;
    }

    /// What became of the sampled packets.
    pub fn counts(&self) -> &Tally<Reported> {
        &self.counts
    }

    /// Takes a report and appends the corrections that follow from it. Where secrets are being replaced there is one
    /// datagram for each key that an agent may have; it believes the one with its own.
    pub fn report(&mut self, now_ns: u64, table: &Table, report: &Report, corrections: &mut Vec<Correction>) {
        let mut told: BTreeMap<Agent, Vec<Entry>> = BTreeMap::new();
        for stale in &report.stale {
            let outcome = match self.judge(now_ns, table, report.tor_la, stale) {
                Ok((agent, entry)) => {
                    told.entry(agent).or_default().push(entry);
                    Reported::Corrected
                }
                Err(reason) => reason,
            };
            self.counts.add(outcome);
        }
        for ((la, service), entries) in told {
            self.tell(table.revision(), la, service, &entries, corrections);
        }
    }

    /// Whom to tell what about one packet, or why nobody.
    fn judge(
        &mut self,
        now_ns: u64,
        table: &Table,
        reporter: Ipv4Addr,
        stale: &Stale,
    ) -> Result<(Agent, Entry), Reported> {
        if self.config.tor_las.as_ref().is_some_and(|known| !known.contains(&reporter)) {
            return Err(Reported::UnknownReporter);
        }
        let wanted = table.record(stale.aa).ok_or(Reported::UnknownAa)?;
        if wanted.locator.is_some_and(|locator| locator.tor_la == reporter) {
            return Err(Reported::StillThere);
        }
        let source = table.record(stale.source_aa).filter(|record| record.locator.is_some());
        let Record { host_la, service, .. } = source.ok_or(Reported::UnknownSource)?;
        let host_la = host_la.ok_or(Reported::NoAgent)?;
        if !self.limiter.allow(now_ns, host_la, stale.aa) {
            return Err(Reported::Limited);
        }
        Ok(((host_la, service), table.answer(Entry::question(stale.aa, 0), 0, service)))
    }

    fn tell(&self, revision: u64, la: Ipv4Addr, service: u32, entries: &[Entry], corrections: &mut Vec<Correction>) {
        let to = SocketAddrV4::new(la, self.config.agent_port);
        let path = Path { source: self.config.local, destination: to };
        for (key_id, key) in self.config.keys.keys(service, la) {
            // A report has no more entries than a datagram.
            let message =
                Message { kind: Kind::Correct, service, request_id: 0, revision, key_id, entries: entries.to_vec() };
            corrections.push(Correction { to, datagram: message.emit(&key, &path) });
        }
    }
}

/// Who was told about what lately.
#[derive(Debug)]
struct Limiter {
    limits: CorrectionLimits,
    pairs: BTreeSet<(Ipv4Addr, Ipv4Addr)>,
    /// The pairs in the order in which they may be told again.
    expiry: VecDeque<(u64, (Ipv4Addr, Ipv4Addr))>,
    window_ends_ns: u64,
    per_agent: BTreeMap<Ipv4Addr, u32>,
    total: u32,
}

impl Limiter {
    fn new(limits: CorrectionLimits) -> Self {
        let (pairs, expiry, per_agent) = (BTreeSet::new(), VecDeque::new(), BTreeMap::new());
        Self { limits, pairs, expiry, window_ends_ns: 0, per_agent, total: 0 }
    }

    /// Whether this agent may be told about this AA now; then it is noted.
    fn allow(&mut self, now_ns: u64, agent: Ipv4Addr, aa: Ipv4Addr) -> bool {
        self.pass(now_ns);
        let count = self.per_agent.get(&agent).copied().unwrap_or(0);
        let full = self.total >= self.limits.total_max || self.pairs.len() >= self.limits.total_max as usize;
        if full || count >= self.limits.per_agent_max || !self.pairs.insert((agent, aa)) {
            return false;
        }
        self.expiry.push_back((now_ns.saturating_add(self.limits.pair_interval_ns), (agent, aa)));
        self.per_agent.insert(agent, count + 1);
        self.total += 1;
        true
    }

    fn pass(&mut self, now_ns: u64) {
        while self.expiry.front().is_some_and(|(until_ns, _)| *until_ns <= now_ns) {
            if let Some((_, pair)) = self.expiry.pop_front() {
                self.pairs.remove(&pair);
            }
        }
        if now_ns >= self.window_ends_ns {
            self.window_ends_ns = now_ns.saturating_add(self.limits.window_ns);
            self.per_agent.clear();
            self.total = 0;
        }
    }
}
