//! TRILL's control plane without IO: adjacencies, link state database, nicknames, routes, a distribution tree
//! (RFC 6325, RFC 7176, RFC 7177, RFC 7780; ISO 10589 underneath).
//!
//! ```text
//! Hello --> adjacency (table) --> own LSP --> database --> campus --> nickname kept or lost
//! LSP, CSNP, PSNP --> sync --------------------^  |           |
//!                      ^ flood: SRM and SSN <------+           +--> graph --> forwarding
//! ```
//!
//! * Point-to-point and shared links: a port's configuration says which ([`LinkKind`]); what shared ones have of their own is in
//!   `shared`.
//! * As many trees as [`Config::trees_max`] says, one by default.
//! * Nothing that others send is held beyond [`Bounds`]; whatever is not used is counted with its reason.
//! * With [`Config::keys`] all PDUs are signed and checked; without them who has an adjacency is believed.

mod adjacency;
mod authentication;
mod campus;
mod config;
mod counters;
mod digest;
mod echo;
mod flood;
mod forwarding;
mod graceful;
mod graph;
mod hello;
mod io;
mod leave;
mod lsdb;
mod mtu;
mod nickname;
mod origin;
mod packing;
mod port;
mod replay;
mod restart;
mod shared;
mod sync;
mod timers;
mod timing;

use rand::Rng;
use rand_pcg::Pcg64;
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::{Kind, MAX_AREAS, NodeId, PDU_LEN_MIN, Pdu, Tlv, View};
use weft_wire::listener::Listeners;
use weft_wire::trill::ALL_IS_IS_RBRIDGES;
use weft_wire::vlan::VlanSet;

use crate::Machine;
use campus::Campus;
use forwarding::Link;
use nickname::Nicknames;
use origin::Origin;
use port::Port;
use replay::Numbers;
use restart::{Lists, Restart};
use shared::Shared;

pub use adjacency::{Event as AdjacencyEvent, State as AdjacencyState, heard, heard_on_shared, next};
pub use authentication::{Algorithm, Key, KeyChain, KeyFault};
pub use config::{Bounds, Config, LinkKind, PortConfig, PortId, Role, SharedConfig, Wish, cost_of_rate};
pub use counters::{DropReason, Event};
pub use forwarding::{Forwarding, Served, TreeState};
pub use io::{Counters, Hop, Input, Output, TreePort};
pub use lsdb::{Database, Entry as LsdbEntry, MAX_AGE_S, Order, ZERO_AGE_S, order};
pub use port::{Adjacency, Peer};
pub use shared::{Former, PortState, SharedLink};
pub use timing::Timing;

/// What others have lost is computed after a part of the delay that other changes have: the rest of such news need not be waited for.
const LOSS: u64 = 5;

/// The control plane of an RBridge.
#[derive(Debug)]
pub struct RBridge {
    config: Config,
    /// In the order of their numbers.
    ports: Vec<Port>,
    lsdb: Database,
    origin: Origin,
    nicknames: Nicknames,
    vlans: VlanSet,
    listeners: Listeners,
    forwarding: Forwarding,
    /// As last computed; at first what every RBridge takes.
    sz_bytes: u16,
    compute_at_ns: Option<u64>,
    computed_ns: Option<u64>,
    /// How long after the last computation the next one may be: twice as long each time, until it was quiet for two of them.
    compute_pause_ns: u64,
    begun: bool,
    /// Until everything is known again that was known before.
    restart: Option<Restart>,
    /// Lists that a restart leads to.
    lists: Option<Lists>,
    /// When neighbours are told that it is gone.
    leave_at_ns: Option<u64>,
    has_left: bool,
    /// Ports that this input concerned, some of them several times.
    touched: Vec<usize>,
    /// No port has a deadline before: exact after each deadline, and kept below those of touched ports between. Most of
    /// what a flood brings concerns one port, so that looking at all of them would be most of the work.
    ports_at_ns: Option<u64>,
    rng: Pcg64,
    numbers: Numbers,
    counters: Counters,
}

impl Machine for RBridge {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now_ns: u64, input: Input<'_>, outputs: &mut Vec<Output>) {
        if !self.begun {
            self.begin(now_ns, outputs);
        }
        match input {
            Input::PortUp(port) => self.port_up(now_ns, port, outputs),
            Input::PortDown(port) => self.port_down(now_ns, port, outputs),
            Input::Pdu { port, vlan, destination, source, bytes } => {
                if let Err(reason) = self.pdu(now_ns, (port, vlan), destination, source, bytes, outputs) {
                    self.counters.dropped.add(reason);
                }
            }
            Input::RootBridge { port, root, acknowledges_change } => {
                if let Err(reason) = self.root_bridge(now_ns, port, (root, acknowledges_change), outputs) {
                    self.counters.dropped.add(reason);
                }
            }
            Input::Channel { frame } => {
                if let Err(reason) = self.channel(frame) {
                    self.counters.dropped.add(reason);
                }
            }
            Input::Interest(vlans) => {
                self.vlans = vlans;
                self.describe_soon(now_ns);
            }
            Input::Listeners(listeners) => {
                if self.listeners != listeners {
                    self.listeners = listeners;
                    self.describe_soon(now_ns);
                }
            }
            Input::Overload(wanted) => self.set_overload(now_ns, wanted),
            Input::Configure { timing, keys } => self.configure(now_ns, timing, keys),
            Input::Leave => self.leave(now_ns),
            Input::Deadline => self.deadline(now_ns, outputs),
        }
        self.send_from_touched(now_ns, outputs);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        if !self.begun {
            return Some(0);
        }
        if self.has_left {
            return None;
        }
        [self.ports_at_ns, self.own_deadline_ns()].into_iter().flatten().min()
    }
}

impl RBridge {
    /// An RBridge whose ports are down. `rng` draws nicknames and jitter: seed it from the system in a daemon.
    pub fn new(config: Config, rng: Pcg64) -> Self {
        let mut ports = config.ports.clone();
        ports.sort_by_key(|port| port.id);
        let ports = (1..).zip(ports).map(|(nth, port)| Port::new(port, config.system, nth)).collect();
        Self {
            ports,
            lsdb: Database::default(),
            origin: Origin::new(),
            nicknames: Nicknames::new(&config.nicknames),
            vlans: config.vlans.clone(),
            listeners: Listeners::to_all(),
            forwarding: Forwarding::default(),
            // Of nobody else is known yet that it takes less.
            sz_bytes: config.lsp_buffer_bytes.max(PDU_LEN_MIN),
            compute_at_ns: None,
            computed_ns: None,
            compute_pause_ns: 0,
            begun: false,
            restart: None,
            lists: None,
            leave_at_ns: None,
            has_left: false,
            touched: Vec::new(),
            ports_at_ns: None,
            numbers: Numbers::default(),
            rng,
            counters: Counters::default(),
            config,
        }
    }

    /// The same after a restart during which the data plane worked on: `ports` have a neighbour there, and the last
    /// nickname is wished for. What neighbours know of us stays as it is until [`Self::is_restarting`] is false.
    pub fn restarted(config: Config, rng: Pcg64, ports: impl IntoIterator<Item = Former>) -> Self {
        let mut new = Self::new(config, rng);
        let mut restart = Restart::default();
        for former in ports {
            let Some(index) = new.index(former.port) else { continue };
            let shared = &mut new.ports[index].shared;
            // Nobody there knows anything of us; the port begins.
            if shared.is_some() && former.neighbors.is_empty() {
                continue;
            }
            restart.waits_for(former.port, former.neighbors.clone());
            shared.iter_mut().for_each(|shared| shared.recalls(former.clone()));
        }
        Self { restart: Some(restart), ..new }
    }

    /// The nickname that its frames come in with; none before one is chosen.
    pub fn nickname(&self) -> Option<u16> {
        self.nicknames.first()
    }

    /// All nicknames held, that one first.
    pub fn nicknames(&self) -> impl Iterator<Item = u16> {
        self.nicknames.held()
    }

    /// The adjacencies that are not Down, by port.
    pub fn adjacencies(&self) -> impl Iterator<Item = (PortId, &Adjacency)> {
        self.ports.iter().flat_map(|port| port.adjacencies.values().map(|with| (port.config.id, with)))
    }

    /// PDUs on a port that were dropped because they were not authentic.
    pub fn refused(&self, port: PortId) -> u64 {
        self.index(port).map_or(0, |index| self.ports[index].refused)
    }

    /// The link state database.
    pub fn lsdb(&self) -> &Database {
        &self.lsdb
    }

    /// Routes and trees as last computed.
    pub fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    /// Sz: the longest LSP that all RBridges of the campus take, bytes, as last computed (RFC 6325 section 4.3.1).
    pub fn sz_bytes(&self) -> u16 {
        self.sz_bytes
    }

    /// The address of a port that has become another, for example with its interface. The port is down meanwhile.
    pub fn set_port_mac(&mut self, port: PortId, mac: MacAddress) {
        if let Some(index) = self.index(port) {
            self.ports[index].config.mac = mac;
        }
    }

    /// Everything counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Who it is.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sends what floods over the ports concerned, and notes when they want to be looked at again.
    fn send_from_touched(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for index in touched.drain(..) {
            self.send_lsps(now_ns, index, outputs);
            let at_ns = self.ports[index].next_deadline_ns();
            self.ports_at_ns = [self.ports_at_ns, at_ns].into_iter().flatten().min();
        }
        self.touched = touched;
    }

    fn begin(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        self.begun = true;
        self.begin_restart(now_ns);
        self.describe_soon(now_ns);
        let held: Vec<u16> = self.nicknames.held().collect();
        if !held.is_empty() {
            outputs.push(Output::Nicknames(held));
        }
        if self.nicknames.are_missing() {
            self.nicknames.choose_at_ns = Some(now_ns + self.config.timing.nickname_wait_ns);
        }
    }

    /// Hellos tell the new holding time at once, and own LSPs get above those that an old key signed.
    fn configure(&mut self, now_ns: u64, timing: Timing, keys: Option<KeyChain>) {
        if self.leave_at_ns.is_some() {
            return;
        }
        // One life is one session.
        let session = self.config.keys.as_ref().and_then(KeyChain::session);
        let keys = keys.map(|keys| match session {
            Some(session) => keys.numbered(session),
            None => keys,
        });
        if self.config.keys != keys {
            self.config.keys = keys;
            self.origin.challenge_all();
            self.describe_soon(now_ns);
        }
        let has_echoes = self.config.timing.echo_ns != 0;
        self.config.timing = timing;
        for index in 0..self.ports.len() {
            self.ports[index].hello_at_ns = now_ns;
            if has_echoes != (timing.echo_ns != 0) {
                let peers: Vec<Peer> = self.ports[index].adjacencies.keys().copied().collect();
                peers.into_iter().for_each(|peer| self.echo_follows(now_ns, index, peer));
            }
        }
        self.ports_at_ns = Some(now_ns);
    }

    fn index(&self, port: PortId) -> Option<usize> {
        self.ports.binary_search_by_key(&port, |port| port.config.id).ok()
    }

    fn port_up(&mut self, now_ns: u64, port: PortId, outputs: &mut Vec<Output>) {
        let Some(index) = self.index(port) else { return self.counters.dropped.add(DropReason::NoPort) };
        self.touched.push(index);
        if !std::mem::replace(&mut self.ports[index].is_up, true) {
            self.begin_shared(now_ns, index, outputs);
            self.send_hello(now_ns, index, outputs);
        }
    }

    fn port_down(&mut self, now_ns: u64, port: PortId, outputs: &mut Vec<Output>) {
        let Some(index) = self.index(port) else { return self.counters.dropped.add(DropReason::NoPort) };
        self.ports[index].is_up = false;
        self.restart_ends_on(now_ns, port);
        match self.ports[index].neighbor() {
            Some((peer, _)) => self.adjacency_event(now_ns, index, peer, AdjacencyEvent::PortDown, outputs),
            None => self.end_shared(now_ns, index, outputs),
        }
    }

    /// An L2-IS-IS frame, from the outermost check to the innermost.
    fn pdu(
        &mut self,
        now_ns: u64,
        (port, vlan): (PortId, u16),
        destination: MacAddress,
        source: MacAddress,
        bytes: &[u8],
        outputs: &mut Vec<Output>,
    ) -> Result<(), DropReason> {
        let index = self.index(port).filter(|index| self.ports[*index].is_up).ok_or(DropReason::NoPort)?;
        let mac = self.ports[index].config.mac;
        if destination != ALL_IS_IS_RBRIDGES && destination != mac {
            return Err(DropReason::WrongDestination);
        }
        if self.ports[index].shared.as_ref().is_some_and(|shared| !shared.enables(vlan)) {
            return Err(DropReason::VlanNotEnabled);
        }
        let is_suspended = self.ports[index].shared.as_ref().is_some_and(Shared::is_suspended);
        let view = View::new(bytes).map_err(DropReason::of_parse_error);
        // Of two ports of a shared link with one address one has to find out.
        let is_hello = view.as_ref().is_ok_and(|view| view.kind() == Kind::LanHello);
        if source == mac && !(is_hello && self.ports[index].shared.is_some()) {
            return Err(DropReason::OwnAddress);
        }
        if is_suspended && !is_hello {
            return Err(DropReason::Suspended);
        }
        let view = view?;
        self.authenticate(&view).inspect_err(|_| self.ports[index].refused += 1)?;
        if self.config.keys.as_ref().is_some_and(KeyChain::checks_numbers) {
            self.numbers.check(index, &view)?;
        }
        if view.kind() != Kind::FsLsp && view.max_areas() != MAX_AREAS {
            return Err(DropReason::MaxAreas);
        }
        self.touched.push(index);
        match view.kind() {
            Kind::Lsp => return self.lsp(now_ns, index, source, &view),
            Kind::Csnp | Kind::Psnp => return self.sequence_numbers(now_ns, index, source, &view),
            _ => {}
        }
        match Pdu::of_view(&view) {
            Pdu::LanHello(hello) => self.lan_hello(now_ns, index, (vlan, source), &hello, outputs),
            Pdu::P2pHello(hello) => self.hello(now_ns, index, source, &hello, outputs),
            Pdu::MtuProbe(probe) => self.mtu_probe(index, source, &probe, view.as_bytes().len(), outputs),
            Pdu::MtuAck(ack) => self.mtu_ack(now_ns, index, source, &ack, outputs),
            _ => Err(DropReason::Unsupported),
        }
    }

    /// New routes follow: soon, but not too soon after the last ones.
    fn compute_soon(&mut self, now_ns: u64) {
        if let Some(restart) = &mut self.restart {
            return restart.note_change(now_ns);
        }
        let at_ns = (now_ns + self.config.timing.spf_delay_ns).max(self.compute_not_before_ns());
        self.compute_at_ns.get_or_insert(at_ns);
    }

    /// What others have lost: frames go there until it is computed.
    fn compute_sooner(&mut self, now_ns: u64) {
        self.compute_soon(now_ns);
        let at_ns = (now_ns + self.config.timing.spf_delay_ns / LOSS).max(self.compute_not_before_ns());
        self.compute_at_ns = self.compute_at_ns.map(|soon_ns| soon_ns.min(at_ns));
    }

    /// A lost neighbour is not waited with: what went over it goes nowhere.
    fn compute_at_once(&mut self, now_ns: u64) {
        if !self.is_restarting() {
            self.compute_at_ns = Some(now_ns.max(self.compute_not_before_ns()));
        }
    }

    fn compute_not_before_ns(&self) -> u64 {
        self.computed_ns.map_or(0, |computed_ns| computed_ns + self.compute_pause_ns)
    }

    fn compute(&mut self, now_ns: u64, outputs: &mut Vec<Output>) {
        let timing = self.config.timing;
        let is_quiet = self.computed_ns.is_none_or(|computed_ns| computed_ns + 2 * self.compute_pause_ns <= now_ns);
        let pause_ns = if is_quiet { timing.spf_delay_ns } else { 2 * self.compute_pause_ns };
        self.compute_pause_ns = pause_ns.min(timing.spf_interval_ns);
        self.compute_at_ns = None;
        self.computed_ns = Some(now_ns);
        self.counters.events.add(Event::Computed);
        let links = self.links();
        let campus = self.campus(&links);
        let roots = campus.trees(self.config.trees_max);
        let forwarding = Forwarding::compute(&campus, &links, &roots);
        let mut nearest = campus.nearest_trees(&roots, self.config.trees_used);
        nearest.retain(|_| roots.len() > 1);
        let rivals = self.rivals(&campus);
        let sz_bytes = self.sz_of(&campus);
        if self.forwarding != forwarding {
            self.forwarding = forwarding;
            outputs.push(Output::ForwardingChanged);
        }
        self.sz_follows(now_ns, sz_bytes, outputs);
        self.announce_trees(now_ns, nearest);
        self.check_nicknames(now_ns, rivals, outputs);
        (0..self.ports.len()).for_each(|index| self.appoint_anew(now_ns, index, outputs));
    }

    /// The campus as the database and our own `links` show it.
    fn campus(&self, links: &[Link]) -> Campus<'_> {
        let neighbors = links.iter().map(|link| (link.via, link.cost)).collect();
        Campus::new(&self.lsdb, self.config.system.node(), neighbors)
    }

    fn sz_of(&self, campus: &Campus<'_>) -> u16 {
        campus.sz_bytes(self.config.lsp_buffer_bytes, self.in_sync())
    }

    /// Links whose adjacency is in Report, by port.
    fn links(&self) -> Vec<Link> {
        self.ports.iter().flat_map(Port::links).collect()
    }

    /// The same without those that our LSP does not tell apart: neighbours by a shared link, which it tells of itself.
    fn told_links(&self) -> Vec<Link> {
        let mut links = self.links();
        links.dedup_by_key(|link| (link.hop.port, link.via));
        links
    }

    /// Neighbours with whom LSPs are exchanged.
    fn in_sync(&self) -> impl Iterator<Item = NodeId> {
        let adjacencies = self.ports.iter().flat_map(|port| port.adjacencies.values());
        adjacencies.filter(|with| with.state.synchronizes()).map(|with| with.neighbor.node())
    }

    fn send(&mut self, index: usize, pdu: &Pdu, outputs: &mut Vec<Output>) {
        self.send_to(index, ALL_IS_IS_RBRIDGES, pdu, outputs);
    }

    fn send_to(&mut self, index: usize, destination: MacAddress, pdu: &Pdu, outputs: &mut Vec<Output>) {
        self.send_in(index, destination, self.ports[index].vlan(), pdu, outputs);
    }

    fn send_in(&mut self, index: usize, destination: MacAddress, vlan: u16, pdu: &Pdu, outputs: &mut Vec<Output>) {
        let pdu = match self.config.keys.as_ref().and_then(KeyChain::session) {
            Some(session) => {
                let numbered = self.numbers.number(session, pdu);
                self.emit(&numbered).into()
            }
            None => self.emit(pdu).into(),
        };
        outputs.push(Output::Send { port: self.ports[index].config.id, vlan, destination, pdu });
    }

    /// The bytes of a PDU of ours, signed if there is a key.
    fn emit(&self, pdu: &Pdu) -> Vec<u8> {
        match &self.config.keys {
            Some(keys) => keys.sign(pdu.clone()),
            None => pdu.emit().expect("what we write fits its lengths"),
        }
    }

    /// Room for the digest of a PDU of ours.
    fn signature_place(&self) -> Vec<Tlv> {
        self.config.keys.iter().map(KeyChain::place).collect()
    }

    fn authenticate(&self, view: &View<'_>) -> Result<(), DropReason> {
        let Some(keys) = &self.config.keys else { return Ok(()) };
        // Not used in any case, and their TLVs have 16-bit types.
        if view.kind() == Kind::FsLsp {
            return Ok(());
        }
        // A flood brings most LSPs several times; what is held byte by byte was judged when it came.
        if view.lsp().is_some_and(|header| header.lifetime_s > 0 && self.is_held(&header, view.as_bytes())) {
            return Ok(());
        }
        keys.check(view)
    }

    /// An interval up to a quarter shorter, so that RBridges do not fall into step (ISO 10589 section 10.1).
    fn earlier(&mut self, interval_ns: u64) -> u64 {
        let quarter_ns = interval_ns / 4;
        if quarter_ns == 0 { interval_ns } else { interval_ns - self.random() % quarter_ns }
    }

    fn random(&mut self) -> u64 {
        self.rng.next_u64()
    }
}
