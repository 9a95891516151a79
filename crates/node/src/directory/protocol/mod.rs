//! The session protocol: one JSON object per line each way, answers in the order of the requests. Sessions run over the
//! Unix socket (an operator of this host) and over mutual TLS (an operator or a service, as the certificate says).
//! Requests may follow each other without waiting for answers.
//!
//! Requests, told apart by `op`. Optional members are in brackets:
//!
//! ```text
//! {"op":"set", "aa":A, "tor_la":A, "anycast_la":A, ["service":N], ["host_la":A], ["if_version":N], ["version":N], [CLIENT]}
//! {"op":"set-many", "mappings":[{"aa":A, "tor_la":A, "anycast_la":A, ["service":N], ["host_la":A], ["if_version":N],
//!  ["version":N]}, ..], [CLIENT]}
//! {"op":"del", "aa":A, ["if_version":N], [CLIENT]}
//! {"op":"move", "aa":A, "tor_la":A, ["anycast_la":A], ["host_la":A], ["if_version":N], [CLIENT]}
//! {"op":"get", "aa":A}
//! {"op":"list", ["from":A], ["limit":N]}
//! {"op":"watch", ["from":N]}
//! {"op":"policy", "changes":[{"from_service":N, "to_service":N, "allow":BOOL}, ..], [CLIENT]}
//! {"op":"policy-list"}
//! {"op":"rules"}
//! {"op":"status"}
//! ```
//!
//! `A` is an IPv4 address as text, `N` a number that is not negative. `CLIENT` is `"client":N, "sequence":N`: a client
//! that may have to repeat a request takes a random number as its name and counts its requests; a request that comes
//! again is then not applied again. A `set-many` or `policy` happens as a whole or not at all. A `move` keeps what it does
//! not name, and fails if the mapping changes at the same time.
//!
//! A single set or del may also be a [`weft_wire::directory::update::UpdateFrame`]; its answer is a verdict frame. [`codec`]
//! tells the two apart.
//!
//! Answers have `"ok":true`, or `"ok":false` with `"kind"` (`request`: not understood; `refused`: against the rules;
//! `denied`: not for this client; `store`: could not be kept; `busy`: too much is waiting, of all or of this service) and
//! `"error"`, one line:
//!
//! ```text
//! changes              {"ok":true, "revision":N}                       committed at this revision
//! get                  {"ok":true, "revision":N, ["mapping":M]}              without a mapping: none
//! list                 {"ok":true, "revision":N, "mappings":[M, ..], ["next":A]}   `next`: ask again from there
//! watch                {"ok":true, "revision":N}                       what is committed above N follows as events
//! policy-list          {"ok":true, "revision":N, "policy":[{"from_service":N, "to_service":N, "allow":BOOL}, ..]}
//! rules                {"ok":true, "rules":{"aa_block":TEXT, ["tor_las":[A, ..]]}}     what mappings must be
//! status               {"ok":true, "status":S}
//! M = {"aa":A, "tor_la":A, "anycast_la":A, "service":N, ["host_la":A], "version":N}
//!
//! {"ok":true, "event":"changed", "revision":N, "changes":[C, ..], ["policy":[..]]}     everything that this record changed
//! {"ok":true, "event":"lagged", "revision":N}                          changes are missing: list again; the watch has ended
//! C = {"aa":A, ["tor_la":A, "anycast_la":A], "service":N, ["host_la":A], "version":N}     without a LA: deleted
//! S = {"schema_version":1, "revision":N, "mappings":N, "listen":"A:PORT", ["tls_listen":"A:PORT"],
//!      ["http_listen":"A:PORT"], "open":BOOL,
//!      "lookups":{"datagrams":N, "answered":N, "questions":N, "unsent":N, "reports":N}, "ignored":{REASON:N, ..},
//!      "updates":{"committed":N, "refused":N, "failed":N, "records":N}, "corrections":{OUTCOME:N, ..},
//!      "sessions":{"open":N, "watching":N, "beyond_quota":N}, "lookup_threads":N, "table_hash":TEXT, ["store_error":TEXT]}
//! ```
//!
//! A service sees, by get, list and watch, the AAs that the policy lets it reach, and changes those that are its own: set
//! by it or for it, or never set by anybody. Policy and status are for operators. Its sessions, what it has open, its rows
//! and its rate are bounded ([`Quota`](weft_control::directory::Quota)); a session over TLS ends after a long silence without a
//! watch, or when a request stays unfinished or an answer unread. Numbers of clients are those of their service.

pub mod codec;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};
use weft_control::address::Locator;
use weft_control::directory::{Change, PolicyChange, Record, Update};

/// Mappings in one answer to `list`.
pub const LIST_MAX: usize = 4096;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AdminRequest {
    /// Sets one mapping.
    Set {
        aa: Ipv4Addr,
        /// LA of its ToR.
        tor_la: Ipv4Addr,
        /// Anycast LA to bounce off.
        anycast_la: Ipv4Addr,
        #[serde(default)]
        service: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_la: Option<Ipv4Addr>,
        /// Only if this is the current version (0: never set).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_version: Option<u64>,
        /// The version that results.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<u64>,
        /// Who asks.
        #[serde(default)]
        client: u64,
        /// The client's number of this request.
        #[serde(default)]
        sequence: u64,
    },
    /// Sets many mappings, all or none.
    SetMany {
        mappings: Vec<MappingToSet>,
        /// Who asks.
        #[serde(default)]
        client: u64,
        /// The client's number of this request.
        #[serde(default)]
        sequence: u64,
    },
    /// Deletes a mapping.
    Del {
        aa: Ipv4Addr,
        /// Only if this is the current version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_version: Option<u64>,
        /// Who asks.
        #[serde(default)]
        client: u64,
        /// The client's number of this request.
        #[serde(default)]
        sequence: u64,
    },
    /// Moves an AA that has a mapping to another ToR.
    Move {
        aa: Ipv4Addr,
        /// LA of its new ToR.
        tor_la: Ipv4Addr,
        /// Anycast LA to bounce off; by default the one it has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        anycast_la: Option<Ipv4Addr>,
        /// LA of its new host; by default nobody says so any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_la: Option<Ipv4Addr>,
        /// Only if this is the current version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_version: Option<u64>,
        /// Who asks.
        #[serde(default)]
        client: u64,
        /// The client's number of this request.
        #[serde(default)]
        sequence: u64,
    },
    /// Changes which services may look up which, all or nothing.
    Policy {
        /// The rules.
        changes: Vec<PolicyRow>,
        /// Who asks.
        #[serde(default)]
        client: u64,
        /// The client's number of this request.
        #[serde(default)]
        sequence: u64,
    },
    /// Reads the rules that differ from the default.
    PolicyList {},
    /// Reads what the server takes as mappings.
    Rules {},
    /// Sends what is committed from now on.
    Watch {
        /// Above this revision; by default the current one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<u64>,
    },
    /// Reads one mapping.
    Get { aa: Ipv4Addr },
    /// Reads mappings in order of AAs.
    List {
        /// From this AA on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Ipv4Addr>,
        /// At most so many, and never more than [`LIST_MAX`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
    },
    /// Reads the server's state and counters.
    Status {},
}

/// One mapping of a `set-many`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingToSet {
    pub aa: Ipv4Addr,
    /// LA of its ToR.
    pub tor_la: Ipv4Addr,
    /// Anycast LA to bounce off.
    pub anycast_la: Ipv4Addr,
    #[serde(default)]
    pub service: u32,
    /// LA of the host that has it, where corrections to its agent go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_la: Option<Ipv4Addr>,
    /// Only if this is the current version (0: never set).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_version: Option<u64>,
    /// The version that results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// One mapping as the directory has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingRow {
    pub aa: Ipv4Addr,
    /// LA of its ToR.
    pub tor_la: Ipv4Addr,
    /// Anycast LA to bounce off.
    pub anycast_la: Ipv4Addr,
    pub service: u32,
    /// LA of the host that has it, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_la: Option<Ipv4Addr>,
    pub version: u64,
}

/// A rule: may servers of one service look up AAs of another?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRow {
    /// Whose servers ask.
    pub from_service: u32,
    /// Whose AAs are asked for.
    pub to_service: u32,
    /// Whether they are told.
    pub allow: bool,
}

/// What a server takes as mappings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesRow {
    /// Where AAs come from.
    pub aa_block: String,
    /// The LAs of all ToR switches; absent if any LA may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tor_las: Option<Vec<Ipv4Addr>>,
}

/// What an AA is after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRow {
    pub aa: Ipv4Addr,
    /// LA of its ToR; absent: deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tor_la: Option<Ipv4Addr>,
    /// Anycast LA to bounce off; absent: deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anycast_la: Option<Ipv4Addr>,
    pub service: u32,
    /// LA of its host, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_la: Option<Ipv4Addr>,
    /// Version of this state.
    pub version: u64,
}

/// What a watch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A record was committed.
    Changed,
    /// Changes are gone that were not sent yet; the watch has ended.
    Lagged,
}

/// What a server answers; members that do not apply are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminResponse {
    /// Whether the request was carried out.
    pub ok: bool,
    /// Revision of the update, or of the table that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Of `get`: the mapping, absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<MappingRow>,
    /// Of `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mappings: Option<Vec<MappingRow>>,
    /// Of `list`: where the next part begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Ipv4Addr>,
    /// Of `policy-list`, and of a watch where rules changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Vec<PolicyRow>>,
    /// Of `rules`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<RulesRow>,
    /// Of a watch: this is no answer, it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
    /// Of a watch: what changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<ChangeRow>>,
    /// Of `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<DirectoryStatus>,
    /// Why not: `request`, `refused`, `denied`, `store` or `busy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Why not, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Look-ups answered at a card by XDP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardStatus {
    pub interface: String,
    /// Whether they are; if not, its table could not be changed, and the server answers all.
    pub answers: bool,
    /// Mappings that it has.
    pub mappings: usize,
    /// Frames that came there, by what became of them; all but those `answered` went on as they came.
    pub frames: BTreeMap<String, u64>,
}

impl CardStatus {
    /// Look-ups answered.
    pub fn answered(&self) -> u64 {
        self.frames.get("answered").copied().unwrap_or(0)
    }
}

/// The server's state and counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryStatus {
    pub schema_version: u32,
    /// Revision of the table.
    pub revision: u64,
    /// AAs that have a mapping.
    pub mappings: usize,
    /// Where look-ups are answered.
    pub listen: SocketAddrV4,
    /// Where sessions over TLS come in, if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_listen: Option<SocketAddrV4>,
    /// Where metrics are, if they are anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_listen: Option<SocketAddrV4>,
    /// Whether everybody is answered.
    pub open: bool,
    /// Look-ups, those at a card included: `datagrams` that came, those `answered`, `questions` in them, answers `unsent` by the kernel,
    /// `reports` of ToRs.
    pub lookups: BTreeMap<String, u64>,
    /// Packets that ToRs reported, by what became of them (VL2 4.3.2).
    #[serde(default)]
    pub corrections: BTreeMap<String, u64>,
    /// The card that answers look-ups, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp: Option<CardStatus>,
    /// Datagrams without an answer, by reason.
    pub ignored: BTreeMap<String, u64>,
    /// Updates: `committed`, `refused`, `failed` requests, and log `records` written.
    pub updates: BTreeMap<String, u64>,
    /// Sessions: those `open` and those of them `watching`; and what services asked for `beyond_quota`, ever.
    #[serde(default)]
    pub sessions: BTreeMap<String, u64>,
    /// Threads that answer look-ups.
    #[serde(default)]
    pub lookup_threads: usize,
    /// Hash of the table, hexadecimal: equal on servers of one store at equal revisions.
    #[serde(default)]
    pub table_hash: String,
    /// Why the store could not be used when that was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_error: Option<String>,
}

impl MappingToSet {
    /// The update that it asks for.
    pub(crate) fn update(&self) -> Update {
        let locator = Locator { tor_la: self.tor_la, anycast_la: self.anycast_la };
        let change = Change::Set { locator, service: self.service, host_la: self.host_la };
        Update { aa: self.aa, change, if_version: self.if_version, version: self.version }
    }
}

impl MappingRow {
    /// The row of a record, if it has a mapping.
    pub(in crate::directory) fn of(aa: Ipv4Addr, record: Record) -> Option<Self> {
        let Locator { tor_la, anycast_la } = record.locator?;
        Some(Self { aa, tor_la, anycast_la, service: record.service, host_la: record.host_la, version: record.version })
    }
}

impl ChangeRow {
    /// The row of a record.
    pub(in crate::directory) fn of(aa: Ipv4Addr, record: Record) -> Self {
        let (tor_la, anycast_la) = record.locator.map(|locator| (locator.tor_la, locator.anycast_la)).unzip();
        Self { aa, tor_la, anycast_la, service: record.service, host_la: record.host_la, version: record.version }
    }
}

impl From<PolicyRow> for PolicyChange {
    fn from(row: PolicyRow) -> Self {
        Self { from_service: row.from_service, to_service: row.to_service, allow: row.allow }
    }
}

impl From<PolicyChange> for PolicyRow {
    fn from(change: PolicyChange) -> Self {
        Self { from_service: change.from_service, to_service: change.to_service, allow: change.allow }
    }
}

impl AdminResponse {
    pub(in crate::directory) fn good() -> Self {
        Self { ok: true, ..Self::default() }
    }

    pub(in crate::directory) fn committed(revision: u64) -> Self {
        Self { revision: Some(revision), ..Self::good() }
    }

    pub(in crate::directory) fn failed(kind: &str, error: impl ToString) -> Self {
        Self { kind: Some(kind.to_owned()), error: Some(error.to_string()), ..Self::default() }
    }
}
