//! Two distribution trees in the square: each RBridge brings its frames onto the one whose root is nearest, or onto both.
//!
//! S4 is the root of the first (the highest system ID), S3 of the second. Of two equal parents S2 takes the first in the first
//! tree, S1, and S1 the second in the second tree, S4 (RFC 7780 section 3.4):
//!
//! ```text
//!   first   S2 - S1 - S4 - S3      second   S2 - S3 - S4 - S1
//! ```

use std::collections::BTreeMap;

use weft_node::rbridge::protocol::{Shown, TreeRow, What};
use weft_wire::ethernet::MacAddress;

use crate::bed::{Running, Square, mac};
use crate::common::{PATIENCE, wait_until};
use crate::forwarding::{A_WHILE, BROADCAST, TEST_TYPE, frame, received};
use crate::net::tap::Tap;

/// In VLAN 10, by the place of its RBridge: a at S1, c at S2, b at S3.
const HOSTS: [usize; 3] = [0, 2, 1];

fn trees(running: &Running) -> Vec<TreeRow> {
    match running.show(What::Tree) {
        Shown::Trees(rows) => rows,
        other => panic!("{other:?}"),
    }
}

/// Copies that have left by each link, by RBridge and interface.
fn copies(all: &[Running]) -> BTreeMap<(usize, String), u64> {
    let of_one = |(number, running): (usize, &Running)| {
        let Shown::Counters(groups) = running.show(What::Counters) else { panic!("no counters") };
        let links = groups.into_iter().filter_map(move |(group, counters)| {
            Some(((number, group.strip_prefix("port ")?.to_owned()), counters["copy_sent"]))
        });
        links.collect::<Vec<_>>()
    };
    (1..).zip(all).flat_map(of_one).collect()
}

/// Sends a broadcast from the host of an RBridge, as [`flood`].
fn broadcast(square: &Square, all: &[Running], number: usize) -> Vec<(usize, String)> {
    flood(square, all, number, BROADCAST)
}

/// Sends a frame for many from the host of an RBridge, which all others in the VLAN have once; by which links copies left.
fn flood(square: &Square, all: &[Running], number: usize, destination: MacAddress) -> Vec<(usize, String)> {
    let mut taps: Vec<Tap> = HOSTS.iter().map(|host| Tap::open(square.host(*host), "eth0", false)).collect();
    let before = copies(all);
    let sent = frame(destination, mac(HOSTS[number - 1]), TEST_TYPE, 100);
    taps[number - 1].send(&sent);
    for (place, tap) in taps.iter_mut().enumerate().filter(|(place, _)| *place != number - 1) {
        assert_eq!(received(tap, 1, PATIENCE), std::slice::from_ref(&sent), "from S{number} to S{}", place + 1);
    }
    for (place, tap) in taps.iter_mut().enumerate() {
        assert_eq!(received(tap, 1, A_WHILE / 3), Vec::<Vec<u8>>::new(), "from S{number} to S{} once more", place + 1);
    }
    let more = copies(all).into_iter().filter(|(link, count)| *count != before[link]);
    more.inspect(|(link, count)| assert_eq!(*count, before[link] + 1, "one copy by {link:?}"))
        .map(|(link, _)| link)
        .collect()
}

/// So that a test reads well.
fn links(list: &[(usize, usize)]) -> Vec<(usize, String)> {
    list.iter().map(|(from, to)| (*from, format!("s{to}"))).collect()
}

#[test]
fn each_rbridge_uses_the_tree_of_the_nearest_root_and_both_outlive_a_link() {
    let Some(square) = Square::new("trees") else { return };
    let start = |number| {
        let mut config = square.config(number);
        config.trees = 2;
        square.start(&config, number)
    };
    let all: Vec<Running> = (1..=4).map(start).collect();
    wait_for_routes_and_trees(&all);
    for rows in all.iter().map(trees) {
        let roots: Vec<(u16, &str)> = rows.iter().map(|row| (row.number, &row.hostname[..])).collect();
        assert_eq!(roots, [(1, "s4"), (2, "s3")]);
    }
    assert_eq!(broadcast(&square, &all, 1), links(&[(1, 2), (1, 4), (4, 3)]), "on the first tree");
    assert_eq!(broadcast(&square, &all, 2), links(&[(2, 3), (3, 4), (4, 1)]), "on the second one");
    assert_eq!(broadcast(&square, &all, 3), links(&[(3, 2), (3, 4), (4, 1)]), "on the second one");

    // Both trees lose a link; nobody behind S3 wants frames of this VLAN then.
    square.corner(4).ip("link set dev s1 down");
    wait_until("S4 is behind S2", || {
        all[0].routes()["s4"].hops.len() == 1 && all[0].routes()["s4"].hops[0].interface == "s2"
    });
    wait_until("both trees go by S2 and S3", || both_go_by_s2_and_s3(&all));
    wait_until("S1 and S2 use the tree of S3", || users(&all[0]) == [vec!["s4"], vec!["s1", "s2", "s3"]]);
    assert_eq!(broadcast(&square, &all, 1), links(&[(1, 2), (2, 3)]));
    assert_eq!(broadcast(&square, &all, 2), links(&[(2, 1), (2, 3)]));
    assert_eq!(broadcast(&square, &all, 3), links(&[(2, 1), (3, 2)]));
}

#[test]
fn groups_are_spread_over_both_trees_and_each_comes_once_also_when_a_link_has_gone() {
    let Some(square) = Square::new("both") else { return };
    let start = |number| {
        let mut config = square.config(number);
        (config.trees, config.trees_used) = (2, if number == 1 { 2 } else { 1 });
        square.start(&config, number)
    };
    let all: Vec<Running> = (1..=4).map(start).collect();
    let everybody = [vec!["s1", "s4"], vec!["s1", "s2", "s3"]];
    wait_until("S1 is to use both trees", || all.iter().all(|running| users(running) == everybody));
    wait_until("S1 uses both trees", || trees(&all[0]).iter().all(|row| row.used));
    let before = ways(&square, &all);
    assert_both_are_taken(&before);
    assert_eq!(ways(&square, &all), before, "each keeps to its tree");
    assert_eq!(broadcast(&square, &all, 2), links(&[(2, 3), (3, 4), (4, 1)]), "who wishes for one uses the nearest");

    square.corner(4).ip("link set dev s1 down");
    wait_until("both trees go by S2 and S3", || both_go_by_s2_and_s3(&all));
    assert_eq!(ways(&square, &all), vec![links(&[(1, 2), (2, 3)]); GROUPS.into()]);
}

/// Groups that are sent to.
const GROUPS: u8 = 8;

/// The links by which each of them goes from S1.
fn ways(square: &Square, all: &[Running]) -> Vec<Vec<(usize, String)>> {
    let group = |last| MacAddress([0x01, 0, 0x5e, 0x01, 0x02, last]);
    (0..GROUPS).map(|last| flood(square, all, 1, group(last))).collect()
}

/// By one tree frames come to S2 from S1, by the other from S3; several groups take each.
fn assert_both_are_taken(ways: &[Vec<(usize, String)>]) {
    let by = [links(&[(1, 2), (1, 4), (4, 3)]), links(&[(1, 4), (3, 2), (4, 3)])];
    for way in &by {
        let count = ways.iter().filter(|taken| *taken == way).count();
        assert!((2..=6).contains(&count), "{count} of {GROUPS} groups take {way:?}: {ways:?}");
    }
    assert!(ways.iter().all(|taken| by.contains(taken)), "{ways:?}");
}

/// S4 is the root of both: of S2's parents one tree takes the first, the other the second.
#[test]
fn one_rbridge_with_two_nicknames_is_the_root_of_two_trees() {
    let Some(square) = Square::new("root") else { return };
    let start = |number| {
        let mut config = square.config(number);
        (config.trees, config.trees_used) = (2, if number == 1 { 2 } else { 1 });
        config.nicknames = if number == 4 { 2 } else { 1 };
        square.start(&config, number)
    };
    let all: Vec<Running> = (1..=4).map(start).collect();
    let everybody = [vec!["s1", "s2", "s3", "s4"], vec!["s1"]];
    wait_until("S1 is to use both trees", || all.iter().all(|running| users(running) == everybody));
    wait_until("S1 uses both trees", || trees(&all[0]).iter().all(|row| row.used && row.hostname == "s4"));
    let ways = ways(&square, &all);
    assert_both_are_taken(&ways);
}

/// Who has announced to use each tree.
fn users(running: &Running) -> Vec<Vec<String>> {
    let sorted = |mut users: Vec<String>| {
        users.sort_unstable();
        users
    };
    trees(running).into_iter().map(|row| sorted(row.users)).collect()
}

fn both_go_by_s2_and_s3(all: &[Running]) -> bool {
    let goes = |running: &Running, ports: &[&str]| {
        let branches = |row: &TreeRow| row.branches.iter().map(|branch| branch.interface.clone()).collect::<Vec<_>>();
        trees(running).iter().all(|row| branches(row) == ports)
    };
    goes(&all[0], &["s2"]) && goes(&all[1], &["s1", "s3"]) && goes(&all[2], &["s2", "s4"]) && goes(&all[3], &["s3"])
}

fn wait_for_routes_and_trees(all: &[Running]) {
    wait_until("everybody sends on the tree of the nearest root", || {
        let used = |running: &Running| trees(running).into_iter().find(|row| row.used).map(|row| row.hostname);
        let is_whole =
            all.iter().all(|running| running.routes().values().map(|route| route.hops.len()).sum::<usize>() == 4);
        is_whole
            && all.iter().map(used).eq(["s4", "s3", "s3", "s4"].map(|root| Some(root.to_owned())))
            && all.iter().all(|running| users(running) == [vec!["s1", "s4"], vec!["s2", "s3"]])
    });
}
