//! Agents and directory servers in virtual time under faults, thousands of seeds.
//!
//! Checked at every step: no mapping older than one in force before is installed, none that never was; each frame is
//! released at most once, and only with a mapping in force. At the end: each frame was released or dropped, servers are
//! equal, agents agree with the log and reach exactly what exists.
//!
//! A failure names its seed; `WEFT_SEEDS=FIRST..END` runs others.

mod datapath;
mod world;

use weft_control::{NS_PER_MS, NS_PER_S};
use world::{Faults, World};

/// One life of a system. Returns its counts.
fn live(seed: u64) -> (u64, u64, u64) {
    let severity = seed % 4;
    let faults = Faults {
        loss: [0, 20, 100, 300][severity as usize],
        duplication: 50 * severity,
        damage: 10 * severity,
        delay_max_ns: NS_PER_MS * [1, 10, 30, 100][severity as usize],
        lag_max_ns: NS_PER_MS * [1, 20, 200, 1000][severity as usize],
    };
    let (servers, agents) = (1 + (seed / 4 % 3) as usize, 1 + (seed / 12 % 3) as usize);
    let mut world = World::new(seed, servers, agents, faults);
    let faulty_ns = 8 * NS_PER_S;
    world.plan(faulty_ns, 600, 80, 10 * severity);
    world.run_to(faulty_ns);
    world.heal();
    world.run_to(faulty_ns + 6 * NS_PER_S);
    world.assert_converged();
    world.forget_reached();
    world.plan_sweep(2 * NS_PER_S);
    world.run_to(world.now_ns + 3 * NS_PER_S);
    world.assert_reached();
    world.assert_converged();
    world.totals()
}

#[test]
fn properties_hold_for_every_seed() {
    let mut sum = (0, 0, 0);
    weft_needs::each_seed("directory-agents", 0..3000, |seed| {
        let totals = live(seed);
        sum = (sum.0 + totals.0, sum.1 + totals.1, sum.2 + totals.2);
    });
    assert!(sum.0 > 0 && sum.1 > 0 && sum.2 > 0, "the runs replaced, released and dropped: {sum:?}");
}

#[test]
fn one_seed_is_one_history() {
    assert_eq!(live(42), live(42));
}

/// An agent restarted, lost an unconfirmed mapping to another entry, and believed a server that lagged.
#[test]
fn seed_11143_stays_fixed() {
    live(11143);
}
