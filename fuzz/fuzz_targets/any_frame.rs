//! libFuzzer entry of the body `any_frame`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::any_frame(bytes));
