//! What has to be done to a running VTEP so that it becomes what is wanted, and nothing else.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use weft_wire::ethernet::MacAddress;

use super::settings::{Entry, Port, Segment, Settings};
use super::vni::Vni;

/// One step. In the order that [`difference`] gives them, each finds what it needs: a port's segment exists, a segment that
/// goes has no ports, a peer that goes is in no flood list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Take the data path off an access port.
    DetachPort(String),
    /// Forget an entry.
    RemoveEntry(Vni, MacAddress),
    /// No longer answer ARP for this address.
    RemoveArp(Vni, Ipv4Addr),
    /// Forget a segment and all that is in it.
    RemoveVni(Vni),
    /// Believe this VTEP.
    AddPeer(Ipv4Addr),
    /// Make a segment, or change how it forwards; the addresses are those of its flood list.
    SetVni(Vni, Segment, BTreeSet<Ipv4Addr>),
    /// No longer believe this VTEP.
    RemovePeer(Ipv4Addr),
    /// Put the data path on an access port, or give a trunk other VLANs: what it has of them already is not touched.
    AttachPort(String, Port),
    /// Set an entry, and answer ARP for its address.
    SetEntry(Vni, MacAddress, Entry),
}

/// What `before` has and `after` has not, in words.
pub fn removed(before: &Settings, after: &Settings) -> Vec<String> {
    let ports = before.ports.keys().filter(|name| !after.ports.contains_key(*name)).map(|name| format!("port {name}"));
    let vnis = before.vnis.keys().filter(|vni| !after.vnis.contains_key(vni)).map(|vni| format!("VNI {vni}"));
    let peers = before.peers.difference(&after.peers).map(|peer| format!("peer {peer}"));
    let entries = before.entries.keys().filter(|key| !after.entries.contains_key(key));
    ports.chain(vnis).chain(peers).chain(entries.map(|(vni, mac)| format!("entry {mac} in VNI {vni}"))).collect()
}

/// The steps from `before` to `after`; both have passed [`Settings::check`].
pub fn difference(before: &Settings, after: &Settings) -> Vec<Operation> {
    let mut steps = Vec::new();
    let stays = |now: &Port, port: &Port| now == port || (now.is_trunk() && port.is_trunk());
    let changed = |name: &String, port: &Port| !after.ports.get(name).is_some_and(|now| stays(now, port));
    let detached: BTreeSet<&String> =
        before.ports.iter().filter(|(name, port)| changed(name, port)).map(|(name, _)| name).collect();
    steps.extend(detached.iter().map(|name| Operation::DetachPort((*name).clone())));

    for ((vni, mac), entry) in &before.entries {
        // What is in a segment that goes, goes with it.
        if !after.vnis.contains_key(vni) {
            continue;
        }
        let now = after.entries.get(&(*vni, *mac));
        if now.is_none() {
            steps.push(Operation::RemoveEntry(*vni, *mac));
        }
        if let Some(ip) = entry.ip.filter(|ip| now.is_none_or(|now| now.ip != Some(*ip))) {
            steps.push(Operation::RemoveArp(*vni, ip));
        }
    }
    steps.extend(before.vnis.keys().filter(|vni| !after.vnis.contains_key(vni)).map(|vni| Operation::RemoveVni(*vni)));

    steps.extend(after.peers.difference(&before.peers).map(|peer| Operation::AddPeer(*peer)));
    for (vni, segment) in &after.vnis {
        let copies = after.copies_of(segment);
        let same = before.vnis.get(vni).is_some_and(|old| old == segment && before.copies_of(old) == copies);
        if !same {
            steps.push(Operation::SetVni(*vni, segment.clone(), copies));
        }
    }
    steps.extend(before.peers.difference(&after.peers).map(|peer| Operation::RemovePeer(*peer)));

    for (name, port) in &after.ports {
        if before.ports.get(name) != Some(port) {
            steps.push(Operation::AttachPort(name.clone(), port.clone()));
        }
    }
    for ((vni, mac), entry) in &after.entries {
        // What was known behind a port went when it was detached.
        let port_new = entry.to.port().is_some_and(|name| detached.contains(&name.to_owned()));
        if port_new || before.entries.get(&(*vni, *mac)) != Some(entry) {
            steps.push(Operation::SetEntry(*vni, *mac, entry.clone()));
        }
    }
    steps
}
