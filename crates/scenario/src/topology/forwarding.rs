//! What single switches forward with, where the fabric's file says so, and what can stand beside what. All others forward with what
//! the network's overlay says.

use std::collections::{BTreeMap, BTreeSet};

use super::{Fabric, LoadError, Role, TopologyError};
use crate::id::{LinkId, NodeId};
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

/// Bridges that are linked with each other: beside RBridges they are one link.
#[derive(Clone, Debug, Default)]
pub struct Island {
    pub bridges: BTreeSet<NodeId>,
    /// Other switches around them, with their links.
    pub switches: Vec<(NodeId, LinkId)>,
    /// Hosts below them, with their links.
    pub hosts: Vec<(NodeId, LinkId)>,
}

impl Island {
    /// Whether it is a link of any number of RBridges and end stations (RFC 6325 section 4.2.4), and not of two RBridges alone.
    pub fn is_shared(&self) -> bool {
        self.switches.len() != 2 || !self.hosts.is_empty()
    }
}

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

    /// Bridges that are linked with each other, and what is around them.
    pub fn bridge_islands(&self, overlay: Overlay) -> Vec<Island> {
        let mut islands: Vec<Island> = Vec::new();
        for bridge in self.switches().filter(|node| self.is_bridge(*node, overlay)) {
            if !islands.iter().any(|island| island.bridges.contains(&bridge)) {
                islands.push(self.island_of(bridge, overlay));
            }
        }
        islands
    }

    fn island_of(&self, bridge: NodeId, overlay: Overlay) -> Island {
        let (mut island, mut waiting) = (Island::default(), vec![bridge]);
        while let Some(bridge) = waiting.pop() {
            if !island.bridges.insert(bridge) {
                continue;
            }
            for link in self.links_of(bridge) {
                let far = self.link(*link).far_end(bridge).expect("a link of a node has a far end").node;
                match self.node(far).role.is_switch() {
                    true if self.is_bridge(far, overlay) => waiting.push(far),
                    true => island.switches.push((far, *link)),
                    false => island.hosts.push((far, *link)),
                }
            }
        }
        island
    }

    /// Whether a switch is a bridge in a network with this overlay.
    pub fn is_bridge(&self, node: NodeId, overlay: Overlay) -> bool {
        self.node(node).role.is_switch() && matches!(self.forwards_with(node, overlay), Overlay::Bridge { .. })
    }

    /// Among RBridges bridges are one link, on which each has one port; stations on it send no tags.
    fn check_island(&self, island: &Island) -> Result<(), LoadError> {
        let name = |node: NodeId| &self.node(node).name;
        let again = |(place, (switch, _)): (usize, &(NodeId, _))| {
            let seen = island.switches[..place].iter().any(|(other, _)| other == switch);
            seen.then(|| format!("`{}` has two ports on the link that it is; give it one", name(*switch)))
        };
        let vlan = |link: LinkId| self.campus().access.get(&link).map(|access| access.vlan);
        let apart = |pair: &[(NodeId, LinkId)]| {
            let [a, b] = [vlan(pair[0].1), vlan(pair[1].1)];
            let who = (name(pair[0].0), name(pair[1].0));
            (a != b).then(|| format!("`{}` and `{}` hang below it in two VLANs, but send no tags", who.0, who.1))
        };
        let doubled = island.switches.iter().enumerate().find_map(again);
        match doubled.or_else(|| island.hosts.windows(2).find_map(apart)) {
            // Where all switches are bridges they have each VLAN's own.
            Some(why) if !island.switches.is_empty() => Err(self.refuse_island(island, &why)),
            _ => Ok(()),
        }
    }

    fn refuse_island(&self, island: &Island, why: &str) -> LoadError {
        let around = island.switches.iter().map(|(switch, _)| switch);
        let blamed = island.bridges.iter().chain(around).find_map(|node| Some((*node, self.forwarding.get(node)?)));
        let (node, own) = blamed.expect("bridges beside RBridges: the file says one of them");
        self.refuse_at(node, own, why)
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

    #[test]
    fn bridges_with_stations_or_more_rbridges_are_a_shared_link() {
        let island = |text: &str| {
            let fabric = fabric(text);
            fabric.check_forwarding(Overlay::RBRIDGE).unwrap();
            let [island] = &fabric.bridge_islands(Overlay::RBRIDGE)[..] else { panic!("one island") };
            (island.bridges.len(), island.switches.len(), island.hosts.len(), island.is_shared())
        };
        assert_eq!(island(CAMPUS), (2, 2, 0, false));
        assert_eq!(island(&CAMPUS.replace("\"s1:h1\"", "\"b1:h1\"")), (2, 2, 1, true));
        let third = "    s3: {role: rbridge}\n    h1:";
        let linked = "  links:\n    - {endpoints: [\"b2:s3\", \"s3:b2\"]}";
        let more = CAMPUS.replacen("    h1:", third, 1).replacen("  links:", linked, 1);
        assert_eq!(island(&more), (2, 3, 0, true));
    }

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
            (
                "\"b2:s2\", \"s2:b2\"]}",
                "\"b2:s2\", \"s2:b2\"]}\n    - {endpoints: [\"b2:s1\", \"s1:b2\"]}",
                "f.yaml:6: `b1` cannot forward with `bridge`: `s1` has two ports on the link that it is; give it one",
            ),
            (
                "[\"s1:h1\", \"h1:eth0\"], vlan: 10, address: 10.0.10.1/24}\n    - {endpoints: [\"s2:h2\", \"h2:eth0\"], vlan: 10",
                "[\"b1:h1\", \"h1:eth0\"], vlan: 20, address: 10.0.10.1/24}\n    - {endpoints: [\"b1:h2\", \"h2:eth0\"], vlan: 10",
                "f.yaml:6: `b1` cannot forward with `bridge`: `h1` and `h2` hang below it in two VLANs, but send no tags",
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
