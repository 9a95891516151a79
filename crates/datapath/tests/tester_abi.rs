//! The test centre's structures: C and Rust say the same, by the BTF of the compiled objects.

use std::ffi::OsStr;

use libbpf_rs::HasSize;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use weft_datapath::tester::abi::{
    AnalyserState, BUCKETS, GeneratorState, LinkState, PortState, RelayState, SeenState, StreamState,
};

const GENERATE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tester_generate.bpf.o"));
const ANALYSE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tester_analyse.bpf.o"));
const LINK: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tester_link.bpf.o"));

type Layout = (&'static str, usize, &'static [(&'static str, usize)]);

/// Name, size and fields of a structure; `named` is its name in this object where that differs.
fn in_c(object: &[u8], named: &str) -> (usize, Vec<(String, usize)>) {
    let btf = Btf::from_raw("tester", object).expect("the object is readable").expect("it has BTF");
    let found: Struct<'_> = btf.type_by_name(named).unwrap_or_else(|| panic!("struct {named} is in the BTF"));
    let offset = |attr| match attr {
        MemberAttr::Normal { offset } => offset as usize / 8,
        MemberAttr::BitField { .. } => panic!("struct {named} has a bit field"),
    };
    let name = |name: Option<&OsStr>| name.unwrap_or_default().to_string_lossy().into_owned();
    let fields = found.iter().map(|member| (name(member.name), offset(member.attr))).collect();
    (found.size(), fields)
}

fn owned(fields: &[(&'static str, usize)]) -> Vec<(String, usize)> {
    fields.iter().map(|(field, at)| ((*field).to_owned(), *at)).collect()
}

#[test]
fn structures_have_the_same_layout() {
    let plain: [(&[u8], Layout); 5] = [
        (GENERATE, GeneratorState::LAYOUT),
        (ANALYSE, AnalyserState::LAYOUT),
        (ANALYSE, StreamState::LAYOUT),
        (ANALYSE, SeenState::LAYOUT),
        (LINK, RelayState::LAYOUT),
    ];
    for (object, (name, size, fields)) in plain {
        assert_eq!(in_c(object, name), (size, owned(fields)), "struct {name}");
    }
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
