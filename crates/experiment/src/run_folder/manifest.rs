//! What a reader must know to trust or repeat a run.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use time::macros::format_description;
use weft_scenario::workload::Workload;

use super::FolderError;
use crate::analysis::{TrialKey, TrialRecords};
use crate::plan::{Axis, Mode, Plan, PlanError, PlanSpec, SIM, Scale, Setting, SingleScenario, is_embedded};
use crate::runner::RunOptions;
use crate::summary::{SCHEMA_VERSION, StepTaken};

/// The text of a scenario in its run folder.
pub(crate) const SCENARIO_FILE: &str = "scenario.toml";
/// Explains [`Manifest::scale`] to readers of the file.
pub const SCALE_NOTE: &str = "rate: our link rates / the paper's; time: our seconds / the paper's";
/// Facts whose name begins so say at which hook of the kernel a program ran: `hook.vl2_encap.tc-egress`.
const HOOK_PREFIX: &str = "hook.";

/// The file `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Manifest {
    /// Version of these fields.
    pub schema_version: u32,
    pub weft_version: String,
    /// Git revision it was built from, if it was built in a checkout.
    pub git_revision: Option<String>,
    /// Digest of the program file, so that builds of one revision are told apart.
    #[serde(default)]
    pub program: Option<String>,
    /// The plan's short name.
    pub plan: String,
    /// Where the plan was read from.
    pub plan_origin: String,
    /// The plan's text, so that the folder can be read without it.
    pub plan_text: String,
    /// What ran in a few words, where the text is that of a scenario (`weft sim`), which is also in `scenario.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// What the command line laid over it: `--set KEY=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<Setting>,
    /// Which mode of it ran.
    pub mode: Mode,
    /// Which of its rates, where that was asked for or looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepTaken>,
    /// The engine, or those that are compared: `lab+sim`.
    pub engine: String,
    /// Seed of the first repetition; repetition i has this plus i.
    pub seed: u64,
    /// Whether the rows follow from plan, mode, engine, seed and version alone: not from the machine, the time or what else ran.
    #[serde(default)]
    pub reproducible: bool,
    /// How it was called.
    pub command_line: Vec<String>,
    /// When the run began.
    pub started_utc: String,
    /// When its last trial ended.
    pub finished_utc: Option<String>,
    pub machine: Machine,
    /// Load average over 1, 5 and 15 minutes when the run began.
    pub load_before: Option<[f64; 3]>,
    /// The same when its last trial ended.
    pub load_after: Option<[f64; 3]>,
    /// Our units over the paper's.
    pub scale: Scale,
    /// What [`Manifest::scale`] means.
    pub scale_note: String,
    /// Which hook each program ran at.
    pub hooks: BTreeMap<String, String>,
    /// Facts about each network, by overlay and place on the sweep, and about trials, by `trial.N`. A sweep's trials have
    /// theirs in `records/facts.csv` only.
    pub facts: BTreeMap<String, BTreeMap<String, f64>>,
    /// Sizes of the background flows of every workload that draws them from a distribution.
    #[serde(default)]
    pub flow_sizes: BTreeMap<String, FlowSizes>,
    /// The file of the network of every point of the sweep, in the plan's order.
    #[serde(default)]
    pub fabrics: Vec<String>,
}

/// Where a workload's flow sizes come from: a load means little without their mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FlowSizes {
    /// Mean of the distribution before [`FlowSizes::size_divisor`].
    pub mean_bytes: u64,
    /// By what sizes were divided.
    pub size_divisor: u32,
    /// Publication and reading.
    pub source: String,
}

impl FlowSizes {
    fn of(workload: &Workload) -> Option<Self> {
        let Workload::Traffic(traffic) = workload else { return None };
        let background = traffic.background.as_ref()?;
        let (mean_bytes, source) = (background.sizes.mean_bytes(), background.sizes.source().to_owned());
        Some(Self { mean_bytes, size_divisor: background.size_divisor, source })
    }
}

/// The machine that a run was made on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Machine {
    /// Operating system and kernel release.
    pub kernel: String,
    pub cpu_model: String,
    /// Cores that this process may use.
    pub cores: usize,
    pub memory_bytes: Option<u64>,
}

impl Manifest {
    /// A manifest for a run that begins now.
    pub fn new(plan: &Plan, spec: &PlanSpec, options: &RunOptions) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            weft_version: env!("CARGO_PKG_VERSION").to_owned(),
            git_revision: option_env!("WEFT_GIT_REVISION").map(str::to_owned),
            program: program_digest(),
            plan: spec.id.clone(),
            plan_origin: plan.origin().to_owned(),
            plan_text: plan.text().to_owned(),
            scenario: plan.scenario().map(str::to_owned),
            set: plan.settings().to_vec(),
            mode: options.mode,
            step: options.step.clone(),
            engine: spec.runs_on.clone(),
            seed: options.seed,
            reproducible: false,
            command_line: options.command_line.clone(),
            started_utc: now_utc(),
            finished_utc: None,
            machine: Machine::this(),
            load_before: load_average(),
            load_after: None,
            scale: spec.scale,
            scale_note: SCALE_NOTE.to_owned(),
            hooks: BTreeMap::new(),
            facts: BTreeMap::new(),
            flow_sizes: spec
                .workload
                .iter()
                .filter_map(|(name, workload)| Some((name.clone(), FlowSizes::of(workload)?)))
                .collect(),
            fabrics: Vec::new(),
        }
    }

    /// What a run folder holds.
    pub fn read(folder: &Path) -> Result<Self, FolderError> {
        let path = super::manifest_of(folder)?;
        let text = std::fs::read_to_string(&path).map_err(FolderError::io("read", &path))?;
        let malformed = |message: String| FolderError::Malformed { path: path.clone(), message };
        let manifest: Self = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        match manifest.schema_version {
            SCHEMA_VERSION => Ok(manifest),
            other => Err(malformed(format!("schema {other} is not {SCHEMA_VERSION}, which this weft reads"))),
        }
    }

    /// The plan as it ran; `None` if it does not run on the engine.
    pub fn spec(&self) -> Result<Option<PlanSpec>, PlanError> {
        if let Some(title) = &self.scenario {
            return SingleScenario::parse_kept(SCENARIO_FILE, &self.plan_text)
                .map(|scenario| Some(scenario.as_spec(title)));
        }
        let plan = Plan::parse_with(&self.plan, &self.plan_text, self.mode, &self.set)?;
        Ok(plan.at_step(self.mode, &self.engine, self.step_name()).cloned())
    }

    /// The step that ran; `None`: the plan's own rates.
    pub(crate) fn step_name(&self) -> Option<&str> {
        self.step.as_ref()?.name.as_deref()
    }

    /// What `weft run` finds the plan by: its name if it is one of weft's own, else its file.
    pub(crate) fn plan_word(&self) -> &str {
        if is_embedded(&self.plan, &self.plan_text) { &self.plan } else { &self.plan_origin }
    }

    /// The command that runs it again, of a scenario in its folder; `plan` is [`Manifest::plan_word`], or the file at another place.
    pub(crate) fn command(&self, plan: &str) -> Vec<String> {
        if self.scenario.is_some() {
            return ["weft", "sim", SCENARIO_FILE, "--seed", &self.seed.to_string()].map(str::to_owned).to_vec();
        }
        let mode = match self.mode {
            Mode::Quick => &["--quick"][..],
            Mode::Default => &[],
            Mode::Full => &["--full"],
        };
        let engine: &[&str] = if self.engine == SIM { &["--engine", SIM] } else { &[] };
        let seed = self.seed.to_string();
        let step: Vec<&str> = self.step_name().into_iter().flat_map(|name| ["--step", name]).collect();
        let words = [&["weft", "run", plan][..], engine, mode, &step, &["--seed", &seed]].concat();
        let set = self.set.iter().flat_map(|setting| ["--set".to_owned(), setting.to_string()]);
        words.into_iter().map(str::to_owned).chain(set).collect()
    }

    /// Adds what a session says about the network of a trial.
    pub fn add_facts(&mut self, axes: &[Axis], key: &TrialKey, facts: Vec<(String, f64)>) {
        let places = axes.iter().zip(&key.point).map(|(axis, label)| format!(" {}={label}", axis.name));
        let group = std::iter::once(key.overlay.name().to_owned()).chain(places).collect::<String>();
        self.add_to(&group, facts);
    }

    /// Adds the trials' facts, the time and the load at the end.
    pub fn finish(&mut self, trials: &[TrialRecords]) {
        for trial in trials.iter().filter(|trial| trial.key.point.is_empty()) {
            self.add_to(&format!("trial.{}", trial.key.trial), trial.records.facts.clone());
        }
        self.finished_utc = Some(now_utc());
        self.load_after = load_average();
    }

    fn add_to(&mut self, group: &str, facts: Vec<(String, f64)>) {
        for (name, value) in facts {
            match name.strip_prefix(HOOK_PREFIX).and_then(|rest| rest.rsplit_once('.')) {
                Some((program, hook)) => {
                    self.hooks.insert(format!("{group}: {program}"), hook.to_owned());
                }
                None if value.is_finite() => {
                    self.facts.entry(group.to_owned()).or_default().insert(name, value);
                }
                None => {}
            }
        }
    }
}

impl Machine {
    /// This machine, as far as it tells.
    pub fn this() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let line = |text: &str, key: &str| {
            let value = text.lines().find(|line| line.starts_with(key)).and_then(|line| line.split_once(':'));
            value.map(|(_, value)| value.trim().to_owned())
        };
        let memory_kib = line(&read("/proc/meminfo"), "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
        Self {
            kernel: format!("{} {}", std::env::consts::OS, read("/proc/sys/kernel/osrelease").trim()),
            cpu_model: line(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_kib.map(|kib: u64| kib * 1024),
        }
    }
}

/// A digest of the file of the program that runs; `None` where it cannot be read.
pub(crate) fn program_digest() -> Option<String> {
    use std::hash::Hasher;
    let program = std::fs::read(std::env::current_exe().ok()?).ok()?;
    let mut hasher = siphasher::sip::SipHasher13::new();
    hasher.write(&program);
    Some(format!("{:016x}", hasher.finish()))
}

/// The three load averages, where the system has them.
pub(crate) fn load_average() -> Option<[f64; 3]> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let mut numbers = text.split(' ').map_while(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

/// Now, as `2026-01-31T13:05:09Z`.
pub(crate) fn now_utc() -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    time::OffsetDateTime::now_utc().format(format).expect("every part of the format is in a date and time")
}
