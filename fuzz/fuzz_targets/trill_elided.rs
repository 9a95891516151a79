//! libFuzzer entry of the body `trill_elided`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| weft_fuzz::trill_elided(bytes));
