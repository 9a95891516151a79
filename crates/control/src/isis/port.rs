//! A port: its adjacencies, its Hellos' timer, what it still has to flood, and what it is on a shared link.

use std::collections::BTreeMap;

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::SystemId;

use super::adjacency::State;
use super::config::PortConfig;
use super::echo::Echo;
use super::flood::Flood;
use super::forwarding::Link;
use super::graceful;
use super::io::Hop;
use super::mtu::Probe;
use super::shared::{Shared, Told};

#[derive(Debug)]
pub(super) struct Port {
    pub(super) config: PortConfig,
    pub(super) is_up: bool,
    pub(super) hello_at_ns: u64,
    /// Those that are not Down; on a point-to-point link at most one.
    pub(super) adjacencies: BTreeMap<Peer, Adjacency>,
    pub(super) flood: Flood,
    /// PDUs that were not authentic.
    pub(super) refused: u64,
    /// `None` on a point-to-point link.
    pub(super) shared: Option<Shared>,
}

/// What tells the adjacencies of a port apart (RFC 7177 section 3.2). The order is how equal priorities are ranked (section
/// 4.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// Address of its port.
    pub mac: MacAddress,
    /// Its number of the port; 0 on a point-to-point link, which has one neighbour in any case.
    pub port: u16,
    pub system: SystemId,
}

/// A neighbour that is heard.
#[derive(Clone, Debug)]
pub struct Adjacency {
    /// How far the two know of each other; never [`State::Down`].
    pub state: State,
    pub neighbor: SystemId,
    pub mac: MacAddress,
    /// Its extended circuit ID; 0 on a shared link.
    pub circuit: u32,
    /// When it is no longer believed to be there.
    pub until_ns: u64,
    /// Holding times of Hellos on the Designated VLAN, and on others; 0: over. A point-to-point link has the first alone.
    pub(super) hold_ns: [u64; 2],
    /// When LSPs were first exchanged by it.
    pub(super) in_sync_since_ns: u64,
    /// Whether its last Hello offered to take data frames without outer header.
    pub takes_elided: bool,
    /// Longest PDU that was seen to pass, bytes; 0: none was sent to see it.
    pub tested_bytes: u16,
    /// The MTU test that runs.
    pub(super) probe: Option<Probe>,
    /// What asks its data path for a sign of life.
    pub(super) echo: Option<Echo>,
    /// What its last Hello said about a shared link.
    pub(super) told: Told,
    /// What it said about restarts.
    pub(super) restart: graceful::Told,
}

/// Of [`Adjacency::hold_ns`].
pub(super) const ON_DESIGNATED: usize = 0;
pub(super) const ELSEWHERE: usize = 1;

impl Adjacency {
    /// One that was Down until now.
    pub(super) fn begin(peer: Peer) -> Self {
        Self {
            state: State::Down,
            neighbor: peer.system,
            mac: peer.mac,
            circuit: 0,
            until_ns: 0,
            hold_ns: [0; 2],
            in_sync_since_ns: 0,
            takes_elided: false,
            tested_bytes: 0,
            probe: None,
            echo: None,
            told: Told::default(),
            restart: graceful::Told::default(),
        }
    }

    pub(super) fn hold(&mut self, which: usize, until_ns: u64) {
        self.hold_ns[which] = until_ns;
        self.until_ns = self.hold_ns[ON_DESIGNATED].max(self.hold_ns[ELSEWHERE]);
    }

    /// Whether it was heard on the Designated VLAN, and that not too long ago.
    pub(super) fn is_on_designated(&self) -> bool {
        self.hold_ns[ON_DESIGNATED] > 0
    }

    /// To be DRB; 0 on a point-to-point link.
    pub(super) fn priority(&self) -> u8 {
        self.told.priority()
    }

    /// When the next of its holding times is over.
    pub(super) fn expires_ns(&self) -> Option<u64> {
        self.hold_ns.into_iter().filter(|at_ns| *at_ns > 0).min()
    }
}

impl Port {
    /// The `nth` of the RBridge `me`, from 1.
    pub(super) fn new(config: PortConfig, me: SystemId, nth: usize) -> Self {
        let shared = Shared::new(&config, me, nth);
        Self {
            config,
            is_up: false,
            hello_at_ns: 0,
            adjacencies: BTreeMap::new(),
            flood: Flood::default(),
            refused: 0,
            shared,
        }
    }

    /// Whether Hellos are sent.
    pub(super) fn speaks(&self) -> bool {
        self.is_up && !self.shared.as_ref().is_some_and(Shared::is_suspended)
    }

    /// The neighbour of a point-to-point link.
    pub(super) fn neighbor(&self) -> Option<(Peer, &Adjacency)> {
        self.adjacencies.iter().next().map(|(peer, adjacency)| (*peer, adjacency)).filter(|_| self.shared.is_none())
    }

    /// How far the port has come with any neighbour.
    pub(super) fn state(&self) -> State {
        self.adjacencies.values().map(|adjacency| adjacency.state).max().unwrap_or(State::Down)
    }

    /// Whether LSPs are exchanged on the port (RFC 7177 section 3.2).
    pub(super) fn synchronizes(&self) -> bool {
        self.state().synchronizes()
    }

    /// The neighbour with this address with whom LSPs are exchanged.
    pub(super) fn in_sync_with(&self, mac: MacAddress) -> Option<(Peer, &Adjacency)> {
        let at = |(peer, adjacency): &(&Peer, &Adjacency)| peer.mac == mac && adjacency.state.synchronizes();
        self.adjacencies.iter().find(at).map(|(peer, adjacency)| (*peer, adjacency))
    }

    /// Neighbours whose adjacency is in Report.
    pub(super) fn reported(&self) -> impl Iterator<Item = (Peer, &Adjacency)> {
        let all = self.adjacencies.iter().map(|(peer, adjacency)| (*peer, adjacency));
        all.filter(|(_, adjacency)| adjacency.state == State::Report)
    }

    /// Our number for the link.
    pub(super) fn circuit(&self) -> u32 {
        self.config.id.0.into()
    }

    /// VLAN of all that is sent but Hellos.
    pub(super) fn vlan(&self) -> u16 {
        self.shared.as_ref().map_or(self.config.designated_vlan, Shared::designated_vlan)
    }

    /// Links to neighbours whose adjacency is in Report.
    pub(super) fn links(&self) -> Vec<Link> {
        let shared = self.shared.as_ref();
        if shared.is_some_and(|shared| !shared.is_reported(self)) {
            return Vec::new();
        }
        let via = |peer: Peer| match shared.and_then(Shared::pseudonode) {
            Some(pseudonode) => pseudonode,
            None => peer.system.node(),
        };
        let link = |(peer, adjacency): (Peer, &Adjacency)| Link {
            hop: Hop { port: self.config.id, mac: peer.mac },
            neighbor: peer.system,
            via: via(peer),
            cost: self.config.cost,
            circuits: (self.circuit(), adjacency.circuit),
            lan_id: shared.map(Shared::lan_id),
        };
        // Who starts is no way yet.
        self.reported().filter(|(_, adjacency)| !adjacency.restart.suppressed).map(link).collect()
    }
}
