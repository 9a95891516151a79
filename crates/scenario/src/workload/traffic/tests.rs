//! Traffic at a load: that it has the load, that it is Poisson, and what is refused.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::topology::{LeafSpineParams, OutputQueuedParams, leaf_spine, output_queued};
use crate::units::BitsPerSec;
use crate::workload::{FLOWS_MAX, FlowClass, Workload};

const SECOND: Nanos = Nanos(1_000_000_000);
const TEN_GBPS: BitsPerSec = BitsPerSec(10_000_000_000);

fn servers() -> Servers {
    Servers::alike(100, TEN_GBPS, 20)
}

fn background(load_percent: u32) -> BackgroundSpec {
    BackgroundSpec {
        sizes: SizeDistribution::WebSearch,
        load_percent,
        max_flow_bytes: None,
        size_divisor: 1,
        between_racks_only: false,
        servers_per_rack: None,
    }
}

fn query(rate: QueryRate) -> QuerySpec {
    QuerySpec { fan_in: 40, response: Bytes(1_000_000), rate, jitter: Nanos(0) }
}

fn traffic(background: Option<BackgroundSpec>, query: Option<QuerySpec>) -> TrafficSpec {
    TrafficSpec { duration: SECOND, background, query }
}

fn flows(spec: &TrafficSpec, seed: u64) -> Vec<FlowSpec> {
    Workload::Traffic(spec.clone()).open_loop_flows(&servers(), seed).unwrap()
}

fn bytes(flows: &[FlowSpec]) -> f64 {
    flows.iter().map(|flow| flow.bytes as f64).sum()
}

/// 100 servers of 10 Gb/s for a second at 60 %: 75 GB of layer 1, of which 2920 of 3154 are payload.
#[test]
fn background_has_the_load_that_was_asked_for() {
    let flows = flows(&traffic(Some(background(60)), None), 1);
    let ratio = bytes(&flows) / (75e9 * 2920.0 / 3154.0);
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
    assert!(flows.is_sorted_by_key(|flow| flow.start_ns) && flows.last().unwrap().start_ns < SECOND.0);
    assert!(flows.iter().all(|flow| flow.class == FlowClass::Background && flow.request.is_none()));
}

#[test]
fn the_load_stays_when_sizes_are_divided_or_cut() {
    let wanted = 75e9 * 2920.0 / 3154.0;
    for (size_divisor, max_flow_bytes) in [(10, None), (1, Some(Bytes(3_000_000))), (10, Some(Bytes(100_000)))] {
        let spec = BackgroundSpec { size_divisor, max_flow_bytes, ..background(60) };
        let flows = flows(&traffic(Some(spec), None), 1);
        let ratio = bytes(&flows) / wanted;
        assert!((ratio - 1.0).abs() < 0.03, "/{size_divisor} <={max_flow_bytes:?}: {ratio}");
        assert!(max_flow_bytes.is_none_or(|most| flows.iter().all(|flow| flow.bytes <= most.0)));
    }
}

/// In a Poisson process the gaps' standard deviation is their mean, and all of a server's flows are one process.
#[test]
fn arrivals_are_a_poisson_process_for_every_sender() {
    let spec = BackgroundSpec { sizes: SizeDistribution::Fixed(Bytes(10_000)), ..background(50) };
    let spec = TrafficSpec { duration: Nanos(200_000_000), ..traffic(Some(spec), None) };
    let flows = flows(&spec, 3);
    for from in [0, 57, 99] {
        let starts: Vec<f64> = flows.iter().filter(|flow| flow.from == from).map(|flow| flow.start_ns as f64).collect();
        let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // 10 kB at half of 10 Gb/s x 2920 / 3154: every 17.28 us.
        assert!((mean / 17_282.0 - 1.0).abs() < 0.03, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.04, "{mean} {variance}");
    }
}

#[test]
fn receivers_are_all_others_or_all_in_other_racks() {
    let fixed = BackgroundSpec { sizes: SizeDistribution::Fixed(Bytes(10_000)), ..background(50) };
    let receivers = |spec: BackgroundSpec| {
        let spec = TrafficSpec { duration: Nanos(200_000_000), ..traffic(Some(spec), None) };
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for flow in flows(&spec, 1).iter().filter(|flow| flow.from == 25) {
            *counts.entry(flow.to).or_default() += 1;
        }
        counts
    };
    let all = receivers(fixed.clone());
    assert_eq!(all.keys().copied().collect::<Vec<_>>(), (0..100).filter(|to| *to != 25).collect::<Vec<_>>());
    let mean = all.values().sum::<u32>() / 99;
    assert!(all.values().all(|count| count.abs_diff(mean) < mean / 2), "{all:?}");
    let elsewhere = receivers(BackgroundSpec { between_racks_only: true, ..fixed });
    let expected: Vec<u32> = (0..100).filter(|to| !(20..40).contains(to)).collect();
    assert_eq!(elsewhere.keys().copied().collect::<Vec<_>>(), expected);
}

/// The ideal switch has no racks, so the plan says what a rack is.
#[test]
fn the_ideal_switch_and_the_fabric_get_the_same_flows() {
    let mut params = LeafSpineParams { spines: 5, leaves: 5, servers_per_leaf: 20, ..LeafSpineParams::default() };
    params.links.server_rate = TEN_GBPS;
    let fabric = Servers::of(&leaf_spine(&params).unwrap());
    let ideal = Servers::of(&output_queued(&OutputQueuedParams::default()).unwrap());
    let elsewhere = BackgroundSpec { between_racks_only: true, servers_per_rack: Some(20), ..background(30) };
    for spec in
        [traffic(Some(elsewhere.clone()), None), traffic(Some(background(30)), Some(query(QueryRate::LoadPercent(10))))]
    {
        assert_eq!(spec.flows(&fabric, 1), spec.flows(&ideal, 1));
        assert_ne!(spec.flows(&fabric, 1), spec.flows(&fabric, 2));
    }
    let own_racks = BackgroundSpec { servers_per_rack: None, ..elsewhere.clone() };
    assert_eq!(
        traffic(Some(own_racks.clone()), None).flows(&fabric, 1),
        traffic(Some(elsewhere), None).flows(&fabric, 1)
    );
    assert_eq!(traffic(Some(own_racks), None).flows(&ideal, 1), Err(WorkloadError::OneRack));
}

#[test]
fn a_query_is_answered_by_distinct_others_at_once_and_whole() {
    let spec = QuerySpec { response: Bytes(1_000_007), ..query(QueryRate::Interval(Nanos(50_000_000))) };
    let flows = flows(&traffic(None, Some(spec)), 1);
    let mut queries: BTreeMap<u32, Vec<FlowSpec>> = BTreeMap::new();
    for flow in &flows {
        assert_eq!(flow.class, FlowClass::Query);
        queries.entry(flow.request.unwrap()).or_default().push(*flow);
    }
    // 100 clients ask 20 times each on average.
    assert!(queries.len().abs_diff(2_000) < 200, "{}", queries.len());
    assert!(queries.keys().copied().eq(0..queries.len() as u32));
    for answers in queries.values() {
        let workers: BTreeSet<u32> = answers.iter().map(|flow| flow.from).collect();
        let client = answers[0].to;
        assert_eq!((workers.len(), answers.len()), (40, 40));
        assert!(!workers.contains(&client));
        assert!(answers.iter().all(|flow| flow.to == client && flow.start_ns == answers[0].start_ns));
        assert_eq!(answers.iter().map(|flow| flow.bytes).sum::<u64>(), 1_000_007);
        assert!(answers.iter().all(|flow| flow.bytes.abs_diff(25_000) <= 1));
    }
    let asked: Vec<u64> = queries.values().map(|answers| answers[0].start_ns).collect();
    assert!(asked.is_sorted());
}

#[test]
fn jitter_delays_responses_by_less_than_it_is() {
    let pace = QueryRate::Interval(Nanos(50_000_000));
    let spec = QuerySpec { jitter: Nanos(10_000), ..query(pace) };
    let flows = flows(&traffic(None, Some(spec)), 1);
    assert!(flows.is_sorted_by_key(|flow| flow.start_ns));
    let mut spans: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for flow in &flows {
        let span = spans.entry(flow.request.unwrap()).or_insert((u64::MAX, 0));
        *span = (span.0.min(flow.start_ns), span.1.max(flow.start_ns));
    }
    let widths: Vec<u64> = spans.values().map(|(first, last)| last - first).collect();
    // The range of 40 uniform numbers is 39 / 41 of the whole on average.
    let mean = widths.iter().sum::<u64>() / widths.len() as u64;
    assert!(widths.iter().all(|width| *width <= 10_000) && mean.abs_diff(9_512) < 100, "{mean}");
}

#[test]
fn queries_have_the_load_that_was_asked_for_beside_the_background() {
    let spec = TrafficSpec {
        duration: Nanos(4 * SECOND.0),
        ..traffic(Some(background(50)), Some(query(QueryRate::LoadPercent(20))))
    };
    let (queries, others): (Vec<FlowSpec>, Vec<FlowSpec>) =
        flows(&spec, 1).into_iter().partition(|flow| flow.class == FlowClass::Query);
    let whole = 4.0 * 125e9 * 2920.0 / 3154.0;
    let (query, background) = (bytes(&queries) / whole, bytes(&others) / whole);
    assert!((query - 0.2).abs() < 0.004 && (background - 0.5).abs() < 0.01, "{query} {background}");
}

#[test]
fn adding_queries_leaves_the_background_as_it_was() {
    let alone = flows(&traffic(Some(background(40)), None), 1);
    let mut both = flows(&traffic(Some(background(40)), Some(query(QueryRate::LoadPercent(5)))), 1);
    both.retain(|flow| flow.class == FlowClass::Background);
    assert_eq!(alone, both);
}

/// Computed apart, from the published definitions of SplitMix64, PCG XSL-RR 128/64 and Lemire's method and the tables.
#[test]
fn a_seed_gives_the_same_flows_on_every_machine() {
    let all = flows(&traffic(Some(background(60)), Some(query(QueryRate::LoadPercent(10)))), 1);
    let begin = |from: u32| -> Vec<(u32, u64, u64)> {
        let mine = all.iter().filter(|flow| flow.class == FlowClass::Background && flow.from == from);
        mine.take(4).map(|flow| (flow.to, flow.bytes, flow.start_ns)).collect()
    };
    let first =
        [(53, 5_710_409, 1_443_228), (99, 63_266, 1_750_671), (61, 6_273, 3_826_766), (55, 4_081_789, 5_015_583)];
    assert_eq!(begin(0), first);
    let last = [(66, 20_314, 4_950_094), (63, 40_589, 5_244_927), (1, 56_664, 5_498_904), (24, 71_132, 5_639_647)];
    assert_eq!(begin(99), last);
    let answers: Vec<(u32, u64)> = all
        .iter()
        .filter(|flow| flow.class == FlowClass::Query && flow.to == 7)
        .map(|flow| (flow.from, flow.start_ns))
        .collect();
    assert_eq!(answers[..4], [57, 50, 45, 62].map(|worker| (worker, 2_443_511)));
    assert_eq!(answers[40..44], [2, 29, 48, 45].map(|worker| (worker, 4_841_381)));
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let pace = |rate| traffic(None, Some(query(rate)));
    let with = |background| traffic(Some(background), None);
    let asking = |fan_in, response| {
        traffic(None, Some(QuerySpec { fan_in, response: Bytes(response), ..query(QueryRate::Interval(SECOND)) }))
    };
    for (spec, message) in [
        (traffic(None, None), "neither `background` nor `query`"),
        (TrafficSpec { duration: Nanos(0), ..with(background(1)) }, "`duration` is 0"),
        (TrafficSpec { duration: Nanos(1), ..with(background(1)) }, "no flow starts within `duration`"),
        (with(background(0)), "`background.load_percent` is 0; choose 1 to 100"),
        (with(background(101)), "`background.load_percent` is 101; choose 1 to 100"),
        (pace(QueryRate::LoadPercent(101)), "`query.rate.load-percent` is 101"),
        (pace(QueryRate::LoadPercent(0)), "`query.rate.load-percent` is 0"),
        (pace(QueryRate::Interval(Nanos(0))), "`query.rate.interval` is 0"),
        // 1 MB takes 864 us at best.
        (pace(QueryRate::Interval(Nanos(432_000))), "load a server's link with 201 %"),
        (traffic(Some(background(60)), Some(query(QueryRate::LoadPercent(41)))), "with 101 %; choose at most 100 %"),
        (traffic(Some(background(60)), Some(query(QueryRate::Interval(Nanos(1_728_000))))), "with 111 %"),
        (asking(0, 1_000), "`query.fan_in` is 0; with this fabric it is 1 to 99"),
        (asking(100, 1_000), "`query.fan_in` is 100"),
        (asking(40, 39), "`query.response` is 39 B, less than a byte for each of 40 workers"),
        (with(BackgroundSpec { size_divisor: 0, ..background(1) }), "`size_divisor` is 0"),
        (with(BackgroundSpec { max_flow_bytes: Some(Bytes(0)), ..background(1) }), "`background.max_flow_bytes` is 0"),
        (with(BackgroundSpec { sizes: SizeDistribution::Fixed(Bytes(0)), ..background(1) }), "`background.sizes` is 0"),
        (with(BackgroundSpec { servers_per_rack: Some(20), ..background(1) }), "without `between_racks_only = true`"),
        (
            with(BackgroundSpec { servers_per_rack: Some(0), between_racks_only: true, ..background(1) }),
            "`background.servers_per_rack` is 0",
        ),
        (
            with(BackgroundSpec { sizes: SizeDistribution::Fixed(Bytes(1)), ..background(100) }),
            "starts 115726062143 flows; allowed are 1 to 16777216",
        ),
    ] {
        let error = Workload::Traffic(spec).open_loop_flows(&servers(), 1).unwrap_err().to_string();
        assert!(error.contains(message), "wanted `{message}`, got `{error}`");
    }
    let alone =
        Workload::Traffic(traffic(Some(background(1)), None)).open_loop_flows(&Servers::alike(1, TEN_GBPS, 1), 1);
    assert_eq!(alone, Err(WorkloadError::TooFewServers { servers: 1 }));
}

#[test]
fn a_full_load_of_queries_is_not_refused_for_its_rounding() {
    for percent in [1, 33, 50, 99, 100] {
        let spec =
            TrafficSpec { duration: Nanos(10_000_000), ..traffic(None, Some(query(QueryRate::LoadPercent(percent)))) };
        assert!(spec.flows(&servers(), 1).is_ok(), "{percent}");
    }
}

#[test]
fn plans_write_traffic_with_units_and_no_unknown_keys() {
    let text = r#"
        kind = "traffic"
        duration = "100 ms"
        [background]
        sizes = "data-mining"
        load_percent = 50
        max_flow_bytes = "100 MB"
        [query]
        fan_in = 20
        response = "1 MB"
        rate = { load-percent = 5 }
        jitter = "10 us"
    "#;
    let expected = TrafficSpec {
        duration: Nanos(100_000_000),
        background: Some(BackgroundSpec {
            sizes: SizeDistribution::DataMining,
            max_flow_bytes: Some(Bytes(100_000_000)),
            ..background(50)
        }),
        query: Some(QuerySpec { fan_in: 20, jitter: Nanos(10_000), ..query(QueryRate::LoadPercent(5)) }),
    };
    assert_eq!(toml::from_str::<Workload>(text).unwrap(), Workload::Traffic(expected));
    for (from, to, message) in [
        ("fan_in", "fanin", "unknown field `fanin`"),
        ("load_percent", "load", "unknown field `load`"),
        ("load-percent", "percent", "unknown variant `percent`"),
        ("= 50", "= -50", "invalid value"),
        (
            "\"data-mining\"",
            "{ table = [[\"1 kB\", 0.5], [\"2 kB\", 0.4]] }",
            "row 2 of the table of sizes does not rise",
        ),
    ] {
        let error = toml::from_str::<Workload>(&text.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(message), "wanted `{message}`, got `{error}`");
    }
}

#[test]
fn the_most_flows_that_fit_are_named_before_any_is_made() {
    let spec = TrafficSpec { duration: Nanos(u64::MAX), ..traffic(Some(background(100)), None) };
    let error = spec.flows(&Servers::alike(2, BitsPerSec(u64::MAX), 0), 1);
    assert!(matches!(error, Err(WorkloadError::Flows { flows }) if flows > FLOWS_MAX), "{error:?}");
}
