//! Settings files of all daemons, in TOML: read, with errors on one line, and written.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::warn;

use crate::agent::AgentConfig;
use crate::directory::DirectoryConfig;
use crate::error::NodeError;
use crate::rbridge::RBridgeConfig;
use crate::runner::{DaemonKind, Settings};
use crate::switch::SwitchConfig;
use crate::tor::TorConfig;
use crate::vtep::VtepConfig;

/// Keys by their names of before, which are read for one release more.
const RENAMED: [(&str, &str); 2] = [("status_socket", "socket"), ("tenant", "service")];

/// Reads a file; [`NodeError::ConfigFile`] names the line. JSON, which some daemons took before, and old names of keys are still
/// read.
///
/// # Errors
/// [`NodeError::ConfigFile`] on one line.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, NodeError> {
    let fault = |error: std::io::Error| NodeError::ConfigFile { path: path.to_owned(), why: error.to_string() };
    parse(path, &std::fs::read_to_string(path).map_err(fault)?)
}

/// The settings that a file of this text has.
fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, NodeError> {
    let fault = |why: String| NodeError::ConfigFile { path: path.to_owned(), why };
    for (old, new) in RENAMED {
        let is_key = |line: &str| line.trim_start().trim_start_matches('"').starts_with(old);
        if text.lines().any(is_key) {
            warn!("{}: `{old}` will not be read in the next release; it is `{new}` now", path.display());
        }
    }
    // No TOML begins with a brace.
    if text.trim_start().starts_with('{') {
        let settings = serde_json::from_str(text).map_err(|error| fault(on_one_line(&error.to_string())))?;
        warn!(
            "{}: JSON will not be read in the next release; write the settings as TOML (see --print-example)",
            path.display()
        );
        return Ok(settings);
    }
    parse_toml(path, text)
}

/// What a file of this text has; a fault names its line.
pub(crate) fn parse_toml<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, NodeError> {
    let fault = |error| NodeError::ConfigFile { path: path.to_owned(), why: with_line(&error, text) };
    toml::from_str(text).map_err(fault)
}

/// Settings as the daemon would take them that is given a file of this text, and checked as far as that needs nothing but them; as
/// the text of a file again.
///
/// # Errors
/// [`NodeError::ConfigFile`] and what the daemon would say of a value, on one line.
pub fn judge(kind: DaemonKind, text: &str) -> Result<String, NodeError> {
    match kind {
        DaemonKind::Agent => judge_as::<AgentConfig>(text),
        DaemonKind::Directory => judge_as::<DirectoryConfig>(text),
        DaemonKind::Switch => judge_as::<SwitchConfig>(text),
        DaemonKind::Tor => judge_as::<TorConfig>(text),
        DaemonKind::Vtep => judge_as::<VtepConfig>(text),
        DaemonKind::Rbridge => judge_as::<RBridgeConfig>(text),
    }
}

fn judge_as<T: Settings + DeserializeOwned>(text: &str) -> Result<String, NodeError> {
    let settings: T = parse(Path::new("settings"), text)?;
    settings.check_alone()?;
    Ok(to_text(&settings))
}

/// The text of a file with these settings.
///
/// # Panics
/// If a table has keys that are not text; no settings have.
pub fn to_text<T: Serialize>(settings: &T) -> String {
    toml::to_string(settings).expect("the tables have no keys that are not text")
}

/// A TOML error names its line and quotes it over several; here it is one line, with the key if it is about a value.
fn with_line(error: &toml::de::Error, text: &str) -> String {
    let message = on_one_line(error.message());
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else { return message };
    let line = before.matches('\n').count() + 1;
    key_before(before).map_or_else(|| format!("line {line}: {message}"), |key| format!("line {line}: {key}: {message}"))
}

/// The key whose value begins where this text ends.
fn key_before(text: &str) -> Option<&str> {
    let is_of_key = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let key = text.trim_end_matches(' ').strip_suffix('=')?.trim_end();
    key.rsplit(|end| !is_of_key(end)).next()
}

/// Keys in a file may have anything in them.
fn on_one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the kernel would take this as an interface's name; `field` is the setting.
pub(crate) fn check_interface(field: &'static str, name: &str) -> Result<(), NodeError> {
    if name.is_empty() || name.len() > 15 || name.contains(['/', ' ']) || name.starts_with('-') {
        return Err(NodeError::config(field, format!("`{name}` is no interface name (1 to 15 bytes)")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text<T: DeserializeOwned>(text: &str) -> Result<T, NodeError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path())
    }

    fn comes_back<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(settings: &T) {
        assert_eq!(&read_text::<T>(&to_text(settings)).unwrap(), settings);
        assert_eq!(&read_text::<T>(&serde_json::to_string_pretty(settings).unwrap()).unwrap(), settings, "as JSON");
    }

    #[test]
    fn what_is_written_is_read() {
        comes_back(&AgentConfig::example());
        comes_back(&DirectoryConfig::example());
        comes_back(&SwitchConfig::example());
        comes_back(&TorConfig::example());
    }

    #[test]
    fn settings_are_judged_without_a_machine() {
        let good = to_text(&RBridgeConfig::example());
        assert_eq!(judge(DaemonKind::Rbridge, &good).unwrap(), good);
        let error = judge(DaemonKind::Rbridge, &good.replace("nickname = 257", "nickname = 0")).unwrap_err();
        assert!(error.to_string().contains("nickname"), "{error}");
        assert!(judge(DaemonKind::Vtep, &good).is_err(), "those of another daemon");
    }

    #[test]
    fn old_names_of_keys_are_read() {
        let new = AgentConfig { service: 7, ..AgentConfig::example() };
        let old = to_text(&new).replace("service =", "tenant =").replace("\nsocket =", "\nstatus_socket =");
        assert!(old.contains("tenant = 7") && old.contains("status_socket ="), "{old}");
        assert_eq!(read_text::<AgentConfig>(&old).unwrap(), new);
    }

    #[test]
    fn a_fault_is_told_on_one_line_with_its_place() {
        let text = to_text(&SwitchConfig::example()).replace("own_las", "own_la");
        let error = read_text::<SwitchConfig>(&text).unwrap_err().to_string();
        assert!(error.contains("own_la") && error.contains("line ") && !error.contains('\n'), "{error}");
        let text = to_text(&AgentConfig::example()).replace("underlay_mtu = 1600", "underlay_mtu = \"large\"");
        let error = read_text::<AgentConfig>(&text).unwrap_err().to_string();
        assert!(error.contains(": underlay_mtu: invalid type"), "{error}");
        let error = read_text::<SwitchConfig>("{\"tier\": \"tor\",\n \"own_la\": []}").unwrap_err().to_string();
        assert!(error.contains("own_la") && error.contains("line 2"), "{error}");
    }
}
