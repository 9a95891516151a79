//! What configures a host's interfaces (`network.sh`, which may run again) and a switch's OSPF (`frr.conf`).
//!
//! Switches forward without a check of the reverse path, because the source of outer headers is a hash, which nobody routes;
//! ECMP may hash addresses alone.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

use super::super::Host;
use super::super::addresses::Interface;
use super::{Core, Tor, Vl2};

/// A server's or directory server's uplink, its LA and its AA.
pub(super) fn of_end(host: &mut Host, vl2: &Vl2, uplink: (&str, Ipv4Addr, Option<Ipv4Addr>), tor: &str) {
    let (interface, la, aa) = uplink;
    let gateway = vl2.tor(tor).gateway;
    let mut lines = begin(host);
    let mut line = |text: String| lines += &(text + "\n");
    line(format!("ip link set {interface} mtu {} up", vl2.mtu));
    line(format!("ip address replace {la}/32 dev {interface}"));
    line(format!("ip route replace {} via {gateway} dev {interface} onlink src {la}", vl2.la_block));
    if let Some(aa) = aa {
        let length = vl2.aa_block.rsplit('/').next().unwrap_or_default();
        line("# The whole AA block is on-link; the route's MTU is what the server sends.".to_owned());
        line(format!("ip address replace {aa}/{length} dev {interface} noprefixroute"));
        line(format!("ip route replace {} dev {interface} src {aa} mtu {}", vl2.aa_block, vl2.server_mtu));
    }
    host.file("network.sh", lines);
}

pub(super) fn of_tor(host: &mut Host, vl2: &Vl2, tor: &Tor) {
    let mut lines = of_switch(host, vl2, &[tor.la], &tor.uplinks);
    lines += "# All host ports show the MAC that agents send to.\n";
    let mut las = Vec::new();
    for (port, la, aa) in vl2.behind(&tor.name) {
        let _ = writeln!(lines, "ip link set {port} address {} mtu {} up", vl2.gateway_mac, vl2.mtu);
        let _ = writeln!(lines, "ip address replace {}/32 dev {port}", tor.gateway);
        for address in [Some(la), aa].into_iter().flatten() {
            let _ = writeln!(lines, "ip route replace {address} dev {port}");
        }
        las.push(la);
    }
    host.file("network.sh", lines);
    host.file("frr.conf", ospf(&[tor.la], &tor.uplinks, &las));
}

/// An Intermediate, or an Aggregation without an anycast LA.
pub(super) fn of_core(host: &mut Host, vl2: &Vl2, core: &Core, anycast: Option<Ipv4Addr>) {
    let las: Vec<Ipv4Addr> = std::iter::once(core.la).chain(anycast).collect();
    let lines = of_switch(host, vl2, &las, &core.uplinks);
    host.file("network.sh", lines);
    host.file("frr.conf", ospf(&las, &core.uplinks, &[]));
}

fn begin(host: &Host) -> String {
    format!("# The interfaces of {}. What it is managed by is not touched.\nset -e\n", host.name)
}

fn of_switch(host: &Host, vl2: &Vl2, las: &[Ipv4Addr], uplinks: &BTreeMap<String, String>) -> String {
    let mut lines = begin(host);
    for la in las {
        let _ = writeln!(lines, "ip address replace {la}/32 dev lo");
    }
    lines += "ip link set lo up\n";
    for (port, address) in uplinks {
        let _ = writeln!(lines, "ip link set {port} mtu {} up", vl2.mtu);
        let _ = writeln!(lines, "ip address replace {address} dev {port}");
    }
    lines += "# The source of outer headers is a hash, which nobody routes.\n";
    lines += "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=0\n";
    lines += "for filter in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > \"$filter\"; done\n";
    lines
}

/// OSPF that announces the switch's LAs, and of a ToR those behind it, which are the kernel's routes; no AA.
fn ospf(las: &[Ipv4Addr], uplinks: &BTreeMap<String, String>, behind: &[Ipv4Addr]) -> String {
    let mut lines = String::new();
    for la in behind {
        let _ = writeln!(lines, "ip prefix-list servers permit {la}/32");
    }
    if !behind.is_empty() {
        lines += "route-map servers permit 10\n match ip address prefix-list servers\n";
    }
    for port in uplinks.keys() {
        let _ = writeln!(lines, "interface {port}\n ip ospf network point-to-point");
        lines += " ip ospf hello-interval 1\n ip ospf dead-interval 4\n";
    }
    lines += "router ospf\n";
    for la in las {
        let _ = writeln!(lines, " network {la}/32 area 0");
    }
    for address in uplinks.values() {
        let subnet = Interface::parse(address).expect("the check has read it").subnet;
        let _ = writeln!(lines, " network {subnet} area 0");
    }
    if !behind.is_empty() {
        lines += " redistribute kernel route-map servers\n";
    }
    lines
}
