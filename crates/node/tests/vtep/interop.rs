//! Beside the kernel's VXLAN device: both directions, ARP, broadcast, groups, TCP in super frames, and what tshark says.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use weft_node::vtep::{FloodText, VtepConfig};

use crate::bed::{HOST, Hosts, Running, port, segment};
use crate::common::wait_until;
use crate::net::tap::Tap;
use crate::net::{Namespace, transfer};

const VM: Ipv4Addr = Ipv4Addr::new(192, 168, 100, 1);
const KERNEL: Ipv4Addr = Ipv4Addr::new(192, 168, 100, 2);

fn config(hosts: &Hosts) -> VtepConfig {
    let mut config = hosts.config(0);
    config.vni = vec![segment(100)];
    config.port = vec![port("vm1", 100)];
    config
}

/// A VM behind our VTEP, and the kernel's device at the other host.
fn beside_the_kernel(test: &'static str) -> Option<(Hosts, Namespace, Running)> {
    let hosts = Hosts::new(test)?;
    let vm = hosts.vm(0, "vm1", "192.168.100.1/24");
    vm.ip("addr replace 192.168.100.1/24 brd + dev eth0");
    hosts.kernel_vxlan(100, &format!("remote {}", HOST[0]), "192.168.100.2/24");
    let vtep = hosts.vtep(0, config(&hosts));
    Some((hosts, vm, vtep))
}

#[test]
fn both_find_each_other_and_hear_broadcasts() {
    let Some((hosts, vm, vtep)) = beside_the_kernel("find") else { return };
    let output = vm.ping("-c 5 -i 0.05 -W 30 192.168.100.2");
    assert!(output.contains("5 received"), "{output}");
    // The other way round, from the first ARP request on.
    vm.ip("neigh flush all");
    hosts.hosts[1].ip("neigh flush all");
    let output = hosts.hosts[1].ping("-c 5 -i 0.05 -W 30 192.168.100.1");
    assert!(output.contains("5 received"), "{output}");

    let fdb = vtep.fdb();
    let behind = |to: &str| fdb.iter().filter(|row| row.to == to && row.vni == 100 && row.origin == "learned").count();
    assert_eq!((behind(&HOST[1].to_string()), behind("vm1")), (1, 1), "{fdb:?}");

    for (from, to) in [(&vm, &hosts.hosts[1]), (&hosts.hosts[1], &vm)] {
        to.sysctl("icmp_echo_ignore_broadcasts", "0");
        let output = from.ping("-b -c 3 -i 0.1 -W 30 192.168.100.255");
        assert!(output.contains("3 received"), "{output}");
    }
    assert!(vtep.count("frames", "flooded") >= 4, "ARP and broadcasts");
}

#[test]
fn tcp_keeps_its_super_frames_in_both_directions() {
    const BYTES: usize = 100 << 20;
    let Some((hosts, vm, vtep)) = beside_the_kernel("tcp") else { return };
    let kernel = &hosts.hosts[1];
    for (from, to, address, interface) in [(&vm, kernel, KERNEL, "vx100"), (kernel, &vm, VM, "eth0")] {
        let before = to.received(interface);
        transfer(from, to, address, BYTES);
        let after = to.received(interface);
        let mean = (after.0 - before.0) / (after.1 - before.1);
        assert!(mean > 4000, "super frames arrive at {interface}: {mean} bytes on average");
    }
    for drop in ["too_big", "malformed", "bad_udp_checksum", "push_failed", "pop_failed", "no_route"] {
        assert_eq!(vtep.count("frames", drop), 0, "{drop}");
    }
}

#[test]
fn a_multicast_group_of_the_underlay_carries_what_is_for_many() {
    let Some(hosts) = Hosts::new("group") else { return };
    let vm = hosts.vm(0, "vm1", "192.168.100.1/24");
    for host in &hosts.hosts {
        host.ip("route add 239.0.0.0/8 dev eth0");
    }
    hosts.kernel_vxlan(100, "group 239.1.1.1", "192.168.100.2/24");
    let mut config = config(&hosts);
    config.vni[0].flood = Some(FloodText::Word("239.1.1.1".to_owned()));
    let vtep = hosts.vtep(0, config);
    let output = vm.ping("-c 3 -i 0.05 -W 30 192.168.100.2");
    assert!(output.contains("3 received"), "{output}");
    vm.ip("neigh flush all");
    hosts.hosts[1].ip("neigh flush all");
    let output = hosts.hosts[1].ping("-c 3 -i 0.05 -W 30 192.168.100.1");
    assert!(output.contains("3 received"), "{output}");
    vtep.finish();
}

#[test]
fn tshark_decodes_every_frame_on_the_wire() {
    let Some((hosts, vm, vtep)) = beside_the_kernel("tshark") else { return };
    let mut tap = Tap::open(&hosts.hosts[1], "eth0", true);
    // Their frames alone are enough; what TCP sends may all be super frames.
    assert!(vm.ping("-c 10 -i 0.02 -W 30 192.168.100.2").contains("10 received"));
    transfer(&vm, &hosts.hosts[1], KERNEL, 100_000);
    let mut frames = Vec::new();
    wait_until("frames were seen", || {
        while let Some(frame) = tap.poll() {
            // A super frame has no length that IPv4 alone could write here.
            if frame.len() <= 1614 && frame[12..14] == [8, 0] {
                frames.push(frame.to_vec());
            }
        }
        frames.len() >= 20
    });
    let fields =
        ["frame.protocols", "ip.src", "ip.checksum.status", "ip.flags.df", "udp.srcport", "udp.dstport", "vxlan.vni"];
    let Some(rows) = decode(hosts.dir.path(), &frames, &fields) else { return };
    assert_eq!(rows.len(), frames.len());
    let mut ports = std::collections::BTreeSet::new();
    for row in &rows {
        let [protocols, source, checksum, df, source_port, destination_port, vni] = row.as_slice() else {
            panic!("{row:?}")
        };
        assert!(protocols.starts_with("eth:ethertype:ip:udp:vxlan:eth:ethertype:"), "{row:?}");
        assert!(!protocols.contains("malformed") && !protocols.contains("ethertype:data"), "{row:?}");
        assert_eq!((vni.as_str(), destination_port.split(',').next()), ("100", Some("4789")), "{row:?}");
        if source.starts_with(&HOST[0].to_string()) {
            assert!(checksum.starts_with('1') && df.starts_with('1'), "{row:?}");
            let source_port: u16 = source_port.split(',').next().unwrap().parse().unwrap();
            assert!(source_port >= 49152, "{row:?}");
            ports.insert(source_port);
        }
    }
    assert!(ports.len() >= 2, "flows differ in their source port: {ports:?}");
    vtep.finish();
}

/// One row of `fields` for each frame, or `None`, said aloud, where there is no tshark.
fn decode(dir: &Path, frames: &[Vec<u8>], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for (index, frame) in frames.iter().enumerate() {
        let length = u32::try_from(frame.len()).unwrap();
        for word in [0, u32::try_from(index).unwrap(), length, length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    if !weft_needs::program("tshark") {
        return None;
    }
    let file = dir.join("wire.pcap");
    std::fs::write(&file, bytes).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&file).args(["-n", "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=;"]);
    command.args(["-E", "occurrence=a", "-E", "aggregator=,"]).args(fields.iter().flat_map(|field| ["-e", field]));
    let output = command.output().unwrap();
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap().replace("True", "1");
    Some(text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect())
}
