//! TRILL.

use weft_datapath::trill::abi::{
    GROUPS, HOPS_MAX, INTERFACES, OBSERVED, OUTCOMES, PORTS, STATIC, TAP_BYTES, TREES_MAX, TrillFib, TrillHop,
    TrillHostRoute, TrillPlace, TrillPort, TrillSpread, TrillState, TrillTapped, TrillTree, WHOLE_MAX,
};

use super::layout::{assert_layouts, defined, listed};

const HEADER: &str = include_str!("../../bpf/trill_abi.h");
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/trill.bpf.o"));

#[test]
fn outcomes_have_the_same_names_in_the_same_order() {
    assert_eq!(listed(HEADER, "TRILL_OUTCOMES"), OUTCOMES);
    assert!(OUTCOMES.len() <= number("TRILL_COUNTERS_OF_PORT"));
}

#[test]
fn constants_are_equal() {
    let constants = [
        ("TRILL_CLUSTERS", weft_datapath::trill::CLUSTERS),
        ("TRILL_PORTS", PORTS),
        ("TRILL_HOPS_MAX", HOPS_MAX),
        ("TRILL_GROUPS", GROUPS),
        ("TRILL_TREES_MAX", TREES_MAX),
        ("TRILL_INTERFACES", INTERFACES),
        ("TRILL_TAP_BYTES", TAP_BYTES),
        ("TRILL_WHOLE_MAX", WHOLE_MAX.into()),
        ("TRILL_OBSERVED", OBSERVED.into()),
        ("TRILL_STATIC", STATIC.into()),
    ];
    for (name, value) in constants {
        assert_eq!(number(name), value, "{name}");
    }
}

#[test]
fn structures_have_the_same_layout() {
    let layouts = [
        TrillHop::LAYOUT,
        TrillSpread::LAYOUT,
        TrillPort::LAYOUT,
        TrillState::LAYOUT,
        TrillPlace::LAYOUT,
        TrillHostRoute::LAYOUT,
        TrillTree::LAYOUT,
        TrillFib::LAYOUT,
        TrillTapped::LAYOUT,
    ];
    assert_layouts(OBJECT, &layouts);
}

fn number(name: &str) -> usize {
    defined(HEADER, name) as usize
}
