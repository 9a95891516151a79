//! Appending: a record enters the log once, although it may have to be sent several times.
//!
//! The transaction makes the record's key only if it is not there yet and the epoch is still the one in the key. If an
//! answer is lost, sending again either makes the key or finds it. If the epoch is over, nothing that was sent in it
//! can take effect any more, and the record goes into the new one.

use std::sync::atomic::Ordering;
use std::time::Instant;

use etcd_client::{Compare, CompareOp, GetOptions, GetResponse, Txn, TxnOp, TxnOpResponse, TxnResponse};
use weft_control::directory::Batch;
use weft_control::directory::record::encode_batch;

use super::Log;
use super::layout::Pointer;
use crate::store::StoreError;

/// What became of one sending.
enum Sent {
    /// It is in the log, at this etcd revision.
    Kept(u64),
    /// The epoch is over; this is the new one, and the one before it.
    Over { epoch: u64, previous: u64 },
}

pub(super) async fn append(log: &Log, batch: &Batch) -> Result<u64, StoreError> {
    let record = encode_batch(batch);
    let name = log.next_record();
    let deadline = log.deadline();
    let mut epoch = log.epoch();
    let mut repeated = false;
    loop {
        let key = log.layout.record(epoch, name);
        let (sent, times) = send(log, &key, epoch, &record, deadline).await?;
        repeated |= times > 1;
        match sent {
            Sent::Kept(revision) => {
                log.note_appended(revision);
                return Ok(log.origin.ours(revision));
            }
            Sent::Over { epoch: now, previous } => {
                log.epoch.store(now, Ordering::SeqCst);
                if repeated && previous != epoch {
                    // It may have been kept in its epoch, and that be deleted already.
                    let store = log.link.name().to_owned();
                    let why = "two snapshots were taken since it was sent".to_owned();
                    return Err(StoreError::Unknown { store, why });
                }
                epoch = now;
            }
        }
    }
}

async fn send(log: &Log, key: &str, epoch: u64, record: &[u8], deadline: Instant) -> Result<(Sent, usize), StoreError> {
    let pointer = log.layout.snapshot();
    let txn = Txn::new()
        .when([
            Compare::create_revision(key, CompareOp::Equal, 0),
            Compare::mod_revision(pointer, CompareOp::Equal, epoch as i64),
        ])
        .and_then([TxnOp::put(key, record, None)])
        .or_else([TxnOp::get(key, Some(GetOptions::new().with_keys_only())), TxnOp::get(pointer, None)]);
    let (answer, times) = log
        .link
        .call_counted(deadline, |mut client| {
            let txn = txn.clone();
            async move { client.txn(txn).await }
        })
        .await?;
    Ok((outcome(log, &answer)?, times))
}

fn outcome(log: &Log, answer: &TxnResponse) -> Result<Sent, StoreError> {
    if answer.succeeded() {
        let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
        return Ok(Sent::Kept(revision as u64));
    }
    let [found, pointer] = gets(answer);
    if let Some(found) = found.as_ref().and_then(|found| found.kvs().first()) {
        return Ok(Sent::Kept(found.mod_revision() as u64));
    }
    let Some(pair) = pointer.as_ref().and_then(|pointer| pointer.kvs().first()) else {
        // Somebody deleted the pointer: the log begins anew.
        return Ok(Sent::Over { epoch: 0, previous: 0 });
    };
    let previous = Pointer::parse(pair.value()).map_err(|why| log.link.foreign(log.layout.snapshot(), why))?.previous;
    Ok(Sent::Over { epoch: pair.mod_revision() as u64, previous })
}

fn gets(answer: &TxnResponse) -> [Option<GetResponse>; 2] {
    let mut gets = answer.op_responses().into_iter().map(|response| match response {
        TxnOpResponse::Get(get) => Some(get),
        _ => None,
    });
    [gets.next().flatten(), gets.next().flatten()]
}
