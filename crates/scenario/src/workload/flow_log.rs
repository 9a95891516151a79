//! A log of flows with the statistics that VL2 publishes of its data centre (3.1 to 3.3). Nothing is sent: a flow has a
//! start, an end and a size, and whoever wants packets takes another workload.
//!
//! What goes in, so that nobody takes it for a finding when it comes out again:
//!
//! * sizes are drawn from a [`SizeDistribution`], by default the one that follows Figure 2;
//! * a share of the flows has its far end outside, so inside to outside is as the spec says (3.1);
//! * a server does one thing for a while, its phase: it keeps a number of flows going with servers of a few random racks
//!   (3.3: "the distributed file system spreads data chunks randomly"). The number is drawn from [`CONCURRENCY`], less the
//!   flows that others have open to it on average.
//!
//! What comes out of it and was not put in: how many flows a server has at once, its own and those of others together, and
//! how the matrices of the racks change.
//!
//! [`RecurringSpec`] is the opposite, for a control: all racks follow one timetable, which repeats.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::mix::CONCURRENCY;
use super::sizes::{Sizes, draw, segments};
use super::{Servers, SizeDistribution, WorkloadError, check_duration, check_servers};
use crate::random::{Purpose, Stream};
use crate::units::{Nanos, Percent, named};

/// New flows of a phase begin within its first second.
const PHASE_RAMP_NS: u64 = 1_000_000_000;

/// Parameters of a generated flow log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowLogSpec {
    /// How long new flows are started.
    pub duration: Nanos,
    /// How long a flow stays open on average, besides the time that its bytes need on the server's link.
    pub mean_lifetime: Nanos,
    /// How large flows are.
    #[serde(default = "vl2_mix")]
    pub sizes: SizeDistribution,
    /// How long a server does the same thing on average.
    pub mean_phase: Nanos,
    /// With how many racks a server works during a phase.
    pub peer_racks: u32,
    /// Percent of the flows whose far end is outside; 20 makes the paper's 4 to 1.
    #[serde(deserialize_with = "named::number::<Percent, _, _>")]
    #[schemars(with = "named::Number<Percent>")]
    pub outside_percent: u32,
    /// A timetable for all racks in the place of phases.
    pub recurring: Option<RecurringSpec>,
}

/// A timetable: rack r works with rack r + 1, then with rack r + 2, and so on, and begins again. Every server keeps the
/// same number of flows going throughout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecurringSpec {
    /// How many patterns there are before the first comes back.
    pub patterns: u32,
    /// How long each lasts.
    pub hold: Nanos,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    Server(u32),
    /// Somewhere beyond the data centre.
    Outside,
}

/// One line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedFlow {
    /// Who sends.
    pub from: Site,
    /// Who receives.
    pub to: Site,
    /// Payload.
    pub bytes: u64,
    /// When it was opened, from the start of the log.
    pub start_ns: u64,
    /// When it was closed, not before its start.
    pub end_ns: u64,
}

fn vl2_mix() -> SizeDistribution {
    SizeDistribution::Vl2Mix
}

impl FlowLogSpec {
    /// The paper's data centre for so long: a flow is open for a minute, a server does one thing for three.
    pub fn vl2(duration: Nanos) -> Self {
        const SECOND: u64 = 1_000_000_000;
        Self {
            duration,
            mean_lifetime: Nanos(60 * SECOND),
            sizes: vl2_mix(),
            mean_phase: Nanos(180 * SECOND),
            peer_racks: 8,
            outside_percent: 20,
            recurring: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        check_duration(self.duration)?;
        for (setting, time) in [("mean_lifetime", self.mean_lifetime), ("mean_phase", self.mean_phase)] {
            if time.0 == 0 {
                return Err(WorkloadError::ZeroTime { setting });
            }
        }
        let range = |setting, value, least, most| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(WorkloadError::DirectoryRange { setting, value, least, most }),
        };
        range("outside_percent", self.outside_percent, 0, 90)?;
        range("peer_racks", self.peer_racks, 1, u32::MAX)?;
        if let Some(recurring) = &self.recurring {
            range("recurring.patterns", recurring.patterns, 1, u32::MAX)?;
            if recurring.hold.0 == 0 {
                return Err(WorkloadError::ZeroTime { setting: "recurring.hold" });
            }
        }
        match &self.sizes {
            SizeDistribution::Fixed(bytes) if bytes.0 == 0 => Err(WorkloadError::ZeroSize { setting: "sizes.fixed" }),
            _ => Ok(()),
        }
    }

    /// How many flows others have open to a server on average, rounded down: the largest `b` that is not more than the
    /// flows that all servers keep going, `max(0, n - b)` for `n` of [`CONCURRENCY`], less those to the outside.
    pub fn received_flows(&self) -> u32 {
        let inside = f64::from(100 - self.outside_percent) / 100.0;
        (1..).find(|received| mean_kept(*received) * inside < f64::from(*received)).map_or(0, |above| above - 1)
    }
}

/// Mean of `max(0, n - received)` over [`CONCURRENCY`].
fn mean_kept(received: u32) -> f64 {
    let table = CONCURRENCY.map(|(flows, servers)| (u64::from(flows), servers));
    let total = u64::from(CONCURRENCY[CONCURRENCY.len() - 1].1);
    let kept = |flows: u64| flows.saturating_sub(u64::from(received)) as f64;
    let mean_of = |(low, high, servers): (u64, u64, u64)| {
        (low + 1..=high).map(kept).sum::<f64>() / (high - low) as f64 * servers as f64
    };
    segments(&table).map(mean_of).sum::<f64>() / total as f64
}

/// The flows of a log in the order of their starts; a seed gives the same ones on every machine.
#[derive(Clone, Debug)]
pub struct FlowLog<'a> {
    spec: &'a FlowLogSpec,
    servers: &'a Servers,
    sizes: Sizes<'a>,
    racks: Vec<Vec<u32>>,
    received: u32,
    workers: Vec<Worker>,
    due: BinaryHeap<Reverse<Due>>,
}

/// One server and what it does now.
#[derive(Clone, Debug)]
struct Worker {
    stream: Stream,
    phase: u32,
    phase_end_ns: u64,
    peer_racks: Vec<u32>,
}

/// A server's next flow, or with `phase` its next phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    server: u32,
    phase: u32,
    begins: bool,
}

impl<'a> FlowLog<'a> {
    /// The log of these servers.
    pub fn new(spec: &'a FlowLogSpec, servers: &'a Servers, seed: u64) -> Result<Self, WorkloadError> {
        spec.check()?;
        check_servers(servers.count())?;
        let mut racks: Vec<Vec<u32>> = Vec::new();
        for server in 0..servers.count() {
            let rack = servers.rack(server) as usize;
            racks.resize(racks.len().max(rack + 1), Vec::new());
            racks[rack].push(server);
        }
        if let Some(recurring) = &spec.recurring
            && recurring.patterns as usize >= racks.len()
        {
            let (setting, most) = ("recurring.patterns", racks.len() as u32 - 1);
            return Err(WorkloadError::DirectoryRange { setting, value: recurring.patterns, least: 1, most });
        }
        let worker = |server| Worker {
            stream: Stream::new(seed, Purpose::FlowLog, server),
            phase: 0,
            phase_end_ns: 0,
            peer_racks: Vec::new(),
        };
        let begin = |server| Reverse(Due { at_ns: 0, server, phase: 0, begins: true });
        Ok(Self {
            spec,
            servers,
            sizes: Sizes::new(&spec.sizes, 1, None),
            racks,
            received: spec.received_flows(),
            workers: (0..servers.count()).map(worker).collect(),
            due: (0..servers.count()).map(begin).collect(),
        })
    }

    fn begin_phase(&mut self, server: u32, now_ns: u64) {
        let racks = self.racks.len() as u32;
        let worker = &mut self.workers[server as usize];
        worker.phase += 1;
        let kept = match &self.spec.recurring {
            Some(recurring) => {
                let number = now_ns / recurring.hold.0;
                worker.phase_end_ns = (number + 1) * recurring.hold.0;
                let shift = 1 + (number % u64::from(recurring.patterns)) as u32;
                worker.peer_racks = vec![(self.servers.rack(server) + shift) % racks];
                self.received.max(1)
            }
            None => {
                let lasts = worker.stream.exponential() * self.spec.mean_phase.0 as f64;
                worker.phase_end_ns = now_ns.saturating_add(lasts as u64).saturating_add(1);
                let mut all: Vec<u32> = (0..racks).collect();
                worker.peer_racks = worker.stream.choose(&mut all, self.spec.peer_racks as usize).to_vec();
                let table = CONCURRENCY.map(|(flows, servers)| (u64::from(flows), servers));
                (draw(&mut worker.stream, &table) as u32).saturating_sub(self.received)
            }
        };
        let (phase, end_ns) = (worker.phase, worker.phase_end_ns);
        for _ in 0..kept {
            let at_ns = now_ns + worker.stream.below(PHASE_RAMP_NS);
            self.due.push(Reverse(Due { at_ns, server, phase, begins: false }));
        }
        self.due.push(Reverse(Due { at_ns: end_ns, server, phase, begins: true }));
    }

    /// A flow of this server, which puts its next one on the list.
    fn begin_flow(&mut self, due: Due) -> LoggedFlow {
        let Due { at_ns: start_ns, server, .. } = due;
        let worker = &mut self.workers[server as usize];
        let outside = worker.stream.below(100) < u64::from(self.spec.outside_percent);
        let far = if outside { Site::Outside } else { far_end(worker, &self.racks, server) };
        let bytes = self.sizes.draw(&mut worker.stream);
        let rate = u128::from(self.servers.rate(server).0.max(1));
        let on_the_link_ns = (u128::from(bytes) * 8_000_000_000 / rate).min(u128::from(u64::MAX / 4)) as u64;
        let idle_ns = (worker.stream.exponential() * self.spec.mean_lifetime.0 as f64) as u64;
        let sent_ns = start_ns.saturating_add(on_the_link_ns);
        // What a server does not need any more it closes, but not before everything is sent.
        let end_ns = sent_ns.saturating_add(idle_ns).min(worker.phase_end_ns.max(sent_ns)).max(start_ns + 1);
        let sends = worker.stream.below(2) == 0;
        self.due.push(Reverse(Due { at_ns: end_ns, ..due }));
        let me = Site::Server(server);
        let (from, to) = if sends { (me, far) } else { (far, me) };
        LoggedFlow { from, to, bytes, start_ns, end_ns }
    }
}

/// A server of one of the racks that a worker works with, not itself; outside if there is none.
fn far_end(worker: &mut Worker, racks: &[Vec<u32>], me: u32) -> Site {
    let rack = worker.peer_racks[worker.stream.below(worker.peer_racks.len() as u64) as usize];
    let members = &racks[rack as usize];
    let place = worker.stream.below(members.len() as u64) as usize;
    let chosen = match members[place] == me {
        true => members[(place + 1) % members.len()],
        false => members[place],
    };
    if chosen == me { Site::Outside } else { Site::Server(chosen) }
}

impl Iterator for FlowLog<'_> {
    type Item = LoggedFlow;

    fn next(&mut self) -> Option<LoggedFlow> {
        loop {
            let Reverse(due) = self.due.pop()?;
            if due.at_ns >= self.spec.duration.0 {
                return None;
            }
            let worker = &self.workers[due.server as usize];
            let over = due.phase != worker.phase || due.at_ns >= worker.phase_end_ns;
            match due.begins {
                true => self.begin_phase(due.server, due.at_ns),
                false if over => {}
                false => return Some(self.begin_flow(due)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{BitsPerSec, Bytes};

    const SECOND: u64 = 1_000_000_000;

    fn servers(count: u32) -> Servers {
        Servers::alike(count, BitsPerSec(1_000_000_000), 20)
    }

    fn flows(spec: &FlowLogSpec, count: u32, seed: u64) -> Vec<LoggedFlow> {
        FlowLog::new(spec, &servers(count), seed).unwrap().collect()
    }

    fn recurring(patterns: u32) -> FlowLogSpec {
        let recurring = Some(RecurringSpec { patterns, hold: Nanos(200 * SECOND) });
        let sizes = SizeDistribution::Fixed(Bytes(10_000_000));
        FlowLogSpec { recurring, sizes, outside_percent: 0, ..FlowLogSpec::vl2(Nanos(1_000 * SECOND)) }
    }

    #[test]
    fn flows_come_in_the_order_of_their_starts_and_end_after_them() {
        let flows = flows(&FlowLogSpec::vl2(Nanos(600 * SECOND)), 200, 1);
        assert!(flows.len() > 10_000, "{}", flows.len());
        assert!(flows.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns));
        assert!(flows.iter().all(|flow| flow.end_ns > flow.start_ns && flow.start_ns < 600 * SECOND && flow.bytes > 0));
        assert!(flows.iter().all(|flow| flow.from != flow.to));
        // Nothing is faster than the server's link.
        assert!(flows.iter().all(|flow| (flow.end_ns - flow.start_ns) >= flow.bytes * 8));
    }

    #[test]
    fn a_seed_gives_the_same_flows_and_another_seed_others() {
        let spec = FlowLogSpec::vl2(Nanos(60 * SECOND));
        assert_eq!(flows(&spec, 100, 7), flows(&spec, 100, 7));
        assert_ne!(flows(&spec, 100, 7), flows(&spec, 100, 8));
    }

    #[test]
    fn one_flow_in_five_has_its_far_end_outside() {
        let flows = flows(&FlowLogSpec::vl2(Nanos(600 * SECOND)), 200, 1);
        let outside = flows.iter().filter(|flow| [flow.from, flow.to].contains(&Site::Outside)).count();
        let share = outside as f64 / flows.len() as f64;
        assert!((share - 0.2).abs() < 0.01, "{share}");
        assert!(flows.iter().all(|flow| [flow.from, flow.to] != [Site::Outside; 2]));
    }

    #[test]
    fn what_servers_keep_and_receive_agrees() {
        let spec = FlowLogSpec::vl2(Nanos(SECOND));
        let received = spec.received_flows();
        let kept = |received| mean_kept(received) * 0.8;
        assert!(kept(received) >= f64::from(received) && kept(received + 1) < f64::from(received + 1));
        assert_eq!(received, 9);
    }

    #[test]
    fn a_timetable_sends_each_rack_to_one_other_at_a_time() {
        let flows = flows(&recurring(4), 100, 3);
        let rack = |site: Site| match site {
            Site::Server(server) => server / 20,
            Site::Outside => panic!("nothing goes outside"),
        };
        for flow in flows {
            let shift = 1 + (flow.start_ns / (200 * SECOND) % 4) as u32;
            let (a, b) = (rack(flow.from), rack(flow.to));
            assert!((a + shift) % 5 == b || (b + shift) % 5 == a, "{flow:?}");
            // What is under way when a pattern ends is sent to its end, 80 ms at most.
            let pattern_end_ns = (flow.start_ns / (200 * SECOND) + 1) * 200 * SECOND;
            assert!(flow.end_ns <= pattern_end_ns + 80_000_000, "{flow:?}");
        }
    }

    #[test]
    fn impossible_logs_are_refused() {
        let good = FlowLogSpec::vl2(Nanos(SECOND));
        let wrong = |spec: FlowLogSpec| FlowLog::new(&spec, &servers(100), 1).err().map(|error| error.to_string());
        for (spec, message) in [
            (FlowLogSpec { duration: Nanos(0), ..good.clone() }, "`duration` is 0"),
            (FlowLogSpec { mean_lifetime: Nanos(0), ..good.clone() }, "`mean_lifetime` is 0"),
            (FlowLogSpec { mean_phase: Nanos(0), ..good.clone() }, "`mean_phase` is 0"),
            (FlowLogSpec { outside_percent: 91, ..good.clone() }, "`outside_percent` is 91; it is 0 to 90"),
            (FlowLogSpec { peer_racks: 0, ..good.clone() }, "`peer_racks` is 0"),
            (FlowLogSpec { sizes: SizeDistribution::Fixed(Bytes(0)), ..good.clone() }, "`sizes.fixed` is 0 bytes"),
            (recurring(5), "`recurring.patterns` is 5; it is 1 to 4"),
            (recurring(0), "`recurring.patterns` is 0"),
        ] {
            let error = wrong(spec).expect(message);
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
        assert!(wrong(good.clone()).is_none());
        assert!(FlowLog::new(&good, &servers(1), 1).is_err());
    }
}
