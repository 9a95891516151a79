//! What is broken in a lab, and the ports, programs and addresses that make it so.

use std::collections::BTreeSet;
use std::path::PathBuf;

use weft_scenario::addressing::AddressPlan;
use weft_scenario::fault::FaultKind;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::Link;
use weft_testbed::cut;
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

/// What is broken. It stays so when this is dropped, or its process killed.
pub(super) struct Broken<'a> {
    pub(super) lab: &'a Lab,
    pub(super) active: Vec<FaultKind>,
    down: BTreeSet<Port>,
    /// Loaded with the first link that falls silent.
    cuts: Option<Cuts>,
    silent: BTreeSet<Port>,
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
            silent: BTreeSet::new(),
            addresses: lab.scenario.addresses.clone(),
        }
    }

    /// The same, for who only looks.
    pub(super) fn looked_at(lab: &'a Lab, faults: Vec<FaultKind>) -> Self {
        Self { active: faults, ..Self::nothing(lab) }
    }

    /// Of a lab in which these faults have been left. Whoever left them may have been killed before all was done, so they are made
    /// again; what is so already does not notice.
    pub(super) fn left(lab: &'a Lab, faults: Vec<FaultKind>) -> Result<Self, LabError> {
        let mut broken = Self::looked_at(lab, faults);
        broken.settle()?;
        Ok(broken)
    }

    /// Where the cuts of a port are kept, each with its interface.
    fn pins(&self, (node, link): Port) -> Result<Vec<(PathBuf, String)>, LabError> {
        let folder = overlay::make_pin_dir(&self.lab.state.lab, super::PINS)?;
        let ports = interfaces(&self.lab.scenario, link, node).into_iter().enumerate();
        // Numbers: names in a bpffs may not contain dots.
        let pin = |place: usize| folder.join(format!("{}-{}-{place}", node.0, link.0));
        Ok(ports.map(|(place, port)| (pin(place), port.interface)).collect())
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

    /// Lets those of these ports hear again until [`Self::settle`] where silence has the place of another program, so that others can
    /// come and go there: a program that has a place must be the last that took it.
    pub(super) fn lift_silence(&mut self, ports: &BTreeSet<Port>) -> Result<(), LabError> {
        for port in ports.intersection(&self.silent.clone()) {
            if self.pins(*port)?.iter().any(|(pin, _)| cut::has_place(pin)) {
                self.mend_silence(*port)?;
            }
        }
        Ok(())
    }

    /// Both ends of a silent link hear nothing and can still send: a sender does not notice.
    fn settle_silence(&mut self) -> Result<(), LabError> {
        let mut wanted = self.silent_ports()?;
        wanted.retain(|port| self.is_there(*port));
        for port in self.silent.difference(&wanted).copied().collect::<Vec<_>>() {
            self.mend_silence(port)?;
        }
        for port in wanted.difference(&self.silent.clone()) {
            self.silence(*port)?;
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

    fn silence(&mut self, port: Port) -> Result<(), LabError> {
        let (pins, loaded) = (self.pins(port)?, &mut self.cuts);
        self.lab.inside(port.0, || {
            for (pin, interface) in &pins {
                if !cut::is_cut(pin, interface)? {
                    let cuts = match loaded.take() {
                        Some(cuts) => cuts,
                        None => Cuts::load()?,
                    };
                    loaded.insert(cuts).cut_for_good(pin, interface)?;
                }
            }
            Ok(())
        })?;
        self.silent.insert(port);
        Ok(())
    }

    fn mend_silence(&mut self, port: Port) -> Result<(), LabError> {
        let pins = self.pins(port)?;
        self.lab.inside(port.0, || pins.iter().try_for_each(|(pin, interface)| cut::mend(pin, interface)))?;
        self.silent.remove(&port);
        Ok(())
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

    /// Whether a link is where the fabric has it, seen from either end.
    fn is_there(&self, (node, link): Port) -> bool {
        let far = self.lab.scenario.fabric.link(link).far_end(node);
        !self.is_away(node, link) && !far.is_some_and(|port| self.is_away(port.node, link))
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
            // What is not there cannot be removed.
            lines.extend(
                lost.iter()
                    .flat_map(|address| ["replace", "del"].map(|verb| format!("addr {verb} {address}/32 dev lo"))),
            );
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
        self.down.iter().chain(&self.silent).map(|(_, link)| *link).collect()
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

/// A node of the lab.
pub(super) fn find(lab: &Lab, name: &str) -> Result<NodeId, LabError> {
    lab.scenario.fabric.find(name).ok_or_else(|| lab.state.no_such_node(name))
}

/// Anycast LAs that a switch owns.
fn owned(addresses: &AddressPlan, node: NodeId) -> BTreeSet<std::net::Ipv4Addr> {
    let groups = addresses.anycast_groups().iter().filter(|group| group.members.contains(&node));
    groups.map(|group| group.address).collect()
}
