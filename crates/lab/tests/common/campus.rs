//! Campuses of the shipped fabrics, as users bring them up.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use weft_lab::home::namespace_path;
use weft_lab::trill::rbridge_socket;
use weft_lab::{Lab, in_namespace, up};
use weft_node::rbridge::protocol::{Shown, What};
use weft_node::{DaemonKind, socket};
use weft_scenario::engine::Overlay;
use weft_scenario::topology::{Fabric, from_yaml};

use super::{Gone, Quiet, options, scenario, traces};

/// A lab of RBridges or bridges; it goes when this is dropped.
pub(crate) struct Campus {
    lab: Lab,
    _gone: Gone,
}

pub(crate) fn fabric(name: &str) -> Fabric {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fabrics/{name}.yaml"));
    from_yaml(&std::fs::read_to_string(path).unwrap(), name).unwrap()
}

pub(crate) fn build(name: &str, fabric_name: &str, overlay: Overlay) -> Campus {
    build_of(name, fabric(fabric_name), overlay)
}

pub(crate) fn build_of(name: &str, fabric: Fabric, overlay: Overlay) -> Campus {
    let gone = Gone(name.to_owned());
    Campus { lab: up(&scenario(fabric, overlay), &options(name), &Quiet).unwrap(), _gone: gone }
}

pub(crate) fn close(campus: Campus, name: &str) {
    drop(campus);
    assert_eq!(traces(name), BTreeSet::new());
}

impl Campus {
    pub(crate) fn lab(&self) -> &Lab {
        &self.lab
    }

    /// A node's namespace, as a name below `/run/netns`.
    pub(crate) fn namespace(&self, node: &str) -> &str {
        &self.lab.plan.node(self.lab.scenario.fabric.find(node).unwrap()).namespace
    }

    /// Runs `work` in a node's namespace, on a thread of its own.
    pub(crate) fn inside<T: Send>(&self, node: &str, work: impl FnOnce() -> T + Send) -> T {
        in_namespace(&namespace_path(self.namespace(node)), work).unwrap()
    }

    /// The neighbours over which an RBridge sends to another, as it says.
    pub(crate) fn next_hops(&self, from: &str, to: &str) -> Vec<String> {
        let asked = socket::show(DaemonKind::Rbridge, &rbridge_socket(&self.lab.state.lab, from), What::Route).unwrap();
        let Shown::Routes(rows) = asked else { panic!("{asked:?}") };
        let row = rows.into_iter().find(|row| row.hostname == to);
        row.into_iter().flat_map(|row| row.hops).map(|hop| hop.neighbor).collect()
    }
}

pub(crate) fn address(campus: &Campus, host: &str) -> Ipv4Addr {
    let fabric = &campus.lab().scenario.fabric;
    let (_, link) = fabric.edge_of(fabric.find(host).unwrap()).unwrap();
    fabric.campus().access[&link].address.address
}

/// Whether one of three echo requests was answered.
pub(crate) fn pings(campus: &Campus, from: &str, to: &str) -> bool {
    let to = address(campus, to);
    campus.inside(from, || answers(to))
}

/// The same from where the caller is.
pub(crate) fn answers(to: Ipv4Addr) -> bool {
    let ping = || Command::new("ping").args(["-c", "1", "-W", "1", &to.to_string()]).output().expect("ping runs");
    (0..3).any(|_| ping().status.success())
}
