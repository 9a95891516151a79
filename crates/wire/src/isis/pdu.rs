//! The PDUs as values. [`View`] draws their layouts.

use super::MAX_AREAS;
use super::authentication::seal_lsp;
use super::cursor::Writer;
use super::id::{LspId, NodeId, SystemId};
use super::tlv::Tlv;
use super::view::{DISCRIMINATOR, Kind, LspFlags, VERSION, View, lsp_field};
use crate::bytes::{array, u16_at, u32_at};
use crate::error::ParseError;

/// A whole PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu {
    /// Hello on a shared link.
    LanHello(LanHello),
    /// Hello on a point-to-point link.
    P2pHello(P2pHello),
    /// Link state.
    Lsp(Lsp),
    /// Complete list of LSPs in a range.
    Csnp(Csnp),
    /// Partial list of LSPs.
    Psnp(Psnp),
    /// Length test.
    MtuProbe(Mtu),
    /// Its answer.
    MtuAck(Mtu),
    /// Link state of a flooding scope.
    FsLsp(FsLsp),
}

/// Hello on a shared link (ISO 10589 section 9.5, RFC 7177).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanHello {
    /// [`CIRCUIT_TYPE_LEVEL_1`](super::CIRCUIT_TYPE_LEVEL_1) in TRILL.
    pub circuit_type: u8,
    /// The sender.
    pub source: SystemId,
    /// How long the sender is believed to be there, seconds.
    pub holding_time_s: u16,
    /// Priority to become DRB, at most 127.
    pub priority: u8,
    /// The DRB and its number for the link.
    pub lan_id: NodeId,
    /// What it carries.
    pub tlvs: Vec<Tlv>,
}

/// Hello on a point-to-point link (ISO 10589 section 9.7, RFC 7177).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct P2pHello {
    /// [`CIRCUIT_TYPE_LEVEL_1`](super::CIRCUIT_TYPE_LEVEL_1) in TRILL.
    pub circuit_type: u8,
    /// The sender.
    pub source: SystemId,
    /// How long the sender is believed to be there, seconds.
    pub holding_time_s: u16,
    /// The sender's number for the link.
    pub local_circuit: u8,
    /// What it carries.
    pub tlvs: Vec<Tlv>,
}

/// Link state PDU (ISO 10589 section 9.9). Length and checksum are those of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lsp {
    /// Seconds until it expires; 0: it is withdrawn, and has no checksum.
    pub lifetime_s: u16,
    /// Whose it is, and which fragment.
    pub id: LspId,
    /// Larger is newer.
    pub sequence: u32,
    pub flags: LspFlags,
    /// What it carries.
    pub tlvs: Vec<Tlv>,
}

/// Complete sequence numbers PDU (ISO 10589 section 9.11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csnp {
    /// The sender.
    pub source: NodeId,
    /// Every LSP that the sender holds from here
    pub start: LspId,
    /// to here is listed.
    pub end: LspId,
    /// What it carries: [`Tlv::LspEntries`].
    pub tlvs: Vec<Tlv>,
}

/// Partial sequence numbers PDU (ISO 10589 section 9.12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Psnp {
    /// The sender.
    pub source: NodeId,
    /// What it carries: [`Tlv::LspEntries`].
    pub tlvs: Vec<Tlv>,
}

/// MTU-probe and MTU-ack (RFC 7176 section 3); padding brings them to the length under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mtu {
    /// The prober's number for the probe.
    pub probe_id: [u8; 6],
    /// Who asks.
    pub probe_source: SystemId,
    /// Who answers; zero in a probe.
    pub ack_source: SystemId,
    /// What it carries: [`Tlv::Padding`].
    pub tlvs: Vec<Tlv>,
}

/// Link state PDU of a flooding scope (RFC 7356 section 3.1), as ESADI uses it (RFC 7357).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsLsp {
    /// Priority bit and flooding scope.
    pub scope: u8,
    /// Seconds until it expires; 0: it is withdrawn, and has no checksum.
    pub lifetime_s: u16,
    /// Source (6 bytes) and fragment (2 bytes).
    pub id: [u8; 8],
    /// Larger is newer.
    pub sequence: u32,
    pub flags: LspFlags,
    /// 16-bit types with their values, not looked into.
    pub tlvs: Vec<(u16, Vec<u8>)>,
}

/// A PDU that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// A TLV or sub-TLV whose value is longer than its length field can say.
    #[error("value of TLV {code} is longer than 255 bytes; split it over several")]
    TlvTooLong { code: u8 },
    /// More bytes than the PDU length can say.
    #[error("PDU of {len_bytes} bytes is longer than 65535; split it over several")]
    PduTooLong {
        /// Its length, bytes.
        len_bytes: usize,
    },
}

impl Pdu {
    /// Reads a PDU, checksum included.
    ///
    /// # Errors
    /// Those of [`View::new`] and [`View::verify_checksum`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let view = View::new(bytes)?;
        view.verify_checksum()?;
        Ok(Self::of_view(&view))
    }

    /// The PDU of a view as a value. Allocates in proportion to the PDU's length.
    pub fn of_view(view: &View<'_>) -> Self {
        let (bytes, tlvs) = (view.as_bytes(), || view.tlvs().map(|(code, value)| Tlv::parse(code, value)).collect());
        match view.kind() {
            Kind::LanHello => Self::LanHello(LanHello {
                circuit_type: bytes[8],
                source: SystemId(array(bytes, 9)),
                holding_time_s: u16_at(bytes, 15),
                priority: bytes[19] & 0x7f,
                lan_id: view.node_at(20),
                tlvs: tlvs(),
            }),
            Kind::P2pHello => Self::P2pHello(P2pHello {
                circuit_type: bytes[8],
                source: SystemId(array(bytes, 9)),
                holding_time_s: u16_at(bytes, 15),
                local_circuit: bytes[19],
                tlvs: tlvs(),
            }),
            Kind::Lsp => Self::Lsp(Lsp {
                lifetime_s: u16_at(bytes, lsp_field::LIFETIME),
                id: LspId(array(bytes, lsp_field::LSP_ID)),
                sequence: u32_at(bytes, lsp_field::SEQUENCE),
                flags: LspFlags(bytes[lsp_field::FLAGS]),
                tlvs: tlvs(),
            }),
            Kind::FsLsp => Self::FsLsp(FsLsp {
                scope: bytes[7],
                lifetime_s: u16_at(bytes, lsp_field::LIFETIME),
                id: array(bytes, lsp_field::LSP_ID),
                sequence: u32_at(bytes, lsp_field::SEQUENCE),
                flags: LspFlags(bytes[lsp_field::FLAGS]),
                tlvs: view.extended_tlvs().map(|(code, value)| (code, value.to_vec())).collect(),
            }),
            Kind::Csnp => Self::Csnp(Csnp {
                source: view.node_at(10),
                start: LspId(array(bytes, 17)),
                end: LspId(array(bytes, 25)),
                tlvs: tlvs(),
            }),
            Kind::Psnp => Self::Psnp(Psnp { source: view.node_at(10), tlvs: tlvs() }),
            kind @ (Kind::MtuProbe | Kind::MtuAck) => {
                let mtu = Mtu {
                    probe_id: array(bytes, 10),
                    probe_source: SystemId(array(bytes, 16)),
                    ack_source: SystemId(array(bytes, 22)),
                    tlvs: tlvs(),
                };
                if kind == Kind::MtuProbe { Self::MtuProbe(mtu) } else { Self::MtuAck(mtu) }
            }
        }
    }

    /// What the PDU is for.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::LanHello(_) => Kind::LanHello,
            Self::P2pHello(_) => Kind::P2pHello,
            Self::Lsp(_) => Kind::Lsp,
            Self::Csnp(_) => Kind::Csnp,
            Self::Psnp(_) => Kind::Psnp,
            Self::MtuProbe(_) => Kind::MtuProbe,
            Self::MtuAck(_) => Kind::MtuAck,
            Self::FsLsp(_) => Kind::FsLsp,
        }
    }

    /// What it carries; `None` for an FS-LSP, whose types have 16 bits.
    pub fn tlvs_mut(&mut self) -> Option<&mut Vec<Tlv>> {
        match self {
            Self::LanHello(hello) => Some(&mut hello.tlvs),
            Self::P2pHello(hello) => Some(&mut hello.tlvs),
            Self::Lsp(lsp) => Some(&mut lsp.tlvs),
            Self::Csnp(csnp) => Some(&mut csnp.tlvs),
            Self::Psnp(psnp) => Some(&mut psnp.tlvs),
            Self::MtuProbe(mtu) | Self::MtuAck(mtu) => Some(&mut mtu.tlvs),
            Self::FsLsp(_) => None,
        }
    }

    /// The PDU's bytes: length and, for link state that is not withdrawn, checksum filled in.
    ///
    /// # Errors
    /// [`EmitError`]: a TLV or the whole is too long.
    pub fn emit(&self) -> Result<Vec<u8>, EmitError> {
        let kind = self.kind();
        let mut writer = Writer::default();
        let byte_7 = if let Self::FsLsp(lsp) = self { lsp.scope } else { MAX_AREAS };
        writer.slice(&[DISCRIMINATOR, kind.header_len() as u8, VERSION, 0, kind as u8, VERSION, 0, byte_7]);
        self.write_fixed(&mut writer);
        debug_assert_eq!(writer.bytes.len(), kind.header_len());
        self.write_tlvs(&mut writer);
        if let Some(code) = writer.too_long {
            return Err(EmitError::TlvTooLong { code });
        }
        let len_bytes = writer.bytes.len();
        let len = u16::try_from(len_bytes).map_err(|_| EmitError::PduTooLong { len_bytes })?;
        writer.patch_u16(kind.length_offset(), len);
        let mut bytes = writer.bytes;
        if let Self::Lsp(Lsp { lifetime_s: 1.., .. }) | Self::FsLsp(FsLsp { lifetime_s: 1.., .. }) = self {
            seal_lsp(&mut bytes);
        }
        Ok(bytes)
    }

    fn write_fixed(&self, writer: &mut Writer) {
        match self {
            Self::LanHello(hello) => {
                writer.u8(hello.circuit_type);
                writer.slice(&hello.source.0);
                writer.u16(hello.holding_time_s);
                writer.u16(0);
                writer.u8(hello.priority & 0x7f);
                writer.slice(&hello.lan_id.0);
            }
            Self::P2pHello(hello) => {
                writer.u8(hello.circuit_type);
                writer.slice(&hello.source.0);
                writer.u16(hello.holding_time_s);
                writer.u16(0);
                writer.u8(hello.local_circuit);
            }
            Self::Lsp(Lsp { lifetime_s, id: LspId(id), sequence, flags, .. })
            | Self::FsLsp(FsLsp { lifetime_s, id, sequence, flags, .. }) => {
                writer.u16(0);
                writer.u16(*lifetime_s);
                writer.slice(id);
                writer.u32(*sequence);
                writer.u16(0);
                writer.u8(flags.0);
            }
            Self::Csnp(csnp) => {
                writer.u16(0);
                writer.slice(&csnp.source.0);
                writer.slice(&csnp.start.0);
                writer.slice(&csnp.end.0);
            }
            Self::Psnp(psnp) => {
                writer.u16(0);
                writer.slice(&psnp.source.0);
            }
            Self::MtuProbe(mtu) | Self::MtuAck(mtu) => {
                writer.u16(0);
                writer.slice(&mtu.probe_id);
                writer.slice(&mtu.probe_source.0);
                writer.slice(&mtu.ack_source.0);
            }
        }
    }

    fn write_tlvs(&self, writer: &mut Writer) {
        let tlvs = match self {
            Self::LanHello(hello) => &hello.tlvs,
            Self::P2pHello(hello) => &hello.tlvs,
            Self::Lsp(lsp) => &lsp.tlvs,
            Self::Csnp(csnp) => &csnp.tlvs,
            Self::Psnp(psnp) => &psnp.tlvs,
            Self::MtuProbe(mtu) | Self::MtuAck(mtu) => &mtu.tlvs,
            Self::FsLsp(lsp) => {
                for (code, value) in &lsp.tlvs {
                    writer.u16(*code);
                    // A longer value makes the PDU too long as well, and is refused there.
                    writer.u16(value.len() as u16);
                    writer.slice(value);
                }
                return;
            }
        };
        for tlv in tlvs {
            tlv.write(writer);
        }
    }
}

impl Mtu {
    /// The probe or ack padded so that the whole PDU has `len_bytes`; shorter ones stay as they are.
    #[must_use]
    pub fn padded_to(mut self, len_bytes: u16) -> Self {
        let mut left = usize::from(len_bytes).saturating_sub(Kind::MtuProbe.header_len() + Tlv::len_bytes(&self.tlvs));
        while left >= 2 {
            // Never leave a single byte, which no TLV can fill.
            let taken = left.min(257) - usize::from(left == 258);
            self.tlvs.push(Tlv::Padding { len_bytes: (taken - 2) as u8 });
            left -= taken;
        }
        self
    }
}

impl Tlv {
    /// Length of `tlvs` on the wire, bytes.
    pub fn len_bytes(tlvs: &[Self]) -> usize {
        let mut writer = Writer::default();
        tlvs.iter().for_each(|tlv| tlv.write(&mut writer));
        writer.bytes.len()
    }
}
