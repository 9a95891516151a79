//! From the command line to a job: a TOML file, or a fabric and what happens on it.

use std::path::Path;

use weft_experiment::plan::{SingleSampling, SingleScenario, fabric_text};
use weft_scenario::engine::Overlay;
use weft_scenario::id::LinkId;
use weft_scenario::topology::{Fabric, Role, from_yaml};
use weft_scenario::units::{Bytes, Nanos};
use weft_scenario::workload::flow_file::{self, PinnedFlow};
use weft_scenario::workload::{BackgroundSpec, QueryRate, QuerySpec, SizeDistribution, TrafficSpec, Workload};
use weft_sim::{Job, SimEngine, Source};

use crate::args::{SimArgs, TrafficArgs, WorkloadChoice};
use crate::exit::Failure;

const DEFAULT_BYTES: Bytes = Bytes(1_000_000);
const DEFAULT_LOAD_PERCENT: u32 = 50;
const DEFAULT_DURATION: Nanos = Nanos(10_000_000);
const DEFAULT_FAN_IN: u32 = 20;
const DEFAULT_INTERVAL: Nanos = Nanos(10_000_000);

/// A job and what its records are called.
pub(super) struct Loaded {
    pub(super) job: Job,
    pub(super) workload: Workload,
    pub(super) workload_name: String,
}

/// Reads and checks everything that the command line names.
pub(super) fn load(args: &SimArgs) -> Result<Loaded, Failure> {
    let pinned = args.traffic.flows.as_deref().map(read_flows).transpose()?;
    let single = match is_scenario_file(&args.scenario) {
        true => from_file(args)?,
        false => on_fabric(&args.scenario, &args.traffic, pinned.as_deref())?,
    };
    let (scenario, trial) = single.build(args.seed).map_err(Failure::usage)?;
    let mut job = SimEngine::default().job(&scenario, &trial).map_err(super::failure)?;
    if let Some(pinned) = pinned {
        pin(&mut job, pinned)?;
    }
    job.watch.trace_flow = args.trace.map(|target| target.flow);
    check_trace(&job)?;
    if let Some(port) = &args.capture {
        job.watch.capture = Some(find_port(&job.fabric, port)?);
    }
    Ok(Loaded { job, workload: single.workload().clone(), workload_name: single.workload_name })
}

fn is_scenario_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

fn from_file(args: &SimArgs) -> Result<SingleScenario, Failure> {
    if let Some(flag) = args.traffic.given().first() {
        return Err(Failure::usage(format!("{flag} has no effect on {}: the file says it itself", args.scenario)));
    }
    let text = std::fs::read_to_string(&args.scenario)
        .map_err(|error| Failure::usage(format!("cannot read scenario {}: {error}", args.scenario)))?;
    SingleScenario::parse(&args.scenario, &text).map_err(Failure::usage)
}

fn on_fabric(name: &str, traffic: &TrafficArgs, pinned: Option<&[PinnedFlow]>) -> Result<SingleScenario, Failure> {
    let text = fabric_text(name).map_err(|reason| Failure::usage(format!("fabric `{name}`: {reason}")))?;
    let fabric = from_yaml(&text, name).map_err(Failure::usage)?;
    let default = if fabric.with_role(Role::Intermediate).next().is_some() { Overlay::Vl2 } else { Overlay::Routed };
    let overlay = traffic.overlay.map_or(default, Into::into);
    let servers = fabric.servers().count() as u32;
    let (workload_name, workload) = match (pinned, traffic.workload) {
        (Some(flows), _) => {
            traffic.only("a flow file", &[])?;
            ("flows".to_owned(), Workload::Flows { flows: flows.iter().map(PinnedFlow::spec).collect() })
        }
        (None, Some(choice)) => (choice.name(), traffic.build(choice, servers)?),
        (None, None) => return Err(Failure::usage("say what is sent: --workload permutation, or --flows FILE")),
    };
    let default = SingleSampling::default();
    let sampling = SingleSampling { time_limit: traffic.time_limit.unwrap_or(default.time_limit), ..default };
    Ok(SingleScenario::on_fabric(name, overlay, &workload_name, workload, sampling))
}

impl WorkloadChoice {
    fn name(self) -> String {
        use clap::ValueEnum;
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The flags that it listens to.
    fn takes(self) -> &'static [&'static str] {
        match self {
            Self::Permutation => &["--bytes", "--shift"],
            Self::Shuffle => &["--bytes"],
            Self::WebSearch | Self::DataMining => &["--load", "--duration"],
            Self::Query => &["--duration", "--fan-in", "--response", "--interval"],
        }
    }
}

impl TrafficArgs {
    /// The flags about traffic that were given.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--workload", self.workload.is_some()),
            ("--flows", self.flows.is_some()),
            ("--overlay", self.overlay.is_some()),
            ("--time-limit", self.time_limit.is_some()),
            ("--bytes", self.bytes.is_some()),
            ("--shift", self.shift.is_some()),
            ("--load", self.load.is_some()),
            ("--duration", self.duration.is_some()),
            ("--fan-in", self.fan_in.is_some()),
            ("--response", self.response.is_some()),
            ("--interval", self.interval.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag).collect()
    }

    /// Refuses flags that the traffic does not listen to, so that none is silently without effect.
    fn only(&self, traffic: &str, takes: &[&str]) -> Result<(), Failure> {
        let always = ["--workload", "--flows", "--overlay", "--time-limit"];
        let known = |flag: &&str| always.contains(flag) || takes.contains(flag);
        match self.given().into_iter().find(|flag| !known(flag)) {
            None => Ok(()),
            Some(flag) if takes.is_empty() => Err(Failure::usage(format!("{flag} has no effect on {traffic}"))),
            Some(flag) => {
                Err(Failure::usage(format!("{flag} has no effect on {traffic}; it takes {}", takes.join(", "))))
            }
        }
    }

    fn build(&self, choice: WorkloadChoice, servers: u32) -> Result<Workload, Failure> {
        self.only(&format!("the workload {}", choice.name()), choice.takes())?;
        let bytes_per_flow = self.bytes.unwrap_or(DEFAULT_BYTES);
        Ok(match choice {
            WorkloadChoice::Permutation => {
                Workload::Permutation { bytes_per_flow, shift: self.shift.unwrap_or((servers / 2).max(1)) }
            }
            WorkloadChoice::Shuffle => Workload::Shuffle { bytes_per_flow },
            WorkloadChoice::WebSearch => self.background(SizeDistribution::WebSearch),
            WorkloadChoice::DataMining => self.background(SizeDistribution::DataMining),
            WorkloadChoice::Query => self.query(),
        })
    }

    fn background(&self, sizes: SizeDistribution) -> Workload {
        let background = BackgroundSpec {
            sizes,
            load_percent: self.load.unwrap_or(DEFAULT_LOAD_PERCENT),
            max_flow_bytes: None,
            size_divisor: 1,
            between_racks_only: false,
            servers_per_rack: None,
        };
        let duration = self.duration.unwrap_or(DEFAULT_DURATION);
        Workload::Traffic(TrafficSpec { duration, background: Some(background), query: None })
    }

    fn query(&self) -> Workload {
        let query = QuerySpec {
            fan_in: self.fan_in.unwrap_or(DEFAULT_FAN_IN),
            response: self.response.unwrap_or(DEFAULT_BYTES),
            rate: QueryRate::Interval(self.interval.unwrap_or(DEFAULT_INTERVAL)),
            jitter: Nanos(0),
        };
        let duration = self.duration.unwrap_or(DEFAULT_DURATION);
        Workload::Traffic(TrafficSpec { duration, background: None, query: Some(query) })
    }
}

fn read_flows(path: &Path) -> Result<Vec<PinnedFlow>, Failure> {
    let named = |problem: String| Failure::usage(format!("flow file {}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    let mut flows = flow_file::parse(&text).map_err(|error| named(error.to_string()))?;
    // In the order of the job's flows, which are equal by whole nanoseconds.
    flows.sort_by_key(|flow| flow.spec().start_ns);
    Ok(flows)
}

/// Sends every flow by the spine that its file names.
fn pin(job: &mut Job, pinned: Vec<PinnedFlow>) -> Result<(), Failure> {
    let spines: Vec<_> = job.fabric.with_role(Role::Spine).collect();
    let Source::Flows(flows) = &mut job.source else { return Ok(()) };
    for (flow, line) in flows.iter_mut().zip(pinned) {
        let spine = spines.get(line.spine as usize).copied();
        flow.through = Some(spine.ok_or_else(|| {
            Failure::usage(format!(
                "the flow file names spine {}; the fabric's {} spines are numbered from 0",
                line.spine,
                spines.len()
            ))
        })?);
    }
    Ok(())
}

fn check_trace(job: &Job) -> Result<(), Failure> {
    match (job.watch.trace_flow, &job.source) {
        (Some(flow), Source::Flows(flows)) if flow as usize >= flows.len() => {
            Err(Failure::usage(format!("--trace flow={flow}: the {} flows are numbered from 0", flows.len())))
        }
        _ => Ok(()),
    }
}

/// The link and the sending node of `NODE:INTERFACE`.
fn find_port(fabric: &Fabric, port: &str) -> Result<(LinkId, weft_scenario::id::NodeId), Failure> {
    let Some((node_name, interface)) = port.split_once(':') else {
        return Err(Failure::usage(format!("`{port}` is not NODE:INTERFACE; write for example leaf1:spine1")));
    };
    let node = fabric.find(node_name).ok_or_else(|| {
        Failure::usage(format!("--capture {port}: fabric `{}` has no node `{node_name}`", fabric.name()))
    })?;
    let ports = || fabric.links_of(node).iter().filter_map(|link| Some((*link, fabric.link(*link).end_at(node)?)));
    match ports().find(|(_, end)| end.interface == interface) {
        Some((link, _)) => Ok((link, node)),
        None => {
            let known: Vec<&str> = ports().map(|(_, end)| end.interface.as_str()).collect();
            let known = known.join(", ");
            Err(Failure::usage(format!(
                "--capture {port}: `{node_name}` has no interface `{interface}`; it has {known}"
            )))
        }
    }
}
