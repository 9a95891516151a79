//! Who may speak: keys that a campus shares (RFC 5310, RFC 5304). Every PDU of ours is signed, and of what comes in nothing
//! is believed before its digest is right.
//!
//! A digest says that somebody with a key wrote the PDU; not who, and not when. So a key keeps strangers out, and no
//! RBridge apart; and PDUs of this very link may be said again by who heard them. What an old LSP says its sequence
//! number tells; an old Hello is told by a number of its own (RFC 7602, `replay.rs`), where all neighbours send one.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use weft_wire::isis::authentication::{self, NoSignature, Scheme, Signature};
use weft_wire::isis::tlv::code;
use weft_wire::isis::{Pdu, Tlv, View};

use super::counters::DropReason;

/// What a purge may carry: authentication, its originator, that one's fingerprint and host name (RFC 6232, RFC 6233,
/// RFC 8196).
const IN_PURGES: [u8; 4] = [code::AUTHENTICATION, code::PURGE_ORIGINATOR, code::FINGERPRINT, code::HOSTNAME];

/// How digests are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Of RFC 5304: for neighbours that know nothing better.
    HmacMd5,
    /// Of RFC 5310, as all that follow.
    HmacSha1,
    /// 28 bytes.
    HmacSha224,
    /// 32 bytes: what a campus should use.
    HmacSha256,
    /// 48 bytes.
    HmacSha384,
    /// 64 bytes.
    HmacSha512,
}

/// One key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    id: u16,
    algorithm: Algorithm,
    secret: Vec<u8>,
}

/// The keys of an RBridge: one signs, all are accepted, so that a campus changes its key RBridge by RBridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChain {
    /// The first one signs.
    keys: Vec<Key>,
    accepts_unsigned: bool,
    /// Of the numbers that Hellos and sequence numbers PDUs carry (RFC 7602); `None`: they carry none.
    session: Option<u64>,
    checks_numbers: bool,
}

/// Why keys cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// There is none.
    #[error("there is no key")]
    None,
    /// PDUs would not tell the two apart.
    #[error("key {id} is there twice")]
    Twice { id: u16 },
    /// An empty one keeps nobody out, and of longer ones [`Algorithm::secret_len_max`] speaks.
    #[error("its secret has {found} bytes; {algorithm} takes 1 to {most}")]
    Length {
        algorithm: Algorithm,
        /// Its length, bytes.
        found: usize,
        /// The longest, bytes.
        most: usize,
    },
}

impl Algorithm {
    /// All of them, by the length of their digests.
    pub const ALL: [Self; 6] =
        [Self::HmacMd5, Self::HmacSha1, Self::HmacSha224, Self::HmacSha256, Self::HmacSha384, Self::HmacSha512];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HmacMd5 => "hmac-md5",
            Self::HmacSha1 => "hmac-sha-1",
            Self::HmacSha224 => "hmac-sha-224",
            Self::HmacSha256 => "hmac-sha-256",
            Self::HmacSha384 => "hmac-sha-384",
            Self::HmacSha512 => "hmac-sha-512",
        }
    }

    /// Length of its digests, bytes.
    pub const fn digest_len(self) -> usize {
        match self {
            Self::HmacMd5 => 16,
            Self::HmacSha1 => 20,
            Self::HmacSha224 => 28,
            Self::HmacSha256 => 32,
            Self::HmacSha384 => 48,
            Self::HmacSha512 => 64,
        }
    }

    /// Longest secret, bytes. RFC 5310 and RFC 2104 tell to hash one that is longer than the digest, and than a block: so
    /// that both lead to the same digests, it is no longer than the digest. RFC 5304 knows RFC 2104 alone.
    pub const fn secret_len_max(self) -> usize {
        const MD5_BLOCK: usize = 64;
        if matches!(self, Self::HmacMd5) { MD5_BLOCK } else { self.digest_len() }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl Key {
    /// A key with the ID that PDUs name it by; those of [`Algorithm::HmacMd5`] name none.
    ///
    /// # Errors
    /// [`KeyFault::Length`].
    pub fn new(id: u16, algorithm: Algorithm, secret: Vec<u8>) -> Result<Self, KeyFault> {
        let (found, most) = (secret.len(), algorithm.secret_len_max());
        if (1..=most).contains(&found) {
            Ok(Self { id, algorithm, secret })
        } else {
            Err(KeyFault::Length { algorithm, found, most })
        }
    }

    fn scheme(&self) -> Scheme {
        match self.algorithm {
            Algorithm::HmacMd5 => Scheme::HmacMd5,
            _ => Scheme::Generic { key_id: self.id },
        }
    }

    /// The digest's hash, fed with all that it is made over.
    fn hash(&self, signature: &Signature<'_>) -> Box<dyn Hash> {
        let mut hash: Box<dyn Hash> = match self.algorithm {
            Algorithm::HmacMd5 => self.begin::<Hmac<Md5>>(),
            Algorithm::HmacSha1 => self.begin::<Hmac<Sha1>>(),
            Algorithm::HmacSha224 => self.begin::<Hmac<Sha224>>(),
            Algorithm::HmacSha256 => self.begin::<Hmac<Sha256>>(),
            Algorithm::HmacSha384 => self.begin::<Hmac<Sha384>>(),
            Algorithm::HmacSha512 => self.begin::<Hmac<Sha512>>(),
        };
        signature.covered(|part| hash.feed(part));
        hash
    }

    fn begin<M: Mac + KeyInit + 'static>(&self) -> Box<dyn Hash> {
        Box::new(<M as KeyInit>::new_from_slice(&self.secret).expect("HMAC takes keys of any length"))
    }
}

/// Without the secret.
impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key {} ({})", self.id, self.algorithm)
    }
}

/// HMAC with whatever is underneath.
trait Hash {
    fn feed(&mut self, part: &[u8]);
    fn digest(self: Box<Self>) -> Vec<u8>;
    /// Compares in a time that tells nothing.
    fn is(self: Box<Self>, digest: &[u8]) -> bool;
}

impl<M: Mac> Hash for M {
    fn feed(&mut self, part: &[u8]) {
        self.update(part);
    }

    fn digest(self: Box<Self>) -> Vec<u8> {
        self.finalize().into_bytes().to_vec()
    }

    fn is(self: Box<Self>, digest: &[u8]) -> bool {
        self.verify_slice(digest).is_ok()
    }
}

impl KeyChain {
    /// Keys of which the first signs and all are accepted.
    ///
    /// # Errors
    /// [`KeyFault::None`], [`KeyFault::Twice`].
    pub fn new(keys: Vec<Key>) -> Result<Self, KeyFault> {
        let twice =
            |(place, key): (usize, &Key)| keys[..place].iter().any(|other| other.id == key.id).then_some(key.id);
        match keys.iter().enumerate().find_map(twice) {
            Some(id) => Err(KeyFault::Twice { id }),
            None if keys.is_empty() => Err(KeyFault::None),
            None => Ok(Self { keys, accepts_unsigned: false, session: None, checks_numbers: false }),
        }
    }

    /// The same, but PDUs without authentication are believed as well: while a campus that had no key gets one.
    #[must_use]
    pub fn accepting_unsigned(self) -> Self {
        Self { accepts_unsigned: true, ..self }
    }

    /// The same, with numbers in Hellos and sequence numbers PDUs (RFC 7602). `session` is larger in each life of the RBridge.
    #[must_use]
    pub fn numbered(self, session: u64) -> Self {
        Self { session: Some(session), ..self }
    }

    /// The same, but Hellos and sequence numbers PDUs of neighbours must have such numbers, each above the last.
    #[must_use]
    pub fn checking_numbers(self) -> Self {
        Self { checks_numbers: true, ..self }
    }

    pub(super) fn session(&self) -> Option<u64> {
        self.session
    }

    pub(super) fn checks_numbers(&self) -> bool {
        self.checks_numbers
    }

    /// Judges a PDU.
    ///
    /// # Errors
    /// [`DropReason::AuthMissing`], [`DropReason::AuthType`], [`DropReason::AuthKey`], [`DropReason::AuthDigest`] or
    /// [`DropReason::PurgeBody`].
    pub fn check(&self, view: &View<'_>) -> Result<(), DropReason> {
        let signature = match Signature::of(view) {
            Err(NoSignature::Missing) if self.accepts_unsigned => return Ok(()),
            Err(NoSignature::Missing) => return Err(DropReason::AuthMissing),
            Err(NoSignature::Several | NoSignature::UnknownType) => return Err(DropReason::AuthType),
            Ok(signature) => signature,
        };
        let is_of_type =
            |key: &&Key| std::mem::discriminant(&key.scheme()) == std::mem::discriminant(&signature.scheme());
        let mut of_type = self.keys.iter().filter(is_of_type).peekable();
        of_type.peek().ok_or(DropReason::AuthType)?;
        let mut named = of_type.filter(|key| key.scheme() == signature.scheme()).peekable();
        named.peek().ok_or(DropReason::AuthKey)?;
        if !named.any(|key| key.hash(&signature).is(signature.digest())) {
            return Err(DropReason::AuthDigest);
        }
        check_purge(view)
    }

    /// A PDU's bytes with a digest. It goes to the front, unless the PDU keeps a place for it elsewhere.
    ///
    /// # Panics
    /// When the PDU is an FS-LSP, or too long to be written.
    pub fn sign(&self, mut pdu: Pdu) -> Vec<u8> {
        if let Some(tlvs) = pdu.tlvs_mut()
            && !tlvs.iter().any(|tlv| matches!(tlv, Tlv::Authentication { .. }))
        {
            tlvs.insert(0, self.place());
        }
        let mut bytes = pdu.emit().expect("what we write fits its lengths");
        let view = View::new(&bytes).expect("what was written can be read");
        let signature = Signature::of(&view).expect("a place is kept");
        let digest = self.signer().hash(&signature).digest();
        authentication::seal(&mut bytes, &digest);
        bytes
    }

    /// Room for a digest.
    pub(super) fn place(&self) -> Tlv {
        let key = self.signer();
        Tlv::Authentication { scheme: key.scheme(), digest: vec![0; key.algorithm.digest_len()] }
    }

    fn signer(&self) -> &Key {
        self.keys.first().expect("a chain has a key")
    }
}

/// A digest covers no lifetime, so anybody could make a purge of an LSP that he heard: what is signed as more than a purge
/// is none (RFC 5304 section 2, RFC 6233).
fn check_purge(view: &View<'_>) -> Result<(), DropReason> {
    let is_purge = view.lsp().is_some_and(|header| header.lifetime_s == 0);
    if is_purge && view.tlvs().any(|(kind, _)| !IN_PURGES.contains(&kind)) {
        return Err(DropReason::PurgeBody);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_cannot_be() {
        let key = |id, len| Key::new(id, Algorithm::HmacSha256, vec![7; len]);
        assert!(key(1, 1).is_ok() && key(1, 32).is_ok());
        for len in [0, 33] {
            let says = format!("its secret has {len} bytes; hmac-sha-256 takes 1 to 32");
            assert_eq!(key(1, len).unwrap_err().to_string(), says);
        }
        assert_eq!(KeyChain::new(vec![]).unwrap_err(), KeyFault::None);
        let keys = [1, 2, 1].map(|id| key(id, 16).unwrap());
        assert_eq!(KeyChain::new(keys.into()).unwrap_err(), KeyFault::Twice { id: 1 });
    }

    #[test]
    fn a_secret_is_not_printed() {
        let chain = KeyChain::new(vec![Key::new(7, Algorithm::HmacSha256, b"letmein".to_vec()).unwrap()]).unwrap();
        let shown = format!("{chain:?}");
        assert!(shown.starts_with("KeyChain { keys: [Key 7 (hmac-sha-256)], accepts_unsigned: false"), "{shown}");
    }
}
