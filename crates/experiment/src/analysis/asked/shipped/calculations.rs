//! Known answers from records made up by hand (vl2/cost-scale, fig15-link-utilisation, failures).

use weft_scenario::record::{AvailabilityRow, FailureRow, LinkUseRow, NetworkRow, Records, RoutedMatrixRow};

use super::{close, shipped};
use crate::analysis::testing::analyse;

#[test]
fn costs_are_compared_at_the_same_size() {
    let row = |design: &str, oversubscription, switches_usd| NetworkRow {
        design: design.into(),
        servers: 100,
        oversubscription,
        tors: 5,
        ports: 20,
        cables: 20,
        switches_usd,
        ..NetworkRow::default()
    };
    let networks = vec![
        row("vl2", 1, 1000.0),
        row("vl2", 240, 300.0),
        row("conventional", 1, 14_000.0),
        row("conventional", 240, 600.0),
        row("present", 240, 3000.0),
        row("present-spare", 240, 6000.0),
    ];
    let facts = vec![("generator.servers.24-ports".to_owned(), 2880.0)];
    let found = analyse(&shipped("vl2/cost-scale"), |_| Records {
        networks: networks.clone(),
        facts: facts.clone(),
        ..Records::default()
    });
    assert_eq!(found.problems, []);
    close(&found, "generator_servers.24", 2880.0);
    close(&found, "conventional_over_vl2.100.1", 14.0);
    close(&found, "conventional_over_vl2.100.240", 2.0);
    close(&found, "vl2_saving.100.240", 0.7);
    close(&found, "present_over_vl2.100.240", 3.0);
    close(&found, "capacity_per_dollar.100.240", 720.0);
    close(&found, "present_spare_over_vl2.100.240", 6.0);
    close(&found, "present_spare_port_usd.100.240", 7000.0 / 48.0 - 250.0);
    // 20 ports of 1 Gb/s at 7000/48 dollars are among the 3000; for 1000 in all each may cost 100 dollars less.
    close(&found, "present_port_usd.100.240", 7000.0 / 48.0 - 100.0);
    close(&found, "fat_tree_cables.100.1", 10.0);
    assert!(!found.metrics.contains_key("present_over_vl2.100.1"), "section 2's network begins at 1:5");
}

#[test]
fn links_are_compared_by_their_worst_their_median_and_matrix_by_matrix() {
    let uses = |routing: &str, uses: [f64; 3]| {
        let row = |use_ratio| LinkUseRow { routing: routing.into(), use_ratio, ..LinkUseRow::default() };
        uses.map(row).to_vec()
    };
    let matrices = |routing: &str, uses: [f64; 2]| {
        let row = |(time_ns, use_ratio)| RoutedMatrixRow {
            routing: routing.into(),
            time_ns,
            use_ratio,
            ..RoutedMatrixRow::default()
        };
        (0..).zip(uses).map(row).collect::<Vec<_>>()
    };
    let records = Records {
        link_uses: [
            uses("vlb", [0.6, 0.2, 0.4]),
            uses("adaptive", [0.5, 0.4, 0.3]),
            uses("oblivious", [0.5, 0.5, 0.1]),
        ]
        .concat(),
        routed_matrices: [
            matrices("vlb", [0.6, 0.3]),
            matrices("adaptive", [0.5, 0.2]),
            matrices("oblivious", [0.5, 0.19]),
        ]
        .concat(),
        ..Records::default()
    };
    let found = analyse(&shipped("vl2/fig15-link-utilisation"), |_| records.clone());
    assert_eq!(found.problems, []);
    for (metric, wanted) in [
        ("vlb_worst.whole", 1.2),
        ("oblivious_worst.whole", 1.0),
        ("vlb_median.fifth", 1.0),
        ("oblivious_median.whole", 1.25),
        ("vlb_mean_matrix.fifth", 1.35),
        ("below_optimum.whole", 0.05),
    ] {
        close(&found, metric, wanted);
    }
}

#[test]
fn time_counts_and_dead_tors_are_not_held_against_a_network() {
    let hour = 3_600_000_000_000;
    let found = analyse(&shipped("vl2/failures"), |key| {
        let row = |lasts: u64, servers_ratio, capacity_ratio| AvailabilityRow {
            lasts_ns: lasts * hour,
            servers_ratio,
            demand_ratio: servers_ratio,
            capacity_ratio,
            ..AvailabilityRow::default()
        };
        // Whole capacity is 0.5. For 6 h half of the servers are dead, and the network gives the others all they had
        // (VL2) or half of it.
        let hurt = if key.point[0] == "vl2" { 0.25 } else { 0.125 };
        let facts = [("whole", 0.5), ("one_down.top", 0.45), ("one_down.aggregation", 0.25)];
        Records {
            availability: vec![row(18, 1.0, 0.5), row(6, 0.5, hurt), row(12, 0.5, 0.2)],
            failures: vec![FailureRow { takes_group: 1, ..FailureRow::default() }, FailureRow::default()],
            facts: facts.map(|(name, value)| (format!("availability.{name}"), value)).to_vec(),
            ..Records::default()
        }
    });
    assert_eq!(found.problems, []);
    // 12 h at 0.8 of what the living had.
    for (metric, wanted) in [
        ("lost.vl2", 12.0 * 0.2 / 36.0),
        ("lost.conventional", (12.0 * 0.2 + 6.0 * 0.5) / 36.0),
        ("lost_over.vl2", 1.0),
        ("lost_over.conventional", 5.4 / 2.4),
        ("below_90_h.vl2", 12.0),
        ("below_90_h.conventional", 18.0),
        ("below_50_h.conventional", 0.0),
        ("failures.vl2", 2.0),
        ("one_top_lost.vl2", 0.1),
        ("one_aggregation_lost.vl2", 0.5),
    ] {
        close(&found, metric, wanted);
    }
}
