//! The crates that are built here and what each needs, as cargo tells it from the lock file and what is on the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    id: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: Option<String>,
    /// `None`: ours.
    pub(super) source: Option<String>,
    pub(super) dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

/// What a manifest asks for.
#[derive(Debug, Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    pub(super) req: String,
    pub(super) path: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `None`: the crate itself needs it.
    kind: Option<String>,
}

/// Crates by cargo's identity.
pub(crate) struct Graph {
    packages: BTreeMap<String, Package>,
    edges: BTreeMap<String, Vec<Edge>>,
}

impl fmt::Display for Package {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.name, self.version)
    }
}

impl Package {
    /// Whether it runs while others are compiled, and is no part of them.
    fn is_macro(&self) -> bool {
        self.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
    }
}

impl Graph {
    /// Asks cargo, which needs no network for it.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let mut command = Command::new(cargo);
        command.args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", &host]);
        let output = command.current_dir(root).output().map_err(|error| format!("cargo metadata: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("cargo metadata: {}", said.lines().find(|line| !line.is_empty()).unwrap_or("failed")));
        }
        Self::parse(&String::from_utf8_lossy(&output.stdout))
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let metadata: Metadata = serde_json::from_str(text).map_err(|error| format!("cargo metadata: {error}"))?;
        let edges: BTreeMap<_, _> = metadata.resolve.nodes.into_iter().map(|node| (node.id, node.deps)).collect();
        let packages = metadata.packages.into_iter().filter(|package| edges.contains_key(&package.id));
        Ok(Self { packages: packages.map(|package| (package.id.clone(), package)).collect(), edges })
    }

    /// All that is built, tests included.
    pub(crate) fn packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.values()
    }

    pub(super) fn find(&self, name: &str) -> Option<&Package> {
        self.packages().find(|package| package.source.is_none() && package.name == name)
    }

    /// What a crate needs to be built, without tests; if `inside`, only what becomes part of it.
    pub(super) fn needs(&self, package: &Package, inside: bool) -> Vec<&Package> {
        let wanted = |kind: &Kind| kind.kind.is_none() || (!inside && kind.kind.as_deref() == Some("build"));
        let edges = self.edges[&package.id].iter().filter(|edge| edge.dep_kinds.iter().any(wanted));
        let mut found: Vec<&Package> =
            edges.map(|edge| &self.packages[&edge.pkg]).filter(|package| !inside || !package.is_macro()).collect();
        found.sort_by_key(|package| (&package.name, &package.version));
        found
    }

    /// The same of all that it needs.
    pub(super) fn closure(&self, package: &Package, inside: bool) -> Vec<&Package> {
        let mut seen = BTreeSet::new();
        let mut open = self.needs(package, inside);
        while let Some(package) = open.pop() {
            if seen.insert(&package.id) {
                open.extend(self.needs(package, inside));
            }
        }
        seen.into_iter().map(|id| &self.packages[id]).collect()
    }
}
