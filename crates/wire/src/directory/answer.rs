//! Answering in the question's own buffer, without allocation: what a directory server does for every datagram.

use super::message::{seal, write_entry, write_kind};
use super::{Entry, Key, Path, Status, View, field};
use crate::bytes::put;
use crate::error::ParseError;

/// A question being turned into its answer.
///
/// Verify the tag first ([`View::verify`]): making an `AnswerMut` already alters the bytes that it covers. Entries
/// that are not set say [`Status::Unknown`].
#[derive(Debug)]
pub struct AnswerMut<'a> {
    bytes: &'a mut [u8],
    count: usize,
}

impl<'a> AnswerMut<'a> {
    /// Turns the question in `datagram` into an answer that knows nothing yet: ask becomes answer, report-stale
    /// becomes correct, ping becomes pong. Tenant, request id, key id, AAs and known versions stay.
    ///
    /// # Errors
    /// Those of [`View::new`], and [`ParseError::Kind`] for a datagram that is no question.
    pub fn of_question(datagram: &'a mut [u8]) -> Result<Self, ParseError> {
        let view = View::new(datagram)?;
        let kind = view.kind().answer().ok_or(ParseError::Kind(view.kind() as u16))?;
        let count = view.count();
        write_kind(datagram, kind);
        let mut answer = Self { bytes: datagram, count };
        for index in 0..count {
            let known = answer.at(index);
            answer.write(index, Entry { status: Status::Unknown, ..Entry::question(known.aa, known.version) });
        }
        Ok(answer)
    }

    /// Number of entries.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Entry `index` as it stands: until it is set, the AA asked for and the version that the asker knows.
    pub fn entry(&self, index: usize) -> Option<Entry> {
        (index < self.count).then(|| self.at(index))
    }

    /// Says where the AA of entry `index` is. The AA itself stays; `entry.aa` is not looked at. An index out of range
    /// changes nothing.
    pub fn set_entry(&mut self, index: usize, entry: Entry) {
        if let Some(question) = self.entry(index) {
            self.write(index, Entry { aa: question.aa, ..entry });
        }
    }

    /// Sets the revision that the server has applied.
    pub fn set_revision(&mut self, revision: u64) {
        put(self.bytes, field::REVISION, &revision.to_be_bytes());
    }

    /// Tags the answer for its way back (source: the server) and hands out the bytes to send.
    pub fn seal(self, key: &Key, path: &Path) -> &'a [u8] {
        seal(self.bytes, key, path);
        self.bytes
    }

    fn at(&self, index: usize) -> Entry {
        super::view::read_entry(self.bytes, index)
    }

    fn write(&mut self, index: usize, entry: Entry) {
        write_entry(self.bytes, index, &entry);
    }
}
