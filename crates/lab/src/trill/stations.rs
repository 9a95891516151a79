//! What hosts and routers must do by themselves: a frame that XDP redirects never gets a checksum or a segment from an
//! interface, and an interface without a program takes redirected frames only if it joins them (GRO).

use weft_datapath::offload::{self, Offload};
use weft_scenario::id::{LinkId, NodeId};

use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::overlay::datapath_error;
use crate::plan::{NodePlan, interfaces};
use crate::up::Lab;

const THREADS: usize = 2;

/// Sets up the interfaces of all hosts and routers. It is the same for every kind of switch, so that hosts cost the same.
pub(crate) fn prepare(lab: &Lab) -> Result<(), LabError> {
    let stations: Vec<&NodePlan> = lab.plan.nodes.iter().filter(|plan| !plan.role.is_switch()).collect();
    let fabric = &lab.scenario.fabric;
    netns::visit_all(
        &stations,
        THREADS,
        |plan| namespace_path(&plan.namespace),
        |plan| {
            let ports = fabric.links_of(plan.id).iter().filter_map(|link| fabric.link(*link).end_at(plan.id));
            for port in ports {
                do_without_driver(&port.interface).map_err(|error| datapath_error(&plan.name, &error))?;
            }
            Ok(())
        },
    )
}

/// Ends of switches in the stack at links to switches in the driver: they take what these redirect only if they join frames.
pub(super) fn take_redirected(lab: &Lab) -> Result<(), LabError> {
    let (scenario, fabric) = (&lab.scenario, &lab.scenario.fabric);
    for switch in scenario.switches_with(|overlay| !overlay.is_in_driver()) {
        let far = |link: &LinkId| fabric.link(*link).far_end(switch).map(|port| port.node);
        let in_driver = |node: NodeId| fabric.node(node).role.is_switch() && scenario.forwarding(node).is_in_driver();
        let links = fabric.links_of(switch).iter().filter(|link| far(link).is_some_and(in_driver));
        let ports: Vec<_> = links.flat_map(|link| interfaces(scenario, *link, switch)).collect();
        lab.inside(switch, || ports.iter().try_for_each(|port| offload::set(&port.interface, Offload::Gro, true)))?;
    }
    Ok(())
}

/// Sets up an interface whose peer is at XDP in the driver, in the calling thread's namespace.
pub(crate) fn do_without_driver(interface: &str) -> Result<(), weft_datapath::DatapathError> {
    for what in [Offload::TxChecksum, Offload::Tso, Offload::Gso] {
        offload::set(interface, what, false)?;
    }
    offload::set(interface, Offload::Gro, true)
}
