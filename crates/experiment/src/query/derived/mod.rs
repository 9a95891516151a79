//! What takes more than a few lines to ask: tables that are computed from rows, and questions that many plans share.
//!
//! | table | a row | beside the columns of its trial |
//! | --- | --- | --- |
//! | `plateau` | a trial | `from_s`, `to_s`: the time in which the payload from 10 to 90 % of all asked arrives; `goodput_bps` in it; `whole_bps` from time 0 to `end_s` |
//! | `goodput` | a stretch of time | `time_s` in its middle, `goodput_bps`: payload that arrived |
//! | `link_parts` | a direction of a link in a part of what is measured | `node`, `role`, `interface`, `peer`, `peer_role`, `class`, `rate_bps`, `part`, `from_s`, `to_s`, `sent_bytes`; parts as long as `sampling.split_interval`, else tenths |
//! | `idle` | a core | `core`, `idle_ratio` over what is measured |
//! | `pressure` | a trial | `wait_ms`: how long its programs waited for a core each time they became ready, mean over what is measured (empty where the kernel does not say); `idle_ratio` of its busiest core; `is_bound`: whether the CPU was the bottleneck |
//! | `phases` | what lies between two faults or repairs | see [`phases`] |
//! | `outages` | from a fault to its repair | see [`outages`] |
//! | `flaps` | a trial | `adjacencies` that were lost on links that had not failed |
//! | `chances` | a trial whose flows leave one leaf | `flow_count` flows on `link_count` links of which each takes `fit_count`: probability that all fit, `exact` and as `full_ratio`; expected `throughput_ratio`; `drawn` of `draws`, in which all fit, in the first repetition; `problem`: why not |
//! | `service_members` | a server of a service | `server`, `service`, `is_steady` (whether it has long flows), `rate_bps` of its link |
//! | `service_parts` | a part of the time of services | see [`services`] |
//! | `measured` | a trial | `from_s`, `to_s`: what the plan's `measured` says, else what `[sampling]` leaves |
//! | `fct` | a flow that is measured | all of `flows`, `flow` (its number in the trial), `fct_ns`, `slowdown` against an idle network, `size_class` of the leaf-spine paper |
//! | `unfinished` | a trial with measured flows that did not end | `open_flows`, `all_flows`, `text` |
//! | `incomplete` | a trial of which not all bytes of all flows arrived | `text` |
//! | `capacity` | a network | `fabric_number`, `servers`, `servers_bps` (sum of their links' rates), `largest_rack` (servers) |
//! | `link_use` | a direction of a link | columns of `link_parts` but the part's, `use_ratio` of its declared rate |
//! | `splits` | an Aggregation switch or leaf in a part of what is measured | `node`, `part`, `time_s`, `jain_index` of what it sent to each Intermediate or spine |
//! | `crossed` | a rate of frames that crossed | all of `crossings`, `delivered` of sent and `received_per_s`; empty where less than nine tenths were offered |
//! | `switch_costs` | a switch, or those of a hop, at a size | all of `chains`, `switch`, `frame_ns` of CPU |
//! | `requests` | a bin of a directory's load, and those that failed | `kind`, `step`, `server`, `latency_ns`, `requests`, `is_failure` |
//! | `directory_steps` | a step of a directory's load | all of `directory`, `p1_ms`, `p50_ms`, `p99_ms`, `sent_per_s`, `answered_ratio`, `limited_by`, and `tail_limited_by` for percentiles |
//! | `estimates` | an estimate of the plan's metrics | `metric`, `place`, `value`, `low`, `high`, `n` |

mod chances;
mod outages;
mod phases;
mod series;
mod services;
mod views;

pub(crate) use views::views;

use std::collections::BTreeMap;

use weft_scenario::record::{CpuRow, EventRow, FlowRow, GapRow, LinkRow, ProgressRow, RowKind, ServiceRow, WaitRow};

use super::{QueryError, StoredRun, Value, load};
use crate::analysis::series::Window;
use crate::analysis::{Input, TrialRecords};
use crate::run_folder::read_trials;

/// The measured stretch of every trial, by its number.
pub type Windows = BTreeMap<u32, Window>;

/// A table that is computed from a trial's rows.
#[derive(Debug)]
pub struct Derived {
    pub name: &'static str,
    /// Its columns behind those of the trial.
    pub columns: &'static [&'static str],
    /// The rows that it is computed from.
    pub reads: &'static [RowKind],
    /// Whether it is about the stretch that is measured; trials without one have no rows.
    pub windowed: bool,
    of_trial: OfTrial,
}

/// All of them.
pub const DERIVED: &[Derived] = &[
    whole(
        "plateau",
        &["from_s", "to_s", "goodput_bps", "whole_bps", "end_s"],
        &[FlowRow::KIND, ProgressRow::KIND],
        series::plateau,
    ),
    whole("goodput", &["time_s", "goodput_bps"], &[FlowRow::KIND, ProgressRow::KIND], series::goodput),
    measured(
        "link_parts",
        &[
            "node",
            "role",
            "interface",
            "peer",
            "peer_role",
            "class",
            "rate_bps",
            "part",
            "from_s",
            "to_s",
            "sent_bytes",
        ],
        &[LinkRow::KIND],
        series::link_parts,
    ),
    measured("idle", &["core", "idle_ratio"], &[CpuRow::KIND], series::idle),
    measured("pressure", &["wait_ms", "idle_ratio", "is_bound"], &[CpuRow::KIND, WaitRow::KIND], series::pressure),
    whole(
        "phases",
        phases::COLUMNS,
        &[FlowRow::KIND, ProgressRow::KIND, LinkRow::KIND, EventRow::KIND, GapRow::KIND],
        phases::rows,
    ),
    whole("outages", outages::COLUMNS, &[FlowRow::KIND, ProgressRow::KIND, EventRow::KIND], outages::rows),
    whole("flaps", &["adjacencies"], &[EventRow::KIND], phases::flaps),
    whole("chances", chances::COLUMNS, &[FlowRow::KIND], chances::rows),
    whole("service_members", services::MEMBER_COLUMNS, &[ServiceRow::KIND], services::members),
    whole("service_parts", services::PART_COLUMNS, &[FlowRow::KIND, ServiceRow::KIND], services::parts),
];

type OfTrial = fn(&Input<'_>, &TrialRecords, Window) -> Vec<Vec<Value>>;

const fn whole(
    name: &'static str,
    columns: &'static [&'static str],
    reads: &'static [RowKind],
    of_trial: OfTrial,
) -> Derived {
    Derived { name, columns, reads, windowed: false, of_trial }
}

const fn measured(
    name: &'static str,
    columns: &'static [&'static str],
    reads: &'static [RowKind],
    of_trial: OfTrial,
) -> Derived {
    Derived { windowed: true, ..whole(name, columns, reads, of_trial) }
}

impl Derived {
    pub(super) fn rows(&self, run: &StoredRun, windows: &Windows) -> Result<Vec<Vec<Value>>, QueryError> {
        let trials = read_trials(&run.folder.join("records"), &run.spec.axes, self.reads)?;
        let fabrics = run.networks_of_points()?;
        let input = Input { spec: &run.spec, fabrics: &fabrics, trials: &trials, database: None };
        let mut rows = Vec::new();
        for trial in &trials {
            let nothing = Window { from_s: 0.0, to_s: 0.0 };
            let window = windows.get(&trial.key.trial).copied();
            let Some(window) = window.or((!self.windowed).then_some(nothing)) else { continue };
            let own = (self.of_trial)(&input, trial, window).into_iter();
            rows.extend(own.map(|cells| [load::key(&trial.key), cells].concat()));
        }
        Ok(rows)
    }
}
