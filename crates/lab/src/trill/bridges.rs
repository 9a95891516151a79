//! The spanning-tree twin: the kernel's bridges with 802.1D on the same wires, one bridge for each VLAN.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;
use weft_scenario::engine::Progress;
use weft_scenario::id::NodeId;

use crate::batch::{self, Program};
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::plan::{bridge_name, vlans};
use crate::up::Lab;

const POLL: Duration = Duration::from_millis(100);
/// Ports need two forwarding delays, and the tree may change meanwhile.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Timers of 802.1D (IEEE 802.1D-1998 8.10.2), in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StpTimers {
    /// The shortest that Linux takes: hello 1, maximum age 6, forward delay 2 (the standard's least is 4).
    Quick,
    /// The standard's: hello 2, maximum age 20, forward delay 15.
    Standard,
}

impl StpTimers {
    fn line(self, bridge: &str) -> String {
        let (hello, age, delay) = match self {
            Self::Quick => (100, 600, 200),
            Self::Standard => (200, 2000, 1500),
        };
        format!("link set dev {bridge} type bridge hello_time {hello} max_age {age} forward_delay {delay}")
    }
}

/// Brings the bridges up with quick timers, waits until each port forwards or blocks, and sets the timers that are wanted.
pub(super) fn start(lab: &Lab, timers: StpTimers, progress: &dyn Progress) -> Result<(), LabError> {
    let up = |bridge: &str| vec![StpTimers::Quick.line(bridge), format!("link set dev {bridge} up")];
    on_bridges(lab, up)?;
    wait_until_forwarding(lab, progress)?;
    set_timers(lab, timers)
}

/// Sets the timers of all bridges; those of the root count.
pub(super) fn set_timers(lab: &Lab, timers: StpTimers) -> Result<(), LabError> {
    on_bridges(lab, |bridge| vec![timers.line(bridge)])
}

fn on_bridges(lab: &Lab, lines: impl Fn(&str) -> Vec<String>) -> Result<(), LabError> {
    let bridges = vlans(&lab.scenario).into_iter().map(bridge_name);
    let lines: Vec<String> = bridges.flat_map(|bridge| lines(&bridge)).collect();
    for switch in lab.scenario.fabric.switches() {
        let plan = lab.plan.node(switch);
        netns::in_namespace(&namespace_path(&plan.namespace), || batch::run(Program::Ip, &plan.name, &lines))??;
    }
    Ok(())
}

/// Waits until no port listens or learns and as many forward as a tree has links.
pub(super) fn wait_until_forwarding(lab: &Lab, progress: &dyn Progress) -> Result<(), LabError> {
    let switches: Vec<NodeId> = lab.scenario.fabric.switches().collect();
    let start = Instant::now();
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
        let expected = vlans(&lab.scenario).len() * spare_links(lab);
        if unsettled.is_none() && blocked == expected {
            return Ok(());
        }
        if start.elapsed() > TIMEOUT {
            let blocking = || (lab.plan.node(switches[0]).name.clone(), format!("{blocked} ports of {expected} block"));
            let (node, missing) = unsettled.unwrap_or_else(blocking);
            let log = "nothing: the kernel's bridge has none".to_owned();
            return Err(LabError::NotConverged { node, missing, waited_s: TIMEOUT.as_secs(), log });
        }
        if progress.interrupted() {
            return Err(LabError::Interrupted);
        }
        progress.advance(start.elapsed().as_secs_f64() / 6.0, "spanning tree");
        std::thread::sleep(POLL);
    }
}

/// Links between switches that a tree has no use for: each of them blocks at one end.
fn spare_links(lab: &Lab) -> usize {
    let fabric = &lab.scenario.fabric;
    let is_switch = |node: NodeId| fabric.node(node).role.is_switch();
    let trunks = fabric.links().iter().filter(|link| is_switch(link.a.node) && is_switch(link.b.node)).count();
    (trunks + 1).saturating_sub(fabric.switches().count())
}

#[derive(Deserialize)]
struct BridgePort {
    ifname: String,
    #[serde(default)]
    state: String,
}

fn ports(namespace: &Path) -> Result<Vec<BridgePort>, LabError> {
    let output = netns::in_namespace(namespace, || Command::new("bridge").args(["-json", "link", "show"]).output())?
        .map_err(LabError::io("run bridge"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| LabError::io("read `bridge -json link`")(error.into()))
}
