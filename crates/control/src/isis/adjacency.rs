//! The states of an adjacency as a table (RFC 7177 section 3.4), and the handshake on point-to-point links (RFC 5303).

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::hello::{HandshakeState, ThreeWay};
use weft_wire::isis::{SystemId, Tlv};

/// How far two ports know of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Nothing is heard.
    Down,
    /// The neighbour is heard; whether it hears us is not known.
    Detect,
    /// Both hear each other.
    TwoWay,
    /// The same, and every test passed: the adjacency is in our LSP.
    Report,
}

impl State {
    /// Every state, in the table's order.
    pub const ALL: [Self; 4] = [Self::Down, Self::Detect, Self::TwoWay, Self::Report];

    /// Whether LSPs are exchanged (RFC 7177 section 3.5).
    pub fn synchronizes(self) -> bool {
        self >= Self::TwoWay
    }

    /// The state that our own Hellos tell.
    pub const fn handshake(self) -> HandshakeState {
        match self {
            Self::Down => HandshakeState::Down,
            Self::Detect => HandshakeState::Initializing,
            Self::TwoWay | Self::Report => HandshakeState::Up,
        }
    }
}

/// What happens to an adjacency; A1 to A8 of RFC 7177 section 3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A1: a Hello that shows that the neighbour hears us.
    Listed,
    /// A2: a Hello that cannot show it (other VLAN, no range of neighbours that covers us).
    Uncovered,
    /// A3: a Hello that shows that the neighbour does not hear us.
    Unlisted,
    /// A4: every holding time is over.
    Expired,
    /// A5: the holding time on the Designated VLAN is over, another is not.
    DesignatedExpired,
    /// A6: every enabled test has passed.
    TestsPassed,
    /// A7: a test has failed.
    TestFailed,
    /// A8: the port went down.
    PortDown,
}

impl Event {
    /// Every event, in the table's order.
    pub const ALL: [Self; 8] = [
        Self::Listed,
        Self::Uncovered,
        Self::Unlisted,
        Self::Expired,
        Self::DesignatedExpired,
        Self::TestsPassed,
        Self::TestFailed,
        Self::PortDown,
    ];
}

/// The table of RFC 7177 section 3.4. A pair that it leaves open (nothing can expire while Down) changes nothing.
pub const fn next(state: State, event: Event) -> State {
    use State::{Detect, Down, Report, TwoWay};
    //                                     Down    Detect  TwoWay  Report
    let row = match event {
        Event::Listed => [TwoWay, TwoWay, TwoWay, Report],
        Event::Uncovered => [Detect, Detect, TwoWay, Report],
        Event::Unlisted => [Detect, Detect, Detect, Detect],
        Event::Expired => [Down, Down, Down, Down],
        Event::DesignatedExpired => [Down, Detect, Detect, Detect],
        Event::TestsPassed => [Down, Detect, Report, Report],
        Event::TestFailed => [Down, Detect, TwoWay, TwoWay],
        Event::PortDown => [Down, Down, Down, Down],
    };
    row[state as usize]
}

/// What a neighbour's handshake means here (RFC 7177 section 3.3, RFC 5303 section 3.2); `None`: nothing, its state is a
/// leftover.
///
/// A neighbour that is Up while we are Down still believes in our former life. Believing it would leave its LSPs
/// unsynchronized, so it first has to see our Hello that says Down. One that shakes hands with another system, or over
/// another of our circuits, does not hear us here: RFC 5303 would wait for the holding time, RFC 7177 (A3) does not.
pub fn heard(local: State, theirs: &ThreeWay, me: SystemId, circuit: u32) -> Option<Event> {
    let names_us = theirs.neighbor == Some(me) && theirs.neighbor_circuit.is_none_or(|number| number == circuit);
    match theirs.state {
        HandshakeState::Up | HandshakeState::Initializing if !names_us => Some(Event::Unlisted),
        HandshakeState::Down => Some(Event::Unlisted),
        HandshakeState::Up if local == State::Down => None,
        HandshakeState::Up | HandshakeState::Initializing => Some(Event::Listed),
    }
}

/// What a Hello on the Designated VLAN of a shared link means for the port with address `me` (RFC 7177 section 3.3).
pub fn heard_on_shared(tlvs: &[Tlv], me: MacAddress) -> Event {
    let lists = tlvs.iter().filter_map(|tlv| if let Tlv::TrillNeighbors(list) = tlv { list.hears(me) } else { None });
    match lists.max() {
        Some(true) => Event::Listed,
        Some(false) => Event::Unlisted,
        None => Event::Uncovered,
    }
}
