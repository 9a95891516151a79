//! Loss over offered rate (RFC 2544 26.3), and the longest burst without loss (26.4).

use std::time::Duration;

use serde::Serialize;
use weft_scenario::engine::Progress;

use super::session::Session;
use super::{MeasureOptions, Quiet, Report, SizeCells, report};
use crate::tester::account::Account;
use crate::tester::error::TesterError;
use crate::tester::path::TrialOrder;
use crate::tester::search::{BurstOutcome, BurstSearch, BurstVerdict, LossCurve};

const STEPS: u32 = 10;
const BURST_REPEATS: u32 = 5;
/// RFC 2544 tries bursts of two seconds at most.
const BURST_TIME: Duration = Duration::from_secs(2);

/// One point of the curve.
#[derive(Clone, Debug, Serialize)]
pub struct LossRow {
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
    /// All frames.
    pub account: Account,
    /// Whether the machine was quiet, looked at where frames were lost.
    pub noise: Quiet,
}

/// One size's longest burst.
#[derive(Clone, Debug, Serialize)]
pub struct BurstRow {
    #[serde(flatten)]
    pub size: SizeCells,
    /// Rate within the bursts, frames per second.
    pub burst_pps: f64,
    /// The lengths.
    #[serde(flatten)]
    pub burst: BurstVerdict,
}

/// Walks down from the highest rate; the largest given rate, or as fast as possible.
///
/// # Errors
/// Any [`TesterError`]; the ports are as they were.
pub fn loss(options: &MeasureOptions, progress: &dyn Progress) -> Result<Report<LossRow>, TesterError> {
    let mut session = Session::open(options, progress)?;
    let mut rows = Vec::new();
    for sizes in &options.sizes {
        progress.phase("loss", &sizes.cells().to_string());
        session.set_sizes(sizes)?;
        let most = highest(&mut session, options)?;
        let mut curve = LossCurve::new(most, STEPS);
        while let Some(asked_pps) = curve.next_pps() {
            progress.advance(curve.points().len() as f64 / f64::from(STEPS), &format!("{:.3} Mpps", asked_pps / 1e6));
            let (trial, noise) = session.judged_trial(&TrialOrder::paced(asked_pps, options.trial))?;
            curve.record(trial.outcome());
            rows.push(LossRow {
                size: sizes.cells(),
                asked_pps,
                offered_pps: trial.offered_pps,
                received_pps: trial.received_pps,
                loss_ratio: trial.account.loss_ratio(),
                account: trial.account,
                noise,
            });
        }
    }
    Ok(report(session.bench(), rows))
}

/// Searches the longest burst at the highest rate.
///
/// # Errors
/// Any [`TesterError`]; the ports are as they were.
pub fn bursts(options: &MeasureOptions, progress: &dyn Progress) -> Result<Report<BurstRow>, TesterError> {
    let mut session = Session::open(options, progress)?;
    let mut rows = Vec::new();
    for sizes in &options.sizes {
        progress.phase("bursts", &sizes.cells().to_string());
        session.set_sizes(sizes)?;
        let pps = highest(&mut session, options)?;
        let longest = (pps * BURST_TIME.min(options.trial).as_secs_f64()) as u64;
        let mut search = BurstSearch::new(longest, BURST_REPEATS);
        let paced = options.rates_pps.iter().copied().reduce(f64::max);
        while let Some(frames) = search.next_frames() {
            progress.advance(0.5, &format!("{frames} frames"));
            let order = TrialOrder { pps: paced, frames: Some(frames), ..TrialOrder::unpaced(BURST_TIME * 2) };
            let (trial, _) = session.judged_trial(&order)?;
            search.record(BurstOutcome { frames, lost: trial.account.lost });
        }
        let burst = search.verdict().expect("every repetition ended");
        rows.push(BurstRow { size: sizes.cells(), burst_pps: pps, burst });
    }
    Ok(report(session.bench(), rows))
}

fn highest(session: &mut Session<'_>, options: &MeasureOptions) -> Result<f64, TesterError> {
    match options.rates_pps.iter().copied().reduce(f64::max) {
        Some(pps) => Ok(pps),
        None => Ok(session.fastest(options.trial)?.offered_pps.max(1.0)),
    }
}
