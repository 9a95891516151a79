//! A VXLAN tunnel end point (RFC 7348): access ports on one side, the underlay on the other, tables between them.
//!
//! Frames of access ports and VXLAN datagrams for [`VtepOptions::local`] are handled by programs on the ingress of both;
//! the kernel's routes decide how datagrams leave. Everything may change while traffic runs. With
//! [`VtepOptions::pin_dir`], tables and programs outlive the process, and [`Vtep::load`] takes them over: segments,
//! ports, peers and entries are still there, and every frame meets either the old or the new programs. Where the tables of
//! that run do not fit (another version's layout, other capacities), its programs work on with them until
//! [`Vtep::succeed`].
//!
//! | file | what it is for |
//! | --- | --- |
//! | `options`, `segment` | what can be set: at load, and per segment at run time |
//! | `ports`, `trunk` | uplinks and access ports; those that VLAN tags divide into segments |
//! | `table`, `entry` | who is where; ARP; ageing |
//! | `room` | how many addresses were learned, so that nobody fills the table alone |
//! | `peers`, `members` | other VTEPs, floods; which segments they may send into |
//! | `view` | what it knows and has counted, also for other processes |
//! | `upcall` | what the programs could not answer |
//! | `maps`, `abi` | the tables as the kernel has them |
//!
//! Out of scope: fragmenting (RFC 7348 4.3 forbids it), IPv6 underlays, reassembly of outer fragments.

pub mod abi;
mod entry;
mod group;
mod maps;
mod members;
mod options;
mod peers;
mod ports;
mod room;
mod segment;
mod table;
mod trunk;
mod upcall;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::ops::Deref;

use abi::{VTEP_HOPS_PER_PEER, VTEP_MACS_FIRST, VTEP_VLANS, VtepVni};
use group::Memberships;
use libbpf_rs::Object;
use maps::{
    ARP, BUDGETS, DEVICES, FDB, FLOODS, FORGOTTEN, HOPS, LEARNED, LIMITS, MEMBERS, PEER_INDEX, PEER_TRAFFIC,
    PORT_INDEX, PORTS, SHARED, STATE, Tables, UPCALLS, VLANS, VNI_TRAFFIC, VNIS,
};
use members::Members;
use ports::Attached;
use rustix::time::ClockId;

use crate::error::DatapathError;
use crate::frame::{self, FrameInput, FrameOutput};
use crate::pin::{self, PinDir};
use crate::table::Table;
use crate::{clock, object};

pub use crate::interface::index_of as interface_index;
pub use entry::{Entry, Origin, To};
pub use options::{Attachment, Capacities, Dscp, Hook, UnknownPeers, VtepOptions};
pub use ports::{AccessRule, forget_host_routes};
pub use segment::{Flood, OnMiss, RateLimit, Senders, Vni, VniSettings};
pub use trunk::Trunk;
pub use upcall::{Upcall, Upcalls};
pub use view::{Peer, Port, PortRole, Segment, Traffic, VtepView};

/// A VTEP at work.
#[derive(Debug)]
pub struct Vtep {
    options: VtepOptions,
    tc: Object,
    /// The packet-rate programs and the tables that only they have.
    xdp: Option<Xdp>,
    view: VtepView,
    clocks: Table,
    pins: Option<PinDir>,
    ports: BTreeMap<u32, Attached>,
    vni_slots: Indexes,
    port_indexes: Indexes,
    trunk_numbers: Indexes,
    peer_indexes: Indexes,
    memberships: Memberships,
    members: Members,
    /// Whether an earlier run with other tables is at work until [`Self::succeed`].
    succeeds: bool,
}

#[derive(Debug)]
struct Xdp {
    object: Object,
    hops: Table,
    devices: Table,
}

/// One of the VTEP's programs, for [`Vtep::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VtepProgram {
    /// TC ingress of an access port.
    Access,
    /// TC ingress of an uplink.
    Uplink,
    /// XDP of an access port.
    AccessXdp,
    UplinkXdp,
}

impl VtepProgram {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Access => "vtep_access",
            Self::Uplink => "vtep_uplink",
            Self::AccessXdp => "vtep_access_xdp",
            Self::UplinkXdp => "vtep_uplink_xdp",
        }
    }
}

/// `CLOCK_MONOTONIC`, the clock of entries, nanoseconds.
pub fn now_ns() -> u64 {
    clock::ns(ClockId::Monotonic)
}

impl Vtep {
    /// Loads the programs. With pins of an earlier run, its tables are taken over and the programs on its ports replaced
    /// in place; ports whose interfaces are gone are forgotten. Tables that do not fit are not taken over: the VTEP then
    /// starts empty, and while [`Self::succeeds`] nothing of it is at work.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn load(options: &VtepOptions) -> Result<Self, DatapathError> {
        let pins = options.pin_dir.as_deref().map(PinDir::create).transpose()?;
        let (tc, succeeds) = load_tc(options, pins.as_ref())?;
        let xdp = (options.hook == Hook::Xdp).then(|| load_xdp(options, &tc)).transpose()?;
        let tables = Tables::of_object(&tc)?;
        let capacities = options.capacities;
        let mut vtep = Self {
            options: options.clone(),
            clocks: Table::of(&tc, maps::CLOCKS)?,
            tc,
            xdp,
            view: VtepView { tables },
            pins,
            ports: BTreeMap::new(),
            vni_slots: Indexes::new(capacities.vnis),
            port_indexes: Indexes::new(capacities.ports),
            trunk_numbers: Indexes::new(capacities.trunks),
            peer_indexes: Indexes::new(capacities.peers),
            memberships: Memberships::default(),
            members: Members::default(),
            succeeds,
        };
        vtep.take_over()?;
        Ok(vtep)
    }

    /// Whether the programs of an earlier run are at work, with its own tables, until [`Self::succeed`].
    pub fn succeeds(&self) -> bool {
        self.succeeds
    }

    /// Takes an earlier run's place, whose tables did not fit, once the new ones say everything: segments, ports, peers. Each
    /// port's program is replaced in one step; what had been learned is learned again. Without such a run it does nothing.
    ///
    /// # Errors
    /// Any [`DatapathError`].
    pub fn succeed(&mut self) -> Result<(), DatapathError> {
        if !std::mem::take(&mut self.succeeds) {
            return Ok(());
        }
        if let Some(pins) = &self.pins {
            pins.replace(&mut self.tc, &SHARED)?;
        }
        self.attach_all()?;
        self.detach_former()
    }

    /// How it was set up.
    pub fn options(&self) -> &VtepOptions {
        &self.options
    }

    /// Adds a segment, or changes the settings of one that is there; entries and ports stay.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for settings that cannot work or if there is no room, or [`DatapathError::Map`].
    pub fn add_vni(&mut self, vni: Vni, settings: &VniSettings) -> Result<(), DatapathError> {
        self.add_vnis(&BTreeSet::from([vni]), settings)
    }

    /// [`Self::add_vni`] for many with the same settings, which is quicker than one after the other.
    ///
    /// # Errors
    /// As [`Self::add_vni`]; if there is no room, none is added.
    pub fn add_vnis(&mut self, vnis: &BTreeSet<Vni>, settings: &VniSettings) -> Result<(), DatapathError> {
        settings.flood.check(self.options.local)?;
        let remotes = self.remotes_of(&settings.flood)?;
        let known = self.known(vnis)?;
        let new = u32::try_from(vnis.len() - known.len()).unwrap_or(u32::MAX);
        if new > self.vni_slots.free() {
            return Err(full("vnis", "segments", self.options.capacities.vnis));
        }
        let tables = &self.view.tables;
        let (mut states, mut floods) = (Vec::new(), Vec::new());
        for vni in vnis.iter().map(|vni| vni.get()) {
            let (slot, flood) = match known.get(&vni) {
                Some(state) => (state.slot, tables.floods.get(&vni)?.unwrap_or_default()),
                None => (self.vni_slots.take().expect("there is room"), abi::VtepFlood::default()),
            };
            if !(known.contains_key(&vni) || self.pins.is_none() && self.vni_slots.is_first_use()) {
                tables.vni_traffic.clear_per_cpu(slot)?;
            }
            states.push((vni, settings.state(slot)));
            floods.push((vni, flood.with_remotes(&remotes)));
        }
        let slots = || states.iter().map(|(_, state)| state.slot);
        tables.limits.put_all(&slots().map(|slot| (slot, settings.limits())).collect::<Vec<_>>())?;
        self.clocks.put_all(&slots().map(|slot| (slot, abi::VtepClock::default())).collect::<Vec<_>>())?;
        tables.floods.put_all(&floods)?;
        // Last: now the programs know them.
        tables.vnis.put_all(&states)?;
        if !known.is_empty() {
            // Who may send into them is asked anew.
            self.forget_found()?;
        }
        let group = settings.state(0).group;
        if known.values().any(|known| known.group != [0; 4] && known.group != group) {
            return self.join_groups();
        }
        Ok(())
    }

    /// Those of the segments that are there.
    fn known(&self, vnis: &BTreeSet<Vni>) -> Result<BTreeMap<u32, VtepVni>, DatapathError> {
        let mut known = BTreeMap::new();
        for vni in vnis.iter().map(|vni| vni.get()) {
            let state: Option<VtepVni> = self.view.tables.vnis.get(&vni)?;
            known.extend(state.map(|state| (vni, state)));
        }
        Ok(known)
    }

    /// Removes a segment and everything of it: ports, entries, ARP, counters. Returns whether there was one.
    ///
    /// # Errors
    /// [`DatapathError::Map`] or [`DatapathError::Program`].
    pub fn remove_vni(&mut self, vni: Vni) -> Result<bool, DatapathError> {
        self.remove_vnis(&BTreeSet::from([vni])).map(|removed| removed > 0)
    }

    /// [`Self::remove_vni`] for many at once, which is quicker than one after the other. Returns how many there were.
    ///
    /// # Errors
    /// [`DatapathError::Map`] or [`DatapathError::Program`].
    pub fn remove_vnis(&mut self, vnis: &BTreeSet<Vni>) -> Result<usize, DatapathError> {
        let mut slots = Vec::new();
        for vni in vnis {
            let state: Option<VtepVni> = self.view.tables.vnis.get(&vni.get())?;
            let Some(state) = state else { continue };
            // First: from here on nothing of it is learned.
            self.view.tables.vnis.delete(&vni.get())?;
            slots.push(state.slot);
        }
        self.leave_segments(vnis)?;
        self.sweep(|entry| vnis.contains(&entry.vni))?;
        for (vni, address, _) in self.view.arps(None)? {
            if vnis.contains(&vni) {
                self.remove_arp(vni, address)?;
            }
        }
        for vni in vnis {
            self.set_members(*vni, &BTreeSet::new())?;
            self.view.tables.floods.delete(&vni.get())?;
        }
        slots.iter().for_each(|slot| self.vni_slots.give_back(*slot));
        self.join_groups()?;
        Ok(slots.len())
    }

    /// Sets where floods of a segment go.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for a segment that is not there or a place that cannot be flooded to, or
    /// [`DatapathError::Map`].
    pub fn set_flood(&mut self, vni: Vni, flood: &Flood) -> Result<(), DatapathError> {
        let segment = self.view.segment_of(vni, &self.state_of(vni)?)?;
        self.add_vni(vni, &VniSettings { flood: flood.clone(), ..segment.settings })
    }

    /// A segment that has to be there.
    fn state_of(&self, vni: Vni) -> Result<VtepVni, DatapathError> {
        let missing = || format!("{vni} is not a segment of this VTEP; add it first");
        let state = self.view.tables.vnis.get(&vni.get())?;
        state.ok_or_else(|| DatapathError::Config { field: "vni", why: missing() })
    }

    /// What the programs could not answer or have learned. For one reader; [`Upcalls::open_pinned`] makes another.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn upcalls(&self) -> Result<Upcalls, DatapathError> {
        Upcalls::of_map(object::map_handle(&self.tc, UPCALLS)?)
    }

    /// One frame through a program, without a network: [`FrameInput::ifindex`] is the port that it comes in at. XDP
    /// programs are there with [`Hook::Xdp`] only.
    ///
    /// # Errors
    /// [`DatapathError::Program`] if the kernel refuses the frame, for example for being shorter than 14 bytes.
    pub fn run(&self, program: VtepProgram, input: &FrameInput<'_>) -> Result<FrameOutput, DatapathError> {
        match (program, &self.xdp) {
            (VtepProgram::Access | VtepProgram::Uplink, _) => {
                frame::run_tc(&object::program(&self.tc, program.name()), input)
            }
            (_, Some(xdp)) => frame::run_xdp_on(&object::program(&xdp.object, program.name()), input),
            (_, None) => {
                Err(DatapathError::Config { field: "hook", why: "the XDP programs are not loaded".to_owned() })
            }
        }
    }

    /// For benchmarks without a network: an access port of a segment with no program on it, and a way to a peer.
    ///
    /// # Errors
    /// [`DatapathError::Config`] or [`DatapathError::Map`].
    pub fn pretend(&mut self, ifindex: u32, vni: Vni, peer: Ipv4Addr, macs: [[u8; 6]; 2]) -> Result<(), DatapathError> {
        self.pretend_port(ifindex, vni)?;
        self.add_peer(peer)?;
        let index = self.peer_index(peer)?;
        let port = self.member(vni, ifindex, 0)?;
        let [destination, source] = macs;
        let hop = abi::VtepHop {
            destination,
            source,
            ethertype: weft_wire::ethernet::ethertype::IPV4.to_be_bytes(),
            mtu: 1600,
            peer: peer.octets(),
            port,
            expires: abi::HOP_FOREVER,
        };
        let Some(xdp) = &self.xdp else { return Ok(()) };
        (0..VTEP_HOPS_PER_PEER).try_for_each(|n| xdp.hops.put_per_cpu(index * VTEP_HOPS_PER_PEER + n, &hop))
    }

    /// One of the XDP programs, to be measured; `None`: they are not loaded.
    pub fn xdp_program(&self, program: VtepProgram) -> Option<libbpf_rs::ProgramMut<'_>> {
        self.xdp.as_ref().map(|xdp| object::program(&xdp.object, program.name()))
    }

    /// Takes the programs off all ports and removes the pins. Dropping instead leaves a pinned VTEP at work.
    ///
    /// # Errors
    /// [`DatapathError::Program`] or [`DatapathError::Pin`].
    pub fn stop(mut self) -> Result<(), DatapathError> {
        for ifindex in self.ports.keys().copied().collect::<Vec<u32>>() {
            self.detach_links(ifindex)?;
        }
        self.ports.clear();
        self.detach_former()?;
        ports::forget_host_routes();
        self.pins.take().map_or(Ok(()), |pins| pins.remove(&SHARED))
    }

    /// Finds out what an earlier run left in the tables.
    fn take_over(&mut self) -> Result<(), DatapathError> {
        let tables = &self.view.tables;
        for (_, state) in tables.vnis.all::<u32, VtepVni>()? {
            self.vni_slots.mark(state.slot);
        }
        for (_, index) in tables.peer_index.all::<[u8; 4], u32>()? {
            self.peer_indexes.mark(index);
        }
        self.take_over_ports()?;
        self.take_over_members()?;
        self.sweep(|_| false)?;
        self.join_groups()
    }

    /// Sets variables of the TC programs.
    fn set_state(&self, uplink_ifindex: u32) -> Result<(), DatapathError> {
        Table::of(&self.tc, STATE)?.put(&0u32, &uplink_ifindex)
    }
}

impl Drop for Vtep {
    /// Links end on their own; filters that nothing outlives for must be taken off.
    fn drop(&mut self) {
        if self.pins.is_none() {
            for ifindex in self.ports.keys().copied().collect::<Vec<u32>>() {
                // Nothing can be done about a failure here.
                let _ = self.detach_links(ifindex);
            }
        }
    }
}

impl Deref for Vtep {
    type Target = VtepView;

    fn deref(&self) -> &VtepView {
        &self.view
    }
}

/// Free numbers of a table's slots. A number that was given back comes last: whatever still refers to it has had time.
#[derive(Debug)]
struct Indexes {
    capacity: u32,
    next: u32,
    used: BTreeSet<u32>,
    /// Numbers from here on were never given out.
    untouched: u32,
    is_first_use: bool,
}

impl Indexes {
    fn new(capacity: u32) -> Self {
        Self { capacity, next: 0, used: BTreeSet::new(), untouched: 0, is_first_use: false }
    }

    fn mark(&mut self, index: u32) {
        self.used.insert(index);
    }

    fn take(&mut self) -> Option<u32> {
        let later = (self.next..self.capacity).find(|index| !self.used.contains(index));
        let index = later.or_else(|| (0..self.next).find(|index| !self.used.contains(index)))?;
        self.used.insert(index);
        self.next = index + 1;
        self.is_first_use = index >= self.untouched;
        self.untouched = self.untouched.max(self.next);
        Some(index)
    }

    /// How many are left.
    fn free(&self) -> u32 {
        self.capacity - u32::try_from(self.used.len()).unwrap_or(self.capacity)
    }

    /// Whether the number that was given out last was never given out before.
    fn is_first_use(&self) -> bool {
        self.is_first_use
    }

    fn give_back(&mut self, index: u32) {
        self.used.remove(&index);
    }
}

/// The TC programs, and whether an earlier run is at work whose tables do not fit.
fn load_tc(options: &VtepOptions, pins: Option<&PinDir>) -> Result<(Object, bool), DatapathError> {
    let mut open = object::VXLAN_TC.open()?;
    object::set_constants(&mut open, ".rodata.vtep", &options.constants()?);
    for (name, entries) in sizes(options.capacities) {
        object::set_max_entries(&mut open, name, entries)?;
    }
    // All or nothing: the tables refer to each other.
    if let Some(pins) = pins
        && !SHARED.iter().all(|name| pins.holds(&mut open, name))
    {
        if !pins.names(ports::PIN_PREFIX)?.is_empty() {
            return Ok((object::VXLAN_TC.load(open)?, true));
        }
        pins.remove_pins(&SHARED)?;
    }
    Ok((pin::load(object::VXLAN_TC, open, pins, &SHARED)?, false))
}

fn load_xdp(options: &VtepOptions, tc: &Object) -> Result<Xdp, DatapathError> {
    let mut open = object::VXLAN_XDP.open()?;
    object::set_constants(&mut open, ".rodata.vtep", &options.constants()?);
    object::set_max_entries(&mut open, HOPS, options.capacities.peers.saturating_mul(VTEP_HOPS_PER_PEER))?;
    object::set_max_entries(&mut open, DEVICES, options.capacities.ports)?;
    for name in SHARED {
        object::share_map(&mut open, name, tc)?;
    }
    let object = object::VXLAN_XDP.load(open)?;
    Ok(Xdp { hops: Table::of(&object, HOPS)?, devices: Table::of(&object, DEVICES)?, object })
}

fn sizes(of: Capacities) -> [(&'static str, u32); 16] {
    let counted = VTEP_MACS_FIRST.saturating_add(of.vnis).saturating_add(of.ports);
    [
        (FDB, of.macs.saturating_add(of.told_macs)),
        (LEARNED, counted),
        (FORGOTTEN, counted),
        (ARP, of.arps),
        (PORTS, of.ports),
        (PORT_INDEX, of.ports),
        (VLANS, of.trunks.saturating_mul(VTEP_VLANS)),
        (PEER_INDEX, of.peers),
        (PEER_TRAFFIC, of.peers),
        (VNIS, of.vnis),
        (FLOODS, of.vnis),
        (LIMITS, of.vnis),
        (BUDGETS, of.vnis),
        (MEMBERS, of.macs.saturating_add(of.told_macs).saturating_add(of.peers)),
        (maps::CLOCKS, of.vnis),
        (VNI_TRAFFIC, of.vnis),
    ]
}

fn full(field: &'static str, what: &str, capacity: u32) -> DatapathError {
    DatapathError::Config { field, why: format!("there is room for {capacity} {what}; load with larger capacities") }
}

fn check_mac(mac: [u8; 6]) -> Result<(), DatapathError> {
    if mac[0] & 1 == 1 || mac == [0; 6] {
        let why = format!("{} is not the address of one station", mac.map(|byte| format!("{byte:02x}")).join(":"));
        return Err(DatapathError::Config { field: "mac", why });
    }
    Ok(())
}

/// The address's slot: its low bits.
fn peer_slot(address: Ipv4Addr) -> u32 {
    u32::from(address) % abi::VTEP_PEER_SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_was_given_back_comes_last() {
        let mut indexes = Indexes::new(3);
        indexes.mark(1);
        assert_eq!([indexes.take(), indexes.take(), indexes.take()], [Some(0), Some(2), None]);
        indexes.give_back(0);
        indexes.give_back(2);
        assert_eq!(indexes.take(), Some(0));
        indexes.give_back(0);
        assert_eq!([indexes.take(), indexes.take()], [Some(2), Some(0)]);
    }

    #[test]
    fn options_that_cannot_work_are_refused() {
        let refused = |change: fn(&mut VtepOptions)| {
            let mut options = VtepOptions::new(Ipv4Addr::new(10, 0, 0, 1));
            change(&mut options);
            options.constants().expect_err("refused").to_string()
        };
        assert!(refused(|options| options.local = Ipv4Addr::UNSPECIFIED).starts_with("local: 0.0.0.0"));
        assert!(refused(|options| options.local = Ipv4Addr::new(239, 1, 1, 1)).starts_with("local: 239.1.1.1"));
        assert!(refused(|options| options.udp_port = 0).starts_with("udp_port: 0"));
        assert!(refused(|options| options.ttl = 0).starts_with("ttl: 0"));
        assert!(refused(|options| options.dscp = Dscp::Set(64)).starts_with("dscp: 64"));
        assert!(refused(|options| options.capacities.peers = 0).starts_with("capacities: 0"));
    }
}
