//! Which settings of a scenario have an effect, engine by engine, and why the others have none.
//!
//! Files refuse a setting that has no effect where it stands. Of a plan that is one without effect at each of its places: what
//! the lab alone follows may stand in a plan that the simulator runs, too. A setting is one that differs from its default.

mod hosts;
mod switches;
mod times;
mod traffic;

use serde::Serialize;

use crate::fault::Fault;
use crate::overlay::Overlay;
use crate::switching::Switching;
use crate::topology::{Fabric, FabricSpec};
use crate::transport::Transport;
use crate::units::Nanos;
use crate::workload::Workload;

/// The engine that makes records of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The simulator.
    Sim,
    /// Namespaces and the kernels' TCP.
    Lab,
    /// Calculation, without packets.
    Calc,
}

/// A scenario as one engine runs one of its workloads.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The engine.
    pub runner: Runner,
    /// How the fabric was asked for, and the fabric.
    pub spec: &'a FabricSpec,
    pub fabric: &'a Fabric,
    pub overlay: Overlay,
    pub transport: &'a Transport,
    pub switching: &'a Switching,
    /// The workload and its name.
    pub workload: (&'a str, &'a Workload),
    pub faults: &'a [Fault],
    /// Distance between readings of counters; `None`: nobody has chosen one.
    pub interval: Option<Nanos>,
    /// Distance between rows of TCP state.
    pub tcp_interval: Option<Nanos>,
    /// When the run is cut.
    pub time_limit: Nanos,
}

/// Outcome of a setting in an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name for people: its path, or for a fault when and where it is.
    pub setting: String,
    /// Keys that lead to it in a file, members of lists by their number from 0: `fault`, `0`, `lasts`.
    pub path: Vec<String>,
    /// Whether it has an effect.
    pub effect: Effect,
}

/// Whether a setting has an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It has.
    Some,
    /// It has none, for this reason; it may have one at another place of a plan.
    None(String),
    /// It promises something that does not come, for this reason, so that the place is wrong whatever it does elsewhere.
    Broken(String),
}

impl Finding {
    fn at(path: &[&str], effect: Effect) -> Self {
        Self { setting: path.join("."), path: path.iter().map(|key| (*key).to_owned()).collect(), effect }
    }

    /// Why the setting is refused where it stands; `None` if it has an effect.
    pub fn refusal(&self) -> Option<String> {
        match &self.effect {
            Effect::Some => None,
            Effect::None(why) => Some(format!("`{}` has no effect: {why}", self.setting)),
            Effect::Broken(why) => Some(format!("`{}`: {why}", self.setting)),
        }
    }
}

impl Case<'_> {
    /// All settings that are not as by default, with their effects.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = self.of_hosts();
        findings.extend(self.of_switches());
        findings.extend(self.of_traffic());
        findings.extend(self.of_times());
        findings
    }
}

/// A finding about the setting at a path, which has an effect unless there is a reason why not.
pub fn finding(path: &[&str], why_not: Option<String>) -> Finding {
    Finding::at(path, why_not.map_or(Effect::Some, Effect::None))
}

/// A finding about a setting that breaks its promise.
fn broken(path: &[&str], why: String) -> Finding {
    Finding::at(path, Effect::Broken(why))
}

/// Names of the fields that differ from those of the default.
fn given<T: Serialize + Default>(settings: &T) -> Vec<String> {
    let fields = |settings: &T| serde_json::to_value(settings).expect("settings have names that JSON has");
    let (own, usual) = (fields(settings), fields(&T::default()));
    let own = own.as_object().expect("settings are a table").clone();
    own.into_iter().filter(|(name, value)| usual.get(name) != Some(value)).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests;
