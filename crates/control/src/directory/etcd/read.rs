//! Reading what is in the log: the records after some revision, and the table of the latest snapshot.

use std::sync::Arc;

use super::super::Table;
use super::super::record::decode_snapshot;
use super::call::{Answer, Call, Exchange, Fault, Found, Get, Pair};
use super::layout::{Layout, Origin, Pointer};
use super::tail::Raw;

/// Records read at a time.
const RECORDS_AT_ONCE: usize = 64;
/// Pages read at a time.
const PAGES_AT_ONCE: usize = 32;

/// Reads every record after an etcd revision, as the log is at one revision. Comes to the records and that revision.
pub struct ReadLog {
    layout: Arc<Layout>,
    after: u64,
    /// The revision that is read, once it is known, and the key to read on from.
    at: Option<(u64, String)>,
    records: Vec<Raw>,
}

impl ReadLog {
    /// Reads what came after this etcd revision.
    pub fn new(layout: Arc<Layout>, after: u64) -> Self {
        Self { layout, after, at: None, records: Vec::new() }
    }

    fn begin(&mut self, answer: &Answer) -> Result<(), Fault> {
        let (pointer, _) = answer.pointer(0, &self.layout)?;
        let gone = pointer.map_or(0, |pointer| pointer.previous);
        let now = answer.revision;
        if self.after < gone {
            return Err(Fault::Compacted { from: self.after, compacted: gone });
        }
        if now < self.after {
            return Err(Fault::Older { ends: now, seen: self.after });
        }
        self.at = Some((now, self.layout.log().start));
        Ok(())
    }
}

impl Exchange for ReadLog {
    type Outcome = (Vec<Raw>, u64);

    fn call(&mut self) -> Call {
        let Some((at, start)) = &self.at else { return Call::Get(Get::one(self.layout.snapshot())) };
        Call::Get(Get {
            limit: RECORDS_AT_ONCE,
            at: *at,
            changed_since: self.after + 1,
            ..Get::range(start.clone()..self.layout.log().end)
        })
    }

    fn answered(&mut self, mut answer: Answer) -> Option<Result<Self::Outcome, Fault>> {
        let Some((at, start)) = &mut self.at else { return self.begin(&answer).err().map(Err) };
        let Found { pairs, more } = answer.found.pop().unwrap_or_default();
        let last = last_key(&pairs, more);
        let new = pairs.into_iter().filter(|pair| pair.changed > self.after);
        self.records.extend(new.map(|pair| (pair.changed, pair.value)));
        if let Some(last) = last {
            *start = last;
            return None;
        }
        self.records.sort_unstable_by_key(|(revision, _)| *revision);
        Some(Ok((std::mem::take(&mut self.records), *at)))
    }

    fn forgotten(&mut self) -> bool {
        self.at = None;
        self.records.clear();
        true
    }
}

/// Where to read on, if there is more.
fn last_key(pairs: &[Pair], more: bool) -> Option<String> {
    pairs.last().filter(|_| more).map(|last| format!("{}\0", last.key))
}

/// Loads the table of the latest snapshot, an empty one where the log began if there is none.
pub struct Load {
    layout: Arc<Layout>,
    origin: Origin,
    stage: Stage,
}

enum Stage {
    Origin,
    Pointer,
    Pages { pointer: Pointer, at: u64, start: String, pages: Vec<Vec<u8>> },
}

impl Load {
    /// Loads from the log that began so.
    pub fn new(layout: Arc<Layout>, origin: Origin) -> Self {
        Self { layout, origin, stage: Stage::Origin }
    }

    /// Refuses a cluster whose log is not the one that was opened: it was emptied or replaced.
    fn still_ours(&self, answer: &Answer) -> Result<(), Fault> {
        let origin = answer.first(0).map(|pair| Origin::parse(&pair.value, pair.created));
        if origin == Some(Ok(self.origin)) {
            return Ok(());
        }
        let why = "is not what it was: the cluster was emptied or restored; restart this server".to_owned();
        Err(Fault::Foreign { key: self.layout.origin().to_owned(), why })
    }

    fn table(&self, pointer: &Pointer, pages: &[Vec<u8>]) -> Result<Table, Fault> {
        if pages.len() != pointer.count {
            let why = format!("names {} pages and {} are there", pointer.count, pages.len());
            return Err(Fault::Foreign { key: self.layout.snapshot().to_owned(), why });
        }
        let revision = self.origin.ours(pointer.revision);
        let corrupt = |source| Fault::Corrupt { pages: pointer.pages.clone(), revision, source };
        decode_snapshot(revision, pages.iter().map(Vec::as_slice)).map_err(corrupt)
    }
}

impl Exchange for Load {
    type Outcome = Table;

    fn call(&mut self) -> Call {
        Call::Get(match &self.stage {
            Stage::Origin => Get::one(self.layout.origin()),
            Stage::Pointer => Get::one(self.layout.snapshot()),
            Stage::Pages { pointer, at, start, .. } => {
                let end = Layout::pages(&pointer.pages).end;
                Get { limit: PAGES_AT_ONCE, at: *at, ..Get::range(start.clone()..end) }
            }
        })
    }

    fn answered(&mut self, mut answer: Answer) -> Option<Result<Table, Fault>> {
        match &mut self.stage {
            Stage::Origin => {
                if let Err(fault) = self.still_ours(&answer) {
                    return Some(Err(fault));
                }
                self.stage = Stage::Pointer;
                None
            }
            Stage::Pointer => {
                let pointer = match answer.pointer(0, &self.layout) {
                    Ok((Some(pointer), _)) => pointer,
                    Ok((None, _)) => return Some(Ok(Table::at(self.origin.ours(self.origin.began)))),
                    Err(fault) => return Some(Err(fault)),
                };
                let start = Layout::pages(&pointer.pages).start;
                let pages = Vec::with_capacity(pointer.count.min(1 << 16));
                self.stage = Stage::Pages { pointer, at: answer.revision, start, pages };
                None
            }
            Stage::Pages { start, pages, .. } => {
                let found = answer.found.pop().unwrap_or_default();
                let last = last_key(&found.pairs, found.more);
                pages.extend(found.pairs.into_iter().map(|pair| pair.value));
                if let Some(last) = last {
                    *start = last;
                    return None;
                }
                let Stage::Pages { pointer, pages, .. } = std::mem::replace(&mut self.stage, Stage::Origin) else {
                    return None;
                };
                Some(self.table(&pointer, &pages))
            }
        }
    }

    /// The snapshot was replaced while it was read.
    fn forgotten(&mut self) -> bool {
        let reading = matches!(self.stage, Stage::Pages { .. });
        self.stage = Stage::Pointer;
        reading
    }
}
