//! Known answers on small networks, and what must hold on every one.

use proptest::prelude::*;
use weft_scenario::topology::{ClosParams, LinkParams, TestbedParams, conventional, vl2_clos, vl2_testbed};
use weft_scenario::units::Nanos;
use weft_scenario::workload::MatricesSpec;

use super::*;

struct Quiet;

impl Progress for Quiet {
    fn phase(&self, _: &str, _: &str) {}
    fn advance(&self, _: f64, _: &str) {}
    fn note(&self, _: &str) {}
    fn interrupted(&self) -> bool {
        false
    }
}

const GBPS: f64 = 1e9;

/// Racks of 20 Gb/s with two uplinks of 10 Gb/s.
fn fabric(aggregation_ports: u32, intermediate_ports: u32) -> Fabric {
    let links = LinkParams::for_server_rate(BitsPerSec(1_000_000_000));
    vl2_clos(&ClosParams { aggregation_ports, intermediate_ports, servers_per_tor: 20, links }).unwrap()
}

fn spec(intermediates: Option<u32>) -> LinkUseSpec {
    let matrices = MatricesSpec { count: 6, job_racks: 4, jobs: 3, ..MatricesSpec::default() };
    LinkUseSpec { matrices, intermediates, flow_bytes: 100_000_000, most_use: None }
}

/// Use of the most loaded link over the day.
fn worst(records: &Records, routing: Routing) -> f64 {
    let of = records.link_uses.iter().filter(|row| row.routing == routing.name());
    of.map(|row| row.use_ratio).fold(0.0, f64::max)
}

fn day(spec: &LinkUseSpec, fabric: &Fabric, rates: &[&[(usize, usize, f64)]]) -> Result<Records, ModelError> {
    let racks = fabric.with_role(weft_scenario::topology::Role::Tor).count();
    let matrix = |rates: &&[(usize, usize, f64)]| {
        let mut matrix = Matrix::zero(racks);
        rates.iter().for_each(|(from, to, gbps)| matrix.set(*from, *to, gbps * GBPS));
        matrix
    };
    let matrices: Vec<Matrix> = rates.iter().map(matrix).collect();
    route_day(spec, fabric, &matrices, 1, &Quiet)
}

#[test]
fn without_oversubscription_vlb_is_optimal() {
    let records = run(&spec(None), &fabric(8, 8), 1, &Quiet).unwrap();
    let [vlb, flows, adaptive, oblivious] = Routing::ALL.map(|routing| worst(&records, routing));
    assert!((vlb - adaptive).abs() < 1e-6 && (vlb - oblivious).abs() < 1e-6, "{vlb} {adaptive} {oblivious}");
    assert!(flows > vlb, "flows are placed by chance: {flows}");
    assert_eq!(records.link_uses.len(), 4 * (2 * 32 + 2 * 32));
    assert_eq!(records.routed_matrices.len(), 4 * 6);
}

#[test]
fn traffic_below_one_aggregation_does_not_need_the_core_where_it_is_narrow() {
    // Racks 1 and 5 of 16 are on Aggregations 1 and 2 both; 1 of 4 Intermediates is left, so 10 Gb/s above each.
    // VLB sends 16 Gb/s up: 8 over each Aggregation's one link, 0.8. The uplinks alone need 0.8 too.
    let records = day(&spec(Some(1)), &fabric(8, 8), &[&[(0, 4, 16.0)]]).unwrap();
    assert!((worst(&records, Routing::Vlb) - 0.8).abs() < 1e-9);
    // Two racks that do the same at once: the core has 1.6 with VLB, and nothing if traffic is turned round.
    let both: &[(usize, usize, f64)] = &[(0, 4, 16.0), (8, 12, 16.0)];
    let records = day(&spec(Some(1)), &fabric(8, 8), &[both]).unwrap();
    assert!((worst(&records, Routing::Vlb) - 1.6).abs() < 1e-9, "{}", worst(&records, Routing::Vlb));
    assert!((worst(&records, Routing::Adaptive) - 0.8).abs() < 1e-6);
    assert!((worst(&records, Routing::Oblivious) - 0.8).abs() < 1e-6);
}

#[test]
fn adaptive_moves_traffic_to_aggregations_with_room() {
    // Five ToRs on five Aggregations in a ring (1-2, 3-4, 5-1, 2-3, 4-5), one Intermediate of two. Racks 1 and 3 send 8 Gb/s
    // each to racks 2 and 4: VLB has 4 + 4 on Aggregation 1. The best is 16/3 on each of Aggregations 1, 2 and 5.
    let fabric = fabric(4, 5);
    let records = day(&spec(Some(1)), &fabric, &[&[(0, 1, 8.0), (2, 1, 8.0)]]).unwrap();
    assert!((worst(&records, Routing::Vlb) - 0.8).abs() < 1e-9);
    // Rack 2 receives 16 over two uplinks in any case.
    assert!((worst(&records, Routing::Adaptive) - 0.8).abs() < 1e-6);
    let records = day(&spec(Some(1)), &fabric, &[&[(0, 1, 8.0), (2, 3, 8.0)]]).unwrap();
    assert!((worst(&records, Routing::Vlb) - 0.8).abs() < 1e-9, "4 + 4 on the link above Aggregation 1");
    assert!((worst(&records, Routing::Adaptive) - 16.0 / 30.0).abs() < 1e-6, "{}", worst(&records, Routing::Adaptive));
    assert!((worst(&records, Routing::Oblivious) - 16.0 / 30.0).abs() < 1e-6);
}

#[test]
fn one_routing_for_two_matrices_is_worse_than_one_for_each() {
    // Rack 1 wants Aggregation 2 while rack 3 sends, and Aggregation 1 while rack 4 sends.
    let fabric = fabric(4, 5);
    let days: [&[(usize, usize, f64)]; 2] = [&[(0, 1, 8.0), (2, 3, 8.0)], &[(0, 1, 8.0), (3, 4, 8.0)]];
    let records = day(&spec(Some(1)), &fabric, &days).unwrap();
    let [vlb, _, adaptive, oblivious] = Routing::ALL.map(|routing| worst(&records, routing));
    assert!(adaptive <= oblivious + 1e-6 && oblivious <= vlb + 1e-6, "{adaptive} {oblivious} {vlb}");
    assert!(oblivious > adaptive + 0.01, "{adaptive} {oblivious}");
}

#[test]
fn an_infeasible_program_names_its_matrix_and_the_rack_that_asks_too_much() {
    let limited = LinkUseSpec { most_use: Some(0.5), ..spec(None) };
    let error = day(&limited, &fabric(8, 8), &[&[(0, 1, 1.0)], &[(2, 3, 16.0), (2, 4, 1.0)]]).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ModelError::Infeasible { .. }));
    assert!(text.starts_with("the linear program of matrix 2 (from 300 s) is infeasible"), "{text}");
    assert!(text.contains("`tor3` alone needs 0.850"), "{text}");
}

#[test]
fn fabrics_that_are_no_clos_and_settings_that_do_not_fit_are_refused() {
    let refusal = |spec: &LinkUseSpec, fabric: &Fabric| run(spec, fabric, 1, &Quiet).unwrap_err().to_string();
    let tree = conventional(&Default::default()).unwrap();
    assert!(refusal(&spec(None), &tree).contains("fabric `conventional` has no Intermediates"));
    assert_eq!(refusal(&spec(Some(9)), &fabric(8, 8)), "`intermediates` is 9; the fabric has 4");
    let bed = vl2_testbed(&TestbedParams { servers_per_tor: [1, 0, 1, 1], ..TestbedParams::default() });
    if let Ok(bed) = bed {
        assert!(refusal(&spec(None), &bed).contains("`tor2` has no servers"));
    }
    let short = route_day(&spec(None), &fabric(8, 8), &[Matrix::zero(3)], 1, &Quiet).unwrap_err();
    assert_eq!(short.to_string(), "matrix 1 is between 3 racks; the fabric has 16");
}

#[test]
fn a_seed_gives_the_same_records() {
    let once = || run(&spec(Some(2)), &fabric(4, 5), 7, &Quiet).unwrap();
    assert_eq!(once(), once());
}

#[test]
fn fewer_larger_flows_are_spread_less_evenly() {
    let of = |flow_bytes| {
        let spec = LinkUseSpec { flow_bytes, ..spec(None) };
        worst(&run(&spec, &fabric(8, 8), 1, &Quiet).unwrap(), Routing::VlbFlows)
    };
    assert!(of(10_000_000_000) > of(100_000_000), "10 GB against 100 MB");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Adaptive is a lower bound of everything, matrix by matrix, and the best oblivious routing is no worse than VLB.
    #[test]
    fn the_optimum_is_below_everything_else(seed in 0u64..1000, half in 1u32..4, d_i in 2u32..7, tops in 1u32..4) {
        prop_assume!(2 * half * d_i % 4 == 0 && tops <= half && half * d_i / 2 >= 2);
        let (spec, fabric) = (spec(Some(tops)), fabric(2 * half, d_i));
        let records = run(&spec, &fabric, seed, &Quiet).unwrap();
        let by = |routing: Routing| {
            let rows = records.routed_matrices.iter().filter(move |row| row.routing == routing.name());
            rows.map(|row| row.use_ratio).collect::<Vec<_>>()
        };
        for other in [Routing::Vlb, Routing::Oblivious] {
            for (best, other) in by(Routing::Adaptive).into_iter().zip(by(other)) {
                prop_assert!(best <= other + 1e-6, "{best} {other}");
            }
        }
        prop_assert!(worst(&records, Routing::Oblivious) <= worst(&records, Routing::Vlb) + 1e-6);
        prop_assert!(Nanos(0).0 == records.routed_matrices[0].time_ns);
    }
}
