//! A few server namespaces around one router namespace, made and removed by the test itself.

use std::ffi::OsString;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use weft_scenario::engine::{CongestionControl, Progress, Trial};
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::units::Nanos;
use weft_scenario::workload::Workload;

use super::{FaultActuator, TrafficHost, TrafficSetup, WatchedPort};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A star of servers; dropping it removes every namespace.
pub(super) struct Star {
    /// Beginning of all its namespaces' names and of its workers' names.
    pub(super) tag: String,
    servers: usize,
}

impl Star {
    /// `shaping` are tc's arguments for the queue of every port, for instance `tbf rate 50mbit burst 20k limit 200k`.
    /// `None` where namespaces cannot be made.
    pub(super) fn new(servers: usize, shaping: Option<&str>) -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let tag = format!("weft-tr{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let bed = Self { tag, servers };
        let router = bed.router();
        ip(&format!("netns add {router}"));
        ip(&format!("netns exec {router} sysctl -qw net.ipv4.ip_forward=1"));
        for server in 0..servers {
            let host = bed.host(server);
            ip(&format!("netns add {host}"));
            ip(&format!("link add eth0 netns {host} type veth peer name p{server} netns {router}"));
            ip(&format!("-n {host} addr add 10.77.{server}.2/24 dev eth0"));
            ip(&format!("-n {router} addr add 10.77.{server}.1/24 dev p{server}"));
            ip(&format!("-n {host} link set eth0 up"));
            ip(&format!("-n {router} link set p{server} up"));
            ip(&format!("-n {host} route add default via 10.77.{server}.1"));
            ip(&format!("netns exec {host} sysctl -qw net.ipv4.tcp_congestion_control=reno"));
            if let Some(shaping) = shaping {
                run("tc", &format!("-n {host} qdisc add dev eth0 root {shaping}"));
                run("tc", &format!("-n {router} qdisc add dev p{server} root {shaping}"));
            }
        }
        Some(bed)
    }

    pub(super) fn router(&self) -> String {
        format!("{}-r", self.tag)
    }

    pub(super) fn host(&self, server: usize) -> String {
        format!("{}-h{server}", self.tag)
    }

    /// Workers are this test program itself, told to run one "test" only.
    pub(super) fn setup(&self) -> TrafficSetup {
        let path = |name: &str| PathBuf::from("/run/netns").join(name);
        let host = |server: usize| TrafficHost {
            name: self.host(server),
            namespace: path(&self.host(server)),
            address: Ipv4Addr::new(10, 77, server as u8, 2),
        };
        let port = |server: usize| WatchedPort {
            namespace: path(&self.router()),
            node: "r".to_owned(),
            interface: format!("p{server}"),
            peer: self.host(server),
            class: "router-server".to_owned(),
        };
        let program = std::env::current_exe().unwrap();
        let mut worker_command: Vec<OsString> =
            vec!["/usr/bin/env".into(), "WEFT_TRAFFIC_WORKER=1".into(), program.into()];
        worker_command.extend(["--exact", "traffic::tests::worker_entry", "--nocapture"].map(OsString::from));
        TrafficSetup {
            probed: None,
            hosts: (0..self.servers).map(host).collect(),
            daemons: Vec::new(),
            watched: (0..self.servers).map(port).collect(),
            segments_per_skb: 4,
            congestion_control: CongestionControl::Reno,
            worker_command,
        }
    }

    /// Processes whose command line names a server of this bed.
    pub(super) fn worker_pids(&self) -> Vec<u32> {
        self.workers().into_iter().map(|(pid, _)| pid).collect()
    }

    /// The process of one server.
    pub(super) fn worker_pid(&self, server: usize) -> u32 {
        let name = self.host(server);
        let found = self.workers().into_iter().find(|(_, line)| line.split('\0').any(|word| word == name));
        found.expect("the worker runs").0
    }

    fn workers(&self) -> Vec<(u32, String)> {
        let entries = fs::read_dir("/proc").unwrap();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let lines = pids.filter_map(|pid| Some((pid, fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?)));
        lines.filter(|(_, line)| line.contains(&format!("{}-h", self.tag))).collect()
    }
}

impl Drop for Star {
    fn drop(&mut self) {
        for name in (0..self.servers).map(|server| self.host(server)).chain([self.router()]) {
            let _ = Command::new("ip").args(["netns", "del", &name]).output();
        }
    }
}

impl FaultActuator for &Star {
    fn apply(&mut self, fault: &Fault) -> Result<(), String> {
        self.set(fault, "down")
    }
    fn repair(&mut self, fault: &Fault) -> Result<(), String> {
        self.set(fault, "up")
    }
}

impl Star {
    fn set(&self, fault: &Fault, state: &str) -> Result<(), String> {
        let FaultKind::LinkDown { b, .. } = &fault.kind else { return Err("only links fail here".to_owned()) };
        ip(&format!("-n {} link set p{b} {state}", self.router()));
        Ok(())
    }
}

fn ip(arguments: &str) {
    run("ip", arguments);
}

pub(super) fn run(program: &str, arguments: &str) {
    let output = Command::new(program).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

pub(super) fn trial(workload: Workload) -> Trial {
    Trial {
        workload,
        faults: Vec::new(),
        seed: 1,
        sample_interval: Nanos(100_000_000),
        tcp_interval: None,
        time_limit: Nanos(30_000_000_000),
        pin_and_measure_cost: false,
        replay: false,
        probes: None,
    }
}

/// Remembers what was reported and can ask to stop.
#[derive(Default)]
pub(super) struct Recorder {
    pub(super) advances: Mutex<Vec<(f64, String)>>,
    pub(super) stop: AtomicBool,
}

impl Progress for Recorder {
    fn phase(&self, _name: &str, _detail: &str) {}
    fn advance(&self, done_ratio: f64, text: &str) {
        self.advances.lock().unwrap().push((done_ratio, text.to_owned()));
    }
    fn note(&self, _line: &str) {}
    fn interrupted(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// Waits up to ten seconds for something to become true.
pub(super) fn eventually(what: &str, mut happens: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happens() {
        assert!(start.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
