//! From the plans of two fabrics to what makes one of the other while it is up: pure, so that it can be read and tested without root.

use std::collections::BTreeSet;

use weft_scenario::id::NodeId;
use weft_scenario::topology::{Fabric, Link, LinkSpec};

use crate::frr::FrrConfig;
use crate::plan::iproute::{Ip, NewLink, PortQueue};
use crate::plan::{LabPlan, NodePlan};

/// What is to be done. Plans of nodes that come and of those that change are new ones, of those that go old ones.
#[derive(Debug, Default)]
pub(super) struct Difference<'a> {
    pub(super) come: Vec<&'a NodePlan>,
    pub(super) go: Vec<&'a NodePlan>,
    pub(super) changed: Vec<Changed<'a>>,
}

/// What is to be done to a node that stays.
#[derive(Debug)]
pub(super) struct Changed<'a> {
    pub(super) plan: &'a NodePlan,
    pub(super) creates: Vec<&'a NewLink>,
    pub(super) configures: Vec<&'a Ip>,
    pub(super) queues: Vec<&'a PortQueue>,
    /// Ports that have not been checked before.
    pub(super) checked_ports: Vec<&'a String>,
    /// Ports of links that go.
    pub(super) lost: BTreeSet<String>,
    /// Those of them that no other node takes with it: links that were made from here, to nodes that stay.
    pub(super) cut: Vec<&'a String>,
    /// Lines for `ospfd`, each with the context that it needs before it.
    pub(super) ospfd: Vec<String>,
}

/// A fabric with its plan.
#[derive(Clone, Copy)]
pub(super) struct Planned<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) plan: &'a LabPlan,
}

impl<'a> Difference<'a> {
    /// From the one to the other. The error says what would change that cannot while it is up.
    pub(super) fn of(old: Planned<'a>, new: Planned<'a>) -> Result<Self, String> {
        let find = |planned: Planned<'a>, name: &str| planned.fabric.find(name).map(|id| planned.plan.node(id));
        let mut difference = Self::default();
        for plan in &new.plan.nodes {
            match find(old, &plan.name) {
                None => difference.come.push(plan),
                Some(before) => difference.changed.extend(changed(old, new, before, plan)?),
            }
        }
        difference.go = old.plan.nodes.iter().filter(|plan| find(new, &plan.name).is_none()).collect();
        Ok(difference)
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.come.is_empty() && self.go.is_empty() && self.changed.is_empty()
    }
}

/// A link's ends by name, the smaller one first, and what it can carry.
type Named<'a> = ([(&'a str, &'a str); 2], &'a LinkSpec);

fn named<'a>(fabric: &'a Fabric, link: &'a Link) -> Named<'a> {
    let mut ends = [&link.a, &link.b].map(|port| (fabric.node(port.node).name.as_str(), port.interface.as_str()));
    ends.sort_unstable();
    (ends, &link.spec)
}

/// A node's ports whose links are not in the other fabric.
fn ports_without(one: &Fabric, node: NodeId, other: &Fabric) -> BTreeSet<String> {
    let links: Vec<Named<'_>> = other.links().iter().map(|link| named(other, link)).collect();
    let own = one.links_of(node).iter().map(|link| one.link(*link));
    let lost = own.filter(|link| !links.contains(&named(one, link)));
    lost.filter_map(|link| Some(link.end_at(node)?.interface.clone())).collect()
}

fn changed<'a>(
    old: Planned<'a>,
    new: Planned<'a>,
    before: &'a NodePlan,
    plan: &'a NodePlan,
) -> Result<Option<Changed<'a>>, String> {
    let name = &plan.name;
    let (lost, gained) =
        (ports_without(old.fabric, before.id, new.fabric), ports_without(new.fabric, plan.id, old.fabric));
    if let Some(port) = lost.intersection(&gained).next() {
        return Err(format!(
            "port `{port}` of `{name}` would have another link, or one of another rate, delay, buffer or MTU; take it out first"
        ));
    }
    if before.role != plan.role {
        return Err(format!("`{name}` would have another role"));
    }
    if (&before.sysctls, &before.rules, &before.forwards) != (&plan.sysctls, &plan.rules, &plan.forwards) {
        return Err(format!("`{name}` would have other settings of its kernel"));
    }
    let stays = |device: Option<&str>| device.is_none_or(|device| !lost.contains(device));
    let moved = |line: String| {
        format!(
            "`{name}` would no longer have `{line}`; leave what is there in its order, and put what is new at the end"
        )
    };
    if let Some(line) = before.configures.iter().find(|line| stays(line.device()) && !plan.configures.contains(line)) {
        return Err(moved(line.to_string()));
    }
    if let Some(queue) = before.queues.iter().find(|queue| stays(Some(&queue.device)) && !plan.queues.contains(queue)) {
        return Err(moved(queue.to_string()));
    }
    let stays_behind = |port: &&String| {
        let links = old.fabric.links_of(before.id).iter().map(|link| old.fabric.link(*link));
        let mut of_port = links.filter(|link| link.end_at(before.id).is_some_and(|end| end.interface == **port));
        let far = of_port.next().and_then(|link| link.far_end(before.id));
        far.is_some_and(|far| new.fabric.find(&old.fabric.node(far.node).name).is_some())
    };
    let made_here = before.creates.iter().map(|link| &link.end.device).filter(|port| lost.contains(*port));
    let changed = Changed {
        plan,
        cut: made_here.filter(stays_behind).collect(),
        creates: plan.creates.iter().filter(|link| gained.contains(&link.end.device)).collect(),
        configures: plan.configures.iter().filter(|line| !before.configures.contains(line)).collect(),
        queues: plan.queues.iter().filter(|queue| !before.queues.contains(queue)).collect(),
        checked_ports: plan.checked_ports.iter().filter(|port| !before.checked_ports.contains(port)).collect(),
        ospfd: ospfd(name, before.frr.as_ref(), plan.frr.as_ref())?,
        lost,
    };
    let is_same =
        changed.lost.is_empty() && gained.is_empty() && changed.configures.is_empty() && changed.ospfd.is_empty();
    Ok((!is_same).then_some(changed))
}

/// What `ospfd` is told beside what it was told before. Interfaces that are gone need no word.
fn ospfd(name: &str, before: Option<&FrrConfig>, now: Option<&FrrConfig>) -> Result<Vec<String>, String> {
    let (Some(before), Some(now)) = (before, now) else {
        return if before.is_none() && now.is_none() {
            Ok(Vec::new())
        } else {
            Err(format!("`{name}` would route, or no longer"))
        };
    };
    if ["zebra", "bfdd", "pimd", "bgpd"].iter().any(|daemon| before.text(daemon) != now.text(daemon)) {
        return Err(format!("`{name}` would have other settings of its routing"));
    }
    let (before, now) = (before.text("ospfd").unwrap_or_default(), now.text("ospfd").unwrap_or_default());
    let known: BTreeSet<(&str, &str)> = in_context(before).collect();
    let mut lines: Vec<String> = Vec::new();
    let mut context = "";
    for (within, line) in in_context(now).filter(|line| !known.contains(line)) {
        if within != context {
            lines.push(within.to_owned());
            context = within;
        }
        lines.push(line.to_owned());
    }
    Ok(lines)
}

/// Indented lines of a text, each with the line that it stands below.
fn in_context(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut context = "";
    text.lines().filter_map(move |line| match line.strip_prefix(' ') {
        Some(line) => Some((context, line)),
        None => {
            context = line;
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use weft_scenario::addressing::{AddressPlan, AddressingOptions};
    use weft_scenario::engine::{DirectoryStore, Overlay, Scenario, Transport};
    use weft_scenario::switching::Switching;
    use weft_scenario::topology::from_yaml;

    use super::*;

    const FOUR: &str = include_str!("../../../../fabrics/vl2-4servers.yaml");

    fn scenario(text: &str) -> Scenario {
        let fabric = from_yaml(text, "a test").unwrap();
        Scenario {
            addresses: AddressPlan::new(&fabric, AddressingOptions::default()).unwrap(),
            fabric,
            overlay: Overlay::Vl2,
            directory: DirectoryStore::Embedded,
            transport: Transport::default(),
            switching: Switching::default(),
            shaped: true,
        }
    }

    /// What a change of the text comes to, in words.
    fn told(change: impl FnOnce(String) -> String) -> String {
        from_to(FOUR, &change(FOUR.to_owned()))
    }

    fn from_to(old: &str, new: &str) -> String {
        let (old, new) = (scenario(old), scenario(new));
        let plans = (LabPlan::new("l", &old, 1), LabPlan::new("l", &new, 1));
        let planned = |scenario, plan| Planned { fabric: scenario, plan };
        match Difference::of(planned(&old.fabric, &plans.0), planned(&new.fabric, &plans.1)) {
            Err(why) => format!("refused: {why}"),
            Ok(Difference { come, go, changed }) => {
                let names =
                    |plans: &[&NodePlan]| plans.iter().map(|plan| plan.name.clone()).collect::<Vec<_>>().join(" ");
                let changed: String = changed.iter().map(words).collect();
                format!("come: {}\ngo: {}\n{changed}", names(&come), names(&go))
            }
        }
    }

    fn words(changed: &Changed<'_>) -> String {
        let mut lines: Vec<String> = changed.creates.iter().map(ToString::to_string).collect();
        lines.extend(changed.configures.iter().map(ToString::to_string));
        lines.extend(changed.queues.iter().map(ToString::to_string));
        lines.extend(changed.ospfd.iter().cloned());
        let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
        format!("{}: lost {:?} {:?}\n{lines}", changed.plan.name, changed.lost, changed.cut)
    }

    /// The fabric with a third rack of one server.
    fn with_a_rack(text: String) -> String {
        let nodes = "    dir1: {role: directory}\n    tor3: {role: tor}\n    s5: {role: server}\n";
        let links = "    - {endpoints: [\"agg1:tor3\", \"tor3:agg1\"]}\n    - {endpoints: [\"agg2:tor3\", \"tor3:agg2\"]}\n    \
                     - {endpoints: [\"tor3:s5\", \"s5:eth0\"], rate: 20 Mbit/s, buffer: 4 MB}\n";
        text.replace("    dir1: {role: directory}\n", nodes) + links
    }

    #[test]
    fn a_rack_is_new_nodes_and_two_more_ports_of_aggregations() {
        let said = told(with_a_rack);
        assert!(said.starts_with("come: tor3 s5\ngo: \nagg1: lost {} []"), "{said}");
        for (node, address) in [("agg1", "10.128.0.16/31"), ("agg2", "10.128.0.18/31")] {
            let own = said.split_once(&format!("{node}: lost {{}} []\n")).expect("it is changed").1;
            let own = own.split_once(": lost").map_or(own, |(own, _)| own);
            assert!(!own.contains("router ospf"), "what all routes depend on stays: {own}");
            let lines: Vec<&str> = own.lines().map(str::trim).filter(|line| line.contains("tor3")).collect();
            let has = |what: &str| {
                assert_eq!(lines.iter().filter(|line| line.contains(what)).count(), 1, "{what}: {lines:#?}")
            };
            ["netns weft-l-tor3", "link set dev tor3 up", address, "interface tor3"].iter().for_each(|what| has(what));
        }
    }

    #[test]
    fn the_same_is_nothing_and_less_goes() {
        assert_eq!(told(|text| text), "come: \ngo: \n");
        let said = from_to(&with_a_rack(FOUR.to_owned()), FOUR);
        let of = |agg: &str| format!("{agg}: lost {{\"tor3\"}} []\n");
        let link = "    - {endpoints: [\"int2:agg2\", \"agg2:int2\"]}\n";
        let less = told(|text| text.replace(link, ""));
        assert!(less.starts_with("refused: ") || less.contains("int2: lost {\"agg2\"} [\"agg2\"]"), "{less}");
        assert_eq!(said, format!("come: \ngo: tor3 s5\n{}{}", of("agg1"), of("agg2")));
    }

    #[test]
    fn what_would_touch_others_is_refused_by_name() {
        let first = told(|text| {
            text.replace("    s1: {role: server}\n", "    s0: {role: server}\n    s1: {role: server}\n").replace(
                "    - {endpoints: [\"tor1:s1\"",
                "    - {endpoints: [\"tor1:s0\", \"s0:eth0\"], rate: 20 Mbit/s}\n    - {endpoints: [\"tor1:s1\"",
            )
        });
        assert!(first.starts_with("refused: `") && first.contains("put what is new at the end"), "{first}");
        let faster =
            told(|text| text.replace("[\"tor1:s1\", \"s1:eth0\"], rate: 20", "[\"tor1:s1\", \"s1:eth0\"], rate: 40"));
        assert!(faster.contains("port `s1` of `tor1` would have another link"), "{faster}");
        let role = told(|text| text.replace("    int2: {role: intermediate}", "    int2: {role: aggregation}"));
        assert!(role.starts_with("refused: "), "{role}");
    }
}
