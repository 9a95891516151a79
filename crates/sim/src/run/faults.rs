//! Links that fail and come back, and routes that follow after a while.

use std::collections::BTreeSet;

use weft_scenario::id::LinkId;

use super::Simulation;
use super::timers::Timer;
use crate::error::SimError;
use crate::job::Job;
use crate::network::Sent;
use crate::outcome::{FabricEvent, FabricEventKind};
use crate::time::ps;

/// All faults and repairs of a run in the order of their times, and which links are down.
#[derive(Debug)]
pub(super) struct FaultSteps {
    steps: Vec<FaultStep>,
    /// How many faults keep each link down.
    down: Vec<u16>,
}

#[derive(Clone, Debug)]
struct FaultStep {
    at_ps: u64,
    kind: FabricEventKind,
    fault: usize,
    links: BTreeSet<LinkId>,
}

impl FaultSteps {
    pub(super) fn new(job: &Job) -> Result<Self, SimError> {
        let mut steps = Vec::new();
        for (number, fault) in job.faults.iter().enumerate() {
            let links = fault.links(&job.fabric)?;
            let step = |at_ns, kind| FaultStep { at_ps: ps(at_ns), kind, fault: number, links: links.clone() };
            steps.push(step(fault.at.0, FabricEventKind::Fault));
            if fault.lasts.is_some() {
                steps.push(step(fault.ends().0, FabricEventKind::Repair));
            }
        }
        steps.sort_by_key(|step| (step.at_ps, step.kind, step.fault));
        Ok(Self { steps, down: vec![0; job.fabric.links().len()] })
    }

    /// Number and time of every step.
    pub(super) fn times_ps(&self) -> Vec<(u32, u64)> {
        (0..).zip(self.steps.iter().map(|step| step.at_ps)).collect()
    }

    fn failed(&self) -> BTreeSet<LinkId> {
        (0..).zip(&self.down).filter(|(_, faults)| **faults > 0).map(|(link, _)| LinkId(link)).collect()
    }
}

impl Simulation<'_> {
    /// Takes links down or up at once; what is on them then is lost.
    pub(super) fn fault_step(&mut self, number: u32) {
        let FaultStep { kind, fault, links, .. } = self.faults.steps[number as usize].clone();
        let goes_down = kind == FabricEventKind::Fault;
        for link in links {
            let faults = &mut self.faults.down[link.index()];
            *faults = if goes_down { *faults + 1 } else { *faults - 1 };
            let is_down = *faults > 0;
            if u16::from(is_down) == *faults || !goes_down {
                self.set_link(link, is_down);
            }
        }
        self.note_event(fault, kind);
        let switching = &self.job.settings.switching;
        let is_silent = goes_down && self.job.faults[fault].kind.is_silent();
        let noticed_ns = if is_silent { switching.silence().0 } else { 0 };
        let at_ps = self.now_ps.saturating_add(ps(switching.reconvergence.0.saturating_add(noticed_ns)));
        self.timers.add(at_ps, Timer::Reconverge(number));
    }

    /// Routing tables follow what is down now.
    pub(super) fn reconverge(&mut self, number: u32) {
        let failed = self.faults.failed();
        for part in &mut self.parts {
            part.router.reconverge(&failed);
            part.reroute();
        }
        self.note_event(self.faults.steps[number as usize].fault, FabricEventKind::Reconverged);
    }

    fn set_link(&mut self, link: LinkId, down: bool) {
        for part in &mut self.parts {
            let mut lost = Vec::new();
            for port in [2 * link.0, 2 * link.0 + 1] {
                part.network.set_down(port, down, |packet| lost.push(packet));
            }
            for packet in lost {
                part.dropped(packet, Sent::Lost, None);
            }
        }
    }

    fn note_event(&mut self, fault: usize, kind: FabricEventKind) {
        self.events.push(FabricEvent { time_ps: self.now_ps, fault, kind });
    }
}
