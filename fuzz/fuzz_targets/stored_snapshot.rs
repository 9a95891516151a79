//! libFuzzer entry of the body `stored_snapshot`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::stored_snapshot(bytes));
