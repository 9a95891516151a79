//! libFuzzer entry of the body `bulk_mappings`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::bulk_mappings(bytes));
