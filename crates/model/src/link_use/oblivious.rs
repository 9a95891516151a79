//! The best oblivious routing: one routing for all matrices of a day, chosen with all of them known.
//!
//! It may split the traffic of every pair of racks in another way, but always the same way. As in [`super::adaptive`] a
//! pair's split over the sender's uplinks, its split over the receiver's, and what is turned round say everything.
//!
//! Every link has a row for every matrix, of which few matter. The program starts with each link's fullest matrix under
//! VLB; it is solved, and for each link the matrix that is worst under the solution is added, until none is above the
//! optimum. What is solved in the end has the optimum of the whole program.

use std::collections::BTreeSet;

use good_lp::{Expression, IntoAffineExpression, Solution, Variable};
use weft_scenario::engine::Progress;
use weft_scenario::workload::Matrix;

use super::clos::Clos;
use super::load::{Load, largest};
use super::program::Program;
use super::vlb;
use crate::ModelError;

/// A row is violated if it is above the optimum by this much of it.
const SLACK: f64 = 1e-6;
/// More rounds than this have not been seen; each adds rows that are new.
const ROUNDS_MAX: usize = 200;
const PLACE: &str = "the best oblivious routing";

/// How the traffic of one pair of racks is split; shares of 1.
#[derive(Clone, Debug)]
struct Split<T> {
    from: usize,
    to: usize,
    /// Over an Intermediate, by the sender's uplinks.
    up: Vec<T>,
    /// The same traffic, by the receiver's uplinks.
    down: Vec<T>,
    /// Turned round at an Aggregation that both are on: places of the uplinks, share.
    turned: Vec<(usize, usize, T)>,
}

/// One direction of links: what a row of the program is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Up(usize, usize),
    Down(usize, usize),
    CoreUp(usize),
    CoreDown(usize),
}

/// Loads of all matrices under the best routing.
pub(super) fn best(clos: &Clos, day: &[Matrix], progress: &dyn Progress) -> Result<Vec<Load>, ModelError> {
    let places = places(clos);
    let vlb: Vec<Load> = day.iter().map(|matrix| vlb::even(clos, matrix)).collect();
    let mut rows: BTreeSet<(Place, usize)> = places.iter().map(|place| (*place, worst(clos, &vlb, *place).0)).collect();
    for round in 1..=ROUNDS_MAX {
        if progress.interrupted() {
            return Err(ModelError::Interrupted);
        }
        progress.note_rows(round, rows.len());
        let (splits, optimum) = solve(clos, day, &rows)?;
        let loads: Vec<Load> = day.iter().map(|matrix| apply(clos, matrix, &splits)).collect();
        let above = |place: &&Place| worst(clos, &loads, **place).1 > optimum * (1.0 + SLACK);
        let fresh: Vec<_> = places.iter().filter(above).map(|place| (*place, worst(clos, &loads, *place).0)).collect();
        let before = rows.len();
        rows.extend(fresh);
        if rows.len() == before {
            return Ok(loads);
        }
    }
    Err(ModelError::Solver { place: PLACE.into(), why: format!("it did not settle in {ROUNDS_MAX} rounds") })
}

/// Says how far it is.
trait NoteRows {
    fn note_rows(&self, round: usize, rows: usize);
}

impl NoteRows for dyn Progress + '_ {
    fn note_rows(&self, round: usize, rows: usize) {
        self.advance(1.0 - 1.0 / (round as f64 + 1.0), &format!("best oblivious routing: round {round}, {rows} rows"));
    }
}

fn places(clos: &Clos) -> Vec<Place> {
    let uplinks =
        || clos.racks.iter().enumerate().flat_map(|(rack, of)| (0..of.uplinks.len()).map(move |up| (rack, up)));
    let racks =
        uplinks().map(|(rack, up)| Place::Up(rack, up)).chain(uplinks().map(|(rack, up)| Place::Down(rack, up)));
    let core = (0..clos.aggregations.len()).flat_map(|one| [Place::CoreUp(one), Place::CoreDown(one)]);
    racks.chain(core).collect()
}

/// The matrix under which a place is used most, and how much.
fn worst(clos: &Clos, loads: &[Load], place: Place) -> (usize, f64) {
    let used = |load: &Load| match place {
        Place::Up(rack, up) => load.up[rack][up] / clos.racks[rack].uplinks[up].1,
        Place::Down(rack, up) => load.down[rack][up] / clos.racks[rack].uplinks[up].1,
        Place::CoreUp(aggregation) => largest(&load.core_up[aggregation]) / clos.core_rate,
        Place::CoreDown(aggregation) => largest(&load.core_down[aggregation]) / clos.core_rate,
    };
    let uses = loads.iter().map(used).enumerate();
    uses.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}

/// The best splits for these rows, and the use of the most loaded link.
fn solve(clos: &Clos, day: &[Matrix], rows: &BTreeSet<(Place, usize)>) -> Result<(Vec<Split<f64>>, f64), ModelError> {
    let mut program = Program::new(None);
    let splits = variables(&mut program, clos, day);
    for (place, number) in rows {
        let (load, rate) = row(clos, &day[*number], &splits, *place);
        program.link(load, rate);
    }
    let most = program.most;
    let solved = program.solve(PLACE, || "its parts do not make up a whole".into())?;
    let value = |split: &Split<Expression>| {
        let shares = |parts: &[Expression]| parts.iter().map(|part| part.eval_with(&solved).max(0.0)).collect();
        let turned = split.turned.iter().map(|(up, down, part)| (*up, *down, part.eval_with(&solved).max(0.0)));
        let (up, down) = (shares(&split.up), shares(&split.down));
        Split { from: split.from, to: split.to, up, down, turned: turned.collect() }
    };
    Ok((splits.iter().map(value).collect(), solved.value(most)))
}

/// Splits of all pairs of racks that have traffic in some matrix.
fn variables(program: &mut Program, clos: &Clos, day: &[Matrix]) -> Vec<Split<Expression>> {
    let racks = clos.racks.len();
    let pairs = (0..racks).flat_map(|from| (0..racks).map(move |to| (from, to)));
    let pairs = pairs.filter(|(from, to)| day.iter().any(|matrix| matrix.rate_bps(*from, *to) > 0.0));
    pairs.map(|(from, to)| split(program, clos, from, to)).collect()
}

fn split(program: &mut Program, clos: &Clos, from: usize, to: usize) -> Split<Expression> {
    let mut turned = Vec::new();
    let mut all = Expression::default();
    for (up, down) in clos.shared(from, to) {
        let part = program.part(1.0);
        all += part;
        turned.push((up, down, part.into()));
    }
    let up = shares(program, clos.racks[from].uplinks.len(), &all);
    let down = shares(program, clos.racks[to].uplinks.len(), &all);
    Split { from, to, up, down, turned }
}

/// So many shares that make up a whole together with `others`. Two alone are x and 1 - x, which spares a row.
fn shares(program: &mut Program, count: usize, others: &Expression) -> Vec<Expression> {
    if count == 2 && others.linear_coefficients().next().is_none() {
        let first = program.part(1.0);
        return vec![first.into(), 1.0 - first];
    }
    let parts: Vec<Variable> = (0..count).map(|_| program.part(1.0)).collect();
    program.sum_is(parts.iter().sum::<Expression>() + others.clone(), 1.0);
    parts.into_iter().map(Expression::from).collect()
}

/// Load of a place under a matrix over the rate there, with the rate as the unit.
fn row(clos: &Clos, matrix: &Matrix, splits: &[Split<Expression>], place: Place) -> (Expression, f64) {
    let unit = match place {
        Place::Up(rack, up) | Place::Down(rack, up) => clos.racks[rack].uplinks[up].1,
        Place::CoreUp(_) | Place::CoreDown(_) => clos.core_capacity(),
    };
    let mut load = Expression::default();
    for split in splits {
        let rate = matrix.rate_bps(split.from, split.to) / unit;
        if rate == 0.0 {
            continue;
        }
        match place {
            Place::Up(rack, up) if rack == split.from => {
                load += rate * split.up[up].clone();
                split.turned.iter().filter(|one| one.0 == up).for_each(|one| load += rate * one.2.clone());
            }
            Place::Down(rack, down) if rack == split.to => {
                load += rate * split.down[down].clone();
                split.turned.iter().filter(|one| one.1 == down).for_each(|one| load += rate * one.2.clone());
            }
            Place::CoreUp(aggregation) => {
                let uplinks = clos.racks[split.from].uplinks.iter();
                let here = uplinks.zip(&split.up).filter(|(up, _)| up.0 == aggregation);
                here.for_each(|(_, share)| load += rate * share.clone());
            }
            Place::CoreDown(aggregation) => {
                let uplinks = clos.racks[split.to].uplinks.iter();
                let here = uplinks.zip(&split.down).filter(|(down, _)| down.0 == aggregation);
                here.for_each(|(_, share)| load += rate * share.clone());
            }
            _ => {}
        }
    }
    (load, 1.0)
}

/// Loads of a matrix that is split so.
fn apply(clos: &Clos, matrix: &Matrix, splits: &[Split<f64>]) -> Load {
    let mut load = Load::zero(clos);
    for split in splits {
        let rate = matrix.rate_bps(split.from, split.to);
        for (place, share) in split.up.iter().enumerate() {
            load.up[split.from][place] += rate * share;
            load.add_core_up(clos.racks[split.from].uplinks[place].0, rate * share);
        }
        for (place, share) in split.down.iter().enumerate() {
            load.down[split.to][place] += rate * share;
            load.add_core_down(clos.racks[split.to].uplinks[place].0, rate * share);
        }
        for (up, down, share) in &split.turned {
            load.up[split.from][*up] += rate * share;
            load.down[split.to][*down] += rate * share;
        }
    }
    load
}
