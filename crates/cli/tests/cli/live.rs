//! A lab that people change while it is up: links fail, fall silent and come back, and the checks say what the lab does.

use crate::common::{Machine, ok, one_lab_at_a_time, run, text};

/// Takes everything down when a test ends, also when it fails.
struct Sweep;

impl Drop for Sweep {
    fn drop(&mut self) {
        let _ = run(&["lab", "down", "--all"]);
    }
}

fn validated(arguments: &[&str]) -> (Option<i32>, serde_json::Value) {
    let output = run(&[&["lab", "validate", "--quiet", "-o", "json"], arguments].concat());
    let said = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (output.status.code(), said)
}

#[track_caller]
fn assert_passes(arguments: &[&str]) {
    let (code, said) = validated(arguments);
    assert_eq!(code, Some(0), "{said:#}");
}

/// What a check of this name found, first of all.
fn found(said: &serde_json::Value, check: &str) -> (bool, String) {
    let checks = said["checks"].as_array().expect("there are checks");
    let one = checks.iter().find(|one| one["check"] == check).unwrap_or_else(|| panic!("no {check}: {said:#}"));
    (one["passed"] == true, one["found"].as_str().unwrap_or_default().to_owned())
}

/// State of an interface, as the kernel says it.
fn operstate(node: &str, interface: &str) -> String {
    let shown = ok(&["lab", "exec", node, "--", "ip", "-j", "link", "show", "dev", interface]);
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    shown[0]["operstate"].as_str().unwrap_or_default().to_owned()
}

fn answers(from: &str, to: &str) -> bool {
    run(&["lab", "exec", from, "--", "ping", "-n", "-c", "1", "-W", "1", to]).status.success()
}

#[test]
fn links_and_switches_of_a_lab_fail_and_come_back_while_checks_follow() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    let before = Machine::now();
    ok(&["lab", "up", "vl2-4servers", "--name", "live", "--quiet"]);
    assert_passes(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let checks = folder.path().join("checks.toml");
    let two_ways = "[[width]]\nfrom = \"tor1\"\nto = \"tor2\"\nleast = 2\n[[path]]\nfrom = \"tor1\"\nto = \"tor2\"\nthrough = [\"agg1\"]\n";
    std::fs::write(&checks, two_ways).expect("it is writable");
    let checks = checks.to_str().expect("plain");
    assert_passes(&[checks]);

    // A link goes down at both ends and stays so; what is left is what the checks want, but for the two ways.
    let said = ok(&["lab", "fail", "agg1", "tor1", "--quiet", "-o", "json"]);
    assert!(
        said.contains(r#"{"kind":"link-down","a":"agg1","b":"tor1"}"#) && !said.contains(r#""routes_s":null"#),
        "{said}"
    );
    assert_eq!((operstate("tor1", "agg1"), operstate("agg1", "tor1")), ("DOWN".into(), "DOWN".into()));
    assert_passes(&[]);
    let (code, said) = validated(&[checks]);
    assert_eq!(code, Some(3), "{said:#}");
    assert_eq!(found(&said, "width"), (false, "1 of 2".into()));
    assert!(found(&said, "ways").0 && !found(&said, "path").0 && found(&said, "reach").0, "{said:#}");

    // Nobody is told that the other one is silent: what the checks want without both cannot be had.
    ok(&["lab", "silence", "tor1", "agg2", "--quiet"]);
    assert_eq!(operstate("tor1", "agg2"), "UP");
    assert!(!answers("s1", "20.0.0.3"), "both links of its ToR carry nothing");
    assert!(answers("s3", "20.0.0.4"), "the other rack's do");
    let nothing = run(&["lab", "repair", "tor2", "agg2"]);
    assert!(text(&nothing.stderr).contains("tor1 agg2 (silent)"), "{}", text(&nothing.stderr));
    ok(&["lab", "repair", "agg2", "tor1", "--quiet"]);
    assert_passes(&[]);

    // A whole switch, beside what is broken already, and all of it mended.
    ok(&["lab", "fail", "int1", "--quiet"]);
    assert_passes(&[]);
    ok(&["lab", "repair", "--all", "--quiet"]);
    assert_passes(&[checks]);
    assert_eq!(operstate("tor1", "agg1"), "UP");
    for (arguments, said) in [
        (&["fail", "s1"][..], "`s1` is no switch; name the two ends of its link, such as s1 tor1"),
        (&["fail", "ghost"], "no node `ghost`"),
        (&["silence", "tor1", "tor2"], "no link between `tor1` and `tor2`"),
        (&["repair", "int1"], "nothing of int1 is broken in lab `live`; broken: nothing"),
        (&["fail", "int1", "--lab", "other"], "no lab called `other`"),
    ] {
        let output = run(&[&["lab"], arguments].concat());
        assert!(!output.status.success() && text(&output.stderr).contains(said), "{}", text(&output.stderr));
    }
    assert_passes(&[checks]);
    // What is still broken goes with the lab.
    ok(&["lab", "silence", "int2", "--quiet"]);
    ok(&["lab", "down", "live"]);
    assert_eq!(before, Machine::now());
}

/// Frames of a campus and of tunnels at edge switches meet XDP programs, in whose place a silent link's are.
#[test]
fn a_lab_of_each_overlay_does_without_a_link_and_has_it_back() {
    let Some(_turn) = one_lab_at_a_time() else { return };
    let _sweep = Sweep;
    // Bridges have 802.1D's timers, and remember for a while where stations were on the old tree.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let checks = folder.path().join("checks.toml");
    std::fs::write(&checks, "within_s = 90").expect("it is writable");
    let checks = [checks.to_str().expect("plain")];
    for (fabric, overlay, [a, b]) in [
        ("trill-s1-s6", "rbridge", ["s1", "s3"]),
        ("trill-s1-s6", "bridge", ["s1", "s3"]),
        ("leaf-spine-small", "vtep", ["leaf1", "spine1"]),
        ("leaf-spine-small", "vtep-tor-xdp", ["leaf1", "spine1"]),
        ("leaf-spine-small", "routed", ["leaf1", "spine1"]),
    ] {
        ok(&["lab", "up", fabric, "--overlay", overlay, "--quiet"]);
        assert_passes(&checks);
        // A spanning tree takes seconds for each change, and its bridges have no programs to take the place of.
        let verbs = if overlay == "bridge" { &["fail"][..] } else { &["fail", "silence"] };
        for verb in verbs {
            ok(&["lab", verb, a, b, "--quiet"]);
            assert_passes(&checks);
            ok(&["lab", "repair", a, b, "--quiet"]);
            if overlay != "bridge" {
                assert_passes(&checks);
            }
        }
        ok(&["lab", "down", fabric]);
    }
}
