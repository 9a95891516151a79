//! What the binary is made of: the dependencies held against `deny.toml`, and listed as a bill of materials.
//!
//! cargo-deny, whose format the file has, is a build of its own of several minutes and asks for crates of platforms that we do not
//! build for, which it then has to download. What we need of it is this: licences, crates that are banned or there twice,
//! and where crates come from, of the graph that is built here, from what is on the disk.

mod graph;
mod licence;
mod rules;
mod sbom;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use graph::{Graph, Package};
use rules::Rules;
pub(crate) use sbom::sbom;

/// What the dependencies are and may not be.
pub(crate) fn findings(root: &Path) -> Vec<String> {
    let judged = Rules::read(root).and_then(|rules| Ok(judge(&rules, &Graph::read(root)?)));
    judged.unwrap_or_else(|why| vec![why])
}

fn judge(rules: &Rules, graph: &Graph) -> Vec<String> {
    [licences(rules, graph), banned(rules, graph), doubled(rules, graph), sources(graph)].concat()
}

fn licences(rules: &Rules, graph: &Graph) -> Vec<String> {
    let mut findings = Vec::new();
    let mut unused: BTreeSet<&str> = rules.exceptions().keys().copied().collect();
    for package in graph.packages() {
        let Some(expression) = &package.license else {
            findings.push(format!("{package} says nothing of its licence"));
            continue;
        };
        let allowed = |name: &str| rules.licenses.allow.iter().any(|known| known == name);
        let excepted = rules.exceptions().get(&*package.name).copied().unwrap_or_default();
        match (licence::holds(expression, &allowed), excepted) {
            (Ok(true), _) => {}
            (Ok(false), more)
                if licence::holds(expression, &|name| allowed(name) || more.contains(&name.to_owned())) == Ok(true) =>
            {
                unused.remove(&*package.name);
            }
            (Ok(false), _) => {
                findings.push(format!("{package} has the licence `{expression}`, which deny.toml does not allow"))
            }
            (Err(why), _) => findings.push(format!("{package}: `{expression}`: {why}")),
        }
    }
    findings.extend(unused.iter().map(|name| format!("deny.toml: nothing needs the exception of {name}")));
    findings
}

fn banned(rules: &Rules, graph: &Graph) -> Vec<String> {
    let of = |ban: &rules::Named| {
        let found = graph.packages().filter(|package| ban.is(package));
        found.map(|package| format!("{package} is banned: {}", ban.reason)).collect::<Vec<_>>()
    };
    rules.bans.deny.iter().flat_map(of).collect()
}

fn doubled(rules: &Rules, graph: &Graph) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
    for package in graph.packages() {
        versions.entry(&package.name).or_default().push(package);
    }
    versions.retain(|_, packages| packages.len() > 1);
    let skipped = |package: &Package| rules.bans.skip.iter().any(|skip| skip.is(package));
    let mut findings = Vec::new();
    for packages in versions.values() {
        let left: Vec<String> = packages.iter().filter(|package| !skipped(package)).map(ToString::to_string).collect();
        if left.len() > 1 {
            findings.push(format!("{} are there at once, and deny.toml skips none of them", left.join(" and ")));
        }
    }
    let unused = |skip: &&rules::Named| !versions.values().flatten().any(|package| skip.is(package));
    findings.extend(
        rules.bans.skip.iter().filter(unused).map(|skip| format!("deny.toml: nothing needs to skip {}", skip.krate)),
    );
    findings
}

/// Everything is ours or comes from crates.io, and with a version.
fn sources(graph: &Graph) -> Vec<String> {
    let mut findings = Vec::new();
    for package in graph.packages() {
        let is_known = |source: &str| source.starts_with("registry+") && source.ends_with("/crates.io-index");
        if let Some(source) = package.source.as_deref().filter(|source| !is_known(source)) {
            findings.push(format!("{package} comes from {source}, which is not crates.io"));
        }
        if package.source.is_none() {
            let open =
                package.dependencies.iter().filter(|dependency| dependency.path.is_none() && dependency.req == "*");
            findings.extend(open.map(|dependency| format!("{package} takes any version of {}", dependency.name)));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
        [graph]
        targets = []
        [licenses]
        allow = ["MIT"]
        exceptions = [{ crate = "odd", allow = ["ISC"] }, { crate = "gone", allow = ["ISC"] }]
        [bans]
        multiple-versions = "deny"
        wildcards = "deny"
        allow-wildcard-paths = true
        deny = [{ crate = "bad", reason = "it is bad" }, { crate = "new@9.0.0", reason = "only that one" }]
        skip = [{ crate = "twice@1.0.0", reason = "leaving" }, { crate = "once@1.0.0", reason = "left" }]
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny""#;

    fn graph(packages: &[(&str, &str, &str, &str)]) -> Graph {
        let package = |(name, version, license, source): &(&str, &str, &str, &str)| {
            let source = (!source.is_empty()).then(|| format!("{source}/crates.io-index"));
            serde_json::json!({"id": format!("{name} {version}"), "name": name, "version": version, "license": license,
                "source": source, "dependencies": [{"name": "any", "req": "*", "path": null}], "targets": []})
        };
        let packages: Vec<_> = packages.iter().map(package).collect();
        let nodes: Vec<_> =
            packages.iter().map(|package| serde_json::json!({"id": package["id"], "deps": []})).collect();
        let metadata = serde_json::json!({"packages": packages, "resolve": {"nodes": nodes}});
        Graph::parse(&metadata.to_string()).unwrap()
    }

    #[test]
    fn what_may_not_be_is_named_and_so_is_what_nothing_needs() {
        let rules = Rules::parse(RULES).unwrap();
        let registry = "registry+x:";
        let found = judge(
            &rules,
            &graph(&[
                ("fine", "1.0.0", "GPL-3.0 OR MIT", registry),
                ("odd", "1.0.0", "MIT AND ISC", registry),
                ("closed", "1.0.0", "BUSL-1.1", registry),
                ("bad", "1.0.0", "MIT", registry),
                ("new", "1.0.0", "MIT", registry),
                ("once", "1.0.0", "MIT", registry),
                ("twice", "1.0.0", "MIT", registry),
                ("twice", "2.0.0", "MIT", registry),
                ("thrice", "1.0.0", "MIT", registry),
                ("thrice", "2.0.0", "MIT", registry),
                ("theirs", "1.0.0", "MIT", "git+x:"),
                ("ours", "1.0.0", "MIT", ""),
            ]),
        );
        assert_eq!(
            found,
            [
                "closed 1.0.0 has the licence `BUSL-1.1`, which deny.toml does not allow",
                "deny.toml: nothing needs the exception of gone",
                "bad 1.0.0 is banned: it is bad",
                "thrice 1.0.0 and thrice 2.0.0 are there at once, and deny.toml skips none of them",
                "deny.toml: nothing needs to skip once@1.0.0",
                "ours 1.0.0 takes any version of any",
                "theirs 1.0.0 comes from git+x:/crates.io-index, which is not crates.io",
            ]
        );
    }

    #[test]
    fn the_file_says_only_what_is_checked() {
        assert!(Rules::parse(&RULES.replace("wildcards", "wild-cards")).unwrap_err().contains("wild-cards"));
        assert!(Rules::parse(&RULES.replace("\"deny\"", "\"warn\"")).unwrap_err().contains("warn"));
    }
}
