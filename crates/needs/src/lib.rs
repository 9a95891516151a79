//! What a test needs of the machine. Where it is not there the test returns early, and nothing but this crate says so: a skip is
//! printed past libtest's capture, recorded for whoever counts (`make test`), and a failure where every test is wanted.
//!
//! * [`root`], [`program`], [`packages`], [`kernel`]: looks of its own, that share nothing with what is tested
//! * [`skip`]: the reason, where the test has looked itself
//! * [`Skip`], [`is_listed`]: what was recorded, for the one who counts
//! * [`each_seed`]: histories of a simulator, one for each seed

mod seeds;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::path::Path;

pub use seeds::each_seed;

/// Names the file that skips are appended to.
pub const RECORD: &str = "WEFT_SKIPS";
/// `1`: a skip that is not listed is a failure.
pub const REQUIRE_ALL: &str = "WEFT_REQUIRE_ALL";

const LIST: &str = include_str!("../../../deps/skips.txt");
const PACKAGES: &str = include_str!("../../../deps/debian.txt");

/// Whether this is root with all its rights: not the root of a container that may make no namespace.
#[track_caller]
pub fn root() -> bool {
    /// CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN of the kernel's `linux/capability.h`.
    const RIGHTS: u64 = 1 << 12 | 1 << 13 | 1 << 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let is_root = field("Uid:").split_whitespace().nth(1) == Some("0");
    let rights = u64::from_str_radix(field("CapEff:").trim(), 16).unwrap_or(0);
    met(is_root && rights & RIGHTS == RIGHTS, || "not root, or without its rights".into())
}

/// Whether this program is installed: a name on the `PATH` or a whole path.
#[track_caller]
pub fn program(name: &str) -> bool {
    met(is_there(name), || format!("{name} is not installed"))
}

/// Whether everything is installed that `deps/debian.txt` says is needed to `run` labs, or for a `test`.
#[track_caller]
pub fn packages(needed: &str) -> bool {
    let lines = PACKAGES.lines().filter(|line| line.split_whitespace().next() == Some(needed));
    let words = lines.map(|line| line.split_whitespace().skip(1));
    let missing: BTreeSet<&str> = words
        .filter_map(|mut words| Some((words.next()?, words.next()?)))
        .filter(|(_, provides)| !is_there(provides))
        .map(|(package, _)| package)
        .collect();
    met(missing.is_empty(), || format!("packages are missing: {missing:?}"))
}

/// Whether the kernel is of this release or newer.
#[track_caller]
pub fn kernel(major: u32, minor: u32) -> bool {
    let release = release();
    let mut numbers = release.split(['.', '-']).map(|number| number.parse().unwrap_or(0));
    let is_new = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor);
    met(is_new, || format!("this kernel is older than {major}.{minor}"))
}

/// Says that the test that runs ends early, and why: what the machine lacks.
///
/// # Panics
/// Where every test is wanted and this reason is not listed; where the skip cannot be recorded.
#[track_caller]
pub fn skip(why: &str) {
    let place = Location::caller();
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    // Cargo appends a hash; libtest names a test's thread after it.
    let (program, thread) = (program.rsplit_once('-').map_or(&*program, |(name, _)| name), std::thread::current());
    let skip = Skip {
        why: why.replace(['\t', '\n'], " "),
        test: format!("{program}::{}", thread.name().unwrap_or("?")),
        place: format!("{}:{}", place.file(), place.line()),
    };
    // One write past `eprintln`, which libtest captures.
    let _ = std::io::stderr().write_all(format!("skipped: {why}\n").as_bytes());
    if let Some(file) = std::env::var_os(RECORD) {
        skip.append(Path::new(&file)).unwrap_or_else(|error| panic!("{}: {error}", Path::new(&file).display()));
    }
    let is_allowed = std::env::var_os(REQUIRE_ALL).is_none_or(|value| value != "1") || is_listed(why);
    assert!(is_allowed, "{REQUIRE_ALL}: every test must run, and deps/skips.txt does not list for this kernel: {why}");
}

#[track_caller]
fn met(is_met: bool, why: impl FnOnce() -> String) -> bool {
    if !is_met {
        skip(&why());
    }
    is_met
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Daemons are where only root's PATH leads to. A whole path replaces the folder that it is joined to.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(Into::into));
    folders.map(|folder| folder.join(program)).any(|file| file.is_file())
}

/// A test that ended early.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    /// What the machine lacks.
    pub why: String,
    /// The test's program and name.
    pub test: String,
    /// File and line.
    pub place: String,
}

impl Skip {
    /// One line, in one write: tests of several processes append to the same file.
    fn append(&self, file: &Path) -> std::io::Result<()> {
        let line = format!("{}\t{}\t{}\n", self.why, self.test, self.place);
        OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
    }

    /// What was recorded, each skip once.
    pub fn all(recorded: &str) -> BTreeSet<Self> {
        let words = recorded.lines().map(|line| line.split('\t').map(str::to_owned));
        words
            .map(|mut words| {
                let mut next = || words.next().unwrap_or_default();
                Self { why: next(), test: next(), place: next() }
            })
            .collect()
    }
}

/// Whether this kernel is known to lack that.
pub fn is_listed(why: &str) -> bool {
    listed().any(|known| known == why)
}

/// All that this kernel is known to lack.
pub fn listed() -> impl Iterator<Item = &'static str> {
    let release = release();
    let lines = LIST.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" | "));
    lines.filter(move |(kernel, _)| release.starts_with(kernel)).map(|(_, why)| why)
}

fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;

    const WHY: &str = "the moon is not full";

    /// Runs as a child of the next test.
    #[test]
    fn child_that_skips() {
        if std::env::var_os("WEFT_NEEDS_CHILD").is_some() {
            skip(WHY);
        }
    }

    fn child(require_all: &str, record: &Path) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "tests::child_that_skips"]).env("WEFT_NEEDS_CHILD", "1");
        command.env(REQUIRE_ALL, require_all).env(RECORD, record).output().unwrap()
    }

    #[test]
    fn a_skip_is_said_recorded_and_a_failure_where_every_test_is_wanted() {
        let record = std::env::temp_dir().join(format!("weft-needs-{}", std::process::id()));
        let allowed = child("0", &record);
        assert!(allowed.status.success(), "{allowed:?}");
        assert_eq!(String::from_utf8_lossy(&allowed.stderr), format!("skipped: {WHY}\n"), "it is not captured");
        let required = child("1", &record);
        assert!(!required.status.success() && String::from_utf8_lossy(&required.stdout).contains(REQUIRE_ALL));
        let text = std::fs::read_to_string(&record).unwrap();
        std::fs::remove_file(&record).unwrap();
        assert_eq!(text.lines().count(), 2);
        let all = Skip::all(&text);
        let skip = all.first().unwrap();
        assert_eq!((all.len(), &*skip.why, &*skip.test), (1, WHY, "weft_needs::tests::child_that_skips"));
        assert!(skip.place.starts_with("crates/needs/src/lib.rs:"), "{skip:?}");
    }

    #[test]
    fn what_is_there_is_found() {
        assert!(is_there("sh") && is_there("/proc/self/stat"));
        assert!(!is_there("weft-no-such-program") && !is_there("/weft/none"));
        assert!(kernel(2, 6));
        assert!(PACKAGES.lines().any(|line| line.starts_with("run ")), "the table names what labs need");
        assert!(LIST.lines().all(|line| line.starts_with('#') || line.contains(" | ")), "{LIST}");
    }
}
