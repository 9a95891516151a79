//! FRR's `zebra` and `ospfd`, and `bfdd`, `pimd` and `bgpd` where they are asked for, per switch namespace: their
//! configuration, start and log. What `bgpd` is told is in [`crate::outside`].
//!
//! Settings that matter, each for a reason: `no zebra nexthop kernel enable`, or equal-cost routes never come back in
//! the kernel after a link flap; hellos every 250 ms, so that a silent failure costs at most a second; short SPF and LSA
//! throttles; retransmission after 1 s instead of 5, or one lost database packet delays the start by 5 s; a raised
//! priority, so that load on the machine cannot flap adjacencies.

mod pim;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid, fchown, openat, unlinkat};
use weft_scenario::engine::Progress;
use weft_scenario::switching::BFD_MULTIPLIER;
use weft_scenario::units::Nanos;

use crate::error::LabError;
use crate::folder::{Folder, open_directory};
use crate::home::{FRR_DIR, PREFIX, frr_dir, frr_path_space, log_dir, namespace_path};
use crate::owner::Owner;
use crate::plan::NodePlan;
use crate::process::{Daemon, ProcessId};
use crate::removal::{remove_if_empty, remove_tree};
use crate::state::ProcessState;
use crate::wait::{Starting, Wait};

/// Where Debian and most others put the daemons.
const DAEMON_DIR: &str = "/usr/lib/frr";
/// Priority of routing daemons: before everything that makes load.
const NICE: i32 = -10;
/// Most next hops that one route may have; FRR in Debian is built for 64 and more. The same at every node, whatever its ports: where
/// it changes, `ospfd` takes away all routes and sets them again.
const MAXIMUM_PATHS: usize = 64;
/// The name that interfaces and `bfdd` use for the timers.
pub(crate) const BFD_PROFILE: &str = "weft";
/// File in a node's run folder that says whose it is.
const OWNER_FILE: &str = "owner";
/// How long a daemon may take to become ready.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const INSTALL: &str = "install Debian's package frr: make deps";

/// The daemons in the order of their start, each with the socket that says it is ready. `ospfd` asks `zebra` only every 10 s
/// when that is not there yet: so `zebra` comes first, everywhere.
const DAEMONS: [(&str, &str); 5] =
    [("zebra", "zserv.api"), ("bfdd", "bfdd.vty"), ("ospfd", "ospfd.vty"), ("pimd", "pimd.vty"), ("bgpd", "bgpd.vty")];

/// Texts of a switch's configuration files by daemon: `bfdd` where BFD finds silent failures, `pimd` where the underlay carries the
/// services' broadcast, `bgpd` where the fabric has an outside; the node outside has no `ospfd`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrrConfig(BTreeMap<&'static str, String>);

/// What the configuration of a switch is made from.
pub(crate) struct FrrInput<'a> {
    pub(crate) hostname: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) router_id: Ipv4Addr,
    /// Interfaces to other switches.
    pub(crate) interfaces: &'a [String],
    /// Interfaces by which it speaks to nobody and whose prefixes it announces: the one that stands for the hosts below, and a
    /// border's to the outside.
    pub(crate) passive: &'a [String],
    /// Time between two BFD packets; `None`: no BFD.
    pub(crate) bfd: Option<Nanos>,
    /// Interfaces to servers that may join multicast groups; `None`: the switch routes no multicast.
    pub(crate) multicast: Option<&'a [String]>,
}

impl FrrConfig {
    pub(crate) fn new(input: &FrrInput<'_>) -> Self {
        let directory = frr_dir(input.namespace);
        let mut config = Self::default();
        config.set("zebra", Some(zebra_config(input.hostname)));
        config.set("ospfd", Some(ospfd_config(input)));
        config.set("bfdd", input.bfd.map(|interval| bfdd_config(input.hostname, interval)));
        let pimd = |servers| pim::config(input.hostname, &directory, input.interfaces, servers);
        config.set("pimd", input.multicast.map(pimd));
        config
    }

    /// Of a node that speaks BGP only. What it sends by routes of BGP has this source.
    pub(crate) fn without_ospf(hostname: &str, bfd: Option<Nanos>, source: Ipv4Addr, bgpd: String) -> Self {
        let own_source = format!("route-map source permit 10\n set src {source}\nip protocol bgp route-map source\n");
        let mut config = Self::default();
        config.set("zebra", Some(zebra_config(hostname) + &own_source));
        config.set("bfdd", bfd.map(|interval| bfdd_config(hostname, interval)));
        config.set("bgpd", Some(bgpd));
        config
    }

    /// Gives a daemon its text; without one it is not started.
    pub(crate) fn set(&mut self, daemon: &'static str, text: Option<String>) {
        self.0.extend(text.map(|text| (daemon, text)));
    }

    /// The daemons whose neighbours must not change by themselves.
    pub(crate) fn routing_daemons(&self) -> impl Iterator<Item = &'static str> {
        ["ospfd", "bgpd"].into_iter().filter(|daemon| self.0.contains_key(daemon))
    }

    /// What a daemon is told; `None`: it is not started.
    pub fn text(&self, daemon: &str) -> Option<&str> {
        self.0.get(daemon).map(String::as_str)
    }

    /// The daemons of this node with their configurations, in the order of their start.
    fn daemons(&self) -> impl Iterator<Item = (&'static str, &str)> {
        DAEMONS.iter().filter_map(|(daemon, _)| Some((*daemon, self.text(daemon)?)))
    }
}

fn zebra_config(hostname: &str) -> String {
    format!("hostname {hostname}\nno zebra nexthop kernel enable\n")
}

fn bfdd_config(hostname: &str, interval: Nanos) -> String {
    let ms = (interval.0 / 1_000_000).max(1);
    format!(
        "hostname {hostname}\nbfd\n profile {BFD_PROFILE}\n  detect-multiplier {BFD_MULTIPLIER}\n  receive-interval {ms}\n  \
         transmit-interval {ms}\n"
    )
}

fn ospfd_config(input: &FrrInput<'_>) -> String {
    let log = frr_log(input.namespace, "ospfd");
    let mut text =
        format!("hostname {}\nlog file {} informational\nlog timestamp precision 3\n", input.hostname, log.display());
    for interface in input.interfaces {
        text.push_str(&format!(
            "interface {interface}\n ip ospf network point-to-point\n ip ospf cost 10\n \
             ip ospf dead-interval minimal hello-multiplier 4\n ip ospf retransmit-interval 1\n"
        ));
        if input.bfd.is_some() {
            text.push_str(&format!(" ip ospf bfd\n ip ospf bfd profile {BFD_PROFILE}\n"));
        }
        // The last line: a running daemon takes them one by one, and with the area says Hello at once and then in 10 s, its default.
        text.push_str(" ip ospf area 0\n");
    }
    text.push_str("interface lo\n ip ospf area 0\n");
    for interface in input.passive {
        text.push_str(&format!("interface {interface}\n ip ospf area 0\n ip ospf passive\n"));
    }
    text.push_str(&format!(
        "router ospf\n ospf router-id {}\n log-adjacency-changes\n maximum-paths {MAXIMUM_PATHS}\n \
         timers throttle spf 10 20 200\n timers throttle lsa all 0\n timers lsa min-arrival 0\n",
        input.router_id
    ));
    text
}

/// The log of a node's `ospfd` or `bgpd`, with the changes of its neighbours.
pub(crate) fn frr_log(namespace: &str, daemon: &str) -> PathBuf {
    frr_dir(namespace).join(format!("{daemon}.log"))
}

/// Path of a daemon, if it is installed.
pub(crate) fn daemon_path(name: &str) -> Option<PathBuf> {
    let path = Path::new(DAEMON_DIR).join(name);
    path.is_file().then_some(path)
}

/// Path of FRR's own shell, if it is installed.
pub(crate) fn shell_path() -> Option<PathBuf> {
    let folders = ["/usr/bin", "/usr/local/bin", "/bin"].map(Path::new);
    folders.iter().map(|folder| folder.join("vtysh")).find(|path| path.is_file())
}

/// Starts each daemon on all nodes that have it and waits until it listens there. `started` hears of each process at once.
pub(crate) fn start(
    lab: &str,
    plans: &[NodePlan],
    progress: &dyn Progress,
    mut started: impl FnMut(ProcessState) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let owner = frr_owner()?;
    let nodes: Vec<(&NodePlan, &FrrConfig)> =
        plans.iter().filter_map(|plan| Some((plan, plan.frr.as_ref()?))).collect();
    make_frr_dir(owner)?;
    for (plan, config) in &nodes {
        write_config(&Owner::Lab(lab.to_owned()), plan, config, owner)?;
    }
    for (daemon, socket) in DAEMONS {
        let mut processes = Vec::with_capacity(nodes.len());
        for (plan, _) in nodes.iter().filter(|(_, config)| config.text(daemon).is_some()) {
            let id = spawn(lab, plan, daemon)?;
            started(ProcessState { node: plan.name.clone(), daemon: daemon.to_owned(), id })?;
            processes.push((plan, id));
        }
        for (plan, id) in processes {
            let wait = Wait::new(progress, START_TIMEOUT, POLL_INTERVAL);
            let directory = frr_dir(&plan.namespace);
            let log = output(lab, plan, daemon);
            let daemon = Starting { daemon, node: &plan.name, process: Some(id), log };
            daemon.wait(&wait, "was not ready in 60 s", || Ok(directory.join(socket).exists()))?;
        }
    }
    Ok(())
}

/// What a daemon writes before it has its own log: not in a folder of FRR's user, who could put a link there.
fn output(lab: &str, plan: &NodePlan, daemon: &str) -> PathBuf {
    log_dir(lab).join(format!("{}.{daemon}.log", plan.name))
}

fn spawn(lab: &str, plan: &NodePlan, daemon: &'static str) -> Result<ProcessId, LabError> {
    let directory = frr_dir(&plan.namespace);
    let program = daemon_path(daemon).ok_or_else(missing_frr)?;
    let mut command = Command::new(program);
    command
        .args(["-N", &frr_path_space(&plan.namespace), "-f"])
        .arg(directory.join(format!("{daemon}.conf")))
        .arg("-i")
        .arg(directory.join(format!("{daemon}.pid")))
        .env("TZ", "UTC");
    let log = output(lab, plan, daemon);
    Daemon { namespace: Some(&namespace_path(&plan.namespace)), log: &log, record: None, nice: NICE, rights: None }
        .spawn(&mut command)
}

/// FRR's user owns the folder, but not the mark in it: by that a lab knows its own again. Everything is in it before anybody else
/// may put something there.
fn write_config(owner: &Owner, plan: &NodePlan, config: &FrrConfig, frr: (u32, u32)) -> Result<(), LabError> {
    let taken = || run_dir_exists(&plan.namespace);
    let parent = Folder::open_of(Path::new(FRR_DIR), frr.0)?.ok_or_else(taken)?;
    let name = frr_path_space(&plan.namespace);
    if !parent.make_child(&name, Mode::from_raw_mode(0o755))? {
        return Err(taken());
    }
    // FRR's user may put another in its place: from here on it is this folder, whatever stands under its name.
    let folder = parent.child_of(name.as_ref(), 0)?.ok_or_else(taken)?;
    folder.write_new(OWNER_FILE, &owner.to_string())?;
    for (daemon, text) in config.daemons() {
        own(&folder.write_new(&format!("{daemon}.conf"), text)?, frr)?;
    }
    own(&folder, frr)
}

/// Folders for run files whose names are like weft's, and whose they are by the mark in them.
pub(crate) fn run_dirs() -> Result<Vec<(String, Option<Owner>)>, LabError> {
    let Some(parent) = run_dirs_parent()? else { return Ok(Vec::new()) };
    let names = parent.all_names().into_iter().filter(|name| name.starts_with(PREFIX));
    let with_owner = |name: String| {
        let owner = mark_in(&parent, &name).and_then(|(_, owner)| owner);
        (name, owner)
    };
    Ok(names.map(with_owner).collect())
}

/// A folder with a mark, and the mark; one that was cut short is empty.
fn mark_in(parent: &Folder, name: &str) -> Option<(OwnedFd, Option<Owner>)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let folder = open_directory(parent.as_fd(), name.as_ref(), ResolveFlags::empty()).ok()?;
    let mark = openat(&folder, OWNER_FILE, flags, Mode::empty()).ok()?;
    let owner = Owner::of_file(&mut File::from(mark)).ok()?;
    Some((folder, owner))
}

/// Removes a folder that a lab made. Without a mark it goes only if nothing is in it: its making was cut short.
pub(crate) fn remove_run_dir(name: &str) -> Result<(), LabError> {
    let Some(parent) = run_dirs_parent()? else { return Ok(()) };
    match mark_in(&parent, name) {
        Some((_, Some(_))) => return remove_tree(&parent, name).map(drop),
        // If it does not go, the folder is not empty.
        Some((folder, None)) => {
            let _ = unlinkat(&folder, OWNER_FILE, AtFlags::empty());
        }
        None => {}
    }
    remove_if_empty(&parent, name);
    Ok(())
}

/// Where FRR keeps run files. Where FRR was never installed there are none of ours.
fn run_dirs_parent() -> Result<Option<Folder>, LabError> {
    match frr_owner() {
        Ok((user, _)) => Folder::open_of(Path::new(FRR_DIR), user),
        Err(_) => Ok(None),
    }
}

fn own(what: &impl AsFd, (user, group): (u32, u32)) -> Result<(), LabError> {
    fchown(what, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))
        .map_err(LabError::errno("give a file to user frr"))
}

fn make_frr_dir(owner: (u32, u32)) -> Result<(), LabError> {
    let directory = Path::new(FRR_DIR);
    if Folder::open_of(directory, owner.0)?.is_some() {
        return Ok(());
    }
    own(&Folder::make(directory, 0o755)?, owner)
}

/// Ids of FRR's user and group; the daemons give up root for them.
fn frr_owner() -> Result<(u32, u32), LabError> {
    let lookup = |file: &str| {
        let text = fs::read_to_string(file).ok()?;
        let entry = text.lines().find(|line| line.starts_with("frr:"))?.to_owned();
        entry.split(':').nth(2)?.parse::<u32>().ok()
    };
    lookup("/etc/passwd").zip(lookup("/etc/group")).ok_or_else(missing_frr)
}

/// What to say when a node's folder for run files is there before its lab is.
pub(crate) fn run_dir_exists(namespace: &str) -> LabError {
    let what = format!("{} exists already", frr_dir(namespace).display());
    LabError::not_fit(
        what,
        "if a killed lab left it: weft lab down --all; if it is somebody else's, give the lab another --name",
    )
}

/// What to say when FRR is not installed.
pub(crate) fn missing_frr() -> LabError {
    let what = format!("FRR is missing (no zebra and ospfd in {DAEMON_DIR}, or no user frr)");
    LabError::not_fit(what, INSTALL)
}

/// What to say when the daemon for the world outside is not installed.
pub(crate) fn missing_bgpd() -> LabError {
    let what = format!("FRR's bgpd is missing (not in {DAEMON_DIR}), and this fabric has an outside");
    LabError::not_fit(what, INSTALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(passive: &[String]) -> FrrConfig {
        config_with(passive, None)
    }

    fn config_with(passive: &[String], bfd: Option<Nanos>) -> FrrConfig {
        FrrConfig::new(&FrrInput {
            hostname: "tor1",
            namespace: "weft-x-tor1",
            router_id: Ipv4Addr::new(10, 1, 0, 1),
            interfaces: &["agg1".into(), "agg2".into()],
            passive,
            bfd,
            multicast: None,
        })
    }

    #[test]
    fn kernel_next_hop_groups_are_off() {
        assert_eq!(config(&[]).text("zebra"), Some("hostname tor1\nno zebra nexthop kernel enable\n"));
    }

    #[test]
    fn an_edge_switch_announces_its_rack_and_nothing_else_of_the_kernel() {
        let expected = "hostname tor1
log file /var/run/frr/weft-x-tor1/ospfd.log informational
log timestamp precision 3
interface agg1
 ip ospf network point-to-point
 ip ospf cost 10
 ip ospf dead-interval minimal hello-multiplier 4
 ip ospf retransmit-interval 1
 ip ospf area 0
interface agg2
 ip ospf network point-to-point
 ip ospf cost 10
 ip ospf dead-interval minimal hello-multiplier 4
 ip ospf retransmit-interval 1
 ip ospf area 0
interface lo
 ip ospf area 0
interface weft-rack0
 ip ospf area 0
 ip ospf passive
router ospf
 ospf router-id 10.1.0.1
 log-adjacency-changes
 maximum-paths 64
 timers throttle spf 10 20 200
 timers throttle lsa all 0
 timers lsa min-arrival 0
";
        assert_eq!(config(&["weft-rack0".into()]).text("ospfd"), Some(expected));
    }

    #[test]
    fn bfd_is_told_to_both_daemons_or_to_none() {
        let with = config_with(&[], Some(Nanos(50_000_000)));
        let expected = "hostname tor1
bfd
 profile weft
  detect-multiplier 4
  receive-interval 50
  transmit-interval 50
";
        assert_eq!(with.text("bfdd"), Some(expected));
        assert_eq!(with.text("ospfd").unwrap().matches(" ip ospf bfd\n ip ospf bfd profile weft\n").count(), 2);
        assert_eq!(with.daemons().map(|(daemon, ..)| daemon).collect::<Vec<_>>(), ["zebra", "bfdd", "ospfd"]);
        let without = config(&[]);
        assert!(without.text("bfdd").is_none() && !without.text("ospfd").unwrap().contains("bfd"));
        assert_eq!(without.daemons().map(|(daemon, ..)| daemon).collect::<Vec<_>>(), ["zebra", "ospfd"]);
    }

    #[test]
    fn the_node_outside_speaks_bgp_only_from_an_address_of_its_own() {
        let bfd = Some(Nanos(50_000_000));
        let outside = FrrConfig::without_ospf("net", bfd, Ipv4Addr::new(203, 0, 113, 1), "router bgp 1\n".into());
        let expected = "hostname net
no zebra nexthop kernel enable
route-map source permit 10
 set src 203.0.113.1
ip protocol bgp route-map source
";
        assert_eq!(outside.text("zebra"), Some(expected));
        assert_eq!(outside.daemons().map(|(daemon, _)| daemon).collect::<Vec<_>>(), ["zebra", "bfdd", "bgpd"]);
        assert_eq!(outside.routing_daemons().collect::<Vec<_>>(), ["bgpd"]);
    }

    #[test]
    fn other_switches_announce_no_rack() {
        assert!(!config(&[]).text("ospfd").unwrap().contains("passive"));
    }
}
