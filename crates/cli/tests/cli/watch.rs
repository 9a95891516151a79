//! What daemons tell whoever watches over them: metrics that a real Prometheus scrapes, rules and dashboard that name nothing else,
//! logs as JSON.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::common::{one_lab_at_a_time, text};

const DAEMONS: [&str; 6] = ["agent", "directory", "switch", "tor", "vtep", "rbridge"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path.as_ref()).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

fn json(path: impl AsRef<Path>) -> Value {
    let found = read(path.as_ref());
    serde_json::from_str(&found).unwrap_or_else(|error| panic!("{}: {error}: {found}", path.as_ref().display()))
}

/// Expressions of the rules and of the dashboard, as Prometheus is asked them.
fn expressions() -> Vec<String> {
    let rules = read(root().join("contrib/prometheus/weft.rules.yml"));
    let rules = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ").map(str::to_owned));
    let board = json(root().join("contrib/grafana/weft.json"));
    let panels = board["panels"].as_array().expect("it has panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    let of_board = targets.map(|target| target["expr"].as_str().expect("a target asks").to_owned());
    rules.chain(of_board).map(|asked| asked.replace("$instance", ".*").replace("$__rate_interval", "1m")).collect()
}

/// Names of metrics in an expression: what stands before a brace or a range, and is no function.
fn names(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("weft_") || word.starts_with("process_")).map(str::to_owned).collect()
}

/// Names of the series that a text of metrics has or will have.
fn exposed(metrics: &str) -> BTreeSet<String> {
    let types = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types.map(|(name, kind)| if kind == "counter" { format!("{name}_total") } else { name.to_owned() }).collect()
}

fn promtool(args: &[&str]) {
    let tool = Command::new("promtool").args(args).current_dir(root().join("contrib/prometheus")).output();
    let tool = tool.expect("it is installed");
    assert!(tool.status.success(), "{args:?}: {}{}", text(&tool.stdout), text(&tool.stderr));
}

#[test]
fn rules_are_valid_and_fire_when_they_should() {
    if !weft_needs::program("promtool") {
        return;
    }
    promtool(&["check", "config", "prometheus.yml"]);
    promtool(&["test", "rules", "weft.rules.test.yml"]);
}

/// What scripts/metrics/machine.sh left of one run, for all tests of this file; `None` where it cannot run.
fn machine() -> Option<&'static Path> {
    static RUN: OnceLock<Option<PathBuf>> = OnceLock::new();
    let run = RUN.get_or_init(|| {
        let _turn = one_lab_at_a_time()?;
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("watch");
        // Of the last run of tests.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("queries"), expressions().join("\n") + "\n").unwrap();
        let output = Command::new("unshare")
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"])
            .arg(root().join("scripts/metrics/machine.sh"))
            .arg(env!("CARGO_BIN_EXE_weft"))
            .arg(&dir)
            .output()
            .expect("unshare is part of every Debian");
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        Some(dir)
    });
    run.as_deref()
}

#[test]
fn rules_and_dashboard_name_only_what_daemons_have() {
    let Some(dir) = machine() else { return };
    let mut there = BTreeSet::new();
    for daemon in DAEMONS {
        let metrics = read(dir.join(format!("{daemon}.metrics")));
        let version = env!("CARGO_PKG_VERSION");
        let info = format!("weft_build_info{{version=\"{version}\",daemon=\"{daemon}\"}} 1");
        assert!(metrics.contains(&info) && metrics.ends_with("# EOF\n"), "{metrics}");
        assert_eq!(read(dir.join(format!("{daemon}.ready"))), "ready\n");
        there.extend(exposed(&metrics));
    }
    check_counts(dir);
    for expression in &expressions() {
        let named = names(expression);
        assert!(!named.is_empty() || expression.starts_with("up{"), "asks for none of our metrics: {expression}");
        let missing: Vec<&String> = named.difference(&there).collect();
        assert!(missing.is_empty(), "no daemon has {missing:?}: {expression}");
    }
}

#[test]
fn logs_as_json_are_a_json_object_on_each_line() {
    let Some(dir) = machine() else { return };
    for daemon in DAEMONS {
        check_log(&dir.join(format!("{daemon}.log")), "INFO");
    }
    check_log(&dir.join("refused.log"), "ERROR");
}

#[test]
fn prometheus_scrapes_every_daemon_and_understands_every_expression() {
    if !weft_needs::program("prometheus") {
        return;
    }
    let Some(dir) = machine() else { return };
    let targets = json(dir.join("targets.json"));
    let active = targets["data"]["activeTargets"].as_array().expect("it has targets");
    assert_eq!(active.len(), DAEMONS.len());
    for target in active {
        assert_eq!((&target["health"], &target["lastError"]), (&Value::from("up"), &Value::from("")), "{target}");
    }
    for (number, expression) in expressions().iter().enumerate() {
        let answer = json(dir.join(format!("{number}.json")));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
    }
}

#[test]
fn a_bundle_has_everything_but_secrets_and_an_interrupted_one_is_none() {
    let Some(dir) = machine() else { return };
    let bundle = dir.join("bundle/weft-bundle");
    let mut files = Vec::new();
    let mut folders = vec![bundle.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let list = if entry.path().is_dir() { &mut folders } else { &mut files };
            list.push(entry.path());
        }
    }
    let secrets = read(dir.join("secrets"));
    assert!(secrets.lines().count() >= 16, "{secrets}");
    for file in &files {
        let found = read(file);
        let seen: Vec<&str> = secrets.lines().filter(|secret| found.contains(secret)).collect();
        assert!(seen.is_empty(), "{}: {seen:?}", file.display());
    }
    for daemon in DAEMONS {
        let of = bundle.join("daemons").join(daemon);
        assert!(read(of.join("settings.toml")).contains("http_listen"), "settings in force of {daemon}");
        assert!(read(of.join("metrics.txt")).contains(&format!("weft_{daemon}_")));
        assert!(read(bundle.join(format!("journal/weft-{daemon}.service.txt"))).contains("(removed)"));
        assert!(read(bundle.join(format!("settings/{daemon}.toml"))).contains("http_listen"));
    }
    assert!(read(bundle.join("daemons/agent/settings.toml")).contains("/etc/weft/agent.key"), "names of files stay");
    assert!(json(bundle.join("daemons/vtep/vni.json"))["vnis"].as_array().is_some_and(|rows| rows.len() == 10));
    assert!(json(bundle.join("daemons/rbridge/counters.json"))["counters"].is_object());
    assert!(json(bundle.join("doctor.json"))["checks"].is_array());
    assert!(read(bundle.join("pins.txt")).contains("/run/weft/bpf/switch/"));
    assert!(read(bundle.join("interfaces/eth0.txt")).contains("20.0.0.1/8"));
    assert!(read(bundle.join("about.txt")).contains("Linux version"));
    assert!(read(dir.join("again.log")).contains("choose another --out"));
    assert_eq!(std::fs::read_dir(dir.join("nothing")).unwrap().count(), 0, "Ctrl-C leaves nothing");
}

/// Something of what happened was counted.
fn check_counts(dir: &Path) {
    let agent = read(dir.join("agent.metrics"));
    let has = |text: &str, line: &str| assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    let misses = agent.lines().find_map(|line| line.strip_prefix("weft_agent_frames_total{outcome=\"arp_miss\"} "));
    // The kernel may have asked again.
    assert!(misses.is_some_and(|misses| misses.parse::<u64>().is_ok_and(|misses| misses >= 1)), "{agent}");
    has(&agent, "weft_agent_directory_answers 1");
    has(&read(dir.join("vtep.metrics")), "weft_vtep_vni_sent_bytes_total{vni=\"109\"} 0");
    has(&read(dir.join("vtep.metrics")), "weft_vtep_peers 1");
    has(&read(dir.join("rbridge.metrics")), "weft_rbridge_adjacencies{state=\"report\"} 0");
    has(&read(dir.join("rbridge.metrics")), "weft_rbridge_links 1");
    has(&read(dir.join("switch.metrics")), "weft_switch_own_las{tier=\"tor\"} 1");
}

/// Each line is JSON, and the last one of this level.
fn check_log(path: &Path, level: &str) {
    let log = read(path);
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", path.display())))
        .collect();
    let last = lines.last().unwrap_or_else(|| panic!("{} is empty", path.display()));
    assert_eq!(last["level"], level, "{log}");
    assert!(last["message"].is_string() && last["timestamp"].is_string(), "{log}");
}
