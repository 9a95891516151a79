//! The packet-rate variants: whole frames in and out, next hops from the slots and from the hash, the plain switch.

#[path = "../../datapath/tests/common/mod.rs"]
mod common;

use std::net::Ipv4Addr;

use common::*;
use weft_datapath::frame::{FrameInput, Verdict};
use weft_datapath::host::Mapping;
use weft_datapath::switch::Tier;
use weft_testbed::abi::NextHop;
use weft_testbed::l2::PlainSwitch;
use weft_testbed::xdp::{XdpConfig, XdpDatapath, XdpProgram};

const PORT_MAC: [u8; 6] = [0x02, 0x99, 0, 0, 0, 1];

fn next_hop(n: u8) -> NextHop {
    NextHop { destination: [0x02, 0x77, 0, 0, 0, n], source: PORT_MAC, port: 3 }
}

fn loaded(tier: Tier) -> Option<XdpDatapath> {
    let config = XdpConfig { aa_block: host_config().aa_block, underlay_mtu: 1600, tier };
    let xdp = available(XdpDatapath::load(&config))?;
    xdp.set_port(3, 1).unwrap();
    xdp.set_mapping(PEER_AA, &MAPPING).unwrap();
    xdp.set_own_las(&[ANYCAST]).unwrap();
    Some(xdp)
}

/// `packet` as it leaves towards next hop `n`.
fn forwarded(n: u8, packet: &[u8]) -> Vec<u8> {
    ethernet(next_hop(n).destination, PORT_MAC, 0x0800, packet)
}

#[test]
fn encapsulation_goes_to_the_anycast_las_next_hop() {
    let Some(xdp) = loaded(Tier::Intermediate) else { return };
    xdp.set_route(ANYCAST, &next_hop(1)).unwrap();
    let packet = Ipv4::default();
    let output = xdp.run(XdpProgram::Encap, &packet.frame()).unwrap();
    assert_eq!(output.verdict, Verdict::Redirect);
    assert_frame(&output.bytes, &forwarded(1, &encapsulated(&packet.bytes())[14..]));
    assert_eq!(counted(xdp.counters(XdpProgram::Encap).unwrap()), [("encapsulated", 1)]);
}

#[test]
fn encapsulation_leaves_to_the_kernel_what_it_cannot_finish() {
    let Some(xdp) = loaded(Tier::Intermediate) else { return };
    let unrouted = xdp.run(XdpProgram::Encap, &Ipv4::default().frame()).unwrap();
    assert_eq!(unrouted.verdict, Verdict::Next);
    let unknown = Ipv4 { destination: Ipv4Addr::new(20, 9, 9, 9), ..Ipv4::default() }.frame();
    let output = xdp.run(XdpProgram::Encap, &unknown).unwrap();
    assert_eq!((output.verdict, output.bytes), (Verdict::Next, unknown));
    xdp.set_mapping(PEER_AA, &Mapping { refused: true, ..MAPPING }).unwrap();
    assert_eq!(xdp.run(XdpProgram::Encap, &Ipv4::default().frame()).unwrap().verdict, Verdict::Drop);
    let expected = [("packet_miss", 1), ("refused", 1), ("no_route", 1)];
    assert_eq!(counted(xdp.counters(XdpProgram::Encap).unwrap()), expected);
}

/// An Intermediate is a router: the header towards the ToR loses one TTL, the packet inside does not.
#[test]
fn decapsulation_at_the_intermediate_is_a_hop() {
    let Some(xdp) = loaded(Tier::Intermediate) else { return };
    // Three LAs with the same low 12 bits: the first has the slot, the others are found by hash.
    let las = [PEER_TOR, Ipv4Addr::new(10, 1, 16, 2), Ipv4Addr::new(10, 2, 0, 2)];
    for (n, la) in (1..).zip(las) {
        xdp.set_route(la, &next_hop(n)).unwrap();
    }
    for round in 0..2 {
        for (n, la) in (1..).zip(las) {
            for ttl in [2, 64, 255] {
                let inner = Ipv4 { destination: la, ttl, protocol: 4, ..Ipv4::default() };
                let output = xdp.run(XdpProgram::Decap, &arriving(ANYCAST, 0, &inner)).unwrap();
                assert_eq!(output.verdict, Verdict::Redirect);
                let hop = Ipv4 { ttl: ttl - 1, ..inner };
                assert_frame(&output.bytes, &forwarded(n + round * 10, &hop.bytes()));
            }
            xdp.set_route(la, &next_hop(n + 10)).unwrap();
        }
    }
    let expiring = Ipv4 { destination: PEER_TOR, ttl: 1, ..Ipv4::default() };
    assert_eq!(xdp.run(XdpProgram::Decap, &arriving(ANYCAST, 0, &expiring)).unwrap().verdict, Verdict::Next);
    let unknown = Ipv4 { destination: Ipv4Addr::new(10, 1, 0, 9), ..Ipv4::default() };
    assert_eq!(xdp.run(XdpProgram::Decap, &arriving(ANYCAST, 0, &unknown)).unwrap().verdict, Verdict::Next);
    assert_eq!(counted(xdp.counters(XdpProgram::Decap).unwrap()), [("decapsulated", 18), ("no_route", 2)]);
}

/// The incremental checksum of the TTL is right for every header, not only for the usual ones.
#[test]
fn every_checksum_survives_the_hop() {
    let Some(xdp) = loaded(Tier::Intermediate) else { return };
    xdp.set_route(PEER_TOR, &next_hop(1)).unwrap();
    for id in (0..=65535).step_by(13) {
        let inner = Ipv4 { destination: PEER_TOR, id, ..Ipv4::default() };
        let output = xdp.run(XdpProgram::Decap, &arriving(ANYCAST, 0, &inner)).unwrap();
        let header = &output.bytes[14..34];
        assert_eq!(u16::from_be_bytes([header[10], header[11]]) % 0xffff, checksum(header) % 0xffff, "id {id}");
    }
}

#[test]
fn decapsulation_at_the_tor_is_not_a_hop() {
    let Some(xdp) = loaded(Tier::Tor) else { return };
    xdp.set_route(PEER_AA, &next_hop(4)).unwrap();
    for ttl in [0, 1, 64, 255] {
        let inner = Ipv4 { ttl, ..Ipv4::default() };
        let output = xdp.run(XdpProgram::Decap, &arriving(ANYCAST, 0, &inner)).unwrap();
        assert_eq!(output.verdict, Verdict::Redirect);
        assert_frame(&output.bytes, &forwarded(4, &inner.bytes()));
    }
    let unknown = Ipv4 { destination: Ipv4Addr::new(20, 0, 0, 9), ..Ipv4::default() };
    assert_eq!(xdp.run(XdpProgram::Decap, &arriving(ANYCAST, 0, &unknown)).unwrap().verdict, Verdict::Drop);
    assert_eq!(counted(xdp.counters(XdpProgram::Decap).unwrap()), [("delivered", 4), ("no_such_host", 1)]);
}

#[test]
fn the_plain_switch_forwards_known_macs_and_drops_others() {
    let Some(mut switch) = available(PlainSwitch::load()) else { return };
    switch.pretend_port(1).unwrap();
    let other = switch.pretend_port(1).unwrap();
    switch.set_mac(OTHER_MAC, other).unwrap();
    let known = Ipv4::default().frame();
    let unknown = ethernet(SERVER_MAC, OTHER_MAC, 0x0800, &Ipv4::default().bytes());
    for (frame, verdict) in [(known, Verdict::Redirect), (unknown, Verdict::Drop)] {
        let input = FrameInput { bytes: &frame, ..FrameInput::default() };
        for output in [switch.run_xdp(&frame).unwrap(), switch.run_tc(&input).unwrap()] {
            assert_eq!((output.verdict, output.bytes), (verdict, frame.clone()));
        }
    }
    assert_eq!(counted(switch.counters().unwrap()), [("forwarded", 2), ("unknown", 2)]);
}
