//! The rate that a path carries: no-drop and partial-drop rate, or RFC 2544's.

use serde::Serialize;
use weft_scenario::engine::Progress;

use super::session::{Session, unpaced};
use super::{CostCells, LatencyCells, LimitedBy, MeasureOptions, Quiet, Report, report};
use crate::tester::account::Account;
use crate::tester::error::TesterError;
use crate::tester::path::TrialOrder;
use crate::tester::search::{
    Goal, GoalVerdict, NdrOptions, NdrSearch, OFFERED_LEAST_RATIO, RateVerdict, Rfc2544Search,
};

/// How the rate is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Most of several trials decide; NDR and PDR.
    Ndr,
    /// Bisection, one trial for each rate.
    Rfc2544,
}

/// Bounds end within this share of each other.
const RESOLUTION: f64 = 0.01;
/// From this share of what the generator can send on, it is the generator that limits.
const GENERATOR_SHARE: f64 = 0.9;

/// One frame size.
#[derive(Clone, Debug, Serialize)]
pub struct ThroughputRow {
    /// Size with FCS, bytes.
    pub frame_bytes: u32,
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
    /// Trials.
    pub trials: u32,
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

/// What a search found, in one form.
struct Found {
    ndr_pps: f64,
    pdr_pps: Option<f64>,
    failed_pps: Option<f64>,
    fell_short: bool,
    irregular: bool,
    trials: u32,
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
    for frame_bytes in &options.frame_bytes {
        progress.phase("throughput", &format!("{frame_bytes} bytes"));
        session.set_size(*frame_bytes)?;
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
    // As fast as possible first: where it begins, and for a path on this core where it ends.
    let fastest = session.trial(&unpaced(options.trial))?;
    if fastest.account.counts.received == 0 {
        return Err(TesterError::NoPath(format!(
            "no frame arrives from `{}` at `{}`: is the path between them up, and does it forward unknown stations?",
            options.sending, options.receiving[0]
        )));
    }
    let asked = options.rates_pps.iter().copied().reduce(f64::max);
    let most = [Some(fastest.offered_pps), session.line_pps(), asked].into_iter().flatten().fold(f64::MAX, f64::min);
    let found = match method {
        Method::Ndr => search_ndr(session, options, most, progress)?,
        Method::Rfc2544 => search_rfc2544(session, options, most, progress)?,
    };
    let size = session.path.size();
    let rate = if found.ndr_pps > 0.0 { found.ndr_pps } else { most };
    let order = TrialOrder { pps: Some(rate), duration: options.trial, frames: None, every_payload: true, batch: None };
    progress.advance(0.9, "confirming");
    let ((trial, latency_ns), noise) = session.with_latency(&order)?;
    let limited_by = limited_by(&found, asked, session.line_pps(), session.generator_pps());
    let cost = if cost { Some(session.cost()?) } else { None };
    Ok(ThroughputRow {
        frame_bytes: size.bytes(),
        method,
        offered_pps: trial.offered_pps,
        received_pps: trial.received_pps,
        loss_ratio: trial.account.loss_ratio(),
        layer2_bps: size.layer2_bps(trial.received_pps),
        layer1_bps: size.layer1_bps(trial.received_pps),
        ndr_pps: found.ndr_pps,
        pdr_pps: found.pdr_pps,
        failed_pps: found.failed_pps,
        irregular: found.irregular,
        trials: found.trials,
        latency_ns,
        account: trial.account,
        limited_by,
        noise,
        cost,
    })
}

fn at(pps: f64, options: &MeasureOptions) -> TrialOrder {
    TrialOrder { pps: Some(pps), duration: options.trial, frames: None, every_payload: false, batch: None }
}

fn search_ndr(
    session: &mut Session<'_>,
    options: &MeasureOptions,
    most: f64,
    progress: &dyn Progress,
) -> Result<Found, TesterError> {
    let ndr = NdrOptions { max_pps: most, min_pps: (most * 1e-4).max(1.0), width: RESOLUTION, ..NdrOptions::default() };
    let mut search = NdrSearch::new(ndr, &[Goal::NDR, Goal::PDR]);
    while let Some(pps) = search.next_pps() {
        progress.advance(f64::from(search.trials()) / 40.0, &format!("{:.3} Mpps", pps / 1e6));
        search.record(session.steady_trial(&at(pps, options))?.outcome());
    }
    let verdicts = search.verdicts();
    let [ndr, pdr]: [GoalVerdict; 2] = verdicts.try_into().expect("two goals have two verdicts");
    Ok(Found {
        ndr_pps: ndr.pps,
        pdr_pps: Some(pdr.pps),
        failed_pps: ndr.failed_pps,
        fell_short: ndr.generator_fell_short,
        irregular: ndr.irregular,
        trials: search.trials(),
    })
}

fn search_rfc2544(
    session: &mut Session<'_>,
    options: &MeasureOptions,
    most: f64,
    progress: &dyn Progress,
) -> Result<Found, TesterError> {
    let mut search = Rfc2544Search::new(most, 0.0, RESOLUTION);
    while let Some(pps) = search.next_pps() {
        progress.advance(f64::from(search.verdict().trials) / 12.0, &format!("{:.3} Mpps", pps / 1e6));
        search.record(session.steady_trial(&at(pps, options))?.outcome());
    }
    let RateVerdict { pps, failed_pps, generator_fell_short, trials } = search.verdict();
    let found =
        Found { ndr_pps: pps, pdr_pps: None, failed_pps, fell_short: generator_fell_short, irregular: false, trials };
    Ok(found)
}

/// Never the generator's limit as the path's.
fn limited_by(found: &Found, asked: Option<f64>, line: Option<f64>, generator_pps: f64) -> LimitedBy {
    let reached = |rate: Option<f64>| rate.is_some_and(|rate| found.ndr_pps >= rate * OFFERED_LEAST_RATIO);
    match () {
        () if found.failed_pps.is_some() => LimitedBy::Device,
        () if reached(line) => LimitedBy::Link,
        () if reached(asked) && !found.fell_short => LimitedBy::Asked,
        () if found.ndr_pps >= generator_pps * GENERATOR_SHARE => LimitedBy::Generator,
        () => LimitedBy::Cpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_without_failure_is_never_the_devices() {
        let found = |ndr_pps, failed_pps, fell_short| Found {
            ndr_pps,
            pdr_pps: None,
            failed_pps,
            fell_short,
            irregular: false,
            trials: 1,
        };
        let of = |found: &Found, asked, line| limited_by(found, asked, line, 5e6);
        assert_eq!(of(&found(1e6, Some(1.01e6), false), None, None), LimitedBy::Device);
        assert_eq!(of(&found(4.8e6, None, true), None, None), LimitedBy::Generator);
        assert_eq!(of(&found(2e6, None, true), Some(9e6), None), LimitedBy::Cpu);
        assert_eq!(of(&found(2e6, None, false), None, None), LimitedBy::Cpu);
        assert_eq!(of(&found(1e6, None, false), Some(1e6), None), LimitedBy::Asked);
        assert_eq!(of(&found(1.48e6, None, false), None, Some(1.488e6)), LimitedBy::Link);
        assert_eq!(of(&found(0.0, Some(100.0), false), Some(1e6), None), LimitedBy::Device);
    }
}
