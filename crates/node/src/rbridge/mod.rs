//! `weft node rbridge`: an RBridge of a TRILL campus (RFC 6325).
//!
//! The data path in the kernel forwards and learns by itself ([`weft_datapath::trill`]); the control plane is a machine
//! without IO ([`weft_control::isis`]). The daemon carries IS-IS between its ports and that machine, and what the machine
//! computed into the data path, all of a step at once. With a `pin_dir` the data path works on while the daemon restarts:
//! nickname, routes and trees stay until the first routes that everything known before went into.

mod config;
mod frames;
mod gateway;
mod groups;
mod keys;
mod metrics;
mod plane;
mod ports;
pub mod protocol;
mod settings;
mod show;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rand_pcg::Pcg64;
use rustix::time::{ClockId, clock_gettime};
use tracing::{debug, info, warn};
use weft_control::isis::{
    Adjacency, AdjacencyState, Bounds, Config, Former, Input, KeyChain, LinkKind, Output, PortConfig, PortId, RBridge,
    Role, Served, SharedConfig, Wish, cost_of_rate,
};
use weft_control::tally::Tally;
use weft_control::{Machine, NS_PER_MS, NS_PER_S, counted};
use weft_datapath::trill::abi::OBSERVED;
use weft_datapath::trill::{self, Fib, Place, RBridgeDatapath, XdpMode};
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::SystemId;
use weft_wire::vlan::VlanSet;

use crate::cards::Cards;
use crate::error::NodeError;
use crate::poll::Poller;
use crate::runner::{self, Clock, DaemonKind, Load};
use crate::socket::{self, Nothing};
use crate::stop::Stop;
use crate::sys;
use crate::watch::{Metrics, Readiness};
use frames::Frames;
use groups::Groups;
use plane::{Carried, Neighbor, Neighbors};
use ports::{Port, Ports};
use protocol::{Answer, Request, Shown, What};
use settings::{Kind, Settings, Shared};

pub use config::{
    AuthenticationTable, Capacity, GatewayHost, GatewayTable, GatewayVlan, GroupsTable, KindText, PortTable,
    RBridgeConfig, TimingTable, XdpChoice,
};
pub use keys::parse as parse_keys;
pub use settings::PORTS_MAX;

const FRAMES: u64 = 0;
const LINKS: u64 = 1;
const CHANNEL: u64 = 2;
const BRIDGES: u64 = 3;
const GROUPS: u64 = 4;
const TAGGED: u64 = 5;

/// Between two looks at the ports that are links. The kernel tells a loss of carrier by a message, but it sends no more
/// than one in a second where several links fail together.
const LOOK_NS: u64 = 100 * NS_PER_MS;
/// What comes in before others have their turn.
const BURST: usize = 64;
/// How long an RBridge still forwards after its last Hello: what is on its way has to arrive.
const LEAVE: Duration = Duration::from_millis(100);

counted! {
    /// What the daemon itself could not do, or left undone.
    pub enum IoFault {
        /// An IS-IS frame could not be sent.
        NotSent = "not_sent",
        /// An IS-IS frame came by an interface that is no port.
        NoPort = "no_port",
        /// An IS-IS frame without room for a PDU.
        Truncated = "truncated",
        /// The data path did not take new routes; it is told again.
        NotInstalled = "not_installed",
        /// An interface could not be made a port.
        NotAttached = "not_attached",
        /// A BPDU that names no root of the bridges on a shared link.
        OddBpdu = "odd_bpdu",
        /// A packet of IGMP or MLD that is not whole, or wrong.
        OddListener = "odd_listener",
        /// A question to stations could not be sent.
        NotAsked = "not_asked",
        /// How long stations of shared links are served was not taken; it is told again.
        NotProlonged = "not_prolonged",
        /// Stations could not be forgotten.
        NotForgotten = "not_forgotten",
    }
}

/// Runs an RBridge until it is told to stop. With a `pin_dir` the data path stays at work afterwards, unless a request to
/// stop came by the socket.
///
/// # Errors
/// Any [`NodeError`]: a setting that cannot work, no rights, no eBPF. Then nothing is left behind that was not there.
pub fn run(load: &Load<'_, RBridgeConfig>, stop: &Stop) -> Result<(), NodeError> {
    runner::run::<Daemon>(load, stop)
}

/// Asks the RBridge that listens on `path`.
///
/// # Errors
/// As for [`socket::ask`].
pub fn ask(path: &Path, request: &Request) -> Result<Answer, NodeError> {
    socket::ask(DaemonKind::Rbridge, path, request)
}

struct Daemon {
    control: RBridge,
    datapath: RBridgeDatapath,
    cards: Cards,
    ports: Ports,
    frames: Frames,
    /// Without it all stations get what is for any group.
    groups: Option<Groups>,
    clock: Clock,
    tick_at_ns: u64,
    look_at_ns: u64,
    age_at_ns: u64,
    station_age_s: u32,
    outputs: Vec<Output>,
    /// VLANs of the stations behind other RBridges when the data path was told last.
    served: BTreeMap<u16, Vec<Served>>,
    /// Whether the data path has still to be told.
    is_behind: bool,
    /// Whether a restart that left the data path at work is not over yet.
    resumes: bool,
    io: Tally<IoFault>,
}

impl Daemon {
    fn begin(&mut self) {
        self.tick();
        self.put(Input::Deadline);
        self.tell_groups();
        for place in 0..self.ports.all.len() {
            self.port_begins(place);
        }
        self.settle();
    }

    /// Hands something on to the control plane. What it puts out waits for [`Self::settle`].
    fn put(&mut self, input: Input<'_>) {
        self.control.handle(self.clock.now_ns(), input, &mut self.outputs);
    }

    /// Lets the data path serve end stations of shared links for as long as others believe our last Hello: then they appoint another
    /// forwarder, and a data path whose daemon has gone must have ended by itself.
    fn prolong_access(&mut self) {
        let timing = self.control.config().timing;
        let believed_ns = (u64::from(timing.holding_s()) * NS_PER_S).saturating_sub(timing.hello_ns);
        if let Err(error) = self.datapath.maps().set_access_until(monotonic_ns() + believed_ns) {
            warn!(%error, "shared links");
            self.io.add(IoFault::NotProlonged);
        }
    }

    /// Carries out what the control plane wants: first the data path is told, all at once, then others are.
    fn settle(&mut self) {
        if self.control.next_deadline_ns().is_some_and(|at_ns| at_ns <= self.clock.now_ns()) {
            // Who got no turn for a while first reads what came meanwhile, and then judges who was silent.
            [false, true].into_iter().for_each(|with_tag| self.receive(with_tag));
            self.receive_channel();
            self.put(Input::Deadline);
        }
        let outputs = std::mem::take(&mut self.outputs);
        let is_sent = |output: &Output| {
            matches!(output, Output::Send { .. } | Output::Echo { .. } | Output::TopologyChange { .. })
        };
        self.is_behind |= !outputs.iter().all(is_sent);
        if self.resumes && !self.control.is_restarting() {
            info!(nickname = self.control.nickname(), "everything is known again");
            (self.resumes, self.is_behind) = (false, true);
        }
        if self.is_behind {
            self.is_behind = !self.tell_data_path();
        }
        if self.ports.are_shared() && !self.is_behind && self.control.speaks_on_shared_links() {
            self.prolong_access();
        }
        for output in outputs {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Send { port, vlan, destination, pdu } => {
                let port = self.ports.by_id(port);
                let tag = port.map_or(0, Port::untagged);
                let tag = (tag != 0 && tag != vlan).then_some(vlan);
                let sent = port
                    .and_then(Port::link)
                    .map(|link| self.frames.send(link.index, destination, MacAddress(link.mac), tag, &pdu));
                if !matches!(sent, Some(Ok(()))) {
                    self.io.add(IoFault::NotSent);
                }
            }
            Output::Echo { port, frame } | Output::TopologyChange { port, frame } => {
                let link = self.ports.by_id(port).and_then(Port::link);
                if link.is_none_or(|link| self.frames.send_whole(link.index, &frame).is_err()) {
                    self.io.add(IoFault::NotSent);
                }
            }
            Output::Adjacency { port, neighbor, state, .. } => {
                let interface = self.ports.by_id(port).map(|port| port.settings.interface.as_str());
                info!(interface, %neighbor, ?state, "adjacency");
            }
            Output::Nicknames(held) => info!(?held, "nicknames"),
            Output::Access { port, vlans } => {
                let interface = self.ports.by_id(port).map(|port| port.settings.interface.as_str());
                info!(interface, %vlans, "end stations");
            }
            Output::ForwardingChanged => {}
        }
    }

    /// Whether the data path goes by what is known now.
    fn tell_data_path(&mut self) -> bool {
        let (neighbors, carried, designated) = (self.neighbors(), self.carried(), self.designated_vlans());
        let (nicknames, forwarding) = (self.control.nicknames().collect::<Vec<_>>(), self.control.forwarding());
        let before: Vec<u16> = self.datapath.fib().routes.keys().copied().collect();
        let was_carried = plane::carried(self.datapath.fib());
        let resumes = self.resumes;
        let listeners = self.groups.as_ref().map(Groups::pruned);
        let told = self.datapath.change(|fib| {
            plane::set_carried(fib, &carried);
            plane::set_designated(fib, &designated);
            fib.snoops = listeners.is_some();
            fib.listeners = listeners.unwrap_or_default();
            if resumes {
                plane::keep(fib, &neighbors);
            } else {
                plane::tell(fib, &nicknames, &neighbors, forwarding);
            }
        });
        if let Err(error) = told {
            warn!(%error, "routes");
            self.io.add(IoFault::NotInstalled);
            return false;
        }
        let routes = &self.datapath.fib().routes;
        let gone: Vec<u16> = before.into_iter().filter(|egress| !routes.contains_key(egress)).collect();
        if !gone.is_empty() {
            self.forget(|station| matches!(station.place, Place::RBridge(nickname) if gone.contains(&nickname)));
        }
        self.forget_lost_vlans(&was_carried);
        self.forget_lost_by_others();
        true
    }

    /// Forgets the stations behind RBridges that have ceased to be the forwarders of their VLANs (RFC 6325 section 4.8.3).
    fn forget_lost_by_others(&mut self) {
        let now = self.control.forwarding().served.clone();
        if now == self.served {
            return;
        }
        let before = std::mem::replace(&mut self.served, now.clone());
        self.forget(|station| match station.place {
            Place::RBridge(nickname) => {
                let [before, now] = [&before, &now].map(|all| all.get(&nickname).map_or(&[][..], Vec::as_slice));
                Served::has_lost(before, now, station.vlan)
            }
            _ => false,
        });
    }

    /// Forgets the stations of VLANs that a port of a shared link carries no more (RFC 6325 section 4.8.3).
    fn forget_lost_vlans(&mut self, before: &Carried) {
        let now = plane::carried(self.datapath.fib());
        let is_in = |carried: &Carried, port: u8, vlan| carried.get(&port).is_some_and(|vlans| vlans.contains(vlan));
        if *before != now {
            self.forget(|station| match station.place {
                Place::Port(port) => is_in(before, port, station.vlan) && !is_in(&now, port, station.vlan),
                _ => false,
            });
        }
    }

    /// The VLAN in which RBridges talk on each shared link.
    fn designated_vlans(&self) -> BTreeMap<u8, u16> {
        let of_port = |port: &Port| Some((port.settings.number, self.control.shared_link(port.id())?.designated_vlan));
        self.ports.all.iter().filter_map(of_port).collect()
    }

    /// VLANs that each port of a shared link carries.
    fn carried(&self) -> Carried {
        let of_port = |port: &Port| Some((port.settings.number, self.control.shared_link(port.id())?.carried.clone()));
        self.ports.all.iter().filter_map(of_port).collect()
    }

    /// Neighbours that frames are exchanged with. While a restart is not over, also those that are not heard yet.
    fn neighbors(&self) -> Neighbors {
        let mut neighbors = Neighbors::new();
        if self.resumes {
            let up = self.ports.all.iter().filter(|port| port.is_up());
            let told = up.map(|port| (port.settings.number, ports::neighbors(&self.datapath, port)));
            neighbors.extend(told.filter(|(_, there)| !there.is_empty()));
        }
        let reported = self.control.adjacencies().filter(|(_, adjacency)| adjacency.state == AdjacencyState::Report);
        let told = |adjacency: &Adjacency| Neighbor { mac: adjacency.mac, takes_elided: adjacency.takes_elided };
        for (port, adjacency) in reported {
            let Ok(number) = u8::try_from(port.0) else { continue };
            let there = neighbors.entry(number).or_default();
            there.retain(|former| former.mac != adjacency.mac && self.is_shared(port));
            there.push(told(adjacency));
        }
        neighbors
    }

    fn is_shared(&self, port: PortId) -> bool {
        self.ports.by_id(port).is_some_and(|port| matches!(port.settings.kind, Kind::Shared(_)))
    }

    /// Forgets stations that are no longer there.
    fn forget(&mut self, is_gone: impl Fn(&trill::Station) -> bool) {
        let learned = |station: &trill::Station| station.confidence == OBSERVED && is_gone(station);
        if let Err(error) = self.datapath.maps().forget(learned) {
            warn!(%error, "stations");
            self.io.add(IoFault::NotForgotten);
        }
    }

    fn receive(&mut self, with_tag: bool) {
        for _ in 0..BURST {
            let now_ns = self.clock.now_ns();
            match self.frames.receive(with_tag) {
                Ok(None) => return,
                Ok(Some(frame)) => match self.ports.by_index(frame.ifindex) {
                    Some(port) => {
                        let input = Input::Pdu {
                            port: port.id(),
                            vlan: frame.tag.unwrap_or(port.untagged()),
                            destination: frame.destination,
                            source: frame.source,
                            bytes: frame.pdu,
                        };
                        self.control.handle(now_ns, input, &mut self.outputs);
                    }
                    None => self.io.add(IoFault::NoPort),
                },
                Err(frames::Fault::Truncated) => self.io.add(IoFault::Truncated),
                // An interface that went down says so once.
                Err(frames::Fault::System(error)) => return debug!(%error, "receiving"),
            }
        }
    }

    fn receive_channel(&mut self) {
        for _ in 0..BURST {
            match self.frames.receive_channel() {
                Ok(None) => return,
                Ok(Some(frame)) => {
                    self.control.handle(self.clock.now_ns(), Input::Channel { frame }, &mut self.outputs);
                }
                Err(error) => return debug!(%error, "receiving"),
            }
        }
    }

    /// BPDUs: which bridge is the root of those on a shared link.
    fn receive_bridges(&mut self) {
        for _ in 0..BURST {
            match self.frames.receive_root() {
                Ok(None) => return,
                Ok(Some(None)) => self.io.add(IoFault::OddBpdu),
                Ok(Some(Some((ifindex, root, acknowledges_change)))) => {
                    let Some(port) = self.ports.by_index(ifindex).map(Port::id) else { continue };
                    if self.is_shared(port) {
                        self.put(Input::RootBridge { port, root, acknowledges_change });
                    }
                }
                Err(error) => return debug!(%error, "receiving"),
            }
        }
    }

    /// Turns the data path's clock.
    fn tick(&mut self) {
        self.tick_at_ns = self.clock.now_ns() + NS_PER_S;
        let now_s = monotonic_s();
        if let Err(error) = self.datapath.maps().tick(now_s) {
            warn!(%error, "the data path's clock");
        }
        if let Err(error) = self.datapath.prepare_sets(now_s) {
            warn!(%error, "sets of ports that frames are copied to");
        }
    }

    fn age(&mut self) {
        // Often enough that a station stays a tenth too long at most.
        self.age_at_ns = self.clock.now_ns() + u64::from((self.station_age_s / 10).clamp(1, 30)) * NS_PER_S;
        match self.datapath.maps().age(self.station_age_s) {
            Ok(0) => {}
            Ok(count) => debug!(count, "stations were silent for too long"),
            Err(error) => {
                warn!(%error, "ageing");
                self.io.add(IoFault::NotForgotten);
            }
        }
    }
}

impl runner::Daemon for Daemon {
    const KIND: DaemonKind = DaemonKind::Rbridge;

    type Settings = RBridgeConfig;
    type What = What;
    type Shown = Shown;
    type Item = Nothing;

    fn start(config: &RBridgeConfig) -> Result<Self, NodeError> {
        let settings = Settings::of(config)?;
        let keys = config.authentication.as_ref().map(keys::read).transpose()?;
        let ports = Ports::find(&settings)?;
        ports.check_xdp(config.xdp)?;
        let frames = Frames::open()?;
        let system = settings.system.unwrap_or_else(|| ports.first_system());
        let mut datapath = RBridgeDatapath::load(&trill::RBridgeConfig {
            stations: config.capacity.stations,
            port_stations: config.capacity.port_stations,
            nickname_stations: config.capacity.nickname_stations,
            storm_per_s: config.storm_per_s,
            host_routes: config.capacity.host_routes,
            hash_seed: hash_seed(system),
            mode: match config.xdp {
                XdpChoice::Native => XdpMode::Native,
                XdpChoice::Generic => XdpMode::Generic,
            },
            spread: settings.spread_cpus.clone(),
            pin_dir: config.pin_dir.clone(),
        })?;
        let groups = settings.groups.map(|groups| Groups::open(groups, &ports, &datapath)).transpose()?;
        let is_fresh = datapath.fib().ports.is_empty();
        let mut cards = Cards::open(&config.socket)?;
        let begun = attach(&mut datapath, &mut cards, &ports, &settings)
            .and_then(|()| control(config, &settings, (system, keys), &ports, &datapath));
        let control = match begun {
            Ok(control) => control,
            Err(error) => {
                if is_fresh {
                    // The first error is the one to tell.
                    let _ = datapath.detach().map_err(NodeError::from).and_then(|()| cards.release());
                }
                return Err(error);
            }
        };
        if let Some(keys) = &control.config().keys {
            info!(?keys, "IS-IS is authenticated");
        }
        let resumes = control.is_restarting();
        if resumes {
            info!("data path of an earlier run taken over");
        }
        let mut daemon = Self {
            control,
            datapath,
            cards,
            ports,
            frames,
            groups,
            clock: Clock::start(),
            tick_at_ns: 0,
            look_at_ns: 0,
            age_at_ns: 0,
            station_age_s: settings.station_age_s,
            outputs: Vec::new(),
            served: BTreeMap::new(),
            is_behind: true,
            resumes,
            io: Tally::default(),
        };
        daemon.begin();
        Ok(daemon)
    }

    fn ready_line(&self) -> String {
        let Config { hostname, system, .. } = self.control.config();
        format!("RBridge ready: {hostname} (system {system}), {} ports", self.ports.all.len())
    }

    fn watch(&self, poller: &Poller) -> Result<(), NodeError> {
        poller.add(&self.frames, FRAMES)?;
        poller.add(self.frames.tagged(), TAGGED)?;
        poller.add(self.frames.channel(), CHANNEL)?;
        poller.add(self.frames.bridges(), BRIDGES)?;
        self.groups.iter().try_for_each(|groups| poller.add(&groups.snooped, GROUPS))?;
        poller.add(&self.ports, LINKS)
    }

    fn ready(&mut self, token: u64) -> Result<(), NodeError> {
        match token {
            FRAMES => self.receive(false),
            TAGGED => self.receive(true),
            CHANNEL => self.receive_channel(),
            BRIDGES => self.receive_bridges(),
            GROUPS => self.receive_groups(),
            _ => {
                self.ports.drain();
                self.look_at_ports(|_| true);
            }
        }
        self.settle();
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let control = self.control.next_deadline_ns();
        let groups = self.groups.as_ref().and_then(|groups| groups.snooper.next_deadline_ns());
        [control, groups, Some(self.tick_at_ns), Some(self.look_at_ns), Some(self.age_at_ns)]
            .into_iter()
            .flatten()
            .min()
    }

    fn deadline(&mut self) -> Result<(), NodeError> {
        let now_ns = self.clock.now_ns();
        if self.look_at_ns <= now_ns {
            self.look_at_ns = now_ns + LOOK_NS;
            self.look_at_ports(Port::is_link);
        }
        if self.tick_at_ns <= now_ns {
            self.tick();
        }
        if self.age_at_ns <= now_ns {
            self.age();
        }
        self.snoop_in_time();
        self.settle();
        Ok(())
    }

    fn show(&self, what: What) -> Result<Shown, NodeError> {
        self.shown(what)
    }

    fn metrics(&self, to: &mut Metrics) -> Result<(), NodeError> {
        self.list_metrics(to)
    }

    fn readiness(&self) -> Readiness {
        let why = match (self.resumes, self.is_behind) {
            (true, _) => Some("a restart is not over, not everything is known again"),
            (_, true) => Some("the data path has not taken the last routes"),
            _ => None,
        };
        Box::new(move || why.map_or(Ok(()), |why| Err(why.to_owned())))
    }

    fn reload(&mut self, config: &RBridgeConfig) -> Result<Vec<String>, NodeError> {
        let settings = Settings::of(config)?;
        let keys = config.authentication.as_ref().map(keys::read).transpose()?;
        gateway::set(self.datapath.maps(), settings.gateway.as_ref())?;
        self.station_age_s = settings.station_age_s;
        self.age_at_ns = self.clock.now_ns();
        self.put(Input::Configure { timing: settings.timing, keys });
        self.settle();
        Ok(Vec::new())
    }

    /// What is pinned stays at work, unless it is to be removed; then others are told first, and find other ways.
    fn end(mut self, remove: bool) -> Result<(), NodeError> {
        if !remove {
            return Ok(());
        }
        self.put(Input::Leave);
        self.settle();
        runner::serve_until(&mut self, |daemon| daemon.control.has_left())?;
        std::thread::sleep(LEAVE);
        self.datapath.detach()?;
        self.cards.release()
    }
}

/// Makes the interfaces ports, in place of what an earlier run had.
fn attach(
    datapath: &mut RBridgeDatapath,
    cards: &mut Cards,
    ports: &Ports,
    settings: &Settings,
) -> Result<(), NodeError> {
    let former: Vec<u8> = datapath.fib().ports.keys().copied().collect();
    for number in former {
        let port = ports.all.iter().find(|port| port.settings.number == number);
        if port.is_none_or(|port| !ports::is_like(datapath, port)) {
            datapath.remove_port(number)?;
        }
    }
    for port in &ports.all {
        ports::prepare(cards, port)?;
        ports::add(datapath, port)?;
    }
    cards.settle(&ports.needs())?;
    gateway::set(datapath.maps(), settings.gateway.as_ref())
}

/// The control plane, as a new one or as one that goes on.
fn control(
    config: &RBridgeConfig,
    settings: &Settings,
    (system, keys): (SystemId, Option<KeyChain>),
    ports: &Ports,
    datapath: &RBridgeDatapath,
) -> Result<RBridge, NodeError> {
    let last = datapath.fib().nickname;
    let mut vlans = VlanSet::default();
    settings.vlans().for_each(|(first, last)| vlans.add_range(first, last));
    let told = Config {
        system,
        hostname: config.name.clone(),
        ports: ports.all.iter().filter_map(port_config).collect(),
        nicknames: wishes(config, datapath.fib()),
        root_priority: config.root_priority,
        vlans,
        trees_max: config.trees,
        trees_used: config.trees_used,
        lsp_buffer_bytes: config.lsp_buffer_bytes,
        keys,
        timing: settings.timing,
        bounds: Bounds::default(),
    };
    let seed = sys::random_u128().map_err(NodeError::system("reading random bytes"))?;
    let rng = Pcg64::new(seed, u128::from(hash_seed(system)));
    let goes_on = last.is_some() && config.nickname.is_none_or(|configured| Some(configured) == last);
    let known = former(ports, datapath)?;
    Ok(if goes_on && !known.is_empty() { RBridge::restarted(told, rng, known) } else { RBridge::new(told, rng) })
}

/// The nicknames of before are wished for again, where no other one is configured.
fn wishes(config: &RBridgeConfig, fib: &Fib) -> Vec<Wish> {
    let first = match (config.nickname, fib.nickname) {
        (Some(configured), _) => Wish::Configured(configured),
        (None, Some(last)) => Wish::Last(last),
        (None, None) => Wish::Any,
    };
    let others = fib.other_nicknames.iter().filter(|last| config.nickname != Some(**last));
    let mut wishes: Vec<Wish> = std::iter::once(first).chain(others.map(|last| Wish::Last(*last))).collect();
    wishes.resize(config.nicknames.into(), Wish::Any);
    wishes
}

/// What the ports of an earlier run had, as its data path has it. One that has ended serving end stations of shared links by itself
/// does not go on with it: others may serve them by now.
fn former(ports: &Ports, datapath: &RBridgeDatapath) -> Result<Vec<Former>, NodeError> {
    let serves = monotonic_ns() < datapath.maps().access_until()?;
    let carried = plane::carried(datapath.fib());
    let of_port = |port: &Port| Former {
        port: port.id(),
        neighbors: ports::neighbors(datapath, port).iter().map(|neighbor| neighbor.mac).collect(),
        carried: carried.get(&port.settings.number).filter(|_| serves).cloned().unwrap_or_default(),
        designated_vlan: plane::designated_vlan(datapath.fib(), port.settings.number),
    };
    let links = ports.all.iter().filter(|port| port.is_link() && port.is_up());
    Ok(links.map(of_port).filter(|former| !former.neighbors.is_empty()).collect())
}

/// Without cost or rate a link counts as one of 10 Gbit/s.
const USUAL_RATE_BPS: u64 = 10_000_000_000;

fn port_config(port: &Port) -> Option<PortConfig> {
    let (cost, link, designated_vlan, mtu_test, offers_elision) = match &port.settings.kind {
        Kind::Link { cost, designated_vlan, mtu_test, elide } => {
            (*cost, LinkKind::PointToPoint, *designated_vlan, *mtu_test, *elide)
        }
        Kind::Shared(shared) => {
            (shared.cost, LinkKind::Shared(shared_config(shared)), shared.designated_vlan, shared.mtu_test, false)
        }
        Kind::Native { .. } => return None,
    };
    Some(PortConfig {
        id: port.id(),
        mac: MacAddress(port.link()?.mac),
        cost: cost.unwrap_or_else(|| cost_of_rate(port.rate_bps.unwrap_or(USUAL_RATE_BPS))),
        link,
        designated_vlan,
        mtu_test,
        offers_elision,
    })
}

fn shared_config(shared: &Shared) -> SharedConfig {
    SharedConfig {
        priority: shared.priority,
        enabled: shared.enabled.clone(),
        announcing: shared.announcing.clone(),
        role: if shared.serves_stations { Role::Hybrid } else { Role::Trunk },
    }
}

/// Unlike other RBridges', and the same after every start (SplitMix64's last step).
fn hash_seed(system: SystemId) -> u32 {
    let [a, b, c, d, e, f] = system.0;
    let mut mixed = u64::from_be_bytes([0, 0, a, b, c, d, e, f]).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) as u32
}

/// Seconds of a clock that does not begin anew with the daemon.
fn monotonic_s() -> u32 {
    clock_gettime(ClockId::Monotonic).tv_sec as u32
}

/// The same in nanoseconds, as the programs read it.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * NS_PER_S + now.tv_nsec.cast_unsigned()
}
