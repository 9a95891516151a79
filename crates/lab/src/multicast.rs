//! The trees of the services' groups, read from the switches' kernels: whom the broadcast of each server reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use weft_scenario::engine::{Progress, Scenario};
use weft_scenario::id::NodeId;
use weft_scenario::topology::{Fabric, broadcast_group};

use crate::error::LabError;
use crate::home::{frr_dir, namespace_path};
use crate::netns;
use crate::process::log_tail;
use crate::up::Lab;
use crate::wait::Wait;

/// How long all trees may take to grow: neighbours say hello every second, and a switch that has just started asks its
/// servers within ten.
const GROW_TIMEOUT: Duration = Duration::from_secs(30);
const GROW_POLL: Duration = Duration::from_millis(50);

/// Source and group of a multicast route.
type Tree = (Ipv4Addr, Ipv4Addr);

/// A multicast route: the interface that packets must come from, and those that they leave by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Branch {
    input: String,
    outputs: Vec<String>,
}

/// The multicast routes of each switch.
type Branches = BTreeMap<NodeId, BTreeMap<Tree, Branch>>;

/// A server whose broadcast reaches others than its service.
struct Amiss {
    edge: NodeId,
    what: String,
}

/// Waits until every server's broadcast reaches its whole service, each other server of it once.
pub(crate) fn wait_grown(lab: &Lab, progress: &dyn Progress) -> Result<(), LabError> {
    let wait = Wait::new(progress, GROW_TIMEOUT, GROW_POLL);
    while let Some(amiss) = amiss(&lab.scenario, &branches(lab)?) {
        let plan = lab.plan.node(amiss.edge);
        let log = || log_tail(&frr_dir(&plan.namespace).join("pimd.log"));
        wait.pause_for_routing(|| (plan.name.clone(), amiss.what), log)?;
    }
    Ok(())
}

/// The first server, if there is one, whose broadcast would not reach each other server of its service once and nobody
/// else, and whom it would reach. Only for labs with `broadcast: {delivery: group}`.
pub fn broadcast_amiss(lab: &Lab) -> Result<Option<String>, LabError> {
    Ok(amiss(&lab.scenario, &branches(lab)?).map(|amiss| amiss.what))
}

fn branches(lab: &Lab) -> Result<Branches, LabError> {
    let read = |switch: NodeId| {
        let namespace = namespace_path(&lab.plan.node(switch).namespace);
        netns::in_namespace(&namespace, || {
            let text = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
            Ok(parse(&text("ip_mr_vif")?, &text("ip_mr_cache")?))
        })?
        .map_err(LabError::io("read the kernel's multicast routes"))
    };
    lab.scenario.fabric.switches().map(|switch| Ok((switch, read(switch)?))).collect()
}

/// Reads `/proc/net/ip_mr_vif` (number and name of each interface) and `ip_mr_cache` (group and source as the machine
/// stores them, interface of input, three counters, `interface:TTL` of each output).
fn parse(interfaces: &str, routes: &str) -> BTreeMap<Tree, Branch> {
    let interface = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        Some((fields.next()?.parse::<i32>().ok()?, fields.next()?.to_owned()))
    };
    let names: BTreeMap<i32, String> = interfaces.lines().filter_map(interface).collect();
    let address = |field: &str| Some(Ipv4Addr::from(u32::from_str_radix(field, 16).ok()?.to_ne_bytes()));
    let route = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (group, source) = (address(fields.next()?)?, address(fields.next()?)?);
        let input = names.get(&fields.next()?.parse::<i32>().ok()?)?.clone();
        let output = |field: &str| names.get(&field.split(':').next()?.parse::<i32>().ok()?).cloned();
        Some(((source, group), Branch { input, outputs: fields.skip(3).filter_map(output).collect() }))
    };
    routes.lines().filter_map(route).collect()
}

fn amiss(scenario: &Scenario, branches: &Branches) -> Option<Amiss> {
    let fabric = &scenario.fabric;
    (0..=fabric.services().len() as u32).find_map(|service| {
        let members: BTreeSet<NodeId> = fabric.servers_of(service).collect();
        members.iter().find_map(|server| {
            let tree = (scenario.addresses.la(*server), broadcast_group(service));
            let reached = reached(fabric, branches, *server, tree);
            let others = members.iter().copied().filter(|member| member != server);
            let (edge, _) = fabric.edge_of(*server)?;
            let names = |nodes: &[NodeId]| nodes.iter().map(|node| fabric.node(*node).name.clone()).collect::<Vec<_>>();
            (!others.clone().eq(reached.iter().copied())).then(|| Amiss {
                edge,
                what: format!(
                    "sends broadcast of `{}` to {:?} instead of {:?}",
                    fabric.node(*server).name,
                    names(&reached),
                    names(&others.collect::<Vec<_>>()),
                ),
            })
        })
    })
}

/// The hosts that a packet of this server would come to along a tree, in order; twice, where it would come twice.
fn reached(fabric: &Fabric, branches: &Branches, server: NodeId, tree: Tree) -> Vec<NodeId> {
    let mut reached = Vec::new();
    let mut arrivals = vec![(server, fabric.links_of(server)[0])];
    // A loop would come by more often than there are links.
    for _ in 0..=2 * fabric.links().len() {
        let Some((from, link)) = arrivals.pop() else { break };
        let Some(port) = fabric.link(link).far_end(from) else { continue };
        if !fabric.node(port.node).role.is_switch() {
            reached.push(port.node);
            continue;
        }
        let branch = branches.get(&port.node).and_then(|trees| trees.get(&tree));
        let Some(branch) = branch.filter(|branch| branch.input == port.interface) else { continue };
        let leaves = |link: &&weft_scenario::id::LinkId| {
            let own = fabric.link(**link).end_at(port.node);
            own.is_some_and(|own| branch.outputs.contains(&own.interface))
        };
        arrivals.extend(fabric.links_of(port.node).iter().filter(leaves).map(|link| (port.node, *link)));
    }
    reached.sort_unstable();
    reached
}

#[cfg(test)]
mod tests {
    use weft_scenario::addressing::{AddressPlan, AddressingOptions};
    use weft_scenario::engine::{DirectoryStore, Overlay, Transport};
    use weft_scenario::switching::Switching;
    use weft_scenario::topology::from_yaml;

    use super::*;

    const VIFS: &str = "Interface      BytesIn  PktsIn  BytesOut PktsOut Flags Local    Remote
 0 pimreg            0       0         0       0 00004 00000000 00000000
 1 agg1              0       0         0       0 00008 00000002 00000000
 2 s1            51034    1614     51065    1615 00008 00000003 00000000
";

    fn branch(input: &str, outputs: &[&str]) -> Branch {
        Branch { input: input.to_owned(), outputs: outputs.iter().map(|&output| output.to_owned()).collect() }
    }

    #[test]
    fn the_kernels_lists_are_read() {
        let raw = |octets: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(octets));
        let (group, source) = (raw([239, 192, 0, 1]), raw([10, 64, 0, 2]));
        let cache = format!(
            "Group    Origin   Iif     Pkts    Bytes    Wrong Oifs\n{group} {source} 2       2000    62890        0  1:1  \
             \n{group} {} -1 0 0 0\n",
            raw([10, 64, 0, 3])
        );
        let tree = (Ipv4Addr::new(10, 64, 0, 2), Ipv4Addr::new(239, 192, 0, 1));
        assert_eq!(parse(VIFS, &cache), BTreeMap::from([(tree, branch("s1", &["agg1"]))]), "-1 is not routed yet");
        assert!(parse("", "").is_empty());
    }

    fn scenario() -> Scenario {
        let text = r#"name: trees
topology:
  defaults: {kind: linux, link: {rate: 10 Gbit/s, mtu: 1600}}
  nodes:
    {t1: {role: tor}, t2: {role: tor}, s1: {role: server}, s2: {role: server}, s3: {role: server}, dir1: {role: directory}}
  links:
    - {endpoints: ["t1:t2", "t2:t1"]}
    - {endpoints: ["t1:s1", "s1:eth0"]}
    - {endpoints: ["t1:s2", "s2:eth0"]}
    - {endpoints: ["t2:s3", "s3:eth0"]}
    - {endpoints: ["t2:dir1", "dir1:eth0"]}
services: {web: {servers: [s1, s2, s3]}}
broadcast: {delivery: group, limit: 10 Mbit/s}
"#;
        let fabric = from_yaml(text, "trees").unwrap();
        let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).unwrap();
        let (directory, transport) = (DirectoryStore::default(), Transport::default());
        let switching = Switching::default();
        Scenario { fabric, addresses, overlay: Overlay::Vl2, directory, transport, switching, shaped: false }
    }

    /// Every tree as it should be.
    fn grown(scenario: &Scenario) -> Branches {
        let id = |name: &str| scenario.fabric.find(name).unwrap();
        let tree = |server: &str| (scenario.addresses.la(id(server)), broadcast_group(1));
        let t1 = [
            ("s1", branch("s1", &["t2", "s2"])),
            ("s2", branch("s2", &["s1", "t2"])),
            ("s3", branch("t2", &["s1", "s2"])),
        ];
        let t2 = [("s1", branch("t1", &["s3"])), ("s2", branch("t1", &["s3"])), ("s3", branch("s3", &["t1"]))];
        let of =
            |trees: [(&str, Branch); 3]| trees.into_iter().map(|(server, branch)| (tree(server), branch)).collect();
        BTreeMap::from([(id("t1"), of(t1)), (id("t2"), of(t2))])
    }

    #[test]
    fn whole_trees_reach_everybody_once() {
        let scenario = scenario();
        assert!(amiss(&scenario, &grown(&scenario)).is_none());
    }

    #[test]
    fn missing_doubled_and_strange_branches_are_told() {
        let scenario = scenario();
        let id = |name: &str| scenario.fabric.find(name).unwrap();
        let of_s1 = (scenario.addresses.la(id("s1")), broadcast_group(1));
        let told = |switch: &str, branch: Option<Branch>| {
            let mut branches = grown(&scenario);
            match branch {
                Some(branch) => drop(branches.get_mut(&id(switch)).unwrap().insert(of_s1, branch)),
                None => drop(branches.get_mut(&id(switch)).unwrap().remove(&of_s1)),
            }
            amiss(&scenario, &branches).map(|amiss| amiss.what).unwrap_or_default()
        };
        let reaches = |whom: &str| format!("sends broadcast of `s1` to {whom} instead of [\"s2\", \"s3\"]");
        assert_eq!(told("t2", None), reaches("[\"s2\"]"));
        assert_eq!(told("t1", None), reaches("[]"));
        assert_eq!(told("t2", Some(branch("s3", &["s3"]))), reaches("[\"s2\"]"), "comes from elsewhere");
        assert_eq!(told("t2", Some(branch("t1", &["s3", "dir1"]))), reaches("[\"s2\", \"s3\", \"dir1\"]"));
        let looping = told("t2", Some(branch("t1", &["s3", "t1"])));
        assert!(looping.is_empty(), "t1 takes packets of s1 only from s1: {looping}");
        let mut circle = grown(&scenario);
        circle.get_mut(&id("t1")).unwrap().insert(of_s1, branch("t2", &["t2"]));
        assert!(amiss(&scenario, &circle).is_some());
    }
}
