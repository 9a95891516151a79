//! Configuration files in TOML: read, with errors on one line.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::NodeError;

/// Reads a file; [`NodeError::ConfigFile`] names the line.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, NodeError> {
    let fault = |why: String| NodeError::ConfigFile { path: path.to_owned(), why };
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    toml::from_str(&text).map_err(|error| fault(on_one_line(&error, &text)))
}

/// A TOML error names its line and quotes it over several; here it is one line.
fn on_one_line(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    line.map_or_else(|| message.clone(), |line| format!("line {line}: {message}"))
}

/// Whether the kernel would take this as an interface's name; `field` is the setting.
pub(crate) fn check_interface(field: &'static str, name: &str) -> Result<(), NodeError> {
    if name.is_empty() || name.len() > 15 || name.contains(['/', ' ']) || name.starts_with('-') {
        return Err(NodeError::config(field, format!("`{name}` is no interface name (1 to 15 bytes)")));
    }
    Ok(())
}
