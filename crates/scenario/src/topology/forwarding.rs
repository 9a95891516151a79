//! What single switches forward with, where the fabric's file says so, and what can stand beside what. All others forward with what
//! the network's overlay says.

use std::collections::{BTreeMap, BTreeSet};

use super::{Fabric, LoadError, Role, TopologyError};
use crate::id::NodeId;
use crate::overlay::Overlay;

/// What a file says of one switch.
#[derive(Clone, Debug)]
pub struct Forwarding {
    pub overlay: Overlay,
    /// `file:line`, for messages.
    pub place: String,
}

/// Where it stands in a file does not make another network of it.
impl PartialEq for Forwarding {
    fn eq(&self, other: &Self) -> bool {
        self.overlay == other.overlay
    }
}

impl Eq for Forwarding {}

impl Fabric {
    /// The fabric with switches of kinds of their own. Whether they can be in one network shows with its overlay: see
    /// [`Self::check_forwarding`].
    pub fn with_forwarding(self, forwarding: BTreeMap<NodeId, Forwarding>) -> Result<Self, TopologyError> {
        for (node, Forwarding { overlay, .. }) in &forwarding {
            let role = self.node(*node).role;
            if !role.is_switch() {
                return Err(self.refuse(*node, *overlay, "it is no switch"));
            }
            if overlay.tunnels_at_tors() && !role.is_edge_switch() {
                return Err(self.refuse(*node, *overlay, "tunnels end at switches with servers, others route"));
            }
        }
        Ok(Self { forwarding, ..self })
    }

    /// Switches that forward with what their file says.
    pub fn forwarding(&self) -> &BTreeMap<NodeId, Forwarding> {
        &self.forwarding
    }

    /// What a switch forwards with in a network with this overlay.
    pub fn forwards_with(&self, switch: NodeId, overlay: Overlay) -> Overlay {
        self.forwarding.get(&switch).map_or(overlay, |own| own.overlay)
    }

    /// What the fabric is made for, where nobody says it.
    pub fn default_overlay(&self) -> Overlay {
        let tunnels = self.forwarding.values().map(|own| own.overlay).find(|own| own.tunnels_at_tors());
        match tunnels {
            Some(overlay) => overlay,
            None if self.is_campus() => Overlay::RBRIDGE,
            None if self.with_role(Role::Intermediate).next().is_some() => Overlay::Vl2,
            None => Overlay::Routed,
        }
    }

    /// Whether its switches can be in one network with this overlay; an error has the line of the one that cannot.
    pub fn check_forwarding(&self, overlay: Overlay) -> Result<(), LoadError> {
        let mut beside = vec![overlay];
        for (node, own) in &self.forwarding {
            if let Some((other, why)) = beside.iter().find_map(|other| Some((*other, own.overlay.clash(*other)?))) {
                return Err(self.refuse_at(*node, own, &format!("it cannot stand beside `{other}`: {why}")));
            }
            beside.push(own.overlay);
        }
        self.bridge_islands(overlay).iter().try_for_each(|island| self.check_island(island))
    }

    /// Bridges that are linked with each other.
    pub fn bridge_islands(&self, overlay: Overlay) -> Vec<BTreeSet<NodeId>> {
        let is_bridge = |node: &NodeId| self.is_bridge(*node, overlay);
        let mut islands: Vec<BTreeSet<NodeId>> = Vec::new();
        for bridge in self.switches().filter(is_bridge) {
            if islands.iter().any(|island| island.contains(&bridge)) {
                continue;
            }
            let (mut island, mut waiting) = (BTreeSet::new(), vec![bridge]);
            while let Some(bridge) = waiting.pop() {
                if island.insert(bridge) {
                    waiting.extend(self.neighbours(bridge).filter(is_bridge));
                }
            }
            islands.push(island);
        }
        islands
    }

    /// Whether a switch is a bridge in a network with this overlay.
    pub fn is_bridge(&self, node: NodeId, overlay: Overlay) -> bool {
        self.node(node).role.is_switch() && matches!(self.forwards_with(node, overlay), Overlay::Bridge { .. })
    }

    /// Among RBridges bridges are one link between two of them, for RBridges have point-to-point links alone.
    fn check_island(&self, island: &BTreeSet<NodeId>) -> Result<(), LoadError> {
        let around: Vec<NodeId> = island.iter().flat_map(|bridge| self.neighbours(*bridge)).collect();
        let outside: Vec<NodeId> = around.into_iter().filter(|node| !island.contains(node)).collect();
        let (switches, hosts): (Vec<NodeId>, Vec<NodeId>) =
            outside.into_iter().partition(|node| self.node(*node).role.is_switch());
        let why = match (&switches[..], &hosts[..]) {
            // All switches are bridges.
            ([], _) => return Ok(()),
            ([one, two], []) if one != two => return Ok(()),
            (_, [host, ..]) => format!(
                "`{}` hangs below it, whom no RBridge would be appointed to forward for; move it below an RBridge",
                self.node(*host).name
            ),
            (ends, _) => format!(
                "bridges among RBridges join two of them, point to point; here they have {} links to RBridges",
                ends.len()
            ),
        };
        let said = |node: &NodeId| self.forwarding.get(node).map(|own| (*node, own));
        let blamed = island.iter().find_map(said).or_else(|| switches.iter().find_map(said));
        let (node, own) = blamed.expect("bridges beside RBridges: the file says one of them");
        Err(self.refuse_at(node, own, &why))
    }

    fn neighbours(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.links_of(node).iter().filter_map(move |link| Some(self.link(*link).far_end(node)?.node))
    }

    fn refuse(&self, node: NodeId, overlay: Overlay, reason: &str) -> TopologyError {
        let (node, reason) = (self.node(node).name.clone(), reason.to_owned());
        TopologyError::Forwarding { node, overlay, reason }
    }

    fn refuse_at(&self, node: NodeId, own: &Forwarding, reason: &str) -> LoadError {
        LoadError::Topology { place: own.place.clone(), error: self.refuse(node, own.overlay, reason) }
    }
}

#[cfg(test)]
mod tests {
    use crate::overlay::Overlay;
    use crate::topology::{Fabric, from_yaml, to_yaml};

    const CAMPUS: &str = r#"name: mixed
topology:
  defaults: {kind: linux, link: {rate: 10 Gbit/s, mtu: 9216}}
  nodes:
    s1: {role: rbridge}
    b1: {role: rbridge, forwarding: bridge}
    b2: {role: rbridge, forwarding: bridge}
    s2: {role: rbridge}
    h1: {role: server}
    h2: {role: server}
  links:
    - {endpoints: ["s1:b1", "b1:s1"]}
    - {endpoints: ["b1:b2", "b2:b1"]}
    - {endpoints: ["b2:s2", "s2:b2"]}
    - {endpoints: ["s1:h1", "h1:eth0"], vlan: 10, address: 10.0.10.1/24}
    - {endpoints: ["s2:h2", "h2:eth0"], vlan: 10, address: 10.0.10.2/24}
"#;

    const RACKS: &str = r#"name: makers
topology:
  defaults: {kind: linux, link: {rate: 1 Gbit/s}}
  nodes:
    spine1: {role: spine}
    leaf1: {role: leaf, forwarding: kernel-vxlan-tor}
    leaf2: {role: leaf, forwarding: vtep-tor-xdp}
    s1: {role: server}
    s2: {role: server}
  links:
    - {endpoints: ["spine1:leaf1", "leaf1:spine1"]}
    - {endpoints: ["spine1:leaf2", "leaf2:spine1"]}
    - {endpoints: ["leaf1:s1", "s1:eth0"]}
    - {endpoints: ["leaf2:s2", "s2:eth0"]}
"#;

    fn fabric(text: &str) -> Fabric {
        from_yaml(text, "f.yaml").unwrap()
    }

    #[test]
    fn what_a_file_says_of_a_switch_is_read_and_written() {
        let vteps = [Overlay::VTEP_TOR, "kernel-vxlan-tor".parse().unwrap()];
        for (text, overlays) in [(CAMPUS, [Overlay::RBRIDGE, Overlay::BRIDGE]), (RACKS, vteps)] {
            let fabric = fabric(text);
            let again = from_yaml(&to_yaml(&fabric), "t").unwrap();
            assert_eq!(again, fabric);
            assert_eq!(again.forwarding().len(), 2);
            overlays.iter().for_each(|overlay| fabric.check_forwarding(*overlay).unwrap());
        }
        let (campus, racks) = (fabric(CAMPUS), fabric(RACKS));
        let of = |name| campus.forwards_with(campus.find(name).unwrap(), Overlay::RBRIDGE);
        assert_eq!(["s1", "b1"].map(of), [Overlay::RBRIDGE, Overlay::BRIDGE]);
        assert_eq!(campus.bridge_islands(Overlay::RBRIDGE).len(), 1);
        assert_eq!(campus.default_overlay(), Overlay::RBRIDGE);
        assert_eq!(racks.default_overlay().name(), "kernel-vxlan-tor");
    }

    #[test]
    fn what_cannot_be_in_one_network_is_refused_with_its_line() {
        for (from, to, message) in [
            (
                "b1: {role: rbridge, forwarding: bridge}",
                "b1: {role: rbridge, forwarding: bird}",
                "f.yaml:6:37: there is no overlay `bird`; choose one of vl2",
            ),
            (
                "h1: {role: server}",
                "h1: {role: server, forwarding: bridge}",
                "f.yaml:9: `h1` cannot forward with `bridge`: it is no switch",
            ),
            (
                "forwarding: bridge}\n    b2",
                "forwarding: vl2}\n    b2",
                "f.yaml:6: `b1` cannot forward with `vl2`: it cannot stand beside `rbridge`: one forwards frames, the other routes",
            ),
            (
                "forwarding: bridge}\n    b2",
                "forwarding: l2}\n    b2",
                "f.yaml:6: `b1` cannot forward with `l2`: it cannot stand beside `rbridge`: a plain switch passes on",
            ),
            (
                "forwarding: bridge}\n    s2",
                "forwarding: bridge-standard}\n    s2",
                "f.yaml:7: `b2` cannot forward with `bridge-standard`: it cannot stand beside `bridge`: all bridges go by",
            ),
            ("\"s1:h1\"", "\"b1:h1\"", "f.yaml:6: `b1` cannot forward with `bridge`: `h1` hangs below it"),
            (
                "\"b2:s2\", \"s2:b2\"]}",
                "\"b2:s2\", \"s2:b2\"]}\n    - {endpoints: [\"b2:s1\", \"s1:b2\"]}",
                "f.yaml:6: `b1` cannot forward with `bridge`: bridges among RBridges join two of them, point to point; here they have 3",
            ),
        ] {
            refused(CAMPUS, (from, to), Overlay::RBRIDGE, message);
        }
        for (from, to, message) in [
            (
                "spine1: {role: spine}",
                "spine1: {role: spine, forwarding: vtep-tor}",
                "f.yaml:5: `spine1` cannot forward with `vtep-tor`: tunnels end at",
            ),
            (
                "vtep-tor-xdp",
                "vtep",
                "f.yaml:7: `leaf2` cannot forward with `vtep`: it cannot stand beside `vtep-tor`: of routed networks",
            ),
        ] {
            refused(RACKS, (from, to), Overlay::VTEP_TOR, message);
        }
    }

    fn refused(text: &str, (from, to): (&str, &str), overlay: Overlay, message: &str) {
        assert!(text.contains(from), "{from}");
        let read = from_yaml(&text.replace(from, to), "f.yaml");
        let error = read.and_then(|fabric| fabric.check_forwarding(overlay)).expect_err(to).to_string();
        assert!(error.starts_with(message), "wanted `{message}`, got `{error}`");
    }
}
