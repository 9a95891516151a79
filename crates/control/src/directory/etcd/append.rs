//! Appending: a record enters the log once, although it may have to be sent several times.
//!
//! The transaction makes the record's key only if it is not there yet and the epoch is still the one in the key. If an
//! answer is lost, sending again either makes the key or finds it. If the epoch is over, nothing that was sent in it
//! can take effect any more, and the record goes into the new one.

use std::sync::Arc;

use super::call::{Answer, Call, Exchange, Fault, Get, Op, Txn, When};
use super::layout::Layout;

/// A record on its way into the log. Comes to the etcd revision at which it is there.
pub struct Append {
    layout: Arc<Layout>,
    /// Its writer, and the writer's number of it.
    name: (u64, u64),
    record: Vec<u8>,
    epoch: u64,
    /// Whether it was ever sent more than once in an epoch.
    repeated: bool,
}

impl Append {
    /// Appends these bytes, under a name that no other record ever has, in the epoch that is believed to be.
    pub fn new(layout: Arc<Layout>, name: (u64, u64), record: Vec<u8>, epoch: u64) -> Self {
        Self { layout, name, record, epoch, repeated: false }
    }

    /// The epoch that is known by now.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    fn key(&self) -> String {
        self.layout.record(self.epoch, self.name)
    }

    /// The epoch is over; this is the new one, and the one before it.
    fn over(&mut self, epoch: u64, previous: u64) -> Option<Result<u64, Fault>> {
        let before = std::mem::replace(&mut self.epoch, epoch);
        // It may have been kept in its epoch, and that be deleted already.
        let gone = self.repeated && previous != before;
        gone.then_some(Err(Fault::Unknown("two snapshots were taken since it was sent")))
    }
}

impl Exchange for Append {
    type Outcome = u64;

    fn call(&mut self) -> Call {
        let key = self.key();
        let pointer = self.layout.snapshot();
        Call::Txn(Txn {
            when: vec![When::Absent(key.clone()), When::Unchanged { key: pointer.to_owned(), revision: self.epoch }],
            otherwise: vec![Op::Get(Get { keys_only: true, ..Get::one(&key) }), Op::Get(Get::one(pointer))],
            then: vec![Op::Put { key, value: self.record.clone(), lease: None }],
        })
    }

    fn answered(&mut self, answer: Answer) -> Option<Result<u64, Fault>> {
        self.repeated |= answer.times > 1;
        if answer.succeeded {
            return Some(Ok(answer.revision));
        }
        if let Some(kept) = answer.first(0) {
            return Some(Ok(kept.changed));
        }
        match answer.pointer(1, &self.layout) {
            Ok((Some(pointer), epoch)) => self.over(epoch, pointer.previous),
            // Somebody deleted the pointer: the log begins anew.
            Ok((None, _)) => self.over(0, 0),
            Err(fault) => Some(Err(fault)),
        }
    }
}
