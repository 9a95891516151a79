//! VL2 in a lab: decapsulation on the switches, directory servers, an agent on every server, the servers' AAs.

mod agents;
mod daemons;
mod directory;
mod switches;

pub use agents::status_socket;
pub use directory::admin_socket;
pub(crate) use switches::{datapath_error, set_own_las};

use weft_scenario::engine::Progress;

use crate::error::LabError;
use crate::options::LabOptions;
use crate::sysctls::HurriedWaits;
use crate::up::Lab;
use daemons::Launcher;

/// Starts everything that VL2 adds to a routed fabric and waits until it is ready.
pub(crate) fn start(lab: &mut Lab, options: &LabOptions, progress: &dyn Progress) -> Result<(), LabError> {
    let launcher = Launcher { options, progress };
    let _quick = HurriedWaits::begin()?;
    switches::attach(lab)?;
    directory::start(lab, &launcher)?;
    // Before anybody asks: an agent believes "unknown" for a while.
    directory::register(lab)?;
    agents::start(lab, &launcher)
}
