//! What happened to the fabric, with the nodes and links that it happened to.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::id::LinkId;
use weft_scenario::record::{EventRow, Records};
use weft_scenario::topology::Fabric;

use super::picture::Picture;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    pub time_ns: u64,
    /// `fault`, `repair`, `routes-restored`, `ready`, `adjacency`; `move`, `arrival` and `told` of a server that moves.
    pub kind: String,
    /// What it happened to, in words.
    pub subject: String,
    /// Drawn nodes that a fault or repair names.
    pub nodes: Vec<usize>,
    /// Drawn links that it takes down or mends, as a whole.
    pub links: Vec<usize>,
    /// Whether they stay up and lose everything.
    pub silent: bool,
}

impl Event {
    /// Something that happened to nothing that is drawn.
    pub(super) fn said(time_ns: u64, kind: &str, subject: String) -> Self {
        Self { time_ns, kind: kind.to_owned(), subject, nodes: Vec::new(), links: Vec::new(), silent: false }
    }
}

/// A fault or its repair.
pub(super) fn struck_event(picture: &Picture<'_>, time_ns: u64, kind: &str, fault: &FaultKind) -> Event {
    let (nodes, links) = struck(picture.real, &fault.subject());
    Event {
        nodes: nodes.into_iter().filter_map(|node| picture.node(node)).collect(),
        links: picture.whole_links(&links),
        silent: fault.is_silent(),
        ..Event::said(time_ns, kind, fault.subject())
    }
}

/// All events of a trial, in order of time.
pub(super) fn of(picture: &Picture<'_>, faults: &[Fault], records: &Records) -> Vec<Event> {
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut rows: Vec<&EventRow> = records.events.iter().collect();
    rows.sort_by_key(|row| row.time_ns);
    let mut events = Vec::new();
    for row in rows {
        let number = seen.entry((&row.kind, &row.subject)).or_default();
        events.push(event(picture, faults, row, *number));
        *number += 1;
    }
    events.extend(moves(records));
    events.sort_by_key(|event| event.time_ns);
    events
}

/// The event of a row: the `number`-th of its kind and subject is that of the `number`-th fault of this subject.
fn event(picture: &Picture<'_>, faults: &[Fault], row: &EventRow, number: usize) -> Event {
    let mut of_subject: Vec<&Fault> = faults.iter().filter(|fault| fault.subject() == row.subject).collect();
    of_subject.sort_by_key(|fault| fault.at);
    let silent = of_subject.get(number).or(of_subject.last()).is_some_and(|fault| fault.kind.is_silent());
    let acts = row.kind == "fault" || row.kind == "repair";
    let (nodes, links) = if acts { struck(picture.real, &row.subject) } else { (Vec::new(), Vec::new()) };
    Event {
        time_ns: row.time_ns,
        kind: row.kind.clone(),
        subject: row.subject.clone(),
        nodes: nodes.into_iter().filter_map(|node| picture.node(node)).collect(),
        links: picture.whole_links(&links),
        silent: acts && silent,
    }
}

/// The node of this name and all its links, or the links between two nodes.
fn struck(fabric: &Fabric, subject: &str) -> (Vec<usize>, Vec<usize>) {
    if let Some(id) = fabric.find(subject) {
        return (vec![id.index()], fabric.links_of(id).iter().map(|link| link.index()).collect());
    }
    let name = |id| fabric.node(id).name.as_str();
    let is_it = |number: &usize| {
        let link = fabric.link(LinkId(*number as u32));
        let (a, b) = (name(link.a.node), name(link.b.node));
        [(a, b), (b, a)].iter().any(|(one, other)| subject == format!("{one}-{other}"))
    };
    (Vec::new(), (0..fabric.links().len()).filter(is_it).collect())
}

/// Moves of servers; rows do not say whose.
fn moves(records: &Records) -> impl Iterator<Item = Event> {
    records.migrations.iter().flat_map(|row| {
        let steps = [
            (row.left_ns, "move", "a server loses its link"),
            (row.arrived_ns, "arrival", "the server is behind its new ToR"),
            (row.told_ns, "told", "the directory is told"),
        ];
        steps.map(|(time_ns, kind, subject)| Event {
            time_ns,
            kind: kind.to_owned(),
            subject: subject.to_owned(),
            nodes: Vec::new(),
            links: Vec::new(),
            silent: false,
        })
    })
}

#[cfg(test)]
mod tests {
    use weft_scenario::fault::FaultKind;
    use weft_scenario::record::MigrationRow;
    use weft_scenario::topology::{TestbedParams, vl2_testbed};
    use weft_scenario::units::Nanos;

    use super::*;

    fn row(time_ns: u64, kind: &str, subject: &str) -> EventRow {
        EventRow { time_ns, kind: kind.to_owned(), subject: subject.to_owned() }
    }

    fn fault(at: u64, kind: FaultKind) -> Fault {
        Fault { at: Nanos(at), lasts: Some(Nanos(5)), kind }
    }

    #[test]
    fn faults_name_their_links_from_either_end_and_switches_all_of_theirs() {
        let fabric = vl2_testbed(&TestbedParams::default()).unwrap();
        let link = |a: &str, b: &str| FaultKind::LinkDown { a: a.to_owned(), b: b.to_owned() };
        let silent = FaultKind::SwitchSilent { node: "int2".to_owned() };
        let faults = [fault(10, link("agg1", "int1")), fault(20, silent)];
        let events = [
            row(20, "fault", "int2"),
            row(10, "fault", "agg1-int1"),
            row(25, "repair", "int2"),
            row(26, "adjacency", "int2"),
        ];
        let records = Records { events: events.to_vec(), ..Records::default() };
        let events = of(&Picture::of(&fabric).unwrap(), &faults, &records);
        assert_eq!((events[0].links.len(), events[0].nodes.len(), events[0].silent), (1, 0, false));
        let down = fabric.link(LinkId(events[0].links[0] as u32));
        assert_eq!([down.a.node, down.b.node].map(|id| fabric.node(id).name.as_str()), ["int1", "agg1"]);
        assert_eq!((events[1].links.len(), events[1].nodes.len(), events[1].silent), (3, 1, true));
        assert_eq!((events[2].kind.as_str(), events[2].links.len()), ("repair", 3));
        assert_eq!((events[3].links.len(), events[3].silent), (0, false), "an adjacency changes no link");
    }

    #[test]
    fn a_link_that_fails_twice_is_silent_when_its_own_fault_is() {
        let fabric = vl2_testbed(&TestbedParams::default()).unwrap();
        let (a, b) = ("int1".to_owned(), "agg1".to_owned());
        let faults =
            [fault(90, FaultKind::LinkSilent { a: a.clone(), b: b.clone() }), fault(10, FaultKind::LinkDown { a, b })];
        let rows = [row(10, "fault", "int1-agg1"), row(15, "repair", "int1-agg1"), row(90, "fault", "int1-agg1")];
        let events =
            of(&Picture::of(&fabric).unwrap(), &faults, &Records { events: rows.to_vec(), ..Records::default() });
        assert_eq!(events.iter().map(|event| event.silent).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn a_move_has_its_three_moments() {
        let fabric = vl2_testbed(&TestbedParams::default()).unwrap();
        let row = MigrationRow { left_ns: 30, arrived_ns: 40, told_ns: 50, ..MigrationRow::default() };
        let events = of(&Picture::of(&fabric).unwrap(), &[], &Records { migrations: vec![row], ..Records::default() });
        assert_eq!(
            events.iter().map(|event| (event.time_ns, event.kind.as_str())).collect::<Vec<_>>(),
            [(30, "move"), (40, "arrival"), (50, "told")]
        );
    }
}
