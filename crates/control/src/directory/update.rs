//! Updates of mappings, and why one is refused.

use std::net::Ipv4Addr;

use super::authority::Authority;
use super::policy::PolicyChange;
use crate::address::Locator;

/// What happens to an AA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is at this locator and belongs to this service.
    Set {
        locator: Locator,
        /// Whose: the unit of access control (VL2 4.2.1).
        service: u32,
        /// LA of the host that has it, where corrections to its agent go (VL2 4.3.2); `None`: it gets none.
        host_la: Option<Ipv4Addr>,
    },
    /// It is nowhere.
    Delete,
}

/// One change of one AA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    pub aa: Ipv4Addr,
    /// What happens to it.
    pub change: Change,
    /// Only if this is the AA's current version (0: it has never been set).
    pub if_version: Option<u64>,
    /// The version that results; by default the revision of the record. Must be above the current one.
    pub version: Option<u64>,
}

impl Update {
    /// Sets an AA without conditions.
    pub fn set(aa: Ipv4Addr, locator: Locator) -> Self {
        Self { aa, change: Change::Set { locator, service: 0, host_la: None }, if_version: None, version: None }
    }

    /// Deletes an AA without conditions.
    pub fn delete(aa: Ipv4Addr) -> Self {
        Self { aa, change: Change::Delete, if_version: None, version: None }
    }
}

/// Updates and rules that happen together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// On whose behalf: numbers of clients are its own.
    pub authority: Authority,
    /// Who asks; 0 for a client that does not repeat requests.
    pub client: u64,
    /// The client's number of this request, rising. A request that comes again, perhaps through another server, is
    /// not applied again.
    pub sequence: u64,
    /// In order; each AA once.
    pub updates: Vec<Update>,
    /// In order; each pair of services once.
    pub policy: Vec<PolicyChange>,
}

/// Requests that share one log record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// In the order in which they apply.
    pub requests: Vec<Request>,
}

/// A request that changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// One of its updates is at fault.
    #[error("update {number}, AA {aa}: {reason}")]
    Update {
        /// Which one, from 1.
        number: usize,
        aa: Ipv4Addr,
        /// What is wrong with it.
        reason: Reason,
    },
    /// One of its rules is at fault.
    #[error("rule {number}, service {} to {}: {reason}", change.from_service, change.to_service)]
    Rule {
        /// Which one, from 1.
        number: usize,
        /// The rule.
        change: PolicyChange,
        /// What is wrong with it.
        reason: RuleReason,
    },
    /// The table has as many rules as it may.
    #[error("the policy would have more than {max} rules; take back some that are no longer needed")]
    PolicyFull {
        /// How many may be.
        max: usize,
    },
    /// It has no updates.
    #[error("the request has no updates; name at least one AA or rule")]
    Empty,
    /// It has more updates than a log record may hold.
    #[error("the request has {count} updates, at most {max} are possible; split it")]
    TooMany {
        /// How many.
        count: usize,
        /// How many may be.
        max: usize,
    },
    /// A later request of the client was applied already.
    #[error("client {client} asks with sequence {sequence} after {last}; sequence numbers must rise")]
    SequenceBack {
        client: u64,
        sequence: u64,
        /// The last one applied.
        last: u64,
    },
}

/// What is wrong with a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleReason {
    /// Of a service to itself.
    #[error("a service always reaches itself; name two services")]
    Itself,
    /// The pair is named twice.
    #[error("named twice in one request; name each pair of services once")]
    Twice,
}

/// What is wrong with an update.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The AA is not an AA.
    #[error("outside the AA block {block}; choose an address inside")]
    OutsideBlock { block: String },
    /// The service has its AAs elsewhere.
    #[error("service {service} has its AAs in {ranges}; choose one there, or change the server's `services`")]
    OutsideRanges {
        service: u32,
        /// Where it has them.
        ranges: String,
    },
    /// Another service has its AAs there.
    #[error("reserved for another service than {service}; choose another AA, or change the server's `services`")]
    Reserved { service: u32 },
    /// The AA is named twice.
    #[error("named twice in one request; name each AA once")]
    Twice,
    /// The locator is no ToR switch.
    #[error("LA {la} is none of the known ToR switches; check the address or the server's list `tor_las`")]
    UnknownTor {
        /// The locator.
        la: Ipv4Addr,
    },
    /// The locator cannot be one.
    #[error("{la} cannot be an LA (it is unspecified, multicast or inside the AA block); give the switch's own LA")]
    NotALocator {
        /// The address.
        la: Ipv4Addr,
    },
    /// The version does not rise.
    #[error("version {version} is not above the current version {current}; a version never goes back")]
    VersionBack {
        /// The one asked for.
        version: u64,
        /// The one there is.
        current: u64,
    },
    /// The AA has changed since the client looked.
    #[error("expected version {expected}, found {current}; read it again and decide anew")]
    VersionMismatch {
        /// The one asked for.
        expected: u64,
        /// The one there is.
        current: u64,
    },
    /// There is nothing to delete.
    #[error("has no mapping, so there is nothing to delete")]
    NotFound,
}

impl Request {
    /// A request without exactly-once bookkeeping.
    pub fn once(updates: Vec<Update>) -> Self {
        Self { authority: Authority::Operator, client: 0, sequence: 0, updates, policy: Vec::new() }
    }

    /// Rules without exactly-once bookkeeping.
    pub fn rules(policy: Vec<PolicyChange>) -> Self {
        Self { policy, ..Self::once(Vec::new()) }
    }
}

impl Batch {
    /// A batch of one request.
    pub fn of(request: Request) -> Self {
        Self { requests: vec![request] }
    }
}
