//! Ways to break the system, which the checks must find: in what the machines say, in what they are told, and in the
//! cluster. Those of one line are where it is carried; those of calls and answers are here.

use weft_control::directory::etcd::{Answer, Call, Get, Op, When};
use weft_control::directory::record::{decode_batch, encode_batch};

use super::errands::Work;

/// Kinds of pages of a snapshot.
const CLIENTS: u8 = 3;
const POLICY: u8 = 4;

/// A way to break the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    None,
    // What servers say and show.
    AckBeforeCommit,
    AnswerOlder,
    RefuseFromOwnTable,
    TellForeigners,
    CorrectNobody,
    ForeseeAlways,
    AnswerOnAppend,
    ShiftVerdicts,
    UnknownIsDone,
    UnknownIsFailure,
    LateIsNothing,
    JumpIsApplied,
    SilentHealth,
    AnybodyMay,
    Untied,
    NoQuota,
    // Appending.
    ForgetSequences,
    AppendTwice,
    AppendInAnyEpoch,
    KeptAlways,
    ReuseNames,
    ReuseWriter,
    // Reading the log.
    SkipRecord,
    SwapRecords,
    ReadUnpinned,
    IgnoreGone,
    WatchFromNow,
    WatchSkipsCompacted,
    WatchForever,
    SilentReading,
    /// Whose watch has begun again takes itself for caught up.
    BegunIsCaughtUp,
    // Snapshots.
    LosePolicy,
    LoseClients,
    SnapshotAhead,
    PointerAlways,
    SweepAlways,
    DeleteAll,
    // The cluster.
    LoseLastRecord,
}

impl Mutation {
    /// Changes a call on its way out.
    pub(super) fn spoil_call(self, work: &Work, call: &mut Call) {
        match (self, work, call) {
            (Self::AppendTwice, Work::Append { .. }, Call::Txn(txn)) => {
                txn.when.retain(|when| !matches!(when, When::Absent(_)));
            }
            (Self::AppendInAnyEpoch, Work::Append { .. }, Call::Txn(txn)) => {
                txn.when.retain(|when| matches!(when, When::Absent(_)));
            }
            (Self::ForgetSequences, Work::Append { .. }, Call::Txn(txn)) => {
                for op in &mut txn.then {
                    let Op::Put { value, .. } = op else { continue };
                    let mut batch = decode_batch(value).expect("it was written by us");
                    batch.requests.iter_mut().for_each(|request| request.client = 0);
                    *value = encode_batch(&batch);
                }
            }
            (Self::PointerAlways, Work::Write { .. }, Call::Txn(txn)) => {
                if matches!(txn.then.as_slice(), [Op::Put { key, .. }] if key.ends_with("snapshot")) {
                    txn.when.clear();
                }
            }
            (Self::SweepAlways, Work::Write { .. }, Call::Txn(txn)) => {
                if matches!(txn.then.first(), Some(Op::Delete(_))) {
                    txn.when.clear();
                }
            }
            (Self::DeleteAll, Work::Compact(_), Call::Txn(txn)) => {
                for op in &mut txn.then {
                    let Op::Delete(keys) = op else { continue };
                    keys.end = keys.start.replace("log/", "log0");
                }
            }
            (Self::ReadUnpinned, Work::Read(_) | Work::CatchUp { .. }, Call::Get(Get { at, .. })) => *at = 0,
            _ => {}
        }
    }

    /// Changes an answer on its way in.
    pub(super) fn spoil_answer(self, work: &Work, answer: &mut Answer) {
        match (self, work) {
            (Self::KeptAlways, Work::Append { .. }) => answer.succeeded = true,
            (Self::IgnoreGone, Work::Read(_)) => {
                for found in &mut answer.found {
                    found.pairs.retain(|pair| !pair.key.ends_with("snapshot"));
                }
            }
            (Self::LosePolicy, Work::Load(_)) => lose(POLICY, answer),
            (Self::LoseClients, Work::Load(_)) => lose(CLIENTS, answer),
            _ => {}
        }
    }
}

/// Another page comes in the place of those of this kind.
fn lose(kind: u8, answer: &mut Answer) {
    for found in &mut answer.found {
        let pages = found.pairs.iter().filter(|pair| pair.key.contains("page/"));
        let Some(other) = pages.map(|pair| pair.value.clone()).find(|page| page[1] != kind) else { continue };
        for pair in found.pairs.iter_mut().filter(|pair| pair.key.contains("page/") && pair.value[1] == kind) {
            pair.value = other.clone();
        }
    }
}
