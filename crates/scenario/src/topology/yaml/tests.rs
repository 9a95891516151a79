//! Fabric files: what is read, what is written, and what is refused with which line.

use proptest::prelude::*;

use super::*;
use crate::name::{is_usable, is_usable_interface};
use crate::topology::{
    ClosParams, DELAY_MAX, LeafSpineParams, LinkParams, RATE_MAX, TestbedParams, TreeParams, leaf_spine, overlay_pair,
    tree, vl2_clos, vl2_testbed,
};
use crate::units::BitsPerSec;

const GOOD: &str = r#"name: pair
topology:
  defaults:
    kind: linux
    link: {rate: 20 Mbit/s}
  nodes:
    tor1: {role: tor}
    s1:
      kind: linux
      labels: {role: server, owner: web}
    s2: &server {role: server}
    s3:
      <<: *server
  links:
    - endpoints: ["tor1:s1", "s1:eth0"]
      rate: 1.5 Gbit/s
      buffer: 2 MiB
      mtu: 9000
      delay: 10 us
    - endpoints: ["tor1:s2", "s2:eth0"]
    - {endpoints: ["tor1:s3", "s3:eth0"], mtu: 1500}
"#;

fn refusal(text: &str) -> String {
    let message = from_yaml(text, "f.yaml").expect_err(text).to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

/// The good file with one text exchanged for another.
fn changed(from: &str, to: &str) -> String {
    assert_eq!(GOOD.matches(from).count(), 1, "`{from}` is there once");
    GOOD.replace(from, to)
}

#[test]
fn a_file_is_read_with_its_defaults() {
    let fabric = from_yaml(GOOD, "f.yaml").unwrap();
    assert_eq!(fabric.name(), "pair");
    let names: Vec<&str> = fabric.nodes().iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["tor1", "s1", "s2", "s3"]);
    assert_eq!(fabric.servers().count(), 3);
    let specs: Vec<_> = fabric
        .links()
        .iter()
        .map(|link| (link.spec.rate.0, link.spec.buffer.0, link.spec.mtu_bytes, link.spec.delay.0))
        .collect();
    assert_eq!(
        specs,
        [(1_500_000_000, 2 << 20, 9000, 10_000), (20_000_000, 4_000_000, 1600, 0), (20_000_000, 4_000_000, 1500, 0),]
    );
}

#[test]
fn every_broken_rule_is_named_with_its_line() {
    let mut wrong = Vec::new();
    for (from, to, message) in [
        ("  links:", "  lnks:", "f.yaml:14:3: unknown key `lnks`; known here: defaults, nodes, links"),
        ("name: pair", "nam: pair", "f.yaml:1:1: unknown key `nam`; known here: name, topology"),
        (
            "{role: tor}",
            "{role: tor, image: frr}",
            "f.yaml:7:23: unknown key `image`; known here: kind, role, labels, forwarding",
        ),
        ("{role: tor}", "{role: tr}", "f.yaml:7:18: unknown value `tr`"),
        ("{role: tor}", "", "f.yaml:7: node `tor1` has no role; write for example `role: tor`"),
        ("      kind: linux\n", "      kind: bridge\n", "f.yaml:9:13: unknown value `bridge`; known here: linux"),
        ("    s1:\n", "    tor1:\n", "f.yaml:8:5: `tor1` is there twice"),
        ("    s1:\n", "    9s: {role: core}\n    s1:\n", "f.yaml:8: node name `9s` is not usable"),
        ("\"s1:eth0\"", "\"s9:eth0\"", "f.yaml:15: link `tor1:s1 - s9:eth0` ends at node `s9`"),
        ("\"s1:eth0\"", "\"s1\"", "f.yaml:15: `s1` is no end of a link; write `node:interface`"),
        ("\"s1:eth0\"", "\"s1:interface0123456\"", "f.yaml:15: interface name `interface0123456` on node `s1`"),
        ("\"s1:eth0\"", "\"tor1:x\"", "f.yaml:15: link `tor1:s1 - tor1:x` connects a node with itself"),
        ("\"tor1:s2\", ", "\"tor1:s1\", ", "f.yaml:20: two links end at `tor1:s1`"),
        (", \"s2:eth0\"]", "]", "a link has two endpoints, `[\"a:eth1\", \"b:eth1\"]`, not 1"),
        ("1.5 Gbit/s", "0 bit/s", "f.yaml:15: link `tor1:s1 - s1:eth0` has rate 0"),
        ("1.5 Gbit/s", "0", "f.yaml:16:13: `0` is not a rate; write for example `20 Mbit/s`"),
        ("1.5 Gbit/s", "[1]", "f.yaml:16:13: "),
        ("1.5 Gbit/s", "1500000 Gbit/s", "f.yaml:15: link `tor1:s1 - s1:eth0` has rate 1500000 Gbit/s; choose at most"),
        ("1.5 Gbit/s", "-1 Gbit/s", "f.yaml:16:13: `-1 Gbit/s` is not a rate"),
        ("10 us", "11 s", "f.yaml:15: link `tor1:s1 - s1:eth0` has a delay of 11 s; choose at most 10 s"),
        ("2 MiB", "8999 B", "f.yaml:15: link `tor1:s1 - s1:eth0` has a buffer of 8999 B, less than one frame"),
        ("mtu: 9000", "mtu: 100", "f.yaml:15: link `tor1:s1 - s1:eth0` has MTU 100; allowed are 576 to 65535"),
        ("mtu: 9000", "mtu: -1", "f.yaml:18:12: "),
        ("10 us", "soon", "f.yaml:19:14: `soon` is not a duration; write for example `45 s`"),
        ("    link: {rate: 20 Mbit/s}\n", "", "f.yaml:19: link `tor1:s2 - s2:eth0` has no rate"),
        ("    - {endpoints: [\"tor1:s3\", \"s3:eth0\"], mtu: 1500}\n", "", "f.yaml:12: Server `s3` has 0 links"),
        ("{role: tor}", "{role: core}", "server `s1` hangs below `tor1`, which is no Tor, Leaf or RBridge"),
    ] {
        let got = refusal(&changed(from, to));
        if !got.contains(message) || !got.starts_with("f.yaml:") {
            wrong.push(format!("wanted `{message}`, got `{got}`"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_unreachable_part_is_named() {
    let island = "    t2: {role: tor}\n  links:";
    assert_eq!(refusal(&changed("  links:", island)), "f.yaml:14: node `t2` cannot be reached from `tor1`");
}

#[test]
fn what_is_not_one_yaml_document_is_refused() {
    for text in ["", "name: [", "\t", "- a\n", "name: x\n", "\u{0}", "name: x\ntopology: {nodes: {}}\n", "a: b: c"] {
        refusal(text);
    }
    assert!(refusal(&format!("{GOOD}---\n{GOOD}")).contains("single YAML document"));
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned()
        + &(1..9).map(|i| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(","))).collect::<String>();
    refusal(&bomb.replace("*a0", "*a"));
}

#[test]
fn generated_fabrics_are_written_and_read_back_the_same() {
    let links = LinkParams::default();
    for fabric in [
        vl2_testbed(&TestbedParams::default()).unwrap(),
        vl2_clos(&ClosParams::with_ports(8)).unwrap(),
        leaf_spine(&LeafSpineParams {
            spines: 3,
            leaves: 2,
            servers_per_leaf: 2,
            links_per_pair: 2,
            links: links.clone(),
        })
        .unwrap(),
        tree(&TreeParams::default()).unwrap(),
        overlay_pair(&links).unwrap(),
    ] {
        assert_eq!(from_yaml(&to_yaml(&fabric), "t").unwrap(), fabric);
    }
}

#[test]
fn a_large_clos_is_not_too_large_a_file() {
    let fabric = vl2_clos(&ClosParams::with_ports(72)).unwrap();
    assert_eq!(fabric.servers().count(), 25_920);
    assert_eq!(from_yaml(&to_yaml(&fabric), "t").unwrap(), fabric);
}

#[test]
fn words_that_yaml_reads_as_something_else_survive() {
    for word in ["null", "Null", "true", "TRUE", "false", "yes", "no", "on", "OFF", "y", "N", "nan", "inf", "NaN"] {
        let nodes = vec![Node { name: word.to_owned(), role: Role::Tor }];
        let fabric = Fabric::new(word, nodes, Vec::new()).unwrap();
        assert_eq!(from_yaml(&to_yaml(&fabric), "t").unwrap(), fabric);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_names_and_numbers_survive(
        name in "[a-zA-Z][a-zA-Z0-9_-]{0,30}(\\.[a-zA-Z0-9_-])?",
        node in "[a-zA-Z][a-zA-Z0-9._-]{0,30}[a-zA-Z0-9_-]",
        interface in "[a-zA-Z0-9_-]{1,15}",
        rate in 1..=RATE_MAX.0,
        buffer in 65_535u64..1 << 50,
        mtu_bytes in 576u32..65_536,
        delay in 0..=DELAY_MAX.0,
    ) {
        prop_assume!(is_usable_interface(&interface) && is_usable(&node) && is_usable(&name));
        prop_assume!(!node.eq_ignore_ascii_case("host"));
        let nodes = vec![
            Node { name: node, role: Role::Tor },
            Node { name: "host".to_owned(), role: Role::Server },
        ];
        let port = |node: u32, interface: &str| Port { node: NodeId(node), interface: interface.to_owned() };
        let spec = LinkSpec { rate: BitsPerSec(rate), buffer: Bytes(buffer), mtu_bytes, delay: Nanos(delay) };
        let links = vec![Link { a: port(0, &interface), b: port(1, "eth0"), spec }];
        let fabric = Fabric::new(name, nodes, links).unwrap();
        prop_assert_eq!(from_yaml(&to_yaml(&fabric), "t").unwrap(), fabric);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,80}", cut in 0usize..GOOD.len()) {
        let _ = from_yaml(&text, "t");
        let _ = from_yaml(&GOOD[..cut], "t");
        let _ = from_yaml(&format!("{}{text}{}", &GOOD[..cut], &GOOD[cut..]), "t");
        let _ = check_yaml(&format!("{}{text}{}", &GOOD[..cut], &GOOD[cut..]), "t");
    }
}

fn mistakes(text: &str) -> Vec<String> {
    check_yaml(text, "f.yaml").expect_err(text).iter().map(ToString::to_string).collect()
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_the_file() {
    let text = "name: two.\ntopology:\n  nodes:\n    t1: {role: tor}\n    t1_: {}\n    9s: {role: server}\n    s1: {role: server}\n    \
        S1: {role: server}\n  links:\n    - {endpoints: [\"t1:s1\", \"s1:all\"], rate: 1 Gbit/s}\n    - endpoints: [\"t1:x\", \"s9:eth0\"]\n    \
        - {endpoints: [\"t1:s1\", \"9s:eth0\"], rate: 0 bit/s}\n    - {endpoints: [\"t1:y\", \"S1:eth0\"], rate: 99999 Gbit/s, vlan: 3}\n";
    let wanted = [
        "f.yaml:1: fabric name `two.` is not usable",
        "f.yaml:5: node `t1_` has no role",
        "f.yaml:6: node name `9s` is not usable",
        "f.yaml:8: nodes `s1` and `S1` differ in capital letters alone",
        "f.yaml:10: interface name `all` on node `s1` is not usable",
        "f.yaml:11: link `t1:x - s9:eth0` ends at node `s9`",
        "f.yaml:12: two links end at `t1:s1`",
        "f.yaml:13: link `t1:y - S1:eth0` needs both `vlan` and `address`",
        "f.yaml:13: link `t1:y - S1:eth0` has rate 99999 Gbit/s",
    ];
    let told = mistakes(text);
    assert_eq!(told.len(), wanted.len(), "{told:#?}");
    for (told, wanted) in told.iter().zip(wanted) {
        assert!(told.starts_with(wanted), "{told}, not {wanted}");
    }
}

#[test]
fn keys_and_values_that_are_not_known_are_told_at_once() {
    let text = changed("{role: tor}", "{role: tr, image: frr}")
        .replace("name: pair", "name: pair\nmgmt:\n  network: x\n  more: {a: [1, 2]}")
        .replace("1.5 Gbit/s", "fast")
        .replace("10 us", "soon # or late")
        .replace("mtu: 1500}", "mtu: many}");
    let wanted = [
        "f.yaml:2:1: unknown key `mgmt`",
        "f.yaml:10:18: unknown value `tr`",
        "f.yaml:10:22: unknown key `image`",
        "f.yaml:19:13: `fast` is not a rate",
        "f.yaml:22:14: `soon` is not a duration",
        "f.yaml:24:48: invalid u32",
    ];
    let told = mistakes(&text);
    assert_eq!(told.len(), wanted.len(), "{told:#?}");
    for (told, wanted) in told.iter().zip(wanted) {
        assert!(told.starts_with(wanted), "{told}, not {wanted}");
    }
}

#[test]
fn a_good_file_has_no_mistakes_and_a_bad_one_begins_with_what_loading_says() {
    assert_eq!(check_yaml(GOOD, "f.yaml"), from_yaml(GOOD, "f.yaml").map_err(|error| vec![error]));
    for text in ["", "name: [", "\t", "- a\n", "name: x\n", "\u{0}", "a: b: c", "name: x\ntopology: {nodes: {}}\n"] {
        let first = from_yaml(text, "f.yaml").expect_err(text);
        assert!(check_yaml(text, "f.yaml").expect_err(text).contains(&first), "{text}");
    }
}
