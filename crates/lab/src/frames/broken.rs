//! A rate while something fails. The receiving stations speak all the time, as hosts do, so that bridges know where they are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weft_scenario::engine::Progress;
use weft_scenario::fault::Fault;
use weft_scenario::record::Records;

use crate::error::LabError;
use crate::faults::LabActuator;
use crate::netns::join;
use crate::tester::TesterError;
use crate::tester::path::{Path, Stations, Trial, TrialOrder};
use crate::tester::reference::Stop;
use crate::traffic::FaultSchedule;
use crate::trill;
use crate::up::Lab;

/// Between two frames of a receiving station.
const SPEAK: Duration = Duration::from_millis(200);
/// How often the time is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// What breaks where.
pub(crate) struct Breaking<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) progress: &'a dyn Progress,
    /// By their times from the start of the rate.
    pub(crate) faults: &'a [Fault],
}

/// Offers a rate, breaks and mends what it is told to at its times, and waits until the lab is as before.
pub(crate) fn offer(
    breaking: &Breaking<'_>,
    path: &mut Path,
    order: &TrialOrder,
    records: &mut Records,
    stop: Stop<'_>,
) -> Result<Trial, TesterError> {
    let Breaking { lab, progress, faults } = *breaking;
    trill::settle(lab, progress)?;
    trill::age_fast(lab)?;
    let stations = path.receiving_stations()?;
    let mut actuator = LabActuator::new(lab);
    let mut schedule = FaultSchedule::new(&mut actuator, faults);
    let is_over = AtomicBool::new(false);
    let start = Instant::now();
    let clock = || start.elapsed().as_nanos() as u64;
    let trial = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let trial = path.trial(order, stop);
            is_over.store(true, Ordering::Relaxed);
            trial
        });
        let speaking = scope.spawn(|| speak(&stations, &is_over));
        let mut broken = Ok(());
        while !is_over.load(Ordering::Relaxed) && broken.is_ok() {
            broken = schedule.advance(&clock).map(|events| records.events.extend(events));
            std::thread::sleep(LOOK);
        }
        let trial = join(sending);
        join(speaking)?;
        broken.map_err(|error| LabError::Traffic(error.to_string()))?;
        trial
    })?;
    let repaired = schedule.finish(&clock).map_err(|error| LabError::Traffic(error.to_string()))?;
    records.events.extend(repaired);
    drop(schedule);
    actuator.finish();
    trill::settle(lab, progress)?;
    Ok(trial)
}

fn speak(stations: &Stations, is_over: &AtomicBool) -> Result<(), TesterError> {
    while !is_over.load(Ordering::Relaxed) {
        stations.speak(Duration::ZERO)?;
        std::thread::sleep(SPEAK);
    }
    Ok(())
}
