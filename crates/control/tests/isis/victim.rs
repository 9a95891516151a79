//! One RBridge under test, and what its neighbour may send it.

use rand::SeedableRng;
use rand_pcg::Pcg64;
use weft_control::isis::{
    AdjacencyState, Bounds, Config, DropReason, Input, KeyChain, LinkKind, Output, PortConfig, PortId, RBridge, Timing,
    Wish,
};
use weft_control::{Machine, NS_PER_S};
use weft_wire::isis::hello::HandshakeState;
use weft_wire::isis::{PDU_LEN_MIN, Pdu};
use weft_wire::trill::ALL_IS_IS_RBRIDGES;
use weft_wire::vlan::VlanSet;

use super::peer::{ME, hello, mac, my_mac, system};

pub(crate) const PORT: PortId = PortId(1);

/// An RBridge whose neighbour on port 1 is node 2, and who has none on port 2.
pub(crate) struct Victim {
    pub(crate) bridge: RBridge,
    pub(crate) now_ns: u64,
    /// Of the last input.
    pub(crate) outputs: Vec<Output>,
}

impl Victim {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self::with_timing(bounds, Timing::default())
    }

    pub(crate) fn with_timing(bounds: Bounds, timing: Timing) -> Self {
        let victim = Self::of(Config { bounds, timing, ..Self::config() });
        assert_eq!(victim.state(), AdjacencyState::Report);
        victim
    }

    /// One whose neighbour has its key, as the first of its own.
    pub(crate) fn with_keys(keys: KeyChain, bounds: Bounds) -> Self {
        let victim = Self::of(Config { bounds, keys: Some(keys), ..Self::config() });
        assert_eq!(victim.state(), AdjacencyState::Report);
        victim
    }

    pub(crate) fn config() -> Config {
        let port = |number| {
            let id = PortId(number);
            PortConfig {
                id,
                mac: my_mac(id),
                cost: 10,
                link: LinkKind::PointToPoint,
                designated_vlan: 1,
                mtu_test: false,
                offers_elision: false,
            }
        };
        Config {
            system: system(ME),
            hostname: "victim".to_owned(),
            ports: vec![port(1), port(2)],
            nicknames: vec![Wish::Configured(0x11)],
            root_priority: 0x8000,
            vlans: VlanSet::default(),
            trees_max: 1,
            trees_used: 1,
            lsp_buffer_bytes: PDU_LEN_MIN,
            keys: None,
            timing: Timing::default(),
            bounds: Bounds::default(),
        }
    }

    /// Its neighbour says Hello, signed if there is a key, and a second passes.
    pub(crate) fn of(config: Config) -> Self {
        let hello = Pdu::P2pHello(hello(2, HandshakeState::Initializing, Some((ME, 1)), 60_000));
        let hello = config.keys.as_ref().map_or_else(|| hello.emit().unwrap(), |keys| keys.sign(hello.clone()));
        let bridge = RBridge::new(config, Pcg64::seed_from_u64(2));
        let mut victim = Self { bridge, now_ns: 0, outputs: Vec::new() };
        [1, 2].into_iter().for_each(|port| victim.put(Input::PortUp(PortId(port))));
        victim.from(2, &hello);
        victim.run(NS_PER_S);
        victim
    }

    pub(crate) fn put(&mut self, input: Input<'_>) {
        self.outputs.clear();
        self.bridge.handle(self.now_ns, input, &mut self.outputs);
    }

    pub(crate) fn from(&mut self, node: u8, bytes: &[u8]) {
        self.put(Input::Pdu { port: PORT, vlan: 1, destination: ALL_IS_IS_RBRIDGES, source: mac(node), bytes });
    }

    pub(crate) fn run(&mut self, time_ns: u64) {
        let until_ns = self.now_ns + time_ns;
        while let Some(at_ns) = self.bridge.next_deadline_ns().filter(|at_ns| *at_ns <= until_ns) {
            self.now_ns = at_ns.max(self.now_ns);
            self.put(Input::Deadline);
        }
        self.now_ns = until_ns;
    }

    pub(crate) fn state(&self) -> AdjacencyState {
        self.bridge.adjacencies().next().map_or(AdjacencyState::Down, |(_, adjacency)| adjacency.state)
    }

    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        self.bridge.counters().dropped.get(reason)
    }
}

pub(crate) trait IntoBytes {
    fn into_bytes(self) -> Vec<u8>;
}

impl IntoBytes for weft_wire::isis::pdu::P2pHello {
    fn into_bytes(self) -> Vec<u8> {
        Pdu::P2pHello(self).emit().unwrap()
    }
}

impl IntoBytes for Pdu {
    fn into_bytes(self) -> Vec<u8> {
        self.emit().unwrap()
    }
}
