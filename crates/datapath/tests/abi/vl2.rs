//! VL2, the programs that lose datagrams, and the reference bridge.

use weft_datapath::abi::{
    AGENT_MARK, AaMapping, BroadcastConstants, HOST_OUTCOMES, HostConstants, L2_OUTCOMES, LOSS_OUTCOMES, LossConstants,
    MacKey, NextHop, OWN_LAS_MAX, OwnLas, RECEIVE_OUTCOMES, RouteSlot, SPREAD_OUTCOMES, SWITCH_OUTCOMES,
    SpreadConstants, StaleSample, SwitchConstants,
};

use super::layout::{assert_layouts, defined, listed};

const HEADER: &str = include_str!("../../bpf/abi.h");
const XDP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/xdp.bpf.o"));
const LOSS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/loss.bpf.o"));
const HOST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vl2_host.bpf.o"));
const SWITCH: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vl2_switch.bpf.o"));

#[test]
fn outcomes_have_the_same_names_in_the_same_order() {
    assert_eq!(listed(HEADER, "HOST_OUTCOMES"), HOST_OUTCOMES);
    assert_eq!(listed(HEADER, "RECEIVE_OUTCOMES"), RECEIVE_OUTCOMES);
    assert_eq!(listed(HEADER, "SPREAD_OUTCOMES"), SPREAD_OUTCOMES);
    assert_eq!(listed(HEADER, "SWITCH_OUTCOMES"), SWITCH_OUTCOMES);
    assert_eq!(listed(HEADER, "L2_OUTCOMES"), L2_OUTCOMES);
    assert_eq!(listed(HEADER, "LOSS_OUTCOMES"), LOSS_OUTCOMES);
}

#[test]
fn constants_are_equal() {
    let (encapsulation, hash) = (include_str!("../../bpf/lib/vl2_encap.h"), include_str!("../../bpf/lib/hash.h"));
    assert_eq!(defined(HEADER, "AGENT_MARK"), AGENT_MARK);
    assert_eq!(defined(HEADER, "OWN_LAS_MAX") as usize, OWN_LAS_MAX);
    assert_eq!(defined(encapsulation, "OUTER_TTL"), u32::from(weft_wire::vl2::OUTER_TTL));
    assert_eq!(defined(hash, "HASH_SOURCE_BLOCK"), u32::from(weft_wire::flow::HASH_SOURCE_BLOCK));
    assert_eq!(defined(hash, "HASH_SOURCE_MASK"), weft_wire::flow::HASH_SOURCE_MASK);
}

#[test]
fn structs_have_the_same_layout() {
    let in_xdp = [
        AaMapping::LAYOUT,
        HostConstants::LAYOUT,
        SwitchConstants::LAYOUT,
        OwnLas::LAYOUT,
        NextHop::LAYOUT,
        RouteSlot::LAYOUT,
        MacKey::LAYOUT,
    ];
    assert_layouts(XDP, &in_xdp);
    assert_layouts(SWITCH, &[StaleSample::LAYOUT]);
    assert_layouts(LOSS, &[LossConstants::LAYOUT]);
    assert_layouts(HOST, &[SpreadConstants::LAYOUT, BroadcastConstants::LAYOUT]);
}
