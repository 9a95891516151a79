//! Campuses: RBridges (RFC 6325) as daemons in namespaces, their spanning-tree twin of kernel bridges on the same wires, and
//! plain switches at the RBridges' hook.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`rbridges`] | `weft node rbridge` on every switch; routes and trees awaited |
//! | [`bridges`] | bridges with 802.1D, one for each VLAN; forwarding awaited |
//! | [`links`] | rate, queue and delay of links, for whatever forwards |
//! | [`stations`] | what hosts must leave to themselves, so that XDP can forward their frames |
//! | [`held`] | what the process that measures holds: plain switches, links in virtual time |
//! | [`trunk`] | frames of a link between RBridges, which no packet socket sees |
//!
//! A campus is a lab: its namespaces, processes and pins are recorded and removed as those of every lab.

mod bridges;
mod held;
mod links;
pub(crate) mod rbridges;
mod stations;
mod trunk;

use weft_scenario::engine::{Overlay, Progress};

pub(crate) use held::{Held, interfaces_of};
pub(crate) use rbridges::port_number;
pub use rbridges::{rbridge_keys, rbridge_socket};
pub(crate) use stations::{do_without_driver, prepare as prepare_stations};
pub(crate) use trunk::{End as TrunkEnd, Trunk};

use crate::daemons::Launcher;
use crate::error::LabError;
use crate::options::LabOptions;
use crate::routes;
use crate::sysctls::HurriedWaits;
use crate::up::Lab;

/// Sets the switches of a campus to work and waits until they forward.
pub(crate) fn start(lab: &mut Lab, options: &LabOptions, progress: &dyn Progress) -> Result<(), LabError> {
    let _quick = HurriedWaits::begin()?;
    match lab.scenario.overlay {
        Overlay::RBridge { .. } => rbridges::start(lab, &Launcher { options, progress }),
        Overlay::Bridge { timers } => bridges::start(lab, timers, progress),
        _ => Ok(()),
    }
}

/// Waits until all routes, trees or the spanning tree are those of the whole fabric.
pub(crate) fn settle(lab: &Lab, progress: &dyn Progress) -> Result<(), LabError> {
    match lab.scenario.overlay {
        Overlay::RBridge { .. } => rbridges::wait_for_routes(lab, progress),
        Overlay::Bridge { timers } => bridges::settle(lab, timers, progress),
        Overlay::Layer2 { .. } => Ok(()),
        _ => routes::settle(lab, progress),
    }
}

/// Lets stations be forgotten as soon as a change of the tree demands; RBridges forget with the route.
pub(crate) fn age_fast(lab: &Lab) -> Result<(), LabError> {
    match lab.scenario.overlay {
        Overlay::Bridge { timers } => bridges::age_fast(lab, timers),
        _ => Ok(()),
    }
}
