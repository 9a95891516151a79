//! A path and the tester's own beside it, for the length of one measurement.

use std::time::Duration;

use weft_scenario::engine::Progress;

use super::{Bench, MeasureOptions, Quiet};
use crate::tester::cost::CostCells;
use crate::tester::error::TesterError;
use crate::tester::find::{self, FindOptions, Found, Method};
use crate::tester::path::{Means, Path, Trial, TrialOrder};
use crate::tester::port::Port;
use crate::tester::reference::{Measured, Reference};
use crate::tester::sizes::Sizes;

pub(super) struct Session<'a> {
    pub(super) path: Path,
    reference: Reference,
    options: &'a MeasureOptions,
    progress: &'a dyn Progress,
    line_bps: Option<f64>,
}

impl<'a> Session<'a> {
    pub(super) fn open(options: &'a MeasureOptions, progress: &'a dyn Progress) -> Result<Self, TesterError> {
        progress.phase("ports", &format!("{} to {}", options.sending, options.receiving.join(", ")));
        let first = options.sizes.first().ok_or_else(|| TesterError::Refused("no frame size is given".to_owned()))?;
        check_trials(&options.rates_pps, options.trial)?;
        let sending = Port::open(&options.sending)?;
        let receiving = options.receiving.iter().map(|name| Port::open(name)).collect::<Result<Vec<_>, _>>()?;
        let mut path = Path::open(&sending, &receiving, &options.plan, first.clone())?;
        // All sizes before the first measurement: the last one may be the one that does not fit.
        for sizes in options.sizes.iter().rev() {
            path.set_sizes(sizes.clone())?;
        }
        let stop = || progress.interrupted();
        // Groups are for all ports; the tester's own bed has one.
        let mut reference = Reference::open(&options.plan, first.clone(), &stop)?;
        // What sockets take, where the path needs them, is the tester's part.
        reference.match_to(&path, &stop)?;
        if path.means() == Means::PacketSocket && sending.is_veth() {
            progress.note(&format!(
                "`{}` sends by packet socket, a third as fast: its peer takes no live frames; try: ethtool -K PEER gro on",
                sending.name()
            ));
        }
        let line_bps = receiving
            .iter()
            .filter_map(Port::line_bps)
            .fold(sending.line_bps(), |least, bps| Some(least.map_or(bps, |least| least.min(bps))));
        Ok(Self { path, reference, options, progress, line_bps })
    }

    pub(super) fn bench(&self) -> Bench {
        let plan = &self.options.plan;
        Bench {
            tx: self.options.sending.clone(),
            rx: self.options.receiving.clone(),
            means: self.path.means(),
            floor_means: self.reference.means(),
            counted_in_driver: self.path.counts_in_driver(),
            ip: plan.ip,
            streams: usize::from(plan.unicast) + usize::from(plan.group) + usize::from(plan.broadcast),
            seed: plan.seed,
            cpu: self.path.cpu(),
            generator_pps: self.reference.generator_pps(),
            generator_ns: self.reference.generator_ns(),
        }
    }

    pub(super) fn set_sizes(&mut self, sizes: &Sizes) -> Result<(), TesterError> {
        self.path.set_sizes(sizes.clone())
    }

    /// One trial over the path.
    pub(super) fn trial(&mut self, order: &TrialOrder) -> Result<Trial, TesterError> {
        let progress = self.progress;
        self.path.trial(order, &|| progress.interrupted())
    }

    /// As fast as possible.
    pub(super) fn fastest(&mut self, duration: Duration) -> Result<Trial, TesterError> {
        self.trial(&TrialOrder::unpaced(duration))
    }

    /// A trial whose losses can be believed.
    pub(super) fn judged_trial(&mut self, order: &TrialOrder) -> Result<(Trial, Quiet), TesterError> {
        let progress = self.progress;
        self.reference.judged_trial(&mut self.path, order, &|| progress.interrupted())
    }

    /// A trial with latency, and the floor at the same size and rate just after it.
    pub(super) fn measure(&mut self, order: &TrialOrder) -> Result<Measured, TesterError> {
        let progress = self.progress;
        self.reference.measure(&mut self.path, order, &|| progress.interrupted())
    }

    /// One look at the machine, for what cannot be repeated. Who stops just now has seen nothing.
    pub(super) fn look_unless_stopped(&mut self) -> Result<Quiet, TesterError> {
        let progress = self.progress;
        match self.reference.look(&|| progress.interrupted()) {
            Err(TesterError::Interrupted) => Ok(Quiet::default()),
            look => look.map(|look| Quiet { quiet: look.quiet, rejected: 0, looks: vec![look] }),
        }
    }

    pub(super) fn cost(&mut self) -> Result<CostCells, TesterError> {
        let progress = self.progress;
        self.reference.cost(&mut self.path, &|| progress.interrupted())
    }

    pub(super) fn find(&mut self, method: Method) -> Result<Found, TesterError> {
        let progress = self.progress;
        let options = FindOptions {
            method,
            most_pps: self.options.rates_pps.iter().copied().reduce(f64::max),
            // Frames per second that fill the slowest port's line, where there is a line.
            line_pps: self.line_bps.map(|bps| self.path.sizes().line_rate(bps)),
            trial: self.options.trial,
        };
        let mut seen = |pps: f64, done: f64| progress.advance(done, &format!("{:.3} Mpps", pps / 1e6));
        find::throughput(&mut self.reference, &mut self.path, &options, &|| progress.interrupted(), &mut seen)
    }
}

/// Rates and a trial's length that can be.
pub(in crate::tester) fn check_trials(rates_pps: &[f64], trial: Duration) -> Result<(), TesterError> {
    if let Some(rate) = rates_pps.iter().find(|rate| !(rate.is_finite() && **rate >= 1.0 && **rate <= 1e9)) {
        return Err(TesterError::Refused(format!("rate {rate} is not one; give 1 to 1e9 frames per second")));
    }
    if trial < Duration::from_millis(10) || trial > Duration::from_secs(3600) {
        return Err(TesterError::Refused("a trial takes 10 ms to an hour".to_owned()));
    }
    Ok(())
}
