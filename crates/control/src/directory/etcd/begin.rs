//! Where the log began. Revisions are those of etcd above a number made from the time, so that agents which knew an
//! earlier, lost store believe the new one.

use std::sync::Arc;

use super::call::{Answer, Call, Exchange, Fault, Get, Op, Txn, When};
use super::layout::{Layout, Origin};

/// Reads where the log began, or begins it.
pub struct Begin {
    layout: Arc<Layout>,
    fresh: Origin,
    /// There is no log yet.
    absent: bool,
}

impl Begin {
    /// A log that is begun now begins so.
    pub fn new(layout: Arc<Layout>, fresh: Origin) -> Self {
        Self { layout, fresh, absent: false }
    }
}

impl Exchange for Begin {
    type Outcome = Origin;

    fn call(&mut self) -> Call {
        let key = self.layout.origin();
        if !self.absent {
            return Call::Get(Get::one(key));
        }
        let put = Op::Put { key: key.to_owned(), value: self.fresh.value(), lease: None };
        Call::Txn(Txn { when: vec![When::Absent(key.to_owned())], then: vec![put], otherwise: Vec::new() })
    }

    fn answered(&mut self, answer: Answer) -> Option<Result<Origin, Fault>> {
        let Some(pair) = answer.first(0) else {
            // Once it is made, by whoever was first, it is read.
            self.absent = !self.absent;
            return None;
        };
        let foreign = |why| Fault::Foreign { key: self.layout.origin().to_owned(), why };
        Some(Origin::parse(&pair.value, pair.created).map_err(foreign))
    }
}
