//! What the end-to-end tests share: the built binary, a view of the machine, and one lab at a time.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Tests that make namespaces hold this, so that `weft lab down --all` of one does not take down another's.
pub(crate) fn one_lab_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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

/// Whether labs can run here; says why not.
pub(crate) fn can_run_labs() -> bool {
    let output = run(&["doctor", "-o", "json"]);
    let fit = output.status.success();
    if !fit {
        eprintln!("skipped: this machine cannot run labs: {}", text(&output.stdout));
    }
    fit
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
                .chain(entries("/var/run/frr", |name| name.starts_with("weft-")))
                .collect(),
        }
    }
}

fn entries(folder: &str, wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let Ok(read) = std::fs::read_dir(folder) else { return BTreeSet::new() };
    read.flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| wanted(name))
        .map(|name| Path::new(folder).join(name).display().to_string())
        .collect()
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
