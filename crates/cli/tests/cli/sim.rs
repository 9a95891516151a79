//! The simulator from the outside: `weft sim` and sweeps of `weft run`, as any user on any Linux machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{ok, records, run, text, wait_for, weft};

const SWEEP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/plans/small-sweep.toml");
const SHUFFLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/plans/small-shuffle.toml");
/// Points times repetitions of the sweep.
const SWEEP_RUNS: usize = 3 * 2 * 2;

fn sweep(out: &Path, more: &[&str]) -> Command {
    let mut command = weft();
    command.args(["run", SWEEP, "--engine", "sim", "--out"]).arg(out).args(more);
    command
}

fn run_sweep(out: &Path, more: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
    let output = sweep(out, more).output().expect("the binary starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    records(out)
}

#[test]
fn a_seed_gives_the_same_records_on_any_number_of_workers() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let one = run_sweep(&dir.path().join("one"), &["--workers", "1"]);
    let two = run_sweep(&dir.path().join("two"), &["--workers", "2"]);
    assert!(one.contains_key(Path::new("flows.csv")) && one.contains_key(Path::new("queues.csv")), "{:?}", one.keys());
    assert!(one == two, "records differ between 1 and 2 workers");
    let other = run_sweep(&dir.path().join("other"), &["--seed", "2"]);
    assert!(one[Path::new("flows.csv")] != other[Path::new("flows.csv")], "another seed gave the same flows");
}

#[test]
fn an_interrupted_sweep_keeps_finished_runs_and_goes_on() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let whole = run_sweep(&dir.path().join("whole"), &[]);

    let out = dir.path().join("sweep");
    let child = sweep(&out, &["--workers", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the binary starts");
    let pid = child.id().to_string();
    wait_for("a finished run", || kept_runs(dir.path()) >= 1);
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("the child is ours");
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(output.stdout.is_empty() && !out.exists(), "half a result was presented as whole");
    assert!(errors.contains(&format!("of {SWEEP_RUNS} runs are kept")), "{errors}");
    let kept = kept_runs(dir.path());
    assert!((1..SWEEP_RUNS).contains(&kept), "{kept} runs were kept");

    let output = sweep(&out, &[]).output().expect("the binary starts");
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains(&format!("{kept} of {SWEEP_RUNS} runs are there from before")), "{errors}");
    assert!(records(&out) == whole, "the resumed sweep differs from one in a single piece");
    assert_eq!(kept_runs(dir.path()), 0, "the kept runs are no longer needed");
}

/// Whole runs in the folder of an unfinished sweep below `dir`.
fn kept_runs(dir: &Path) -> usize {
    let names = |dir: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(dir).map_or(Vec::new(), |entries| entries.flatten().map(|entry| entry.path()).collect())
    };
    let works = names(dir).into_iter().filter(|path| path.to_string_lossy().contains(".unfinished-"));
    works
        .flat_map(|work| names(&work))
        .filter(|run| run.join("index.json").is_file() && run.extension().is_none())
        .count()
}

const ONE_SEGMENT: &str = "[fabric]
generator = \"leaf-spine\"
spines = 2
leaves = 2
servers_per_leaf = 2
server_rate = \"10 Gbit/s\"
core_rate = \"40 Gbit/s\"
link_delay = \"1 us\"

[transport]
timestamps = false

[workload]
kind = \"flows\"
flows = [{ from = 0, to = 2, bytes = 1460, start_ns = 0 }]
";

fn write(dir: &Path, name: &str, content: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).expect("the folder is ours");
    path.display().to_string()
}

#[test]
fn a_scenario_file_runs_and_its_times_are_those_of_the_wire() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = write(dir.path(), "one-segment.toml", ONE_SEGMENT);
    let out = dir.path().join("rows");
    let first = ok(&["sim", &file, "-o", "json", "--out", &out.display().to_string()]);
    assert_eq!(first, ok(&["sim", &file, "-o", "json"]), "the same command printed something else");
    // SYN, SYN-ACK (78 B on the wire: 62.4 and 15.6 ns), then 1538 B (1230.4 and 307.6 ns), 4 us of propagation each.
    let fct_us = 3.0 * 4.0 + 2.0 * (2.0 * 0.0624 + 2.0 * 0.0156) + 2.0 * 1.2304 + 2.0 * 0.3076;
    let value: serde_json::Value = serde_json::from_str(&first).expect("one JSON object");
    assert_eq!((value["flows"].as_u64(), value["drops"].as_u64()), (Some(1), Some(0)));
    let all = &value["fct"][0];
    assert_eq!(all["class"], "all");
    let mean_us = all["mean_fct_us"].as_f64().expect("the flow has ended");
    assert!((mean_us - fct_us).abs() < 0.002, "{mean_us} us instead of {fct_us} us");
    let rows = std::fs::read_to_string(out.join("records/flows.csv")).expect("rows were written");
    assert_eq!(rows.lines().count(), 1 + 1, "{rows}");
    let again = run(&["sim", &file, "--out", &out.display().to_string()]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("exists already"), "{}", text(&again.stderr));
}

#[test]
fn a_fabric_and_flags_are_enough() {
    let table = ok(&["sim", "leaf-spine-small", "--workload", "shuffle", "--bytes", "100kB"]);
    assert!(table.contains("mean ms") && table.contains("packet-hops"), "{table}");
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
    assert!(!table.contains("marked"), "no switch marks: {table}");
    let csv = ok(&["sim", "leaf-spine-small", "--workload", "permutation", "--bytes", "20MB", "-o", "csv"]);
    let classes: Vec<_> = csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(classes, ["all", "large"], "{csv}");
    let vl2 = ok(&["sim", "vl2-4servers", "--workload", "permutation", "-o", "json"]);
    assert!(vl2.contains("\"overlay\":\"vl2\""), "{vl2}");
}

#[test]
fn a_flow_file_pins_flows_to_spines() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("rows");
    let flows = write(dir.path(), "pinned.flows", "# all by the second spine\n0 0 2 10 1\n1000 1 3 10 1\n");
    ok(&["sim", "leaf-spine-small", "--flows", &flows, "--out", &out.display().to_string(), "--time-limit", "1s"]);
    let links = std::fs::read_to_string(out.join("records/links.csv")).expect("rows were written");
    let header: Vec<&str> = links.lines().next().expect("it has a header").split(',').collect();
    let column = |name: &str| header.iter().position(|cell| *cell == name).expect("the column is there");
    let (node, sent) = (column("node"), column("sent_bytes"));
    let carried = |name: &str| {
        links
            .lines()
            .filter_map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                (cells[node] == name).then(|| cells[sent].parse::<u64>().expect("a number"))
            })
            .max()
    };
    assert_eq!(carried("spine1"), Some(0), "{links}");
    assert!(carried("spine2") > Some(10 * 1_460), "{links}");
}

#[test]
fn a_trace_is_readable_and_a_capture_is_read_by_others() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = write(dir.path(), "one-segment.toml", ONE_SEGMENT);
    let pcap = dir.path().join("uplink.pcapng");
    let pcap_text = pcap.display().to_string();
    let args = ["sim", &file, "--trace", "flow=0", "--capture", "s1:eth0", "-w", &pcap_text];
    let said = ok(&args);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("flow 0: 1460 bytes from s1 to s3, starts at 0.000 us"), "{said}");
    assert!(lines.iter().any(|line| line.contains("SYN-ACK")), "{said}");
    assert!(lines.iter().any(|line| line.contains("segment 0 s1 -> leaf1")), "{said}");
    let json = ok(&[&args[..], &["-o", "json"]].concat());
    let value: serde_json::Value = serde_json::from_str(&json).expect("one JSON object");
    assert!(value["trace"].as_array().is_some_and(|trace| trace.len() > 5), "{json}");
    assert!(pcap.is_file() && !dir.path().join("uplink.pcapng.partial").exists());

    let arguments = ["-n", "-T", "fields", "-e", "frame.len", "-e", "tcp.flags.syn", "-e", "tcp.len", "-r", &pcap_text];
    if weft_needs::program("tshark") {
        let read = Command::new("tshark").args(arguments).output().expect("it is installed");
        let packets = text(&read.stdout);
        let expected = ["54\t1\t0", "1514\t0\t1460", "54\t0\t0"];
        let found: Vec<&str> = packets.lines().map(|line| line.trim_end()).collect();
        assert!(expected[..2].iter().all(|line| found.contains(line)), "{packets}{}", text(&read.stderr));
    }
}

#[test]
fn rbridges_wrap_frames_as_an_independent_reader_expects() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let pcap = dir.path().join("trill.pcapng").display().to_string();
    let flow = ["--workload", "permutation", "--overlay", "trill", "--capture", "leaf1:spine1", "-w", &pcap];
    ok(&[&["sim", "leaf-spine-small"][..], &flow].concat());
    let fields = ["frame.len", "trill.egress_nick", "trill.ingress_nick", "trill.hop_cnt", "vlan.id", "ip.len"];
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-T", "fields", "-r", &pcap]).args(fields.iter().flat_map(|field| ["-e", field]));
    if weft_needs::program("tshark") {
        let read = tshark.output().expect("it is installed");
        let packets = text(&read.stdout);
        // Outer Ethernet 14, TRILL 6, inner Ethernet 14 and its tag 4 around packets of 52 and 1500 bytes.
        for expected in ["90\t4\t3\t63\t1\t52", "1538\t4\t3\t63\t1\t1500"] {
            assert!(packets.lines().any(|line| line == expected), "{expected}: {packets}{}", text(&read.stderr));
        }
    }
}

#[test]
fn an_interrupted_simulation_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (out, pcap) = (dir.path().join("rows"), dir.path().join("link.pcapng"));
    let mut command = weft();
    command.args(["sim", "leaf-spine-small", "--workload", "permutation", "--bytes", "100GB", "--time-limit", "10min"]);
    command.args(["--capture", "leaf1:spine1", "--out"]).arg(&out).arg("-w").arg(&pcap);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    wait_for("the capture", || dir.path().join("link.pcapng.partial").exists());
    std::thread::sleep(Duration::from_millis(200));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("the child is ours");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    let left: Vec<_> = std::fs::read_dir(dir.path()).expect("it is there").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn jobs_of_the_benchmark_count_what_the_reference_counts() {
    let output = run(&["bench", "sim", "--jobs", "r1a", "--rounds", "1", "-o", "json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let job = &value["jobs"][0];
    assert_eq!(
        (job["id"].as_str(), job["packet_hops"].as_u64(), job["drops"].as_u64()),
        (Some("r1a"), Some(8_000_800), Some(0))
    );
    let checks = value["checks"].as_array().expect("there are checks");
    let passed = |id: &str| checks.iter().find(|check| check["id"] == id).map(|check| check["verdict"] == "pass");
    assert_eq!(passed("r1a.packet_hops"), Some(true), "{value}");
    assert_eq!(passed("r1a.mean_fct_us"), Some(true), "{value}");
    // Speed depends on the machine, so it may fail here; then the exit code says so.
    let all = checks.iter().all(|check| check["verdict"] == "pass");
    assert_eq!(output.status.code(), Some(if all { 0 } else { 3 }), "{}", text(&output.stderr));
}

/// `weft bench sim --vs daytone` with a folder in which `bin/daytone` is this program, or is not there.
fn beside_daytone(program: Option<&str>) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(dir.path().join("bin")).expect("the folder is ours");
    if let Some(program) = program {
        std::os::unix::fs::symlink(program, dir.path().join("bin/daytone")).expect("the folder is ours");
    }
    let mut command = weft();
    command.args(["bench", "sim", "--jobs", "r1a", "--vs", "daytone"]).env("WEFT_DAYTONE", dir.path());
    let output = command.output().expect("the binary starts");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    (output.status.code(), text(&output.stderr).replace(&dir.path().display().to_string(), "DIR"))
}

#[test]
fn a_simulator_that_is_not_there_is_said_before_anything_is_measured() {
    let missing = "weft: daytone is not installed: DIR/bin/daytone is no file; pip install --target DIR daytone, name another \
                   folder by WEFT_DAYTONE, or leave out --vs daytone\n";
    assert_eq!(beside_daytone(None), (Some(4), missing.to_owned()));
    let (code, failed) = beside_daytone(Some("/bin/false"));
    assert_eq!((code, failed.trim_end()), (Some(1), "weft: daytone failed: no message (exit status: 1)"));
    let (code, failed) = beside_daytone(Some("/bin/true"));
    assert!(code == Some(1) && failed.starts_with("weft: daytone's sinks.csv: "), "{failed}");
}

#[test]
fn a_job_goes_to_another_simulator_with_every_stream_and_its_way() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("fat8.toml");
    let to_text = |path: &Path| path.to_str().expect("it is text").to_owned();
    ok(&["internal", "daytone-config", "fat8", &to_text(&file), &to_text(dir.path()), "--divisor", "500"]);
    let text = std::fs::read_to_string(file).expect("it is there");
    let lines = |begin: &str| text.lines().filter(|line| line.starts_with(begin)).collect::<Vec<_>>();
    assert_eq!((lines("[[flow]]").len(), lines("duration = 2.500000000").len()), (64, 64), "three packets each");
    let between_pods = |way: &&str| way.split(',').count() == 7;
    assert_eq!(lines("path = ").into_iter().filter(between_pods).count(), 64);
    let delays: Vec<f64> = serde_json::from_str(&ok(&["internal", "stream-delays", "fat8", "--divisor", "500"]))
        .expect("a list of numbers");
    assert_eq!(delays, [48_000.0; 64], "six links of 8 ms, and none meets another");
}

/// The questions of the help, as a shell would hand them over.
fn questions() -> Vec<String> {
    let help = ok(&["query", "--help"]);
    let asked = help.split("weft query RUN ").skip(1);
    asked
        .map(|rest| {
            let mark = rest.chars().next().expect("a question");
            rest[1..].split(mark).next().expect("it ends").to_owned()
        })
        .collect()
}

#[test]
fn the_questions_of_the_help_are_answered() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let run_folder = dir.path().join("shuffle").display().to_string();
    ok(&["run", SHUFFLE, "--engine", "sim", "--quiet", "--out", &run_folder]);
    let answers: Vec<serde_json::Value> = questions()
        .iter()
        .map(|sql| serde_json::from_str(&ok(&["query", &run_folder, sql, "-o", "json"])).expect("one JSON object"))
        .collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["columns"], serde_json::json!(["trial", "flows", "jain"]));
    assert_eq!(answers[0]["rows"].as_array().map(Vec::len), Some(2), "{}", answers[0]);
    assert!(answers[0]["rows"].as_array().is_some_and(|rows| rows.iter().all(|row| row[1] == 12)), "{}", answers[0]);
    assert!(answers[1]["rows"][0][0].as_f64().is_some_and(|p99_s| p99_s > 0.0), "{}", answers[1]);
    assert_eq!(answers[2]["rows"].as_array().map(Vec::len), Some(5), "{}", answers[2]);
    let tables = ok(&["query", &run_folder, "-o", "csv"]);
    assert!(
        tables.contains("flows,trial repetition seed overlay workload from to") && tables.contains("fabric_links,"),
        "{tables}"
    );
    let refused = run(&["query", &run_folder, "delete from flows"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("can only read"), "{}", text(&refused.stderr));
}

#[test]
fn what_a_run_comes_to_is_its_exit_code() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let shuffle = std::fs::read_to_string(SHUFFLE).expect("the plan is there");
    let thrice = shuffle.replace("repetitions = 2", "repetitions = 3") + "required = true\n";
    let twice = shuffle + "required = true\n";
    let elsewhere = "paper_wants = \"<= 0.4\"\nbecause = \"nobody is starved here\"\n";
    for (number, (plan, flags, code, says)) in [
        (thrice.clone(), &[][..], 0, "1 claim: 1 pass"),
        (thrice.replace("want = 0.5", "want = 1.5"), &[], 3, "1 claim: 1 fail"),
        (thrice.clone() + elsewhere, &[], 0, "1 claim: 1 differs"),
        (thrice + "bound = 0.1\n", &[], 5, "is more than there can be"),
        (twice.clone(), &[], 5, "1 claim: 1 inconclusive"),
        (twice.clone(), &["--allow-inconclusive"], 0, "1 claim: 1 inconclusive"),
        (twice.replace("required = true", ""), &[], 0, "1 claim: 1 inconclusive"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = dir.path().join(format!("{number}.toml"));
        std::fs::write(&path, plan).expect("the plan is written");
        let out = dir.path().join(number.to_string());
        let mut command = weft();
        command.args(["run", "--engine", "sim", "--quiet", "--out"]).arg(out).arg(path).args(flags);
        let output = command.output().expect("the binary starts");
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.code() == Some(code) && told.contains(says), "{number}: {:?} {told}", output.status);
    }
}

#[test]
fn flows_that_the_time_limit_cuts_off_have_a_line_of_their_own() {
    let permutation = ["sim", "leaf-spine-small", "--workload", "permutation", "--bytes", "10MB", "--quiet"];
    let said = ok(&[&permutation[..], &["--time-limit", "1 ms"]].concat());
    let line = said.lines().last().unwrap_or_default();
    assert_eq!(
        line,
        "time_limit 1 ms cut off 4 of 4 flows: what they sent is counted, and they have no completion time"
    );
    let whole = ok(&permutation);
    assert!(!whole.contains("cut off") && !whole.contains("not done"), "{whole}");
}
