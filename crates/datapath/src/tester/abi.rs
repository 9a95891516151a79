//! What the test centre's programs and user space share: the Rust of `bpf/tester_abi.h`.
#![allow(unsafe_code)]

use crate::abi::header;

header!("tester_abi");

/// Number of buckets of a histogram.
pub const BUCKETS: usize = TESTER_BUCKETS as usize;
