//! Answering in the question's own buffer, without allocation: what a directory server does for every datagram.

use std::net::Ipv4Addr;

use super::message::{seal, write_entry, write_kind};
use super::{Entry, Key, Kind, Path, Status, View, entry_field, entry_offset, field};
use crate::bytes::{ipv4_at, put};
use crate::error::ParseError;

/// A question in the buffer in which it will be answered. It is checked once, when this is made.
#[derive(Debug)]
pub struct QuestionMut<'a> {
    bytes: &'a mut [u8],
    kind: Kind,
    answer: Kind,
    count: usize,
}

impl<'a> QuestionMut<'a> {
    /// Checks the layout.
    ///
    /// # Errors
    /// Those of [`View::new`], and [`ParseError::Kind`] for a datagram that is no question.
    pub fn new(datagram: &'a mut [u8]) -> Result<Self, ParseError> {
        let view = View::new(datagram)?;
        let (kind, count) = (view.kind(), view.count());
        let answer = kind.answer().ok_or(ParseError::Kind(kind as u16))?;
        Ok(Self { bytes: datagram, kind, answer, count })
    }

    /// The question to read, and its tag to verify.
    #[inline]
    pub fn view(&self) -> View<'_> {
        View::checked(self.bytes, self.kind)
    }

    /// Number of entries.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Service of the asker.
    #[inline]
    pub fn service(&self) -> u32 {
        self.view().service()
    }

    /// Which key the tag was made with.
    #[inline]
    pub fn key_id(&self) -> u32 {
        self.view().key_id()
    }

    /// The oldest revision that the asker accepts.
    #[inline]
    pub fn revision(&self) -> u64 {
        self.view().revision()
    }

    /// The AA of entry `index`.
    ///
    /// # Panics
    /// When there are not that many entries.
    #[inline]
    pub fn aa(&self, index: usize) -> Ipv4Addr {
        assert!(index < self.count, "entry {index} of {}", self.count);
        ipv4_at(self.bytes, entry_offset(index) + entry_field::AA)
    }

    /// Writes the answer of a server at this revision: `entry` is given the question of every entry. The AA of what it
    /// returns is not looked at.
    pub fn answer(self, revision: u64, mut entry: impl FnMut(Entry) -> Entry) -> AnswerMut<'a> {
        write_kind(self.bytes, self.answer);
        for index in 0..self.count {
            let question = super::view::read_entry(self.bytes, index);
            let found = entry(Entry { status: Status::Question, ..question });
            write_entry(self.bytes, index, &Entry { aa: question.aa, ..found });
        }
        let mut answer = AnswerMut { bytes: self.bytes, count: self.count };
        answer.set_revision(revision);
        answer
    }
}

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
    /// becomes correct, ping becomes pong. Service, request id, key id, AAs and known versions stay.
    ///
    /// # Errors
    /// Those of [`View::new`], and [`ParseError::Kind`] for a datagram that is no question.
    pub fn of_question(datagram: &'a mut [u8]) -> Result<Self, ParseError> {
        let question = QuestionMut::new(datagram)?;
        let (revision, unknown) = (question.revision(), Status::Unknown);
        Ok(question.answer(revision, |known| Entry { status: unknown, ..Entry::question(known.aa, known.version) }))
    }

    /// Number of entries.
    #[inline]
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
    #[inline]
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
