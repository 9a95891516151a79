//! What Hellos carry: the three-way handshake (RFC 5303), port capabilities and neighbours (RFC 7176 sections 2.2, 2.5).

mod bitmap;
mod neighbors;
mod restart;

use super::cursor::{Reader, Writer};
use super::id::SystemId;

pub use bitmap::VlanBitmap;
pub use neighbors::{NeighborRecord, Neighbors};
pub use restart::Restart;

/// State of a point-to-point adjacency as its end sees it (RFC 5303 section 3.1); the numbers are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeState {
    /// Hears the other end, and is heard.
    Up = 0,
    /// Hears the other end, and does not know whether it is heard.
    Initializing = 1,
    /// Hears nothing.
    Down = 2,
}

/// TLV 240: state 1, own extended circuit ID 4, then the neighbour's system ID 6 and extended circuit ID 4, if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreeWay {
    /// The sender's state.
    pub state: HandshakeState,
    /// The sender's number for the link; `None` in a TLV of the state alone.
    pub local_circuit: Option<u32>,
    /// Whom the sender hears.
    pub neighbor: Option<SystemId>,
    /// That one's number for the link.
    pub neighbor_circuit: Option<u32>,
}

impl ThreeWay {
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let state = match reader.u8()? {
            0 => HandshakeState::Up,
            1 => HandshakeState::Initializing,
            2 => HandshakeState::Down,
            _ => return None,
        };
        let mut three_way = Self { state, local_circuit: None, neighbor: None, neighbor_circuit: None };
        if !reader.is_empty() {
            three_way.local_circuit = Some(reader.u32()?);
        }
        if !reader.is_empty() {
            three_way.neighbor = Some(SystemId(reader.array()?));
        }
        if !reader.is_empty() {
            three_way.neighbor_circuit = Some(reader.u32()?);
        }
        Some(three_way)
    }

    /// Fields are written as far as none before is missing: the layout has no gaps.
    pub(super) fn write(&self, writer: &mut Writer) {
        writer.u8(self.state as u8);
        let Some(local) = self.local_circuit else { return };
        writer.u32(local);
        let Some(neighbor) = self.neighbor else { return };
        writer.slice(&neighbor.0);
        if let Some(circuit) = self.neighbor_circuit {
            writer.u32(circuit);
        }
    }
}

/// A sub-TLV of the port capability TLV (RFC 7176 section 2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortSub {
    /// Type 1, exactly one in every Hello: port ID 2, nickname 2, flags and outer VLAN 2, flag and Designated VLAN 2.
    VlanFlags(VlanFlags),
    /// Type 2: VLANs that end stations may use on the port.
    EnabledVlans(VlanBitmap),
    /// Type 3: who forwards for which VLANs.
    AppointedForwarders(Vec<Appointment>),
    /// Type 7: largest version and capabilities of the port.
    PortVersion {
        /// Largest TRILL version spoken.
        max_version: u8,
        /// Capability bits.
        capabilities: u32,
    },
    /// Type 8: VLANs that the sender forwards for.
    VlansAppointed(VlanBitmap),
    /// Any other, or one that does not follow its layout.
    Other {
        /// Type.
        code: u8,
        value: Vec<u8>,
    },
}

/// VLANs and flags of a Hello (RFC 7176 section 2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct VlanFlags {
    /// The sender's number for its port.
    pub port_id: u16,
    /// A nickname of the sender; 0: none yet.
    pub nickname: u16,
    /// "AF": the sender forwards for the outer VLAN.
    pub forwarder: bool,
    /// "AC": the port is an access port.
    pub access: bool,
    /// "VM": VLAN mapping was detected.
    pub vlan_mapping: bool,
    /// "BY": no pseudonode for this link.
    pub bypass_pseudonode: bool,
    /// VLAN that the Hello was sent on, 12 bits.
    pub outer_vlan: u16,
    /// "TR": the port is a trunk.
    pub trunk: bool,
    /// VLAN for TRILL frames on the link, 12 bits.
    pub designated_vlan: u16,
}

/// One appointed forwarder (RFC 7176 section 2.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Appointment {
    pub nickname: u16,
    /// First VLAN, 12 bits.
    pub start_vlan: u16,
    /// Last VLAN, 12 bits.
    pub end_vlan: u16,
}

mod port_code {
    pub(super) const VLAN_FLAGS: u8 = 1;
    pub(super) const ENABLED_VLANS: u8 = 2;
    pub(super) const APPOINTED_FORWARDERS: u8 = 3;
    pub(super) const PORT_VERSION: u8 = 7;
    pub(super) const VLANS_APPOINTED: u8 = 8;
}

impl PortSub {
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (code, value) = reader.tlv()?;
        Some(Self::known(code, value).unwrap_or_else(|| Self::Other { code, value: value.to_vec() }))
    }

    fn known(code: u8, value: &[u8]) -> Option<Self> {
        let mut reader = Reader(value);
        let sub = match code {
            port_code::VLAN_FLAGS => Self::VlanFlags(VlanFlags::read(&mut reader)?),
            port_code::ENABLED_VLANS => Self::EnabledVlans(VlanBitmap::read(&mut reader)?),
            port_code::APPOINTED_FORWARDERS => Self::AppointedForwarders(reader.all(|rest| {
                let (nickname, start, end) = (rest.u16()?, rest.u16()?, rest.u16()?);
                Some(Appointment { nickname, start_vlan: start & 0x0fff, end_vlan: end & 0x0fff })
            })?),
            port_code::PORT_VERSION => Self::PortVersion { max_version: reader.u8()?, capabilities: reader.u32()? },
            port_code::VLANS_APPOINTED => Self::VlansAppointed(VlanBitmap::read(&mut reader)?),
            _ => return None,
        };
        reader.is_empty().then_some(sub)
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        match self {
            Self::VlanFlags(flags) => writer.tlv(port_code::VLAN_FLAGS, |writer| flags.write(writer)),
            Self::EnabledVlans(vlans) => writer.tlv(port_code::ENABLED_VLANS, |writer| vlans.write(writer)),
            Self::AppointedForwarders(appointments) => writer.tlv(port_code::APPOINTED_FORWARDERS, |writer| {
                for appointment in appointments {
                    writer.u16(appointment.nickname);
                    writer.u16(appointment.start_vlan & 0x0fff);
                    writer.u16(appointment.end_vlan & 0x0fff);
                }
            }),
            Self::PortVersion { max_version, capabilities } => writer.tlv(port_code::PORT_VERSION, |writer| {
                writer.u8(*max_version);
                writer.u32(*capabilities);
            }),
            Self::VlansAppointed(vlans) => writer.tlv(port_code::VLANS_APPOINTED, |writer| vlans.write(writer)),
            Self::Other { code, value } => writer.tlv(*code, |writer| writer.slice(value)),
        }
    }
}

impl VlanFlags {
    const FORWARDER: u16 = 1 << 15;
    const ACCESS: u16 = 1 << 14;
    const VLAN_MAPPING: u16 = 1 << 13;
    const BYPASS: u16 = 1 << 12;
    const TRUNK: u16 = 1 << 15;

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (port_id, nickname, outer, designated) = (reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?);
        Some(Self {
            port_id,
            nickname,
            forwarder: outer & Self::FORWARDER != 0,
            access: outer & Self::ACCESS != 0,
            vlan_mapping: outer & Self::VLAN_MAPPING != 0,
            bypass_pseudonode: outer & Self::BYPASS != 0,
            outer_vlan: outer & 0x0fff,
            trunk: designated & Self::TRUNK != 0,
            designated_vlan: designated & 0x0fff,
        })
    }

    fn write(&self, writer: &mut Writer) {
        let bit = |set: bool, mask: u16| if set { mask } else { 0 };
        let outer = bit(self.forwarder, Self::FORWARDER)
            | bit(self.access, Self::ACCESS)
            | bit(self.vlan_mapping, Self::VLAN_MAPPING)
            | bit(self.bypass_pseudonode, Self::BYPASS);
        writer.u16(self.port_id);
        writer.u16(self.nickname);
        writer.u16(outer | self.outer_vlan & 0x0fff);
        writer.u16(bit(self.trunk, Self::TRUNK) | self.designated_vlan & 0x0fff);
    }
}
