//! Records to metrics: pure functions, one module per question that a figure asks.
//!
//! * [`shuffle`]: how efficient and fair an all-to-all shuffle is (VL2 5.1, Figure 9)
//! * [`vlb_split`]: how evenly Aggregation switches split traffic over the Intermediates (VL2 5.2, Figure 10)
//! * [`overlay_cost`]: what an overlay costs in CPU and goodput beside plain routing
//! * [`isolation`]: whether one service notices what another does (VL2 5.3, Figures 11 and 12)
//! * [`outage`]: what a failure costs and how fast the fabric is back
//! * [`fct`]: flow completion times beside the ideal switch (leaf-spine, "Impact of Link Speed")
//! * [`queues`]: where queues build up (leaf-spine, "Where do queues build up?")
//! * [`incast`]: query completion times by where buffers are (leaf-spine, "Where are large buffers more effective?")
//! * [`ecmp`]: how likely hashed flows fit on uplinks (leaf-spine, "Intuition")
//! * [`split_speed`]: split and completion times as core links become faster (VL2 5.2)
//! * [`tcp_validation`]: the simulator beside the lab
//! * [`convergence`]: links lost one after another and restored (VL2 5.4, Figure 13)
//! * [`elephants`]: large flows that collide, and other paths for them (VL2 4.2.2)
//! * [`outside`]: traffic to and from the outside (VL2 4.2.3)
//! * [`directory`]: the directory system under load, and an AA's move (VL2 5.5, Figure 14)
//! * [`vxlan`]: the VXLAN draft's experiments
//! * [`trill`]: the TRILL papers' experiments
//! * [`model`]: calculations: cost, use of links, availability (VL2 3.4, 6)
//! * [`flow_log`]: what a flow log says (VL2 3.1 to 3.3, Figures 2 to 4)
//! * [`series`], [`links`], [`cpu`], [`completion`]: what they share
//! * [`class_summary`]: completion times of one run, for a look without a plan
//! * [`framing`]: how much of a link's rate can be payload

pub mod class_summary;
pub mod completion;
pub mod convergence;
pub mod cpu;
pub mod directory;
pub mod ecmp;
pub mod elephants;
pub mod fct;
pub mod flow_log;
pub mod framing;
pub mod incast;
pub mod isolation;
pub mod links;
pub mod model;
pub mod outage;
pub mod outside;
pub mod overlay_cost;
pub mod queues;
pub mod series;
pub mod shuffle;
pub mod split_speed;
pub mod tcp_validation;
pub mod trill;
pub mod vlb_split;
pub mod vxlan;

mod trials;

use serde::{Deserialize, Serialize};
use weft_scenario::engine::Overlay;
use weft_scenario::record::Records;
use weft_scenario::topology::Fabric;

use crate::metric::{Findings, Problem};
use crate::plan::PlanSpec;

/// Which question a plan asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Analysis {
    /// [`shuffle`].
    Shuffle,
    /// [`vlb_split`].
    VlbSplit,
    /// [`overlay_cost`].
    OverlayCost,
    /// [`isolation`].
    Isolation,
    /// [`outage`].
    Outage,
    /// [`fct`].
    Fct,
    /// [`queues`].
    Queues,
    /// [`incast`].
    Incast,
    /// [`ecmp`].
    EcmpProbability,
    /// [`split_speed`].
    SplitSpeed,
    /// [`tcp_validation`].
    TcpValidation,
    /// [`directory::lookup`].
    DirectoryLookup,
    /// [`directory::update`].
    DirectoryUpdate,
    /// [`directory::convergence`].
    DirectoryConvergence,
    /// [`directory::sizing`].
    DirectorySizing,
    /// [`directory::migration`].
    Migration,
    /// [`vxlan::model_a`].
    VxlanModelA,
    /// [`vxlan::model_b`].
    VxlanModelB,
    /// [`vxlan::encapsulations`].
    VxlanEncapsulations,
    /// [`vxlan::segments`].
    VxlanSegments,
    /// [`trill::fast_path`].
    TrillFastPath,
    /// [`trill::latency`].
    TrillLatency,
    /// [`trill::throughput`].
    TrillThroughput,
    /// [`trill::paths`].
    TrillPaths,
    /// [`trill::load`].
    TrillLoad,
    /// [`trill::cpu`].
    TrillCpu,
    /// [`trill::convergence`].
    TrillConvergence,
    /// [`trill::elephants`].
    TrillElephants,
    /// [`trill::elision`].
    TrillElision,
    /// [`trill::vlan_size`].
    TrillVlanSize,
    /// [`trill::multipath`].
    TrillMultipath,
    /// [`model::cost`].
    CostScale,
    /// [`model::link_use`].
    LinkUse,
    /// [`model::availability`].
    Availability,
    /// [`flow_log::sizes`].
    FlowSizes,
    /// [`flow_log::concurrency`].
    FlowConcurrency,
    /// [`flow_log::matrices`].
    TrafficMatrices,
    /// [`elephants`].
    Elephants,
    /// [`convergence`].
    Convergence,
    /// [`outside`].
    Outside,
}

/// A metric that an analysis yields.
#[derive(Clone, Copy, Debug)]
pub struct MetricInfo {
    /// Its name, which claims refer to.
    pub name: &'static str,
    /// What it is, with its denominator.
    pub meaning: &'static str,
}

/// Which trial of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialKey {
    /// Number in the order of running, from 1.
    pub trial: u32,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Its seed.
    pub seed: u64,
    /// Its overlay.
    pub overlay: Overlay,
    /// Name of its workload in the plan.
    pub workload: String,
    /// Its places on the axes of the sweep; empty in a plan without one.
    pub point: Vec<String>,
}

/// A trial and what it yielded.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRecords {
    /// Which one.
    pub key: TrialKey,
    /// Its rows.
    pub records: Records,
}

/// A kind of rows that an analysis may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// [`Records::flows`]
    Flows,
    /// [`Records::progress`]
    Progress,
    /// [`Records::services`]
    Services,
    /// [`Records::links`]
    Links,
    /// [`Records::queues`]
    Queues,
    /// [`Records::tcp`]
    Tcp,
    /// [`Records::cpu`]
    Cpu,
    /// [`Records::events`]
    Events,
    /// [`Records::latencies`]
    Latencies,
    /// [`Records::directory`]
    Directory,
    /// [`Records::migrations`]
    Migrations,
    /// [`Records::servers`]
    Servers,
    /// [`Records::offered`]
    Offered,
    /// [`Records::path_costs`]
    PathCosts,
    /// [`Records::segments`]
    Segments,
    /// [`Records::crossings`]
    Crossings,
    /// [`Records::path_shares`]
    PathShares,
    /// [`Records::chains`]
    Chains,
    /// [`Records::switch_losses`]
    SwitchLosses,
    /// [`Records::vlan_mixes`]
    VlanMixes,
    /// [`Records::elephants`]
    Elephants,
    /// [`Records::networks`]
    Networks,
    /// [`Records::link_uses`]
    LinkUses,
    /// [`Records::routed_matrices`]
    RoutedMatrices,
    /// [`Records::availability`]
    Availability,
    /// [`Records::failures`]
    Failures,
    /// [`Records::flow_sizes`]
    FlowSizes,
    /// [`Records::concurrency`]
    Concurrency,
    /// [`Records::matrices`]
    Matrices,
    /// [`Records::fitting`]
    Fitting,
    /// [`Records::gaps`]
    Gaps,
}

impl RowKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Flows,
        Self::Progress,
        Self::Services,
        Self::Links,
        Self::Queues,
        Self::Tcp,
        Self::Cpu,
        Self::Events,
        Self::Latencies,
        Self::Directory,
        Self::Migrations,
        Self::Servers,
        Self::Offered,
        Self::PathCosts,
        Self::Segments,
        Self::Crossings,
        Self::PathShares,
        Self::Chains,
        Self::SwitchLosses,
        Self::VlanMixes,
        Self::Elephants,
        Self::Networks,
        Self::LinkUses,
        Self::RoutedMatrices,
        Self::Availability,
        Self::Failures,
        Self::FlowSizes,
        Self::Concurrency,
        Self::Matrices,
        Self::Fitting,
        Self::Gaps,
    ];

    /// Drops the rows of every kind but these, so that a sweep's memory holds only what its analysis reads.
    pub fn keep(kinds: &[Self], records: &mut Records) {
        for kind in Self::ALL.iter().filter(|kind| !kinds.contains(kind)) {
            match kind {
                Self::Flows => records.flows = Vec::new(),
                Self::Progress => records.progress = Vec::new(),
                Self::Services => records.services = Vec::new(),
                Self::Links => records.links = Vec::new(),
                Self::Queues => records.queues = Vec::new(),
                Self::Tcp => records.tcp = Vec::new(),
                Self::Cpu => records.cpu = Vec::new(),
                Self::Events => records.events = Vec::new(),
                Self::Latencies => records.latencies = Vec::new(),
                Self::Directory => records.directory = Vec::new(),
                Self::Migrations => records.migrations = Vec::new(),
                Self::Servers => records.servers = Vec::new(),
                Self::Offered => records.offered = Vec::new(),
                Self::PathCosts => records.path_costs = Vec::new(),
                Self::Segments => records.segments = Vec::new(),
                Self::Crossings => records.crossings = Vec::new(),
                Self::PathShares => records.path_shares = Vec::new(),
                Self::Chains => records.chains = Vec::new(),
                Self::SwitchLosses => records.switch_losses = Vec::new(),
                Self::VlanMixes => records.vlan_mixes = Vec::new(),
                Self::Elephants => records.elephants = Vec::new(),
                Self::Networks => records.networks = Vec::new(),
                Self::LinkUses => records.link_uses = Vec::new(),
                Self::RoutedMatrices => records.routed_matrices = Vec::new(),
                Self::Availability => records.availability = Vec::new(),
                Self::Failures => records.failures = Vec::new(),
                Self::FlowSizes => records.flow_sizes = Vec::new(),
                Self::Concurrency => records.concurrency = Vec::new(),
                Self::Matrices => records.matrices = Vec::new(),
                Self::Fitting => records.fitting = Vec::new(),
                Self::Gaps => records.gaps = Vec::new(),
            }
        }
    }
}

/// Everything that an analysis may look at.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The plan as it ran.
    pub spec: &'a PlanSpec,
    /// The network of every point of the plan, in their order.
    pub fabrics: &'a [Fabric],
    /// Its trials, in order, with the rows that the analysis reads ([`Analysis::reads`]).
    pub trials: &'a [TrialRecords],
}

impl<'a> Input<'a> {
    /// The network of a plan without a sweep; of a sweep the first point's.
    pub fn fabric(&self) -> &'a Fabric {
        self.fabrics.first().expect("a plan has at least one point")
    }

    /// The plan and the network at a trial's point; `None` if the plan does not have that point.
    pub fn at(&self, key: &TrialKey) -> Option<(&'a PlanSpec, &'a Fabric)> {
        let place = self.spec.points.iter().position(|point| point.labels == key.point)?;
        Some((&self.spec.points[place].spec, self.fabrics.get(place)?))
    }

    /// A trial's place on an axis.
    pub fn label<'b>(&self, key: &'b TrialKey, axis: &str) -> Option<&'b str> {
        self.spec.label(&key.point, axis)
    }
}

impl Analysis {
    /// As a plan writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shuffle => "shuffle",
            Self::VlbSplit => "vlb-split",
            Self::OverlayCost => "overlay-cost",
            Self::Isolation => "isolation",
            Self::Outage => "outage",
            Self::Fct => "fct",
            Self::Queues => "queues",
            Self::Incast => "incast",
            Self::EcmpProbability => "ecmp-probability",
            Self::SplitSpeed => "split-speed",
            Self::TcpValidation => "tcp-validation",
            Self::DirectoryLookup => "directory-lookup",
            Self::DirectoryUpdate => "directory-update",
            Self::DirectoryConvergence => "directory-convergence",
            Self::DirectorySizing => "directory-sizing",
            Self::Migration => "migration",
            Self::VxlanModelA => "vxlan-model-a",
            Self::VxlanModelB => "vxlan-model-b",
            Self::VxlanEncapsulations => "vxlan-encapsulations",
            Self::VxlanSegments => "vxlan-segments",
            Self::TrillFastPath => "trill-fast-path",
            Self::TrillLatency => "trill-latency",
            Self::TrillThroughput => "trill-throughput",
            Self::TrillPaths => "trill-paths",
            Self::TrillLoad => "trill-load",
            Self::TrillCpu => "trill-cpu",
            Self::TrillConvergence => "trill-convergence",
            Self::TrillElephants => "trill-elephants",
            Self::TrillElision => "trill-elision",
            Self::TrillVlanSize => "trill-vlan-size",
            Self::TrillMultipath => "trill-multipath",
            Self::CostScale => "cost-scale",
            Self::LinkUse => "link-use",
            Self::Availability => "availability",
            Self::FlowSizes => "flow-sizes",
            Self::FlowConcurrency => "flow-concurrency",
            Self::TrafficMatrices => "traffic-matrices",
            Self::Elephants => "elephants",
            Self::Convergence => "convergence",
            Self::Outside => "outside",
        }
    }

    /// The metrics it yields, without the suffixes for workloads and places of a sweep.
    pub fn metrics(self) -> &'static [MetricInfo] {
        match self {
            Self::Shuffle => shuffle::METRICS,
            Self::VlbSplit => vlb_split::METRICS,
            Self::OverlayCost => overlay_cost::METRICS,
            Self::Isolation => isolation::METRICS,
            Self::Outage => outage::METRICS,
            Self::Fct => fct::METRICS,
            Self::Queues => queues::METRICS,
            Self::Incast => incast::METRICS,
            Self::EcmpProbability => ecmp::METRICS,
            Self::SplitSpeed => split_speed::METRICS,
            Self::TcpValidation => tcp_validation::METRICS,
            Self::DirectoryLookup => directory::lookup::METRICS,
            Self::DirectoryUpdate => directory::update::METRICS,
            Self::DirectoryConvergence => directory::convergence::METRICS,
            Self::DirectorySizing => directory::sizing::METRICS,
            Self::Migration => directory::migration::METRICS,
            Self::VxlanModelA => vxlan::model_a::METRICS,
            Self::VxlanModelB => vxlan::model_b::METRICS,
            Self::VxlanEncapsulations => vxlan::encapsulations::METRICS,
            Self::VxlanSegments => vxlan::segments::METRICS,
            Self::TrillFastPath => trill::fast_path::METRICS,
            Self::TrillLatency => trill::latency::METRICS,
            Self::TrillThroughput => trill::throughput::METRICS,
            Self::TrillPaths => trill::paths::METRICS,
            Self::TrillLoad => trill::load::METRICS,
            Self::TrillCpu => trill::cpu::METRICS,
            Self::TrillConvergence => trill::convergence::METRICS,
            Self::TrillElephants => trill::elephants::METRICS,
            Self::TrillElision => trill::elision::METRICS,
            Self::TrillVlanSize => trill::vlan_size::METRICS,
            Self::TrillMultipath => trill::multipath::METRICS,
            Self::CostScale => model::cost::METRICS,
            Self::LinkUse => model::link_use::METRICS,
            Self::Availability => model::availability::METRICS,
            Self::FlowSizes => flow_log::sizes::METRICS,
            Self::FlowConcurrency => flow_log::concurrency::METRICS,
            Self::TrafficMatrices => flow_log::matrices::METRICS,
            Self::Elephants => elephants::METRICS,
            Self::Convergence => convergence::METRICS,
            Self::Outside => outside::METRICS,
        }
    }

    /// The kinds of rows that it and its figures read.
    pub fn reads(self) -> &'static [RowKind] {
        match self {
            Self::Shuffle | Self::VlbSplit | Self::OverlayCost | Self::Outage | Self::Convergence | Self::Outside => {
                RowKind::ALL
            }
            Self::Isolation => &[RowKind::Flows, RowKind::Services, RowKind::Tcp, RowKind::Cpu, RowKind::Events],
            Self::Fct | Self::EcmpProbability => &[RowKind::Flows, RowKind::Events],
            Self::Queues => &[RowKind::Queues, RowKind::Events],
            Self::Incast | Self::SplitSpeed => &[RowKind::Flows, RowKind::Links, RowKind::Events],
            Self::TcpValidation => &[RowKind::Flows, RowKind::Cpu, RowKind::Events],
            Self::DirectoryLookup
            | Self::DirectoryUpdate
            | Self::DirectoryConvergence
            | Self::DirectorySizing
            | Self::Migration => RowKind::ALL,
            Self::VxlanModelA | Self::VxlanModelB => &[RowKind::Servers, RowKind::Offered],
            Self::VxlanEncapsulations => &[RowKind::PathCosts],
            Self::VxlanSegments => &[RowKind::Segments],
            Self::TrillFastPath => &[RowKind::Chains, RowKind::Crossings],
            Self::TrillLatency | Self::TrillThroughput | Self::TrillLoad => &[RowKind::Crossings],
            Self::TrillPaths => &[RowKind::Crossings, RowKind::PathShares],
            Self::TrillCpu => &[RowKind::Chains],
            Self::TrillConvergence => &[RowKind::SwitchLosses],
            Self::TrillVlanSize => &[RowKind::VlanMixes],
            Self::TrillMultipath => &[RowKind::Elephants],
            Self::TrillElephants => &[RowKind::Flows, RowKind::Events],
            Self::TrillElision => &[RowKind::Crossings, RowKind::PathShares, RowKind::Chains],
            Self::CostScale => &[RowKind::Networks],
            Self::LinkUse => &[RowKind::LinkUses, RowKind::RoutedMatrices],
            Self::Availability => &[RowKind::Availability, RowKind::Failures],
            Self::FlowSizes => &[RowKind::FlowSizes],
            Self::FlowConcurrency => &[RowKind::FlowSizes, RowKind::Concurrency],
            Self::TrafficMatrices => &[RowKind::FlowSizes, RowKind::Matrices, RowKind::Fitting],
            Self::Elephants => &[RowKind::Flows, RowKind::Cpu, RowKind::Events],
        }
    }

    /// Whether the plan's axes and workloads are those that it compares; says what is missing.
    pub fn check_sweep(self, spec: &PlanSpec) -> Result<(), String> {
        match self {
            Self::Shuffle | Self::VlbSplit | Self::OverlayCost | Self::Outage => match spec.axes.is_empty() {
                true => Ok(()),
                false => Err(format!("analysis `{}` takes no sweep", self.name())),
            },
            Self::Isolation => isolation::check(spec),
            Self::Fct => fct::check(spec),
            Self::Queues => queues::check(spec),
            Self::Incast => incast::check(spec),
            Self::EcmpProbability => ecmp::check(spec),
            Self::SplitSpeed => split_speed::check(spec),
            Self::TcpValidation => tcp_validation::check(spec),
            Self::DirectoryLookup => directory::lookup::check(spec),
            Self::DirectoryUpdate => directory::update::check(spec),
            Self::DirectoryConvergence => directory::convergence::check(spec),
            Self::DirectorySizing => directory::sizing::check(spec),
            Self::Migration => directory::migration::check(spec),
            Self::VxlanModelA => vxlan::model_a::check(spec),
            Self::VxlanModelB => vxlan::model_b::check(spec),
            Self::VxlanEncapsulations => vxlan::encapsulations::check(spec),
            Self::VxlanSegments => vxlan::segments::check(spec),
            Self::TrillFastPath => trill::fast_path::check(spec),
            Self::TrillLatency => trill::latency::check(spec),
            Self::TrillThroughput => trill::throughput::check(spec),
            Self::TrillPaths => trill::paths::check(spec),
            Self::TrillLoad => trill::load::check(spec),
            Self::TrillCpu => trill::cpu::check(spec),
            Self::TrillConvergence => trill::convergence::check(spec),
            Self::TrillElephants => trill::elephants::check(spec),
            Self::TrillElision => trill::elision::check(spec),
            Self::TrillVlanSize => trill::vlan_size::check(spec),
            Self::TrillMultipath => trill::multipath::check(spec),
            Self::CostScale => model::cost::check(spec),
            Self::LinkUse => model::link_use::check(spec),
            Self::Availability => model::availability::check(spec),
            Self::FlowSizes | Self::FlowConcurrency => flow_log::check(spec, true),
            Self::TrafficMatrices => flow_log::check(spec, false),
            Self::Elephants => elephants::check(spec),
            Self::Convergence => convergence::check(spec),
            Self::Outside => outside::check(spec),
        }
    }

    /// The names of all metrics that it may yield for a plan.
    pub fn metric_names(self, spec: &PlanSpec) -> Vec<String> {
        let plain = || self.metrics().iter().map(|metric| metric.name.to_owned());
        match self {
            Self::Shuffle | Self::VlbSplit | Self::Outage | Self::Convergence => plain().collect(),
            Self::OverlayCost => overlay_cost::names(spec),
            Self::Isolation => isolation::names(spec),
            Self::Fct => fct::names(spec),
            Self::Queues => queues::names(spec),
            Self::Incast => incast::names(spec),
            Self::EcmpProbability => ecmp::names(spec),
            Self::SplitSpeed => split_speed::names(spec),
            Self::TcpValidation => tcp_validation::names(spec),
            Self::DirectoryLookup => directory::lookup::names(spec),
            Self::DirectoryUpdate => directory::update::names(spec),
            Self::DirectoryConvergence | Self::DirectorySizing | Self::Migration => plain().collect(),
            Self::VxlanModelA => vxlan::model_a::names(spec),
            Self::VxlanModelB => vxlan::model_b::names(spec),
            Self::VxlanEncapsulations => vxlan::encapsulations::names(spec),
            Self::VxlanSegments => vxlan::segments::names(spec),
            Self::TrillFastPath => trill::fast_path::names(spec),
            Self::TrillLatency => trill::latency::names(spec),
            Self::TrillThroughput => trill::throughput::names(spec),
            Self::TrillPaths => trill::paths::names(spec),
            Self::TrillLoad => trill::load::names(spec),
            Self::TrillCpu => trill::cpu::names(spec),
            Self::TrillConvergence => trill::convergence::names(spec),
            Self::TrillElephants => trill::elephants::names(spec),
            Self::TrillElision => trill::elision::names(spec),
            Self::TrillVlanSize => trill::vlan_size::names(spec),
            Self::TrillMultipath => trill::multipath::names(spec),
            Self::CostScale => model::cost::names(spec),
            Self::LinkUse => model::link_use::names(spec),
            Self::Availability => model::availability::names(spec),
            Self::FlowSizes | Self::FlowConcurrency => plain().collect(),
            Self::TrafficMatrices => flow_log::matrices::names(spec),
            Self::Elephants => elephants::names(spec),
            Self::Outside => outside::names(spec),
        }
    }

    /// What a metric is, whatever its suffix.
    pub fn meaning(self, metric: &str) -> Option<&'static str> {
        let is_it = |info: &&MetricInfo| {
            metric.strip_prefix(info.name).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
        };
        self.metrics().iter().find(is_it).map(|info| info.meaning)
    }

    /// Runs it.
    pub fn run(self, input: &Input<'_>) -> Findings {
        let mut findings = match self {
            Self::Shuffle => shuffle::analyse(input),
            Self::VlbSplit => vlb_split::analyse(input),
            Self::OverlayCost => overlay_cost::analyse(input),
            Self::Isolation => isolation::analyse(input),
            Self::Outage => outage::analyse(input),
            Self::Fct => fct::analyse(input),
            Self::Queues => queues::analyse(input),
            Self::Incast => incast::analyse(input),
            Self::EcmpProbability => ecmp::analyse(input),
            Self::SplitSpeed => split_speed::analyse(input),
            Self::TcpValidation => tcp_validation::analyse(input),
            Self::DirectoryLookup => directory::lookup::analyse(input),
            Self::DirectoryUpdate => directory::update::analyse(input),
            Self::DirectoryConvergence => directory::convergence::analyse(input),
            Self::DirectorySizing => directory::sizing::analyse(input),
            Self::Migration => directory::migration::analyse(input),
            Self::VxlanModelA => vxlan::model_a::analyse(input),
            Self::VxlanModelB => vxlan::model_b::analyse(input),
            Self::VxlanEncapsulations => vxlan::encapsulations::analyse(input),
            Self::VxlanSegments => vxlan::segments::analyse(input),
            Self::TrillFastPath => trill::fast_path::analyse(input),
            Self::TrillLatency => trill::latency::analyse(input),
            Self::TrillThroughput => trill::throughput::analyse(input),
            Self::TrillPaths => trill::paths::analyse(input),
            Self::TrillLoad => trill::load::analyse(input),
            Self::TrillCpu => trill::cpu::analyse(input),
            Self::TrillConvergence => trill::convergence::analyse(input),
            Self::TrillElephants => trill::elephants::analyse(input),
            Self::TrillElision => trill::elision::analyse(input),
            Self::TrillVlanSize => trill::vlan_size::analyse(input),
            Self::TrillMultipath => trill::multipath::analyse(input),
            Self::CostScale => model::cost::analyse(input),
            Self::LinkUse => model::link_use::analyse(input),
            Self::Availability => model::availability::analyse(input),
            Self::FlowSizes => flow_log::sizes::analyse(input),
            Self::FlowConcurrency => flow_log::concurrency::analyse(input),
            Self::TrafficMatrices => flow_log::matrices::analyse(input),
            Self::Elephants => elephants::analyse(input),
            Self::Convergence => convergence::analyse(input),
            Self::Outside => outside::analyse(input),
        };
        findings.problems.extend(unexpected_route_changes(input));
        findings
    }
}

/// A run without faults in which routing neighbours were lost did not measure the fabric that the plan describes.
fn unexpected_route_changes(input: &Input<'_>) -> Option<Problem> {
    let events = input.trials.iter().flat_map(|trial| &trial.records.events);
    let changes = events.filter(|event| event.kind == "adjacency").count();
    let moves = input.spec.analysis == Analysis::Migration;
    let expected = !input.spec.fault.is_empty() || moves;
    (changes > 0 && !expected)
        .then(|| Problem::Invalid(format!("{changes} routing adjacency changes in a run without faults")))
}

#[cfg(test)]
pub(crate) mod testing;
