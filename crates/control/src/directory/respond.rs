//! Look-up datagrams, answered in the buffer they came in; everything else is ignored with a counted reason.

use weft_wire::ParseError;
use weft_wire::directory::{AnswerMut, Key, Kind, Path, View};

use super::table::Table;
use crate::counted;

counted! {
    /// Why a datagram got no answer.
    pub enum Ignored {
        /// Shorter than its own count says, or than any datagram.
        Length = "length",
        /// Not a directory datagram.
        Magic = "magic",
        /// Of another version of the format.
        Version = "version",
        /// Not a question.
        Kind = "kind",
        /// Too many or too few entries for its kind.
        Count = "count",
        /// Bits that must be zero are not.
        Reserved = "reserved",
        /// Made with another key.
        KeyId = "key_id",
        /// The tag does not verify.
        Tag = "tag",
        /// Of another tenant.
        Tenant = "tenant",
    }
}

/// How a server answers datagrams: without allocation and never longer than the question.
#[derive(Clone, Debug)]
pub struct Responder {
    /// Key of the tags.
    pub key: Key,
    /// Which key that is.
    pub key_id: u32,
    /// The tenant served.
    pub tenant: u32,
}

impl Responder {
    /// Turns the question in `datagram`, which travelled along `path`, into its tagged answer. Returns how many AAs
    /// were asked for.
    ///
    /// # Errors
    /// Why there must be no answer; the datagram is then worthless.
    pub fn respond(&self, table: &Table, path: &Path, datagram: &mut [u8]) -> Result<usize, Ignored> {
        let view = View::new(datagram).map_err(reason)?;
        if !matches!(view.kind(), Kind::Ask | Kind::ReportStale | Kind::Ping) {
            return Err(Ignored::Kind);
        }
        if view.key_id() != self.key_id {
            return Err(Ignored::KeyId);
        }
        view.verify(&self.key, path).map_err(|_| Ignored::Tag)?;
        if view.tenant() != self.tenant {
            return Err(Ignored::Tenant);
        }
        let revision_min = view.revision();
        let mut answer = AnswerMut::of_question(datagram).map_err(reason)?;
        let count = answer.count();
        for index in 0..count {
            if let Some(question) = answer.entry(index) {
                answer.set_entry(index, table.answer(question, revision_min));
            }
        }
        answer.set_revision(table.revision());
        answer.seal(&self.key, &path.reversed());
        Ok(count)
    }
}

fn reason(error: ParseError) -> Ignored {
    match error {
        ParseError::Magic(_) => Ignored::Magic,
        ParseError::Version(_) => Ignored::Version,
        ParseError::Kind(_) => Ignored::Kind,
        ParseError::Count(_) => Ignored::Count,
        ParseError::Reserved => Ignored::Reserved,
        _ => Ignored::Length,
    }
}
