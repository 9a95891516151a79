//! Faults at their times, and everything mended at the end whatever happens.

use weft_scenario::fault::Fault;
use weft_scenario::record::EventRow;

use super::{FaultActuator, TrafficError};

/// The faults of a trial as steps in time order. Dropping it repairs what is still broken.
pub(crate) struct FaultSchedule<'a> {
    actuator: &'a mut dyn FaultActuator,
    faults: &'a [Fault],
    /// Steps to come, the next one last.
    steps: Vec<Step>,
    broken: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Step {
    at_ns: u64,
    fault: usize,
    repairs: bool,
}

impl<'a> FaultSchedule<'a> {
    pub(crate) fn new(actuator: &'a mut dyn FaultActuator, faults: &'a [Fault]) -> Self {
        let breaks = faults.iter().enumerate().map(|(fault, it)| Step { at_ns: it.at.0, fault, repairs: false });
        let repairs = faults.iter().enumerate().filter_map(|(fault, it)| {
            it.lasts.map(|lasts| Step { at_ns: it.at.0.saturating_add(lasts.0), fault, repairs: true })
        });
        let mut steps: Vec<Step> = breaks.chain(repairs).collect();
        steps.sort_by_key(|step| std::cmp::Reverse((step.at_ns, !step.repairs)));
        Self { actuator, faults, steps, broken: Vec::new() }
    }

    /// When the next step is due, from the start of the run.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.steps.last().map(|step| step.at_ns)
    }

    /// Takes every step that is due. `clock` tells the time since the start of the run.
    pub(crate) fn advance(&mut self, clock: &dyn Fn() -> u64) -> Result<Vec<EventRow>, TrafficError> {
        let mut events = Vec::new();
        while let Some(step) = self.steps.pop_if(|step| step.at_ns <= clock()) {
            events.push(self.take(step, clock())?);
        }
        Ok(events)
    }

    /// Mends what is still broken at the end of the run.
    pub(crate) fn finish(&mut self, clock: &dyn Fn() -> u64) -> Result<Vec<EventRow>, TrafficError> {
        let broken = std::mem::take(&mut self.broken);
        broken.into_iter().map(|fault| self.take(Step { at_ns: 0, fault, repairs: true }, clock())).collect()
    }

    fn take(&mut self, step: Step, time_ns: u64) -> Result<EventRow, TrafficError> {
        let fault = &self.faults[step.fault];
        let (kind, outcome) = if step.repairs {
            self.broken.retain(|&broken| broken != step.fault);
            ("repair", self.actuator.repair(fault))
        } else {
            self.broken.push(step.fault);
            ("fault", self.actuator.apply(fault))
        };
        outcome.map_err(|why| TrafficError::Fault { subject: fault.subject(), why })?;
        Ok(EventRow { time_ns, kind: kind.to_owned(), subject: fault.subject() })
    }
}

impl Drop for FaultSchedule<'_> {
    fn drop(&mut self) {
        for &fault in &self.broken {
            if let Err(why) = self.actuator.repair(&self.faults[fault]) {
                tracing::warn!("{} could not be repaired: {why}", self.faults[fault].subject());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::fault::FaultKind;
    use weft_scenario::units::Nanos;

    use super::*;

    #[derive(Default)]
    struct Log(Vec<String>);

    impl FaultActuator for Log {
        fn apply(&mut self, fault: &Fault) -> Result<(), String> {
            self.0.push(format!("+{}", fault.subject()));
            Ok(())
        }
        fn repair(&mut self, fault: &Fault) -> Result<(), String> {
            self.0.push(format!("-{}", fault.subject()));
            Ok(())
        }
    }

    fn switch_down(at: u64, lasts: Option<u64>, node: &str) -> Fault {
        let kind = FaultKind::SwitchDown { node: node.to_owned() };
        Fault { at: Nanos(at), lasts: lasts.map(Nanos), kind }
    }

    #[test]
    fn steps_come_in_time_order_and_repairs_come_first_at_equal_times() {
        let faults = [switch_down(20, Some(10), "b"), switch_down(10, Some(10), "a"), switch_down(25, None, "c")];
        let mut log = Log::default();
        let mut schedule = FaultSchedule::new(&mut log, &faults);
        assert_eq!(schedule.next_ns(), Some(10));
        assert_eq!(schedule.advance(&|| 9).unwrap(), []);
        let events = schedule.advance(&|| 22).unwrap();
        assert_eq!(events.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(), ["fault", "repair", "fault"]);
        schedule.advance(&|| 100).unwrap();
        let last = schedule.finish(&|| 101).unwrap();
        assert_eq!((last.len(), last[0].subject.as_str(), last[0].time_ns), (1, "c", 101));
        drop(schedule);
        assert_eq!(log.0, ["+a", "-a", "+b", "+c", "-b", "-c"]);
    }

    #[test]
    fn what_is_broken_when_a_run_is_abandoned_gets_repaired() {
        let faults = [switch_down(0, Some(50), "a"), switch_down(90, None, "b")];
        let mut log = Log::default();
        FaultSchedule::new(&mut log, &faults).advance(&|| 1).unwrap();
        assert_eq!(log.0, ["+a", "-a"]);
    }
}
