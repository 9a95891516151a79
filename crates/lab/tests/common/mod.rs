//! What the tests with real namespaces share: small fabrics, a silent progress, and a look at what is on the machine.
#![allow(dead_code)] // Each test file is a crate of its own and uses a part of this.

pub(crate) mod beds;
pub(crate) mod campus;
pub(crate) mod hosts;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use weft_lab::{LabOptions, home};
use weft_scenario::addressing::{AddressPlan, AddressingOptions};
use weft_scenario::engine::{DirectoryStore, Overlay, Progress, Scenario, Transport};
use weft_scenario::name::undotted;
use weft_scenario::switching::Switching;
use weft_scenario::topology::{Fabric, LinkParams, TestbedParams, overlay_pair, vl2_testbed};
use weft_scenario::units::{BitsPerSec, Bytes};

/// Whether labs can run.
#[track_caller]
pub(crate) fn can_run() -> bool {
    weft_needs::root() && weft_needs::packages("run")
}

/// A lab's name that no other test process has.
pub(crate) fn lab_name(test: &str) -> String {
    format!("t{}{test}", std::process::id())
}

/// How long a slow or busy machine may take for what must happen. Whoever waits goes on as soon as it has.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that must happen.
pub(crate) fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Fails a test that leaves its lab up.
pub(crate) struct Gone(pub(crate) String);

impl Drop for Gone {
    fn drop(&mut self) {
        let removed = weft_lab::down_matching(&self.0);
        if !std::thread::panicking() {
            removed.expect("a lab can be removed");
            assert_eq!(traces(&self.0), BTreeSet::new());
        }
    }
}

/// Progress that nobody watches.
pub(crate) struct Quiet;

impl Progress for Quiet {
    fn phase(&self, _: &str, _: &str) {}
    fn advance(&self, _: f64, _: &str) {}
    fn note(&self, line: &str) {
        eprintln!("note: {line}");
    }
    fn interrupted(&self) -> bool {
        false
    }
}

pub(crate) fn options(name: &str) -> LabOptions {
    LabOptions { name: Some(name.to_owned()), self_test: false, ..LabOptions::new(daemon_program()) }
}

/// The small stand-in for `weft` that cargo builds beside the tests.
pub(crate) fn daemon_program() -> std::path::PathBuf {
    let tests = std::env::current_exe().expect("a test has a path");
    let program =
        tests.parent().and_then(Path::parent).expect("tests are in target/*/deps").join("examples/lab-daemon");
    assert!(program.is_file(), "{} is built by `cargo test` with all targets", program.display());
    program
}

pub(crate) fn scenario(fabric: Fabric, overlay: Overlay) -> Scenario {
    let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).expect("addresses");
    let transport = Transport { segments_per_skb: 8, timestamps: false, ..Transport::default() };
    Scenario {
        fabric,
        addresses,
        overlay,
        directory: DirectoryStore::default(),
        transport,
        switching: Switching::default(),
        shaped: false,
    }
}

/// Two servers, two ToRs, one Intermediate, one directory server.
pub(crate) fn pair(overlay: Overlay) -> Scenario {
    let links = LinkParams {
        server_rate: BitsPerSec(20_000_000),
        core_rate: BitsPerSec(100_000_000),
        server_buffer: Bytes(500_000),
        core_buffer: Bytes(1_000_000),
        ..LinkParams::default()
    };
    scenario(overlay_pair(&links).expect("a fabric"), overlay)
}

/// The paper's ten switches with a few servers.
pub(crate) fn testbed(servers_per_tor: [u32; 4], overlay: Overlay) -> Scenario {
    let params = TestbedParams { servers_per_tor, ..TestbedParams::default() };
    scenario(vl2_testbed(&params).expect("a fabric"), overlay)
}

/// Everything on the machine that bears this lab's name: namespaces, mounts, processes, directories.
pub(crate) fn traces(lab: &str) -> BTreeSet<String> {
    let mut traces = BTreeSet::new();
    // Some of them cannot have a dot in their names.
    let undotted = undotted(lab);
    let is_of_lab = |name: &String| name.contains(lab) || name.contains(&*undotted);
    for directory in [home::NETNS_DIR, home::FRR_DIR, home::LABS_DIR, home::BPF_DIR, home::STORES_DIR] {
        let names = home::names_in(Path::new(directory)).into_iter().filter(is_of_lab);
        traces.extend(names.map(|name| format!("{directory}/{name}")));
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    traces.extend(mounts.lines().filter(|line| line.contains(lab)).map(str::to_owned));
    let links = Command::new("ip").args(["-br", "link"]).output().expect("ip runs").stdout;
    traces.extend(String::from_utf8_lossy(&links).lines().filter(|line| line.contains(lab)).map(str::to_owned));
    for pid in home::names_in(Path::new("/proc")).iter().filter(|name| name.parse::<u32>().is_ok()) {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&arguments).replace('\0', " ");
        let program = text.split(' ').next().unwrap_or_default().to_owned();
        let is_daemon = ["zebra", "ospfd", "bfdd", "bgpd", "pimd", "dnsmasq", "dhcrelay", "weft", "lab-daemon"]
            .iter()
            .any(|daemon| program.ends_with(daemon));
        if is_daemon && text.contains(lab) {
            traces.insert(format!("process {pid}: {text}"));
        }
    }
    traces
}
