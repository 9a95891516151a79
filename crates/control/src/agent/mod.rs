//! The VL2 agent without IO: a cache of AA-to-LA mappings, filled by look-ups when frames miss it (VL2 4.2.1, 4.3.2).
//!
//! ```text
//!                 miss                          answer: ok
//!   (nothing) ----------> Resolving ------------------------------> Fresh <------------+
//!       ^                  |    ^ retry: 20, 40, .. 640 ms            | 75-90 % of the  | ok: same or newer
//!       |    unknown,      +----+ on other servers                    v lifetime        |
//!       |    refused, 2 s  |                                       Confirming ----------+
//!       |                  v           unknown, refused               |  ^ retry until a server answers;
//!       +-------------- Negative <------------------------------------+--+ the mapping stays in force
//!           500 ms
//! ```
//!
//! * Frames that miss wait in order; each is released once or dropped once, with a counted reason.
//! * Each question goes to two servers at random, of those that answer; the first valid answer wins (VL2 4.3.2).
//! * Repeats are bounded by what is answered ([`Repeats`]), so that late servers do not get more to do for it.
//! * A mapping is never replaced by an older one. Within an entry its version decides. Across entries the directory's
//!   revision does: questions carry the newest revision seen, and older answers to them are not believed.
//! * A refusal is put into the data path as well, so that a flood to a refused AA costs the agent nothing.

mod asker;
mod cache;
mod config;
mod counters;
mod io;
mod learn;
mod queue;
mod repeats;
mod servers;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use rand_pcg::Pcg64;
use weft_wire::directory::{Entry, Path};

use crate::Machine;
use crate::address::Mapping;
use asker::Asker;
use cache::{Attempt, Cache, State};
use queue::{FrameQueue, Full};

pub use config::{Bounds, Config, Timing};
pub use counters::{DropReason, Event, IgnoreReason};
pub use io::{Counters, Held, Input, Output, Summary};
pub use repeats::Repeats;
pub use servers::Servers;

/// The state of an agent, and what waits in it.
#[derive(Debug)]
pub struct Agent<H = Vec<u8>> {
    config: Config,
    cache: Cache,
    waiting: FrameQueue<H>,
    asker: Asker,
    /// Newest revision of the directory seen in any valid datagram.
    revision: u64,
    /// Versions found at start and not confirmed since. They hold after the entry made room for another, when no
    /// revision of this run tells yet that an answer is older.
    inherited: BTreeMap<Ipv4Addr, u64>,
    counters: Counters,
}

impl<H: Held> Machine for Agent<H> {
    type Input<'a> = Input<'a, H>;
    type Output = Output<H>;

    fn handle(&mut self, now_ns: u64, input: Input<'_, H>, outputs: &mut Vec<Output<H>>) {
        self.asker.expire(now_ns);
        match input {
            Input::Miss { aa, packet_bytes, held } => self.miss(now_ns, aa, packet_bytes, held, outputs),
            Input::Datagram { from, bytes } => self.datagram(now_ns, from, bytes, outputs),
            Input::Adopt { aa, mapping } => self.adopt(now_ns, aa, mapping, outputs),
            Input::Deadline => self.deadline(now_ns, outputs),
        }
        if self.asker.is_due(now_ns) {
            self.flush(now_ns, outputs);
        }
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        [self.asker.flush_at_ns(), self.cache.next_deadline_ns()].into_iter().flatten().min()
    }
}

impl<H: Held> Agent<H> {
    /// An agent that knows nothing. `rng` picks servers, request ids and jitter: seed it from the system in a daemon.
    pub fn new(config: Config, rng: Pcg64) -> Self {
        let asker = Asker::new(config.servers.clone(), config.timing.first_timeout_ns, rng);
        let (cache, waiting) = (Cache::default(), FrameQueue::new());
        Self { config, cache, waiting, asker, revision: 0, inherited: BTreeMap::new(), counters: Counters::default() }
    }

    /// Who it is, whom it asks and how, from now on. Mappings stay; what is asked already is asked again like what was lost.
    pub fn reconfigure(&mut self, config: Config) {
        self.asker.set_servers(&config.servers, config.timing.first_timeout_ns);
        self.config = config;
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Its state in numbers.
    pub fn summary(&self) -> Summary {
        Summary {
            mappings: self.cache.mappings().count(),
            resolving: self.cache.resolving(),
            negative: self.cache.negative(),
            waiting_frames: self.waiting.len(),
            revision: self.revision,
        }
    }

    /// The mappings in force, by AA.
    pub fn mappings(&self) -> impl Iterator<Item = (Ipv4Addr, Mapping)> + '_ {
        self.cache.mappings()
    }

    fn miss(&mut self, now_ns: u64, aa: Ipv4Addr, packet_bytes: u16, held: H, outputs: &mut Vec<Output<H>>) {
        self.counters.events.add(Event::Miss);
        if aa == self.config.aa {
            return self.drop_frame(aa, DropReason::OwnAa, outputs);
        }
        if !self.config.aa_block.contains(aa) {
            return self.drop_frame(aa, DropReason::OutsideBlock, outputs);
        }
        if packet_bytes > self.config.path_mtu {
            self.counters.dropped.add(DropReason::TooBig);
            return outputs.push(Output::IcmpTooBig { held, mtu: self.config.path_mtu });
        }
        match self.cache.get(aa) {
            Some(State::Negative(reason)) => {
                let reason = *reason;
                self.drop_frame(aa, reason, outputs);
            }
            Some(State::Resolving(_)) => self.hold(aa, held, outputs),
            Some(State::Fresh(mapping) | State::Confirming(mapping, _)) => {
                // The data path lost the entry, or the frame was on its way here when it got it.
                outputs.push(Output::Install { aa, mapping: *mapping });
                self.release(aa, held, outputs);
            }
            None => self.resolve(now_ns, aa, held, outputs),
        }
    }

    /// Begins a look-up and lets the frame wait for it.
    fn resolve(&mut self, now_ns: u64, aa: Ipv4Addr, held: H, outputs: &mut Vec<Output<H>>) {
        if self.cache.resolving() >= self.config.bounds.lookups_max || !self.make_room(outputs) {
            return self.drop_frame(aa, DropReason::LookupsFull, outputs);
        }
        self.counters.events.add(Event::Lookup);
        self.cache.set(aa, State::Resolving(Attempt::first(now_ns)), None);
        self.ask(now_ns, aa);
        self.hold(aa, held, outputs);
    }

    fn hold(&mut self, aa: Ipv4Addr, held: H, outputs: &mut Vec<Output<H>>) {
        let bounds = self.config.bounds;
        for (victim, full) in self.waiting.push(aa, held, bounds.frame_bytes_per_aa_max, bounds.frame_bytes_max) {
            let reason = if full == Full::Aa { DropReason::QueueAa } else { DropReason::QueueTotal };
            self.drop_frame(victim, reason, outputs);
        }
    }

    fn release(&mut self, aa: Ipv4Addr, held: H, outputs: &mut Vec<Output<H>>) {
        self.counters.events.add(Event::Released);
        outputs.push(Output::Release { aa, held });
    }

    fn drop_frame(&mut self, aa: Ipv4Addr, reason: DropReason, outputs: &mut Vec<Output<H>>) {
        self.counters.dropped.add(reason);
        outputs.push(Output::Drop { aa, reason });
    }

    /// Makes room for one more entry; false if every entry is being looked up.
    fn make_room(&mut self, outputs: &mut Vec<Output<H>>) -> bool {
        while self.cache.len() >= self.config.bounds.entries_max {
            let Some(eldest) = self.cache.eldest() else { return false };
            self.counters.events.add(Event::Evicted);
            self.forget(eldest, outputs);
        }
        true
    }

    /// Removes an entry, and what the data path has of it.
    fn forget(&mut self, aa: Ipv4Addr, outputs: &mut Vec<Output<H>>) {
        let state = self.cache.remove(aa);
        if state.is_some_and(|state| state.mapping().is_some() || state == State::Negative(DropReason::Refused)) {
            outputs.push(Output::Remove { aa });
        }
    }

    fn adopt(&mut self, now_ns: u64, aa: Ipv4Addr, mapping: Mapping, outputs: &mut Vec<Output<H>>) {
        if self.cache.get(aa).is_some() || !self.make_room(outputs) {
            return;
        }
        self.counters.events.add(Event::Adopted);
        self.inherited.insert(aa, mapping.version);
        let spread_ns = self.asker.below(self.config.timing.adopt_spread_ns);
        self.cache.set(aa, State::Fresh(mapping), Some(now_ns + spread_ns));
    }

    fn deadline(&mut self, now_ns: u64, outputs: &mut Vec<Output<H>>) {
        while let Some(aa) = self.cache.pop_due(now_ns) {
            match self.cache.get(aa).cloned() {
                Some(State::Fresh(mapping)) => {
                    self.cache.set(aa, State::Confirming(mapping, Attempt::first(now_ns)), None);
                    self.ask(now_ns, aa);
                }
                Some(State::Confirming(_, attempt)) => {
                    let spent_ns = now_ns - attempt.began_ns;
                    if spent_ns >= self.config.timing.give_up_ns {
                        self.counters.events.add(Event::Unconfirmed);
                    }
                    self.retry(now_ns, aa);
                }
                Some(State::Resolving(attempt)) if now_ns - attempt.began_ns >= self.config.timing.give_up_ns => {
                    self.turn_negative(now_ns, aa, DropReason::NoAnswer, outputs);
                }
                Some(State::Resolving(_)) => self.retry(now_ns, aa),
                Some(State::Negative(_)) => self.forget(aa, outputs),
                None => {}
            }
        }
    }

    fn retry(&mut self, now_ns: u64, aa: Ipv4Addr) {
        if let Err(at_ns) = self.asker.may_repeat(now_ns) {
            self.counters.events.add(Event::RetryDeferred);
            return self.set_deadline(aa, at_ns);
        }
        self.counters.events.add(Event::Retry);
        if let Some(attempt) = self.cache.attempt_mut(aa) {
            attempt.retries += 1;
        }
        self.ask(now_ns, aa);
    }

    /// Puts the question about an AA on its way, to other servers than the last ones.
    fn ask(&mut self, now_ns: u64, aa: Ipv4Addr) {
        let question = Entry::question(aa, self.known_version(aa));
        let avoid = self.cache.attempt_mut(aa).map(|attempt| attempt.asked.clone()).unwrap_or_default();
        self.asker.enqueue(question, avoid, now_ns + self.config.timing.coalesce_ns);
    }

    /// The newest version known of an AA's mapping; 0 for none.
    fn known_version(&self, aa: Ipv4Addr) -> u64 {
        let cached = self.cache.get(aa).and_then(State::mapping).map_or(0, |mapping| mapping.version);
        cached.max(self.inherited.get(&aa).copied().unwrap_or(0))
    }

    /// Sends the waiting questions and sets the deadline of each.
    fn flush(&mut self, now_ns: u64, outputs: &mut Vec<Output<H>>) {
        let Config { service, key_id, timing, .. } = self.config;
        let remember_until_ns = now_ns + timing.give_up_ns;
        for outgoing in self.asker.flush(now_ns, service, key_id, self.revision, remember_until_ns) {
            for question in &outgoing.message.entries {
                self.asked(now_ns, question.aa, &outgoing.asked);
            }
            for to in outgoing.to {
                let path = Path { source: self.config.local, destination: to };
                self.counters.events.add(Event::DatagramSent);
                outputs.push(Output::Send { to, datagram: outgoing.message.emit(&self.config.key, &path) });
            }
        }
    }

    /// Notes who was asked and until when an answer is awaited.
    fn asked(&mut self, now_ns: u64, aa: Ipv4Addr, servers: &asker::Asked) {
        let timing = self.config.timing;
        let resolving = matches!(self.cache.get(aa), Some(State::Resolving(_)));
        let Some(attempt) = self.cache.attempt_mut(aa) else { return };
        attempt.asked.clone_from(servers);
        let wait_ns = timing.first_timeout_ns.saturating_mul(1u64.checked_shl(attempt.retries).unwrap_or(u64::MAX));
        let wait_ns = if resolving { wait_ns } else { wait_ns.min(timing.refresh_retry_max_ns) };
        self.set_deadline(aa, now_ns.saturating_add(wait_ns));
    }

    /// Sets when a look-up wants attention again: that of an AA without a mapping not after it is to be given up.
    fn set_deadline(&mut self, aa: Ipv4Addr, at_ns: u64) {
        let give_up_ns = match self.cache.get(aa) {
            Some(State::Resolving(attempt)) => attempt.began_ns + self.config.timing.give_up_ns,
            _ => u64::MAX,
        };
        self.cache.set_deadline(aa, at_ns.min(give_up_ns));
    }
}
