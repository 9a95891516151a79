//! What there is to know about each analysis, in one table.

use super::{
    Analysis, Input, MetricInfo, RowKind, convergence, directory, ecmp, elephants, fct, flow_log, flow_summary, incast,
    isolation, model, outage, outside, overlay_cost, queues, shuffle, split_speed, tcp_validation, trill, vlb_split,
    vxlan,
};
use crate::metric::Findings;
use crate::plan::PlanSpec;

/// What an analysis is called, wants and does.
pub(super) struct Question {
    /// As a plan writes it.
    pub(super) name: &'static str,
    pub(super) metrics: &'static [MetricInfo],
    pub(super) reads: &'static [RowKind],
    /// What a plan must have.
    pub(super) check: fn(&PlanSpec) -> Result<(), String>,
    /// The names of all metrics that it may yield for a plan; `None`: those of `metrics`.
    pub(super) names: Option<fn(&PlanSpec) -> Vec<String>>,
    pub(super) analyse: fn(&Input<'_>) -> Findings,
}

macro_rules! rows {
    (ALL) => { RowKind::ALL };
    ([$($kind:ident),+]) => { &[$(RowKind::$kind),+] };
}

/// The analysis of a module with `METRICS`, `check`, `names` and `analyse`; `plain`: without `names`.
macro_rules! ask {
    ($name:literal, $($module:ident)::+, $rows:tt) => {
        Question { names: Some($($module)::+::names), ..ask!($name, $($module)::+, $rows, plain) }
    };
    ($name:literal, $($module:ident)::+, $rows:tt, plain) => {
        Question {
            name: $name,
            metrics: $($module)::+::METRICS,
            reads: rows!($rows),
            check: $($module)::+::check,
            names: None,
            analyse: $($module)::+::analyse,
        }
    };
}

pub(super) fn question(analysis: Analysis) -> Question {
    match analysis {
        Analysis::Shuffle => ask!("shuffle", shuffle, ALL, plain),
        Analysis::VlbSplit => ask!("vlb-split", vlb_split, ALL, plain),
        Analysis::OverlayCost => ask!("overlay-cost", overlay_cost, ALL),
        Analysis::Isolation => ask!("isolation", isolation, [Flows, Services, Tcp, Cpu, Events]),
        Analysis::Outage => ask!("outage", outage, ALL, plain),
        Analysis::Fct => ask!("fct", fct, [Flows, Events]),
        Analysis::Queues => ask!("queues", queues, [Queues, Events]),
        Analysis::Incast => ask!("incast", incast, [Flows, Links, Events]),
        Analysis::EcmpProbability => ask!("ecmp-probability", ecmp, [Flows, Events]),
        Analysis::SplitSpeed => ask!("split-speed", split_speed, [Flows, Links, Events]),
        Analysis::TcpValidation => ask!("tcp-validation", tcp_validation, [Flows, Cpu, Events]),
        Analysis::DirectoryLookup => ask!("directory-lookup", directory::lookup, ALL),
        Analysis::DirectoryUpdate => ask!("directory-update", directory::update, ALL),
        Analysis::DirectoryConvergence => ask!("directory-convergence", directory::convergence, ALL, plain),
        Analysis::DirectorySizing => ask!("directory-sizing", directory::sizing, ALL, plain),
        Analysis::Migration => ask!("migration", directory::migration, ALL, plain),
        Analysis::VxlanModelA => ask!("vxlan-model-a", vxlan::model_a, [Servers, Offered]),
        Analysis::VxlanModelB => ask!("vxlan-model-b", vxlan::model_b, [Servers, Offered]),
        Analysis::VxlanEncapsulations => ask!("vxlan-encapsulations", vxlan::encapsulations, [PathCosts]),
        Analysis::VxlanSegments => ask!("vxlan-segments", vxlan::segments, [Segments]),
        Analysis::TrillFastPath => ask!("trill-fast-path", trill::fast_path, [Chains, Crossings]),
        Analysis::TrillLatency => ask!("trill-latency", trill::latency, [Crossings]),
        Analysis::TrillThroughput => ask!("trill-throughput", trill::throughput, [Crossings]),
        Analysis::TrillPaths => ask!("trill-paths", trill::paths, [Crossings, PathShares]),
        Analysis::TrillLoad => ask!("trill-load", trill::load, [Crossings]),
        Analysis::TrillCpu => ask!("trill-cpu", trill::cpu, [Chains]),
        Analysis::TrillConvergence => ask!("trill-convergence", trill::convergence, [SwitchLosses]),
        Analysis::TrillElephants => ask!("trill-elephants", trill::elephants, [Flows, Events]),
        Analysis::TrillElision => ask!("trill-elision", trill::elision, [Crossings, PathShares, Chains]),
        Analysis::TrillVlanSize => ask!("trill-vlan-size", trill::vlan_size, [VlanMixes]),
        Analysis::TrillMultipath => ask!("trill-multipath", trill::multipath, [Elephants]),
        Analysis::CostScale => ask!("cost-scale", model::cost, [Networks]),
        Analysis::LinkUse => ask!("link-use", model::link_use, [LinkUses, RoutedMatrices]),
        Analysis::Availability => ask!("availability", model::availability, [Availability, Failures]),
        Analysis::FlowSizes => ask!("flow-sizes", flow_log::sizes, [FlowSizes], plain),
        Analysis::FlowConcurrency => ask!("flow-concurrency", flow_log::concurrency, [FlowSizes, Concurrency], plain),
        Analysis::TrafficMatrices => ask!("traffic-matrices", flow_log::matrices, [FlowSizes, Matrices, Fitting]),
        Analysis::Elephants => ask!("elephants", elephants, [Flows, Cpu, Events]),
        Analysis::Convergence => ask!("convergence", convergence, ALL, plain),
        Analysis::Outside => ask!("outside", outside, ALL),
        Analysis::FlowSummary => ask!("flow-summary", flow_summary, [Flows, Tcp, Cpu, Events]),
    }
}
