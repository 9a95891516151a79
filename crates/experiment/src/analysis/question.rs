//! What there is to know about each analysis, in one table.

use super::{Analysis, Input, MetricInfo, asked, flow_log};
use weft_scenario::record::{self, RowKind};

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
    ([$($kind:ident),+]) => { &[$(record::$kind::KIND),+] };
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
        Analysis::Asked => ask!("questions", asked, [TcpRow, CpuRow, EventRow]),
        Analysis::FlowSizes => ask!("flow-sizes", flow_log::sizes, [FlowSizeRow], plain),
        Analysis::FlowConcurrency => {
            ask!("flow-concurrency", flow_log::concurrency, [FlowSizeRow, ConcurrencyRow], plain)
        }
        Analysis::TrafficMatrices => ask!("traffic-matrices", flow_log::matrices, [FlowSizeRow, MatrixRow, FittingRow]),
    }
}
