//! Fabrics that people name: by generators, by files beside files, in the spellings that they know; made, checked and drawn.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{ok, run, text, weft};

fn write(dir: &Path, name: &str, content: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("the folder is ours");
    std::fs::write(&path, content).expect("the folder is ours");
    path
}

fn refused(output: &Output, code: i32, says: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    for words in says {
        assert!(error.contains(words), "`{words}` is not in: {error}");
    }
}

const FAT_TREE: &str = "fat-tree:k=4,server_rate=10G,link_delay=1us";

#[test]
fn a_generator_runs_as_a_word_as_a_file_and_in_the_place_of_another() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("made.yaml").display().to_string();
    ok(&["fabric", "make", FAT_TREE, "-w", &file]);
    let sim = |named: &[&str]| {
        let traffic = ["--workload", "permutation", "--bytes", "20kB", "-q", "-o", "json"];
        let printed = ok(&[&["sim"], named, &traffic].concat());
        let mut printed: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
        printed["scenario"].take();
        printed
    };
    let word = sim(&["--fabric", FAT_TREE]);
    assert_eq!(word["flows"], 16);
    assert_eq!(sim(&[FAT_TREE]), word);
    assert_eq!(sim(&[&file]), word);
    let scenario = "[fabric]\ngenerator = \"mesh\"\nleaves = 3\n[workload]\nkind = \"permutation\"\nbytes_per_flow = \"20 kB\"\nshift = 8\n";
    let scenario = write(dir.path(), "scenario.toml", scenario).display().to_string();
    refused(&run(&["sim", &scenario]), 2, &["shift"]);
    let elsewhere = ok(&["sim", &scenario, "--fabric", FAT_TREE, "-q", "-o", "json"]);
    let elsewhere: serde_json::Value = serde_json::from_str(&elsewhere).expect("it is JSON");
    assert_eq!(elsewhere["fct"], word["fct"]);
    refused(&run(&["sim", "overlay-pair", "--fabric", FAT_TREE]), 2, &["are both fabrics; name one"]);
}

#[test]
fn a_file_is_made_once_checked_and_drawn() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = write(dir.path(), "mine.yaml", "mine\n");
    let file = path.display().to_string();
    refused(&run(&["fabric", "make", "fat-tree:k=4", "-w", &file]), 2, &["is there already; --force replaces it"]);
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "mine\n");
    ok(&["fabric", "make", "fat-tree:k=4", "-w", &file, "--force"]);
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), ok(&["fabric", "make", "fat-tree:k=4"]));
    let said = ok(&["fabric", "check", &file]);
    assert!(
        said.starts_with("fat-tree is a fabric: 36 nodes (8 aggregation, 4 core, 16 server, 8 tor), 48 links"),
        "{said}"
    );
    assert!(said.contains("servers send 320 Mbit/s in all, not oversubscribed"), "{said}");
    assert_eq!(ok(&["fabric", "draw", &file]), ok(&["fabric", "draw", "fat-tree:k=4"]));
    assert!(ok(&["fabric", "draw", &file, "--format", "svg"]).starts_with("<svg"));
    let listed = ok(&["fabric", "list", "-o", "json"]);
    assert!(listed.contains("\"vl2-4servers\"") && listed.contains("\"fat-tree:k=4\""), "{listed}");
    refused(&run(&["fabric", "make", "fat-tree"]), 2, &["`fat-tree` is a generator, which is written `fat-tree:k=4`"]);
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let text_of = "name: two\ntopology:\n  nodes:\n    l1: {role: leaf, image: frr}\n    h1: {role: host}\n  links:\n    \
        - endpoints: [\"l1:h1\", \"h1:eth0\"]\n      rate: 10 gbit/s\n";
    let file = write(dir.path(), "two.yaml", text_of).display().to_string();
    let output = run(&["fabric", "check", &file]);
    refused(&output, 3, &["two.yaml has 3 mistakes"]);
    let said = text(&output.stdout);
    for place in
        ["two.yaml:4:22: unknown key `image`", "two.yaml:5:16: unknown value `host`", "two.yaml:8:13: `10 gbit/s`"]
    {
        assert!(said.contains(place), "{place} is not in: {said}");
    }
    let listed: serde_json::Value =
        serde_json::from_slice(&run(&["fabric", "check", &file, "-o", "json"]).stdout).expect("it is JSON");
    assert_eq!(listed["mistakes"].as_array().map(Vec::len), Some(3), "{listed}");
    refused(&run(&["sim", &file, "--workload", "shuffle"]), 2, &["(and 2 more: weft fabric check "]);
    refused(&run(&["fabric", "check", "/no/such/file.yaml"]), 2, &["there is no such file"]);
}

#[test]
fn files_that_a_file_names_are_beside_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    ok(&[
        "fabric",
        "make",
        "leaf-spine:spines=2,leaves=2,servers_per_leaf=2",
        "-w",
        &dir.path().join("net.yaml").display().to_string(),
    ]);
    let scenario = "[fabric]\nfile = \"../net.yaml\"\n[workload]\nkind = \"flows\"\nflows = [{ from = 0, to = 3, bytes = \"100 kB\", start_ns = \"2 ms\" }]\n";
    let path = write(dir.path(), "below/scenario.toml", scenario);
    let plan = include_str!("plans/small-shuffle.toml");
    let (head, tail) = plan.split_once("generator =").expect("it has one");
    let (_, tail) = tail.split_once("link_delay = \"1 us\"").expect("it has one");
    let plan = format!("{head}file = \"../net\"{tail}").replace("[\"vl2\"]", "[\"routed\"]");
    let plan = write(dir.path(), "below/plan.toml", &plan);
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    // A file of that name in the current folder is another.
    write(elsewhere.path(), "net.yaml", "name: another\n");
    for (verb, path) in [("sim", &path), ("run", &plan)] {
        let mut command = weft();
        command.args([verb, "-q"]).arg(path).current_dir(elsewhere.path());
        let output = command.output().expect("the binary starts");
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 5)), "weft {verb}: {said}");
    }
    let alone = write(dir.path(), "below/alone.toml", &scenario.replace("../net.yaml", "none.yaml"));
    refused(&run(&["sim", &alone.display().to_string()]), 2, &["`none.yaml`", "there is no such file in ", "below; "]);
}

#[test]
fn what_is_there_and_cannot_be_read_is_not_called_missing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (verb, name, more) in [("sim", "folder.yaml", &["--workload", "shuffle"][..]), ("run", "folder.toml", &[])] {
        let folder = dir.path().join(name);
        std::fs::create_dir(&folder).expect("the folder is ours");
        let folder = folder.display().to_string();
        refused(&run(&[&[verb, &folder], more].concat()), 2, &["cannot read ", name, "Is a directory"]);
    }
    // A folder may be called like a fabric: it does not hide it.
    std::fs::create_dir(dir.path().join("leaf-spine-small")).expect("the folder is ours");
    let mut command = weft();
    command.args(["fabric", "draw", "leaf-spine-small"]).current_dir(dir.path());
    assert!(command.output().expect("the binary starts").status.success());
}

#[test]
fn a_number_without_a_sign_is_refused_with_what_it_can_be() {
    for (load, both) in [("0.8", "a percentage, `0.8%`, or a share, `80%`"), ("80", "it could be a percentage, `80%`")]
    {
        let output = run(&["sim", "leaf-spine-small", "--workload", "web-search", "--load", load]);
        refused(&output, 2, &["--load", "is not a percentage", both]);
    }
    let output = run(&["trend", "x", "--least", "5"]);
    refused(&output, 2, &["--least", "`5%`"]);
    assert!(!text(&output.stderr).contains("500%"), "no share is above 1: {}", text(&output.stderr));
}

#[test]
fn a_name_that_is_near_a_fabric_a_generator_or_a_scenario_is_understood() {
    for (word, meant) in [
        ("vl2-4server", "did you mean `vl2-4servers`?"),
        ("fat-tre", "did you mean `fat-tree:k=4`?"),
        ("web-search-dctpc", "did you mean `web-search-dctcp`? That is a scenario, which `weft sim` runs"),
        ("nonsense", "scenarios of `weft sim`: web-search-dctcp"),
    ] {
        for args in [&["sim", word, "--workload", "shuffle"][..], &["fabric", "check", word]] {
            refused(&run(args), 2, &[&format!("fabric `{word}`: there is no such file; "), meant, "weft fabric list"]);
        }
    }
    refused(&run(&["run", "web-search-dctcp"]), 2, &["that is a scenario: weft sim web-search-dctcp"]);
}

#[test]
fn a_file_of_the_other_format_is_called_what_it_is() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let scenario = include_str!("../../../../scenarios/web-search-dctcp.toml");
    let toml = write(dir.path(), "scenario.yaml", scenario).display().to_string();
    let yaml = write(dir.path(), "fabric.toml", include_str!("../../../../fabrics/vl2-4servers.yaml"));
    let yaml = yaml.display().to_string();
    let checked = run(&["fabric", "check", &toml]);
    assert_eq!(checked.status.code(), Some(3));
    let said = text(&checked.stdout);
    assert!(said.contains("this is TOML, as plans and scenarios are; a fabric is YAML"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for args in [&["list", &yaml][..], &["run", &yaml], &["sim", &yaml]] {
        refused(&run(args), 2, &["fabric.toml:", "this is YAML, as fabrics are; plans and scenarios are TOML"]);
    }
}
