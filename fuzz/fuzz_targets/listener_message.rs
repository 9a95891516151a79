//! libFuzzer entry of the body `listener_message`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::listener_message(bytes));
