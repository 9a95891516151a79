//! Why addresses cannot be given.

use super::SERVERS_PER_RACK_MAX;
use crate::topology::OutsideError;

/// Why addresses cannot be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The AA block cannot hold the servers.
    #[error("AA block {block} has room for {room} servers, the fabric has {servers}")]
    BlockTooSmall {
        block: String,
        /// How many servers fit.
        room: u64,
        /// How many there are.
        servers: usize,
    },
    /// The AA block meets the LAs, the hash prefix or addresses that no host may have.
    #[error("AA block {block} overlaps {with}; AAs must be host addresses apart from the LAs, for instance 20.0.0.0/8")]
    Overlap { block: String, with: String },
    /// The pool of public LAs meets the AAs.
    #[error(transparent)]
    Outside(#[from] OutsideError),
    /// More hosts below one switch than a rack prefix holds.
    #[error("`{switch}` has {hosts} hosts; a rack prefix holds {SERVERS_PER_RACK_MAX}")]
    RackTooLarge {
        switch: String,
        /// How many hosts hang below it.
        hosts: usize,
    },
    /// A block of LAs is too small for the fabric.
    #[error("the fabric has {count} {what}; their address block has room for {room}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there are.
        count: usize,
        room: usize,
    },
    /// The ECMP width is zero.
    #[error("ECMP width 0: a switch needs at least one next hop")]
    ZeroWidth,
}
