//! DHCP in a lab (VL2 4.2.3): dnsmasq on the fabric's DHCP server hands out AAs, and ISC's relay agent on every ToR catches
//! what servers broadcast and asks for them by unicast.
//!
//! The relay's address (`giaddr`) is the ToR's in its rack, so an answer finds the rack by plain routing. What is handed out is
//! nevertheless the AA, found by the client's MAC: an AA says nothing about a rack, so the server must not derive it from
//! one. Ports of a ToR share the address, so the relay notes in the request which port it came by (RFC 3046, option 82). The
//! server answers in the relay's name: renewals go to the ToR, because nothing in the fabric has a route to an AA.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::thread::CapabilitySet;
use weft_scenario::engine::{Progress, Scenario};
use weft_scenario::id::NodeId;
use weft_wire::ethernet::MacAddress;

use crate::daemons::{log_file, note, starting};
use crate::deps::find_program;
use crate::error::LabError;
use crate::home::{namespace_path, socket_dir};
use crate::netns;
use crate::plan::relays_dhcp;
use crate::process::Daemon;
use crate::rights::Rights;
use crate::up::Lab;
use crate::wait::Wait;

/// The DHCP server, and Debian's package of it.
const SERVER: (&str, &str) = ("dnsmasq", "dnsmasq-base");
/// The relay agent, and Debian's package of it.
const RELAY: (&str, &str) = ("dhcrelay", "isc-dhcp-relay");
/// How long an address is lent.
const LEASE: &str = "1h";
/// A line of `/proc/net/udp` has this as the end of its local address: port 67, of servers and relays.
const BOUND: &str = ":0043";
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Refuses a lab whose programs are not here.
pub(crate) fn require(scenario: &Scenario) -> Result<(), LabError> {
    let missing = [SERVER, RELAY].into_iter().find(|(program, _)| find_program(program).is_none());
    match missing.filter(|_| relays_dhcp(scenario)) {
        Some((program, package)) => Err(LabError::not_fit(
            format!("program `{program}` is missing, and the fabric has a DHCP server"),
            format!("install Debian's package {package}: make deps"),
        )),
        None => Ok(()),
    }
}

/// Starts the server and a relay on every ToR, and waits until they listen.
pub(crate) fn start(lab: &mut Lab, progress: &dyn Progress) -> Result<(), LabError> {
    let Some(server) = lab.scenario.fabric.dhcp() else { return Ok(()) };
    let directory = socket_dir(&lab.state.lab);
    let config = directory.join("dnsmasq.conf");
    let text = server_config(&lab.scenario, server, &directory.join("dhcp.leases"));
    fs::write(&config, text).map_err(LabError::io(format!("write {}", config.display())))?;
    spawn(lab, SERVER.0, server, &["-C".to_owned(), config.display().to_string()])?;
    let relays: Vec<(NodeId, Vec<String>)> = lab
        .scenario
        .fabric
        .switches()
        .filter_map(|switch| Some((switch, relay_arguments(&lab.scenario, switch)?)))
        .collect();
    for (switch, arguments) in &relays {
        spawn(lab, RELAY.0, *switch, arguments)?;
    }
    wait_bound(lab, SERVER.0, server, progress)?;
    relays.iter().try_for_each(|(switch, _)| wait_bound(lab, RELAY.0, *switch, progress))
}

/// dnsmasq without DNS: each server's AA by its MAC, in every rack.
fn server_config(scenario: &Scenario, server: NodeId, leases: &Path) -> String {
    let Scenario { fabric, addresses, .. } = scenario;
    let interface = fabric.links_of(server).first().and_then(|link| fabric.link(*link).end_at(server));
    let interface = interface.map_or("eth0", |port| port.interface.as_str());
    let block = addresses.aa_block();
    let mask = block.netmask();
    let mut text = format!(
        "no-daemon\nport=0\nno-resolv\nno-hosts\nno-ping\ninterface={interface}\nbind-interfaces\nlog-dhcp\n\
         dhcp-leasefile={}\ndhcp-authoritative\ndhcp-proxy\ndhcp-option=option:router\ndhcp-range={},static,{mask},{LEASE}\n",
        leases.display(),
        block.network(),
    );
    for relay in fabric.switches().filter_map(|switch| addresses.rack_gateway(switch)) {
        text.push_str(&format!("shared-network={relay},{}\n", block.network()));
    }
    for host in fabric.servers() {
        if let (Some(aa), Some((_, link))) = (addresses.aa(host), fabric.edge_of(host)) {
            let mac = MacAddress(addresses.mac(fabric, link, host));
            text.push_str(&format!("dhcp-host={mac},{aa},{}\n", fabric.node(host).name));
        }
    }
    text
}

/// The relay of an edge switch: requests come from its hosts, answers from where the server is.
fn relay_arguments(scenario: &Scenario, switch: NodeId) -> Option<Vec<String>> {
    let Scenario { fabric, addresses, .. } = scenario;
    let server = fabric.dhcp()?;
    addresses.rack(switch)?;
    let mut arguments: Vec<String> = ["-4", "-d", "--no-pid", "-a"].map(str::to_owned).to_vec();
    for link in fabric.links_of(switch) {
        let (port, far) = fabric.link(*link).end_at(switch).zip(fabric.link(*link).far_end(switch))?;
        // The agent sees what passes a port either way: requests that go out to the server must not look like its own.
        let is_upstream = far.node == server || fabric.node(far.node).role.is_switch();
        arguments.extend([if is_upstream { "-iu" } else { "-id" }.to_owned(), port.interface.clone()]);
    }
    arguments.push(addresses.la(server).to_string());
    Some(arguments)
}

fn spawn(lab: &mut Lab, daemon: &'static str, node: NodeId, arguments: &[String]) -> Result<(), LabError> {
    let plan = lab.plan.node(node);
    let log = log_file(lab, daemon, node);
    let mut command = Command::new(find_program(daemon).unwrap_or_else(|| daemon.into()));
    command.args(arguments);
    // Dnsmasq goes on as nobody by itself, so it changes its user.
    let needed = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE;
    let to_change = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::SETPCAP | CapabilitySet::CHOWN;
    let rights = Some(Rights::of(&lab.state.lab, needed | to_change));
    let namespace = namespace_path(&plan.namespace);
    let id = Daemon { namespace: Some(&namespace), log: &log, record: None, nice: 0, rights }.spawn(&mut command)?;
    note(lab, daemon, node, id)
}

fn wait_bound(lab: &Lab, daemon: &'static str, node: NodeId, progress: &dyn Progress) -> Result<(), LabError> {
    let namespace = namespace_path(&lab.plan.node(node).namespace);
    let wait = Wait::new(progress, START_TIMEOUT, POLL_INTERVAL);
    starting(lab, daemon, node).wait(&wait, "was not ready in 60 s", || netns::in_namespace(&namespace, is_bound))
}

/// Whether somebody in the thread's namespace listens as DHCP servers and relays do.
fn is_bound() -> bool {
    let sockets = fs::read_to_string("/proc/thread-self/net/udp").unwrap_or_default();
    sockets.lines().any(|line| line.split_ascii_whitespace().nth(1).is_some_and(|local| local.ends_with(BOUND)))
}

#[cfg(test)]
mod tests {
    use weft_scenario::addressing::{AddressPlan, AddressingOptions};
    use weft_scenario::engine::{DirectoryStore, Overlay, Transport};
    use weft_scenario::switching::Switching;
    use weft_scenario::topology::{LinkParams, overlay_pair};

    use super::*;

    fn scenario(overlay: Overlay) -> Scenario {
        let fabric = overlay_pair(&LinkParams::default()).unwrap();
        let server = fabric.find("dir1");
        let fabric = fabric.with_dhcp(server).unwrap();
        let addresses = AddressPlan::new(&fabric, AddressingOptions::default()).unwrap();
        let (directory, transport) = (DirectoryStore::default(), Transport::default());
        let switching = Switching::default();
        Scenario { fabric, addresses, overlay, directory, transport, switching, shaped: false }
    }

    #[test]
    fn every_aa_is_handed_out_by_mac_in_every_rack() {
        let scenario = scenario(Overlay::Vl2);
        let server = scenario.fabric.dhcp().unwrap();
        let expected = "no-daemon
port=0
no-resolv
no-hosts
no-ping
interface=eth0
bind-interfaces
log-dhcp
dhcp-leasefile=/run/x/leases
dhcp-authoritative
dhcp-proxy
dhcp-option=option:router
dhcp-range=20.0.0.0,static,255.0.0.0,1h
shared-network=10.64.0.1,20.0.0.0
shared-network=10.64.1.1,20.0.0.0
dhcp-host=02:01:00:00:00:02,20.0.0.1,s1
dhcp-host=02:01:00:00:00:03,20.0.0.2,s2
";
        assert_eq!(server_config(&scenario, server, Path::new("/run/x/leases")), expected);
    }

    #[test]
    fn relays_take_requests_from_hosts_and_answers_from_the_servers_side() {
        let scenario = scenario(Overlay::Vl2);
        let arguments = |switch: &str| relay_arguments(&scenario, scenario.fabric.find(switch).unwrap());
        let near = "-4 -d --no-pid -a -iu int1 -id s1 -iu dir1 10.64.0.3";
        assert_eq!(arguments("tor1").unwrap().join(" "), near, "the server's own rack");
        assert_eq!(arguments("tor2").unwrap().join(" "), "-4 -d --no-pid -a -iu int1 -id s2 10.64.0.3");
        assert_eq!(arguments("int1"), None);
    }

    #[test]
    fn only_vl2_has_aas_to_hand_out() {
        assert!(relays_dhcp(&scenario(Overlay::Vl2)) && !relays_dhcp(&scenario(Overlay::Routed)));
    }
}
