//! Series that are made up: noise of a known size, with and without a step.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use statrs::distribution::{ContinuousCDF, Normal};

use super::*;

/// Runs of a group: each metric is 100 with this spread from run to run, times a factor.
fn group(name: &str, hour: u32, runs: u32, spread: f64, factor: f64, random: &mut Pcg64) -> Vec<Point> {
    let noise = Normal::new(100.0, spread).unwrap();
    let metrics = [("pace", Relation::AtLeast), ("latency", Relation::AtMost), ("count", Relation::Info)];
    let mut point = |run: u32| Point {
        folder: format!("runs/{name}-{run}").into(),
        subject: "bench".into(),
        started_utc: format!("2026-01-01T{hour:02}:{run:02}:00Z"),
        build: name.into(),
        kernel: "linux 6.18".into(),
        readings: metrics
            .map(|(id, relation)| {
                Reading::new(id, noise.inverse_cdf(random.random_range(0.001..0.999)) * factor, "x", relation)
            })
            .to_vec(),
    };
    (0..runs).map(&mut point).collect()
}

fn changes(points: &[Point]) -> Vec<(String, Change)> {
    rows(points, By::Build, 0.01).into_iter().filter_map(|row| Some((row.metric, row.change?))).collect()
}

#[test]
fn equal_builds_are_not_told_apart_and_a_slower_one_is() {
    let mut random = Pcg64::seed_from_u64(1);
    let mut alarms = 0;
    for _ in 0..200 {
        let before = group("a", 1, 5, 1.0, 1.0, &mut random);
        let same = group("b", 2, 5, 1.0, 1.0, &mut random);
        alarms += changes(&[before, same].concat()).iter().filter(|(_, change)| *change != Change::None).count();
    }
    // 200 comparisons at one in a thousand.
    assert!(alarms <= 2, "{alarms} false alarms");
    let mut found = 0;
    for _ in 0..50 {
        let before = group("a", 1, 5, 1.0, 1.0, &mut random);
        let slower = group("b", 2, 5, 1.0, 0.9, &mut random);
        let all = changes(&[before, slower].concat());
        found += usize::from(all[0] == ("pace".to_owned(), Change::Worse));
        assert!(all.iter().all(|(metric, change)| metric != "latency" || *change != Change::Worse), "{all:?}");
    }
    assert!(found >= 48, "a tenth of the pace is missed {} times of 50", 50 - found);
}

#[test]
fn a_change_smaller_than_what_is_asked_for_is_none() {
    let point = |build: &str, hour: u32, run: u32, value: f64| Point {
        folder: format!("{build}/{run}").into(),
        subject: "s".into(),
        started_utc: format!("2026-01-01T{hour:02}:{run:02}:00Z"),
        build: build.into(),
        kernel: "k".into(),
        readings: vec![Reading::new("m", value, "x", Relation::AtLeast)],
    };
    let points = |after: f64| {
        vec![point("a", 1, 1, 100.0), point("a", 1, 2, 100.0), point("b", 2, 1, after), point("b", 2, 2, after)]
    };
    assert_eq!(changes(&points(100.9))[0].1, Change::None);
    assert_eq!(changes(&points(101.1))[0].1, Change::Better);
    assert_eq!(changes(&points(98.0))[0].1, Change::Worse);
    let single = [point("a", 1, 1, 100.0), point("b", 2, 1, 50.0)];
    assert_eq!(changes(&single)[0].1, Change::Unknown, "one run shows no spread");
    let zeros =
        |after| [point("a", 1, 1, 0.0), point("a", 1, 2, 0.0), point("b", 2, 1, after), point("b", 2, 2, after)];
    assert_eq!((changes(&zeros(0.0))[0].1, changes(&zeros(3.0))[0].1), (Change::None, Change::Better));
}

#[test]
fn groups_stand_in_the_order_of_time_and_take_turns() {
    let mut random = Pcg64::seed_from_u64(2);
    let (late, early) = (group("new", 5, 3, 1.0, 1.0, &mut random), group("old", 4, 3, 1.0, 1.0, &mut random));
    let all = rows(&[late, early].concat(), By::Build, 0.01);
    let groups: Vec<_> =
        all.iter().filter(|row| row.metric == "pace").map(|row| (row.group.as_str(), row.runs)).collect();
    assert_eq!(groups, [("old", 3), ("new", 3)]);
    let by_folder = rows(&group("old", 4, 3, 1.0, 1.0, &mut random), By::Folder, 0.01);
    assert!(by_folder.iter().all(|row| row.group == "runs" && row.runs == 3 && row.change.is_none()));
}
