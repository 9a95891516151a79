//! From the command line to a job: a TOML file, or a fabric and what happens on it.

use std::num::NonZeroU32;
use std::path::Path;

use weft_experiment::memory;
use weft_experiment::page::choice;
use weft_experiment::plan::{SingleSampling, SingleScenario};
use weft_scenario::engine::{Engine, Trial};
use weft_scenario::id::LinkId;
use weft_scenario::topology::{Fabric, FabricSize, Role};
use weft_scenario::units::{Bytes, Nanos};
use weft_scenario::workload::flow_file::{self, PinnedFlow};
use weft_scenario::workload::{BackgroundSpec, QueryRate, QuerySpec, SizeDistribution, TrafficSpec, Workload};
use weft_sim::{Job, SimEngine, Source};

use crate::args::{SimArgs, TrafficArgs, WorkloadChoice};
use crate::commands::fabric;
use crate::exit::Failure;

const DEFAULT_BYTES: Bytes = Bytes(1_000_000);
const DEFAULT_LOAD_PERCENT: u32 = 50;
/// Flows arrive as long as the slowest server's link needs for this, so that there are some at any rate of links.
const DEFAULT_DURATION_BYTES: u64 = 100_000_000;
const DEFAULT_FAN_IN: u32 = 20;
const DEFAULT_QUERY_PERCENT: u32 = 10;

/// A job and what its records are called.
pub(super) struct Loaded {
    pub(super) job: Job,
    pub(super) workload: Workload,
    pub(super) workload_name: String,
    pub(super) single: SingleScenario,
    /// A line for people about the memory that it takes, if that is much.
    pub(super) note: Option<String>,
}

/// Reads and checks everything that the command line names.
pub(super) fn load(args: &SimArgs) -> Result<Loaded, Failure> {
    let pinned = args.traffic.flows.as_deref().map(read_flows).transpose()?;
    let single = match is_scenario_file(&args.scenario) {
        true => from_file(args)?,
        false => on_fabric(&args.scenario, &args.traffic, pinned.as_deref())?,
    };
    let engine = SimEngine::default();
    let note = |size: &FabricSize, trial: &Trial| {
        engine.memory(size, trial).map_or(Ok(None), |need| memory::judge(need, memory::available()))
    };
    // What does not fit is refused before it is built; of a file nobody knows the size before.
    let size = single.size().map_err(Failure::usage)?;
    let before = size.map(|size| note(&size, &single.trial(args.seed))).transpose()?;
    let (scenario, trial) = single.build(args.seed).map_err(Failure::usage)?;
    let note = before.map_or_else(|| note(&FabricSize::of(&scenario.fabric), &trial), Ok)?;
    let mut job = engine.job(&scenario, &trial).map_err(super::failure)?;
    if let Some(pinned) = pinned {
        pin(&mut job, pinned)?;
    }
    job.watch.replay = args.out.is_some() && choice::fits(&job.fabric);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let usual = || weft_sim::threads(job.fabric.servers().count() as u64, cores);
    job.threads = args.threads.and_then(NonZeroU32::new).unwrap_or_else(usual);
    job.watch.trace_flow = args.trace.map(|target| target.flow);
    check_trace(&job)?;
    if let Some(port) = &args.capture {
        job.watch.capture = Some(find_port(&job.fabric, port)?);
    }
    Ok(Loaded { job, workload: single.workload().clone(), workload_name: single.workload_name.clone(), single, note })
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
    let fabric = fabric::read(name)?;
    let overlay = traffic.overlay.map_or_else(|| fabric.default_overlay(), Into::into);
    let (workload_name, workload) = match (pinned, traffic.workload) {
        (Some(flows), _) => {
            traffic.only("a flow file", &[])?;
            ("flows".to_owned(), Workload::Flows { flows: flows.iter().map(PinnedFlow::spec).collect() })
        }
        (None, Some(choice)) => (choice.name(), traffic.build(choice, &fabric)?),
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

    fn build(&self, choice: WorkloadChoice, fabric: &Fabric) -> Result<Workload, Failure> {
        self.only(&format!("the workload {}", choice.name()), choice.takes())?;
        let bytes_per_flow = self.bytes.unwrap_or(DEFAULT_BYTES);
        let servers = fabric.servers().count() as u32;
        let duration = self.duration.unwrap_or_else(|| default_duration(fabric));
        Ok(match choice {
            WorkloadChoice::Permutation => {
                Workload::Permutation { bytes_per_flow, shift: self.shift.unwrap_or((servers / 2).max(1)) }
            }
            WorkloadChoice::Shuffle => Workload::Shuffle { bytes_per_flow },
            WorkloadChoice::WebSearch => self.background(SizeDistribution::WebSearch, duration),
            WorkloadChoice::DataMining => self.background(SizeDistribution::DataMining, duration),
            WorkloadChoice::Query => self.query(servers, duration),
        })
    }

    fn background(&self, sizes: SizeDistribution, duration: Nanos) -> Workload {
        let background = BackgroundSpec {
            sizes,
            load_percent: self.load.unwrap_or(DEFAULT_LOAD_PERCENT),
            max_flow_bytes: None,
            size_divisor: 1,
            between_racks_only: false,
            servers_per_rack: None,
        };
        Workload::Traffic(TrafficSpec { duration, background: Some(background), query: None })
    }

    fn query(&self, servers: u32, duration: Nanos) -> Workload {
        let query = QuerySpec {
            fan_in: self.fan_in.unwrap_or(DEFAULT_FAN_IN.min(servers.saturating_sub(1))),
            response: self.response.unwrap_or(DEFAULT_BYTES),
            rate: self.interval.map_or(QueryRate::LoadPercent(DEFAULT_QUERY_PERCENT), QueryRate::Interval),
            jitter: Nanos(0),
        };
        Workload::Traffic(TrafficSpec { duration, background: None, query: Some(query) })
    }
}

fn default_duration(fabric: &Fabric) -> Nanos {
    let links = fabric.servers().filter_map(|server| fabric.edge_of(server));
    let slowest = links.map(|(_, link)| fabric.link(link).spec.rate.0).min().unwrap_or(1).max(1);
    Nanos((u128::from(DEFAULT_DURATION_BYTES) * 8 * 1_000_000_000 / u128::from(slowest)) as u64)
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn every_workload_sends_something_on_every_kind_of_fabric_with_its_defaults() {
        for fabric in ["leaf-spine-small", "vl2-4servers", "trill-s1-s6", "overlay-pair"] {
            for workload in ["permutation", "shuffle", "web-search", "data-mining", "query"] {
                let cli =
                    Cli::try_parse_from(["weft", "sim", fabric, "--workload", workload]).expect("it can be typed");
                let Command::Sim(args) = cli.command else { panic!("{:?}", cli.command) };
                let loaded = load(&args).unwrap_or_else(|failure| panic!("{fabric}, {workload}: {failure:?}"));
                let Source::Flows(flows) = loaded.job.source else { panic!("{fabric}, {workload}: no list of flows") };
                assert!(flows.len() > 1, "{fabric}, {workload}: {} flows", flows.len());
            }
        }
    }

    #[test]
    fn flows_arrive_as_long_as_the_links_are_slow() {
        let fabric = fabric::read("leaf-spine-small").expect("it is embedded");
        assert_eq!(default_duration(&fabric).to_string(), "40 s");
    }
}
