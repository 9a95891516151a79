//! The tables of an RBridge's data path, of this process or of a running daemon's.

use std::mem::offset_of;
use std::net::Ipv4Addr;
use std::path::Path;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use serde::Serialize;
use weft_wire::ethernet::MacAddress;

use super::abi::{OUTCOMES, PORTS, TRILL_COUNTERS_OF_PORT, TRILL_ROUTE_OWN, TrillFib, TrillHostRoute, TrillState};
use super::fib::Fib;
use crate::abi::Abi;
use crate::error::DatapathError;
use crate::{object, pin};

/// The two tables, of which one is in use. The loader cuts longer names off.
pub(super) const FIBS: [&str; 2] = [".bss.trill_fib0", ".bss.trill_fib1"];
pub(super) const STATE: &str = ".data.trill_state";
pub(super) const STATIONS: &str = "trill_fdb";
pub(super) const HOST_ROUTES: &str = "trill_host_routes";
pub(super) const COUNTERS: &str = "trill_counters";
const LEARNT: &str = ".bss";

/// Handles on the tables.
#[derive(Debug)]
pub struct RBridgeMaps {
    fibs: [MapHandle; 2],
    state: MapHandle,
    pub(super) stations: MapHandle,
    host_routes: MapHandle,
    counters: MapHandle,
    /// What was learned this second; not pinned.
    learnt: Option<MapHandle>,
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
        // The section's map is named after the object: `trill.bss`.
        let learnt = object.maps().find(|map| map.name().to_string_lossy().ends_with(LEARNT));
        Ok(Self {
            fibs: [object::map_handle(object, FIBS[0])?, object::map_handle(object, FIBS[1])?],
            state: object::map_handle(object, STATE)?,
            stations: object::map_handle(object, STATIONS)?,
            host_routes: object::map_handle(object, HOST_ROUTES)?,
            counters: object::map_handle(object, COUNTERS)?,
            learnt: learnt.and_then(|map| MapHandle::try_from(&map).ok()),
        })
    }

    /// The tables of a data path that is pinned at `dir`.
    ///
    /// # Errors
    /// [`DatapathError::NotPinned`], [`DatapathError::NoRights`] or [`DatapathError::Map`].
    pub fn open_pinned(dir: impl AsRef<Path>) -> Result<Self, DatapathError> {
        let dir = dir.as_ref();
        Ok(Self {
            fibs: [pin::open_map(dir, FIBS[0])?, pin::open_map(dir, FIBS[1])?],
            state: pin::open_map(dir, STATE)?,
            stations: pin::open_map(dir, STATIONS)?,
            host_routes: pin::open_map(dir, HOST_ROUTES)?,
            counters: pin::open_map(dir, COUNTERS)?,
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
        let place = bank.min(1) as usize;
        let read = self.fibs[place].lookup(0u32.bytes(), MapFlags::ANY);
        Ok(read.map_err(|source| failed(FIBS[place], "reading", source))?.unwrap_or_default())
    }

    fn set_table(&self, bank: u32, bytes: &[u8]) -> Result<(), DatapathError> {
        let place = bank.min(1) as usize;
        let written = self.fibs[place].update(0u32.bytes(), bytes, MapFlags::ANY);
        written.map_err(|source| failed(FIBS[place], "writing", source))
    }

    /// Turns the clock: what is learned from now on was seen at `now_s`, seconds of a clock that goes on when a daemon is
    /// restarted. Call it every second; how old stations are is not known better than that.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn tick(&self, now_s: u32) -> Result<(), DatapathError> {
        self.set_state(TrillState { now_s, ..self.state()? }.with_other_stations())
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
        ports.map(|port| Ok(PortCounters { port, counts: self.counts_of(port)? })).collect()
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
            let found = self.counters.lookup_percpu((port * TRILL_COUNTERS_OF_PORT + place).bytes(), MapFlags::ANY);
            let per_cpu = found.map_err(|source| failed(COUNTERS, "reading", source))?.unwrap_or_default();
            sums.resize(sums.len().max(per_cpu.len()), 0);
            for (sum, value) in sums.iter_mut().zip(per_cpu) {
                *sum += value.try_into().map_or(0, u64::from_ne_bytes);
            }
        }
        Ok(sums)
    }

    fn counts_of(&self, port: u8) -> Result<Vec<(&'static str, u64)>, DatapathError> {
        let first = u32::from(port) * TRILL_COUNTERS_OF_PORT;
        let sum = |place: u32| -> Result<u64, DatapathError> {
            let found = self.counters.lookup_percpu(place.bytes(), MapFlags::ANY);
            let per_cpu = found.map_err(|source| failed(COUNTERS, "reading", source))?.unwrap_or_default();
            Ok(per_cpu.iter().filter_map(|value| Some(u64::from_ne_bytes(value[..].try_into().ok()?))).sum())
        };
        (first..).zip(OUTCOMES).map(|(place, name)| Ok((name, sum(place)?))).collect()
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
        let updated = self.host_routes.update(&host.octets(), entry.bytes(), MapFlags::ANY);
        updated.map_err(|source| failed(HOST_ROUTES, "setting a route", source))
    }

    /// Where the gateway sends packets, in no order; its own addresses are among them.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn host_routes(&self) -> Result<Vec<(Ipv4Addr, HostRoute)>, DatapathError> {
        let mut routes = Vec::new();
        for key in self.host_routes.keys() {
            let found = self.host_routes.lookup(&key, MapFlags::ANY);
            let value = found.map_err(|source| failed(HOST_ROUTES, "reading", source))?;
            let entry = value.and_then(|value| TrillHostRoute::from_bytes(&value));
            let host = <[u8; 4]>::try_from(&key[..]).ok().map(Ipv4Addr::from);
            routes.extend(host.zip(entry).map(|(host, entry)| (host, HostRoute::of(&entry))));
        }
        Ok(routes)
    }

    /// Removes it; it is no error if there is none.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn remove_host_route(&self, host: Ipv4Addr) -> Result<(), DatapathError> {
        match self.host_routes.delete(&host.octets()) {
            Err(source) if source.kind() != libbpf_rs::ErrorKind::NotFound => {
                Err(failed(HOST_ROUTES, "removing a route", source))
            }
            _ => Ok(()),
        }
    }

    /// Makes the programs look at every source again.
    pub(super) fn forget_what_was_learnt(&self) -> Result<(), DatapathError> {
        let Some(learnt) = &self.learnt else { return Ok(()) };
        let nothing = vec![0; learnt.value_size() as usize];
        learnt.update(0u32.bytes(), &nothing, MapFlags::ANY).map_err(|source| failed(LEARNT, "clearing", source))
    }

    fn state(&self) -> Result<TrillState, DatapathError> {
        let read = self.state.lookup(0u32.bytes(), MapFlags::ANY).map_err(|source| failed(STATE, "reading", source))?;
        Ok(read.and_then(|bytes| TrillState::from_bytes(&bytes)).unwrap_or_default())
    }

    fn set_state(&self, state: TrillState) -> Result<(), DatapathError> {
        let updated = self.state.update(0u32.bytes(), state.bytes(), MapFlags::ANY);
        updated.map_err(|source| failed(STATE, "writing", source))
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

pub(super) fn failed(map: &'static str, what: &'static str, source: libbpf_rs::Error) -> DatapathError {
    DatapathError::Map { map, what, source }
}
