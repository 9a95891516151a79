//! The checked look at a PDU in its receive buffer.
//!
//! Fixed parts, offsets from the PDU's first byte:
//!
//! ```text
//! LAN Hello (15)    8 circuit type 1, source 6, holding time 2, PDU length 2 (17), priority 1, LAN ID 7    27 TLVs
//! P2P Hello (17)    8 circuit type 1, source 6, holding time 2, PDU length 2 (17), local circuit ID 1      20 TLVs
//! LSP (18)          8 PDU length 2, remaining lifetime 2, LSP ID 8 (12), sequence number 4 (20), checksum 2 (24), flags 1   27
//! CSNP (24)         8 PDU length 2, source 7, start LSP ID 8 (17), end LSP ID 8 (25)                       33 TLVs
//! PSNP (26)         8 PDU length 2, source 7                                                               17 TLVs
//! MTU-probe (23), MTU-ack (28)   8 PDU length 2, probe ID 6, probe source 6, ack source 6 (RFC 7176 section 3)   28 TLVs
//! FS-LSP (10)       as LSP, with the flooding scope in byte 7 and 16-bit types and lengths (RFC 7356)      27 TLVs
//! ```

use std::sync::Arc;

use super::cursor::Reader;
use super::fletcher;
use super::id::{LspId, NodeId, SystemId};
use crate::bytes::{array, put, u16_at, u32_at};
use crate::error::{ParseError, need};

/// First byte of every IS-IS PDU (ISO 10589 section 9.1).
pub const DISCRIMINATOR: u8 = 0x83;
/// Length of what all PDUs begin with, bytes.
pub const COMMON_LEN: usize = 8;
pub(super) const VERSION: u8 = 1;
const ID_LENGTHS: [u8; 2] = [0, 6];
const TYPE_MASK: u8 = 0x1f;

/// Where an LSP's fields are. All of `LSP_ID..` is covered by the checksum.
pub(super) mod lsp_field {
    pub(in crate::isis) const LIFETIME: usize = 10;
    pub(in crate::isis) const LSP_ID: usize = 12;
    pub(in crate::isis) const SEQUENCE: usize = 20;
    pub(in crate::isis) const CHECKSUM: usize = 24;
    pub(in crate::isis) const FLAGS: usize = 26;
}

/// What a PDU is for; the numbers are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Flooding-scope LSP (RFC 7356).
    FsLsp = 10,
    /// Level 1 Hello on a shared link.
    LanHello = 15,
    /// Hello on a point-to-point link.
    P2pHello = 17,
    /// Level 1 link state PDU.
    Lsp = 18,
    /// "Can you take frames of this length?" (RFC 7176 section 3).
    MtuProbe = 23,
    /// Level 1 complete list of the LSPs in a range.
    Csnp = 24,
    /// Level 1 list of some LSPs: acknowledged or asked for.
    Psnp = 26,
    /// "I can" (RFC 7176 section 3).
    MtuAck = 28,
}

impl Kind {
    const ALL: [Self; 8] =
        [Self::FsLsp, Self::LanHello, Self::P2pHello, Self::Lsp, Self::MtuProbe, Self::Csnp, Self::Psnp, Self::MtuAck];

    /// Length of the common header and the fixed part, bytes.
    pub const fn header_len(self) -> usize {
        match self {
            Self::LanHello | Self::Lsp | Self::FsLsp => 27,
            Self::P2pHello => 20,
            Self::Csnp => 33,
            Self::Psnp => 17,
            Self::MtuProbe | Self::MtuAck => 28,
        }
    }

    /// Where the PDU length stands.
    pub(super) const fn length_offset(self) -> usize {
        if matches!(self, Self::LanHello | Self::P2pHello) { 17 } else { 8 }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code)
    }
}

/// A PDU whose fixed fields and lengths are right, down to the last TLV.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    bytes: &'a [u8],
    kind: Kind,
}

impl<'a> View<'a> {
    /// Looks at what follows the Ethertype; bytes behind the PDU (padding of short frames) are cut off. Never allocates.
    ///
    /// An LSP's checksum is left to [`View::verify_checksum`].
    ///
    /// # Errors
    /// The first rule that `bytes` break: discriminator, versions, ID length, PDU type, header length, PDU length, the
    /// lengths of the TLVs.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ParseError> {
        need(bytes, COMMON_LEN)?;
        if bytes[0] != DISCRIMINATOR {
            return Err(ParseError::Magic(u16_at(bytes, 0)));
        }
        for version in [bytes[2], bytes[5]] {
            if version != VERSION {
                return Err(ParseError::Version(version));
            }
        }
        if !ID_LENGTHS.contains(&bytes[3]) {
            return Err(ParseError::Count(bytes[3]));
        }
        let code = bytes[4] & TYPE_MASK;
        let kind = Kind::from_code(code).ok_or(ParseError::Kind(code.into()))?;
        let (header_len, found_bytes) = (kind.header_len(), usize::from(bytes[1]));
        if found_bytes != header_len {
            return Err(ParseError::Length { expected_bytes: header_len, found_bytes });
        }
        need(bytes, header_len)?;
        let pdu_len = usize::from(u16_at(bytes, kind.length_offset()));
        if pdu_len < header_len {
            return Err(ParseError::Length { expected_bytes: header_len, found_bytes: pdu_len });
        }
        need(bytes, pdu_len)?;
        let view = Self { bytes: &bytes[..pdu_len], kind };
        view.check_tlvs()?;
        Ok(view)
    }

    /// Every TLV ends within the PDU.
    fn check_tlvs(&self) -> Result<(), ParseError> {
        let mut rest = Reader(&self.bytes[self.kind.header_len()..]);
        while !rest.is_empty() {
            let found_bytes = rest.0.len();
            let fits = if self.kind == Kind::FsLsp { extended(&mut rest).is_some() } else { rest.tlv().is_some() };
            if !fits {
                return Err(ParseError::Truncated { needed_bytes: found_bytes + 1, found_bytes });
            }
        }
        Ok(())
    }

    /// What the PDU is for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The PDU without padding behind it.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The maximum areas field; 1 in TRILL (RFC 7177 section 8.2). Flooding-scope PDUs have their scope there.
    pub fn max_areas(&self) -> u8 {
        self.bytes[7]
    }

    /// Types and values of the TLVs, in order; none for the 16-bit ones of an FS-LSP.
    pub fn tlvs(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let body = if self.kind == Kind::FsLsp { &[] } else { &self.bytes[self.kind.header_len()..] };
        let mut rest = Reader(body);
        std::iter::from_fn(move || rest.tlv())
    }

    /// 16-bit types and values of an FS-LSP's TLVs, in order; none for other PDUs.
    pub fn extended_tlvs(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let body = if self.kind == Kind::FsLsp { &self.bytes[self.kind.header_len()..] } else { &[] };
        let mut rest = Reader(body);
        std::iter::from_fn(move || extended(&mut rest))
    }

    /// The fields of an LSP or FS-LSP; `None` for other PDUs.
    pub fn lsp(&self) -> Option<LspHeader> {
        let bytes = self.bytes;
        matches!(self.kind, Kind::Lsp | Kind::FsLsp).then(|| LspHeader {
            lifetime_s: u16_at(bytes, lsp_field::LIFETIME),
            id: LspId(array(bytes, lsp_field::LSP_ID)),
            sequence: u32_at(bytes, lsp_field::SEQUENCE),
            checksum: u16_at(bytes, lsp_field::CHECKSUM),
            flags: LspFlags(bytes[lsp_field::FLAGS]),
        })
    }

    /// Checks the checksum of an LSP; a purge (lifetime 0) and other PDUs have none to check.
    ///
    /// # Errors
    /// [`ParseError::Checksum`]: the PDU was damaged, or says "no checksum" by zero, which only a purge may.
    pub fn verify_checksum(&self) -> Result<(), ParseError> {
        let Some(header) = self.lsp() else { return Ok(()) };
        let is_good = || header.checksum != 0 && fletcher::is_valid(&self.bytes[lsp_field::LSP_ID..]);
        if header.lifetime_s == 0 || is_good() { Ok(()) } else { Err(ParseError::Checksum(header.checksum)) }
    }

    /// The system that sent a Hello, CSNP or PSNP; `None` for other PDUs.
    pub fn source(&self) -> Option<SystemId> {
        match self.kind {
            Kind::LanHello | Kind::P2pHello => Some(SystemId(array(self.bytes, 9))),
            Kind::Csnp | Kind::Psnp => Some(self.node_at(10).system()),
            _ => None,
        }
    }

    pub(super) fn node_at(&self, offset: usize) -> NodeId {
        NodeId(array(self.bytes, offset))
    }
}

fn extended<'a>(rest: &mut Reader<'a>) -> Option<(u16, &'a [u8])> {
    let (code, len) = (rest.u16()?, rest.u16()?);
    Some((code, rest.slice(len.into())?))
}

/// The fields that identify one version of an LSP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LspHeader {
    /// Seconds until it expires; 0: it is withdrawn.
    pub lifetime_s: u16,
    /// Whose it is, and which fragment.
    pub id: LspId,
    /// Larger is newer.
    pub sequence: u32,
    /// As on the wire.
    pub checksum: u16,
    pub flags: LspFlags,
}

/// The last byte of an LSP's fixed part (ISO 10589 section 9.9), as on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LspFlags(pub u8);

impl LspFlags {
    /// A level 1 system without overload.
    pub const LEVEL_1: Self = Self(0x01);
    const OVERLOAD: u8 = 0x04;

    /// Whether no path may lead through the system.
    pub const fn is_overloaded(self) -> bool {
        self.0 & Self::OVERLOAD != 0
    }

    /// The same flags with the overload bit as given.
    #[must_use]
    pub const fn with_overload(self, overloaded: bool) -> Self {
        Self(if overloaded { self.0 | Self::OVERLOAD } else { self.0 & !Self::OVERLOAD })
    }
}

/// A copy of an LSP with another remaining lifetime, which its checksum does not cover: how every holder sends it on.
/// One allocation, ready to be shared between ports.
///
/// # Panics
/// When `lsp` is not the bytes of an LSP.
pub fn with_lifetime(lsp: &[u8], lifetime_s: u16) -> Arc<[u8]> {
    let mut copy: Arc<[u8]> = lsp.into();
    let bytes = Arc::get_mut(&mut copy).expect("a new copy is not shared yet");
    put(bytes, lsp_field::LIFETIME, &lifetime_s.to_be_bytes());
    copy
}
