//! All states and all events of the adjacency table, as RFC 7177 section 3.4 prints them; all handshakes of RFC 5303.

use weft_control::isis::{AdjacencyEvent as Event, AdjacencyState as State, heard, next};
use weft_wire::isis::SystemId;
use weft_wire::isis::hello::{HandshakeState, ThreeWay};

const ME: SystemId = SystemId([0x0a, 0, 0, 0, 0, 1]);
const OTHER: SystemId = SystemId([0x0a, 0, 0, 0, 0, 9]);

/// A dash is a pair that cannot happen; it must change nothing.
const TABLE: &str = "
    event              Down    Detect  TwoWay  Report
    Listed             TwoWay  TwoWay  TwoWay  Report
    Uncovered          Detect  Detect  TwoWay  Report
    Unlisted           Detect  Detect  Detect  Detect
    Expired            -       Down    Down    Down
    DesignatedExpired  -       Detect  Detect  Detect
    TestsPassed        -       -       Report  Report
    TestFailed         -       -       TwoWay  TwoWay
    PortDown           Down    Down    Down    Down
";

#[test]
fn every_state_and_every_event() {
    let mut rows = TABLE.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).filter(|row| !row.is_empty());
    let names: Vec<String> = State::ALL.iter().map(|state| format!("{state:?}")).collect();
    assert_eq!(rows.next().unwrap()[1..], names);
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), Event::ALL.len());
    for (row, event) in rows.iter().zip(Event::ALL) {
        assert_eq!(row[0], format!("{event:?}"));
        for (state, expected) in State::ALL.into_iter().zip(&row[1..]) {
            let expected = if *expected == "-" { format!("{state:?}") } else { (*expected).to_owned() };
            assert_eq!(format!("{:?}", next(state, event)), expected, "{event:?} in {state:?}");
        }
    }
}

#[test]
fn lsps_are_exchanged_from_two_way_on() {
    assert_eq!(State::ALL.map(State::synchronizes), [false, false, true, true]);
}

/// RFC 5303 section 3.2: rows are the neighbour's state, columns ours; only an Up that meets Down is not believed. Who names
/// somebody else, or another circuit, does not hear us (RFC 7177 section 3.3, A3).
#[test]
fn every_handshake() {
    use HandshakeState::{Down, Initializing, Up};
    let told =
        |state, neighbor| ThreeWay { state, local_circuit: Some(5), neighbor, neighbor_circuit: neighbor.map(|_| 7) };
    for local in State::ALL {
        for state in [Down, Initializing, Up] {
            let unnamed = heard(local, &told(state, None), ME, 7);
            assert_eq!(unnamed, Some(Event::Unlisted), "{state:?} names nobody");
            let other = heard(local, &told(state, Some(OTHER)), ME, 7);
            assert_eq!(other, Some(Event::Unlisted), "{state:?} names another system");
            let other_circuit = heard(local, &told(state, Some(ME)), ME, 8);
            assert_eq!(other_circuit, Some(Event::Unlisted), "{state:?} names another circuit");
        }
        let named = |state| heard(local, &told(state, Some(ME)), ME, 7);
        assert_eq!(named(Down), Some(Event::Unlisted));
        assert_eq!(named(Initializing), Some(Event::Listed));
        let leftover = local == State::Down;
        assert_eq!(named(Up), (!leftover).then_some(Event::Listed));
    }
}
