//! What stands on top of a routed fabric. VL2: decapsulation on the switches, directory servers, a reporter on every edge
//! switch, an agent on every server, the servers' AAs. VXLAN: our VTEP on every server or every edge switch.

mod agents;
mod directory;
mod store;
mod switches;
mod tors;
mod vtep;

pub use agents::status_socket;
pub(crate) use agents::{AgentLimits, moves, restart as restart_agents, start_at as start_agent_at};
pub use directory::admin_socket;
pub(crate) use directory::{
    access_of, lookups_at, random_digits, read_secret, sessions_at, write_private, write_secret,
};
pub(crate) use store::{nodes as store_nodes, store_leader};
pub use switches::switch_status;
pub(crate) use switches::{
    datapath_error, make_pin_dir, mount_bpffs, mount_bpffs_locked, remove_pins, serve_ports, set_own_las,
};
pub use tors::reporter_socket;
pub use vtep::vtep_socket;

use std::path::PathBuf;

use weft_node::DaemonKind;
use weft_scenario::engine::{Overlay, Progress};
use weft_scenario::id::NodeId;

use crate::daemons::Launcher;
use crate::error::LabError;
use crate::home::socket_dir;
use crate::options::LabOptions;
use crate::sysctls::HurriedWaits;
use crate::up::Lab;

/// The daemon of a directory server, as a lab's state names it.
pub(crate) const DIRECTORY: &str = "directory";
/// The daemon of an etcd node.
pub(crate) const ETCD: &str = "etcd";

/// Control socket of a node's daemon.
pub fn control_socket(lab: &str, node: &str, kind: DaemonKind) -> PathBuf {
    match kind {
        DaemonKind::Agent => status_socket(lab, node),
        DaemonKind::Tor => reporter_socket(lab, node),
        DaemonKind::Vtep => vtep_socket(lab, node),
        DaemonKind::Rbridge => crate::trill::rbridge_socket(lab, node),
        // A lab's switches have their data paths without daemons.
        DaemonKind::Directory | DaemonKind::Switch => socket_dir(lab).join(format!("{node}.{}", kind.word())),
    }
}

/// Starts everything that the overlay adds to a routed fabric and waits until it is ready.
pub(crate) fn start(lab: &mut Lab, options: &LabOptions, progress: &dyn Progress) -> Result<(), LabError> {
    let launcher = Launcher { options, progress };
    let _quick = HurriedWaits::begin()?;
    if lab.scenario.overlay == Overlay::Vl2 {
        return start_vl2(lab, &launcher);
    }
    match lab.scenario.overlays().iter().any(|overlay| matches!(overlay, Overlay::Vtep { .. })) {
        true => vtep::start(lab, &launcher),
        false => Ok(()),
    }
}

fn start_vl2(lab: &mut Lab, launcher: &Launcher<'_>) -> Result<(), LabError> {
    let all: Vec<NodeId> = lab.scenario.fabric.ids().collect();
    switches::attach(lab, &all)?;
    store::start(lab, launcher.progress)?;
    directory::start(lab, launcher)?;
    // Before anybody asks: an agent believes "unknown" for a while.
    directory::register(lab, &all)?;
    tors::start(lab, launcher, &all)?;
    agents::start(lab, launcher, &all)
}

/// What VL2 adds to nodes that come to a lab that is up, and to the ports of those that have other links now. Others have nothing there.
pub(crate) fn grow(
    lab: &mut Lab,
    launcher: &Launcher<'_>,
    come: &[NodeId],
    changed: &[NodeId],
) -> Result<(), LabError> {
    if lab.scenario.overlay != Overlay::Vl2 {
        return Ok(());
    }
    let _quick = HurriedWaits::begin()?;
    switches::attach(lab, come)?;
    serve_changed(lab, changed)?;
    directory::tell_rules(lab)?;
    directory::register(lab, come)?;
    tors::start(lab, launcher, come)?;
    agents::start(lab, launcher, come)
}

/// Sets up switches anew whose ports are others now.
pub(crate) fn serve_changed(lab: &Lab, switches: &[NodeId]) -> Result<(), LabError> {
    match lab.scenario.overlay {
        Overlay::Vl2 => switches.iter().try_for_each(|switch| serve_ports(lab, *switch)),
        _ => Ok(()),
    }
}

/// Tells the directory that servers will be nowhere.
pub(crate) fn forget(lab: &Lab, go: &[NodeId]) -> Result<(), LabError> {
    if lab.scenario.overlay == Overlay::Vl2 { directory::forget(lab, go) } else { Ok(()) }
}

/// Starts directory servers or etcd nodes again that were killed, and waits until they are ready.
pub(crate) fn restart(
    lab: &mut Lab,
    options: &LabOptions,
    progress: &dyn Progress,
    nodes: &[NodeId],
    daemon: &str,
) -> Result<(), LabError> {
    match daemon {
        ETCD => store::restart(lab, nodes, progress),
        _ => directory::restart(lab, &Launcher { options, progress }, nodes),
    }
}
