//! The engine `calc`: what follows from a scenario by arithmetic and seeded draws alone. It has no packets, no links and no
//! clock, so it runs anywhere and gives the same records on every machine.

use weft_scenario::engine::{Engine, EngineError, Progress, Scenario, Session, Trial};
use weft_scenario::record::Records;
use weft_scenario::topology::Fabric;
use weft_scenario::workload::{FlowLogSpec, Servers, Workload};

use crate::flow_log::Options;
use crate::flow_log::generated::{self, GenerateError};

/// The engine's name in plans.
pub const CALC: &str = "calc";

/// Computes records from scenarios.
#[derive(Clone, Copy, Debug, Default)]
pub struct CalcEngine;

impl Engine for CalcEngine {
    fn name(&self) -> &'static str {
        CALC
    }

    fn parallel(&self) -> Option<&(dyn Engine + Sync)> {
        Some(self)
    }

    fn prepare<'a>(
        &'a self,
        scenario: &Scenario,
        progress: &'a dyn Progress,
    ) -> Result<Box<dyn Session + 'a>, EngineError> {
        Ok(Box::new(CalcSession { fabric: scenario.fabric.clone(), progress }))
    }
}

struct CalcSession<'a> {
    fabric: Fabric,
    progress: &'a dyn Progress,
}

impl CalcSession<'_> {
    /// Draws the log and records it; the matrices are as long as the trial's sample interval.
    fn flow_log(&self, spec: &FlowLogSpec, trial: &Trial) -> Result<Records, EngineError> {
        let options = Options { interval: Some(trial.sample_interval), ..Options::default() };
        let on_progress = |done| {
            self.progress.advance(done, "");
            !self.progress.interrupted()
        };
        generated::record(spec, &Servers::of(&self.fabric), trial.seed, options, None, on_progress).map_err(|error| {
            match error {
                GenerateError::Interrupted => EngineError::Interrupted,
                GenerateError::Workload(_) | GenerateError::Record(_) => EngineError::Refused(error.to_string()),
                GenerateError::Write(_) | GenerateError::NoAddresses => EngineError::Failed(error.to_string()),
            }
        })
    }
}

impl Session for CalcSession<'_> {
    fn run(&mut self, trial: &Trial) -> Result<Records, EngineError> {
        match &trial.workload {
            Workload::Model(spec) => Ok(crate::run(spec, &self.fabric, trial.seed, self.progress)?),
            Workload::FlowLog(spec) => self.flow_log(spec, trial),
            other => {
                let kind = other.kind();
                Err(EngineError::Refused(format!(
                    "a workload of kind `{kind}` sends packets; the engine `calc` has none"
                )))
            }
        }
    }

    fn facts(&self) -> Vec<(String, f64)> {
        vec![("calc.servers".to_owned(), self.fabric.servers().count() as f64)]
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        Ok(())
    }
}
