//! `weft analyse` from the outside: a log that it wrote, one from a pipe, and what it leaves.

use std::io::Write;
use std::process::{Output, Stdio};

use crate::common::{text, weft};

fn analyse(args: &[&str]) -> Output {
    let output = weft().arg("analyse").args(args).output().expect("the binary starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn a_generated_log_says_the_same_when_it_is_read_again() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (log, out) = (dir.path().join("flows.csv"), dir.path().join("out"));
    let (log, out) = (log.display().to_string(), out.display().to_string());
    let size = ["--generate", "--duration", "20min", "--rack-count", "10", "--servers-per-rack", "4"];
    let made = json(&analyse(&[&size[..], &["-o", "json", "-w", &log, "--out", &out]].concat()));
    let read = json(&analyse(&[&log, "-o", "json"]));
    for number in ["schema_version", "flows", "bytes", "bytes_inside", "bytes_crossing", "sizes", "size_bins"] {
        assert_eq!(made[number], read[number], "{number}");
    }
    assert!(made["flows"].as_u64().expect("a number") > 1_000);
    assert_eq!((&made["servers"], &made["matrices"]["matrices"]), (&40.into(), &12.into()));
    // The same seed makes the same object; another does not.
    assert_eq!(made, json(&analyse(&[&size[..], &["-o", "json"]].concat())));
    assert_ne!(made["sizes"], json(&analyse(&[&size[..], &["-o", "json", "--seed", "2"]].concat()))["sizes"]);
    let page = std::fs::read_to_string(format!("{out}/figures.html")).expect("a page");
    assert!(
        page.contains("Fitting error by number of clusters") && !page.contains("http"),
        "it opens without a network"
    );
    for file in ["summary.json", "records/flow_sizes.csv", "records/concurrency.csv", "records/fitting.csv"] {
        assert!(std::path::Path::new(&out).join(file).exists(), "{file}");
    }
}

#[test]
fn nfdumps_table_comes_through_a_pipe() {
    const TABLE: &str = "\
Date first seen          Duration Proto      Src IP Addr:Port          Dst IP Addr:Port   Flags Tos  Packets    Bytes      pps      bps    Bpp Flows
2005-08-30 06:53:53.370    10.000 TCP           10.0.0.1:25    ->         10.0.1.1:3575   .AP.SF   0        9     1000        0      442     56     1
2005-08-30 06:54:13.370     0.000 UDP           10.0.0.1:53    ->          8.8.8.8:53     ......   0        1       50        0        0     50     1
Summary: total flows: 2, total bytes: 1050, total packets: 10, avg bps: 1, avg pps: 0, avg bpp: 124
";
    let mut command = weft();
    command.args(["analyse", "-", "--no-matrices", "-o", "csv"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
    child.stdin.take().expect("a pipe").write_all(TABLE.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("the child is ours");
    let printed = text(&output.stdout);
    assert!(output.status.success() && printed.contains("\ninside_over_outside,20,around 4,"), "{printed}");
}
