//! Programs at work: attached to interfaces of the calling thread's namespace, and one frame through each that takes headers
//! off. A kernel may take a program and still refuse what it asks for when a frame comes: then frames are lost without a word.

use std::net::{Ipv4Addr, SocketAddrV4};

use weft_datapath::DatapathError;
use weft_datapath::frame::FrameInput;
use weft_datapath::host::{HostConfig, HostDatapath};
use weft_datapath::spread::Spread;
use weft_datapath::switch::{SwitchConfig, SwitchDatapath, Tier};
use weft_datapath::vxlan::{AccessRule, Flood, To, Vni, VniSettings, Vtep, VtepOptions, VtepProgram, interface_index};
use weft_scenario::addressing::VIRTUAL_MAC;
use weft_wire::block::Block;
use weft_wire::vxlan::UDP_PORT;
use weft_wire::{udp, vl2, vxlan};

const SENDER: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 2);
const ANYCAST_LA: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 1);
const TOR_LA: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const STATION: [u8; 6] = [0x02, 0, 0, 0, 0, 0x11];
const SEGMENT: u32 = 42;

/// VL2's programs on egress and ingress of the loopback interface; an Intermediate takes one header off.
pub(super) fn vl2() -> Result<bool, DatapathError> {
    let switch = SwitchConfig {
        ports: vec!["lo".into()],
        host_ports: Vec::new(),
        own_las: vec![ANYCAST_LA],
        tier: Tier::Intermediate,
        pin_dir: None,
    };
    let host = HostConfig {
        interface: "lo".into(),
        miss_interface: "lo".into(),
        aa_block: Block::of(Ipv4Addr::new(20, 0, 0, 0), 8),
        gateway_mac: VIRTUAL_MAC,
        underlay_mtu: 1600,
        own_tor_la: TOR_LA,
        rack_direct: false,
        rate_limit: None,
        map_entries: 16,
        spread: Spread::Never,
        broadcast: None,
        own: None,
        pin_dir: None,
    };
    let switch = SwitchDatapath::attach(&switch)?;
    let _host = HostDatapath::attach(&host)?;
    let (arriving, leaving) = vl2_packets();
    let output = switch.run(&FrameInput { bytes: &ethernet(&arriving), ..FrameInput::default() })?;
    Ok(output.bytes == ethernet(&leaving))
}

/// At an Intermediate: what arrives, and what leaves.
fn vl2_packets() -> (Vec<u8>, Vec<u8>) {
    let inner = datagram(SENDER, RECEIVER, 9, b"weft");
    let stack = vl2::Stack::for_packet(&inner, TOR_LA, ANYCAST_LA).expect("a packet that was made here");
    let arriving = vl2::encapsulate(&inner, &stack).expect("it is short");
    let leaving = vl2::decapsulate_one(&arriving).expect("it was encapsulated here");
    (arriving, leaving)
}

/// A VTEP between the ports `p0` and `u0`; its uplink takes the headers off.
pub(super) fn vtep() -> Result<bool, DatapathError> {
    let vni = Vni::new(SEGMENT).expect("a constant that is a VNI");
    let mut vtep = Vtep::load(&VtepOptions::new(RECEIVER))?;
    vtep.attach_uplink(interface_index("u0")?)?;
    vtep.add_vni(vni, &VniSettings { flood: Flood::HeadEnd(vec![SENDER]), ..VniSettings::default() })?;
    let port = interface_index("p0")?;
    vtep.attach_access(port, vni, AccessRule::default())?;
    vtep.static_entry(vni, STATION, To::Port(port))?;
    let mut inner = ethernet(&datagram(SENDER, RECEIVER, 9, b"weft"));
    inner[..6].copy_from_slice(&STATION);
    let header = vxlan::Header { vni: SEGMENT }.to_bytes();
    let outer = ethernet(&datagram(SENDER, RECEIVER, UDP_PORT, &[&header[..], &inner].concat()));
    let output = vtep.run(VtepProgram::Uplink, &FrameInput { bytes: &outer, ..FrameInput::default() })?;
    Ok(output.bytes == inner)
}

/// To the address of a loopback interface.
fn ethernet(packet: &[u8]) -> Vec<u8> {
    [&[0; 6][..], &[0x02, 0, 0, 0, 0, 1], &[8, 0], packet].concat()
}

fn datagram(source: Ipv4Addr, destination: Ipv4Addr, port: u16, data: &[u8]) -> Vec<u8> {
    const SOURCE_PORT: u16 = 50_000;
    let ends = (SocketAddrV4::new(source, SOURCE_PORT), SocketAddrV4::new(destination, port));
    udp::packet(ends.0, ends.1, data).expect("it is short")
}
