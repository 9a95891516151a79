//! The simulator as an engine of experiments: scenario and trial become a job, its outcome becomes records.

use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::thread;

use weft_scenario::engine::{self, Engine, EngineError, Session, TcpStack, Trial};
use weft_scenario::fault::Fault;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::record::{
    EventRow, FlowRow, LinkRow, PortName, ProgressRow, QueueRow, Records, ReplayRow, ServiceRow, TcpRow, replay_rows,
    window_rows,
};
use weft_scenario::topology::{Fabric, FabricSize, Role};
use weft_scenario::units::{Bytes, Nanos};
use weft_scenario::workload::{FlowSpec, Servers, Workload, WorkloadError};

use crate::error::SimError;
use crate::ideal::IdealTimes;
use crate::job::{Flow, Job, PacketSizes, Settings, Source, Watch};
use crate::memory::{self, Extent};
use crate::observer::{Observer, Progress};
use crate::outcome::{FabricEventKind, Outcome, PortCounters};
use crate::run::run;
use crate::tcp;
use crate::time::PS_PER_NS;
use crate::ways;

/// Engine 1: virtual time, no privileges, the same records on every machine.
#[derive(Clone, Debug)]
pub struct SimEngine {
    /// What a scenario's transport does not say about TCP: the behaviour of a Linux kernel of today by default.
    pub tcp: tcp::Config,
    /// Whether the queues between switches are recorded ([`Records::queues`]); they are by default.
    pub records_queues: bool,
}

/// From so many servers on a run uses several threads where it may: below, they would wait for each other most of the time.
const THREADS_FROM_SERVERS: u64 = 10_000;

/// Threads that a run on so many servers uses of those that it may use.
pub fn threads(servers: u64, available: usize) -> NonZeroU32 {
    let available = NonZeroU32::new(u32::try_from(available).unwrap_or(u32::MAX)).unwrap_or(NonZeroU32::MIN);
    if servers < THREADS_FROM_SERVERS { NonZeroU32::MIN } else { available }
}

impl Default for SimEngine {
    fn default() -> Self {
        Self { tcp: tcp::Config::default(), records_queues: true }
    }
}

impl Engine for SimEngine {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn parallel(&self) -> Option<&(dyn Engine + Sync)> {
        Some(self)
    }

    fn memory(&self, size: &FabricSize, trial: &Trial) -> Option<Bytes> {
        let parts = threads(size.servers, thread::available_parallelism().map_or(1, usize::from));
        Some(memory::estimate(&Extent { parts: u64::from(parts.get()), ..Extent::of(size, trial) }))
    }

    fn prepare<'a>(
        &'a self,
        scenario: &engine::Scenario,
        progress: &'a dyn engine::Progress,
    ) -> Result<Box<dyn Session + 'a>, EngineError> {
        Ok(Box::new(SimSession { engine: self, scenario: scenario.clone(), progress, threads: 1 }))
    }
}

/// A scenario that trials run on, each from rest.
struct SimSession<'a> {
    engine: &'a SimEngine,
    scenario: engine::Scenario,
    progress: &'a dyn engine::Progress,
    threads: usize,
}

impl Session for SimSession<'_> {
    fn run(&mut self, trial: &Trial) -> Result<Records, EngineError> {
        if trial.pin_and_measure_cost {
            let what = "the simulator has no packets whose CPU cost could be measured".to_owned();
            return Err(EngineError::NotFit { what, remedy: "use the lab: --engine lab".to_owned() });
        }
        let mut job = self.engine.job(&self.scenario, trial)?;
        job.threads = threads(job.fabric.servers().count() as u64, self.threads);
        let mut watcher = Watcher { progress: self.progress, flows: job.source.flows().len() };
        let outcome = run(&job, &mut watcher)?;
        if let Some(fault) = missed_fault(&job, &outcome) {
            let end = Nanos(outcome.end_ps / PS_PER_NS);
            let (at, what) = (fault.at, fault.subject());
            self.progress.note(&format!("the fault at {at} of {what} had no effect: the last flow had ended at {end}"));
        }
        Ok(records(&job, &outcome))
    }

    fn use_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    fn facts(&self) -> Vec<(String, f64)> {
        vec![("sim.links".to_owned(), self.scenario.fabric.links().len() as f64)]
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        Ok(())
    }
}

impl SimEngine {
    /// The job of one trial of a scenario. It can be changed before it runs, for instance to watch more.
    pub fn job(&self, scenario: &engine::Scenario, trial: &Trial) -> Result<Job, SimError> {
        let fabric = &scenario.fabric;
        if let Some((node, own)) = fabric.forwarding().iter().find(|(_, own)| own.overlay != scenario.overlay) {
            let (place, node) = (own.place.clone(), fabric.node(*node).name.clone());
            return Err(SimError::OwnForwarding { place, node, overlay: own.overlay });
        }
        let servers = Servers::of(fabric);
        let spines: Vec<NodeId> = fabric.with_role(Role::Spine).collect();
        trial.workload.check(servers.count())?;
        trial.workload.check_spines(spines.len())?;
        let source = match &trial.workload {
            Workload::Mix(spec) => Source::Mix(spec.clone()),
            workload => {
                let flows = workload.open_loop_flows(&servers, trial.seed)?;
                let through = |spec: &FlowSpec| spec.spine.and_then(|spine| spines.get(usize::from(spine)).copied());
                let flow = |spec| Flow { through: through(&spec), spec };
                Source::Flows(flows.into_iter().map(flow).collect())
            }
        };
        let end = trial.workload.ends_at().map_or(trial.time_limit, |end| end.min(trial.time_limit));
        let (datagrams, services) = match &trial.workload {
            Workload::Services(spec) if !spec.storms().is_empty() => return Err(WorkloadError::StormLabOnly.into()),
            Workload::Services(spec) => (spec.datagrams().into_iter().map(Into::into).collect(), spec.members()),
            _ => (Vec::new(), Vec::new()),
        };
        let transport = &scenario.transport;
        Ok(Job {
            fabric: fabric.clone(),
            addresses: Some(scenario.addresses.clone()),
            settings: Settings {
                overlay: scenario.overlay,
                switching: scenario.switching.clone(),
                tcp: self.stack(transport.stack).with_transport(transport),
                sizes: PacketSizes::ethernet(transport.timestamps),
                seed: trial.seed,
            },
            source,
            datagrams,
            faults: trial.faults.clone(),
            stop: Some(end),
            watch: Watch {
                sample_interval: Some(trial.sample_interval),
                services,
                tcp_interval: trial.tcp_interval,
                replay: trial.replay,
                queue_classes: if self.records_queues { switch_classes(fabric) } else { Vec::new() },
                ..Watch::default()
            },
            threads: NonZeroU32::MIN,
            parts: None,
        })
    }

    fn stack(&self, stack: TcpStack) -> tcp::Config {
        match stack {
            TcpStack::Current => self.tcp.clone(),
            TcpStack::Linux2_6_26 => tcp::Config::linux_2_6_26(),
        }
    }
}

/// Classes of links between switches, where queues are of interest.
fn switch_classes(fabric: &Fabric) -> Vec<String> {
    let between = |link: &LinkId| {
        let ends = fabric.link(*link);
        [&ends.a, &ends.b].into_iter().all(|port| fabric.node(port.node).role.is_switch())
    };
    let links = (0..fabric.links().len() as u32).map(LinkId);
    let mut classes: Vec<String> = links.filter(between).map(|link| fabric.link_class(link)).collect();
    classes.sort_unstable();
    classes.dedup();
    classes
}

/// Passes progress on.
struct Watcher<'a> {
    progress: &'a dyn engine::Progress,
    /// Flows of the list; 0 for the mix.
    flows: usize,
}

impl Observer for Watcher<'_> {
    fn progress(&mut self, now: &Progress) -> ControlFlow<()> {
        if self.progress.interrupted() {
            return ControlFlow::Break(());
        }
        let flows = match self.flows {
            0 => now.flows_done.to_string(),
            all => format!("{}/{all}", now.flows_done),
        };
        let time_ms = now.time_ns as f64 / 1e6;
        let hops = now.packet_hops as f64 / 1e6;
        let text = format!("simulated {time_ms:.1} ms, {flows} flows, {hops:.1} M packet-hops");
        self.progress.advance(f64::from(now.done_milli) / 1e3, &text);
        ControlFlow::Continue(())
    }
}

impl From<SimError> for EngineError {
    fn from(error: SimError) -> Self {
        match error {
            SimError::Interrupted => Self::Interrupted,
            SimError::Unbalanced { .. } => Self::Failed(error.to_string()),
            refused => Self::Refused(refused.to_string()),
        }
    }
}

/// The first fault of a job that was to come when its run was over already, and so had no effect.
pub fn missed_fault<'a>(job: &'a Job, outcome: &Outcome) -> Option<&'a Fault> {
    let happened = |number: usize| outcome.events.iter().any(|event| event.fault == number);
    job.faults.iter().enumerate().find(|(number, _)| !happened(*number)).map(|(_, fault)| fault)
}

/// The outcome of a job as rows, the same as every engine's.
pub fn records(job: &Job, outcome: &Outcome) -> Records {
    Records {
        flows: flow_rows(job, outcome),
        progress: outcome.samples.iter().map(progress_row).collect(),
        services: service_rows(job, outcome),
        links: link_rows(&job.fabric, outcome),
        replay: replayed(&job.fabric, outcome),
        ways: ways::rows(job, outcome),
        windows: window_rows(&outcome.replay),
        tcp: outcome.tcp.iter().map(tcp_row).collect(),
        events: event_rows(job, outcome),
        queues: queue_rows(&job.fabric, outcome),
        facts: facts(&job.fabric, outcome),
        ..Records::default()
    }
}

fn flow_rows(job: &Job, outcome: &Outcome) -> Vec<FlowRow> {
    let mut ideal = IdealTimes::new(job);
    let row = |flow: &crate::FlowOutcome| FlowRow {
        from: flow.spec.from,
        to: flow.spec.to,
        bytes_asked: flow.spec.bytes,
        bytes_received: flow.received_bytes,
        start_ns: flow.spec.start_ns,
        end_ns: flow.received_ps.map(|time_ps| time_ps / PS_PER_NS),
        retransmits: flow.retransmits.into(),
        class: flow.spec.class,
        request: flow.spec.request,
        ideal_ns: ideal.completion_ps(&flow.spec).map(|time_ps| time_ps / PS_PER_NS),
    };
    outcome.flows.iter().map(row).collect()
}

fn progress_row(sample: &crate::Sample) -> ProgressRow {
    ProgressRow {
        time_ns: sample.time_ps / PS_PER_NS,
        received_bytes: sample.received_bytes,
        flows_done: sample.flows_done,
    }
}

fn service_rows(job: &Job, outcome: &Outcome) -> Vec<ServiceRow> {
    let rows = outcome.samples.iter().flat_map(|sample| {
        job.watch.services.iter().zip(&sample.services).map(|((service, _), received_bytes)| ServiceRow {
            time_ns: sample.time_ps / PS_PER_NS,
            service: service.clone(),
            received_bytes: *received_bytes,
        })
    });
    rows.collect()
}

fn tcp_row(sample: &crate::TcpSample) -> TcpRow {
    TcpRow {
        time_ns: sample.time_ps / PS_PER_NS,
        from: sample.from,
        to: sample.to,
        cwnd_segments: sample.cwnd_segments,
        srtt_ns: sample.srtt_ps / PS_PER_NS,
        retransmits: sample.retransmits,
    }
}

/// Names of one direction of a link, as rows have them.
struct PortNames {
    node: String,
    interface: String,
    peer: String,
    class: String,
}

impl PortNames {
    fn of_replay(&self) -> PortName<'_> {
        PortName { node: &self.node, interface: &self.interface, peer: &self.peer }
    }
}

fn port_names(fabric: &Fabric, outcome: &Outcome) -> Vec<PortNames> {
    let name = |node| fabric.node(node).name.clone();
    let names = |port: &crate::PortOutcome| PortNames {
        node: name(port.node),
        interface: fabric.link(port.link).end_at(port.node).map_or(String::new(), |end| end.interface.clone()),
        peer: fabric.link(port.link).far_end(port.node).map_or(String::new(), |end| name(end.node)),
        class: fabric.link_class(port.link),
    };
    outcome.ports.iter().map(names).collect()
}

fn link_rows(fabric: &Fabric, outcome: &Outcome) -> Vec<LinkRow> {
    let names = port_names(fabric, outcome);
    let row = |time_ps: u64, names: &PortNames, counters: &PortCounters| LinkRow {
        time_ns: time_ps / PS_PER_NS,
        node: names.node.clone(),
        interface: names.interface.clone(),
        peer: names.peer.clone(),
        class: names.class.clone(),
        sent_bytes: counters.interface_bytes(),
        dropped_frames: counters.drops,
    };
    let rows = outcome.samples.iter().flat_map(|sample| {
        let time_ps = sample.time_ps;
        names.iter().zip(&sample.ports).map(move |(names, counters)| row(time_ps, names, counters))
    });
    rows.collect()
}

fn replayed(fabric: &Fabric, outcome: &Outcome) -> Vec<ReplayRow> {
    let names = port_names(fabric, outcome);
    replay_rows(&outcome.replay, &names.iter().map(PortNames::of_replay).collect::<Vec<_>>())
}

fn queue_rows(fabric: &Fabric, outcome: &Outcome) -> Vec<QueueRow> {
    let names = port_names(fabric, outcome);
    let rows = outcome.ports.iter().zip(&names).flat_map(|(port, names)| {
        port.queue.iter().map(|(bytes_at_most, time_ps)| QueueRow {
            node: names.node.clone(),
            interface: names.interface.clone(),
            peer: names.peer.clone(),
            class: names.class.clone(),
            bytes_at_most: *bytes_at_most,
            time_ns: *time_ps / PS_PER_NS,
        })
    });
    rows.collect()
}

/// Rows of the kinds that the lab writes; that routes have changed is of interest after a repair.
fn event_rows(job: &Job, outcome: &Outcome) -> Vec<EventRow> {
    let mut repaired = vec![false; job.faults.len()];
    let mut rows = Vec::new();
    for event in &outcome.events {
        repaired[event.fault] |= event.kind == FabricEventKind::Repair;
        let kind = match event.kind {
            FabricEventKind::Fault => "fault",
            FabricEventKind::Repair => "repair",
            FabricEventKind::Reconverged if repaired[event.fault] => "routes-restored",
            FabricEventKind::Reconverged => continue,
        };
        let (time_ns, kind) = (event.time_ps / PS_PER_NS, kind.to_owned());
        rows.push(EventRow { time_ns, kind, subject: job.faults[event.fault].subject() });
    }
    rows
}

fn facts(fabric: &Fabric, outcome: &Outcome) -> Vec<(String, f64)> {
    let totals = &outcome.totals;
    let mut facts: Vec<(String, f64)> = [
        ("sim.packet_hops", totals.packet_hops),
        ("sim.marked_packets", totals.marked),
        ("sim.lost_on_dead_links", totals.lost.packets),
        ("tcp.retransmits", totals.retransmits),
        ("tcp.timeouts", totals.timeouts),
    ]
    .map(|(name, value)| (name.to_owned(), value as f64))
    .to_vec();
    let mut drops = std::collections::BTreeMap::new();
    for port in &outcome.ports {
        *drops.entry(fabric.link_class(port.link)).or_insert(0u64) += port.counters.drops;
    }
    facts.extend(drops.into_iter().map(|(class, drops)| (format!("drops.{class}"), drops as f64)));
    facts
}
