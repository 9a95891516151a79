//! Why a plan or a scenario is refused: every mistake with its place and its key.

use std::ops::Range;
use std::path::PathBuf;

/// Why a plan or a scenario could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No file and no embedded plan has the name.
    #[error("no plan called `{name}`; {advice}")]
    NotFound {
        /// What was asked for.
        name: String,
        /// The nearest embedded plans, or all.
        advice: String,
    },
    /// The file cannot be read.
    #[error("cannot read plan {}: {source}", path.display())]
    Read {
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// All that is wrong in a file or in settings of the command line, in the order of the file; at least one mistake.
    #[error("{}", told(.0))]
    Mistakes(Vec<Mistake>),
}

/// Something that is wrong in a file that people write.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mistake {
    /// `file:line:column`, only the file where no line is to blame, or `--set KEY=VALUE`.
    pub place: String,
    /// The key to blame, with its tables: `workload.all.shift`. Empty where no key is.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = self.key.rsplit('.').next().unwrap_or_default();
        let names = |key: &str| [format!("`{key}`"), format!(".{key}`")].iter().any(|name| self.message.contains(name));
        // Of a member the name says more than the key `id`.
        let member = self.key.strip_suffix(".id").and_then(|key| Some(key.split_once('.')?.1));
        match self.key.is_empty() || names(last) || member.is_some_and(names) {
            true => write!(f, "{}: {}", self.place, self.message),
            false => write!(f, "{}: `{}`: {}", self.place, self.key, self.message),
        }
    }
}

/// One mistake on a line of its own; several below a line that counts them.
fn told(mistakes: &[Mistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    match lines.len() {
        1 => lines.concat(),
        count => format!("{count} mistakes:\n  {}", lines.join("\n  ")),
    }
}

/// What validation found: the message, and where the blame lies.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) message: String,
    /// Keys that lead there; members of lists by their `id` or their number from 0. A table's key that the message names is to blame
    /// more closely.
    pub(super) path: Vec<String>,
    /// The number of the point of the sweep, from 0.
    pub(super) point: usize,
    /// The axis of the sweep that lacks what the message is about: where the command line set it, that is to blame.
    pub(super) axis: Option<String>,
}

impl Problem {
    /// A problem at a dotted path; empty where no place is to blame.
    pub(super) fn new(message: impl Into<String>, path: &str) -> Self {
        let path = path.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect();
        Self { message: message.into(), path, point: 0, axis: None }
    }

    /// A problem at a key of a member of a list of tables with an `id`.
    pub(super) fn of(list: &str, id: &str, key: &str, message: impl Into<String>) -> Self {
        Self { path: [list, id, key].map(str::to_owned).to_vec(), ..Self::new(message, "") }
    }
}

/// What reading found, with the bytes of the text to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misplaced {
    pub(super) message: String,
    pub(super) span: Option<Range<usize>>,
    /// The key with its tables.
    pub(super) key: Vec<String>,
}

impl Misplaced {
    pub(super) fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { message: message.into(), span: Some(span), key: Vec::new() }
    }

    /// Where no single place is to blame.
    pub(super) fn nowhere(message: impl Into<String>) -> Self {
        Self { message: message.into(), span: None, key: Vec::new() }
    }

    pub(super) fn with_key(self, key: &[String]) -> Self {
        Self { key: key.to_vec(), ..self }
    }
}

impl From<toml::de::Error> for Misplaced {
    fn from(error: toml::de::Error) -> Self {
        let message = error.message().lines().map(str::trim).collect::<Vec<_>>().join("; ");
        Self { message, span: error.span(), key: Vec::new() }
    }
}
