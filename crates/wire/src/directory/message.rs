//! The datagram as a value.

use std::net::Ipv4Addr;

use super::{
    ENTRIES_MAX, ENTRY_LEN, HEADER_LEN, Key, MAGIC, Path, TAG_LEN, VERSION, View, datagram_len, entry_field,
    entry_offset, field,
};
use crate::bytes::put;
use crate::error::ParseError;

/// What a datagram wants: four bits on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Agent to server: where are these AAs?
    Ask = 1,
    /// Server to agent: they are there.
    Answer = 2,
    /// To a server: traffic for these AAs arrived at a wrong place (VL2 4.4, reactive cache update).
    ReportStale = 3,
    /// Server to agent: your mapping of these AAs is out of date, take these.
    Correct = 4,
    /// To a server: are you there? Without entries.
    Ping = 5,
    /// The answer to a ping, with the server's revision. Without entries.
    Pong = 6,
}

impl Kind {
    /// Every kind, in the order of the code points.
    pub const ALL: [Self; 6] = [Self::Ask, Self::Answer, Self::ReportStale, Self::Correct, Self::Ping, Self::Pong];

    /// The kind with code point `code`.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code)
    }

    /// Whether a datagram of this kind may carry `count` entries: none in ping and pong, else 1 to [`ENTRIES_MAX`].
    pub fn allows(self, count: usize) -> bool {
        match self {
            Self::Ping | Self::Pong => count == 0,
            _ => (1..=ENTRIES_MAX).contains(&count),
        }
    }

    /// The kind that answers this one; `None` for kinds that are answers themselves.
    pub fn answer(self) -> Option<Self> {
        match self {
            Self::Ask => Some(Self::Answer),
            Self::ReportStale => Some(Self::Correct),
            Self::Ping => Some(Self::Pong),
            Self::Answer | Self::Correct | Self::Pong => None,
        }
    }
}

/// What an entry says about its AA: one byte on the wire. Unknown code points are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// A question: nothing is said yet.
    Question,
    /// The LAs and the version are those of the AA.
    Ok,
    /// No mapping for this AA in this service.
    Unknown,
    /// The asker may not know.
    Refused,
    /// The server has not yet applied the revision that was asked for.
    Behind,
    /// The server has no time for this; ask another.
    Overloaded,
    /// A code point without a meaning in this version (6 and up).
    Other(u8),
}

impl From<u8> for Status {
    #[inline]
    fn from(code: u8) -> Self {
        match code {
            0 => Self::Question,
            1 => Self::Ok,
            2 => Self::Unknown,
            3 => Self::Refused,
            4 => Self::Behind,
            5 => Self::Overloaded,
            other => Self::Other(other),
        }
    }
}

impl From<Status> for u8 {
    #[inline]
    fn from(status: Status) -> Self {
        match status {
            Status::Question => 0,
            Status::Ok => 1,
            Status::Unknown => 2,
            Status::Refused => 3,
            Status::Behind => 4,
            Status::Overloaded => 5,
            Status::Other(code) => code,
        }
    }
}

/// One AA and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Application address: the name of a server, which it keeps wherever it moves.
    pub aa: Ipv4Addr,
    /// Locator address of the server's ToR switch: the inner tunnel's end.
    pub tor_la: Ipv4Addr,
    /// Anycast locator address of the Intermediate switches to bounce off: the outer tunnel's end.
    pub anycast_la: Ipv4Addr,
    /// What is said about the AA.
    pub status: Status,
    /// Version of the mapping; in a question the version already known, 0 for none.
    pub version: u64,
}

impl Entry {
    /// A question about `aa` by an asker that knows version `known_version` of its mapping (0: none).
    pub const fn question(aa: Ipv4Addr, known_version: u64) -> Self {
        let nowhere = Ipv4Addr::UNSPECIFIED;
        Self { aa, tor_la: nowhere, anycast_la: nowhere, status: Status::Question, version: known_version }
    }
}

/// A whole datagram, without its tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Message {
    /// What it wants.
    pub kind: Kind,
    /// Service that the AAs belong to.
    pub service: u32,
    /// Random number that the answer repeats.
    pub request_id: u64,
    /// Revision of the directory: at least this one (question, 0: any) or the one applied (answer).
    pub revision: u64,
    /// Which key makes the tag.
    pub key_id: u32,
    /// The AAs, as many as [`Kind::allows`].
    pub entries: Vec<Entry>,
}

/// A message that cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// More or fewer entries than the kind allows.
    #[error("{kind:?} cannot carry {count} entries; split the message")]
    Count {
        kind: Kind,
        /// Entries that it has.
        count: usize,
    },
    /// A buffer that does not hold the datagram.
    #[error("buffer of {found_bytes} bytes cannot hold a datagram of {needed_bytes} bytes")]
    Buffer {
        /// Bytes of the datagram.
        needed_bytes: usize,
        /// Bytes of the buffer.
        found_bytes: usize,
    },
}

impl Message {
    /// Reads a datagram. Its tag is not looked at: see [`View::verify`].
    ///
    /// # Errors
    /// Those of [`View::new`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        View::new(bytes).map(|view| view.to_message())
    }

    /// Length of the datagram, bytes, tag included.
    pub fn buffer_len(&self) -> usize {
        datagram_len(self.entries.len())
    }

    /// The datagram, tagged with `key` for `path`.
    ///
    /// # Panics
    /// When [`Kind::allows`] says no to the number of entries; [`Message::emit_into`] returns that as an error.
    pub fn emit(&self, key: &Key, path: &Path) -> Vec<u8> {
        let mut buffer = vec![0; self.buffer_len()];
        self.emit_into(&mut buffer, key, path).expect("the number of entries fits the kind");
        buffer
    }

    /// Writes the datagram to the start of `buffer`, tagged with `key` for `path`, and returns its length in bytes.
    ///
    /// # Errors
    /// A number of entries that the kind does not allow, or a buffer shorter than [`Message::buffer_len`].
    pub fn emit_into(&self, buffer: &mut [u8], key: &Key, path: &Path) -> Result<usize, EmitError> {
        let count = self.entries.len();
        if !self.kind.allows(count) {
            return Err(EmitError::Count { kind: self.kind, count });
        }
        let (needed_bytes, found_bytes) = (self.buffer_len(), buffer.len());
        let bytes = buffer.get_mut(..needed_bytes).ok_or(EmitError::Buffer { needed_bytes, found_bytes })?;
        self.write_header(bytes);
        for (index, entry) in self.entries.iter().enumerate() {
            write_entry(bytes, index, entry);
        }
        seal(bytes, key, path);
        Ok(needed_bytes)
    }

    fn write_header(&self, bytes: &mut [u8]) {
        put(bytes, field::MAGIC, &MAGIC.to_be_bytes());
        write_kind(bytes, self.kind);
        bytes[field::COUNT] = self.entries.len() as u8;
        put(bytes, field::SERVICE, &self.service.to_be_bytes());
        put(bytes, field::REQUEST_ID, &self.request_id.to_be_bytes());
        put(bytes, field::REVISION, &self.revision.to_be_bytes());
        put(bytes, field::KEY_ID, &self.key_id.to_be_bytes());
        bytes[field::FLAGS_RESERVED..HEADER_LEN].fill(0);
    }
}

pub(super) fn write_kind(bytes: &mut [u8], kind: Kind) {
    bytes[field::VERSION_KIND] = VERSION << 4 | kind as u8;
}

#[inline]
pub(super) fn write_entry(bytes: &mut [u8], index: usize, entry: &Entry) {
    // One array, one copy: the server does this for every AA.
    let mut block = [0; ENTRY_LEN];
    put(&mut block, entry_field::AA, &entry.aa.octets());
    put(&mut block, entry_field::TOR_LA, &entry.tor_la.octets());
    put(&mut block, entry_field::ANYCAST_LA, &entry.anycast_la.octets());
    block[entry_field::STATUS] = entry.status.into();
    put(&mut block, entry_field::VERSION, &entry.version.to_be_bytes());
    put(bytes, entry_offset(index), &block);
}

/// Writes the tag over everything before it.
pub(super) fn seal(bytes: &mut [u8], key: &Key, path: &Path) {
    let (covered, tag) = bytes.split_at_mut(bytes.len() - TAG_LEN);
    tag.copy_from_slice(&key.tag(covered, path));
}
