//! Ports: interfaces that come, go and change, as control plane and data path have to know it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use tracing::{info, warn};
use weft_control::isis::{Input, PortId};
use weft_control::snooper;
use weft_datapath::trill::{Elision, Place, PortConfig, PortKind, RBridgeDatapath};
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::SystemId;
use weft_wire::trill::OVERHEAD_BYTES;
use weft_wire::vlan::VlanSet;

use super::config::XdpChoice;
use super::plane::Neighbor;
use super::settings::{Kind, PortSettings, Settings, Shared};
use super::{Daemon, IoFault};
use crate::cards::{Cards, Needs};
use crate::error::NodeError;
use crate::sys::{LinkState, Links};
use crate::xdp;

const ADDED: u32 = OVERHEAD_BYTES as u32;

/// All ports, by number.
pub(super) struct Ports {
    pub(super) all: Vec<Port>,
    by_index: BTreeMap<u32, usize>,
    links: Links,
}

/// A port.
pub(super) struct Port {
    pub(super) settings: PortSettings,
    /// What the interface says it can send, bit/s.
    pub(super) rate_bps: Option<u64>,
    state: Option<LinkState>,
}

impl Port {
    pub(super) fn id(&self) -> PortId {
        PortId(self.settings.number.into())
    }

    /// Its interface, if it is there.
    pub(super) fn link(&self) -> Option<&LinkState> {
        self.state.as_ref()
    }

    /// Whether other RBridges are behind it.
    pub(super) fn is_link(&self) -> bool {
        self.settings.kind.is_link()
    }

    /// Whether end stations are behind it.
    pub(super) fn has_stations(&self) -> bool {
        !matches!(self.settings.kind, Kind::Link { .. })
    }

    /// VLANs that end stations behind it may be in.
    pub(super) fn vlans(&self) -> VlanSet {
        let (untagged, tagged) = match &self.settings.kind {
            Kind::Native { untagged, tagged } => (untagged, tagged),
            Kind::Shared(shared) => return shared.enabled.clone(),
            Kind::Link { .. } => return VlanSet::default(),
        };
        let mut vlans = VlanSet::of_ranges(tagged);
        untagged.iter().for_each(|vlan| vlans.add_range(*vlan, *vlan));
        vlans
    }

    /// VLAN of frames without a tag; 0 where that means nothing.
    pub(super) fn untagged(&self) -> u16 {
        if let Kind::Shared(shared) = &self.settings.kind { shared.untagged } else { 0 }
    }

    pub(super) fn is_up(&self) -> bool {
        self.state.is_some_and(|state| state.is_up)
    }

    /// What the data path is told; `None` while there is no interface.
    fn config(&self) -> Option<PortConfig> {
        let state = self.state?;
        Some(PortConfig {
            interface: self.settings.interface.clone(),
            mac: MacAddress(state.mac),
            mtu: state.mtu,
            kind: self.kind(),
        })
    }

    fn kind(&self) -> PortKind {
        match &self.settings.kind {
            Kind::Link { designated_vlan, elide, .. } => {
                let elision = if *elide { Elision::Offered } else { Elision::Off };
                PortKind::Link { designated_vlan: *designated_vlan, neighbor: None, elision }
            }
            Kind::Shared(Shared { untagged, .. }) => PortKind::shared(*untagged),
            Kind::Native { untagged, tagged } => {
                PortKind::Native { untagged: *untagged, tagged: VlanSet::of_ranges(tagged) }
            }
        }
    }
}

impl Ports {
    /// Finds the interface of every port.
    pub(super) fn find(settings: &Settings) -> Result<Self, NodeError> {
        let links = Links::open().map_err(NodeError::system("opening a netlink socket"))?;
        let mut all = Vec::with_capacity(settings.ports.len());
        for port in &settings.ports {
            let (number, interface) = (port.number, &port.interface);
            let Some(state) = links.state(interface) else {
                let why =
                    format!("{number} (`{interface}`): no such interface here; create it first or correct the name");
                return Err(NodeError::config("port", why));
            };
            let rate_bps = links.rate_bps(interface);
            all.push(Port { settings: port.clone(), rate_bps, state: Some(state) });
        }
        let mut ports = Self { all, by_index: BTreeMap::new(), links };
        ports.number();
        ports.check_mtus(settings.lsp_buffer_bytes)?;
        Ok(ports)
    }

    /// Frames of stations have to fit links with what TRILL adds, and LSPs have to fit as they are (RFC 6325 section 4.3).
    fn check_mtus(&self, lsp_buffer_bytes: u16) -> Result<(), NodeError> {
        let is_link = |port: &&Port| port.is_link();
        let mtu = |port: &Port| port.state.map_or(0, |state| state.mtu);
        let Some(narrow) = self.all.iter().filter(is_link).min_by_key(|port| mtu(port)) else { return Ok(()) };
        let wide = self.all.iter().filter(|port| !is_link(port)).max_by_key(|port| mtu(port));
        let least = wide.map_or(0, |port| mtu(port) + ADDED).max(lsp_buffer_bytes.into());
        if mtu(narrow) >= least {
            return Ok(());
        }
        let PortSettings { number, interface, .. } = &narrow.settings;
        let whose = match wide {
            Some(wide) if mtu(wide) + ADDED == least => {
                format!("frames of `{}` (MTU {}) with {ADDED} bytes of TRILL", wide.settings.interface, mtu(wide))
            }
            _ => format!("LSPs (`lsp_buffer_bytes` {lsp_buffer_bytes})"),
        };
        let why = format!(
            "{number} (`{interface}`): MTU {} is too small for {whose}; ip link set {interface} mtu {least}, or more",
            mtu(narrow)
        );
        Err(NodeError::config("port", why))
    }

    /// What XDP cannot do with these ports.
    pub(super) fn check_xdp(&self, choice: XdpChoice) -> Result<(), NodeError> {
        match choice {
            XdpChoice::Native => {
                self.all.iter().filter_map(|port| Some((port, port.state?))).try_for_each(|(port, state)| {
                    xdp::check_mtu(&port.settings.interface, state.mtu, false, "xdp = \"generic\"")
                })
            }
            XdpChoice::Generic => {
                // A shared link gets copies of both kinds.
                let shared = self.all.iter().filter(|port| matches!(port.settings.kind, Kind::Shared(_))).count();
                xdp::check_copies(self.all.len() + shared)
            }
        }
    }

    fn number(&mut self) {
        let places = self.all.iter().enumerate();
        self.by_index = places.filter_map(|(place, port)| Some((port.state?.index, place))).collect();
    }

    /// The system ID of an RBridge that has none configured.
    pub(super) fn first_system(&self) -> SystemId {
        SystemId(self.all.first().and_then(|port| port.state).map_or([0; 6], |state| state.mac))
    }

    pub(super) fn by_index(&self, ifindex: u32) -> Option<&Port> {
        self.by_index.get(&ifindex).map(|place| &self.all[*place])
    }

    pub(super) fn by_id(&self, id: PortId) -> Option<&Port> {
        self.by_number(u8::try_from(id.0).ok()?)
    }

    pub(super) fn by_number(&self, number: u8) -> Option<&Port> {
        self.all.get(usize::from(number).checked_sub(1)?)
    }

    /// Whether there is a shared link.
    pub(super) fn are_shared(&self) -> bool {
        self.all.iter().any(|port| matches!(port.settings.kind, Kind::Shared(_)))
    }

    /// What each port has to hear, by interface.
    pub(super) fn needs(&self) -> BTreeMap<String, Needs> {
        self.all.iter().map(|port| (port.settings.interface.clone(), port.settings.kind.needs())).collect()
    }

    /// What the kernel told has been heard.
    pub(super) fn drain(&self) {
        self.links.drain();
    }
}

impl AsFd for Ports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.links.as_fd()
    }
}

/// The neighbours that the data path exchanges frames with.
pub(super) fn neighbors(datapath: &RBridgeDatapath, port: &Port) -> Vec<Neighbor> {
    match datapath.fib().ports.get(&port.settings.number).map(|port| &port.kind) {
        Some(PortKind::Link { neighbor: Some(mac), elision, .. }) => {
            vec![Neighbor { mac: *mac, takes_elided: *elision == Elision::Agreed }]
        }
        Some(PortKind::Shared { neighbors, .. }) => {
            neighbors.iter().map(|mac| Neighbor { mac: *mac, takes_elided: false }).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether an earlier run had the same port: its program and its neighbour stay.
pub(super) fn is_like(datapath: &RBridgeDatapath, port: &Port) -> bool {
    let Some(former) = datapath.fib().ports.get(&port.settings.number) else { return false };
    let is_alike = std::mem::discriminant(&port.kind()) == std::mem::discriminant(&former.kind);
    port.state.is_some_and(|state| state.index == former.ifindex) && is_alike
}

/// Lets the port's interface hear what it has to.
pub(super) fn prepare(cards: &mut Cards, port: &Port) -> Result<(), NodeError> {
    let Some(link) = port.link() else { return Ok(()) };
    cards.prepare(&port.settings.interface, link.index, &port.settings.kind.needs())
}

/// Attaches the data path to the port's interface.
pub(super) fn add(datapath: &mut RBridgeDatapath, port: &Port) -> Result<(), NodeError> {
    port.config().map_or(Ok(()), |config| Ok(datapath.add_port(port.settings.number, &config)?))
}

impl Daemon {
    /// Tells the control plane of a port that was there from the start.
    pub(super) fn port_begins(&mut self, place: usize) {
        let port = &self.ports.all[place];
        let (id, number, is_up, has_stations) = (port.id(), port.settings.number, port.is_up(), port.has_stations());
        if let Err(error) = prepare(&mut self.cards, port) {
            warn!(%error, "port");
            self.io.add(IoFault::NotAttached);
        }
        if is_up && self.ports.all[place].is_link() {
            self.put(Input::PortUp(id));
        }
        if is_up && has_stations {
            self.snoop(snooper::Input::PortUp(number));
        }
    }

    /// Follows what became of interfaces.
    pub(super) fn look_at_ports(&mut self, which: impl Fn(&Port) -> bool) {
        for place in 0..self.ports.all.len() {
            let port = &self.ports.all[place];
            if !which(port) {
                continue;
            }
            let (before, now) = (port.state, self.ports.links.state(&port.settings.interface));
            if before != now {
                self.follow_port(place, before, now);
            }
        }
    }

    fn follow_port(&mut self, place: usize, before: Option<LinkState>, now: Option<LinkState>) {
        let was_up = self.ports.all[place].is_up();
        let is_another = before.map(|state| state.index) != now.map(|state| state.index);
        // To a neighbour it is another port then.
        let is_renamed = before.map(|state| state.mac) != now.map(|state| state.mac);
        self.ports.all[place].state = now;
        if is_another || is_renamed || now.is_none_or(|state| !state.is_up) {
            self.port_went_down(place, was_up);
        }
        if is_another {
            self.replace_interface(place, before.is_some());
        } else if is_renamed || before.map(|state| state.mtu) != now.map(|state| state.mtu) {
            self.port_changed(place);
        }
        if now.is_some_and(|state| state.is_up) && (is_another || is_renamed || !was_up) {
            info!(interface = self.ports.all[place].settings.interface, "up");
            self.port_begins(place);
        }
    }

    fn port_went_down(&mut self, place: usize, was_up: bool) {
        if !was_up {
            return;
        }
        let port = &self.ports.all[place];
        info!(interface = port.settings.interface, "down");
        let (id, number) = (port.id(), port.settings.number);
        let has_stations = port.has_stations();
        if port.is_link() {
            self.put(Input::PortDown(id));
            self.is_behind = true;
        }
        if has_stations {
            self.forget(|station| station.place == Place::Port(number));
            self.snoop(snooper::Input::PortDown(number));
        }
    }

    /// The port's name has gone, or belongs to another interface now.
    fn replace_interface(&mut self, place: usize, was_there: bool) {
        self.ports.number();
        let port = &self.ports.all[place];
        let (number, id, mac) = (port.settings.number, port.id(), port.link().map(|link| MacAddress(link.mac)));
        let removed = if was_there { self.datapath.remove_port(number).map_err(NodeError::from) } else { Ok(()) };
        let prepared = removed.and_then(|()| prepare(&mut self.cards, port));
        let outcome = prepared.and_then(|()| add(&mut self.datapath, port));
        self.note_attached(place, outcome);
        if let Some(mac) = mac {
            self.control.set_port_mac(id, mac);
        }
    }

    /// Same interface, other MTU or MAC.
    fn port_changed(&mut self, place: usize) {
        let port = &self.ports.all[place];
        let (id, mac) = (port.id(), port.link().map(|link| MacAddress(link.mac)));
        let number = port.settings.number;
        let outcome = port.config().map_or(Ok(()), |config| self.datapath.set_port(number, &config));
        self.note_attached(place, outcome.map_err(NodeError::from));
        if let Some(mac) = mac {
            self.control.set_port_mac(id, mac);
        }
    }

    fn note_attached(&mut self, place: usize, outcome: Result<(), NodeError>) {
        if let Err(error) = outcome {
            warn!(interface = self.ports.all[place].settings.interface, %error, "port");
            self.io.add(IoFault::NotAttached);
        }
        self.is_behind = true;
    }
}
