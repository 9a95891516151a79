//! The DHCP server of a fabric, to which every ToR relays what its servers ask (VL2 4.2.3).

use super::{Fabric, Role, TopologyError};
use crate::id::NodeId;

impl Fabric {
    /// The fabric with a DHCP server, or none, instead of its own; or why this node cannot be it.
    pub fn with_dhcp(self, server: Option<NodeId>) -> Result<Self, TopologyError> {
        let refused = |reason: String| Err(TopologyError::Dhcp { reason });
        let Some(node) = server else { return Ok(Self { dhcp: None, ..self }) };
        let Some(node) = self.nodes.get(node.index()) else { return refused(format!("node #{} is not there", node.0)) };
        if self.is_campus() {
            return refused("RBridges flood what their hosts ask, nobody relays it; take `dhcp` away".to_owned());
        }
        if !matches!(node.role, Role::Server | Role::Directory) {
            return refused(format!("`{}` is a switch; name a server or a directory server", node.name));
        }
        Ok(Self { dhcp: server, ..self })
    }

    /// The node that hands out AAs by DHCP, if one does.
    pub fn dhcp(&self) -> Option<NodeId> {
        self.dhcp
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::{from_yaml, to_yaml};

    const GOOD: &str = r#"name: leases
topology:
  defaults: {kind: linux, link: {rate: 10 Gbit/s, mtu: 1600}}
  nodes: {t1: {role: tor}, s1: {role: server}, dir1: {role: directory}}
  links:
    - {endpoints: ["t1:s1", "s1:eth0"]}
    - {endpoints: ["t1:dir1", "dir1:eth0"]}
dhcp: {server: dir1}
"#;

    #[test]
    fn the_server_is_read_and_written_and_kept() {
        let fabric = from_yaml(GOOD, "f.yaml").unwrap();
        assert_eq!(fabric.dhcp(), fabric.find("dir1"));
        assert_eq!(from_yaml(&to_yaml(&fabric), "t").unwrap(), fabric);
        assert_eq!(fabric.with_directory_servers(3).unwrap().dhcp(), fabric.find("dir1"));
        let (without, _) = GOOD.split_once("dhcp:").unwrap();
        let none = from_yaml(without, "f.yaml").unwrap();
        assert!(none.dhcp().is_none() && !to_yaml(&none).contains("dhcp"));
    }

    #[test]
    fn who_cannot_be_the_server_is_refused_with_its_line() {
        for (from, to, message) in [
            ("server: dir1", "server: x", "f.yaml:8: dhcp: there is no node `x`"),
            ("server: dir1", "server: t1", "f.yaml:8: dhcp: `t1` is a switch"),
            ("server: dir1", "", "the key `server` is missing"),
            ("server: dir1", "servers: [dir1]", "unknown key `servers`; known here: server"),
        ] {
            let error = from_yaml(&GOOD.replace(from, to), "f.yaml").expect_err(to).to_string();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }

    #[test]
    fn a_campus_has_none() {
        let text = GOOD.replace("role: tor", "role: rbridge").replace(", dir1: {role: directory}", "");
        let text = text.replace("    - {endpoints: [\"t1:dir1\", \"dir1:eth0\"]}\n", "").replace("dir1", "s1");
        let text = text.replace("\"s1:eth0\"]}", "\"s1:eth0\"], vlan: 10, address: 10.0.10.1/24}");
        let error = from_yaml(&text, "f.yaml").expect_err("a campus").to_string();
        assert!(error.contains("f.yaml:7: dhcp: RBridges flood"), "{error}");
    }
}
