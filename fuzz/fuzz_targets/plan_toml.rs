//! libFuzzer entry of the body `plan_toml`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::plan_toml(bytes));
