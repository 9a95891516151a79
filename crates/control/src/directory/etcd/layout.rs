//! Keys and values under the prefix.
//!
//! ```text
//! PREFIX origin               format, number that revisions begin at
//! PREFIX log/EPOCH/WRITER-N   a record; EPOCH: etcd revision of the snapshot pointer when it was appended
//! PREFIX page/REVISION-W/N    a page of a snapshot
//! PREFIX snapshot             pointer to the pages of the latest snapshot
//! PREFIX snapshotting         who writes one now; goes with its lease
//! ```
//!
//! An append is valid only while the pointer is what it was (one compare in its transaction). So the records of an
//! epoch lie between two changes of the pointer, and one range of keys holds exactly the records up to the earlier one.

use std::ops::Range;

use serde::{Deserialize, Serialize};

const FORMAT: u8 = 1;
/// As much as is told of a value that cannot be read, characters.
const WHY_LEN: usize = 200;

/// Makes keys.
#[derive(Clone, Debug)]
pub struct Layout {
    prefix: String,
    origin: String,
    snapshot: String,
    snapshotting: String,
}

impl Layout {
    /// Keys under this prefix.
    pub fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            origin: format!("{prefix}origin"),
            snapshot: format!("{prefix}snapshot"),
            snapshotting: format!("{prefix}snapshotting"),
        }
    }

    /// Where it says when the log began.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The pointer.
    pub fn snapshot(&self) -> &str {
        &self.snapshot
    }

    /// Who writes a snapshot.
    pub fn snapshotting(&self) -> &str {
        &self.snapshotting
    }

    /// A record, by its writer and the writer's number of it.
    pub fn record(&self, epoch: u64, (writer, number): (u64, u64)) -> String {
        format!("{}log/{epoch:016x}/{writer:016x}-{number:x}", self.prefix)
    }

    /// Every record.
    pub fn log(&self) -> Range<String> {
        format!("{}log/", self.prefix)..format!("{}log0", self.prefix)
    }

    /// The records before the pointer was what it was at this etcd revision.
    pub fn log_before(&self, epoch: u64) -> Range<String> {
        format!("{}log/", self.prefix)..format!("{}log/{epoch:016x}/", self.prefix)
    }

    /// What the pages of one snapshot begin with.
    pub fn pages_name(&self, revision: u64, writer: u64) -> String {
        format!("{}page/{revision:016x}-{writer:016x}/", self.prefix)
    }

    /// One of these pages.
    pub fn page(pages: &str, number: usize) -> String {
        format!("{pages}{number:08x}")
    }

    /// The keys of these pages.
    pub fn pages(pages: &str) -> Range<String> {
        pages.to_owned()..format!("{}0", pages.trim_end_matches('/'))
    }

    /// Pages of other snapshots.
    pub fn other_pages(&self, pages: &str) -> [Range<String>; 2] {
        let own = Self::pages(pages);
        [format!("{}page/", self.prefix)..own.start, own.end..format!("{}page0", self.prefix)]
    }
}

/// How etcd's revisions become ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    offset: u64,
    /// The etcd revision at which the log began.
    pub began: u64,
}

impl Origin {
    /// One for a log that begins at this time since 1970.
    pub fn at(microseconds: u64) -> Self {
        Self { offset: microseconds, began: 0 }
    }

    /// As it is kept.
    pub fn value(self) -> Vec<u8> {
        let mut value = vec![FORMAT];
        value.extend(self.offset.to_be_bytes());
        value
    }

    /// Reads one that was kept, at this etcd revision.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(value: &[u8], began: u64) -> Result<Self, String> {
        match value {
            [FORMAT, offset @ ..] if offset.len() == 8 => {
                let offset = offset.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
                Ok(Self { offset, began })
            }
            _ => Err(format!("is not of format {FORMAT}")),
        }
    }

    /// Our revision for one of etcd.
    pub fn ours(self, revision: u64) -> u64 {
        self.offset.saturating_add(revision)
    }

    /// The revision of etcd for one of ours.
    pub fn theirs(self, revision: u64) -> u64 {
        revision.saturating_sub(self.offset)
    }
}

/// The value of the pointer. Revisions are etcd's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    format: u8,
    /// The last record in the snapshot.
    pub revision: u64,
    /// What its pages' keys begin with.
    pub pages: String,
    /// How many there are.
    pub count: usize,
    /// Revision of the pointer before this one; 0 if there was none. Records up to it may be gone.
    pub previous: u64,
}

impl Pointer {
    /// One that follows the pointer of etcd revision `previous`.
    pub fn new(revision: u64, pages: String, count: usize, previous: u64) -> Self {
        Self { format: FORMAT, revision, pages, count, previous }
    }

    /// As it is kept.
    pub fn value(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and text")
    }

    /// Reads one that was kept.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(value: &[u8]) -> Result<Self, String> {
        // It quotes what it cannot read, however long that is.
        let why = |error: serde_json::Error| error.to_string().chars().take(WHY_LEN).collect::<String>();
        let pointer: Self = serde_json::from_slice(value).map_err(why)?;
        if pointer.format == FORMAT {
            Ok(pointer)
        } else {
            Err(format!("is of format {}, not {FORMAT}", pointer.format))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_they_should_and_nothing_else() {
        let layout = Layout::new("fabric/");
        let key = layout.record(0x1f, (7, 300));
        assert!(layout.log().contains(&key));
        assert!(layout.log_before(0x20).contains(&key) && !layout.log_before(0x1f).contains(&key));
        assert!(!layout.log().contains(&layout.origin));
        let pages = layout.pages_name(9, 1);
        let page = Layout::page(&pages, 3);
        assert!(Layout::pages(&pages).contains(&page));
        for other in [layout.pages_name(8, 1), layout.pages_name(9, 0), layout.pages_name(10, 0)] {
            let other = Layout::page(&other, 3);
            assert!(!Layout::pages(&pages).contains(&other));
            assert!(layout.other_pages(&pages).iter().any(|range| range.contains(&other)), "{other}");
        }
        assert!(!layout.other_pages(&pages).iter().any(|range| range.contains(&page)));
    }

    #[test]
    fn values_come_back_and_others_are_refused() {
        let origin = Origin { began: 4, ..Origin::at(1 << 50) };
        assert_eq!(Origin::parse(&origin.value(), 4), Ok(origin));
        assert_eq!(origin.theirs(origin.ours(17)), 17);
        for bad in [&[][..], &[2, 0, 0, 0, 0, 0, 0, 0, 0], &[1, 0], &[1; 10]] {
            assert!(Origin::parse(bad, 4).is_err());
        }
        let pointer = Pointer::new(5, "p/".to_owned(), 2, 3);
        assert_eq!(Pointer::parse(&pointer.value()), Ok(pointer.clone()));
        let newer = Pointer { format: 2, ..pointer };
        assert!(Pointer::parse(&newer.value()).unwrap_err().contains("format 2"));
        assert!(Pointer::parse(b"junk").is_err());
        let long = format!("\"{}\"", "x".repeat(1 << 20));
        assert_eq!(Pointer::parse(long.as_bytes()).unwrap_err().len(), WHY_LEN, "not all of it is told");
    }
}
