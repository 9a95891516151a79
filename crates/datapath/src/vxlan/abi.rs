//! What the VTEP's programs and user space share: the Rust of `bpf/vxlan_abi.h`.
#![allow(unsafe_code)]

use crate::abi::header;

header!("vxlan_abi");

/// VTEPs that one flood can reach.
pub(super) const FLOOD_REMOTES: usize = VTEP_FLOOD_REMOTES as usize;
/// Own ports that one flood can reach.
pub(super) const FLOOD_PORTS: usize = VTEP_FLOOD_PORTS as usize;

impl VtepFlood {
    pub(super) fn remotes(&self) -> &[[u8; 4]] {
        &self.remote[..(self.remotes as usize).min(FLOOD_REMOTES)]
    }

    pub(super) fn ports(&self) -> &[u32] {
        &self.port[..(self.ports as usize).min(FLOOD_PORTS)]
    }
}

/// The circuit of a port without a tag, or of this VLAN of a trunk.
pub(super) fn circuit(port_index: u32, vlan: u16) -> u32 {
    port_index << VTEP_VLAN_BITS | u32::from(vlan)
}

/// Index of the port and VLAN ID of a circuit.
pub(super) fn of_circuit(circuit: u32) -> (u32, u16) {
    (circuit >> VTEP_VLAN_BITS, (circuit & VTEP_VLAN_MASK) as u16)
}

/// Outcomes before this one are frames that went on; this one and those after it are drops.
pub const FIRST_DROP: &str = "no_segment";
