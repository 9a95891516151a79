//! What is checked beside what every lab must do, as people write it.

use std::time::Duration;

use serde::Deserialize;
use weft_scenario::id::NodeId;

use crate::error::LabError;
use crate::up::Lab;

/// A file of checks; without one only what every lab must do is checked.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Wanted {
    /// Seconds until every switch has its ways.
    pub within_s: f64,
    /// Longest IPv4 packet that every pair of servers must carry unfragmented, bytes.
    pub mtu: u32,
    /// Pairs of servers that must answer each other, or must not.
    pub reach: Vec<Reach>,
    /// Equal ways that a switch must have.
    pub width: Vec<Width>,
    /// Ways between switches.
    pub path: Vec<Path>,
}

/// A pair of servers.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    pub from: String,
    pub to: String,
    /// Whether an answer is wanted.
    #[serde(default = "yes")]
    pub answers: bool,
}

/// How many next hops a switch has to another one.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Width {
    pub from: String,
    pub to: String,
    pub least: usize,
}

/// All ways from a switch to another one.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    pub from: String,
    pub to: String,
    /// Links of the longest.
    pub most_hops: Option<usize>,
    /// Switches on none of them.
    #[serde(default)]
    pub avoids: Vec<String>,
    /// Switches of which each is on one of them.
    #[serde(default)]
    pub through: Vec<String>,
}

fn yes() -> bool {
    true
}

impl Default for Wanted {
    fn default() -> Self {
        Self { within_s: 10.0, mtu: 1500, reach: Vec::new(), width: Vec::new(), path: Vec::new() }
    }
}

/// Why a file of checks is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: {why}")]
pub struct WantedError {
    source_name: String,
    why: String,
}

impl Wanted {
    /// Reads the text of a file; `source_name` is its name for messages.
    ///
    /// # Errors
    /// [`WantedError`], with the line.
    pub fn read(text: &str, source_name: &str) -> Result<Self, WantedError> {
        let refuse = |why: String| WantedError { source_name: source_name.to_owned(), why };
        let wanted: Self = toml::from_str(text).map_err(|error| refuse(error.to_string().trim_end().to_owned()))?;
        wanted.checked().map_err(refuse)
    }

    /// The same if its numbers can be; else which cannot.
    pub fn checked(self) -> Result<Self, String> {
        if Duration::try_from_secs_f64(self.within_s).is_err() {
            return Err(format!("within_s: {} is no time", self.within_s));
        }
        if !(68..=65_535).contains(&self.mtu) {
            return Err(format!("mtu: {} is not between 68 and 65535 bytes", self.mtu));
        }
        Ok(self)
    }

    pub(super) fn within(&self) -> Duration {
        Duration::try_from_secs_f64(self.within_s).unwrap_or(Duration::MAX)
    }

    /// Whether the lab has what is named.
    pub(super) fn check(&self, lab: &Lab) -> Result<(), LabError> {
        for reach in &self.reach {
            [&reach.from, &reach.to].into_iter().try_for_each(|name| find(lab, name).map(drop))?;
        }
        for width in &self.width {
            [&width.from, &width.to].into_iter().try_for_each(|name| find_switch(lab, name).map(drop))?;
        }
        for path in &self.path {
            let named = [&path.from, &path.to].into_iter().chain(&path.avoids).chain(&path.through);
            named.into_iter().try_for_each(|name| find_switch(lab, name).map(drop))?;
        }
        Ok(())
    }
}

pub(super) fn find(lab: &Lab, name: &str) -> Result<NodeId, LabError> {
    lab.scenario.fabric.find(name).ok_or_else(|| lab.state.no_such_node(name))
}

pub(super) fn find_switch(lab: &Lab, name: &str) -> Result<NodeId, LabError> {
    let node = find(lab, name)?;
    if lab.scenario.fabric.node(node).role.is_switch() {
        return Ok(node);
    }
    Err(LabError::not_fit(format!("`{name}` is no switch"), "ways are checked between switches"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_what_is_wrong_is_named() {
        let text = "within_s = 2\n[[reach]]\nfrom = \"s1\"\nto = \"s2\"\n[[path]]\nfrom = \"tor1\"\nto = \"tor2\"\nmost_hops = 4\n";
        let wanted = Wanted::read(text, "checks.toml").unwrap();
        assert!(wanted.reach[0].answers && wanted.path[0].most_hops == Some(4) && wanted.mtu == 1500);
        for (text, said) in [
            ("mtu = 10", "checks.toml: mtu: 10 is not between 68 and 65535 bytes"),
            ("within_s = -1", "checks.toml: within_s: -1 is no time"),
            ("[[width]]\nfrom = \"a\"\nto = \"b\"", "missing field `least`"),
            ("speed = 1", "unknown field `speed`"),
            ("[[reach]", "line 1"),
        ] {
            let error = Wanted::read(text, "checks.toml").unwrap_err().to_string();
            assert!(error.contains(said) && error.starts_with("checks.toml: "), "{error}");
        }
    }
}
