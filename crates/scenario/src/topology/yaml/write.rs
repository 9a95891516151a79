//! Writes a fabric as the YAML that [`super::from_yaml`] reads: one line for each node and link.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::{Broadcast, Delivery, Fabric, LinkSpec, Role};
use crate::id::{LinkId, NodeId};

/// The file that [`super::from_yaml`] reads back as the same fabric. The commonest kind of link becomes the default.
pub fn to_yaml(fabric: &Fabric) -> String {
    let mut out = format!("name: {}\ntopology:\n  defaults:\n    kind: linux\n", quoted(fabric.name()));
    let default = commonest_spec(fabric);
    if let Some(default) = default {
        let _ = writeln!(out, "    link: {{{}}}", difference(default, None).join(", "));
    }
    out.push_str("  nodes:\n");
    for (node, id) in fabric.nodes().iter().zip((0..).map(NodeId)) {
        let own = fabric.forwarding().get(&id).map(|own| format!(", forwarding: {}", own.overlay)).unwrap_or_default();
        let _ = writeln!(out, "    {}: {{role: {}{own}}}", key(&node.name), role_name(node.role));
    }
    if !fabric.links().is_empty() {
        out.push_str("  links:\n");
    }
    for (link, id) in fabric.links().iter().zip((0..).map(LinkId)) {
        let end = |port: &super::Port| format!("\"{}:{}\"", fabric.node(port.node).name, port.interface);
        let mut keys = vec![format!("endpoints: [{}, {}]", end(&link.a), end(&link.b))];
        keys.extend(difference(&link.spec, default));
        if let Some(access) = fabric.campus().access.get(&id) {
            keys.push(format!("vlan: {}, address: {}", access.vlan, access.address));
        }
        let _ = writeln!(out, "    - {{{}}}", keys.join(", "));
    }
    let gateways = fabric.campus().gateways.iter().map(|(vlan, address)| format!("{vlan}: {address}"));
    let gateways: Vec<String> = gateways.collect();
    if !gateways.is_empty() {
        let _ = writeln!(out, "  gateways: {{{}}}", gateways.join(", "));
    }
    if fabric.campus().groups {
        out.push_str("  groups: true\n");
    }
    write_services(&mut out, fabric);
    if let Some(server) = fabric.dhcp() {
        let _ = writeln!(out, "dhcp: {{server: {}}}", key(&fabric.node(server).name));
    }
    super::outside::write(&mut out, fabric);
    out
}

fn write_services(out: &mut String, fabric: &Fabric) {
    if !fabric.services().is_empty() {
        out.push_str("services:\n");
    }
    for service in fabric.services() {
        let servers: Vec<String> = service.servers.iter().map(|server| key(&fabric.node(*server).name)).collect();
        let _ = writeln!(out, "  {}: {{servers: [{}]}}", quoted(&service.name), servers.join(", "));
    }
    if let Some(Broadcast { delivery, limit, burst }) = fabric.broadcast() {
        let delivery = match delivery {
            Delivery::Group => "group",
            Delivery::Copies => "copies",
        };
        let _ = writeln!(out, "broadcast: {{delivery: {delivery}, limit: {limit}, burst: {burst}}}");
    }
}

fn commonest_spec(fabric: &Fabric) -> Option<&LinkSpec> {
    let mut counts: BTreeMap<_, (usize, &LinkSpec)> = BTreeMap::new();
    for link in fabric.links() {
        let LinkSpec { rate, buffer, mtu_bytes, delay } = &link.spec;
        counts.entry((rate, buffer, mtu_bytes, delay)).or_insert((0, &link.spec)).0 += 1;
    }
    counts.into_values().max_by_key(|(count, _)| *count).map(|(_, spec)| spec)
}

/// The keys in which a link differs from the default.
fn difference(spec: &LinkSpec, default: Option<&LinkSpec>) -> Vec<String> {
    let mut keys = Vec::new();
    if default.is_none_or(|default| default.rate != spec.rate) {
        keys.push(format!("rate: {}", spec.rate));
    }
    if default.is_none_or(|default| default.buffer != spec.buffer) {
        keys.push(format!("buffer: {}", spec.buffer));
    }
    if default.is_none_or(|default| default.mtu_bytes != spec.mtu_bytes) {
        keys.push(format!("mtu: {}", spec.mtu_bytes));
    }
    if default.is_none_or(|default| default.delay != spec.delay) {
        keys.push(format!("delay: {}", spec.delay));
    }
    keys
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Intermediate => "intermediate",
        Role::Aggregation => "aggregation",
        Role::Tor => "tor",
        Role::Spine => "spine",
        Role::Leaf => "leaf",
        Role::Access => "access",
        Role::Core => "core",
        Role::Rbridge => "rbridge",
        Role::Server => "server",
        Role::Directory => "directory",
        Role::Router => "router",
        Role::Internet => "internet",
    }
}

/// A node's name as a key. Names have plain letters only, but YAML reads some words as something else.
pub(super) fn key(name: &str) -> String {
    const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    if WORDS.contains(&name.to_ascii_lowercase().as_str()) { quoted(name) } else { name.to_owned() }
}

/// Free text as a double-quoted scalar, or as it is where that reads the same.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if text.len() > 5 && text.as_bytes()[0].is_ascii_alphabetic() && text.bytes().all(plain) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            character if character.is_ascii_graphic() || character == ' ' => out.push(character),
            character => {
                let _ = write!(out, "\\U{:08x}", u32::from(character));
            }
        }
    }
    out.push('"');
    out
}
