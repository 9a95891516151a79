//! The kernel's routes in every switch against what the fabric's equal-cost shortest paths say they must be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use weft_scenario::addressing::AddressPlan;
use weft_scenario::engine::Progress;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::routing::EcmpRoutes;
use weft_scenario::topology::Fabric;
use weft_wire::block::Block;

use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::outside;
use crate::plan::NodePlan;
use crate::process;
use crate::up::Lab;
use crate::wait::Wait;

/// Routes of one switch: destination as the kernel prints it (no `/32`), to the interfaces it may leave by.
pub type RouteTable = BTreeMap<String, BTreeSet<String>>;

/// Next hops that FRR installs at most.
const WIDTH_MAX: usize = 64;
/// How long routing may take to settle.
const CONVERGENCE_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(40);

/// What every switch must have a route to while these links are down: each switch's LA, each anycast LA, each rack; where
/// the fabric has an outside, what BGP carries too.
pub(crate) fn expected(
    fabric: &Fabric,
    addresses: &AddressPlan,
    down: &BTreeSet<LinkId>,
) -> BTreeMap<NodeId, RouteTable> {
    let paths = EcmpRoutes::compute(fabric, down);
    let mut destinations: Vec<(Block, Vec<NodeId>)> =
        fabric.switches().map(|switch| (Block::host(addresses.la(switch)), vec![switch])).collect();
    destinations
        .extend(addresses.anycast_groups().iter().map(|group| (Block::host(group.address), group.members.clone())));
    destinations.extend(fabric.switches().filter_map(|switch| Some((addresses.rack(switch)?, vec![switch]))));
    let table = |switch: NodeId| {
        let interfaces = |owners: &[NodeId]| {
            let links = paths.anycast_next_hops(switch, owners).into_iter();
            links.filter_map(|link| fabric.link(link).end_at(switch)).map(|port| port.interface.clone()).collect()
        };
        let routes = destinations.iter().map(|(prefix, owners)| (kernel_text(*prefix), interfaces(owners)));
        routes.filter(|(_, interfaces): &(String, BTreeSet<String>)| !interfaces.is_empty()).collect()
    };
    let mut expected = fabric.switches().map(|switch| (switch, table(switch))).collect();
    outside::routes::add(&mut expected, fabric, addresses, &paths, down);
    expected
}

fn kernel_text(prefix: Block) -> String {
    if prefix.prefix_len() == 32 { prefix.network().to_string() } else { prefix.to_string() }
}

#[derive(Deserialize)]
struct KernelRoute {
    dst: String,
    dev: Option<String>,
    #[serde(default)]
    nexthops: Vec<NextHop>,
    #[serde(default)]
    flags: Vec<String>,
}

#[derive(Deserialize)]
struct NextHop {
    dev: String,
    #[serde(default)]
    flags: Vec<String>,
}

fn is_usable(flags: &[String]) -> bool {
    !flags.iter().any(|flag| flag == "dead" || flag == "linkdown")
}

/// Reads the main table of a namespace; next hops whose link is down do not count.
pub fn kernel_table(namespace: &str) -> Result<RouteTable, LabError> {
    let mut command = process::command("ip");
    command.args(["-N", "-j", "route", "show", "table", "main"]);
    let output = netns::in_namespace(&namespace_path(namespace), || command.output())?
        .map_err(LabError::io("run ip route show"))?;
    let bad = |reason: String| LabError::Batch {
        node: namespace.to_owned(),
        program: "ip",
        line: "-N -j route show table main".into(),
        number: 0,
        reason,
    };
    if !output.status.success() {
        return Err(bad(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    parse_table(&output.stdout).map_err(|error| bad(error.to_string()))
}

fn parse_table(json: &[u8]) -> Result<RouteTable, serde_json::Error> {
    // An empty table is printed as nothing at all by some versions.
    let routes: Vec<KernelRoute> =
        if json.trim_ascii().is_empty() { Vec::new() } else { serde_json::from_slice(json)? };
    let interfaces = |route: KernelRoute| {
        let direct = route.dev.filter(|_| is_usable(&route.flags));
        let multiple = route.nexthops.into_iter().filter(|hop| is_usable(&hop.flags)).map(|hop| hop.dev);
        (route.dst, direct.into_iter().chain(multiple).collect())
    };
    Ok(routes.into_iter().map(interfaces).collect())
}

/// What is missing or different in a table, in words; `None` if every expected route is there as expected.
pub(crate) fn difference(expected: &RouteTable, actual: &RouteTable) -> Option<String> {
    expected.iter().find_map(|(destination, interfaces)| match actual.get(destination) {
        None => Some(format!("has no route to {destination}")),
        Some(found) if found.is_subset(interfaces) && found.len() == interfaces.len().min(WIDTH_MAX) => None,
        Some(found) => {
            let list = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
            Some(format!("reaches {destination} by [{}] instead of [{}]", list(found), list(interfaces)))
        }
    })
}

/// Whether a namespace's kernel has every route of a table.
pub(crate) fn is_there((namespace, table): &(String, RouteTable)) -> bool {
    kernel_table(namespace).is_ok_and(|actual| difference(table, &actual).is_none())
}

/// Waits until the routes of a lab are those of its whole fabric.
pub(crate) fn settle(lab: &Lab, progress: &dyn Progress) -> Result<(), LabError> {
    let expected = expected(&lab.scenario.fabric, &lab.scenario.addresses, &BTreeSet::new());
    wait_converged(&lab.plan.nodes, &expected, progress)
}

/// Waits until every switch's kernel has every expected route, or names the first that has not.
pub(crate) fn wait_converged(
    plans: &[NodePlan],
    expected: &BTreeMap<NodeId, RouteTable>,
    progress: &dyn Progress,
) -> Result<(), LabError> {
    let switches: Vec<&NodePlan> = plans.iter().filter(|plan| expected.contains_key(&plan.id)).collect();
    let wait = Wait::new(progress, CONVERGENCE_TIMEOUT, POLL_INTERVAL);
    let mut settled = 0;
    let mut recheck = true;
    while settled < switches.len() {
        let plan = switches[settled];
        match difference(&expected[&plan.id], &kernel_table(&plan.namespace)?) {
            None => {
                settled += 1;
                progress.advance(settled as f64 / switches.len() as f64, &format!("{settled} switches"));
            }
            Some(missing) => {
                let log = || crate::process::log_tail(&crate::frr::frr_log(&plan.namespace, "ospfd"));
                wait.pause_for_routing(|| (plan.name.clone(), missing), log)?;
            }
        }
        // A table that was right may have changed while later ones settled: look at all of them once more.
        if settled == switches.len() && std::mem::take(&mut recheck) {
            settled = 0;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_and_multiple_next_hops_are_read_and_dead_ones_left_out() {
        let json = br#"[{"dst":"10.1.0.1","gateway":"10.128.0.0","dev":"x","protocol":"188","metric":20,"flags":[]},
            {"dst":"10.255.255.1","protocol":"188","metric":20,"flags":[],"nexthops":[
              {"gateway":"10.128.0.0","dev":"x","weight":1,"flags":[]},
              {"gateway":"10.128.0.2","dev":"y","weight":1,"flags":["dead","linkdown"]},
              {"gateway":"10.128.0.4","dev":"z","weight":1,"flags":[]}]},
            {"type":"unreachable","dst":"10.64.0.0/24","flags":[]}]"#;
        let table = parse_table(json).unwrap();
        let list = |key: &str| table[key].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(list("10.1.0.1"), ["x"]);
        assert_eq!(list("10.255.255.1"), ["x", "z"]);
        assert_eq!(list("10.64.0.0/24"), Vec::<&str>::new());
        assert!(parse_table(b"\n").unwrap().is_empty());
        assert!(parse_table(b"[{").is_err());
    }

    #[test]
    fn a_lost_next_hop_is_named() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let expected = RouteTable::from([("10.1.0.1".to_owned(), set(&["x", "y"]))]);
        let one = RouteTable::from([("10.1.0.1".to_owned(), set(&["y"]))]);
        assert_eq!(difference(&expected, &one).unwrap(), "reaches 10.1.0.1 by [y] instead of [x, y]");
        assert_eq!(difference(&expected, &RouteTable::new()).unwrap(), "has no route to 10.1.0.1");
        assert_eq!(difference(&expected, &expected), None);
    }
}
