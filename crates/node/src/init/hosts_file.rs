//! The file that says who is where, and faults that name its lines.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::NodeError;
use crate::settings_file;

/// The file.
pub(super) struct HostsFile {
    path: PathBuf,
    text: String,
}

/// A place in the file: a key, of a table of a list or of the file itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    /// The list's name, and which of its tables, from 0.
    table: Option<(&'static str, usize)>,
    key: &'static str,
}

impl At {
    pub(super) fn top(key: &'static str) -> Self {
        Self { table: None, key }
    }

    pub(super) fn of(list: &'static str, index: usize, key: &'static str) -> Self {
        Self { table: Some((list, index)), key }
    }
}

impl HostsFile {
    pub(super) fn read(path: &Path) -> Result<Self, NodeError> {
        let fault = |error: std::io::Error| NodeError::ConfigFile { path: path.to_owned(), why: error.to_string() };
        Ok(Self { path: path.to_owned(), text: std::fs::read_to_string(path).map_err(fault)? })
    }

    #[cfg(test)]
    pub(super) fn of_text(text: &str) -> Self {
        Self { path: "HOSTS.toml".into(), text: text.to_owned() }
    }

    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, NodeError> {
        settings_file::parse_toml(&self.path, &self.text)
    }

    /// What is wrong at a place.
    pub(super) fn fault(&self, at: At, why: impl std::fmt::Display) -> NodeError {
        let name = at.table.map_or_else(String::new, |(list, _)| format!("[[{list}]] "));
        let line = self.line(at).map_or_else(String::new, |line| format!("line {line}: "));
        NodeError::ConfigFile { path: self.path.clone(), why: format!("{line}{name}{}: {why}", at.key) }
    }

    /// The line of the key; of the table without it; none where the file does not have it either.
    fn line(&self, at: At) -> Option<usize> {
        let top = DeTable::parse(&self.text).ok()?;
        let start = match at.table {
            None => key_start(top.get_ref(), at.key)?,
            Some((list, index)) => {
                let DeValue::Array(tables) = entry(top.get_ref(), list)?.1.get_ref() else { return None };
                let table = tables.get(index)?;
                let DeValue::Table(keys) = table.get_ref() else { return None };
                key_start(keys, at.key).unwrap_or(table.span().start)
            }
        };
        Some(self.text[..start].matches('\n').count() + 1)
    }
}

fn entry<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<(usize, &'t Spanned<DeValue<'i>>)> {
    let mut entries = table.iter();
    entries.find(|(name, _)| name.get_ref().as_ref() == key).map(|(name, value)| (name.span().start, value))
}

fn key_start(table: &DeTable<'_>, key: &str) -> Option<usize> {
    entry(table, key).map(|(start, _)| start)
}
