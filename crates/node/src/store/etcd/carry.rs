//! Calls as etcd's client makes them, and answers as it brings them. What to ask, and what an answer means, is decided by
//! [`weft_control::directory::etcd`].

use std::time::Instant;

use etcd_client::{
    Client, CompactionOptions, Compare, CompareOp, DeleteOptions, Error, GetOptions, GetResponse, KeyValue, PutOptions,
    ResponseHeader, Txn, TxnOp, TxnOpResponse,
};
use weft_control::directory::etcd::{Answer, Call, Exchange, Fault, Found, Get, Op, Pair, When};

use super::Log;
use super::link::{Link, reader};
use crate::store::StoreError;

impl Log {
    /// Carries an exchange to its end, each of its calls until the time that is given then.
    pub(super) async fn carry<E: Exchange>(
        &self,
        exchange: &mut E,
        deadline: impl Fn() -> Instant,
    ) -> Result<E::Outcome, StoreError> {
        carry(&self.link, exchange, deadline, |revision| self.origin.ours(revision)).await
    }
}

/// [`Log::carry`], where `ours` makes revisions of etcd ours.
pub(super) async fn carry<E: Exchange>(
    link: &Link,
    exchange: &mut E,
    deadline: impl Fn() -> Instant,
    ours: impl Fn(u64) -> u64,
) -> Result<E::Outcome, StoreError> {
    loop {
        let call = exchange.call();
        let answer = match link.carry(&call, deadline()).await {
            Err(StoreError::Compacted { .. }) if exchange.forgotten() => continue,
            answer => answer?,
        };
        if let Some(outcome) = exchange.answered(answer) {
            return outcome.map_err(|fault| said(link, fault, ours));
        }
    }
}

fn said(link: &Link, fault: Fault, ours: impl Fn(u64) -> u64) -> StoreError {
    match fault {
        Fault::Compacted { from, compacted } => StoreError::Compacted { from: ours(from), compacted: ours(compacted) },
        Fault::Older { ends, seen } => link.unreachable(format!(
            "its log ends at {}, before {} which was seen; it was restored from an older copy: restart",
            ours(ends),
            ours(seen)
        )),
        Fault::Foreign { key, why } => link.foreign(&key, why),
        Fault::Unknown(why) => StoreError::Unknown { store: link.name().to_owned(), why: why.to_owned() },
        Fault::Corrupt { pages, revision, source } => {
            StoreError::Corrupt { path: format!("{} {pages}", link.name()).into(), revision, source }
        }
    }
}

impl Link {
    /// Carries out one call, over any endpoint.
    pub(super) async fn carry(&self, call: &Call, deadline: Instant) -> Result<Answer, StoreError> {
        match call {
            Call::Get(get) => {
                let read =
                    |client: Client| async move { reader(&client).get(get.key.as_str(), Some(options(get))).await };
                let (mut read, times) = self.call_counted(deadline, read).await?;
                let revision = revision(read.header());
                Ok(Answer { revision, times, found: vec![found(&mut read)], ..Answer::default() })
            }
            Call::Txn(txn) => {
                let otherwise: Vec<TxnOp> = txn.otherwise.iter().map(op).collect();
                let then: Vec<TxnOp> = txn.then.iter().map(op).collect();
                let when: Vec<Compare> = txn.when.iter().map(compare).collect();
                let txn = Txn::new().when(when).and_then(then).or_else(otherwise);
                let send = |mut client: Client| {
                    let txn = txn.clone();
                    async move { client.txn(txn).await }
                };
                let (answer, times) = self.call_counted(deadline, send).await?;
                let gets = answer.op_responses().into_iter().filter_map(|response| match response {
                    TxnOpResponse::Get(mut get) => Some(found(&mut get)),
                    _ => None,
                });
                let (found, revision) = (gets.collect(), revision(answer.header()));
                Ok(Answer { revision, succeeded: answer.succeeded(), found, times, lease: 0 })
            }
            Call::Grant { seconds } => {
                let grant = |client: Client| async move { client.lease_client().grant(*seconds, None).await };
                let (granted, times) = self.call_counted(deadline, grant).await?;
                Ok(Answer { lease: granted.id(), times, ..Answer::default() })
            }
            Call::Revoke { lease } => {
                let revoke = |client: Client| async move { client.lease_client().revoke(*lease).await };
                self.call(deadline, revoke).await.map(|_| Answer::default())
            }
            Call::Forget { revision } => {
                let forget = |mut client: Client| async move {
                    match client.compact(*revision as i64, Some(CompactionOptions::new())).await {
                        // It has done so already.
                        Err(Error::GRpcStatus(status)) if status.code() == tonic::Code::OutOfRange => Ok(()),
                        outcome => outcome.map(|_| ()),
                    }
                };
                self.call(deadline, forget).await.map(|()| Answer::default())
            }
        }
    }
}

fn revision(header: Option<&ResponseHeader>) -> u64 {
    header.map_or(0, ResponseHeader::revision) as u64
}

fn options(get: &Get) -> GetOptions {
    let options = GetOptions::new()
        .with_limit(get.limit as i64)
        .with_revision(get.at as i64)
        .with_min_mod_revision(get.changed_since as i64);
    let options = if get.keys_only { options.with_keys_only() } else { options };
    match &get.end {
        Some(end) => options.with_range(end.as_str()),
        None => options,
    }
}

fn compare(condition: &When) -> Compare {
    match condition {
        When::Absent(key) => Compare::create_revision(key.as_str(), CompareOp::Equal, 0),
        When::Unchanged { key, revision } => Compare::mod_revision(key.as_str(), CompareOp::Equal, *revision as i64),
    }
}

fn op(op: &Op) -> TxnOp {
    match op {
        Op::Put { key, value, lease } => {
            TxnOp::put(key.as_str(), value.as_slice(), lease.map(|lease| PutOptions::new().with_lease(lease)))
        }
        Op::Delete(keys) => {
            TxnOp::delete(keys.start.as_str(), Some(DeleteOptions::new().with_range(keys.end.as_str())))
        }
        Op::Get(get) => TxnOp::get(get.key.as_str(), Some(options(get))),
    }
}

fn found(read: &mut GetResponse) -> Found {
    let more = read.more();
    Found { pairs: read.take_kvs().into_iter().map(pair).collect(), more }
}

fn pair(pair: KeyValue) -> Pair {
    let (created, changed, lease) = (pair.create_revision() as u64, pair.mod_revision() as u64, pair.lease());
    let (key, value) = pair.into_key_value();
    Pair { key: String::from_utf8_lossy(&key).into_owned(), value, created, changed, lease }
}
