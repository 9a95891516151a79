//! Fabrics of every shape, by what a picture of them must show.

use weft_scenario::topology::{
    ConventionalParams, LeafSpineParams, TestbedParams, conventional, from_yaml, leaf_spine, vl2_testbed,
};

use super::*;

fn place(fabric: &Fabric, layout: &Layout, name: &str) -> Place {
    layout.places[fabric.find(name).unwrap_or_else(|| panic!("no {name}")).index()]
}

/// Nobody stands on somebody else or outside of the picture.
fn apart(fabric: &Fabric, layout: &Layout) {
    for (one, place) in layout.places.iter().enumerate() {
        let name = &fabric.nodes()[one].name;
        assert!(
            (0.0..=layout.width).contains(&place.x) && (0.0..=layout.height).contains(&place.y),
            "{name}: {place:?}"
        );
        assert!((place.out.0.hypot(place.out.1) - 1.0).abs() < 1e-9, "{name}: {place:?}");
        for (other, far) in layout.places.iter().enumerate().skip(one + 1) {
            let distance = (place.x - far.x).hypot(place.y - far.y);
            assert!(distance > 12.0, "{name} and {} are {distance} apart", fabric.nodes()[other].name);
        }
    }
}

#[test]
fn a_clos_stands_in_tiers_with_servers_below_their_tor() {
    let fabric = vl2_testbed(&TestbedParams { servers_per_tor: [19, 19, 19, 18], ..Default::default() }).unwrap();
    let layout = Layout::of(&fabric);
    apart(&fabric, &layout);
    let names: Vec<&str> = layout.tiers.iter().map(|tier| tier.name.as_str()).collect();
    assert_eq!(names, ["Intermediates", "Aggregations", "ToRs", "servers"]);
    let at = |name: &str| place(&fabric, &layout, name);
    assert!(at("int1").y < at("agg1").y && at("agg1").y < at("tor1").y && at("tor1").y < at("s1").y);
    assert!(at("int1").x < at("int2").x && at("int2").x < at("int3").x);
    // The ToR is over the middle of its own, and no server of another stands among them.
    let rack: Vec<f64> = fabric
        .servers()
        .filter(|id| home(&fabric, *id) == fabric.find("tor2"))
        .map(|id| layout.places[id.index()].x)
        .collect();
    let (least, most) = (rack.iter().copied().fold(f64::MAX, f64::min), rack.iter().copied().fold(0.0, f64::max));
    assert!(((least + most) / 2.0 - at("tor2").x).abs() < HOST_STEP, "{least} {most} {:?}", at("tor2"));
    let others = fabric.servers().filter(|id| home(&fabric, *id) != fabric.find("tor2"));
    assert!(others.map(|id| layout.places[id.index()].x).all(|x| x < least || x > most));
    assert!(layout.bends.iter().all(|bend| *bend == 0.0), "every link is straight");
}

#[test]
fn many_servers_stand_in_rows_and_the_picture_stays_wide() {
    let fabric = leaf_spine(&LeafSpineParams { leaves: 20, servers_per_leaf: 20, ..Default::default() }).unwrap();
    let layout = Layout::of(&fabric);
    let rows: BTreeSet<i64> = fabric.servers().map(|id| layout.places[id.index()].y as i64).collect();
    assert_eq!(rows.len(), 4);
    assert!(layout.width < 3500.0 && layout.height > layout.width / 5.0, "{} x {}", layout.width, layout.height);
}

#[test]
fn a_tree_has_access_switches_above_aggregations() {
    let fabric = conventional(&ConventionalParams::default()).unwrap();
    let layout = Layout::of(&fabric);
    let y_of = |role: Role| fabric.ids().find(|id| fabric.node(*id).role == role).map(|id| layout.places[id.index()].y);
    assert!(
        y_of(Role::Core) < y_of(Role::Access) && y_of(Role::Access) < y_of(Role::Aggregation),
        "{:?}",
        layout.tiers
    );
    assert!(y_of(Role::Aggregation) < y_of(Role::Tor));
}

fn rbridges(links: &[(usize, usize)], count: usize) -> Fabric {
    let mut text =
        String::from("name: campus\ntopology:\n  defaults:\n    kind: linux\n    link: {rate: 1 Gbit/s}\n  nodes:\n");
    for number in 0..count {
        text += &format!("    r{number}: {{role: rbridge}}\n    h{number}: {{role: server}}\n");
    }
    text += "  links:\n";
    for (number, (a, b)) in links.iter().enumerate() {
        text += &format!("    - endpoints: [\"r{a}:e{number}\", \"r{b}:e{number}\"]\n");
    }
    for number in 0..count {
        let ends = format!("[\"r{number}:host\", \"h{number}:eth0\"]");
        text += &format!("    - {{endpoints: {ends}, vlan: 10, address: 10.0.10.{}/24}}\n", number + 1);
    }
    from_yaml(&text, "campus.yaml").unwrap()
}

#[test]
fn a_ring_is_a_circle_in_its_own_order() {
    let fabric = rbridges(&[(0, 2), (2, 4), (4, 1), (1, 3), (3, 0)], 5);
    let layout = Layout::of(&fabric);
    apart(&fabric, &layout);
    assert!(layout.tiers.is_empty());
    let sides: Vec<f64> = inner_links(&fabric)
        .map(|(a, b)| (layout.places[a.index()], layout.places[b.index()]))
        .map(|(a, b)| (a.x - b.x).hypot(a.y - b.y))
        .collect();
    // A star of the same five has equal sides, too, but longer ones.
    let (r0, middle) = (place(&fabric, &layout, "r0"), layout.width / 2.0);
    let least = 2.0 * (r0.x - middle).hypot(r0.y - middle) * (std::f64::consts::PI / 5.0).sin();
    assert!(sides.iter().all(|side| (side - least).abs() < 1e-6), "neighbours stand beside each other: {sides:?}");
    let (switch, host) = (place(&fabric, &layout, "r2"), place(&fabric, &layout, "h2"));
    let far = |place: Place| (place.x - middle).hypot(place.y - middle);
    assert!(far(host) > far(switch) + 50.0, "hosts stand around it");
}

#[test]
fn a_mesh_is_a_circle_and_a_row_is_a_row() {
    let mesh = rbridges(&[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], 4);
    let layout = Layout::of(&mesh);
    apart(&mesh, &layout);
    assert!(layout.tiers.is_empty());
    let chain = rbridges(&[(2, 1), (1, 0), (0, 3)], 4);
    let layout = Layout::of(&chain);
    apart(&chain, &layout);
    let x = |name: &str| place(&chain, &layout, name).x;
    assert!(x("r2") < x("r1") && x("r1") < x("r0") && x("r0") < x("r3"), "{:?}", layout.places);
}

#[test]
fn parallel_links_bow_apart_and_nothing_runs_through_a_switch() {
    let fabric = rbridges(&[(0, 1), (1, 0), (1, 2)], 3);
    let layout = Layout::of(&fabric);
    // The second is listed from its other end, so that the same side has the other sign.
    assert_eq!(layout.bends[0], layout.bends[1], "{:?}", layout.bends);
    assert!(layout.bends[0] != 0.0 && layout.bends[2] == 0.0);
}

#[test]
fn every_fabric_that_is_shipped_has_places() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics")).unwrap() {
        let path = entry.unwrap().path();
        let fabric = from_yaml(&std::fs::read_to_string(&path).unwrap(), "fabric.yaml").unwrap();
        let layout = Layout::of(&fabric);
        assert_eq!((layout.places.len(), layout.bends.len()), (fabric.nodes().len(), fabric.links().len()), "{path:?}");
        apart(&fabric, &layout);
    }
}
