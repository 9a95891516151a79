//! Shared links whose VLANs do not all go everywhere: RBridges talk in the one that does, and say Hellos in all of them.

use weft_node::rbridge::PortTable;

use crate::bed::Running;
use crate::common::{PATIENCE, wait_until};
use crate::forwarding::{A_WHILE, BROADCAST, TEST_TYPE, frame, received};
use crate::net::tap::Tap;
use crate::net::trunk::Trunk;
use crate::net::{Namespace, link};
use crate::shared::{Campus, LINKS, Place, VLAN, broadcasts_arrive_once, mac, quiet, wait_for_routes};

/// Joins both links of a campus.
fn join(campus: &Campus, test: &str, passes: fn(u16) -> bool) -> (Namespace, Trunk) {
    let between = quiet(test, "tr");
    for (place, name) in LINKS.iter().enumerate() {
        link((&campus.bridges, &format!("t{name}")), (&between, name), 1600);
        campus.plug(&format!("t{name}"), place);
    }
    let trunk = Trunk::between(&between, LINKS, passes);
    (between, trunk)
}

/// S1 is on one end of a trunk, S2 on the other one, and it carries VLAN 30 alone. S1's port serves no stations.
#[test]
fn rbridges_talk_over_a_trunk_that_carries_the_designated_vlan_alone() {
    let stations = [("p", Place::At(1)), ("q", Place::At(2))];
    let Some(campus) = Campus::new("strunk", &[&[0], &[1]], &stations) else { return };
    let _joined = join(&campus, "strunk", |vlan| vlan == 30);
    let start = |number: usize| {
        let mut config = campus.config(number, &[number - 1]);
        config.port[0] = PortTable {
            vlans: Some("30".to_owned()),
            designated_vlan: Some(30),
            drb_priority: Some(60 + number as u8),
            stations: Some(number == 2),
            ..PortTable::shared(LINKS[number - 1], 1)
        };
        campus.start(&config, number)
    };
    let all: Vec<Running> = (1..=2).map(start).collect();
    wait_for_routes(&all);
    for number in 1..=2 {
        let said = campus.said(&[number], number - 1);
        assert_eq!((&said[0].1.drb[..], said[0].1.designated_vlan), ("s2", 30));
        let serves = ["", "1,30"][number - 1];
        wait_until("S2 serves all VLANs", || campus.said(&[number], number - 1)[0].1.carried == serves);
    }
    let mut taps: Vec<Tap> = (0..2).map(|station| Tap::open(campus.station(station), "eth0", false)).collect();
    broadcasts_arrive_once(&mut taps);
    for payload in [46, 700, 1500] {
        for (from, to) in [(0, 1), (1, 0)] {
            let sent = frame(mac(to), mac(from), TEST_TYPE, payload);
            taps[from].send(&sent);
            assert_eq!(received(&mut taps[to], 1, PATIENCE), [sent], "{payload} bytes from {from} to {to}");
        }
    }
    assert!(all.iter().zip(LINKS).all(|(one, link)| one.count(&format!("port {link}"), "outer_vlan") == 0));
}

/// Two links whose RBridges do not hear each other in the Designated VLAN are one in VLAN 10. S1 and S2 are joined besides: both serving it
/// would be a loop.
#[test]
fn links_that_are_one_in_a_vlan_alone_have_one_forwarder_for_it() {
    let stations = [("p", Place::At(1)), ("r", Place::On(1))];
    let Some(campus) = Campus::new("spart", &[&[0], &[1]], &stations) else { return };
    let _joined = join(&campus, "spart", |vlan| vlan == VLAN);
    link((campus.rbridge(1), "s2"), (campus.rbridge(2), "s1"), 1600);
    let start = |number: usize| {
        let mut config = campus.config(number, &[number - 1]);
        config.port[0] = PortTable {
            vlans: Some(VLAN.to_string()),
            drb_priority: Some(60 + number as u8),
            ..PortTable::shared(LINKS[number - 1], 1)
        };
        config.port.push(PortTable::p2p(format!("s{}", 3 - number)));
        campus.start(&config, number)
    };
    let all: Vec<Running> = (1..=2).map(start).collect();
    wait_for_routes(&all);
    let carried = |number: usize| campus.said(&[number], number - 1)[0].1.carried.clone();
    // S1 hears the DRB in VLAN 10, which does not hear S1 and serves everything.
    wait_until("S2 serves all VLANs", || [carried(1), carried(2)] == ["", "1,10"]);

    let mut taps: Vec<Tap> = (0..2).map(|station| Tap::open(campus.station(station), "eth0", false)).collect();
    let untagged = frame(BROADCAST, mac(1), TEST_TYPE, 100);
    let tagged = [&untagged[..12], &[0x81, 0], &VLAN.to_be_bytes(), &untagged[12..]].concat();
    for _ in 0..3 {
        taps[1].send(&tagged);
        assert_eq!(received(&mut taps[0], 1, PATIENCE), std::slice::from_ref(&untagged), "from the link");
        let sent = frame(BROADCAST, mac(0), TEST_TYPE, 100);
        taps[0].send(&sent);
        // A packet socket sees it without its tag.
        assert_eq!(received(&mut taps[1], 1, PATIENCE), [sent], "to the link");
        taps.iter_mut().for_each(|tap| assert_eq!(received(tap, 1, A_WHILE), Vec::<Vec<u8>>::new(), "once more"));
    }
}
