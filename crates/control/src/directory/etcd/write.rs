//! Snapshots: pages first, then the pointer, in a transaction that only one server can win.

use std::sync::Arc;

use super::super::Table;
use super::super::record::encode_snapshot;
use super::call::{Answer, Call, Exchange, Fault, Get, Op, Txn, When};
use super::layout::{Layout, Pointer};

/// How long a server that writes a snapshot keeps others from it if it dies.
const CLAIM_S: i64 = 30;
/// Bytes of pages in one transaction, below etcd's limit.
const TXN_BYTES: usize = 900 << 10;

/// Whether this server writes a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// None is needed.
    Needless,
    /// Another one writes one; this lease is to be revoked.
    Other { lease: i64 },
    /// It does; the lease is to be revoked when it has.
    Ours { lease: i64, turn: Turn },
}

/// Between which two snapshots a server writes its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// After the pointer of this epoch.
    pub epoch: u64,
    /// With the claim of this etcd revision; the next snapshot begins with another one.
    pub claimed: u64,
}

/// Keeps other servers from writing a snapshot at the same time: it would be work for nothing.
pub struct Claim {
    layout: Arc<Layout>,
    writer: u64,
    /// Of the snapshot.
    revision: u64,
    stage: Claiming,
}

#[derive(Clone, Copy)]
enum Claiming {
    Pointer,
    Grant { epoch: u64 },
    Claim { epoch: u64, lease: i64 },
}

impl Claim {
    /// For a snapshot at this etcd revision.
    pub fn new(layout: Arc<Layout>, writer: u64, revision: u64) -> Self {
        Self { layout, writer, revision, stage: Claiming::Pointer }
    }

    /// One that reaches no further than the current epoch's beginning would let records go that it does not hold.
    fn needed(&self, latest: Option<&Pointer>, epoch: u64) -> bool {
        latest.is_none_or(|latest| latest.revision < self.revision) && self.revision > epoch
    }
}

impl Exchange for Claim {
    type Outcome = Claimed;

    fn call(&mut self) -> Call {
        match self.stage {
            Claiming::Pointer => Call::Get(Get::one(self.layout.snapshot())),
            Claiming::Grant { .. } => Call::Grant { seconds: CLAIM_S },
            Claiming::Claim { lease, .. } => {
                let key = self.layout.snapshotting();
                let value = format!("{:016x}", self.writer).into_bytes();
                Call::Txn(Txn {
                    when: vec![When::Absent(key.to_owned())],
                    then: vec![Op::Put { key: key.to_owned(), value, lease: Some(lease) }],
                    otherwise: vec![Op::Get(Get::one(key))],
                })
            }
        }
    }

    fn answered(&mut self, answer: Answer) -> Option<Result<Claimed, Fault>> {
        match self.stage {
            Claiming::Pointer => match answer.pointer(0, &self.layout) {
                Ok((latest, epoch)) if self.needed(latest.as_ref(), epoch) => self.stage = Claiming::Grant { epoch },
                Ok(_) => return Some(Ok(Claimed::Needless)),
                Err(fault) => return Some(Err(fault)),
            },
            Claiming::Grant { epoch } => self.stage = Claiming::Claim { epoch, lease: answer.lease },
            Claiming::Claim { epoch, lease } => {
                // A claim that was sent twice finds itself.
                let found = || answer.first(0).filter(|pair| pair.lease == lease).map(|pair| pair.changed);
                let claimed = if answer.succeeded { Some(answer.revision) } else { found() };
                let ours = claimed.map(|claimed| Claimed::Ours { lease, turn: Turn { epoch, claimed } });
                return Some(Ok(ours.unwrap_or(Claimed::Other { lease })));
            }
        }
        None
    }
}

/// Writes a snapshot, unless another one comes between.
pub struct Write {
    layout: Arc<Layout>,
    revision: u64,
    turn: Turn,
    /// What the keys of its pages begin with.
    name: String,
    count: usize,
    /// Those that are not written yet.
    pages: std::iter::Enumerate<std::vec::IntoIter<Vec<u8>>>,
    stage: Writing,
}

#[derive(Clone, Copy)]
enum Writing {
    Pages,
    Pointer,
    Sweep { set: u64 },
}

impl Write {
    /// Of a table at this etcd revision.
    pub fn new(layout: Arc<Layout>, writer: u64, table: &Table, revision: u64, turn: Turn) -> Self {
        let pages = encode_snapshot(table);
        let name = layout.pages_name(revision, writer);
        let stage = if pages.is_empty() { Writing::Pointer } else { Writing::Pages };
        Self { layout, revision, turn, name, count: pages.len(), pages: pages.into_iter().enumerate(), stage }
    }

    fn some_pages(&mut self) -> Vec<Op> {
        let (mut puts, mut bytes) = (Vec::new(), 0);
        while bytes < TXN_BYTES {
            let Some((number, page)) = self.pages.next() else { break };
            bytes += page.len();
            puts.push(Op::Put { key: Layout::page(&self.name, number), value: page, lease: None });
        }
        puts
    }
}

impl Exchange for Write {
    type Outcome = ();

    fn call(&mut self) -> Call {
        let Turn { epoch, claimed } = self.turn;
        let snapshot = self.layout.snapshot().to_owned();
        let pointer = |revision| When::Unchanged { key: snapshot.clone(), revision };
        let (when, then) = match self.stage {
            Writing::Pages => (vec![pointer(epoch)], self.some_pages()),
            Writing::Pointer => {
                let value = Pointer::new(self.revision, self.name.clone(), self.count, epoch).value();
                let put = Op::Put { key: snapshot.clone(), value, lease: None };
                (vec![pointer(epoch)], vec![put])
            }
            // A copy of this may be carried out at any time. Others' pages are of no use while the pointer is ours, unless they are
            // those of the next snapshot: whoever writes that has made a claim before the first page.
            Writing::Sweep { set } => {
                let claim = When::Unchanged { key: self.layout.snapshotting().to_owned(), revision: claimed };
                let pages = self.layout.other_pages(&self.name).into_iter().map(Op::Delete).collect();
                (vec![pointer(set), claim], pages)
            }
        };
        Call::Txn(Txn { when, then, otherwise: Vec::new() })
    }

    /// A transaction that was sent twice may say no although it was carried out: for the pointer that only means that the
    /// sweeping is left to the next snapshot.
    fn answered(&mut self, answer: Answer) -> Option<Result<(), Fault>> {
        match self.stage {
            // Somebody else has taken a snapshot meanwhile; the next one sweeps these pages up.
            _ if !answer.succeeded => return Some(Ok(())),
            Writing::Pages if self.pages.len() > 0 => {}
            Writing::Pages => self.stage = Writing::Pointer,
            Writing::Pointer => self.stage = Writing::Sweep { set: answer.revision },
            Writing::Sweep { .. } => return Some(Ok(())),
        }
        None
    }
}
