//! Bad input: one line that names the place and says what to do, the right exit code, nothing left behind.

use std::path::{Path, PathBuf};

use crate::common::{run, text};

struct Case<'a> {
    args: Vec<String>,
    code: i32,
    says: &'a [&'a str],
}

fn file(dir: &tempfile::TempDir, name: &str, content: &str) -> String {
    let path: PathBuf = dir.path().join(name);
    std::fs::write(&path, content).expect("the folder is ours");
    path.display().to_string()
}

fn check(case: &Case<'_>) {
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
        check(&Case { args: vec!["fabric".into(), "draw".into(), path.clone()], code: 2, says });
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

/// A scenario of the simulator that is good but for what `change` does to it.
fn scenario(old: &str, new: &str) -> String {
    let good = "[fabric]\ngenerator = \"leaf-spine\"\nspines = 2\nleaves = 2\nservers_per_leaf = 2\nserver_rate = \"10 Gbit/s\"\n\n\
                [workload]\nkind = \"traffic\"\nduration = \"1 ms\"\n\
                background = { sizes = { table = [[\"1 kB\", 0.5], [\"1 MB\", 1.0]] }, load_percent = 50 }\n";
    assert!(good.contains(old), "`{old}` is not there");
    good.replace(old, new)
}

#[test]
fn scenarios_that_are_not_valid_are_refused_with_the_place() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let flows = "[workload]\nkind = \"flows\"\nflows = [{ from = 1, to = 1, bytes = 1, start_ns = 0 }]\n#";
    let too_many = "[workload]\nkind = \"one-to-one\"\nfrom = 0\nto = 1\nflows = 4000000000\nduration = \"1 s\"\n#";
    let cases: &[(&str, &str, &[&str])] = &[
        ("[\"1 MB\", 1.0]", "[\"1 MB\", 0.4]", &[":11:", "row 2", "does not rise"]),
        ("[\"1 MB\", 1.0]", "[\"1 MB\", 0.9]", &[":11:", "ends at 0.9"]),
        ("load_percent = 50", "load_percent = 101", &[":11:", "load_percent", "1 to 100"]),
        ("[workload]", flows, &[":10:", "flow 1", "server 1 cannot send to itself"]),
        ("[workload]", too_many, &[":8:", "4000000000 flows", "allowed are 1 to 16777216"]),
        ("\"10 Gbit/s\"", "\"-10 Gbit/s\"", &[":6:", "`-10 Gbit/s` is not a rate"]),
        ("\"10 Gbit/s\"", "\"9999999 Gbit/s\"", &[":1:", "rate"]),
        ("spines = 2", "spines = 0", &[":3:", "spines"]),
        ("[fabric]", "[fabrics]", &["fabrics"]),
    ];
    for (number, (old, new, says)) in cases.iter().enumerate() {
        // What follows a table that was put in front would be keys of it.
        let text = scenario(old, new);
        let text = text.split_once("#\nkind").map_or(text.as_str(), |(kept, _)| kept);
        let name = format!("case-{number}.toml");
        let path = file(&dir, &name, text);
        check(&Case { args: vec!["sim".into(), path.clone()], code: 2, says });
        check(&Case { args: vec!["sim".into(), path], code: 2, says: &[name.as_str()] });
    }
}

/// VL2's largest network, read every microsecond for 20 minutes, would leave more rows than any machine has room for.
const TOO_MUCH: &str = "overlay = \"vl2\"\n[fabric]\ngenerator = \"vl2-clos\"\naggregation_ports = 144\nintermediate_ports = 144\n\
     server_rate = \"1 Gbit/s\"\n[workload]\nkind = \"mix\"\nduration = \"20 min\"\nsize_divisor = 1\n\
     offered_rate_per_server = \"200 Mbit/s\"\n[sampling]\ninterval = \"1 us\"\ntime_limit = \"20 min\"\n";

#[test]
fn what_no_machine_has_memory_for_is_refused_before_it_is_made() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let says = &["the run takes about ", " GiB of memory, and ", " are available; choose a smaller fabric"][..];
    let path = file(&dir, "much.toml", TOO_MUCH);
    check(&Case { args: vec!["sim".into(), path], code: 4, says });
    // 67 million links would take gigabytes by themselves.
    let ports = "generator = \"leaf-spine\"\nspines = 1024\nleaves = 1024\nservers_per_leaf = 252\nlinks_per_pair = 64";
    let clos = "generator = \"vl2-clos\"\naggregation_ports = 144\nintermediate_ports = 144";
    let servers = "generator = \"tree\"\nservers = 300000000";
    for (fabric, says) in [
        (ports, &[":2:", "67366912 links", "choose smaller switches"][..]),
        (servers, &[":4:", "servers = 300000000 makes no fabric", "choose 1 to 200000"]),
    ] {
        let path = file(&dir, "large.toml", &TOO_MUCH.replace(clos, fabric));
        check(&Case { args: vec!["sim".into(), path], code: 2, says });
    }
    let path = file(&dir, "often.toml", &read_often(include_str!("plans/small-sweep.toml")));
    let out = dir.path().join("out").display().to_string();
    let args = ["--quiet", "run", &path, "--out", &out].map(ToOwned::to_owned).into();
    check(&Case { args, code: 4, says });
    assert!(!Path::new(&out).exists(), "half a result was presented as whole");
}

/// A plan whose trials last a day and are read every nanosecond.
fn read_often(plan: &str) -> String {
    let line = |line: &str| match line.split_once(" = ") {
        Some((key @ ("duration" | "time_limit"), _)) => format!("{key} = \"1440 min\"\n"),
        Some(("interval", _)) => "interval = \"1 ns\"\n".to_owned(),
        _ => format!("{line}\n"),
    };
    plan.lines().map(line).collect()
}

#[test]
fn what_does_not_fit_the_fabric_is_refused_with_the_place() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let island = GOOD_LINKS.replace("    - endpoints: [\"agg1:tor1\", \"tor1:agg1\"]\n", "");
    let island = file(&dir, "island.yaml", &fabric(&island));
    let narrow =
        file(&dir, "narrow.yaml", &fabric(GOOD_LINKS).replace("buffer: 1 MiB }", "buffer: 1 MiB, mtu: 1500 }"));
    let flows = file(&dir, "bad.flows", "0 0 1 10 0\n0 0 1 ten 0\n");
    let words = |begin: &[&str], arguments: &[&str]| {
        begin.iter().chain(arguments).map(|word| (*word).to_owned()).collect::<Vec<String>>()
    };
    let sim = |arguments: &[&str]| words(&["sim"], arguments);
    let bench = |arguments: &[&str]| words(&["bench", "sim"], arguments);
    let cases: &[(Vec<String>, &[&str])] = &[
        (sim(&[&island, "--workload", "shuffle"]), &["island.yaml:8", "`tor1` cannot be reached"]),
        (sim(&[&narrow, "--workload", "shuffle"]), &["int1:agg1", "MTU is 1500", "1540"]),
        (sim(&["leaf-spine-small", "--flows", &flows]), &["bad.flows", "line 2"]),
        (sim(&["leaf-spine-small", "--workload", "web-search", "--load", "101%"]), &["load_percent", "101"]),
        (sim(&["leaf-spine-small", "--workload", "permutation", "--load", "10%"]), &["--load", "--bytes"]),
        (sim(&["leaf-spine-small", "--workload", "permutation", "--shift", "4"]), &["shift", "1 to 3"]),
        (sim(&["leaf-spine-small", "--workload", "permutation", "--trace", "flow=4"]), &["flow=4", "4 flows"]),
        (
            sim(&["leaf-spine-small", "--workload", "permutation", "--capture", "leaf1:x", "-w", "no.pcapng"]),
            &["leaf1", "`x`", "spine1"],
        ),
        (
            sim(&["vxlan-mixed", "--overlay", "routed", "--workload", "permutation"]),
            &["vxlan-mixed:", "`leaf1` forwards with `vtep-tor-xdp`", "use the lab"],
        ),
        (sim(&["leaf-spine-small"]), &["--workload"]),
        (sim(&["no-such-fabric", "--workload", "shuffle"]), &["no-such-fabric", "vl2-testbed"]),
        (sim(&["no-such-file.toml"]), &["no-such-file.toml"]),
        (bench(&["--jobs", "r9"]), &["r9", "r1a"]),
        (bench(&["--vs-ns3", "--jobs", "r9"]), &["no job `r9`"]),
    ];
    for (args, says) in cases {
        check(&Case { args: args.clone(), code: 2, says });
    }
    assert!(!std::path::Path::new("no.pcapng").exists());
}

#[test]
fn plans_with_bad_scenarios_are_refused_before_anything_runs() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let good = include_str!("plans/small-sweep.toml");
    for (old, new, says) in [
        ("load_percent = 30", "load_percents = 30", &["load_percent"][..]),
        ("values = [20, 40, 60]", "values = [20, 40, 160]", &["load=160", "load_percent"]),
        ("servers_per_leaf = 4", "servers_per_leaf = 0", &["servers_per_leaf"]),
        ("repetitions = 2", "repetitions = 2\ntransport = { initial_window = 0 }", &["initial_window"]),
    ] {
        assert!(good.contains(old));
        let plan = file(&dir, "bad.toml", &good.replace(old, new));
        let says: Vec<&str> = says.iter().copied().chain(["bad.toml"]).collect();
        check(&Case { args: vec!["run".into(), plan], code: 2, says: &says });
    }
}

#[test]
fn services_and_faults_of_plans_are_refused_with_the_line() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let isolation = include_str!("../../../../plans/vl2/fig11-isolation.toml");
    let convergence = include_str!("../../../../plans/vl2/fig13-convergence.toml");
    let two = "[workload.long.service.two]\nservers = [5, ";
    let third = "a = \"int1\"\nb = \"agg3\"";
    for (plan, from, to, blamed, says) in [
        (isolation, two, "[workload.long.service.two]\nservers = []\n# [", "servers = []", "names 0"),
        (
            isolation,
            two,
            "[workload.long.service.two]\nservers = [28, ",
            "[workload.long.service.two]",
            "server 28 is in service `one` already",
        ),
        (
            isolation,
            two,
            "[workload.long.service.two]\nservers = [37, ",
            "[workload.long.service.two]",
            "no server number 37",
        ),
        (convergence, third, "a = \"int1\"\nb = \"tor3\"", "b = \"tor3\"", "no link connects `int1` and `tor3`"),
        (convergence, third, "a = \"int1\"\nb = \"agg9\"", "b = \"agg9\"", "no node `agg9`"),
    ] {
        assert!(plan.contains(from), "{from}");
        let plan = plan.replacen(from, to, 1);
        let place = plan.lines().position(|line| line == blamed).expect("it was put there");
        // Of what two keys say together the table is to blame.
        let heading =
            || plan.lines().take(place + 1).collect::<Vec<_>>().iter().rposition(|line| line.starts_with('['));
        let blamed = if says.contains(" connects ") { heading().expect("a table") } else { place };
        let line = format!("plan.toml:{}:", blamed + 1);
        let out = dir.path().join("out").display().to_string();
        let path = file(&dir, "plan.toml", &plan);
        let args = ["--quiet", "run", &path, "--quick", "--out", &out].map(ToOwned::to_owned).into();
        check(&Case { args, code: 2, says: &[&line, says] });
        assert!(!Path::new(&out).exists(), "half a result was presented as whole");
    }
}

#[test]
fn flags_that_do_not_exist_are_usage_errors() {
    for args in [
        &["run"][..],
        &["lab", "down"],
        &["run", "x", "--quick", "--full"],
        &["nonsense"],
        &["run", "x", "--workers", "0"],
        &["sim", "x", "--trace", "17"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "weft {}", args.join(" "));
    }
}

#[test]
fn calculations_that_cannot_be_made_are_refused_by_name() {
    for (flags, says) in [
        ("--servers 0", &["`servers` is 0"][..]),
        ("--servers 35000 --oversubscription 0", &["`oversubscription` is 0"]),
        ("--servers 35000 --switch 25:1000", &["25 ports", "even number"]),
        ("--servers 35000 --tor-usd=-1", &["`tor_usd` is -1"]),
        ("--servers 300000", &["no VL2 network", "300000 servers", "larger switch"]),
    ] {
        let args = ["calc", "cost"].into_iter().chain(flags.split(' ')).map(ToOwned::to_owned).collect();
        check(&Case { args, code: 2, says });
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = include_str!("../../../../plans/vl2/fig15-link-utilisation.toml");
    for (from, to, says) in [
        ("intermediates = 2", "intermediates = 9", &["`intermediates` is 9; the fabric has 5"][..]),
        ("jobs = 8", "jobs = 0", &["`jobs` is 0"]),
        (
            "job_racks = 12 }",
            "job_racks = 12 }\nmost_use = 0.01",
            &["matrix 1 (from 0 s)", "infeasible", "alone needs"],
        ),
        ("engines = [\"calc\"]", "engines = [\"lab\"]", &["need `engines = [\"calc\"]`"]),
    ] {
        let path = file(&dir, "plan.toml", &plan.replace(from, to));
        let out = dir.path().join("out").display().to_string();
        let args = ["--quiet", "run", &path, "--quick", "--out", &out].map(ToOwned::to_owned).into();
        check(&Case { args, code: 2, says });
        assert!(!Path::new(&out).exists(), "half a result was presented as whole");
    }
}

#[test]
fn what_is_not_up_is_said() {
    check(&Case { args: vec!["lab".into(), "down".into(), "ghost".into()], code: 1, says: &["ghost"] });
}

#[test]
fn settings_of_an_rbridge_are_refused_with_the_place() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let port = "[[port]]\ninterface = \"weft-none\"\nkind = \"p2p\"\n";
    let cases = [
        ("empty.toml", String::new(), &["missing field `name`"][..]),
        ("key.toml", "name = \"s1\"\ncolour = 1\n".to_owned(), &["key.toml", "line 2", "colour"]),
        ("ports.toml", "name = \"s1\"\n".to_owned(), &["port: there are 0", "[[port]]"]),
        ("nickname.toml", format!("name = \"s1\"\nnickname = 65535\n{port}"), &["nickname: 0xffff is reserved"]),
        (
            "vlan.toml",
            format!("name = \"s1\"\n{port}designated_vlan = 4095\n"),
            &["port: 1 (`weft-none`)", "VLAN 4095"],
        ),
        (
            "keys.toml",
            format!("name = \"s1\"\n[authentication]\nkey_file = \"/nonexistent/campus.keys\"\n{port}"),
            &["key file /nonexistent/campus.keys", "umask 077"],
        ),
        ("interface.toml", format!("name = \"s1\"\n{port}"), &["port: 1 (`weft-none`): no such interface"]),
    ];
    for (name, content, says) in &cases {
        let path = file(&dir, name, content);
        let args = ["node", "rbridge", "--config", &path].map(ToOwned::to_owned).into();
        check(&Case { args, code: 2, says });
    }
    let nowhere = dir.path().join("none.sock").display().to_string();
    let args = ["show", "rbridge", "route", "--socket", &nowhere].map(ToOwned::to_owned).into();
    check(&Case { args, code: 1, says: &["no RBridge answers", "weft node rbridge"] });
}

#[test]
fn blocks_of_aas_and_las_that_overlap_are_refused_with_the_setting() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (daemon, from, to, says) in [
        (
            "agent",
            "own_tor_la = \"10.1.0.1\"",
            "own_tor_la = \"20.1.0.1\"",
            "own_tor_la: 20.1.0.1 is inside the AA block",
        ),
        ("agent", "la = \"10.64.0.2\"", "la = \"20.64.0.2\"", "la: 20.64.0.2 is inside the AA block"),
        ("agent", "\"10.64.0.9:", "\"20.64.0.9:", "directory_servers: 20.64.0.9 is inside the AA block"),
        ("agent", "20.0.0.0/8", "0.0.0.0/0", "aa_block: 0.0.0.0/0 overlaps 100.64.0.0/10"),
        ("directory", "20.0.0.0/8", "10.0.0.0/8", "10.64.0.9 is inside the AA block 10.0.0.0/8"),
        ("directory", "\"10.1.0.2\"", "\"20.1.0.2\"", "tor_las: 20.1.0.2 is inside the AA block"),
    ] {
        let example = run(&["node", daemon, "--print-example"]);
        let example = text(&example.stdout);
        assert!(example.contains(from), "{from} is not in {example}");
        let path = file(&dir, "config.toml", &example.replace(from, to));
        let args = ["node", daemon, "--config", &path].map(ToOwned::to_owned).into();
        check(&Case { args, code: 2, says: &[says] });
    }
}

#[test]
fn flow_logs_that_are_wrong_are_refused_with_the_line() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let head = "start_s,end_s,from,to,bytes\n1,2,10.0.0.1,10.0.1.1,5\n";
    for (name, content, says) in [
        ("columns.csv", "start_s,end_s,from,to\n".to_owned(), &["line 1", "bytes"][..]),
        ("short.csv", format!("{head}1,2,10.0.0.1\n"), &["line 3", "3 columns"]),
        ("back.csv", format!("{head}0,2,10.0.0.1,10.0.1.1,5\n"), &["line 3", "time goes back", "--reorder"]),
        ("address.csv", format!("{head}1,2,tor1,10.0.1.1,5\n"), &["line 3", "tor1", "from"]),
        ("ends.csv", format!("{head}3,2,10.0.0.1,10.0.1.1,5\n"), &["line 3", "ends before it starts"]),
        ("empty.csv", String::new(), &["no flows"]),
    ] {
        let (path, out) = (file(&dir, name, &content), dir.path().join("out").display().to_string());
        let args = vec!["analyse".into(), path, "--out".into(), out.clone()];
        check(&Case { args, code: 2, says: &[says, &[name]].concat() });
        assert!(!Path::new(&out).exists(), "half a result was presented as whole");
    }
    let good = file(&dir, "good.csv", head);
    let racks = file(&dir, "racks", "10.0.0.0/24 tor1\n10.0.1.1/24 tor2\n");
    for (flags, says) in [
        (vec!["--racks".to_owned(), racks], &["line 2", "10.0.1.1/24"][..]),
        (vec!["--interval".to_owned(), "0 s".to_owned()], &["--interval"]),
    ] {
        let args = [vec!["analyse".to_owned(), good.clone()], flags].concat();
        check(&Case { args, code: 2, says });
    }
    check(&Case { args: vec!["analyse".into(), "/no/such/log".into()], code: 2, says: &["/no/such/log"] });
}

#[cfg(feature = "lab")]
#[test]
fn hosts_that_cannot_be_a_deployment_are_refused_with_line_and_key() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("out").display().to_string();
    let example = text(&run(&["init", "vl2", "--print-example"]).stdout);
    let twice = file(&dir, "twice.toml", &example.replace("10.64.1.2", "10.64.0.2"));
    let init = |hosts: &str| ["init", "vl2", hosts, "--out", &out].map(str::to_owned).to_vec();
    let line = example.lines().position(|line| line.contains("10.64.1.2")).expect("srv2 has it") + 1;
    let place = format!("twice.toml: line {line}: [[server]] la: ");
    check(&Case { args: init(&twice), code: 2, says: &[&place, "the LA of srv1"] });
    check(&Case { args: init("/no/such/hosts.toml"), code: 2, says: &["/no/such/hosts.toml"] });
    assert!(!Path::new(&out).exists(), "a part of a deployment was written");
    assert!(run(&["init", "vl2", &file(&dir, "good.toml", &example), "--out", &out]).status.success());
    let occupied = ["init", "trill", &twice, "--out", &out].map(str::to_owned).to_vec();
    check(&Case { args: occupied, code: 2, says: &["weft init vl2"] });
}

#[test]
fn what_a_command_lacks_is_told_with_all_that_would_do() {
    check(&Case {
        args: ["node", "vtep"].map(str::to_owned).to_vec(),
        code: 2,
        says: &["local: is missing; give --config FILE, or flags alone: --local ADDRESS --uplink IF"],
    });
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (plan, out) = ("leaf-spine/queues".to_owned(), dir.path().join("out").display().to_string());
    check(&Case {
        args: vec!["run".into(), "--quick".into(), plan.clone(), plan, "--out".into(), out.clone()],
        code: 2,
        says: &["two plans are called `leaf-spine/queues`"],
    });
    assert!(!Path::new(&out).exists(), "a plan has run");
}
