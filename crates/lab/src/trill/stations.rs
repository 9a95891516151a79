//! What hosts and routers must do by themselves: a frame that XDP redirects never gets a checksum or a segment from an
//! interface, and an interface without a program takes redirected frames only if it joins them (GRO).

use weft_datapath::offload::{self, Offload};

use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::overlay::datapath_error;
use crate::plan::NodePlan;
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

/// Sets up an interface whose peer is at XDP in the driver, in the calling thread's namespace.
pub(crate) fn do_without_driver(interface: &str) -> Result<(), weft_datapath::DatapathError> {
    for what in [Offload::TxChecksum, Offload::Tso, Offload::Gso] {
        offload::set(interface, what, false)?;
    }
    offload::set(interface, Offload::Gro, true)
}
