//! Plans that are refused, with the place, and what the shipped plans promise.

use super::*;
use crate::analysis::testing::{FABRIC, SHUFFLE_TABLES, plan_text};

const KEYS: &str = "overlays = [\"vl2\"]";

fn refusal(text: &str) -> String {
    Plan::parse("p.toml", text).expect_err("it is wrong").to_string()
}

/// The message for a valid plan in which `from` is replaced by `to`.
fn refusal_of(from: &str, to: &str) -> String {
    let text = plan_text(KEYS, SHUFFLE_TABLES);
    assert!(text.contains(from), "{from}");
    refusal(&text.replacen(from, to, 1))
}

#[test]
fn the_test_plan_is_valid() {
    Plan::parse("p.toml", &plan_text(KEYS, SHUFFLE_TABLES)).unwrap();
}

#[test]
fn mistakes_are_named_with_their_place() {
    let scenario = &FABRIC[1..];
    let workload = "[workload.all]\nkind = \"shuffle\"\nbytes_per_flow = \"1 MB\"\n";
    let messages = [
        refusal("id = "),
        refusal_of("title", "titel"),
        refusal_of("expected_s = 1", "expected_s = \"soon\""),
        refusal_of("kind = \"shuffle\"", "kind = \"riffle\""),
        refusal_of("bytes_per_flow", "bytes_a_flow"),
        refusal_of("\"1 MB\"", "\"1 MBit\""),
        refusal_of("server_rate", "sever_rate"),
        refusal_of(scenario, ""),
        refusal_of(workload, ""),
        refusal_of("[\"vl2\"]", "[]"),
        refusal_of("[\"vl2\"]", "[\"vl2\", \"vl2\"]"),
        refusal_of("[\"lab\"]", "[\"ns3\"]"),
        refusal_of("id = \"shuffle_time\"\nrelation", "id = \"goodput_efficiency\"\nrelation"),
        refusal_of("id = \"shuffle_time\"\nrelation", "id = \"goodness\"\nrelation"),
        refusal_of("want = 0.94\n", ""),
        refusal_of("relation = \">=\"", "relation = \"info\""),
        refusal_of("relation = \">=\"", "relation = \"==\""),
        refusal_of("interval = \"1 s\"", "interval = \"0 s\""),
        refusal_of("interval = \"1 s\"", "interval = \"1 s\"\nmeasure_cpu_cost = [\"ghost\"]"),
        refusal_of("overlays = [\"vl2\"]", "repetitions = 0\noverlays = [\"vl2\"]"),
        refusal_of(
            SHUFFLE_TABLES.split("[[claims]]").nth(2).unwrap(),
            "\nid = \"shuffle_time\"\nrelation = \"info\"\n",
        ),
    ];
    for message in &messages {
        assert!(!message.contains('\n'), "more than one line: {message}");
    }
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn what_a_claim_is_held_against_must_make_sense() {
    let claim = |more: &str| refusal_of("want = 0.94\n", &format!("want = 0.94\n{more}\n"));
    let mutation = |sql: &str| {
        let end = format!("\n[[mutations]]\nid = \"slow\"\nsql = \"{sql}\"\n");
        refusal(&(plan_text(KEYS, SHUFFLE_TABLES) + &end))
    };
    for (message, says) in [
        (claim("paper_wants = \"about 1\""), "`about 1` is none of `>= 1.2`, `<= 1` and `1.2 .. 1.4`"),
        (claim("paper_wants = \"2 .. 1\""), "`2 .. 1` is none of"),
        (claim("because = \"nobody knows\""), "has `because`, which explains `paper_wants`"),
        (claim("fails_when = \"a switch is slow\""), "fails when `a switch is slow`, which no `[[mutations]]` is"),
        (claim("bound = \"line_rate\""), "the plan has no such metric"),
        (mutation("update flows set end = 1"), "mutation `slow`: no such column: end"),
        (mutation("select 1"), "mutation `slow`: it changes nothing"),
    ] {
        assert!(message.starts_with("p.toml:") && message.contains(says), "wanted `{says}`, got `{message}`");
    }
    let good = plan_text(KEYS, SHUFFLE_TABLES).replacen(
        "want = 0.94\n",
        "want = 0.94\nbound = 1.0\npaper_wants = \"0.8 .. 0.9\"\nbecause = \"no limit of cards\"\n",
        1,
    );
    let plan = Plan::parse("p.toml", &good).unwrap();
    let claim = &plan.for_mode(Mode::Default).claims[0];
    assert_eq!((claim.paper_wants, &claim.bound), (Some(Band { low: 0.8, high: 0.9 }), &Some(Bound::Number(1.0))));
}

#[test]
fn a_mistake_in_quick_is_found_at_its_own_line() {
    let text = plan_text(KEYS, SHUFFLE_TABLES) + "\n[quick]\nrepetitons = 2\n";
    let line = text.lines().position(|line| line.starts_with("repetitons")).unwrap() + 1;
    let message = refusal(&text);
    assert!(message.starts_with(&format!("p.toml:{line}:1: unknown field `repetitons`")), "{message}");
}

#[test]
fn quick_changes_what_it_names_and_keeps_the_rest() {
    let change = "\n[quick]\nrepetitions = 2\n[quick.workload.all]\nbytes_per_flow = \"2 MB\"\n\
                  [[quick.claims]]\nid = \"goodput_efficiency\"\nwant = 0.5\n";
    let plan = Plan::parse("p.toml", &(plan_text(KEYS, SHUFFLE_TABLES) + change)).unwrap();
    let (default, quick) = (plan.for_mode(Mode::Default), plan.for_mode(Mode::Quick));
    assert_eq!((default.repetitions, quick.repetitions), (1, 2));
    assert_eq!((default.claims[0].want, quick.claims[0].want), (Some(0.94), Some(0.5)));
    assert_eq!(quick.claims[0].paper, Some(0.847));
    assert_eq!((quick.claims.len(), quick.claims[1].clone()), (2, default.claims[1].clone()));
    assert_ne!(default.workload, quick.workload);
    assert_eq!(plan.for_mode(Mode::Full).workload, default.workload);
}

#[test]
fn a_workload_of_another_kind_replaces_the_old_one() {
    let change = "\n[quick.workload.all]\nkind = \"one-to-one\"\nfrom = 0\nto = 1\nflows = 1\nduration = \"1 s\"\n";
    let plan = Plan::parse("p.toml", &(plan_text(KEYS, SHUFFLE_TABLES) + change)).unwrap();
    let kind = |mode| plan.for_mode(mode).workload["all"].kind();
    assert_eq!((kind(Mode::Default), kind(Mode::Quick)), ("shuffle", "one-to-one"));
}

#[test]
fn faults_are_read_and_their_keys_checked() {
    let fault = "\n[[fault]]\nat = \"1 s\"\nlasts = \"2 s\"\nkind = \"link-down\"\na = \"agg1\"\nb = \"tor1\"\n";
    let plan = Plan::parse("p.toml", &(plan_text(KEYS, SHUFFLE_TABLES) + fault)).unwrap();
    let spec = plan.for_mode(Mode::Full);
    assert_eq!(spec.fault.len(), 1);
    for (from, to) in [("at =", "when ="), ("a = \"agg1\"", "node = \"agg1\""), ("link-down", "switch-down")] {
        let text = plan_text(KEYS, SHUFFLE_TABLES);
        let line = text.lines().count() + 1;
        let message = refusal(&(text + &fault.replacen(from, to, 1)));
        let is_below = |place: &str| place.parse::<usize>().is_ok_and(|number| number > line);
        let places = message.split("p.toml:").skip(1).map(|rest| rest.split(':').next().unwrap_or_default());
        assert!(message.contains("p.toml:") && places.into_iter().all(is_below), "{message}");
    }
}

#[test]
fn a_storm_needs_a_fabric_with_broadcast_and_the_lab() {
    let plan = load("vl2/broadcast-storm").unwrap();
    let text = plan.text();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("storm.toml");
    for (from, to, line, message) in [
        (
            "file = \"vl2-services\"",
            "generator = \"vl2-testbed\"\nservers_per_tor = 2\nserver_rate = \"10 Mbit/s\"\ncore_rate = \"40 Mbit/s\"",
            "[workload.limited.service.loud]",
            "service `loud`: a storm needs `broadcast` in its fabric",
        ),
        ("servers = [0, 1, 4, 5]", "servers = [0, 1, 4]", "servers = [0, 1, 4]", "server 5 is of the sender's"),
        (
            "engines = [\"lab\"]",
            "engines = [\"lab\", \"sim\"]",
            "engines = [\"lab\", \"sim\"]",
            "services with a storm need",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let text = text.replace(from, to);
        std::fs::write(&path, &text).unwrap();
        let error = load(path.to_str().unwrap()).unwrap_err().to_string();
        let number = text.lines().position(|one| one == line).unwrap() + 1;
        let place = format!("storm.toml:{number}:");
        assert!(error.contains(&place) && error.contains(message), "wanted `{place} {message}`, got `{error}`");
    }
}

#[test]
fn a_stream_to_many_needs_switches_that_learn_and_servers_enough() {
    let plan = load("trill/multicast").unwrap();
    let text = plan.text();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.toml");
    let fault = "[sampling]\n";
    for (from, to, message) in [
        ("overlays = [\"rbridge\"]", "overlays = [\"l2\"]", "workloads of kind `multicast` need"),
        ("engines = [\"lab\"]", "engines = [\"lab\", \"sim\"]", "workloads of kind `multicast` need"),
        (
            fault,
            "[[fault]]\nat = \"1 s\"\nkind = \"switch-down\"\nnode = \"spine1\"\n[sampling]\n",
            "they have `link_down_at`",
        ),
        ("receivers = [2, 4, 8, 16, 32, 64]", "receivers = [84]", "`receivers` is 84; it is 1 to 83"),
        ("copies = \"ingress\"", "copies = \"ingress\"\ngroups = 2", "`groups` is for `copies = \"tree\"`"),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = load(path.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains(message), "wanted `{message}`, got `{error}`");
    }
}

#[test]
fn a_short_name_a_path_and_a_wrong_name() {
    for name in ["vl2/smoke", "plans/vl2/smoke.toml"] {
        assert_eq!(load(name).unwrap().id(), "vl2/smoke");
    }
    let message = load("vl2/fig99").unwrap_err().to_string();
    assert!(message.starts_with("no plan called `vl2/fig99`; give a file or one of: leaf-spine/core-"), "{message}");
    assert!(message.contains(", vl2/fig09-shuffle, "), "{message}");
    for (written, advice) in [
        ("fig09-shufle", "did you mean `vl2/fig09-shuffle`? `weft list` shows all, and a file may be given"),
        ("my-plan.toml", "there is no such file; `weft list` shows the plans of weft"),
    ] {
        assert_eq!(load(written).unwrap_err().to_string(), format!("no plan called `{written}`; {advice}"));
    }
    let message = fabric_text("vl2-testbd", None).unwrap_err();
    let expected = "there is no such file; did you mean `vl2-testbed`? `weft fabric list` shows all";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn a_file_on_disk_is_read_and_its_fabric_built() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, plan_text(KEYS, SHUFFLE_TABLES)).unwrap();
    assert_eq!(load(path.to_str().unwrap()).unwrap().id(), "test/plan");
    let zero = plan_text(KEYS, SHUFFLE_TABLES).replace("\"10 Mbit/s\"", "\"0 bit/s\"");
    std::fs::write(&path, zero).unwrap();
    let message = load(path.to_str().unwrap()).unwrap_err().to_string();
    assert!(message.contains("mine.toml:") && message.contains("rate 0"), "{message}");
    for (from, to, want) in [
        (
            "kind = \"shuffle\"\nbytes_per_flow = \"1 MB\"",
            "kind = \"shuffle\"\nbytes_per_flow = \"0 B\"",
            "workload `all`",
        ),
        (
            "[sampling]",
            "[[fault]]\nat = \"1 s\"\nkind = \"switch-down\"\nnode = \"int9\"\n[sampling]",
            "no node `int9`",
        ),
    ] {
        std::fs::write(&path, plan_text(KEYS, SHUFFLE_TABLES).replace(from, to)).unwrap();
        let message = load(path.to_str().unwrap()).unwrap_err().to_string();
        assert!(message.contains("mine.toml:") && message.contains(want), "{message}");
    }
    let missing = plan_text(KEYS, SHUFFLE_TABLES).replace(
        "generator = \"vl2-testbed\"\nservers_per_tor = 1\nserver_rate = \"10 Mbit/s\"\ncore_rate = \"100 Mbit/s\"",
        "file = \"nowhere\"",
    );
    std::fs::write(&path, missing).unwrap();
    let message = load(path.to_str().unwrap()).unwrap_err().to_string();
    assert!(message.contains("nowhere") && message.contains("no such file"), "{message}");
}

#[test]
fn shipped_plans_are_named_after_their_files_and_build_in_every_mode() {
    let plans = list().unwrap();
    let names: Vec<_> = plans.iter().map(Plan::id).collect();
    assert_eq!(names, embedded_names().collect::<Vec<_>>());
}

/// It runs where nothing is built.
#[test]
fn the_plan_of_make_kernels_is_one() {
    let text = include_str!("../../../../scripts/kernels/inside/plan.toml");
    built("scripts/kernels/inside/plan.toml", text);
}

/// A plan whose networks were built.
fn built(origin: &str, text: &str) -> Plan {
    let source = Source::new(origin, text, &[], &shape::PLAN);
    Plan::read(source, Mode::Default, true).unwrap_or_else(|error| panic!("{error}"))
}

/// What each plan has to show, and the floor or ceiling for it: changing one is a decision, not an accident.
#[test]
fn required_claims_of_every_plan() {
    let required: Vec<String> = list()
        .unwrap()
        .iter()
        .flat_map(|plan| {
            let claims = plan.for_mode(Mode::Default).claims.iter().filter(|claim| claim.required);
            claims
                .map(|claim| {
                    let (relation, want) = (claim.relation.symbol(), claim.want.unwrap_or(f64::NAN));
                    format!("{} {} {relation} {want} ({:?})", plan.id(), claim.id, claim.judge)
                })
                .collect::<Vec<_>>()
        })
        .collect();
    insta::assert_snapshot!(required.join("\n"));
    for plan in list().unwrap() {
        for mode in [Mode::Quick, Mode::Full] {
            let ids = |mode| {
                plan.for_mode(mode)
                    .claims
                    .iter()
                    .filter(|claim| claim.required)
                    .map(|claim| claim.id.clone())
                    .collect::<Vec<_>>()
            };
            assert_eq!(ids(mode), ids(Mode::Default), "{} {mode:?}", plan.id());
        }
    }
}

/// The overlay comparison needs at least ten rounds, and a round's trials are about a second each.
#[test]
fn sizes_that_the_claims_rest_on() {
    let overlay = load("vl2/overlay-goodput").unwrap();
    assert!(overlay.for_mode(Mode::Default).repetitions >= 10);
    assert!(overlay.for_mode(Mode::Default).interleave);
    let shuffle = load("vl2/fig09-shuffle").unwrap();
    let spec = shuffle.for_mode(Mode::Default);
    let fabric = spec.fabric.as_ref().unwrap().build(&|name| fabric_text(name, None)).unwrap();
    assert_eq!(fabric.servers().count(), 75);
    let weft_scenario::workload::Workload::Shuffle { bytes_per_flow } = &spec.workload["all-to-all"] else {
        panic!("a shuffle");
    };
    let ideal_s = bytes_per_flow.0 as f64 * 74.0 * 8.0 / (20e6 * 2920.0 / 3154.0);
    assert!((44.0..46.0).contains(&ideal_s), "{ideal_s}");
}

/// The leaf-spine paper's networks: 100 servers with 10 Gb/s, and no oversubscription where it says so.
#[test]
fn leaf_spine_networks_are_the_papers() {
    let capacity = |plan: &str, point: usize| {
        let plan = load(plan).unwrap();
        let spec = plan.for_mode(Mode::Default);
        let fabric = &spec.build_fabrics().unwrap()[point];
        assert_eq!(fabric.servers().count(), 100, "{}", plan.id());
        let (leaf, server_link) = fabric.edge_of(fabric.servers().next().unwrap()).unwrap();
        assert_eq!(fabric.link(server_link).spec.rate.0, 10_000_000_000);
        let rates = fabric.links_of(leaf).iter().map(|link| fabric.link(*link).spec.rate.0 / 1_000_000_000);
        let mut uplinks: Vec<u64> = rates.collect();
        uplinks.drain(uplinks.len() - 20..);
        uplinks
    };
    // The ideal switch comes first, at five loads.
    assert_eq!(capacity("leaf-spine/link-speed", 5), [10; 20]);
    assert_eq!(capacity("leaf-spine/link-speed", 10), [40; 5]);
    assert_eq!(capacity("leaf-spine/link-speed", 15), [100; 2]);
    assert_eq!(capacity("leaf-spine/queues", 0), [40; 2]);
    assert_eq!(capacity("leaf-spine/incast-buffers", 0), [40; 5]);
}

/// A quick run on two cores takes less than a minute if it has less than 0.9 G packet-hops: the simulator makes 15 M a
/// CPU second and more.
#[test]
fn quick_plans_are_cheap() {
    use weft_scenario::workload::{QueryRate, Workload};
    for plan in list().unwrap().iter().filter(|plan| plan.id().starts_with("leaf-spine/")) {
        let spec = plan.for_mode(Mode::Quick);
        let fabrics = spec.build_fabrics().unwrap();
        let mut hops = 0.0;
        for (point, fabric) in spec.points.iter().zip(&fabrics) {
            let links = if fabric.switches().count() == 1 { 2.0 } else { 4.0 };
            for workload in point.spec.workload.values() {
                let bytes = match workload {
                    Workload::Flows { flows } => flows.iter().map(|flow| flow.bytes as f64).sum(),
                    Workload::Traffic(traffic) => {
                        let query = traffic.query.map(|query| match query.rate {
                            QueryRate::LoadPercent(percent) => percent,
                            QueryRate::Interval(_) => panic!("a load is easier to compare"),
                        });
                        let background = traffic.background.as_ref().map_or(0, |background| background.load_percent);
                        let load = f64::from(background + query.unwrap_or(0)) / 100.0;
                        traffic.duration.as_secs_f64() * load * 100.0 * 1.25e9
                    }
                    other => panic!("{other:?}"),
                };
                hops += bytes / 1500.0 * links * 1.5 * f64::from(spec.repetitions);
            }
        }
        assert!((1e7..0.9e9).contains(&hops), "{}: {hops:e}", plan.id());
    }
}

/// The blocks of `docs/scenarios.md` in a language.
fn blocks_of_scenarios(language: &str) -> Vec<&'static str> {
    let page = include_str!("../../../../docs/scenarios.md");
    let opening = format!("```{language}\n");
    page.split(&opening).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn the_examples_of_the_page_on_scenarios_are_read() {
    let fabrics: Vec<_> = blocks_of_scenarios("yaml").into_iter().filter(|text| text.contains("topology:")).collect();
    let (plans, scenarios): (Vec<_>, Vec<_>) =
        blocks_of_scenarios("toml").into_iter().partition(|text| text.contains("questions = "));
    assert_eq!((fabrics.len(), scenarios.len(), plans.len()), (1, 1, 1));
    weft_scenario::topology::from_yaml(fabrics[0], "two-racks.yaml").unwrap();
    SingleScenario::parse("my-scenario.toml", scenarios[0]).unwrap().build(1).unwrap();
    let plan = built("my-plan.toml", plans[0]);
    assert_eq!(plan.for_mode(Mode::Default).trials(), 12);
}

const STEPS: &str = "\n[[steps]]\nid = \"5mbit\"\nfabric = { server_rate = \"5 Mbit/s\" }\n\
    [[steps.claims]]\nid = \"goodput_efficiency\"\nwant = 0.8\n";

#[test]
fn steps_are_laid_over_what_the_lab_makes_of_the_plan() {
    let engines = plan_text(KEYS, SHUFFLE_TABLES).replace("[\"lab\"]", "[\"lab\", \"sim\"]");
    let text = format!("{engines}{STEPS}[engine.lab]\nrepetitions = 2\n[quick]\nrepetitions = 4\n");
    let plan = Plan::parse("p.toml", &text).unwrap();
    let names = |mode, engine| plan.steps(mode, engine).map(|spec| spec.step.clone()).collect::<Vec<_>>();
    assert_eq!(names(Mode::Default, "lab"), [None, Some("5mbit".to_owned())]);
    // Virtual time has time for every rate, and a mode has steps of its own.
    assert_eq!(names(Mode::Default, "sim"), [None]);
    assert_eq!(names(Mode::Quick, "lab"), [None]);
    let own = plan.for_mode(Mode::Default);
    let step = plan.at_step(Mode::Default, "lab", Some("5mbit")).unwrap();
    assert_eq!((own.repetitions, step.repetitions), (2, 2));
    assert_eq!((own.claims[0].want, step.claims[0].want), (Some(0.94), Some(0.8)));
    assert_ne!(own.fabric, step.fabric);
    assert_eq!(plan.at_step(Mode::Default, "lab", None).unwrap().fabric, own.fabric);
    let quick = format!("{text}[[quick.steps]]\nid = \"1mbit\"\nfabric = {{ server_rate = \"1 Mbit/s\" }}\n");
    let plan = Plan::parse("p.toml", &quick).unwrap();
    let step = plan.at_step(Mode::Quick, "lab", Some("1mbit")).unwrap();
    assert_eq!((step.repetitions, plan.steps(Mode::Default, "lab").count()), (2, 2), "the lab's own over the mode's");
}

#[test]
fn steps_that_make_no_sense_are_refused() {
    let with = |steps: &str| plan_text(KEYS, SHUFFLE_TABLES) + steps;
    let step = |id: &str| format!("[[steps]]\nid = \"{id}\"\nrepetitions = 2\n");
    for (text, says) in [
        (with("[steps]\nid = \"a\"\n"), "`steps` must be a list of tables"),
        (with("[[steps]]\nrepetitions = 2\n"), "a step needs an `id`"),
        (with(&step("10 Mbit")), "a step needs an `id`"),
        (with(&step("auto")), "a step cannot be called `auto`"),
        (with(&(step("a") + &step("a"))), "two steps are called `a`"),
        (with(&["a", "b", "c"].map(step).concat()), "3 steps are too many; a plan has 2 at most beside its own rates"),
        (with("[[steps]]\nid = \"a\"\n"), "step `a` changes nothing"),
        (with("[[steps]]\nid = \"a\"\nengines = [\"lab\"]\n"), "step `a` cannot change `engines`"),
        (with("[[steps]]\nid = \"a\"\nrepetitons = 2\n"), "unknown field `repetitons`"),
        (with("[[steps]]\nid = \"a\"\nrepetitions = 0\n"), "`repetitions` is 0"),
        (
            with(&step("a")).replace("[\"lab\"]", "[\"sim\"]"),
            "step `a` is for the lab, and this plan does not run in the lab",
        ),
    ] {
        let message = refusal(&text);
        assert!(message.starts_with("p.toml:") && message.contains(says), "wanted `{says}`, got `{message}`");
    }
}
