//! The wait until every switch knows who listens to the groups, and that nobody else has to get them.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use weft_node::rbridge::protocol::{GroupRow, Shown, What};
use weft_node::{DaemonKind, socket};
use weft_scenario::engine::Overlay;
use weft_scenario::id::NodeId;
use weft_wire::ethernet::MacAddress;

use super::Run;
use super::bed::Bed;
use crate::error::LabError;
use crate::home::namespace_path;
use crate::tester::TesterError;
use crate::trill::rbridges::prunes_groups;
use crate::trill::snooping::{self, Heard};
use crate::trill::{rbridge_socket, rbridges};
use crate::wait::Wait;

/// Hosts answer within a second, ports are pruned a second later; a busy machine takes longer.
const TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
/// What an RBridge says of who gets all groups.
const ALL: &str = "all IPv4";

/// Waits for it where switches prune at all.
pub(super) fn wait(run: &Run<'_>, bed: &Bed<'_>, receivers: u32, groups: &[Ipv4Addr]) -> Result<(), TesterError> {
    if !prunes_groups(&run.lab.scenario) {
        return Ok(());
    }
    let wait = Wait::new(run.progress, TIMEOUT, POLL);
    for node in rbridges(run.lab) {
        let wanted = Wanted::of(bed, receivers, groups, node);
        while let Some(missing) = wanted.missing(&rows_of(run, node)?) {
            let name = bed.name(node);
            wait.pause(|| {
                let why = format!("RBridge `{name}` {missing} after {} s", TIMEOUT.as_secs());
                LabError::Traffic(format!("{why}; see: weft show rbridge groups on it"))
            })?;
        }
    }
    wait_for_bridges(run, bed, receivers, groups, &wait)
}

/// Of bridges those that hosts are behind have heard their own, and all know where the others' answers go.
fn wait_for_bridges(
    run: &Run<'_>,
    bed: &Bed<'_>,
    receivers: u32,
    groups: &[Ipv4Addr],
    wait: &Wait<'_>,
) -> Result<(), TesterError> {
    let heard = |node| Heard::at(&namespace_path(&run.lab.plan.node(node).namespace));
    let late = |node, what: &str| {
        let why = format!("bridge `{}` {what} after {} s", bed.name(node), TIMEOUT.as_secs());
        LabError::Traffic(format!("{why}; see on it: bridge mdb show"))
    };
    for node in snooping::asked(run.lab) {
        while !heard(node)?.knows_querier() {
            wait.pause(|| late(node, "has heard of nobody who asks for groups"))?;
        }
    }
    let is_bridge = |node| matches!(run.lab.scenario.forwarding(node), Overlay::Bridge { .. });
    for station in bed.receivers(receivers).iter().filter(|station| is_bridge(station.edge)) {
        let fabric = &run.lab.scenario.fabric;
        let port = &fabric.link(station.link).end_at(station.edge).expect("a switch ends its link").interface;
        let knows = |heard: &Heard| groups.iter().all(|group| heard.listens(port, *group));
        while !knows(&heard(station.edge)?) {
            wait.pause(|| late(station.edge, &format!("does not know the groups of `{}`", bed.name(station.node))))?;
        }
    }
    Ok(())
}

fn rows_of(run: &Run<'_>, node: NodeId) -> Result<Vec<GroupRow>, TesterError> {
    let path = rbridge_socket(&run.lab.state.lab, &run.lab.plan.node(node).name);
    match socket::show(DaemonKind::Rbridge, &path, What::Groups) {
        Ok(Shown::Groups(rows)) => Ok(rows),
        Ok(_) => Err(TesterError::Refused(format!("{} answers something else than groups", path.display()))),
        Err(error) => Err(LabError::Traffic(error.to_string()).into()),
    }
}

/// What one RBridge has to say.
struct Wanted {
    /// Groups as RBridges write them.
    groups: Vec<String>,
    /// RBridges with listeners.
    rbridges: BTreeSet<String>,
    /// Its own interfaces with listeners.
    interfaces: BTreeSet<String>,
}

impl Wanted {
    fn of(bed: &Bed<'_>, receivers: u32, groups: &[Ipv4Addr], node: NodeId) -> Self {
        let fabric = &bed.lab.scenario.fabric;
        let stations = bed.receivers(receivers);
        let behind = stations.iter().filter(|station| station.edge == node);
        let interface = |link| fabric.link(link).end_at(node).map(|port| port.interface.clone());
        Self {
            groups: groups.iter().map(|group| MacAddress::of_ipv4_group(*group).to_string()).collect(),
            rbridges: stations.iter().map(|station| bed.name(station.edge).to_owned()).collect(),
            interfaces: behind.filter_map(|station| interface(station.link)).collect(),
        }
    }

    /// What of it the rows do not say.
    fn missing(&self, rows: &[GroupRow]) -> Option<String> {
        if let Some(row) = rows.iter().find(|row| row.group == ALL) {
            return Some(format!("knows that all groups go to {}", row.rbridges.join(", ")));
        }
        for group in &self.groups {
            let row = rows.iter().find(|row| row.group == *group);
            let known: BTreeSet<String> = row.into_iter().flat_map(|row| row.rbridges.iter().cloned()).collect();
            let own: BTreeSet<String> = row.into_iter().flat_map(|row| row.interfaces.iter().cloned()).collect();
            if known != self.rbridges {
                let (found, wanted) = (known.len(), self.rbridges.len());
                return Some(format!("knows {found} RBridges with listeners to {group}, where there are {wanted}"));
            }
            if own != self.interfaces {
                let (found, wanted) = (own.len(), self.interfaces.len());
                return Some(format!("knows {found} ports with listeners to {group}, where there are {wanted}"));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_with_listeners_is_known_and_nobody_else() {
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let row = |group: &str, interfaces: &[&str], rbridges: &[&str]| GroupRow {
            vlans: "1".into(),
            group: group.into(),
            interfaces: texts(interfaces),
            rbridges: texts(rbridges),
        };
        let wanted = Wanted {
            groups: texts(&["g1", "g2"]),
            rbridges: texts(&["leaf1", "leaf2"]).into_iter().collect(),
            interfaces: texts(&["s1"]).into_iter().collect(),
        };
        let whole = || vec![row("g1", &["s1"], &["leaf1", "leaf2"]), row("g2", &["s1"], &["leaf2", "leaf1"])];
        assert_eq!(wanted.missing(&whole()), None);
        let ipv6 = row("all IPv6", &["s2"], &["leaf3"]);
        assert_eq!(wanted.missing(&[whole(), vec![ipv6]].concat()), None, "another family");
        for (changed, text) in [
            (vec![], "0 RBridges with listeners to g1"),
            (whole()[..1].to_vec(), "0 RBridges with listeners to g2"),
            (
                vec![whole()[0].clone(), row("g2", &["s1"], &["leaf2"])],
                "1 RBridges with listeners to g2, where there are 2",
            ),
            (vec![whole()[0].clone(), row("g2", &["s1", "s2"], &["leaf1", "leaf2"])], "2 ports with listeners to g2"),
            ([whole(), vec![row(ALL, &[], &["leaf3"])]].concat(), "all groups go to leaf3"),
        ] {
            let missing = wanted.missing(&changed).unwrap();
            assert!(missing.contains(text), "{missing}");
        }
    }
}
