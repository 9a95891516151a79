//! Plans of one's own: without claims, looked at before they run, with other values for a run.

use std::path::Path;

use crate::common::{ok, run, text};

/// Three ways to choose paths on a small fabric; nothing is claimed.
const PLAN: &str = r#"id = "mine/balance"
title = "which way to choose a path"
engines = ["sim"]
questions = "flow-summary"
overlays = ["routed"]
repetitions = 1

[fabric]
generator = "leaf-spine"
spines = 2
leaves = 2
servers_per_leaf = 4
server_rate = "10 Gbit/s"
core_rate = "10 Gbit/s"

[workload.all]
kind = "permutation"
bytes_per_flow = "200 kB"
shift = 4

[sweep.balance]
sets = ["switching.load_balance"]
values = ["flow-ecmp", "packet-spray"]

[switching]
load_balance = "flow-ecmp"

[sampling]
interval = "1 ms"
time_limit = "1 s"
"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("the folder is ours");
        path
    }
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What a command says on standard error when it ends with this code, and prints nothing.
fn refused(code: i32, args: &[&str]) -> String {
    let output = run(args);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "weft {}: {error}", args.join(" "));
    assert!(output.stdout.is_empty(), "results were printed: {}", text(&output.stdout));
    error
}

/// `line:column` of the first place where a text has a word.
fn place(text: &str, word: &str) -> String {
    let at = text.find(word).unwrap_or_else(|| panic!("`{word}` is not there"));
    let before = &text[..at];
    let column = at - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
    format!("{}:{column}", before.matches('\n').count() + 1)
}

#[test]
fn a_plan_without_claims_ends_with_its_metrics_by_variant() {
    let dir = Folder::new();
    let (plan, out) = (dir.file("mine.toml", PLAN), dir.path("out"));
    let output = run(&["run", &plan, "--quiet", "--out", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.lines().all(|line| line.chars().count() <= 80), "wider than 80 letters:\n{said}");
    let heading = said.lines().next().unwrap_or_default();
    assert_eq!(heading.split_whitespace().collect::<Vec<_>>(), ["metric", "flow-ecmp", "packet-spray"], "{said}");
    let goodput = said.lines().find(|line| line.contains(" goodput ")).unwrap_or_else(|| panic!("no goodput:\n{said}"));
    assert_eq!(goodput.matches("Gbit/s").count(), 2, "{said}");
    let time = said.lines().find(|line| line.contains(" p99_fct_ms ")).unwrap_or_else(|| panic!("no time:\n{said}"));
    assert_eq!(time.matches(" ms").count(), 2, "{said}");
    for word in ["inconclusive", "claim", "interval"] {
        assert!(!said.contains(word), "`{word}` where nothing is judged and nothing was repeated:\n{said}");
    }
    // The rows can be asked, the report has the same table, and can be drawn again.
    let asked = ok(&["query", &out, "select count(*) as n from estimates where metric = 'goodput'", "-o", "csv"]);
    assert_eq!(asked.trim(), "n\n2");
    let page = read(Path::new(&out).join("report.html"));
    let cell = goodput.split("  ").map(str::trim).find(|cell| cell.contains("Gbit/s")).expect("it has numbers");
    let cell = cell.replace('/', "&#x2f;");
    for part in ["Metrics of all variants", "<th>packet-spray</th>", &cell] {
        assert!(page.contains(part), "`{part}` is not in the report");
    }
    assert!(!page.contains("0 claims"), "claims that nobody made are counted");
    ok(&["report", &out]);
    assert_eq!(read(Path::new(&out).join("report.html")), page, "drawn again it is another page");
}

#[test]
fn programs_get_a_row_for_each_number_and_repetitions_make_intervals() {
    let dir = Folder::new();
    let plan = dir.file(
        "mine.toml",
        &PLAN.replace("\"permutation\"", "\"traffic\"").replace(
            "bytes_per_flow = \"200 kB\"\nshift = 4",
            "duration = \"5 ms\"\nbackground = { sizes = { fixed = \"50 kB\" }, load_percent = 50 }",
        ),
    );
    let three = ["--set", "repetitions=3"];
    let csv = ok(&[&["run", &plan, "-q", "-o", "csv", "--out", &dir.path("csv")][..], &three].concat());
    let header = csv.lines().next().unwrap_or_default();
    assert_eq!(header, "metric,balance,workload,value,low,high,n,unit,limited by");
    let goodput: Vec<&str> = csv.lines().filter(|line| line.starts_with("goodput,")).collect();
    assert_eq!(goodput.len(), 2, "{csv}");
    assert!(goodput[0].starts_with("goodput,flow-ecmp,all,") && goodput[0].ends_with(",3,bit/s,link"), "{csv}");
    let summary = json(&ok(&[&["run", &plan, "-q", "-o", "json", "--out", &dir.path("json")][..], &three].concat()));
    let metrics = summary["metrics"].as_array().expect("a list");
    let reading = metrics.iter().find(|one| one["id"] == "goodput.all.flow-ecmp").expect("it was asked");
    let (low, high) = (reading["interval"][0].as_f64(), reading["interval"][1].as_f64());
    assert!(low < high && reading["n"] == 3 && reading["place"]["balance"] == "flow-ecmp", "{reading}");
    assert!(csv.contains(&low.expect("a number").to_string()), "{csv}");
    let said = ok(&[&["run", &plan, "-q", "--out", &dir.path("people")][..], &three].concat());
    assert!(said.contains("below a number: its interval over the repetitions (median, "), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80 || line.contains(": ")), "{said}");
    // Runs without claims are held against each other by their metrics.
    let beside = ok(&["report", &dir.path("csv"), &dir.path("json"), "-o", "csv"]);
    assert!(beside.contains("goodput.all.flow-ecmp"), "{beside}");
}

/// What is wrong, where it stands in the text, and what is said of it.
const MISTAKES: [(&str, &str, &str, &str); 4] = [
    ("title = ", "titel = ", "titel", "unknown field `titel`; did you mean `title`?"),
    ("\"200 kB\"", "\"200 kilo\"", "\"200 kilo\"", "`workload.all.bytes_per_flow`: `200 kilo` is not a size"),
    (
        "spines = 2",
        "spines = \"two\"",
        "\"two\"",
        "`fabric.spines`: `\"two\"` is a text; a whole number must stand here",
    ),
    ("interval = \"1 ms\"", "interval = \"0 s\"", "interval = \"0", "`interval` of `sampling` is a time of 0"),
];

#[test]
fn four_mistakes_are_told_at_once_each_with_its_line() {
    let dir = Folder::new();
    let wrong = MISTAKES.iter().fold(PLAN.to_owned(), |text, (from, to, ..)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    let file = dir.file("wrong.toml", &wrong);
    for args in [&["run", "--dry-run", &file][..], &["run", &file], &["list", &file]] {
        let said = refused(2, args);
        for (_, _, word, message) in MISTAKES {
            let line = format!("wrong.toml:{}: {message}", place(&wrong, word));
            assert!(said.contains(&line), "`{line}` is not in:\n{said}");
        }
        assert!(said.starts_with("weft: 4 mistakes:\n") && said.lines().count() == 5, "{said}");
    }
}

#[test]
fn a_scenario_tells_all_its_mistakes_with_their_lines() {
    let dir = Folder::new();
    let text = "[fabric]\ngenerator = \"leaf-spine\"\nspines = 2\nleaves = 2\nservers_per_leaf = 2\n\n[switching]\nload_balance = \"ecmp\"\n\n\
                [transport]\nrto_min = 10\n\n[workload]\nkind = \"permutation\"\nbytes_per_flow = \"1 MB\"\nshift = 4\n\n\
                [[fault]]\nkind = \"link-down\"\nat = \"1 ms\"\na = \"leaf1\"\nb = \"spine9\"\n";
    let file = dir.file("wrong.toml", text);
    let said = refused(2, &["sim", &file]);
    for (word, message) in [
        ("\"ecmp\"", "unknown variant `ecmp`; did you mean `flow-ecmp`?"),
        ("10\n", "`10` is not a duration; write for example `45 s`; it has no unit"),
        ("shift = 4", "`shift` is 4; with this fabric it is 1 to 3"),
        ("\"spine9\"", "the fabric has no node `spine9`"),
    ] {
        let told = said
            .lines()
            .find(|told| told.contains(message))
            .unwrap_or_else(|| panic!("`{message}` is not in:\n{said}"));
        assert!(told.contains(&format!("wrong.toml:{}: ", place(text, word))), "{} of: {told}", place(text, word));
    }
    assert!(said.starts_with("weft: 4 mistakes:\n"), "{said}");
}

#[test]
fn a_dry_run_says_what_a_run_would_be_and_runs_nothing() {
    let dir = Folder::new();
    let plan = dir.file("mine.toml", PLAN);
    let said = ok(&["run", "--dry-run", &plan]);
    for part in [
        "mine/balance (default)",
        "2: 2 points of the sweep, 1 overlay, 1 workload, 1 repetition",
        "can run here",
        "packet-hops at 8 M a second and core",
        "(estimate: ",
        " a trial, ",
        "judged     nothing: all metrics are printed, by variant",
    ] {
        assert!(said.contains(part), "`{part}` is not in:\n{said}");
    }
    let all = json(&ok(&["run", "--dry-run", &plan, "leaf-spine/queues", "--quick", "-o", "json"]));
    let (mine, shipped) = (&all["plans"][0], &all["plans"][1]);
    assert!(mine["trials"] == 2 && mine["engines"][0]["engine"] == "sim", "{mine}");
    assert!(mine["engines"][0]["trial_bytes"].as_u64() > Some(0), "{mine}");
    assert!(shipped["judged"].as_array().is_some_and(|judged| !judged.is_empty()), "{shipped}");
    let left: Vec<_> = std::fs::read_dir(dir.0.path()).expect("it is there").flatten().collect();
    assert_eq!(left.len(), 1, "a dry run has left something: {left:?}");
    let listed = ok(&["list", &plan, "-o", "csv"]);
    assert!(listed.contains("mine/balance,-,sim,-,-"), "{listed}");
}

#[test]
fn settings_that_are_wrong_are_refused_as_in_the_file() {
    let dir = Folder::new();
    let plan = dir.file("mine.toml", PLAN);
    for (setting, says) in [
        ("workload.al.shift=2", "unknown name `al`; did you mean `all`?"),
        ("workload.all.shft=2", "unknown field `shft`; did you mean `shift`?"),
        ("transprot.rto_min=2", "unknown field `transprot`; did you mean `transport`?"),
        ("transport.rto_mim=2", "unknown field `rto_mim`; did you mean `rto_min`?"),
        ("sweep.load.values=[1]", "unknown axis or key `load`; it has: balance"),
        ("workload.all.shift=far", "`workload.all.shift`: `\"far\"` is a text; a whole number must stand here"),
        ("workload.all.bytes_per_flow=7", "`workload.all.bytes_per_flow`: `7` is not a size"),
        ("workload.all.shift=9", "`shift` is 9; with this fabric it is 1 to 7"),
        ("switching.load_balance=spray", "`switching.load_balance` has no effect"),
        ("sweep.balance.values=[packet-spry]", "unknown variant `packet-spry`; did you mean `packet-spray`?"),
        ("quick.repetitions=2", "`quick` is laid over the plan before settings are"),
        ("id.name=2", "`id` has no keys"),
    ] {
        let said = refused(2, &["run", &plan, "-q", "--out", &dir.path("out"), "--set", setting]);
        assert!(said.contains(says), "--set {setting}: `{says}` is not in: {said}");
        assert!(said.contains(&format!("--set {setting}: ")), "the place is not told: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let said = refused(2, &["run", &plan, "--set", "shift"]);
    assert!(said.contains("write KEY=VALUE"), "{said}");
    assert!(!Path::new(&dir.path("out")).exists(), "something was left behind");
}

#[test]
fn a_run_with_settings_is_the_run_of_the_file_with_these_values_and_repeats() {
    let dir = Folder::new();
    let plan = dir.file("mine.toml", PLAN);
    let edited =
        PLAN.replace("\"200 kB\"", "\"400 kB\"").replace("[\"flow-ecmp\", \"packet-spray\"]", "[\"packet-spray\"]");
    let edited = dir.file("edited.toml", &format!("{edited}\n[transport]\nrto_min = \"10 ms\"\n"));
    let settings = [
        "--set",
        "workload.all.bytes_per_flow=400 kB",
        "--set",
        "sweep.balance.values=[packet-spray]",
        "--set",
        "transport.rto_min=\"10 ms\"",
    ];
    let (set, same) = (dir.path("set"), dir.path("same"));
    ok(&[&["run", &plan, "-q", "--out", &set][..], &settings].concat());
    ok(&["run", &edited, "-q", "--out", &same]);
    let flows = |run: &str| read(Path::new(run).join("records/flows.csv"));
    assert_eq!(flows(&set), flows(&same), "a setting is not what the file would say");
    let manifest = json(&read(Path::new(&set).join("manifest.json")));
    let kept: Vec<&str> = settings.iter().skip(1).step_by(2).copied().collect();
    assert_eq!(manifest["set"], serde_json::json!(kept));
    assert_eq!(manifest["plan_text"], PLAN);
    // The report says how to do it again; the folder is read with the settings, as when it is drawn again.
    let page = read(Path::new(&set).join("report.html"));
    assert!(
        page.contains("--set &#x27;workload.all.bytes_per_flow=400 kB&#x27;"),
        "how to do it again is not in the report"
    );
    ok(&["report", &set]);
    assert_eq!(read(Path::new(&set).join("report.html")), page);
    let again: Vec<&str> =
        manifest["set"].as_array().expect("a list").iter().filter_map(serde_json::Value::as_str).collect();
    let again: Vec<&str> = again.into_iter().flat_map(|setting| ["--set", setting]).collect();
    let repeated = dir.path("repeated");
    ok(&[&["run", &plan, "-q", "--out", &repeated][..], &again].concat());
    assert_eq!(flows(&repeated), flows(&set));
    let beside = ok(&["report", &set, &same, "-o", "csv"]);
    assert!(beside.contains("goodput"), "{beside}");
}

#[test]
fn shards_of_other_settings_are_not_merged() {
    let dir = Folder::new();
    let plan = dir.file("mine.toml", PLAN);
    let (one, two, merged) = (dir.path("1"), dir.path("2"), dir.path("merged"));
    let set = ["--set", "workload.all.bytes_per_flow=300 kB"];
    ok(&[&["run", &plan, "-q", "--shard", "1/2", "--out", &one][..], &set].concat());
    ok(&["run", &plan, "-q", "--shard", "2/2", "--out", &two]);
    let said = refused(2, &["merge", &one, &two, "-q", "--out", &merged]);
    assert!(said.contains("other settings"), "{said}");
    let other = dir.path("2b");
    let missing = run(&["merge", &one, "-q", "--out", &merged]);
    assert!(text(&missing.stderr).contains("--set 'workload.all.bytes_per_flow=300 kB'"), "{}", text(&missing.stderr));
    ok(&[&["run", &plan, "-q", "--shard", "2/2", "--out", &other][..], &set].concat());
    ok(&["merge", &one, &other, "-q", "--out", &merged]);
    let whole = dir.path("whole");
    ok(&[&["run", &plan, "-q", "--out", &whole][..], &set].concat());
    let flows = |run: &str| read(Path::new(run).join("records/flows.csv"));
    assert_eq!(flows(&merged), flows(&whole));
}

#[test]
fn a_scenario_takes_settings_as_well() {
    let dir = Folder::new();
    let text = "[fabric]\ngenerator = \"leaf-spine\"\nspines = 2\nleaves = 2\nservers_per_leaf = 2\n[workload]\nkind = \"permutation\"\n\
                bytes_per_flow = \"100 kB\"\nshift = 2\n";
    let file = dir.file("mine.toml", text);
    let edited = dir.file("edited.toml", &text.replace("spines = 2", "spines = 3"));
    let results = |args: &[&str]| {
        let mut said = json(&ok(&[&["sim", "-q", "-o", "json"][..], args].concat()));
        said["scenario"] = "same".into();
        let told = said.as_object_mut().and_then(|said| said.remove("set")).unwrap_or_else(|| serde_json::json!([]));
        let given: Vec<&str> = args.iter().skip_while(|word| **word != "--set").skip(1).step_by(2).copied().collect();
        assert_eq!(told, serde_json::json!(given), "the summary does not say what was set");
        said
    };
    let set = results(&[&file, "--set", "fabric.spines=3", "--set", "switching.load_balance=packet-spray"]);
    assert_ne!(set, results(&[&file]));
    let both = results(&[&edited, "--set", "switching.load_balance=packet-spray"]);
    assert_eq!(set, both);
    // A fabric with traffic of the command line is a scenario, too.
    let traffic = ["leaf-spine-small", "--workload", "permutation", "--bytes", "10kB"];
    let plain = results(&traffic);
    let reno = results(&[&traffic[..], &["--set", "transport.congestion_control=cubic"]].concat());
    assert_eq!(plain["packet_hops"], reno["packet_hops"], "the default, said");
    let slow = results(&[&traffic[..], &["--set", "transport.initial_window=1"]].concat());
    assert_ne!(plain["fct"], slow["fct"]);
    let said = refused(2, &["sim", &file, "--set", "workload.shift=4"]);
    assert!(said.contains("--set workload.shift=4: ") && said.contains("it is 1 to 3"), "{said}");
    let said = refused(2, &["sim", &file, "--set", "switching.loadbalance=packet-spray"]);
    assert!(said.contains("did you mean `load_balance`?"), "{said}");
    // What would have no effect is refused, and what a flag says has no line.
    let said = refused(2, &["sim", &file, "--fabric", "fat-tree:k=4", "--set", "fabric.spines=3"]);
    assert!(said.contains("--set fabric.spines=3: `fabric.spines` has no effect: the command line names"), "{said}");
    let said = refused(2, &["sim", &file, "--set", "transport.congestion_control=dctcp"]);
    assert!(said.contains("dctcp: `transport.congestion_control`: `dctcp` without marks is Reno"), "{said}");
    let wrong = ["sim", "leaf-spine-small", "--workload", "permutation", "--shift", "99"];
    let said = refused(2, &[&wrong[..], &["--set", "transport.initial_window=1"]].concat());
    assert_eq!(said, refused(2, &wrong));
    assert!(said.starts_with("weft: leaf-spine-small: workload: `shift` is 99"), "{said}");
}

/// [`PLAN`] with a sweep over sizes of flows, and a claim on the last.
fn with_sizes() -> String {
    PLAN.replace(
        "[sweep.balance]\nsets = [\"switching.load_balance\"]\nvalues = [\"flow-ecmp\", \"packet-spray\"]",
        SIZES,
    )
}

const SIZES: &str = r#"[[claims]]
id = "goodput.all.400kB"
relation = "info"
unit = "bit/s"

[sweep.size]
sets = ["workload.all.bytes_per_flow"]
values = ["200 kB", "400 kB"]"#;

#[test]
fn a_claim_on_a_place_that_a_setting_took_away_is_told_with_the_setting_and_the_places() {
    let dir = Folder::new();
    let plan = dir.file("mine.toml", &with_sizes());
    let setting = "sweep.size.values=[200 kB, 800 kB]";
    let said = refused(2, &["run", &plan, "-q", "--out", &dir.path("out"), "--set", setting]);
    let told = "claim `goodput.all.400kB`: the plan has nothing called `400kB` for `size`; it has: 200kB, 800kB";
    assert_eq!(said.trim_end(), format!("weft: --set {setting}: {told}"));
    // A mistake in the file is told with its line, and the claim's name once.
    let file = dir.file("wrong.toml", &with_sizes().replace("goodput.all.400kB", "goodput.all.500kB"));
    let said = refused(2, &["run", &file, "--dry-run"]);
    assert!(said.contains(&format!("wrong.toml:{}: claim `", place(&read(&file), "id = \"goodput"))), "{said}");
    assert!(said.matches("goodput.all.500kB").count() == 1 && said.contains("it has: 200kB, 400kB"), "{said}");
    for (id, says) in [
        ("goodput.al.400kB", "nothing called `al` for `workload`; it has: all"),
        ("goodputt.all.400kB", "no such metric; did you mean `goodput`?"),
    ] {
        let file = dir.file("wrong.toml", &with_sizes().replace("goodput.all.400kB", id));
        let said = refused(2, &["run", &file, "--dry-run"]);
        assert!(said.contains(says) && said.matches(id).count() == 1, "{said}");
    }
}

#[test]
fn tables_that_are_written_as_words_are_told_as_tables() {
    let dir = Folder::new();
    let spellings = [
        "`\"flow-ecmp\"`",
        "`\"packet-spray\"`",
        "`{ flowlet = { gap = .. } }`",
        "`{ rehash = { hold = .., large = .. } }`",
        "`\"spanning-tree\"`",
    ];
    let listed = |said: &str| spellings.iter().all(|one| said.contains(one));
    for (word, says) in [
        ("\"flowlet\"", "`flowlet` is a table: `{ flowlet = { gap = .. } }`"),
        ("\"rehash\"", "`rehash` is a table: `{ rehash = { hold = .., large = .. } }`"),
        ("\"conga\"", "unknown variant `conga`; expected one of "),
        ("3", "`3` is a whole number; it must be one of "),
        ("{ conga = 3 }", "unknown variant `conga`; expected one of "),
    ] {
        let text = PLAN.split("[sweep.balance]").next().map(str::to_owned).unwrap_or_default()
            + &format!("[switching]\nload_balance = {word}\n\n[sampling]\ninterval = \"1 ms\"\ntime_limit = \"1 s\"\n");
        let file = dir.file("wrong.toml", &text);
        let said = refused(2, &["run", &file, "--dry-run"]);
        assert!(said.contains(says), "`{says}` is not in: {said}");
        assert!(!says.ends_with("one of ") || listed(&said), "not all that there are: {said}");
    }
    let table = "\"flow-ecmp\", { flowlet = { gap = \"1 us\" } }";
    let file = dir.file("wrong.toml", &PLAN.replace("\"flow-ecmp\", \"packet-spray\"", table));
    let said = refused(2, &["run", &file, "--dry-run"]);
    assert!(
        said.contains("a value of an axis is a number or a text") && said.contains("`[[sweep.balance.variant]]`"),
        "{said}"
    );
}

#[test]
fn a_workload_without_a_name_is_told_in_one_line() {
    let dir = Folder::new();
    let file = dir.file("mini.toml", &PLAN.replace("[workload.all]", "[workload]"));
    let said = refused(2, &["run", &file, "--dry-run"]);
    let line = said.lines().find(|line| line.contains("a plan's workload has a name: `[workload.NAME]`"));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains(&format!("mini.toml:{}", place(&read(&file), "kind = "))), "{said}");
    assert_eq!(said.matches("workload").count(), line.matches("workload").count(), "told more than once: {said}");
}

#[test]
fn a_dry_run_is_of_the_engine_and_the_mode_that_are_asked_for() {
    let dir = Folder::new();
    let plan = PLAN.replace("engines = [\"sim\"]", "engines = [\"lab\", \"sim\"]\nexpected_s = 777").replace(
        "kind = \"permutation\"\nbytes_per_flow = \"200 kB\"\nshift = 4",
        "kind = \"shuffle\"\nbytes_per_flow = \"200 kB\"",
    );
    let plan = dir.file("mine.toml", &format!("{plan}\n[quick]\nrepetitions = 1\n"));
    let output = run(&["run", "--dry-run", &plan, "--engine", "sim"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    assert!(said.contains("\n  sim ") && !said.contains("\n  lab "), "{said}");
    assert!(
        text(&run(&["run", "--dry-run", &plan]).stdout).contains("\n  lab "),
        "all engines where none is asked for"
    );
    let both = text(&run(&["run", "--dry-run", &plan, "--quick"]).stdout);
    assert!(!both.contains("about 13 min"), "the whole plan's time is not that of --quick: {both}");
}
