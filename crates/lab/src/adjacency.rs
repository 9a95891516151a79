//! Watches OSPF adjacencies and BGP sessions during a run through the daemons' logs: in a run without faults none may
//! change.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weft_scenario::record::EventRow;

use crate::frr::frr_log;
use crate::plan::NodePlan;

/// Remembers how far each log went when a run began.
pub(crate) struct AdjacencyWatch {
    logs: Vec<(String, PathBuf, u64)>,
    start: SystemTime,
}

impl AdjacencyWatch {
    /// Begins to watch all switches.
    pub(crate) fn start(plans: &[NodePlan]) -> Self {
        let logs = plans.iter().flat_map(|plan| {
            let daemons = plan.frr.iter().flat_map(|frr| frr.routing_daemons());
            daemons.map(move |daemon| (plan, frr_log(&plan.namespace, daemon)))
        });
        let logs = logs.map(|(plan, path)| {
            let length = std::fs::metadata(&path).map_or(0, |data| data.len());
            (plan.name.clone(), path, length)
        });
        Self { logs: logs.collect(), start: SystemTime::now() }
    }

    /// Every change of a full adjacency since the start, in order of time.
    pub(crate) fn changes(&self) -> Vec<EventRow> {
        let mut events: Vec<EventRow> = self.logs.iter().flat_map(|log| self.changes_in(log)).collect();
        events.sort_by_key(|event| event.time_ns);
        events
    }

    fn changes_in(&self, (node, path, offset): &(String, PathBuf, u64)) -> Vec<EventRow> {
        let mut text = String::new();
        let read = File::open(path).and_then(|mut file| {
            file.seek(SeekFrom::Start(*offset))?;
            file.read_to_string(&mut text)
        });
        if read.is_err() {
            // A log that cannot be read must not look like a quiet one.
            return vec![EventRow { time_ns: 0, kind: "adjacency".into(), subject: format!("{node}: log unreadable") }];
        }
        text.lines().filter_map(|line| self.event(node, line).or_else(|| self.session_event(node, line))).collect()
    }

    /// `2026/11/21 05:35:09.160 OSPF: [...] AdjChg: Nbr 10.2.0.1, ... on x:10.128.0.0: Full -> Deleted (...)`
    fn event(&self, node: &str, line: &str) -> Option<EventRow> {
        let change = line.split_once("AdjChg: Nbr ")?.1;
        let (place, states) = change.rsplit_once(": ")?;
        let (from, to) = states.split_once(" -> ")?;
        if from != "Full" && !to.starts_with("Full") {
            return None;
        }
        let interface = place.rsplit_once(" on ").map_or("?", |(_, place)| place.split(':').next().unwrap_or("?"));
        Some(self.row(line, format!("{node}:{interface} {states}")))
    }

    /// `2026/11/22 12:57:10.123 BGP: [...] %ADJCHANGE: neighbor 192.0.2.1(Unknown) in vrf default Down Peer closed the session`
    fn session_event(&self, node: &str, line: &str) -> Option<EventRow> {
        let change = line.split_once("%ADJCHANGE: neighbor ")?.1;
        let (neighbour, state) = change.split_once(" in vrf default ")?;
        let address = neighbour.split('(').next()?;
        Some(self.row(line, format!("{node}: BGP session with {address} {state}")))
    }

    fn row(&self, line: &str, subject: String) -> EventRow {
        let since_start = log_time(line).and_then(|time| time.duration_since(self.start).ok()).unwrap_or_default();
        EventRow { time_ns: since_start.as_nanos() as u64, kind: "adjacency".into(), subject }
    }
}

/// Reads FRR's time stamp `YYYY/MM/DD hh:mm:ss.mmm`, written in UTC.
fn log_time(line: &str) -> Option<SystemTime> {
    let mut fields = line.get(..23)?.split(['/', ' ', ':', '.']).map(|field| field.parse::<u64>().ok());
    let mut next = || fields.next().flatten();
    let (year, month, day) = (next()?, next()?, next()?);
    let (hour, minute, second, millis) = (next()?, next()?, next()?, next()?);
    let days = days_since_1970(year, month, day)?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + millis))
}

/// Days from 1 January 1970 in the Gregorian calendar.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    // Counting years from March puts the leap day at the end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    days.checked_sub(719_469)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_of_full_adjacencies_count() {
        let start = log_time("2026/11/21 05:35:09.000").unwrap();
        let watch = AdjacencyWatch { logs: Vec::new(), start };
        let line = |states: &str| {
            format!(
                "2026/11/21 05:35:09.160 OSPF: [Y05P2-YJVXY] AdjChg: Nbr 10.2.0.1, NbrIP 10.128.0.1 (default) on up1:10.128.0.0: {states}"
            )
        };
        let lost = watch.event("tor1", &line("Full -> Deleted (InactivityTimer)")).unwrap();
        assert_eq!((lost.time_ns, lost.kind.as_str()), (160_000_000, "adjacency"));
        assert_eq!(lost.subject, "tor1:up1 Full -> Deleted (InactivityTimer)");
        assert!(watch.event("tor1", &line("Loading -> Full (LoadingDone)")).is_some());
        assert!(watch.event("tor1", &line("Init -> ExStart (AdjOK)")).is_none());
        assert!(watch.event("tor1", "2026/11/21 05:35:08.907 OSPF: [X] ASBR[default:Status:1]: Update").is_none());
    }

    #[test]
    fn time_stamps_are_utc() {
        let at = |text| log_time(text).map(|time| time.duration_since(UNIX_EPOCH).unwrap().as_millis());
        assert_eq!(at("1970/01/01 00:00:00.000"), Some(0));
        assert_eq!(at("2000/03/01 00:00:00.001"), Some(951_868_800_001));
        assert_eq!(at("2024/02/29 23:59:59.999"), Some(1_709_251_199_999));
        assert_eq!(at("not a time at all......"), None);
    }
}
