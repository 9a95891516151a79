//! libFuzzer entry of the body `isis_rbridge`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::isis_rbridge(bytes));
