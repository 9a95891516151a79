//! The RBridges of a campus: `weft node rbridge` on every switch, and the wait until all of them know all the ways.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use weft_datapath::trill::abi::{HOPS_MAX, STATIC};
use weft_datapath::trill::{Fib, Place, RBridgeMaps, Station, Tree};
use weft_node::DaemonKind;
use weft_node::rbridge::{
    AuthenticationTable, GatewayHost, GatewayTable, GatewayVlan, GroupsTable, PORTS_MAX, PortTable, RBridgeConfig,
    TimingTable, XdpChoice,
};
use weft_scenario::addressing::port_mac;
use weft_scenario::engine::{Hook, Overlay, Progress, Scenario};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::routing::EcmpRoutes;
use weft_scenario::topology::{Access, Fabric, Port};
use weft_wire::ethernet::MacAddress;
use weft_wire::vlan::VLAN_MAX;

use super::rbridges;
use super::shared::{self, SharedLink};
use crate::daemons::{Launcher, log_file, start_all};
use crate::error::LabError;
use crate::home::socket_dir;
use crate::overlay::{datapath_error, mount_bpffs, random_digits, write_private};
use crate::plan::{access, vlans};
use crate::process::log_tail;
use crate::up::Lab;
use crate::wait::Wait;

/// The daemon of an RBridge, as a lab's state names it.
pub(super) const RBRIDGE: &str = "rbridge";
/// Between two Hellos.
const HELLO_MS: u32 = 200;
/// A daemon may be away for two seconds: a neighbour that is gone is missed by its Echoes.
const HELLOS_MISSED: u32 = 10;
/// Between two BFD Echoes, and how many of them may stay away: together longer than between two Hellos.
const ECHO_MS: u32 = 60;
const ECHOES_MISSED: u32 = 4;
/// Links that one machine's RBridges watch at these intervals. In larger labs they grow with the number of links: a full mesh of 63
/// RBridges would exchange 65,000 Echoes a second. Links that go down are seen at once all the same.
const LINKS_WATCHED: usize = 200;
/// Hosts of a lab answer at once: nothing is pruned for two seconds only.
const GROUPS: GroupsTable = GroupsTable { query: true, interval_s: 60, response_ms: 1000 };
/// Length of the campus's secret, bytes.
const SECRET_LEN: usize = 32;
const NICKNAME_BASE: u16 = 0x100;
/// Of those that are to be the roots of trees; others have the usual one, which is less.
const ROOT_PRIORITY: u16 = 0x9000;
/// MAC of the gateway that every RBridge answers for.
pub(crate) const GATEWAY_MAC: [u8; 6] = [0x02, 0x54, 0x52, 0x00, 0x00, 0xfe];
const ROUTES_TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

/// Unix socket on which an RBridge of a lab tells its state.
pub fn rbridge_socket(lab: &str, node: &str) -> PathBuf {
    socket_dir(lab).join(format!("{node}.rbridge.sock"))
}

/// File of the campus's key, which is another one each time a campus is brought up.
pub fn rbridge_keys(lab: &str) -> PathBuf {
    socket_dir(lab).join("campus.keys")
}

/// Starts the daemons and waits until every RBridge has its routes and trees.
pub(super) fn start(lab: &mut Lab, launcher: &Launcher<'_>) -> Result<(), LabError> {
    mount_bpffs()?;
    let key = format!("1 hmac-sha-256 {}\n", random_digits(SECRET_LEN)?);
    write_private(&rbridge_keys(&lab.state.lab), &key)?;
    let configs: Vec<(NodeId, RBridgeConfig)> = rbridges(lab).map(|node| (node, config(lab, node))).collect();
    start_all(lab, launcher, DaemonKind::Rbridge, &configs, |lab, node| {
        let links = lab.scenario.fabric.links_of(node).len();
        matches!(fib(lab, node), Ok(Some(fib)) if fib.ports.len() == links)
    })?;
    wait_for_routes(lab, launcher.progress)
}

/// Tells every RBridge where a station with this MAC is: at the host's end of an access link. It stays until the RBridge
/// begins anew without its pins.
pub(crate) fn know(lab: &Lab, stations: &[([u8; 6], LinkId)]) -> Result<(), LabError> {
    let fabric = &lab.scenario.fabric;
    for switch in rbridges(lab) {
        with_maps(lab, switch, |maps| {
            for (mac, link) in stations {
                let Some(Access { vlan, .. }) = access(&lab.scenario, *link) else { continue };
                let elsewhere = || edge(lab, *link).map(|edge| Place::RBridge(nickname(lab, edge)));
                let place = port_number(fabric, switch, *link).map(Place::Port).or_else(elsewhere);
                let Some(place) = place else { continue };
                maps.set_station(&Station { mac: MacAddress(*mac), vlan, place, confidence: STATIC, seen_s: 0 })?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Works on the maps of a running RBridge.
pub(crate) fn with_maps<T>(
    lab: &Lab,
    node: NodeId,
    work: impl FnOnce(&RBridgeMaps) -> Result<T, weft_datapath::DatapathError>,
) -> Result<T, LabError> {
    let name = &lab.plan.node(node).name;
    let done = RBridgeMaps::open_pinned(lab.pins(name)).and_then(|maps| work(&maps));
    done.map_err(|error| datapath_error(name, &error))
}

/// The RBridge that a host's link leads to; stations of a shared link have none of their own.
fn edge(lab: &Lab, link: LinkId) -> Option<NodeId> {
    ends(&lab.scenario.fabric, link).into_iter().find(|node| rbridges(lab).any(|rbridge| rbridge == *node))
}

fn ends(fabric: &Fabric, link: LinkId) -> [NodeId; 2] {
    [&fabric.link(link).a, &fabric.link(link).b].map(|port| port.node)
}

/// Hosts that RBridges route to, with their links.
fn routed_hosts(lab: &Lab) -> Vec<([u8; 6], LinkId)> {
    let fabric = &lab.scenario.fabric;
    let campus = fabric.campus();
    let routed = campus.access.iter().filter(|(_, access)| campus.gateways.contains_key(&access.vlan));
    let host = |link: LinkId| {
        let host = ends(fabric, link).into_iter().find(|node| !fabric.node(*node).role.is_switch())?;
        Some((port_mac(fabric, link, host), link))
    };
    routed.filter_map(|(link, _)| host(*link)).collect()
}

/// Number of a port: its link's place among those of the switch, from 1.
pub(crate) fn port_number(lab: &Fabric, node: NodeId, link: LinkId) -> Option<u8> {
    let place = lab.links_of(node).iter().position(|other| *other == link)?;
    u8::try_from(place + 1).ok()
}

/// The nickname that the lab gives a switch: 257 to the first one.
pub(crate) fn nickname(lab: &Lab, node: NodeId) -> u16 {
    let place = lab.scenario.fabric.switches().position(|switch| switch == node).unwrap_or_default();
    NICKNAME_BASE + place as u16 + 1
}

/// What a running RBridge forwards by.
pub(super) fn fib(lab: &Lab, node: NodeId) -> Result<Option<Fib>, LabError> {
    with_maps(lab, node, RBridgeMaps::fib)
}

fn config(lab: &Lab, node: NodeId) -> RBridgeConfig {
    let (scenario, name) = (&lab.scenario, &lab.plan.node(node).name);
    let (generic, elide) = match scenario.forwarding(node) {
        Overlay::RBridge { hook, elide } => (hook == Hook::XdpGeneric, elide),
        _ => (false, false),
    };
    let nickname = nickname(lab, node);
    let ports = scenario.fabric.links_of(node).iter().map(|link| port_table(lab, node, *link, elide));
    let cpus = scenario.switching.cpus;
    let has_servers = scenario.fabric.links_of(node).iter().any(|link| access(scenario, *link).is_some());
    let usual = RBridgeConfig::new(name.clone());
    let trees = scenario.switching.trees;
    RBridgeConfig {
        root_priority: if trees > 0 && !has_servers { ROOT_PRIORITY } else { usual.root_priority },
        trees: trees.max(1),
        trees_used: trees.max(1),
        spread_cpus: (cpus > 0 && !has_servers).then(|| format!("0-{}", cpus - 1)),
        system_id: Some(format!("0200.0000.{nickname:04x}")),
        nickname: Some(nickname),
        xdp: if generic { XdpChoice::Generic } else { XdpChoice::Native },
        pin_dir: Some(lab.pins(name)),
        socket: rbridge_socket(&lab.state.lab, name),
        authentication: Some(AuthenticationTable {
            key_file: rbridge_keys(&lab.state.lab),
            accept_unsigned: false,
            replay_check: false,
        }),
        timing: TimingTable { root_change_s: shared::root_change_s(lab), ..timing(&scenario.fabric) },
        port: ports.collect(),
        groups: prunes_groups(scenario).then_some(GROUPS),
        gateway: gateway(lab),
        ..usual
    }
}

/// Whether switches find out who listens to which group.
pub(crate) fn prunes_groups(scenario: &Scenario) -> bool {
    scenario.fabric.campus().groups || scenario.switching.groups
}

fn timing(fabric: &Fabric) -> TimingTable {
    let is_core = |port: &Port| fabric.node(port.node).role.is_switch();
    let links = fabric.links().iter().filter(|link| is_core(&link.a) && is_core(&link.b)).count();
    let slower = links.div_ceil(LINKS_WATCHED).max(1) as u32;
    TimingTable {
        hello_ms: Some(HELLO_MS * slower),
        holding_multiplier: Some(HELLOS_MISSED),
        echo_ms: Some(ECHO_MS * slower),
        echo_multiplier: Some(ECHOES_MISSED),
        ..TimingTable::default()
    }
}

fn port_table(lab: &Lab, node: NodeId, link: LinkId, elide: bool) -> PortTable {
    let fabric = &lab.scenario.fabric;
    let interface = &fabric.link(link).end_at(node).expect("a link of a node ends there").interface;
    let far = fabric.link(link).far_end(node).expect("a link of a node has a far end").node;
    if fabric.node(far).role.is_switch() {
        let rate = fabric.link(link).spec.rate.0;
        if let Some(shared) = shared::links(&lab.scenario).into_iter().find(|shared| shared.joins(far)) {
            return PortTable { rate_bps: Some(rate), ..shared.port(interface) };
        }
        // A bridge in between would learn the stations' addresses.
        let elide_outer_header = (elide && !fabric.is_bridge(far, lab.scenario.overlay)).then_some(true);
        return PortTable { rate_bps: Some(rate), elide_outer_header, ..PortTable::p2p(interface.clone()) };
    }
    // A host without an address, for example a directory server, is in no VLAN that anybody else is in.
    let vlan = access(&lab.scenario, link).map_or(VLAN_MAX, |access| access.vlan);
    PortTable::access(interface.clone(), vlan)
}

fn gateway(lab: &Lab) -> Option<GatewayTable> {
    let fabric = &lab.scenario.fabric;
    let gateways = &fabric.campus().gateways;
    let host = |(mac, link): ([u8; 6], LinkId)| {
        let Access { vlan, address } = fabric.campus().access[&link];
        let nickname = edge(lab, link).map(|edge| nickname(lab, edge));
        GatewayHost { address: address.address, mac: MacAddress(mac).to_string(), vlan, nickname }
    };
    let vlan = gateways.iter().map(|(vlan, address)| GatewayVlan { vlan: *vlan, address: address.to_string() });
    (!gateways.is_empty()).then(|| GatewayTable {
        mac: MacAddress(GATEWAY_MAC).to_string(),
        vlan: vlan.collect(),
        host: routed_hosts(lab).into_iter().map(host).collect(),
    })
}

/// Refuses switches with more ports than an RBridge has, before anything is made.
pub(crate) fn check_ports(scenario: &Scenario) -> Result<(), LabError> {
    let count = |switch: &NodeId| scenario.fabric.links_of(*switch).len();
    let mut switches = scenario.switches_with(|overlay| matches!(overlay, Overlay::RBridge { .. }));
    let Some(switch) = switches.find(|switch| count(switch) > PORTS_MAX) else { return Ok(()) };
    let name = &scenario.fabric.node(switch).name;
    Err(LabError::NotFit {
        what: format!("`{name}` has {} links, and an RBridge has {PORTS_MAX} ports at most", count(&switch)),
        remedy: "spread them over more switches".to_owned(),
    })
}

/// Whether a switch uses these ways of equal cost: an RBridge uses [`HOPS_MAX`] of more.
pub(crate) fn uses_all<T: Ord>(used: &BTreeSet<T>, ways: &BTreeSet<T>) -> bool {
    used == ways || (ways.len() > HOPS_MAX && used.len() == HOPS_MAX && used.is_subset(ways))
}

/// Waits until every RBridge has every equal-cost way to every other and the branches of its tree.
pub(crate) fn wait_for_routes(lab: &Lab, progress: &dyn Progress) -> Result<(), LabError> {
    let mut wanted = Wanted::of(lab);
    let wait = Wait::new(progress, ROUTES_TIMEOUT, POLL);
    let mut waiting: Vec<NodeId> = rbridges(lab).collect();
    let all = waiting.len();
    loop {
        let mut missing = None;
        let mut late = Vec::new();
        wanted.look_at_shared_links(lab);
        for node in waiting {
            if let Some(what) = wanted.missing(lab, node)? {
                missing.get_or_insert((node, what));
                late.push(node);
            }
        }
        let Some((node, missing)) = missing else { return Ok(()) };
        progress.advance((all - late.len()) as f64 / all as f64, &format!("{} of {all} RBridges", all - late.len()));
        let log = || log_tail(&log_file(lab, RBRIDGE, node));
        wait.pause_for_routing(|| (lab.plan.node(node).name.clone(), missing), log)?;
        waiting = late;
    }
}

/// Whether all RBridges have the ways that [`wait_for_routes`] waits for.
pub(crate) fn have_routes(lab: &Lab) -> Result<bool, LabError> {
    let mut wanted = Wanted::of(lab);
    wanted.look_at_shared_links(lab);
    for node in rbridges(lab) {
        if wanted.missing(lab, node)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Links by which each RBridge sends to each other one.
pub(crate) fn ways(lab: &Lab) -> Result<BTreeMap<(NodeId, NodeId), BTreeSet<LinkId>>, LabError> {
    let fabric = &lab.scenario.fabric;
    let mut ways = BTreeMap::new();
    for from in rbridges(lab) {
        let Some(fib) = fib(lab, from)? else { continue };
        for to in rbridges(lab).filter(|to| *to != from) {
            let hops = fib.routes.get(&nickname(lab, to)).into_iter().flatten();
            let by_port = |port: u8| fabric.links_of(from).get(usize::from(port).checked_sub(1)?).copied();
            let links: BTreeSet<LinkId> = hops.filter_map(|hop| by_port(hop.port)).collect();
            if !links.is_empty() {
                ways.insert((from, to), links);
            }
        }
    }
    Ok(ways)
}

/// What every RBridge must know when the campus has settled.
struct Wanted {
    paths: EcmpRoutes,
    /// Whether hops tell the cost: all links between RBridges are of one rate, and no bridge is one of them.
    equal: bool,
    /// VLANs of the hosts of each switch.
    vlans: BTreeMap<NodeId, BTreeSet<u16>>,
    shared: Vec<SharedLink>,
    /// Who serves the stations of each shared link that has some, if one does.
    forwarders: Vec<Option<NodeId>>,
}

impl Wanted {
    fn of(lab: &Lab) -> Self {
        let (scenario, fabric) = (&lab.scenario, &lab.scenario.fabric);
        let role = |node| fabric.node(node).role;
        let trunks =
            fabric.links().iter().filter(|link| role(link.a.node).is_switch() && role(link.b.node).is_switch());
        let rates: BTreeSet<u64> = trunks.map(|link| link.spec.rate.0).collect();
        let of_switch = |node: NodeId| {
            let hosts = fabric
                .links_of(node)
                .iter()
                .filter(|link| fabric.link(**link).far_end(node).is_some_and(|far| !role(far.node).is_switch()));
            hosts.filter_map(|link| access(scenario, *link)).map(|access| access.vlan).collect()
        };
        Self {
            paths: EcmpRoutes::compute(fabric, &BTreeSet::new()),
            equal: rates.len() <= 1 && fabric.bridge_islands(scenario.overlay).is_empty(),
            vlans: fabric.switches().map(|node| (node, of_switch(node))).collect(),
            shared: shared::links(scenario).into_iter().filter(SharedLink::has_stations).collect(),
            forwarders: Vec::new(),
        }
    }

    /// Asks who serves the stations of shared links.
    fn look_at_shared_links(&mut self, lab: &Lab) {
        self.forwarders = self.shared.iter().map(|shared| shared.forwarder(lab)).collect();
    }

    /// Whether a switch has stations in a VLAN, below it or on a link that it serves.
    fn serves(&self, node: NodeId, vlan: u16) -> bool {
        let mut served = self.shared.iter().zip(&self.forwarders);
        self.vlans[&node].contains(&vlan)
            || served.any(|(shared, forwarder)| *forwarder == Some(node) && shared.vlan == vlan)
    }

    /// What a switch does not know yet.
    fn missing(&self, lab: &Lab, node: NodeId) -> Result<Option<String>, LabError> {
        let Some(fib) = fib(lab, node)? else { return Ok(Some("forwards nothing".to_owned())) };
        if let Some((shared, _)) = self.shared.iter().zip(&self.forwarders).find(|(_, forwarder)| forwarder.is_none()) {
            return Ok(Some(format!("waits for one that serves the stations at {}", shared.name(lab))));
        }
        let fabric = &lab.scenario.fabric;
        let others: Vec<NodeId> = rbridges(lab).filter(|other| *other != node).collect();
        for other in &others {
            let ports: BTreeSet<u8> =
                fib.routes.get(&nickname(lab, *other)).into_iter().flatten().map(|hop| hop.port).collect();
            let expected = self.paths.next_hops(node, *other).into_iter();
            let expected: BTreeSet<u8> = expected.filter_map(|link| port_number(fabric, node, link)).collect();
            if ports.is_empty() || (self.equal && !uses_all(&ports, &expected)) {
                let name = &lab.plan.node(*other).name;
                return Ok(Some(format!("has {} of {} next hops to `{name}`", ports.len(), expected.len())));
            }
        }
        let (trees, most) = (fib.own_trees.roots(), usize::from(lab.scenario.switching.trees.max(1)));
        let wanted = most.min(others.len() + 1);
        if trees.len() < wanted && !others.is_empty() {
            return Ok(Some(format!("uses {} of {wanted} distribution trees", trees.len())));
        }
        Ok(trees.iter().find_map(|root| self.missing_of_tree(lab, node, &fib.trees[root])))
    }

    /// What a switch does not know yet of a tree that it uses.
    fn missing_of_tree(&self, lab: &Lab, node: NodeId, tree: &Tree) -> Option<String> {
        let others: Vec<NodeId> = rbridges(lab).filter(|other| *other != node).collect();
        if let Some(other) = others.iter().find(|other| !tree.rpf.contains_key(&nickname(lab, **other))) {
            return Some(format!("knows no reverse path of `{}`", lab.plan.node(*other).name));
        }
        let elsewhere = |vlan: &u16| others.iter().any(|other| self.serves(*other, *vlan));
        let branched = |vlan: &u16| tree.branches.values().any(|vlans| vlans.contains(*vlan));
        let own = vlans(&lab.scenario).into_iter().filter(|vlan| self.serves(node, *vlan));
        let unknown = own.into_iter().find(|vlan| elsewhere(vlan) && !branched(vlan));
        unknown.map(|vlan| format!("has no branch for VLAN {vlan}"))
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::{MeshParams, mesh};

    use super::*;

    #[test]
    fn of_many_ways_an_rbridge_uses_sixteen() {
        let ways = |of: std::ops::Range<u8>| of.collect::<BTreeSet<u8>>();
        assert!(uses_all(&ways(0..16), &ways(0..16)) && uses_all(&ways(2..18), &ways(0..60)));
        assert!(!uses_all(&ways(0..15), &ways(0..16)), "one is missing");
        assert!(!uses_all(&ways(0..15), &ways(0..60)), "it could use one more");
        assert!(!uses_all(&ways(50..66), &ways(0..60)), "some are none of them");
    }

    #[test]
    fn large_labs_watch_their_links_more_slowly() {
        let intervals = |leaves: u32| {
            let fabric = mesh(&MeshParams { leaves, ..MeshParams::default() }).expect("a fabric");
            let timing = timing(&fabric);
            // A neighbour that is gone is missed by its Echoes, which outlast a Hello.
            assert!(timing.echo_ms.unwrap() * ECHOES_MISSED > timing.hello_ms.unwrap());
            (timing.hello_ms.unwrap(), timing.echo_ms.unwrap())
        };
        assert_eq!(intervals(20), (200, 60), "190 links");
        assert_eq!(intervals(21), (400, 120), "210 links");
        assert_eq!(intervals(63), (2000, 600), "1953 links");
    }
}
