//! libFuzzer entry of the body `fabric_yaml`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::fabric_yaml(bytes));
