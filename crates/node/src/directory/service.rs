//! The writer: keeps updates in the store, then shows them to the look-ups.

use std::sync::{Arc, PoisonError, RwLock};

use tracing::{info, warn};
use weft_control::directory::{Batch, Refusal, Request, Rules, Table};

use crate::store::{Store, StoreError, catch_up};

/// Records after which a snapshot replaces the log.
const RECORDS_PER_SNAPSHOT: u64 = 8192;
/// Updates after which a snapshot replaces the log.
const UPDATES_PER_SNAPSHOT: u64 = 1 << 20;

/// The table, shared by one writer and the look-ups. The writer holds it only while it applies a batch.
pub(super) type SharedTable = Arc<RwLock<Table>>;

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Store(String),
}

/// What the writer counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UpdateCounts {
    pub(super) committed: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    pub(super) records: u64,
}

/// The writer.
pub(super) struct Service {
    store: Box<dyn Store>,
    table: SharedTable,
    rules: Rules,
    /// An append failed, so the log may hold a record that the table lacks.
    unsure: bool,
    records_since_snapshot: u64,
    updates_since_snapshot: u64,
    pub(super) counts: UpdateCounts,
}

impl Service {
    /// Loads what the store holds.
    pub(super) fn new(mut store: Box<dyn Store>, rules: Rules) -> Result<Self, StoreError> {
        let mut table = store.load()?;
        let records = catch_up(store.as_mut(), &mut table)?;
        info!(revision = table.revision(), mappings = table.mapped(), records, "directory loaded");
        Ok(Self {
            store,
            table: Arc::new(RwLock::new(table)),
            rules,
            unsure: false,
            records_since_snapshot: records as u64,
            updates_since_snapshot: 0,
            counts: UpdateCounts::default(),
        })
    }

    /// For the look-ups.
    pub(super) fn table(&self) -> SharedTable {
        Arc::clone(&self.table)
    }

    /// Runs `look` on the table.
    pub(super) fn read<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        look(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Carries out requests in order, together in one record. Verdicts come in the order of the requests; a good one
    /// means that the update survives a crash and that look-ups see it.
    pub(super) fn commit(&mut self, requests: Vec<Request>) -> Vec<Result<u64, Failure>> {
        let verdicts = self.try_commit(requests);
        for verdict in &verdicts {
            match verdict {
                Ok(_) => self.counts.committed += 1,
                Err(Failure::Refused(_)) => self.counts.refused += 1,
                Err(Failure::Store(_)) => self.counts.failed += 1,
            }
        }
        verdicts
    }

    fn try_commit(&mut self, requests: Vec<Request>) -> Vec<Result<u64, Failure>> {
        if let Err(error) = self.make_sure() {
            return requests.iter().map(|_| Err(Failure::Store(error.to_string()))).collect();
        }
        let ruled: Vec<Result<(), Refusal>> = requests.iter().map(|request| self.rules.check(request)).collect();
        let good: Vec<Request> =
            requests.into_iter().zip(&ruled).filter(|(_, rule)| rule.is_ok()).map(|(request, _)| request).collect();
        let mut applied = self.append(good).into_iter();
        ruled
            .into_iter()
            .map(|rule| match rule {
                Ok(()) => applied.next().expect("one verdict for each good request"),
                Err(refusal) => Err(refusal.into()),
            })
            .collect()
    }

    /// Appends and applies, unless none of the requests would change anything.
    fn append(&mut self, requests: Vec<Request>) -> Vec<Result<u64, Failure>> {
        let foreseen: Vec<_> = self.read(|table| requests.iter().map(|request| table.check(request)).collect());
        if foreseen.iter().all(|verdict| !matches!(verdict, Ok(None))) {
            let settled = |verdict: Result<Option<u64>, Refusal>| match verdict {
                Ok(revision) => Ok(revision.unwrap_or_default()),
                Err(refusal) => Err(refusal.into()),
            };
            return foreseen.into_iter().map(settled).collect();
        }
        let batch = Batch { requests };
        match self.store.append(&batch) {
            Ok(revision) => {
                let verdicts = self.table.write().unwrap_or_else(PoisonError::into_inner).apply(revision, &batch);
                self.appended(&batch);
                verdicts.into_iter().map(|verdict| verdict.map_err(Failure::from)).collect()
            }
            Err(error) => {
                warn!(%error, "update not kept");
                self.unsure = true;
                batch.requests.iter().map(|_| Err(Failure::Store(error.to_string()))).collect()
            }
        }
    }

    /// After a failed append: brings the table to the end of the log, whatever that is.
    fn make_sure(&mut self) -> Result<(), StoreError> {
        if self.unsure {
            let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
            catch_up(self.store.as_mut(), &mut table)?;
            self.unsure = false;
        }
        Ok(())
    }

    fn appended(&mut self, batch: &Batch) {
        self.counts.records += 1;
        self.records_since_snapshot += 1;
        self.updates_since_snapshot += batch.requests.iter().map(|request| request.updates.len() as u64).sum::<u64>();
        if self.records_since_snapshot < RECORDS_PER_SNAPSHOT && self.updates_since_snapshot < UPDATES_PER_SNAPSHOT {
            return;
        }
        (self.records_since_snapshot, self.updates_since_snapshot) = (0, 0);
        if let Err(error) = self.snapshot() {
            warn!(%error, "no snapshot; the log stays as it is");
            self.unsure = true;
        }
    }

    fn snapshot(&mut self) -> Result<(), StoreError> {
        let table = Arc::clone(&self.table);
        let table = table.read().unwrap_or_else(PoisonError::into_inner);
        self.store.snapshot(&table)?;
        self.store.compact(table.revision())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use weft_control::address::Locator;
    use weft_control::directory::{Reason, Update};

    use super::*;

    /// A log in memory whose appends can be made to fail before or after they are kept.
    #[derive(Default)]
    struct Fickle {
        log: Arc<std::sync::Mutex<Vec<Batch>>>,
        fail: Arc<std::sync::Mutex<Option<bool>>>,
    }

    impl Store for Fickle {
        fn append(&mut self, batch: &Batch) -> Result<u64, StoreError> {
            let fault = self.fail.lock().unwrap().take();
            if fault != Some(false) {
                self.log.lock().unwrap().push(batch.clone());
            }
            match fault {
                None => Ok(self.log.lock().unwrap().len() as u64),
                Some(_) => Err(StoreError::Full { path: "disk".into() }),
            }
        }
        fn load(&mut self) -> Result<Table, StoreError> {
            Ok(Table::default())
        }
        fn subscribe(&mut self, from: u64) -> Result<Vec<(u64, Batch)>, StoreError> {
            Ok((1..).zip(self.log.lock().unwrap().clone()).filter(|(revision, _)| *revision > from).collect())
        }
        fn snapshot(&mut self, _: &Table) -> Result<(), StoreError> {
            Ok(())
        }
        fn compact(&mut self, _: u64) -> Result<(), StoreError> {
            Ok(())
        }
    }

    fn set(k: u8) -> Request {
        let locator = Locator { tor_la: Ipv4Addr::new(10, 1, 0, k), anycast_la: Ipv4Addr::new(10, 255, 255, 1) };
        Request::once(vec![Update::set(Ipv4Addr::new(20, 0, 0, k), locator)])
    }

    fn rules() -> Rules {
        Rules { aa_block: "20.0.0.0/8".parse().unwrap(), tor_las: None, updates_max: 100 }
    }

    fn mapped(service: &Service) -> usize {
        service.read(Table::mapped)
    }

    #[test]
    fn requests_share_a_record_and_verdicts_keep_their_order() {
        let mut service = Service::new(Box::new(Fickle::default()), rules()).unwrap();
        let outside = Request::once(vec![Update::delete(Ipv4Addr::new(21, 0, 0, 1))]);
        let absent = Request::once(vec![Update::delete(Ipv4Addr::new(20, 0, 0, 9))]);
        let verdicts = service.commit(vec![set(1), outside, absent, set(2)]);
        assert_eq!((&verdicts[0], &verdicts[3]), (&Ok(1), &Ok(1)));
        let reason = |verdict: &Result<u64, Failure>| match verdict {
            Err(Failure::Refused(Refusal::Update { reason, .. })) => reason.clone(),
            other => panic!("{other:?}"),
        };
        assert!(matches!(reason(&verdicts[1]), Reason::OutsideBlock { .. }));
        assert_eq!(reason(&verdicts[2]), Reason::NotFound);
        assert_eq!((service.counts.committed, service.counts.refused, service.counts.records), (2, 2, 1));
    }

    #[test]
    fn requests_that_change_nothing_make_no_record() {
        let mut service = Service::new(Box::new(Fickle::default()), rules()).unwrap();
        let request = Request { client: 5, sequence: 1, ..set(1) };
        assert_eq!(service.commit(vec![request.clone()]), [Ok(1)]);
        assert_eq!(service.commit(vec![request]), [Ok(1)]);
        assert!(service.commit(vec![Request::once(vec![Update::delete(Ipv4Addr::new(20, 0, 0, 9))])])[0].is_err());
        assert_eq!(service.counts.records, 1);
    }

    #[test]
    fn after_a_failed_append_the_table_follows_the_log_either_way() {
        for kept in [false, true] {
            let store = Fickle::default();
            let fail = Arc::clone(&store.fail);
            let mut service = Service::new(Box::new(store), rules()).unwrap();
            assert_eq!(service.commit(vec![set(1)]), [Ok(1)]);
            *fail.lock().unwrap() = Some(kept);
            let verdict = service.commit(vec![set(2)]).remove(0).unwrap_err();
            assert!(verdict.to_string().contains("disk is full"), "{verdict}");
            assert_eq!(mapped(&service), 1, "look-ups do not see what was not acknowledged");
            let revision = if kept { 3 } else { 2 };
            assert_eq!(service.commit(vec![set(3)]), [Ok(revision)]);
            assert_eq!(mapped(&service), if kept { 3 } else { 2 });
        }
    }
}
