//! What the end-to-end tests share: the built binary, a view of the machine, and one lab at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Tests that make namespaces hold this, so that `weft lab down --all` of one does not take down another's, and what one
/// makes is not what another finds when it compares the machine. `None` where no lab can run.
///
/// # Panics
/// While a lab is up: these tests would take it down.
pub(crate) fn one_lab_at_a_time() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    if !weft_needs::root() || !weft_needs::packages("run") {
        return None;
    }
    // A test that failed has left nothing in the lock that could be wrong; what it left on the machine is looked for here.
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // A lab of a test that was killed is nobody's, and any run would take it down first.
    #[cfg(feature = "lab")]
    weft_lab::sweep_orphans().expect("labs of killed runs can be taken down");
    let up = names_in("/run/weft/labs");
    assert!(up.is_empty(), "{}", refusal(&up));
    Some(turn)
}

/// Why no test begins while these labs are up, and what to do.
fn refusal(up: &BTreeSet<String>) -> String {
    let names: Vec<&str> = up.iter().map(String::as_str).collect();
    let downs: Vec<String> = names.iter().map(|name| format!("weft lab down {name}")).collect();
    format!(
        "labs are up: {}. Tests compare the machine before and after, and take all labs down. If they are yours, or of a \
         test that failed before this one, take them down first: {}",
        names.join(", "),
        downs.join("; ")
    )
}

#[test]
fn labs_that_are_up_are_named_with_the_remedy() {
    let said = refusal(&["mine", "run-7"].map(str::to_owned).into());
    assert!(said.starts_with("labs are up: mine, run-7."), "{said}");
    assert!(said.ends_with("take them down first: weft lab down mine; weft lab down run-7"), "{said}");
}

/// Waits for something that must happen. The limit is for a machine that is slow or busy; it ends as soon as it has happened.
pub(crate) fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    const PATIENCE: Duration = Duration::from_secs(120);
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The binary under test.
pub(crate) fn weft() -> Command {
    Command::new(env!("CARGO_BIN_EXE_weft"))
}

/// Runs it and returns what it printed.
pub(crate) fn run(args: &[&str]) -> Output {
    weft().args(args).output().expect("the binary starts")
}

/// Runs it, wants success, and returns standard output.
pub(crate) fn ok(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "weft {}: {}\n{}", args.join(" "), output.status, text(&output.stderr));
    text(&output.stdout)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every file of a run's records.
pub(crate) fn records(run_dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(run_dir.join("records")).expect("the run left records");
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).expect("the record can be read");
        (path.file_name().expect("it has a name").into(), bytes)
    };
    entries.map(|entry| read(entry.expect("the folder can be read").path())).collect()
}

/// Everything outside a process that weft may touch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    namespaces: BTreeSet<String>,
    links: BTreeSet<String>,
    mounts: BTreeSet<String>,
    processes: BTreeSet<String>,
    sysctls: Vec<String>,
    files: BTreeSet<String>,
}

impl Machine {
    pub(crate) fn now() -> Self {
        Self {
            namespaces: entries("/run/netns", |_| true),
            links: entries("/sys/class/net", |_| true),
            mounts: std::fs::read_to_string("/proc/mounts")
                .expect("procfs is there")
                .lines()
                .filter_map(|line| line.split(' ').nth(1).map(str::to_owned))
                .collect(),
            processes: our_processes(),
            sysctls: [
                "/proc/sys/net/ipv4/neigh/default/gc_thresh1",
                "/proc/sys/net/ipv4/neigh/default/gc_thresh2",
                "/proc/sys/net/ipv4/neigh/default/gc_thresh3",
                "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
                "/sys/kernel/rcu_expedited",
            ]
            .iter()
            .map(|path| std::fs::read_to_string(path).unwrap_or_default())
            .collect(),
            files: entries("/run/weft/labs", |_| true)
                .into_iter()
                .chain(entries("/run/weft/bpf", |_| true))
                .chain(entries("/run/weft/lab-bpf", |_| true))
                .chain(entries("/var/lib/weft/labs", |_| true))
                .chain(entries("/var/run/frr", |name| name.starts_with("weft-")))
                .collect(),
        }
    }
}

fn entries(folder: &str, wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let names = names_in(folder).into_iter().filter(|name| wanted(name));
    names.map(|name| Path::new(folder).join(name).display().to_string()).collect()
}

fn names_in(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Daemons that a lab starts, by their command lines.
fn our_processes() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").expect("procfs is there").flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if pid.bytes().all(|byte| byte.is_ascii_digit()) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = text(&line).replace('\0', " ");
            let ours = ["weft node ", "traffic-worker", "zebra", "ospfd"].iter().any(|mark| line.contains(mark));
            if ours {
                found.insert(format!("{pid} {line}"));
            }
        }
    }
    found
}

/// How many workers of traffic run.
#[cfg(feature = "lab")]
pub(crate) fn our_workers() -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir("/proc").expect("procfs is there").flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        count += usize::from(text(&line).contains("traffic-worker"));
    }
    count
}
