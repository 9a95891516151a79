//! Judges histories of updates: were they linearizable, AA by AA?
//!
//! A history lists what clients asked about one AA, when they asked, when they were answered, and with what. It is
//! linearizable if some order of the requests, in which each stands between its question and its answer, explains every
//! answer. Linearizability composes, so AAs are judged one by one. The search is Wing and Gong's with Lowe's memory of
//! states that led nowhere; what is unknown about a request without an answer stays unknown until an answer tells.

use std::collections::HashSet;
use std::fmt;

/// What a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The AA is at the place with this number.
    Set {
        /// The place.
        place: u64,
        /// Only if this is the current version.
        if_version: Option<u64>,
    },
    /// The AA is nowhere.
    Delete {
        /// Only if this is the current version.
        if_version: Option<u64>,
    },
    /// Where is it? Only reads that promise the latest state belong into a history; look-ups do not.
    Read,
}

/// What it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Done, in the record of this revision.
    Applied {
        /// The revision.
        revision: u64,
    },
    /// The version was another one.
    Mismatch {
        /// The one there was.
        current: u64,
    },
    /// There was nothing to delete.
    NotFound,
    /// Of a read.
    Found {
        /// Version of the last change, 0 if there was none.
        version: u64,
        /// Where it is.
        place: Option<u64>,
    },
}

/// A request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    /// What was asked for.
    pub(super) action: Action,
    /// When, in nanoseconds.
    pub(super) asked_ns: u64,
    /// When it was answered, and what; `None` if it never was: then it may have happened at any time since, or not.
    pub(super) answer: Option<(u64, Outcome)>,
}

/// Operations that one search can hold.
const OPERATIONS_MAX: usize = 128;

/// A history that no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// The longest explanation there is: operations in order, as places in the history.
    pub(super) explained: Vec<usize>,
    /// Operations that could come next by their times, and do not fit the state then.
    pub(super) stuck: Vec<usize>,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "not linearizable: after operations {:?} none of {:?} can be next", self.explained, self.stuck)
    }
}

/// Judges the history of one AA that began without a mapping.
pub(super) fn check(history: &[Operation]) -> Result<(), Violation> {
    assert!(history.len() <= OPERATIONS_MAX, "{} operations, at most {OPERATIONS_MAX}", history.len());
    let mut search = Search { history, seen: HashSet::new(), order: Vec::new(), best: None };
    if search.explains(0, State::default()) { Ok(()) } else { Err(search.best.expect("the start was tried")) }
}

/// What is known of the AA after some operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    /// Its version, or the least that it can be.
    version: u64,
    /// Whether it can be more.
    or_more: bool,
    place: Option<u64>,
    /// The newest revision that an answer named: records are applied in their order.
    revision: u64,
}

struct Search<'a> {
    history: &'a [Operation],
    /// Sets of operations with the state after them that lead nowhere.
    seen: HashSet<(u128, State)>,
    order: Vec<usize>,
    best: Option<Violation>,
}

impl Search<'_> {
    /// Whether an order of the operations that are not in `done` explains their answers.
    fn explains(&mut self, done: u128, state: State) -> bool {
        let open = |index: &usize| done & 1 << index == 0;
        let Some(first_answer_ns) = self.remaining(done).filter_map(|(_, answered_ns)| answered_ns).min() else {
            return true;
        };
        if !self.seen.insert((done, state)) {
            return false;
        }
        let next: Vec<usize> =
            (0..self.history.len()).filter(open).filter(|at| self.history[*at].asked_ns <= first_answer_ns).collect();
        for index in &next {
            if let Some(after) = state.after(&self.history[*index]) {
                self.order.push(*index);
                if self.explains(done | 1 << index, after) {
                    return true;
                }
                self.order.pop();
            }
        }
        if self.best.as_ref().is_none_or(|best| best.explained.len() < self.order.len()) {
            self.best = Some(Violation { explained: self.order.clone(), stuck: next });
        }
        false
    }

    fn remaining(&self, done: u128) -> impl Iterator<Item = (usize, Option<u64>)> + '_ {
        let all = self.history.iter().enumerate();
        all.filter(move |(index, _)| done & 1 << index == 0)
            .map(|(index, operation)| (index, operation.answer.map(|(at_ns, _)| at_ns)))
    }
}

impl State {
    /// The state after an operation that comes next, if its answer fits.
    fn after(self, operation: &Operation) -> Option<Self> {
        match (operation.action, operation.answer.map(|(_, outcome)| outcome)) {
            (Action::Read, Some(Outcome::Found { version, place })) => {
                let same_place = self.place == place;
                self.is(version).filter(|_| same_place)
            }
            (Action::Read, None) => Some(self),
            (Action::Set { place, if_version }, answer) => self.changed(Some(place), if_version, answer),
            (Action::Delete { if_version }, answer) => self.changed(None, if_version, answer),
            (Action::Read, Some(_)) => None,
        }
    }

    fn changed(self, place: Option<u64>, if_version: Option<u64>, answer: Option<Outcome>) -> Option<Self> {
        match answer {
            Some(Outcome::Mismatch { current }) => {
                self.is(current).filter(|_| if_version.is_some_and(|v| v != current))
            }
            Some(Outcome::NotFound) => {
                let nothing = place.is_none() && self.place.is_none();
                self.fitting(if_version).filter(|_| nothing)
            }
            Some(Outcome::Applied { revision }) => self.applied(place, if_version, Some(revision)),
            // It may have been refused: then nothing changed. The search also tries to leave it out, so here it is done.
            None => self.applied(place, if_version, None),
            Some(Outcome::Found { .. }) => None,
        }
    }

    fn applied(self, place: Option<u64>, if_version: Option<u64>, revision: Option<u64>) -> Option<Self> {
        let before = self.fitting(if_version)?;
        if place.is_none() && before.place.is_none() {
            return None;
        }
        if revision.is_some_and(|revision| revision < before.revision) {
            return None;
        }
        let above = before.version.checked_add(1)?;
        let or_more = before.or_more || revision.is_none();
        let revision = revision.unwrap_or(before.revision);
        Some(Self { version: above.max(revision), or_more, place, revision })
    }

    /// The state, if its version can be the one that a condition names.
    fn fitting(self, if_version: Option<u64>) -> Option<Self> {
        if_version.map_or(Some(self), |version| self.is(version))
    }

    /// The state, if its version can be this one.
    fn is(self, version: u64) -> Option<Self> {
        let fits = version == self.version || self.or_more && version > self.version;
        fits.then_some(Self { version, or_more: false, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(action: Action, asked_ns: u64, answered_ns: u64, outcome: Outcome) -> Operation {
        Operation { action, asked_ns, answer: Some((answered_ns, outcome)) }
    }

    fn set(place: u64) -> Action {
        Action::Set { place, if_version: None }
    }

    fn set_if(place: u64, version: u64) -> Action {
        Action::Set { place, if_version: Some(version) }
    }

    const DELETE: Action = Action::Delete { if_version: None };

    fn applied(revision: u64) -> Outcome {
        Outcome::Applied { revision }
    }

    fn found(version: u64, place: u64) -> Outcome {
        Outcome::Found { version, place: Some(place) }
    }

    #[track_caller]
    fn good(history: &[Operation]) {
        assert_eq!(check(history), Ok(()));
    }

    #[track_caller]
    fn bad(history: &[Operation]) {
        assert!(check(history).is_err(), "{history:?}");
    }

    #[test]
    fn operations_one_after_the_other_must_fit() {
        good(&[]);
        good(&[
            operation(Action::Read, 0, 1, Outcome::Found { version: 0, place: None }),
            operation(set(1), 2, 3, applied(7)),
            operation(Action::Read, 4, 5, found(7, 1)),
            operation(set_if(2, 7), 6, 7, applied(9)),
            operation(set_if(3, 7), 8, 9, Outcome::Mismatch { current: 9 }),
            operation(DELETE, 10, 11, applied(12)),
            operation(DELETE, 12, 13, Outcome::NotFound),
            operation(Action::Read, 14, 15, Outcome::Found { version: 12, place: None }),
        ]);
    }

    #[test]
    fn a_lost_update_is_noticed() {
        bad(&[
            operation(set(1), 0, 1, applied(7)),
            operation(Action::Read, 2, 3, Outcome::Found { version: 0, place: None }),
        ]);
        bad(&[
            operation(set(1), 0, 1, applied(7)),
            operation(set(2), 2, 3, applied(8)),
            operation(Action::Read, 4, 5, found(7, 1)),
        ]);
    }

    #[test]
    fn an_old_read_is_noticed_although_each_alone_is_right() {
        let write = operation(set(1), 0, 10, applied(7));
        let nothing = Outcome::Found { version: 0, place: None };
        let before = |at| operation(Action::Read, at, at + 1, nothing);
        let after = |at| operation(Action::Read, at, at + 1, found(7, 1));
        good(&[write, before(2), after(5)]);
        bad(&[write, after(2), before(5)]);
    }

    #[test]
    fn an_update_that_happens_twice_is_noticed() {
        bad(&[
            operation(set(1), 0, 1, applied(7)),
            operation(set(2), 2, 3, applied(8)),
            operation(Action::Read, 4, 5, found(9, 1)),
        ]);
        bad(&[operation(set_if(1, 0), 0, 9, applied(7)), operation(set_if(2, 0), 0, 9, applied(8))]);
    }

    #[test]
    fn concurrent_updates_may_be_in_either_order_but_in_one() {
        let both = [operation(set(1), 0, 10, applied(8)), operation(set(2), 0, 10, applied(7))];
        good(&[both[0], both[1], operation(Action::Read, 11, 12, found(8, 1))]);
        bad(&[both[0], both[1], operation(Action::Read, 11, 12, found(7, 2))]);
        bad(&[
            both[0],
            both[1],
            operation(Action::Read, 11, 12, found(8, 1)),
            operation(Action::Read, 13, 14, found(7, 2)),
        ]);
    }

    #[test]
    fn a_request_without_an_answer_may_happen_late_or_never() {
        let lost = Operation { action: set(1), asked_ns: 5, answer: None };
        good(&[lost, operation(Action::Read, 6, 7, Outcome::Found { version: 0, place: None })]);
        good(&[
            lost,
            operation(Action::Read, 6, 7, Outcome::Found { version: 0, place: None }),
            operation(Action::Read, 8, 9, found(30, 1)),
        ]);
        bad(&[lost, operation(Action::Read, 0, 1, found(3, 1))]);
        bad(&[
            lost,
            operation(Action::Read, 6, 7, found(3, 1)),
            operation(Action::Read, 8, 9, Outcome::Found { version: 0, place: None }),
        ]);
        bad(&[lost, operation(Action::Read, 6, 7, found(3, 1)), operation(Action::Read, 8, 9, found(4, 1))]);
    }

    #[test]
    fn what_an_answer_says_of_an_unanswered_request_binds_the_others() {
        let lost = Operation { action: set(1), asked_ns: 0, answer: None };
        let refused = operation(set_if(2, 0), 1, 2, Outcome::Mismatch { current: 6 });
        good(&[lost, refused, operation(set_if(3, 6), 3, 4, applied(9))]);
        bad(&[lost, refused, operation(set_if(3, 5), 3, 4, applied(9))]);
        bad(&[refused]);
    }

    #[test]
    fn a_refusal_from_a_table_that_lags_is_noticed() {
        bad(&[
            operation(set(1), 0, 1, applied(7)),
            operation(set(2), 2, 3, applied(8)),
            operation(set_if(3, 8), 4, 5, Outcome::Mismatch { current: 7 }),
        ]);
        bad(&[operation(set(1), 0, 1, applied(7)), operation(DELETE, 2, 3, Outcome::NotFound)]);
    }

    #[test]
    fn long_histories_of_many_clients_are_judged_quickly() {
        let mut history = Vec::new();
        for round in 0..12u64 {
            for client in 0..10 {
                let revision = round * 10 + client + 1;
                history.push(operation(set(revision), round * 100, round * 100 + 99, applied(revision)));
            }
        }
        history.push(operation(Action::Read, 5000, 5001, found(120, 120)));
        good(&history);
        *history.last_mut().unwrap() = operation(Action::Read, 5000, 5001, found(119, 119));
        bad(&history);
    }
}
