//! From the command line to a job: a TOML file, or a fabric and what happens on it.

use std::path::Path;

use weft_experiment::memory;
use weft_experiment::plan::{self, SingleSampling, SingleScenario};
use weft_scenario::engine::{Engine, Scenario, Trial};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::{Fabric, FabricSize};
use weft_scenario::units::{Bytes, Nanos};
use weft_scenario::workload::flow_file::{self, PinnedFlow};
use weft_scenario::workload::{
    BackgroundSpec, FlowSpec, QueryRate, QuerySpec, SizeDistribution, TrafficSpec, Workload,
};
use weft_sim::SimEngine;

use crate::args::{SimArgs, TrafficArgs, WorkloadChoice};
use crate::commands::fabric;
use crate::exit::Failure;

const DEFAULT_BYTES: Bytes = Bytes(1_000_000);
const DEFAULT_LOAD_PERCENT: u32 = 50;
/// Flows arrive as long as the slowest server's link needs for this, so that there are some at any rate of links.
const DEFAULT_DURATION_BYTES: u64 = 100_000_000;
const DEFAULT_FAN_IN: u32 = 20;
const DEFAULT_QUERY_PERCENT: u32 = 10;

/// A scenario that fits its network, and what of it is watched.
pub(super) struct Loaded {
    pub(super) single: SingleScenario,
    pub(super) scenario: Scenario,
    pub(super) trial: Trial,
    /// The link and the sending node whose packets are captured.
    pub(super) port: Option<(LinkId, NodeId)>,
    /// A line for people about the memory that it takes, if that is much.
    pub(super) note: Option<String>,
}

/// Reads and checks everything that the command line names.
pub(super) fn load(args: &SimArgs) -> Result<Loaded, Failure> {
    let name = args.named();
    let single = match args.scenario.as_ref().and_then(|name| plan::scenario_text(name)) {
        _ if is_scenario_file(name) => from_text(args, name, std::fs::read_to_string(name))?,
        Some((origin, text)) => from_text(args, &origin, text)?,
        None => match (&args.scenario, &args.fabric) {
            (Some(one), Some(other)) => {
                return Err(Failure::usage(format!("`{one}` and --fabric {other} are both fabrics; name one")));
            }
            _ => on_fabric(name, args)?,
        },
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
    let port = args.capture.as_deref().map(|port| find_port(&scenario.fabric, port)).transpose()?;
    Ok(Loaded { single, scenario, trial, port, note })
}

fn is_scenario_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

fn from_text(args: &SimArgs, origin: &str, text: std::io::Result<String>) -> Result<SingleScenario, Failure> {
    if let Some(flag) = args.traffic.given().first() {
        return Err(Failure::usage(format!("{flag} has no effect on {}: the file says it itself", args.named())));
    }
    let text = text.map_err(|error| Failure::usage(format!("cannot read scenario {origin}: {error}")))?;
    let network = args.fabric.as_deref().map(|word| fabric::named(word).map(|fabric| (word, fabric))).transpose()?;
    SingleScenario::parse_with(origin, &text, &args.set.set, network).map_err(Failure::usage)
}

fn on_fabric(name: &str, args: &SimArgs) -> Result<SingleScenario, Failure> {
    let traffic = &args.traffic;
    let fabric = fabric::read(name)?;
    let overlay = traffic.overlay.map_or_else(|| fabric.default_overlay(), Into::into);
    let (workload_name, workload) = match (&traffic.flows, traffic.workload) {
        (Some(file), _) => {
            traffic.only("a flow file", &[])?;
            ("flows".to_owned(), Workload::Flows { flows: read_flows(file)? })
        }
        (None, Some(choice)) => (choice.name(), traffic.build(choice, &fabric)?),
        (None, None) => return Err(Failure::usage("say what is sent: --workload permutation, or --flows FILE")),
    };
    let default = SingleSampling::default();
    let sampling = SingleSampling { time_limit: traffic.time_limit.unwrap_or(default.time_limit), ..default };
    let set = &args.set.set;
    SingleScenario::on_fabric((name, fabric::named(name)?), overlay, (&workload_name, workload), sampling, set)
        .map_err(Failure::usage)
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
        let most = self.time_limit.unwrap_or(SingleSampling::default().time_limit);
        let duration = self.duration.unwrap_or_else(|| default_duration(fabric).min(most));
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

fn read_flows(path: &Path) -> Result<Vec<FlowSpec>, Failure> {
    let named = |problem: String| Failure::usage(format!("flow file {}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    let flows = flow_file::parse(&text).map_err(|error| named(error.to_string()))?;
    Ok(flows.iter().map(PinnedFlow::spec).collect())
}

/// The link and the sending node of `NODE:INTERFACE`.
fn find_port(fabric: &Fabric, port: &str) -> Result<(LinkId, NodeId), Failure> {
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
    use weft_sim::Source;

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
                let job = SimEngine::default().job(&loaded.scenario, &loaded.trial).expect("it fits");
                let Source::Flows(flows) = job.source else { panic!("{fabric}, {workload}: no list of flows") };
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
