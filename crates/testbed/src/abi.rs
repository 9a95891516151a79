//! What our programs and user space share: the Rust of `bpf/testbed_abi.h`.
#![allow(unsafe_code)]

weft_datapath::abi::header!("testbed_abi");

/// Number of buckets of a histogram.
pub const BUCKETS: usize = TESTER_BUCKETS as usize;
