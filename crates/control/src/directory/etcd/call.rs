//! What of etcd is used.

use std::ops::Range;

use super::super::record::RecordError;
use super::layout::{Layout, Pointer};

/// Something asked of the cluster. Carried out more than once, it does nothing more, or what is done then is told from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Get(Get),
    Txn(Txn),
    /// A lease of so many seconds.
    Grant {
        seconds: i64,
    },
    /// Ends a lease, and with it what hangs on it.
    Revoke {
        lease: i64,
    },
    /// Lets etcd forget what was before this revision.
    Forget {
        revision: u64,
    },
}

/// A linearizable read of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Get {
    pub key: String,
    /// All keys from `key` up to this one, without it.
    pub end: Option<String>,
    /// At most so many; 0: all.
    pub limit: usize,
    /// As they were at this revision; 0: now.
    pub at: u64,
    /// Those alone that changed at this revision or later.
    pub changed_since: u64,
    pub keys_only: bool,
}

/// What happens at once, if all of the conditions hold; otherwise the other thing does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    pub when: Vec<When>,
    pub then: Vec<Op>,
    pub otherwise: Vec<Op>,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// There is no such key.
    Absent(String),
    /// The key changed last at this revision; 0: there is none.
    Unchanged { key: String, revision: u64 },
}

/// A part of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Put { key: String, value: Vec<u8>, lease: Option<i64> },
    Delete(Range<String>),
    Get(Get),
}

/// What the cluster says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The revision of the cluster after it.
    pub revision: u64,
    /// Of a transaction: whether its conditions held.
    pub succeeded: bool,
    /// By each read of the branch that was taken, in order.
    pub found: Vec<Found>,
    /// That was granted.
    pub lease: i64,
    /// How often the call was sent until this answer came.
    pub times: usize,
}

/// Found by one read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// In order of keys.
    pub pairs: Vec<Pair>,
    /// There are more than were asked for.
    pub more: bool,
}

/// A key and what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    pub key: String,
    pub value: Vec<u8>,
    /// Revision at which the key was made.
    pub created: u64,
    /// Revision at which it changed last.
    pub changed: u64,
    pub lease: i64,
}

/// Why an exchange ends without what was wanted. Revisions are etcd's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Records that were asked for are gone.
    Compacted { from: u64, compacted: u64 },
    /// The log ends before what was seen.
    Older { ends: u64, seen: u64 },
    /// There is something else where our data should be.
    Foreign { key: String, why: String },
    /// It may have been done or not.
    Unknown(&'static str),
    /// Pages do not follow their format.
    Corrupt { pages: String, revision: u64, source: RecordError },
}

/// Something that takes several calls, one after the other.
pub trait Exchange {
    /// What comes of it.
    type Outcome;

    /// The call that is to be carried now.
    fn call(&mut self) -> Call;

    /// Takes its answer; `None`: there is another call.
    fn answered(&mut self, answer: Answer) -> Option<Result<Self::Outcome, Fault>>;

    /// etcd has forgotten the revision that was being read. Returns whether to begin again.
    fn forgotten(&mut self) -> bool {
        false
    }
}

impl Get {
    pub(super) fn one(key: &str) -> Self {
        Self { key: key.to_owned(), ..Self::default() }
    }

    pub(super) fn range(keys: Range<String>) -> Self {
        Self { key: keys.start, end: Some(keys.end), ..Self::default() }
    }
}

impl Answer {
    /// The only pair, or the first, of a read.
    pub(super) fn first(&self, read: usize) -> Option<&Pair> {
        self.found.get(read)?.pairs.first()
    }

    /// The snapshot pointer that this read found, and the revision at which it was set; none and 0 if there is no snapshot.
    pub(super) fn pointer(&self, read: usize, layout: &Layout) -> Result<(Option<Pointer>, u64), Fault> {
        let Some(pair) = self.first(read) else { return Ok((None, 0)) };
        match Pointer::parse(&pair.value) {
            Ok(pointer) => Ok((Some(pointer), pair.changed)),
            Err(why) => Err(Fault::Foreign { key: layout.snapshot().to_owned(), why }),
        }
    }
}
