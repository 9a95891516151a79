//! Latency at fixed rates, with the tester's own floor.

use serde::Serialize;
use weft_scenario::engine::Progress;

use super::session::Session;
use super::{LatencyCells, MeasureOptions, Quiet, Report, SizeCells, report};
use crate::tester::account::Account;
use crate::tester::error::TesterError;
use crate::tester::path::TrialOrder;
use crate::tester::reference::Measured;

/// Share of what the path carries, where no rate is given.
const DEFAULT_LOAD: f64 = 0.5;

/// One frame size at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyRow {
    #[serde(flatten)]
    pub size: SizeCells,
    /// What was asked for, frames per second.
    pub asked_pps: f64,
    /// What was sent.
    pub offered_pps: f64,
    /// What arrived.
    pub received_pps: f64,
    /// What was lost, 0 to 1.
    pub loss_ratio: f64,
    pub latency_ns: LatencyCells,
    /// Median time between frames at the sender, nanoseconds.
    pub gap_p50_ns: u64,
    /// Times that the generator was held up.
    pub slips: u64,
    /// Frames that the kernel sent in one go; above 1 they wait for each other.
    pub batch: u32,
    /// All frames.
    pub account: Account,
    /// Whether the machine was quiet.
    pub noise: Quiet,
}

/// Measures every size at every rate; without rates at half of what the path carries.
///
/// # Errors
/// Any [`TesterError`]; the ports are as they were.
pub fn latency(options: &MeasureOptions, progress: &dyn Progress) -> Result<Report<LatencyRow>, TesterError> {
    let mut session = Session::open(options, progress)?;
    let mut rows = Vec::new();
    for sizes in &options.sizes {
        progress.phase("latency", &sizes.cells().to_string());
        session.set_sizes(sizes)?;
        for asked_pps in rates(&mut session, options)? {
            progress.advance(0.5, &format!("{:.3} Mpps", asked_pps / 1e6));
            let order = TrialOrder::paced(asked_pps, options.trial).checking_payloads();
            rows.push(row(sizes.cells(), asked_pps, session.measure(&order)?));
        }
    }
    Ok(report(session.bench(), rows))
}

fn rates(session: &mut Session<'_>, options: &MeasureOptions) -> Result<Vec<f64>, TesterError> {
    if !options.rates_pps.is_empty() {
        return Ok(options.rates_pps.clone());
    }
    let fastest = session.fastest(options.trial)?;
    Ok(vec![(fastest.received_pps.min(fastest.offered_pps) * DEFAULT_LOAD).max(1.0).round()])
}

fn row(size: SizeCells, asked_pps: f64, measured: Measured) -> LatencyRow {
    let Measured { trial, latency_ns, noise, .. } = measured;
    LatencyRow {
        size,
        asked_pps,
        offered_pps: trial.offered_pps,
        received_pps: trial.received_pps,
        loss_ratio: trial.account.loss_ratio(),
        latency_ns,
        gap_p50_ns: trial.gaps.as_ref().map_or(0, |gaps| gaps.percentile_ns(0.5)),
        slips: trial.slips,
        batch: trial.batch,
        account: trial.account,
        noise,
    }
}
