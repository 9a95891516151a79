//! What a simulated server has under way to the cluster: calls that are lost, late, doubled, and sent again over another
//! member while there is no answer, as the shipped link does it.

use std::sync::Arc;

use weft_control::NS_PER_MS;
use weft_control::directory::Table;
use weft_control::directory::etcd::{
    Answer, Append, Call, Claim, Claimed, Compact, Exchange, Fault, Load, ReadLog, Turn, Write,
};
use weft_control::directory::replica::{Comparison, Part};

use super::etcd::MEMBERS;
use super::{Event, Mutation, World};

/// How long a member has before another is asked too.
const HEDGE_NS: u64 = 200 * NS_PER_MS;
/// How long to wait after a refusal before the next member is asked.
const PAUSE_NS: u64 = 15 * NS_PER_MS;
/// How long a call, or an append with all of its calls, may take.
const TIMEOUT_NS: u64 = 900 * NS_PER_MS;
/// Copies of one call on their way at a time.
const COPIES: usize = 6;

/// Which call of which errand of which life of which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Errand {
    pub(super) server: usize,
    pub(super) life: u64,
    task: u64,
    call: u64,
}

/// Something under way.
pub(super) struct Task {
    errand: Errand,
    work: Work,
    call: Arc<Call>,
    deadline_ns: u64,
    member: usize,
    sent: usize,
    /// Copies of which a member said that it did not do it.
    refused: usize,
}

impl Task {
    /// What is sent again is this.
    pub(super) fn sent(&self) -> Option<(Errand, Arc<Call>)> {
        (self.sent > 0).then(|| (self.errand, Arc::clone(&self.call)))
    }
}

/// What it is for.
pub(super) enum Work {
    Append {
        number: u64,
        append: Append,
    },
    /// The follower reads the log.
    Read(ReadLog),
    /// It takes a snapshot over,
    Load(Load),
    /// and what came after it.
    CatchUp {
        table: Box<Table>,
        read: ReadLog,
    },
    Check(Call),
    Claim {
        claim: Claim,
        table: Box<Table>,
    },
    Write {
        write: Write,
        lease: i64,
        revision: u64,
    },
    /// Then the log is compacted to this revision, if a snapshot is there.
    Revoke {
        lease: i64,
        revision: Option<u64>,
    },
    Compact(Compact),
    CompareLoad(Load),
    CompareRead {
        comparison: Comparison,
        read: ReadLog,
    },
}

impl Work {
    fn call(&mut self) -> Call {
        match self {
            Self::Append { append, .. } => append.call(),
            Self::Read(read) | Self::CatchUp { read, .. } | Self::CompareRead { read, .. } => read.call(),
            Self::Load(load) | Self::CompareLoad(load) => load.call(),
            Self::Check(call) => call.clone(),
            Self::Claim { claim, .. } => claim.call(),
            Self::Write { write, .. } => write.call(),
            Self::Revoke { lease, .. } => Call::Revoke { lease: *lease },
            Self::Compact(compact) => compact.call(),
        }
    }

    fn forgotten(&mut self) -> bool {
        match self {
            Self::Read(read) | Self::CatchUp { read, .. } | Self::CompareRead { read, .. } => read.forgotten(),
            Self::Load(load) | Self::CompareLoad(load) => load.forgotten(),
            _ => false,
        }
    }
}

impl World {
    /// A server begins something.
    pub(super) fn begin(&mut self, server: usize, work: Work) {
        let state = &mut self.servers[server];
        state.next_task += 1;
        let errand = Errand { server, life: state.life, task: state.next_task, call: 0 };
        self.go_on(errand, work, self.now_ns + TIMEOUT_NS);
    }

    /// Sends the next call of it.
    fn go_on(&mut self, errand: Errand, mut work: Work, deadline_ns: u64) {
        let errand = Errand { call: errand.call + 1, ..errand };
        let mut call = work.call();
        self.plan.mutation.spoil_call(&work, &mut call);
        let member = self.servers[errand.server].member;
        let task = Task { errand, work, call: Arc::new(call), deadline_ns, member, sent: 0, refused: 0 };
        self.servers[errand.server].tasks.insert(errand.task, task);
        self.at(deadline_ns, Event::CallOver { errand });
        self.send_call(errand);
    }

    /// Sends a copy of a call that has no answer yet, and another one later.
    pub(super) fn send_call(&mut self, errand: Errand) {
        let cut = self.now_ns < self.servers[errand.server].cut_until_ns;
        let Some(task) = self.task(errand) else { return };
        if task.sent - task.refused >= COPIES {
            return;
        }
        let (member, call) = (task.member, Arc::clone(&task.call));
        task.member = (member + 1) % MEMBERS;
        task.sent += 1;
        if !cut && !self.chance(self.faults.loss / 3) {
            // Some are left somewhere, and arrive when nobody waits any more.
            let late_ns = if self.chance(self.faults.late) { self.below(3000 * NS_PER_MS) } else { 0 };
            let delay_ns = self.delay_ns() + late_ns;
            self.after(delay_ns, Event::Arrive { errand, member, call });
        }
        self.after(HEDGE_NS, Event::Hedge { errand });
    }

    fn task(&mut self, errand: Errand) -> Option<&mut Task> {
        let state = &mut self.servers[errand.server];
        let there = state.up && state.life == errand.life;
        state.tasks.get_mut(&errand.task).filter(|task| there && task.errand == errand)
    }

    /// A member answers. `refused`: it did nothing; otherwise `None` says that what is read is forgotten.
    pub(super) fn reply(&mut self, errand: Errand, answer: Option<Answer>, refused: bool) {
        if self.now_ns >= self.servers[errand.server].cut_until_ns && !self.chance(self.faults.loss / 3) {
            let delay_ns = self.delay_ns();
            self.after(delay_ns, Event::Answer { errand, answer, refused });
        }
    }

    /// An answer arrives.
    pub(super) fn answered(&mut self, errand: Errand, answer: Option<Answer>, refused: bool) {
        if self.now_ns < self.servers[errand.server].cut_until_ns {
            return;
        }
        let Some(task) = self.task(errand) else { return };
        if refused {
            task.refused += 1;
            return self.after(PAUSE_NS, Event::Hedge { errand });
        }
        let times = task.sent;
        let Some(Task { mut work, deadline_ns, .. }) = self.servers[errand.server].tasks.remove(&errand.task) else {
            return;
        };
        let Some(answer) = answer else {
            if work.forgotten() {
                self.go_on(errand, work, self.now_ns + TIMEOUT_NS);
            } else {
                self.failed(errand.server, work, "etcd has forgotten it", false);
            }
            return;
        };
        let mut answer = Answer { times, ..answer };
        self.plan.mutation.spoil_answer(&work, &mut answer);
        self.step(errand, work, answer, deadline_ns);
    }

    /// No member has answered in time.
    pub(super) fn call_over(&mut self, errand: Errand) {
        let Some(task) = self.task(errand) else { return };
        let unknown = task.sent > task.refused;
        if let Some(task) = self.servers[errand.server].tasks.remove(&errand.task) {
            self.failed(errand.server, task.work, "no answer of etcd in time", unknown);
        }
    }

    /// Takes an answer; each arm either has another call or comes to an end.
    fn step(&mut self, errand: Errand, work: Work, answer: Answer, deadline_ns: u64) {
        let server = errand.server;
        let later_ns = self.now_ns + TIMEOUT_NS;
        match work {
            Work::Append { number, mut append } => {
                let outcome = append.answered(answer);
                self.servers[server].epoch = append.epoch();
                match outcome {
                    None => self.go_on(errand, Work::Append { number, append }, deadline_ns),
                    Some(Ok(revision)) => self.appended(server, number, revision),
                    Some(Err(fault)) => {
                        let unknown = matches!(fault, Fault::Unknown(_));
                        self.append_failed(server, number, &said(&fault), unknown);
                    }
                }
            }
            Work::Read(mut read) => match read.answered(answer) {
                None => self.go_on(errand, Work::Read(read), later_ns),
                Some(Ok((records, now))) => self.log_read(server, records, now),
                Some(Err(Fault::Compacted { .. })) => self.log_gone(server),
                Some(Err(fault)) => self.cannot_follow(server, said(&fault)),
            },
            Work::Load(mut load) => match load.answered(answer) {
                None => self.go_on(errand, Work::Load(load), later_ns),
                Some(Ok(table)) => {
                    let read = self.read_after(table.revision());
                    self.begin(server, Work::CatchUp { table: Box::new(table), read });
                }
                Some(Err(fault)) => self.cannot_follow(server, said(&fault)),
            },
            Work::CatchUp { table, mut read } => match read.answered(answer) {
                None => self.go_on(errand, Work::CatchUp { table, read }, later_ns),
                Some(Ok((records, _))) => self.loaded(server, *table, records),
                Some(Err(fault)) => self.cannot_follow(server, said(&fault)),
            },
            Work::Check(_) => {
                self.note(server, Part::Check, None);
                self.keep(server);
            }
            Work::Claim { mut claim, table } => match claim.answered(answer) {
                None => self.go_on(errand, Work::Claim { claim, table }, later_ns),
                Some(Ok(Claimed::Ours { lease, turn })) => self.write(server, &table, lease, turn),
                Some(Ok(Claimed::Other { lease })) => {
                    self.begin(server, Work::Revoke { lease, revision: Some(table.revision()) });
                }
                Some(Ok(Claimed::Needless)) => self.compact(server, table.revision()),
                Some(Err(fault)) => panic!("server {server} finds no snapshot: {}", said(&fault)),
            },
            Work::Write { mut write, lease, revision } => match write.answered(answer) {
                None => self.go_on(errand, Work::Write { write, lease, revision }, later_ns),
                Some(outcome) => {
                    outcome.expect("it has no fault of its own");
                    self.totals.snapshots_written += 1;
                    self.begin(server, Work::Revoke { lease, revision: Some(revision) });
                }
            },
            Work::Revoke { revision, .. } => self.revoked(server, revision),
            Work::Compact(mut compact) => match compact.answered(answer) {
                None => self.go_on(errand, Work::Compact(compact), later_ns),
                Some(_) => self.kept(server),
            },
            Work::CompareLoad(mut load) => match load.answered(answer) {
                None => self.go_on(errand, Work::CompareLoad(load), later_ns),
                Some(Ok(table)) => self.compare(server, table),
                Some(Err(_)) => self.kept(server),
            },
            Work::CompareRead { comparison, mut read } => match read.answered(answer) {
                None => self.go_on(errand, Work::CompareRead { comparison, read }, later_ns),
                Some(Ok((records, _))) => self.compared(server, comparison, &records),
                Some(Err(_)) => self.kept(server),
            },
        }
    }

    /// Something did not come about. `unknown`: it may have all the same.
    fn failed(&mut self, server: usize, work: Work, why: &str, unknown: bool) {
        match work {
            Work::Append { number, append } => {
                self.servers[server].epoch = append.epoch();
                self.append_failed(server, number, why, unknown);
            }
            Work::Read(_) | Work::Load(_) | Work::CatchUp { .. } => self.cannot_follow(server, why.to_owned()),
            Work::Check(_) => {
                self.note(server, Part::Check, Some(why.to_owned()));
                self.keep(server);
            }
            Work::Write { lease, .. } => self.begin(server, Work::Revoke { lease, revision: None }),
            Work::Revoke { revision, .. } => self.revoked(server, revision),
            Work::Claim { .. } | Work::Compact(_) | Work::CompareLoad(_) | Work::CompareRead { .. } => {
                self.kept(server);
            }
        }
    }

    fn revoked(&mut self, server: usize, revision: Option<u64>) {
        match revision {
            Some(revision) => self.compact(server, revision),
            None => self.kept(server),
        }
    }

    /// Reads the log after one of our revisions.
    pub(super) fn read_after(&self, revision: u64) -> ReadLog {
        ReadLog::new(Arc::clone(&self.etcd.layout), self.etcd.origin.theirs(revision))
    }

    fn write(&mut self, server: usize, table: &Table, lease: i64, turn: Turn) {
        let revision = table.revision();
        let (layout, writer) = (Arc::clone(&self.etcd.layout), self.servers[server].writer);
        let theirs = self.etcd.origin.theirs(revision);
        let ahead = if self.plan.mutation == Mutation::SnapshotAhead { 3 } else { 0 };
        let write = Write::new(layout, writer, table, theirs + ahead, turn);
        self.begin(server, Work::Write { write, lease, revision });
    }

    fn compact(&mut self, server: usize, revision: u64) {
        let to = self.etcd.origin.theirs(revision);
        self.begin(server, Work::Compact(Compact::new(Arc::clone(&self.etcd.layout), to)));
    }
}

fn said(fault: &Fault) -> String {
    format!("{fault:?}")
}
