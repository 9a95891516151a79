//! A lab that is up, from what is on disk about it.

use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{Scenario, Transport};
use weft_scenario::switching::Switching;
use weft_scenario::topology::from_yaml;

use crate::error::LabError;
use crate::plan::LabPlan;
use crate::state::LabState;
use crate::up::Lab;

impl Lab {
    /// The lab of this name, as it was made; hosts and the simulator's switches have their usual settings.
    pub fn open(name: &str) -> Result<Self, LabError> {
        let state = LabState::load(name)?;
        let bad = |reason: String| LabError::BadState { lab: name.to_owned(), reason };
        if !state.ready {
            return Err(bad("it is not up yet".to_owned()));
        }
        let fabric = from_yaml(&state.fabric_yaml, "its fabric").map_err(|error| bad(error.to_string()))?;
        let addresses =
            AddressPlan::new(&fabric, AddressingOptions::default()).map_err(|error| bad(error.to_string()))?;
        let scenario = Scenario {
            fabric,
            addresses,
            overlay: state.overlay,
            directory: state.directory,
            transport: Transport::default(),
            switching: Switching::default(),
            shaped: state.shaped,
        };
        let plan = LabPlan::new(name, &scenario, state.seed);
        Ok(Self { state, plan, scenario, facts: Vec::new() })
    }
}
