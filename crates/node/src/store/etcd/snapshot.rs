//! Snapshots: pages first, then the pointer, in a transaction that only one server can win.

use std::time::{Duration, Instant};

use etcd_client::{
    Client, CompactionOptions, Compare, CompareOp, DeleteOptions, Error, GetOptions, PutOptions, Txn, TxnOp,
};
use weft_control::directory::Table;
use weft_control::directory::record::{decode_snapshot, encode_snapshot};

use super::Log;
use super::layout::{Layout, Origin, Pointer};
use super::link::reader;
use crate::store::StoreError;

/// How long a server that writes a snapshot keeps others from it if it dies.
const CLAIM_S: i64 = 30;
/// A snapshot of a million mappings must fit into it.
const WRITING: Duration = Duration::from_secs(25);
/// Bytes of pages in one transaction, below etcd's limit.
const TXN_BYTES: usize = 900 << 10;
/// Pages read at a time.
const PAGES_AT_ONCE: i64 = 32;

/// The pointer, the etcd revision at which it was set, and that of the read. 0 and none if there is no snapshot.
async fn pointer(log: &Log, deadline: Instant) -> Result<(Option<Pointer>, u64, u64), StoreError> {
    let key = log.layout.snapshot();
    let found = log.link.call(deadline, |mut client| async move { client.get(key, None).await }).await?;
    let now = found.header().map_or(0, etcd_client::ResponseHeader::revision) as u64;
    match found.kvs().first() {
        None => Ok((None, 0, now)),
        Some(pair) => {
            let pointer = Pointer::parse(pair.value()).map_err(|why| log.link.foreign(key, why))?;
            Ok((Some(pointer), pair.mod_revision() as u64, now))
        }
    }
}

/// Up to which etcd revision records may be gone, and the revision of the read.
pub(super) async fn gone(log: &Log, deadline: Instant) -> Result<(u64, u64), StoreError> {
    let (pointer, _, now) = pointer(log, deadline).await?;
    Ok((pointer.map_or(0, |pointer| pointer.previous), now))
}

pub(super) async fn load(log: &Log) -> Result<Table, StoreError> {
    still_ours(log).await?;
    loop {
        let deadline = log.deadline();
        let (pointer, _, now) = pointer(log, deadline).await?;
        let Some(pointer) = pointer else {
            return Ok(Table::at(log.origin.ours(log.origin.began)));
        };
        match pages(log, &pointer, now).await {
            // Read anew: the snapshot was replaced and this one compacted while we read.
            Err(StoreError::Compacted { .. }) => {}
            Err(error) => return Err(error),
            Ok(pages) if pages.len() == pointer.count => {
                let revision = log.origin.ours(pointer.revision);
                return decode_snapshot(revision, pages.iter().map(Vec::as_slice)).map_err(|source| {
                    let path = format!("{} {}", log.link.name(), pointer.pages).into();
                    StoreError::Corrupt { path, revision, source }
                });
            }
            Ok(pages) => {
                let why = format!("names {} pages and {} are there", pointer.count, pages.len());
                return Err(log.link.foreign(log.layout.snapshot(), why));
            }
        }
    }
}

/// Refuses a cluster whose log is not the one that was opened: it was emptied or replaced.
async fn still_ours(log: &Log) -> Result<(), StoreError> {
    let key = log.layout.origin();
    let found = log.link.call(log.deadline(), |mut client| async move { client.get(key, None).await }).await?;
    let origin = found.kvs().first().map(|pair| Origin::parse(pair.value(), pair.create_revision() as u64));
    if origin == Some(Ok(log.origin)) {
        return Ok(());
    }
    Err(log
        .link
        .foreign(key, "is not what it was: the cluster was emptied or restored; restart this server".to_owned()))
}

async fn pages(log: &Log, pointer: &Pointer, at: u64) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut range = Layout::pages(&pointer.pages);
    let mut pages = Vec::with_capacity(pointer.count.min(1 << 16));
    loop {
        let options = || {
            let revision = i64::try_from(at).unwrap_or(0);
            GetOptions::new().with_range(range.end.as_str()).with_limit(PAGES_AT_ONCE).with_revision(revision)
        };
        let start = range.start.as_str();
        let read = |client: Client| {
            let options = options();
            async move { reader(&client).get(start, Some(options)).await }
        };
        let found = log.link.call(log.deadline(), read).await?;
        let last = found.kvs().last().map(|pair| String::from_utf8_lossy(pair.key()).into_owned());
        pages.extend(found.kvs().iter().map(|pair| pair.value().to_vec()));
        match last.filter(|_| found.more()) {
            Some(last) => range.start = last + "\0",
            None => return Ok(pages),
        }
    }
}

pub(super) async fn snapshot(log: &Log, table: &Table) -> Result<(), StoreError> {
    let revision = log.origin.theirs(table.revision());
    let (latest, epoch, _) = pointer(log, log.deadline()).await?;
    // One that reaches no further than the current epoch's beginning would let records go that it does not hold.
    if latest.is_some_and(|latest| latest.revision >= revision) || revision <= epoch {
        return Ok(());
    }
    let Some(lease) = claim(log).await? else { return Ok(()) };
    let outcome = write(log, table, revision, epoch).await;
    // The claim goes by itself otherwise.
    let _ = log.link.call(log.deadline(), |client| async move { client.lease_client().revoke(lease).await }).await;
    outcome
}

/// Keeps other servers from writing a snapshot at the same time: it would be work for nothing. `None` if one does.
async fn claim(log: &Log) -> Result<Option<i64>, StoreError> {
    let deadline = log.deadline();
    let grant = |client: Client| async move { client.lease_client().grant(CLAIM_S, None).await };
    let lease = log.link.call(deadline, grant).await?.id();
    let key = log.layout.snapshotting();
    let value = format!("{:016x}", log.writer);
    let claim = Txn::new()
        .when([Compare::create_revision(key, CompareOp::Equal, 0)])
        .and_then([TxnOp::put(key, value.as_str(), Some(PutOptions::new().with_lease(lease)))])
        .or_else([TxnOp::get(key, None)]);
    let answer = log
        .link
        .call(deadline, |mut client| {
            let claim = claim.clone();
            async move { client.txn(claim).await }
        })
        .await?;
    // A claim that was sent twice finds itself.
    let ours = answer.succeeded()
        || answer.op_responses().first().is_some_and(|found| match found {
            etcd_client::TxnOpResponse::Get(get) => get.kvs().first().is_some_and(|pair| pair.lease() == lease),
            _ => false,
        });
    if !ours {
        let _ = log.link.call(deadline, |client| async move { client.lease_client().revoke(lease).await }).await;
    }
    Ok(ours.then_some(lease))
}

async fn write(log: &Log, table: &Table, revision: u64, epoch: u64) -> Result<(), StoreError> {
    let deadline = Instant::now() + WRITING;
    let name = log.layout.pages_name(revision, log.writer);
    let pages = encode_snapshot(table);
    let unchanged = || Compare::mod_revision(log.layout.snapshot(), CompareOp::Equal, epoch as i64);
    let mut waiting = Vec::new();
    let mut bytes = 0;
    let count = pages.len();
    for (number, page) in pages.into_iter().enumerate() {
        bytes += page.len();
        waiting.push(TxnOp::put(Layout::page(&name, number), page, None));
        if bytes >= TXN_BYTES || number + 1 == count {
            let txn = Txn::new().when([unchanged()]).and_then(std::mem::take(&mut waiting));
            bytes = 0;
            if commit(log, txn, deadline).await?.is_none() {
                // Somebody else has taken a snapshot meanwhile; the next one sweeps these pages up.
                return Ok(());
            }
        }
    }
    let pointer = Pointer::new(revision, name.clone(), count, epoch);
    let txn = Txn::new().when([unchanged()]).and_then([TxnOp::put(log.layout.snapshot(), pointer.value(), None)]);
    if let Some(set) = commit(log, txn, deadline).await? {
        // A copy of this may be carried out at any time: only while the pointer is ours are the others' pages of no use.
        let ours = Compare::mod_revision(log.layout.snapshot(), CompareOp::Equal, set);
        let sweep: Vec<TxnOp> = log.layout.other_pages(&name).into_iter().map(delete).collect();
        commit(log, Txn::new().when([ours]).and_then(sweep), deadline).await?;
    }
    Ok(())
}

fn delete(range: std::ops::Range<String>) -> TxnOp {
    TxnOp::delete(range.start, Some(DeleteOptions::new().with_range(range.end)))
}

/// The etcd revision at which the transaction was carried out, if its condition held. One that was sent twice may say no
/// although it was carried out: for a pointer that only means that the sweeping is left to the next snapshot.
async fn commit(log: &Log, txn: Txn, deadline: Instant) -> Result<Option<i64>, StoreError> {
    let send = |mut client: Client| {
        let txn = txn.clone();
        async move { client.txn(txn).await }
    };
    let answer = log.link.call(deadline, send).await?;
    let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
    Ok(answer.succeeded().then_some(revision))
}

/// Deletes the records before the previous snapshot, and lets etcd forget as much: whoever follows may lag by what
/// came after that.
pub(super) async fn compact(log: &Log, to: u64) -> Result<(), StoreError> {
    let deadline = log.deadline();
    let (Some(pointer), _, _) = pointer(log, deadline).await? else { return Ok(()) };
    let margin = pointer.previous;
    if margin == 0 || margin > to {
        return Ok(());
    }
    commit(log, Txn::new().and_then([delete(log.layout.log_before(margin))]), deadline).await?;
    let forget = |mut client: Client| async move {
        match client.compact(margin as i64, Some(CompactionOptions::new())).await {
            Err(Error::GRpcStatus(status)) if status.code() == tonic::Code::OutOfRange => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    };
    match log.link.call(deadline, forget).await {
        // It is the cluster's operator who compacts then.
        Err(StoreError::Denied { .. }) => Ok(()),
        outcome => outcome,
    }
}
