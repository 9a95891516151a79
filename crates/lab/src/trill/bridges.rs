//! The spanning-tree twin: the kernel's bridges with 802.1D on the same wires, one bridge for each VLAN.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use weft_scenario::engine::{Overlay, Progress};
use weft_scenario::id::NodeId;
use weft_scenario::overlay::StpTimers;

use crate::batch::Program;
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::plan::{bridge_name, bridged_vlans};
use crate::process;
use crate::up::Lab;
use crate::wait::Wait;

const POLL: Duration = Duration::from_millis(100);
/// Ports need two forwarding delays, and the tree may change meanwhile.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Tells a bridge its timers, in hundredths of a second.
fn timers_line(timers: StpTimers, bridge: &str) -> String {
    let [hello, age, delay] = [timers.hello_s(), timers.max_age_s(), timers.forward_delay_s()].map(|s| 100 * s);
    format!("link set dev {bridge} type bridge hello_time {hello} max_age {age} forward_delay {delay}")
}

/// Brings the bridges up with quick timers, waits until each port forwards or blocks, and sets the timers that are wanted.
pub(super) fn start(lab: &Lab, timers: StpTimers, progress: &dyn Progress) -> Result<(), LabError> {
    let up = |bridge: &str| vec![timers_line(StpTimers::Quick, bridge), format!("link set dev {bridge} up")];
    on_bridges(lab, up)?;
    wait_until_forwarding(lab, progress)?;
    set_timers(lab, timers)
}

/// Waits until the tree stands again, with quick timers meanwhile, and all bridges go by those that are wanted.
pub(super) fn settle(lab: &Lab, timers: StpTimers, progress: &dyn Progress) -> Result<(), LabError> {
    set_timers(lab, StpTimers::Quick)?;
    wait_until_forwarding(lab, progress)?;
    set_timers(lab, timers)?;
    wait_for_timers(lab, timers, progress)
}

/// Sets the timers of all bridges; those of the root count.
pub(super) fn set_timers(lab: &Lab, timers: StpTimers) -> Result<(), LabError> {
    on_bridges(lab, |bridge| vec![timers_line(timers, bridge)])
}

/// Lets bridges forget stations that are silent for a forward delay, as 802.1D wants it after a change of the tree (7.9.2).
///
/// Linux shortens the ageing time then, but not the time until it looks next: for minutes frames go where stations were on the
/// old tree.
pub(super) fn age_fast(lab: &Lab, timers: StpTimers) -> Result<(), LabError> {
    let age = 100 * timers.forward_delay_s();
    on_bridges(lab, |bridge| vec![format!("link set dev {bridge} type bridge ageing_time {age}")])
}

pub(super) fn on_bridges(lab: &Lab, lines: impl Fn(&str) -> Vec<String>) -> Result<(), LabError> {
    all(lab).try_for_each(|switch| {
        let bridges = bridged_vlans(&lab.scenario, switch).into_iter().map(bridge_name);
        lab.batch(switch, Program::Ip, &bridges.flat_map(|bridge| lines(&bridge)).collect::<Vec<_>>())
    })
}

/// The switches that are bridges.
pub(super) fn all(lab: &Lab) -> impl Iterator<Item = NodeId> {
    lab.scenario.switches_with(|overlay| matches!(overlay, Overlay::Bridge { .. }))
}

/// Waits until no port listens or learns and as many forward as a tree has links.
pub(super) fn wait_until_forwarding(lab: &Lab, progress: &dyn Progress) -> Result<(), LabError> {
    let switches: Vec<NodeId> = all(lab).collect();
    let wait = Wait::new(progress, TIMEOUT, POLL);
    loop {
        let mut unsettled = None;
        let mut blocked = 0;
        for switch in &switches {
            let plan = lab.plan.node(*switch);
            for port in ports(&namespace_path(&plan.namespace))? {
                match port.state.as_str() {
                    "forwarding" => {}
                    "blocking" => blocked += 1,
                    state => drop(unsettled.get_or_insert((plan.name.clone(), format!("{} is {state}", port.ifname)))),
                }
            }
        }
        let expected = bridged_vlans(&lab.scenario, switches[0]).len() * spare_links(lab);
        if unsettled.is_none() && blocked == expected {
            return Ok(());
        }
        progress.advance(wait.elapsed().as_secs_f64() / 6.0, "spanning tree");
        let blocking = || (lab.plan.node(switches[0]).name.clone(), format!("{blocked} ports of {expected} block"));
        let log = || "nothing: the kernel's bridge has none".to_owned();
        wait.pause_for_routing(|| unsettled.unwrap_or_else(blocking), log)?;
    }
}

/// Waits until all bridges go by the root's timers: they hear of new ones with its next messages, and by then a port may have
/// begun to listen with the old ones.
pub(super) fn wait_for_timers(lab: &Lab, timers: StpTimers, progress: &dyn Progress) -> Result<(), LabError> {
    let [max_age, forward_delay] = [timers.max_age_s(), timers.forward_delay_s()].map(|s| 100 * s);
    let wait = Wait::new(progress, TIMEOUT, POLL);
    for switch in all(lab) {
        let plan = lab.plan.node(switch);
        let is_told = |bridge: &Bridge| {
            let told = &bridge.linkinfo.info_data;
            (told.max_age, told.forward_delay) == (max_age, forward_delay)
        };
        while !bridges(&namespace_path(&plan.namespace))?.iter().all(is_told) {
            let late = || (plan.name.clone(), "has not heard of the root's timers".to_owned());
            wait.pause_for_routing(late, || "nothing".to_owned())?;
        }
    }
    Ok(())
}

/// Links between bridges that a tree has no use for: each of them blocks at one end.
fn spare_links(lab: &Lab) -> usize {
    let (fabric, overlay) = (&lab.scenario.fabric, lab.scenario.overlay);
    let is_bridge = |node: NodeId| fabric.is_bridge(node, overlay);
    let links = fabric.links().iter().filter(|link| is_bridge(link.a.node) && is_bridge(link.b.node)).count();
    (links + fabric.bridge_islands(overlay).len()).saturating_sub(all(lab).count())
}

#[derive(Deserialize)]
struct BridgePort {
    ifname: String,
    #[serde(default)]
    state: String,
}

/// A bridge as `ip` shows it.
#[derive(Deserialize)]
struct Bridge {
    linkinfo: LinkInfo,
}

#[derive(Deserialize)]
struct LinkInfo {
    info_data: Timers,
}

/// Those in use, which are the root's; hundredths of a second.
#[derive(Deserialize)]
struct Timers {
    max_age: u64,
    forward_delay: u64,
}

fn ports(namespace: &Path) -> Result<Vec<BridgePort>, LabError> {
    shown(namespace, "bridge", &["-json", "link", "show"])
}

fn bridges(namespace: &Path) -> Result<Vec<Bridge>, LabError> {
    shown(namespace, "ip", &["-json", "-details", "link", "show", "type", "bridge"])
}

pub(super) fn shown<T: DeserializeOwned>(namespace: &Path, program: &str, arguments: &[&str]) -> Result<T, LabError> {
    let output = netns::in_namespace(namespace, || process::command(program).args(arguments).output())?
        .map_err(LabError::io(format!("run {program}")))?;
    let read = serde_json::from_slice(&output.stdout);
    read.map_err(|error| LabError::io(format!("read `{program} {}`", arguments.join(" ")))(error.into()))
}
