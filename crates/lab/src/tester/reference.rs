//! What every measurement stands beside: the tester's own path, a plain veth pair. It tells what the generator can send, what
//! latency would be read if a path took no time, what a frame costs without a path, and whether the machine is quiet.
//!
//! This is the face for experiments that bring paths of their own, one or several:
//!
//! ```no_run
//! # use std::time::Duration;
//! # use weft_lab::tester::{TesterError, find, path::{Path, TrialOrder}, port::Port, reference::Reference};
//! # use weft_lab::tester::stream::StreamPlan;
//! # fn example() -> Result<(), TesterError> {
//! let never = || false;
//! let plan = StreamPlan { unicast: 64, ..StreamPlan::default() };
//! let mut reference = Reference::open(&plan, 512, &never)?;
//! let mut path = Path::open(&Port::open("left:g0")?, &[Port::open("right:k0")?], &plan, 512)?;
//! // Size S at rate R: sent, received, lost, latency with and without the tester's floor.
//! let at_rate = reference.measure(&mut path, &TrialOrder::paced(100_000.0, Duration::from_millis(500)), &never)?;
//! println!("{} lost, p99 {} ns", at_rate.trial.account.lost, at_rate.latency_ns.net_p99);
//! // CPU time that the device takes for a frame.
//! let cost = reference.cost(&mut path, &never)?;
//! println!("{} ns", cost.path.ns_per_frame);
//! // The rate that it carries.
//! let options = find::FindOptions::default();
//! let found = find::throughput(&mut reference, &mut path, &options, &never, &mut |_, _| ())?;
//! println!("{} frames/s, limited by {:?}", found.ndr_pps, found.limited_by);
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use weft_testbed::tester::LinkParams;

use super::bed::{Bed, Between};
use super::cost::{Calibration, ChainCost, CostCells, PathCost};
use super::error::TesterError;
use super::gate::{Gate, Look, Quiet};
use super::latency::{LatencyCells, LatencySummary};
use super::path::{Means, Path, Trial, TrialOrder};
use super::sizes::Sizes;
use super::stream::StreamPlan;

/// Whether the user wants to stop; asked now and then, also while frames are sent.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

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

/// The tester's own path, with what it has shown so far.
#[derive(Debug)]
pub struct Reference {
    floor: Path,
    gate: Gate,
    generator_pps: f64,
    generator_ns: f64,
    calibration: Option<Calibration>,
    /// Dropped after the path over it.
    _bed: Bed,
}

/// What one rate did on a path.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Frames sent, received and lost, and the whole histogram.
    pub trial: Trial,
    /// Latency beside the tester's own at the same size and rate.
    pub latency_ns: LatencyCells,
    /// Mean of the tester's own, nanoseconds.
    pub floor_mean_ns: f64,
    /// Whether the machine was quiet before and after.
    pub noise: Quiet,
}

impl Reference {
    /// Makes the tester's own path in namespaces of its own and lets the generator prove its rate into its own sink.
    ///
    /// # Errors
    /// Any [`TesterError`]; nothing is left behind.
    pub fn open(plan: &StreamPlan, sizes: impl Into<Sizes>, stop: Stop<'_>) -> Result<Self, TesterError> {
        let bed = Bed::new(Between::Direct)?;
        let floor = bed.path(plan, sizes)?;
        let gate = Gate::default();
        let mut reference = Self { floor, gate, generator_pps: 0.0, generator_ns: 0.0, calibration: None, _bed: bed };
        reference.prove(stop)?;
        Ok(reference)
    }

    fn prove(&mut self, stop: Stop<'_>) -> Result<(), TesterError> {
        self.generator_pps = 0.0;
        self.generator_ns = f64::MAX;
        for _ in 0..ATTEMPTS {
            let trial = self.floor.trial(&TrialOrder::unpaced(PROOF_TIME), stop)?;
            self.generator_pps = self.generator_pps.max(trial.received_pps);
            self.generator_ns = self.generator_ns.min(trial.cpu_ns_per_frame().unwrap_or(f64::MAX));
        }
        Ok(())
    }

    /// What the generator sends into its own counting sink, frames per second, by the means that are used now.
    pub fn generator_pps(&self) -> f64 {
        self.generator_pps
    }

    /// What that costs, generator, veth and analyser, CPU nanoseconds per frame.
    pub fn generator_ns(&self) -> f64 {
        self.generator_ns
    }

    /// How frames leave on the tester's own path.
    pub fn means(&self) -> Means {
        self.floor.means()
    }

    /// Frames of the size and by the means that a path has, so that what the tester takes is the same on both.
    ///
    /// # Errors
    /// Any [`TesterError`].
    pub fn match_to(&mut self, path: &Path, stop: Stop<'_>) -> Result<(), TesterError> {
        if self.floor.sizes() != path.sizes() {
            self.floor.set_sizes(path.sizes().clone())?;
        }
        if self.floor.means() != path.means() {
            self.floor.set_means(path.means())?;
            self.prove(stop)?;
        }
        Ok(())
    }

    /// Frames of another size on the tester's own path.
    ///
    /// # Errors
    /// As [`Path::set_sizes`].
    pub fn set_own_size(&mut self, frame_bytes: u32) -> Result<(), TesterError> {
        self.floor.set_sizes(frame_bytes)
    }

    /// One trial over the tester's own path.
    ///
    /// # Errors
    /// Any [`TesterError`].
    pub fn own_trial(&mut self, order: &TrialOrder, stop: Stop<'_>) -> Result<Trial, TesterError> {
        self.floor.trial(order, stop)
    }

    /// One look at how quiet the machine is.
    ///
    /// # Errors
    /// Any [`TesterError`].
    pub fn look(&mut self, stop: Stop<'_>) -> Result<Look, TesterError> {
        let trial = self.floor.trial(&TrialOrder::paced(LOOK_PPS, LOOK_TIME), stop)?;
        Ok(self.gate.judge(&trial.latency.summary()))
    }

    /// A rate on a path, with latency and the floor at the same size and rate just after it; repeated where the machine was
    /// noisy before or after. The last attempt counts, and says so.
    ///
    /// # Errors
    /// Any [`TesterError`].
    pub fn measure(&mut self, path: &mut Path, order: &TrialOrder, stop: Stop<'_>) -> Result<Measured, TesterError> {
        self.match_to(path, stop)?;
        for rejected in 0.. {
            let before = self.look(stop)?;
            let (trial, floor) = self.with_floor(path, order, stop)?;
            let after = self.look(stop)?;
            let quiet = before.quiet && after.quiet;
            if quiet || rejected as usize + 1 == ATTEMPTS {
                let noise = Quiet { quiet, rejected, looks: vec![before, after] };
                let latency_ns = LatencyCells::new(trial.latency.summary(), &floor);
                return Ok(Measured { trial, latency_ns, floor_mean_ns: floor.mean, noise });
            }
        }
        unreachable!("the attempts are bounded")
    }

    fn with_floor(
        &mut self,
        path: &mut Path,
        order: &TrialOrder,
        stop: Stop<'_>,
    ) -> Result<(Trial, LatencySummary), TesterError> {
        let trial = steady_trial(path, order, stop)?;
        // The rate that was really offered, and as many frames in one go: both are part of the floor.
        let pps = Some(trial.offered_pps).filter(|pps| *pps > 0.0);
        let same_rate = TrialOrder { pps, batch: Some(trial.batch), ..*order };
        let floor = self.floor.trial(&same_rate, stop)?;
        Ok((trial, floor.latency.summary()))
    }

    /// A trial whose losses can be believed: noise makes frames get lost and generators late, never the other way round, so
    /// a trial that lost nothing stands as it is, and one that lost something is repeated if the machine is noisy just after.
    ///
    /// # Errors
    /// Any [`TesterError`].
    pub fn judged_trial(
        &mut self,
        path: &mut Path,
        order: &TrialOrder,
        stop: Stop<'_>,
    ) -> Result<(Trial, Quiet), TesterError> {
        self.match_to(path, stop)?;
        for rejected in 0.. {
            let trial = steady_trial(path, order, stop)?;
            if trial.account.lost == 0 && !trial.outcome().fell_short() {
                return Ok((trial, Quiet { quiet: true, rejected, looks: Vec::new() }));
            }
            let after = self.look(stop)?;
            if after.quiet || rejected as usize + 1 == ATTEMPTS {
                return Ok((trial, Quiet { quiet: after.quiet, rejected, looks: vec![after] }));
            }
        }
        unreachable!("the attempts are bounded")
    }

    /// CPU time of a path by cutting the chain: generator, path and analyser, less generator and analyser. The method is
    /// checked in the same run, once for each size.
    ///
    /// # Errors
    /// [`TesterError::NoPath`] if nothing arrives, or any other.
    pub fn cost(&mut self, path: &mut Path, stop: Stop<'_>) -> Result<CostCells, TesterError> {
        self.match_to(path, stop)?;
        let (mut tester, mut chain) = (Vec::new(), Vec::new());
        // In turns, so that a noisy phase meets both.
        for _ in 0..COST_RUNS {
            tester.extend(self.own_run_ns(COST_TIME, stop)?);
            chain.extend(run_ns(path, COST_TIME, stop)?);
        }
        let (tester, chain) =
            (ChainCost::of(&tester).ok_or_else(no_frame)?, ChainCost::of(&chain).ok_or_else(no_frame)?);
        Ok(CostCells { path: PathCost::between(tester, chain), calibration: self.calibration(stop)? })
    }

    /// CPU nanoseconds per frame of the tester alone, from one short run as fast as possible; `None` if nothing arrived.
    ///
    /// # Errors
    /// Any [`TesterError`].
    pub fn own_run_ns(&mut self, duration: Duration, stop: Stop<'_>) -> Result<Option<f64>, TesterError> {
        run_ns(&mut self.floor, duration, stop)
    }

    /// Puts a known cost into a relay of the tester's own and reads it back; once in a run.
    ///
    /// # Errors
    /// Any [`TesterError`].
    pub fn calibration(&mut self, stop: Stop<'_>) -> Result<Calibration, TesterError> {
        if let Some(calibration) = self.calibration {
            return Ok(calibration);
        }
        let calibration = calibrate(self.floor.sizes().cells().frame_bytes, stop)?;
        self.calibration = Some(calibration);
        Ok(calibration)
    }
}

/// CPU nanoseconds per frame of generator, path and analyser, from one short run as fast as possible; `None` if nothing
/// arrived. What a path costs is the difference to [`Reference::own_run_ns`], each the least of many runs in turns.
///
/// # Errors
/// Any [`TesterError`].
pub fn run_ns(path: &mut Path, duration: Duration, stop: Stop<'_>) -> Result<Option<f64>, TesterError> {
    Ok(path.trial(&TrialOrder::unpaced(duration), stop)?.cpu_ns_per_frame())
}

/// One trial that the generator got through: where other work took the core away for a few slices, it offered less than was
/// asked although it can do more, and is asked again. The fullest trial counts.
///
/// # Errors
/// Any [`TesterError`].
pub fn steady_trial(path: &mut Path, order: &TrialOrder, stop: Stop<'_>) -> Result<Trial, TesterError> {
    let mut best = path.trial(order, stop)?;
    for _ in 1..STEADY_ATTEMPTS {
        // A path that takes all of the core makes the generator late all the time, not now and then.
        let now_and_then = u128::from(best.slips) <= order.duration.as_millis();
        if !(best.outcome().fell_short() && now_and_then) {
            break;
        }
        let next = path.trial(order, stop)?;
        if next.offered_pps > best.offered_pps {
            best = next;
        }
    }
    Ok(best)
}

fn calibrate(frame_bytes: u32, stop: Stop<'_>) -> Result<Calibration, TesterError> {
    let bed = Bed::new(Between::Relay { burn_ns: 0, link: LinkParams::default() })?;
    let mut path = bed.path(&StreamPlan::default(), frame_bytes.max(68))?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    // The burn's own cost, from its program alone: what the chains must read back.
    let (mut idle_ns, mut burning_ns) = (f64::MAX, f64::MAX);
    for _ in 0..COST_RUNS {
        for (burn_ns, runs, alone) in [(0, &mut without, &mut idle_ns), (BURN_NS, &mut with, &mut burning_ns)] {
            let ns = bed.with_links(|links| links.set_burn("s0", burn_ns).and_then(|()| links.relay_ns("s0")))??;
            *alone = alone.min(ns);
            runs.extend(run_ns(&mut path, COST_TIME, stop)?);
        }
    }
    match (ChainCost::of(&without), ChainCost::of(&with)) {
        (Some(without), Some(with)) => Ok(Calibration::of(burning_ns - idle_ns, without, with)),
        _ => Err(TesterError::NoPath("no frame crosses the tester's own relay; please report it".to_owned())),
    }
}

fn no_frame() -> TesterError {
    TesterError::NoPath("no frame arrived, so a frame's cost cannot be told; is the path up?".to_owned())
}
