//! The ready files in `fabrics/` are what the generators build.

use std::path::Path;

use weft_scenario::topology::{
    ClosParams, Fabric, FabricSpec, LeafSpineParams, LinkParams, TestbedParams, from_yaml, leaf_spine, overlay_pair,
    vl2_clos, vl2_testbed,
};

fn text(file: &str) -> Result<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fabrics").join(file);
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

fn renamed(name: &str, fabric: Fabric) -> Fabric {
    Fabric::new(name, fabric.nodes().to_vec(), fabric.links().to_vec()).unwrap()
}

#[test]
fn each_file_is_what_its_generator_builds() {
    let links = LinkParams::default();
    let four_servers =
        ClosParams { aggregation_ports: 4, intermediate_ports: 2, servers_per_tor: 2, links: links.clone() };
    let expected = [
        ("vl2-testbed", vl2_testbed(&TestbedParams::default())),
        ("vl2-4servers", vl2_clos(&four_servers)),
        ("overlay-pair", overlay_pair(&links)),
        ("leaf-spine-small", leaf_spine(&LeafSpineParams::default())),
    ];
    for (name, fabric) in expected {
        let spec = FabricSpec::File(format!("{name}.yaml"));
        assert_eq!(spec.build(&text).unwrap(), renamed(name, fabric.unwrap()), "{name}");
    }
}

#[test]
fn every_file_in_the_folder_loads_under_its_own_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fabrics");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let fabric = from_yaml(&text(&file).unwrap(), &file).unwrap();
        assert_eq!(format!("{}.yaml", fabric.name()), file);
        count += 1;
    }
    assert!(count >= 4, "{count} files");
}
