//! What a store could not do: one line each, with the remedy.

use std::path::PathBuf;

use weft_control::directory::record::RecordError;

/// What a store could not do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be opened or made.
    #[error("store {path}: {why}")]
    Open {
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// There is no room left.
    #[error("store {path}: the disk is full, nothing was changed; free space and try again")]
    Full { path: PathBuf },
    /// Reading or writing failed.
    #[error("store {path}: {what} failed: {why}")]
    Io { path: PathBuf, what: &'static str, why: String },
    /// A stored record does not follow its format.
    #[error("store {path}, revision {revision}: {source}; restore it from a copy")]
    Corrupt {
        /// The file, or the cluster.
        path: PathBuf,
        /// Where in the log, or of which snapshot.
        revision: u64,
        source: RecordError,
    },
    /// Records that were asked for are gone.
    #[error("records above revision {from} were asked for, but those up to {compacted} are gone; load the snapshot")]
    Compacted {
        /// What was asked for.
        from: u64,
        compacted: u64,
    },
    /// What is shown is behind, and that is being made good.
    #[error("the table is behind the store: {why}")]
    Behind {
        /// What is missing.
        why: &'static str,
    },
    /// Settings that cannot work.
    #[error("store {store}: {why}")]
    Settings {
        store: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// No node of the cluster does what is asked. Nothing was changed.
    #[error("store {store} is unreachable: {why}; nothing was changed, see whether most of its nodes run")]
    Unreachable {
        store: String,
        /// What the last node said.
        why: String,
    },
    /// No node said whether it was done.
    #[error("store {store} did not answer in time: {why}; see whether most of its nodes run")]
    Unknown {
        store: String,
        /// What the last node said.
        why: String,
    },
    /// The cluster's space quota is used up.
    #[error(
        "store {store}: its space quota is used up (NOSPACE), nothing was changed; compact and defragment it or raise \
         the quota, then `etcdctl alarm disarm`"
    )]
    Quota { store: String },
    /// The cluster does not let us.
    #[error("store {store} refuses us: {why}; check user, password, certificate and role")]
    Denied { store: String, why: String },
    /// The cluster does not understand us, or finds a request too large.
    #[error("store {store} rejects the request: {why}; nothing was changed")]
    Rejected { store: String, why: String },
    /// There is something else where our data should be.
    #[error("store {store}: the value of {key} {why}")]
    Foreign {
        store: String,
        key: String,
        /// What is wrong with it.
        why: String,
    },
}

impl StoreError {
    /// Of an append: whether the record may be in the log all the same.
    pub fn outcome_unknown(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Unknown { .. })
    }
}
