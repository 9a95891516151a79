//! The frames of the benchmarks at XDP and the tables that the programs look things up in.

use std::net::Ipv4Addr;

use weft_datapath::DatapathError;
use weft_datapath::vxlan::{Hook, To, Vni, VniSettings, Vtep, VtepOptions};

use crate::abi::FrameStart;
use crate::l2::PlainSwitch;

/// Size of a server's frame, bytes; the two ends of what Ethernet carries.
pub(crate) const FRAME_BYTES: [usize; 2] = [64, 1500];

const AA: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 2);
const SENDER: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);
pub(crate) const SINK_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x0b];
const SENDER_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x0a];

const MACS: u32 = 10_000;

/// The plain switch, filled as in a large fabric; all ports lead to `ifindex`.
pub(crate) fn plain_switch(ifindex: u32) -> Result<PlainSwitch, DatapathError> {
    let mut switch = PlainSwitch::load()?;
    let ports = (0..8).map(|_| switch.pretend_port(ifindex)).collect::<Result<Vec<_>, _>>()?;
    for (n, port) in (0..MACS).zip(ports.iter().cycle()) {
        let [_, a, b, c] = n.to_be_bytes();
        switch.set_mac([0x06, 0, 0, a, b, c], *port)?;
    }
    switch.set_mac(SINK_MAC, ports[3])?;
    Ok(switch)
}

/// Our VTEP's address and another's.
pub(crate) const VTEP: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
pub(crate) const OTHER_VTEP: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
/// Of a station behind our VTEP; [`SINK_MAC`] is behind the other one.
const STATION_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x0c];
const PEERS: u32 = 1_000;

/// The segment of the benchmark.
pub(crate) fn vni() -> Vni {
    Vni::new(0x1234).expect("a valid number")
}

/// A VTEP on XDP as full as [`plain_switch`]; its port and uplink are the interface `ifindex`, without programs on it.
pub(crate) fn pretended_vtep(ifindex: u32) -> Result<Vtep, DatapathError> {
    let mut vtep = Vtep::load(&VtepOptions { hook: Hook::Xdp, ..VtepOptions::new(VTEP) })?;
    vtep.add_vni(vni(), &VniSettings::default())?;
    vtep.pretend(ifindex, vni(), OTHER_VTEP, [SINK_MAC, SENDER_MAC])?;
    for n in 0..PEERS {
        vtep.add_peer(Ipv4Addr::from(u32::from(OTHER_VTEP) + n))?;
    }
    for n in 0..MACS {
        let [_, a, b, c] = n.to_be_bytes();
        vtep.static_entry(vni(), [0x06, 0, 0, a, b, c], To::Remote(Ipv4Addr::from(u32::from(OTHER_VTEP) + n % PEERS)))?;
    }
    vtep.static_entry(vni(), SINK_MAC, To::Remote(OTHER_VTEP))?;
    vtep.static_entry(vni(), STATION_MAC, To::Port(ifindex))?;
    Ok(vtep)
}

/// A frame of `bytes` bytes for a station behind our VTEP, as it comes from the other one.
pub(crate) fn tunnelled(bytes: usize) -> Vec<u8> {
    use weft_wire::{ipv4, udp, vxlan};
    let inner = [&STATION_MAC[..], &SINK_MAC, &[0x08, 0x00], &packet(bytes)].concat();
    let length = udp::HEADER_LEN + vxlan::HEADER_LEN + inner.len();
    let mut header = vec![0; ipv4::HEADER_LEN];
    ipv4::Header::new(OTHER_VTEP, VTEP, ipv4::protocol::UDP, length as u16).emit_into(&mut header);
    let ports = [vxlan::source_port(0x1234), vxlan::UDP_PORT, length as u16, 0].map(u16::to_be_bytes).concat();
    let tunnel = vxlan::Header { vni: vni().get() }.to_bytes();
    ethernet(&[&header[..], &ports, &tunnel, &inner].concat())
}

/// A server's frame of `bytes` bytes.
pub(crate) fn plain(bytes: usize) -> Vec<u8> {
    ethernet(&packet(bytes))
}

fn ethernet(packet: &[u8]) -> Vec<u8> {
    [&SINK_MAC[..], &SENDER_MAC, &[0x08, 0x00], packet].concat()
}

fn packet(frame_bytes: usize) -> Vec<u8> {
    use weft_wire::ipv4;
    let length = frame_bytes - 14;
    let mut packet = vec![0; length];
    let header = ipv4::Header::new(SENDER, AA, ipv4::protocol::UDP, (length - ipv4::HEADER_LEN) as u16);
    header.emit_into(&mut packet);
    let udp_length = ((length - ipv4::HEADER_LEN) as u16).to_be_bytes();
    packet[20..26].copy_from_slice(&[0x30, 0x39, 0x00, 0x50, udp_length[0], udp_length[1]]);
    packet
}

/// The first 128 bytes of a frame of ours, for the programs of `bench.bpf.c` and `bench_trill.bpf.c`.
pub(crate) fn start_of(frame: &[u8]) -> FrameStart {
    let mut start = FrameStart::default();
    let length = frame.len().min(start.bytes.len());
    start.bytes[..length].copy_from_slice(&frame[..length]);
    start
}
