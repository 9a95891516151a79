//! Campuses of the shipped fabrics.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use weft_lab::trill::{Campus, CampusSpec, Links};
use weft_scenario::engine::Overlay;
use weft_scenario::topology::{Fabric, from_yaml};

use super::{Quiet, daemon_program, traces};

pub(crate) fn fabric(name: &str) -> Fabric {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fabrics/{name}.yaml"));
    from_yaml(&std::fs::read_to_string(path).unwrap(), name).unwrap()
}

pub(crate) fn build(name: &str, fabric_name: &str, overlay: Overlay, links: Links) -> Campus {
    let spec = CampusSpec { fabric: fabric(fabric_name), overlay, links, name: Some(name.to_owned()) };
    Campus::build(&spec, &daemon_program(), &Quiet).unwrap()
}

pub(crate) fn close(campus: Campus, name: &str) {
    campus.close().unwrap();
    assert_eq!(traces(name), BTreeSet::new());
}

pub(crate) fn address(campus: &Campus, host: &str) -> Ipv4Addr {
    let fabric = &campus.lab().scenario.fabric;
    let (_, link) = fabric.edge_of(fabric.find(host).unwrap()).unwrap();
    fabric.campus().access[&link].address.address
}

/// Whether one of three echo requests was answered.
pub(crate) fn pings(campus: &Campus, from: &str, to: &str) -> bool {
    let to = address(campus, to);
    campus.inside(from, || answers(to)).unwrap()
}

/// The same from where the caller is.
pub(crate) fn answers(to: Ipv4Addr) -> bool {
    let ping = || Command::new("ping").args(["-c", "1", "-W", "1", &to.to_string()]).output().expect("ping runs");
    (0..3).any(|_| ping().status.success())
}
