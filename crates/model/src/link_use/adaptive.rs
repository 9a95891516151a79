//! Adaptive routing: the best that any routing can do for one matrix, knowing it (as TeXCP would in the limit).
//!
//! Traffic goes up and then down: from a ToR to one of its Aggregations, over any Intermediate to one of the receiver's
//! Aggregations, and down; or, where both ToRs are on one Aggregation, straight down there. Of what goes over an
//! Intermediate only the sums count: how a ToR splits all that it sends so over its uplinks, and how all that it receives
//! so is split. Whatever these splits are, some routing has them. So the program has two variables for each uplink and
//! one for each pair of racks and Aggregation that they share.

use good_lp::{Expression, Solution, Variable};
use weft_scenario::workload::Matrix;

use super::clos::{Clos, Rack};
use super::load::Load;
use super::program::Program;
use crate::ModelError;

/// Rates in the program are in units of this, so that numbers are near 1.
const UNIT_BPS: f64 = 1e9;

/// What is turned round at an Aggregation that both racks are on.
struct Turned {
    from: usize,
    to: usize,
    up: usize,
    down: usize,
    part: Variable,
}

/// The best routing of a matrix. `place` names it in messages.
pub(super) fn best(clos: &Clos, matrix: &Matrix, most_use: Option<f64>, place: &str) -> Result<Load, ModelError> {
    let mut program = Program::new(most_use);
    let turned = turned_parts(&mut program, clos, matrix);
    let racks = clos.racks.len();
    let parts = |program: &mut Program| -> Vec<Vec<Variable>> {
        let of = |rack: usize, program: &mut Program| {
            clos.racks[rack].uplinks.iter().map(|_| program.part(f64::INFINITY)).collect()
        };
        (0..racks).map(|rack| of(rack, program)).collect()
    };
    let (up, down) = (parts(&mut program), parts(&mut program));
    let mut core_up = vec![Expression::default(); clos.aggregations.len()];
    let mut core_down = core_up.clone();
    for (number, rack) in clos.racks.iter().enumerate() {
        let (mut sent, mut received) = (Expression::default(), Expression::default());
        turned.iter().filter(|one| one.from == number).for_each(|one| sent += one.part);
        turned.iter().filter(|one| one.to == number).for_each(|one| received += one.part);
        for (place, (aggregation, rate)) in rack.uplinks.iter().enumerate() {
            sent += up[number][place];
            received += down[number][place];
            core_up[*aggregation] += up[number][place];
            core_down[*aggregation] += down[number][place];
            let (mut out, mut into) = (Expression::from(up[number][place]), Expression::from(down[number][place]));
            turned.iter().filter(|one| one.from == number && one.up == place).for_each(|one| out += one.part);
            turned.iter().filter(|one| one.to == number && one.down == place).for_each(|one| into += one.part);
            program.link(out, rate / UNIT_BPS);
            program.link(into, rate / UNIT_BPS);
        }
        program.sum_is(sent, matrix.sent_bps(number) / UNIT_BPS);
        program.sum_is(received, matrix.received_bps(number) / UNIT_BPS);
    }
    for load in core_up.into_iter().chain(core_down) {
        program.link(load, clos.core_capacity() / UNIT_BPS);
    }
    let solved = program.solve(place, || busiest(clos, matrix, most_use.unwrap_or(f64::INFINITY)))?;
    let mut load = Load::zero(clos);
    for (number, rack) in clos.racks.iter().enumerate() {
        for (place, (aggregation, _)) in rack.uplinks.iter().enumerate() {
            let (sent, received) = (solved.value(up[number][place]), solved.value(down[number][place]));
            load.up[number][place] += sent * UNIT_BPS;
            load.down[number][place] += received * UNIT_BPS;
            load.add_core_up(*aggregation, sent * UNIT_BPS);
            load.add_core_down(*aggregation, received * UNIT_BPS);
        }
    }
    for one in &turned {
        let rate = solved.value(one.part) * UNIT_BPS;
        load.up[one.from][one.up] += rate;
        load.down[one.to][one.down] += rate;
    }
    Ok(load)
}

/// A variable for each pair of racks with traffic and each Aggregation that they share; together at most the traffic.
fn turned_parts(program: &mut Program, clos: &Clos, matrix: &Matrix) -> Vec<Turned> {
    let mut turned = Vec::new();
    for (from, to, rate) in matrix.demands() {
        let shared = clos.shared(from, to);
        let parts: Vec<Variable> = shared.iter().map(|_| program.part(rate / UNIT_BPS)).collect();
        if parts.len() > 1 {
            program.sum_at_most(parts.iter().sum(), rate / UNIT_BPS);
        }
        turned.extend(shared.into_iter().zip(parts).map(|((up, down), part)| Turned { from, to, up, down, part }));
    }
    turned
}

/// The rack that asks most of its uplinks, for the message of an infeasible program.
fn busiest(clos: &Clos, matrix: &Matrix, most_use: f64) -> String {
    let needs = |(number, rack): (usize, &Rack)| {
        let rate: f64 = rack.uplinks.iter().map(|up| up.1).sum();
        (rack.name.clone(), matrix.sent_bps(number).max(matrix.received_bps(number)) / rate)
    };
    let racks = clos.racks.iter().enumerate().map(needs);
    let (name, needed) = racks.max_by(|a, b| a.1.total_cmp(&b.1)).expect("a Clos has racks");
    format!(
        "no routing carries this matrix with links used at most {most_use}; `{name}` alone needs {needed:.3} of its \
         uplinks. Raise `most_use` or lower the load"
    )
}
