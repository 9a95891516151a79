//! Uplinks and access ports: which interface is which, and the programs on them.

use std::collections::{BTreeMap, BTreeSet};

use super::abi::{PORT_KEEPS_TAGS, PORT_UPLINK, PORT_XDP, VTEP_PORT_SLOTS, VtepPort, circuit};
use super::options::Attachment;
use super::segment::Vni;
use super::view::{Port, PortRole};
use super::{Vtep, VtepProgram, full};
use crate::error::DatapathError;
use crate::hook::{self, TcHook};
use crate::{link, object};

/// A program's lookups of routes on behalf of this node ask for this, so that it need not be a router.
const HOST_FORWARDING: &str = "/proc/sys/net/ipv4/conf/lo/forwarding";
const ALL_FORWARDING: &str = "/proc/sys/net/ipv4/conf/all/forwarding";

/// What names of pinned programs on ports begin with.
pub(super) const PIN_PREFIX: &str = "port_";

/// What an access port may carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessRule {
    /// Frames may carry a VLAN tag, which is carried inside VXLAN and delivered again. Without this they are dropped, in
    /// both directions (RFC 7348 6.1); with [`super::Hook::Xdp`] only those whose tag is inside the frame.
    pub keep_tags: bool,
}

/// An interface with our programs on it.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) index: u32,
    pub(super) role: Role,
    programs: Vec<hook::Attached>,
}

/// What an interface is.
#[derive(Debug)]
pub(super) enum Role {
    /// Towards the underlay.
    Uplink,
    /// In one segment.
    Access(Vni),
    /// In several.
    Trunk {
        /// Of its table.
        number: u32,
        /// Its segments by VLAN ID; 0: of frames without a tag.
        vlans: BTreeMap<u16, Vni>,
    },
}

impl Vtep {
    /// Makes an interface of the caller's network namespace a way into the underlay. Routes may lead over any interface;
    /// datagrams are taken from uplinks only.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for an access port, or any other [`DatapathError`].
    pub fn attach_uplink(&mut self, ifindex: u32) -> Result<(), DatapathError> {
        match self.ports.get(&ifindex) {
            Some(Attached { role: Role::Uplink, .. }) => return Ok(()),
            Some(_) => return Err(busy(ifindex, "an access port")),
            None => {}
        }
        remember_host_routes()?;
        self.attach(ifindex, Role::Uplink, PORT_UPLINK)?;
        self.set_state(self.uplinks()[0])?;
        self.join_groups()
    }

    /// Makes an interface of the caller's network namespace a port of a segment; for a port that is one already, changes
    /// its rule.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for a segment that is not there, an interface that is in use otherwise, or no room; or
    /// any other [`DatapathError`].
    pub fn attach_access(&mut self, ifindex: u32, vni: Vni, rule: AccessRule) -> Result<(), DatapathError> {
        self.state_of(vni)?;
        let flags = self.access_flags(rule);
        match self.ports.get(&ifindex).map(|port| (&port.role, port.index)) {
            None => self.attach(ifindex, Role::Access(vni), flags),
            Some((Role::Access(other), index)) if *other == vni => {
                self.put_state(&VtepPort { ifindex, vni: vni.get(), flags, index, ..VtepPort::default() })
            }
            Some((Role::Access(other), _)) => Err(busy(ifindex, &format!("a port of segment {other}"))),
            Some((Role::Trunk { .. }, _)) => Err(busy(ifindex, "a trunk")),
            Some((Role::Uplink, _)) => Err(busy(ifindex, "an uplink")),
        }
    }

    /// Takes the programs off an uplink or access port and forgets the entries behind it. Returns whether it was one.
    ///
    /// # Errors
    /// [`DatapathError::Program`] or [`DatapathError::Map`].
    pub fn detach(&mut self, ifindex: u32) -> Result<bool, DatapathError> {
        if !self.detach_only(ifindex)? {
            return Ok(false);
        }
        self.sweep(|entry| entry.to.ifindex() == Some(ifindex))?;
        self.join_groups()?;
        Ok(true)
    }

    /// Interface indexes of the uplinks.
    pub(super) fn uplinks(&self) -> Vec<u32> {
        self.ports.iter().filter(|(_, port)| matches!(port.role, Role::Uplink)).map(|(ifindex, _)| *ifindex).collect()
    }

    /// The number of a segment's port; `vlan`: of a trunk, 0 for none.
    pub(super) fn member(&self, vni: Vni, ifindex: u32, vlan: u16) -> Result<u32, DatapathError> {
        let is_member = |port: &&Attached| match &port.role {
            Role::Access(of) => vlan == 0 && *of == vni,
            Role::Trunk { vlans, .. } => vlans.get(&vlan) == Some(&vni),
            Role::Uplink => false,
        };
        self.ports.get(&ifindex).filter(is_member).map(|port| port.index).ok_or_else(|| {
            let with_vlan = if vlan == 0 { String::new() } else { format!(" with VLAN {vlan}") };
            let why = format!("interface {ifindex} is not a port of segment {vni}{with_vlan}; attach it first");
            DatapathError::Config { field: "port", why }
        })
    }

    /// Segments that go leave their ports.
    pub(super) fn leave_segments(&mut self, vnis: &BTreeSet<Vni>) -> Result<(), DatapathError> {
        let in_one = |port: &Attached| matches!(&port.role, Role::Access(vni) if vnis.contains(vni));
        let ports: Vec<u32> = self.ports.iter().filter(|(_, port)| in_one(port)).map(|(i, _)| *i).collect();
        for ifindex in ports {
            self.detach_only(ifindex)?;
        }
        self.leave_trunks(vnis)
    }

    /// Without forgetting entries.
    pub(super) fn detach_only(&mut self, ifindex: u32) -> Result<bool, DatapathError> {
        if !self.ports.contains_key(&ifindex) {
            return Ok(false);
        }
        self.detach_links(ifindex)?;
        let Some(port) = self.ports.remove(&ifindex) else { return Ok(false) };
        self.forget_port(ifindex, port.index, &port.role)?;
        self.set_state(self.uplinks().first().copied().unwrap_or(0))?;
        Ok(true)
    }

    pub(super) fn detach_links(&mut self, ifindex: u32) -> Result<(), DatapathError> {
        let Some(port) = self.ports.get_mut(&ifindex) else { return Ok(()) };
        if port.programs.is_empty() {
            // What is pinned there is an earlier run's, which is still at work.
            return Ok(());
        }
        for program in port.programs.drain(..) {
            program.detach()?;
        }
        let Some(pins) = &self.pins else { return Ok(()) };
        pins.remove_pins(&[&pin_of(ifindex, "tc"), &pin_of(ifindex, "xdp")])
    }

    /// Makes sense of the ports in the tables of an earlier run: those whose interfaces are still there get our
    /// programs.
    pub(super) fn take_over_ports(&mut self) -> Result<(), DatapathError> {
        for (ifindex, index) in self.view.tables.port_index.all::<u32, u32>()? {
            self.port_indexes.mark(index);
            let state: VtepPort = self.view.tables.ports.get(&index)?.unwrap_or_default();
            let role = match Port::of(&state).map(|port| port.role) {
                Some(PortRole::Uplink) => Role::Uplink,
                Some(PortRole::Access { vni, .. }) => Role::Access(vni),
                Some(PortRole::Trunk) => {
                    self.trunk_numbers.mark(state.trunk);
                    Role::Trunk { number: state.trunk, vlans: self.view.vlans(state.trunk)? }
                }
                None => {
                    // It belongs to nothing, as an uplink does.
                    self.forget_port(ifindex, index, &Role::Uplink)?;
                    continue;
                }
            };
            let flags = state.flags & !PORT_XDP | if self.xdp.is_some() { PORT_XDP } else { 0 };
            self.put_state(&VtepPort { flags, ..state })?;
            self.put_device(index, ifindex)?;
            match self.attach_programs(ifindex, &role) {
                Ok(programs) => {
                    self.ports.insert(ifindex, Attached { index, role, programs });
                }
                Err(_the_interface_is_gone) => {
                    self.forget_port(ifindex, index, &role)?;
                    self.sweep(|entry| entry.to.ifindex() == Some(ifindex))?;
                }
            }
        }
        if let Some(uplink) = self.uplinks().first() {
            remember_host_routes()?;
            self.set_state(*uplink)?;
        }
        Ok(())
    }

    pub(super) fn pretend_port(&mut self, ifindex: u32, vni: Vni) -> Result<(), DatapathError> {
        let index = self.port_indexes.take().ok_or_else(|| full("ports", "ports", self.options.capacities.ports))?;
        let role = Role::Access(vni);
        self.put_port(ifindex, index, &role, self.access_flags(AccessRule::default()))?;
        self.ports.insert(ifindex, Attached { index, role, programs: Vec::new() });
        Ok(())
    }

    pub(super) fn access_flags(&self, rule: AccessRule) -> u32 {
        let tags = if rule.keep_tags { PORT_KEEPS_TAGS } else { 0 };
        tags | if self.xdp.is_some() { PORT_XDP } else { 0 }
    }

    pub(super) fn attach(&mut self, ifindex: u32, role: Role, flags: u32) -> Result<(), DatapathError> {
        let index = self.port_indexes.take().ok_or_else(|| full("ports", "ports", self.options.capacities.ports))?;
        let put = self.put_port(ifindex, index, &role, flags);
        let attached =
            put.and_then(|()| if self.succeeds { Ok(Vec::new()) } else { self.attach_programs(ifindex, &role) });
        match attached {
            Ok(programs) => {
                self.ports.insert(ifindex, Attached { index, role, programs });
                Ok(())
            }
            Err(error) => {
                self.forget_port(ifindex, index, &role)?;
                Err(error)
            }
        }
    }

    /// Puts the programs on all ports; on uplinks last, because what comes from there is for any port.
    pub(super) fn attach_all(&mut self) -> Result<(), DatapathError> {
        let uplinks = self.uplinks();
        let access = self.ports.keys().copied().filter(|ifindex| !uplinks.contains(ifindex));
        for ifindex in access.chain(uplinks.iter().copied()).collect::<Vec<u32>>() {
            let programs = self.attach_programs(ifindex, &self.ports[&ifindex].role)?;
            self.ports.get_mut(&ifindex).expect("it was just there").programs = programs;
        }
        Ok(())
    }

    /// Takes off what an earlier run has pinned on interfaces that are no ports now.
    pub(super) fn detach_former(&self) -> Result<(), DatapathError> {
        let Some(pins) = &self.pins else { return Ok(()) };
        let ours: BTreeSet<String> = self.ports.keys().flat_map(|i| [pin_of(*i, "tc"), pin_of(*i, "xdp")]).collect();
        let former = pins.names(PIN_PREFIX)?.into_iter().filter(|name| !ours.contains(name));
        former.map(|name| pins.path_of(&name)).try_for_each(|pin| hook::detach_pinned(&pin))
    }

    fn put_port(&self, ifindex: u32, index: u32, role: &Role, flags: u32) -> Result<(), DatapathError> {
        let state = VtepPort { ifindex, flags, index, ..VtepPort::default() };
        let state = match role {
            Role::Uplink => state,
            Role::Access(vni) => VtepPort { vni: vni.get(), ..state },
            Role::Trunk { number, .. } => VtepPort { trunk: *number, ..state },
        };
        if let Role::Access(vni) = role {
            self.put_flood_port(*vni, circuit(index, 0), true)?;
        }
        self.put_device(index, ifindex)?;
        self.put_state(&state)?;
        self.view.tables.port_index.put(&ifindex, &index)
    }

    /// Sets what a port is, and in its slot again if that is free or its own.
    fn put_state(&self, state: &VtepPort) -> Result<(), DatapathError> {
        let tables = &self.view.tables;
        tables.ports.put(&state.index, state)?;
        let number = state.ifindex % VTEP_PORT_SLOTS;
        let slot: VtepPort = tables.port_slots.get(&number)?.unwrap_or_default();
        if slot.ifindex == 0 || slot.ifindex == state.ifindex {
            tables.port_slots.put(&number, state)?;
        }
        self.forget_found()
    }

    /// Where XDP sends what leaves by a port. The interface is one of the caller's network namespace.
    fn put_device(&self, index: u32, ifindex: u32) -> Result<(), DatapathError> {
        self.xdp.as_ref().map_or(Ok(()), |xdp| xdp.devices.put(&index, &ifindex))
    }

    fn forget_port(&mut self, ifindex: u32, index: u32, role: &Role) -> Result<(), DatapathError> {
        let tables = &self.view.tables;
        tables.port_index.delete(&ifindex)?;
        let number = ifindex % VTEP_PORT_SLOTS;
        let slot: VtepPort = tables.port_slots.get(&number)?.unwrap_or_default();
        if slot.ifindex == ifindex {
            tables.port_slots.put(&number, &VtepPort::default())?;
        }
        tables.ports.put(&index, &VtepPort::default())?;
        self.forget_found()?;
        if let Some(xdp) = &self.xdp {
            xdp.devices.delete(&index)?;
        }
        match role {
            Role::Uplink => {}
            Role::Access(vni) => self.put_flood_port(*vni, circuit(index, 0), false)?,
            Role::Trunk { number, vlans } => self.forget_vlans((index, *number), vlans)?,
        }
        self.port_indexes.give_back(index);
        Ok(())
    }

    /// TC first: what XDP passes must find it.
    fn attach_programs(&self, ifindex: u32, role: &Role) -> Result<Vec<hook::Attached>, DatapathError> {
        let (tc, xdp) = match role {
            Role::Uplink => (VtepProgram::Uplink, VtepProgram::UplinkXdp),
            Role::Access(_) | Role::Trunk { .. } => (VtepProgram::Access, VtepProgram::AccessXdp),
        };
        let pin = |kind| self.pins.as_ref().map(|pins| pins.path_of(&pin_of(ifindex, kind)));
        let name = format!("interface {ifindex}");
        let tc = object::program(&self.tc, tc.name());
        let mut programs = vec![hook::attach_as(self.tc_hook(), &tc, ifindex, &name, pin("tc").as_deref())?];
        match (self.xdp_program(xdp), pin("xdp")) {
            (Some(program), pin) => programs.push(link::attach_xdp(&program, ifindex, pin.as_deref())?.into()),
            (None, Some(pin)) => hook::detach_pinned(&pin)?,
            (None, None) => {}
        }
        Ok(programs)
    }

    fn tc_hook(&self) -> TcHook {
        match self.options.attachment {
            Attachment::Link => TcHook::available(),
            Attachment::Filter => TcHook::Filter,
        }
    }
}

fn pin_of(ifindex: u32, kind: &str) -> String {
    format!("{PIN_PREFIX}{ifindex}_{kind}")
}

pub(super) fn busy(ifindex: u32, what: &str) -> DatapathError {
    let why = format!("interface {ifindex} is {what} already; detach it first or choose another");
    DatapathError::Config { field: "port", why }
}

/// Lets programs ask for routes as this node itself would.
fn remember_host_routes() -> Result<(), DatapathError> {
    if std::fs::read_to_string(HOST_FORWARDING).is_ok_and(|value| value.trim() == "1") {
        return Ok(());
    }
    std::fs::write(HOST_FORWARDING, "1").map_err(|source| DatapathError::Config {
        field: "uplink",
        why: format!("setting {HOST_FORWARDING}, which route look-ups need, failed ({source}); run as root"),
    })
}

/// Takes back that the loopback interface forwards, which route look-ups of the programs need, unless this node is a router anyway.
pub fn forget_host_routes() {
    if std::fs::read_to_string(ALL_FORWARDING).is_ok_and(|value| value.trim() == "0") {
        // What remains would only let the loopback interface forward.
        let _ = std::fs::write(HOST_FORWARDING, "0");
    }
}
