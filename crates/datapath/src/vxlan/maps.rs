//! The VTEP's tables from user space: typed access, the same for the daemon and for whoever looks at its pins.

use std::path::Path;

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle, Object};

use crate::abi::Abi;
use crate::error::DatapathError;
use crate::{object, pin};

pub(super) const FDB: &str = "vtep_fdb";
pub(super) const PORTS: &str = "vtep_ports";
pub(super) const VTEP_PORT_SLOTS: &str = "vtep_port_slots";
pub(super) const PORT_INDEX: &str = "vtep_port_index";
pub(super) const VLANS: &str = "vtep_vlans";
pub(super) const VTEP_PEER_SLOTS: &str = "vtep_peer_slots";
pub(super) const PEER_INDEX: &str = "vtep_peer_index";
pub(super) const VNIS: &str = "vtep_vnis";
pub(super) const FLOODS: &str = "vtep_floods";
pub(super) const ARP: &str = "vtep_arp";
pub(super) const LIMITS: &str = "vtep_limits";
pub(super) const COUNTERS: &str = "vtep_counters";
pub(super) const EVENTS: &str = "vtep_events";
pub(super) const VNI_TRAFFIC: &str = "vtep_vni_traffic";
pub(super) const PEER_TRAFFIC: &str = "vtep_peer_traffic";
/// Changes of the forwarding table by user space, and by stations that moved.
pub(super) const TOLD: &str = ".data.vtep_told";
const MOVED: &str = ".data.vtep_moved";
const SEEN: &str = ".bss.vtep_seen";
pub(super) const UPCALLS: &str = "vtep_upcalls";
pub(super) const STATE: &str = ".data.vtep";
pub(super) const CLOCKS: &str = "vtep_clocks";
pub(super) const HOPS: &str = "vtep_hops";
pub(super) const DEVICES: &str = "vtep_devices";

/// The maps that TC and XDP programs share and that outlive a process.
pub(super) const SHARED: [&str; 19] = [
    FDB,
    PORTS,
    VTEP_PORT_SLOTS,
    PORT_INDEX,
    VLANS,
    VTEP_PEER_SLOTS,
    PEER_INDEX,
    VNIS,
    FLOODS,
    ARP,
    LIMITS,
    COUNTERS,
    EVENTS,
    VNI_TRAFFIC,
    PEER_TRAFFIC,
    TOLD,
    MOVED,
    SEEN,
    UPCALLS,
];

/// Entries that one call to the kernel sets.
const BATCH: usize = 1024;

/// One table.
#[derive(Debug)]
pub(super) struct Table {
    map: MapHandle,
    name: &'static str,
}

impl Table {
    fn failed(&self, what: &'static str) -> impl Fn(libbpf_rs::Error) -> DatapathError + use<> {
        let map = self.name;
        move |source| DatapathError::Map { map, what, source }
    }

    pub(super) fn get<V: Abi>(&self, key: &impl Abi) -> Result<Option<V>, DatapathError> {
        let found = self.map.lookup(key.bytes(), MapFlags::ANY).map_err(self.failed("reading"))?;
        Ok(found.and_then(|bytes| V::from_bytes(&bytes)))
    }

    pub(super) fn put(&self, key: &impl Abi, value: &impl Abi) -> Result<(), DatapathError> {
        self.map.update(key.bytes(), value.bytes(), MapFlags::ANY).map_err(self.failed("setting an entry"))
    }

    /// Sets many entries, with a call to the kernel for each thousand.
    pub(super) fn put_all<K: Abi, V: Abi>(&self, entries: &[(K, V)]) -> Result<(), DatapathError> {
        for some in entries.chunks(BATCH) {
            let keys: Vec<u8> = some.iter().flat_map(|(key, _)| key.bytes()).copied().collect();
            let values: Vec<u8> = some.iter().flat_map(|(_, value)| value.bytes()).copied().collect();
            let count = u32::try_from(some.len()).expect("at most a batch");
            let put = self.map.update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::ANY);
            put.map_err(self.failed("setting entries"))?;
        }
        Ok(())
    }

    /// Returns whether there was one.
    pub(super) fn delete(&self, key: &impl Abi) -> Result<bool, DatapathError> {
        match self.map.delete(key.bytes()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed("removing an entry")(error)),
        }
    }

    /// Everything in it. What changes meanwhile may be missed or come twice.
    pub(super) fn all<K: Abi, V: Abi>(&self) -> Result<Vec<(K, V)>, DatapathError> {
        // As one batch: the library takes one that the kernel did not fill to the brim for the last.
        let whole = self.map.max_entries();
        let batches = self.map.lookup_batch(whole, MapFlags::ANY, MapFlags::ANY).map_err(self.failed("listing"))?;
        Ok(batches.filter_map(|(key, value)| Some((K::from_bytes(&key)?, V::from_bytes(&value)?))).collect())
    }

    /// The value on every CPU.
    pub(super) fn per_cpu<V: Abi>(&self, key: u32) -> Result<Vec<V>, DatapathError> {
        let values = self.map.lookup_percpu(key.bytes(), MapFlags::ANY).map_err(self.failed("reading"))?;
        Ok(values.unwrap_or_default().iter().filter_map(|bytes| V::from_bytes(bytes)).collect())
    }

    /// Sets the value on every CPU.
    pub(super) fn put_per_cpu(&self, key: u32, value: &impl Abi) -> Result<(), DatapathError> {
        let values = self.map.lookup_percpu(key.bytes(), MapFlags::ANY).map_err(self.failed("reading"))?;
        let same: Vec<Vec<u8>> = values.unwrap_or_default().iter().map(|_| value.bytes().to_vec()).collect();
        self.map.update_percpu(key.bytes(), &same, MapFlags::ANY).map_err(self.failed("setting an entry"))
    }

    /// Sets the value to zero on every CPU.
    pub(super) fn clear_per_cpu(&self, key: u32) -> Result<(), DatapathError> {
        let values = self.map.lookup_percpu(key.bytes(), MapFlags::ANY).map_err(self.failed("reading"))?;
        let zeros: Vec<Vec<u8>> = values.unwrap_or_default().iter().map(|value| vec![0; value.len()]).collect();
        self.map.update_percpu(key.bytes(), &zeros, MapFlags::ANY).map_err(self.failed("clearing"))
    }
}

/// All tables that user space reads or writes.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) fdb: Table,
    pub(super) told: Table,
    pub(super) ports: Table,
    pub(super) port_slots: Table,
    pub(super) port_index: Table,
    pub(super) vlans: Table,
    pub(super) peer_slots: Table,
    pub(super) peer_index: Table,
    pub(super) vnis: Table,
    pub(super) floods: Table,
    pub(super) arp: Table,
    pub(super) limits: Table,
    pub(super) counters: MapHandle,
    pub(super) events: MapHandle,
    pub(super) vni_traffic: Table,
    pub(super) peer_traffic: Table,
}

impl Tables {
    pub(super) fn of_object(loaded: &Object) -> Result<Self, DatapathError> {
        Self::by(|name| object::map_handle(loaded, name))
    }

    pub(super) fn open_pinned(dir: &Path) -> Result<Self, DatapathError> {
        Self::by(|name| pin::open_map(dir, name))
    }

    fn by(open: impl Fn(&'static str) -> Result<MapHandle, DatapathError>) -> Result<Self, DatapathError> {
        let table = |name| Ok::<Table, DatapathError>(Table { map: open(name)?, name });
        Ok(Self {
            fdb: table(FDB)?,
            told: table(TOLD)?,
            ports: table(PORTS)?,
            port_slots: table(VTEP_PORT_SLOTS)?,
            port_index: table(PORT_INDEX)?,
            vlans: table(VLANS)?,
            peer_slots: table(VTEP_PEER_SLOTS)?,
            peer_index: table(PEER_INDEX)?,
            vnis: table(VNIS)?,
            floods: table(FLOODS)?,
            arp: table(ARP)?,
            limits: table(LIMITS)?,
            counters: open(COUNTERS)?,
            events: open(EVENTS)?,
            vni_traffic: table(VNI_TRAFFIC)?,
            peer_traffic: table(PEER_TRAFFIC)?,
        })
    }
}

/// One table of a loaded object that is not shared.
pub(super) fn table_of(loaded: &Object, name: &'static str) -> Result<Table, DatapathError> {
    Ok(Table { map: object::map_handle(loaded, name)?, name })
}
