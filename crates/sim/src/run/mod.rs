//! A run: packets arrive, timers come due, and at the end the books must balance.
//!
//! * [`setup`] turns a job into a network at rest, or refuses it; [`cut`] divides that into parts
//! * [`part`] is a part in motion; [`windows`] lets parts run side by side, and [`post`] is what they tell each other
//! * [`connection`] is TCP's way in and out: starts, arrivals at hosts, timers; [`flow`] is the state of its ends
//! * [`host`] lets flows take turns at a network card; [`spread`] chooses routes
//! * [`timers`] is what is due at a set time; [`mix`] and [`datagrams`] are what such timers do in a part, [`faults`],
//!   [`sampling`] and [`replay`] in the whole network; [`follow`] keeps ways of a few flows
//! * [`accounts`] checks that nothing was made or lost on the way; [`trace`], [`capture`] tell people about it

mod accounts;
mod ahead;
mod capture;
mod connection;
mod cut;
mod datagrams;
mod faults;
mod flow;
mod follow;
mod host;
mod mix;
mod part;
mod post;
mod replay;
mod sampling;
mod setup;
mod spread;
mod timers;
mod trace;
mod windows;

use std::collections::BTreeSet;
use std::sync::Arc;

use weft_scenario::id::NodeId;
use weft_scenario::record::Reel;
use weft_scenario::units::Nanos;

use crate::error::SimError;
use crate::job::{Job, Source};
use crate::observer::{Observer, Progress, WindowTimes};
use crate::outcome::{FabricEvent, Outcome, Sample, TcpSample};
use crate::time::{PS_PER_NS, ps};

pub use datagrams::{DATAGRAM_HEADER_BYTES, datagram_ways};
pub(crate) use replay::moments_most;
pub(crate) use setup::router;

use cut::Cut;
use faults::FaultSteps;
use part::Part;
use timers::{Due, Timer, Timers};
use trace::Shown;

/// The observer is told about the run after so many packet-hops.
const HOPS_PER_REPORT: u64 = 1 << 16;

/// Runs a job to its end.
///
/// # Errors
/// A job that cannot run, [`SimError::Interrupted`] if the observer breaks, and [`SimError::Unbalanced`] if packets were
/// made or lost on the way, which would be a mistake of the simulator.
pub fn run(job: &Job, observer: &mut dyn Observer) -> Result<Outcome, SimError> {
    setup::check(job)?;
    let mut simulation = Simulation::new(job, observer)?;
    simulation.until_the_end()?;
    simulation.check_books()?;
    simulation.watcher.observer.windows(&simulation.watcher.times);
    Ok(simulation.into_outcome())
}

/// A run as a whole: its parts, and what concerns all of them at once.
struct Simulation<'a> {
    job: &'a Job,
    watcher: Watcher<'a>,
    cut: Arc<Cut>,
    parts: Vec<Part<'a>>,
    now_ps: u64,
    over: bool,
    timers: Timers,
    faults: FaultSteps,
    samples: Vec<Sample>,
    tcp_samples: Vec<TcpSample>,
    reel: Reel,
    events: Vec<FabricEvent>,
}

impl<'a> Simulation<'a> {
    fn new(job: &'a Job, observer: &'a mut dyn Observer) -> Result<Self, SimError> {
        let cut = Arc::new(Cut::new(job, job.parts()));
        let mut watcher = Watcher {
            observer,
            stop: job.stop,
            asked_bytes: asked_bytes(&job.source),
            told_hops: 0,
            times: WindowTimes::default(),
        };
        let mut parts = (0..cut.parts()).map(|number| Part::new(job, number, &cut)).collect::<Result<Vec<_>, _>>()?;
        parts.iter_mut().try_for_each(|part| part.begin_mix(&mut |so_far| watcher.report(so_far)))?;
        let ports = parts.first().map_or(0, |part| part.network.ports.len());
        let mut simulation = Self {
            job,
            watcher,
            cut,
            now_ps: 0,
            over: parts.iter().all(|part| !part.has_more()),
            parts,
            timers: Timers::default(),
            faults: FaultSteps::new(job)?,
            samples: Vec::new(),
            tcp_samples: Vec::new(),
            reel: replay::reel(ports),
            events: Vec::new(),
        };
        simulation.check_paths()?;
        simulation.first_timers();
        Ok(simulation)
    }

    fn first_timers(&mut self) {
        let timers = [
            (self.job.watch.sample_interval.map(|_| Nanos(0)), Timer::Sample),
            (self.job.watch.tcp_interval, Timer::SampleTcp),
            (self.job.watch.replay.then_some(Nanos(0)), Timer::Replay),
            (self.job.stop, Timer::Stop),
        ];
        timers
            .into_iter()
            .filter_map(|(at, timer)| Some((ps(at?.0), timer)))
            .for_each(|(at, timer)| self.timers.add(at, timer));
        for (step, at_ps) in self.faults.times_ps() {
            self.timers.add(at_ps, Timer::FaultStep(step));
        }
    }

    /// Refuses flows between racks that have no path to each other while nothing has failed.
    fn check_paths(&mut self) -> Result<(), SimError> {
        let Some(part) = self.parts.first_mut() else { return Ok(()) };
        let edges: Vec<Option<NodeId>> =
            part.hosts.iter().map(|host| Some(self.job.fabric.edge_of(host.node)?.0)).collect();
        let mut checked = BTreeSet::new();
        let listed = self.job.source.flows().iter().map(|flow| (flow.spec.from, flow.spec.to));
        let count = if listed.len() == 0 { part.hosts.len() as u32 } else { 0 };
        let streams = self.job.datagrams.iter().map(|stream| (stream.spec.from, stream.spec.to));
        let any = (0..count).flat_map(|from| [(0, from), (from, 0)]).filter(|(from, to)| from != to);
        for (from, to) in listed.chain(streams).chain(any) {
            let pair = (edges[from as usize], edges[to as usize]);
            let [sender, receiver] = [from, to].map(|server| part.hosts[server as usize].node);
            if checked.insert(pair) && !part.router.reaches(sender, receiver) {
                let name = |node: NodeId| self.job.fabric.node(node).name.clone();
                return Err(SimError::NoPath { from: name(sender), to: name(receiver) });
            }
        }
        Ok(())
    }

    /// Parts run up to each timer of the whole network in turn.
    fn until_the_end(&mut self) -> Result<(), SimError> {
        while !self.over {
            let due = self.timers.next();
            self.advance(due)?;
            if self.over {
                return Ok(());
            }
            if let Some((time_ps, timer)) = self.timers.take_by(due.time_ps) {
                self.now_ps = time_ps;
                self.parts.iter_mut().for_each(|part| part.network.now_ps = time_ps);
                self.take(timer)?;
            }
        }
        Ok(())
    }

    /// Up to a time, or to the end of the run if that comes before.
    fn advance(&mut self, due: Due) -> Result<(), SimError> {
        let watcher = &mut self.watcher;
        match &mut self.parts[..] {
            [whole] => {
                whole.advance(due, &mut |part| watcher.pause(part))?;
                watcher.show(whole);
            }
            parts => windows::advance(parts, self.job.threads.get(), due, watcher)?,
        }
        let ends = self.ends();
        let has_next = self.parts.iter().any(|part| part.next().time_ps < u64::MAX);
        self.over = ends < due || (due == Due::NEVER && !has_next);
        if self.over {
            let last_ps = self.parts.iter().map(|part| part.network.now_ps).max().unwrap_or(0);
            self.now_ps = if ends < due { ends.time_ps } else { last_ps };
            self.parts.iter_mut().for_each(|part| part.network.now_ps = self.now_ps);
        }
        Ok(())
    }

    /// When the run is over: the end of the window in which its last flow has ended.
    fn ends(&self) -> Due {
        windows::ends(&self.cut, self.parts.iter().map(|part| (part.has_more(), part.last_end_ps)))
    }

    fn take(&mut self, timer: Timer) -> Result<(), SimError> {
        match timer {
            Timer::FaultStep(step) => self.fault_step(step),
            Timer::Reconverge(step) => self.reconverge(step),
            Timer::Sample => return self.sample(),
            Timer::SampleTcp => self.sample_tcp(),
            Timer::Replay => self.sample_replay(),
            Timer::Stop => self.over = true,
            _ => unreachable!("parts take their own timers"),
        }
        Ok(())
    }
}

/// Tells the observer what goes on.
struct Watcher<'a> {
    observer: &'a mut dyn Observer,
    stop: Option<Nanos>,
    /// Payload of all flows together; `None` if one has no end.
    asked_bytes: Option<u64>,
    /// Packet-hops at the last report.
    told_hops: u64,
    times: WindowTimes,
}

impl Watcher<'_> {
    /// What a run on one thread does now and then.
    fn pause(&mut self, part: &mut Part<'_>) -> Result<(), SimError> {
        self.show(part);
        if self.is_due(part.hops) {
            part.check_pools()?;
        }
        self.follow(part.so_far())
    }

    /// Reports where enough has happened since the last time.
    fn follow(&mut self, so_far: SoFar) -> Result<(), SimError> {
        if !self.is_due(so_far.hops) {
            return Ok(());
        }
        self.told_hops = so_far.hops;
        self.report(so_far)
    }

    fn is_due(&self, hops: u64) -> bool {
        hops >= self.told_hops + HOPS_PER_REPORT
    }

    fn show(&mut self, part: &mut Part<'_>) {
        for shown in part.shown.drain(..) {
            match shown {
                Shown::Line(line) => self.observer.trace(line),
                Shown::Packet(time_ps, frame) => self.observer.packet(time_ps, &frame),
            }
        }
    }

    fn report(&mut self, so_far: SoFar) -> Result<(), SimError> {
        let share = |done: u64, all: u64| (u128::from(done) * 1_000 / u128::from(all.max(1))).min(1_000) as u32;
        let of_time = self.stop.map(|stop| share(so_far.now_ps, ps(stop.0)));
        let of_bytes = self.asked_bytes.map(|asked| share(so_far.received_bytes, asked));
        let progress = Progress {
            time_ns: so_far.now_ps / PS_PER_NS,
            flows_done: so_far.flows_done,
            flows_started: so_far.started,
            packet_hops: so_far.hops,
            received_bytes: so_far.received_bytes,
            done_milli: of_bytes.max(of_time).unwrap_or(0),
        };
        match self.observer.progress(&progress) {
            std::ops::ControlFlow::Continue(()) => Ok(()),
            std::ops::ControlFlow::Break(()) => Err(SimError::Interrupted),
        }
    }
}

/// How far a run or a part of it is.
#[derive(Clone, Copy, Debug, Default)]
struct SoFar {
    now_ps: u64,
    hops: u64,
    started: u64,
    flows_done: u64,
    received_bytes: u64,
}

impl SoFar {
    fn and(self, other: Self) -> Self {
        Self {
            now_ps: self.now_ps.max(other.now_ps),
            hops: self.hops + other.hops,
            started: self.started + other.started,
            flows_done: self.flows_done + other.flows_done,
            received_bytes: self.received_bytes + other.received_bytes,
        }
    }
}

/// Payload of all flows together; `None` if it is not known before the run.
fn asked_bytes(source: &Source) -> Option<u64> {
    let Source::Flows(flows) = source else { return None };
    flows.iter().map(|flow| Some(flow.spec.bytes).filter(|bytes| *bytes > 0)).sum()
}
