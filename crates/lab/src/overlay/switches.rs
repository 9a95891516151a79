//! The eBPF data path of Intermediates and edge switches, pinned so that it outlives the command that set it up.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use weft_datapath::bpffs;
use weft_datapath::switch::{SwitchConfig, SwitchDatapath, SwitchMaps, Tier};
use weft_node::switch::{self, SwitchStatus};
use weft_scenario::id::NodeId;
use weft_scenario::name::undotted;
use weft_scenario::topology::Role;

use crate::error::LabError;
use crate::folder::Folder;
use crate::home::{BPF_DIR, lock, namespace_path, node_pin_dir, pin_dir};
use crate::netns;
use crate::plan::NodePlan;
use crate::removal::remove_tree;
use crate::up::Lab;

/// Switches that are set up at once: each port's attachment waits for the kernel more than it computes.
const LOADERS: usize = 8;

/// Attaches decapsulation to those of the nodes that own an LA which packets are addressed to.
pub(super) fn attach(lab: &Lab, nodes: &[NodeId]) -> Result<(), LabError> {
    mount_bpffs()?;
    let plans = nodes.iter().map(|node| lab.plan.node(*node));
    let plans: Vec<&NodePlan> = plans.filter(|plan| tier_of(plan.role).is_some()).collect();
    netns::visit_all(
        &plans,
        LOADERS,
        |plan| namespace_path(&plan.namespace),
        |plan| {
            let config = config(lab, plan).expect("only switches with a tier were chosen");
            // The pins keep it at work.
            SwitchDatapath::attach(&config).map(drop).map_err(|error| datapath_error(&plan.name, &error))
        },
    )
}

/// Sets up an edge switch anew with the ports of the servers that are at it now: those that the fabric has there without those that
/// have left, and those that have come.
pub(crate) fn serve_ports(lab: &Lab, edge: NodeId) -> Result<(), LabError> {
    let plan = lab.plan.node(edge);
    let Some(mut config) = config(lab, plan) else { return Ok(()) };
    let home = |server: &str| Some(lab.scenario.fabric.edge_of(lab.scenario.fabric.find(server)?)?.0);
    let gone =
        |port: &String| lab.state.moved.iter().any(|moved| home(&moved.server) == Some(edge) && moved.port == *port);
    config.host_ports.retain(|port| !gone(port));
    let here = lab.state.moved.iter().filter(|moved| moved.edge == plan.name);
    config.host_ports.extend(here.map(|moved| moved.port.clone()));
    // The pins keep it at work.
    lab.inside(edge, || SwitchDatapath::attach(&config).map(drop))
}

/// Sets the LAs that a running switch takes the outer header off for.
pub(crate) fn set_own_las(lab: &Lab, node: NodeId, addresses: &[Ipv4Addr]) -> Result<(), LabError> {
    let plan = lab.plan.node(node);
    if tier_of(plan.role).is_none() || lab.scenario.overlay != weft_scenario::engine::Overlay::Vl2 {
        return Ok(());
    }
    SwitchMaps::open_pinned(lab.pins(&plan.name))
        .and_then(|maps| maps.set_own_las(addresses))
        .map_err(|error| datapath_error(&plan.name, &error))
}

/// The state of a switch of a lab that is up, as `weft node switch` would show it.
///
/// # Errors
/// [`LabError`]: no such lab or node, or one without VL2's data path.
pub fn switch_status(lab: &str, node: &str) -> Result<SwitchStatus, LabError> {
    let state = crate::verbs::ps(lab)?;
    let role = state.node(node)?.role;
    let tier = if role == Role::Intermediate { switch::Tier::Intermediate } else { switch::Tier::Tor };
    let maps = SwitchMaps::open_pinned(node_pin_dir(lab, node));
    let read = maps.and_then(|maps| Ok((maps.own_las()?, maps.counters()?)));
    let (own_las, counters) = read.map_err(|error| datapath_error(node, &error))?;
    let datapath = counters.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
    Ok(SwitchStatus { schema_version: 1, tier, own_las, datapath })
}

/// Mounts weft's bpffs if it is not there. Under the lock, so that the last lab to go does not unmount it meanwhile.
pub(crate) fn mount_bpffs() -> Result<(), LabError> {
    let _lock = lock()?;
    mount_bpffs_locked().map(drop)
}

/// A folder for pins of a lab that are no daemon's.
pub(crate) fn make_pin_dir(lab: &str, name: &str) -> Result<PathBuf, LabError> {
    mount_bpffs()?;
    let folder = pin_dir(lab).join(name);
    Folder::make(&folder, 0o700)?;
    Ok(folder)
}

/// Removes the pins of a node that is gone.
pub(crate) fn remove_pins(lab: &str, node: &str) -> Result<(), LabError> {
    match Folder::open(&pin_dir(lab))? {
        Some(folder) => remove_tree(&folder, &undotted(node)).map(drop),
        None => Ok(()),
    }
}

/// The same for who holds the lock: whether it was not mounted before.
pub(crate) fn mount_bpffs_locked() -> Result<bool, LabError> {
    Folder::make(Path::new(BPF_DIR), 0o700)?;
    bpffs::ensure_mounted(Path::new(BPF_DIR)).map_err(|error| datapath_error("(all)", &error))
}

fn tier_of(role: Role) -> Option<Tier> {
    match role {
        Role::Intermediate => Some(Tier::Intermediate),
        Role::Tor | Role::Leaf => Some(Tier::Tor),
        _ => None,
    }
}

fn config(lab: &Lab, plan: &NodePlan) -> Option<SwitchConfig> {
    let (fabric, addresses) = (&lab.scenario.fabric, &lab.scenario.addresses);
    let tier = tier_of(plan.role)?;
    let ports = |towards_switches: bool| -> Vec<String> {
        let links = fabric.links_of(plan.id).iter().map(|link| fabric.link(*link));
        let wanted = links.filter(|link| {
            let far = link.far_end(plan.id).map(|port| fabric.node(port.node).role);
            far.is_some_and(|role| role.is_switch() == towards_switches)
        });
        wanted.filter_map(|link| link.end_at(plan.id)).map(|port| port.interface.clone()).collect()
    };
    let own_las = match tier {
        Tier::Tor => vec![addresses.la(plan.id)],
        Tier::Intermediate => {
            let groups = addresses.anycast_groups().iter().filter(|group| group.members.contains(&plan.id));
            groups.map(|group| group.address).collect()
        }
    };
    let pin_dir = Some(lab.pins(&plan.name));
    Some(SwitchConfig { ports: ports(true), host_ports: ports(false), own_las, tier, pin_dir })
}

/// Missing rights and kernels without eBPF are about the machine; the rest is about the node.
pub(crate) fn datapath_error(node: &str, error: &weft_datapath::DatapathError) -> LabError {
    use weft_datapath::DatapathError::{NoEbpf, NoRights};
    match error {
        NoRights { .. } | NoEbpf { .. } => {
            let text = error.to_string();
            let (what, remedy) = text.split_once("; ").unwrap_or((&text, "see: weft doctor"));
            LabError::not_fit(what, remedy)
        }
        _ => LabError::Datapath { node: node.to_owned(), reason: error.to_string() },
    }
}
