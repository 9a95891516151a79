//! What the look-up threads count.

use weft_control::directory::Ignored;
use weft_control::tally::Tally;

/// Counts of one thread, or their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LookupCounts {
    /// Datagrams that came.
    pub(crate) datagrams: u64,
    /// Answers that the kernel took.
    pub(crate) answered: u64,
    /// AAs asked for in valid questions.
    pub(crate) questions: u64,
    /// Answers that the kernel did not take.
    pub(crate) unsent: u64,
    /// Reports of ToRs.
    pub(crate) reports: u64,
    /// Datagrams without an answer, by reason.
    pub(crate) ignored: Tally<Ignored>,
}

impl LookupCounts {
    /// Look-ups of one AA each that were answered before they came to a thread.
    pub(crate) fn add_answered_before(&mut self, lookups: u64) {
        self.datagrams += lookups;
        self.answered += lookups;
        self.questions += lookups;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.datagrams += other.datagrams;
        self.answered += other.answered;
        self.questions += other.questions;
        self.unsent += other.unsent;
        self.reports += other.reports;
        self.ignored.merge(&other.ignored);
    }
}
