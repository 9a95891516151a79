//! The whole directory system in virtual time, one thread, from a seed: directory servers, their replicated store,
//! clients that update, agents that look up, ToRs that report; crashes, lost leaders, partitions, compaction, loss, delay,
//! duplication, reordering and damage. The machines, the table and all bytes are the shipped ones.
//!
//! Checked: updates are linearizable AA by AA and none that was acknowledged is lost; a fenced read is not older than
//! its fence; an agent's mappings never go back, never were others than the log's, and never such that its service might
//! not know; stale agents are corrected; once faults end, servers are equal and agents agree with the log.
//!
//! A failure names its seed; `WEFT_SEEDS=FIRST..END` runs others. The last tests break the system on purpose.

#[allow(dead_code, reason = "the harness looks closer")]
mod datapath;
mod sim;

use std::panic::{AssertUnwindSafe, catch_unwind};

use sim::{Mutation, Plan, Totals, World};

fn live(seed: u64, mutation: Mutation) -> Totals {
    World::new(&Plan::of_seed(seed, mutation)).live()
}

#[test]
fn properties_hold_for_every_seed() {
    let mut sum = Totals::default();
    let lived = weft_needs::each_seed("directory-system", 0..2000, |seed| sum.add(&live(seed, Mutation::None)));
    eprintln!("{sum:?}");
    // What never happened was not tested. One seed alone need not have seen everything.
    assert!(lived < 100 || sum.all_happened(), "{sum:?}");
}

#[test]
fn one_seed_is_one_history() {
    assert_eq!(live(43, Mutation::None), live(43, Mutation::None));
}

/// A system broken in this way is found out, and by the check that is there for it: its complaint is heard within so
/// many seeds.
#[track_caller]
fn caught(mutation: Mutation, complaint: &str) {
    const SEEDS: u64 = 100;
    let complains = |seed: &u64| {
        let panic = catch_unwind(AssertUnwindSafe(|| live(*seed, mutation))).err();
        panic.is_some_and(|panic| panic.downcast_ref::<String>().is_some_and(|text| text.contains(complaint)))
    };
    let caught = (0..SEEDS).find(complains);
    eprintln!("{mutation:?}: seed {caught:?} says `{complaint}`");
    assert!(caught.is_some(), "{mutation:?}: no complaint in {SEEDS} seeds that it is {complaint}");
}

#[test]
fn an_acknowledgement_before_the_commit_is_caught() {
    caught(Mutation::AckBeforeCommit, "not linearizable");
}

#[test]
fn a_store_that_forgets_its_last_record_is_caught() {
    caught(Mutation::LoseLastRecord, "not linearizable");
}

#[test]
fn a_server_that_answers_from_an_old_table_is_caught() {
    caught(Mutation::AnswerOlder, "before the fence");
}

#[test]
fn updates_applied_twice_are_caught() {
    caught(Mutation::ForgetSequences, "not linearizable");
}

#[test]
fn a_refusal_from_a_table_that_lags_is_caught() {
    caught(Mutation::RefuseFromOwnTable, "not linearizable");
}

#[test]
fn a_server_that_leaves_a_record_out_is_caught() {
    caught(Mutation::SkipRecord, "server 0 is not where the log is");
}

#[test]
fn a_snapshot_without_the_policy_is_caught() {
    caught(Mutation::LosePolicy, "is not where the log is");
}

#[test]
fn a_server_that_tells_foreigners_is_caught() {
    caught(Mutation::TellForeigners, "was told of");
}

#[test]
fn stale_agents_that_nobody_corrects_are_caught() {
    caught(Mutation::CorrectNobody, "was not corrected");
}
