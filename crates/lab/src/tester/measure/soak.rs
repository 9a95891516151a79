//! One rate for a long time, in rows: what happens once an hour shows here and nowhere else.

use std::time::{Duration, Instant};

use serde::Serialize;
use weft_scenario::engine::Progress;

use super::session::Session;
use super::{MeasureOptions, Quiet, Report, SizeCells, report};
use crate::tester::account::Account;
use crate::tester::error::TesterError;
use crate::tester::latency::LatencySummary;
use crate::tester::path::TrialOrder;

/// Share of what the path carries, where no rate is given.
const DEFAULT_LOAD: f64 = 0.5;

/// One interval.
#[derive(Clone, Debug, Serialize)]
pub struct SoakRow {
    /// Start of the interval, seconds since the start of the measurement.
    pub start_s: f64,
    #[serde(flatten)]
    pub size: SizeCells,
    /// What was sent, frames per second.
    pub offered_pps: f64,
    /// What arrived.
    pub received_pps: f64,
    /// What was lost, 0 to 1.
    pub loss_ratio: f64,
    /// Latency, the tester's floor included.
    pub latency_ns: LatencySummary,
    /// Times that the generator was held up.
    pub slips: u64,
    /// All frames.
    pub account: Account,
    /// Whether the machine was quiet, looked at where frames were lost.
    pub noise: Quiet,
}

/// Sends at the first rate, or half of what the path carries, for `total`, one row for every trial's length. Sizes take
/// turns. If the user stops it, the rows so far are the result.
///
/// # Errors
/// Any [`TesterError`]; the ports are as they were.
pub fn soak(
    options: &MeasureOptions,
    total: Duration,
    progress: &dyn Progress,
) -> Result<Report<SoakRow>, TesterError> {
    let mut session = Session::open(options, progress)?;
    let pps = match options.rates_pps.first() {
        Some(pps) => *pps,
        None => (session.fastest(options.trial.min(Duration::from_secs(1)))?.received_pps * DEFAULT_LOAD).max(1.0),
    };
    progress.phase("soak", &format!("{:.3} Mpps", pps / 1e6));
    let begin = Instant::now();
    let mut rows: Vec<SoakRow> = Vec::new();
    let mut complete = true;
    for sizes in options.sizes.iter().cycle() {
        let start = begin.elapsed();
        if start >= total {
            break;
        }
        session.set_sizes(sizes)?;
        let duration = options.trial.min(total - start).max(Duration::from_millis(10));
        let trial = match session.trial(&TrialOrder::paced(pps, duration).checking_payloads()) {
            Err(TesterError::Interrupted) if !rows.is_empty() => {
                complete = false;
                break;
            }
            trial => trial?,
        };
        // A soak cannot be repeated; but whoever reads of lost frames must know what else went on.
        let noise = match trial.account.lost {
            0 => Quiet { quiet: true, ..Quiet::default() },
            _ => session.look_unless_stopped()?,
        };
        progress.advance(begin.elapsed().as_secs_f64() / total.as_secs_f64(), &format!("{} lost", trial.account.lost));
        rows.push(SoakRow {
            start_s: start.as_secs_f64(),
            size: sizes.cells(),
            offered_pps: trial.offered_pps,
            received_pps: trial.received_pps,
            loss_ratio: trial.account.loss_ratio(),
            latency_ns: trial.latency.summary(),
            slips: trial.slips,
            account: trial.account,
            noise,
        });
    }
    Ok(Report { complete, ..report(session.bench(), rows) })
}
