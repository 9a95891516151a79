//! The AA map is bounded: it never holds more than asked for, and what was just used stays (VL2 4.2.1: a cache).

mod common;

use std::net::Ipv4Addr;

use common::*;
use weft_datapath::frame::{FrameInput, Verdict};
use weft_datapath::host::HostDatapath;

fn nth(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(20, 0, 1, 0)) + n)
}

#[test]
fn the_map_never_exceeds_its_size_and_new_mappings_always_fit() {
    for size in [1, 16, 128, 1024, 4096] {
        let Some(host) = available(HostDatapath::load(&host_config_with(|config| config.map_entries = size))) else {
            return;
        };
        for n in 0..size {
            host.set(nth(n), &MAPPING).unwrap();
        }
        let kept_of_exactly_full = host.entries().unwrap().len();
        for n in size..2 * size + 100 {
            host.set(nth(n), &MAPPING).unwrap();
            assert_eq!(host.get(nth(n)).unwrap(), Some(MAPPING), "what was just set is there");
        }
        let kept = host.entries().unwrap().len();
        eprintln!("map of {size}: {kept_of_exactly_full} kept when filled once, {kept} after filling twice");
        assert!(kept <= size as usize, "{kept} entries in a map of {size}");
        // Kernels before 6.17 set 128 entries per CPU aside, so that small maps evict early.
        if size >= 1024 {
            assert!(kept_of_exactly_full * 4 >= size as usize * 3, "{kept_of_exactly_full} of {size} left");
        }
    }
}

#[test]
fn a_mapping_in_use_outlives_many_that_are_not() {
    let Some(host) = available(HostDatapath::load(&host_config())) else { return };
    host.set(PEER_AA, &MAPPING).unwrap();
    let frame = Ipv4::default().frame();
    for n in 0..20 * 1024 {
        host.set(nth(n), &MAPPING).unwrap();
        if n % 64 == 0 {
            let output = host.run(&FrameInput { bytes: &frame, ..FrameInput::default() }).unwrap();
            assert_eq!(output.verdict, Verdict::Next, "still known after {n} other AAs");
        }
    }
    assert_eq!(counted(host.counters().unwrap()), [("encapsulated", 320)]);
}
