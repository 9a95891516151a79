//! The body for TRILL's control plane: an RBridge that hears anything from its neighbours, at any time.

use rand_pcg::Pcg64;
use weft_control::isis::{
    Algorithm, Bounds, Config, Input, Key, KeyChain, LinkKind, Output, PortConfig, PortId, RBridge, SharedConfig,
    Timing, Wish,
};
use weft_control::{Machine, NS_PER_MS};
use weft_wire::ethernet::{self, MacAddress};
use weft_wire::isis::authentication::{NoSignature, Signature};
use weft_wire::isis::hello::{HandshakeState, PortSub, ThreeWay, VlanFlags};
use weft_wire::isis::pdu::P2pHello;
use weft_wire::isis::{Kind, Pdu, SystemId, Tlv, View, fletcher};
use weft_wire::trill::{ALL_IS_IS_RBRIDGES, HOP_COUNT_MAX};
use weft_wire::vlan::VlanSet;

/// Few, so that bounds are met.
const BOUNDS: Bounds = Bounds {
    lsps_max: 8,
    lsp_bytes_max: 4096,
    requests_max: 6,
    neighbors_max: 3,
    burst_max: 4,
    burst_ns: 5 * NS_PER_MS,
};
/// A third port, beside two of point-to-point links.
const SHARED_PORT: u16 = 3;
/// Own fragments and the withdrawals of foreign claims to them come on top of [`BOUNDS`].
const OWN_LSPS_MAX: usize = 5;
/// Longest LSP that it takes.
const LSP_BUFFER_BYTES: u16 = 4000;
/// Deadlines that may follow each other within one step of time.
const DEADLINES_MAX: usize = 10_000;
/// A step of time in the input counts so much.
const STEP_NS: u64 = 250 * NS_PER_MS;
/// Between Echoes.
const ECHO_NS: u64 = 2 * STEP_NS;
/// Of an Echo: the byte whose lower six bits are the hop count.
const HOP_COUNT_AT: usize = ethernet::HEADER_LEN + 1;

/// Any bytes as a history of an RBridge with two ports of point-to-point links, the first with a neighbour, and one of a shared link; once without keys and once with. Records
/// of the input:
///
/// ```text
/// op 0xf0-0xff: time passes, steps 1
/// op 0xe0-0xef: its last Echo comes back, hops 1, place of a changed byte 1, bits changed 1
/// other:        length 2 (11 bits), PDU; op: bit 0 the port, bits 1-2 the neighbour, bit 3 the checksum stays as it is,
///               bit 4 it stays unsigned, bit 5 the shared port, where bit 0 is the VLAN
/// ```
///
/// # Panics
/// When an invariant of the control plane is broken.
pub fn isis_rbridge(bytes: &[u8]) {
    let key = |id| Key::new(id, Algorithm::HmacSha256, vec![id as u8; 16]).expect("16 bytes are a secret");
    let keys = KeyChain::new([1, 0x0a0a].map(key).into()).expect("two keys are a chain");
    live(bytes, None);
    live(bytes, Some(keys));
}

fn live(mut bytes: &[u8], keys: Option<KeyChain>) {
    let mut life = Life::begin(keys);
    while let [op, rest @ ..] = bytes {
        bytes = match op {
            0xf0.. => life.pass(rest),
            0xe0.. => life.echo(rest),
            _ => life.hear(*op, rest),
        };
    }
    life.run(STEP_NS);
}

struct Life {
    bridge: RBridge,
    now_ns: u64,
    outputs: Vec<Output>,
    /// The Echo that left last.
    echo: Vec<u8>,
}

impl Life {
    fn begin(keys: Option<KeyChain>) -> Self {
        let port = |number: u16| PortConfig {
            id: PortId(number),
            mac: address(0xf0 | number as u8),
            cost: 10,
            link: match number {
                SHARED_PORT => LinkKind::Shared(SharedConfig::of(VlanSet::of_ranges(&[(1, 3)]))),
                _ => LinkKind::PointToPoint,
            },
            designated_vlan: 1,
            mtu_test: number == 2,
            offers_elision: number == 1,
        };
        let config = Config {
            system: system(1),
            hostname: "me".to_owned(),
            ports: vec![port(1), port(2), port(SHARED_PORT)],
            nicknames: vec![Wish::Last(0x11), Wish::Any],
            root_priority: 0x8000,
            vlans: [7].into_iter().collect::<VlanSet>(),
            trees_max: 2,
            trees_used: 2,
            lsp_buffer_bytes: LSP_BUFFER_BYTES,
            keys,
            timing: Timing { echo_ns: ECHO_NS, ..Timing::default() },
            bounds: BOUNDS,
        };
        let bridge = RBridge::new(config, Pcg64::new(5, 7));
        let mut life = Self { bridge, now_ns: 0, outputs: Vec::new(), echo: Vec::new() };
        [1, 2, SHARED_PORT].into_iter().for_each(|port| life.put(Input::PortUp(PortId(port))));
        let hello = life.signed(hello_of_neighbor());
        life.put(Input::Pdu {
            port: PortId(1),
            vlan: 1,
            destination: ALL_IS_IS_RBRIDGES,
            source: address(2),
            bytes: &hello,
        });
        life.run(STEP_NS);
        life
    }

    fn pass<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let [steps, rest @ ..] = rest else { return &[] };
        self.run(u64::from(*steps) * STEP_NS);
        rest
    }

    fn echo<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let [hops, place, change, rest @ ..] = rest else { return &[] };
        let mut frame = self.echo.clone();
        if let Some(hop_count) = frame.get_mut(HOP_COUNT_AT) {
            *hop_count -= hops & HOP_COUNT_MAX;
        }
        if let Some(byte) = frame.get_mut(usize::from(*place)) {
            *byte ^= change;
        }
        self.put(Input::Channel { frame: &frame });
        rest
    }

    fn hear<'a>(&mut self, op: u8, rest: &'a [u8]) -> &'a [u8] {
        let [high, low, rest @ ..] = rest else { return &[] };
        let len = usize::from(u16::from_be_bytes([*high, *low]) & 0x7ff).min(rest.len());
        let (pdu, rest) = rest.split_at(len);
        let mut pdu = pdu.to_vec();
        if op & 8 == 0 {
            repair(&mut pdu);
        }
        if op & 16 == 0 {
            pdu = self.signed(pdu);
        }
        let number = if op & 32 == 0 { 1 + u16::from(op & 1) } else { SHARED_PORT };
        let (port, vlan, source) = (PortId(number), 1 + u16::from(op & 1), address(2 + (op >> 1 & 3)));
        self.put(Input::Pdu { port, vlan, destination: ALL_IS_IS_RBRIDGES, source, bytes: &pdu });
        rest
    }

    /// With the key of the campus, if there is one and the PDU says nothing of its own about it.
    fn signed(&self, pdu: Vec<u8>) -> Vec<u8> {
        let Some(keys) = &self.bridge.config().keys else { return pdu };
        match View::new(&pdu) {
            Ok(view) if view.kind() != Kind::FsLsp && Signature::of(&view).err() == Some(NoSignature::Missing) => {
                keys.sign(Pdu::of_view(&view))
            }
            _ => pdu,
        }
    }

    fn run(&mut self, time_ns: u64) {
        let until_ns = self.now_ns + time_ns;
        for _ in 0..DEADLINES_MAX {
            let Some(at_ns) = self.bridge.next_deadline_ns().filter(|at_ns| *at_ns <= until_ns) else {
                self.now_ns = until_ns;
                return;
            };
            self.now_ns = at_ns.max(self.now_ns);
            self.put(Input::Deadline);
        }
        panic!("deadlines without end");
    }

    fn put(&mut self, input: Input<'_>) {
        self.outputs.clear();
        self.bridge.handle(self.now_ns, input, &mut self.outputs);
        for output in &self.outputs {
            match output {
                Output::Send { pdu, .. } => {
                    assert!(Pdu::parse(pdu).is_ok(), "what is sent is well formed");
                    let view = View::new(pdu).expect("what can be read has a view");
                    let keys = self.bridge.config().keys.as_ref();
                    assert!(
                        keys.is_none_or(|keys| keys.check(&view).is_ok()),
                        "what is sent, and passed on, is signed"
                    );
                }
                Output::Echo { frame, .. } => self.echo = frame.to_vec(),
                _ => {}
            }
        }
        assert!(self.bridge.adjacencies().count() <= 2 + BOUNDS.neighbors_max, "neighbours without end");
        let lsdb = self.bridge.lsdb();
        assert!(lsdb.len() <= BOUNDS.lsps_max + OWN_LSPS_MAX, "{} LSPs", lsdb.len());
        assert!(
            lsdb.len_bytes() <= BOUNDS.lsp_bytes_max + OWN_LSPS_MAX * usize::from(LSP_BUFFER_BYTES),
            "{} bytes",
            lsdb.len_bytes()
        );
    }
}

fn system(number: u8) -> SystemId {
    SystemId([0x0a, 0, 0, 0, 0, number])
}

fn address(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number])
}

/// The neighbour names us, so that LSPs are exchanged at once.
fn hello_of_neighbor() -> Vec<u8> {
    let three_way = ThreeWay {
        state: HandshakeState::Initializing,
        local_circuit: Some(1),
        neighbor: Some(system(1)),
        neighbor_circuit: Some(1),
    };
    let flags = PortSub::VlanFlags(VlanFlags { outer_vlan: 1, designated_vlan: 1, ..VlanFlags::default() });
    let tlvs = vec![
        Tlv::Areas(vec![vec![0]]),
        Tlv::PortCapability { topology: 0, subs: vec![flags] },
        Tlv::ThreeWay(three_way),
    ];
    let hello = P2pHello { circuit_type: 1, source: system(2), holding_time_s: u16::MAX, local_circuit: 1, tlvs };
    Pdu::P2pHello(hello).emit().expect("a short Hello")
}

/// Puts the right checksum into an LSP, or most mutations would end there.
fn repair(bytes: &mut [u8]) {
    let len = match View::new(bytes) {
        Ok(view) if view.lsp().is_some_and(|header| header.lifetime_s > 0) => view.as_bytes().len(),
        _ => return,
    };
    let check = fletcher::check_bytes(&bytes[12..len], 12);
    bytes[24..26].copy_from_slice(&check);
}
