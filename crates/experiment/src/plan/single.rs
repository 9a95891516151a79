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

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::effect::{Case, Runner};
use weft_scenario::engine::{DirectoryStore, Overlay, Scenario, Transport, Trial};
use weft_scenario::fault::Fault;
use weft_scenario::switching::Switching;
use weft_scenario::topology::{Fabric, FabricSize, FabricSpec, Role};
use weft_scenario::units::Nanos;
use weft_scenario::workload::Workload;

use super::effect::Effects;
use super::error::{Misplaced, Problem};
use super::library::folder_of;
use super::{
    Claim, Mode, Plan, PlanError, PlanSpec, Point, QuestionSet, SIM, Sampling, fabric_text, merge, settings, validate,
};
use crate::run_folder::fabric_file;

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
    /// The scenario as a document, with the workload under its name.
    document: toml::Table,
    /// Where files are that it names.
    folder: Option<PathBuf>,
    /// Whether the command line named the network, so that what is kept of a run has a file of it.
    named_outside: bool,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
        let misplaced = |wrong: Misplaced| PlanError::misplaced(origin, text, &wrong);
        let (workload_name, tables) = read(text).map_err(misplaced)?;
        let mut document: toml::Table = text.parse().map_err(|error: toml::de::Error| misplaced(error.into()))?;
        if let Some(workload) = document.remove("workload") {
            let has_name = workload.get("kind").is_none();
            document.insert("workload".to_owned(), if has_name { workload } else { named(&workload_name, workload) });
        }
        let folder = folder_of(origin);
        let (origin, text, named_outside) = (origin.to_owned(), text.to_owned(), false);
        Ok(Self { workload_name, tables, origin, text, document, folder, named_outside })
    }

    /// A workload on a fabric with everything else as it is by default; `origin` is what people call the fabric, a file by a path from
    /// the current folder.
    pub fn on_fabric(
        origin: &str,
        fabric: FabricSpec,
        overlay: Overlay,
        (name, workload): (&str, Workload),
        sampling: SingleSampling,
    ) -> Self {
        let (switching, transport) = (Switching::default(), Transport::default());
        let mut document = toml::Table::new();
        let mut put = |key: &str, value: Result<toml::Value, toml::ser::Error>| {
            document.insert(key.to_owned(), value.expect("what a command line can say, a file can"));
        };
        put("overlay", toml::Value::try_from(overlay));
        put("fabric", Ok(named("file", origin.into())));
        put("workload", toml::Value::try_from(&workload).map(|workload| named(name, workload)));
        put("sampling", toml::Value::try_from(&sampling));
        let tables = Tables { overlay, fabric, switching, transport, workload, fault: Vec::new(), sampling };
        let (workload_name, text, folder) = (name.to_owned(), String::new(), Some(PathBuf::new()));
        Self { workload_name, tables, origin: origin.to_owned(), text, document, folder, named_outside: true }
    }

    /// The same on another network, which people call `word`; a file is named by a path from the current folder.
    #[must_use]
    pub fn with_fabric(mut self, word: &str, fabric: FabricSpec) -> Self {
        self.tables.fabric = fabric;
        self.document.insert("fabric".to_owned(), named("file", word.into()));
        (self.folder, self.named_outside) = (Some(PathBuf::new()), true);
        self
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
            .build(&|name| fabric_text(name, self.folder.as_deref()))
            .map_err(|error| self.wrong(error.to_string(), "[fabric]"))?;
        validate::check_network(&fabric, &tables.transport, &tables.switching, &tables.fault).map_err(invalid)?;
        self.check_workload(fabric.servers().count() as u32)?;
        let spines = tables.workload.check_spines(fabric.with_role(Role::Spine).count());
        spines.map_err(|error| self.wrong(format!("workload: {error}"), "[workload"))?;
        let addresses = AddressPlan::new(&fabric, AddressingOptions::default());
        let addresses = addresses.map_err(|error| self.wrong(error.to_string(), "[fabric]"))?;
        self.check_effects(&fabric).map_err(invalid)?;
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

    /// Whether every setting has an effect in the simulator.
    fn check_effects(&self, fabric: &Fabric) -> Result<(), Problem> {
        let Tables { overlay, fabric: spec, switching, transport, workload, fault, sampling } = &self.tables;
        let usual = SingleSampling::default();
        let case = Case {
            runner: Runner::Sim,
            spec,
            fabric,
            overlay: *overlay,
            transport,
            switching,
            workload: (&self.workload_name, workload),
            faults: fault,
            interval: (sampling.interval != usual.interval).then_some(sampling.interval),
            tcp_interval: sampling.tcp_interval,
            time_limit: sampling.time_limit,
        };
        let mut effects = Effects::default();
        effects.note(case.findings())?;
        effects.check()
    }
}

/// JSON schema of a scenario's file.
pub fn scenario_schema() -> schemars::Schema {
    schemars::schema_for!(Tables)
}

/// What the report of a scenario asks, whatever happens there.
const QUESTIONS: &str = include_str!("single.toml");

/// Numbers that a report shows first and a series takes, with their units.
const SHOWN: [(&str, &str); 14] = [
    ("flows", "flows"),
    ("flows_ended", "flows"),
    ("mean_fct_ms", "ms"),
    ("p50_fct_ms", "ms"),
    ("p99_fct_ms", "ms"),
    ("mean_slowdown", "ratio"),
    ("p99_slowdown", "ratio"),
    ("goodput", "bit/s"),
    ("jain_flows", "index"),
    ("packet_hops", "packets"),
    ("dropped_packets", "packets"),
    ("marked_packets", "packets"),
    ("retransmitted_segments", "segments"),
    ("timeouts", "timeouts"),
];

impl SingleScenario {
    /// A plan with one trial that judges nothing; its text is the scenario's, complete with what a command line said, for a folder in
    /// which its network is [`fabric_file`]. `title` says what it is in a few words.
    pub fn plan(&self, title: &str) -> Plan {
        Plan {
            origin: self.origin.clone(),
            text: self.complete_text(),
            scenario: Some(title.to_owned()),
            specs: [((Mode::Default, SIM.to_owned(), 0), self.as_spec(title))].into(),
        }
    }

    fn complete_text(&self) -> String {
        let mut document = self.document.clone();
        if self.named_outside || matches!(self.tables.fabric, FabricSpec::File(_)) {
            document.insert("fabric".to_owned(), named("file", fabric_file(0).into()));
        }
        toml::to_string(&document).expect("it was a document")
    }

    /// What the report asks: of any flows that end more, where they do.
    pub(crate) fn as_spec(&self, title: &str) -> PlanSpec {
        let base: PlanSpec = toml::from_str(QUESTIONS).expect("a shipped set is read as it is tested");
        let (tables, sampling) = (&self.tables, &self.tables.sampling);
        let bare = PlanSpec {
            title: title.to_owned(),
            runs_on: SIM.to_owned(),
            overlays: vec![tables.overlay],
            fabric: Some(tables.fabric.clone()),
            folder: self.folder.clone(),
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
        let settings = self.settings();
        let point = |spec: PlanSpec| Point { labels: Vec::new(), spec, settings: settings.clone() };
        let bare = PlanSpec { points: vec![point(bare.clone())], ..bare };
        let asking = PlanSpec { questions: Some(QuestionSet::FlowSummary), ..bare.clone() };
        let mut spec = asking.with_question_set().unwrap_or(bare);
        let marks = tables.switching.ecn_threshold.is_some();
        let mut seen = std::collections::BTreeSet::new();
        spec.metrics.retain(|metric| (marks || metric.id != "marked_packets") && seen.insert(metric.id.clone()));
        let shown = SHOWN.iter().filter(|(id, _)| seen.contains(*id));
        spec.claims = shown.map(|(id, unit)| Claim::shown(format!("{id}.{}", self.workload_name), unit)).collect();
        spec.points = vec![point(PlanSpec { points: Vec::new(), ..spec.clone() })];
        spec
    }

    /// What it says by paths, without the flows of a list.
    fn settings(&self) -> Vec<(String, crate::query::Value)> {
        let mut document = self.document.clone();
        let workload = document.get_mut("workload").and_then(|all| all.get_mut(&self.workload_name)?.as_table_mut());
        if let (Workload::Flows { .. }, Some(workload)) = (&self.tables.workload, workload) {
            workload.remove("flows");
        }
        let text = toml::to_string(&document).expect("it was a document");
        DeTable::parse(&text).map_or_else(|_| Vec::new(), |document| settings::of(document.get_ref()))
    }
}

/// A table with one key.
fn named(key: &str, value: toml::Value) -> toml::Value {
    toml::Value::Table([(key.to_owned(), value)].into_iter().collect())
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
    use weft_scenario::units::Bytes;
    use weft_scenario::workload::FlowSpec;

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
    fn the_complete_text_says_the_same_on_the_network_beside_it() {
        let flow = FlowSpec { spine: Some(1), ..FlowSpec::bulk(0, 2, 14_600, 5) };
        let sampling = SingleSampling { tcp_interval: Some(Nanos(5)), ..SingleSampling::default() };
        let on_fabric = |workload| {
            let file = FabricSpec::File("leaf-spine-small".to_owned());
            SingleScenario::on_fabric("leaf-spine-small", file, Overlay::RBRIDGE, ("mine", workload), sampling.clone())
        };
        let fault = "[[fault]]\nkind = \"link-down\"\nat = \"2 ms\"\na = \"leaf1\"\nb = \"spine1\"\n";
        let more = "[switching]\necn_threshold = \"30 kB\"\n[transport]\ncongestion_control = \"dctcp\"\n";
        let file = "[fabric]\nfile = \"leaf-spine-small\"\n";
        let of_file = parse(&format!("overlay = \"routed\"\n{file}[workload]\n{WORKLOAD}{fault}{more}")).unwrap();
        let generated = parse(&format!("{FABRIC}[workload.near]\n{WORKLOAD}")).unwrap();
        let flows = on_fabric(Workload::Flows { flows: vec![flow] });
        for single in [of_file, generated, flows, on_fabric(Workload::Shuffle { bytes_per_flow: Bytes(7) })] {
            let text = single.plan("t").text().to_owned();
            let again = SingleScenario::parse("scenario.toml", &text).unwrap();
            assert_eq!(again.workload_name, single.workload_name, "{text}");
            assert_eq!(format!("{:?}", again.trial(7)), format!("{:?}", single.trial(7)), "{text}");
            let rest = |one: &SingleScenario| {
                let Tables { overlay, switching, transport, .. } = &one.tables;
                (*overlay, switching.clone(), transport.clone())
            };
            assert_eq!(rest(&again), rest(&single), "{text}");
            match &single.tables.fabric {
                FabricSpec::File(_) => assert_eq!(again.tables.fabric, FabricSpec::File("fabric.yaml".to_owned())),
                fabric => assert_eq!(&again.tables.fabric, fabric),
            }
        }
    }

    #[test]
    fn the_shipped_scenarios_are_read() {
        for name in crate::plan::scenario_names() {
            let (origin, text) = crate::plan::scenario_text(name).unwrap();
            let single = SingleScenario::parse(&origin, &text.unwrap()).unwrap();
            single.build(1).unwrap();
        }
        assert!(crate::plan::scenario_names().any(|name| name == "web-search-dctcp"));
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
            (
                format!(
                    "{FABRIC}[workload]\nkind = \"flows\"\nflows = [{{ from = 0, to = 1, bytes = 1, start_ns = 0, spine = 2 }}]"
                ),
                "a.toml:4: workload: flow 1 of the list: there is no spine number 2; the fabric's 0 spines",
            ),
        ] {
            let error = parse(&text).unwrap().build(1).unwrap_err().to_string();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }
}
