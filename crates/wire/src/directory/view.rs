//! The checked look at a datagram in its receive buffer.

use super::tag::same_tag;
use super::{
    ENTRIES_MAX, ENTRY_LEN, Entry, HEADER_LEN, Key, Kind, MAGIC, Message, Path, Status, TAG_LEN, TagError, VERSION,
    datagram_len, entry_field, entry_offset, field,
};
use crate::bytes::{array, ipv4_at, u16_at, u32_at, u64_at};
use crate::error::{ParseError, need};

/// A datagram whose layout is right. Whether its sender may speak is for [`View::verify`] to say.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    bytes: &'a [u8],
    kind: Kind,
}

impl<'a> View<'a> {
    /// Checks magic, version, kind, count, exact length and reserved bits, in this order. Never allocates.
    ///
    /// # Errors
    /// The first rule that `bytes` break.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ParseError> {
        need(bytes, HEADER_LEN + TAG_LEN)?;
        let magic = u16_at(bytes, field::MAGIC);
        if magic != MAGIC {
            return Err(ParseError::Magic(magic));
        }
        let version = bytes[field::VERSION_KIND] >> 4;
        if version != VERSION {
            return Err(ParseError::Version(version));
        }
        let code = bytes[field::VERSION_KIND] & 0x0f;
        let kind = Kind::from_code(code).ok_or(ParseError::Kind(code.into()))?;
        let count = bytes[field::COUNT];
        if !kind.allows(count.into()) {
            return Err(ParseError::Count(count));
        }
        let expected_bytes = datagram_len(count.into());
        if bytes.len() != expected_bytes {
            return Err(ParseError::Length { expected_bytes, found_bytes: bytes.len() });
        }
        let view = Self { bytes, kind };
        if !view.reserved_is_zero() {
            return Err(ParseError::Reserved);
        }
        Ok(view)
    }

    /// A view of bytes that [`Self::new`] took before, when they were of this kind.
    #[inline]
    pub(super) fn checked(bytes: &'a [u8], kind: Kind) -> Self {
        Self { bytes, kind }
    }

    fn reserved_is_zero(&self) -> bool {
        u32_at(self.bytes, field::FLAGS_RESERVED) == 0
            && self.entry_slices().fold(0, |bits, entry| bits | (u32_at(entry, entry_field::STATUS) & 0x00ff_ffff)) == 0
    }

    fn entry_slices(&self) -> impl Iterator<Item = &'a [u8]> {
        self.bytes[HEADER_LEN..self.bytes.len() - TAG_LEN].chunks_exact(ENTRY_LEN)
    }

    /// What the datagram wants.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Service that the question is about.
    #[inline]
    pub fn service(&self) -> u32 {
        u32_at(self.bytes, field::SERVICE)
    }

    /// Number that an answer repeats from its question.
    #[inline]
    pub fn request_id(&self) -> u64 {
        u64_at(self.bytes, field::REQUEST_ID)
    }

    /// Revision of the directory: at least this one (question) or the one applied (answer).
    #[inline]
    pub fn revision(&self) -> u64 {
        u64_at(self.bytes, field::REVISION)
    }

    /// Which key the tag was made with.
    #[inline]
    pub fn key_id(&self) -> u32 {
        u32_at(self.bytes, field::KEY_ID)
    }

    /// Number of entries, at most [`ENTRIES_MAX`].
    #[inline]
    pub fn count(&self) -> usize {
        usize::from(self.bytes[field::COUNT])
    }

    /// Entry `index`, if there are that many.
    #[inline]
    pub fn entry(&self, index: usize) -> Option<Entry> {
        (index < self.count()).then(|| read_entry(self.bytes, index))
    }

    /// All entries, in order.
    #[inline]
    pub fn entries(&self) -> Entries<'a> {
        Entries { view: *self, next: 0 }
    }

    /// The tag as received.
    pub fn tag(&self) -> [u8; TAG_LEN] {
        array(self.bytes, self.bytes.len() - TAG_LEN)
    }

    /// Checks that a holder of `key` made this datagram for this `path` (as on the wire: source is the sender).
    ///
    /// # Errors
    /// [`TagError`]: the datagram must be dropped without an answer.
    pub fn verify(&self, key: &Key, path: &Path) -> Result<(), TagError> {
        let covered = &self.bytes[..self.bytes.len() - TAG_LEN];
        if same_tag(key.tag(covered, path), self.tag()) { Ok(()) } else { Err(TagError) }
    }

    /// The datagram as a value. Allocates the list of entries.
    pub fn to_message(&self) -> Message {
        Message {
            kind: self.kind,
            service: self.service(),
            request_id: self.request_id(),
            revision: self.revision(),
            key_id: self.key_id(),
            entries: self.entries().collect(),
        }
    }

    /// The datagram's bytes, tag included.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Reads entry `index` of a datagram that is known to have that many.
#[inline]
pub(super) fn read_entry(bytes: &[u8], index: usize) -> Entry {
    let block: [u8; ENTRY_LEN] = array(bytes, entry_offset(index));
    Entry {
        aa: ipv4_at(&block, entry_field::AA),
        tor_la: ipv4_at(&block, entry_field::TOR_LA),
        anycast_la: ipv4_at(&block, entry_field::ANYCAST_LA),
        status: Status::from(block[entry_field::STATUS]),
        version: u64_at(&block, entry_field::VERSION),
    }
}

/// The entries of a [`View`], made by [`View::entries`].
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    view: View<'a>,
    next: usize,
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let entry = self.view.entry(self.next)?;
        self.next += 1;
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.view.count() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Entries<'_> {}

const _: () = assert!(ENTRIES_MAX <= u8::MAX as usize, "the count is one byte");
