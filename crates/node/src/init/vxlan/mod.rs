//! VTEPs: each is told of those that have one of its segments, and of no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::Deserialize;
use weft_wire::vxlan::OVERHEAD_BYTES;

use super::addresses::Addresses;
use super::hosts_file::{At, HostsFile};
use super::names::{Interfaces, Names};
use super::{Deployment, Host};
use crate::error::NodeError;
use crate::runner::DaemonKind;
use crate::vtep::{FloodText, HookChoice, PortTable, SegmentTable, VniIds, VtepConfig};

/// What a VM's packet has more in the underlay.
const OUTER_BYTES: u32 = OVERHEAD_BYTES as u32;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vxlan {
    /// Of the underlay, bytes.
    mtu: u32,
    /// Of what VMs send, bytes.
    #[serde(default = "port_mtu")]
    port_mtu: u32,
    #[serde(default)]
    hook: HookChoice,
    /// Where every VTEP has its metrics; without it nowhere.
    http_listen: Option<SocketAddrV4>,
    vtep: Vec<Vtep>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vtep {
    name: String,
    local: Ipv4Addr,
    uplinks: Vec<String>,
    /// VNIs of access ports.
    #[serde(default)]
    ports: BTreeMap<String, i64>,
    /// VLANs and their VNIs, of ports that are trunks.
    #[serde(default)]
    trunks: BTreeMap<String, Vec<String>>,
}

fn port_mtu() -> u32 {
    1500
}

/// What the file says.
pub(super) fn deployment(file: &HostsFile) -> Result<Deployment, NodeError> {
    let vxlan: Vxlan = file.parse()?;
    check(file, &vxlan)?;
    let mut vnis = Vec::new();
    for (index, vtep) in vxlan.vtep.iter().enumerate() {
        vnis.push(vtep.vnis().map_err(|error| fault_of(file, index, &error))?);
    }
    let mut hosts = Vec::new();
    for (index, vtep) in vxlan.vtep.iter().enumerate() {
        let mut host = Host::new(&vtep.name, "a VTEP");
        let settings = vtep.settings(&vxlan, &vnis, index);
        host.daemon(DaemonKind::Vtep, &settings, |why| file.fault(At::of("vtep", index, "name"), why))?;
        host.file("network.sh", vtep.network(&vxlan));
        hosts.push(host);
    }
    Ok(Deployment { hosts, secrets: Vec::new(), certificates: None })
}

fn check(file: &HostsFile, vxlan: &Vxlan) -> Result<(), NodeError> {
    let least = vxlan.port_mtu.saturating_add(OUTER_BYTES);
    if vxlan.mtu < least {
        let why =
            format!("{} leaves no room for VXLAN's {OUTER_BYTES} bytes of headers; set {least} or more", vxlan.mtu);
        return Err(file.fault(At::top("mtu"), format!("{why}, or a smaller `port_mtu`")));
    }
    let (mut names, mut addresses, mut interfaces) = (Names::new(file), Addresses::new(file), Interfaces::default());
    for (index, vtep) in vxlan.vtep.iter().enumerate() {
        names.take("vtep", index, &vtep.name)?;
        addresses.take(At::of("vtep", index, "local"), vtep.local, format!("the address of {}", vtep.name))?;
        let at = |key| At::of("vtep", index, key);
        if vtep.uplinks.is_empty() {
            return Err(file.fault(at("uplinks"), "is empty; name the interfaces towards the underlay"));
        }
        for uplink in &vtep.uplinks {
            interfaces.take(file, at("uplinks"), (&vtep.name, uplink), "an uplink".to_owned())?;
        }
        for port in vtep.ports.keys() {
            interfaces.take(file, at("ports"), (&vtep.name, port), "an access port".to_owned())?;
        }
        for trunk in vtep.trunks.keys() {
            interfaces.take(file, at("trunks"), (&vtep.name, trunk), "a trunk".to_owned())?;
        }
    }
    Ok(())
}

/// A VNI or a VLAN of a VTEP that cannot be.
fn fault_of(file: &HostsFile, index: usize, error: &NodeError) -> NodeError {
    let key = if error.to_string().contains("vlans") { "trunks" } else { "ports" };
    file.fault(At::of("vtep", index, key), error)
}

impl Vtep {
    fn port_tables(&self) -> Vec<PortTable> {
        let ports = self.ports.iter().map(|(name, vni)| PortTable::access(name, *vni));
        let trunks = self.trunks.iter().map(|(name, vlans)| PortTable {
            vni: None,
            vlans: vlans.clone(),
            ..PortTable::access(name, 0)
        });
        ports.chain(trunks).collect()
    }

    /// Its segments.
    fn vnis(&self) -> Result<BTreeSet<u32>, NodeError> {
        let mut vnis = BTreeSet::new();
        for table in self.port_tables() {
            let (_, port) = table.port()?;
            vnis.extend(port.vni.iter().chain(port.vlans.values()).map(|vni| vni.get()));
        }
        Ok(vnis)
    }

    fn settings(&self, vxlan: &Vxlan, vnis: &[BTreeSet<u32>], index: usize) -> VtepConfig {
        let mut config = VtepConfig::new(self.local, self.uplinks.clone());
        config.hook = vxlan.hook;
        config.http_listen = vxlan.http_listen;
        config.pin_dir = Some("/run/weft/bpf/vtep".into());
        config.port = self.port_tables();
        for vni in &vnis[index] {
            let others =
                vxlan.vtep.iter().zip(vnis).filter(|(other, has)| other.name != self.name && has.contains(vni));
            let members: BTreeSet<Ipv4Addr> = others.map(|(other, _)| other.local).collect();
            config.peers.extend(&members);
            // Said for itself, so that floods which go elsewhere one day do not let everybody in.
            config.vni.push(SegmentTable {
                id: Some(VniIds::One((*vni).into())),
                members: Some(members.clone()),
                flood: Some(FloodText::List(members)),
                ..SegmentTable::default()
            });
        }
        config
    }

    fn network(&self, vxlan: &Vxlan) -> String {
        let mut lines = format!("# The interfaces of {}; its routes in the underlay are yours.\nset -e\n", self.name);
        for uplink in &self.uplinks {
            let _ = writeln!(lines, "ip link set {uplink} mtu {} up", vxlan.mtu);
        }
        for port in self.ports.keys().chain(self.trunks.keys()) {
            let _ = writeln!(lines, "ip link set {port} up");
        }
        lines
    }
}
