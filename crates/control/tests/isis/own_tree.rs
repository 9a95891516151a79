//! Which trees an RBridge brings its frames onto, of several (RFC 6325 sections 4.5 and 4.6.1).

use weft_control::isis::{Config, Input};
use weft_control::{Machine, NS_PER_S};
use weft_wire::isis::lsp::CapabilitySub;
use weft_wire::isis::{Pdu, Tlv};

use super::oracle::announced_trees;
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

/// Lets time pass. Trees that were announced are used as long as they are some; no others are.
fn run(victim: &mut Victim, time_ns: u64) {
    let until_ns = victim.now_ns + time_ns;
    while let Some(at_ns) = victim.bridge.next_deadline_ns().filter(|at_ns| *at_ns <= until_ns) {
        victim.now_ns = at_ns.max(victim.now_ns);
        victim.put(Input::Deadline);
        let (mut told, holds) = (announced_trees(&victim.bridge), victim.bridge.forwarding());
        told.retain(|root| holds.trees.contains_key(root));
        assert!(told.is_empty() || holds.own_trees == told, "{:x?} are used, {told:x?} were told", holds.own_trees);
    }
    victim.now_ns = until_ns;
}

#[test]
fn the_nearest_root_as_soon_as_it_was_announced() {
    let mut victim = Victim::of(Config { trees_max: 2, ..Victim::config() });
    assert_eq!(own_and_told(&victim), (vec![0x11], vec![]), "there is no other");
    say_two(&mut victim, 1, 7);
    say(&mut victim, 3, 1, &[(2, 7)], (0x33, 0x9000), 2);
    say(&mut victim, 4, 1, &[(2, 7)], (0x44, 0x8fff), 2);
    assert_eq!(own_and_told(&victim), (vec![0x33], vec![0x33]), "of equals the first");
    say_two(&mut victim, 2, 8);
    assert_eq!(own_and_told(&victim), (vec![0x44], vec![0x44]));
    say(&mut victim, 3, 2, &[(2, 7)], (0x33, 0x9000), 1);
    assert_eq!(own_and_told(&victim), (vec![0x33], vec![]), "there is one tree");
}

#[test]
fn as_many_of_the_nearest_as_are_wished_and_those_that_remain_when_one_goes() {
    let mut victim = Victim::of(Config { trees_max: 4, trees_used: 2, ..Victim::config() });
    say(&mut victim, 2, 1, &[(ME, 10), (3, 8), (4, 7), (5, 9)], (0x22, 0), 4);
    for (node, root) in [(3, (0x33, 0x9000)), (4, (0x44, 0x8fff)), (5, (0x55, 0x8ffe))] {
        say(&mut victim, node, 1, &[(2, 7)], root, 4);
    }
    victim.bridge.forwarding().trees.values().for_each(|tree| assert_eq!(tree.ports.len(), 1, "{tree:?}"));
    assert_eq!(victim.bridge.forwarding().trees.len(), 4, "ours is the last");
    assert_eq!(own_and_told(&victim), (vec![0x11, 0x44], vec![0x11, 0x44]), "the nearest are ours and that of node 4");
    assert_eq!(trees_to_use(&victim), 2);
    // Nobody reaches node 4 any more.
    say(&mut victim, 2, 2, &[(ME, 10), (3, 8), (5, 9)], (0x22, 0), 4);
    assert_eq!(own_and_told(&victim), (vec![0x11, 0x33], vec![0x11, 0x33]));
    say(&mut victim, 3, 2, &[(2, 7)], (0x33, 0x9000), 1);
    assert_eq!(own_and_told(&victim), (vec![0x33], vec![]), "there is one tree");
    say(&mut victim, 3, 3, &[(2, 7)], (0x33, 0x9000), 2);
    assert_eq!(own_and_told(&victim), (vec![0x33, 0x55], vec![0x33, 0x55]), "both that there are, near or not");
}

/// The trees that are used, and those that were told.
fn own_and_told(victim: &Victim) -> (Vec<u16>, Vec<u16>) {
    let own = victim.bridge.forwarding().own_trees.iter().copied().collect();
    (own, announced_trees(&victim.bridge).into_iter().collect())
}

/// The number of trees to use, as others read it.
fn trees_to_use(victim: &Victim) -> u16 {
    let own = victim.bridge.lsdb().get(victim.bridge.config().system.lsp(0)).expect("it was issued");
    let Ok(Pdu::Lsp(lsp)) = Pdu::parse(own.bytes()) else { panic!("an LSP") };
    let subs = lsp.tlvs.into_iter().flat_map(|tlv| if let Tlv::Capability { subs, .. } = tlv { subs } else { vec![] });
    let mut told =
        subs.filter_map(|sub| if let CapabilitySub::Trees { use_count, .. } = sub { Some(use_count) } else { None });
    told.next().expect("it is in the first fragment")
}
