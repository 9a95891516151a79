//! Why a plan is refused: one line each, with the place.

use std::ops::Range;
use std::path::PathBuf;

/// Why a plan could not be loaded.
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
    /// Not TOML, an unknown key, a missing key or a value of the wrong kind.
    #[error("{place}: {message}")]
    Syntax {
        /// `file:line:column`.
        place: String,
        /// What is wrong there.
        message: String,
    },
    /// A plan that could be read but makes no sense.
    #[error("{place}: {message}")]
    Invalid {
        /// `file`, or `file:line` where a line is to blame.
        place: String,
        /// What is wrong and what to do.
        message: String,
    },
}

/// What validation found: the message, and a text that marks the line to blame.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) message: String,
    pub(super) marker: Option<String>,
    /// Strings that the table below the line holds, where several tables have such a line.
    pub(super) holds: Vec<String>,
    /// The heading that the line is below.
    pub(super) below: String,
}

impl Problem {
    pub(super) fn new(message: impl Into<String>, marker: Option<String>) -> Self {
        Self { message: message.into(), marker, holds: Vec::new(), below: String::new() }
    }

    /// What is wrong with a claim.
    pub(super) fn of_claim(id: &str, message: impl Into<String>) -> Self {
        Self { below: "claims]]".to_owned(), ..Self::new(message, Some(format!("\"{id}\""))) }
    }

    /// The number of the line to blame, from 0.
    fn line(&self, text: &str) -> Option<usize> {
        let marker = self.marker.as_deref()?;
        let lines: Vec<&str> = text.lines().collect();
        let holds = |from: usize| {
            let table: Vec<&str> =
                lines[from + 1..].iter().copied().take_while(|line| !line.starts_with('[')).collect();
            self.holds.iter().all(|name| table.iter().any(|line| line.contains(&format!("\"{name}\""))))
        };
        let heading = lines.iter().position(|line| line.contains(&self.below)).unwrap_or(0);
        (heading..lines.len()).find(|line| lines[*line].contains(marker) && holds(*line))
    }
}

/// What reading found, with the bytes of the text to blame.
#[derive(Debug)]
pub(super) struct Misplaced {
    message: String,
    span: Option<Range<usize>>,
}

impl Misplaced {
    pub(super) fn at(span: Range<usize>, message: String) -> Self {
        Self { message, span: Some(span) }
    }

    /// Where no single place is to blame.
    pub(super) fn nowhere(message: String) -> Self {
        Self { message, span: None }
    }
}

impl From<toml::de::Error> for Misplaced {
    fn from(error: toml::de::Error) -> Self {
        let message = error.message().lines().map(str::trim).collect::<Vec<_>>().join("; ");
        Self { message, span: error.span() }
    }
}

impl PlanError {
    pub(super) fn misplaced(origin: &str, text: &str, wrong: &Misplaced) -> Self {
        let place = match &wrong.span {
            Some(span) => {
                let before = &text[..span.start.min(text.len())];
                let line = before.matches('\n').count() + 1;
                let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
                format!("{origin}:{line}:{column}")
            }
            None => origin.to_owned(),
        };
        Self::Syntax { place, message: wrong.message.clone() }
    }

    pub(super) fn invalid(origin: &str, text: &str, problem: Problem) -> Self {
        let place = problem.line(text).map_or_else(|| origin.to_owned(), |line| format!("{origin}:{}", line + 1));
        Self::Invalid { place, message: problem.message }
    }
}
