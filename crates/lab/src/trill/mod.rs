//! Campuses: RBridges (RFC 6325) as daemons in namespaces, their spanning-tree twin of kernel bridges on the same wires, and
//! plain switches at the RBridges' hook.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`rbridges`] | `weft node rbridge` on every switch; routes and trees awaited |
//! | [`bridges`] | bridges with 802.1D, one for each VLAN; forwarding awaited |
//! | [`snooping`] | their IGMP snooping, and what it has learned |
//! | [`shared`] | bridges among RBridges that are a link of several of them, or of stations too |
//! | [`links`] | rate, queue and delay of links, for whatever forwards |
//! | [`stations`] | what hosts must leave to themselves, so that XDP can forward their frames |
//! | [`held`] | what the process that measures holds: plain switches, links in virtual time |
//! | [`trunk`] | frames of links between RBridges, which no packet socket sees |
//!
//! A campus is a lab: its namespaces, processes and pins are recorded and removed as those of every lab.

mod bridges;
mod held;
mod links;
pub(crate) mod rbridges;
mod shared;
pub(crate) mod snooping;
mod stations;
mod trunk;

use weft_scenario::engine::{Overlay, Progress};
use weft_scenario::id::NodeId;
use weft_scenario::overlay::StpTimers;

pub(crate) use held::{Held, interfaces_of};
pub(crate) use rbridges::{check_ports, port_number, uses_all, ways};
pub use rbridges::{rbridge_keys, rbridge_socket};
pub(crate) use stations::{do_without_driver, prepare as prepare_stations};
pub(crate) use trunk::{End as TrunkEnd, TrunkPort, Trunks};

use crate::daemons::Launcher;
use crate::error::LabError;
use crate::options::LabOptions;
use crate::routes;
use crate::sysctls::HurriedWaits;
use crate::up::Lab;

/// Sets the switches of a campus to work and waits until they forward.
pub(crate) fn start(lab: &mut Lab, options: &LabOptions, progress: &dyn Progress) -> Result<(), LabError> {
    let _quick = HurriedWaits::begin()?;
    stations::take_redirected(lab)?;
    // Bridges first: among RBridges they are their links.
    if let Some(timers) = bridge_timers(lab) {
        bridges::start(lab, timers, progress)?;
        if !shared::links(&lab.scenario).is_empty() {
            // Stations are behind another RBridge's port as soon as another one serves them.
            bridges::age_fast(lab, timers)?;
        }
        if rbridges::prunes_groups(&lab.scenario) {
            snooping::start(lab)?;
        }
    }
    if rbridges(lab).next().is_none() {
        return Ok(());
    }
    rbridges::start(lab, &Launcher { options, progress })
}

/// Waits until all routes, trees or the spanning tree are those of the whole fabric.
pub(crate) fn settle(lab: &Lab, progress: &dyn Progress) -> Result<(), LabError> {
    if !lab.scenario.overlay.forwards_frames() {
        return routes::settle(lab, progress);
    }
    if let Some(timers) = bridge_timers(lab) {
        bridges::settle(lab, timers, progress)?;
    }
    rbridges::wait_for_routes(lab, progress)
}

/// Lets stations be forgotten as soon as a change of the tree demands; RBridges forget with the route.
pub(crate) fn age_fast(lab: &Lab) -> Result<(), LabError> {
    bridge_timers(lab).map_or(Ok(()), |timers| bridges::age_fast(lab, timers))
}

/// The switches that are RBridges, in order.
pub(crate) fn rbridges(lab: &Lab) -> impl Iterator<Item = NodeId> {
    lab.scenario.switches_with(|overlay| matches!(overlay, Overlay::RBridge { .. }))
}

/// Those of the bridges' spanning tree, if there are bridges.
fn bridge_timers(lab: &Lab) -> Option<StpTimers> {
    lab.scenario.overlays().into_iter().find_map(|overlay| match overlay {
        Overlay::Bridge { timers } => Some(timers),
        _ => None,
    })
}
