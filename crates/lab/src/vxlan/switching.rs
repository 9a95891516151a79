//! A server's virtual switch, of each kind that is compared: bridge, kernel VXLAN and bridge, plain switches as eBPF, our VTEP.
//!
//! All of them know every station beforehand, so that nothing is flooded while something is measured.

use std::net::Ipv4Addr;
use std::path::Path as FilePath;

use weft_datapath::bed::BedPrograms;
use weft_node::vtep::{EntryTable, FloodText, HookChoice, PortTable, SegmentTable, TaggedText, VniIds, VtepConfig};
use weft_scenario::workload::vxlan::Path;
use weft_wire::ethernet::MacAddress;

use super::daemon::VtepDaemon;
use crate::batch::{self, Program};
use crate::tester::TesterError;

/// The segment of all VMs.
const VNI: i64 = 42;

/// What a virtual switch is made of.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    /// Of which kind.
    pub(super) path: Path,
    /// Number of the server.
    pub(super) number: u8,
    /// Its ports to VMs and the test centre, with the stations behind each.
    pub(super) ports: Vec<(String, Vec<[u8; 6]>)>,
    /// Stations behind the uplink.
    pub(super) others: Vec<[u8; 6]>,
    /// Whether live frames come in at the uplink.
    pub(super) live_uplink: bool,
}

/// What runs as long as the switch is there.
pub(super) struct SwitchPrograms {
    _programs: BedPrograms,
    vtep: Option<VtepDaemon>,
}

impl SwitchPrograms {
    /// Memory of the switch's own process, bytes; what runs in the kernel has none.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.vtep.as_ref().map_or(0, VtepDaemon::memory_bytes)
    }
}

/// A server's address in the underlay.
pub(super) fn underlay(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 98, 0, number)
}

/// Hardware address of a server's uplink.
fn uplink_mac(number: u8) -> String {
    format!("02:57:55:00:00:{number:02x}")
}

/// An address in the underlay, and who has the other one.
pub(super) fn underlay_lines(number: u8) -> Vec<String> {
    let other = 3 - number;
    vec![
        format!("link set dev u0 address {}", uplink_mac(number)),
        format!("address add {}/24 dev u0", underlay(number)),
        format!("neigh replace {} lladdr {} dev u0 nud permanent", underlay(other), uplink_mac(other)),
    ]
}

impl Switch {
    /// In the server's namespace. `weft_binary`: for our VTEP, which is a daemon.
    pub(super) fn set_up(&self, namespace: &str, weft_binary: &FilePath) -> Result<SwitchPrograms, TesterError> {
        let mut programs = BedPrograms::load()?;
        let mut vtep = None;
        match self.path {
            Path::Bridge => self.bridge(namespace, "u0", &[])?,
            Path::KernelVxlan => self.bridge(namespace, "vx0", &self.vxlan_lines())?,
            Path::Tc => self.plain(&mut programs, BedPrograms::add_tc_port)?,
            Path::Xdp => self.plain(&mut programs, BedPrograms::add_xdp_port)?,
            Path::Vxlan => vtep = Some(self.vtep(namespace, weft_binary, HookChoice::Tc)?),
            Path::VxlanXdp => vtep = Some(self.vtep(namespace, weft_binary, HookChoice::Xdp)?),
        }
        if !matches!(self.path, Path::Xdp | Path::VxlanXdp) {
            let live = if self.live_uplink { "u0" } else { "p0" };
            programs.poll(live)?;
        }
        Ok(SwitchPrograms { _programs: programs, vtep })
    }

    /// The kernel's bridge between the ports and a way out.
    fn bridge(&self, namespace: &str, out: &str, before: &[String]) -> Result<(), TesterError> {
        let mut lines = vec!["link add dev br0 type bridge mcast_snooping 0".to_owned()];
        lines.extend_from_slice(before);
        let ports = self.ports.iter().map(|port| port.0.as_str());
        lines.extend(ports.chain([out]).map(|port| format!("link set dev {port} master br0")));
        lines.push("link set dev br0 up".to_owned());
        batch::run(Program::Ip, namespace, &lines)?;
        let own = self.ports.iter().flat_map(|(port, macs)| macs.iter().map(move |mac| (port.as_str(), mac)));
        let known = own.chain(self.others.iter().map(|mac| (out, mac)));
        let entry = |(port, mac): (&str, &[u8; 6])| format!("fdb replace {} dev {port} master static", text(mac));
        batch::run(Program::Bridge, namespace, &known.map(entry).collect::<Vec<_>>())?;
        Ok(())
    }

    /// As the kernel does it at its best: without a UDP checksum.
    fn vxlan_lines(&self) -> Vec<String> {
        let mut lines = underlay_lines(self.number);
        lines.push(format!(
            "link add dev vx0 type vxlan id {VNI} dstport 4789 local {} remote {} dev u0 noudpcsum",
            underlay(self.number),
            underlay(3 - self.number)
        ));
        lines.push("link set dev vx0 up".to_owned());
        lines
    }

    fn plain(
        &self,
        programs: &mut BedPrograms,
        add: fn(&mut BedPrograms, &str) -> Result<u32, weft_datapath::DatapathError>,
    ) -> Result<(), TesterError> {
        for (port, macs) in &self.ports {
            let index = add(programs, port)?;
            macs.iter().try_for_each(|mac| programs.set_mac(*mac, index))?;
        }
        let uplink = add(programs, "u0")?;
        self.others.iter().try_for_each(|mac| programs.set_mac(*mac, uplink))?;
        Ok(())
    }

    fn vtep(&self, namespace: &str, weft_binary: &FilePath, hook: HookChoice) -> Result<VtepDaemon, TesterError> {
        batch::run(Program::Ip, namespace, &underlay_lines(self.number))?;
        let remote = underlay(3 - self.number);
        let port = |(interface, _): &(String, _)| PortTable {
            vlans: Vec::new(),
            interface: interface.clone(),
            vni: Some(VNI),
            tagged: TaggedText::Drop,
        };
        let entry =
            |mac: &[u8; 6]| EntryTable { vni: VNI, mac: text(mac), peer: None, port: None, vlan: None, ip: None };
        let own = self
            .ports
            .iter()
            .flat_map(|(port, macs)| macs.iter().map(move |mac| EntryTable { port: Some(port.clone()), ..entry(mac) }));
        let others = self.others.iter().map(|mac| EntryTable { peer: Some(remote), ..entry(mac) });
        let config = VtepConfig {
            hook,
            peers: [remote].into(),
            vni: vec![SegmentTable {
                id: Some(VniIds::One(VNI)),
                flood: Some(FloodText::Word("peers".to_owned())),
                ..SegmentTable::default()
            }],
            port: self.ports.iter().map(port).collect(),
            entry: own.chain(others).collect(),
            ..VtepConfig::new(underlay(self.number), vec!["u0".to_owned()])
        };
        Ok(VtepDaemon::start(weft_binary, namespace, config)?)
    }
}

fn text(mac: &[u8; 6]) -> String {
    MacAddress(*mac).to_string()
}
