//! The rate that a path carries: no-drop and partial-drop rate, or RFC 2544's, and what kept it from being higher.

use std::time::Duration;

use serde::Serialize;

use super::error::TesterError;
use super::path::{Path, TrialOrder};
use super::reference::{Reference, Stop};
use super::search::{
    Goal, GoalVerdict, NdrOptions, NdrSearch, OFFERED_LEAST_RATIO, Outcome, RateVerdict, Rfc2544Search,
};

/// Bounds end within this share of each other.
const RESOLUTION: f64 = 0.01;
/// From this share of what the generator can send on, it is the generator that limits.
const GENERATOR_SHARE: f64 = 0.9;
/// So many trials may be thrown away for noise; where it is noisy all the time, the search must end nevertheless.
const REJECTED_MAX: u32 = 8;

/// How the rate is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Most of several trials decide; NDR and PDR.
    Ndr,
    /// Bisection, one trial for each rate.
    Rfc2544,
}

/// What kept a rate from being higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitedBy {
    /// The path lost frames above it.
    Device,
    /// The generator can send no more: the path may be faster.
    Generator,
    /// The line of the port is full.
    Link,
    /// Generator and path share a core, and it is full: the path may be faster on cores of its own.
    Cpu,
    /// Nobody asked for more.
    Asked,
}

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct FindOptions {
    /// By which rules.
    pub method: Method,
    /// Where to begin, frames per second; `None`: at what the path takes as fast as possible.
    pub most_pps: Option<f64>,
    /// What the port's line carries, frames per second, where there is a line.
    pub line_pps: Option<f64>,
    /// Length of one trial.
    pub trial: Duration,
}

impl Default for FindOptions {
    fn default() -> Self {
        Self { method: Method::Ndr, most_pps: None, line_pps: None, trial: Duration::from_millis(500) }
    }
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The rate without loss, as offered, frames per second; 0 if every rate lost something.
    pub ndr_pps: f64,
    /// The rate with at most half a percent of loss; `None` with RFC 2544.
    pub pdr_pps: Option<f64>,
    /// The lowest rate that lost frames; `None`: none did.
    pub failed_pps: Option<f64>,
    /// The rate that the search began with.
    pub most_pps: f64,
    /// The generator could not offer what was asked.
    pub generator_fell_short: bool,
    /// Too many trials disagreed, or the generator was held up too often.
    pub irregular: bool,
    /// Trials that were judged.
    pub trials: u32,
    /// Trials that were thrown away because the machine was noisy just after.
    pub trials_rejected: u32,
    /// Trials that were judged although it was noisy, because it stayed so.
    pub trials_noisy: u32,
    /// Why not more.
    pub limited_by: LimitedBy,
}

/// Searches the throughput of a path at the size that it has now. `seen` is told the rates, frames per second, and about how
/// far the search is, 0 to 1.
///
/// # Errors
/// [`TesterError::NoPath`] if nothing arrives at all, or any other.
pub fn throughput(
    reference: &mut Reference,
    path: &mut Path,
    options: &FindOptions,
    stop: Stop<'_>,
    seen: &mut dyn FnMut(f64, f64),
) -> Result<Found, TesterError> {
    reference.match_to(path, stop)?;
    // As fast as possible first: where it begins, and for a path on this core where it ends.
    let fastest = path.trial(&TrialOrder::unpaced(options.trial), stop)?;
    if fastest.account.counts.received == 0 {
        return Err(TesterError::NoPath(format!(
            "no frame arrives from {}: is the path between them up, and does it forward unknown stations?",
            path.ports_text()
        )));
    }
    let most = [Some(fastest.offered_pps), options.line_pps, options.most_pps];
    let most = most.into_iter().flatten().fold(f64::MAX, f64::min);
    let mut trials = Trials { reference, path, options, stop, rejected: 0, noisy: 0 };
    let found = match options.method {
        Method::Ndr => search_ndr(most, &mut trials, seen)?,
        Method::Rfc2544 => search_rfc2544(most, &mut trials, seen)?,
    };
    let found = Found { trials_rejected: trials.rejected, trials_noisy: trials.noisy, ..found };
    Ok(Found { limited_by: limited_by(&found, options, reference.generator_pps()), ..found })
}

/// Where a search's trials come from.
struct Trials<'a> {
    reference: &'a mut Reference,
    path: &'a mut Path,
    options: &'a FindOptions,
    stop: Stop<'a>,
    rejected: u32,
    noisy: u32,
}

impl Trials<'_> {
    fn at(&mut self, pps: f64) -> Result<Outcome, TesterError> {
        let order = TrialOrder::paced(pps, self.options.trial);
        if self.rejected >= REJECTED_MAX {
            self.noisy += 1;
            return Ok(super::reference::steady_trial(self.path, &order, self.stop)?.outcome());
        }
        let (trial, noise) = self.reference.judged_trial(self.path, &order, self.stop)?;
        self.rejected += noise.rejected;
        self.noisy += u32::from(!noise.quiet);
        Ok(trial.outcome())
    }
}

fn search_ndr(most_pps: f64, trials: &mut Trials<'_>, seen: &mut dyn FnMut(f64, f64)) -> Result<Found, TesterError> {
    let min_pps = (most_pps * 1e-4).max(1.0);
    let options = NdrOptions { max_pps: most_pps, min_pps, width: RESOLUTION, ..NdrOptions::default() };
    let mut search = NdrSearch::new(options, &[Goal::NDR, Goal::PDR]);
    while let Some(pps) = search.next_pps() {
        seen(pps, f64::from(search.trials()) / 40.0);
        search.record(trials.at(pps)?);
    }
    let [ndr, pdr]: [GoalVerdict; 2] = search.verdicts().try_into().expect("two goals have two verdicts");
    Ok(Found {
        ndr_pps: ndr.pps,
        pdr_pps: Some(pdr.pps),
        failed_pps: ndr.failed_pps,
        generator_fell_short: ndr.generator_fell_short,
        irregular: ndr.irregular,
        trials: search.trials(),
        ..begun(most_pps)
    })
}

fn search_rfc2544(
    most_pps: f64,
    trials: &mut Trials<'_>,
    seen: &mut dyn FnMut(f64, f64),
) -> Result<Found, TesterError> {
    let mut search = Rfc2544Search::new(most_pps, 0.0, RESOLUTION);
    while let Some(pps) = search.next_pps() {
        seen(pps, f64::from(search.verdict().trials) / 12.0);
        search.record(trials.at(pps)?);
    }
    let RateVerdict { pps, failed_pps, generator_fell_short, trials } = search.verdict();
    Ok(Found { ndr_pps: pps, failed_pps, generator_fell_short, trials, ..begun(most_pps) })
}

fn begun(most_pps: f64) -> Found {
    Found {
        ndr_pps: 0.0,
        pdr_pps: None,
        failed_pps: None,
        most_pps,
        generator_fell_short: false,
        irregular: false,
        trials: 0,
        trials_rejected: 0,
        trials_noisy: 0,
        limited_by: LimitedBy::Cpu,
    }
}

/// Never the generator's limit as the path's.
fn limited_by(found: &Found, options: &FindOptions, generator_pps: f64) -> LimitedBy {
    let reached = |rate: Option<f64>| rate.is_some_and(|rate| found.ndr_pps >= rate * OFFERED_LEAST_RATIO);
    match () {
        () if found.failed_pps.is_some() => LimitedBy::Device,
        () if reached(options.line_pps) => LimitedBy::Link,
        () if reached(options.most_pps) && !found.generator_fell_short => LimitedBy::Asked,
        () if found.ndr_pps >= generator_pps * GENERATOR_SHARE => LimitedBy::Generator,
        () => LimitedBy::Cpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_without_failure_is_never_the_devices() {
        let found = |ndr_pps, failed_pps, generator_fell_short| Found {
            ndr_pps,
            failed_pps,
            generator_fell_short,
            ..begun(9e6)
        };
        let of = |found: &Found, most_pps, line_pps| {
            limited_by(found, &FindOptions { most_pps, line_pps, ..FindOptions::default() }, 5e6)
        };
        assert_eq!(of(&found(1e6, Some(1.01e6), false), None, None), LimitedBy::Device);
        assert_eq!(of(&found(4.8e6, None, true), None, None), LimitedBy::Generator);
        assert_eq!(of(&found(2e6, None, true), Some(9e6), None), LimitedBy::Cpu);
        assert_eq!(of(&found(2e6, None, false), None, None), LimitedBy::Cpu);
        assert_eq!(of(&found(1e6, None, false), Some(1e6), None), LimitedBy::Asked);
        assert_eq!(of(&found(1.48e6, None, false), None, Some(1.488e6)), LimitedBy::Link);
        assert_eq!(of(&found(0.0, Some(100.0), false), Some(1e6), None), LimitedBy::Device);
    }
}
