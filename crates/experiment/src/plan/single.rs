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
use weft_scenario::workload::{Workload, WorkloadError};

use super::diagnosis::{self, Found, Mended};
use super::effect::Effects;
use super::error::{Misplaced, Problem};
use super::source::Source;
use super::{
    Claim, Mode, Plan, PlanError, PlanSpec, Point, QuestionSet, SIM, Sampling, Setting, fabric_text, merge, place,
    settings, shape, validate,
};
use crate::run_folder::fabric_file;

/// Networks with more links are not built to find out what is wrong with the rest.
const LARGE: u64 = 100_000;
/// Keys that only plans have.
const PLAN_KEYS: [&str; 3] = ["analysis", "claims", "engines"];

/// A scenario and what happens on it, not yet checked against its network.
#[derive(Clone, Debug)]
pub struct SingleScenario {
    /// Name of the workload in records.
    pub workload_name: String,
    tables: Tables,
    source: Source,
    /// The scenario as a document, with what was laid over it and the workload under its name.
    document: toml::Table,
    /// The folder that files are named from.
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
        Self::parse_with(origin, text, &[], None)
    }

    /// Reads a scenario that ran, from its text in a run folder. Its network is in the folder too and is not built, so an error is the
    /// first mistake of the text.
    pub(crate) fn parse_kept(origin: &str, text: &str) -> Result<Self, PlanError> {
        let source = Source::new(origin, text, &[], &shape::SCENARIO);
        read(&source, None).map_err(|first| source.refusal(vec![first]))
    }

    /// Reads a scenario with settings that are laid over it, and on another network if there is one: the word for it, and the network; a
    /// file is named by a path from the current folder.
    pub fn parse_with(
        origin: &str,
        text: &str,
        settings: &[Setting],
        network: Option<(&str, FabricSpec)>,
    ) -> Result<Self, PlanError> {
        Self::of(&Source::new(origin, text, settings, &shape::SCENARIO), network.as_ref())
    }

    fn of(source: &Source, network: Option<&Named<'_>>) -> Result<Self, PlanError> {
        read(source, network).map_err(|first| mistakes(source, network, first))
    }

    /// A workload on a network with everything else as it is by default, or as settings have it. The network is what
    /// [`parse_with`](Self::parse_with) takes.
    pub fn on_fabric(
        (word, fabric): (&str, FabricSpec),
        overlay: Overlay,
        (name, workload): (&str, Workload),
        sampling: SingleSampling,
        settings: &[Setting],
    ) -> Result<Self, PlanError> {
        let (switching, transport) = (Switching::default(), Transport::default());
        let mut document = toml::Table::new();
        let mut put = |key: &str, value: Result<toml::Value, toml::ser::Error>| {
            document.insert(key.to_owned(), value.expect("what a command line can say, a file can"));
        };
        put("overlay", toml::Value::try_from(overlay));
        put("fabric", Ok(named("file", word.into())));
        put("workload", toml::Value::try_from(&workload).map(|workload| named(name, workload)));
        put("sampling", toml::Value::try_from(&sampling));
        if !settings.is_empty() {
            let text = toml::to_string(&document).expect("it is a document");
            return Self::of(&Source::made(word, &text, settings, &shape::SCENARIO), Some(&(word, fabric)));
        }
        let tables = Tables { overlay, fabric, switching, transport, workload, fault: Vec::new(), sampling };
        let source = Source::made(word, "", &[], &shape::SCENARIO);
        let (workload_name, folder) = (name.to_owned(), Some(PathBuf::new()));
        Ok(Self { workload_name, tables, source, document, folder, named_outside: true })
    }

    /// How large the network will be, where that can be told before it is built; what makes none, and what cannot be sent there, is refused.
    pub fn size(&self) -> Result<Option<FabricSize>, PlanError> {
        let size = self.tables.fabric.size();
        let size = size.map_err(|error| self.refusal(vec![Problem::new(error.to_string(), "fabric")]))?;
        let servers = size.as_ref().map(|size| u32::try_from(size.servers).unwrap_or(u32::MAX));
        match servers.map(|servers| self.check_workload(servers)).unwrap_or_default() {
            problems if problems.is_empty() => Ok(size),
            _ => Err(self.refusal(self.problems())),
        }
    }

    fn refusal(&self, problems: Vec<Problem>) -> PlanError {
        let document = document(&self.source, None).map(|(_, document)| document).ok();
        let placed = |problem: &Problem| match &document {
            Some(document) => place::placed(document.get_ref(), problem),
            None => Misplaced::nowhere(problem.message.clone()),
        };
        self.source.refusal(problems.iter().map(placed).collect())
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
        let tables = &self.tables;
        let (fabric, addresses) = self.network().map_err(|problems| self.refusal(problems))?;
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

    /// Everything that does not fit the network, which is built for it unless it is large.
    fn problems(&self) -> Vec<Problem> {
        match self.tables.fabric.size() {
            Err(error) => vec![Problem::new(error.to_string(), "fabric")],
            Ok(Some(size)) if size.links > LARGE => {
                let transport = self.tables.transport.check();
                let mut problems = self.check_workload(u32::try_from(size.servers).unwrap_or(u32::MAX));
                problems.extend(transport.map_err(|error| Problem::new(error.to_string(), "transport")).err());
                problems
            }
            Ok(_) => self.network().err().unwrap_or_default(),
        }
    }

    fn check_workload(&self, servers: u32) -> Vec<Problem> {
        let SingleSampling { interval, tcp_interval, time_limit } = self.tables.sampling;
        let workload = self.tables.workload.check(servers).map_err(wrong_workload).err();
        workload.into_iter().chain(validate::check_times(interval, tcp_interval, time_limit)).collect()
    }

    /// The network with its addresses, if everything else fits it and every setting has an effect there.
    fn network(&self) -> Result<(Fabric, AddressPlan), Vec<Problem>> {
        let tables = &self.tables;
        let wrong = |message: String| vec![Problem::new(message, "fabric")];
        let text = |name: &str| fabric_text(name, self.folder.as_deref());
        let fabric = tables.fabric.build(&text).map_err(|error| wrong(error.to_string()))?;
        let mut problems = validate::check_network(&fabric, &tables.transport, &tables.switching, &tables.fault);
        problems.extend(self.check_workload(fabric.servers().count() as u32));
        let spines = tables.workload.check_spines(fabric.with_role(Role::Spine).count());
        problems.extend(spines.map_err(wrong_workload).err());
        if problems.is_empty() {
            problems = self.check_effects(&fabric);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let addresses = AddressPlan::new(&fabric, AddressingOptions::default());
        let addresses = addresses.map_err(|error| wrong(error.to_string()))?;
        Ok((fabric, addresses))
    }

    /// Settings that have no effect in the simulator.
    fn check_effects(&self, fabric: &Fabric) -> Vec<Problem> {
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
        let mut problems = effects.note((0, 0), case.findings());
        problems.extend(effects.idle().map(|(_, problem)| problem));
        // The document has the one workload without its name.
        for problem in problems.iter_mut().filter(|problem| problem.path.starts_with(&["workload".to_owned()])) {
            problem.path.remove(1);
        }
        problems
    }
}

fn wrong_workload(error: WorkloadError) -> Problem {
    Problem::new(format!("workload: {error}"), &path_of(&error))
}

/// The table that is to blame for what is wrong with the workload.
fn path_of(error: &WorkloadError) -> String {
    match error {
        WorkloadError::Service { service, .. } => format!("workload.service.{service}"),
        WorkloadError::Flow { number, .. } => format!("workload.flows.{}", number - 1),
        _ => "workload".to_owned(),
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
            source: Source::made(&self.source.origin, &self.complete_text(), &[], &shape::SCENARIO),
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

/// A network that the command line names, and the word for it.
type Named<'a> = (&'a str, FabricSpec);

fn read(source: &Source, network: Option<&Named<'_>>) -> Result<SingleScenario, Misplaced> {
    let (workload_name, document) = document(source, network)?;
    let mut single = of_document(source, workload_name, document.clone(), network)?;
    let mut whole: toml::Table = Deserialize::deserialize(toml::de::Deserializer::from(document))?;
    if let Some(workload) = whole.remove("workload") {
        whole.insert("workload".to_owned(), named(&single.workload_name, workload));
    }
    if let Some((word, _)) = network {
        whole.insert("fabric".to_owned(), named("file", (*word).into()));
    }
    single.document = whole;
    Ok(single)
}

/// The scenario of a document, which it does not keep.
fn of_document(
    source: &Source,
    workload_name: String,
    document: Spanned<DeTable<'_>>,
    network: Option<&Named<'_>>,
) -> Result<SingleScenario, Misplaced> {
    let mut tables = Tables::deserialize(toml::de::Deserializer::from(document))?;
    let folder = match network {
        Some((_, fabric)) => {
            tables.fabric = fabric.clone();
            Some(PathBuf::new())
        }
        None => source.folder(),
    };
    let (source, document, named_outside) = (source.clone(), toml::Table::new(), network.is_some());
    Ok(SingleScenario { workload_name, tables, source, document, folder, named_outside })
}

/// The document as it is read, and the workload's name.
fn document<'a>(source: &'a Source, network: Option<&Named<'_>>) -> Result<(String, Spanned<DeTable<'a>>), Misplaced> {
    let mut document = source.document()?;
    if let Some(key) = document.get_ref().keys().find(|key| PLAN_KEYS.contains(&key.get_ref().as_ref())) {
        let message = format!("`{}` belongs to a plan; run plans with `weft run`", key.get_ref());
        return Err(Misplaced::at(key.span(), message));
    }
    let name = name_workload(&mut document)?;
    source.lay_over(document.get_mut(), &shape::SCENARIO)?;
    if let Some((word, _)) = network {
        let of_fabric = |_, setting: &Setting| setting.path()[0] == "fabric";
        let why = |setting: &Setting| {
            format!("`{}` has no effect: the command line names the network `{word}`", setting.key())
        };
        source.refuse_setting(&of_fabric, &why)?;
    }
    Ok((name, document))
}

/// Everything that is wrong with a scenario's text, its network included; the first is known.
fn mistakes(source: &Source, network: Option<&Named<'_>>, first: Misplaced) -> PlanError {
    let mut found = Found::default();
    found.extend(source.syntax());
    if let (true, Ok((name, document))) = (found.is_empty(), document(source, network)) {
        let of_document = |document| of_document(source, name.clone(), document, network);
        let read = |document| of_document(document).map(drop);
        let mended = diagnosis::mend(document, &shape::SCENARIO, &read, &mut found);
        if let Some(mended) = mended.filter(Mended::has_fabric)
            && let Ok(single) = of_document(mended.document.clone())
        {
            let problems = single.problems();
            let placed = problems.iter().map(|problem| place::placed(mended.document.get_ref(), problem));
            found.extend(placed.filter(|wrong| !mended.doubts(wrong)).collect::<Vec<_>>());
        }
    }
    if found.is_empty() {
        found.extend([first]);
    }
    source.refusal(found.into_all())
}

/// The name of the one workload; puts `[workload.NAME]` in the place of `[workload]`.
fn name_workload(document: &mut Spanned<DeTable<'_>>) -> Result<String, Misplaced> {
    let entry = document.get_ref().get_key_value("workload");
    let (heading, whole) = entry.map_or((0..0, 0..0), |(key, value)| (key.span(), value.span()));
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
    document.get_mut().insert(Spanned::new(heading, "workload".into()), value);
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
        let problems = crate::plan::questions::check(&spec);
        assert!(problems.is_empty(), "{problems:?}");
        assert!(spec.metric_of("mean_fct_ms").is_some() && spec.figures.len() >= 2, "{:?}", spec.figures);
        assert_eq!((spec.points.len(), spec.workload.len(), spec.title.as_str()), (1, 1, "t"));
    }

    #[test]
    fn the_complete_text_says_the_same_on_the_network_beside_it() {
        let flow = FlowSpec { spine: Some(1), ..FlowSpec::bulk(0, 2, 14_600, 5) };
        let sampling = SingleSampling { tcp_interval: Some(Nanos(5)), ..SingleSampling::default() };
        let on_fabric = |workload| {
            let network = ("leaf-spine-small", FabricSpec::File("leaf-spine-small".to_owned()));
            SingleScenario::on_fabric(network, Overlay::RBRIDGE, ("mine", workload), sampling.clone(), &[]).unwrap()
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
            (format!("{FABRIC}[workload]\n{WORKLOAD}colour = 1\n"), "a.toml:8:1: unknown field `colour`"),
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
            (good.replace("shift = 1", "shift = 4"), "a.toml:7:1: workload: `shift` is 4"),
            (format!("{good}[transport]\ninitial_window = 0\n"), "a.toml:9:1: `initial_window`"),
            (format!("{good}[switching]\necn_threshold = \"0 B\"\n"), "a.toml:9:1: `ecn_threshold`"),
            (format!("{good}[sampling]\ninterval = \"0 s\"\n"), "a.toml:9:1: `interval` of `sampling` is a time of 0"),
            (good.replace("servers = 4", "servers = 0"), "a.toml:3:1: "),
            (
                format!(
                    "{FABRIC}[workload]\nkind = \"flows\"\nflows = [{{ from = 0, to = 1, bytes = 1, start_ns = 0, spine = 2 }}]"
                ),
                "a.toml:6:10: `workload.flows.0`: workload: flow 1 of the list: there is no spine number 2; the fabric's 0 spines",
            ),
        ] {
            let error = parse(&text).unwrap().build(1).unwrap_err().to_string();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }
}
