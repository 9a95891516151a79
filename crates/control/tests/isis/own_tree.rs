//! Which tree an RBridge brings its frames onto, of several (RFC 6325 sections 4.5 and 4.6.1).

use weft_control::isis::{Config, Input};
use weft_control::{Machine, NS_PER_S};

use super::oracle::announced_tree;
use super::peer::{ME, Says, lsp, system};
use super::victim::{IntoBytes, Victim};

/// An LSP of a node, with its nickname and its priority to be a root.
fn say(
    victim: &mut Victim,
    node: u8,
    sequence: u32,
    reach: &[(u8, u32)],
    (nickname, priority): (u16, u16),
    trees: u16,
) {
    let says = Says {
        reach: reach.to_vec(),
        nicknames: vec![(nickname, 0x40, priority)],
        trees: Some((trees, trees)),
        ..Says::default()
    };
    victim.from(2, &lsp(system(node).node().lsp(0), sequence, 1000, &says).into_bytes());
    run(victim, 5 * NS_PER_S);
}

/// Our neighbour, with links to two roots; it is none.
fn say_two(victim: &mut Victim, sequence: u32, cost_of_three: u32) {
    say(victim, 2, sequence, &[(ME, 10), (3, cost_of_three), (4, 7)], (0x22, 0), 2);
}

/// Lets time pass. A tree that was announced is used as long as it is one; no other is.
fn run(victim: &mut Victim, time_ns: u64) {
    let until_ns = victim.now_ns + time_ns;
    while let Some(at_ns) = victim.bridge.next_deadline_ns().filter(|at_ns| *at_ns <= until_ns) {
        victim.now_ns = at_ns.max(victim.now_ns);
        victim.put(Input::Deadline);
        let (told, holds) = (announced_tree(&victim.bridge), victim.bridge.forwarding());
        let told = told.filter(|root| holds.trees.contains_key(root));
        assert!(told.is_none() || holds.own_tree == told, "{:x?} is used, {told:x?} was told", holds.own_tree);
    }
    victim.now_ns = until_ns;
}

#[test]
fn the_nearest_root_as_soon_as_it_was_announced() {
    let mut victim = Victim::of(Config { trees_max: 2, ..Victim::config() });
    let own_tree = |victim: &Victim| victim.bridge.forwarding().own_tree;
    assert_eq!((own_tree(&victim), announced_tree(&victim.bridge)), (Some(0x11), None), "there is no other");
    say_two(&mut victim, 1, 7);
    say(&mut victim, 3, 1, &[(2, 7)], (0x33, 0x9000), 2);
    say(&mut victim, 4, 1, &[(2, 7)], (0x44, 0x8fff), 2);
    assert_eq!((own_tree(&victim), announced_tree(&victim.bridge)), (Some(0x33), Some(0x33)), "of equals the first");
    say_two(&mut victim, 2, 8);
    assert_eq!((own_tree(&victim), announced_tree(&victim.bridge)), (Some(0x44), Some(0x44)));
    say(&mut victim, 3, 2, &[(2, 7)], (0x33, 0x9000), 1);
    assert_eq!((own_tree(&victim), announced_tree(&victim.bridge)), (Some(0x33), None), "there is one tree");
}
