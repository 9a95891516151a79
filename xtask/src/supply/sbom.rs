//! A bill of materials of the binary `weft`: CycloneDX 1.5 as JSON. The same tree gives the same file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

use super::graph::{Graph, Package};

/// The binary's package.
const BINARY: &str = "weft";
/// What is linked into the binary and no crate: a library, and the Debian package that has it.
const LIBRARIES: [(&str, &str); 2] = [("libelf", "libelf-dev"), ("zlib", "zlib1g-dev")];

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// The bill, as text.
///
/// # Errors
/// Why there is none.
pub(crate) fn sbom(root: &Path) -> Result<String, String> {
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    let lock: Lock = toml::from_str(&lock).map_err(|error| format!("Cargo.lock: {error}"))?;
    let sums = lock.package.into_iter().filter_map(|one| Some(((one.name, one.version), one.checksum?))).collect();
    let graph = Graph::read(root)?;
    let bill = bill(&graph, &sums)?;
    Ok(format!("{}\n", serde_json::to_string_pretty(&bill).expect("it is JSON already")))
}

fn bill(graph: &Graph, sums: &BTreeMap<(String, String), String>) -> Result<Value, String> {
    let binary = graph.find(BINARY).ok_or("the workspace has no package `weft`")?;
    let inside: BTreeSet<String> = graph.closure(binary, true).into_iter().map(reference).collect();
    let all = graph.closure(binary, false);
    let mut components: Vec<Value> = all.iter().map(|package| component(package, &inside, sums)).collect();
    components.extend(LIBRARIES.map(library));
    components.sort_by_key(|component| component["bom-ref"].to_string());
    let needs = |package: &Package| {
        let needs: Vec<String> = graph.needs(package, false).into_iter().map(reference).collect();
        json!({"ref": reference(package), "dependsOn": needs})
    };
    let mut dependencies: Vec<Value> = all.iter().copied().chain([binary]).map(needs).collect();
    dependencies.sort_by_key(|one| one["ref"].to_string());
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "xtask sbom"}]},
            "component": {
                "type": "application",
                "bom-ref": reference(binary),
                "name": BINARY,
                "version": binary.version,
                "licenses": licences(binary),
            },
            "properties": [{"name": "rustc", "value": rustc()}],
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Package, inside: &BTreeSet<String>, sums: &BTreeMap<(String, String), String>) -> Value {
    let reference = reference(package);
    let mut component = json!({
        "type": "library",
        "bom-ref": reference,
        "name": package.name,
        "version": package.version,
        // What only builds it is no part of what runs.
        "scope": if inside.contains(&reference) { "required" } else { "excluded" },
        "licenses": licences(package),
    });
    if package.source.is_some() {
        component["purl"] = reference.into();
    }
    if let Some(sum) = sums.get(&(package.name.clone(), package.version.clone())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    component
}

fn licences(package: &Package) -> Value {
    let expression = package.license.as_deref().unwrap_or("NOASSERTION").replace(" / ", " OR ").replace('/', " OR ");
    json!([{"expression": expression}])
}

/// A package URL; ours have none outside of the bill.
fn reference(package: &Package) -> String {
    // `+` of a version is written so in a URL.
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

fn library((name, package): (&str, &str)) -> Value {
    let version = said("dpkg-query", &["-W", "-f", "${Version}", package]);
    let mut library =
        json!({"type": "library", "bom-ref": format!("pkg:deb/debian/{package}"), "name": name, "scope": "required"});
    if let Some(version) = version {
        library["version"] = version.as_str().into();
        library["purl"] =
            format!("pkg:deb/debian/{package}@{}", version.replace('+', "%2B").replace(':', "%3A")).into();
    }
    library
}

fn rustc() -> String {
    said("rustc", &["--version"]).unwrap_or_else(|| "unknown".to_owned())
}

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::repository_root;

    #[test]
    fn the_bill_has_what_is_in_the_binary_with_its_sum_and_once() {
        let text = sbom(&repository_root()).unwrap();
        let bill: Value = serde_json::from_str(&text).unwrap();
        let components = bill["components"].as_array().unwrap();
        let find = |name: &str| {
            components.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name} is missing"))
        };
        for name in ["weft-node", "redb", "rustls", "etcd-client", "libbpf-sys", "libsqlite3-sys", "libelf", "zlib"] {
            assert_eq!(find(name)["scope"], "required", "{name}");
        }
        assert_eq!((&find("cc")["scope"], &find("serde_derive")["scope"]), (&json!("excluded"), &json!("excluded")));
        assert_eq!(find("redb")["hashes"][0]["content"].as_str().map(str::len), Some(64));
        assert!(components.iter().all(|one| !["proptest", "insta", "xtask"].contains(&one["name"].as_str().unwrap())));
        let references: BTreeSet<&str> = components.iter().map(|one| one["bom-ref"].as_str().unwrap()).collect();
        assert_eq!(references.len(), components.len(), "each once");
        for one in bill["dependencies"].as_array().unwrap() {
            let needs = one["dependsOn"].as_array().unwrap();
            assert!(needs.iter().all(|need| references.contains(need.as_str().unwrap())), "{one}");
        }
    }
}
