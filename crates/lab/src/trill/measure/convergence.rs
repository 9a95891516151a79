//! A middle switch is lost while flows cross: how long the worst of them stands still. Daemons and bridges as in production.
//!
//! The receiving stations speak all the time, as hosts do, so that bridges know where they are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weft_scenario::record::{Records, SwitchLossRow};
use weft_scenario::workload::trill::{ConvergenceSpec, CrossingSpec, Layer, Network, SwitchLoss, Way};

use super::crossing::{Between, Crossing};
use crate::tester::TesterError;
use crate::tester::experiment::Context;
use crate::tester::path::{Stations, Trial, TrialOrder};
use crate::trill::Failure;

/// Frames flow so long before the switch is lost.
const LEAD: Duration = Duration::from_secs(1);
/// Between two frames of a receiving station.
const SPEAK: Duration = Duration::from_millis(200);
/// Frames that tell which middle switch carries most.
const LOOK_FRAMES: u64 = 4_000;

pub(super) fn run(spec: &ConvergenceSpec, seed: u64, context: &Context<'_>) -> Result<Records, TesterError> {
    let mut records = Records::default();
    for way in &spec.ways {
        for loss in &spec.losses {
            context.attend(0.0, &format!("{}, {}", way.name(), loss.name()))?;
            records.switch_losses.push(lose(spec, *way, *loss, seed, context)?);
        }
    }
    Ok(records)
}

/// On a campus of its own.
fn lose(
    spec: &ConvergenceSpec,
    way: Way,
    loss: SwitchLoss,
    seed: u64,
    context: &Context<'_>,
) -> Result<SwitchLossRow, TesterError> {
    let progress = context.progress;
    let stop = || progress.interrupted();
    let crossing_spec = crossing_of(spec, way);
    let mut crossing = Crossing::new(way, &crossing_spec, spec.timers, seed, context)?;
    crossing.wait_until_it_carries(&crossing_spec, &stop)?;
    let Between::Campus(campus) = &crossing.between else { unreachable!("it was made on a campus") };
    campus.settle(context)?;
    let switch = busiest(&mut crossing, spec, &stop)?;
    let failure = match loss {
        SwitchLoss::LinkDown => Failure::LinkDown,
        SwitchLoss::Silent => Failure::Silent,
    };
    let recovery_s = if way == Way::Stp { spec.timers.recovery_s(loss) } else { 0 };
    let watch = Duration::from_nanos(spec.watch.0) + Duration::from_secs(recovery_s);
    let order = TrialOrder::paced(f64::from(spec.per_s), watch);
    let stations = crossing.path.receiving_stations()?;
    let Crossing { path, between: Between::Campus(campus), .. } = &mut crossing else {
        unreachable!("it was made on a campus");
    };
    let trial = std::thread::scope(|scope| {
        let losing = scope.spawn(|| {
            std::thread::sleep(LEAD);
            campus.fail(&switch, failure)
        });
        let is_over = AtomicBool::new(false);
        let trial = std::thread::scope(|scope| {
            let speaking = scope.spawn(|| speak(&stations, &is_over));
            let trial = path.trial(&order, &stop);
            is_over.store(true, Ordering::Relaxed);
            speaking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(trial)
        });
        losing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        trial
    })?;
    Ok(SwitchLossRow { recovery_s, ..row(way, loss, switch, &trial) })
}

fn speak(stations: &Stations, is_over: &AtomicBool) -> Result<(), TesterError> {
    while !is_over.load(Ordering::Relaxed) {
        stations.speak()?;
        std::thread::sleep(SPEAK);
    }
    Ok(())
}

/// Frames over the campus, without emulated links.
fn crossing_of(spec: &ConvergenceSpec, way: Way) -> CrossingSpec {
    CrossingSpec {
        network: Network::Campus,
        ways: vec![way],
        frame_bytes: vec![spec.frame_bytes],
        stations: spec.stations,
        link: None,
        per_s: vec![spec.per_s],
        load_percent: Vec::new(),
        path_rate: None,
        load_of: Layer::default(),
        trial: spec.watch,
    }
}

/// The middle switch that takes most frames.
fn busiest(
    crossing: &mut Crossing,
    spec: &ConvergenceSpec,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<String, TesterError> {
    let before = crossing.by_middle()?;
    let order =
        TrialOrder { frames: Some(LOOK_FRAMES), ..TrialOrder::paced(f64::from(spec.per_s), Duration::from_secs(10)) };
    crossing.path.trial(&order, stop)?;
    let after = crossing.by_middle()?;
    let most = before
        .into_iter()
        .zip(after)
        .max_by_key(|((_, before), (_, after))| after.received_frames - before.received_frames);
    Ok(most.expect("a campus has middle switches").0.0)
}

fn row(way: Way, loss: SwitchLoss, switch: String, trial: &Trial) -> SwitchLossRow {
    // What was offered, not what was asked for: a busy machine sends less.
    let flow_interval_ns = trial.streams.len() as f64 * 1e9 / trial.offered_pps.max(1.0);
    let worst = trial.streams.iter().map(|stream| stream.lost).max().unwrap_or(0);
    SwitchLossRow {
        way: way.name().to_owned(),
        loss: loss.name().to_owned(),
        switch,
        flows: trial.streams.len() as u32,
        hit_flows: trial.streams.iter().filter(|stream| stream.lost > 0).count() as u32,
        sent_frames: trial.account.sent,
        lost_frames: trial.account.lost,
        recovery_s: 0,
        outage_ns: (worst as f64 * flow_interval_ns) as u64,
    }
}
