//! libFuzzer entry of the body `campus_keys`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::campus_keys(bytes));
