//! Frames for everybody, carried by what the data planes of all RBridges hold together: on every tree, from every ingress,
//! each RBridge gets one copy and none is refused. An overloaded RBridge checks nothing and forwards nothing (RFC 7780 section
//! 2.3.2): between two parts of a campus it may be a leaf of trees that it does not know. It sends on none (section 2.4.2).

use weft_control::isis::PortId;
use weft_wire::vlan::VlanSet;

use super::net::{Net, Node};

/// Frames of VLANs that somebody may be in, and one that is not pruned.
const VLANS: [Option<u16>; 4] = [None, Some(5), Some(50), Some(101)];

/// Sends a frame from every RBridge on every tree. `is_reached` says who is on the tree of a root, by nickname, as seen from
/// an ingress.
pub(crate) fn judge(net: &Net, is_reached: impl Fn(usize, u16, usize) -> bool) -> Result<(), String> {
    let sends = |(_, node): &(usize, &Node)| node.bridge.is_some() && !node.overloaded;
    for (ingress, node) in net.nodes.iter().enumerate().filter(sends) {
        for (root, vlan) in node.data_plane.trees.keys().flat_map(|root| VLANS.map(|vlan| (*root, vlan))) {
            let copies = send(net, ingress, root, vlan)
                .map_err(|what| format!("a frame of rb{ingress} on tree {root:#x} in VLAN {vlan:?}: {what}"))?;
            for (to, copies) in copies.into_iter().enumerate().filter(|(to, _)| *to != ingress) {
                let wants =
                    vlan.is_none_or(|vlan| net.nodes[to].interest().contains(vlan)) && is_reached(ingress, root, to);
                // Who is overloaded and knows no tree takes whatever it hears of a shared link.
                let hears_all = !net.lans.all.is_empty() && net.nodes[to].overloaded;
                if (copies > 1 && !hears_all) || (wants && copies == 0) {
                    return Err(format!("rb{ingress}, tree {root:#x}, VLAN {vlan:?}: {copies} copies reach rb{to}"));
                }
            }
        }
    }
    Ok(())
}

/// How many copies each RBridge gets.
fn send(net: &Net, ingress: usize, root: u16, vlan: Option<u16>) -> Result<Vec<u32>, String> {
    let nickname = net.nodes[ingress].nickname.ok_or("it has no nickname")?;
    let mut copies = vec![0; net.nodes.len()];
    let mut on_the_way = branches(net, ingress, root, vlan, None);
    while let Some((from, port)) = on_the_way.pop() {
        let (ends, is_shared) = net.far_ends(from, port);
        for (to, port) in ends.into_iter().filter(|(to, _)| net.nodes[*to].bridge.is_some()) {
            let tree = net.nodes[to].data_plane.trees.get(&root);
            let is_expected = tree.is_some_and(|tree| tree.rpf.get(&nickname) == Some(&port));
            // On a shared link also those hear it that get it by another way, or are not meant.
            let is_overloaded = net.nodes[to].overloaded;
            if is_shared && !is_expected && (!is_overloaded || tree.is_some()) {
                continue;
            }
            copies[to] += 1;
            if is_overloaded {
                continue;
            }
            if tree.is_none() {
                return Err(format!("rb{to} has no such tree"));
            }
            if !is_expected {
                return Err(format!("rb{to} refuses it on port {}", port.0));
            }
            if copies[to] > 2 {
                return Err(format!("it circles by rb{to}"));
            }
            on_the_way.extend(branches(net, to, root, vlan, Some(port)));
        }
    }
    Ok(copies)
}

/// Where copies go on, but for where the frame came from.
fn branches(net: &Net, node: usize, root: u16, vlan: Option<u16>, came_by: Option<PortId>) -> Vec<(usize, PortId)> {
    let ports = net.nodes[node].data_plane.trees.get(&root).map_or(&[][..], |tree| &tree.ports);
    let is_wanted = |vlans: &VlanSet| vlan.is_none_or(|vlan| vlans.contains(vlan));
    let onward = ports.iter().filter(|branch| Some(branch.port) != came_by && is_wanted(&branch.vlans));
    onward.map(|branch| (node, branch.port)).collect()
}
