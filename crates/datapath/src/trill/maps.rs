//! The tables of an RBridge's data path, of this process or of a running daemon's.

use std::mem::offset_of;
use std::net::Ipv4Addr;
use std::path::Path;

use libbpf_rs::Object;
use serde::Serialize;
use weft_wire::ethernet::MacAddress;

use super::abi::{OUTCOMES, PORTS, TRILL_COUNTERS_OF_PORT, TRILL_ROUTE_OWN, TrillFib, TrillHostRoute, TrillState};
use super::fib::Fib;
use crate::error::DatapathError;
use crate::table::Table;

/// The two tables, of which one is in use. The loader cuts longer names off.
pub(super) const FIBS: [&str; 2] = [".bss.trill_fib0", ".bss.trill_fib1"];
pub(super) const STATE: &str = ".data.trill_state";
pub(super) const ACCESS: &str = ".data.trill_access";
pub(super) const STATIONS: &str = "trill_fdb";
/// Stations learned behind each port and other RBridge that came, and those that went.
pub(super) const LEARNED: &str = "trill_learned";
pub(super) const FORGOTTEN: &str = "trill_forgotten";
pub(super) const HOST_ROUTES: &str = "trill_host_routes";
pub(super) const COUNTERS: &str = "trill_counters";
/// The section's map is named after the object.
const LEARNT: &str = "trill.bss";

/// Handles on the tables.
#[derive(Debug)]
pub struct RBridgeMaps {
    fibs: [Table; 2],
    state: Table,
    access: Table,
    pub(super) stations: Table,
    pub(super) learned: Table,
    pub(super) forgotten: Table,
    host_routes: Table,
    counters: Table,
    /// What was learned this second; not pinned.
    learnt: Option<Table>,
}

/// What became of the frames of one port, and of the copies that left by it.
#[derive(Clone, Debug, Serialize)]
pub struct PortCounters {
    /// Number of the port; 0: interfaces that are none.
    pub port: u8,
    /// [`OUTCOMES`](super::abi::OUTCOMES) with their numbers, all of them.
    pub counts: Vec<(&'static str, u64)>,
}

/// Where the inter-VLAN gateway sends packets for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRoute {
    /// The host's address, or `None` for the gateway's own address in this VLAN: then ARP for it is answered.
    pub mac: Option<MacAddress>,
    /// The gateway's address in this VLAN.
    pub gateway: MacAddress,
    pub vlan: u16,
}

impl RBridgeMaps {
    pub(super) fn of_object(object: &Object) -> Result<Self, DatapathError> {
        Ok(Self { learnt: Some(Table::of(object, LEARNT)?), ..Self::by(|name| Table::of(object, name))? })
    }

    /// The tables of a data path that is pinned at `dir`.
    ///
    /// # Errors
    /// [`DatapathError::NotPinned`], [`DatapathError::NoRights`] or [`DatapathError::Map`].
    pub fn open_pinned(dir: impl AsRef<Path>) -> Result<Self, DatapathError> {
        Self::by(|name| Table::pinned(dir.as_ref(), name))
    }

    fn by(table: impl Fn(&'static str) -> Result<Table, DatapathError>) -> Result<Self, DatapathError> {
        Ok(Self {
            fibs: [table(FIBS[0])?, table(FIBS[1])?],
            state: table(STATE)?,
            access: table(ACCESS)?,
            stations: table(STATIONS)?,
            learned: table(LEARNED)?,
            forgotten: table(FORGOTTEN)?,
            host_routes: table(HOST_ROUTES)?,
            counters: table(COUNTERS)?,
            learnt: None,
        })
    }

    /// What frames are forwarded by; `None` if nothing was ever told, or by another version.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn fib(&self) -> Result<Option<Fib>, DatapathError> {
        Ok(Fib::decode(&self.table(self.state()?.bank)?))
    }

    /// Into the table that is not in use, then makes it the one in use.
    pub(super) fn install(&self, fib: &Fib) -> Result<(), DatapathError> {
        let bytes = fib.encode()?;
        let state = self.state()?;
        let bank = 1 - state.bank.min(1);
        self.set_table(bank, &bytes)?;
        self.set_state(TrillState { bank, ..state })
    }

    /// Makes an interface index stand for a port, in the table in use.
    pub(super) fn put_port_of(&self, ifindex: u32, number: u8) -> Result<(), DatapathError> {
        let bank = self.state()?.bank;
        let mut bytes = self.table(bank)?;
        bytes[offset_of!(TrillFib, port_of) + ifindex as usize] = number;
        self.set_table(bank, &bytes)
    }

    fn table(&self, bank: u32) -> Result<Vec<u8>, DatapathError> {
        Ok(self.fibs[bank.min(1) as usize].get_bytes(&0u32)?.unwrap_or_default())
    }

    fn set_table(&self, bank: u32, bytes: &[u8]) -> Result<(), DatapathError> {
        self.fibs[bank.min(1) as usize].put_bytes(&0u32, bytes)
    }

    /// Turns the clock: what is learned from now on was seen at `now_s`, seconds of a clock that goes on when a daemon is
    /// restarted. Call it every second; how old stations are is not known better than that.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn tick(&self, now_s: u32) -> Result<(), DatapathError> {
        self.set_state(TrillState { now_s, ..self.state()? }.with_other_stations())
    }

    /// Until then, nanoseconds of the monotonic clock, frames of end stations are carried on shared links. Whoever is not heard
    /// any more is replaced there, so a data path that goes on without its daemon must end in time by itself.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn set_access_until(&self, until_ns: u64) -> Result<(), DatapathError> {
        self.access.put(&0u32, &until_ns)
    }

    /// What [`Self::set_access_until`] said last, an earlier daemon's included; 0 if nobody did.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn access_until(&self) -> Result<u64, DatapathError> {
        Ok(self.access.get(&0u32)?.unwrap_or(0))
    }

    /// Makes the programs look up every destination again.
    pub(super) fn forget_what_was_found(&self) -> Result<(), DatapathError> {
        self.set_state(self.state()?.with_other_stations())
    }

    /// What the clock says.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn now_s(&self) -> Result<u32, DatapathError> {
        Ok(self.state()?.now_s)
    }

    /// The counters of port 0 and of every port that there is.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn counters(&self) -> Result<Vec<PortCounters>, DatapathError> {
        let fib = self.fib()?.unwrap_or_default();
        let ports = std::iter::once(0).chain(fib.ports.keys().copied());
        ports
            .map(|port| {
                let first = u32::from(port) * TRILL_COUNTERS_OF_PORT;
                Ok(PortCounters { port, counts: self.counters.counters_from(first, &OUTCOMES)? })
            })
            .collect()
    }

    /// Frames of all ports that had an outcome, by the CPU that worked on them.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    ///
    /// # Panics
    /// If no outcome has this name.
    pub fn by_cpu(&self, outcome: &str) -> Result<Vec<u64>, DatapathError> {
        let place = OUTCOMES.iter().position(|name| *name == outcome).expect("an outcome of ours") as u32;
        let mut sums = Vec::new();
        for port in 0..PORTS as u32 {
            let per_cpu: Vec<u64> = self.counters.per_cpu(port * TRILL_COUNTERS_OF_PORT + place)?;
            sums.resize(sums.len().max(per_cpu.len()), 0);
            sums.iter_mut().zip(per_cpu).for_each(|(sum, value)| *sum += value);
        }
        Ok(sums)
    }

    /// Sets where the gateway sends packets for an address. What is for the gateway, [`Place::Gateway`](super::Place) of
    /// the stations says.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn set_host_route(&self, host: Ipv4Addr, route: &HostRoute) -> Result<(), DatapathError> {
        let entry = TrillHostRoute {
            mac: route.mac.map_or([0; 6], |mac| mac.0),
            gateway: route.gateway.0,
            vlan: route.vlan,
            flags: if route.mac.is_none() { TRILL_ROUTE_OWN } else { 0 },
        };
        self.host_routes.put(&host.octets(), &entry)
    }

    /// Where the gateway sends packets, in no order; its own addresses are among them.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn host_routes(&self) -> Result<Vec<(Ipv4Addr, HostRoute)>, DatapathError> {
        let all = self.host_routes.all::<[u8; 4], TrillHostRoute>()?;
        Ok(all.iter().map(|(host, entry)| (Ipv4Addr::from(*host), HostRoute::of(entry))).collect())
    }

    /// Removes it; it is no error if there is none.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn remove_host_route(&self, host: Ipv4Addr) -> Result<(), DatapathError> {
        self.host_routes.delete(&host.octets()).map(drop)
    }

    /// Makes the programs look at every source again.
    pub(super) fn forget_what_was_learnt(&self) -> Result<(), DatapathError> {
        self.learnt.as_ref().map_or(Ok(()), Table::clear)
    }

    fn state(&self) -> Result<TrillState, DatapathError> {
        Ok(self.state.get(&0u32)?.unwrap_or_default())
    }

    fn set_state(&self, state: TrillState) -> Result<(), DatapathError> {
        self.state.put(&0u32, &state)
    }
}

impl HostRoute {
    fn of(entry: &TrillHostRoute) -> Self {
        Self {
            mac: (entry.flags & TRILL_ROUTE_OWN == 0).then_some(MacAddress(entry.mac)),
            gateway: MacAddress(entry.gateway),
            vlan: entry.vlan,
        }
    }
}

impl TrillState {
    /// The same, with another version of the table of stations; a cache that was never written has version 0.
    fn with_other_stations(self) -> Self {
        Self { stations_version: self.stations_version.checked_add(1).unwrap_or(1), ..self }
    }
}
