//! Every mistake is told, with the line of its own key or value, and nothing that follows from another one.

use super::super::{Mistake, Plan, PlanError, SingleScenario, list, load};
use super::*;
use crate::analysis::testing::{SHUFFLE_TABLES, SWEEP_PLAN, plan_text};

fn good() -> String {
    plan_text("overlays = [\"vl2\"]", SHUFFLE_TABLES)
}

/// A text with some of it written in another way.
fn with(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

fn all(error: PlanError) -> Vec<Mistake> {
    match error {
        PlanError::Mistakes(all) => all,
        other => panic!("{other}"),
    }
}

fn mistakes(text: &str) -> Vec<Mistake> {
    let source = Source::new("p.toml", text, &[], &shape::PLAN);
    all(Plan::read(source, Mode::Default, true).map(|_| ()).expect_err("it is wrong"))
}

/// `p.toml:line:column` of the first place where a text has a word.
fn place(text: &str, word: &str) -> String {
    let before = &text[..text.find(word).unwrap_or_else(|| panic!("{word}"))];
    let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
    format!("p.toml:{}:{column}", before.matches('\n').count() + 1)
}

#[test]
fn a_mistake_in_a_table_has_the_place_of_its_own_key_or_value() {
    let traffic = "[workload.all]\nkind = \"traffic\"\nduration = \"1 s\"\nbackground = { sizes = \"web-search\", load_percent = 50 }";
    let probes = "interval = \"1 s\"\nprobes = { flows = 4, interval = \"10 ms\" }";
    let fault = "[sampling]\ninterval = \"1 s\"\ntime_limit = \"60 s\"\n[[fault]]\nat = \"1 s\"\nkind = \"link-down\"\na = \"agg1\"\nb = \"tor1\"\n";
    let base = with(
        &good(),
        &[
            ("[sampling]\ninterval = \"1 s\"\ntime_limit = \"60 s\"\n", fault),
            ("[workload.all]", &format!("{}\n[workload.old]", traffic.replace(".all", ".new"))),
            ("interval = \"1 s\"", probes),
        ],
    );
    for (from, to, word, key, says) in [
        (
            "load_percent = 50",
            "load_percent = 0",
            "load_percent = 0",
            "workload.new.background.load_percent",
            "is 0; choose 1 to 100",
        ),
        (
            "load_percent = 50",
            "load_percent = 5.5",
            "5.5",
            "workload.new.background.load_percent",
            "it could be a percentage, `5.5%`",
        ),
        (
            "load_percent = 50",
            "lod_percent = 50",
            "lod_percent",
            "workload.new.background.lod_percent",
            "did you mean `load_percent`?",
        ),
        (
            "\"web-search\"",
            "\"websearch\"",
            "\"websearch\"",
            "workload.new.background.sizes",
            "did you mean `web-search`?",
        ),
        (
            "\"web-search\"",
            "{ table = [[\"1 kB\", 0.5], [\"1 Mb\", 1.0]] }",
            "\"1 Mb\"",
            "workload.new.background.sizes.table.1.0",
            "is not a size",
        ),
        (
            "\"web-search\"",
            "{ fixd = \"1 kB\" }",
            "fixd",
            "workload.new.background.sizes.fixd",
            "did you mean `fixed`?",
        ),
        ("\"1 s\"\nback", "\"1 sec\"\nback", "\"1 sec\"", "workload.new.duration", "is not a duration"),
        ("kind = \"traffic\"", "kind = \"trafic\"", "\"trafic\"", "workload.new.kind", "did you mean `traffic`?"),
        (
            "\"10 ms\"",
            "10",
            "10 }",
            "sampling.probes.interval",
            "is not a duration; write for example `45 s`; it has no unit",
        ),
        ("flows = 4", "flows = -4", "-4", "sampling.probes.flows", "out of range"),
        ("flows = 4", "flows = 4000", "flows = 4000", "sampling.probes.flows", "choose 1 to 1000"),
        ("kind = \"link-down\"", "kind = \"switch-down\"", "\"switch-down\"", "fault.0.kind", "takes `node`"),
        (
            "servers_per_tor = 1",
            "spines = 1",
            "spines",
            "fabric.spines",
            "`spines` has no effect on the generator vl2-testbed",
        ),
        (
            "servers_per_tor = 1",
            "servers_per_tor = \"one\"",
            "\"one\"",
            "fabric.servers_per_tor",
            "a whole number or a list must stand here",
        ),
        ("\"10 Mbit/s\"", "\"10 Mb\"", "\"10 Mb\"", "fabric.server_rate", "is not a rate"),
        ("want = 0.94", "want = \"much\"", "\"much\"", "claims.goodput_efficiency.want", "a number must stand here"),
        ("want = 0.94", "wants = 0.94", "wants", "claims.goodput_efficiency.wants", "did you mean `want`?"),
        (
            "relation = \"info\"",
            "relation = \"inf\"",
            "\"inf\"",
            "claims.shuffle_time.relation",
            "did you mean `info`?",
        ),
    ] {
        let text = with(&base, &[(from, to)]);
        let found = mistakes(&text);
        let told = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert_eq!(found.len(), 1, "{from} -> {to}:\n{told}");
        assert_eq!((found[0].place.as_str(), found[0].key.as_str()), (place(&text, word).as_str(), key), "{told}");
        assert!(told.contains(says), "`{says}` is not in: {told}");
    }
}

#[test]
fn many_mistakes_of_all_kinds_are_told_at_once_in_their_order() {
    let changes = [
        ("title =", "titel ="),
        ("servers_per_tor = 1", "servers_per_tor = 1\nlink_dely = \"1 us\""),
        ("\"1 MB\"", "\"1 MBit\""),
        ("interval = \"1 s\"", "interval = \"0 s\""),
        ("select goodput_bps /", "select goodput_bits /"),
        ("id = \"shuffle_time\"\nrelation", "id = \"shufle_time\"\nrelation"),
    ];
    let text = with(&good(), &changes);
    let found = mistakes(&text);
    let words = [
        "titel",
        "link_dely",
        "\"1 MBit\"",
        "interval = \"0 s\"",
        "sql = \"select goodput_bits",
        "id = \"shufle_time\"",
    ];
    let places: Vec<String> = words.iter().map(|word| place(&text, word)).collect();
    assert_eq!(found.iter().map(|one| one.place.clone()).collect::<Vec<_>>(), places, "{found:#?}");
    let text = with(&text, &[("titel", "title")])
        + "\n[quick]\nrepetitons = 2\n[full.workload.all]\nbytes_per_flow = 3\n[engine.lab]\nshaped = 1\n";
    let found = mistakes(&text);
    let more = ["repetitons", "3\n[engine", "1\n"].map(|word| found.iter().any(|one| one.place == place(&text, word)));
    assert_eq!((found.len(), more[0], more[1]), (8, true, true), "{found:#?}");
}

#[test]
fn a_mistake_is_told_once_however_many_points_and_modes_have_it() {
    let text = with(SWEEP_PLAN, &[("duration = \"10 ms\"", "duration = \"10 mS\""), ("spines = 1", "spines = \"1\"")]);
    let found = mistakes(&text);
    assert_eq!(found.len(), 2, "{found:#?}");
    let text = with(SWEEP_PLAN, &[("values = [30, 70]", "values = [30, 170, 180]")]);
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::fs::write(file.path(), &text).unwrap();
    let found = all(load(file.path().to_str().unwrap()).expect_err("a load is too high"));
    let lines: BTreeSet<&str> = found.iter().map(|one| one.place.as_str()).collect();
    assert_eq!(lines.len(), found.len(), "{found:#?}");
    assert!(found[0].to_string().contains("at fabric=oq load=170: "), "{found:#?}");
}

#[test]
fn a_sweep_that_is_wrong_does_not_hide_the_rest() {
    let changes = [
        ("values = [30, 70]", "values = 30"),
        ("id = \"40g\"", "id = \"4 0g\""),
        ("repetitions = 2", "repetitons = 2"),
    ];
    let found = mistakes(&with(SWEEP_PLAN, &changes));
    assert_eq!(found.len(), 3, "{found:#?}");
}

/// The schema is not asked where a plan is read; where it is, it may not see mistakes that there are not.
#[test]
fn the_shape_of_every_shipped_plan_is_without_a_flaw() {
    for plan in list().unwrap() {
        let source = Source::new(plan.id(), plan.text(), &[], &shape::PLAN);
        for layer in layers::of(&source, &source.document().unwrap(), Mode::Default).unwrap() {
            for point in &layer.points {
                let flaws = shape::PLAN.flaws(point.document.get_ref());
                assert!(flaws.is_empty(), "{}: {flaws:#?}", plan.id());
            }
        }
    }
}

#[test]
fn a_scenario_tells_everything_at_once() {
    let text = "overlay = \"ruted\"\n[fabric]\ngenerator = \"output-queued\"\nservers = 4\nspines = 2\nleaves = 2\n[workload.a]\nkind = \"permutation\"\n\
                bytes_per_flow = \"1 MB\"\nshift = 4\n[transport]\ninitial_window = 0\nrto_min = \"1 sec\"\n[sampling]\ninterval = \"0 s\"\n";
    let found = all(SingleScenario::parse("p.toml", text).expect_err("it is wrong"));
    let told: Vec<&str> = found.iter().map(|one| one.key.as_str()).collect();
    let wanted =
        ["overlay", "fabric.leaves", "fabric.spines", "workload.shift", "transport.rto_min", "sampling.interval"];
    assert_eq!(told.iter().collect::<BTreeSet<_>>(), wanted.iter().collect::<BTreeSet<_>>(), "{found:#?}");
    for (word, key) in [
        ("\"ruted\"", "overlay"),
        ("spines", "fabric.spines"),
        ("shift", "workload.shift"),
        ("interval", "sampling.interval"),
    ] {
        let one = found.iter().find(|one| one.key == key).unwrap();
        assert_eq!(one.place, place(text, word), "{one}");
    }
}

#[test]
fn settings_without_effect_have_the_place_of_their_key() {
    let on_sim =
        |text: &str| with(text, &[("engines = [\"lab\"]", "engines = [\"sim\"]"), ("[\"vl2\"]", "[\"routed\"]")]);
    let plan = |more: &str| format!("{}\n{more}\n", on_sim(&good()));
    let late = "[[fault]]\nkind = \"switch-down\"\nnode = \"int1\"\nat = \"2 ms\"\n[[fault]]\nkind = \"switch-down\"\nnode = \"int2\"\nat = \"61 s\"";
    for (text, word, key, says) in [
        (
            plan("[transport]\ncongestion_control = \"dctcp\""),
            "congestion_control",
            "transport.congestion_control",
            "`dctcp` without marks is Reno",
        ),
        (plan("[switching]\ncpus = 2"), "cpus", "switching.cpus", "only RBridges of the lab have it"),
        (plan(late), "at = \"61 s\"", "fault.1.at", "the run is over at 1 min; choose an earlier `at`"),
        (plan("[full.sampling]\nwarm_up = \"60 s\""), "warm_up", "sampling.warm_up", "nothing is left"),
        (
            with(SWEEP_PLAN, &[("id = \"40g\"\n", "id = \"40g\"\nswitching = { ecn_threshold = \"1 MB\" }\n")]),
            "ecn_threshold",
            "switching.ecn_threshold",
            "switches mark packets of DCTCP alone",
        ),
    ] {
        let found = mistakes(&text);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!((found[0].place.as_str(), found[0].key.as_str()), (place(&text, word).as_str(), key), "{found:#?}");
        assert!(found[0].message.contains(says), "`{says}` is not in: {}", found[0]);
    }
    // What was meant is known, so effects are looked for, too; what was not is no reason for another complaint.
    let two = with(&plan("[transport]\ncongestion_control = \"dctcp\""), &[("title =", "titel =")]);
    let found = mistakes(&two);
    assert_eq!(found.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(), ["titel", "transport.congestion_control"]);
    let wrong = "[transport]\ncongestion_control = \"dctcp\"\n[switching]\nmarks_from = \"30 kB\"";
    assert_eq!(mistakes(&plan(wrong)).len(), 1);
}

#[test]
fn settings_of_a_scenario_without_effect_have_the_place_of_their_key() {
    let text = "[fabric]\ngenerator = \"output-queued\"\nservers = 4\n[workload]\nkind = \"traffic\"\nduration = \"2 s\"\n\
                background = { sizes = \"web-search\", load_percent = 50 }\n[transport]\ncongestion_control = \"dctcp\"\n[sampling]\ntime_limit = \"1 s\"\n";
    let single = SingleScenario::parse("p.toml", text).unwrap();
    let found = all(single.build(1).map(drop).expect_err("two settings are without effect"));
    let told: Vec<(&str, &str)> = found.iter().map(|one| (one.place.as_str(), one.key.as_str())).collect();
    let duration = (place(text, "duration"), "workload.duration");
    let control = (place(text, "congestion_control"), "transport.congestion_control");
    assert_eq!(told, [(duration.0.as_str(), duration.1), (control.0.as_str(), control.1)]);
    assert!(
        found[0].to_string().starts_with("p.toml:6:1: `workload.traffic.duration` has no effect: "),
        "{}",
        found[0]
    );
}
