//! How a VTEP is set up: what cannot change while it runs.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use super::abi::{VTEP_DSCP_COPY, VTEP_VLAN_BITS, VtepConfig};
use crate::error::DatapathError;

/// Circuits have 20 bits for the port.
const PORTS_MAX: u32 = (1 << (32 - VTEP_VLAN_BITS)) - 1;

/// Where in the kernel frames are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// TC ingress: super frames and unfinished checksums stay what they are. For TCP between namespaces and VMs.
    Tc,
    /// XDP for known unicast, and the TC programs behind it for everything else. For packet rate.
    ///
    /// XDP knows neither super frames nor unfinished checksums: senders behind such a port need `tx off`, and veth ends
    /// that frames are sent into need an XDP program or `gro on` at the far end.
    Xdp,
}

/// How TC programs are put on interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// tcx links, which end with the process unless pinned. The kernel waits for all CPUs at each: some 16 ms.
    Link,
    /// Classic filters (`clsact`): 0.1 ms each, for thousands of ports. They stay when the process ends without
    /// [`super::Vtep::stop`] or dropping, both in the namespace of the interfaces; `clsact` itself always stays.
    Filter,
}

/// What happens to frames from VTEPs that nobody told this one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownPeers {
    /// Dropped and counted as `unknown_peer`.
    Drop,
    /// Delivered, but nothing is learned from them until [`super::Vtep::add_peer`]; an upcall tells of each.
    Accept,
}

/// DSCP of outer headers (RFC 2983).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dscp {
    /// The inner packet's (uniform model).
    Copy,
    /// The same for all (pipe model), 0 to 63.
    Set(u8),
}

/// How much a VTEP can hold. Memory is taken for ports, limits, counters and addresses at once, for the rest as needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacities {
    /// Addresses that are learned, over all segments.
    pub macs: u32,
    /// Of these, in one segment.
    pub vni_macs: u32,
    /// Of these, behind one access port.
    pub port_macs: u32,
    /// Of these, behind one trunk.
    pub trunk_macs: u32,
    /// More addresses that are kept room for: what the operator and the directory tell.
    pub told_macs: u32,
    /// Addresses that ARP is answered for.
    pub arps: u32,
    /// Segments.
    pub vnis: u32,
    /// Access ports and uplinks.
    pub ports: u32,
    /// Access ports that are trunks; 16 KiB each.
    pub trunks: u32,
    /// Other VTEPs.
    pub peers: u32,
}

impl Default for Capacities {
    /// About 6 MiB.
    fn default() -> Self {
        Self {
            macs: 16384,
            vni_macs: 4096,
            port_macs: 2048,
            trunk_macs: 8192,
            told_macs: 8192,
            arps: 16384,
            vnis: 1024,
            ports: 1024,
            trunks: 64,
            peers: 1024,
        }
    }
}

/// How a VTEP is set up.
#[derive(Clone, Debug)]
pub struct VtepOptions {
    /// TC, or XDP in front of TC.
    pub hook: Hook,
    /// How TC programs are put on interfaces.
    pub attachment: Attachment,
    /// Our address in the underlay.
    pub local: Ipv4Addr,
    /// Destination port of VXLAN datagrams; 4789 ([`weft_wire::vxlan::UDP_PORT`]) unless peers want another.
    pub udp_port: u16,
    /// TTL of outer headers.
    pub ttl: u8,
    /// DSCP of outer headers. ECN is always RFC 6040's normal mode.
    pub dscp: Dscp,
    /// What happens to frames from VTEPs that nobody told this one of.
    pub unknown_peers: UnknownPeers,
    /// How much it can hold.
    pub capacities: Capacities,
    /// Where maps and links are pinned, in a mounted bpffs; `None`: they end with the process.
    pub pin_dir: Option<PathBuf>,
}

impl VtepOptions {
    /// Usual settings: TC by links, port 4789, TTL 64, DSCP copied, unknown peers dropped, nothing pinned.
    pub fn new(local: Ipv4Addr) -> Self {
        Self {
            hook: Hook::Tc,
            attachment: Attachment::Link,
            local,
            udp_port: weft_wire::vxlan::UDP_PORT,
            ttl: 64,
            dscp: Dscp::Copy,
            unknown_peers: UnknownPeers::Drop,
            capacities: Capacities::default(),
            pin_dir: None,
        }
    }

    /// The programs' constants, or what is wrong with these options.
    pub(super) fn constants(&self) -> Result<VtepConfig, DatapathError> {
        let refuse = |field, why: String| Err(DatapathError::Config { field, why });
        let local = self.local;
        if local.is_unspecified() || local.is_multicast() || local.is_broadcast() {
            return refuse("local", format!("{local} is not an address of one node; use this node's underlay address"));
        }
        if self.udp_port == 0 {
            return refuse("udp_port", "0 is no port; 4789 is VXLAN's".to_owned());
        }
        if self.ttl == 0 {
            return refuse("ttl", "0 reaches nobody; 64 is usual".to_owned());
        }
        let dscp = match self.dscp {
            Dscp::Copy => VTEP_DSCP_COPY,
            Dscp::Set(dscp @ 0..64) => dscp << 2,
            Dscp::Set(dscp) => return refuse("dscp", format!("{dscp} is not between 0 and 63")),
        };
        let all = self.capacities;
        if all.ports > PORTS_MAX || all.trunks > PORTS_MAX {
            return refuse("capacities", format!("a VTEP has at most {PORTS_MAX} ports"));
        }
        let macs = [all.macs, all.vni_macs, all.port_macs, all.trunk_macs, all.told_macs];
        if macs.contains(&0) || [all.arps, all.vnis, all.ports, all.trunks, all.peers].contains(&0) {
            return refuse("capacities", "0 leaves no room; `Capacities::default()` is usual".to_owned());
        }
        Ok(VtepConfig {
            local: local.octets(),
            udp_port: self.udp_port.to_be_bytes(),
            ttl: self.ttl,
            dscp,
            accept_unknown_peers: u32::from(self.unknown_peers == UnknownPeers::Accept),
            vnis: all.vnis,
            macs_most: all.macs,
            vni_macs_most: all.vni_macs,
            port_macs_most: all.port_macs,
            trunk_macs_most: all.trunk_macs,
        })
    }
}
