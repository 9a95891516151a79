//! What a failure costs while it lasts, and how fast the fabric is back (VL2 5.3 in spirit).
//!
//! Times of faults and repairs are those that the engine recorded.

use weft_scenario::record::{EventRow, Records};

use super::Value;
use crate::analysis::series::{Cumulative, Window};
use crate::analysis::{Input, TrialRecords};

/// When it began and was repaired; goodput over that of the 4 s before: from 4 s after it, or half of it, to the repair, in its lowest
/// second, and in 5 s after the recovery; from the repair to the first second at nine tenths, and to the routes' return.
pub(super) const COLUMNS: &[&str] =
    &["from_s", "to_s", "settled_ratio", "dip_ratio", "after_ratio", "recovery_s", "routes_s"];

/// What counts as before: this long up to the fault.
const BEFORE_S: f64 = 4.0;
/// Flows need a few retransmission timeouts to find their new paths; the settled level is taken after them.
const SETTLE_S: f64 = 4.0;
/// What counts as after.
const AFTER_S: f64 = 5.0;
/// The fabric is back when one second carries this share of what it carried before.
const RECOVERED_RATIO: f64 = 0.9;
/// Step of the search for that second.
const STEP_S: f64 = 0.1;

/// The outages of a trial.
pub(super) fn rows(_: &Input<'_>, trial: &TrialRecords, _: Window) -> Vec<Vec<Value>> {
    let cells = |window: Window| {
        let outage = measure(&trial.records, window);
        let numbers = [window.from_s, window.to_s, outage.settled, outage.dip, outage.after, outage.recovery_s];
        let routes = outage.routes_s.map_or(Value::Null, Value::Real);
        numbers.into_iter().map(Value::Real).chain([routes]).collect()
    };
    outage_windows(&trial.records).into_iter().map(cells).collect()
}

/// From each fault to its repair, in order, as recorded.
fn outage_windows(records: &Records) -> Vec<Window> {
    let of_kind = |kind: &'static str| records.events.iter().filter(move |event| event.kind == kind);
    let repaired = |fault: &EventRow| {
        of_kind("repair")
            .find(|repair| repair.subject == fault.subject && repair.time_ns > fault.time_ns)
            .map(EventRow::time_s)
    };
    let window = |fault: &EventRow| Some(Window { from_s: fault.time_s(), to_s: repaired(fault)? });
    of_kind("fault").filter_map(window).collect()
}

struct Outage {
    settled: f64,
    dip: f64,
    recovery_s: f64,
    after: f64,
    routes_s: Option<f64>,
}

fn measure(records: &Records, outage: Window) -> Outage {
    let payload = Cumulative::of_payload(records);
    let before = payload.rate((outage.from_s - BEFORE_S).max(0.0), outage.from_s);
    let ratio = |from: f64, to: f64| payload.rate(from, to) / before;
    let settle_from = (outage.from_s + SETTLE_S).min((outage.from_s + outage.to_s) / 2.0);
    let seconds = (outage.seconds() / STEP_S) as usize;
    let dip = (0..seconds.saturating_sub((1.0 / STEP_S) as usize))
        .map(|step| outage.from_s + step as f64 * STEP_S)
        .map(|from| ratio(from, from + 1.0))
        .fold(f64::INFINITY, f64::min);
    let recovery_s = recovery(&payload, outage.to_s, before);
    let restored = |event: &&EventRow| event.kind == "routes-restored" && event.time_s() >= outage.to_s;
    Outage {
        settled: ratio(settle_from, outage.to_s),
        dip,
        recovery_s,
        after: ratio(outage.to_s + recovery_s, (outage.to_s + recovery_s + AFTER_S).min(payload.end())),
        routes_s: records.events.iter().find(restored).map(|event| event.time_s() - outage.to_s),
    }
}

/// Time from the repair to the start of the first second that carries enough; to the end of the records if none does.
fn recovery(payload: &Cumulative, repaired_s: f64, before: f64) -> f64 {
    let steps = ((payload.end() - repaired_s) / STEP_S).max(0.0) as usize;
    (0..steps)
        .map(|step| step as f64 * STEP_S)
        .find(|wait| payload.rate(repaired_s + wait, repaired_s + wait + 1.0) >= RECOVERED_RATIO * before)
        .unwrap_or_else(|| (payload.end() - repaired_s).max(0.0))
}
