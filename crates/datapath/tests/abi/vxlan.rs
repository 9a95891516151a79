//! The VTEP.

use weft_datapath::vxlan::abi::{
    ArpKey, ArpState, ClockState, DSCP_COPY, FIRST_DROP, FLOOD_PORTS, FLOOD_REMOTES, FdbEntry, FdbKey, FloodState,
    HOPS_PER_PEER, LimitState, LimitsState, PEER_SLOTS, PORT_SLOTS, PortState, Slot, TrafficState, UpcallState,
    VLAN_BITS, VLANS, VTEP_EVENTS, VTEP_OUTCOMES, VniState, VtepConfig,
};

use super::layout::{assert_layouts, defined, listed};

const HEADER: &str = include_str!("../../bpf/vxlan_abi.h");
const TC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vxlan_tc.bpf.o"));

#[test]
fn outcomes_have_the_same_names_in_the_same_order() {
    assert_eq!(listed(HEADER, "VTEP_OUTCOMES"), VTEP_OUTCOMES);
    assert_eq!(listed(HEADER, "VTEP_EVENTS"), VTEP_EVENTS);
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
    let theirs: Vec<u32> = names.into_iter().chain(["VTEP_DSCP_COPY"]).map(number).collect();
    assert_eq!(theirs, ours);
    assert_eq!((number("VTEP_VLAN_BITS"), number("VTEP_VLANS")), (VLAN_BITS, VLANS));
}

#[test]
fn structs_have_the_same_layout() {
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
    assert_layouts(TC, &layouts);
}

fn number(name: &str) -> u32 {
    defined(HEADER, name)
}
