//! libFuzzer entry of the body `directory_update`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::directory_update(bytes));
