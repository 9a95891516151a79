//! Namespaces of the live benchmarks, what stands in them, and what CPU time their frames take.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use rustix::time::ClockId;

use super::frames;
use crate::error::DatapathError;
use crate::vxlan::{AccessRule, Vtep};
use crate::{clock, interface};

/// Our VTEP with a port and an uplink; the other VTEP is next to the uplink.
pub(super) fn vtep_between(switch: &Namespace, port: &str, uplink: &str) -> Result<Vtep, DatapathError> {
    underlay(switch, uplink)?;
    let (port, uplink) = (interface::index_of(port)?, interface::index_of(uplink)?);
    frames::loaded_vtep(port, |vtep| {
        vtep.attach_uplink(uplink)?;
        vtep.attach_access(port, frames::vni(), AccessRule::default())
    })
}

/// The kernel's bridge with a port, and its vxlan device towards the other VTEP, next to the underlay's interface.
pub(super) fn kernel_vtep(switch: &Namespace) -> Result<(), DatapathError> {
    let name = &switch.0;
    underlay(switch, "s1")?;
    let (vni, local, remote) = (frames::vni().to_string(), frames::VTEP.to_string(), frames::OTHER_VTEP.to_string());
    let tunnel = ["vxlan", "id", &vni, "dstport", "4789", "local", &local, "remote", &remote, "dev", "s1"];
    ip(&["-n", name, "link", "add", "br0", "mtu", "1500", "type", "bridge"])?;
    let add = ["-n", name, "link", "add", "vx0", "mtu", "1500", "type"];
    ip(&[&add[..], &tunnel, &["noudpcsum", "nolearning"]].concat())?;
    for port in ["s0", "vx0"] {
        ip(&["-n", name, "link", "set", "dev", port, "master", "br0"])?;
    }
    ip(&["-n", name, "link", "set", "dev", "vx0", "up"])?;
    ip(&["-n", name, "link", "set", "dev", "br0", "up"])
}

pub(super) fn underlay(switch: &Namespace, interface: &str) -> Result<(), DatapathError> {
    let mac = frames::SINK_MAC.map(|byte| format!("{byte:02x}")).join(":");
    let name = &switch.0;
    ip(&["-n", name, "addr", "add", &format!("{}/16", frames::VTEP), "dev", interface])?;
    ip(&["-n", name, "neigh", "replace", &frames::OTHER_VTEP.to_string(), "lladdr", &mac, "dev", interface])
}

/// The kernel's threads that take over soft interrupts when they are many: found once, because looking costs more than
/// what is measured.
pub(super) struct SoftirqThreads(Vec<PathBuf>);

impl SoftirqThreads {
    /// Of one CPU or of all.
    pub(super) fn find(cpu: Option<usize>) -> Self {
        let is_one = |path: &Path| {
            let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
            name.trim().strip_prefix("ksoftirqd/").is_some_and(|of| cpu.is_none_or(|cpu| of == cpu.to_string()))
        };
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        Self(processes.filter(|path| is_one(path)).map(|path| path.join("schedstat")).collect())
    }

    /// CPU time of this thread and of those.
    pub(super) fn cpu_ns(&self) -> f64 {
        let first = |path: &PathBuf| std::fs::read_to_string(path).ok()?.split(' ').next()?.parse::<f64>().ok();
        ns(ClockId::ThreadCPUTime) + self.0.iter().filter_map(first).sum::<f64>()
    }
}

pub(super) fn ns(of: ClockId) -> f64 {
    clock::ns(of) as f64
}

/// A namespace of the benchmark; it ends with this value.
pub(super) struct Namespace(pub(super) String);

impl Namespace {
    pub(super) fn new(id: &str, node: &str) -> Self {
        Self(format!("weft-bench-{id}-{node}"))
    }

    pub(super) fn create(&self) -> Result<(), DatapathError> {
        ip(&["netns", "add", &self.0])?;
        // No IPv6: its router solicitations would be frames that nobody generated.
        self.enter()?;
        for scope in ["all", "default"] {
            let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
            if std::fs::exists(&path).unwrap_or(false) {
                std::fs::write(&path, "1").map_err(|source| setup_failed("turning IPv6 off in a namespace", source))?;
            }
        }
        Ok(())
    }

    pub(super) fn enter(&self) -> Result<(), DatapathError> {
        let file = File::open(format!("/run/netns/{}", self.0))
            .map_err(|source| setup_failed("opening a network namespace", source))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|errno| setup_failed("entering a network namespace", errno.into()))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and the next run has another name.
        let _gone = ip(&["netns", "del", &self.0]);
    }
}

pub(super) fn connect(a: (&Namespace, &str), b: (&Namespace, &str)) -> Result<(), DatapathError> {
    let (ns_a, ns_b) = (&a.0.0, &b.0.0);
    ip(&["-n", ns_a, "link", "add", "dev", a.1, "mtu", "1600", "type", "veth"]
        .into_iter()
        .chain(["peer", "name", b.1, "mtu", "1600", "netns", ns_b])
        .collect::<Vec<&str>>())?;
    ip(&["-n", ns_a, "link", "set", "dev", a.1, "up"])?;
    ip(&["-n", ns_b, "link", "set", "dev", b.1, "up"])
}

pub(super) fn ip(arguments: &[&str]) -> Result<(), DatapathError> {
    let output = Command::new("ip").args(arguments).output().map_err(|source| setup_failed("running `ip`", source))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(setup_failed("running `ip`", std::io::Error::other(why)))
}

pub(super) fn setup_failed(what: &'static str, source: std::io::Error) -> DatapathError {
    if source.kind() == std::io::ErrorKind::PermissionDenied {
        return DatapathError::NoRights { what: format!("{what} for the live benchmark") };
    }
    DatapathError::Bench { what, source }
}
