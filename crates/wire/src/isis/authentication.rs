//! Authentication of PDUs (TLV 10): its bytes, and which bytes a digest is made over (RFC 5304, RFC 5310). Whoever holds
//! keys feeds [`Signature::covered`] to a hash; here is no cryptography.
//!
//! ```text
//! HMAC-MD5 (RFC 5304)   0 type 54   1 digest 16
//! generic  (RFC 5310)   0 type 3    1 key ID 2    3 digest: 20 (SHA-1), 28, 32, 48, 64 (SHA-2)
//! ```
//!
//! A digest is made over the whole PDU. Its own bytes count as zeros (type 54) or as 878fe1f3 over and over (type 3:
//! "Apad", RFC 5310 section 3.3). So do remaining lifetime and checksum of an LSP as zeros: every holder changes the
//! one, and the digest itself changes the other. An LSP is thus passed on with its originator's digest.

use std::ops::Range;

use super::fletcher;
use super::tlv::code;
use super::view::{Kind, View, lsp_field};
use crate::bytes::put;

const HMAC_MD5: u8 = 54;
const GENERIC: u8 = 3;
/// Longest value of a TLV, bytes.
const VALUE_MAX: usize = 255;
const ZEROS: [u8; VALUE_MAX] = [0; VALUE_MAX];
const APAD: [u8; VALUE_MAX] = apad();

/// How a PDU is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Type 54: HMAC-MD5 (RFC 5304). Nothing names the key.
    HmacMd5,
    /// Type 3: what key and algorithm the ID stands for is agreed elsewhere (RFC 5310).
    Generic { key_id: u16 },
}

/// The authentication of a PDU in its buffer.
#[derive(Clone, Debug)]
pub struct Signature<'a> {
    pdu: &'a [u8],
    kind: Kind,
    scheme: Scheme,
    /// Where the digest is.
    at: Range<usize>,
}

/// Why a PDU has no authentication that could be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSignature {
    /// There is none.
    Missing,
    /// There are several.
    Several,
    /// Of a type without a meaning here, for example a password in clear text (type 1), or cut short.
    UnknownType,
}

impl Scheme {
    /// What a TLV 10 begins with, and the digest behind it.
    pub(super) fn split(value: &[u8]) -> Option<(Self, &[u8])> {
        match value {
            [HMAC_MD5, digest @ ..] => Some((Self::HmacMd5, digest)),
            [GENERIC, high, low, digest @ ..] => {
                Some((Self::Generic { key_id: u16::from_be_bytes([*high, *low]) }, digest))
            }
            _ => None,
        }
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        match self {
            Self::HmacMd5 => vec![HMAC_MD5],
            Self::Generic { key_id } => [&[GENERIC], &key_id.to_be_bytes()[..]].concat(),
        }
    }

    /// What stands in for the digest's own bytes.
    fn pad(self, len: usize) -> &'static [u8] {
        match self {
            Self::HmacMd5 => &ZEROS[..len],
            Self::Generic { .. } => &APAD[..len],
        }
    }
}

impl<'a> Signature<'a> {
    /// Finds the authentication of a PDU. Never allocates.
    ///
    /// # Errors
    /// [`NoSignature`]: there is not exactly one of a known type. FS-LSPs have none, as far as is known here.
    pub fn of(view: &View<'a>) -> Result<Self, NoSignature> {
        let mut found = None;
        let mut end = view.kind().header_len();
        for (kind, value) in view.tlvs() {
            end += 2 + value.len();
            if kind == code::AUTHENTICATION && found.replace((value, end)).is_some() {
                return Err(NoSignature::Several);
            }
        }
        let (value, end) = found.ok_or(NoSignature::Missing)?;
        let (scheme, digest) = Scheme::split(value).ok_or(NoSignature::UnknownType)?;
        Ok(Self { pdu: view.as_bytes(), kind: view.kind(), scheme, at: end - digest.len()..end })
    }

    /// How the PDU says that it is authenticated.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The digest that it carries.
    pub fn digest(&self) -> &'a [u8] {
        &self.pdu[self.at.clone()]
    }

    /// Hands over what the digest is made over, part by part.
    pub fn covered(&self, mut part: impl FnMut(&[u8])) {
        let mut from = 0;
        if self.kind == Kind::Lsp {
            for field in [lsp_field::LIFETIME, lsp_field::CHECKSUM] {
                part(&self.pdu[from..field]);
                part(&ZEROS[..2]);
                from = field + 2;
            }
        }
        part(&self.pdu[from..self.at.start]);
        part(self.scheme.pad(self.at.len()));
        part(&self.pdu[self.at.end..]);
    }
}

/// Puts the digest into a PDU that keeps a place for it, and after it the checksum that an LSP has with it.
///
/// # Panics
/// When `pdu` is no PDU with one authentication TLV whose digest is as long as this one.
pub fn seal(pdu: &mut [u8], digest: &[u8]) {
    let view = View::new(pdu).expect("what is sealed is a PDU");
    let place = Signature::of(&view).expect("it keeps a place for the digest").at;
    let has_checksum = view.lsp().is_some_and(|header| header.lifetime_s > 0);
    pdu[place].copy_from_slice(digest);
    if has_checksum {
        seal_lsp(pdu);
    }
}

/// Writes an LSP's checksum.
pub(super) fn seal_lsp(lsp: &mut [u8]) {
    let covered = &mut lsp[lsp_field::LSP_ID..];
    let offset = lsp_field::CHECKSUM - lsp_field::LSP_ID;
    let check = fletcher::check_bytes(covered, offset);
    put(covered, offset, &check);
}

const fn apad() -> [u8; VALUE_MAX] {
    const WORD: [u8; 4] = 0x878f_e1f3_u32.to_be_bytes();
    let mut pad = [0; VALUE_MAX];
    let mut at = 0;
    while at < VALUE_MAX {
        pad[at] = WORD[at % 4];
        at += 1;
    }
    pad
}
