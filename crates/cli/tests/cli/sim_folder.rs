//! The folder that `weft sim --out` leaves is a run folder: every command that takes one takes it, and alone it repeats its run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{ok, records, run, text, weft};

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(dir: &Path, name: &str, content: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).expect("the folder is ours");
    path.display().to_string()
}

/// A shuffle on the small fabric, into a folder.
fn shuffle(dir: &Path, name: &str, more: &[&str]) -> PathBuf {
    let out = dir.join(name);
    let shuffle = ["sim", "leaf-spine-small", "--workload", "shuffle", "--bytes", "100kB", "--quiet"];
    ok(&[&shuffle[..], more, &["--out", &out.display().to_string()]].concat());
    out
}

fn json(output: &str) -> serde_json::Value {
    serde_json::from_str(output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

#[test]
fn it_has_what_every_run_folder_has() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = shuffle(dir.path(), "one", &["--seed", "3"]);
    let mut names: Vec<String> = std::fs::read_dir(&out)
        .expect("it is there")
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let expected =
        ["fabric.yaml", "manifest.json", "records", "replay-1.html", "report.html", "scenario.toml", "summary.json"];
    assert_eq!(names, expected);
    let manifest = json(&read(&out.join("manifest.json")));
    assert_eq!((manifest["seed"].as_u64(), manifest["reproducible"].as_bool()), (Some(3), Some(true)));
    assert_eq!(manifest["scenario"], "shuffle on leaf-spine-small");
    assert_eq!(manifest["plan_text"].as_str(), Some(read(&out.join("scenario.toml")).as_str()));
    let summary = json(&read(&out.join("summary.json")));
    let of = |id: &str| {
        let claims = summary["claims"].as_array().expect("they are a list");
        claims.iter().find(|claim| claim["id"] == id).unwrap_or_else(|| panic!("no {id}: {summary}")).clone()
    };
    assert_eq!(
        (of("flows.shuffle")["ours"].as_f64(), of("flows_ended.shuffle")["ours"].as_f64()),
        (Some(12.0), Some(12.0))
    );
    assert_eq!(
        (of("mean_fct_ms.shuffle")["unit"].as_str(), of("flows.shuffle")["verdict"].as_str()),
        (Some("ms"), Some("info"))
    );
    let printed = json(&ok(&[
        "sim",
        "leaf-spine-small",
        "--workload",
        "shuffle",
        "--bytes",
        "100kB",
        "--seed",
        "3",
        "-o",
        "json",
    ]));
    let (printed, kept) = (&printed["fct"][0]["mean_fct_us"], &of("mean_fct_ms.shuffle")["ours"]);
    let ratio = printed.as_f64().expect("a number") / 1e3 / kept.as_f64().expect("a number");
    assert!((ratio - 1.0).abs() < 1e-5, "{printed} us, {kept} ms");
}

#[test]
fn it_is_asked_in_sql() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = shuffle(dir.path(), "one", &[]).display().to_string();
    let rows = |sql: &str| json(&ok(&["query", &out, sql, "-o", "json"]))["rows"].clone();
    assert_eq!(rows("select count(*), count(end_ns) from flows"), serde_json::json!([[12, 12]]));
    assert_eq!(
        rows("select value from settings where name = 'workload.shuffle.bytes_per_flow'"),
        serde_json::json!([[100_000]])
    );
    assert_eq!(rows("select count(*) from fabric_links"), serde_json::json!([[8]]));
    assert_eq!(
        rows("select value from parameters where name = 'scenario'"),
        serde_json::json!([["shuffle on leaf-spine-small"]])
    );
    assert_eq!(rows("select count(*) > 0 from estimates where metric = 'p99_fct_ms'"), serde_json::json!([[1]]));
}

#[test]
fn its_report_is_drawn_again_and_beside_others() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (one, other) = (shuffle(dir.path(), "one", &[]), shuffle(dir.path(), "other", &["--seed", "2"]));
    let (page, summary) = (read(&one.join("report.html")), read(&one.join("summary.json")));
    std::fs::remove_file(one.join("report.html")).expect("it is ours");
    ok(&["report", &one.display().to_string()]);
    assert_eq!((read(&one.join("report.html")), read(&one.join("summary.json"))), (page, summary));
    let both = json(&ok(&["report", &one.display().to_string(), &other.display().to_string(), "-o", "json"]));
    let readings = both["readings"].as_array().expect("they are a list");
    let of = |id: &str| readings.iter().filter(|reading| reading["claim"] == id).collect::<Vec<_>>();
    assert_eq!((of("flows.shuffle").len(), of("flows.shuffle")[1]["over_first"].as_f64()), (2, Some(1.0)), "{both}");
    let side_by_side = read(&one.join("side-by-side.html"));
    assert!(side_by_side.contains("shuffle on leaf-spine-small"), "{side_by_side}");
}

#[test]
fn it_is_a_point_of_a_series() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut folders: Vec<String> = (1..=3)
        .map(|seed| shuffle(dir.path(), &seed.to_string(), &["--seed", &seed.to_string()]).display().to_string())
        .collect();
    folders.push(shuffle(dir.path(), "larger", &["--time-limit", "50s"]).display().to_string());
    let folders: Vec<&str> =
        std::iter::once("trend").chain(folders.iter().map(String::as_str)).chain(["-o", "json"]).collect();
    let series = json(&ok(&folders));
    let rows = series["rows"].as_array().expect("they are a list");
    let mean: Vec<_> = rows.iter().filter(|row| row["metric"] == "mean_fct_ms.shuffle").collect();
    let runs: Vec<_> = mean.iter().map(|row| row["runs"].as_u64()).collect();
    assert_eq!(runs, [Some(3), Some(1)], "seeds are repetitions, another scenario of the same name is not: {series}");
    let subject = mean[0]["subject"].as_str().expect("it is text");
    assert!(
        subject.starts_with("shuffle on leaf-spine-small (sim, ") && mean[0]["subject"] != mean[1]["subject"],
        "{series}"
    );
}

#[test]
fn there_is_nothing_to_merge_in_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = shuffle(dir.path(), "one", &[]).display().to_string();
    let refused = run(&["merge", &out]);
    let says = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{says}");
    assert!(says.contains(&format!("{out} is a whole run and no shard")) && says.contains("`weft report`"), "{says}");
}

/// Copies a run folder, takes the first away with all that it was made of, and runs the command of its report in the copy.
fn repeated(dir: &Path, first: &Path, made_of: &[String]) -> (BTreeMap<PathBuf, Vec<u8>>, BTreeMap<PathBuf, Vec<u8>>) {
    let copy = dir.join("elsewhere").join("a copy");
    std::fs::create_dir_all(copy.join("records")).expect("the folder is ours");
    for file in ["scenario.toml", "fabric.yaml", "report.html"] {
        std::fs::copy(first.join(file), copy.join(file)).expect("it is there");
    }
    let before = records(first);
    std::fs::remove_dir_all(first).expect("it is ours");
    made_of.iter().for_each(|file| std::fs::remove_file(file).expect("it is ours"));
    let page = read(&copy.join("report.html"));
    let command = page.split("in this folder: <code>").nth(1).and_then(|rest| rest.split("</code>").next());
    let words: Vec<&str> = command.expect("the report says how to repeat it").split(' ').collect();
    assert_eq!(words[0], "weft");
    let mut again = weft();
    again.args(&words[1..]).args(["--quiet", "--out", "again"]).current_dir(&copy);
    let output = again.output().expect("the binary starts");
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    (before, records(&copy.join("again")))
}

#[test]
fn flags_on_a_fabric_are_in_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let fabric = ok(&["sim", "leaf-spine-small", "--workload", "permutation", "-o", "json"]);
    assert!(fabric.contains("leaf-spine-small"));
    let out = dir.path().join("first");
    let flags =
        ["--workload", "web-search", "--load", "70%", "--duration", "500ms", "--time-limit", "20s", "--seed", "7"];
    ok(&[&["sim", "leaf-spine-small"][..], &flags, &["--quiet", "--out", &out.display().to_string()]].concat());
    let (before, again) = repeated(dir.path(), &out, &[]);
    assert!(before.contains_key(Path::new("flows.csv")) && before == again, "the rows differ");
}

#[test]
fn a_scenario_and_the_fabric_that_it_names_are_in_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let yaml = read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics/leaf-spine-small.yaml")));
    let yaml = write(dir.path(), "mine.yaml", &yaml.replace("20 Mbit/s", "30 Mbit/s"));
    let scenario = format!(
        "[fabric]\nfile = \"{yaml}\"\n[switching]\necn_threshold = \"30 kB\"\n[transport]\ncongestion_control = \"dctcp\"\n\
         [workload]\nkind = \"traffic\"\nduration = \"1 s\"\nbackground = {{ sizes = \"web-search\", load_percent = 30 }}\n\
         [[fault]]\nkind = \"link-down\"\nat = \"200 ms\"\nlasts = \"300 ms\"\na = \"leaf1\"\nb = \"spine1\"\n\
         [sampling]\ninterval = \"100 ms\"\ntcp_interval = \"200 ms\"\n"
    );
    let scenario = write(dir.path(), "mine.toml", &scenario);
    let out = dir.path().join("first");
    let said = ok(&["sim", &scenario, "--quiet", "--out", &out.display().to_string()]);
    assert!(said.contains(" marked packets"), "{said}");
    let (before, again) = repeated(dir.path(), &out, &[yaml, scenario]);
    assert!(before.contains_key(Path::new("tcp.csv")) && before.contains_key(Path::new("events.csv")));
    assert!(before == again, "the rows differ");
}

#[test]
fn flows_of_a_file_and_their_spines_are_in_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let flows = write(dir.path(), "pinned.flows", "5000 1 3 20 1\n# all by the second spine\n0 0 2 10 1\n");
    let out = dir.path().join("first");
    ok(&["sim", "leaf-spine-small", "--flows", &flows, "--quiet", "--out", &out.display().to_string()]);
    let (before, again) = repeated(dir.path(), &out, &[flows]);
    assert!(before == again, "the rows differ");
}

#[test]
fn the_shipped_scenario_runs_by_its_name() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("first");
    let said = ok(&["sim", "web-search-dctcp", "--quiet", "--out", &out.display().to_string()]);
    assert!(said.contains(" marked packets") && said.contains("mean ms"), "{said}");
    assert!(
        said.lines().filter(|line| !line.contains(": ") || line.starts_with(' ')).all(|line| line.len() <= 80),
        "{said}"
    );
    let refused = run(&["sim", "web-search-dctcp", "--load", "80%"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

fn refusals(folder: &Path) -> Vec<Output> {
    let folder = folder.display().to_string();
    vec![run(&["query", &folder, "select count(*) from flows"]), run(&["report", &folder]), run(&["trend", &folder])]
}

#[test]
fn folders_that_are_broken_are_refused_with_the_file() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = shuffle(dir.path(), "one", &[]);
    let manifest = read(&out.join("manifest.json"));
    let broken = [
        ("manifest.json", manifest[..manifest.len() / 2].to_owned(), "manifest.json: EOF"),
        ("manifest.json", manifest.replace("bytes_per_flow", "bytes_a_flow"), "scenario.toml:"),
        ("manifest.json", manifest.replace("\"plan_text\"", "\"text\""), "missing field `plan_text`"),
    ];
    for (file, content, says) in broken {
        std::fs::write(out.join(file), content).expect("the folder is ours");
        for output in &refusals(&out)[..2] {
            let error = text(&output.stderr);
            assert!(matches!(output.status.code(), Some(1 | 2)) && error.contains(says), "{says}: {error}");
            assert!(!error.contains("panicked") && error.trim_end().lines().count() == 1, "{error}");
        }
    }
    std::fs::write(out.join("manifest.json"), &manifest).expect("the folder is ours");
    std::fs::remove_file(out.join("fabric.yaml")).expect("it is ours");
    for output in &refusals(&out)[1..] {
        let error = text(&output.stderr);
        assert!(output.status.code() == Some(1) && error.contains("fabric.yaml"), "{error}");
    }
    let nothing = run(&["query", &dir.path().display().to_string(), "select 1"]);
    assert!(text(&nothing.stderr).contains("`weft sim --out`"), "{}", text(&nothing.stderr));
}

#[test]
fn a_name_of_no_run_folder_is_refused_alike_by_all_that_take_one() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (none, empty) = (dir.path().join("none"), dir.path().join("empty"));
    std::fs::create_dir(&empty).expect("the folder is ours");
    let (none, empty) = (none.display().to_string(), empty.display().to_string());
    for verb in ["report", "trend", "query", "merge"] {
        for (folder, says) in [
            (&none, format!("there is no folder {none}")),
            (&empty, format!("{empty} is no {}", if verb == "merge" { "shard: " } else { "run folder; " })),
        ] {
            let output = run(&[verb, folder]);
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "weft {verb}: {error}");
            assert!(error.contains(&says), "weft {verb}: `{says}` is not in: {error}");
        }
    }
}

#[test]
fn counts_are_the_same_on_the_terminal_in_the_report_and_in_the_summary() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("run");
    let said = ok(&["sim", "web-search-dctcp", "--quiet", "--out", &out.display().to_string()]);
    let hops = said.lines().find_map(|line| line.split_once(" packet-hops")).expect("they are told").0;
    let hops = hops.rsplit(' ').next().expect("a number");
    assert!(hops.len() > 6 && !hops.ends_with('0'), "a count that rounding would change: {hops}");
    let summary = json(&read(&out.join("summary.json")));
    let claims = summary["claims"].as_array().expect("a list");
    let claim = claims.iter().find(|claim| claim["id"].as_str().is_some_and(|id| id.starts_with("packet_hops")));
    assert_eq!(claim.and_then(|claim| claim["ours"].as_f64()), hops.parse().ok(), "{summary}");
    let page = read(&out.join("report.html"));
    assert!(page.contains(hops), "{hops} is not in the report");
    assert!(!page.contains(">0.000 "), "a count of nothing is 0");
    let trend = ok(&["trend", &out.display().to_string(), "-o", "csv"]);
    assert!(trend.contains(&format!("{hops} packets")) || trend.contains(&format!(",{hops}")), "{trend}");
}
