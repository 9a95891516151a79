//! A directory server without IO: what it knows, how updates change that, what it answers (VL2 4.3).
//!
//! The state is a deterministic function of the log: every server that applies the same records in the order of their
//! revisions holds the same [`Table`], whoever stored the log. So nothing in [`Table::apply`] may depend on
//! configuration; the rules of one server ([`Rules`]) are checked before an update enters the log.
//!
//! * [`Update`], [`Request`], [`Batch`]: what may change, atomically per request, stored per batch
//! * [`Rules`]: which updates a server takes at all
//! * [`Table`]: the mappings at one revision
//! * [`record`]: bytes of a log record and of a snapshot page
//! * [`Responder`]: look-up datagrams answered in place

pub mod record;
mod respond;
mod rules;
mod table;
mod update;

pub use respond::{Ignored, Responder};
pub use rules::Rules;
pub use table::{Record, Table};
pub use update::{Batch, Change, Reason, Refusal, Request, Update};
