//! Pictures of a fabric: text for the terminal, DOT for Graphviz, SVG for a browser.

use std::collections::BTreeMap;

use weft_scenario::id::NodeId;
use weft_scenario::overlay::Overlay;
use weft_scenario::topology::{Fabric, Role};

const BOX_WIDTH: usize = 64;
const BOX_HEIGHT: usize = 22;
const TIER_HEIGHT: usize = 110;
const MARGIN: usize = 20;
/// Hosts of a rack are drawn in rows of this many.
const HOSTS_PER_ROW: usize = 8;
const HOST_SIZE: usize = 7;

/// The tier of edge switches.
const EDGE: usize = HOSTS - 1;
/// The tier of hosts, below all others.
const HOSTS: usize = Role::HOST_TIER;

/// The first tier of the picture: most fabrics have no outside.
fn top(fabric: &Fabric) -> usize {
    usize::from(fabric.with_role(Role::Internet).next().is_none())
}

/// Whether the node is drawn for itself: a switch, or the outside. Hosts are drawn below their switch.
fn stands_alone(fabric: &Fabric, node: NodeId) -> bool {
    fabric.node(node).role.tier() < HOSTS
}

fn of_tier(fabric: &Fabric, level: usize) -> impl Iterator<Item = NodeId> + '_ {
    fabric.ids().filter(move |id| fabric.node(*id).role.tier() == level)
}

/// One line per switch, and for the outside, from the top tier down: its links, and its hosts by count.
pub fn text(fabric: &Fabric) -> String {
    let mut out = format!(
        "{}: {} switches, {} servers, {} links\n",
        fabric.name(),
        fabric.switches().count(),
        fabric.servers().count(),
        fabric.links().len()
    );
    for level in top(fabric)..HOSTS {
        for switch in of_tier(fabric, level) {
            let node = fabric.node(switch);
            let role = format!("{:?}", node.role).to_lowercase();
            out += &format!(
                "{:indent$}{:<12} {:<12} {}\n",
                "",
                node.name,
                role,
                neighbours(fabric, switch),
                indent = 2 * (level - top(fabric))
            );
        }
    }
    out
}

fn neighbours(fabric: &Fabric, switch: NodeId) -> String {
    let mut names = Vec::new();
    let mut hosts: BTreeMap<_, usize> = BTreeMap::new();
    for link in fabric.links_of(switch).iter().map(|link| fabric.link(*link)) {
        let Some(far) = link.far_end(switch).map(|port| port.node) else { continue };
        if stands_alone(fabric, far) {
            names.push(format!("{} ({})", fabric.node(far).name, link.spec.rate));
        } else {
            *hosts.entry(link.spec.rate).or_default() += 1;
        }
    }
    names.extend(hosts.into_iter().map(|(rate, count)| format!("{count} hosts ({rate} each)")));
    names.extend(own(fabric, switch).map(|overlay| format!("forwarding: {overlay}")));
    names.join(", ")
}

/// What a switch's line of the file says that it forwards with.
fn own(fabric: &Fabric, switch: NodeId) -> Option<Overlay> {
    fabric.forwarding().get(&switch).map(|own| own.overlay)
}

/// Graphviz DOT, one rank per tier.
pub fn dot(fabric: &Fabric) -> String {
    let mut out = format!("graph \"{}\" {{\n  node [shape=box];\n", fabric.name());
    for level in 0..=HOSTS {
        let names: Vec<String> = of_tier(fabric, level).map(|id| format!("\"{}\"", fabric.node(id).name)).collect();
        if !names.is_empty() {
            out += &format!("  {{ rank=same; {}; }}\n", names.join("; "));
        }
    }
    for (id, overlay) in fabric.ids().filter_map(|id| Some((id, own(fabric, id)?))) {
        let name = &fabric.node(id).name;
        out += &format!("  \"{name}\" [label=\"{name}\\n{overlay}\"];\n");
    }
    for link in fabric.links() {
        let name = |node: NodeId| &fabric.node(node).name;
        out += &format!(
            "  \"{}\" -- \"{}\" [label=\"{}\", taillabel=\"{}\", headlabel=\"{}\"];\n",
            name(link.a.node),
            name(link.b.node),
            link.spec.rate,
            link.a.interface,
            link.b.interface
        );
    }
    out.push_str("}\n");
    out
}

/// A drawing in tiers; hosts are small squares below their switch.
pub fn svg(fabric: &Fabric) -> String {
    let places = places(fabric);
    let width = places.iter().map(|(x, _)| x + BOX_WIDTH / 2 + MARGIN).max().unwrap_or(0);
    let height = places.iter().map(|(_, y)| y + BOX_HEIGHT + MARGIN).max().unwrap_or(0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\" role=\"img\"><title>{}</title>\n<g stroke=\"#888\" stroke-width=\"1\">\n",
        fabric.name()
    );
    for link in
        fabric.links().iter().filter(|link| stands_alone(fabric, link.a.node) && stands_alone(fabric, link.b.node))
    {
        let ((x1, y1), (x2, y2)) = (places[link.a.node.index()], places[link.b.node.index()]);
        out += &format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>\n");
    }
    out.push_str("</g>\n");
    for id in fabric.ids() {
        svg_node(&mut out, fabric, id, places[id.index()]);
    }
    out.push_str("</svg>\n");
    out
}

fn svg_node(out: &mut String, fabric: &Fabric, id: NodeId, (x, y): (usize, usize)) {
    let node = fabric.node(id);
    *out += &if stands_alone(fabric, id) {
        let (left, top) = (x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2);
        format!(
            "<rect x=\"{left}\" y=\"{top}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"3\" fill=\"#fff\" \
             stroke=\"#333\"/><text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}{}</text>\n",
            y + 4,
            node.name,
            own(fabric, id).map(|overlay| format!(" <tspan fill=\"#888\">{overlay}</tspan>")).unwrap_or_default()
        )
    } else {
        format!(
            "<rect x=\"{}\" y=\"{y}\" width=\"{HOST_SIZE}\" height=\"{HOST_SIZE}\" fill=\"#4a7\"><title>{}</title></rect>\n",
            x - HOST_SIZE / 2,
            node.name
        )
    };
}

/// The middle of every node: tiers from top to bottom, each centred, hosts in rows below their switch.
fn places(fabric: &Fabric) -> Vec<(usize, usize)> {
    let mut places = vec![(0, 0); fabric.nodes().len()];
    let top = top(fabric);
    let step = (HOSTS_PER_ROW + 2) * (HOST_SIZE + 3);
    let widest = (top..HOSTS).map(|level| of_tier(fabric, level).count()).max().unwrap_or(1).max(1);
    for level in top..HOSTS {
        let count = of_tier(fabric, level).count();
        for (number, id) in of_tier(fabric, level).enumerate() {
            let left = (widest - count) * step / 2;
            places[id.index()] =
                (MARGIN + left + number * step + step / 2, MARGIN + BOX_HEIGHT / 2 + (level - top) * TIER_HEIGHT);
        }
    }
    for edge in of_tier(fabric, EDGE) {
        let (x, y) = places[edge.index()];
        let hosts = fabric.links_of(edge).iter().filter_map(|link| fabric.link(*link).far_end(edge));
        for (number, host) in hosts.filter(|port| !stands_alone(fabric, port.node)).enumerate() {
            let (column, row) = (number % HOSTS_PER_ROW, number / HOSTS_PER_ROW);
            let left = x - (HOSTS_PER_ROW - 1) * (HOST_SIZE + 3) / 2;
            places[host.node.index()] = (left + column * (HOST_SIZE + 3), y + BOX_HEIGHT + 8 + row * (HOST_SIZE + 3));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::{LinkParams, overlay_pair};

    use super::*;

    fn fabric() -> Fabric {
        overlay_pair(&LinkParams::default()).unwrap()
    }

    #[test]
    fn the_text_shows_tiers_rates_and_host_counts() {
        let expected = "\
overlay-pair: 3 switches, 2 servers, 5 links
int1         intermediate tor1 (200 Mbit/s), tor2 (200 Mbit/s)
    tor1         tor          int1 (200 Mbit/s), 2 hosts (20 Mbit/s each)
    tor2         tor          int1 (200 Mbit/s), 1 hosts (20 Mbit/s each)
";
        assert_eq!(text(&fabric()), expected);
    }

    #[test]
    fn dot_has_every_link_with_both_interfaces() {
        let dot = dot(&fabric());
        assert_eq!(dot.matches(" -- ").count(), 5);
        assert!(dot.contains(r#""tor1" -- "s1" [label="20 Mbit/s", taillabel="s1", headlabel="eth0"];"#), "{dot}");
        assert!(dot.starts_with("graph \"overlay-pair\" {") && dot.ends_with("}\n"));
    }

    #[test]
    fn svg_draws_every_node_inside_the_picture() {
        let fabric = fabric();
        let svg = svg(&fabric);
        assert_eq!(svg.matches("<rect").count(), fabric.nodes().len());
        assert_eq!(svg.matches("<line").count(), 2, "links to hosts are not drawn");
        let spots: std::collections::BTreeSet<_> = places(&fabric).into_iter().collect();
        assert_eq!(spots.len(), fabric.nodes().len(), "no two nodes in one place");
    }

    #[test]
    fn switches_of_kinds_of_their_own_say_so() {
        let file = include_str!("../../../../fabrics/trill-mixed.yaml");
        let fabric = weft_scenario::topology::from_yaml(file, "trill-mixed.yaml").unwrap();
        let line = "b1           rbridge      s1 (10 Gbit/s), b2 (10 Gbit/s), forwarding: bridge\n";
        assert!(text(&fabric).contains(line), "{}", text(&fabric));
        assert!(dot(&fabric).contains(r#""b1" [label="b1\nbridge"];"#), "{}", dot(&fabric));
        assert_eq!(svg(&fabric).matches(">bridge</tspan>").count(), 2);
    }

    #[test]
    fn the_outside_is_drawn_above_its_borders() {
        let text_of_file = include_str!("../../../../fabrics/vl2-internet.yaml");
        let fabric = weft_scenario::topology::from_yaml(text_of_file, "vl2-internet.yaml").unwrap();
        let net = fabric.find("net").unwrap();
        let places = places(&fabric);
        let above = |switch: &str| places[net.index()].1 < places[fabric.find(switch).unwrap().index()].1;
        assert!(above("int1") && above("int2"));
        let lines = text(&fabric);
        let mut lines = lines.lines().skip(1);
        assert!(lines.next().unwrap().starts_with("net          internet     int1 ("));
        assert!(lines.next().unwrap().starts_with("  int1         intermediate "));
        let svg = svg(&fabric);
        assert_eq!(svg.matches("<rect").count(), fabric.nodes().len());
        let spots: std::collections::BTreeSet<_> = places.into_iter().collect();
        assert_eq!(spots.len(), fabric.nodes().len(), "no two nodes in one place");
    }
}
