//! Looks at a lab ten times a second and tells the hub.

use std::ops::ControlFlow;
use std::time::Duration;

use weft_experiment::page::live::{Feed, Seen};
use weft_lab::{Disturbance, LabState, Onlooker, ProcessId, Sight};

use crate::hub::{Beginning, Hub, Shown};
use crate::{LiveError, Which};

const EVERY: Duration = Duration::from_millis(100);
/// How often it is looked whether a run has made its next lab.
const NEXT_LAB: Duration = Duration::from_millis(200);

/// Shows the lab, or the run's labs one after the other, until it is over.
pub(crate) fn follow(which: &Which, hub: &Hub, is_over: &dyn Fn() -> bool) -> Result<(), LiveError> {
    let run = match which {
        Which::Named(name) => return show(&Onlooker::open(name)?, true, hub, is_over),
        Which::OfRun(run) => run,
    };
    while !is_over() {
        match of_run(*run).map(|name| Onlooker::open(&name)) {
            // What ends or is removed meanwhile is the run's business.
            Some(Ok(lab)) => drop(show(&lab, false, hub, is_over)),
            _ => std::thread::sleep(NEXT_LAB),
        }
    }
    Ok(())
}

/// The lab that a run has made and that is up.
fn of_run(run: ProcessId) -> Option<String> {
    let ready = |name: &String| LabState::load(name).is_ok_and(|state| state.ready && state.owner == Some(run));
    weft_lab::home::lab_names().into_iter().find(ready)
}

fn show(lab: &Onlooker, may_change: bool, hub: &Hub, is_over: &dyn Fn() -> bool) -> Result<(), LiveError> {
    let state = lab.state();
    let ports = lab.ports().iter().map(|port| (port.node.as_str(), port.interface.as_str()));
    let feed = Feed::of(lab.fabric(), ports);
    let mut feed = feed.ok_or_else(|| LiveError::TooLarge(state.lab.clone()))?;
    let shown = Shown { lab: state.lab.clone(), may_change };
    let title = format!("Lab {}", state.lab);
    let subtitle = format!("{} of fabric {}, as it is now", state.overlay.name(), state.fabric);
    hub.show(Some(shown.clone()));
    let looked = lab.look(EVERY, |sight| {
        let Sight { moment, broken, usage, disturbances, quiet } = sight;
        let events = disturbances.iter().map(|one| ("outage", words(one))).collect();
        let chunk = feed.take(&moment, Seen { broken, usage, quiet, events });
        hub.push(serde_json::to_string(&chunk).expect("a chunk is plain data"));
        for question in hub.asked() {
            let document = feed.document(&title, &subtitle);
            // Whoever asked may be gone.
            let _ = question.send(Beginning { shown: shown.clone(), next: hub.next(), document });
        }
        if is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    hub.show(None);
    Ok(looked?)
}

/// What probes have lost, in words.
fn words(disturbance: &Disturbance) -> String {
    let Disturbance { flows, longest, .. } = disturbance;
    let seconds = longest.as_secs_f64();
    let probes = if *flows == 1 { "a probe".to_owned() } else { format!("{flows} probes") };
    format!("{probes} between servers lost for {seconds:.2} s at most")
}
