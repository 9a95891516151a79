//! A network in tiers, from the top: its switches, the links between them, and how many servers hang below each. A tier of many
//! switches is folded into one box.

use std::collections::BTreeMap;

use weft_scenario::id::NodeId;
use weft_scenario::topology::{Fabric, Role};
use weft_scenario::units::BitsPerSec;

use super::plots::{Figure, figure};
use super::text::{self, Anchor};
use super::{WIDTH, coordinate, put};

/// Most switches of a tier that have a box each.
const BOXES_MAX: usize = 10;
/// What is in the tier of end hosts.
const HOSTS: [Role; 3] = [Role::Server, Role::Directory, Role::Router];
/// Room for the names of tiers.
const LEFT: f64 = 130.0;
const TOP: f64 = 26.0;
const TIER: f64 = 86.0;
const BOX_HEIGHT: f64 = 28.0;
const BOX_WIDTH: f64 = 76.0;
/// Of text below boxes.
const LINE: f64 = 15.0;

/// The drawing of the first network, which says how many others there are.
pub fn drawn(fabrics: &[Fabric]) -> Option<Figure> {
    let first = fabrics.first()?;
    let others = fabrics.iter().enumerate().filter(|(place, one)| !fabrics[..*place].contains(one)).count() - 1;
    let (switches, links) = (first.switches().count(), first.links().len());
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let hosts = HOSTS.map(|role| (role, first.with_role(role).count()));
    let hosts = hosts.into_iter().filter(|(role, count)| *role == Role::Server || *count > 0);
    let named = |(role, count): (Role, usize)| match role {
        Role::Directory => plural(count, "directory server"),
        role => plural(count, one(role)),
    };
    let counts: Vec<String> = hosts.map(named).chain([plural(links, "link")]).collect();
    let counts = counts.join(", ");
    let switches = if switches == 1 { "1 switch".to_owned() } else { format!("{switches} switches") };
    let sweep = match others {
        0 => String::new(),
        1 => " One other network of the sweep is not drawn.".to_owned(),
        others => format!(" {others} other networks of the sweep are not drawn."),
    };
    let name = format!("The network: {}", first.name());
    Some(figure(&name, &format!("{switches}, {counts}, from fabric.yaml.{sweep}"), Drawing::of(first).render(&name)))
}

/// Where everything of a network goes.
struct Drawing<'a> {
    fabric: &'a Fabric,
    /// Tiers that the network has, from the top; the last is that of end hosts if it has any.
    tiers: Vec<Vec<NodeId>>,
    /// The tier of each switch and its number there.
    places: BTreeMap<NodeId, (usize, usize)>,
}

impl<'a> Drawing<'a> {
    fn of(fabric: &'a Fabric) -> Self {
        let tier = |level: usize| fabric.ids().filter(|id| fabric.node(*id).role.tier() == level).collect::<Vec<_>>();
        let tiers: Vec<_> = (0..Role::HOST_TIER).map(tier).filter(|tier| !tier.is_empty()).collect();
        let placed = tiers
            .iter()
            .enumerate()
            .flat_map(|(level, tier)| tier.iter().enumerate().map(move |(number, id)| (*id, (level, number))));
        let places = placed.collect();
        Self { fabric, tiers, places }
    }

    fn render(&self, title: &str) -> String {
        let hosts = usize::from(self.fabric.ids().any(|id| self.fabric.node(id).role.tier() == Role::HOST_TIER));
        let others = HOSTS.iter().skip(1).filter(|role| self.fabric.with_role(**role).next().is_some());
        let lines = LINE * others.count() as f64;
        let height = TOP + TIER * (self.tiers.len() + hosts - 1).max(1) as f64 + BOX_HEIGHT + lines;
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">\n",
            coordinate(height),
            super::escape(title)
        );
        self.draw_links(&mut out);
        for (level, tier) in self.tiers.iter().enumerate() {
            self.draw_tier(&mut out, level, tier);
        }
        if hosts > 0 {
            self.draw_hosts(&mut out);
        }
        out.push_str("</svg>\n");
        out
    }

    /// The middle of a switch's box; of a folded tier that of its one box.
    fn place(&self, level: usize, number: usize) -> (f64, f64) {
        let boxes = if self.is_folded(level) { 1 } else { self.tiers[level].len() };
        let number = if self.is_folded(level) { 0 } else { number };
        let step = (WIDTH - LEFT) / boxes as f64;
        (LEFT + step * (number as f64 + 0.5), TOP + TIER * level as f64)
    }

    fn is_folded(&self, level: usize) -> bool {
        self.tiers[level].len() > BOXES_MAX
    }

    fn box_width(&self, level: usize) -> f64 {
        let step = (WIDTH - LEFT) / self.tiers[level].len().min(BOXES_MAX) as f64;
        if self.is_folded(level) { (WIDTH - LEFT) * 0.8 } else { (step - 8.0).min(BOX_WIDTH) }
    }

    fn draw_tier(&self, out: &mut String, level: usize, tier: &[NodeId]) {
        let role = self.fabric.node(tier[0]).role;
        let (wide, base) = (self.box_width(level), TOP + TIER * level as f64);
        text::line(out, word(role), (4.0, base + 5.0), Anchor::Start);
        let boxes: Vec<String> = match self.is_folded(level) {
            true => vec![format!("{} switches", tier.len())],
            false => tier.iter().map(|id| self.fabric.node(*id).name.clone()).collect(),
        };
        for (number, name) in boxes.iter().enumerate() {
            draw_box(out, self.place(level, number), wide, name);
        }
    }

    /// A line for each link between two boxes, and once for each pair of tiers what the links carry.
    fn draw_links(&self, out: &mut String) {
        let mut rates: BTreeMap<(usize, usize), Vec<BitsPerSec>> = BTreeMap::new();
        let mut lines: Vec<((f64, f64), (f64, f64))> = Vec::new();
        for link in self.fabric.links() {
            let ends = [link.a.node, link.b.node].map(|node| self.places.get(&node));
            let [Some(a), Some(b)] = ends else { continue };
            let (upper, lower) = if a.0 <= b.0 { (a, b) } else { (b, a) };
            rates.entry((upper.0, lower.0)).or_default().push(link.spec.rate);
            let line = (self.place(upper.0, upper.1), self.place(lower.0, lower.1));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        for ((from_x, from_y), (to_x, to_y)) in lines {
            let (from, to) = (coordinate(from_x), coordinate(to_x));
            let path = match from_y < to_y {
                true => format!("M{from} {}L{to} {}", coordinate(from_y), coordinate(to_y)),
                // Neighbours in one tier: a bow below them, the deeper the farther they are.
                false => {
                    let deep = from_y + 20.0 + (from_x - to_x).abs() * 0.12;
                    let (middle, deep) = (coordinate((from_x + to_x) / 2.0), coordinate(deep));
                    format!("M{from} {}Q{middle} {deep} {to} {}", coordinate(from_y), coordinate(to_y))
                }
            };
            put(out, format_args!("<path class=\"link\" d=\"{path}\"/>"));
        }
        for ((upper, lower), rates) in rates {
            let base = TOP + TIER * upper as f64 + if upper == lower { 24.0 } else { TIER / 2.0 + 5.0 };
            text::soft(out, &carried(rates), (4.0, base));
        }
    }

    /// The middle of each box that end hosts hang below, and how many of each kind in [`HOSTS`].
    fn hosts_below(&self) -> Vec<((f64, f64), [usize; HOSTS.len()])> {
        let mut below: BTreeMap<(usize, usize), [usize; HOSTS.len()]> = BTreeMap::new();
        for (kind, role) in HOSTS.into_iter().enumerate() {
            for (edge, _) in self.fabric.with_role(role).filter_map(|host| self.fabric.edge_of(host)) {
                let Some(&(level, number)) = self.places.get(&edge) else { continue };
                below.entry((level, if self.is_folded(level) { 0 } else { number })).or_default()[kind] += 1;
            }
        }
        below.into_iter().map(|((level, number), counts)| (self.place(level, number), counts)).collect()
    }

    /// How many end hosts hang below each switch, and what their links carry.
    fn draw_hosts(&self, out: &mut String) {
        let bottom = TOP + TIER * self.tiers.len() as f64;
        let rates = self.fabric.ids().filter_map(|host| Some(self.fabric.link(self.fabric.edge_of(host)?.1).spec.rate));
        text::line(out, "servers", (4.0, bottom + 5.0), Anchor::Start);
        text::soft(out, &carried(rates.collect()), (4.0, bottom - TIER / 2.0 + 5.0));
        for ((x, y), counts) in self.hosts_below() {
            put(
                out,
                format_args!("<path class=\"link\" d=\"M{0} {1}V{2}\"/>", coordinate(x), y + BOX_HEIGHT / 2.0, bottom),
            );
            let servers = counts[0].to_string();
            draw_box(out, (x, bottom), text::width(&servers) + 16.0, &servers);
            let others = HOSTS.iter().zip(counts).skip(1).filter(|(_, count)| *count > 0);
            for (line, (role, count)) in others.enumerate() {
                let base = bottom + BOX_HEIGHT / 2.0 + LINE * (line + 1) as f64;
                text::line(out, &format!("+ {count} {}", one(*role)), (x, base), Anchor::Middle);
            }
        }
    }
}

/// What one end host is called.
fn one(role: Role) -> &'static str {
    match role {
        Role::Directory => "directory",
        Role::Router => "router",
        _ => "server",
    }
}

fn draw_box(out: &mut String, (x, y): (f64, f64), wide: f64, name: &str) {
    let (left, top) = (coordinate(x - wide / 2.0), coordinate(y - BOX_HEIGHT / 2.0));
    put(
        out,
        format_args!(
            "<rect class=\"node\" x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{BOX_HEIGHT}\" rx=\"4\"/>",
            coordinate(wide)
        ),
    );
    text::within(out, name, (x, y + 5.0), wide);
}

/// The role as the field writes it.
pub(crate) fn word(role: Role) -> &'static str {
    match role {
        Role::Internet => "outside",
        Role::Intermediate => "Intermediates",
        Role::Aggregation => "Aggregations",
        Role::Tor => "ToRs",
        Role::Spine => "spines",
        Role::Leaf => "leaves",
        Role::Access => "access",
        Role::Core => "core",
        Role::Rbridge => "RBridges",
        Role::Server | Role::Directory | Role::Router => "servers",
    }
}

/// `24 x 200 Mbit/s`, or the slowest and the fastest.
fn carried(mut rates: Vec<BitsPerSec>) -> String {
    rates.sort_unstable();
    match (rates.first(), rates.last()) {
        (Some(low), Some(high)) if low == high => format!("{} x {low}", rates.len()),
        (Some(low), Some(high)) => format!("{low} .. {high}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::{LinkParams, TestbedParams, from_yaml, overlay_pair, vl2_testbed};

    use super::*;

    fn svg_of(fabrics: &[Fabric]) -> (String, String) {
        let figure = drawn(fabrics).expect("there is a network");
        roxmltree::Document::parse(&figure.svg).unwrap_or_else(|error| panic!("{error}: {}", figure.svg));
        (figure.svg, figure.caption)
    }

    #[test]
    fn the_testbed_has_its_ten_switches_and_counts_its_servers() {
        let (svg, caption) = svg_of(&[vl2_testbed(&TestbedParams::default()).unwrap()]);
        for name in ["int1", "agg3", "tor4", "Intermediates", "servers"] {
            assert!(svg.contains(&format!(">{name}</text>")), "{name}: {svg}");
        }
        // Ten switches and a count below each of four ToRs.
        assert_eq!(svg.matches("class=\"node\"").count(), 14, "{svg}");
        assert!(caption.starts_with("10 switches, "), "{caption}");
    }

    #[test]
    fn hosts_that_are_no_servers_are_counted_apart() {
        let (svg, caption) = svg_of(&[vl2_testbed(&TestbedParams::default()).unwrap()]);
        assert!(svg.contains(">18</text>") && svg.contains(">+ 1 directory</text>"), "{svg}");
        assert!(caption.contains("75 servers, 1 directory server, "), "{caption}");
    }

    #[test]
    fn a_tier_of_many_switches_is_one_box() {
        let file = include_str!("../../../../fabrics/leaf-spine-small.yaml");
        let small = from_yaml(file, "leaf-spine-small.yaml").unwrap();
        let params = weft_scenario::topology::LeafSpineParams { leaves: 40, ..Default::default() };
        let large = weft_scenario::topology::leaf_spine(&params).unwrap();
        let (large, _) = svg_of(&[large]);
        assert!(large.contains(">40 switches</text>") && large.len() < 20_000, "{large}");
        assert!(!svg_of(&[small]).0.contains("switches</text>"));
    }

    #[test]
    fn other_networks_of_a_sweep_are_counted() {
        let pair = overlay_pair(&LinkParams::default()).unwrap();
        let testbed = vl2_testbed(&TestbedParams::default()).unwrap();
        assert!(svg_of(&[pair.clone(), pair.clone()]).1.ends_with("fabric.yaml."));
        assert!(svg_of(&[pair.clone(), testbed, pair]).1.contains("One other network"));
        assert!(drawn(&[]).is_none());
    }
}
