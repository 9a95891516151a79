//! What PDUs carry: one variant for each type that TRILL uses (RFC 7176 section 4), and [`Tlv::Other`] for the rest.

use super::authentication::Scheme;
use super::cursor::{Reader, Writer};
use super::group::GroupSub;
use super::hello::{Neighbors, PortSub, Restart, ThreeWay};
use super::id::{LspId, SystemId};
use super::lsp::{CapabilitySub, Reach};
use crate::ethernet::MacAddress;

/// Types on the wire.
pub mod code {
    /// Area addresses (ISO 10589).
    pub const AREAS: u8 = 1;
    /// Padding (ISO 10589).
    pub const PADDING: u8 = 8;
    /// LSP entries (ISO 10589).
    pub const LSP_ENTRIES: u8 = 9;
    /// Authentication (RFC 5304, RFC 5310).
    pub const AUTHENTICATION: u8 = 10;
    /// Extended sequence number (RFC 7602).
    pub const EXTENDED_SEQUENCE: u8 = 11;
    /// Purge originator (RFC 6232).
    pub const PURGE_ORIGINATOR: u8 = 13;
    /// Largest LSP that the originator takes (ISO 10589).
    pub const LSP_BUFFER_SIZE: u8 = 14;
    /// Fingerprint of a router (RFC 8196).
    pub const FINGERPRINT: u8 = 15;
    /// Neighbours with wide metrics (RFC 5305).
    pub const REACH: u8 = 22;
    /// Protocols supported (RFC 1195).
    pub const PROTOCOLS: u8 = 129;
    /// Host name (RFC 5301).
    pub const HOSTNAME: u8 = 137;
    /// Group addresses listened to (RFC 7176 section 2.1).
    pub const GROUPS: u8 = 142;
    /// Port capabilities (RFC 6165 section 2.1, RFC 7176 section 2.2).
    pub const PORT_CAPABILITY: u8 = 143;
    /// TRILL neighbours (RFC 7176 section 2.5).
    pub const TRILL_NEIGHBORS: u8 = 145;
    /// MAC addresses behind an RBridge (RFC 6165 section 2.2).
    pub const MAC_REACHABILITY: u8 = 147;
    /// BFD enabled (RFC 6213).
    pub const BFD_ENABLED: u8 = 148;
    /// Restart (RFC 8706).
    pub const RESTART: u8 = 211;
    /// Three-way handshake (RFC 5303).
    pub const THREE_WAY: u8 = 240;
    /// Router capability (RFC 7981, RFC 7176 section 2.3).
    pub const CAPABILITY: u8 = 242;
    /// Flooding scopes supported (RFC 7356 section 11).
    pub const FLOODING_SCOPES: u8 = 243;
    /// For experiments: no RFC gives it a meaning.
    pub const EXPERIMENTAL: u8 = 250;
}

/// One TLV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tlv {
    /// Areas of the sender; in TRILL the one area of one zero byte (RFC 7176 section 4.2).
    Areas(Vec<Vec<u8>>),
    /// So many zero bytes.
    Padding {
        /// Length of the value, bytes.
        len_bytes: u8,
    },
    /// LSPs by their versions.
    LspEntries(Vec<LspEntry>),
    /// Who knows the key wrote the PDU; [`Signature`](super::authentication::Signature) says over which bytes.
    Authentication {
        /// Type and key.
        scheme: Scheme,
        /// As long as the algorithm wants.
        digest: Vec<u8>,
    },
    /// Larger than that of all Hellos and sequence numbers PDUs before.
    ExtendedSequence {
        /// Grows with each life of the sender.
        session: u64,
        /// Grows with each PDU.
        packet: u32,
    },
    /// Who purged an LSP, and from whom that one got the purge.
    PurgeOriginator {
        /// Who wrote the purge.
        originator: SystemId,
        /// Whom it was received from, if anyone.
        received_from: Option<SystemId>,
    },
    /// Largest LSP that the originator takes, bytes.
    LspBufferSize(u16),
    /// Neighbours with metrics.
    Reach(Vec<Reach>),
    /// Network layer protocol identifiers.
    Protocols(Vec<u8>),
    /// Host name, as bytes.
    Hostname(Vec<u8>),
    /// Groups listened to.
    Groups(Vec<GroupSub>),
    /// What a port can do.
    PortCapability {
        /// Topology ID, 12 bits.
        topology: u16,
        subs: Vec<PortSub>,
    },
    /// Whom the sender hears on a shared link.
    TrillNeighbors(Neighbors),
    /// MAC addresses behind the sender (ESADI).
    MacReachability {
        topology_or_nickname: u16,
        /// How far to trust it.
        confidence: u8,
        /// VLAN, 12 bits; 0 where the frame says it.
        vlan: u16,
        addresses: Vec<MacAddress>,
    },
    /// Topology and protocol identifiers for which BFD runs.
    BfdEnabled(Vec<(u16, u8)>),
    /// Whether the sender restarts, or has heard of a restart.
    Restart(Restart),
    /// State of the three-way handshake.
    ThreeWay(ThreeWay),
    /// What an RBridge can do.
    Capability {
        router_id: u32,
        /// Flags: S 0x01, D 0x02.
        flags: u8,
        subs: Vec<CapabilitySub>,
    },
    /// Flooding scopes that the sender takes part in.
    FloodingScopes(Vec<u8>),
    /// An experiment of ours: the sender takes data frames without outer header on this link
    /// ([`elided`](crate::trill::elided)). Type 250: the letters `weft` 4, number of the experiment 1.
    Elision,
    /// A type without a meaning here, or a value that does not follow its type's layout.
    Other {
        /// Type.
        code: u8,
        value: Vec<u8>,
    },
}

/// One version of an LSP, as CSNPs and PSNPs name it: lifetime 2, LSP ID 8, sequence number 4, checksum 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LspEntry {
    /// Seconds until it expires.
    pub lifetime_s: u16,
    /// Whose, and which fragment.
    pub id: LspId,
    /// Larger is newer.
    pub sequence: u32,
    pub checksum: u16,
}

/// Length of one [`LspEntry`] on the wire, bytes.
pub const LSP_ENTRY_LEN: usize = 16;
/// Value of [`Tlv::Elision`].
const ELISION: [u8; 5] = *b"weft\x01";
/// Most entries that one TLV holds.
pub const LSP_ENTRIES_MAX: usize = 255 / LSP_ENTRY_LEN;

impl LspEntry {
    /// The entries in the value of a TLV 9, without allocation; `None` if the last one is cut short.
    pub fn iter(value: &[u8]) -> Option<impl Iterator<Item = Self> + '_> {
        let whole = value.len().is_multiple_of(LSP_ENTRY_LEN);
        whole.then(|| value.chunks_exact(LSP_ENTRY_LEN).filter_map(|bytes| Self::read(&mut Reader(bytes))))
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (lifetime_s, id) = (reader.u16()?, LspId(reader.array()?));
        Some(Self { lifetime_s, id, sequence: reader.u32()?, checksum: reader.u16()? })
    }

    fn write(&self, writer: &mut Writer) {
        writer.u16(self.lifetime_s);
        writer.slice(&self.id.0);
        writer.u32(self.sequence);
        writer.u16(self.checksum);
    }
}

impl Tlv {
    /// Reads a value by its type. What does not fit becomes [`Tlv::Other`], so nothing is lost.
    pub fn parse(code: u8, value: &[u8]) -> Self {
        Self::known(code, value).unwrap_or_else(|| Self::Other { code, value: value.to_vec() })
    }

    fn known(code: u8, value: &[u8]) -> Option<Self> {
        let mut reader = Reader(value);
        let tlv = match code {
            code::AREAS => Self::Areas(reader.all(|rest| {
                let len = rest.u8()?;
                rest.slice(len.into()).map(<[u8]>::to_vec)
            })?),
            code::PADDING => Self::zeroes(reader.rest())?,
            code::LSP_ENTRIES => Self::LspEntries(reader.all(LspEntry::read)?),
            code::AUTHENTICATION => {
                let (scheme, digest) = Scheme::split(reader.rest())?;
                Self::Authentication { scheme, digest: digest.to_vec() }
            }
            code::PURGE_ORIGINATOR => Self::purge_originator(&mut reader)?,
            code::LSP_BUFFER_SIZE => Self::LspBufferSize(reader.u16()?),
            code::REACH => Self::Reach(reader.all(Reach::read)?),
            code::PROTOCOLS => Self::Protocols(reader.rest().to_vec()),
            code::HOSTNAME => Self::Hostname(reader.rest().to_vec()),
            code::GROUPS => Self::Groups(reader.all(GroupSub::read)?),
            code::PORT_CAPABILITY => {
                Self::PortCapability { topology: reader.u16()? & 0x0fff, subs: reader.all(PortSub::read)? }
            }
            code::TRILL_NEIGHBORS => Self::TrillNeighbors(Neighbors::read(&mut reader)?),
            code::MAC_REACHABILITY => Self::MacReachability {
                topology_or_nickname: reader.u16()?,
                confidence: reader.u8()?,
                vlan: reader.u16()? & 0x0fff,
                addresses: reader.all(|rest| rest.array().map(MacAddress))?,
            },
            code::EXTENDED_SEQUENCE => Self::ExtendedSequence {
                session: u64::from(reader.u32()?) << 32 | u64::from(reader.u32()?),
                packet: reader.u32()?,
            },
            code::BFD_ENABLED => Self::BfdEnabled(reader.all(|rest| Some((rest.u16()?, rest.u8()?)))?),
            code::RESTART => Self::Restart(Restart::read(&mut reader)?),
            code::THREE_WAY => Self::ThreeWay(ThreeWay::read(&mut reader)?),
            code::CAPABILITY => {
                let (router_id, flags) = (reader.u32()?, reader.u8()?);
                Self::Capability { router_id, flags, subs: reader.all(CapabilitySub::read)? }
            }
            code::FLOODING_SCOPES => Self::FloodingScopes(reader.rest().to_vec()),
            code::EXPERIMENTAL if reader.rest() == ELISION => Self::Elision,
            _ => return None,
        };
        reader.is_empty().then_some(tlv)
    }

    fn zeroes(value: &[u8]) -> Option<Self> {
        let len_bytes = u8::try_from(value.len()).ok()?;
        value.iter().all(|byte| *byte == 0).then_some(Self::Padding { len_bytes })
    }

    fn purge_originator(reader: &mut Reader<'_>) -> Option<Self> {
        let number = reader.u8()?;
        let originator = SystemId(reader.array()?);
        let received_from = match number {
            1 => None,
            2 => Some(SystemId(reader.array()?)),
            _ => return None,
        };
        Some(Self::PurgeOriginator { originator, received_from })
    }

    /// Its type.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Areas(_) => code::AREAS,
            Self::Padding { .. } => code::PADDING,
            Self::LspEntries(_) => code::LSP_ENTRIES,
            Self::Authentication { .. } => code::AUTHENTICATION,
            Self::ExtendedSequence { .. } => code::EXTENDED_SEQUENCE,
            Self::PurgeOriginator { .. } => code::PURGE_ORIGINATOR,
            Self::LspBufferSize(_) => code::LSP_BUFFER_SIZE,
            Self::Reach(_) => code::REACH,
            Self::Protocols(_) => code::PROTOCOLS,
            Self::Hostname(_) => code::HOSTNAME,
            Self::Groups(_) => code::GROUPS,
            Self::PortCapability { .. } => code::PORT_CAPABILITY,
            Self::TrillNeighbors(_) => code::TRILL_NEIGHBORS,
            Self::MacReachability { .. } => code::MAC_REACHABILITY,
            Self::BfdEnabled(_) => code::BFD_ENABLED,
            Self::Restart(_) => code::RESTART,
            Self::ThreeWay(_) => code::THREE_WAY,
            Self::Capability { .. } => code::CAPABILITY,
            Self::FloodingScopes(_) => code::FLOODING_SCOPES,
            Self::Elision => code::EXPERIMENTAL,
            Self::Other { code, .. } => *code,
        }
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        writer.tlv(self.code(), |writer| self.write_value(writer));
    }

    fn write_value(&self, writer: &mut Writer) {
        match self {
            Self::Areas(areas) => {
                for area in areas {
                    // An area address has at most 20 bytes; a longer one overflows the TLV's length and is refused.
                    writer.u8(area.len() as u8);
                    writer.slice(area);
                }
            }
            Self::Padding { len_bytes } => writer.slice(&[0; 255][..usize::from(*len_bytes)]),
            Self::LspEntries(entries) => entries.iter().for_each(|entry| entry.write(writer)),
            Self::Authentication { scheme, digest } => {
                writer.slice(&scheme.bytes());
                writer.slice(digest);
            }
            Self::ExtendedSequence { session, packet } => {
                writer.slice(&session.to_be_bytes());
                writer.u32(*packet);
            }
            Self::PurgeOriginator { originator, received_from } => {
                writer.u8(1 + u8::from(received_from.is_some()));
                writer.slice(&originator.0);
                received_from.iter().for_each(|system| writer.slice(&system.0));
            }
            Self::LspBufferSize(size) => writer.u16(*size),
            Self::Reach(neighbors) => neighbors.iter().for_each(|neighbor| neighbor.write(writer)),
            Self::Protocols(value)
            | Self::Hostname(value)
            | Self::FloodingScopes(value)
            | Self::Other { value, .. } => {
                writer.slice(value);
            }
            Self::Elision => writer.slice(&ELISION),
            Self::Groups(subs) => subs.iter().for_each(|sub| sub.write(writer)),
            Self::PortCapability { topology, subs } => {
                writer.u16(topology & 0x0fff);
                subs.iter().for_each(|sub| sub.write(writer));
            }
            Self::TrillNeighbors(neighbors) => neighbors.write(writer),
            Self::MacReachability { topology_or_nickname, confidence, vlan, addresses } => {
                writer.u16(*topology_or_nickname);
                writer.u8(*confidence);
                writer.u16(vlan & 0x0fff);
                addresses.iter().for_each(|address| writer.slice(&address.0));
            }
            Self::BfdEnabled(records) => {
                for (topology, protocol) in records {
                    writer.u16(*topology);
                    writer.u8(*protocol);
                }
            }
            Self::Restart(restart) => restart.write(writer),
            Self::ThreeWay(three_way) => three_way.write(writer),
            Self::Capability { router_id, flags, subs } => {
                writer.u32(*router_id);
                writer.u8(*flags);
                subs.iter().for_each(|sub| sub.write(writer));
            }
        }
    }
}
