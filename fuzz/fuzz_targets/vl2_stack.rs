//! libFuzzer entry of the body `vl2_stack`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::vl2_stack(bytes));
