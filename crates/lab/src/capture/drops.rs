//! What a data path or a queue drops comes to no capture: how much of it there is, by reason.
//!
//! What cannot be read is left out: a capture is good without it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weft_datapath::DatapathError;
use weft_datapath::abi::{HOST_OUTCOMES_DROPPED, RECEIVE_OUTCOMES_DROPPED, SWITCH_OUTCOMES_DROPPED};
use weft_datapath::host::HostMaps;
use weft_datapath::interface;
use weft_datapath::switch::SwitchMaps;
use weft_datapath::trill::RBridgeMaps;
use weft_datapath::trill::abi::TRILL_OUTCOMES_DROPPED;
use weft_datapath::vxlan::VtepView;
use weft_datapath::vxlan::abi::VTEP_OUTCOMES_DROPPED;
use weft_scenario::id::NodeId;
use weft_scenario::topology::Fabric;

use super::ports::Port;
use crate::faults::dropped_on_purpose;
use crate::home::{namespace_path, node_pin_dir};
use crate::netns;
use crate::state::LabState;
use crate::traffic::QdiscReader;
use crate::trill::port_number;

/// Frames by reason, in words.
pub(super) type Drops = BTreeMap<String, u64>;

/// What has been dropped at each of these ports until now.
pub(super) fn now(state: &LabState, fabric: &Fabric, ports: &[Port]) -> Vec<Drops> {
    let mut all = vec![Drops::new(); ports.len()];
    let nodes: BTreeSet<NodeId> = ports.iter().map(|port| port.node).collect();
    for node in nodes {
        let of_node: Vec<(usize, &Port)> = ports.iter().enumerate().filter(|(_, port)| port.node == node).collect();
        let name = &fabric.node(node).name;
        for ((place, port), frames) in of_node.iter().zip(queues(state, name, &of_node)) {
            all[*place].insert(format!("queue of {name}:{}", port.interface), frames);
        }
        for (place, port) in of_node.iter() {
            let on_purpose = port.link.map(|link| dropped_on_purpose(&state.lab, node, link)).unwrap_or_default();
            let at = format!("{name}:{}", port.interface);
            all[*place].extend(on_purpose.into_iter().map(|(reason, count)| (format!("{reason} at {at}"), count)));
        }
        for (number, reason, count) in data_path(&node_pin_dir(&state.lab, name)) {
            for (place, port) in &of_node {
                let own = port.link.and_then(|link| port_number(fabric, node, link));
                let at = match number {
                    None => name.clone(),
                    Some(number) if own == Some(number) => format!("{name}:{}", port.interface),
                    Some(_) => continue,
                };
                // Frames that a server sends and those that it hears may be dropped for one reason.
                *all[*place].entry(format!("{reason} at {at}")).or_default() += count;
            }
        }
    }
    all
}

/// What there is to say of those that have come since `before`.
pub(super) fn since(before: &Drops, now: &Drops) -> Vec<String> {
    let more = |(reason, count): (&String, &u64)| {
        let frames = count.saturating_sub(before.get(reason).copied().unwrap_or_default());
        (frames > 0).then(|| format!("{reason}: {frames} dropped"))
    };
    now.iter().filter_map(more).collect()
}

/// Frames that the queues of ports have refused.
fn queues(state: &LabState, node: &str, ports: &[(usize, &Port)]) -> Vec<u64> {
    let read = || -> std::io::Result<Vec<u64>> {
        let roots = QdiscReader::open()?.roots()?;
        let refused = |(_, port): &(usize, &Port)| {
            let index = interface::index_of(&port.interface).ok()?;
            Some(roots.get(&index)?.dropped_frames)
        };
        Ok(ports.iter().map(|port| refused(port).unwrap_or_default()).collect())
    };
    let namespace = state.node(node).map(|node| namespace_path(&node.namespace));
    namespace.and_then(|namespace| netns::in_namespace(&namespace, read)).ok().and_then(Result::ok).unwrap_or_default()
}

/// Frames of a port by its number, or of all ports together, that were dropped for a reason.
type Reason = (Option<u8>, &'static str, u64);

/// Reasons of a node's data path, whichever it has.
fn data_path(pins: &Path) -> Vec<Reason> {
    [of_rbridge, of_vtep, of_switch, of_host].into_iter().find_map(|read| read(pins).ok()).unwrap_or_default()
}

fn of_rbridge(pins: &Path) -> Result<Vec<Reason>, DatapathError> {
    let ports = RBridgeMaps::open_pinned(pins)?.counters()?.into_iter();
    Ok(ports.flat_map(|port| dropped(Some(port.port), port.counts, &TRILL_OUTCOMES_DROPPED)).collect())
}

fn of_vtep(pins: &Path) -> Result<Vec<Reason>, DatapathError> {
    Ok(dropped(None, VtepView::open_pinned(pins)?.counters()?, &VTEP_OUTCOMES_DROPPED))
}

fn of_switch(pins: &Path) -> Result<Vec<Reason>, DatapathError> {
    Ok(dropped(None, SwitchMaps::open_pinned(pins)?.counters()?, &SWITCH_OUTCOMES_DROPPED))
}

fn of_host(pins: &Path) -> Result<Vec<Reason>, DatapathError> {
    let maps = HostMaps::open_pinned(pins)?;
    let sent = dropped(None, maps.counters()?, &HOST_OUTCOMES_DROPPED);
    Ok([sent, dropped(None, maps.receive_counters()?, &RECEIVE_OUTCOMES_DROPPED)].concat())
}

fn dropped(port: Option<u8>, counts: Vec<(&'static str, u64)>, are_drops: &[bool]) -> Vec<Reason> {
    let drops = counts.into_iter().zip(are_drops).filter(|(_, is_drop)| **is_drop);
    drops.map(|((reason, count), _)| (port, reason, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_come_since_is_said() {
        let drops =
            |counts: &[(&str, u64)]| counts.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect();
        let before: Drops = drops(&[("rpf at s1:s3", 4), ("queue of s1:s3", 0)]);
        let now: Drops = drops(&[("rpf at s1:s3", 4), ("queue of s1:s3", 9), ("hop_count at s1:s3", 1)]);
        assert_eq!(since(&before, &now), ["hop_count at s1:s3: 1 dropped", "queue of s1:s3: 9 dropped"]);
    }
}
