//! Whether a build and the tests ask for the same of each crate: cargo compiles a crate once for each set of features.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Feature sets by crate.
type Sets = BTreeMap<String, BTreeSet<String>>;

/// Crates that `make test` compiles again after `make build`, because their features differ.
pub(crate) fn findings(root: &Path) -> Vec<String> {
    let build = sets(root, &["--package", "weft", "--edges", "normal,build"]);
    let tests = sets(root, &["--workspace", "--edges", "normal,build,dev"]);
    build.and_then(|build| Ok(differences(&build, &tests?))).unwrap_or_else(|why| vec![why])
}

/// Asks cargo, which needs no network for it.
fn sets(root: &Path, selection: &[&str]) -> Result<Sets, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}\t{f}"]).args(selection);
    let output = command.current_dir(root).output().map_err(|error| format!("cargo tree: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo tree: {}", said.lines().find(|line| !line.is_empty()).unwrap_or("failed")));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

fn parse(tree: &str) -> Sets {
    let mut sets = Sets::new();
    for (package, features) in tree.lines().filter_map(|line| line.split_once('\t')) {
        // What cargo has listed before is marked.
        let features = features.trim_end_matches("(*)").trim_end();
        let name: Vec<&str> = package.split(' ').take(2).collect();
        sets.entry(name.join(" ")).or_default().insert(features.to_owned());
    }
    sets
}

fn differences(build: &Sets, tests: &Sets) -> Vec<String> {
    let none = BTreeSet::new();
    let of = |package: &str| tests.get(package).unwrap_or(&none);
    let only = build.iter().flat_map(|(package, sets)| sets.difference(of(package)).map(move |set| (package, set)));
    let say = |(package, set): (&String, &String)| {
        let others: Vec<String> = of(package).iter().map(|other| format!("[{other}]")).collect();
        format!(
            "{package} is compiled twice: with the features [{set}] for `cargo build --package weft`, with {} for \
             `cargo test --workspace`; have both ask for the same",
            others.join(" and ")
        )
    };
    only.map(say).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_features_that_only_the_build_has_is_named() {
        let build =
            parse("weft v0.1.0 (/weft/crates/cli)\tlab\nrand v0.10.3\t\nsyn v3.0.9\tfull\nrand v0.10.3\t (*)\n");
        let same = "weft v0.1.0 (/weft/crates/cli)\tlab (*)\nsyn v3.0.9\tfull\nsyn v3.0.9\tderive\n";
        let differ = parse(&format!("{same}rand v0.10.3\talloc,std\nproptest v1.9.0\tstd\n"));
        assert_eq!(
            differences(&build, &differ),
            [
                "rand v0.10.3 is compiled twice: with the features [] for `cargo build --package weft`, with [alloc,std] \
              for `cargo test --workspace`; have both ask for the same"
            ]
        );
        assert_eq!(differences(&build, &parse(&format!("{same}rand v0.10.3\t\n"))), [""; 0]);
    }
}
