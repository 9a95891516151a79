//! The services that share a fabric, and how broadcast reaches the servers of one (VL2 4.2.3).
//!
//! A service is what the paper calls so: servers that seem to be alone on a layer 2 of their own. Servers of none are of the
//! common service, number 0.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::{Fabric, Role, TopologyError};
use crate::id::NodeId;
use crate::name::{RULE, is_usable};
use crate::units::{BitsPerSec, Bytes};

/// The underlay's groups, one for each service: organisation-local scope (RFC 2365 6.2), so that none leaves the fabric.
const GROUPS: Ipv4Addr = Ipv4Addr::new(239, 192, 0, 0);
/// The number of a service is written in the last two bytes of its group.
const SERVICES_MAX: usize = u16::MAX as usize;
/// The least rate of a broadcast limit: below it a packet would take seconds.
const RATE_MIN: BitsPerSec = BitsPerSec(1_000);

/// One service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Unique name, of the same letters as a node's.
    pub name: String,
    /// Its servers, at least one; no server is in two services.
    pub servers: Vec<NodeId>,
}

/// How broadcast and multicast of the servers travel. A fabric without it drops them at the sender's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Broadcast {
    /// Who makes the copies.
    pub delivery: Delivery,
    /// What each server's agent lets out in the long run, as IPv4 packets in Ethernet frames without FCS, before copying.
    pub limit: BitsPerSec,
    /// What it lets out at once.
    #[serde(default = "burst")]
    pub burst: Bytes,
}

/// Who makes the copies of a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// The underlay: each service has a multicast group there.
    Group,
    /// The sender's agent, one for each server of the service: for an underlay without multicast.
    Copies,
}

fn burst() -> Bytes {
    Bytes(64_000)
}

/// What a fabric says about services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sharing {
    services: Vec<Service>,
    /// By server: the number of its service.
    numbers: BTreeMap<NodeId, u32>,
    broadcast: Option<Broadcast>,
}

impl Fabric {
    /// The fabric with these services and this way of broadcast instead of its own, or which rule is broken and where.
    pub fn with_services(self, services: Vec<Service>, broadcast: Option<Broadcast>) -> Result<Self, TopologyError> {
        if self.is_campus() && (!services.is_empty() || broadcast.is_some()) {
            let reason =
                "RBridges keep servers apart by VLANs and flood by themselves; take `services` and `broadcast` away";
            return Err(TopologyError::Broadcast { reason: reason.to_owned() });
        }
        let numbers = number(&self, &services)?;
        if let Some(broadcast) = &broadcast {
            broadcast.check(&self)?;
        }
        Ok(Self { sharing: Sharing { services, numbers, broadcast }, ..self })
    }

    /// The services in their order. The first has number 1.
    pub fn services(&self) -> &[Service] {
        &self.sharing.services
    }

    /// How broadcast travels, if it does.
    pub fn broadcast(&self) -> Option<Broadcast> {
        self.sharing.broadcast
    }

    /// The number of a server's service: 1 and so on in the order of the services, 0 for servers of none.
    pub fn service_of(&self, server: NodeId) -> u32 {
        self.sharing.numbers.get(&server).copied().unwrap_or(0)
    }

    /// The servers of the service with this number, in order.
    pub fn servers_of(&self, service: u32) -> impl Iterator<Item = NodeId> + '_ {
        self.servers().filter(move |server| self.service_of(*server) == service)
    }
}

/// The underlay's multicast group of the service with this number.
pub fn broadcast_group(service: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(GROUPS) | (service & 0xffff))
}

fn number(fabric: &Fabric, services: &[Service]) -> Result<BTreeMap<NodeId, u32>, TopologyError> {
    let mut numbers: BTreeMap<NodeId, u32> = BTreeMap::new();
    for (service, number) in services.iter().zip(1..) {
        let name = &service.name;
        let refused = |reason: String| Err(TopologyError::Service { service: name.clone(), reason });
        if services.len() > SERVICES_MAX {
            return refused(format!("there are {} services; at most {SERVICES_MAX} have numbers", services.len()));
        }
        if !is_usable(name) {
            return refused(format!("its name is not usable: {RULE}"));
        }
        if services.iter().take_while(|other| !std::ptr::eq(*other, service)).any(|other| other.name == *name) {
            return refused("is there twice; rename one".to_owned());
        }
        if service.servers.is_empty() {
            return refused("has no servers; write for example `servers: [s1, s2]`".to_owned());
        }
        for server in &service.servers {
            let Some(node) = fabric.nodes().get(server.index()) else {
                return refused(format!("node #{} is not there", server.0));
            };
            if node.role != Role::Server {
                return refused(format!("`{}` is no server", node.name));
            }
            match numbers.insert(*server, number) {
                Some(other) if other == number => return refused(format!("server `{}` is there twice", node.name)),
                Some(other) => {
                    let other = &services[other as usize - 1].name;
                    return refused(format!(
                        "server `{}` is in service `{other}` already; it can be in one",
                        node.name
                    ));
                }
                None => {}
            }
        }
    }
    Ok(numbers)
}

impl Broadcast {
    fn check(&self, fabric: &Fabric) -> Result<(), TopologyError> {
        let refused = |reason: String| Err(TopologyError::Broadcast { reason });
        if self.limit < RATE_MIN {
            return refused(format!(
                "a limit of {} lets next to nothing out; write for example `10 Mbit/s`",
                self.limit
            ));
        }
        let longest = fabric.links().iter().map(|link| link.spec.mtu_bytes).min().unwrap_or(0);
        if self.burst.0 < u64::from(longest) {
            let burst = self.burst;
            return refused(format!("a burst of {burst} is less than one packet of {longest} bytes; write `64 kB`"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{from_yaml, to_yaml};

    const GOOD: &str = r#"name: two-services
topology:
  defaults: {kind: linux, link: {rate: 10 Gbit/s, mtu: 1600}}
  nodes:
    t1: {role: tor}
    t2: {role: tor}
    s1: {role: server}
    s2: {role: server}
    s3: {role: server}
    dir1: {role: directory}
  links:
    - {endpoints: ["t1:t2", "t2:t1"]}
    - {endpoints: ["t1:s1", "s1:eth0"]}
    - {endpoints: ["t2:s2", "s2:eth0"]}
    - {endpoints: ["t2:s3", "s3:eth0"]}
    - {endpoints: ["t2:dir1", "dir1:eth0"]}
services:
  web: {servers: [s3]}
  data: {servers: [s1]}
broadcast: {delivery: copies, limit: 10 Mbit/s, burst: 4 kB}
"#;

    #[test]
    fn services_and_broadcast_are_read_and_written() {
        let fabric = from_yaml(GOOD, "f.yaml").unwrap();
        assert_eq!(from_yaml(&to_yaml(&fabric), "t").unwrap(), fabric);
        let of = |name: &str| fabric.service_of(fabric.find(name).unwrap());
        assert_eq!(["s1", "s2", "s3"].map(of), [2, 0, 1], "numbers follow the file, not the alphabet");
        let names: Vec<&str> = fabric.services().iter().map(|service| service.name.as_str()).collect();
        assert_eq!(names, ["web", "data"]);
        assert_eq!(fabric.servers_of(1).collect::<Vec<_>>(), [fabric.find("s3").unwrap()]);
        let wanted = Broadcast { delivery: Delivery::Copies, limit: BitsPerSec(10_000_000), burst: Bytes(4_000) };
        assert_eq!(fabric.broadcast(), Some(wanted));
        assert_eq!(broadcast_group(0x0102), Ipv4Addr::new(239, 192, 1, 2));
    }

    #[test]
    fn either_may_be_left_out() {
        let (without, _) = GOOD.split_once("services:").unwrap();
        let plain = from_yaml(without, "f.yaml").unwrap();
        assert_eq!((plain.services(), plain.broadcast(), plain.service_of(NodeId(2))), (&[][..], None, 0));
        assert_eq!(plain.servers_of(0).count(), 3);
        assert_eq!(from_yaml(&to_yaml(&plain), "t").unwrap(), plain);
        let (services, broadcast) = GOOD.split_once("broadcast:").unwrap();
        assert_eq!(from_yaml(services, "f.yaml").unwrap().broadcast(), None);
        let open =
            from_yaml(&format!("{without}broadcast:{}", broadcast.replace(", burst: 4 kB", "")), "f.yaml").unwrap();
        assert_eq!(open.broadcast().map(|broadcast| broadcast.burst), Some(Bytes(64_000)));
        assert_eq!(from_yaml(&to_yaml(&open), "t").unwrap(), open);
    }

    #[test]
    fn more_directory_servers_leave_services_as_they_are() {
        let fabric = from_yaml(GOOD, "f.yaml").unwrap();
        let more = fabric.with_directory_servers(3).unwrap();
        assert_eq!((more.services(), more.broadcast()), (fabric.services(), fabric.broadcast()));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        for (from, to, message) in [
            ("[s3]", "[]", "f.yaml:18: service `web`: has no servers"),
            ("[s1]", "[s1, s3]", "f.yaml:19: service `data`: server `s3` is in service `web` already"),
            ("[s1]", "[s1, s1]", "f.yaml:19: service `data`: server `s1` is there twice"),
            ("[s1]", "[s9]", "f.yaml:19: service `data`: there is no node `s9`"),
            ("[s1]", "[t1]", "f.yaml:19: service `data`: `t1` is no server"),
            ("[s1]", "[dir1]", "f.yaml:19: service `data`: `dir1` is no server"),
            ("data:", "\"a b\":", "f.yaml:19: service `a b`: its name is not usable"),
            ("data:", "web:", "f.yaml:19:3: `web` is there twice"),
            ("{servers: [s1]}", "{}", "f.yaml:19:9: the key `servers` is missing"),
            ("{servers: [s1]}", "{server: [s1]}", "unknown key `server`; known here: servers"),
            ("10 Mbit/s", "0 bit/s", "f.yaml:20: broadcast: a limit of 0 bit/s lets next to nothing out"),
            ("10 Mbit/s", "ten", "f.yaml:20:38: `ten` is not a rate"),
            ("4 kB", "1599 B", "f.yaml:20: broadcast: a burst of 1599 B is less than one packet of 1600 bytes"),
            ("copies", "flood", "unknown value `flood`; known here: group, copies"),
            ("limit: 10 Mbit/s, ", "", "f.yaml:20:31: the key `limit` is missing"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = from_yaml(&GOOD.replace(from, to), "f.yaml").expect_err(to).to_string();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }
    #[test]
    fn no_cut_file_makes_the_reader_panic() {
        for cut in 0..GOOD.len() {
            let _ = from_yaml(&GOOD[..cut], "f.yaml");
        }
    }

    #[test]
    fn rbridges_have_vlans_instead() {
        let campus = "name: campus\ntopology:\n  defaults: {link: {rate: 1 Gbit/s}}\n  nodes: {t: {role: rbridge}, s: {role: server}}\n  \
                      links:\n    - {endpoints: [\"t:s\", \"s:eth0\"], vlan: 10, address: 10.0.10.1/24}\n";
        assert!(from_yaml(campus, "f.yaml").is_ok());
        for more in ["services: {web: {servers: [s]}}\n", "broadcast: {delivery: group, limit: 1 Mbit/s}\n"] {
            let error = from_yaml(&format!("{campus}{more}"), "f.yaml").unwrap_err().to_string();
            assert!(error.contains("RBridges keep servers apart by VLANs"), "{error}");
        }
    }
}
