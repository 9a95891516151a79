//! What a run was of, for the head of its report: network, workload, hosts, switches, faults, sampling, seeds. The words are the keys of
//! plans and scenarios.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use weft_scenario::engine::Transport;
use weft_scenario::id::LinkId;
use weft_scenario::switching::Switching;
use weft_scenario::topology::Fabric;

use crate::plan::{PlanSpec, SIM};

/// Most values of a list that are named.
const NAMED: usize = 6;

/// One line: a heading and what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// What every trial of a run had, and what differed along its sweep. `fabrics` are those of its points, `seed` is the first repetition's.
pub(crate) fn lines(spec: &PlanSpec, fabrics: &[Fabric], seed: u64) -> Vec<Line> {
    let of_points: Vec<Vec<Line>> =
        spec.points.iter().zip(fabrics).map(|(point, fabric)| of_point(&point.spec, fabric, &spec.runs_on)).collect();
    let mut names: Vec<&String> = Vec::new();
    for line in of_points.iter().flatten().filter(|line| !line.text.is_empty()) {
        if !names.contains(&&line.name) {
            names.push(&line.name);
        }
    }
    let mut lines: Vec<Line> = names.into_iter().map(|name| shared(name, &of_points)).collect();
    for axis in &spec.axes {
        let places = listed(&axis.labels);
        lines.push(line(format!("sweep of {}", axis.name), format!("{places} {}", axis.unit).trim_end().to_owned()));
    }
    lines.push(line("seed", seeds(seed, spec.repetitions)));
    lines
}

/// What all points say under a heading, or the first of them and how many others there are.
fn shared(name: &str, of_points: &[Vec<Line>]) -> Line {
    let mut texts: Vec<&str> = Vec::new();
    for line in of_points.iter().flatten().filter(|line| line.name == name) {
        if !texts.contains(&line.text.as_str()) {
            texts.push(&line.text);
        }
    }
    let first = texts.first().copied().unwrap_or_default();
    match texts.len() {
        0 | 1 => line(name, first),
        several => line(name, format!("{first} (the first of {several} along the sweep)")),
    }
}

fn of_point(spec: &PlanSpec, fabric: &Fabric, engine: &str) -> Vec<Line> {
    let overlays: Vec<&str> = spec.overlays.iter().map(|overlay| overlay.name()).collect();
    let traffic = spec.workload.iter().map(|(name, workload)| line(format!("workload {name}"), settings(workload)));
    let faults: Vec<String> = spec.fault.iter().map(settings).collect();
    let sampling = &spec.sampling;
    let warm_up = if sampling.warm_up.0 > 0 { format!(", warm-up {}", sampling.warm_up) } else { String::new() };
    let mut lines =
        vec![line("network", network(fabric)), line("links", links(fabric)), line("overlay", overlays.join(", "))];
    lines.extend(traffic);
    lines.push(line("transport", beside(&spec.transport, &Transport::default())));
    if engine.split('+').any(|one| one == SIM) {
        lines.push(line("switching", beside(&spec.switching, &Switching::default())));
    }
    lines.push(line("faults", faults.join("; ")));
    let limit = format!("every {}{warm_up}, at most {}", sampling.interval, sampling.time_limit);
    lines.push(line("sampling", limit));
    lines
}

fn line(name: impl Into<String>, text: impl Into<String>) -> Line {
    Line { name: name.into(), text: text.into() }
}

/// `1 to 3`, one for each repetition.
fn seeds(first: u64, repetitions: u32) -> String {
    match repetitions {
        0 | 1 => first.to_string(),
        more => format!("{first} to {}", first.wrapping_add(u64::from(more - 1))),
    }
}

/// `leaf-spine-small: 2 spine, 2 leaf, 4 server`.
fn network(fabric: &Fabric) -> String {
    let mut roles: Vec<(String, usize)> = Vec::new();
    for node in fabric.nodes() {
        let role = format!("{:?}", node.role).to_lowercase();
        match roles.iter_mut().find(|(known, _)| *known == role) {
            Some((_, count)) => *count += 1,
            None => roles.push((role, 1)),
        }
    }
    let roles: Vec<String> = roles.into_iter().map(|(role, count)| format!("{count} {role}")).collect();
    format!("{}: {}", fabric.name(), roles.join(", "))
}

/// `4 leaf-server of 20 Mbit/s, 4 MB`, for each kind of link.
fn links(fabric: &Fabric) -> String {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for (id, link) in (0..).map(LinkId).zip(fabric.links()) {
        let spec = &link.spec;
        let delay = if spec.delay.0 > 0 { format!(", delay {}", spec.delay) } else { String::new() };
        let kind = format!("{} of {}, buffer {}{delay}", fabric.link_class(id), spec.rate, spec.buffer);
        *kinds.entry(kind).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.into_iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let more = kinds.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; {more} other kinds") } else { String::new() };
    format!("{}{more}", kinds[..kinds.len().min(NAMED)].join("; "))
}

fn listed(labels: &[String]) -> String {
    match labels.len() {
        many if many > 2 * NAMED => format!("{}, {} .. {} ({many})", labels[0], labels[1], labels[many - 1]),
        _ => labels.join(", "),
    }
}

/// Keys and values of a table of a plan, without those that are off or absent.
fn settings<T: Serialize>(table: &T) -> String {
    serde_json::to_value(table).map_or_else(|_| String::new(), |value| words(&value))
}

/// Keys and values of a table of a plan, also those that are off although they are on by default.
fn beside<T: Serialize>(table: &T, usual: &T) -> String {
    let (Ok(Value::Object(keys)), Ok(usual)) = (serde_json::to_value(table), serde_json::to_value(usual)) else {
        return String::new();
    };
    let shown = keys.iter().filter(|(key, value)| says_something(value) || usual.get(key.as_str()) != Some(*value));
    shown.map(|(key, value)| entry(key, value)).collect::<Vec<_>>().join(", ")
}

fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(yes) => if *yes { "on" } else { "off" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(all) if all.len() > NAMED => format!("{} entries", all.len()),
        Value::Array(all) => all.iter().map(words).collect::<Vec<_>>().join(" / "),
        Value::Object(keys) => {
            // What kind of thing it is stands before what it has.
            let kind = keys.get("kind").map(words);
            let rest = keys.iter().filter(|(key, value)| *key != "kind" && says_something(value));
            kind.into_iter().chain(rest.map(|(key, value)| entry(key, value))).collect::<Vec<_>>().join(", ")
        }
    }
}

fn entry(key: &str, value: &Value) -> String {
    let (key, unit) = key.strip_suffix("_percent").map_or((key, ""), |key| (key, " %"));
    let (key, value_words) = (key.replace('_', " "), words(value));
    match value {
        Value::Object(_) => format!("{key} ({value_words})"),
        _ => format!("{key} {value_words}{unit}"),
    }
}

/// Zero, nothing and "off" are how a setting mostly is that nobody made.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !matches!(text.as_str(), "" | "0 ns" | "0 B" | "0 bit/s"),
        Value::Array(all) => !all.is_empty(),
        Value::Object(keys) => !keys.is_empty(),
        Value::Bool(yes) => *yes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Mode, Plan, SingleScenario};

    const SCENARIO: &str = "
[fabric]
generator = \"leaf-spine\"
spines = 2
leaves = 2
servers_per_leaf = 2
server_rate = \"10 Gbit/s\"
core_rate = \"40 Gbit/s\"
link_delay = \"1 us\"
[switching]
ecn_threshold = \"97500 B\"
buffer = { shared-pool = { pool = \"2 MB\" } }
[transport]
congestion_control = \"dctcp\"
[workload]
kind = \"traffic\"
duration = \"5 ms\"
background = { sizes = \"web-search\", load_percent = 60 }
[[fault]]
kind = \"link-down\"
at = \"2 ms\"
a = \"leaf1\"
b = \"spine1\"
";

    fn text_of(lines: &[Line], name: &str) -> String {
        let found = lines.iter().find(|line| line.name == name);
        found.unwrap_or_else(|| panic!("no {name} in {lines:?}")).text.clone()
    }

    #[test]
    fn a_scenario_is_told_with_its_load_transport_switching_rates_and_seed() {
        let spec = SingleScenario::parse("a.toml", SCENARIO).unwrap().as_spec("t");
        let fabrics = spec.build_fabrics().unwrap();
        let lines = lines(&spec, &fabrics, 7);
        let of = |name: &str| text_of(&lines, name);
        assert!(of("network").ends_with(": 2 spine, 2 leaf, 4 server"), "{}", of("network"));
        let links = of("links");
        assert!(links.contains("4 leaf-server of 10 Gbit/s, ") && links.contains("40 Gbit/s, "), "{links}");
        assert!(links.contains("delay 1 us"), "{links}");
        let traffic = of("workload traffic");
        for words in ["traffic, ", "load 60 %", "sizes web-search", "duration 5 ms"] {
            assert!(traffic.contains(words), "`{words}`: {traffic}");
        }
        assert!(of("transport").contains("congestion control dctcp"), "{}", of("transport"));
        let switching = of("switching");
        assert!(switching.contains("ecn threshold 97500 B") && switching.contains("pool 2 MB"), "{switching}");
        assert!(of("faults").starts_with("link-down, "), "{}", of("faults"));
        assert_eq!((of("overlay").as_str(), of("seed").as_str()), ("routed", "7"));
    }

    #[test]
    fn a_sweep_says_its_places_and_what_differs_along_it() {
        let plan = crate::plan::load("leaf-spine/queues").unwrap();
        let spec = Plan::for_mode(&plan, Mode::Default);
        let lines = lines(spec, &spec.build_fabrics().unwrap(), 1);
        let sweep = text_of(&lines, "sweep of load");
        assert_eq!(sweep, "16, 24, 32, 36 % of the servers' links");
        let traffic = text_of(&lines, "workload web-search");
        assert!(traffic.contains("load 16 %") && traffic.ends_with("(the first of 4 along the sweep)"), "{traffic}");
        assert_eq!(text_of(&lines, "seed"), "1 to 3");
    }
}
