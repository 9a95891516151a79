//! libFuzzer entry of the body `trill_echo`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::trill_echo(bytes));
