//! Crossings of which a known share arrives (trill/load).

use weft_scenario::record::{CrossingRow, Records};

use super::{close, shipped};
use crate::analysis::TrialKey;
use crate::analysis::testing::analyse;

/// A load of which `received` of 1,000 frames arrived, sent as asked; one path carries 25 Mbit/s.
fn crossed(frame_bytes: u32, load_percent: u32, received: u64) -> CrossingRow {
    let asked_per_s = f64::from(load_percent) / 100.0 * 25e6 / (f64::from(frame_bytes + 20) * 8.0);
    CrossingRow {
        frame_bytes,
        load_percent,
        asked_per_s,
        wall_ns: (1e12 / asked_per_s) as u64,
        sent_frames: 1_000,
        received_frames: received,
        ..CrossingRow::default()
    }
}

fn rows(key: &TrialKey) -> Vec<CrossingRow> {
    let of = |bytes, most| [crossed(bytes, 100, 1_000), crossed(bytes, 450, most)];
    let [small, large] = if key.overlay.name() == "rbridge" { [750, 950] } else { [240, 250] };
    [of(64, small), of(1518, large)].concat()
}

#[test]
fn load_takes_the_most_that_arrived_at_any() {
    let spec = shipped("trill/load");
    let found = analyse(&spec, |key| Records { crossings: rows(key), ..Records::default() });
    assert_eq!(found.problems, []);
    let near = |name: &str, want: f64| {
        let got = super::value(&found, name);
        assert!((got - want).abs() < 1e-4, "{name}: {got}");
    };
    near("trill_over_stp.64", 750.0 / 240.0);
    near("trill_over_stp_large", 3.8);
    near("delivered.bridge.64.450", 0.24);
    near("gain_limit.64", 4.0 * 84.0 / 108.0);
    near("most_paths.rbridge.1518", 4.5 * 0.95);
    near("most_paths.bridge.64", 4.5 * 0.24);
}

#[test]
fn a_load_that_was_not_offered_says_nothing() {
    let spec = shipped("trill/load");
    let late = |row: CrossingRow| CrossingRow { wall_ns: row.wall_ns * 2, ..row };
    let held_up = |rows: Vec<CrossingRow>| {
        rows.into_iter().map(|row| if row.load_percent == 450 { late(row) } else { row }).collect()
    };
    let found = analyse(&spec, |key| Records { crossings: held_up(rows(key)), ..Records::default() });
    close(&found, "delivered.bridge.64.100", 1.0);
    assert!(!found.metrics.contains_key("delivered.bridge.64.450"));
    assert!(!found.metrics.contains_key("trill_over_stp.64"), "more might have arrived at 450 %");
    assert_eq!(analyse(&spec, |_| Records::default()).problems.len(), 6, "every trial of two overlays");
}
