//! What a fabric of RBridges says beside nodes and links: which VLAN a host's link carries, which address the host has on
//! it, and which addresses the RBridges themselves answer for as gateways.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weft_wire::block::Block;
use weft_wire::vlan::VLAN_MAX;

use super::{Fabric, Role, TopologyError};
use crate::id::{LinkId, NodeId};

/// An address and the length of its network's prefix, as an interface has them: `10.0.10.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct InterfaceAddress {
    pub address: Ipv4Addr,
    /// Length of the prefix in bits, 1 to 30.
    pub length: u8,
}

/// A text that is no address of an interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address of a host with its prefix length; write for example `10.0.10.1/24`")]
pub struct ParseAddressError(String);

impl InterfaceAddress {
    /// The network that is on the link.
    pub fn network(self) -> Block {
        Block::around(self.address, self.length)
    }

    fn is_host(self) -> bool {
        let network = self.network();
        (1..=30).contains(&self.length) && self.address != network.network() && self.address != network.last()
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.length)
    }
}

impl From<InterfaceAddress> for String {
    fn from(address: InterfaceAddress) -> Self {
        address.to_string()
    }
}

impl FromStr for InterfaceAddress {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (address, length) = text.split_once('/')?;
            let length = length.parse().ok().filter(|length| *length <= 32)?;
            let parsed = Self { address: address.parse().ok()?, length };
            parsed.is_host().then_some(parsed)
        };
        parse().ok_or_else(|| ParseAddressError(text.to_owned()))
    }
}

impl TryFrom<String> for InterfaceAddress {
    type Error = ParseAddressError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// What an access link carries, and who is at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Access {
    /// VLAN of the untagged frames on the link.
    pub vlan: u16,
    /// Address of the host's, or the router's, interface.
    pub address: InterfaceAddress,
}

/// VLANs and addresses of a fabric of RBridges. Empty in other fabrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Campus {
    /// By the link of a host or router.
    pub access: BTreeMap<LinkId, Access>,
    /// By VLAN: the address that every RBridge answers for and routes from.
    pub gateways: BTreeMap<u16, InterfaceAddress>,
    /// Whether RBridges find out which IP multicast groups hosts listen to, and send frames for groups there alone.
    pub groups: bool,
}

impl Campus {
    /// VLANs that some host is in, in order.
    pub fn vlans(&self) -> BTreeSet<u16> {
        self.access.values().map(|access| access.vlan).collect()
    }

    /// The gateway of the hosts of a VLAN: a router's address there, or the RBridges' own.
    pub fn gateway_of(&self, fabric: &Fabric, vlan: u16) -> Option<Ipv4Addr> {
        let router = self.routers_in(fabric, vlan).next().map(|access| access.address);
        router.or_else(|| self.gateways.get(&vlan).copied()).map(|gateway| gateway.address)
    }

    fn routers_in<'a>(&'a self, fabric: &'a Fabric, vlan: u16) -> impl Iterator<Item = &'a Access> {
        let at_router = |link: LinkId| ends(fabric, link).into_iter().any(|(_, role)| role == Role::Router);
        self.access
            .iter()
            .filter(move |(link, access)| access.vlan == vlan && at_router(**link))
            .map(|(_, access)| access)
    }
}

impl Fabric {
    /// A fabric of RBridges with its VLANs and addresses, or which rule is broken and where.
    pub fn with_campus(self, campus: Campus) -> Result<Self, TopologyError> {
        let fabric = Self { campus, ..self };
        check(&fabric)?;
        Ok(fabric)
    }

    /// VLANs and addresses. Empty without RBridges.
    pub fn campus(&self) -> &Campus {
        &self.campus
    }

    /// Whether the switches are RBridges.
    pub fn is_campus(&self) -> bool {
        self.with_role(Role::Rbridge).next().is_some()
    }
}

/// The rules: all switches are RBridges, every host's link has a VLAN and an address, the addresses of a VLAN are of one
/// network and each is there once.
fn check(fabric: &Fabric) -> Result<(), TopologyError> {
    let other = fabric.switches().find(|id| fabric.node(*id).role != Role::Rbridge);
    match other {
        Some(other) if fabric.is_campus() => return Err(TopologyError::MixedSwitches(fabric.node(other).name.clone())),
        _ => {}
    }
    if let Some(router) = fabric.with_role(Role::Router).find(|_| !fabric.is_campus()) {
        return Err(TopologyError::RouterPlace(fabric.node(router).name.clone()));
    }
    for link in (0..fabric.links().len() as u32).map(LinkId) {
        check_link(fabric, link)?;
    }
    let mut seen = BTreeSet::new();
    let mut networks = BTreeMap::new();
    for (link, access) in &fabric.campus.access {
        let refused = |reason: String| Err(TopologyError::Access { link: fabric.link_name(*link), reason });
        let network = *networks.entry(access.vlan).or_insert_with(|| access.address.network());
        if !access.address.is_host() || network != access.address.network() {
            return refused(format!(
                "{} is not an address of VLAN {}'s network {network}",
                access.address, access.vlan
            ));
        }
        if !seen.insert((access.vlan, access.address.address)) {
            return refused(format!("{} is there twice in VLAN {}", access.address.address, access.vlan));
        }
    }
    check_gateways(fabric, &networks, &seen)
}

fn check_link(fabric: &Fabric, link: LinkId) -> Result<(), TopologyError> {
    let refused = |reason: &str| Err(TopologyError::Access { link: fabric.link_name(link), reason: reason.to_owned() });
    let is_access = ends(fabric, link).into_iter().any(|(_, role)| !role.is_switch());
    match fabric.campus.access.get(&link) {
        Some(_) if !fabric.is_campus() => refused("only links of RBridges have a `vlan` and an `address`"),
        Some(_) if !is_access => refused("a link between RBridges carries every VLAN; take `vlan` and `address` away"),
        Some(access) if !(1..=VLAN_MAX).contains(&access.vlan) => refused("a VLAN is a number from 1 to 4094"),
        None if fabric.is_campus() && is_access => {
            refused("a host of an RBridge needs both; write for example `vlan: 10, address: 10.0.10.1/24`")
        }
        _ => Ok(()),
    }
}

fn check_gateways(
    fabric: &Fabric,
    networks: &BTreeMap<u16, Block>,
    seen: &BTreeSet<(u16, Ipv4Addr)>,
) -> Result<(), TopologyError> {
    for (vlan, gateway) in &fabric.campus.gateways {
        let refused = |reason: String| Err(TopologyError::Gateway { vlan: *vlan, reason });
        match networks.get(vlan) {
            None => return refused("no host is in it".to_owned()),
            Some(network) if *network != gateway.network() || !gateway.is_host() => {
                return refused(format!("{gateway} is not an address of its network {network}"));
            }
            _ => {}
        }
        if seen.contains(&(*vlan, gateway.address)) {
            return refused(format!("{} is a host's address", gateway.address));
        }
        if fabric.campus.routers_in(fabric, *vlan).next().is_some() {
            return refused("a router is in it; it needs one or the other".to_owned());
        }
    }
    Ok(())
}

fn ends(fabric: &Fabric, link: LinkId) -> [(NodeId, Role); 2] {
    let link = fabric.link(link);
    [&link.a, &link.b].map(|port| (port.node, fabric.node(port.node).role))
}

#[cfg(test)]
mod tests {
    use crate::topology::{from_yaml, to_yaml};

    const GOOD: &str = r#"name: campus
topology:
  defaults: {kind: linux, link: {rate: 10 Gbit/s, mtu: 9216}}
  nodes:
    s1: {role: rbridge}
    s2: {role: rbridge}
    h1: {role: server}
    h2: {role: server}
    r1: {role: router}
  links:
    - {endpoints: ["s1:s2", "s2:s1"]}
    - {endpoints: ["s1:h1", "h1:eth0"], vlan: 10, address: 10.0.10.1/24}
    - {endpoints: ["s2:h2", "h2:eth0"], vlan: 20, address: 10.0.20.2/24}
    - {endpoints: ["s1:r10", "r1:eth10"], vlan: 10, address: 10.0.10.254/24}
    - {endpoints: ["s1:r30", "r1:eth30"], vlan: 30, address: 10.0.30.254/24}
  gateways: {20: 10.0.20.254/24}
  groups: true
"#;

    #[test]
    fn vlans_addresses_and_gateways_are_read_and_written() {
        let fabric = from_yaml(GOOD, "f.yaml").unwrap();
        assert_eq!(from_yaml(&to_yaml(&fabric), "t").unwrap(), fabric);
        let campus = fabric.campus();
        assert_eq!(campus.vlans().into_iter().collect::<Vec<_>>(), [10, 20, 30]);
        let gateway = |vlan| campus.gateway_of(&fabric, vlan).map(|address| address.to_string());
        assert_eq!([10, 20, 40].map(gateway), [Some("10.0.10.254".into()), Some("10.0.20.254".into()), None]);
        let (_, link) = fabric.edge_of(fabric.find("h2").unwrap()).unwrap();
        assert_eq!(campus.access[&link].address.to_string(), "10.0.20.2/24");
        assert!(fabric.is_campus() && campus.groups);
    }

    #[test]
    fn what_no_campus_can_be_is_refused_with_its_line() {
        for (from, to, message) in [
            ("vlan: 10, address: 10.0.10.1/24", "vlan: 10", "f.yaml:12: link `s1:h1 - h1:eth0` needs both"),
            (", vlan: 10, address: 10.0.10.1/24", "", "f.yaml:12: link `s1:h1 - h1:eth0`: a host of an RBridge needs"),
            (
                "vlan: 10, address: 10.0.10.1",
                "vlan: 4095, address: 10.0.10.1",
                "f.yaml:12: link `s1:h1 - h1:eth0`: a VLAN",
            ),
            ("vlan: 10, address: 10.0.10.1", "vlan: 0, address: 10.0.10.1", "a VLAN is a number from 1 to 4094"),
            (
                "10.0.10.1/24",
                "10.0.11.1/24",
                "f.yaml:14: link `s1:r10 - r1:eth10`: 10.0.10.254/24 is not an address of",
            ),
            ("10.0.10.1/24", "10.0.10.254/24", "10.0.10.254 is there twice in VLAN 10"),
            ("10.0.10.1/24", "10.0.10.0/24", "`10.0.10.0/24` is no address of a host"),
            ("10.0.10.1/24", "10.0.10.1/33", "`10.0.10.1/33` is no address of a host"),
            ("\"s2:s1\"]", "\"s2:s1\"], vlan: 10, address: 10.0.10.9/24", "a link between RBridges carries every VLAN"),
            ("s2: {role: rbridge}", "s2: {role: tor}", "f.yaml:6: `s2` is no RBridge"),
            ("{20: 10.0.20.254/24}", "{40: 10.0.40.254/24}", "f.yaml: gateway of VLAN 40: no host is in it"),
            ("{20: 10.0.20.254/24}", "{20: 10.0.20.2/24}", "gateway of VLAN 20: 10.0.20.2 is a host's address"),
            ("{20: 10.0.20.254/24}", "{20: 10.0.21.254/24}", "is not an address of its network 10.0.20.0/24"),
            ("{20: 10.0.20.254/24}", "{10: 10.0.10.253/24}", "gateway of VLAN 10: a router is in it"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = from_yaml(&GOOD.replace(from, to), "f.yaml").expect_err(to).to_string();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
        let plain = "name: x\ntopology:\n  defaults: {link: {rate: 1 Gbit/s}}\n  nodes: {t: {role: tor}, s: {role: server}}\n  \
                     links:\n    - {endpoints: [\"t:s\", \"s:eth0\"], vlan: 1, address: 10.0.0.1/24}\n";
        let error = from_yaml(plain, "f.yaml").unwrap_err().to_string();
        assert!(error.contains("only links of RBridges"), "{error}");
    }
}
