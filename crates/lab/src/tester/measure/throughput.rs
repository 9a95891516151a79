//! The rate that a path carries, by frame size, confirmed by a trial with latency.

use serde::Serialize;
use weft_scenario::engine::Progress;

use super::session::Session;
use super::{CostCells, LatencyCells, LimitedBy, MeasureOptions, Method, Quiet, Report, SizeCells, report};
use crate::tester::account::Account;
use crate::tester::error::TesterError;
use crate::tester::path::TrialOrder;

/// One frame size.
#[derive(Clone, Debug, Serialize)]
pub struct ThroughputRow {
    #[serde(flatten)]
    pub size: SizeCells,
    /// How the rate was searched.
    pub method: Method,
    /// The rate found, as offered in the confirming trial, frames per second.
    pub offered_pps: f64,
    /// What arrived in it.
    pub received_pps: f64,
    /// What was lost in it, 0 to 1.
    pub loss_ratio: f64,
    /// What arrived, bits per second with FCS.
    pub layer2_bps: f64,
    /// The same with preamble and gap.
    pub layer1_bps: f64,
    /// The rate without loss, frames per second.
    pub ndr_pps: f64,
    /// The rate with at most half a percent of loss; `None` with RFC 2544.
    pub pdr_pps: Option<f64>,
    /// The lowest rate that lost frames; `None`: none did.
    pub failed_pps: Option<f64>,
    /// Too many trials disagreed, or the generator was held up too often.
    pub irregular: bool,
    /// Trials that were judged.
    pub trials: u32,
    /// Trials that were thrown away because the machine was noisy just after.
    pub trials_rejected: u32,
    /// Trials that were judged although it was noisy, because it stayed so.
    pub trials_noisy: u32,
    /// Latency in the confirming trial.
    pub latency_ns: LatencyCells,
    /// Frames of the confirming trial.
    pub account: Account,
    /// Why not more.
    pub limited_by: LimitedBy,
    /// Whether the machine was quiet around the confirming trial.
    pub noise: Quiet,
    /// CPU cost of the path, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostCells>,
}

/// Searches the throughput of every frame size; `cost`: also what a frame costs.
///
/// # Errors
/// Any [`TesterError`]; the ports are as they were.
pub fn throughput(
    options: &MeasureOptions,
    method: Method,
    cost: bool,
    progress: &dyn Progress,
) -> Result<Report<ThroughputRow>, TesterError> {
    let mut session = Session::open(options, progress)?;
    let mut rows = Vec::new();
    for sizes in &options.sizes {
        progress.phase("throughput", &sizes.cells().to_string());
        session.set_sizes(sizes)?;
        rows.push(row(&mut session, options, method, cost, progress)?);
    }
    Ok(report(session.bench(), rows))
}

fn row(
    session: &mut Session<'_>,
    options: &MeasureOptions,
    method: Method,
    cost: bool,
    progress: &dyn Progress,
) -> Result<ThroughputRow, TesterError> {
    let found = session.find(method)?;
    let rate = if found.ndr_pps > 0.0 { found.ndr_pps } else { found.most_pps };
    progress.advance(0.9, "confirming");
    let confirmed = session.measure(&TrialOrder::paced(rate, options.trial).checking_payloads())?;
    let (sizes, trial) = (session.path.sizes(), &confirmed.trial);
    Ok(ThroughputRow {
        size: sizes.cells(),
        method,
        offered_pps: trial.offered_pps,
        received_pps: trial.received_pps,
        loss_ratio: trial.account.loss_ratio(),
        layer2_bps: sizes.layer2_bps(trial.received_pps),
        layer1_bps: sizes.layer1_bps(trial.received_pps),
        ndr_pps: found.ndr_pps,
        pdr_pps: found.pdr_pps,
        failed_pps: found.failed_pps,
        irregular: found.irregular,
        trials: found.trials,
        trials_rejected: found.trials_rejected,
        trials_noisy: found.trials_noisy,
        latency_ns: confirmed.latency_ns,
        account: trial.account,
        limited_by: found.limited_by,
        noise: confirmed.noise.clone(),
        cost: if cost { Some(session.cost()?) } else { None },
    })
}
