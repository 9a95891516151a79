//! C and Rust say the same about TRILL: sizes and offsets by the BTF of the compiled object, names by the header.

use std::ffi::OsStr;

use libbpf_rs::HasSize;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use weft_datapath::trill::abi::{
    GROUPS, HOPS_MAX, INTERFACES, OBSERVED, OUTCOMES, PORTS, STATIC, TAP_BYTES, TREES_MAX, TrillFib, TrillHop,
    TrillHostRoute, TrillPlace, TrillPort, TrillSpread, TrillState, TrillTapped, TrillTree, WHOLE_MAX,
};

const HEADER: &str = include_str!("../bpf/trill_abi.h");
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/trill.bpf.o"));

fn defined(name: &str) -> usize {
    let line = HEADER.lines().find(|line| line.starts_with(&format!("#define {name} "))).expect("it is defined");
    let number = line.split_whitespace().nth(2).expect("with a number");
    match number.strip_prefix("0x") {
        Some(hex) => usize::from_str_radix(hex, 16).expect("a number"),
        None => number.parse().expect("a number"),
    }
}

#[test]
fn outcomes_have_the_same_names_in_the_same_order() {
    let start = HEADER.find("#define TRILL_OUTCOMES(X)").expect("the list is there");
    let lines = HEADER[start..].lines().skip(1).take_while(|line| line.trim_start().starts_with("X("));
    let listed = lines.map(|line| line.trim_start()[2..].split(')').next().unwrap_or_default().to_lowercase());
    assert_eq!(listed.collect::<Vec<String>>(), OUTCOMES);
    assert!(OUTCOMES.len() <= defined("TRILL_COUNTERS_OF_PORT"));
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
        assert_eq!(defined(name), value, "{name}");
    }
}

#[test]
fn structures_have_the_same_layout() {
    let btf = Btf::from_raw("trill", OBJECT).expect("the object is readable").expect("it has BTF");
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
    for (name, size, fields) in layouts {
        let in_c: Struct<'_> = btf.type_by_name(name).unwrap_or_else(|| panic!("struct {name} is in the BTF"));
        assert_eq!(in_c.size(), size, "size of struct {name}");
        let offset = |attr| match attr {
            MemberAttr::Normal { offset } => offset as usize / 8,
            MemberAttr::BitField { .. } => panic!("struct {name} has a bit field"),
        };
        let offsets: Vec<(&OsStr, usize)> =
            in_c.iter().map(|member| (member.name.unwrap_or_default(), offset(member.attr))).collect();
        let expected: Vec<(&OsStr, usize)> = fields.iter().map(|(field, at)| (OsStr::new(*field), *at)).collect();
        assert_eq!(offsets, expected, "fields of struct {name}");
    }
}
