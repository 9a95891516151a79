//! A run: packets arrive, timers come due, and at the end the books must balance.
//!
//! * [`setup`] turns a job into a network at rest, or refuses it
//! * [`connection`] is TCP's way in and out: starts, arrivals at hosts, timers; [`flow`] is the state of one
//! * [`host`] lets flows take turns at a network card; [`spread`] chooses routes
//! * [`timers`] is what is due at a set time; [`faults`], [`mix`], [`datagrams`], [`sampling`] and [`replay`] are what such timers do; [`follow`] keeps ways of a few flows
//! * [`accounts`] checks that nothing was made or lost on the way; [`trace`], [`capture`] tell people about it

mod accounts;
mod capture;
mod connection;
mod datagrams;
mod faults;
mod flow;
mod follow;
mod host;
mod mix;
mod replay;
mod sampling;
mod setup;
mod spread;
mod timers;
mod trace;

use std::collections::BTreeSet;

use weft_scenario::engine::CongestionControl;
use weft_scenario::id::NodeId;
use weft_scenario::record::Reel;
use weft_scenario::units::Nanos;

use crate::error::SimError;
use crate::events::AHEAD;
use crate::job::{Flow, Job, Source};
use crate::network::{Arrival, Network, Sent};
use crate::observer::{Observer, Progress};
use crate::outcome::{FabricEvent, FlowOutcome, Outcome, Sample, TcpSample, Totals};
use crate::packet::{Flags, Packet};
use crate::routes::Hop;
use crate::routes::walk::Router;
use crate::time::{PS_PER_NS, ps};

pub use datagrams::{DATAGRAM_HEADER_BYTES, datagram_ways};
pub(crate) use replay::moments_most;
pub(crate) use setup::router;

use capture::Capture;
use datagrams::Datagrams;
use faults::FaultSteps;
use flow::{Direction, FlowState, LongAcks, NO_ROUTE};
use follow::Followed;
use host::Host;
use mix::Mix;
use spread::Spreader;
use timers::{Timer, Timers};

/// The observer is told about the run after so many packet-hops.
const HOPS_PER_REPORT: u32 = 1 << 16;
/// And so often at least it is seen whether anything can be read ahead.
const HOPS_PER_PAUSE: u32 = 1 << 10;

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
    Ok(simulation.into_outcome())
}

/// Everything that changes during a run.
struct Simulation<'a> {
    job: &'a Job,
    observer: &'a mut dyn Observer,
    network: Network,
    router: Router<'a>,
    hosts: Vec<Host>,
    /// Flows that are under way; packets name them by their places.
    flows: Vec<FlowState>,
    free_places: Vec<u32>,
    long_acks: LongAcks,
    spread: Spreader,
    /// What every data packet sets out with.
    data_flags: Flags,
    timers: Timers,
    /// Arrivals come before any timer as long as their keys are below this.
    until_key: u64,
    over: bool,
    /// Places in the source's list of the flows that are still to start, the next one last.
    to_start: Vec<u32>,
    /// Flows that have not ended yet, those to start included.
    unfinished: u64,
    started: u64,
    mix: Option<Mix>,
    datagrams: Datagrams,
    faults: FaultSteps,
    capture: Option<Capture>,
    /// Arrivals until [`Self::pause`], and from there to the next report.
    hops_to_pause: u32,
    hops_to_report: u32,
    /// Payload of all flows together; `None` if one has no end.
    asked_bytes: Option<u64>,
    totals: Totals,
    outcomes: Vec<FlowOutcome>,
    samples: Vec<Sample>,
    tcp_samples: Vec<TcpSample>,
    reel: Reel,
    followed: Followed,
    events: Vec<FabricEvent>,
}

impl<'a> Simulation<'a> {
    fn new(job: &'a Job, observer: &'a mut dyn Observer) -> Result<Self, SimError> {
        let network = setup::network(job)?;
        let hosts = setup::hosts(job, &network);
        let listed = job.source.flows();
        let to_start = start_order(listed);
        let asked_bytes = asked_bytes(&job.source);
        let mut simulation = Self {
            job,
            observer,
            router: setup::router(job),
            hosts,
            flows: Vec::new(),
            free_places: Vec::new(),
            long_acks: LongAcks::default(),
            spread: Spreader::new(job.settings.switching.load_balance),
            data_flags: Flags::default()
                .with_if(job.settings.tcp.congestion_control == CongestionControl::Dctcp, Flags::ECT),
            timers: Timers::default(),
            until_key: 0,
            over: false,
            unfinished: to_start.len() as u64,
            started: 0,
            outcomes: listed.iter().map(|flow| FlowOutcome::not_started(flow.spec)).collect(),
            to_start,
            mix: None,
            datagrams: Datagrams::default(),
            faults: FaultSteps::new(job)?,
            capture: Capture::new(job),
            hops_to_pause: HOPS_PER_PAUSE,
            hops_to_report: HOPS_PER_REPORT - HOPS_PER_PAUSE,
            asked_bytes,
            totals: Totals::default(),
            samples: Vec::new(),
            tcp_samples: Vec::new(),
            reel: replay::reel(network.ports.len()),
            followed: Followed::of(job.source.flows().len() as u32),
            events: Vec::new(),
            network,
        };
        simulation.check_paths()?;
        simulation.first_timers()?;
        Ok(simulation)
    }

    fn first_timers(&mut self) -> Result<(), SimError> {
        let nothing_listed = self.unfinished == 0 && self.job.datagrams.is_empty();
        self.over = nothing_listed && matches!(self.job.source, Source::Flows(_));
        self.arm_next_start();
        self.begin_datagrams();
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
        self.begin_mix()
    }

    /// Refuses flows between racks that have no path to each other while nothing has failed.
    fn check_paths(&mut self) -> Result<(), SimError> {
        let edges: Vec<Option<NodeId>> =
            self.hosts.iter().map(|host| Some(self.job.fabric.edge_of(host.node)?.0)).collect();
        let mut checked = BTreeSet::new();
        let listed = self.job.source.flows().iter().map(|flow| (flow.spec.from, flow.spec.to));
        let count = if listed.len() == 0 { self.hosts.len() as u32 } else { 0 };
        let streams = self.job.datagrams.iter().map(|stream| (stream.spec.from, stream.spec.to));
        let any = (0..count).flat_map(|from| [(0, from), (from, 0)]).filter(|(from, to)| from != to);
        for (from, to) in listed.chain(streams).chain(any) {
            let pair = (edges[from as usize], edges[to as usize]);
            let [sender, receiver] = [from, to].map(|server| self.hosts[server as usize].node);
            if checked.insert(pair) && !self.router.reaches(sender, receiver) {
                let name = |node: NodeId| self.job.fabric.node(node).name.clone();
                return Err(SimError::NoPath { from: name(sender), to: name(receiver) });
            }
        }
        Ok(())
    }

    /// Arrivals and timers in turn, in the order of their times; a timer comes before an arrival at the same time.
    fn until_the_end(&mut self) -> Result<(), SimError> {
        while !self.over {
            let timer_ps = self.timers.next_ps();
            if timer_ps == u64::MAX && self.network.is_idle() {
                return Ok(());
            }
            self.until_key = self.network.key_at(timer_ps.min(self.network.epoch_ends_ps()));
            self.arrivals()?;
            if self.over {
                return Ok(());
            }
            let epoch_ends_ps = self.network.epoch_ends_ps();
            match self.timers.take_by(epoch_ends_ps) {
                Some((time_ps, timer)) => {
                    self.network.now_ps = time_ps;
                    self.take(timer)?;
                }
                None => {
                    self.network.now_ps = epoch_ends_ps;
                    self.network.start_epoch();
                }
            }
        }
        Ok(())
    }

    fn arrivals(&mut self) -> Result<(), SimError> {
        while let Some(arrival) = self.network.next_arrival(self.until_key) {
            self.arrived(arrival);
            self.hops_to_pause -= 1;
            if self.hops_to_pause == 0 {
                self.pause()?;
            }
        }
        Ok(())
    }

    /// What is done now and then between two arrivals.
    fn pause(&mut self) -> Result<(), SimError> {
        if self.hops_to_report == 0 {
            self.hops_to_report = HOPS_PER_REPORT;
            self.report()?;
        }
        self.look_ahead();
        let hops = u32::try_from(self.network.until_look_ahead())
            .unwrap_or(u32::MAX)
            .min(HOPS_PER_PAUSE)
            .min(self.hops_to_report);
        self.hops_to_report -= hops;
        self.hops_to_pause = hops;
        Ok(())
    }

    /// Reads what the next arrivals need, see [`Network::look_ahead`].
    #[inline(never)]
    fn look_ahead(&mut self) {
        let coming = self.network.look_ahead();
        let mut read = 0;
        let mut hops = [None; AHEAD];
        for (hop, coming) in hops.iter_mut().zip(coming) {
            let Some(coming) = coming else { continue };
            let flow = &self.flows[coming.flow as usize];
            let route = flow.routes[if coming.is_ack { Direction::Data } else { Direction::Ack } as usize];
            read ^= flow.read();
            *hop = Some((route, flow.from)).filter(|_| route != NO_ROUTE);
        }
        let ports = hops.map(|hop| {
            let (route, from) = hop?;
            read ^= u64::from(self.hosts[from as usize].nic);
            Some(self.network.routes.hop(route).port())
        });
        for port in ports.into_iter().flatten() {
            read ^= self.network.read_queue(port);
        }
        std::hint::black_box(read);
    }

    #[inline(always)]
    fn arrived(&mut self, arrival: Arrival) {
        if self.capture.is_some() {
            self.capture(&arrival);
        }
        match arrival.next {
            Some(hop) => self.forward(hop, arrival.packet),
            None if arrival.packet.flags().has(Flags::ACK) => self.acknowledged(arrival.packet),
            None => self.received(arrival.packet),
        }
    }

    fn take(&mut self, timer: Timer) -> Result<(), SimError> {
        match timer {
            Timer::FaultStep(step) => self.fault_step(step),
            Timer::Reconverge(step) => self.reconverge(step),
            Timer::Start => self.start_due(),
            Timer::Source(server) => self.grant(server),
            Timer::Datagram(stream) => self.send_datagram(stream),
            Timer::Host(host) => self.take_turns(host),
            Timer::Receiver(place) => self.receiver_timer_ends(place),
            Timer::Sender(place) => self.sender_timer_ends(place),
            Timer::Sample => return self.sample(),
            Timer::SampleTcp => self.sample_tcp(),
            Timer::Replay => self.sample_replay(),
            Timer::Stop => self.over = true,
        }
        Ok(())
    }

    /// Adds a timer, before which no later arrival is looked at.
    #[inline]
    fn arm(&mut self, time_ps: u64, timer: Timer) {
        self.timers.add(time_ps, timer);
        self.until_key = self.until_key.min(self.network.key_at(time_ps));
    }

    /// Puts a packet on a link; what has no room there is gone.
    #[inline(always)]
    fn forward(&mut self, hop: Hop, packet: Packet) {
        let sent = self.network.send(hop, packet);
        if packet.flags().has(Flags::TRACED) {
            self.trace_hop(hop, &packet, sent);
        }
        if sent != Sent::Queued {
            self.dropped(packet, sent);
        }
    }

    #[cold]
    fn dropped(&mut self, packet: Packet, sent: Sent) {
        let volume = if sent == Sent::Refused { &mut self.totals.refused } else { &mut self.totals.lost };
        volume.add(packet.ip_bytes());
        if packet.flags().has(Flags::SACK) {
            self.long_acks.take(packet.sequence());
        }
        self.left_network(packet.flow());
    }

    /// Nothing more can happen: no arrival and no timer is looked at any more.
    fn finish(&mut self) {
        self.over = true;
        self.until_key = 0;
    }

    fn report(&mut self) -> Result<(), SimError> {
        self.check_pools()?;
        let progress = self.progress();
        match self.observer.progress(&progress) {
            std::ops::ControlFlow::Continue(()) => Ok(()),
            std::ops::ControlFlow::Break(()) => Err(SimError::Interrupted),
        }
    }

    fn progress(&self) -> Progress {
        let now_ps = self.network.now_ps;
        let share = |done: u64, all: u64| (u128::from(done) * 1_000 / u128::from(all.max(1))).min(1_000) as u32;
        let of_time = self.job.stop.map(|stop| share(now_ps, ps(stop.0)));
        let of_bytes = self.asked_bytes.map(|asked| share(self.totals.received_bytes, asked));
        Progress {
            time_ns: now_ps / PS_PER_NS,
            flows_done: self.totals.flows_done,
            flows_started: self.started,
            packet_hops: self.packet_hops(),
            received_bytes: self.totals.received_bytes,
            done_milli: of_bytes.max(of_time).unwrap_or(0),
        }
    }
}

/// Places of the flows in the order of their starts, the first one last; equal starts keep the order of the list.
fn start_order(flows: &[Flow]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..flows.len() as u32).collect();
    order.sort_by_key(|place| std::cmp::Reverse((flows[*place as usize].spec.start_ns, *place)));
    order
}

/// Payload of all flows together; `None` if it is not known before the run.
fn asked_bytes(source: &Source) -> Option<u64> {
    let Source::Flows(flows) = source else { return None };
    flows.iter().map(|flow| Some(flow.spec.bytes).filter(|bytes| *bytes > 0)).sum()
}
