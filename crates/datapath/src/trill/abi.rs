//! What the TRILL programs and user space share: the Rust of `bpf/trill_abi.h`.
#![allow(unsafe_code)]

use crate::abi::header;

header!("trill_abi");

/// Ports are numbered from 1 to one less than this.
pub const PORTS: usize = TRILL_PORTS as usize;
/// Equal-cost next hops of one egress.
pub const HOPS_MAX: usize = TRILL_HOPS_MAX as usize;
/// Different sets of next hops; number 0 is none.
pub(crate) const GROUPS: usize = TRILL_GROUPS as usize;
/// Neighbours on a shared link.
pub const SHARERS: usize = TRILL_SHARERS as usize;
/// Distribution trees.
pub const TREES_MAX: usize = TRILL_TREES_MAX as usize;
/// Nicknames of one RBridge, beside the one that its frames come in with.
pub const OTHER_NICKNAMES_MAX: usize = TRILL_OTHERS as usize;
/// Of what is brought onto trees here.
pub const SHARES: usize = TRILL_SHARES as usize;
/// Interface indexes that a port can have are below this.
pub const INTERFACES: usize = TRILL_INTERFACES as usize;
/// Ethertype of a tag around IS-IS that comes by a shared link, as the daemon sees it.
pub const KEPT_TAG: u16 = TRILL_KEPT_TAG as u16;
/// Confidence of what a frame taught.
pub const OBSERVED: u8 = TRILL_OBSERVED;
/// Confidence that nothing exceeds.
pub const STATIC: u8 = TRILL_STATIC;
/// Names of the counters of a port.
pub const OUTCOMES: [&str; 67] = TRILL_OUTCOMES;
