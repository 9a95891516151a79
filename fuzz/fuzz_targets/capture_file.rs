//! libFuzzer entry of the body `capture_file`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::capture_file(bytes));
