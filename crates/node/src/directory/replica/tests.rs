//! A replica on a log in memory whose appends can be made to fail, wait, or be overtaken.

use std::net::Ipv4Addr;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use weft_control::address::Locator;
use weft_control::directory::{AaRanges, Authority, Batch, Reason, Refusal, Request, Rules, Table, Update};

use super::*;
use crate::store::{Follower, Store, StoreError};

const SOON: Duration = Duration::from_secs(60);

/// What happens to the next append.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It fails and is not kept.
    Lost,
    /// It fails and is kept all the same.
    Kept,
}

#[derive(Default)]
struct State {
    log: Vec<Batch>,
    /// Appends that were tried.
    begun: usize,
    faults: Vec<Fault>,
    /// Appends wait while this is set.
    blocked: bool,
    /// Loading waits while this is set.
    slow: bool,
    /// Followers see nothing while this is set.
    silent: bool,
    /// A follower that looks panics.
    broken: bool,
    /// An appender that has appended panics, or one that checks.
    torn: bool,
    unchecked: bool,
    /// Records up to this one are gone, and the snapshot covers them.
    compacted: u64,
    shared: bool,
}

/// The log.
#[derive(Clone, Default)]
pub(in crate::directory) struct Fickle(Arc<(Mutex<State>, Condvar)>);

impl Fickle {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
    }

    fn records(&self) -> usize {
        self.0.0.lock().unwrap().log.len()
    }

    /// A follower that looks panics from now on.
    pub(in crate::directory) fn breaks(&self) {
        self.change(|state| state.broken = true);
    }
}

impl Store for Fickle {
    fn append(&self, batch: &Batch) -> Result<u64, StoreError> {
        let mut state = self.0.0.lock().unwrap();
        state.begun += 1;
        let (mut state, _) = self.0.1.wait_timeout_while(state, SOON, |state| state.blocked).unwrap();
        let fault = if state.faults.is_empty() { None } else { Some(state.faults.remove(0)) };
        if fault != Some(Fault::Lost) {
            state.log.push(batch.clone());
        }
        self.0.1.notify_all();
        let torn = state.torn;
        if torn {
            drop(state);
            panic!("a bug");
        }
        match fault {
            None => Ok(state.log.len() as u64),
            Some(_) => Err(StoreError::Io { path: "log".into(), what: "appending", why: "no power".into() }),
        }
    }

    fn load(&self) -> Result<Table, StoreError> {
        let (state, _) = self.0.1.wait_timeout_while(self.0.0.lock().unwrap(), SOON, |state| state.slow).unwrap();
        let mut table = Table::default();
        for (revision, batch) in (1..=state.compacted).zip(&state.log) {
            table.apply(revision, batch);
        }
        Ok(table)
    }

    fn follow(&self, from: u64) -> Result<Box<dyn Follower>, StoreError> {
        Ok(Box::new(FickleFollower { store: self.clone(), after: from }))
    }

    fn snapshot(&self, _: &Table) -> Result<(), StoreError> {
        Ok(())
    }

    fn compact(&self, to: u64) -> Result<(), StoreError> {
        self.change(|state| state.compacted = to);
        Ok(())
    }

    fn check(&self) -> Result<(), StoreError> {
        let unchecked = self.0.0.lock().unwrap().unchecked;
        assert!(!unchecked, "a bug");
        Ok(())
    }

    fn sole_writer(&self) -> bool {
        !self.0.0.lock().unwrap().shared
    }

    fn updates_max(&self) -> usize {
        100
    }
}

struct FickleFollower {
    store: Fickle,
    after: u64,
}

impl Follower for FickleFollower {
    fn next(&mut self, timeout: Duration) -> Result<Vec<(u64, Batch)>, StoreError> {
        let (state, more) = &*self.store.0;
        let nothing = |state: &mut State| !state.broken && (state.silent || state.log.len() as u64 <= self.after);
        let (state, _) = more.wait_timeout_while(state.lock().unwrap(), timeout, nothing).unwrap();
        if state.broken {
            drop(state);
            panic!("a bug");
        }
        if state.silent {
            return Ok(Vec::new());
        }
        if self.after < state.compacted {
            return Err(StoreError::Compacted { from: self.after, compacted: state.compacted });
        }
        let records = (1..).zip(state.log.clone()).skip(self.after as usize).collect();
        self.after = state.log.len() as u64;
        Ok(records)
    }
}

fn set(k: u8) -> Request {
    let locator = Locator { tor_la: Ipv4Addr::new(10, 1, 0, k), anycast_la: Ipv4Addr::new(10, 255, 255, 1) };
    Request::once(vec![Update::set(Ipv4Addr::new(20, 0, 0, k), locator)])
}

fn absent() -> Request {
    Request::once(vec![Update::delete(Ipv4Addr::new(20, 0, 0, 99))])
}

fn rules() -> Rules {
    Rules { aa_block: "20.0.0.0/8".parse().unwrap(), tor_las: None, aa_ranges: AaRanges::default(), updates_max: 1000 }
}

pub(in crate::directory) fn start(store: &Fickle) -> Replica {
    Replica::start(Arc::new(store.clone()), rules(), ReplicaSettings::default()).unwrap()
}

/// Submits without waiting.
fn submit(replica: &Replica, request: Request, timeout: Duration) -> mpsc::Receiver<Result<u64, Failure>> {
    let (sender, receiver) = mpsc::channel();
    replica.submit(request, timeout, Box::new(move |outcome| drop(sender.send(outcome))));
    receiver
}

fn mapped(replica: &Replica) -> usize {
    replica.read(Table::mapped)
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn requests_share_a_record_and_verdicts_keep_their_order() {
    let store = Fickle::default();
    let replica = start(&store);
    store.change(|state| state.blocked = true);
    let first = submit(&replica, set(9), SOON);
    wait_until("the first record is on its way", || store.0.0.lock().unwrap().begun == 1);
    let outside = Request::once(vec![Update::delete(Ipv4Addr::new(21, 0, 0, 1))]);
    // The second waits for the first, which names the same AA, and the others stay behind it.
    let asked: Vec<_> =
        [set(9), set(1), outside, absent(), set(2)].map(|request| submit(&replica, request, SOON)).into();
    store.change(|state| state.blocked = false);
    assert_eq!(first.recv().unwrap(), Ok(1));
    let verdicts: Vec<_> = asked.iter().map(|receiver| receiver.recv().unwrap()).collect();
    assert_eq!((&verdicts[0], &verdicts[1], &verdicts[4]), (&Ok(2), &Ok(2), &Ok(2)));
    let reason = |verdict: &Result<u64, Failure>| match verdict {
        Err(Failure::Refused(Refusal::Update { reason, .. })) => reason.clone(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(reason(&verdicts[2]), Reason::OutsideBlock { .. }));
    assert_eq!(reason(&verdicts[3]), Reason::NotFound);
    let counts = replica.status().counts;
    assert_eq!((counts.committed, counts.refused, counts.records), (4, 2, 2));
    assert_eq!(store.records(), 2);
}

#[test]
fn requests_that_change_nothing_make_no_record_where_nobody_else_writes() {
    let store = Fickle::default();
    let replica = start(&store);
    let request = Request { client: 5, sequence: 1, ..set(1) };
    assert_eq!(replica.commit(request.clone(), SOON), Ok(1));
    assert_eq!(replica.commit(request.clone(), SOON), Ok(1));
    assert!(matches!(replica.commit(absent(), SOON), Err(Failure::Refused(_))));
    assert_eq!(store.records(), 1);
    store.change(|state| state.shared = true);
    assert_eq!(replica.commit(request, SOON), Ok(1), "applied once all the same");
    assert!(matches!(replica.commit(absent(), SOON), Err(Failure::Refused(_))));
    assert_eq!(store.records(), 3, "elsewhere there may be a mapping by now: only the log knows");
}

#[test]
fn a_late_copy_of_a_refused_request_stays_refused() {
    let store = Fickle::default();
    let replica = start(&store);
    let refused = Request { client: 5, sequence: 1, ..absent() };
    assert!(matches!(replica.commit(refused.clone(), SOON), Err(Failure::Refused(_))));
    let aa = refused.updates[0].aa;
    let appears = Request { updates: vec![Update { aa, ..set(1).updates[0] }], ..set(1) };
    assert!(replica.commit(appears, SOON).is_ok());
    assert!(
        matches!(replica.commit(refused, SOON), Err(Failure::Refused(_))),
        "its client was told that it is not done"
    );
}

#[test]
fn after_a_failed_append_the_table_follows_the_log_either_way() {
    for fault in [Fault::Kept, Fault::Lost] {
        let store = Fickle::default();
        let replica = start(&store);
        assert_eq!(replica.commit(set(1), SOON), Ok(1));
        store.change(|state| state.faults = vec![fault]);
        let failure = replica.commit(set(2), SOON).unwrap_err();
        assert!(matches!(failure, Failure::Store(_)), "{failure:?}");
        assert!(failure.to_string().contains("unknown") && failure.to_string().contains("no power"), "{failure}");
        let revision = if fault == Fault::Kept { 3 } else { 2 };
        assert_eq!(replica.commit(set(3), SOON), Ok(revision));
        assert_eq!(mapped(&replica) as u64, revision);
    }
}

#[test]
fn a_client_with_a_number_does_not_notice_a_lost_answer_and_is_served_once() {
    for fault in [Fault::Kept, Fault::Lost] {
        let store = Fickle::default();
        let replica = start(&store);
        store.change(|state| state.faults = vec![fault]);
        assert_eq!(replica.commit(Request { client: 7, sequence: 3, ..set(1) }, SOON), Ok(1));
        let version = replica.read(|table| table.record(Ipv4Addr::new(20, 0, 0, 1)).unwrap().version);
        assert_eq!(version, 1, "applied once");
    }
}

#[test]
fn a_request_is_answered_only_once_it_is_applied_here() {
    let store = Fickle::default();
    let replica = start(&store);
    store.change(|state| state.silent = true);
    let outcome = submit(&replica, set(1), SOON);
    wait_until("it is in the log", || store.records() == 1);
    assert_eq!(outcome.recv_timeout(Duration::from_millis(50)), Err(mpsc::RecvTimeoutError::Timeout));
    assert_eq!(mapped(&replica), 0);
    store.change(|state| state.silent = false);
    assert_eq!(outcome.recv().unwrap(), Ok(1));
    assert_eq!(mapped(&replica), 1);
}

#[test]
fn a_store_that_does_not_answer_fails_requests_in_time_and_says_what_is_known() {
    let store = Fickle::default();
    let settings = ReplicaSettings { records_open: 1, requests_waiting: 2, ..ReplicaSettings::default() };
    let replica = Replica::start(Arc::new(store.clone()), rules(), settings).unwrap();
    store.change(|state| state.blocked = true);
    let text = |outcome: mpsc::Receiver<Result<u64, Failure>>| outcome.recv().unwrap().unwrap_err().to_string();
    let on_the_way = text(submit(&replica, set(1), Duration::from_millis(300)));
    assert!(on_the_way.contains("is unknown"), "{on_the_way}");
    let never_left = text(submit(&replica, set(2), Duration::from_millis(20)));
    assert!(never_left.contains("nothing was changed"), "{never_left}");
    let stuck = [submit(&replica, set(3), SOON), submit(&replica, set(4), SOON)];
    let busy = replica.commit(set(5), SOON).unwrap_err();
    assert!(matches!(&busy, Failure::Busy(why) if why.contains("overloaded") && why.contains("nothing was changed")));
    store.change(|state| state.blocked = false);
    assert_eq!(stuck.map(|outcome| outcome.recv().unwrap()), [Ok(2), Ok(2)]);
    assert_eq!(mapped(&replica), 3, "the first was carried out after all; the second never");
}

#[test]
fn a_replica_that_lags_behind_a_compaction_takes_the_snapshot_over() {
    let store = Fickle::default();
    store.change(|state| state.shared = true);
    let (fast, slow) = (start(&store), start(&store));
    store.change(|state| state.silent = true);
    let numbered = submit(&slow, Request { client: 3, sequence: 1, ..set(1) }, SOON);
    wait_until("it is in the log", || store.records() == 1);
    let nameless = submit(&slow, set(2), SOON);
    wait_until("it is in the log too", || store.records() == 2);
    store.change(|state| {
        state.compacted = 2;
        state.silent = false;
    });
    assert_eq!(numbered.recv().unwrap(), Ok(1), "the snapshot remembers the client");
    let outcome = nameless.recv().unwrap();
    assert!(matches!(&outcome, Err(Failure::Store(why)) if why.contains("unknown")), "{outcome:?}");
    // Without a number it would share that fate, as long as the other one still loads the snapshot.
    wait_until("the other one has taken it over, too", || fast.table_hash().0 == 2);
    assert_eq!(fast.commit(set(3), SOON), Ok(3));
    wait_until("both are at the end", || slow.table_hash().0 == 3 && fast.table_hash().0 == 3);
    assert_eq!(slow.table_hash(), fast.table_hash());
    assert_eq!(mapped(&slow), 3);
}

#[test]
fn subscribers_hear_of_every_change_and_slow_ones_that_they_lag() {
    let store = Fickle::default();
    let settings = ReplicaSettings { subscriber_lag: 2, ..ReplicaSettings::default() };
    let replica = Replica::start(Arc::new(store), rules(), settings).unwrap();
    let mut events = replica.subscribe();
    assert_eq!(replica.commit(set(1), SOON), Ok(1));
    let event = events.try_recv().unwrap();
    let record = replica.read(|table| table.record(Ipv4Addr::new(20, 0, 0, 1)).unwrap());
    assert_eq!(
        *event,
        Committed { revision: 1, changed: vec![(Ipv4Addr::new(20, 0, 0, 1), record)], policy: Vec::new(), gap: false }
    );
    for k in 2..=4 {
        replica.commit(set(k), SOON).unwrap();
    }
    assert_eq!(events.try_recv(), Err(broadcast::error::TryRecvError::Lagged(1)));
}

#[test]
fn who_sends_little_does_not_wait_behind_who_sends_much() {
    let store = Fickle::default();
    let settings = ReplicaSettings { records_open: 1, ..ReplicaSettings::default() };
    let replica = Replica::start(Arc::new(store.clone()), rules(), settings).unwrap();
    store.change(|state| state.blocked = true);
    let first = submit(&replica, set(9), SOON);
    wait_until("the first record is on its way", || store.0.0.lock().unwrap().begun == 1);
    let of = |service: u32, k: u32| Request {
        authority: Authority::Service(service),
        ..Request::once(vec![Update { aa: Ipv4Addr::from(0x1400_1000 + k), ..set(1).updates[0] }])
    };
    let much: Vec<_> = (0..4000).map(|k| submit(&replica, of(7, k), SOON)).collect();
    let little = submit(&replica, of(8, 5000), SOON);
    // What waits for its own earlier update holds nobody else up.
    let own = submit(&replica, Request { authority: Authority::Service(6), ..set(9) }, SOON);
    let other = submit(&replica, of(5, 5001), SOON);
    store.change(|state| state.blocked = false);
    assert_eq!(first.recv().unwrap(), Ok(1));
    assert_eq!([little, own, other].map(|outcome| outcome.recv().unwrap()), [Ok(2), Ok(2), Ok(2)], "the next record");
    let revisions: Vec<_> = much.into_iter().map(|outcome| outcome.recv().unwrap().unwrap()).collect();
    assert!(revisions.is_sorted() && revisions[3999] > 4, "{:?}", revisions.last());
}

#[test]
fn a_replica_that_ends_answers_everybody() {
    let store = Fickle::default();
    let replica = start(&store);
    store.change(|state| state.silent = true);
    let outcome = submit(&replica, set(1), SOON);
    wait_until("it is in the log", || store.records() == 1);
    drop(replica);
    assert!(matches!(outcome.recv().unwrap(), Err(Failure::Store(why)) if why.contains("stops")));
}

#[test]
fn a_table_that_differs_from_the_store_is_found_and_repaired() {
    let store = Fickle::default();
    let settings = ReplicaSettings { compare_every: Duration::from_millis(20), ..ReplicaSettings::default() };
    let replica = Replica::start(Arc::new(store.clone()), rules(), settings).unwrap();
    replica.commit(set(1), SOON).unwrap();
    wait_until("it was compared", || replica.status().compared_revision == 1);
    assert_eq!(replica.status().repaired, 0);
    // From here on the log says something else than what this replica applied.
    store.change(|state| state.log[0] = Batch::of(set(2)));
    wait_until("it was repaired", || replica.status().repaired > 0 && mapped(&replica) == 1);
    wait_until("it shows what the store holds", || {
        replica.read(|table| table.record(Ipv4Addr::new(20, 0, 0, 2)).is_some())
    });
    assert_eq!(replica.commit(set(3), SOON), Ok(2), "and goes on");
    let repaired = replica.status().repaired;
    wait_until("it was compared again", || replica.status().compared_revision == 2);
    assert_eq!(replica.status().repaired, repaired);
}

#[test]
fn a_replica_that_lags_behind_a_compaction_says_so_while_it_loads() {
    let store = Fickle::default();
    let replica = start(&store);
    replica.commit(set(1), SOON).unwrap();
    store.change(|state| state.silent = true);
    // A replica elsewhere appends, and compacts.
    store.change(|state| state.log.extend([Batch::of(set(2)), Batch::of(set(3))]));
    store.change(|state| (state.compacted, state.slow, state.silent) = (3, true, false));
    wait_until("it says so", || replica.check().is_err());
    let why = replica.check().unwrap_err();
    assert!(why.contains("not caught up") && why.contains("are gone"), "{why}");
    assert_eq!(mapped(&replica), 1, "what it knew is still there");
    store.change(|state| state.slow = false);
    wait_until("it has caught up", || replica.check().is_ok());
    assert_eq!(mapped(&replica), 3);
}

#[test]
fn a_replica_whose_follower_panics_says_so_and_shows_no_empty_table() {
    let store = Fickle::default();
    let replica = start(&store);
    replica.commit(set(1), SOON).unwrap();
    store.breaks();
    wait_until("it says so", || replica.check().is_err());
    let why = replica.check().unwrap_err();
    assert!(why.contains("follower") && why.contains("a bug") && why.contains("restart"), "{why}");
    assert_eq!(mapped(&replica), 1, "what it knew is still there");
    let failure = replica.commit(set(2), SOON).unwrap_err().to_string();
    assert!(failure.contains("the server stops"), "{failure}");
}

#[test]
fn a_replica_any_of_whose_threads_panics_ends_and_says_what_it_does_not_know() {
    let store = Fickle::default();
    let replica = start(&store);
    store.change(|state| state.torn = true);
    let failure = replica.commit(set(1), SOON).unwrap_err().to_string();
    assert!(failure.contains("is unknown: the server stops"), "it is in the log: {failure}");
    wait_until("it says so", || replica.check().is_err());
    let why = replica.check().unwrap_err();
    assert!(why.contains("appender") && why.contains("a bug") && why.contains("restart"), "{why}");
    let failure = replica.commit(set(2), SOON).unwrap_err().to_string();
    assert!(failure.contains("the server stops, nothing was changed"), "{failure}");

    let store = Fickle::default();
    let replica = start(&store);
    store.change(|state| state.unchecked = true);
    wait_until("it says so", || replica.check().is_err());
    assert!(replica.check().unwrap_err().contains("upkeep"), "{:?}", replica.check());
}
