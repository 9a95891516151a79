//! The text of a plan or a scenario with the settings that are laid over it, and where in both something is wrong.

use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Misplaced, Mistake, PlanError};
use super::library;
use super::setting::{self, Setting};
use super::shape::Shape;

/// A text that is read, and what is laid over it.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// What messages call it.
    pub(super) origin: String,
    pub(super) text: String,
    settings: Vec<Setting>,
    /// The value of each setting as TOML.
    values: Vec<String>,
    /// Whether people have written the text, so that its lines say something to them.
    is_written: bool,
}

impl Source {
    pub(super) fn new(origin: &str, text: &str, settings: &[Setting], shape: &Shape) -> Self {
        let document = DeTable::parse_recoverable(text).0;
        let values = settings.iter().map(|setting| setting.toml(shape, document.get_ref())).collect();
        Self { origin: origin.to_owned(), text: text.to_owned(), settings: settings.to_vec(), values, is_written: true }
    }

    /// A text that was made of a command line.
    pub(super) fn made(origin: &str, text: &str, settings: &[Setting], shape: &Shape) -> Self {
        Self { is_written: false, ..Self::new(origin, text, settings, shape) }
    }

    /// The folder that files are named from: that of the text, if it is a file's.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        library::folder_of(&self.origin)
    }

    pub(super) fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The document without its settings.
    pub(super) fn document(&self) -> Result<Spanned<DeTable<'_>>, Misplaced> {
        Ok(DeTable::parse(&self.text)?)
    }

    /// Everything that is wrong with the text as TOML.
    pub(super) fn syntax(&self) -> Vec<Misplaced> {
        if let Some(at) = yaml_at(&self.text)
            && DeTable::parse(&self.text).is_err()
        {
            let message = "this is YAML, as fabrics are; plans and scenarios are TOML, and name a fabric: \
                           `[fabric] file = \"FILE.yaml\"`";
            return vec![Misplaced::at(at, message)];
        }
        DeTable::parse_recoverable(&self.text).1.into_iter().map(Misplaced::from).collect()
    }

    /// Lays all settings over a document of the text.
    pub(super) fn lay_over<'a>(&'a self, document: &mut DeTable<'a>, shape: &Shape) -> Result<(), Misplaced> {
        for (number, setting) in self.settings.iter().enumerate() {
            setting.apply(document, self.value(number)?, shape)?;
        }
        Ok(())
    }

    /// Refuses settings that the document does not show where they were laid over it.
    pub(super) fn refuse_hidden(
        &self,
        document: &DeTable<'_>,
        why: &dyn Fn(&Setting) -> String,
    ) -> Result<(), Misplaced> {
        let is_hidden = |number: usize, setting: &Setting| {
            let path = setting.path();
            let is_left_out = match (path, document.get("workloads").and_then(|list| list.get_ref().as_array())) {
                ([first, name, ..], Some(list)) if first == "workload" => {
                    !list.iter().any(|one| one.get_ref().as_str() == Some(name.as_str()))
                }
                _ => false,
            };
            path.first().is_some_and(|first| first != "sweep")
                && (is_left_out || value_at(document, path).is_none_or(|value| value.span() != self.span(number)))
        };
        self.refuse_setting(&is_hidden, why)
    }

    /// Refuses the first setting, of those with their numbers, that is wrong for a reason.
    pub(super) fn refuse_setting(
        &self,
        is_wrong: &dyn Fn(usize, &Setting) -> bool,
        why: &dyn Fn(&Setting) -> String,
    ) -> Result<(), Misplaced> {
        let found = self.settings.iter().enumerate().find(|(number, setting)| is_wrong(*number, setting));
        found.map_or(Ok(()), |(number, setting)| {
            Err(Misplaced::at(self.span(number), why(setting)).with_key(setting.path()))
        })
    }

    fn value(&self, number: usize) -> Result<Spanned<DeValue<'_>>, Misplaced> {
        let span = self.span(number);
        let value = DeValue::parse(&self.values[number]);
        let value = value.map_err(|error| Misplaced { span: Some(span.clone()), ..Misplaced::from(error) })?;
        Ok(setting::moved(value, &span))
    }

    /// The place of a setting: behind the text, in the order of the settings.
    fn span(&self, number: usize) -> Range<usize> {
        let start = self.text.len() + 1 + number;
        start..start
    }

    /// The mistake as people read it.
    pub(super) fn mistake(&self, wrong: Misplaced) -> Mistake {
        let Misplaced { message, span, key } = wrong;
        // Keys may hold anything, and a mistake is a line.
        let line = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let place = match span.as_ref().map(|span| (span.start, span.start.checked_sub(self.text.len() + 1))) {
            None => self.origin.clone(),
            Some((_, Some(number))) if number < self.settings.len() => format!("--set {}", self.settings[number]),
            Some(_) if !self.is_written => self.origin.clone(),
            Some((start, _)) => {
                let before = self.text.get(..start.min(self.text.len())).unwrap_or(&self.text);
                let line = before.matches('\n').count() + 1;
                let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
                format!("{}:{line}:{column}", self.origin)
            }
        };
        Mistake { place, key: line(&key.join(".")), message: line(&message) }
    }

    /// All mistakes, in the order of the text.
    pub(super) fn refusal(&self, mut found: Vec<Misplaced>) -> PlanError {
        found.sort_by_key(|wrong| wrong.span.as_ref().map_or(0, |span| span.start));
        PlanError::Mistakes(found.into_iter().map(|wrong| self.mistake(wrong)).collect())
    }
}

/// Where a text begins, if it begins as YAML does: with a key and a colon, or with the line between documents.
fn yaml_at(text: &str) -> Option<Range<usize>> {
    let lines = text.lines().map(str::trim_end);
    let first = lines.clone().find(|line| !line.is_empty() && !line.trim_start().starts_with('#'))?;
    let is_key = |key: &str| !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    let (key, rest) = first.split_once(':').unwrap_or(("", ""));
    let is_yaml = first == "---" || (is_key(key) && (rest.is_empty() || rest.starts_with(' ')));
    let at = text.find(first)?;
    is_yaml.then_some(at..at + first.len())
}

fn value_at<'b, 'a>(document: &'b DeTable<'a>, path: &[String]) -> Option<&'b Spanned<DeValue<'a>>> {
    let (first, rest) = path.split_first()?;
    let mut here = document.get(first.as_str())?;
    for key in rest {
        here = match here.get_ref() {
            DeValue::Array(list) => super::place::of_list(list, key)?,
            other => other.get(key.as_str())?,
        };
    }
    Some(here)
}
