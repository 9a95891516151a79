//! What is left of runs and measurements, and what is made of it over time: reports, bars, series, JUnit.

use std::path::Path;

use crate::common::{ok, run, text};

const SHUFFLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/plans/small-shuffle.toml");
const SWEEP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/plans/small-sweep.toml");

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The small shuffle as often as a verdict takes, with something else in it, as a file of its own.
fn shuffle_with(dir: &Path, from: &str, to: &str) -> String {
    let text = read(Path::new(SHUFFLE)).replace("repetitions = 2", "repetitions = 3").replace(from, to);
    let file = dir.join(format!("plan-{}.toml", to.len()));
    std::fs::write(&file, text).expect("the folder is ours");
    file.display().to_string()
}

/// The same with its mean completion time as a claim, on links of a rate.
fn plan_at(dir: &Path, rate_mbps: u32) -> String {
    let text = read(Path::new(SHUFFLE)).replace("repetitions = 2", "repetitions = 3");
    let text = text.replace("\"1 Gbit/s\"", &format!("\"{rate_mbps} Mbit/s\""));
    let metric = "[[metrics]]\nid = \"mean_fct_ms\"\nmeaning = \"mean completion time\"\n\
        sql = \"select avg(end_ns - start_ns) / 1e6 as value from flows group by trial\"\n";
    let claim =
        "[[claims]]\nid = \"mean_fct_ms\"\nrelation = \"<=\"\nwant = 1000.0\nunit = \"ms\"\nbaseline = \"all flows\"\n";
    let file = dir.join(format!("at-{rate_mbps}.toml"));
    std::fs::write(&file, format!("{text}\n{metric}{claim}")).expect("the folder is ours");
    file.display().to_string()
}

fn run_into(plan: &str, out: &Path, seed: u32) -> String {
    let (out, seed) = (out.display().to_string(), seed.to_string());
    ok(&["run", plan, "--engine", "sim", "--quiet", "--seed", &seed, "--out", &out]);
    out
}

/// Pages cannot scroll sideways if every table either stacks its cells on a narrow screen or scrolls within itself, and no drawing
/// has a width of its own. `make pages` looks at them in a browser.
fn fits_any_screen(page: &str) {
    assert!(page.contains("name=\"viewport\" content=\"width=device-width"), "{page}");
    for (place, _) in page.match_indices("<table") {
        let (before, table) = page.split_at(place);
        let stacks = table.starts_with("<table class=\"stack");
        assert!(stacks || before.ends_with("<div class=\"scroll\">"), "{}", &table[..table.len().min(200)]);
    }
    for (place, _) in page.match_indices("<svg") {
        let tag = page[place..].split('>').next().unwrap_or_default();
        assert!(tag.contains("viewBox") && !tag.contains(" width="), "{tag}");
    }
}

#[test]
fn a_report_says_what_came_out_draws_the_network_and_fits_any_screen() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let run_dir = run_into(&shuffle_with(dir.path(), "", ""), &dir.path().join("run"), 1);
    let page = read(&Path::new(&run_dir).join("report.html"));
    fits_any_screen(&page);
    let headline =
        page.split("class=\"headline\"").nth(1).and_then(|rest| rest.split("</p>").next()).unwrap_or_default();
    assert!(headline.contains("The one judged claim holds: jain_flows is "), "{headline}");
    assert!(page.find("class=\"headline\"") < page.find("<table"), "the verdict comes first");
    assert!([">int1</text>", ">tor4</text>", "The network: "].iter().all(|word| page.contains(word)));
}

#[test]
fn a_scenario_of_the_simulator_has_a_report_too() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("rows").display().to_string();
    let said = ok(&["sim", "leaf-spine-small", "--workload", "shuffle", "--bytes", "100kB", "--out", &out]);
    assert!(said.ends_with(&format!("report: {out}/report.html\nwatch: {out}/replay-1.html\n")), "{said}");
    let page = read(&Path::new(&out).join("report.html"));
    fits_any_screen(&page);
    let headline = "<p class=\"headline\">All 12 flows ended, mean completion time ";
    assert!(page.contains("shuffle on leaf-spine-small") && page.contains(headline), "{page}");
    let head = page.split("<h2>Results</h2>").next().unwrap_or_default();
    for (name, says) in [
        ("network", "leaf-spine-small: 2 spine, 2 leaf, 4 server"),
        ("links", "4 leaf-server of 20 Mbit&#x2f;s, buffer 4 MB; 4 spine-leaf of 200 Mbit&#x2f;s, buffer 16 MB"),
        ("overlay", "routed"),
        ("workload shuffle", "shuffle, bytes per flow 100 kB"),
        ("seed", "1"),
        ("again", "in this folder: <code>weft sim scenario.toml --seed 1</code>"),
    ] {
        assert!(head.contains(&format!("<tr><th>{name}</th><td>{says}</td></tr>")), "{name}: {head}");
    }
    for says in ["congestion control cubic", "load balance flow-ecmp", "forwarding store-and-forward"] {
        assert!(head.contains(says), "{says}: {head}");
    }
    let goodput = page.split("<code>goodput.shuffle</code>").nth(1).unwrap_or_default();
    assert!(goodput.split("</b>").next().is_some_and(|value| value.ends_with(" Mbit&#x2f;s")), "{goodput}");
    assert!(!page.contains("our link rates / the paper&#x27;s"), "there is no paper");
    for title in ["Use of links", "Distribution of completion times"] {
        assert!(page.contains(&format!("<h3>{title}</h3>")), "{title}");
    }
    assert!(!page.contains("Claims") && !page.contains("none, none"));
}

#[test]
fn several_plans_run_one_after_another_and_end_with_the_worst() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let failing = shuffle_with(dir.path(), "small-shuffle\"", "failing-shuffle\"");
    let text_of_plan = read(Path::new(&failing)).replace("want = 0.5", "want = 1.5");
    std::fs::write(&failing, text_of_plan).expect("the folder is ours");
    let out = dir.path().join("all");
    let junit = dir.path().join("junit.xml").display().to_string();
    let all =
        ["run", SHUFFLE, &failing, "--engine", "sim", "-q", "--junit", &junit, "--out", &out.display().to_string()];
    let output = run(&all);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("1 of 1 judged claim fails: jain_flows (") && said.contains(" < 1.5"), "{said}");
    assert!(
        out.join("test-small-shuffle/report.html").is_file() && out.join("test-failing-shuffle/report.html").is_file()
    );
    let junit = read(Path::new(&junit));
    assert_eq!((junit.matches("<testsuite ").count(), junit.matches("<failure message=\"").count()), (2, 1), "{junit}");
    let json = run(&[
        "run",
        SHUFFLE,
        &failing,
        "--engine",
        "sim",
        "-q",
        "-o",
        "json",
        "--out",
        &dir.path().join("again").display().to_string(),
    ]);
    let json: serde_json::Value = serde_json::from_str(&text(&json.stdout)).expect("one JSON object");
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(2), "{json}");
    assert_eq!(run(&["run", SHUFFLE, SWEEP, "--shard", "1/2"]).status.code(), Some(2));
}

#[test]
fn a_bar_between_two_runs_has_exit_codes() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let one = run_into(&plan_at(dir.path(), 1_000), &dir.path().join("one"), 1);
    let slower = run_into(&plan_at(dir.path(), 500), &dir.path().join("slower"), 1);
    let code = |bar: &str| run(&["report", &one, &slower, "--fail-if", bar]).status.code();
    assert_eq!(code("mean_fct_ms > 1.5"), Some(3), "half the rate takes twice the time");
    assert_eq!(code("mean_fct_ms > 3"), Some(0));
    assert_eq!(code("nothing > 3"), Some(1));
    assert_eq!(code("mean_fct_ms"), Some(2));
    let page = read(&Path::new(&one).join("side-by-side.html"));
    fits_any_screen(&page);
    assert!(page.contains("plan.fabric.server_rate") && page.contains("500 Mbit/s"), "what differs between the runs");
}

/// Two groups of equal runs, each with seeds of its own, and one on links that are a quarter slower.
#[test]
fn a_series_finds_a_slowdown_and_none_between_equal_builds() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (plan, slower) = (plan_at(dir.path(), 1_000), plan_at(dir.path(), 750));
    let mut folders = Vec::new();
    for group in 0..3 {
        std::fs::create_dir(dir.path().join(format!("build-{group}"))).expect("the folder is ours");
        for number in 0..6 {
            let out = dir.path().join(format!("build-{group}/{number}"));
            let plan = if group == 2 { &slower } else { &plan };
            folders.push(run_into(plan, &out, 1 + 100 * group + 10 * number));
        }
    }
    let trend = |more: &[&str]| {
        let words = ["trend", "--by", "folder"].into_iter().chain(folders.iter().map(String::as_str));
        run(&words.chain(more.iter().copied()).collect::<Vec<_>>())
    };
    let output = trend(&["-o", "json", "--fail-if-worse"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_str(&text(&output.stdout)).expect("one JSON object");
    let rows = json["rows"].as_array().expect("rows").iter().filter(|row| row["metric"] == "mean_fct_ms");
    let changes: Vec<&str> = rows.filter_map(|row| row["change"].as_str()).collect();
    assert_eq!(changes, ["none", "worse"], "{json:#}");
    let marked = text(&trend(&["--changes"]).stdout);
    assert!(marked.contains("build-2") && !marked.contains("build-1") && marked.contains("1 worse"), "{marked}");
}

#[test]
fn a_measurement_is_kept_and_taken_by_the_series() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("bench").display().to_string();
    // Whether floors are reached is the machine's; what is kept does not depend on it.
    let output = run(&["bench", "sim", "--jobs", "r1w", "--rounds", "1", "-q", "--out", &out]);
    assert!([Some(0), Some(3)].contains(&output.status.code()), "{}", text(&output.stderr));
    fits_any_screen(&read(&Path::new(&out).join("report.html")));
    let summary: serde_json::Value =
        serde_json::from_str(&read(&Path::new(&out).join("summary.json"))).expect("one JSON object");
    assert_eq!(summary["kind"], "bench sim --jobs r1w --rounds 1");
    assert!(read(&Path::new(&out).join("rows.csv")).starts_with("job,packet-hops,drops"));
    let series = ok(&["trend", &out]);
    assert!(series.contains("r1w.pace") && series.contains("r1w.packet_hops"), "{series}");
    let again = run(&["bench", "sim", "--jobs", "r1w", "--rounds", "1", "-q", "--out", &out]);
    assert!(again.status.code() == Some(1) && text(&again.stderr).contains("exists already"), "{again:?}");
}

#[test]
fn words_are_explained_and_commands_still_are() {
    let terms = ok(&["help", "terms"]);
    for word in ["AA", "LA", "ToR", "RBridge", "VTEP", "Intermediate", "VNI", "ECMP", "Jain", "slowdown", "limited by"]
    {
        assert!(
            terms.lines().any(|line| line.trim_start().starts_with(word) || line.contains(&format!(", {word} "))),
            "{word}"
        );
    }
    assert!(ok(&["help", "run"]).contains("--junit"));
    assert_eq!(run(&["help", "nothing"]).status.code(), Some(2));
}
