//! Look-up datagrams, answered in the buffer they came in; everything else is ignored with a counted reason.

use std::net::Ipv4Addr;

use weft_wire::ParseError;
use weft_wire::directory::{Kind, Path, QuestionMut, View};

use super::keys::KeyRing;
use super::policy::COMMON_SERVICE;
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
        /// Made with a key of a secret that is not there.
        KeyId = "key_id",
        /// The tag does not verify: wrong key, or a service or an address that the key is not for.
        Tag = "tag",
        /// A report that is not a switch's.
        Service = "service",
    }
}

/// What became of a datagram that is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// It has become its tagged answer: send it back.
    Answered {
        /// How many AAs were asked for.
        questions: usize,
    },
    /// A switch's report, for [`super::Corrector::report`]. Nothing goes back: the datagram is worthless.
    Report(Report),
}

/// What a ToR says (VL2 4.3.2): packets came to it for AAs that are not behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The ToR's LA, which the tag proves.
    pub tor_la: Ipv4Addr,
    /// One per sampled packet.
    pub stale: Vec<Stale>,
}

/// The ends of a packet that came to the wrong ToR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stale {
    /// Where it wanted to go.
    pub aa: Ipv4Addr,
    /// The AA that it says it came from.
    pub source_aa: Ipv4Addr,
}

/// How a server answers datagrams: without allocation and never longer than the question.
#[derive(Clone, Debug)]
pub struct Responder {
    /// Whose datagrams are believed.
    pub keys: KeyRing,
}

impl Responder {
    /// Takes a datagram that travelled along `path`. A question becomes its tagged answer in `datagram`.
    ///
    /// # Errors
    /// Why there must be no answer; the datagram is then worthless.
    pub fn respond(&self, table: &Table, path: &Path, datagram: &mut [u8]) -> Result<Received, Ignored> {
        let question = QuestionMut::new(datagram).map_err(reason)?;
        let service = question.service();
        let key = self.keys.key(question.key_id(), service, *path.source.ip()).ok_or(Ignored::KeyId)?;
        let view = question.view();
        view.verify(&key, path).map_err(|_| Ignored::Tag)?;
        if view.kind() == Kind::ReportStale {
            return report(&view, path);
        }
        let questions = question.count();
        table.answer_all(question, service).seal(&key, &path.reversed());
        Ok(Received::Answered { questions })
    }
}

fn report(view: &View<'_>, path: &Path) -> Result<Received, Ignored> {
    if view.service() != COMMON_SERVICE {
        return Err(Ignored::Service);
    }
    let stale = view.entries().map(|entry| Stale { aa: entry.aa, source_aa: entry.anycast_la }).collect();
    Ok(Received::Report(Report { tor_la: *path.source.ip(), stale }))
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
