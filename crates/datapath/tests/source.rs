//! What a host may have as the source of its packets (RFC 2827), and outer headers that it makes itself.

mod common;

use std::net::Ipv4Addr;

use common::*;
use weft_datapath::broadcast::Broadcast;
use weft_datapath::frame::{FrameInput, FrameOutput, Verdict};
use weft_datapath::host::{HostConfig, HostDatapath, OwnAddresses, TokenBucket};
use weft_wire::block::Block;

const MY_LA: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 2);
const PUBLIC: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const OTHERS_PUBLIC: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const MEMBER_LA: Ipv4Addr = Ipv4Addr::new(10, 64, 1, 2);
const IPIP: u8 = 4;

fn own(public_la: Option<Ipv4Addr>) -> OwnAddresses {
    OwnAddresses { aa: MY_AA, la: MY_LA, public_la }
}

fn loaded(config: &HostConfig) -> Option<HostDatapath> {
    let host = available(HostDatapath::load(config))?;
    host.set(PEER_AA, &MAPPING).expect("the map has room");
    Some(host)
}

fn host_of(public_la: Option<Ipv4Addr>) -> Option<HostDatapath> {
    loaded(&host_config_with(|config| config.own = Some(own(public_la))))
}

fn out(host: &HostDatapath, frame: &[u8]) -> FrameOutput {
    host.run(&FrameInput { bytes: frame, ..FrameInput::default() }).expect("the program runs")
}

fn from(source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    Ipv4 { source, destination, ..Ipv4::default() }.frame()
}

fn untouched(verdict: Verdict, frame: &[u8]) -> FrameOutput {
    FrameOutput { verdict, bytes: frame.to_vec() }
}

#[test]
fn packets_from_the_hosts_own_addresses_leave_as_ever() {
    let Some(host) = host_of(Some(PUBLIC)) else { return };
    for source in [MY_AA, MY_LA, PUBLIC] {
        let plain = from(source, OUTSIDE);
        assert_eq!(out(&host, &plain), untouched(Verdict::Next, &plain), "{source}");
        let packet = Ipv4 { source, ..Ipv4::default() };
        assert_frame(&out(&host, &packet.frame()).bytes, &encapsulated(&packet.bytes()));
    }
    assert_eq!(counted(host.counters().unwrap()), [("passed", 3), ("encapsulated", 3)]);
}

#[test]
fn a_public_la_is_not_for_every_host() {
    let Some(host) = host_of(None) else { return };
    let frame = from(PUBLIC, OUTSIDE);
    assert_eq!(out(&host, &frame), untouched(Verdict::Drop, &frame));
    let plain = from(MY_LA, OUTSIDE);
    assert_eq!(out(&host, &plain), untouched(Verdict::Next, &plain));
    assert_eq!(counted(host.counters().unwrap()), [("passed", 1), ("foreign_source", 1)]);
}

#[test]
fn packets_from_anybody_elses_addresses_do_not_leave() {
    let Some(host) = host_of(Some(PUBLIC)) else { return };
    let next_to = |address: Ipv4Addr| Ipv4Addr::from(u32::from(address) + 1);
    let mut foreign = vec![OTHERS_PUBLIC, PEER_AA, MEMBER_LA, OUTSIDE, Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED];
    foreign.extend([MY_AA, MY_LA, PUBLIC].map(next_to));
    let destinations = [OUTSIDE, MEMBER_LA, PEER_AA, Ipv4Addr::new(20, 255, 255, 255)];
    for source in &foreign {
        for destination in destinations {
            let frame = from(*source, destination);
            assert_eq!(out(&host, &frame), untouched(Verdict::Drop, &frame), "{source} to {destination}");
        }
    }
    let dropped = (foreign.len() * destinations.len()) as u64;
    assert_eq!(counted(host.counters().unwrap()), [("foreign_source", dropped)]);
}

#[test]
fn a_host_without_an_address_asks_everybody_for_one() {
    let Some(host) = host_of(None) else { return };
    for destination in [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 22)] {
        let frame = from(Ipv4Addr::UNSPECIFIED, destination);
        assert_eq!(out(&host, &frame), untouched(Verdict::Next, &frame));
    }
    let request = ethernet(BROADCAST_MAC, SERVER_MAC, 0x0806, &arp(1, (SERVER_MAC, MY_AA), ([0; 6], MY_AA)));
    assert_eq!(out(&host, &request), untouched(Verdict::Next, &request));
    assert_eq!(counted(host.counters().unwrap()), [("passed", 2), ("arp_probe_passed", 1)]);
}

#[test]
fn an_outer_header_is_the_agents_to_make() {
    let Some(host) = host_of(Some(PUBLIC)) else { return };
    let forged = Ipv4 { source: OTHERS_PUBLIC, destination: OUTSIDE, ..Ipv4::default() }.bytes();
    for source in [MY_AA, MY_LA, PUBLIC] {
        for destination in [ANYCAST, MY_TOR, MEMBER_LA, OUTSIDE] {
            let frame = ethernet(GATEWAY_MAC, SERVER_MAC, 0x0800, &wrapped(&forged, source, destination, 0));
            assert_eq!(out(&host, &frame), untouched(Verdict::Drop, &frame), "{source} to {destination}");
        }
    }
    // A tunnel between AAs is what applications make of their network; the fabric does not look inside.
    let tunnel = Ipv4 { protocol: IPIP, payload: forged, ..Ipv4::default() };
    assert_frame(&out(&host, &tunnel.frame()).bytes, &encapsulated(&tunnel.bytes()));
    assert_eq!(counted(host.counters().unwrap()), [("encapsulated", 1), ("made_up_header", 12)]);
}

#[test]
fn a_copy_of_a_broadcast_comes_by_a_second_time_and_passes() {
    let broadcast = Broadcast {
        aa: MY_AA,
        la: MY_LA,
        la_block: Block::of(Ipv4Addr::new(10, 0, 0, 0), 8),
        members: vec![MEMBER_LA],
        group: None,
        mtu: 1600,
        limit: TokenBucket { bits_per_s: 1_000_000_000, burst_bytes: 1_000_000 },
    };
    let with = |broadcast| {
        loaded(&host_config_with(|config| (config.own, config.broadcast) = (Some(own(None)), Some(broadcast))))
    };
    let inner = Ipv4 { destination: Ipv4Addr::BROADCAST, ..Ipv4::default() }.bytes();
    let copy = |source, to| ethernet(GATEWAY_MAC, SERVER_MAC, 0x0800, &wrapped(&inner, source, to, 0));
    let Some(host) = with(broadcast.clone()) else { return };
    let good = copy(MY_LA, MEMBER_LA);
    assert_eq!(out(&host, &good), untouched(Verdict::Next, &good));
    for frame in [copy(MY_LA, MY_TOR), copy(MY_AA, MEMBER_LA)] {
        assert_eq!(out(&host, &frame), untouched(Verdict::Drop, &frame));
    }
    assert_eq!(counted(host.counters().unwrap()), [("passed", 1), ("made_up_header", 2)]);
    let Some(host) = with(Broadcast { group: Some(Ipv4Addr::new(239, 192, 0, 1)), ..broadcast }) else { return };
    assert_eq!(out(&host, &good), untouched(Verdict::Drop, &good));
}

#[test]
fn without_addresses_of_its_own_a_host_sends_what_it_likes() {
    let Some(host) = host() else { return };
    for frame in [from(OTHERS_PUBLIC, OUTSIDE), from(Ipv4Addr::UNSPECIFIED, OUTSIDE), from(OUTSIDE, PEER_AA)] {
        assert_eq!(out(&host, &frame).verdict, Verdict::Next);
    }
    assert_eq!(counted(host.counters().unwrap()), [("passed", 2), ("encapsulated", 1)]);
}
