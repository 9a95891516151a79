//! What is said about IP multicast groups, as the daemon hears it, and tables of more groups than fit.
//! Who gets frames for which group, `trill_model.rs` tries.

mod common;

use common::trill::*;
use common::{Ipv4, ethernet};
use weft_datapath::trill::Told;
use weft_wire::ethernet::MacAddress;
use weft_wire::listener::{Group, Listeners};

const REPORT: u8 = 0x16;
const QUERY: u8 = 0x11;

fn snooping() -> Option<RBridge> {
    let mut rb = rbridge()?;
    rb.datapath.change(|fib| fib.snoops = true).unwrap();
    Some(rb)
}

#[test]
fn the_daemon_hears_what_stations_say_and_what_other_rbridges_ask() {
    let Some(mut rb) = snooping() else { return };
    let snooped = rb.datapath.snooped().unwrap();
    let report = igmp(REPORT, [239, 1, 2, 3]);
    let told = |port, vlan, is_from_tree, ethertype, packet: &[u8]| {
        vec![Told { vlan, port, is_from_tree, ethertype, packet: packet.to_vec() }]
    };
    rb.run(ACCESS_10, &ethernet(GROUP_4, NEAR_STATION, 0x0800, &report));
    assert_eq!(snooped.take().unwrap(), told(ACCESS_10, 10, false, 0x0800, &report));
    rb.run(TRUNK, &tagged(GROUP_6, NEAR_STATION, 0x6014, 0x86dd, &mld(131)));
    assert_eq!(snooped.take().unwrap(), told(TRUNK, 20, false, 0x86dd, &mld(131)));
    let long = Ipv4 { protocol: 2, payload: vec![0x22; 1480], ..Ipv4::default() }.bytes();
    rb.run(OTHER_10, &ethernet(ALL_SYSTEMS, NEAR_STATION, 0x0800, &long));
    assert_eq!(snooped.take().unwrap(), told(OTHER_10, 10, false, 0x0800, &long));

    let query = igmp(QUERY, [224, 0, 0, 1]);
    for flags_word in [None, Some(0)] {
        let by_tree = |kind, payload: &[u8]| Frame {
            inner_destination: ALL_SYSTEMS,
            kind,
            payload: payload.to_vec(),
            flags_word,
            ..multicast(LINK_A, NEAR, NEAR)
        };
        rb.run(LINK_A, &by_tree(0x0800, &query).bytes());
        assert_eq!(snooped.take().unwrap(), told(LINK_A, 10, true, 0x0800, &query));
        rb.run(LINK_A, &by_tree(0x0800, &report).bytes());
        rb.run(LINK_A, &by_tree(0x86dd, &mld(143)).bytes());
        rb.run(LINK_A, &Frame { control: 25, ..by_tree(0x0800, &query) }.bytes());
        assert_eq!(snooped.take().unwrap(), [], "reports are for routers, and nobody here is in VLAN 25");
    }

    // Neither what goes to one station, nor other protocols, nor what is cut short or not let in.
    rb.run(ACCESS_10, &ethernet(SECOND_STATION, NEAR_STATION, 0x0800, &report));
    rb.run(ACCESS_10, &ethernet(GROUP_4, NEAR_STATION, 0x0800, &Ipv4::default().bytes()));
    rb.run(ACCESS_10, &ethernet(GROUP_4, NEAR_STATION, 0x0800, &report[..24]));
    rb.run(ACCESS_10, &ethernet(GROUP_6, NEAR_STATION, 0x86dd, &mld(131)[..48]));
    rb.run(ACCESS_10, &tagged(GROUP_4, NEAR_STATION, 40, 0x0800, &report));
    rb.datapath.change(|fib| fib.snoops = false).unwrap();
    rb.run(ACCESS_10, &ethernet(GROUP_4, NEAR_STATION, 0x0800, &report));
    assert_eq!(snooped.take().unwrap(), []);
}

#[test]
fn a_station_that_floods_reports_reaches_its_limit_and_others_do_not() {
    let Some(mut rb) = snooping() else { return };
    let snooped = rb.datapath.snooped().unwrap();
    let report = ethernet(GROUP_4, NEAR_STATION, 0x0800, &igmp(REPORT, [239, 1, 2, 3]));
    let mut heard = 0;
    for _ in 0..4000 {
        rb.run(ACCESS_10, &report);
        heard += snooped.take().unwrap().len();
    }
    assert!((1000..3000).contains(&heard), "{heard} of 4000 in about a second");
    assert_eq!(rb.count(ACCESS_10, "not_snooped"), 4000 - heard as u64);
    rb.run(OTHER_10, &report);
    assert_eq!(snooped.take().unwrap().len(), 1);
}

#[test]
fn of_more_groups_than_the_table_holds_none_is_lost() {
    let Some(mut rb) = snooping() else { return };
    let group = |n: u32| MacAddress([0x01, 0x00, 0x5e, 1 + (n >> 16) as u8, (n >> 8) as u8, n as u8]);
    let groups: std::collections::BTreeSet<Group> = (0..30_000).map(|n| Group { vlan: 10, mac: group(n) }).collect();
    let nothing = Listeners::default();
    rb.datapath
        .change(|fib| {
            fib.listeners = [(ACCESS_10, nothing.clone()), (TRUNK, nothing.clone())].into();
            fib.listeners.insert(OTHER_10, Listeners { groups, ..nothing.clone() });
            fib.trees.values_mut().for_each(|tree| {
                tree.listeners = [(LINK_A, nothing.clone()), (LINK_B, nothing.clone())].into();
            });
        })
        .unwrap();
    let mut outcome = |n| rb.run(ACCESS_10, &ethernet(group(n).0, NEAR_STATION, 0x0800, &Ipv4::default().bytes())).0;
    assert!((0..30_000).step_by(37).all(|n| outcome(n) == "ingress_flood"));
    let pruned = (40_000..70_000).step_by(37).filter(|n| outcome(*n) == "no_receiver").count();
    assert!(pruned < 5, "with so many, hardly a bucket is whole: {pruned}");
}
