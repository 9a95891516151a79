//! Who may speak: the fabric's secret, the keys derived from it, and the tag that binds a datagram to a key and its path.

use std::fmt;
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use siphasher::sip128::{Hasher128, SipHasher24};

use super::TAG_LEN;

/// A 128-bit key that one agent or switch shares with the directory servers. Never printed.
#[derive(Clone)]
pub struct Key([u8; 16]);

/// The 128-bit secret of the directory servers, from which everybody's [`Key`] is derived. Never printed.
///
/// A key is SipHash-2-4-128, keyed with the secret, over a label, the holder's service and its LA. SipHash is a
/// pseudorandom function: who holds some keys learns nothing about the secret or about other keys. All three inputs
/// have a fixed length, so no two holders share a key; and the secret itself never makes a tag, so no tag is a key. A
/// server thus verifies any datagram without state: service and LA stand in it, and nobody can claim another of either.
#[derive(Clone)]
pub struct Secret([u8; 16]);

/// What keys are derived for: another use of the secret would have another label.
const AGENT_KEY: [u8; 8] = *b"weft/ak1";

/// Text that is not a key. The text itself is not repeated: it may be most of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not 32 characters long.
    #[error("key has {0} characters; write 16 bytes as 32 hexadecimal digits")]
    Length(usize),
    /// A character that is not a hexadecimal digit.
    #[error("character {0} of the key is not a hexadecimal digit; write 16 bytes as 32 hexadecimal digits")]
    Digit(usize),
}

/// The tag does not fit the datagram, the key and the path: not from a holder of the key, or replayed from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("tag does not verify: wrong key, altered datagram, or a datagram from another path")]
pub struct TagError;

/// The two ends of a datagram, in the order of the wire: a server that answers uses [`Path::reversed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    /// Where the datagram comes from.
    pub source: SocketAddrV4,
    /// Where it goes to.
    pub destination: SocketAddrV4,
}

impl Path {
    /// The way back.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source }
    }
}

impl Secret {
    /// A secret from its 16 bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads 32 hexadecimal digits; white space around them (a file's last newline) is ignored.
    ///
    /// # Errors
    /// [`KeyError`] names the length or the first character that is wrong, counted from 1.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        bytes_from_hex(text).map(Self)
    }

    /// Its 16 bytes: for who derives keys elsewhere on the same machine.
    pub const fn to_bytes(&self) -> [u8; 16] {
        self.0
    }

    /// The key of the agent of `service` whose datagrams come from `la`; switches are of service 0.
    pub fn derive(&self, service: u32, la: Ipv4Addr) -> Key {
        let mut holder = [0; 16];
        holder[..8].copy_from_slice(&AGENT_KEY);
        holder[8..12].copy_from_slice(&service.to_be_bytes());
        holder[12..].copy_from_slice(&la.octets());
        Key(SipHasher24::new_with_key(&self.0).hash(&holder).as_bytes())
    }
}

impl Key {
    /// The key of open mode: everybody has it.
    pub const OPEN: Self = Self([0; 16]);

    /// A key from its 16 bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads 32 hexadecimal digits; white space around them (a file's last newline) is ignored.
    ///
    /// # Errors
    /// [`KeyError`] names the length or the first character that is wrong, counted from 1.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        bytes_from_hex(text).map(Self)
    }

    /// 32 hexadecimal digits: what a key file holds. The only way to see a key; for who hands keys out.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The tag of `covered` (everything before the tag) on `path`.
    pub(super) fn tag(&self, covered: &[u8], path: &Path) -> [u8; TAG_LEN] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        let mut ends = [0; 12];
        ends[0..4].copy_from_slice(&path.source.ip().octets());
        ends[4..6].copy_from_slice(&path.source.port().to_be_bytes());
        ends[6..10].copy_from_slice(&path.destination.ip().octets());
        ends[10..12].copy_from_slice(&path.destination.port().to_be_bytes());
        std::hash::Hasher::write(&mut hasher, covered);
        std::hash::Hasher::write(&mut hasher, &ends);
        hasher.finish128().as_bytes()
    }
}

fn bytes_from_hex(text: &str) -> Result<[u8; 16], KeyError> {
    let text = text.trim();
    let mut bytes = [0; 16];
    for (index, character) in text.chars().enumerate() {
        let digit = character.to_digit(16).ok_or(KeyError::Digit(index + 1))?;
        let byte = bytes.get_mut(index / 2).ok_or(KeyError::Length(text.chars().count()))?;
        *byte = *byte << 4 | digit as u8;
    }
    if text.len() != 32 {
        return Err(KeyError::Length(text.len()));
    }
    Ok(bytes)
}

/// Compares two tags in a time that does not depend on where they differ.
pub(super) fn same_tag(left: [u8; TAG_LEN], right: [u8; TAG_LEN]) -> bool {
    black_box(u128::from_ne_bytes(left) ^ u128::from_ne_bytes(right)) == 0
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::from_hex(text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(secret)")
    }
}

impl FromStr for Secret {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::from_hex(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(secret)")
    }
}
