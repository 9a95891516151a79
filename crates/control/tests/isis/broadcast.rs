//! Frames for everybody, carried by what the data planes of all RBridges hold together: on every tree, from every ingress,
//! each RBridge gets one copy and none is refused. An overloaded RBridge checks nothing and forwards nothing (RFC 7780 section
//! 2.3.2): between two parts of a campus it may be a leaf of trees that it does not know. It sends on none (section 2.4.2).

use weft_control::isis::PortId;
use weft_wire::ethernet::MacAddress;
use weft_wire::listener::{Family, Group, Listeners};
use weft_wire::vlan::VlanSet;

use super::net::{GROUPS, Net, Node};

/// A frame's VLAN and destination.
#[derive(Clone, Copy, Debug)]
struct To {
    /// `None`: it is not pruned.
    vlan: Option<u16>,
    mac: MacAddress,
}

impl To {
    /// For everybody in VLANs that somebody may be in, and in one that is not pruned; and for groups.
    fn all() -> impl Iterator<Item = Self> {
        let everybody = [None, Some(5), Some(50), Some(101)].map(|vlan| Self { vlan, mac: MacAddress::BROADCAST });
        let groups = GROUPS.iter().flat_map(|mac| [5, 50].map(|vlan| Self { vlan: Some(vlan), mac: *mac }));
        everybody.into_iter().chain(groups)
    }

    fn is_wanted(self, vlans: &VlanSet, listeners: &Listeners) -> bool {
        let Some(vlan) = self.vlan else { return true };
        let is_listened = Family::of_pruned(self.mac).is_none_or(|family| {
            listeners.all(family).contains(vlan) || listeners.groups.contains(&Group { vlan, mac: self.mac })
        });
        vlans.contains(vlan) && is_listened
    }
}

/// Sends a frame from every RBridge on every tree. `is_reached` says who is on the tree of a root, by nickname, as seen from
/// an ingress.
pub(crate) fn judge(net: &Net, is_reached: impl Fn(usize, u16, usize) -> bool) -> Result<(), String> {
    let sends = |(_, node): &(usize, &Node)| node.bridge.is_some() && !node.overloaded;
    for (ingress, node) in net.nodes.iter().enumerate().filter(sends) {
        for (root, frame) in node.data_plane.trees.keys().flat_map(|root| To::all().map(|frame| (*root, frame))) {
            let copies = send(net, ingress, root, frame)
                .map_err(|what| format!("rb{ingress}, tree {root:#x}, {frame:?}: {what}"))?;
            for (to, copies) in copies.into_iter().enumerate().filter(|(to, _)| *to != ingress) {
                let node = &net.nodes[to];
                let wants = frame.is_wanted(&node.interest(), &node.listeners) && is_reached(ingress, root, to);
                // Who is overloaded and knows no tree takes whatever it hears of a shared link.
                let hears_all = !net.lans.all.is_empty() && net.nodes[to].overloaded;
                if (copies > 1 && !hears_all) || (wants && copies == 0) {
                    return Err(format!("rb{ingress}, tree {root:#x}, {frame:?}: {copies} copies reach rb{to}"));
                }
            }
        }
    }
    Ok(())
}

/// How many copies each RBridge gets.
fn send(net: &Net, ingress: usize, root: u16, frame: To) -> Result<Vec<u32>, String> {
    let nickname = net.nodes[ingress].nickname().ok_or("it has no nickname")?;
    let mut copies = vec![0; net.nodes.len()];
    let mut on_the_way = branches(net, ingress, root, frame, None);
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
            on_the_way.extend(branches(net, to, root, frame, Some(port)));
        }
    }
    Ok(copies)
}

/// Where copies go on, but for where the frame came from.
fn branches(net: &Net, node: usize, root: u16, frame: To, came_by: Option<PortId>) -> Vec<(usize, PortId)> {
    let ports = net.nodes[node].data_plane.trees.get(&root).map_or(&[][..], |tree| &tree.ports);
    let onward = ports.iter().filter(|branch| Some(branch.port) != came_by);
    let wanted = onward.filter(|branch| frame.is_wanted(&branch.vlans, &branch.listeners));
    wanted.map(|branch| (node, branch.port)).collect()
}
