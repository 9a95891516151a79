//! Two hosts with a VTEP each, joined by a link, and the tenants' machines in a namespace beside each host.
//!
//! It is a lab without nodes: `weft lab down --all` and the next run remove what a killed one left behind.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use weft_node::vtep::protocol::Request;
use weft_node::vtep::{self, PortTable, SegmentTable, VniIds, VtepConfig};
use weft_node::{DaemonKind, settings_text};
use weft_scenario::engine::{Hook, Overlay, Progress, TunnelEnd};

use crate::batch::{self, Program};
use crate::directory::usage::wait_until;
use crate::down;
use crate::error::LabError;
use crate::home::{log_dir, namespace_name, namespace_path, socket_dir};
use crate::netns;
use crate::owner::Owner;
use crate::process::{Daemon, ProcessId, log_tail};
use crate::rights::Rights;
use crate::state::LabState;

/// The VTEPs' addresses, and one of nobody that they know.
pub(super) const VTEPS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];
pub(super) const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 9);
const NODES: [&str; 4] = ["a", "b", "ta", "tb"];
const UPLINK: &str = "up0";

/// It runs until it is dropped.
pub(super) struct Bed {
    lab: String,
    vteps: Vec<ProcessId>,
}

/// Of two: the one that is timed, and the one that misbehaves. Its number is its VNI.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tenant {
    Timed = 1,
    Other = 2,
}

impl Bed {
    pub(super) fn start(weft: &Path, progress: &dyn Progress) -> Result<Self, LabError> {
        let (lab, mut state) =
            LabState::claim("isolation", "two VTEPs", Overlay::Vtep { hook: Hook::Tc, at: TunnelEnd::Server })?;
        let mut bed = Self { lab, vteps: Vec::new() };
        bed.connect()?;
        for host in 0..2 {
            let process = bed.spawn(weft, host)?;
            bed.vteps.push(process);
        }
        for host in 0..2 {
            bed.wait_ready(host, progress)?;
        }
        state.ready = true;
        state.save()?;
        Ok(bed)
    }

    /// Namespace of host 0 or 1.
    pub(super) fn host(&self, host: usize) -> PathBuf {
        namespace_path(&self.name(host))
    }

    /// Namespace of the tenants' machines at host 0 or 1.
    pub(super) fn tenants(&self, host: usize) -> PathBuf {
        namespace_path(&self.name(2 + host))
    }

    fn name(&self, node: usize) -> String {
        namespace_name(&self.lab, NODES[node])
    }

    /// Namespaces with links between them, where nobody sends what he was not told to.
    fn connect(&self) -> Result<(), LabError> {
        let names: Vec<String> = (0..NODES.len()).map(|node| self.name(node)).collect();
        netns::create_for(&Owner::Lab(self.lab.clone()), &names, |_| {
            for scope in ["all", "default"] {
                let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
                fs::write(&path, "1").map_err(LabError::io(format!("write {path}")))?;
            }
            Ok(())
        })?;
        let other = &names[1];
        self.batch(0, &[format!("link add {UPLINK} mtu 1600 type veth peer name {UPLINK} mtu 1600 netns {other}")])?;
        // The stranger sends from the first host, whose VTEP takes no part in it.
        let addresses = [vec![VTEPS[0], STRANGER], vec![VTEPS[1]]];
        for (host, addresses) in addresses.iter().enumerate() {
            let mut lines: Vec<String> =
                addresses.iter().map(|address| format!("address add {address}/24 dev {UPLINK}")).collect();
            lines.push(format!("link set dev {UPLINK} up"));
            for tenant in [Tenant::Timed, Tenant::Other] {
                let (port, inside, at) = (port_of(tenant), tenant.interface(), &names[2 + host]);
                lines.push(format!("link add {port} type veth peer name {inside} netns {at}"));
                lines.push(format!("link set dev {port} up"));
            }
            self.batch(host, &lines)?;
            let up = [Tenant::Timed, Tenant::Other].map(|tenant| format!("link set dev {} up", tenant.interface()));
            self.batch(2 + host, &up)?;
        }
        Ok(())
    }

    fn batch(&self, node: usize, lines: &[String]) -> Result<(), LabError> {
        let name = self.name(node);
        netns::in_namespace(&namespace_path(&name), || batch::run(Program::Ip, &name, lines))?
    }

    fn socket(&self, host: usize) -> PathBuf {
        socket_dir(&self.lab).join(format!("{}.vtep.sock", NODES[host]))
    }

    fn log(&self, host: usize) -> PathBuf {
        log_dir(&self.lab).join(format!("{}.vtep.log", NODES[host]))
    }

    /// As it is by default.
    fn spawn(&self, weft: &Path, host: usize) -> Result<ProcessId, LabError> {
        let mut config = VtepConfig::new(VTEPS[host], vec![UPLINK.to_owned()]);
        config.peers = [VTEPS[1 - host]].into();
        config.socket = self.socket(host);
        for tenant in [Tenant::Timed, Tenant::Other] {
            config.vni.push(SegmentTable { id: Some(VniIds::One(tenant as i64)), ..SegmentTable::default() });
            config.port.push(PortTable::access(&port_of(tenant), tenant as i64));
        }
        let path = socket_dir(&self.lab).join(format!("{}.vtep.toml", NODES[host]));
        fs::write(&path, settings_text(&config)).map_err(LabError::io(format!("write {}", path.display())))?;
        let rights = Some(Rights::of(&self.lab, DaemonKind::Vtep.capabilities()));
        let daemon = Daemon { namespace: Some(&self.host(host)), log: &self.log(host), record: None, nice: 0, rights };
        daemon.spawn(Command::new(weft).args(["node", "vtep", "--config"]).arg(&path))
    }

    fn wait_ready(&self, host: usize, progress: &dyn Progress) -> Result<(), LabError> {
        wait_until(progress, "a VTEP becomes ready", || {
            if !self.vteps[host].is_alive() {
                return Err(LabError::Daemon {
                    daemon: "vtep",
                    node: NODES[host].to_owned(),
                    what: "ended at its start".to_owned(),
                    log: log_tail(&self.log(host)),
                });
            }
            Ok(vtep::ask(&self.socket(host), &Request::Config).is_ok())
        })
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Err(error) = down::down(&self.lab) {
            tracing::error!("{} could not be removed: {error}; try: weft lab down --all", self.lab);
        }
    }
}

impl Tenant {
    /// Its interface, at both hosts.
    pub(super) fn interface(self) -> String {
        format!("t{}", self as u32)
    }

    /// Its machine at host 0 or 1.
    pub(super) fn mac(self, host: usize) -> [u8; 6] {
        [2, 0x15, 0, 0, self as u8, host as u8]
    }
}

fn port_of(tenant: Tenant) -> String {
    format!("p{}", tenant as u32)
}
