//! C and Rust say the same: sizes and offsets by the BTF of the compiled objects, outcomes by the C header.

use std::ffi::OsStr;

use libbpf_rs::HasSize;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use weft_datapath::abi::{
    AGENT_MARK, AaMapping, BroadcastConstants, HOST_OUTCOMES, HostConstants, L2_OUTCOMES, LOSS_OUTCOMES, LossConstants,
    MacKey, NextHop, OWN_LAS_MAX, OwnLas, RECEIVE_OUTCOMES, RouteSlot, SPREAD_OUTCOMES, SWITCH_OUTCOMES,
    SpreadConstants, StaleSample, SwitchConstants,
};

const HEADER: &str = include_str!("../bpf/abi.h");
const XDP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/xdp.bpf.o"));
const LOSS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/loss.bpf.o"));
const HOST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vl2_host.bpf.o"));
const SWITCH: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vl2_switch.bpf.o"));

/// The names in `#define LIST(X) X(NAME) ...`.
fn listed(list: &str) -> Vec<String> {
    let start = HEADER.find(&format!("#define {list}(X)")).expect("the list is there");
    let lines = HEADER[start..].lines().skip(1).take_while(|line| line.trim_start().starts_with("X("));
    lines.map(|line| line.trim_start()[2..].split(')').next().unwrap_or_default().to_lowercase()).collect()
}

fn defined(name: &str) -> u32 {
    let headers = [HEADER, include_str!("../bpf/lib/vl2_encap.h"), include_str!("../bpf/lib/hash.h")];
    let mut lines = headers.iter().flat_map(|header| header.lines());
    let line = lines.find(|line| line.starts_with(&format!("#define {name} "))).expect("it is defined");
    let number = line.split_whitespace().nth(2).expect("with a number");
    match number.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).expect("a number"),
        None => number.parse().expect("a number"),
    }
}

#[test]
fn outcomes_have_the_same_names_in_the_same_order() {
    assert_eq!(listed("HOST_OUTCOMES"), HOST_OUTCOMES);
    assert_eq!(listed("RECEIVE_OUTCOMES"), RECEIVE_OUTCOMES);
    assert_eq!(listed("SPREAD_OUTCOMES"), SPREAD_OUTCOMES);
    assert_eq!(listed("SWITCH_OUTCOMES"), SWITCH_OUTCOMES);
    assert_eq!(listed("L2_OUTCOMES"), L2_OUTCOMES);
    assert_eq!(listed("LOSS_OUTCOMES"), LOSS_OUTCOMES);
}

#[test]
fn constants_are_equal() {
    assert_eq!(defined("AGENT_MARK"), AGENT_MARK);
    assert_eq!(defined("OWN_LAS_MAX") as usize, OWN_LAS_MAX);
    assert_eq!(defined("OUTER_TTL"), u32::from(weft_wire::vl2::OUTER_TTL));
    assert_eq!(defined("HASH_SOURCE_BLOCK"), u32::from(weft_wire::flow::HASH_SOURCE_BLOCK));
    assert_eq!(defined("HASH_SOURCE_MASK"), weft_wire::flow::HASH_SOURCE_MASK);
}

#[test]
fn structs_have_the_same_layout() {
    let btf_of = |name, object| Btf::from_raw(name, object).expect("the object is readable").expect("it has BTF");
    let (xdp, switch, loss) = (btf_of("xdp", XDP), btf_of("vl2_switch", SWITCH), btf_of("loss", LOSS));
    let host = btf_of("vl2_host", HOST);
    let layouts = [
        AaMapping::LAYOUT,
        HostConstants::LAYOUT,
        SwitchConstants::LAYOUT,
        OwnLas::LAYOUT,
        NextHop::LAYOUT,
        RouteSlot::LAYOUT,
        MacKey::LAYOUT,
    ];
    let in_xdp = layouts.into_iter().map(|layout| (&xdp, layout));
    let elsewhere = [
        (&switch, StaleSample::LAYOUT),
        (&loss, LossConstants::LAYOUT),
        (&host, SpreadConstants::LAYOUT),
        (&host, BroadcastConstants::LAYOUT),
    ];
    for (btf, (name, size, fields)) in in_xdp.chain(elsewhere) {
        let in_c: Struct<'_> = btf.type_by_name(name).unwrap_or_else(|| panic!("struct {name} is in the BTF"));
        assert_eq!(in_c.size(), size, "size of struct {name}");
        let offsets: Vec<(&OsStr, usize)> = in_c
            .iter()
            .map(|member| match member.attr {
                MemberAttr::Normal { offset } => (member.name.unwrap_or_default(), offset as usize / 8),
                MemberAttr::BitField { .. } => panic!("struct {name} has a bit field"),
            })
            .collect();
        let expected: Vec<(&OsStr, usize)> = fields.iter().map(|(field, at)| (OsStr::new(*field), *at)).collect();
        assert_eq!(offsets, expected, "fields of struct {name}");
    }
}
