//! One scenario without a plan around it: the same tables in a file of its own, or a fabric and a workload by name.
//!
//! ```toml
//! overlay = "routed"
//!
//! [fabric]
//! generator = "leaf-spine"
//! spines = 5
//! leaves = 5
//! servers_per_leaf = 20
//!
//! [workload]
//! kind = "permutation"
//! bytes_per_flow = "1 MB"
//! shift = 20
//! ```
//!
//! `[switching]`, `[transport]`, `[[fault]]` and `[sampling]` are as in plans; `[workload.NAME]` is allowed too.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{DirectoryStore, Overlay, Scenario, Transport, Trial};
use weft_scenario::fault::Fault;
use weft_scenario::switching::Switching;
use weft_scenario::topology::{FabricSize, FabricSpec};
use weft_scenario::units::Nanos;
use weft_scenario::workload::Workload;

use super::error::{Misplaced, Problem};
use super::{PlanError, PlanSpec, Point, QuestionSet, SIM, Sampling, fabric_text, merge, validate};

/// Keys that only plans have.
const PLAN_KEYS: [&str; 3] = ["analysis", "claims", "engines"];

/// A scenario and what happens on it, not yet checked against its network.
#[derive(Clone, Debug)]
pub struct SingleScenario {
    /// Name of the workload in records.
    pub workload_name: String,
    tables: Tables,
    origin: String,
    text: String,
}

#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tables {
    #[serde(default = "routed")]
    overlay: Overlay,
    fabric: FabricSpec,
    #[serde(default)]
    switching: Switching,
    #[serde(default)]
    transport: Transport,
    workload: Workload,
    #[serde(default)]
    fault: Vec<Fault>,
    #[serde(default)]
    sampling: SingleSampling,
}

fn routed() -> Overlay {
    Overlay::Routed
}

/// When counters are read and when the run is cut.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SingleSampling {
    /// Distance between rows of progress and links.
    pub interval: Nanos,
    /// Distance between rows of TCP state; without it there are none.
    pub tcp_interval: Option<Nanos>,
    /// The run is cut after this time.
    pub time_limit: Nanos,
}

impl Default for SingleSampling {
    fn default() -> Self {
        Self { interval: Nanos(10_000_000), tcp_interval: None, time_limit: Nanos(100_000_000_000) }
    }
}

impl SingleScenario {
    /// Reads a scenario from its text; `origin` names it in messages.
    pub fn parse(origin: &str, text: &str) -> Result<Self, PlanError> {
        let (workload_name, tables) = read(text).map_err(|wrong| PlanError::misplaced(origin, text, &wrong))?;
        Ok(Self { workload_name, tables, origin: origin.to_owned(), text: text.to_owned() })
    }

    /// A workload on a fabric file (see [`fabric_text`]) with everything else as it is by default.
    pub fn on_fabric(file: &str, overlay: Overlay, name: &str, workload: Workload, sampling: SingleSampling) -> Self {
        let (switching, transport) = (Switching::default(), Transport::default());
        let fabric = FabricSpec::File(file.to_owned());
        let tables = Tables { overlay, fabric, switching, transport, workload, fault: Vec::new(), sampling };
        Self { workload_name: name.to_owned(), tables, origin: file.to_owned(), text: String::new() }
    }

    /// What the servers do.
    pub fn workload(&self) -> &Workload {
        &self.tables.workload
    }

    /// How large the network will be, where that can be told before it is built; what makes none, and what cannot be sent there, is refused.
    pub fn size(&self) -> Result<Option<FabricSize>, PlanError> {
        let size = self.tables.fabric.size().map_err(|error| self.wrong(error.to_string(), "[fabric]"))?;
        size.map_or(Ok(()), |size| self.check_workload(u32::try_from(size.servers).unwrap_or(u32::MAX)))?;
        Ok(size)
    }

    fn check_workload(&self, servers: u32) -> Result<(), PlanError> {
        let Tables { workload, sampling, .. } = &self.tables;
        workload.check(servers).map_err(|error| self.wrong(format!("workload: {error}"), "[workload"))?;
        match [Some(sampling.interval), sampling.tcp_interval, Some(sampling.time_limit)].contains(&Some(Nanos(0))) {
            true => Err(self.wrong("`sampling` has a time of 0".to_owned(), "[sampling]")),
            false => Ok(()),
        }
    }

    fn wrong(&self, message: String, marker: &str) -> PlanError {
        PlanError::invalid(&self.origin, &self.text, Problem::new(message, Some(marker.to_owned())))
    }

    /// What the engine is asked to do, not yet checked against the network.
    pub fn trial(&self, seed: u64) -> Trial {
        let Tables { workload, fault, sampling, .. } = &self.tables;
        Trial {
            workload: workload.clone(),
            faults: fault.clone(),
            seed,
            sample_interval: sampling.interval,
            tcp_interval: sampling.tcp_interval,
            time_limit: sampling.time_limit,
            pin_and_measure_cost: false,
            replay: false,
            probes: None,
        }
    }

    /// Builds the network and checks everything against it.
    pub fn build(&self, seed: u64) -> Result<(Scenario, Trial), PlanError> {
        let invalid = |problem: Problem| PlanError::invalid(&self.origin, &self.text, problem);
        let tables = &self.tables;
        let fabric = tables
            .fabric
            .build(&|name| fabric_text(name))
            .map_err(|error| self.wrong(error.to_string(), "[fabric]"))?;
        validate::check_network(&fabric, &tables.transport, &tables.switching, &tables.fault).map_err(invalid)?;
        self.check_workload(fabric.servers().count() as u32)?;
        let addresses = AddressPlan::new(&fabric, AddressingOptions::default());
        let addresses = addresses.map_err(|error| self.wrong(error.to_string(), "[fabric]"))?;
        let scenario = Scenario {
            fabric,
            addresses,
            overlay: tables.overlay,
            directory: DirectoryStore::default(),
            transport: tables.transport.clone(),
            switching: tables.switching.clone(),
            shaped: true,
        };
        Ok((scenario, self.trial(seed)))
    }
}

/// JSON schema of a scenario's file.
pub fn scenario_schema() -> schemars::Schema {
    schemars::schema_for!(Tables)
}

/// What the report of a scenario asks, whatever happens there.
const QUESTIONS: &str = include_str!("single.toml");

impl SingleScenario {
    /// The same as a plan that judges nothing, for the report: what is asked of any flows that end, where they do.
    pub fn as_spec(&self, title: &str) -> PlanSpec {
        let base: PlanSpec = toml::from_str(QUESTIONS).expect("a shipped set is read as it is tested");
        let (tables, sampling) = (&self.tables, &self.tables.sampling);
        let mut spec = PlanSpec {
            title: title.to_owned(),
            runs_on: SIM.to_owned(),
            overlays: vec![tables.overlay],
            fabric: Some(tables.fabric.clone()),
            switching: tables.switching.clone(),
            transport: tables.transport.clone(),
            workload: [(self.workload_name.clone(), tables.workload.clone())].into(),
            fault: tables.fault.clone(),
            sampling: Sampling {
                interval: sampling.interval,
                tcp_interval: sampling.tcp_interval,
                time_limit: sampling.time_limit,
                ..base.sampling.clone()
            },
            ..base
        };
        let point = |spec: &PlanSpec| Point { labels: Vec::new(), spec: spec.clone(), settings: Vec::new() };
        spec.points = vec![point(&spec)];
        let asking = PlanSpec { questions: Some(QuestionSet::FlowSummary), ..spec.clone() };
        let mut spec = asking.with_question_set().unwrap_or(spec);
        spec.points = vec![point(&PlanSpec { points: Vec::new(), ..spec.clone() })];
        spec
    }
}

fn read(text: &str) -> Result<(String, Tables), Misplaced> {
    let mut document = DeTable::parse(text)?;
    if let Some(key) = document.get_ref().keys().find(|key| PLAN_KEYS.contains(&key.get_ref().as_ref())) {
        let message = format!("`{}` belongs to a plan; run plans with `weft run`", key.get_ref());
        return Err(Misplaced::at(key.span(), message));
    }
    let name = name_workload(&mut document)?;
    let tables = Deserialize::deserialize(toml::de::Deserializer::from(document))?;
    Ok((name, tables))
}

/// The name of the one workload; puts `[workload.NAME]` in the place of `[workload]`.
fn name_workload(document: &mut Spanned<DeTable<'_>>) -> Result<String, Misplaced> {
    let whole = document.get_ref().get("workload").map_or(0..0, Spanned::span);
    let Some(table) = merge::take_table(document, "workload")? else {
        return Err(Misplaced::nowhere("the scenario sends nothing; add a `[workload]` table".to_owned()));
    };
    let kind = table.get("kind").and_then(|kind| Some(kind.get_ref().as_str()?.to_owned()));
    let (name, value) = match (kind, table.len()) {
        (Some(kind), _) => (kind, Spanned::new(whole, DeValue::Table(table))),
        (None, 1) => {
            let (name, value) = table.into_iter().next().expect("it has one entry");
            (name.into_inner().into_owned(), value)
        }
        (None, _) => {
            let place = table.keys().nth(1).map_or(whole, Spanned::span);
            let message = "a scenario has one workload; keep one of them".to_owned();
            return Err(Misplaced::at(place, message));
        }
    };
    document.get_mut().insert(Spanned::new(0..0, "workload".into()), value);
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FABRIC: &str = "[fabric]\ngenerator = \"output-queued\"\nservers = 4\n";
    const WORKLOAD: &str = "kind = \"permutation\"\nbytes_per_flow = \"1 MB\"\nshift = 1\n";

    fn parse(text: &str) -> Result<SingleScenario, String> {
        SingleScenario::parse("a.toml", text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_report_asks_what_the_scenario_can_answer() {
        let spec = parse(&format!("{FABRIC}[workload]\n{WORKLOAD}")).unwrap().as_spec("t");
        crate::plan::questions::check(&spec).unwrap();
        assert!(spec.metric_of("mean_fct_ms").is_some() && spec.figures.len() >= 2, "{:?}", spec.figures);
        assert_eq!((spec.points.len(), spec.workload.len(), spec.title.as_str()), (1, 1, "t"));
    }

    #[test]
    fn a_workload_may_have_a_name_or_none() {
        for (header, name) in [("[workload]", "permutation"), ("[workload.neighbours]", "neighbours")] {
            let single = parse(&format!("{FABRIC}{header}\n{WORKLOAD}")).unwrap();
            let (scenario, trial) = single.build(7).unwrap();
            assert_eq!(single.workload_name, name);
            assert_eq!((scenario.fabric.servers().count(), trial.seed), (4, 7));
            assert_eq!(trial.time_limit, SingleSampling::default().time_limit);
        }
    }

    #[test]
    fn mistakes_are_refused_with_their_place() {
        for (text, message) in [
            (format!("{FABRIC}[workload]\n{WORKLOAD}colour = 1\n"), "a.toml:4:1: unknown field `colour`"),
            (format!("{FABRIC}colour = 1\n[workload]\n{WORKLOAD}"), "a.toml:"),
            (format!("colour = 1\n{FABRIC}[workload]\n{WORKLOAD}"), "a.toml:1:1: unknown field `colour`"),
            (format!("analysis = \"fct\"\n{FABRIC}"), "a.toml:1:1: `analysis` belongs to a plan"),
            (FABRIC.to_owned(), "add a `[workload]` table"),
            (format!("{FABRIC}[workload.a]\n{WORKLOAD}[workload.b]\n{WORKLOAD}"), "a.toml:8:11: a scenario has one"),
            ("workload = 3\n".to_owned(), "a.toml:1:12: `workload` is a integer"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }

    #[test]
    fn what_does_not_fit_the_network_is_refused_with_its_place() {
        let good = format!("{FABRIC}[workload]\n{WORKLOAD}");
        for (text, message) in [
            (good.replace("shift = 1", "shift = 4"), "a.toml:4: workload: `shift` is 4"),
            (format!("{good}[transport]\ninitial_window = 0\n"), "a.toml:8: `initial_window`"),
            (format!("{good}[switching]\necn_threshold = \"0 B\"\n"), "a.toml:8: `ecn_threshold`"),
            (format!("{good}[sampling]\ninterval = \"0 s\"\n"), "a.toml:8: `sampling` has a time of 0"),
            (good.replace("servers = 4", "servers = 0"), "a.toml:1:"),
        ] {
            let error = parse(&text).unwrap().build(1).unwrap_err().to_string();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }
}
