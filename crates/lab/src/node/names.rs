//! Names as a node knows them: its own, and those of all nodes with the addresses by which it reaches them.

use std::fmt::Write;
use std::net::Ipv4Addr;

use weft_scenario::topology::{Access, Role};

use crate::state::{LabState, NodeState};

/// Stands for a node that has no address.
const NO_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);
/// A node's `/etc/resolv.conf`. Without a name server the resolver asks this host, where nobody answers: an unknown name is
/// refused at once.
pub(super) const RESOLVER: &str = "# no name server is configured in this node\noptions timeout:1 attempts:1\n";

/// A node's `/etc/hosts`.
pub(super) fn hosts(state: &LabState, of: &NodeState) -> String {
    let mut text = format!("# nodes of lab {} as {} reaches them\n127.0.0.1 localhost\n", state.lab, of.name);
    for node in &state.nodes {
        let mut addresses = addresses(node, of);
        if addresses.is_empty() && node.name == of.name {
            addresses.push(NO_ADDRESS);
        }
        for address in addresses {
            let _ = writeln!(text, "{address} {}", node.name);
        }
    }
    text
}

/// The addresses by which one node reaches another, the nearest first.
fn addresses(node: &NodeState, from: &NodeState) -> Vec<Ipv4Addr> {
    if !node.access.is_empty() {
        let is_near = |vlan: u16| from.access.iter().any(|access| access.vlan == vlan);
        let (near, far): (Vec<&Access>, Vec<&Access>) = node.access.iter().partition(|access| is_near(access.vlan));
        return near.into_iter().chain(far).map(|access| access.address.address).collect();
    }
    let address = match (from.role, from.aa) {
        (Role::Internet, _) => node.public.or(node.la),
        (_, Some(_)) => node.aa.or(node.la).or(node.public),
        (_, None) => node.la.or(node.public),
    };
    address.into_iter().collect()
}

/// The host's `/etc/nsswitch.conf`, but for hosts' names: those are in the file, and nothing outside of the node knows better.
pub(super) fn name_services(of_host: &str) -> String {
    let others = of_host.lines().filter(|line| !line.trim_start().starts_with("hosts:"));
    others.chain(["hosts: files dns"]).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ProcessId;
    use weft_scenario::engine::Overlay;

    fn node(name: &str, role: Role, aa: Option<[u8; 4]>, la: Option<[u8; 4]>) -> NodeState {
        NodeState {
            name: name.into(),
            role,
            namespace: format!("weft-x-{name}"),
            aa: aa.map(Ipv4Addr::from),
            la: la.map(Ipv4Addr::from),
            public: None,
            interfaces: Vec::new(),
            access: Vec::new(),
        }
    }

    fn lab(nodes: Vec<NodeState>) -> LabState {
        LabState { nodes, ..LabState::bare("x", "fabric", Overlay::Routed, ProcessId::own()) }
    }

    #[test]
    fn servers_know_each_other_by_aas_and_switches_by_las() {
        let state = lab(vec![
            node("tor1", Role::Tor, None, Some([10, 1, 0, 1])),
            node("s1", Role::Server, Some([20, 0, 0, 1]), Some([10, 64, 0, 2])),
            node("s2", Role::Server, Some([20, 0, 0, 2]), Some([10, 64, 1, 2])),
            NodeState { public: Some(Ipv4Addr::new(203, 0, 113, 1)), ..node("net", Role::Internet, None, None) },
        ]);
        let of_server = hosts(&state, &state.nodes[1]);
        let known = ["127.0.0.1 localhost", "10.1.0.1 tor1", "20.0.0.1 s1", "20.0.0.2 s2", "203.0.113.1 net"];
        assert_eq!(of_server.lines().skip(1).collect::<Vec<_>>(), known);
        let of_switch = hosts(&state, &state.nodes[0]);
        assert!(of_switch.contains("10.64.1.2 s2\n") && !of_switch.contains("20.0.0.2"), "{of_switch}");
    }

    #[test]
    fn in_a_campus_the_address_of_the_own_vlan_comes_first() {
        let access = |vlan, address: &str| Access { vlan, address: address.parse().unwrap() };
        let mut host = node("h1", Role::Server, None, None);
        host.access = vec![access(20, "10.0.20.1/24")];
        let mut router = node("r1", Role::Server, None, None);
        router.access = vec![access(10, "10.0.10.9/24"), access(20, "10.0.20.9/24")];
        let state = lab(vec![node("S1", Role::Rbridge, None, None), host, router]);
        let known = hosts(&state, &state.nodes[1]);
        assert!(known.find("10.0.20.9 r1") < known.find("10.0.10.9 r1"), "{known}");
        assert!(!known.contains("S1\n"), "what has no address cannot be reached: {known}");
        assert!(hosts(&state, &state.nodes[0]).contains("127.0.1.1 S1\n"));
    }

    #[test]
    fn other_name_services_stay() {
        let text =
            name_services("passwd: files\nhosts: mdns4_minimal [NOTFOUND=return] resolve files\nnetworks: files");
        assert_eq!(text, "passwd: files\nnetworks: files\nhosts: files dns\n");
    }
}
