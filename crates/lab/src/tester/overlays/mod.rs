//! `weft bench overlay`: what encapsulations cost, each beside the same path without it, measured in turns.
//!
//! A round is one turn of every encapsulation: a new bed, then at every size some short runs as fast as possible, each
//! between two runs of the tester alone. A run counts if the tester alone was undisturbed on both sides of it; the least of a
//! turn's runs is its cost, because other work only ever adds. Differences are formed within rounds, and intervals are over
//! rounds.

mod bed;
mod encapsulation;
mod nic;
mod own;
mod report;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weft_scenario::engine::Progress;

use super::error::TesterError;
use super::path::{Path, TrialOrder};
use super::reference::{Reference, Stop};
use super::stream::StreamPlan;

pub use bed::OverlayBed;
pub use encapsulation::{Encapsulation, Hook};
pub use nic::Wire;
pub use own::{OwnReport, Pacing};
pub use report::{BridgeHop, Noise, OverlayReport, OverlayRow};
use report::{Sample, Samples};

/// Sizes of a full run, bytes with FCS.
pub const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1450, 1518];
/// Sizes of a quick run.
pub const QUICK_SIZES: [u32; 2] = [64, 1518];

const STREAMS: u16 = 64;
const RUN_TIME: Duration = Duration::from_millis(20);
const LATENCY_PPS: f64 = 100_000.0;
/// From this share above its quietest on, the tester alone was disturbed.
const NOISY_RATIO: f64 = 1.06;
/// A full and a quick run's time for all turns; runs are repeated in noise as long as it lasts.
const BUDGET: Duration = Duration::from_secs(600);
const QUICK_BUDGET: Duration = Duration::from_secs(70);
/// Runs without a frame that show that there is no path.
const EMPTY_RUNS_MAX: u32 = 5;
/// What a user's port must carry: a minimal frame.
const LEAST_BYTES: u32 = 64;
/// Header and FCS of Ethernet.
const FRAME_OVER_MTU_BYTES: u32 = 18;

/// What is measured, and how thoroughly.
#[derive(Clone, Debug)]
pub struct OverlayOptions {
    /// What is between the switches.
    pub wire: Wire,
    /// Which encapsulations; their baselines are measured as well.
    pub encapsulations: Vec<Encapsulation>,
    /// Sizes of frames with FCS, bytes.
    pub frame_bytes: Vec<u32>,
    /// Rounds; intervals are over them. At least three.
    pub rounds: u32,
    /// Undisturbed runs in each turn and size.
    pub runs: u32,
    /// Time for all turns; when it is over, disturbed runs count as well.
    pub budget: Duration,
}

impl OverlayOptions {
    /// Everything there is, over a veth pair.
    pub fn new(quick: bool) -> Self {
        Self {
            wire: Wire::Veth,
            encapsulations: Encapsulation::ALL.to_vec(),
            frame_bytes: if quick { QUICK_SIZES.to_vec() } else { SIZES.to_vec() },
            rounds: if quick { 5 } else { 9 },
            runs: if quick { 3 } else { 6 },
            budget: if quick { QUICK_BUDGET } else { BUDGET },
        }
    }
}

/// Measures.
///
/// # Errors
/// [`TesterError::Refused`] for sizes and ports that cannot be, or any other; nothing is left behind.
pub fn run(options: &OverlayOptions, progress: &dyn Progress) -> Result<OverlayReport, TesterError> {
    let stop = || progress.interrupted();
    let plan = StreamPlan { unicast: STREAMS, ..StreamPlan::default() };
    let sizes = sizes_that_fit(options, progress)?;
    progress.phase("the tester alone", "its own cost, floor and pacing");
    let mut reference = Reference::open(&plan, sizes[0], &stop)?;
    let own = own::measure(&mut reference, &plan, &stop)?;
    let mut bench = Bench { options, plan, sizes, reference, floors: BTreeMap::new(), rejected: 0, disturbed: 0 };
    let order = with_baselines(&options.encapsulations);
    let mut samples = Samples::default();
    let turns = options.rounds.max(3) * order.len() as u32;
    let (begin, mut done) = (Instant::now(), 0);
    progress.phase("overlays", &format!("{} over {}", order.len(), options.wire.name()));
    for round in 0..options.rounds.max(3) {
        for one in &order {
            progress.advance(f64::from(done) / f64::from(turns), &format!("{} of round {}", one.name(), round + 1));
            // Time that quiet turns have saved is for noisy ones.
            let share = options.budget.saturating_sub(begin.elapsed()) / (turns - done);
            for (size, sample) in bench.turn(*one, share, &stop)? {
                samples.push(*one, size, sample);
            }
            done += 1;
        }
    }
    let calibration = bench.reference.calibration(&stop)?;
    let noise = Noise { runs_rejected: bench.rejected, samples_disturbed: bench.disturbed };
    Ok(report::report(options, &order, &samples, &bench.floors, own, calibration, noise))
}

/// Asked ones and what they are compared with, in the order of all.
fn with_baselines(asked: &[Encapsulation]) -> Vec<Encapsulation> {
    let wanted = |one: &Encapsulation| asked.contains(one) || asked.iter().any(|other| other.baseline() == Some(*one));
    Encapsulation::ALL.into_iter().filter(wanted).collect()
}

/// A user's wire may be too narrow for a header on top of the largest frames.
fn sizes_that_fit(options: &OverlayOptions, progress: &dyn Progress) -> Result<Vec<u32>, TesterError> {
    let most = match options.wire.mtu() {
        None => u32::MAX,
        Some(mtu) => {
            let header = options.encapsulations.iter().map(|one| one.header_bytes()).max().unwrap_or(0);
            (mtu + FRAME_OVER_MTU_BYTES).saturating_sub(header)
        }
    };
    let (fit, too_long): (Vec<u32>, Vec<u32>) = options.frame_bytes.iter().partition(|bytes| **bytes <= most);
    if let Some(bytes) = too_long.first() {
        progress.note(&format!(
            "frames of {bytes} bytes with their outer headers do not fit {}: up to {most} are measured; raise the MTU",
            options.wire.name()
        ));
    }
    match fit.iter().find(|bytes| **bytes < LEAST_BYTES) {
        Some(bytes) => Err(TesterError::Refused(format!("frame size {bytes} is below 64 bytes; choose a larger one"))),
        None if fit.is_empty() => Err(TesterError::Refused("no frame size is left to measure".to_owned())),
        None => Ok(fit),
    }
}

struct Bench<'a> {
    options: &'a OverlayOptions,
    plan: StreamPlan,
    sizes: Vec<u32>,
    reference: Reference,
    /// The tester alone by size, CPU nanoseconds per frame: the least so far.
    floors: BTreeMap<u32, f64>,
    rejected: u32,
    disturbed: u32,
}

impl Bench<'_> {
    fn turn(&mut self, one: Encapsulation, time: Duration, stop: Stop<'_>) -> Result<Vec<(u32, Sample)>, TesterError> {
        let begin = Instant::now();
        let bed = OverlayBed::new(one, &self.options.wire, &self.plan)?;
        let mut path = bed.path(&self.plan, self.sizes[0])?;
        let mut turn = Vec::new();
        let sizes = self.sizes.clone();
        for (place, size) in sizes.iter().enumerate() {
            path.set_size(*size)?;
            let share = time.saturating_sub(begin.elapsed()) / (sizes.len() - place) as u32;
            let sample = self.sample(&mut path, Instant::now() + share, stop)?;
            turn.push((*size, sample.ok_or_else(|| no_frame(one, *size))?));
        }
        Ok(turn)
    }

    /// One size in one turn; `None` if nothing arrives, again and again.
    fn sample(&mut self, path: &mut Path, deadline: Instant, stop: Stop<'_>) -> Result<Option<Sample>, TesterError> {
        self.reference.match_to(path, stop)?;
        let size = path.size().bytes();
        let mut runs = Vec::new();
        let (mut received_pps, mut lost, mut undisturbed) = (0.0f64, 0, 0);
        let mut empty = 0;
        let mut before_ns = self.tester_ns(size, stop)?;
        while undisturbed < self.options.runs || (runs.len() as u32) < self.options.runs {
            let trial = path.trial(&TrialOrder::unpaced(RUN_TIME), stop)?;
            let Some(chain_ns) = trial.cpu_ns_per_frame() else {
                empty += 1;
                if empty == EMPTY_RUNS_MAX {
                    return Ok(None);
                }
                continue;
            };
            received_pps = received_pps.max(trial.received_pps);
            lost += trial.account.lost;
            let after_ns = self.tester_ns(size, stop)?;
            runs.push((chain_ns, before_ns.max(after_ns)));
            before_ns = after_ns;
            // What is undisturbed may change with the quietest.
            let limit_ns = self.floors[&size] * NOISY_RATIO;
            undisturbed = runs.iter().filter(|(_, beside_ns)| *beside_ns <= limit_ns).count() as u32;
            if Instant::now() >= deadline && runs.len() as u32 >= self.options.runs {
                break;
            }
        }
        let limit_ns = self.floors[&size] * NOISY_RATIO;
        let quiet = runs.iter().filter(|(_, beside_ns)| *beside_ns <= limit_ns);
        let least = |runs: &mut dyn Iterator<Item = &(f64, f64)>| runs.map(|run| run.0).fold(f64::MAX, f64::min);
        let chain_ns = if undisturbed > 0 { least(&mut quiet.into_iter()) } else { least(&mut runs.iter()) };
        self.rejected += runs.len() as u32 - undisturbed;
        self.disturbed += u32::from(undisturbed == 0);
        let latency = path.trial(&TrialOrder::paced(LATENCY_PPS, RUN_TIME), stop)?.latency.summary();
        Ok(Some(Sample { chain_ns, received_pps, lost, p50_ns: latency.p50, p99_ns: latency.p99 }))
    }

    /// One run of the tester alone.
    fn tester_ns(&mut self, size: u32, stop: Stop<'_>) -> Result<f64, TesterError> {
        let ns = self.reference.own_run_ns(RUN_TIME, stop)?.unwrap_or(f64::MAX);
        let floor = self.floors.entry(size).or_insert(ns);
        *floor = floor.min(ns);
        Ok(ns)
    }
}

fn no_frame(one: Encapsulation, size: u32) -> TesterError {
    TesterError::NoPath(format!("no frame of {size} bytes crosses {}; are the two ports connected?", one.name()))
}
