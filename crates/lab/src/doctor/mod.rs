//! What this machine can and cannot do for a lab: one line per check, each with the remedy.

mod capability;
mod cards;
mod judge;
mod kernel;
mod machine;
mod needs;
mod overlay;
mod path;
mod require;
mod selfcheck;
mod transfer;
mod tunnel;
mod uses;

use serde::Serialize;
use weft_scenario::judge::Verdict;

use capability::{Capability, Row};

pub use path::path_checks;
pub(crate) use require::require;
pub use require::require_use;
pub use uses::Use;

/// One line of `weft doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// As it should be, worth knowing ([`Verdict::Info`]), or what needs it cannot be done.
    pub verdict: Verdict,
    pub found: String,
    /// What to do; empty if nothing.
    pub remedy: String,
    /// What cannot be done if this fails.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub needed_by: &'static [Use],
}

impl Check {
    pub(crate) fn ok(name: &str, found: impl Into<String>) -> Self {
        Self::new(name, Verdict::Pass, found, "")
    }

    pub(crate) fn warn(name: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(name, Verdict::Info, found, remedy)
    }

    pub(crate) fn fail(name: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(name, Verdict::Fail, found, remedy)
    }

    fn new(name: &str, verdict: Verdict, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.into(), verdict, found: found.into(), remedy: remedy.into(), needed_by: &[] }
    }

    /// A capability is there.
    fn has(row: &Row, found: impl Into<String>) -> Self {
        Self { needed_by: row.needed_by, ..Self::ok(row.name, found) }
    }

    /// A capability is not there.
    fn lacks(row: &Row, found: impl Into<String>) -> Self {
        Self { needed_by: row.needed_by, ..Self::fail(row.name, found, row.remedy) }
    }

    /// The same by the capability's name.
    fn of(capability: Capability, there: bool, found: impl Into<String>) -> Self {
        let row = capability::row(capability);
        if there { Self::has(row, found) } else { Self::lacks(row, found) }
    }
}

/// Whether something can be done here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Possible {
    #[serde(rename = "use")]
    pub what: Use,
    /// As people call it.
    pub name: &'static str,
    /// Whether it can be done.
    pub possible: bool,
    /// Names of the checks that say no.
    pub because: Vec<String>,
}

/// What `weft doctor` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was looked at.
    pub checks: Vec<Check>,
    /// What follows from it.
    pub uses: Vec<Possible>,
}

impl Report {
    /// Puts first what came of a try of the simulator: what it did, or why it failed.
    pub fn with_simulator(mut self, outcome: Result<String, String>) -> Self {
        const NAME: &str = "simulator";
        let check = match outcome {
            Ok(found) => Check::ok(NAME, found),
            Err(why) => Check::fail(NAME, why, "please report it"),
        };
        self.checks.insert(0, Check { needed_by: &[Use::Simulator], ..check });
        self.uses = possible(&self.checks);
        self
    }

    /// Whether weft is of use to this user: as root where a lab of any kind can run, else where the simulator works.
    pub fn is_fit(&self) -> bool {
        let simulates = self.uses.iter().any(|one| one.possible && one.what == Use::Simulator);
        if is_root() { self.some_lab_can_run() } else { simulates }
    }

    /// Whether a lab of any kind can run here.
    pub fn some_lab_can_run(&self) -> bool {
        self.uses.iter().any(|one| one.possible && Use::LABS.contains(&one.what))
    }
}

/// Whether this process may do what root may, as far as it is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Looks at everything. Changes nothing that stays.
pub fn examine() -> Report {
    let checks = machine::checks();
    Report { uses: possible(&checks), checks }
}

/// What can be done if these checks are all there is to say.
fn possible(checks: &[Check]) -> Vec<Possible> {
    let failed = |what: Use| {
        checks.iter().filter(move |check| check.verdict == Verdict::Fail && check.needed_by.contains(&what))
    };
    let judge = |what: &Use| {
        let because: Vec<String> = failed(*what).map(|check| check.name.clone()).collect();
        Possible { what: *what, name: what.name(), possible: because.is_empty(), because }
    };
    Use::ALL.iter().map(judge).collect()
}
