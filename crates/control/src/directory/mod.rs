//! A directory server without IO: what it knows, how updates change that, what it answers (VL2 4.3).
//!
//! The state is a deterministic function of the log: every server that applies the same records in the order of their
//! revisions holds the same [`Table`], whoever stored the log. So nothing in [`Table::apply`] may depend on
//! configuration; the rules of one server ([`Rules`]) are checked before an update enters the log.
//!
//! * [`Update`], [`PolicyChange`], [`Request`], [`Batch`]: what may change, atomically per request, stored per batch
//! * [`Authority`]: on whose behalf, and what it may do
//! * [`Rules`]: which updates a server takes at all, [`AaRanges`] of them who may have which AAs
//! * [`Quota`], [`Accounts`], [`FairQueue`]: what one service may take, so that none starves the others
//! * [`Table`]: the mappings and the policy at one revision
//! * [`record`]: bytes of a log record and of a snapshot page
//! * [`Responder`]: look-up datagrams answered in place, with the keys of a [`KeyRing`]
//! * [`Corrector`]: reports of ToRs become corrections of stale agents
//! * [`replica`]: how a server batches, answers, follows and keeps up; [`etcd`]: how it keeps the log in a cluster

mod authority;
mod clients;
mod correct;
pub mod etcd;
mod fair;
mod fault;
mod hash;
mod holdings;
mod keys;
pub mod policy;
mod quota;
mod ranges;
pub mod record;
pub mod replica;
mod respond;
mod rows;
mod rules;
mod table;
mod update;

pub use authority::{Authority, Denied};
pub use correct::{Correction, CorrectionLimits, Corrector, CorrectorConfig, Reported};
pub use fair::FairQueue;
pub use holdings::DELETED_MAX;
pub use keys::KeyRing;
pub use policy::PolicyChange;
pub use quota::{Accounts, Exceeded, Quota, REFUSED_COST, Weight};
pub use ranges::{AaRanges, Overlap};
pub use respond::{Ignored, Received, Report, Responder, Stale};
pub use rules::Rules;
pub use table::{Record, Table};
pub use update::{Batch, Change, Reason, Refusal, Request, RuleReason, Update};
