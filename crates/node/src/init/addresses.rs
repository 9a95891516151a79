//! Addresses: each is one's alone, and in its block.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use weft_wire::block::Block;
use weft_wire::flow::HASH_SOURCES;

use super::hosts_file::{At, HostsFile};
use crate::error::NodeError;

/// Addresses that have an owner.
pub(super) struct Addresses<'f> {
    file: &'f HostsFile,
    owners: BTreeMap<Ipv4Addr, String>,
}

impl<'f> Addresses<'f> {
    pub(super) fn new(file: &'f HostsFile) -> Self {
        Self { file, owners: BTreeMap::new() }
    }

    /// Takes an address for `owner`.
    pub(super) fn take(&mut self, at: At, address: Ipv4Addr, owner: String) -> Result<(), NodeError> {
        if address.is_unspecified() || address.is_multicast() || address.is_broadcast() || address.is_loopback() {
            return Err(self.file.fault(at, format!("{address} is no host's address")));
        }
        if HASH_SOURCES.contains(address) {
            return Err(self
                .file
                .fault(at, format!("{address} is in {}, whose addresses carry flow hashes", HASH_SOURCES)));
        }
        match self.owners.insert(address, owner) {
            Some(before) => Err(self.file.fault(at, format!("{address} is {before} already"))),
            None => Ok(()),
        }
    }
}

/// The LAs' block; no AA may be in it.
pub(super) fn la_block(file: &HostsFile, text: &str, aa_block: Block) -> Result<Block, NodeError> {
    let fault = |why: String| file.fault(At::top("la_block"), why);
    let block: Block = text.parse().map_err(|error| fault(format!("{error}")))?;
    for (other, what) in [(aa_block, "which are the AAs"), (HASH_SOURCES, "whose addresses carry flow hashes")] {
        if block.overlaps(other) {
            return Err(fault(format!("{block} overlaps {other}, {what}; 10.0.0.0/8 is usual")));
        }
    }
    Ok(block)
}

/// An interface's address with its prefix length, as `10.128.0.1/31`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) address: Ipv4Addr,
    pub(super) subnet: Block,
}

impl Interface {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fault = || format!("`{text}` is no address with its length; write for example 10.128.0.1/31");
        let (address, length) = text.split_once('/').ok_or_else(fault)?;
        let address: Ipv4Addr = address.parse().map_err(|_| fault())?;
        let length: u8 = length.parse().ok().filter(|length| (1..=32).contains(length)).ok_or_else(fault)?;
        Ok(Self { address, subnet: Block::around(address, length) })
    }
}
