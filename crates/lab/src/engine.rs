//! The lab as an engine of experiments: a scenario becomes a lab that lives as long as its session.

use std::ffi::OsString;
use std::path::PathBuf;

use weft_scenario::engine::{Engine, EngineError, Progress, Scenario, Session, Trial};
use weft_scenario::id::NodeId;
use weft_scenario::name::NAME_MAX;
use weft_scenario::record::{EventRow, Records};
use weft_scenario::topology::Fabric;
use weft_scenario::workload::services::ServicesSpec;
use weft_scenario::workload::{Servers, Workload};

use crate::adjacency::AdjacencyWatch;
use crate::directory;
use crate::doctor;
use crate::down;
use crate::elephants;
use crate::error::LabError;
use crate::faults::LabActuator;
use crate::frames;
use crate::group_streams;
use crate::home::namespace_path;
use crate::limits;
use crate::migration;
use crate::options::LabOptions;
use crate::overlay;
use crate::process::ProcessId;
use crate::segments;
use crate::traffic::{self, TrafficError, TrafficHost, TrafficSetup};
use crate::trill::Held;
use crate::up::{Lab, up_owned};
use crate::watch::watched_ports;

/// Engine 2: real kernels, real OSPF, real TCP on this machine.
#[derive(Clone, Debug)]
pub struct LabEngine {
    options: LabOptions,
    worker_command: Vec<OsString>,
}

impl LabEngine {
    /// An engine whose labs are made with these options. `worker_command` starts one worker of traffic, usually
    /// `weft internal traffic-worker`.
    pub fn new(options: LabOptions, worker_command: Vec<OsString>) -> Self {
        Self { options, worker_command }
    }

    /// A name that no other lab has: the fabric's, or the fabric's with a number.
    fn free_name(&self, scenario: &Scenario) -> String {
        let base = self.options.name.clone().unwrap_or_else(|| scenario.fabric.name().to_owned());
        let taken = crate::home::lab_names();
        let numbered = |number: u32| {
            let number = format!("-{number}");
            let room = base.get(..NAME_MAX - number.len()).unwrap_or(&base);
            format!("{room}{number}")
        };
        let candidates = (1u32..).map(|number| if number == 1 { base.clone() } else { numbered(number) });
        candidates.into_iter().find(|name| !taken.contains(name)).unwrap_or(base)
    }
}

impl Engine for LabEngine {
    fn name(&self) -> &'static str {
        "lab"
    }

    fn check_fit(&self, scenario: &Scenario, trial: &Trial) -> Result<(), EngineError> {
        Ok(doctor::require(scenario, Some(trial), &self.options)?)
    }

    fn prepare<'a>(
        &'a self,
        scenario: &Scenario,
        progress: &'a dyn Progress,
    ) -> Result<Box<dyn Session + 'a>, EngineError> {
        if rustix::process::geteuid().is_root() {
            for lab in down::sweep_orphans()? {
                progress.note(&format!("removed lab {lab}, left over from a run that was killed"));
            }
        }
        let options = LabOptions { name: Some(self.free_name(scenario)), ..self.options.clone() };
        let lab = up_owned(scenario, &options, Some(ProcessId::own()), progress)?;
        let options = &self.options;
        let mut session = LabSession {
            held: Held::default(),
            lab: Some(lab),
            progress,
            options,
            worker_command: &self.worker_command,
        };
        session.held = Held::of(session.lab())?;
        Ok(Box::new(session))
    }
}

/// A lab that carries packets for one run. Dropping it takes the lab down.
struct LabSession<'a> {
    held: Held,
    lab: Option<Lab>,
    progress: &'a dyn Progress,
    options: &'a LabOptions,
    worker_command: &'a [OsString],
}

impl LabSession<'_> {
    fn lab(&self) -> &Lab {
        self.lab.as_ref().expect("the lab is there until the session is closed")
    }

    fn lab_mut(&mut self) -> &mut Lab {
        self.lab.as_mut().expect("the lab is there until the session is closed")
    }

    /// The ends of flows: servers with what they talk by, or those with a public LA and, after them, whoever is outside.
    fn setup(&self, outside: bool) -> TrafficSetup {
        let lab = self.lab();
        let namespace = |node: NodeId| -> PathBuf { namespace_path(&lab.plan.node(node).namespace) };
        let host = |(node, address): (NodeId, std::net::Ipv4Addr)| TrafficHost {
            name: lab.plan.node(node).name.clone(),
            namespace: namespace(node),
            address,
        };
        let ends = if outside { lab.outside_addresses() } else { lab.server_addresses() };
        TrafficSetup {
            probed: if outside { ends.len().checked_sub(1) } else { None },
            hosts: ends.into_iter().map(host).collect(),
            watched: watched_ports(lab),
            daemons: lab.state.processes.clone(),
            segments_per_skb: lab.scenario.transport.segments_per_skb,
            congestion_control: lab.scenario.transport.congestion_control,
            worker_command: self.worker_command.to_vec(),
        }
    }
}

impl Session for LabSession<'_> {
    fn run(&mut self, trial: &Trial) -> Result<Records, EngineError> {
        let (options, progress) = (self.options, self.progress);
        match &trial.workload {
            Workload::Frames(spec) => {
                let (lab, weft_binary) = (self.lab(), &*options.weft_binary);
                Ok(frames::run(&frames::Run { lab, held: &self.held, spec, trial, weft_binary, progress })?)
            }
            Workload::Multicast(spec) => {
                Ok(group_streams::run(&group_streams::Run { lab: self.lab(), spec, trial, progress })?)
            }
            Workload::Segments(spec) => Ok(segments::run(self.lab(), spec, progress)?),
            Workload::Elephants(spec) => Ok(elephants::run(self.lab(), spec, progress)?),
            Workload::Directory(spec) => {
                let mut tier = directory::LabTier::new(self.lab_mut(), options);
                Ok(directory::run(&mut tier, spec, trial.seed, progress)?)
            }
            Workload::Migration(spec) => {
                Ok(migration::run(self.lab_mut(), options, spec, trial.sample_interval, progress)?)
            }
            Workload::Services(spec) => self.carry_services(spec, trial),
            _ => self.carry(trial),
        }
    }

    fn facts(&self) -> Vec<(String, f64)> {
        self.lab().facts.clone()
    }

    fn close(mut self: Box<Self>) -> Result<(), EngineError> {
        self.held = Held::default();
        self.lab.take().map_or(Ok(()), Lab::take_down).map_err(EngineError::from)
    }
}

impl LabSession<'_> {
    /// The same with the services' limits.
    fn carry_services(&mut self, spec: &ServicesSpec, trial: &Trial) -> Result<Records, EngineError> {
        let (options, progress) = (self.options, self.progress);
        spec.check_fabric(&self.lab().scenario.fabric).map_err(|error| EngineError::Refused(error.to_string()))?;
        let limited = limits::set(self.lab_mut(), options, progress, spec)?;
        let mut records = self.carry(trial)?;
        if let Some(limited) = limited {
            records.facts.push(limited.fact(self.lab()));
            limited.lift(self.lab_mut(), options, progress)?;
        }
        Ok(records)
    }

    /// Runs the traffic of a trial between the servers.
    fn carry(&self, trial: &Trial) -> Result<Records, EngineError> {
        let setup = self.setup(matches!(trial.workload, Workload::Outside(_)));
        let trial = &listed(trial, &self.lab().scenario.fabric)?;
        let moves = overlay::moves(self.lab())?;
        let watch = AdjacencyWatch::start(&self.lab().plan.nodes);
        let mut actuator = LabActuator::new(self.lab());
        let outcome = traffic::run(&setup, trial, &mut actuator, self.progress);
        let restored = actuator.finish();
        let mut records = outcome.map_err(|error| match error {
            TrafficError::Interrupted => EngineError::Interrupted,
            other => EngineError::from(LabError::Traffic(other.to_string())),
        })?;
        add_restorations(&mut records.events, &restored);
        if let Some((before, after)) = moves.zip(overlay::moves(self.lab())?) {
            records.facts.push(("vl2.moves".into(), (after - before) as f64));
        }
        let changes = watch.changes();
        records.facts.push(("lab.adjacency_changes".into(), changes.len() as f64));
        if trial.faults.is_empty() && !changes.is_empty() {
            self.progress.note(&format!(
                "{} adjacency changes without a fault, the first at {}: this run is not valid",
                changes.len(),
                changes[0].subject
            ));
        }
        records.events.extend(changes);
        records.events.sort_by_key(|event| event.time_ns);
        Ok(records)
    }
}

impl Drop for LabSession<'_> {
    fn drop(&mut self) {
        self.held = Held::default();
        if let Some(lab) = self.lab.take() {
            let name = lab.state.lab.clone();
            if let Err(error) = lab.take_down() {
                tracing::error!("lab {name} could not be removed: {error}; try: weft lab down --all");
            }
        }
    }
}

/// The trial with its traffic as a list of flows: traffic at a load depends on the links, and flows to the outside on who is
/// reachable from there, which the workers do not know.
fn listed(trial: &Trial, fabric: &Fabric) -> Result<Trial, LabError> {
    let mut trial = trial.clone();
    if let Workload::Traffic(_) = trial.workload {
        let flows = trial.workload.open_loop_flows(&Servers::of(fabric), trial.seed);
        trial.workload = Workload::Flows { flows: flows.map_err(|error| LabError::Traffic(error.to_string()))? };
    }
    if let Workload::Outside(load) = &trial.workload {
        let Some(outside) = fabric.outside() else {
            let why = format!("a workload of kind `outside` needs an outside; fabric `{}` has none", fabric.name());
            return Err(LabError::Traffic(why));
        };
        trial.workload = Workload::Flows { flows: load.flows(outside.servers.len() as u32) };
    }
    Ok(trial)
}

/// Adds a row for each repair after which the kernel's routes came back, counted from the repair's own row.
fn add_restorations(events: &mut Vec<EventRow>, restored: &[(usize, Option<std::time::Duration>)]) {
    let repairs: Vec<EventRow> = events.iter().filter(|event| event.kind == "repair").cloned().collect();
    for (number, after) in restored {
        if let (Some(repair), Some(after)) = (repairs.get(*number), after) {
            events.push(EventRow {
                time_ns: repair.time_ns + after.as_nanos() as u64,
                kind: "routes-restored".into(),
                subject: repair.subject.clone(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restored_routes_are_timed_from_their_repair() {
        let row = |time_ns, kind: &str| EventRow { time_ns, kind: kind.into(), subject: "int1".into() };
        let mut events = vec![row(1_000, "fault"), row(2_000, "repair"), row(5_000, "fault"), row(6_000, "repair")];
        let after = std::time::Duration::from_nanos(300);
        add_restorations(&mut events, &[(1, Some(after)), (0, None)]);
        assert_eq!(events[4..], [row(6_300, "routes-restored")]);
    }
}
