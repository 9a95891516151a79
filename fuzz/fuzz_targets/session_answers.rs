//! libFuzzer entry of the body `session_answers`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::session_answers(bytes));
