//! `deny.toml`, as much of cargo-deny's format as is checked here; other keys are refused.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::graph::Package;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rules {
    /// For cargo-deny alone: here it is the graph that is built.
    #[serde(rename = "graph")]
    _graph: Targets,
    pub(super) licenses: Licenses,
    pub(super) bans: Bans,
    sources: Sources,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Targets {
    #[serde(rename = "targets")]
    _targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Licenses {
    pub(super) allow: Vec<String>,
    exceptions: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    #[serde(rename = "crate")]
    krate: String,
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Bans {
    multiple_versions: String,
    wildcards: String,
    allow_wildcard_paths: bool,
    pub(super) deny: Vec<Named>,
    pub(super) skip: Vec<Named>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    unknown_registry: String,
    unknown_git: String,
}

/// A crate by its name, or by `NAME@VERSION`, and why it stands there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    #[serde(rename = "crate")]
    pub(super) krate: String,
    pub(super) reason: String,
}

impl Named {
    pub(super) fn is(&self, package: &Package) -> bool {
        match self.krate.split_once('@') {
            Some((name, version)) => (name, version) == (&*package.name, &*package.version),
            None => self.krate == package.name,
        }
    }
}

impl Rules {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(root.join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
        Self::parse(&text)
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let rules: Self = toml::from_str(text).map_err(|error| format!("deny.toml: {error}"))?;
        let (bans, sources) = (&rules.bans, &rules.sources);
        let words = [&bans.multiple_versions, &bans.wildcards, &sources.unknown_registry, &sources.unknown_git];
        if let Some(word) = words.into_iter().find(|word| *word != "deny") {
            return Err(format!("deny.toml: `{word}` is not checked; write `deny`"));
        }
        if !bans.allow_wildcard_paths {
            return Err("deny.toml: crates of ours have no versions among each other".to_owned());
        }
        Ok(rules)
    }

    /// What single crates may have beside [`Licenses::allow`].
    pub(super) fn exceptions(&self) -> BTreeMap<&str, &[String]> {
        self.licenses.exceptions.iter().map(|one| (&*one.krate, &*one.allow)).collect()
    }
}
