//! Eleven flows on the paper's two kinds of uplinks (leaf-spine/ecmp-probability).

use weft_scenario::record::{FlowRow, Records};

use super::{close, shipped, value};
use crate::analysis::testing::{self, analyse};

/// Eleven flows; on 20 slow links two of them share one except in every twentieth run.
fn known(key: &crate::analysis::TrialKey) -> Records {
    let shared = key.point[0] == "20x10g" && !key.repetition.is_multiple_of(20);
    let flow = |from: u32| {
        let took = if shared && from < 2 { 2_000 } else { 1_000 };
        FlowRow { from, to: from + 20, ideal_ns: Some(1_000), ..testing::flow(1_000, 0, Some(took)) }
    };
    Records { flows: (0..11).map(flow).collect(), ..Records::default() }
}

#[test]
fn the_papers_numbers_are_counted_drawn_and_compared_with_runs() {
    let found = analyse(&shipped("leaf-spine/ecmp-probability"), known);
    assert_eq!(found.problems, []);
    assert_eq!(format!("{:.4}", value(&found, "closed_form.20x10g") * 100.0), "3.2736");
    assert_eq!(format!("{:.3}", value(&found, "closed_form.2x100g") * 100.0), "99.902");
    for place in ["20x10g", "2x100g"] {
        assert_eq!(found.metrics[&format!("monte_carlo.{place}")].n, 1_000_000);
        assert!(value(&found, &format!("monte_carlo_deviation.{place}")) < 4.0);
    }
    close(&found, "simulated.20x10g", 0.05);
    close(&found, "simulated.2x100g", 1.0);
    // Nineteen of twenty runs lose half of two of eleven rates.
    close(&found, "simulated_throughput.20x10g", 1.0 - 0.95 / 11.0);
    assert_eq!(found.tables[0].rows.len(), 2);
}

#[test]
fn flows_that_do_not_fit_the_question_are_refused() {
    let of = |change: fn(&mut FlowRow)| {
        let found = analyse(&shipped("leaf-spine/ecmp-probability"), |key| {
            let mut records = known(key);
            change(&mut records.flows[1]);
            records
        });
        found.problems.iter().map(|problem| problem.text().to_owned()).collect::<Vec<_>>()
    };
    for (found, text) in [
        (of(|flow| flow.from = 25), "uplinks 20x10g: the flows leave more than one leaf"),
        (of(|flow| flow.from = 99), "uplinks 20x10g: a flow comes from a server that the fabric does not have"),
        (of(|flow| flow.end_ns = None), "uplinks 20x10g: a flow did not end, or its ideal time is not known"),
    ] {
        assert!(found.iter().any(|problem| problem == text), "{text}: {found:?}");
    }
}
