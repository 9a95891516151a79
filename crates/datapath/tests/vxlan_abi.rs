//! The VTEP's C and Rust say the same: sizes and offsets by BTF, outcomes and numbers by the C header.

use libbpf_rs::HasSize;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use weft_datapath::vxlan::abi::{
    ArpKey, ArpState, ClockState, DSCP_COPY, FIRST_DROP, FLOOD_PORTS, FLOOD_REMOTES, FdbEntry, FdbKey, FloodState,
    HOPS_PER_PEER, LimitState, LimitsState, PEER_SLOTS, PORT_SLOTS, PortState, Slot, TrafficState, UpcallState,
    VLAN_BITS, VLANS, VTEP_EVENTS, VTEP_OUTCOMES, VniState, VtepConfig,
};

const HEADER: &str = include_str!("../bpf/vxlan_abi.h");
const TC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vxlan_tc.bpf.o"));

/// The names in `#define LIST(X) X(NAME) ...`.
fn listed(list: &str) -> Vec<String> {
    let start = HEADER.find(&format!("#define {list}(X)")).expect("the list is there");
    let lines = HEADER[start..].lines().skip(1).take_while(|line| line.trim_start().starts_with("X("));
    lines.map(|line| line.trim_start()[2..].split(')').next().unwrap_or_default().to_lowercase()).collect()
}

fn defined(name: &str) -> u32 {
    let line = HEADER.lines().find(|line| line.starts_with(&format!("#define {name} "))).expect("it is defined");
    let number = line.split_whitespace().nth(2).expect("with a number");
    number.strip_prefix("0x").map_or_else(|| number.parse(), |hex| u32::from_str_radix(hex, 16)).expect("a number")
}

#[test]
fn outcomes_have_the_same_names_in_the_same_order() {
    assert_eq!(listed("VTEP_OUTCOMES"), VTEP_OUTCOMES);
    assert_eq!(listed("VTEP_EVENTS"), VTEP_EVENTS);
    assert!(VTEP_OUTCOMES.contains(&FIRST_DROP));
    // What the header calls dropped is what comes from there on.
    let dropped: Vec<&str> = HEADER.lines().filter(|line| line.contains("/* dropped: ")).collect();
    let first = VTEP_OUTCOMES.iter().position(|name| *name == FIRST_DROP).expect("it is one");
    assert_eq!(dropped.len(), VTEP_OUTCOMES.len() - first);
}

#[test]
fn constants_are_equal() {
    let ours = [PORT_SLOTS, PEER_SLOTS, HOPS_PER_PEER, FLOOD_REMOTES as u32, FLOOD_PORTS as u32, DSCP_COPY.into()];
    let names = ["VTEP_PORT_SLOTS", "VTEP_PEER_SLOTS", "VTEP_HOPS_PER_PEER", "VTEP_FLOOD_REMOTES", "VTEP_FLOOD_PORTS"];
    let theirs: Vec<u32> = names.into_iter().chain(["VTEP_DSCP_COPY"]).map(defined).collect();
    assert_eq!(theirs, ours);
    assert_eq!((defined("VTEP_VLAN_BITS"), defined("VTEP_VLANS")), (VLAN_BITS, VLANS));
}

#[test]
fn structs_have_the_same_layout() {
    let btf = Btf::from_raw("vxlan_tc", TC).expect("the object is readable").expect("it has BTF");
    let layouts = [
        VtepConfig::LAYOUT,
        FdbKey::LAYOUT,
        FdbEntry::LAYOUT,
        PortState::LAYOUT,
        Slot::LAYOUT,
        VniState::LAYOUT,
        LimitState::LAYOUT,
        LimitsState::LAYOUT,
        ClockState::LAYOUT,
        FloodState::LAYOUT,
        ArpKey::LAYOUT,
        ArpState::LAYOUT,
        TrafficState::LAYOUT,
        UpcallState::LAYOUT,
    ];
    for (name, size, fields) in layouts {
        let in_c: Struct<'_> = btf.type_by_name(name).unwrap_or_else(|| panic!("struct {name} is in the BTF"));
        assert_eq!(in_c.size(), size, "size of struct {name}");
        let offsets: Vec<usize> = in_c
            .iter()
            .map(|member| match member.attr {
                MemberAttr::Normal { offset } => offset as usize / 8,
                MemberAttr::BitField { .. } => panic!("struct {name} has a bit field"),
            })
            .collect();
        let names: Vec<String> =
            in_c.iter().map(|member| member.name.unwrap_or_default().to_string_lossy().into_owned()).collect();
        assert_eq!(names, fields.iter().map(|(field, _)| *field).collect::<Vec<_>>(), "fields of struct {name}");
        assert_eq!(offsets, fields.iter().map(|(_, at)| *at).collect::<Vec<_>>(), "fields of struct {name}");
    }
}
