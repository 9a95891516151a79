//! Any bytes as the files that people write: fabrics, plans, settings of daemons, keys of a campus.

use weft_experiment::plan::{Plan, PlanError};
use weft_node::rbridge::parse_keys;
use weft_node::{DaemonKind, judge_settings};
use weft_scenario::topology::{check_yaml, from_yaml, to_yaml};

use crate::seeds::Seed;

const DAEMONS: [DaemonKind; 6] = [
    DaemonKind::Agent,
    DaemonKind::Directory,
    DaemonKind::Switch,
    DaemonKind::Tor,
    DaemonKind::Vtep,
    DaemonKind::Rbridge,
];
/// The shortest word that may be a secret.
const SECRET_MIN: usize = 16;

/// Any bytes as a fabric's YAML: refused on one line with its place, of which a check says as much and more; or the fabric comes back.
///
/// # Panics
/// When an invariant of the format is broken.
pub fn fabric_yaml(bytes: &[u8]) {
    const NAME: &str = "fabric.yaml";
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match from_yaml(text, NAME) {
        Ok(fabric) => {
            let again = to_yaml(&fabric);
            let read = from_yaml(&again, NAME);
            assert!(read.as_ref() == Ok(&fabric), "written and read again: {:?}\n{again}", read.err());
        }
        Err(error) => {
            let all = check_yaml(text, NAME).expect_err("what is refused has a mistake");
            assert!(all.contains(&error), "{error} is not among {all:?}");
            all.iter().for_each(|mistake| refused(text, NAME, &mistake.to_string()));
        }
    }
}

/// Any bytes as a plan: refused with a line and a place for each mistake, or there is something to run.
///
/// # Panics
/// When an invariant of the format is broken.
pub fn plan_toml(bytes: &[u8]) {
    const NAME: &str = "plan.toml";
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Plan::parse(NAME, text) {
        Ok(plan) => assert!(!plan.id().is_empty() && plan.text() == text),
        Err(PlanError::Mistakes(all)) => {
            assert!(!all.is_empty(), "refused for no reason");
            all.iter().for_each(|one| refused(text, NAME, &one.to_string()));
        }
        Err(error) => panic!("a text is no name: {error}"),
    }
}

/// Any bytes as the settings of each daemon: refused on one line, or they come back.
///
/// # Panics
/// When an invariant of the format is broken.
pub fn daemon_settings(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for daemon in DAEMONS {
        match judge_settings(daemon, text) {
            Ok(again) => match judge_settings(daemon, &again) {
                Ok(twice) => assert_eq!(twice, again, "written and read again"),
                Err(error) => panic!("what was written is refused: {error}\n{again}"),
            },
            Err(error) => one_line(&error.to_string()),
        }
    }
}

/// Any bytes as the keys of a campus: refused on one line that says nothing of a secret, or there is a key.
///
/// # Panics
/// When an invariant of the format is broken.
pub fn campus_keys(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse_keys(text) {
        Ok(keys) => {
            let shown = format!("{keys:?}");
            assert!(secrets(text).all(|secret| !shown.contains(secret)), "{shown}");
        }
        Err(why) => {
            one_line(&why);
            assert!(secrets(text).all(|secret| !why.contains(secret)), "{why}");
        }
    }
}

/// Words that may be secrets: the last of a line, long, and of hexadecimal digits.
fn secrets(text: &str) -> impl Iterator<Item = &str> {
    let words = text.lines().filter_map(|line| line.split_whitespace().last());
    words.filter(|word| word.len() >= SECRET_MIN && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn one_line(text: &str) {
    assert!(!text.is_empty() && !text.contains('\n'), "one line: {text}");
}

/// An error begins with the file, and if it names a line then one that there is.
fn refused(text: &str, name: &str, error: &str) {
    one_line(error);
    let rest = error.strip_prefix(name).unwrap_or_else(|| panic!("it does not begin with its place: {error}"));
    let line = rest.strip_prefix(':').and_then(|rest| rest.split(':').next()).and_then(|line| line.parse().ok());
    let lines = 1 + text.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    assert!(line.is_none_or(|line: usize| (1..=lines).contains(&line)), "{error}, of {lines}");
}

/// Files of each kind, good ones and odd ones.
pub(crate) fn seeds() -> Vec<Seed> {
    let in_target =
        |target| move |(name, text): (&'static str, String)| Seed { target, name, bytes: text.into_bytes() };
    let fabrics = fabrics().into_iter().map(in_target("fabric_yaml"));
    let plans = plans().into_iter().map(in_target("plan_toml"));
    let settings = settings().into_iter().map(in_target("daemon_settings"));
    fabrics.chain(plans).chain(settings).chain(keys().into_iter().map(in_target("campus_keys"))).collect()
}

const FABRIC: &str = "name: two\ntopology:\n  defaults:\n    kind: linux\n    link: {rate: 20 Mbit/s, buffer: 4 MB, mtu: 1600}\n  \
nodes:\n    int1: {role: intermediate}\n    agg1: {role: aggregation}\n    tor1: {role: tor}\n    s1: {role: server}\n    \
s2: {role: server}\n  links:\n    - endpoints: [\"int1:agg1\", \"agg1:int1\"]\n      rate: 200 Mbit/s\n    \
- endpoints: [\"agg1:tor1\", \"tor1:agg1\"]\n    - endpoints: [\"tor1:s1\", \"s1:eth0\"]\n    \
- endpoints: [\"tor1:s2\", \"s2:eth0\"]\n";

fn fabrics() -> Vec<(&'static str, String)> {
    let with = |more: &str| format!("{FABRIC}{more}");
    let campus = "name: campus\ntopology:\n  nodes:\n    r1: {role: rbridge}\n    h1: {role: server}\n  links:\n    \
        - {endpoints: [\"r1:h1\", \"h1:eth0\"], vlan: 10, address: 10.0.10.1/24}\n  gateways: {10: 10.0.10.254/24}\n";
    vec![
        ("two", FABRIC.to_owned()),
        (
            "services",
            with("services:\n  web: {servers: [s1]}\nbroadcast: {delivery: group, limit: 1 Mbit/s, burst: 15 kB}\n"),
        ),
        (
            "outside",
            FABRIC
                .replace("int1: {role: intermediate}", "int1: {role: intermediate}\n    net: {role: internet}")
                .replace("links:\n", "links:\n    - endpoints: [\"net:int1\", \"int1:net\"]\n")
                + "outside: {pool: 198.51.100.0/24, servers: [s1]}\n",
        ),
        ("dhcp", FABRIC.replace("s2: {role: server}", "s2: {role: directory}") + "dhcp: {server: s2}\n"),
        ("campus", campus.to_owned()),
        ("forwarding", FABRIC.replace("{role: tor}", "{role: tor, forwarding: bridge}")),
        ("anchors", FABRIC.replace("link: {", "link: &l {").replace("rate: 200 Mbit/s", "<<: *l")),
        ("labels", FABRIC.replace("{role: tor}", "{labels: {role: tor}}")),
        ("unknown-key", FABRIC.replace("role: tor", "rule: tor")),
        ("twice", FABRIC.replace("s2: {role", "s1: {role")),
        ("unknown-end", FABRIC.replace("tor1:s2", "tor9:s2")),
        ("tab", FABRIC.replace("  nodes:", "\tnodes:")),
        ("empty", String::new()),
        ("no-rate", FABRIC.replace("20 Mbit/s", "many")),
    ]
}

const PLAN: &str = "id = \"my/plan\"\npaper = \"weft\"\nfigure = \"none\"\ntitle = \"a plan\"\nengines = [\"sim\"]\n\
expected_s = 5\nrepetitions = 3\noverlays = [\"routed\"]\n\n[fabric]\ngenerator = \"leaf-spine\"\nleaves = 2\nspines = 2\n\
servers_per_leaf = 2\nserver_rate = \"10 Gbit/s\"\ncore_rate = \"40 Gbit/s\"\nlink_delay = \"1 us\"\n\n\
[workload.all-to-all]\nkind = \"shuffle\"\nbytes_per_flow = \"100 kB\"\n\n[sampling]\ninterval = \"1 ms\"\ntime_limit = \"2 s\"\n\n\
[[metrics]]\nid = \"jain_flows\"\nmeaning = \"Jain's index\"\n\
sql = \"select jain(bytes_received * 8e9 / (end_ns - start_ns)) as value from flows group by trial\"\n\n\
[[claims]]\nid = \"jain_flows\"\nrelation = \">=\"\nwant = 0.5\nunit = \"index\"\nbaseline = \"equal rates\"\n";

fn plans() -> Vec<(&'static str, String)> {
    let with = |more: &str| format!("{PLAN}{more}");
    vec![
        ("plan", PLAN.to_owned()),
        ("sweep", with("\n[sweep]\n\"fabric.leaves\" = [2, 3]\n\"fabric.spines\" = [1, 2]\n")),
        ("quick", with("\n[quick]\nrepetitions = 1\n[full.fabric]\nleaves = 4\n")),
        (
            "views",
            with("\n[[views]]\nid = \"slow\"\nabout = \"slow flows\"\nsql = \"select * from flows where bytes < 5\"\n"),
        ),
        (
            "mutation",
            PLAN.to_owned()
                + "required = true\nfails_when = \"all is slow\"\n\n[[mutations]]\nid = \"all is slow\"\n\
            sql = \"update flows set end_ns = end_ns * 2\"\n",
        ),
        ("fault", with("\n[[faults]]\nkind = \"link\"\nat = \"1 ms\"\n")),
        (
            "figure",
            with(
                "\n[[figures]]\nid = \"f\"\ntitle = \"t\"\ncaption = \"c\"\nkind = \"lines\"\nx = \"x\"\ny = \"y\"\n\
            sql = \"select 'a' as series, trial as x, trial as y from flows\"\n",
            ),
        ),
        ("bad-sql", PLAN.replace("from flows", "from clouds")),
        ("unknown-key", PLAN.replace("leaves", "leafs")),
        ("missing-key", PLAN.replace("id = \"my/plan\"\n", "")),
        ("wrong-kind", PLAN.replace("repetitions = 3", "repetitions = \"three\"")),
        ("not-toml", PLAN.replace("[fabric]", "[fabric")),
        ("empty", String::new()),
    ]
}

fn settings() -> Vec<(&'static str, String)> {
    use weft_node::{agent, directory, rbridge, settings_text, switch, tor, vtep};
    let directory = settings_text(&directory::DirectoryConfig::example());
    let vtep = settings_text(&vtep::VtepConfig::example());
    let rbridge = settings_text(&rbridge::RBridgeConfig::example());
    let etcd = "{ etcd = { endpoints = [\"http://10.64.0.9:2379\"] } }";
    vec![
        ("agent", settings_text(&agent::AgentConfig::example())),
        ("directory", directory.clone()),
        ("directory-etcd", directory.replace("\"/var/lib/weft/directory.redb\"", etcd)),
        ("switch", settings_text(&switch::SwitchConfig::example())),
        ("tor", settings_text(&tor::TorConfig::example())),
        ("vtep", vtep.clone()),
        ("rbridge", rbridge.clone()),
        ("rbridge-timing", rbridge.replace("hello_ms = 3000", "hello_ms = 0")),
        ("vtep-many-vlans", vtep.replace("20-29=200-209", "1-4094=1-4094")),
        ("vtep-huge-range", vtep.replace("200-299", "1-16777215")),
        ("unknown-key", directory.replace("aa_block", "aa_black")),
        ("json", "{\"tier\": \"tor\",\n \"own_la\": []}".to_owned()),
        ("old-names", settings_text(&agent::AgentConfig::example()).replace("service =", "tenant =")),
        ("empty", String::new()),
    ]
}

fn keys() -> Vec<(&'static str, String)> {
    const SECRET: &str = "00112233445566778899aabbccddeeff";
    vec![
        ("one", format!("1 hmac-sha-256 {SECRET}\n")),
        ("two", format!("# the new one\n\n 2  hmac-sha-256\t{SECRET}\n1 hmac-md5 {}\n", SECRET.to_uppercase())),
        ("same-id", format!("1 hmac-sha-256 {SECRET}\n1 hmac-sha-512 {SECRET}\n")),
        ("no-algorithm", format!("1 {SECRET}\n")),
        ("other-algorithm", format!("1 sha256 {SECRET}\n")),
        ("id-65536", format!("65536 hmac-sha-1 {SECRET}\n")),
        ("odd-digits", format!("1 hmac-sha-224 {SECRET}0\n")),
        ("no-digits", format!("1 hmac-sha-384 +{SECRET}+\n")),
        ("short", format!("1 hmac-sha-256 {}\n", &SECRET[2..])),
        ("a-word-more", format!("1 hmac-sha-256 {SECRET} x\n")),
        ("comment", "# 1\n".to_owned()),
        ("empty", String::new()),
    ]
}
