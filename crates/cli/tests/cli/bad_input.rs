//! Bad input: one line that names the place and says what to do, the right exit code, nothing left behind.

use std::path::PathBuf;

use crate::common::{run, text};

struct Case {
    args: Vec<String>,
    code: i32,
    says: &'static [&'static str],
}

fn file(dir: &tempfile::TempDir, name: &str, content: &str) -> String {
    let path: PathBuf = dir.path().join(name);
    std::fs::write(&path, content).expect("the folder is ours");
    path.display().to_string()
}

fn check(case: &Case) {
    let args: Vec<&str> = case.args.iter().map(String::as_str).collect();
    let output = run(&args);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(case.code), "weft {}: {error}", args.join(" "));
    for words in case.says {
        assert!(error.contains(words), "weft {}: `{words}` is not in: {error}", args.join(" "));
    }
    assert!(!error.contains("panicked"), "{error}");
    assert!(output.stdout.is_empty(), "results were printed: {}", text(&output.stdout));
    assert!(error.trim_end().lines().count() <= 2, "more than one line: {error}");
}

fn fabric(links: &str) -> String {
    format!(
        "name: bad\ntopology:\n  defaults:\n    link: {{ rate: 20 Mbit/s, buffer: 1 MiB }}\n  nodes:\n    int1: {{ role: intermediate }}\n    agg1: {{ role: aggregation }}\n    \
         tor1: {{ role: tor }}\n    s1: {{ role: server }}\n    s2: {{ role: server }}\n  links:\n{links}"
    )
}

const GOOD_LINKS: &str = "    - endpoints: [\"int1:agg1\", \"agg1:int1\"]\n    - endpoints: [\"agg1:tor1\", \"tor1:agg1\"]\n    \
                          - endpoints: [\"tor1:s1\", \"s1:eth0\"]\n    - endpoints: [\"tor1:s2\", \"s2:eth0\"]\n";

#[test]
fn fabrics_that_are_not_valid_are_refused_with_the_place() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let cases = [
        (
            "dangling.yaml",
            fabric(&format!("{GOOD_LINKS}    - endpoints: [\"int1:x\", \"ghost:eth0\"]\n")),
            &["ghost"][..],
        ),
        (
            "duplicate.yaml",
            fabric(&format!("{GOOD_LINKS}    - endpoints: [\"int1:agg1\", \"agg1:other\"]\n")),
            &["int1:agg1"],
        ),
        ("key.yaml", fabric(GOOD_LINKS).replace("name: bad", "name: bad\ncolour: red"), &["colour"]),
        (
            "long.yaml",
            fabric(GOOD_LINKS).replace("tor1:s1", "tor1:averyveryverylongname"),
            &["averyveryverylongname", "15"],
        ),
        (
            "rate.yaml",
            fabric(GOOD_LINKS).replace("\"s1:eth0\"]", "\"s1:eth0\"]\n      rate: 0 Mbit/s"),
            &["rate", "s1"],
        ),
        ("node.yaml", fabric(GOOD_LINKS).replace("    s2: {", "    s1: {"), &["s1"]),
        ("syntax.yaml", "name: [".to_owned(), &["syntax.yaml"]),
    ];
    for (name, content, says) in cases {
        let path = file(&dir, name, &content);
        check(&Case { args: vec!["lab".into(), "graph".into(), path.clone()], code: 2, says });
        check(&Case { args: vec!["lab".into(), "up".into(), path], code: 2, says });
    }
}

#[test]
fn plans_that_are_not_valid_are_refused_with_the_place() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let good = include_str!("../../../../plans/vl2/smoke.toml");
    let unknown = file(&dir, "unknown.toml", &format!("surprise = 1\n{good}"));
    check(&Case { args: vec!["run".into(), unknown], code: 2, says: &["surprise", "unknown.toml"] });
    let empty = file(&dir, "empty.toml", "id = \"x/empty\"\n");
    check(&Case { args: vec!["run".into(), empty], code: 2, says: &["empty.toml"] });
    check(&Case {
        args: vec!["run".into(), "vl2/no-such-figure".into()],
        code: 2,
        says: &["no-such-figure", "vl2/fig09-shuffle"],
    });
}

#[test]
fn flags_that_do_not_exist_are_usage_errors() {
    for args in [&["run"][..], &["lab", "down"], &["run", "x", "--quick", "--full"], &["nonsense"]] {
        assert_eq!(run(args).status.code(), Some(2), "weft {}", args.join(" "));
    }
}

#[test]
fn what_is_not_up_is_said() {
    check(&Case { args: vec!["lab".into(), "down".into(), "ghost".into()], code: 1, says: &["ghost"] });
}
