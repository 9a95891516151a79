//! A port: its adjacency, its Hellos' timer, what it still has to flood.

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::SystemId;

use super::adjacency::State;
use super::config::PortConfig;
use super::echo::Echo;
use super::flood::Flood;
use super::forwarding::Link;
use super::io::Hop;
use super::mtu::Probe;

#[derive(Debug)]
pub(super) struct Port {
    pub(super) config: PortConfig,
    pub(super) is_up: bool,
    pub(super) hello_at_ns: u64,
    /// `None` while Down.
    pub(super) adjacency: Option<Adjacency>,
    pub(super) flood: Flood,
    /// PDUs that were not authentic.
    pub(super) refused: u64,
}

/// A neighbour that is heard.
#[derive(Clone, Debug)]
pub struct Adjacency {
    /// How far the two know of each other; never [`State::Down`].
    pub state: State,
    pub neighbor: SystemId,
    pub mac: MacAddress,
    /// Its extended circuit ID.
    pub circuit: u32,
    /// When it is no longer believed to be there.
    pub until_ns: u64,
    /// When LSPs were first exchanged by it.
    pub(super) in_sync_since_ns: u64,
    /// Whether its last Hello offered to take data frames without outer header.
    pub takes_elided: bool,
    /// The MTU test that holds it back.
    pub(super) probe: Option<Probe>,
    /// What asks its data path for a sign of life.
    pub(super) echo: Option<Echo>,
}

impl Port {
    pub(super) fn new(config: PortConfig) -> Self {
        Self { config, is_up: false, hello_at_ns: 0, adjacency: None, flood: Flood::default(), refused: 0 }
    }

    pub(super) fn state(&self) -> State {
        self.adjacency.as_ref().map_or(State::Down, |adjacency| adjacency.state)
    }

    /// Our number for the link.
    pub(super) fn circuit(&self) -> u32 {
        self.config.id.0.into()
    }

    /// The link, if its adjacency is in Report.
    pub(super) fn link(&self) -> Option<Link> {
        let adjacency = self.adjacency.as_ref().filter(|adjacency| adjacency.state == State::Report)?;
        Some(Link {
            hop: Hop { port: self.config.id, mac: adjacency.mac },
            neighbor: adjacency.neighbor,
            cost: self.config.cost,
            circuits: (self.circuit(), adjacency.circuit),
        })
    }
}
