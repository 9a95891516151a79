//! libFuzzer entry of the body `bpdu`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::bpdu(bytes));
