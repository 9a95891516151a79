//! What may go once there are snapshots: whoever follows may lag by what came after the one before the latest.

use std::sync::Arc;

use super::call::{Answer, Call, Exchange, Fault, Get, Op, Txn};
use super::layout::Layout;

/// Deletes the records before the previous snapshot, and lets etcd forget as much.
pub struct Compact {
    layout: Arc<Layout>,
    to: u64,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    Pointer,
    Delete { margin: u64 },
    Forget { margin: u64 },
}

impl Compact {
    /// A snapshot covers the records up to this etcd revision.
    pub fn new(layout: Arc<Layout>, to: u64) -> Self {
        Self { layout, to, stage: Stage::Pointer }
    }

    /// Whether what is left to do is not ours alone: a cluster's operator may keep it to himself.
    pub fn deleted(&self) -> bool {
        matches!(self.stage, Stage::Forget { .. })
    }
}

impl Exchange for Compact {
    type Outcome = ();

    fn call(&mut self) -> Call {
        match self.stage {
            Stage::Pointer => Call::Get(Get::one(self.layout.snapshot())),
            Stage::Delete { margin } => {
                Call::Txn(Txn { then: vec![Op::Delete(self.layout.log_before(margin))], ..Txn::default() })
            }
            Stage::Forget { margin } => Call::Forget { revision: margin },
        }
    }

    fn answered(&mut self, answer: Answer) -> Option<Result<(), Fault>> {
        self.stage = match self.stage {
            Stage::Pointer => match answer.pointer(0, &self.layout) {
                Ok((Some(pointer), _)) if pointer.previous != 0 && pointer.previous <= self.to => {
                    Stage::Delete { margin: pointer.previous }
                }
                Ok(_) => return Some(Ok(())),
                Err(fault) => return Some(Err(fault)),
            },
            Stage::Delete { margin } => Stage::Forget { margin },
            Stage::Forget { .. } => return Some(Ok(())),
        };
        None
    }
}
