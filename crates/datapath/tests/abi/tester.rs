//! The test centre.

use weft_datapath::tester::abi::{
    AnalyserState, BUCKETS, GeneratorState, LinkState, PortState, RelayState, SeenState, StreamState,
};

use super::layout::{assert_layouts, in_c, owned};

const GENERATE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tester_generate.bpf.o"));
const ANALYSE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tester_analyse.bpf.o"));
const LINK: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tester_link.bpf.o"));

#[test]
fn structures_have_the_same_layout() {
    assert_layouts(GENERATE, &[GeneratorState::LAYOUT]);
    assert_layouts(ANALYSE, &[AnalyserState::LAYOUT, StreamState::LAYOUT, SeenState::LAYOUT]);
    assert_layouts(LINK, &[RelayState::LAYOUT]);
}

#[test]
fn the_link_with_its_lock_is_the_one_without() {
    let (_, size, fields) = LinkState::LAYOUT;
    assert_eq!(in_c(LINK, "locked_link"), (size, owned(fields)));
}

#[test]
fn the_histogram_follows_the_ports_numbers() {
    let (name, size, fields) = PortState::LAYOUT;
    let (c_size, c_fields) = in_c(ANALYSE, name);
    let histogram = ("histogram".to_owned(), size);
    assert_eq!(c_fields, [owned(fields), vec![histogram]].concat());
    assert_eq!(c_size, size + BUCKETS * 8);
}
