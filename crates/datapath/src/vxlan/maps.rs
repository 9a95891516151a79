//! The VTEP's tables from user space, the same for the daemon and for whoever looks at its pins.

use std::path::Path;

use libbpf_rs::Object;

use crate::error::DatapathError;
use crate::table::Table;

pub(super) const FDB: &str = "vtep_fdb";
/// Learned addresses that came, and those that went.
pub(super) const LEARNED: &str = "vtep_learned";
pub(super) const FORGOTTEN: &str = "vtep_forgotten";
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
/// What segments have told and asked.
pub(super) const BUDGETS: &str = "vtep_budgets";
pub(super) const MEMBERS: &str = "vtep_members";
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
pub(super) const SHARED: [&str; 23] = [
    FDB,
    LEARNED,
    FORGOTTEN,
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
    BUDGETS,
    MEMBERS,
    COUNTERS,
    EVENTS,
    VNI_TRAFFIC,
    PEER_TRAFFIC,
    TOLD,
    MOVED,
    SEEN,
    UPCALLS,
];

/// All tables that user space reads or writes.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) fdb: Table,
    pub(super) learned: Table,
    pub(super) forgotten: Table,
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
    pub(super) members: Table,
    pub(super) counters: Table,
    pub(super) events: Table,
    pub(super) vni_traffic: Table,
    pub(super) peer_traffic: Table,
}

impl Tables {
    pub(super) fn of_object(loaded: &Object) -> Result<Self, DatapathError> {
        Self::by(|name| Table::of(loaded, name))
    }

    pub(super) fn open_pinned(dir: &Path) -> Result<Self, DatapathError> {
        Self::by(|name| Table::pinned(dir, name))
    }

    fn by(table: impl Fn(&'static str) -> Result<Table, DatapathError>) -> Result<Self, DatapathError> {
        Ok(Self {
            fdb: table(FDB)?,
            learned: table(LEARNED)?,
            forgotten: table(FORGOTTEN)?,
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
            members: table(MEMBERS)?,
            counters: table(COUNTERS)?,
            events: table(EVENTS)?,
            vni_traffic: table(VNI_TRAFFIC)?,
            peer_traffic: table(PEER_TRAFFIC)?,
        })
    }
}
