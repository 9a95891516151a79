//! A simulated server's follower: the log, a watch of it that may lag, end or die, and the table that it makes.

use std::sync::Arc;

use weft_control::NS_PER_MS;
use weft_control::directory::etcd::{Raw, ReadLog, Sign, Tail, Vigil};
use weft_control::directory::record::decode_batch;
use weft_control::directory::replica::{Follow, Part, Todo};
use weft_control::directory::{Batch, Table};

use super::super::errands::Work;
use super::super::etcd::MEMBERS;
use super::super::{Event, Mutation, World};
use super::{LOOK_NS, Watch, queue, upkeep};

/// How long to wait before a store that could not be followed is tried again.
const PAUSE_NS: u64 = 100 * NS_PER_MS;

impl World {
    /// The follower does what is next, unless it waits.
    pub(in crate::sim) fn follow(&mut self, server: usize) {
        let state = &mut self.servers[server];
        if !state.up || state.following {
            return;
        }
        match state.follow.todo(state.table.revision()) {
            Todo::Load => {
                state.following = true;
                self.load(server);
            }
            Todo::Follow { after } => {
                let theirs = self.etcd.origin.theirs(after);
                (state.tail, state.watch, state.following) = (Tail::new(theirs), None, true);
                let read = self.read_after(after);
                self.begin(server, Work::Read(read));
            }
            Todo::Read => {
                let records = state.tail.take(usize::MAX);
                self.apply(server, records);
                if self.servers[server].watch.is_none() {
                    self.begin_watch(server);
                }
            }
        }
    }

    /// The follower has read the log.
    pub(in crate::sim) fn log_read(&mut self, server: usize, records: Vec<Raw>, now: u64) {
        let state = &mut self.servers[server];
        state.tail.read(records, now);
        state.following = false;
        state.follow.opened();
        self.note(server, Part::Follow, None);
        self.follow(server);
    }

    /// What the follower wants of the log is gone.
    pub(in crate::sim) fn log_gone(&mut self, server: usize) {
        self.behind(server, "records are gone");
        let state = &mut self.servers[server];
        state.follow.gone();
        state.following = false;
        self.follow(server);
    }

    /// The follower could not do what was next: it tries again.
    pub(in crate::sim) fn cannot_follow(&mut self, server: usize, why: String) {
        self.note(server, Part::Follow, Some(why));
        let life = self.servers[server].life;
        self.after(PAUSE_NS, Event::Follow { server, life });
    }

    /// That time has come.
    pub(in crate::sim) fn follow_again(&mut self, server: usize) {
        let state = &mut self.servers[server];
        if state.started {
            state.following = false;
            self.follow(server);
        } else {
            self.load(server);
        }
    }

    /// The follower has a table, and what came after it.
    pub(in crate::sim) fn loaded(&mut self, server: usize, mut table: Table, records: Vec<Raw>) {
        let mutation = self.plan.mutation;
        self.totals.snapshots_loaded += 1;
        let count = records.len() as u64;
        for (revision, bytes) in records {
            table.apply(self.etcd.origin.ours(revision), &decode_batch(&bytes).expect("it was written by us"));
        }
        let now_ns = self.now_ns;
        let state = &mut self.servers[server];
        let (revision, shown) = (table.revision(), state.table.revision());
        if !state.started {
            state.started = true;
            (state.queue, state.upkeep, state.follow) = (queue(revision), upkeep(count, now_ns), Follow::default());
            state.table = table;
        } else if state.follow.loaded(revision, shown) {
            assert!(revision >= shown, "server {server} went back from {shown} to {revision}");
            self.totals.jumped += 1;
            state.table = table;
            let passed = state.queue.jumped(revision);
            self.totals.passed_over += passed.len() as u64;
            if mutation == Mutation::JumpIsApplied {
                let settled = passed.into_iter().flat_map(|done| done.answers(|_| Ok(Some(revision))));
                self.settle(server, settled.collect());
            } else {
                self.settle_records(server, passed);
            }
        } else {
            return self.cannot_follow(server, "what the store holds has not reached us".to_owned());
        }
        let state = &mut self.servers[server];
        state.following = false;
        self.truth.assert_prefix(server, &state.table);
        // What was loaded is not caught up before the log is followed from there.
        self.follow(server);
    }

    fn apply(&mut self, server: usize, mut records: Vec<Raw>) {
        let (mutation, now_ns) = (self.plan.mutation, self.now_ns);
        if let (Mutation::SwapRecords, [.., (_, one), (_, two)]) = (mutation, records.as_mut_slice()) {
            std::mem::swap(one, two);
        }
        for (revision, bytes) in records {
            let revision = self.etcd.origin.ours(revision);
            let mut batch = decode_batch(&bytes).expect("it was written by us");
            let state = &mut self.servers[server];
            if mutation == Mutation::SkipRecord && !state.skipped && server == 0 && revision > 1_000_040 {
                state.skipped = true;
                batch = Batch::default();
            }
            if revision.is_multiple_of(16) {
                state.old = state.table.clone();
            }
            let again = batch.requests.iter().filter(|request| matches!(state.table.check(request), Ok(Some(_))));
            self.totals.applied_before += again.count() as u64;
            let mut verdicts = state.table.apply(revision, &batch);
            self.truth.assert_prefix(server, &state.table);
            if mutation == Mutation::ShiftVerdicts && !verdicts.is_empty() {
                verdicts.rotate_left(1);
            }
            state.upkeep.applied(1, batch.requests.len() as u64);
            let done = state.queue.applied(revision, verdicts, now_ns);
            self.settle_records(server, done);
        }
        if self.servers[server].queue.waits() {
            self.pump(server);
        }
    }

    fn begin_watch(&mut self, server: usize) {
        let from_now = (self.plan.mutation == Mutation::WatchFromNow).then_some(self.etcd.revision + 1);
        let now_ns = self.now_ns;
        let state = &mut self.servers[server];
        state.next_task += 1;
        let next = from_now.unwrap_or(state.tail.after() + 1);
        let (id, member, vigil) = (state.next_task, state.member, Vigil::new(now_ns));
        state.watch = Some(Watch { id, member, next, vigil, dead: false });
        self.watch_later(server);
    }

    /// What the cluster has now comes by the server's watch, a while later.
    pub(in crate::sim) fn watch_later(&mut self, server: usize) {
        let lag_ns = self.below(self.faults.lag_max_ns);
        let Some(watch) = &self.servers[server].watch else { return };
        let (life, id, upto) = (self.servers[server].life, watch.id, self.etcd.revision);
        self.after(lag_ns, Event::Watched { server, life, id, upto });
    }

    /// It does.
    pub(in crate::sim) fn watched(&mut self, server: usize, id: u64, upto: u64) {
        let (ends, dies) = (self.chance(self.faults.loss / 10), self.chance(self.faults.loss / 20));
        let (now_ns, compacted) = (self.now_ns, self.etcd.compacted);
        let state = &mut self.servers[server];
        let life = state.life;
        let Some(watch) = state.watch.as_mut().filter(|watch| watch.id == id) else { return };
        let mute_until_ns = state.cut_until_ns.max(self.etcd.paused_until_ns[watch.member]);
        if now_ns < mute_until_ns {
            return self.at(mute_until_ns + NS_PER_MS, Event::Watched { server, life, id, upto });
        }
        watch.dead |= dies;
        if watch.dead {
            return;
        }
        if ends {
            return self.give_up(server, "the watch ended".to_owned());
        }
        watch.vigil.heard(now_ns);
        if watch.next < compacted && upto >= watch.next {
            self.totals.watches_compacted += 1;
            if self.plan.mutation != Mutation::WatchSkipsCompacted {
                return self.passed_by(server);
            }
            watch.next = compacted;
        }
        // A sign of life is one of progress only where nothing is missing; else it says that the watch has begun.
        let has_begun_only = upto < watch.next && watch.next <= self.etcd.revision;
        state.mute.heard(has_begun_only && self.plan.mutation != Mutation::BegunIsCaughtUp);
        let first = self.etcd.puts.partition_point(|put| put.revision < watch.next);
        for put in self.etcd.puts[first..].iter().take_while(|put| put.revision <= upto) {
            state.tail.event(put.revision, put.version, &put.bytes);
        }
        watch.next = watch.next.max(upto + 1);
        let report = state.mute.report(now_ns).map(str::to_owned);
        self.note(server, Part::Follow, report);
        self.follow(server);
    }

    /// The watch would begin with what etcd has forgotten: that is said, and the log is read.
    fn passed_by(&mut self, server: usize) {
        self.behind(server, "etcd was compacted");
        let state = &mut self.servers[server];
        (state.watch, state.following) = (None, true);
        let read = ReadLog::new(Arc::clone(&self.etcd.layout), state.tail.after());
        self.begin(server, Work::Read(read));
    }

    /// The follower knows that it lags, and says so before it makes that good.
    fn behind(&mut self, server: usize, why: &str) {
        if self.plan.mutation != Mutation::SilentReading {
            self.note(server, Part::Follow, Some(why.to_owned()));
        }
    }

    /// A silent watch is looked after.
    pub(in crate::sim) fn look(&mut self, server: usize) {
        let now_ns = self.now_ns;
        let state = &mut self.servers[server];
        let (life, (appended, since_ns)) = (state.life, state.appended);
        let behind_since_ns = (appended > state.tail.after()).then_some(since_ns);
        self.after(LOOK_NS, Event::Look { server, life });
        // Who reads the log does nothing else.
        if self.servers[server].following {
            return;
        }
        if let Some(why) = self.servers[server].mute.report(now_ns).map(str::to_owned) {
            self.note(server, Part::Follow, Some(why));
        }
        let state = &mut self.servers[server];
        let Some(watch) = &mut state.watch else { return };
        let mute = now_ns < state.cut_until_ns.max(self.etcd.paused_until_ns[watch.member]);
        let id = watch.id;
        match watch.vigil.look(now_ns, behind_since_ns) {
            Sign::Wait => {}
            Sign::Ask if mute => {}
            Sign::Ask => {
                let delay_ns = self.delay_ns();
                self.after(delay_ns, Event::Watched { server, life, id, upto: 0 });
            }
            Sign::GiveUp(_) if self.plan.mutation == Mutation::WatchForever => {}
            Sign::GiveUp(why) => self.give_up(server, why),
        }
    }

    /// The watch is of no more use: the next member is tried.
    fn give_up(&mut self, server: usize, why: String) {
        self.totals.watches_given_up += 1;
        let state = &mut self.servers[server];
        state.watch = None;
        state.mute.gave_up(self.now_ns, why);
        state.member = (state.member + 1) % MEMBERS;
        self.follow(server);
    }
}
