//! An agent on a bench: its clock, its inputs, and what it did.

pub(crate) mod crowd;

use std::net::{Ipv4Addr, SocketAddrV4};

use rand_pcg::Pcg64;
use weft_control::Machine;
use weft_control::address::{Locator, Mapping};
use weft_control::agent::{Agent, Bounds, Config, IgnoreReason, Input, Output, Timing};
use weft_wire::directory::{Entry, Key, Kind, Message, Path, Status};

pub(crate) const OWN: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);
pub(crate) const AA: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 5);
pub(crate) const LOCAL: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 64, 0, 2), 40000);

pub(crate) fn server(k: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 64, 1, k), 5300)
}

pub(crate) fn locator(k: u8) -> Locator {
    Locator { tor_la: Ipv4Addr::new(10, 1, 0, k), anycast_la: Ipv4Addr::new(10, 255, 255, 1) }
}

pub(crate) fn mapping(k: u8, version: u64) -> Mapping {
    Mapping { locator: locator(k), version }
}

pub(crate) fn key() -> Key {
    Key::from_bytes([7; 16])
}

pub(crate) fn config(servers: u8) -> Config {
    Config {
        aa: OWN,
        aa_block: "20.0.0.0/8".parse().unwrap(),
        local: LOCAL,
        servers: (1..=servers).map(server).collect(),
        key: key(),
        key_id: 1,
        service: 0,
        path_mtu: 1500,
        timing: Timing::default(),
        bounds: Bounds::default(),
    }
}

/// An agent, its clock, and what it did since it was last looked at.
pub(crate) struct Bench {
    pub(crate) agent: Agent,
    pub(crate) now_ns: u64,
    pub(crate) outputs: Vec<Output>,
}

impl Bench {
    pub(crate) fn new(config: Config) -> Self {
        Self { agent: Agent::new(config, Pcg64::new(3, 4)), now_ns: 0, outputs: Vec::new() }
    }

    pub(crate) fn input(&mut self, input: Input<'_>) -> Vec<Output> {
        self.agent.handle(self.now_ns, input, &mut self.outputs);
        std::mem::take(&mut self.outputs)
    }

    pub(crate) fn miss(&mut self, aa: Ipv4Addr, frame: &[u8]) -> Vec<Output> {
        self.input(Input::Miss { aa, packet_bytes: 100, held: frame.to_vec() })
    }

    /// Lets time pass, running every deadline on the way.
    pub(crate) fn run_to(&mut self, until_ns: u64) -> Vec<Output> {
        let mut all = Vec::new();
        while let Some(at_ns) = self.agent.next_deadline_ns().filter(|at_ns| *at_ns <= until_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            all.extend(self.input(Input::Deadline));
        }
        self.now_ns = until_ns;
        all
    }

    /// Lets a missed frame's questions leave.
    pub(crate) fn ask(&mut self) -> Vec<(SocketAddrV4, Message)> {
        let until_ns = self.now_ns + Timing::default().coalesce_ns;
        sent(&self.run_to(until_ns))
    }

    pub(crate) fn answer(
        &mut self,
        question: &(SocketAddrV4, Message),
        status: Status,
        mapping: Mapping,
    ) -> Vec<Output> {
        let entries = question.1.entries.iter().map(|entry| answer(entry.aa, status, mapping)).collect();
        let revision = mapping.version.max(question.1.revision);
        let message = Message { kind: Kind::Answer, revision, entries, ..question.1.clone() };
        self.datagram(question.0, &message)
    }

    pub(crate) fn datagram(&mut self, from: SocketAddrV4, message: &Message) -> Vec<Output> {
        let bytes = message.emit(&key(), &Path { source: from, destination: LOCAL });
        self.input(Input::Datagram { from, bytes: &bytes })
    }

    pub(crate) fn ignored(&self, reason: IgnoreReason) -> u64 {
        self.agent.counters().ignored.get(reason)
    }
}

pub(crate) fn answer(aa: Ipv4Addr, status: Status, mapping: Mapping) -> Entry {
    let Locator { tor_la, anycast_la } = mapping.locator;
    Entry { aa, tor_la, anycast_la, status, version: mapping.version }
}

/// The datagrams among the outputs, each verified with the key and its path.
pub(crate) fn sent(outputs: &[Output]) -> Vec<(SocketAddrV4, Message)> {
    let datagrams = outputs.iter().filter_map(|output| match output {
        Output::Send { to, datagram } => Some((*to, datagram)),
        _ => None,
    });
    datagrams
        .map(|(to, datagram)| {
            let view = weft_wire::directory::View::new(datagram).unwrap();
            view.verify(&key(), &Path { source: LOCAL, destination: to }).unwrap();
            (to, view.to_message())
        })
        .collect()
}
