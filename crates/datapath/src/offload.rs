//! What an interface does for the stack: XDP needs some of it off at hosts, and GRO on where frames are sent to. At a network
//! card, whatever hides a frame's headers from the programs has to be off, see [`HIDDEN_FROM_XDP`].
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};

use crate::error::DatapathError;
use crate::interface;

/// One of the things that can be turned on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Leaving checksums of what is sent to the interface. A frame that XDP redirects never gets them: off at hosts.
    TxChecksum,
    /// Segmenting what is sent.
    Tso,
    /// Segmenting what is sent, late in the stack.
    Gso,
    /// Joining what is received. A veth interface without an XDP program needs it to take what is redirected to it.
    Gro,
}

/// `SIOCETHTOOL` of `linux/sockios.h`.
const ETHTOOL: u32 = 0x8946;

/// `struct ethtool_value` of `linux/ethtool.h`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

impl Offload {
    /// `ETHTOOL_S...` of `linux/ethtool.h`.
    fn command(self) -> u32 {
        match self {
            Self::TxChecksum => 0x17,
            Self::Tso => 0x1f,
            Self::Gso => 0x24,
            Self::Gro => 0x2c,
        }
    }
}

/// Turns it on or off at an interface of the caller's network namespace.
///
/// # Errors
/// [`DatapathError::NoInterface`], [`DatapathError::NoRights`], or [`DatapathError::Program`] if the driver refuses.
pub fn set(interface: &str, what: Offload, on: bool) -> Result<(), DatapathError> {
    let mut value = Value { command: what.command(), data: on.into() };
    // SAFETY: the command reads one value.
    unsafe { ethtool(interface, std::ptr::from_mut(&mut value).cast()) }
        .map_err(|error| failed(interface, &format!("setting {what:?}"), error))
}

/// What a card may do to received frames that hides from XDP what it works on: a VLAN tag taken off, frames joined.
pub const HIDDEN_FROM_XDP: &[&str] = &["rx-vlan-hw-parse", "rx-vlan-stag-hw-parse", "rx-lro", "rx-gro-hw"];
/// The same for TC programs, which see a tag that was taken off, and take joined frames that can be divided again.
pub const HIDDEN_FROM_TC: &[&str] = &["rx-lro"];

/// One of the things that a card does, by the names that `ethtool -k` has in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Whether it is on.
    pub is_on: bool,
    /// Whether the driver lets it be changed.
    pub can_change: bool,
}

/// The features of an interface of the caller's network namespace, by name.
///
/// # Errors
/// As [`set`].
pub fn features(interface: &str) -> Result<BTreeMap<String, Feature>, DatapathError> {
    let failed = |error| failed(interface, "reading the features", error);
    let names = feature_names(interface).map_err(failed)?;
    let blocks = names.len().div_ceil(32);
    // `struct ethtool_gfeatures`: four words for each 32 features, which are: available, requested, active, never changed.
    let mut words = vec![0; 2 + 4 * blocks];
    (words[0], words[1]) = (GET_FEATURES, blocks as u32);
    // SAFETY: the command writes as many blocks as its second word says.
    unsafe { ethtool(interface, words.as_mut_ptr()) }.map_err(failed)?;
    let of = |place: usize| {
        let block = &words[2 + 4 * (place / 32)..][..4];
        let has = |word: u32| word >> (place % 32) & 1 != 0;
        Feature { is_on: has(block[2]), can_change: has(block[0]) && !has(block[3]) }
    };
    Ok(names
        .into_iter()
        .enumerate()
        .map(|(place, name)| (name, of(place)))
        .filter(|(name, _)| !name.is_empty())
        .collect())
}

/// Turns one of [`features`] on or off. One that the driver keeps as it is stays so without an error.
///
/// # Errors
/// As [`set`].
pub fn set_feature(interface: &str, name: &str, on: bool) -> Result<(), DatapathError> {
    let failed = |error| failed(interface, &format!("setting {name}"), error);
    let names = feature_names(interface).map_err(failed)?;
    let Some(place) = names.iter().position(|other| other == name) else { return Ok(()) };
    let blocks = names.len().div_ceil(32);
    // `struct ethtool_sfeatures`: two words for each 32 features, which are: to change, to what.
    let mut words = vec![0; 2 + 2 * blocks];
    (words[0], words[1]) = (SET_FEATURES, blocks as u32);
    words[2 + 2 * (place / 32)] = 1 << (place % 32);
    words[3 + 2 * (place / 32)] = u32::from(on) << (place % 32);
    // SAFETY: the command reads as many blocks as its second word says.
    unsafe { ethtool(interface, words.as_mut_ptr()) }.map_err(failed)
}

/// The driver's name, as `ethtool -i` tells it.
pub fn driver(interface: &str) -> Option<String> {
    // `struct ethtool_drvinfo` is 196 bytes: the command, then the driver's name in 32.
    let mut words = [0; 49];
    words[0] = GET_DRIVER;
    // SAFETY: the command writes the 196 bytes of its structure.
    unsafe { ethtool(interface, words.as_mut_ptr()) }.ok()?;
    Some(text(&words[1..9]))
}

const GET_DRIVER: u32 = 0x03;
const GET_STRINGS: u32 = 0x1b;
const GET_SET_INFO: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// `ETH_SS_FEATURES`.
const FEATURES: u32 = 4;
/// Words of `ETH_GSTRING_LEN`.
const STRING_WORDS: usize = 8;

/// By their numbers, of which some may have no name.
fn feature_names(interface: &str) -> Result<Vec<String>, Error> {
    // `struct ethtool_sset_info`: the command, a hole, a mask of 64 bit, a number for each set asked for.
    let mut info = [GET_SET_INFO, 0, 0, 0, 0];
    let half = usize::from(cfg!(target_endian = "big"));
    info[2 + half] = 1 << FEATURES;
    // SAFETY: one set is asked for, and there is room for one number.
    unsafe { ethtool(interface, info.as_mut_ptr()) }?;
    let count = info[4] as usize;
    // `struct ethtool_gstrings`: the command, the set, its length, the texts.
    let mut words = vec![0; 3 + count * STRING_WORDS];
    (words[0], words[1]) = (GET_STRINGS, FEATURES);
    // SAFETY: the command writes as many texts as the kernel has just counted; the number is fixed in a kernel.
    unsafe { ethtool(interface, words.as_mut_ptr()) }?;
    Ok(words[3..].chunks(STRING_WORDS).map(text).collect())
}

/// A terminated text in words.
fn text(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0);
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

fn failed(interface: &str, what: &str, source: Error) -> DatapathError {
    let what = format!("{what} of `{interface}`");
    match (source.kind(), source.raw_os_error()) {
        (_, Some(libc::ENODEV)) => DatapathError::NoInterface { name: interface.to_owned() },
        (ErrorKind::PermissionDenied, _) => DatapathError::NoRights { what },
        _ => DatapathError::Program { what, source: source.into() },
    }
}

/// One `SIOCETHTOOL` request.
///
/// # Safety
/// `command` points to as much as the command in its first word reads and writes.
unsafe fn ethtool(interface: &str, command: *mut u32) -> Result<(), Error> {
    let command = libc::__c_anonymous_ifr_ifru { ifru_data: command.cast() };
    // SAFETY: the caller says so.
    unsafe { interface::ask(interface, ETHTOOL.into(), command) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_have_the_names_that_ethtool_prints() {
        let features = features("lo").expect("loopback has some");
        assert_eq!(features["loopback"], Feature { is_on: true, can_change: false });
        assert!(features["tx-generic-segmentation"].is_on || features["tx-generic-segmentation"].can_change);
        assert!(HIDDEN_FROM_XDP.iter().chain(HIDDEN_FROM_TC).all(|name| features.contains_key(*name)));
        assert!(super::features("weft-none").is_err() && driver("weft-none").is_none());
    }
}
