//! A load of updates: many clients, each update acknowledged by itself, or many mappings in one.
//!
//! Every place in a session's window is a client of the log with its own name, its own AAs and one update open at a time.
//! So an update that is repeated after the loss of a server happens once, and of each AA it is known what was acknowledged
//! last: [`UpdateReport::lost`] compares that with what the directory holds.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use weft_node::NodeError;
use weft_node::client::{AdminClient, Target};
use weft_node::directory::protocol::{AdminRequest, MappingRow, MappingToSet};
use weft_node::stop::Stop;
use weft_wire::directory::update::{Place, UpdateFrame, Verdict};

use super::arrivals::Schedule;
use super::report::{Tick, histogram, record, tick_at};
use super::{Arrivals, Pace};
use crate::cpu;

/// How long to wait before a server that is gone is tried again, or the next one.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest wait for an answer at a time, so that a request to stop is seen.
const PATIENCE: Duration = Duration::from_millis(50);

/// What is updated, how and through whom.
#[derive(Clone, Debug)]
pub struct UpdateLoad {
    /// The directory servers; sessions are spread over them, and go to the next one when theirs is gone.
    pub servers: Vec<Target>,
    /// Sessions; each is a thread.
    pub sessions: usize,
    /// Updates open in one session.
    pub open: usize,
    /// Mappings in one update; 1: the short form.
    pub mappings: usize,
    /// First AA that is set.
    pub first_aa: Ipv4Addr,
    /// AAs that are set, at least `sessions * open * mappings`.
    pub aas: u32,
    /// ToRs that they move between.
    pub tor_las: Vec<Ipv4Addr>,
    /// Anycast LA of all.
    pub anycast_la: Ipv4Addr,
    /// Service of all.
    pub service: u32,
    /// [`Pace::Window`]: as fast as the windows allow; [`Pace::Rate`]: so many updates per second in all.
    pub pace: Pace,
    /// Updates of a session that are due together in an open loop; at random arrivals the mean.
    pub burst: usize,
    /// How bursts follow each other in an open loop.
    pub arrivals: Arrivals,
    /// Before anything is counted.
    pub warm_up: Duration,
    /// How long is counted.
    pub duration: Duration,
    /// An update without an acknowledgement by then has failed; after the end so long is waited.
    pub timeout: Duration,
    /// CPU that the load runs on.
    pub cpu: Option<usize>,
    /// Seed of clients' names and ToRs.
    pub seed: u64,
}

/// What a load of updates saw, without its warm-up.
#[derive(Clone, Debug)]
pub struct UpdateReport {
    /// How long was counted, nanoseconds.
    pub elapsed_ns: u64,
    /// Updates acknowledged.
    pub committed: u64,
    /// Updates refused for what they ask: none, if the load fits the directory's rules.
    pub refused: u64,
    /// Updates that failed, whose outcome may be unknown, or that were acknowledged too late.
    pub failed: u64,
    /// Updates without an answer at the end.
    pub unanswered: u64,
    /// Sessions lost and opened again.
    pub reconnects: u64,
    /// From when an update was due (open loop) or sent to its acknowledgement, nanoseconds.
    pub latency_ns: Histogram<u64>,
    /// The longest time in which nothing was acknowledged, nanoseconds: how long a failure stopped updates. One that lasts goes on to
    /// the end of the counting or, while updates are waited for, of the waiting.
    pub longest_gap_ns: u64,
    /// The first reason of a refusal or failure.
    pub first_error: Option<String>,
    /// CPU time of the load itself, nanoseconds.
    pub own_cpu_ns: u64,
    /// In tenths of a second from the start of the counting.
    pub ticks: Vec<Tick>,
    /// Of each AA the revision of the last acknowledged update, warm-up included.
    pub acknowledged: BTreeMap<Ipv4Addr, u64>,
}

impl UpdateReport {
    /// Updates acknowledged per second.
    pub fn per_second(&self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.committed as f64 * 1e9 / self.elapsed_ns as f64 }
    }

    /// How many acknowledged updates a directory that holds `rows` has lost: AAs that are missing or older than what was
    /// acknowledged.
    pub fn lost(&self, rows: &[MappingRow]) -> u64 {
        let held: BTreeMap<Ipv4Addr, u64> = rows.iter().map(|row| (row.aa, row.version)).collect();
        let lost = |(aa, revision): &(&Ipv4Addr, &u64)| held.get(aa).is_none_or(|version| version < revision);
        self.acknowledged.iter().filter(lost).count() as u64
    }

    fn new() -> Self {
        Self {
            elapsed_ns: 0,
            committed: 0,
            refused: 0,
            failed: 0,
            unanswered: 0,
            reconnects: 0,
            latency_ns: histogram(),
            longest_gap_ns: 0,
            first_error: None,
            own_cpu_ns: 0,
            ticks: Vec::new(),
            acknowledged: BTreeMap::new(),
        }
    }

    fn merge(&mut self, other: Self) {
        self.committed += other.committed;
        self.refused += other.refused;
        self.failed += other.failed;
        self.unanswered += other.unanswered;
        self.reconnects += other.reconnects;
        self.own_cpu_ns += other.own_cpu_ns;
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.latency_ns.add(&other.latency_ns).expect("both have the same bounds");
        self.first_error = self.first_error.take().or(other.first_error);
        self.acknowledged.extend(other.acknowledged);
        self.ticks.resize(self.ticks.len().max(other.ticks.len()), Tick::default());
        for (mine, theirs) in self.ticks.iter_mut().zip(&other.ticks) {
            mine.merge(theirs);
        }
    }
}

impl UpdateLoad {
    /// Updates until the time is over or somebody asks to stop, then waits for the last answers.
    ///
    /// # Errors
    /// [`NodeError::Config`] for a load that cannot be; what stops the first sessions from being opened.
    pub fn run(&self, stop: &Stop) -> Result<UpdateReport, NodeError> {
        self.check()?;
        let start = Instant::now();
        let last_ack = LastAck::since(ns(self.warm_up));
        let reports: Vec<_> = std::thread::scope(|scope| {
            let last_ack = &last_ack;
            let run = |index| move || Session::open(self, index, start, last_ack)?.run(stop);
            let threads: Vec<_> = (0..self.sessions).map(|index| scope.spawn(run(index))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut sum = UpdateReport::new();
        for report in reports {
            sum.merge(report?);
        }
        sum.longest_gap_ns = last_ack.longest_gap_ns();
        Ok(sum)
    }

    /// When updates of a session are due. Sessions are not in step with each other.
    fn schedule(&self, session: usize) -> Option<Schedule> {
        let Pace::Rate(rate) = self.pace else { return None };
        let (per_s, first_ns) = (rate / self.sessions as f64, session as f64 * 1e9 / rate);
        Some(Schedule::new(self.arrivals, self.burst, per_s, first_ns, self.seed.wrapping_add(session as u64)))
    }

    fn check(&self) -> Result<(), NodeError> {
        let within = |field, value: usize, most: usize| {
            let why = format!("{value} is not between 1 and {most}");
            if (1..=most).contains(&value) { Ok(()) } else { Err(NodeError::config(field, why)) }
        };
        within("servers", self.servers.len(), 256)?;
        within("sessions", self.sessions, 1024)?;
        within("open", self.open, 512)?;
        within("mappings", self.mappings, 16_384)?;
        within("tor_las", self.tor_las.len(), usize::MAX)?;
        within("burst", self.burst, self.open)?;
        let needed = self.sessions * self.open * self.mappings;
        if (self.aas as usize) < needed {
            let why = format!("{} AAs are too few: sessions x open x mappings is {needed}", self.aas);
            return Err(NodeError::config("aas", why));
        }
        match self.pace {
            Pace::Rate(rate) if !rate.is_finite() || rate <= 0.0 => {
                Err(NodeError::config("pace", format!("{rate} per second is no rate")))
            }
            _ => Ok(()),
        }
    }
}

/// When something was last acknowledged in any session.
#[derive(Default)]
struct LastAck {
    at_ns: AtomicU64,
    longest_gap_ns: AtomicU64,
    /// When the last session ended.
    until_ns: AtomicU64,
}

impl LastAck {
    /// Gaps count from this time on.
    fn since(start_ns: u64) -> Self {
        Self { at_ns: start_ns.into(), ..Self::default() }
    }

    fn note(&self, now_ns: u64) {
        let before_ns = self.at_ns.fetch_max(now_ns, Ordering::Relaxed);
        self.longest_gap_ns.fetch_max(now_ns.saturating_sub(before_ns), Ordering::Relaxed);
    }

    /// A session waits for nothing after this time.
    fn end(&self, at_ns: u64) {
        self.until_ns.fetch_max(at_ns, Ordering::Relaxed);
    }

    /// The longest gap, that at the end included: without another acknowledgement it lasts until all sessions have ended.
    fn longest_gap_ns(self) -> u64 {
        self.note(self.until_ns.load(Ordering::Relaxed));
        self.longest_gap_ns.into_inner()
    }
}

/// A place in the window: a client of the log.
struct Slot {
    client: u64,
    sequence: u64,
    /// Updates so far: which of its AAs comes next, and where it goes.
    turn: u32,
    due_ns: u64,
}

struct Session<'a> {
    load: &'a UpdateLoad,
    index: usize,
    client: AdminClient,
    server: usize,
    start: Instant,
    last_ack: &'a LastAck,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Slots whose update is open, in the order in which answers come.
    open: VecDeque<usize>,
    /// Of an open loop.
    schedule: Option<Schedule>,
    report: UpdateReport,
}

impl<'a> Session<'a> {
    fn open(load: &'a UpdateLoad, index: usize, start: Instant, last_ack: &'a LastAck) -> Result<Self, NodeError> {
        if let Some(cpu) = load.cpu {
            cpu::pin_this_thread(cpu)?;
        }
        let server = index % load.servers.len();
        let first = index * load.open;
        let slot = |place: usize| Slot {
            // Never 0, and apart for every seed.
            client: (load.seed << 24 | (first + place) as u64) + 1,
            sequence: 0,
            turn: 0,
            due_ns: 0,
        };
        Ok(Self {
            load,
            index,
            client: AdminClient::open(&load.servers[server])?,
            server,
            start,
            last_ack,
            slots: (0..load.open).map(slot).collect(),
            free: (0..load.open).rev().collect(),
            open: VecDeque::new(),
            schedule: load.schedule(index),
            report: UpdateReport::new(),
        })
    }

    fn run(mut self, stop: &Stop) -> Result<UpdateReport, NodeError> {
        let cpu_ns = cpu::this_thread_ns();
        let warm_up_ns = ns(self.load.warm_up);
        let end_ns = warm_up_ns + ns(self.load.duration);
        let mut ended_ns = None;
        loop {
            let now_ns = self.now_ns();
            if ended_ns.is_none() && (now_ns >= end_ns || stop.requested()) {
                ended_ns = Some(now_ns.min(end_ns));
            }
            match ended_ns {
                None => self.put_due(now_ns)?,
                Some(ended_ns) if self.open.is_empty() || now_ns > ended_ns + ns(self.load.timeout) => {
                    self.last_ack.end(if self.open.is_empty() { ended_ns } else { now_ns });
                    self.report.elapsed_ns = ended_ns.saturating_sub(warm_up_ns);
                    self.report.unanswered = self.open.len() as u64;
                    self.report.own_cpu_ns = cpu::this_thread_ns() - cpu_ns;
                    return Ok(self.report);
                }
                Some(_) => {}
            }
            if self.exchange(ended_ns.is_some()).is_err() {
                self.reconnect(stop, end_ns + ns(self.load.timeout))?;
            }
        }
    }

    fn now_ns(&self) -> u64 {
        ns(self.start.elapsed())
    }

    /// Adds the updates that are due and have a place.
    fn put_due(&mut self, now_ns: u64) -> Result<(), NodeError> {
        while let Some(place) = self.free.last().copied() {
            let due_ns = match &mut self.schedule {
                None => now_ns,
                Some(schedule) if schedule.due_ns() > now_ns => return Ok(()),
                Some(schedule) => {
                    let due_ns = schedule.due_ns();
                    schedule.take_one();
                    due_ns
                }
            };
            self.free.pop();
            let slot = &mut self.slots[place];
            slot.due_ns = due_ns;
            slot.sequence += 1;
            slot.turn = slot.turn.wrapping_add(1);
            if due_ns >= ns(self.load.warm_up) {
                tick_at(&mut self.report.ticks, due_ns - ns(self.load.warm_up)).sent += 1;
            }
            self.put(place)?;
        }
        Ok(())
    }

    /// Adds a slot's update, which may have been sent before.
    fn put(&mut self, place: usize) -> Result<(), NodeError> {
        self.open.push_back(place);
        let (client, sequence) = (self.slots[place].client, self.slots[place].sequence);
        let tor_la = self.tor_la(place);
        let (anycast_la, service) = (self.load.anycast_la, self.load.service);
        if self.load.mappings == 1 {
            let aa = self.aas(place).next().expect("a slot has AAs: the load was checked");
            let place = Place { tor_la, anycast_la, host_la: None, service };
            self.client.put_frame(&UpdateFrame {
                aa,
                place: Some(place),
                if_version: None,
                version: None,
                client,
                sequence,
            });
            return Ok(());
        }
        let mapping =
            |aa| MappingToSet { aa, tor_la, anycast_la, service, host_la: None, if_version: None, version: None };
        let mappings = self.aas(place).map(mapping).collect();
        self.client.put(&AdminRequest::SetMany { mappings, client, sequence })
    }

    fn tor_la(&self, place: usize) -> Ipv4Addr {
        let turn = self.slots[place].turn as usize;
        self.load.tor_las[(self.load.seed as usize + turn + place) % self.load.tor_las.len()]
    }

    /// The AAs of a slot's current update.
    fn aas(&self, place: usize) -> impl Iterator<Item = Ipv4Addr> + use<> {
        let slots = self.load.sessions * self.load.open;
        let groups = self.load.aas as usize / (slots * self.load.mappings);
        let slot = self.index * self.load.open + place;
        let group = self.slots[place].turn as usize % groups;
        let first = u32::from(self.load.first_aa) + ((group * slots + slot) * self.load.mappings) as u32;
        (first..first + self.load.mappings as u32).map(Ipv4Addr::from)
    }

    /// Sends what was added and reads what has come, waiting until there is something to do.
    fn exchange(&mut self, ended: bool) -> Result<(), NodeError> {
        self.client.flush()?;
        let schedule = self.schedule.as_ref().filter(|_| !ended && !self.free.is_empty());
        let until_due = |schedule: &Schedule| Duration::from_nanos(schedule.due_ns().saturating_sub(self.now_ns()));
        let wait = schedule.map_or(PATIENCE, until_due);
        if self.open.is_empty() {
            std::thread::sleep(wait.min(PATIENCE));
            return Ok(());
        }
        if !self.client.wait_input(wait.min(PATIENCE))? {
            return Ok(());
        }
        while !self.open.is_empty() {
            self.take_answer()?;
            if !self.client.has_input() {
                break;
            }
        }
        Ok(())
    }

    fn take_answer(&mut self) -> Result<(), NodeError> {
        let (verdict, revision, text) = if self.load.mappings == 1 {
            let answer = self.client.verdict()?;
            (answer.verdict, answer.revision, answer.text)
        } else {
            let answer = self.client.receive()?;
            let verdict = match answer.kind.as_deref() {
                _ if answer.ok => Verdict::Committed,
                Some("store" | "busy") => Verdict::Store,
                _ => Verdict::Refused,
            };
            (verdict, answer.revision.unwrap_or(0), answer.error.unwrap_or_default())
        };
        let now_ns = self.now_ns();
        let Some(place) = self.open.pop_front() else { return Ok(()) };
        self.free.push(place);
        if verdict == Verdict::Committed {
            self.last_ack.note(now_ns);
            for aa in self.aas(place) {
                self.report.acknowledged.insert(aa, revision);
            }
        } else if self.report.first_error.is_none() {
            self.report.first_error = Some(text);
        }
        self.count(place, verdict, now_ns);
        Ok(())
    }

    fn count(&mut self, place: usize, verdict: Verdict, now_ns: u64) {
        let (due_ns, warm_up_ns) = (self.slots[place].due_ns, ns(self.load.warm_up));
        if due_ns < warm_up_ns {
            return;
        }
        let latency_ns = now_ns.saturating_sub(due_ns);
        let tick = tick_at(&mut self.report.ticks, now_ns - warm_up_ns);
        match verdict {
            Verdict::Committed if latency_ns > ns(self.load.timeout) => {
                self.report.failed += 1;
                tick.failed += 1;
            }
            Verdict::Committed => {
                self.report.committed += 1;
                tick.answered += 1;
                tick.worst_ns = tick.worst_ns.max(latency_ns);
                record(&mut self.report.latency_ns, latency_ns);
            }
            Verdict::Store | Verdict::Busy => {
                self.report.failed += 1;
                tick.failed += 1;
            }
            Verdict::Request | Verdict::Refused | Verdict::Denied => self.report.refused += 1,
        }
    }

    /// Opens a session with the next server that answers, and repeats what is open: each happens once.
    fn reconnect(&mut self, stop: &Stop, until_ns: u64) -> Result<(), NodeError> {
        loop {
            self.server = (self.server + 1) % self.load.servers.len();
            match AdminClient::open(&self.load.servers[self.server]) {
                Ok(client) => {
                    self.client = client;
                    self.report.reconnects += 1;
                    break;
                }
                Err(error) if stop.requested() || self.now_ns() > until_ns => return Err(error),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        for place in std::mem::take(&mut self.open) {
            self.put(place)?;
        }
        Ok(())
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest_gap_ns(since_ns: u64, acknowledged_ns: &[u64], ends_ns: &[u64]) -> u64 {
        let last = LastAck::since(since_ns);
        acknowledged_ns.iter().for_each(|at_ns| last.note(*at_ns));
        ends_ns.iter().for_each(|at_ns| last.end(*at_ns));
        last.longest_gap_ns()
    }

    #[test]
    fn a_gap_that_nothing_ends_lasts_to_the_end() {
        assert_eq!(longest_gap_ns(10, &[5, 12, 15, 40, 41], &[50]), 25, "in the middle");
        assert_eq!(longest_gap_ns(10, &[12, 15], &[50]), 35, "nothing came any more");
        assert_eq!(longest_gap_ns(10, &[12, 15, 60], &[50, 61]), 45, "something came late");
        assert_eq!(longest_gap_ns(10, &[12, 15], &[50, 90]), 75, "one session waited longer");
        assert_eq!(longest_gap_ns(10, &[], &[50]), 40, "nothing came at all");
        assert_eq!(longest_gap_ns(10, &[2, 5], &[50]), 40, "what comes before the counting ends no gap in it");
    }
}
