//! libFuzzer entry of the body `daemon_settings`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::daemon_settings(bytes));
