//! The admin protocol: one JSON object per line each way over the Unix socket, answers in the order of the requests.
//!
//! Requests, told apart by `op`. Optional members are in brackets:
//!
//! ```text
//! {"op":"set", "aa":A, "tor_la":A, "anycast_la":A, ["service":N], ["if_version":N], ["version":N], [CLIENT]}
//! {"op":"set-many", "mappings":[{"aa":A, "tor_la":A, "anycast_la":A, ["service":N], ["if_version":N], ["version":N]}, ..],
//!  [CLIENT]}
//! {"op":"del", "aa":A, ["if_version":N], [CLIENT]}
//! {"op":"get", "aa":A}
//! {"op":"list", ["from":A], ["limit":N]}
//! {"op":"status"}
//! ```
//!
//! `A` is an IPv4 address as text, `N` a number that is not negative. `CLIENT` is `"client":N, "sequence":N`: a client
//! that may have to repeat a request takes a random number as its name and counts its requests; a request that comes
//! again is then not applied again. A `set-many` happens as a whole or not at all.
//!
//! Answers have `"ok":true`, or `"ok":false` with `"kind"` (`request`: not understood; `refused`: against the rules;
//! `store`: could not be kept) and `"error"`, one line:
//!
//! ```text
//! set, set-many, del   {"ok":true, "revision":N}                       committed at this revision
//! get                  {"ok":true, "revision":N, ["mapping":M]}              without a mapping: none
//! list                 {"ok":true, "revision":N, "mappings":[M, ..], ["next":A]}   `next`: ask again from there
//! status               {"ok":true, "status":S}
//! M = {"aa":A, "tor_la":A, "anycast_la":A, "service":N, "version":N}
//! S = {"schema_version":1, "revision":N, "mappings":N, "listen":"A:PORT", "open":BOOL,
//!      "lookups":{"datagrams":N, "answered":N, "questions":N, "unsent":N}, "ignored":{REASON:N, ..},
//!      "updates":{"committed":N, "refused":N, "failed":N, "records":N}}
//! ```

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};
use weft_control::address::Locator;
use weft_control::directory::{Change, Record, Request, Update};

/// Mappings in one answer to `list`.
pub const LIST_MAX: usize = 4096;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AdminRequest {
    /// Sets one mapping.
    Set {
        /// The AA.
        aa: Ipv4Addr,
        /// LA of its ToR.
        tor_la: Ipv4Addr,
        /// Anycast LA to bounce off.
        anycast_la: Ipv4Addr,
        /// Whose it is.
        #[serde(default)]
        service: u32,
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
        /// The mappings.
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
        /// The AA.
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
    /// Reads one mapping.
    Get {
        /// The AA.
        aa: Ipv4Addr,
    },
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
    /// The AA.
    pub aa: Ipv4Addr,
    /// LA of its ToR.
    pub tor_la: Ipv4Addr,
    /// Anycast LA to bounce off.
    pub anycast_la: Ipv4Addr,
    /// Whose it is.
    #[serde(default)]
    pub service: u32,
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
    /// The AA.
    pub aa: Ipv4Addr,
    /// LA of its ToR.
    pub tor_la: Ipv4Addr,
    /// Anycast LA to bounce off.
    pub anycast_la: Ipv4Addr,
    /// Whose it is.
    pub service: u32,
    /// Version of the mapping.
    pub version: u64,
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
    /// Of `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<DirectoryStatus>,
    /// Why not: `request`, `refused` or `store`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Why not, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The server's state and counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryStatus {
    /// Version of this schema.
    pub schema_version: u32,
    /// Revision of the table.
    pub revision: u64,
    /// AAs that have a mapping.
    pub mappings: usize,
    /// Where look-ups are answered.
    pub listen: SocketAddrV4,
    /// Whether everybody is answered.
    pub open: bool,
    /// Look-ups: `datagrams` that came, those `answered`, `questions` in them, answers `unsent` by the kernel.
    pub lookups: BTreeMap<String, u64>,
    /// Datagrams without an answer, by reason.
    pub ignored: BTreeMap<String, u64>,
    /// Updates: `committed`, `refused`, `failed` requests, and log `records` written.
    pub updates: BTreeMap<String, u64>,
}

impl AdminRequest {
    /// The update that it asks for; `None` if it only reads.
    pub(super) fn update(&self) -> Option<Request> {
        let (client, sequence, updates) = match self {
            Self::Set { aa, tor_la, anycast_la, service, if_version, version, client, sequence } => {
                let mapping = MappingToSet {
                    aa: *aa,
                    tor_la: *tor_la,
                    anycast_la: *anycast_la,
                    service: *service,
                    if_version: *if_version,
                    version: *version,
                };
                (*client, *sequence, vec![mapping.update()])
            }
            Self::SetMany { mappings, client, sequence } => {
                (*client, *sequence, mappings.iter().map(MappingToSet::update).collect())
            }
            Self::Del { aa, if_version, client, sequence } => {
                (*client, *sequence, vec![Update { if_version: *if_version, ..Update::delete(*aa) }])
            }
            Self::Get { .. } | Self::List { .. } | Self::Status {} => return None,
        };
        Some(Request { client, sequence, updates })
    }
}

impl MappingToSet {
    fn update(&self) -> Update {
        let locator = Locator { tor_la: self.tor_la, anycast_la: self.anycast_la };
        let change = Change::Set { locator, service: self.service };
        Update { aa: self.aa, change, if_version: self.if_version, version: self.version }
    }
}

impl MappingRow {
    /// The row of a record, if it has a mapping.
    pub(super) fn of(aa: Ipv4Addr, record: Record) -> Option<Self> {
        let Locator { tor_la, anycast_la } = record.locator?;
        Some(Self { aa, tor_la, anycast_la, service: record.service, version: record.version })
    }
}

impl AdminResponse {
    pub(super) fn committed(revision: u64) -> Self {
        Self { ok: true, revision: Some(revision), ..Self::default() }
    }

    pub(super) fn failed(kind: &str, error: impl ToString) -> Self {
        Self { kind: Some(kind.to_owned()), error: Some(error.to_string()), ..Self::default() }
    }
}
