//! libFuzzer entry of the body `flow_log`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::flow_log(bytes));
