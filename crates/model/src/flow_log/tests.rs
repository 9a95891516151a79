//! A log by hand whose every number is known.

use super::*;

const S: u64 = 1_000_000_000;

fn server(server: u32, rack: u32) -> End {
    End::Server { server, rack }
}

fn flow(from: End, to: End, bytes: u64, start_s: u64, end_s: u64) -> Flow {
    Flow { from, to, bytes, start_ns: start_s * S, end_ns: end_s * S }
}

/// Two racks of one server, four intervals of 100 s: the first and the third alike, the second and the fourth.
fn hand_made() -> Vec<Flow> {
    let (a, b) = (server(0, 0), server(1, 1));
    vec![
        flow(a, b, 1_000, 0, 50),
        flow(b, a, 400, 100, 200),
        flow(a, b, 1_000, 200, 300),
        flow(b, a, 300, 300, 400),
        flow(End::Outside, a, 100, 300, 350),
        flow(End::Outside, End::Outside, 7, 400, 500),
    ]
}

fn record(flows: &[Flow], until_s: Option<u64>) -> Records {
    let mut recorder = Recorder::new(Options { best_clusters: 2, ..Options::default() });
    flows.iter().for_each(|flow| recorder.add(flow).unwrap());
    recorder.finish(until_s.map(|until_s| until_s * S), |_| true).unwrap()
}

fn fact_of(records: &Records, name: &str) -> f64 {
    records.fact(name).unwrap()
}

#[test]
fn every_number_is_what_a_hand_computes() {
    let records = record(&hand_made(), None);
    let fact = |name| fact_of(&records, name);
    assert_eq!((fact(fact::FLOWS), fact(fact::SERVERS), fact(fact::WINDOW_S)), (6.0, 2.0, 400.0));
    let bytes = [fact::BYTES_INSIDE, fact::BYTES_CROSSING, fact::BYTES_ELSEWHERE].map(fact);
    assert_eq!(bytes, [2_700.0, 100.0, 7.0]);
    assert_eq!(records.flow_sizes.iter().map(|row| row.flows).sum::<u64>(), 6);
    // Server 0: busy 50 + 100 + 100 + 50 (two flows) + 50; server 1: 50 + 100 + 100 + 100. Idle: 50 each.
    let stood: Vec<(u32, f64)> = records.concurrency.iter().map(|row| (row.flows, row.server_s)).collect();
    assert_eq!(stood, [(0, 100.0), (1, 650.0), (2, 50.0)]);
    assert_eq!(fact(fact::OPEN_S), 750.0);
    let matrices: Vec<_> = records.matrices.iter().map(|row| (row.bytes, row.pairs, row.cluster)).collect();
    assert_eq!(matrices, [(1_000, 1, Some(0)), (400, 1, Some(1)), (1_000, 1, Some(0)), (400, 2, Some(1))]);
    // Two clusters: (1000) twice without a difference, and (400, 100) for (400, 0) and (300, 100): 100 each of 3000.
    assert_eq!(records.fitting[1].error_ratio, 200.0 / 3_000.0);
}

#[test]
fn what_outlasts_the_window_is_left_out_of_time_but_not_of_bytes() {
    let records = record(&[flow(server(0, 0), server(1, 1), 1_000, 0, 1_000)], Some(100));
    assert_eq!(fact_of(&records, fact::OPEN_S), 200.0);
    assert_eq!(fact_of(&records, fact::BYTES_INSIDE), 1_000.0);
    assert_eq!(records.matrices.iter().map(|row| row.bytes).collect::<Vec<_>>(), [100]);
}

#[test]
fn a_log_without_time_has_no_matrices_and_no_concurrency() {
    let records = record(&[flow(server(0, 0), server(1, 1), 10, 0, 0)], None);
    assert!(records.matrices.is_empty() && records.fitting.is_empty() && records.concurrency.is_empty());
    assert_eq!(records.flow_sizes.len(), 1);
    assert!(record(&[], None).flow_sizes.is_empty());
}

#[test]
fn without_an_interval_there_are_no_matrices_and_stopping_gives_nothing() {
    let mut recorder = Recorder::new(Options { interval: None, ..Options::default() });
    hand_made().iter().for_each(|flow| recorder.add(flow).unwrap());
    assert!(recorder.finish(None, |_| false).is_some_and(|records| records.matrices.is_empty()));
    let mut recorder = Recorder::new(Options::default());
    hand_made().iter().for_each(|flow| recorder.add(flow).unwrap());
    assert!(recorder.finish(None, |_| false).is_none());
}
