//! An RBridge's data path: ingress, transit, egress and distribution trees on XDP (RFC 6325 section 4.6, RFC 7780).
//!
//! [`RBridgeDatapath`] is loaded once for an RBridge; its ports come and go. What it forwards by is a [`Fib`], which
//! [`RBridgeDatapath::change`] replaces in one step, so that no frame meets half of a change and filters are in place
//! before anything is sent by them (RFC 6325 section 4.5.2). Where stations are it learns by itself ([`stations`]); the
//! daemon turns its clock ([`RBridgeMaps::tick`]), lets it forget, and adds what it knows otherwise.
//!
//! What the daemon has to see the kernel hands on as if there were no program: TRILL IS-IS, ESADI and channel messages,
//! BPDUs. A packet socket on the interface gets them.
//!
//! On veth: the peer of every port needs a program or GRO, or the kernel drops what is sent to it; hosts behind native
//! ports must not leave checksums (`tx off`) or tags (`txvlan off`) to their interface.

pub mod abi;
pub(crate) mod attach;
mod copiers;
mod fib;
mod groups;
mod maps;
mod sets;
mod shares;
mod spread;
mod stations;
mod tap;
mod told;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use libbpf_rs::Object;
use weft_wire::ethernet::MacAddress;

pub use attach::XdpMode;
pub use fib::{Elision, Fib, Hop, Port, PortKind, Tree};
pub use maps::{HostRoute, PortCounters, RBridgeMaps};
pub use shares::OwnTrees;
pub use spread::CLUSTERS;
pub use stations::{Place, Station};
pub use tap::{Tap, Tapped};
pub use told::{Snooped, Told};

use crate::error::DatapathError;
use crate::frame::{self, FrameOutput};
use crate::pin::{self, PinDir};
use crate::table::Table;
use crate::{interface, object};
use attach::PortLink;
use copiers::Copiers;
use sets::Sets;

const MAPS: [&str; 14] = [
    maps::FIBS[0],
    maps::FIBS[1],
    maps::STATE,
    maps::ACCESS,
    maps::STATIONS,
    maps::LEARNED,
    maps::FORGOTTEN,
    maps::HOST_ROUTES,
    maps::COUNTERS,
    PORTS,
    COPIES,
    tap::RING,
    tap::EVERY,
    told::RING,
];
const PORTS: &str = "trill_ports";
const COPIES: &str = "trill_copy_ports";
/// Run on each copy.
const COPY: &str = "trill_copy";
/// Run on each frame that is finished, where those between RBridges leave with a tag.
const OUTER_TAG: &str = "trill_outer_tag";

/// How an RBridge's data path is set up.
#[derive(Clone, Debug)]
pub struct RBridgeConfig {
    /// How many stations it can know; more are not learned, and frames for them go everywhere.
    pub stations: u32,
    /// How many of them are learned behind one port.
    pub port_stations: u32,
    /// How many of them are learned behind one other RBridge. Behind all others it is three quarters of `stations` at most.
    pub nickname_stations: u32,
    /// Frames for groups and unknown stations that one port may send per second; 0: any number.
    pub storm_per_s: u32,
    /// How many hosts its gateway can know.
    pub host_routes: u32,
    /// Seed of the hash that chooses among next hops; unlike other RBridges'.
    pub hash_seed: u32,
    /// Where the programs run.
    pub mode: XdpMode,
    /// CPUs that frames of links are spread over by egress nickname; none: each is worked on where it came in.
    pub spread: Vec<u32>,
    /// Where maps and links are pinned, in a mounted bpffs; `None`: they end with the process.
    pub pin_dir: Option<PathBuf>,
}

impl Default for RBridgeConfig {
    fn default() -> Self {
        Self {
            stations: 16_384,
            port_stations: 4096,
            nickname_stations: 4096,
            storm_per_s: 0,
            host_routes: 4096,
            hash_seed: 0,
            mode: XdpMode::Native,
            spread: Vec::new(),
            pin_dir: None,
        }
    }
}

impl RBridgeConfig {
    /// A tenth of a second's frames may come at once.
    fn limits(&self) -> abi::TrillLimits {
        let storm_interval_ns = 1_000_000_000_u64.checked_div(self.storm_per_s.into()).unwrap_or(0);
        abi::TrillLimits {
            storm_interval_ns,
            storm_burst_ns: 100_000_000,
            port_stations: self.port_stations,
            nickname_stations: self.nickname_stations,
            // The rest is kept for stations of our own ports.
            far_stations: self.stations - self.stations / 4,
            reserved: 0,
        }
    }
}

/// A port to be.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Its interface, in the caller's network namespace.
    pub interface: String,
    pub mac: MacAddress,
    /// The interface's MTU, bytes.
    pub mtu: u32,
    /// What is behind it.
    pub kind: PortKind,
}

/// Loaded programs, their tables, and the ports that they are attached to.
#[derive(Debug)]
pub struct RBridgeDatapath {
    object: Object,
    maps: RBridgeMaps,
    sets: Sets,
    fib: Fib,
    mode: XdpMode,
    /// Whether links hand their frames to other CPUs.
    spreads: bool,
    links: Vec<(u8, PortLink)>,
    pins: Option<PinDir>,
    /// The port that loopback stands for, see [`Self::run`].
    loopback: Option<u8>,
}

impl RBridgeDatapath {
    /// Loads the programs. With pins of an earlier run everything goes on as it was: what is forwarded by, where stations
    /// are, counters; [`Self::fib`] tells. Ports are attached anew without a gap by [`Self::add_port`].
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load(config: &RBridgeConfig) -> Result<Self, DatapathError> {
        let pins = config.pin_dir.as_deref().map(PinDir::create).transpose()?;
        let copiers = Copiers::of_this_process()?;
        let object = load_object(config, &copiers, pins.as_ref())?;
        copiers.begin(&object)?;
        let maps = RBridgeMaps::of_object(&object)?;
        let sets = Sets::of_object(&object)?;
        let spreads = !config.spread.is_empty();
        if spreads {
            spread::begin(&object, &config.spread)?;
        }
        let mut datapath = Self {
            object,
            maps,
            sets,
            fib: Fib::default(),
            mode: config.mode,
            spreads,
            links: Vec::new(),
            pins,
            loopback: None,
        };
        datapath.maps.forget(|_| false)?;
        datapath.maps.forget_what_was_found()?;
        match datapath.maps.fib()? {
            // Who listened to which groups is not read back: all get them until it is known again.
            Some(running) => {
                datapath.install(running)?;
                // Before a program of this run is at work: a port whose interface has vanished gets none until it is set anew.
                datapath.fib.ports.keys().for_each(|number| drop(datapath.set_devices(*number)));
            }
            None => datapath.install(Fib {
                hop_count: weft_wire::trill::HOP_COUNT_MAX,
                hash_seed: config.hash_seed,
                ..Fib::default()
            })?,
        }
        Ok(datapath)
    }

    /// What frames are forwarded by.
    pub fn fib(&self) -> &Fib {
        &self.fib
    }

    /// Changes what frames are forwarded by, all at once: every frame meets either the old or the new table.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for what cannot be, then nothing is changed; or [`DatapathError::Map`].
    pub fn change(&mut self, edit: impl FnOnce(&mut Fib)) -> Result<(), DatapathError> {
        let mut fib = self.fib.clone();
        edit(&mut fib);
        if fib == self.fib {
            return Ok(());
        }
        let (before, after) = (ports_with_tags(&self.fib), ports_with_tags(&fib));
        self.install(fib)?;
        let is_there = |number: &&u8| self.fib.ports.contains_key(number);
        before.symmetric_difference(&after).filter(is_there).try_for_each(|number| self.set_devices(*number))
    }

    /// What is said about IP multicast groups, while [`Fib::snoops`] is set.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn snooped(&self) -> Result<Snooped, DatapathError> {
        Snooped::of_object(&self.object)
    }

    /// Tables, stations and counters.
    pub fn maps(&self) -> &RBridgeMaps {
        &self.maps
    }

    /// Makes an interface of the caller's network namespace port `number` (1 to 63) and attaches the program to it. A
    /// program of an earlier run is replaced in place, and a link that is told without a neighbour keeps those it has.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn add_port(&mut self, number: u8, port: &PortConfig) -> Result<(), DatapathError> {
        self.set_port(number, port)?;
        let ifindex = self.fib.ports[&number].ifindex;
        let program = object::program(&self.object, program_of(&port.kind, self.spreads));
        let pin = self.pins.as_ref().map(|pins| pins.path_of(&pin_name(number)));
        self.links.retain(|(other, _)| *other != number);
        let link = PortLink::attach(&program, ifindex, &port.interface, self.mode, pin.as_deref())?;
        self.links.push((number, link));
        Ok(())
    }

    /// The same without a program: for [`Self::run`].
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn set_port(&mut self, number: u8, port: &PortConfig) -> Result<(), DatapathError> {
        let ifindex = interface::index_of(&port.interface)?;
        let mut kind = port.kind.clone();
        let before = self.fib.ports.get(&number).filter(|before| before.ifindex == ifindex).map(|before| &before.kind);
        if let (
            PortKind::Link { neighbor: new @ None, elision, .. },
            Some(PortKind::Link { neighbor, elision: former, .. }),
        ) = (&mut kind, before)
        {
            *new = *neighbor;
            // What was agreed stays so; what is no longer offered is not.
            if *elision == Elision::Offered {
                *elision = (*former).max(Elision::Offered);
            }
        }
        if let (
            PortKind::Shared { carried: new, neighbors, designated_vlan, .. },
            Some(PortKind::Shared { carried, neighbors: former, designated_vlan: agreed, .. }),
        ) = (&mut kind, before)
        {
            (*new, *neighbors, *designated_vlan) = (carried.clone(), former.clone(), *agreed);
        }
        let entry = Port { ifindex, mac: port.mac, mtu: port.mtu, kind };
        // First the tables, so that a refused port changes nothing; frames for a port that is not there yet are dropped.
        self.change(|fib| drop(fib.ports.insert(number, entry)))?;
        self.set_devices(number)?;
        self.sets.set_port(number, Some((ifindex, &self.fib.ports[&number].kind)), &self.object)
    }

    /// Gives sets of ports that frames were copied to devmaps of their own, so that nothing is copied for the other ports. Call it
    /// every second, with the clock of [`RBridgeMaps::tick`], in the ports' network namespace.
    ///
    /// # Errors
    /// [`DatapathError::Map`]; then frames are copied for all ports.
    pub fn prepare_sets(&mut self, now_s: u32) -> Result<(), DatapathError> {
        self.sets.prepare(&self.object, &self.fib, now_s)
    }

    /// What leaves by a port leaves by its interface.
    fn set_devices(&self, number: u8) -> Result<(), DatapathError> {
        let Port { ifindex, kind, .. } = &self.fib.ports[&number];
        let (is_link, is_native) = roles(kind);
        self.set_device(PORTS, number.into(), *ifindex, kind.tags_trill().then_some(OUTER_TAG))?;
        for (is_one, place) in [(is_link, copies_to_link(number)), (is_native, copies_to_native(number))] {
            if is_one {
                self.set_device(COPIES, place, *ifindex, Some(COPY))?;
            } else {
                let _none = Table::of(&self.object, COPIES)?.delete(&place);
            }
        }
        Ok(())
    }

    /// Takes a port away, and all routes and branches that lead by it.
    ///
    /// # Errors
    /// [`DatapathError::Program`] or [`DatapathError::Map`].
    pub fn remove_port(&mut self, number: u8) -> Result<(), DatapathError> {
        self.change(|fib| {
            fib.ports.remove(&number);
            fib.listeners.remove(&number);
            fib.routes.values_mut().for_each(|hops| hops.retain(|hop| hop.port != number));
            fib.routes.retain(|_, hops| !hops.is_empty());
            for tree in fib.trees.values_mut() {
                tree.branches.remove(&number);
                tree.listeners.remove(&number);
                tree.rpf.retain(|_, port| *port != number);
            }
        })?;
        for (map, place) in
            [(PORTS, number.into()), (COPIES, copies_to_link(number)), (COPIES, copies_to_native(number))]
        {
            // An interface that has vanished has taken its entry with it.
            let _gone = Table::of(&self.object, map)?.delete(&place);
        }
        self.sets.set_port(number, None, &self.object)?;
        let (gone, kept) = self.links.drain(..).partition(|(other, _)| *other == number);
        self.links = kept;
        let gone: Vec<(u8, PortLink)> = gone;
        gone.into_iter().try_for_each(|(_, link)| link.detach())?;
        self.pins.as_ref().map_or(Ok(()), |pins| pin::remove_pin(&pins.path_of(&pin_name(number))))
    }

    /// One frame as if it had come by a port, without a network: verdict and frame. Nothing may be attached, because the
    /// port stands in for loopback from then on.
    ///
    /// # Errors
    /// [`DatapathError::Config`] if there is no such port; [`DatapathError::Program`] if the kernel refuses the frame, for
    /// example for being shorter than 14 bytes.
    pub fn run(&mut self, number: u8, bytes: &[u8]) -> Result<FrameOutput, DatapathError> {
        let kind = self.arrive_by(number)?;
        frame::run_xdp(&self.program(&kind), bytes)
    }

    /// Makes loopback stand for a port; what the port is.
    ///
    /// # Errors
    /// [`DatapathError::Config`] if there is no such port.
    pub fn arrive_by(&mut self, number: u8) -> Result<PortKind, DatapathError> {
        let Some(port) = self.fib.ports.get(&number) else {
            return Err(DatapathError::Config { field: "port", why: format!("there is no port {number}") });
        };
        let kind = port.kind.clone();
        if self.loopback != Some(number) {
            self.maps.put_port_of(LOOPBACK, number)?;
            self.loopback = Some(number);
        }
        Ok(kind)
    }

    /// The tap: one frame in `every`, by chance.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn tap(&self, every: u32) -> Result<Tap, DatapathError> {
        Tap::of_maps(object::map_handle(&self.object, tap::RING)?, Table::of(&self.object, tap::EVERY)?, every)
    }

    /// Takes the programs off all ports and removes the pins. Dropping instead leaves a pinned data path at work.
    ///
    /// # Errors
    /// [`DatapathError::Program`] or [`DatapathError::Pin`].
    pub fn detach(mut self) -> Result<(), DatapathError> {
        let mut names: Vec<String> = Vec::new();
        for (number, link) in self.links.drain(..) {
            link.detach()?;
            names.push(pin_name(number));
        }
        let Some(pins) = self.pins.take() else { return Ok(()) };
        // Also those of ports that an earlier run had and this one did not take over.
        names.extend(self.fib.ports.keys().map(|number| pin_name(*number)));
        pins.remove(&names.iter().map(String::as_str).chain(MAPS).collect::<Vec<&str>>())
    }

    /// The program of a port of this kind, to be measured.
    pub fn program(&self, kind: &PortKind) -> libbpf_rs::ProgramMut<'_> {
        object::program(&self.object, program_of(kind, self.spreads))
    }

    fn install(&mut self, fib: Fib) -> Result<(), DatapathError> {
        self.maps.install(&fib)?;
        (self.fib, self.loopback) = (fib, None);
        Ok(())
    }

    fn set_device(
        &self,
        map: &'static str,
        place: u32,
        ifindex: u32,
        program: Option<&str>,
    ) -> Result<(), DatapathError> {
        let value = object::device(ifindex, program.map(|name| object::program(&self.object, name)).as_ref());
        Table::of(&self.object, map)?.put_bytes(&place, &value)
    }
}

/// Whether a port of this kind gets TRILL frames, and whether those of end stations.
fn roles(kind: &PortKind) -> (bool, bool) {
    match kind {
        PortKind::Native { .. } => (false, true),
        PortKind::Link { .. } => (true, false),
        PortKind::Shared { .. } => (true, true),
    }
}

/// Ports that frames between RBridges leave by with a tag.
fn ports_with_tags(fib: &Fib) -> BTreeSet<u8> {
    fib.ports.iter().filter(|(_, port)| port.kind.tags_trill()).map(|(number, _)| *number).collect()
}

fn copies_to_link(number: u8) -> u32 {
    number.into()
}

fn copies_to_native(number: u8) -> u32 {
    abi::TRILL_PORTS + u32::from(number)
}

/// Sends what leaves by a port of an RBridge, whose data path is pinned at `pins`, to a device ([`object::device`]), until the
/// RBridge sets up the port anew.
///
/// # Errors
/// Any [`DatapathError`].
pub fn set_device_of_pinned(pins: &Path, number: u8, device: &[u8; 8]) -> Result<(), DatapathError> {
    Table::pinned(pins, PORTS)?.put_bytes(&u32::from(number), device)
}

/// Index of the loopback interface in every network namespace.
const LOOPBACK: u32 = 1;

fn program_of(kind: &PortKind, spreads: bool) -> &'static str {
    match kind {
        PortKind::Native { .. } => "trill_native",
        PortKind::Shared { .. } => "trill_shared",
        PortKind::Link { .. } if spreads => "trill_spread_link",
        PortKind::Link { elision: Elision::Off, .. } => "trill_link",
        PortKind::Link { .. } => "trill_elided_link",
    }
}

fn pin_name(number: u8) -> String {
    format!("trill_port_{number}")
}

fn load_object(config: &RBridgeConfig, copiers: &Copiers, pins: Option<&PinDir>) -> Result<Object, DatapathError> {
    let mut open = object::TRILL.open()?;
    object::set_constants(&mut open, ".rodata.trill", &config.limits());
    object::set_max_entries(&mut open, maps::STATIONS, config.stations.max(1))?;
    object::set_max_entries(&mut open, maps::HOST_ROUTES, config.host_routes.max(1))?;
    object::set_max_entries(&mut open, spread::CPUS, spread::entries(&config.spread))?;
    copiers.prepare(&mut open, config.mode)?;
    pin::load(object::TRILL, open, pins, &MAPS)
}
