//! Figures of calculations: cost by size, use of links by routing, capacity while devices fail.

use super::plots::{Figure, figure};
use super::{Level, LineChart, Mark, RowChart, Series};
use crate::analysis::Input;
use crate::analysis::model::{availability, link_use};

/// Points of a distribution function: more cannot be seen.
const CDF_POINTS: usize = 200;

/// Dollars for each server by design, one chart for each size.
pub(super) fn cost(input: &Input<'_>) -> Vec<Figure> {
    let Some(trial) = input.trials.first() else { return Vec::new() };
    let rows = &trial.records.networks;
    let mut sizes: Vec<u32> = rows.iter().map(|row| row.servers).collect();
    sizes.dedup();
    let chart = |servers: u32| {
        let of_size = rows.iter().filter(|row| row.servers == servers);
        let bar = |row: &weft_scenario::record::NetworkRow| {
            let label = format!("{}, 1:{}", row.design, row.oversubscription);
            (label, row.switches_usd / f64::from(row.servers), Mark::Bar { tick: None })
        };
        let title = format!("Cost of {servers} servers' network");
        let chart = RowChart {
            title: title.clone(),
            x_label: "dollars for each server, ToRs and cables left out".into(),
            rows: of_size.map(bar).collect(),
            ..RowChart::default()
        };
        figure(&title, "Switches between the ToRs, from records/networks.csv.", chart.render())
    };
    sizes.into_iter().map(chart).collect()
}

/// Distribution of the links' use by routing, over the most loaded link of adaptive routing (Figure 15).
pub(super) fn link_use(input: &Input<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut seen = Vec::new();
    for trial in input.trials {
        if seen.contains(&&trial.key.point) {
            continue;
        }
        seen.push(&trial.key.point);
        let rows = &trial.records.link_uses;
        let unit = link_use::sorted_uses(rows, "adaptive").last().copied().unwrap_or(f64::NAN);
        let line = |routing: &&str| {
            let uses = link_use::sorted_uses(rows, routing);
            let at = |place: usize| {
                let share = place as f64 / CDF_POINTS as f64;
                crate::stats::percentile_of_sorted(&uses, share).map(|used| (used / unit, share))
            };
            Series { label: (*routing).to_owned(), points: (0..=CDF_POINTS).filter_map(at).collect() }
        };
        let place = trial.key.point.join(", ");
        let title = if place.is_empty() { "Use of links".to_owned() } else { format!("Use of links, {place}") };
        let chart = LineChart {
            title: title.clone(),
            x_label: "use of a link / of adaptive routing's most loaded".into(),
            y_label: "share of links at or below".into(),
            series: link_use::ROUTINGS.iter().map(line).collect(),
            ..LineChart::default()
        };
        let caption = "Each link at its fullest over the day, first seed, from records/link_uses.csv. The paper's VLB \
                       ends at about 1.2, the other two at 1.";
        figures.push(figure(&title, caption, chart.render()));
    }
    figures
}

/// Capacity over time, and how much of the time it was at least so much.
pub(super) fn availability(input: &Input<'_>) -> Vec<Figure> {
    let Some(seed) = input.trials.first().map(|trial| trial.key.seed) else { return Vec::new() };
    let first: Vec<_> = input.trials.iter().filter(|trial| trial.key.seed == seed).collect();
    let label = |trial: &crate::analysis::TrialRecords| match trial.key.point.first() {
        Some(place) => place.clone(),
        None => trial.key.workload.clone(),
    };
    let over_time = |trial: &&crate::analysis::TrialRecords| {
        let days = |time_ns: u64| time_ns as f64 / 8.64e13;
        let steps = availability::relative(&trial.records)
            .flat_map(|(row, share)| [(days(row.time_ns), share), (days(row.time_ns + row.lasts_ns), share)]);
        Series { label: label(trial), points: steps.collect() }
    };
    let time = LineChart {
        title: "Capacity over a month of failures".into(),
        x_label: "time (days)".into(),
        y_label: "capacity / when whole".into(),
        series: first.iter().map(over_time).collect(),
        ..LineChart::default()
    };
    let mut lines: Vec<Series> = Vec::new();
    for place in input.spec.axes.first().map_or_else(|| vec![String::new()], |axis| axis.labels.clone()) {
        let here = input.trials.iter().filter(|trial| trial.key.point.first().map_or("", String::as_str) == place);
        let mut shares: Vec<(f64, f64)> = here
            .flat_map(|trial| availability::relative(&trial.records))
            .map(|(row, share)| (availability::left(row, share), row.lasts_ns as f64))
            .collect();
        shares.sort_by(|a, b| a.0.total_cmp(&b.0));
        let all: f64 = shares.iter().map(|share| share.1).sum();
        let mut so_far = 0.0;
        let points = shares.into_iter().map(|(share, time)| {
            so_far += time;
            (share, (so_far / all).log10())
        });
        lines.push(Series { label: place, points: points.collect() });
    }
    let distribution = LineChart {
        title: "How often how little is left".into(),
        x_label: "capacity left to servers whose ToR works".into(),
        y_label: "share of time at or below (power of ten)".into(),
        y_low: Some(-6.0),
        series: lines,
        levels: vec![Level { value: -3.0, label: "a thousandth of the time".into() }],
        ..LineChart::default()
    };
    vec![
        figure("Capacity over time", "First seed, from records/availability.csv.", time.render()),
        figure("How often how little is left", "All seeds, from records/availability.csv.", distribution.render()),
    ]
}
