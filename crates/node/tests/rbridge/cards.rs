//! What an RBridge tells network cards to let in. veth filters nothing, so frames alone do not show that a real card would
//! drop them.

use weft_node::rbridge;
use weft_node::rbridge::protocol::{Answer, Request};

use crate::bed::Square;
use crate::common::wait_until;
use crate::net::{Pins, hearing};

const PORTS: [&str; 3] = ["s2", "s4", "a"];
/// All-RBridges and All-IS-IS-RBridges (RFC 6325 section 7.1).
const GROUPS: [&str; 2] = ["0180c2000040", "0180c2000041"];

#[test]
fn cards_hear_what_is_for_rbridges_and_for_stations_as_long_as_the_data_path_works() {
    let Some(square) = Square::new("cards") else { return };
    let pins = Pins::new(square.dir.path());
    let mut config = square.config(1);
    config.pin_dir = Some(pins.dir("s1"));
    config.port[1].elide_outer_header = Some(true);
    // What somebody has set before is theirs.
    square.corner(1).ip("link set dev s4 promisc on");
    square.corner(1).ip("maddress add 01:80:c2:00:00:41 dev s4");
    let before = hearing(square.corner(1), &PORTS);
    let check = |when: &str| {
        let now = hearing(square.corner(1), &PORTS);
        let groups = GROUPS.map(str::to_owned).to_vec();
        assert_eq!(now["s2"].since(&before["s2"]), (groups.clone(), false), "a link, {when}");
        assert_eq!(now["s4"].since(&before["s4"]), (groups[..1].to_vec(), false), "it was promiscuous, {when}");
        assert_eq!(now["a"].since(&before["a"]), (vec![], true), "a port of stations, {when}");
        let hides =
            |port: &&str| now[*port].on.iter().any(|name| name.starts_with("rx-vlan-") && name.ends_with("parse"));
        assert!(PORTS.iter().all(|port| before[*port].on.contains("rx-vlan-hw-parse")));
        assert!(!PORTS.iter().any(hides), "no card takes tags off, {when}");
        now
    };
    let daemon = square.spawn(&config, 1);
    let first = check("after the start");
    daemon.crash();
    assert_eq!(check("after SIGKILL"), first);
    let daemon = square.spawn(&config, 1);
    assert_eq!(check("after a restart"), first);
    // Another start without the port of stations: nobody hears for it any more.
    daemon.crash();
    config.port.pop();
    let daemon = square.spawn(&config, 1);
    wait_until("the port is as it was", || hearing(square.corner(1), &PORTS)["a"] == before["a"]);
    let now = hearing(square.corner(1), &PORTS);
    assert_eq!((&now["s2"], &now["s4"]), (&first["s2"], &first["s4"]));
    assert_eq!(rbridge::ask(&config.socket, &Request::Stop).unwrap(), Answer::Done);
    assert!(daemon.ended());
    assert_eq!(hearing(square.corner(1), &PORTS), before, "after the end");
    assert!(!config.socket.with_extension("cards").exists(), "nothing is left");
}

#[test]
fn what_a_run_without_pins_left_at_cards_the_next_one_takes_back() {
    let Some(square) = Square::new("cards-bare") else { return };
    let config = square.config(1);
    let before = hearing(square.corner(1), &PORTS);
    let daemon = square.spawn(&config, 1);
    daemon.crash();
    assert_ne!(hearing(square.corner(1), &PORTS), before, "nobody could take it back");
    let daemon = square.start(&config, 1);
    daemon.finish();
    assert_eq!(hearing(square.corner(1), &PORTS), before);
}
