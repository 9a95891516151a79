//! RBridges, links and time that is only a number: frames arrive in order per link, or are lost as the seed says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_pcg::{Pcg64, Pcg64Mcg};
use weft_control::isis::{
    AdjacencyState, Bounds, Config, Former, Forwarding, Input, KeyChain, LinkKind, Output, PortConfig, PortId, RBridge,
    Timing, Wish,
};
use weft_control::{Machine, NS_PER_MS};
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::{PDU_LEN_MIN, Pdu, SystemId, Tlv};
use weft_wire::listener::{Group, Listeners};
use weft_wire::trill::ALL_IS_IS_RBRIDGES;
use weft_wire::vlan::VlanSet;

use super::lan::{Attached, Lan, Lans, Seat};
use super::topology::Topology;
use super::traffic::{Traffic, Traveller};

/// An RBridge, or the place where one was.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) bridge: Option<RBridge>,
    pub(crate) system: SystemId,
    pub(crate) vlans: VlanSet,
    /// IP multicast groups that its end stations listen to.
    pub(crate) listeners: Listeners,
    pub(crate) root_priority: u16,
    /// How many trees it can compute, and asks for.
    pub(crate) trees_max: u16,
    pub(crate) trees_used: u16,
    /// The nickname that it wants when it remembers none, and how many it wants in all.
    pub(crate) wish: Wish,
    pub(crate) nicknames_wanted: usize,
    pub(crate) overloaded: bool,
    /// Longest LSP that it takes.
    pub(crate) lsp_buffer_bytes: u16,
    /// Keys of its next start.
    pub(crate) keys: Option<KeyChain>,
    /// Its nicknames as told by outputs: what a daemon would remember.
    pub(crate) nicknames: Vec<u16>,
    /// Read when an output asked for it: what a data plane would hold.
    pub(crate) data_plane: Forwarding,
    /// VLANs of end stations that its ports on shared links carry.
    pub(crate) access: BTreeMap<PortId, VlanSet>,
    /// How often that, or a nickname, was changed.
    pub(crate) changes: u64,
    wake_at_ns: Option<u64>,
    /// Until then its daemon gets no turn; its data plane works on.
    pub(crate) stalled_until_ns: u64,
}

impl Node {
    /// The nickname that its frames come in with.
    pub(crate) fn nickname(&self) -> Option<u16> {
        self.nicknames.first().copied()
    }

    /// VLANs that somebody behind it may be in.
    pub(crate) fn interest(&self) -> VlanSet {
        let mut vlans = self.vlans.clone();
        self.access.values().for_each(|carried| vlans.add_all(carried));
        vlans
    }

    /// What its LSPs have to say about groups.
    pub(crate) fn listened(&self) -> Listeners {
        let interest = self.interest();
        let within = |all: &VlanSet| all.iter().filter(|vlan| interest.contains(*vlan)).collect();
        let groups = self.listeners.groups.iter().filter(|group| interest.contains(group.vlan));
        Listeners {
            all_ipv4: within(&self.listeners.all_ipv4),
            all_ipv6: within(&self.listeners.all_ipv6),
            groups: groups.copied().collect(),
        }
    }
}

/// Some groups of few, so that several listen to the same, and now and then all of a VLAN.
pub(crate) fn listeners(rng: &mut Pcg64Mcg) -> Listeners {
    let mut all = || (1..120).filter(|_| rng.random_range(0..10) == 0).collect();
    let (all_ipv4, all_ipv6) = (all(), all());
    let group =
        |rng: &mut Pcg64Mcg| Group { vlan: rng.random_range(1..110), mac: GROUPS[rng.random_range(0..GROUPS.len())] };
    let count = [0, 5, 50, 500][rng.random_range(0..4)];
    Listeners { all_ipv4, all_ipv6, groups: (0..count).map(|_| group(rng)).collect() }
}

/// Two of IPv4, one of IPv6.
pub(crate) const GROUPS: [MacAddress; 3] = [
    MacAddress([0x01, 0x00, 0x5e, 0x01, 0x02, 0x03]),
    MacAddress([0x01, 0x00, 0x5e, 0x7f, 0x00, 0x01]),
    MacAddress([0x33, 0x33, 0x00, 0x01, 0x00, 0x03]),
];

/// A link and its two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) ends: [(usize, PortId); 2],
    /// Metric of sending from each end.
    pub(crate) costs: [u32; 2],
    /// Both ends see that it is down.
    pub(crate) is_up: bool,
    /// Nobody sees that nothing gets through.
    pub(crate) is_silent: bool,
    /// Longest PDU that it carries, bytes.
    pub(crate) mtu_bytes: usize,
}

/// What a port is connected to.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// An end of a link.
    End(usize, usize),
    /// A seat on a shared link.
    Seat(Seat),
}

#[derive(Debug)]
enum What {
    Wake {
        node: usize,
    },
    Frame {
        link: usize,
        end: usize,
        life: u64,
        source: MacAddress,
        destination: MacAddress,
        pdu: Arc<[u8]>,
    },
    /// A frame on a shared link, for everybody there who is not its sender.
    Shared {
        from: Seat,
        vlan: u16,
        destination: MacAddress,
        pdu: Arc<[u8]>,
    },
    /// A data frame for the RBridge with this nickname.
    Data {
        link: usize,
        end: usize,
        life: u64,
        egress: u16,
        frame: Arc<[u8]>,
    },
    /// A copy of a frame of end stations, for a port.
    Traveller {
        to: (usize, PortId),
        source: MacAddress,
        /// The link, and which life of it the copy belongs to; `None` on a shared link.
        life: Option<(usize, u64)>,
        traveller: Traveller,
    },
}

/// How bad the links are, per mille of frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) loss: u32,
    pub(crate) duplication: u32,
}

/// The whole campus.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) now_ns: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    pub(crate) lans: Lans,
    pub(crate) faults: Faults,
    /// RBridges on shared links that do not know restarts, and whose Hellos do not speak of them.
    pub(crate) ignorant: BTreeSet<usize>,
    /// Loss of data frames alone, per mille.
    pub(crate) data_loss: u32,
    pub(crate) timing: Timing,
    /// Whether ports of links test them at their next start.
    pub(crate) mtu_test: bool,
    /// PDUs that arrived.
    pub(crate) pdus: u64,
    /// When a data plane was changed for the last time.
    pub(crate) changed_ns: u64,
    /// Frames of end stations, where they have been.
    pub(crate) traffic: Traffic,
    by_port: Vec<Vec<Place>>,
    queue: BTreeMap<u64, Vec<What>>,
    /// Frames on the way when a link goes down are lost: they belong to its former life.
    lives: Vec<u64>,
    rng: Pcg64Mcg,
    outputs: Vec<Output>,
}

pub(crate) const DELAY_NS: u64 = NS_PER_MS;
/// From one RBridge's data plane to the next.
const HOP_NS: u64 = NS_PER_MS / 10;
/// Of a data frame whose outer header has no tag.
const HOP_COUNT_AT: usize = 15;

/// The same PDU for somebody who does not know the restart TLV.
fn without_restart(pdu: &Arc<[u8]>) -> Arc<[u8]> {
    let Ok(Pdu::LanHello(mut hello)) = Pdu::parse(pdu) else { return Arc::clone(pdu) };
    hello.tlvs.retain(|tlv| !matches!(tlv, Tlv::Restart(_)));
    Pdu::LanHello(hello).emit().unwrap().into()
}

pub(crate) fn system(node: usize) -> SystemId {
    let [high, low] = (node as u16 + 1).to_be_bytes();
    SystemId([0x0a, 0, 0, 0, high, low])
}

fn mac(node: usize, port: PortId) -> MacAddress {
    let ([a, b], [c, d]) = ((node as u16 + 1).to_be_bytes(), port.0.to_be_bytes());
    MacAddress([2, 0, a, b, c, d])
}

impl Net {
    /// RBridges that are not yet booted on links that are up.
    pub(crate) fn new(topology: &Topology, seed: u64, timing: Timing) -> Self {
        let mut by_port = vec![Vec::new(); topology.nodes];
        let mut links = Vec::new();
        for (index, cable) in topology.cables.iter().enumerate() {
            let ends = [0, 1].map(|end| {
                let ports: &mut Vec<_> = &mut by_port[cable.ends[end]];
                ports.push(Place::End(index, end));
                (cable.ends[end], PortId(ports.len() as u16))
            });
            links.push(Link { ends, costs: cable.costs, is_up: true, is_silent: false, mtu_bytes: usize::MAX });
        }
        let mut lans = Lans::default();
        for (lan, wanted) in topology.lans.iter().enumerate() {
            let mut link = Lan::default();
            for (at, wanted) in wanted.iter().enumerate() {
                let ports: &mut Vec<_> = &mut by_port[wanted.node];
                ports.push(Place::Seat((lan, at)));
                let port = PortId(ports.len() as u16);
                link.members.push(Attached { wanted: wanted.clone(), port, is_up: true, part: 0 });
            }
            lans.all.push(link);
        }
        let node = |number| Node {
            bridge: None,
            system: system(number),
            root_priority: 0x8000,
            trees_max: 1,
            trees_used: 1,
            wish: Wish::Any,
            nicknames_wanted: 1,
            vlans: VlanSet::default(),
            listeners: Listeners::to_all(),
            overloaded: false,
            lsp_buffer_bytes: PDU_LEN_MIN,
            keys: None,
            nicknames: Vec::new(),
            data_plane: Forwarding::default(),
            access: BTreeMap::new(),
            changes: 0,
            wake_at_ns: None,
            stalled_until_ns: 0,
        };
        Self {
            now_ns: 0,
            nodes: (0..topology.nodes).map(node).collect(),
            lives: vec![0; links.len()],
            links,
            lans,
            faults: Faults::default(),
            ignorant: BTreeSet::new(),
            data_loss: 0,
            timing,
            mtu_test: false,
            pdus: 0,
            changed_ns: 0,
            traffic: Traffic::default(),
            by_port,
            queue: BTreeMap::new(),
            rng: Pcg64Mcg::seed_from_u64(seed),
            outputs: Vec::new(),
        }
    }

    /// Starts the RBridge, anew if it runs. With `remembers` it wants the nickname that it had.
    pub(crate) fn boot(&mut self, node: usize, remembers: bool) {
        self.start(node, remembers, None);
    }

    /// Starts it anew as one whose data plane worked on, with the neighbours that it had.
    pub(crate) fn restart(&mut self, node: usize) {
        if self.nodes[node].bridge.is_some() {
            let former = self.crash(node);
            self.resume(node, former);
        }
    }

    /// Its daemon is gone, its data plane works on. Says what it leaves.
    pub(crate) fn crash(&mut self, node: usize) -> Vec<Former> {
        let bridge = self.nodes[node].bridge.take().expect("it runs");
        let mut ports: BTreeMap<PortId, Former> = BTreeMap::new();
        for (port, adjacency) in bridge.adjacencies().filter(|(_, with)| with.state == AdjacencyState::Report) {
            let carried = self.nodes[node].access.get(&port).cloned().unwrap_or_default();
            let designated_vlan = bridge.shared_link(port).map_or(0, |link| link.designated_vlan);
            let new = Former { port, neighbors: Vec::new(), carried, designated_vlan };
            let former = ports.entry(port).or_insert(new);
            former.neighbors.push(adjacency.mac);
        }
        self.nodes[node].access.retain(|port, _| ports.contains_key(port));
        self.nodes[node].wake_at_ns = None;
        ports.into_values().collect()
    }

    /// Starts it anew with that.
    pub(crate) fn resume(&mut self, node: usize, former: Vec<Former>) {
        self.start(node, true, Some(former));
    }

    fn start(&mut self, node: usize, remembers: bool, restarted: Option<Vec<Former>>) {
        let ports = &self.by_port[node];
        let config = |(at, place): (usize, &Place)| {
            let id = PortId(at as u16 + 1);
            let (cost, designated_vlan, link) = match place {
                Place::End(link, end) => (self.links[*link].costs[*end], 1, LinkKind::PointToPoint),
                Place::Seat(seat) => {
                    let wanted = &self.lans.member(*seat).wanted;
                    (wanted.cost, wanted.designated_vlan, LinkKind::Shared(wanted.config.clone()))
                }
            };
            let mtu_test = self.mtu_test;
            PortConfig { id, mac: mac(node, id), cost, link, designated_vlan, mtu_test, offers_elision: false }
        };
        let state = &self.nodes[node];
        let last = state.nicknames.iter().filter(|_| remembers).map(|last| Wish::Last(*last));
        let mut wishes: Vec<Wish> = last.collect();
        if wishes.is_empty() {
            wishes.push(state.wish);
        }
        wishes.resize(state.nicknames_wanted, Wish::Any);
        let config = Config {
            system: state.system,
            hostname: format!("rb{node}"),
            ports: ports.iter().enumerate().map(config).collect(),
            nicknames: wishes,
            root_priority: state.root_priority,
            vlans: state.vlans.clone(),
            trees_max: state.trees_max,
            trees_used: state.trees_used,
            lsp_buffer_bytes: state.lsp_buffer_bytes,
            keys: state.keys.clone(),
            timing: self.timing,
            bounds: Bounds::default(),
        };
        let rng = Pcg64::seed_from_u64(self.rng.random());
        let state = &mut self.nodes[node];
        state.bridge = Some(match restarted {
            Some(ports) => RBridge::restarted(config, rng, ports),
            None => {
                state.access.clear();
                RBridge::new(config, rng)
            }
        });
        state.wake_at_ns = None;
        state.data_plane = Forwarding::default();
        let overloaded = state.overloaded;
        self.handle(node, Input::Deadline);
        if overloaded {
            self.handle(node, Input::Overload(true));
        }
        self.set_listeners(node, self.nodes[node].listeners.clone());
        for (at, place) in self.by_port[node].clone().into_iter().enumerate() {
            let is_up = match place {
                Place::End(link, _) => self.links[link].is_up,
                Place::Seat(seat) => self.lans.member(seat).is_up,
            };
            if is_up {
                self.handle(node, Input::PortUp(PortId(at as u16 + 1)));
            }
            if let Place::Seat(seat) = place {
                self.tell_root(seat);
            }
        }
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self, node: usize) {
        let state = &mut self.nodes[node];
        (state.bridge, state.wake_at_ns) = (None, None);
        state.data_plane = Forwarding::default();
        state.access.clear();
    }

    /// Gives it other timers and keys while it runs.
    pub(crate) fn configure(&mut self, node: usize, timing: Timing, keys: Option<KeyChain>) {
        self.handle(node, Input::Configure { timing, keys });
    }

    /// Ends it politely; it is there until it has said its last Hello.
    pub(crate) fn leave(&mut self, node: usize) {
        self.handle(node, Input::Leave);
    }

    pub(crate) fn set_link(&mut self, link: usize, is_up: bool) {
        if std::mem::replace(&mut self.links[link].is_up, is_up) == is_up {
            return;
        }
        self.lives[link] += 1;
        for (node, port) in self.links[link].ends {
            let input = if is_up { Input::PortUp(port) } else { Input::PortDown(port) };
            self.handle(node, input);
        }
    }

    pub(crate) fn set_overload(&mut self, node: usize, overloaded: bool) {
        self.nodes[node].overloaded = overloaded;
        self.handle(node, Input::Overload(overloaded));
    }

    pub(crate) fn set_vlans(&mut self, node: usize, vlans: VlanSet) {
        self.nodes[node].vlans = vlans.clone();
        self.handle(node, Input::Interest(vlans));
    }

    pub(crate) fn set_listeners(&mut self, node: usize, listeners: Listeners) {
        self.nodes[node].listeners = listeners.clone();
        self.handle(node, Input::Listeners(listeners));
    }

    /// Lets everything happen up to `until_ns`.
    pub(crate) fn run_to(&mut self, until_ns: u64) {
        while let Some(at_ns) = self.queue.first_key_value().map(|(at_ns, _)| *at_ns).filter(|at_ns| *at_ns <= until_ns)
        {
            self.now_ns = at_ns;
            for what in self.queue.remove(&at_ns).unwrap_or_default() {
                self.happen(what);
            }
        }
        self.now_ns = until_ns;
    }

    /// Its daemon gets no turn for so long.
    pub(crate) fn stall(&mut self, node: usize, duration_ns: u64) {
        self.nodes[node].stalled_until_ns = self.now_ns + duration_ns;
    }

    /// When the daemon's turn is, if it is not now. As in a daemon, what has come in is read before its own deadlines.
    fn later(&self, node: usize, what: &What) -> Option<u64> {
        let until_ns = self.nodes[node].stalled_until_ns;
        (until_ns > self.now_ns).then_some(until_ns + u64::from(matches!(what, What::Wake { .. })))
    }

    fn happen(&mut self, what: What) {
        let concerned = match what {
            What::Wake { node } => Some(node).filter(|node| self.nodes[*node].wake_at_ns == Some(self.now_ns)),
            What::Frame { link, end, .. } => Some(self.links[link].ends[end].0),
            // Nobody gets no turn in campuses with shared links.
            What::Shared { .. } => None,
            // A data plane needs no daemon's turn.
            What::Traveller { .. } => None,
            What::Data { link, end, egress, .. } => {
                let node = self.links[link].ends[end].0;
                self.nodes[node].nicknames.contains(&egress).then_some(node)
            }
        };
        if let Some((node, at_ns)) = concerned.and_then(|node| Some((node, self.later(node, &what)?))) {
            if matches!(what, What::Wake { .. }) {
                self.nodes[node].wake_at_ns = Some(at_ns);
            }
            return self.queue.entry(at_ns).or_default().push(what);
        }
        match what {
            What::Wake { node } => {
                if self.nodes[node].wake_at_ns == Some(self.now_ns) {
                    self.nodes[node].wake_at_ns = None;
                    self.handle(node, Input::Deadline);
                }
            }
            What::Frame { link, end, life, source, destination, pdu } => {
                if self.lives[link] == life {
                    let (node, port) = self.links[link].ends[end];
                    self.pdus += 1;
                    self.handle(node, Input::Pdu { port, vlan: 1, destination, source, bytes: &pdu });
                }
            }
            What::Shared { from, vlan, destination, pdu } => self.arrive(from, vlan, destination, &pdu),
            What::Data { link, end, life, egress, frame } => {
                if self.lives[link] == life {
                    self.forward(self.links[link].ends[end], egress, &frame);
                }
            }
            What::Traveller { to, source, life, traveller } => {
                if life.is_none_or(|(link, life)| self.lives[link] == life) {
                    self.arrive_as(to, source, traveller);
                }
            }
        }
    }

    /// Sends copies of a frame over a port: on a shared link to the port with this address, or to everybody.
    pub(crate) fn send_on(&mut self, node: usize, port: PortId, to: Option<MacAddress>, traveller: Traveller) {
        let life = match self.by_port[node][usize::from(port.0) - 1] {
            Place::End(link, _) if !self.links[link].is_up || self.links[link].is_silent => return,
            Place::End(link, _) => Some((link, self.lives[link])),
            Place::Seat(_) => None,
        };
        let (source, at_ns) = (mac(node, port), self.now_ns + HOP_NS);
        let is_meant = |end: &(usize, PortId)| to.is_none_or(|to| to == mac(end.0, end.1));
        let ends = self.far_ends(node, port).0.into_iter().filter(is_meant);
        let copies = ends.map(|to| What::Traveller { to, source, life, traveller });
        let copies: Vec<What> = copies.collect();
        self.queue.entry(at_ns).or_default().extend(copies);
    }

    /// Seats of those that hear end stations' frames of a node's port on a shared link, itself included.
    pub(crate) fn shared_domain(&self, node: usize, port: PortId) -> Vec<(usize, PortId)> {
        let Place::Seat(seat) = self.by_port[node][usize::from(port.0) - 1] else { return Vec::new() };
        let members = self.lans.domain(seat).into_iter().map(|seat| self.lans.member(seat));
        members.map(|member| (member.wanted.node, member.port)).collect()
    }

    /// What a data plane does: an accepted frame goes up or on.
    fn forward(&mut self, (node, port): (usize, PortId), egress: u16, frame: &Arc<[u8]>) {
        let state = &self.nodes[node];
        if state.nicknames.contains(&egress) {
            return self.handle(node, Input::Channel { frame });
        }
        let Some(hop) = self.accepts(node, port).then(|| state.data_plane.routes.get(&egress)?.first()).flatten()
        else {
            return;
        };
        let mut onward = frame.to_vec();
        onward[HOP_COUNT_AT] -= 1;
        let port = hop.port;
        self.transmit_data(node, port, egress, &onward.into());
    }

    /// Whether a data plane takes frames from the neighbour on this port (step 8 of RFC 6325 section 4.6.2).
    pub(crate) fn accepts(&self, node: usize, port: PortId) -> bool {
        let Some(bridge) = &self.nodes[node].bridge else { return false };
        bridge.adjacencies().any(|(at, adjacency)| at == port && adjacency.state == AdjacencyState::Report)
    }

    /// The other ends of a port's link, and whether it is a shared one.
    pub(crate) fn far_ends(&self, node: usize, port: PortId) -> (Vec<(usize, PortId)>, bool) {
        match self.by_port[node][usize::from(port.0) - 1] {
            Place::End(link, end) => (vec![self.links[link].ends[1 - end]], false),
            Place::Seat(seat) => {
                let others = self.lans.domain(seat).into_iter().filter(|other| *other != seat);
                (others.map(|other| self.lans.member(other)).map(|to| (to.wanted.node, to.port)).collect(), true)
            }
        }
    }

    fn transmit_data(&mut self, node: usize, port: PortId, egress: u16, frame: &Arc<[u8]>) {
        // No Echoes are sent in campuses with shared links.
        let Place::End(link, end) = self.by_port[node][usize::from(port.0) - 1] else { return };
        if self.links[link].is_up && !self.links[link].is_silent && !self.hits(self.faults.loss + self.data_loss) {
            let (life, frame) = (self.lives[link], Arc::clone(frame));
            let what = What::Data { link, end: 1 - end, life, egress, frame };
            self.queue.entry(self.now_ns + DELAY_NS).or_default().push(what);
        }
    }

    fn handle(&mut self, node: usize, input: Input<'_>) {
        let Some(bridge) = &mut self.nodes[node].bridge else { return };
        let mut outputs = std::mem::take(&mut self.outputs);
        let is_deadline = matches!(input, Input::Deadline);
        bridge.handle(self.now_ns, input, &mut outputs);
        let has_left = bridge.has_left();
        if let Some(at_ns) = bridge.next_deadline_ns() {
            let at_ns = at_ns.max(self.now_ns);
            let state = &mut self.nodes[node];
            if state.wake_at_ns.is_none_or(|planned| planned <= self.now_ns || at_ns < planned) {
                assert!(at_ns > self.now_ns || !is_deadline, "rb{node} has nothing to do at {at_ns} twice");
                state.wake_at_ns = Some(at_ns);
                self.queue.entry(at_ns).or_default().push(What::Wake { node });
            }
        }
        for output in outputs.drain(..) {
            self.carry_out(node, output);
        }
        self.outputs = outputs;
        if has_left {
            self.kill(node);
        }
    }

    fn carry_out(&mut self, node: usize, output: Output) {
        let state = &mut self.nodes[node];
        match output {
            Output::Send { port, vlan, destination, pdu } => self.transmit(node, (port, vlan), destination, &pdu),
            Output::Echo { port, frame } => {
                let egress = state.nickname().expect("an Echo is addressed to our nickname");
                self.transmit_data(node, port, egress, &frame);
            }
            // Bridges of this campus have no tables of stations.
            Output::Adjacency { .. } | Output::TopologyChange { .. } => {}
            Output::Access { port, vlans } => {
                state.access.insert(port, vlans);
            }
            Output::Nicknames(held) => {
                state.changes += u64::from(state.nicknames != held);
                state.nicknames = held;
            }
            Output::ForwardingChanged => {
                let holds = state.bridge.as_ref().expect("who told it is there").forwarding();
                state.data_plane.clone_from(holds);
                state.changes += 1;
                self.changed_ns = self.now_ns;
            }
        }
    }

    fn transmit(&mut self, node: usize, (port, vlan): (PortId, u16), destination: MacAddress, pdu: &Arc<[u8]>) {
        let (link, end) = match self.by_port[node][usize::from(port.0) - 1] {
            Place::End(link, end) => (link, end),
            Place::Seat(from) => {
                let what = What::Shared { from, vlan, destination, pdu: Arc::clone(pdu) };
                return self.queue.entry(self.now_ns + DELAY_NS).or_default().push(what);
            }
        };
        let is_through =
            self.links[link].is_up && !self.links[link].is_silent && pdu.len() <= self.links[link].mtu_bytes;
        if !is_through || self.hits(self.faults.loss) {
            return;
        }
        let copies = 1 + usize::from(self.hits(self.faults.duplication));
        for _ in 0..copies {
            let (source, pdu) = (mac(node, port), Arc::clone(pdu));
            let frame = What::Frame { link, end: 1 - end, life: self.lives[link], source, destination, pdu };
            self.queue.entry(self.now_ns + DELAY_NS).or_default().push(frame);
        }
    }

    /// Everybody on a shared link gets its copy, or loses it, alone; who does not have the VLAN sees nothing.
    fn arrive(&mut self, from: Seat, vlan: u16, destination: MacAddress, pdu: &Arc<[u8]>) {
        let sender = self.lans.member(from);
        let (sender, source) = (sender.wanted.node, mac(sender.wanted.node, sender.port));
        if self.lans.all[from.0].blocked.contains(vlan) {
            return;
        }
        for seat in self.lans.domain(from).into_iter().filter(|seat| *seat != from) {
            let to = self.lans.member(seat);
            let (node, port, has_vlan) = (to.wanted.node, to.port, to.wanted.config.enabled.contains(vlan));
            let copies =
                if self.hits(self.faults.loss) { 0 } else { 1 + u32::from(self.hits(self.faults.duplication)) };
            let is_understood = ![sender, node].iter().any(|node| self.ignorant.contains(node));
            let pdu = if is_understood { Arc::clone(pdu) } else { without_restart(pdu) };
            for _ in 0..if has_vlan { copies } else { 0 } {
                self.pdus += 1;
                self.handle(node, Input::Pdu { port, vlan, destination, source, bytes: &pdu });
            }
        }
    }

    /// Somebody on a shared link, whom those near a seat hear, says what no RBridge would.
    pub(crate) fn forge_shared(&mut self, near: Seat, vlan: u16, pdu: &[u8]) {
        for seat in self.lans.domain(near) {
            let to = self.lans.member(seat);
            let (node, port, source) = (to.wanted.node, to.port, MacAddress([0xee; 6]));
            let input = Input::Pdu { port, vlan, destination: ALL_IS_IS_RBRIDGES, source, bytes: pdu };
            self.handle(node, input);
        }
    }

    /// A port of a shared link goes down or comes up.
    pub(crate) fn set_seat(&mut self, (lan, at): Seat, is_up: bool) {
        let member = &mut self.lans.all[lan].members[at];
        let (node, port) = (member.wanted.node, member.port);
        if std::mem::replace(&mut member.is_up, is_up) != is_up {
            self.handle(node, if is_up { Input::PortUp(port) } else { Input::PortDown(port) });
            self.tell_root((lan, at));
        }
    }

    /// Changes which ports hear each other. All bridges find their root by that, and tell.
    pub(crate) fn rewire(&mut self, change: impl FnOnce(&mut Lans)) {
        change(&mut self.lans);
        let seats: Vec<Seat> = self.lans.seats().collect();
        seats.into_iter().for_each(|seat| self.tell_root(seat));
    }

    /// The bridges of a shared link send a BPDU to a port.
    fn tell_root(&mut self, seat: Seat) {
        let member = self.lans.member(seat);
        let (node, port) = (member.wanted.node, member.port);
        if let Some(root) = self.lans.root(seat) {
            self.handle(node, Input::RootBridge { port, root, acknowledges_change: true });
        }
    }

    /// Puts a frame onto a link, from its end `end`: somebody there says what no RBridge would.
    pub(crate) fn forge(&mut self, link: usize, end: usize, pdu: &[u8]) {
        let ((node, port), life) = (self.links[link].ends[end], self.lives[link]);
        let (source, destination, pdu) = (mac(node, port), ALL_IS_IS_RBRIDGES, pdu.into());
        let frame = What::Frame { link, end: 1 - end, life, source, destination, pdu };
        self.queue.entry(self.now_ns + DELAY_NS).or_default().push(frame);
    }

    fn hits(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.rng.random_range(0..1000) < per_mille
    }
}
