//! The simulated etcd cluster, as far as servers use it: keys with all their revisions, transactions, leases, compaction,
//! and members that are paused or without a leader. What it says it did is agreed on and stays.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use weft_control::NS_PER_S;
use weft_control::directory::Table;
use weft_control::directory::etcd::{
    Answer, Call, Exchange, Fault, Found, Get, Layout, Load, Op, Origin, Pair, ReadLog, Txn, When,
};
use weft_control::directory::record::decode_batch;

use super::{Event, Mutation, World};

/// Its members.
pub(super) const MEMBERS: usize = 3;
/// How long leases last: shorter than they are asked for, as life here is.
const LEASE_NS: u64 = 2 * NS_PER_S;
/// Of the process that sets the log up.
const FOUNDER: u64 = 0;

/// The cluster.
pub(super) struct Etcd {
    pub(super) layout: Arc<Layout>,
    pub(super) origin: Origin,
    pub(super) revision: u64,
    /// What was before this revision is forgotten.
    pub(super) compacted: u64,
    /// What each key had, in order of revisions.
    keys: BTreeMap<String, Vec<Version>>,
    /// What was put where the log is, in order.
    pub(super) puts: Vec<Put>,
    leases: i64,
    /// Leases that are over.
    over: BTreeSet<i64>,
    /// No leader until then.
    pub(super) down_until_ns: u64,
    /// Members that do nothing until then.
    pub(super) paused_until_ns: [u64; MEMBERS],
}

/// What a key had from a revision on.
struct Version {
    revision: u64,
    /// How often it was put since it was made; 0: it is deleted.
    puts: u64,
    pair: Pair,
}

/// A record that was put.
#[derive(Clone)]
pub(super) struct Put {
    /// etcd's.
    pub(super) revision: u64,
    /// How often its key was put.
    pub(super) version: u64,
    pub(super) bytes: Vec<u8>,
}

impl Etcd {
    /// One whose log begins now.
    pub(super) fn new() -> Self {
        let layout = Arc::new(Layout::new("fabric/"));
        let mut etcd = Self {
            layout: Arc::clone(&layout),
            origin: Origin::at(1_000_000),
            revision: 1,
            compacted: 0,
            keys: BTreeMap::new(),
            puts: Vec::new(),
            leases: 0,
            over: BTreeSet::new(),
            down_until_ns: 0,
            paused_until_ns: [0; MEMBERS],
        };
        etcd.put(layout.origin(), &etcd.origin.value(), None, 2);
        etcd.revision = 2;
        etcd.origin = Origin::parse(&etcd.origin.value(), 2).expect("it was made so");
        etcd
    }

    fn latest(&self, key: &str) -> Option<&Pair> {
        let version = self.keys.get(key)?.last()?;
        (version.puts > 0).then_some(&version.pair)
    }

    /// Carries a call out; `None`: what it reads is forgotten.
    fn execute(&mut self, call: &Call) -> Option<Answer> {
        let mut answer = Answer::default();
        match call {
            Call::Get(get) if get.at > 0 && get.at < self.compacted => return None,
            Call::Get(get) => answer.found.push(self.get(get)),
            Call::Txn(txn) => (answer.succeeded, answer.found) = self.transact(txn),
            Call::Grant { .. } => {
                self.leases += 1;
                answer.lease = self.leases;
            }
            Call::Revoke { lease } => self.end_lease(*lease),
            Call::Forget { revision } => self.compacted = self.compacted.max(*revision),
        }
        answer.revision = self.revision;
        Some(answer)
    }

    fn get(&self, get: &Get) -> Found {
        let at = if get.at == 0 { self.revision } else { get.at };
        let end = get.end.as_deref().map_or(Bound::Included(get.key.as_str()), Bound::Excluded);
        if get.end.as_deref().is_some_and(|end| end <= get.key.as_str()) {
            return Found::default();
        }
        let versions = self.keys.range::<str, _>((Bound::Included(get.key.as_str()), end));
        let there = versions.filter_map(|(_, versions)| versions.iter().rfind(|version| version.revision <= at));
        let wanted = there.filter(|version| version.puts > 0 && version.revision >= get.changed_since);
        let mut pairs: Vec<Pair> = wanted.map(|version| version.pair.clone()).collect();
        let more = get.limit > 0 && pairs.len() > get.limit;
        if more {
            pairs.truncate(get.limit);
        }
        if get.keys_only {
            pairs.iter_mut().for_each(|pair| pair.value.clear());
        }
        Found { pairs, more }
    }

    /// Whether this puts a snapshot in the place of records, or lets anything go.
    fn replaces_log(&self, op: &Op) -> bool {
        match op {
            Op::Put { key, .. } => key == self.layout.snapshot(),
            Op::Delete(_) => true,
            Op::Get(_) => false,
        }
    }

    fn transact(&mut self, txn: &Txn) -> (bool, Vec<Found>) {
        let holds = txn.when.iter().all(|when| match when {
            When::Absent(key) => self.latest(key).is_none(),
            When::Unchanged { key, revision } => self.latest(key).map_or(0, |pair| pair.changed) == *revision,
        });
        let (mut changed, mut found) = (false, Vec::new());
        let next = self.revision + 1;
        for op in if holds { &txn.then } else { &txn.otherwise } {
            match op {
                Op::Put { key, value, lease } => {
                    self.put(key, value, *lease, next);
                    changed = true;
                }
                Op::Delete(keys) => changed |= self.delete(|key, _| keys.contains(&key.to_owned()), next),
                Op::Get(get) => found.push(self.get(get)),
            }
        }
        self.revision += u64::from(changed);
        (holds, found)
    }

    fn put(&mut self, key: &str, value: &[u8], lease: Option<i64>, revision: u64) {
        let in_log = self.layout.log().contains(&key.to_owned());
        let versions = self.keys.entry(key.to_owned()).or_default();
        let before = versions.last().filter(|version| version.puts > 0);
        let (puts, created) = before.map_or((1, revision), |version| (version.puts + 1, version.pair.created));
        let pair =
            Pair { key: key.to_owned(), value: value.to_vec(), created, changed: revision, lease: lease.unwrap_or(0) };
        versions.push(Version { revision, puts, pair });
        if in_log {
            self.puts.push(Put { revision, version: puts, bytes: value.to_vec() });
        }
    }

    fn delete(&mut self, wanted: impl Fn(&str, &Pair) -> bool, revision: u64) -> bool {
        let mut deleted = false;
        for (key, versions) in &mut self.keys {
            if versions.last().is_some_and(|version| version.puts > 0 && wanted(key, &version.pair)) {
                versions.push(Version { revision, puts: 0, pair: Pair::default() });
                deleted = true;
            }
        }
        deleted
    }

    /// The table of who starts now and meets no trouble, from what the cluster has.
    fn table_of_a_starter(&self) -> Result<Table, Fault> {
        let mut table = self.read(Load::new(Arc::clone(&self.layout), self.origin))?;
        let after = self.origin.theirs(table.revision());
        let (records, _) = self.read(ReadLog::new(Arc::clone(&self.layout), after))?;
        for (revision, bytes) in records {
            table.apply(self.origin.ours(revision), &decode_batch(&bytes).expect("it was written by us"));
        }
        Ok(table)
    }

    fn read<E: Exchange>(&self, mut exchange: E) -> Result<E::Outcome, Fault> {
        loop {
            let Call::Get(get) = exchange.call() else { panic!("who reads changes nothing") };
            let answer = Answer { revision: self.revision, found: vec![self.get(&get)], ..Answer::default() };
            if let Some(outcome) = exchange.answered(answer) {
                return outcome;
            }
        }
    }

    /// Whether this would hang something on a lease that is over, which etcd refuses.
    fn is_too_late(&self, call: &Call) -> bool {
        let Call::Txn(txn) = call else { return false };
        txn.then.iter().any(|op| matches!(op, Op::Put { lease: Some(lease), .. } if self.over.contains(lease)))
    }

    /// A lease ends, and what hangs on it goes.
    pub(super) fn end_lease(&mut self, lease: i64) {
        let next = self.revision + 1;
        self.over.insert(lease);
        let deleted = lease != 0 && self.delete(|_, pair| pair.lease == lease, next);
        self.revision += u64::from(deleted);
    }

    /// The last record is lost, which etcd never does.
    fn forget_last(&mut self) {
        if self.puts.len() < 2 {
            return;
        }
        if let Some(last) = self.puts.pop() {
            let log = self.layout.log();
            for (_, versions) in self.keys.range_mut(log) {
                versions.retain(|version| version.revision != last.revision);
            }
        }
    }
}

impl World {
    /// A call arrives at a member.
    pub(super) fn arrive(&mut self, errand: super::Errand, member: usize, call: Arc<Call>) {
        let paused_until_ns = self.etcd.paused_until_ns[member];
        if self.now_ns < paused_until_ns {
            let at_ns = paused_until_ns + self.delay_ns();
            return self.at(at_ns, Event::Arrive { errand, member, call });
        }
        if self.now_ns < self.etcd.down_until_ns {
            match self.below(3) {
                0 => self.reply(errand, None, true),
                1 => {}
                _ => {
                    let at_ns = self.etcd.down_until_ns + self.delay_ns();
                    self.at(at_ns, Event::Arrive { errand, member, call });
                }
            }
            return;
        }
        if self.etcd.is_too_late(&call) {
            return self.reply(errand, None, true);
        }
        let answer = self.execute(&call);
        if let Some(lease) = answer.as_ref().map(|answer| answer.lease).filter(|lease| *lease != 0) {
            // For some, their holder's clock or the cluster's is another one.
            let early = self.chance(100 * self.plan.severity);
            let lasts_ns = if early { self.below(NS_PER_S) } else { LEASE_NS };
            self.after(lasts_ns, Event::LeaseOver { lease });
        }
        self.reply(errand, answer, false);
    }

    /// Carries a call out; records that it makes are true from then on.
    fn execute(&mut self, call: &Call) -> Option<Answer> {
        let known = self.etcd.puts.len();
        let answer = self.etcd.execute(call);
        for place in known..self.etcd.puts.len() {
            let Put { revision, version, bytes } = self.etcd.puts[place].clone();
            let batch = decode_batch(&bytes).expect("a server wrote it");
            if version == 1 {
                self.truth.commit(self.now_ns, self.etcd.origin.ours(revision), &batch);
            }
        }
        if let (Call::Txn(txn), Some(Answer { succeeded: true, .. })) = (call, &answer)
            && txn.then.iter().any(|op| self.etcd.replaces_log(op))
        {
            self.assert_starters_find_everything();
        }
        if self.etcd.puts.len() > known {
            for server in 0..self.servers.len() {
                self.watch_later(server);
            }
        }
        answer
    }

    /// Whatever snapshots, sweeps and compactions do, and in whichever order: it is all there.
    fn assert_starters_find_everything(&mut self) {
        self.totals.started_whole += 1;
        let found = self.etcd.table_of_a_starter();
        let hash = found.as_ref().map(Table::hash);
        assert_eq!(hash, Ok(self.truth.table.hash()), "who starts now is shown what the log does not say");
    }

    /// Puts a record into the log, as a server would that is always there.
    pub(super) fn found(&mut self, bytes: Vec<u8>) {
        let key = self.etcd.layout.record(0, (FOUNDER, self.etcd.revision));
        let put = Op::Put { key, value: bytes, lease: None };
        self.execute(&Call::Txn(Txn { then: vec![put], ..Txn::default() }));
    }

    /// The leader is lost. What was agreed on stays.
    pub(super) fn leader_down(&mut self, lasts_ns: u64) {
        self.etcd.down_until_ns = self.now_ns + lasts_ns;
        if self.plan.mutation == Mutation::LoseLastRecord {
            self.etcd.forget_last();
        }
    }
}
