//! Hand-made flows of three ways, whose ratios are in the plan's claims (vl2/elephants).

use weft_scenario::record::{FlowRow, Records};

use super::{shipped, value};
use crate::analysis::testing::{SECOND, analyse, flow};
use crate::metric::{Findings, Problem};
use crate::plan::PlanSpec;

/// Three draws.
fn spec() -> PlanSpec {
    PlanSpec { repetitions: 3, ..shipped("vl2/elephants") }
}

fn flows(seconds: [u64; 2]) -> Vec<FlowRow> {
    seconds.map(|end| flow(1_000_000, 0, Some(end * SECOND))).to_vec()
}

fn findings(rehashed: impl Fn(u32) -> [u64; 2]) -> Findings {
    analyse(&spec(), |key| match key.point[0].as_str() {
        "flow" => Records { flows: flows([2, 4]), ..Records::default() },
        _ => Records {
            flows: flows(rehashed(key.repetition)),
            facts: vec![("vl2.moves".into(), 6.0)],
            ..Records::default()
        },
    })
}

#[test]
fn a_draw_is_compared_with_itself() {
    let found = findings(|repetition| if repetition == 1 { [2, 4] } else { [2, 2] });
    let ratio = &found.metrics["mean_over_flow.rehash"];
    assert!((ratio.value - (1.0 + 2.0 / 3.0 * 2.0) / 3.0).abs() < 1e-9, "{ratio:?}");
    assert_eq!(ratio.n, 3);
    assert!(ratio.interval.unwrap().spans(1.0), "one of three draws that did not gain leaves it open");
    assert!(!found.metrics.contains_key("mean_over_flow.flow"));
    assert_eq!((value(&found, "mean_fct_s.flow"), value(&found, "worst_fct_s.flow")), (3.0, 4.0));
    // Goodputs of 1/2 and 1/4.
    assert!((value(&found, "jain.flow") - 0.9).abs() < 1e-9);
    assert_eq!(value(&found, "moves.rehash"), 3.0);
    assert!(!found.metrics.contains_key("moves.flow"));
}

#[test]
fn a_flow_that_did_not_end_fails_the_run() {
    let found = analyse(&spec(), |_| Records { flows: vec![flow(1, 0, None)], ..Records::default() });
    assert!(matches!(found.problems[..], [Problem::Failed(_), ..]));
}
