//! Breaks and mends a lab while traffic runs: switches and links go down at both ends or fall silent, anycast LAs find new
//! owners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weft_scenario::addressing::AddressPlan;
use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::Link;
use weft_testbed::Cut;
use weft_testbed::loss::Cuts;

use crate::batch::Program;
use crate::error::LabError;
use crate::plan::interfaces;
use crate::plan::iproute::Ip;
use crate::traffic::FaultActuator;
use crate::up::Lab;
use crate::{overlay, routes};

/// How long after a repair the kernel's routes are watched.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(60);
const RESTORE_POLL: Duration = Duration::from_millis(100);

/// How long after the n-th repair all routes were back; `None`: not before the run ended or something else broke.
type Restored = Arc<Mutex<Vec<(usize, Option<Duration>)>>>;

/// Applies faults to a lab. Dropping it stops watching; what is broken stays so until repaired.
pub struct LabActuator<'a> {
    lab: &'a Lab,
    active: Vec<FaultKind>,
    down: BTreeSet<(NodeId, LinkId)>,
    /// Loaded with the first link that falls silent.
    cuts: Option<Cuts>,
    silent: BTreeMap<(NodeId, LinkId), Vec<Cut>>,
    addresses: AddressPlan,
    repairs: usize,
    restored: Restored,
    watch: Option<Watch>,
}

struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl<'a> LabActuator<'a> {
    /// For a lab that is up.
    pub fn new(lab: &'a Lab) -> Self {
        Self {
            lab,
            active: Vec::new(),
            down: BTreeSet::new(),
            cuts: None,
            silent: BTreeMap::new(),
            addresses: lab.scenario.addresses.clone(),
            repairs: 0,
            restored: Restored::default(),
            watch: None,
        }
    }

    /// Stops watching and says, for each repair, when the kernel had all routes that the links allow.
    pub fn finish(mut self) -> Vec<(usize, Option<Duration>)> {
        self.stop_watch();
        std::mem::take(&mut *self.restored.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Brings ports and anycast addresses to what the active faults ask for.
    fn settle(&mut self) -> Result<(), LabError> {
        let wanted = self.ports_of_active_faults()?;
        let to_break: Vec<_> = wanted.difference(&self.down).copied().collect();
        let to_mend: Vec<_> = self.down.difference(&wanted).copied().collect();
        self.set_ports(&to_break, false)?;
        self.set_ports(&to_mend, true)?;
        self.down = wanted;
        self.settle_silence()?;
        self.move_anycast()
    }

    /// Both ends of a silent link hear nothing and can still send: a sender does not notice.
    fn settle_silence(&mut self) -> Result<(), LabError> {
        let mut wanted = BTreeSet::new();
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
            wanted.extend(links.into_iter().flat_map(ends));
        }
        self.silent.retain(|port, _| wanted.contains(port));
        for port in wanted {
            if !self.silent.contains_key(&port) {
                let silence = self.silence(port)?;
                self.silent.insert(port, silence);
            }
        }
        Ok(())
    }

    fn silence(&mut self, (node, link): (NodeId, LinkId)) -> Result<Vec<Cut>, LabError> {
        let loaded = match self.cuts.take() {
            Some(cuts) => Ok(cuts),
            None => Cuts::load(),
        };
        let name = &self.lab.plan.node(node).name;
        let cuts = self.cuts.insert(loaded.map_err(|error| overlay::datapath_error(name, &error))?);
        let ports = interfaces(&self.lab.scenario, link, node);
        self.lab.inside(node, || ports.iter().map(|port| cuts.cut(&port.interface)).collect())
    }

    /// Links between two nodes, at least one.
    fn between(&self, a: &str, b: &str) -> Result<Vec<LinkId>, LabError> {
        let fabric = &self.lab.scenario.fabric;
        let (from, to) = (self.find(a)?, self.find(b)?);
        let leads = |link: &&LinkId| fabric.link(**link).far_end(from).is_some_and(|port| port.node == to);
        let links: Vec<LinkId> = fabric.links_of(from).iter().filter(leads).copied().collect();
        if links.is_empty() { Err(LabError::NoSuchLink { a: a.to_owned(), b: b.to_owned() }) } else { Ok(links) }
    }

    /// Ports to take down: at the failed switch itself, or at the switch's end of a failed link. The far end sees its
    /// carrier go, so both ends know at once.
    fn ports_of_active_faults(&self) -> Result<BTreeSet<(NodeId, LinkId)>, LabError> {
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
        let missing = || LabError::NoSuchNode { lab: self.lab.state.lab.clone(), node: name.to_owned() };
        self.lab.scenario.fabric.find(name).ok_or_else(missing)
    }

    fn set_ports(&self, ports: &[(NodeId, LinkId)], up: bool) -> Result<(), LabError> {
        let devices = |ports: &BTreeSet<(NodeId, LinkId)>, node: NodeId| -> BTreeSet<String> {
            let of_node = ports.iter().filter(|(at, _)| *at == node);
            let all = of_node.flat_map(|(_, link)| interfaces(&self.lab.scenario, *link, node));
            all.map(|port| port.interface).collect()
        };
        let (ports, wanted): (BTreeSet<_>, _) = (ports.iter().copied().collect(), self.ports_of_active_faults()?);
        for node in ports.iter().map(|(node, _)| *node).collect::<BTreeSet<_>>() {
            let mut lines: Vec<Ip> = devices(&ports, node).into_iter().map(|device| Ip::Set { device, up }).collect();
            if up {
                // Host routes and neighbours went with the link.
                lines.extend(self.lab.plan.node(node).again(&devices(&wanted, node)).cloned());
            }
            self.lab.batch(node, Program::Ip, &lines)?;
        }
        Ok(())
    }

    /// Gives orphaned anycast LAs to their successors and takes them back when their owners return (VL2 4.2.2).
    fn move_anycast(&mut self) -> Result<(), LabError> {
        let mut addresses = self.lab.scenario.addresses.clone();
        for fault in &self.active {
            if let FaultKind::SwitchDown { node } = fault {
                addresses.intermediate_failed(self.find(node)?);
            }
        }
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

    fn broken_links(&self) -> BTreeSet<LinkId> {
        self.down.iter().chain(self.silent.keys()).map(|(_, link)| *link).collect()
    }

    fn start_watch(&mut self, repair: usize) {
        let scenario = &self.lab.scenario;
        let expected = routes::expected(&scenario.fabric, &scenario.addresses, &self.broken_links());
        let tables: Vec<_> =
            expected.into_iter().map(|(node, table)| (self.lab.plan.node(node).namespace.clone(), table)).collect();
        let (stop, restored) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.restored));
        let stopped = Arc::clone(&stop);
        let start = Instant::now();
        let thread = std::thread::spawn(move || {
            let is_back = |(namespace, table): &(String, routes::RouteTable)| {
                routes::kernel_table(namespace).is_ok_and(|actual| routes::difference(table, &actual).is_none())
            };
            // Once told to stop it looks a last time, so what is back by then always counts.
            let back = loop {
                let (looked, last) = (start.elapsed(), stopped.load(Ordering::Acquire));
                if tables.iter().all(is_back) {
                    break Some(looked);
                }
                if last || looked >= RESTORE_TIMEOUT {
                    break None;
                }
                std::thread::park_timeout(RESTORE_POLL);
            };
            restored.lock().unwrap_or_else(PoisonError::into_inner).push((repair, back));
        });
        self.watch = Some(Watch { stop, thread });
    }

    fn stop_watch(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.stop.store(true, Ordering::Release);
            watch.thread.thread().unpark();
            if watch.thread.join().is_err() {
                tracing::warn!("the watch over restored routes failed");
            }
        }
    }
}

impl FaultActuator for LabActuator<'_> {
    fn apply(&mut self, fault: &Fault) -> Result<(), String> {
        self.stop_watch();
        self.active.push(fault.kind.clone());
        self.settle().map_err(|error| error.to_string())
    }

    fn repair(&mut self, fault: &Fault) -> Result<(), String> {
        if let Some(place) = self.active.iter().position(|active| *active == fault.kind) {
            self.active.remove(place);
        }
        let repair = self.repairs;
        self.repairs += 1;
        self.settle().map_err(|error| error.to_string())?;
        if !self.lab.scenario.overlay.forwards_frames() {
            self.start_watch(repair);
        }
        Ok(())
    }
}

/// Anycast LAs that a switch owns.
fn owned(addresses: &AddressPlan, node: NodeId) -> BTreeSet<std::net::Ipv4Addr> {
    let groups = addresses.anycast_groups().iter().filter(|group| group.members.contains(&node));
    groups.map(|group| group.address).collect()
}
