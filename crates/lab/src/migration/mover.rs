//! Takes a server from one edge switch to another. Its namespace and sockets stay, as the memory of a virtual machine
//! does; its link, its LA and its agent are those of the new place.

use std::net::Ipv4Addr;

use weft_scenario::engine::Progress;
use weft_scenario::id::{LinkId, NodeId};

use crate::batch::{self, Program};
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::options::LabOptions;
use crate::overlay;
use crate::plan::mac_text;
use crate::process::kill_all;
use crate::up::Lab;

/// Where a server can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The edge switch.
    pub(super) edge: NodeId,
    /// The server's LA there.
    pub(super) la: Ipv4Addr,
}

impl Place {
    /// Where the fabric has it.
    pub(super) fn of(lab: &Lab, server: NodeId) -> Result<Self, LabError> {
        let none = || LabError::Migration(format!("`{}` is no server", lab.plan.node(server).name));
        let (edge, _) = lab.scenario.fabric.edge_of(server).ok_or_else(none)?;
        Ok(Self { edge, la: lab.scenario.addresses.la(server) })
    }

    /// Below the edge switch of another server, with the last address of its rack.
    pub(super) fn beside(lab: &Lab, server: NodeId, neighbour: NodeId) -> Result<Self, LabError> {
        let Self { edge, .. } = Self::of(lab, neighbour)?;
        let name = |node| lab.plan.node(node).name.clone();
        if edge == Self::of(lab, server)?.edge {
            let text = format!("`{}` and `{}` are in one rack; nothing would move", name(server), name(neighbour));
            return Err(LabError::Migration(text));
        }
        let rack = lab.scenario.addresses.rack(edge);
        let rack = rack.ok_or_else(|| LabError::Migration(format!("`{}` has no rack", name(edge))))?;
        let la = Ipv4Addr::from(u32::from(rack.last()) - 1);
        let taken = lab.scenario.fabric.ids().any(|node| lab.scenario.addresses.la(node) == la);
        match taken {
            true => Err(LabError::Migration(format!("the rack of `{}` is full", name(neighbour)))),
            false => Ok(Self { edge, la }),
        }
    }
}

/// Cuts the server's link at one place, makes one at the other and starts the agent there. What the server sent or
/// received until then stays with it.
pub(super) fn take(
    lab: &mut Lab,
    options: &LabOptions,
    progress: &dyn Progress,
    server: NodeId,
    from: &Place,
    to: &Place,
) -> Result<(), LabError> {
    let link = lab.scenario.fabric.edge_of(server).expect("a place was found for it").1;
    let ends = lab.scenario.fabric.link(link);
    let (Some(own), Some(far)) = (ends.end_at(server), ends.far_end(server)) else {
        return Err(LabError::Migration("a server's link ends at the server and at its switch".to_owned()));
    };
    let (own, port) = (own.interface.clone(), far.interface.clone());
    let home = far.node;
    let agent = lab.state.processes.iter().find(|one| one.daemon == "agent" && one.node == lab.plan.node(server).name);
    kill_all(&agent.map(|agent| agent.id).into_iter().collect::<Vec<_>>());
    run_in(lab, server, Program::Ip, &[format!("link del dev {own}")])?;
    let lines =
        Lines { lab, server, link, home, own: &own, port: &port, from_la: lab.scenario.addresses.la(server), to };
    run_in(lab, to.edge, Program::Ip, &[lines.creates()])?;
    run_in(lab, to.edge, Program::Ip, &lines.at_the_switch())?;
    run_in(lab, server, Program::Ip, &lines.at_the_server())?;
    for (node, device) in [(to.edge, &port), (server, &own)] {
        run_in(lab, node, Program::Tc, &lines.queues(node, device))?;
    }
    overlay::serve_port(lab, to.edge, (to.edge != home).then_some(port.as_str()))?;
    if from.edge != home {
        overlay::serve_port(lab, from.edge, None)?;
    }
    overlay::start_agent_at(lab, options, progress, server, to.edge, to.la)
}

/// The configuration of the server's link at its new place, from the plan of the old one.
struct Lines<'a> {
    lab: &'a Lab,
    server: NodeId,
    link: LinkId,
    /// The switch that the fabric has it below.
    home: NodeId,
    own: &'a str,
    port: &'a str,
    /// Its LA there.
    from_la: Ipv4Addr,
    to: &'a Place,
}

impl Lines<'_> {
    fn creates(&self) -> String {
        let plan = &self.lab.plan;
        let begins = format!("link add dev {} ", self.port);
        let line = plan.node(self.home).creates.iter().find(|line| line.starts_with(&begins));
        line.cloned().expect("the plan of a switch makes the links to its servers")
    }

    fn at_the_switch(&self) -> Vec<String> {
        let addresses = &self.lab.scenario.addresses;
        let mac = mac_text(addresses.mac(&self.lab.scenario.fabric, self.link, self.server));
        let mut lines = vec![format!("link set dev {} up", self.port)];
        for address in [Some(self.to.la), addresses.aa(self.server)].into_iter().flatten() {
            lines.push(format!("neigh replace {address} lladdr {mac} dev {} nud permanent", self.port));
            lines.push(format!("route replace {address}/32 dev {}", self.port));
        }
        lines
    }

    /// The plan's own lines, with the LA and the gateway of the new place.
    fn at_the_server(&self) -> Vec<String> {
        let addresses = &self.lab.scenario.addresses;
        let gateway = |edge| addresses.rack_gateway(edge).map_or_else(String::new, |gateway| gateway.to_string());
        let (old_gateway, new_gateway) = (gateway(self.home), gateway(self.to.edge));
        let (old_la, new_la) = (self.from_la.to_string(), self.to.la.to_string());
        let word = |word: &str| match word.split_once('/') {
            _ if word == old_gateway => new_gateway.clone(),
            _ if word == old_la => new_la.clone(),
            Some((address, length)) if address == old_la => format!("{new_la}/{length}"),
            _ => word.to_owned(),
        };
        let mentions = |line: &&String| line.split(' ').any(|word| word == self.own);
        let lines = self.lab.plan.node(self.server).configures.iter().filter(mentions);
        lines.map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ")).collect()
    }

    /// Queues are those of the old link: the far end's come from the old switch's plan.
    fn queues(&self, node: NodeId, device: &str) -> Vec<String> {
        let planned = if node == self.server { self.server } else { self.home };
        let mentions = |line: &&String| line.split(' ').any(|word| word == device);
        self.lab.plan.node(planned).queues.iter().filter(mentions).cloned().collect()
    }
}

fn run_in(lab: &Lab, node: NodeId, program: Program, lines: &[String]) -> Result<(), LabError> {
    if lines.is_empty() {
        return Ok(());
    }
    let plan = lab.plan.node(node);
    netns::in_namespace(&namespace_path(&plan.namespace), || batch::run(program, &plan.name, lines))?
}
