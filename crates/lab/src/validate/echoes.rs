//! Who answers whom, and how long packets may be: ICMP echo from inside the servers' namespaces.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use weft_scenario::engine::Progress;
use weft_scenario::id::{LinkId, NodeId};

use super::Finding;
use super::wanted::{Wanted, find};
use crate::error::LabError;
use crate::home::namespace_path;
use crate::ping::{Answer, Echo};
use crate::up::Lab;

/// First packets wait for a look-up, for learning or for ARP.
const TRIES: usize = 3;
const PATIENCE: Duration = Duration::from_millis(400);

type Server = (NodeId, Ipv4Addr);

/// Every server reaches the next one and the one half the way round, at full length too; and what is wanted beside that.
pub(super) fn check(
    lab: &Lab,
    broken: &BTreeSet<LinkId>,
    wanted: &Wanted,
    progress: &dyn Progress,
) -> Result<Vec<Finding>, LabError> {
    let connected = |server: &Server| {
        let edge = lab.scenario.fabric.edge_of(server.0);
        edge.is_some_and(|(edge, link)| !broken.contains(&link) && !is_cut_off(lab, edge, broken))
    };
    let servers: Vec<Server> = lab.servers_in_reach().into_iter().filter(connected).collect();
    let pairs = around(servers.len());
    let pair = |(from, to): (usize, usize)| format!("{} to {}", name(lab, servers[from].0), name(lab, servers[to].0));
    let asked = |(from, to): (usize, usize), bytes: u32| ask(lab, servers[from], servers[to], bytes as usize);
    let mut silent = pairs.clone();
    let start = Instant::now();
    // A spanning tree, for one, takes seconds to find the ways that are left.
    loop {
        let mut still = Vec::new();
        for pair in silent {
            if progress.interrupted() {
                return Err(LabError::Interrupted);
            }
            if asked(pair, 84)? != Asked::Answered {
                still.push(pair);
            }
        }
        silent = still;
        let answered = pairs.len() - silent.len();
        progress.advance(answered as f64 / pairs.len().max(1) as f64, &format!("{answered} of {} pairs", pairs.len()));
        if silent.is_empty() || start.elapsed() >= wanted.within() {
            break;
        }
    }
    let mut short = Vec::new();
    for pair in pairs.iter().filter(|pair| !silent.contains(pair)) {
        if asked(*pair, wanted.mtu)? != Asked::Answered {
            short.push(*pair);
        }
    }
    let [silent, short] = [silent, short].map(|bad| bad.into_iter().map(pair).collect::<Vec<String>>());
    let told = |bad: &[String]| match bad.len() {
        0 => format!("{} pairs", pairs.len()),
        count => format!("{count} of {} pairs not: {}", pairs.len(), bad[..count.min(4)].join(", ")),
    };
    let mut findings = vec![
        Finding::of("reach", format!("{} servers", servers.len()), silent.is_empty(), told(&silent)),
        Finding::of("mtu", format!("{} bytes", wanted.mtu), short.is_empty(), told(&short)),
    ];
    for reach in &wanted.reach {
        let (from, to) = (server(lab, &reach.from)?, server(lab, &reach.to)?);
        let found = ask(lab, from, to, 84)?;
        let passed = (found == Asked::Answered) == reach.answers;
        findings.push(Finding::of("reach", format!("{} to {}", reach.from, reach.to), passed, found.as_str()));
    }
    Ok(findings)
}

/// Whether a switch has lost all its links to other switches.
fn is_cut_off(lab: &Lab, switch: NodeId, broken: &BTreeSet<LinkId>) -> bool {
    let fabric = &lab.scenario.fabric;
    let far = |link: &LinkId| fabric.link(*link).far_end(switch).map(|port| fabric.node(port.node).role);
    let mut trunks = fabric.links_of(switch).iter().filter(|link| far(link).is_some_and(|role| role.is_switch()));
    let has_trunks = trunks.clone().next().is_some();
    has_trunks && trunks.all(|link| broken.contains(link))
}

/// Each of so many with the next one, and with the one half the way round.
fn around(count: usize) -> Vec<(usize, usize)> {
    let steps: BTreeSet<usize> = [1, count / 2].into_iter().filter(|step| (1..count).contains(step)).collect();
    (0..count).flat_map(|from| steps.iter().map(move |step| (from, (from + step) % count))).collect()
}

fn name(lab: &Lab, node: NodeId) -> &str {
    &lab.plan.node(node).name
}

fn server(lab: &Lab, name: &str) -> Result<Server, LabError> {
    let node = find(lab, name)?;
    let found = lab.server_addresses().into_iter().find(|(server, _)| *server == node);
    found.ok_or_else(|| LabError::not_fit(format!("`{name}` has no address of a server"), "name two servers"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Answered,
    TooBig,
    Nothing,
}

impl Asked {
    fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answers",
            Self::TooBig => "too long for the way",
            Self::Nothing => "no answer",
        }
    }
}

fn ask(lab: &Lab, (from, source): Server, (_, destination): Server, packet_bytes: usize) -> Result<Asked, LabError> {
    let namespace = namespace_path(&lab.plan.node(from).namespace);
    let echo = Echo { packet_bytes, timeout: PATIENCE, ..Echo::new(source, destination) };
    for _ in 0..TRIES {
        // Without a route the kernel refuses to send.
        match echo.send_in(&namespace) {
            Ok(Answer::Reply(_)) => return Ok(Asked::Answered),
            Ok(Answer::TooBig) => return Ok(Asked::TooBig),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(Asked::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_asks_two_others_and_nobody_himself() {
        assert_eq!(around(0), []);
        assert_eq!(around(1), []);
        assert_eq!(around(2), [(0, 1), (1, 0)]);
        assert_eq!(around(4).len(), 8);
        assert!(around(75).iter().all(|(from, to)| from != to));
    }
}
