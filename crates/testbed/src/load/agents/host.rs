//! One agent: its machine, and what it waits for.

use std::net::{Ipv4Addr, SocketAddrV4};

use rand_pcg::Pcg64;
use weft_control::address::Mapping;
use weft_control::agent::{Agent, Bounds, Config, Counters, Held, Input, Output, Timing};
use weft_control::{Machine, NS_PER_S};
use weft_wire::block::Block;

use super::AgentsLoad;
use super::socket::Socket;

/// Bytes of a packet that waits: the first of a connection.
const PACKET_BYTES: usize = 60;
/// What fits a fabric's path of 1,500 bytes.
const PATH_MTU: u16 = 1450;

/// When the first packets come, by a clock that can be set back to any time of an outage.
const PREPARED_NS: u64 = 1000 * NS_PER_S;

/// A packet that waits for a mapping.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packet;

impl Held for Packet {
    fn held_bytes(&self) -> usize {
        PACKET_BYTES
    }
}

/// An agent, and what its last input did.
pub(super) struct Host {
    machine: Agent<Packet>,
    la: Ipv4Addr,
    outputs: Vec<Output<Packet>>,
    noted_ns: Option<u64>,
    /// What its clock is ahead of ours.
    ahead_ns: u64,
    /// Questions that leave when it begins.
    prepared: Vec<(SocketAddrV4, Vec<u8>)>,
    /// When it asked first.
    pub(super) asked_ns: u64,
    /// Packets that wait.
    pub(super) waiting: usize,
    /// Packets that were dropped for want of a mapping.
    pub(super) dropped: usize,
    /// Nothing it asked for first is open any more.
    pub(super) is_done: bool,
    /// Mappings that it was told since somebody looked.
    pub(super) installed: Vec<(Ipv4Addr, Mapping)>,
    /// Datagrams that the kernel did not take.
    pub(super) unsent: u64,
}

impl Host {
    pub(super) fn new(load: &AgentsLoad, number: u32) -> Self {
        Self {
            machine: Agent::new(config(load, number), Pcg64::new(0, 0)),
            la: load.la(number),
            outputs: Vec::new(),
            noted_ns: None,
            ahead_ns: 0,
            prepared: Vec::new(),
            asked_ns: 0,
            waiting: 0,
            dropped: 0,
            is_done: false,
            installed: Vec::new(),
            unsent: 0,
        }
    }

    pub(super) fn la(&self) -> Ipv4Addr {
        self.la
    }

    /// Knows nothing any more.
    pub(super) fn forget(&mut self, load: &AgentsLoad, number: u32, random: Pcg64) {
        *self = Self { machine: Agent::new(config(load, number), random), ..Self::new(load, number) };
    }

    pub(super) fn counters(&self) -> &Counters {
        self.machine.counters()
    }

    /// When it wants attention, as it was last noted.
    pub(super) fn deadline_ns(&self) -> Option<u64> {
        self.noted_ns
    }

    /// When it wants attention, if that is another time than was noted.
    pub(super) fn changed_deadline_ns(&mut self) -> Option<u64> {
        let wanted_ns = self.machine.next_deadline_ns().map(|at_ns| at_ns.saturating_sub(self.ahead_ns));
        let changed = wanted_ns != self.noted_ns;
        self.noted_ns = wanted_ns;
        wanted_ns.filter(|_| changed)
    }

    /// Has its first packets, one to each of these AAs, and waits with the questions about them for [`Self::begin`].
    pub(super) fn prepare(&mut self, aas: &[Ipv4Addr]) {
        let Self { machine, outputs, .. } = self;
        for aa in aas {
            machine.handle(
                PREPARED_NS,
                Input::Miss { aa: *aa, packet_bytes: PACKET_BYTES as u16, held: Packet },
                outputs,
            );
        }
        let asks_ns = machine.next_deadline_ns().unwrap_or(PREPARED_NS);
        machine.handle(asks_ns, Input::Deadline, outputs);
        for output in outputs.drain(..) {
            if let Output::Send { to, datagram } = output {
                self.prepared.push((to, datagram));
            }
        }
        self.waiting = aas.len();
        self.ahead_ns = asks_ns;
    }

    /// Its questions leave, at the time by its clock at which they should.
    pub(super) fn begin(&mut self, now_ns: u64, socket: &Socket) {
        self.asked_ns = now_ns;
        self.ahead_ns -= now_ns;
        for (to, datagram) in self.prepared.drain(..) {
            self.unsent += u64::from(socket.send(self.la, to, &datagram).is_err());
        }
    }

    /// A packet of its server to an AA that the data path has no mapping of.
    pub(super) fn miss(&mut self, now_ns: u64, socket: &Socket, aa: Ipv4Addr) {
        self.waiting += 1;
        self.handle(now_ns, socket, Input::Miss { aa, packet_bytes: PACKET_BYTES as u16, held: Packet });
    }

    /// Its time has come.
    pub(super) fn deadline(&mut self, now_ns: u64, socket: &Socket) {
        self.handle(now_ns, socket, Input::Deadline);
    }

    /// A datagram has come for it.
    pub(super) fn receive(&mut self, now_ns: u64, socket: &Socket, from: SocketAddrV4, bytes: &[u8]) {
        self.handle(now_ns, socket, Input::Datagram { from, bytes });
    }

    fn handle(&mut self, now_ns: u64, socket: &Socket, input: Input<'_, Packet>) {
        let Self { machine, outputs, .. } = self;
        machine.handle(now_ns + self.ahead_ns, input, outputs);
        for output in self.outputs.drain(..) {
            match output {
                // What the kernel does not take is a lost datagram.
                Output::Send { to, datagram } => self.unsent += u64::from(socket.send(self.la, to, &datagram).is_err()),
                Output::Install { aa, mapping } => self.installed.push((aa, mapping)),
                Output::Release { .. } => self.waiting -= 1,
                Output::Drop { .. } => {
                    self.waiting -= 1;
                    self.dropped += 1;
                }
                Output::Refuse { .. } | Output::Remove { .. } | Output::IcmpTooBig { .. } => {}
            }
        }
    }
}

/// The settings that the daemon has where nothing is said.
fn config(load: &AgentsLoad, number: u32) -> Config {
    let la = load.la(number);
    Config {
        aa: load.own_aa(number),
        aa_block: Block::around(load.first_aa, 8),
        local: SocketAddrV4::new(la, load.port),
        servers: load.servers.clone(),
        key: load.secret.derive(0, la),
        key_id: load.key_id,
        service: 0,
        path_mtu: PATH_MTU,
        timing: Timing::default(),
        bounds: Bounds::default(),
    }
}
