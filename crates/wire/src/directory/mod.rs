//! The directory's look-up datagram: AA to LA, one UDP datagram each way (VL2 section 4.4).
//!
//! Question and answer are one layout and have equal length, so a server can answer in the question's own buffer and
//! cannot be used to amplify traffic. Numbers are big-endian.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------+-------+---------------+
//! |     magic 0x5744 ("WD")       |version| kind  | count 0..=40  |   0
//! +-------------------------------+-------+-------+---------------+
//! |                   service: that of the asker                  |   4
//! +---------------------------------------------------------------+
//! |                          request id                           |   8
//! |                                                               |
//! +---------------------------------------------------------------+
//! |                           revision                            |  16
//! |                                                               |
//! +---------------------------------------------------------------+
//! |                            key id                             |  24
//! +---------------+-----------------------------------------------+
//! |    flags = 0  |                 reserved = 0                  |  28
//! +---------------+-----------------------------------------------+
//! |                              AA                               |  32 + 24 i
//! +---------------------------------------------------------------+
//! |                            ToR LA                             |
//! +---------------------------------------------------------------+
//! |                          anycast LA                           |
//! +---------------+-----------------------------------------------+
//! |     status    |                 reserved = 0                  |
//! +---------------+-----------------------------------------------+
//! |                       version of the mapping                  |
//! |                                                               |
//! +---------------------------------------------------------------+
//! |           tag: SipHash-2-4-128 over all bytes above,          |  32 + 24 count
//! |        then source address, source port, destination          |
//! |           address, destination port as on the wire            |
//! |                                                               |
//! +---------------------------------------------------------------+
//! ```
//!
//! `request id` is chosen at random by the asker and echoed. `revision` is 0 in a question for "any", else the oldest
//! revision of the directory that the asker accepts; in an answer it is the revision that the server had applied.
//! `version` is the version of the mapping: the one already known in a question (0: none), the current one in an
//! answer.
//!
//! The tag's key belongs to the asker: [`Secret::derive`] of the secret that `key id` names, of `service` and of the
//! asker's address. An answer and a correction are tagged with the key of whom they go to.
//!
//! A report (VL2 4.3.2, reactive cache update) is a switch's: service 0 and the key of the ToR's LA. Its entries say: a
//! packet for `AA` came to this ToR and `AA` is not here; `ToR LA` is the ToR's own, and in place of the anycast LA stands the
//! AA that the packet came from. The outer source address could not tell that: it carries the flow hash.

mod answer;
mod message;
mod tag;
#[cfg(test)]
mod tests;
pub mod update;
mod view;

pub use answer::{AnswerMut, QuestionMut};
pub use message::{EmitError, Entry, Kind, Message, Status};
pub use tag::{Key, KeyError, Path, Secret, TagError};
pub use view::{Entries, View};

/// UDP port of a directory server unless configured otherwise.
pub const PORT: u16 = 5300;

/// First two bytes of every datagram: "WD".
pub const MAGIC: u16 = 0x5744;

/// The version of the layout described here.
pub const VERSION: u8 = 1;

/// Length of the header, bytes.
pub const HEADER_LEN: usize = 32;

/// Length of one entry, bytes.
pub const ENTRY_LEN: usize = 24;

/// Length of the tag, bytes.
pub const TAG_LEN: usize = 16;

/// Entries that one datagram may carry, so that it stays below every usual MTU (1008 bytes).
pub const ENTRIES_MAX: usize = 40;

/// Length of the longest datagram, bytes.
pub const DATAGRAM_LEN_MAX: usize = datagram_len(ENTRIES_MAX);

/// Length of a datagram with `entries` entries, bytes.
pub const fn datagram_len(entries: usize) -> usize {
    HEADER_LEN + entries * ENTRY_LEN + TAG_LEN
}

/// Offsets inside the header.
mod field {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION_KIND: usize = 2;
    pub(super) const COUNT: usize = 3;
    pub(super) const SERVICE: usize = 4;
    pub(super) const REQUEST_ID: usize = 8;
    pub(super) const REVISION: usize = 16;
    pub(super) const KEY_ID: usize = 24;
    pub(super) const FLAGS_RESERVED: usize = 28;
}

/// Offsets inside an entry.
mod entry_field {
    pub(super) const AA: usize = 0;
    pub(super) const TOR_LA: usize = 4;
    pub(super) const ANYCAST_LA: usize = 8;
    pub(super) const STATUS: usize = 12;
    pub(super) const VERSION: usize = 16;
}

/// Where entry `index` starts.
const fn entry_offset(index: usize) -> usize {
    HEADER_LEN + index * ENTRY_LEN
}
