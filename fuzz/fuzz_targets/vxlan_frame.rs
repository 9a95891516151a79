//! libFuzzer entry of the body `vxlan_frame`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::vxlan_frame(bytes));
