//! The table of Debian packages that weft needs, read from `deps/debian.txt` so that `make deps` uses the same one.

use std::path::{Path, PathBuf};

use serde::Serialize;

const TABLE: &str = include_str!("../../../deps/debian.txt");

/// What a package is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// Building weft.
    Build,
    /// Running labs.
    Run,
    Test,
    /// Long runs (`make soak`).
    Soak,
    /// The tests in virtual machines (`make kernels`).
    Kernels,
    /// Daemons as services (`make services`).
    Services,
    /// A Prometheus that scrapes every daemon: a test, too, but not in virtual machines.
    Metrics,
    /// Sweeps on schedulers (`make cluster`).
    Cluster,
    /// Reports in a browser (`make pages`).
    Pages,
    /// Making Debian packages and trying them (`make package`).
    Package,
}

/// A program or file, and the package that brings it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dependency {
    pub need: Need,
    /// Debian's package.
    pub package: String,
    /// A program looked for on the `PATH`, or an absolute path.
    pub provides: String,
}

impl Dependency {
    /// Where it is on this machine, if it is.
    pub fn find(&self) -> Option<PathBuf> {
        find_program(&self.provides)
    }
}

/// All dependencies, in the order of the table.
pub fn all() -> Vec<Dependency> {
    TABLE.lines().filter_map(parse_line).collect()
}

/// Names of the packages that bring what is missing here, each once.
pub fn missing_packages(need: Need) -> Vec<String> {
    let missing = all().into_iter().filter(|dependency| dependency.need == need && dependency.find().is_none());
    let mut packages: Vec<String> = missing.map(|dependency| dependency.package).collect();
    packages.dedup();
    packages
}

/// A program on the `PATH` (or where root's programs are), or a file by its absolute path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.starts_with('/') {
        return Path::new(name).exists().then(|| PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(usual).map(|directory| directory.join(name)).find(|file| file.is_file())
}

fn parse_line(line: &str) -> Option<Dependency> {
    let line = line.split('#').next()?.trim();
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [need, package, provides] = fields[..] else { return None };
    let need = match need {
        "build" => Need::Build,
        "run" => Need::Run,
        "test" => Need::Test,
        "soak" => Need::Soak,
        "kernels" => Need::Kernels,
        "services" => Need::Services,
        "metrics" => Need::Metrics,
        "cluster" => Need::Cluster,
        "pages" => Need::Pages,
        "package" => Need::Package,
        _ => return None,
    };
    Some(Dependency { need, package: package.to_owned(), provides: provides.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = TABLE.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(all().len(), lines.count());
        for need in
            [Need::Build, Need::Run, Need::Test, Need::Soak, Need::Kernels, Need::Cluster, Need::Package, Need::Pages]
        {
            assert!(all().iter().any(|dependency| dependency.need == need), "{need:?}");
        }
    }

    #[test]
    fn programs_are_found_by_name_and_files_by_path() {
        assert!(find_program("sh").is_some() && find_program("/proc/self/stat").is_some());
        assert!(find_program("weft-no-such-program").is_none() && find_program("/weft/none").is_none());
    }
}
