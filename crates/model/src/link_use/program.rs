//! Linear programs as the questions pose them: the most loaded link is to be as little loaded as possible.

#[cfg(feature = "highs")]
use good_lp::highs as solver;
#[cfg(not(feature = "highs"))]
use good_lp::microlp as solver;
use good_lp::solvers::SolutionStatus;
use good_lp::{Constraint, Expression, ProblemVariables, ResolutionError, Solution, SolverModel, Variable, variable};

use crate::ModelError;

/// Added for every bit of load, so that among routings with the same most loaded link the shortest is taken. So small
/// that it does not move the optimum.
const SHORTEST: f64 = 1e-7;

/// A program in the making.
pub(super) struct Program {
    variables: ProblemVariables,
    constraints: Vec<Constraint>,
    /// Use of the most loaded link.
    pub(super) most: Variable,
    total: Expression,
}

/// A solved one: the values of its variables, never below 0.
pub(super) struct Solved(Box<dyn Fn(Variable) -> f64>);

impl Solution for Solved {
    fn status(&self) -> SolutionStatus {
        SolutionStatus::Optimal
    }

    fn value(&self, variable: Variable) -> f64 {
        (self.0)(variable).max(0.0)
    }
}

impl Program {
    /// A program whose most loaded link is used at most so much.
    pub(super) fn new(most_use: Option<f64>) -> Self {
        let mut variables = ProblemVariables::new();
        let most = variable().min(0.0);
        let most = variables.add(most_use.map_or(most.clone(), |limit| most.max(limit)));
        Self { variables, constraints: Vec::new(), most, total: Expression::default() }
    }

    /// A part of something, 0 to `most`.
    pub(super) fn part(&mut self, most: f64) -> Variable {
        self.variables.add(variable().min(0.0).max(most))
    }

    /// Parts that make up a whole.
    pub(super) fn sum_is(&mut self, parts: Expression, whole: f64) {
        self.constraints.push(parts.eq(whole));
    }

    /// Parts that are at most a whole.
    pub(super) fn sum_at_most(&mut self, parts: Expression, whole: f64) {
        self.constraints.push(parts.leq(whole));
    }

    /// A link's load over its rate is at most that of the most loaded.
    pub(super) fn link(&mut self, load: Expression, rate: f64) {
        let load = load * (1.0 / rate);
        self.total += load.clone();
        self.constraints.push((load - self.most).leq(0.0));
    }

    /// Solves it. `why` says, where nothing satisfies it, what cannot be.
    pub(super) fn solve(self, place: &str, why: impl FnOnce() -> String) -> Result<Solved, ModelError> {
        let Self { variables, constraints, most, total } = self;
        let mut model = variables.minimise(most + total * SHORTEST).using(solver);
        for constraint in constraints {
            model.add_constraint(constraint);
        }
        match model.solve() {
            Ok(solution) => Ok(Solved(Box::new(move |variable| solution.value(variable)))),
            Err(ResolutionError::Infeasible) => Err(ModelError::Infeasible { place: place.to_owned(), why: why() }),
            Err(error) => Err(ModelError::Solver { place: place.to_owned(), why: error.to_string() }),
        }
    }
}
