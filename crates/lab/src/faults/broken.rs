//! What is broken in a lab, and the ports, programs and addresses that make it so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use weft_scenario::addressing::AddressPlan;
use weft_scenario::fault::FaultKind;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::Link;
use weft_testbed::Cut;
use weft_testbed::loss::Cuts;

use crate::batch::Program;
use crate::error::LabError;
use crate::plan::interfaces;
use crate::plan::iproute::Ip;
use crate::routes::RouteTable;
use crate::up::Lab;
use crate::{overlay, routes};

/// A node's end of a link.
pub(super) type Port = (NodeId, LinkId);

/// What is broken. Links that are down or silent stay so when this is dropped if they are down, and not if they are silent; see
/// [`Self::keep`].
pub(super) struct Broken<'a> {
    pub(super) lab: &'a Lab,
    pub(super) active: Vec<FaultKind>,
    down: BTreeSet<Port>,
    /// Loaded with the first link that falls silent.
    cuts: Option<Cuts>,
    silent: BTreeMap<Port, Vec<Cut>>,
    addresses: AddressPlan,
}

impl<'a> Broken<'a> {
    /// Of a lab in which all is well.
    pub(super) fn nothing(lab: &'a Lab) -> Self {
        Self {
            lab,
            active: Vec::new(),
            down: BTreeSet::new(),
            cuts: None,
            silent: BTreeMap::new(),
            addresses: lab.scenario.addresses.clone(),
        }
    }

    /// The same, for who only looks.
    pub(super) fn looked_at(lab: &'a Lab, faults: Vec<FaultKind>) -> Self {
        Self { active: faults, ..Self::nothing(lab) }
    }

    /// Of a lab in which these faults have been left.
    pub(super) fn left(lab: &'a Lab, faults: Vec<FaultKind>) -> Result<Self, LabError> {
        let mut broken = Self::looked_at(lab, faults);
        broken.down = broken.ports_of_active_faults()?;
        broken.addresses = broken.addresses_of_active_faults()?;
        for port in broken.silent_ports()? {
            let resumed = broken.resume(port)?;
            if !resumed.is_empty() {
                broken.silent.insert(port, resumed);
            }
        }
        Ok(broken)
    }

    /// Leaves everything as it is when this process ends, for [`Self::left`].
    pub(super) fn keep(mut self) -> Result<(), LabError> {
        for ((node, link), cuts) in std::mem::take(&mut self.silent) {
            for (cut, (pin, _)) in cuts.into_iter().zip(self.pins((node, link))?) {
                cut.keep(&pin).map_err(|error| self.failed(node, &error))?;
            }
        }
        Ok(())
    }

    /// Where the cuts of a port are kept, each with its interface.
    fn pins(&self, (node, link): Port) -> Result<Vec<(PathBuf, String)>, LabError> {
        let folder = overlay::make_pin_dir(&self.lab.state.lab, super::PINS)?;
        let ports = interfaces(&self.lab.scenario, link, node).into_iter().enumerate();
        // Numbers: names in a bpffs may not contain dots.
        let pin = |place: usize| folder.join(format!("{}-{}-{place}", node.0, link.0));
        Ok(ports.map(|(place, port)| (pin(place), port.interface)).collect())
    }

    fn resume(&self, (node, link): Port) -> Result<Vec<Cut>, LabError> {
        let pins = self.pins((node, link))?;
        self.lab.inside(node, || {
            let cuts = pins.iter().map(|(pin, interface)| Cut::resume(pin, interface).transpose());
            cuts.flatten().collect()
        })
    }

    fn failed(&self, node: NodeId, error: &weft_datapath::DatapathError) -> LabError {
        overlay::datapath_error(&self.lab.plan.node(node).name, error)
    }

    /// Brings ports and anycast addresses to what the active faults ask for.
    pub(super) fn settle(&mut self) -> Result<(), LabError> {
        let wanted = self.ports_of_active_faults()?;
        let to_break: Vec<_> = wanted.difference(&self.down).copied().collect();
        let to_mend: Vec<_> = self.down.difference(&wanted).copied().collect();
        self.set_ports(&to_break, false)?;
        self.set_ports(&to_mend, true)?;
        self.down = wanted;
        self.settle_silence()?;
        self.move_anycast()
    }

    /// Lets these ports hear again until [`Self::settle`], so that other programs there can come and go: a program that has the
    /// place of another one must be the last that took it.
    pub(super) fn lift_silence(&mut self, ports: &BTreeSet<Port>) {
        self.silent.retain(|port, _| !ports.contains(port));
    }

    /// Both ends of a silent link hear nothing and can still send: a sender does not notice.
    fn settle_silence(&mut self) -> Result<(), LabError> {
        let wanted = self.silent_ports()?;
        self.silent.retain(|port, _| wanted.contains(port));
        for port in wanted {
            if !self.silent.contains_key(&port) {
                let silence = self.silence(port)?;
                self.silent.insert(port, silence);
            }
        }
        Ok(())
    }

    fn silent_ports(&self) -> Result<BTreeSet<Port>, LabError> {
        let mut ports = BTreeSet::new();
        for fault in &self.active {
            let links = match fault {
                FaultKind::LinkSilent { a, b } => self.between(a, b)?,
                FaultKind::SwitchSilent { node } => self.lab.scenario.fabric.links_of(self.find(node)?).to_vec(),
                FaultKind::SwitchDown { .. } | FaultKind::LinkDown { .. } => continue,
            };
            let ends = |link: LinkId| {
                let Link { a, b, .. } = self.lab.scenario.fabric.link(link);
                [(a.node, link), (b.node, link)]
            };
            ports.extend(links.into_iter().flat_map(ends));
        }
        Ok(ports)
    }

    fn silence(&mut self, (node, link): Port) -> Result<Vec<Cut>, LabError> {
        let loaded = match self.cuts.take() {
            Some(cuts) => Ok(cuts),
            None => Cuts::load(),
        };
        let cuts = loaded.map_err(|error| self.failed(node, &error))?;
        let cuts = self.cuts.insert(cuts);
        let ports = interfaces(&self.lab.scenario, link, node);
        self.lab.inside(node, || ports.iter().map(|port| cuts.cut(&port.interface)).collect())
    }

    fn between(&self, a: &str, b: &str) -> Result<Vec<LinkId>, LabError> {
        between(self.lab, a, b)
    }

    /// Ports to take down: at the failed switch itself, or at the switch's end of a failed link. The far end sees its
    /// carrier go, so both ends know at once.
    fn ports_of_active_faults(&self) -> Result<BTreeSet<Port>, LabError> {
        let fabric = &self.lab.scenario.fabric;
        let mut ports = BTreeSet::new();
        for fault in &self.active {
            match fault {
                FaultKind::SwitchDown { node } => {
                    let id = self.find(node)?;
                    ports.extend(fabric.links_of(id).iter().map(|link| (id, *link)));
                }
                FaultKind::LinkDown { a, b } => {
                    let (from, to) = (self.find(a)?, self.find(b)?);
                    let at = if fabric.node(from).role.is_switch() { from } else { to };
                    ports.extend(self.between(a, b)?.into_iter().map(|link| (at, link)));
                }
                FaultKind::SwitchSilent { .. } | FaultKind::LinkSilent { .. } => {}
            }
        }
        Ok(ports)
    }

    fn find(&self, name: &str) -> Result<NodeId, LabError> {
        find(self.lab, name)
    }

    /// Whether the far end is a server that was taken elsewhere with its link.
    fn is_away(&self, node: NodeId, link: LinkId) -> bool {
        let fabric = &self.lab.scenario.fabric;
        let far = fabric.link(link).far_end(node).map(|port| fabric.node(port.node).name.as_str());
        self.lab.state.moved.iter().any(|moved| Some(moved.server.as_str()) == far)
    }

    /// Ports of links that went with their servers.
    fn devices_away(&self, node: NodeId) -> impl Iterator<Item = String> {
        let links = self.lab.scenario.fabric.links_of(node).iter().filter(move |link| self.is_away(node, **link));
        links.flat_map(move |link| interfaces(&self.lab.scenario, *link, node)).map(|port| port.interface)
    }

    fn set_ports(&self, ports: &[Port], up: bool) -> Result<(), LabError> {
        let devices = |ports: &BTreeSet<Port>, node: NodeId| -> BTreeSet<String> {
            let of_node = ports.iter().filter(|(at, _)| *at == node);
            let here = of_node.filter(|(_, link)| !self.is_away(node, *link));
            let all = here.flat_map(|(_, link)| interfaces(&self.lab.scenario, *link, node));
            all.map(|port| port.interface).collect()
        };
        let (ports, wanted): (BTreeSet<_>, _) = (ports.iter().copied().collect(), self.ports_of_active_faults()?);
        for node in ports.iter().map(|(node, _)| *node).collect::<BTreeSet<_>>() {
            let mut lines: Vec<Ip> = devices(&ports, node).into_iter().map(|device| Ip::Set { device, up }).collect();
            if up {
                // Host routes and neighbours went with the link.
                let mut not = devices(&wanted, node);
                not.extend(self.devices_away(node));
                lines.extend(self.lab.plan.node(node).again(&not).cloned());
            }
            self.lab.batch(node, Program::Ip, &lines)?;
        }
        Ok(())
    }

    /// Gives orphaned anycast LAs to their successors and takes them back when their owners return (VL2 4.2.2).
    fn move_anycast(&mut self) -> Result<(), LabError> {
        let addresses = self.addresses_of_active_faults()?;
        for node in self.lab.scenario.fabric.switches() {
            let (old, new) = (owned(&self.addresses, node), owned(&addresses, node));
            // A failed switch keeps its addresses: nobody reaches it, and they are right when it returns.
            let keeps = owned(&self.lab.scenario.addresses, node);
            let gained: Vec<_> = new.difference(&old).filter(|address| !keeps.contains(*address)).collect();
            let lost: Vec<_> = old.difference(&new).filter(|address| !keeps.contains(*address)).collect();
            let mut lines: Vec<String> =
                gained.iter().map(|address| format!("addr replace {address}/32 dev lo")).collect();
            lines.extend(lost.iter().map(|address| format!("addr del {address}/32 dev lo")));
            if !lines.is_empty() {
                self.lab.batch(node, Program::Ip, &lines)?;
                let anycast: Vec<_> = keeps.union(&new).copied().collect();
                overlay::set_own_las(self.lab, node, &anycast)?;
            }
        }
        self.addresses = addresses;
        Ok(())
    }

    fn addresses_of_active_faults(&self) -> Result<AddressPlan, LabError> {
        let mut addresses = self.lab.scenario.addresses.clone();
        for fault in &self.active {
            if let FaultKind::SwitchDown { node } = fault {
                addresses.intermediate_failed(self.find(node)?);
            }
        }
        Ok(addresses)
    }

    /// The routes that every switch should have by now, by the names of namespaces.
    pub(super) fn tables(&self) -> Vec<(String, RouteTable)> {
        let scenario = &self.lab.scenario;
        let expected = routes::expected(&scenario.fabric, &scenario.addresses, &self.links());
        expected.into_iter().map(|(node, table)| (self.lab.plan.node(node).namespace.clone(), table)).collect()
    }

    /// Links that should carry nothing.
    pub(super) fn wanted_links(&self) -> Result<BTreeSet<LinkId>, LabError> {
        let ports = self.ports_of_active_faults()?.into_iter().chain(self.silent_ports()?);
        Ok(ports.map(|(_, link)| link).collect())
    }

    /// Links that carry nothing.
    fn links(&self) -> BTreeSet<LinkId> {
        self.down.iter().chain(self.silent.keys()).map(|(_, link)| *link).collect()
    }
}

/// Links between two nodes, at least one.
pub(super) fn between(lab: &Lab, a: &str, b: &str) -> Result<Vec<LinkId>, LabError> {
    let fabric = &lab.scenario.fabric;
    let (from, to) = (find(lab, a)?, find(lab, b)?);
    let leads = |link: &&LinkId| fabric.link(**link).far_end(from).is_some_and(|port| port.node == to);
    let links: Vec<LinkId> = fabric.links_of(from).iter().filter(leads).copied().collect();
    if links.is_empty() { Err(LabError::NoSuchLink { a: a.to_owned(), b: b.to_owned() }) } else { Ok(links) }
}

fn find(lab: &Lab, name: &str) -> Result<NodeId, LabError> {
    lab.scenario.fabric.find(name).ok_or_else(|| lab.state.no_such_node(name))
}

/// Anycast LAs that a switch owns.
fn owned(addresses: &AddressPlan, node: NodeId) -> BTreeSet<std::net::Ipv4Addr> {
    let groups = addresses.anycast_groups().iter().filter(|group| group.members.contains(&node));
    groups.map(|group| group.address).collect()
}
