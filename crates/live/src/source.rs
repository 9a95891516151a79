//! Looks at a lab ten times a second and tells the hub.

use std::ops::ControlFlow;
use std::time::Duration;

use weft_experiment::page::live::{Feed, Seen};
use weft_lab::{Disturbance, LabState, MovedServer, Onlooker, ProcessId, Sight};
use weft_scenario::engine::Overlay;

use crate::hub::{Beginning, Hub, Shown};
use crate::{LiveError, Which};

const EVERY: Duration = Duration::from_millis(100);
/// How often it is looked whether a run has made its next lab.
const NEXT_LAB: Duration = Duration::from_millis(200);

/// Shows the lab, or the run's labs one after the other, until it is over.
pub(crate) fn follow(which: &Which, hub: &Hub, is_over: &dyn Fn() -> bool) -> Result<(), LiveError> {
    let run = match which {
        Which::Named(name) => {
            show(&Onlooker::open(name)?, true, hub, is_over)?;
            // It may have become another one (`weft lab apply`).
            while !is_over() && LabState::load(name).is_ok_and(|state| state.ready) {
                show(&Onlooker::open(name)?, true, hub, is_over)?;
            }
            return Ok(());
        }
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
    let shown = Shown { lab: state.lab.clone(), may_change, servers_move: state.overlay == Overlay::Vl2 };
    let title = format!("Lab {}", state.lab);
    let subtitle = format!("{} of fabric {}, as it is now", state.overlay.name(), state.fabric);
    let mut away = state.moved.clone();
    hub.show(Some(shown.clone()));
    let looked = lab.look(EVERY, |sight| {
        let Sight { moment, broken, moved, usage, disturbances, quiet } = sight;
        let mut events: Vec<_> = disturbances.iter().map(|one| ("outage", words(one))).collect();
        if let Some(moved) = moved {
            events.extend(moves(&away, &moved).map(|words| ("move", words)));
            away = moved;
        }
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

/// Who is where, of those that were elsewhere before.
fn moves<'a>(before: &'a [MovedServer], now: &'a [MovedServer]) -> impl Iterator<Item = String> + 'a {
    let gone =
        now.iter().filter(|one| !before.contains(one)).map(|one| format!("{} is at {} now", one.server, one.edge));
    let is_home = |one: &&MovedServer| now.iter().all(|other| other.server != one.server);
    gone.chain(before.iter().filter(is_home).map(|one| format!("{} is home again", one.server)))
}

/// What probes have lost, in words.
fn words(disturbance: &Disturbance) -> String {
    let Disturbance { flows, longest, .. } = disturbance;
    let seconds = longest.as_secs_f64();
    let probes = if *flows == 1 { "a probe".to_owned() } else { format!("{flows} probes") };
    format!("{probes} between servers lost for {seconds:.2} s at most")
}
