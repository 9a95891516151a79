//! A path and the tester's own beside it, for the length of one measurement.

use std::time::Duration;

use weft_datapath::tester::LinkParams;
use weft_scenario::engine::Progress;

use super::{Bench, CostCells, LatencyCells, MeasureOptions, Quiet};
use crate::tester::bed::{Bed, Between};
use crate::tester::cost::{Calibration, ChainCost, PathCost};
use crate::tester::error::TesterError;
use crate::tester::gate::{Gate, Look};
use crate::tester::path::{Means, Path, Trial, TrialOrder};
use crate::tester::port::Port;
use crate::tester::stream::StreamPlan;

const LOOK_PPS: f64 = 100_000.0;
const LOOK_TIME: Duration = Duration::from_millis(30);
/// A noisy measurement is repeated so often.
const ATTEMPTS: usize = 3;
/// A trial that other work cut into is repeated so often.
const STEADY_ATTEMPTS: usize = 4;
const PROOF_TIME: Duration = Duration::from_millis(100);
const COST_TIME: Duration = Duration::from_millis(40);
const COST_RUNS: usize = 12;
/// An extra cost for every frame, which the method must read back.
const BURN_NS: u32 = 500;

pub(super) struct Session<'a> {
    pub(super) path: Path,
    options: &'a MeasureOptions,
    progress: &'a dyn Progress,
    line_bps: Option<f64>,
    floor: Path,
    gate: Gate,
    generator_pps: f64,
    generator_ns: f64,
    calibration: Option<Calibration>,
    /// Dropped after the path over it.
    _bed: Bed,
}

impl<'a> Session<'a> {
    pub(super) fn open(options: &'a MeasureOptions, progress: &'a dyn Progress) -> Result<Self, TesterError> {
        progress.phase("ports", &format!("{} to {}", options.sending, options.receiving.join(", ")));
        let first =
            *options.frame_bytes.first().ok_or_else(|| TesterError::Refused("no frame size is given".to_owned()))?;
        check(options)?;
        let sending = Port::open(&options.sending)?;
        let receiving = options.receiving.iter().map(|name| Port::open(name)).collect::<Result<Vec<_>, _>>()?;
        let mut path = Path::open(&sending, &receiving, &options.plan, first)?;
        // All sizes before the first measurement: the last one may be the one that does not fit.
        for size in options.frame_bytes.iter().rev() {
            path.set_size(*size)?;
        }
        let bed = Bed::new(Between::Direct)?;
        // Groups are for all ports; the tester's own bed has one.
        let mut floor = bed.path(&options.plan, first)?;
        if path.means() == Means::PacketSocket {
            // What the sockets take is the tester's part, not the path's.
            floor.use_socket()?;
            if sending.is_veth() {
                progress.note(&format!(
                    "`{}` sends by packet socket, a third as fast: its peer takes no live frames; try: ethtool -K PEER gro on",
                    sending.name()
                ));
            }
        }
        let line_bps = receiving
            .iter()
            .filter_map(Port::line_bps)
            .fold(sending.line_bps(), |least, bps| Some(least.map_or(bps, |least| least.min(bps))));
        let mut session = Self {
            path,
            options,
            progress,
            line_bps,
            floor,
            gate: Gate::default(),
            generator_pps: 0.0,
            generator_ns: 0.0,
            calibration: None,
            _bed: bed,
        };
        session.prove()?;
        Ok(session)
    }

    /// What the generator sends into its own counting sink.
    fn prove(&mut self) -> Result<(), TesterError> {
        for _ in 0..ATTEMPTS {
            let trial = self.on_floor(&unpaced(PROOF_TIME))?;
            self.generator_pps = self.generator_pps.max(trial.received_pps);
            let cost = trial.cpu_ns_per_frame().unwrap_or_default();
            self.generator_ns = if self.generator_ns == 0.0 { cost } else { self.generator_ns.min(cost) };
        }
        Ok(())
    }

    pub(super) fn bench(&self) -> Bench {
        Bench {
            tx: self.options.sending.clone(),
            rx: self.options.receiving.clone(),
            means: self.path.means(),
            floor_means: self.floor.means(),
            counted_in_driver: self.path.counts_in_driver(),
            streams: usize::from(self.options.plan.unicast)
                + usize::from(self.options.plan.group)
                + usize::from(self.options.plan.broadcast),
            seed: self.options.plan.seed,
            cpu: self.path.cpu(),
            generator_pps: self.generator_pps,
            generator_ns: self.generator_ns,
        }
    }

    pub(super) fn generator_pps(&self) -> f64 {
        self.generator_pps
    }

    /// Frames per second that fill the slowest port's line, where there is a line.
    pub(super) fn line_pps(&self) -> Option<f64> {
        self.line_bps.map(|bps| self.path.size().line_rate(bps))
    }

    pub(super) fn set_size(&mut self, frame_bytes: u32) -> Result<(), TesterError> {
        self.path.set_size(frame_bytes)?;
        self.floor.set_size(frame_bytes)
    }

    /// One trial over the path.
    pub(super) fn trial(&mut self, order: &TrialOrder) -> Result<Trial, TesterError> {
        let progress = self.progress;
        let trial = self.path.trial(order, &|| progress.interrupted())?;
        Ok(trial)
    }

    /// One trial over the path that the generator got through: where other work took the core away for a few slices, it
    /// offered less than was asked although it can do more, and is asked again. The fullest trial counts.
    pub(super) fn steady_trial(&mut self, order: &TrialOrder) -> Result<Trial, TesterError> {
        let mut best = self.trial(order)?;
        for _ in 1..STEADY_ATTEMPTS {
            // A path that takes all of the core makes the generator late all the time, not now and then.
            let now_and_then = u128::from(best.slips) <= order.duration.as_millis();
            if !(best.outcome().fell_short() && now_and_then) {
                break;
            }
            let next = self.trial(order)?;
            if next.offered_pps > best.offered_pps {
                best = next;
            }
        }
        Ok(best)
    }

    /// One trial over the tester's own path.
    pub(super) fn on_floor(&mut self, order: &TrialOrder) -> Result<Trial, TesterError> {
        let progress = self.progress;
        self.floor.trial(order, &|| progress.interrupted())
    }

    /// One look at how quiet the machine is.
    fn look(&mut self) -> Result<Look, TesterError> {
        let order =
            TrialOrder { pps: Some(LOOK_PPS), duration: LOOK_TIME, frames: None, every_payload: false, batch: None };
        let trial = self.on_floor(&order)?;
        Ok(self.gate.judge(&trial.latency.summary()))
    }

    /// Measures between two looks, again if one of them was noisy. The last attempt counts, and says so.
    pub(super) fn quietly<T>(
        &mut self,
        mut measure: impl FnMut(&mut Self) -> Result<T, TesterError>,
    ) -> Result<(T, Quiet), TesterError> {
        let mut attempt = 1;
        loop {
            let before = self.look()?;
            let measured = measure(self)?;
            let after = self.look()?;
            let quiet = before.quiet && after.quiet;
            if quiet || attempt == ATTEMPTS {
                return Ok((measured, Quiet { quiet, looks: vec![before, after] }));
            }
            attempt += 1;
        }
    }

    /// A trial with latency, and the floor at the same size and rate just after it.
    pub(super) fn with_latency(&mut self, order: &TrialOrder) -> Result<((Trial, LatencyCells), Quiet), TesterError> {
        self.quietly(|session| {
            let trial = session.steady_trial(order)?;
            // The rate that was really offered, and as many frames in one go: both are part of the floor.
            let pps = Some(trial.offered_pps).filter(|pps| *pps > 0.0);
            let same_rate = TrialOrder { pps, batch: Some(trial.batch), ..*order };
            let floor = session.on_floor(&same_rate)?;
            let cells = LatencyCells::new(trial.latency.summary(), &floor.latency.summary());
            Ok((trial, cells))
        })
    }

    /// CPU time of the path by cutting the chain, with the method checked in the same run.
    pub(super) fn cost(&mut self) -> Result<CostCells, TesterError> {
        let frame_bytes = self.path.size().bytes();
        let (mut tester, mut chain) = (Vec::new(), Vec::new());
        // In turns, so that a noisy phase meets both.
        for _ in 0..COST_RUNS {
            tester.extend(self.on_floor(&unpaced(COST_TIME))?.cpu_ns_per_frame());
            chain.extend(self.trial(&unpaced(COST_TIME))?.cpu_ns_per_frame());
        }
        let none =
            || TesterError::NoPath("no frame arrived, so a frame's cost cannot be told; is the path up?".to_owned());
        let tester = ChainCost::of(&tester).ok_or_else(none)?;
        let chain = ChainCost::of(&chain).ok_or_else(none)?;
        let calibration = match self.calibration {
            Some(calibration) => calibration,
            None => self.calibrate(frame_bytes)?,
        };
        self.calibration = Some(calibration);
        Ok(CostCells { path: PathCost::between(tester, chain), calibration })
    }

    /// Puts a known cost into a relay of the tester's own and reads it back.
    fn calibrate(&self, frame_bytes: u32) -> Result<Calibration, TesterError> {
        let progress = self.progress;
        let bed = Bed::new(Between::Relay { burn_ns: 0, link: LinkParams::default() })?;
        let mut path = bed.path(&StreamPlan::default(), frame_bytes)?;
        let (mut without, mut with) = (Vec::new(), Vec::new());
        // The burn's own cost, from its program alone: what the chains must read back.
        let (mut idle_ns, mut burning_ns) = (f64::MAX, f64::MAX);
        for _ in 0..COST_RUNS {
            for (burn_ns, runs, alone) in [(0, &mut without, &mut idle_ns), (BURN_NS, &mut with, &mut burning_ns)] {
                let ns =
                    bed.with_links(|links| links.set_burn("s0", burn_ns).and_then(|()| links.relay_ns("s0")))??;
                *alone = alone.min(ns);
                runs.extend(path.trial(&unpaced(COST_TIME), &|| progress.interrupted())?.cpu_ns_per_frame());
            }
        }
        match (ChainCost::of(&without), ChainCost::of(&with)) {
            (Some(without), Some(with)) => Ok(Calibration::of(burning_ns - idle_ns, without, with)),
            _ => Err(TesterError::NoPath("no frame crosses the tester's own relay; please report it".to_owned())),
        }
    }
}

pub(super) fn unpaced(duration: Duration) -> TrialOrder {
    TrialOrder { pps: None, duration, frames: None, every_payload: false, batch: None }
}

fn check(options: &MeasureOptions) -> Result<(), TesterError> {
    if let Some(rate) = options.rates_pps.iter().find(|rate| !(rate.is_finite() && **rate >= 1.0 && **rate <= 1e9)) {
        return Err(TesterError::Refused(format!("rate {rate} is not one; give 1 to 1e9 frames per second")));
    }
    if options.trial < Duration::from_millis(10) || options.trial > Duration::from_secs(3600) {
        return Err(TesterError::Refused("a trial takes 10 ms to an hour".to_owned()));
    }
    Ok(())
}
