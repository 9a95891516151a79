//! Required claims on a system that something is wrong with: each has to come out as `fail`.
//!
//! [`MUTATIONS`] is the whole list. What is broken is broken from outside, with `ip`, `tc` and signals, in the namespaces of
//! the run, or in a copy of the plan; the product knows nothing of it. `make test` runs those that are short, `make mutations`
//! all of them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::common::{Machine, one_lab_at_a_time, text, weft};

/// With this, everything in the list runs.
const ALL: &str = "WEFT_MUTATIONS";

struct Mutation {
    plan: &'static str,
    /// What is wrong, in words.
    what: &'static str,
    /// Must fail; others may as well.
    claims: &'static [&'static str],
    breaks: Breaks,
    /// Whether it is a slice for `make test`.
    is_short: bool,
}

enum Breaks {
    /// Called on a thread of its own for each trial that begins, with what the run says of it.
    Live(fn(&Live, &str)),
    /// A change of the plan's text, as of a switch that is set up otherwise than it should be.
    Plan(fn(&str) -> String),
}

/// Longer than any run.
const UNTIL_THE_END: Duration = Duration::from_secs(3600);

/// Every node.
const ANY: &str = "";

const MUTATIONS: &[Mutation] = &[
    Mutation {
        plan: "vl2/smoke",
        what: "one ToR has half of its rate",
        claims: &["goodput_efficiency", "jain_flows"],
        breaks: Breaks::Live(|live, _| live.slow_switch("tor1", 0.5)),
        is_short: true,
    },
    Mutation {
        plan: "vl2/fig09-shuffle",
        what: "one ToR has half of its rate",
        claims: &["goodput_efficiency", "jain_flows"],
        breaks: Breaks::Live(|live, _| live.slow_switch("tor1", 0.5)),
        is_short: false,
    },
    Mutation {
        plan: "vl2/fig11-isolation",
        what: "a ToR loses half of its rate while service two ramps up",
        claims: &["service_one_change.long"],
        breaks: Breaks::Live(|live, _| {
            live.wait(Duration::from_secs(20));
            live.slow_switch("tor1", 0.5);
        }),
        is_short: false,
    },
    Mutation {
        plan: "vl2/fig13-convergence",
        what: "Aggregations keep on using dead links, and their routing daemon hangs while the first one dies",
        claims: &["outage_link_down_worst_s"],
        breaks: Breaks::Live(|live, _| {
            let aggregations = ["agg1", "agg2", "agg3"];
            live.keep_dead_links(&aggregations);
            live.wait(Duration::from_secs(6));
            let daemons = aggregations.map(|node| live.processes(node, "zebra")).concat();
            live.hang(&daemons, Duration::from_secs(6));
        }),
        is_short: false,
    },
    Mutation {
        plan: "vl2/fig14-update",
        what: "with the store's leader the rest of the store stands still for two seconds",
        claims: &["leader_kill_resume_s"],
        breaks: Breaks::Live(|live, trial| {
            if trial.contains("leader-kill") {
                live.hang_with_the_first_to_die("etcd");
            }
        }),
        is_short: false,
    },
    Mutation {
        plan: "vl2/fig14-convergence",
        what: "one of three directory servers stands still for a second",
        claims: &["visible_within_530ms"],
        breaks: Breaks::Live(|live, _| {
            live.wait(Duration::from_secs(5));
            let servers = live.processes(ANY, "node directory");
            live.hang(&servers[..servers.len().min(1)], Duration::from_secs(1));
        }),
        is_short: false,
    },
    Mutation {
        plan: "trill/convergence",
        what: "both edge RBridges stand still while a middle switch is lost",
        claims: &["outage_s.rbridge.link-down", "outage_s.rbridge.silent"],
        breaks: Breaks::Live(|live, trial| {
            if trial.contains("rbridge") {
                let edges = [live.processes("s1", "node rbridge"), live.processes("s2", "node rbridge")].concat();
                live.hang(&edges, Duration::from_secs(6));
            }
        }),
        is_short: false,
    },
    Mutation {
        plan: "trill/paths",
        what: "the RBridge of one of four paths stands still",
        claims: &["share_error.rbridge", "paths_used.rbridge"],
        breaks: Breaks::Live(|live, _| live.hang(&live.processes("spine4", "node rbridge"), UNTIL_THE_END)),
        is_short: false,
    },
    Mutation {
        plan: "validation/kernel-tcp",
        what: "the lab's link between the leaves has three quarters of its rate",
        claims: &["goodput_error"],
        breaks: Breaks::Live(|live, _| live.slow_switch("spine1", 0.75)),
        is_short: false,
    },
    Mutation {
        plan: "leaf-spine/incast-buffers",
        what: "the large buffers of leaves and spines are exchanged",
        claims: &["leaf_over_spine"],
        breaks: Breaks::Plan(|plan| {
            let away = replaced(plan, "leaf = \"100 MB\"", "rack = \"100 MB\"");
            replaced(
                &replaced(&away, "spine = \"100 MB\"", "leaf = \"100 MB\""),
                "rack = \"100 MB\"",
                "spine = \"100 MB\"",
            )
        }),
        is_short: false,
    },
];

/// `WEFT_MUTATIONS=all` runs all; any other word those whose plan has it in its name.
#[test]
fn what_is_broken_on_purpose_is_found() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let asked = std::env::var(ALL).ok();
    let wanted = |mutation: &&Mutation| match asked.as_deref() {
        None | Some("") => mutation.is_short,
        Some("all") => true,
        Some(word) => mutation.plan.contains(word),
    };
    let chosen: Vec<&Mutation> = MUTATIONS.iter().filter(wanted).collect();
    assert!(!chosen.is_empty(), "{ALL}={}: no plan of the list has that in its name", asked.unwrap_or_default());
    let before = Machine::now();
    let missed: Vec<String> = chosen.into_iter().filter_map(|mutation| missed(mutation).err()).collect();
    assert_eq!(missed, [""; 0], "not found");
    assert_eq!(before, Machine::now());
}

/// Runs the plan with what is wrong; an error if a claim does not fail.
fn missed(mutation: &Mutation) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let changed = folder.path().join("plan.toml");
    let plan = match mutation.breaks {
        Breaks::Live(_) => mutation.plan.to_owned(),
        Breaks::Plan(change) => {
            std::fs::write(&changed, change(&shipped(mutation.plan))).expect("a plan");
            changed.display().to_string()
        }
    };
    let mut command = weft();
    command.args(["run", &plan, "--quick", "-o", "json", "--out"]).arg(folder.path().join("run"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let begun = Instant::now();
    let (status, said, told) = watched(child, &mutation.breaks);
    let verdict = |claim: &&str| -> String {
        let found = said["claims"].as_array().into_iter().flatten().find(|one| one["id"] == **claim);
        found.map_or_else(|| "missing".to_owned(), |one| format!("{} {}", one["verdict"], one["ours"]))
    };
    let verdicts: Vec<String> = mutation.claims.iter().map(|claim| format!("{claim}: {}", verdict(claim))).collect();
    let line = format!("{}, {}: {}", mutation.plan, mutation.what, verdicts.join(", "));
    say(&format!("{line} (exit code {status:?}, {} s)", begun.elapsed().as_secs()));
    match status == Some(3) && mutation.claims.iter().all(|claim| verdict(claim).starts_with("\"fail\"")) {
        true => Ok(()),
        false => Err(format!("{line}; exit code {status:?}\n{told}")),
    }
}

#[allow(clippy::print_stderr)]
fn say(line: &str) {
    eprintln!("{line}");
}

/// Exit code, what it printed, and what it told meanwhile.
fn watched(mut child: Child, breaks: &Breaks) -> (Option<i32>, serde_json::Value, String) {
    let live = Live::default();
    let pipe = BufReader::new(child.stderr.take().expect("it is piped"));
    let told = std::thread::scope(|scope| {
        let mut told = String::new();
        for line in pipe.lines().map_while(Result::ok) {
            if let (Breaks::Live(act), Some(trial)) = (breaks, trial_of(&line)) {
                let (live, trial) = (&live, trial.to_owned());
                scope.spawn(move || act(live, &trial));
            }
            told += &line;
            told.push('\n');
        }
        live.is_over.store(true, Ordering::Relaxed);
        told
    });
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default(), told)
}

/// `       trial  2 of 3: all-to-all, vl2, seed 2`
fn trial_of(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("trial")?;
    rest.contains(" of ").then(|| rest.split_once(": ").map(|(_, trial)| trial)).flatten()
}

#[test]
fn trials_are_told_from_their_progress() {
    assert_eq!(trial_of("       trial  2 of 3: all-to-all, vl2, seed 2"), Some("all-to-all, vl2, seed 2"));
    assert_eq!(trial_of("       trial   14 %  1.34 Gb/s, 15/5550 flows, idle 0 %"), None);
}

fn shipped(plan: &str) -> String {
    let path = format!("{}/../../plans/{plan}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).expect("it is shipped")
}

fn replaced(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "`{old}` is not in the plan");
    text.replace(old, new)
}

/// A run's labs. What is done to them is done for each trial, and no worse for being done twice.
#[derive(Default)]
struct Live {
    is_over: AtomicBool,
    /// What ports were slowed to, bit/s.
    slowed: Mutex<BTreeMap<(String, String), f64>>,
}

impl Live {
    /// Until then, or until the run is over.
    fn wait(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn namespaces(node: &str) -> Vec<String> {
        let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let is_node = |name: &String| node == ANY || name.ends_with(&format!("-{node}"));
        names.filter(|name| name.starts_with("weft-") && is_node(name)).collect()
    }

    /// Every port of a switch sends with so much of its rate.
    fn slow_switch(&self, node: &str, share: f64) {
        let mut slowed = self.slowed.lock().unwrap_or_else(PoisonError::into_inner);
        for namespace in Self::namespaces(node) {
            for (device, rate_bps) in shaped(&namespace) {
                let known = slowed.entry((namespace.clone(), device.clone())).or_default();
                if (rate_bps / *known - 1.0).abs() < 0.01 {
                    continue;
                }
                *known = rate_bps * share;
                let rate = format!("{known:.0}bit");
                inside(&namespace, &format!("tc class change dev {device} parent 1: classid 1:1 htb rate {rate}"));
            }
        }
    }

    /// The processes of a node whose command line has `what` in it.
    fn processes(&self, node: &str, what: &str) -> Vec<String> {
        Self::namespaces(node).iter().flat_map(|namespace| running(namespace, what)).collect()
    }

    /// They stand still for so long.
    fn hang(&self, pids: &[String], time: Duration) {
        signal("-STOP", pids);
        self.wait(time);
        signal("-CONT", pids);
    }

    /// When the first of these processes is gone, the others stand still for two seconds.
    fn hang_with_the_first_to_die(&self, what: &str) {
        let pids = self.processes(ANY, what);
        let is_alive = |pid: &String| std::path::Path::new(&format!("/proc/{pid}")).exists();
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until && pids.iter().all(is_alive) {
            self.wait(Duration::from_millis(5));
        }
        let left: Vec<String> = pids.into_iter().filter(is_alive).collect();
        self.hang(&left, Duration::from_secs(2));
    }

    /// Routes over links that have lost their carrier stay in use until a routing daemon takes them out.
    fn keep_dead_links(&self, nodes: &[&str]) {
        for namespace in nodes.iter().flat_map(|node| Self::namespaces(node)) {
            for device in devices(&namespace).iter().map(String::as_str).chain(["all"]) {
                inside(&namespace, &format!("sysctl -qw net.ipv4.conf.{device}.ignore_routes_with_linkdown=0"));
            }
        }
    }
}

/// Processes in a namespace whose command line has this in it.
fn running(namespace: &str, what: &str) -> Vec<String> {
    let output = Command::new("ip").args(["netns", "pids", namespace]).output().expect("iproute2 is installed");
    let pids = text(&output.stdout);
    let is_there = |pid: &&str| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text(&line).replace('\0', " ").contains(what)
    };
    pids.lines().map(str::trim).filter(is_there).map(str::to_owned).collect()
}

fn signal(which: &str, pids: &[String]) {
    if !pids.is_empty() {
        let _ = Command::new("kill").arg(which).args(pids).status();
    }
}

fn inside(namespace: &str, command: &str) {
    lines_of(namespace, command);
}

/// What a command prints in a namespace. One that fails because the run has ended changes nothing.
fn lines_of(namespace: &str, command: &str) -> Vec<String> {
    let arguments = ["netns", "exec", namespace].into_iter().chain(command.split(' '));
    let output = Command::new("ip").args(arguments).output().expect("iproute2 is installed");
    text(&output.stdout).lines().map(str::to_owned).collect()
}

/// All but loopback.
fn devices(namespace: &str) -> Vec<String> {
    let names = lines_of(namespace, "ip -br link").into_iter();
    let names = names.filter_map(|line| line.split([' ', '@']).next().map(str::to_owned));
    names.filter(|name| name != "lo").collect()
}

/// Its shaped ports, and what their data may take, bit/s.
fn shaped(namespace: &str) -> Vec<(String, f64)> {
    let rate = |device: &String| {
        let lines = lines_of(namespace, &format!("tc class show dev {device}"));
        let class = lines.iter().find(|line| line.contains("htb 1:1 "))?;
        bits_per_s(class.split(' ').skip_while(|word| *word != "rate").nth(1)?)
    };
    devices(namespace).into_iter().filter_map(|device| rate(&device).map(|rate| (device, rate))).collect()
}

/// `9870Kbit`
fn bits_per_s(text: &str) -> Option<f64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let unit = match &text[digits..] {
        "bit" => 1.0,
        "Kbit" => 1e3,
        "Mbit" => 1e6,
        "Gbit" => 1e9,
        _ => return None,
    };
    Some(text[..digits].parse::<f64>().ok()? * unit)
}

#[test]
fn rates_are_read_as_tc_prints_them() {
    assert_eq!(["9870Kbit", "10Mbit", "1Gbit", "77bit"].map(bits_per_s), [9.87e6, 1e7, 1e9, 77.0].map(Some));
    assert_eq!(bits_per_s("fast"), None);
}
