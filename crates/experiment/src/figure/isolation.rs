//! Figures 11 and 12: goodput of two services over time, the short flows that one opens, the windows of the other's flows.

use weft_scenario::record::FlowRow;

use super::plots::{Figure, figure};
use super::{LineChart, Series, Span};
use crate::analysis::Input;
use crate::analysis::isolation::Case;
use crate::analysis::series::Cumulative;

/// Bins of goodput.
const BINS: f64 = 120.0;

/// Of the first trial of each workload.
pub(super) fn services<'a>(input: &Input<'a>) -> Vec<Figure> {
    let first = |workload: &'a String| {
        let trial = input.trials.iter().find(|trial| trial.key.workload == *workload)?;
        Some((workload.as_str(), Case::of(input, trial)?))
    };
    let cases: Vec<_> = input.spec.workload.keys().filter_map(first).collect();
    cases
        .iter()
        .flat_map(|(workload, case)| {
            [Some(goodput(workload, case)), flows_opened(workload, case), Some(windows(workload, case))]
        })
        .flatten()
        .collect()
}

fn during(case: &Case<'_>) -> Vec<Span> {
    vec![Span { from: case.during.from_s, to: case.during.to_s, label: "service two".into() }]
}

fn chart(title: String, y_label: &str, series: Vec<Series>, case: &Case<'_>) -> LineChart {
    let (x_label, y_label, spans) = ("time (s)".into(), y_label.into(), during(case));
    LineChart { title, x_label, y_label, series, spans, ..LineChart::default() }
}

fn goodput(workload: &str, case: &Case<'_>) -> Figure {
    let line = |label: &str, payload: &Cumulative| {
        let points =
            payload.rates(payload.end() / BINS).into_iter().map(|(time, bytes)| (time, 8.0 * bytes / 1e6)).collect();
        Series { label: label.to_owned(), points }
    };
    let series = vec![line("service one", &case.one), line("service two", &case.two)];
    let title = format!("Aggregate goodput of both services: {workload}");
    let caption = "Payload that arrived at each service's servers, first trial, from records/services.csv.";
    figure(&title, caption, chart(title.clone(), "goodput (Mbit/s)", series, case).render())
}

fn flows_opened(workload: &str, case: &Case<'_>) -> Option<Figure> {
    let points = Some(case.bursts()).filter(|bursts| !bursts.is_empty())?;
    let series = vec![Series { label: "service two".into(), points }];
    let title = format!("TCP connections that service two opens at once: {workload}");
    let caption = "Connections of each burst, as the plan asks for them.";
    Some(figure(&title, caption, chart(title.clone(), "connections", series, case).render()))
}

fn windows(workload: &str, case: &Case<'_>) -> Figure {
    let line = |flow: &FlowRow| Series { label: format!("server {}", flow.from), points: case.windows_of(flow) };
    let series = case.flows(true).map(line).collect();
    let title = format!("Congestion windows of service one's flows: {workload}");
    let caption = "Each flow of service one by its sending server, first trial, from records/tcp.csv.";
    figure(&title, caption, chart(title.clone(), "congestion window (segments)", series, case).render())
}
