//! `weft node vtep`: a VXLAN tunnel end point (RFC 7348) in a virtual switch or in a ToR.
//!
//! The data path in the kernel switches, encapsulates and learns by itself ([`weft_datapath::vxlan`]). The daemon sets it up
//! from a file or from flags, changes it while it runs, lets entries age, and asks the directory for stations of
//! directory-driven segments. What to change, and what can work, is decided in [`weft_control::vtep`]. With a `pin_dir`
//! the data path works on while the daemon restarts.

mod config;
mod host;
mod kernel;
mod metrics;
pub mod protocol;
mod settings;
mod show;
mod stations;

use std::path::Path;

use tracing::{debug, info, warn};
use weft_control::counted;
use weft_control::tally::Tally;
use weft_control::vtep::{Change, Operation, Settings, Vni, ageing, difference, removed};
use weft_datapath::vxlan::{Upcall, Upcalls};
use weft_wire::ethernet::MacAddress;

use crate::error::NodeError;
use crate::poll::Poller;
use crate::runner::{self, Clock, DaemonKind, Load};
use crate::silence::Silence;
use crate::socket;
use crate::stop::Stop;
use crate::watch::{Metrics, Readiness};
use host::TunnelPort;
use kernel::Kernel;
use protocol::{Answer, Item, Request, Shown, What};
use stations::Stations;

pub use config::{
    AttachChoice, Capacity, DirectoryTable, EntryTable, FloodText, HookChoice, PortTable, SegmentTable, Strangers,
    TaggedText, VniIds, VtepConfig,
};

const UPCALLS: u64 = 0;
const TUNNELS: u64 = 1;
const ANSWERS: u64 = 2;

counted! {
    /// What the daemon itself could not do.
    pub enum IoFault {
        /// A question could not be sent to a directory server.
        NotSent = "not_sent",
        /// An ARP answer could not be sent out of its port.
        NotAnswered = "not_answered",
        /// The directory named a VTEP that is neither in `peers` nor in `tor_las`.
        ForeignVtep = "foreign_vtep",
        /// The data path did not take a station.
        NotInstalled = "not_installed",
        /// The data path could not be asked what is over.
        NotAged = "not_aged",
    }
}

/// Runs a VTEP until it is told to stop. With a `pin_dir` the data path stays at work afterwards, unless a request to stop came
/// by the socket.
///
/// # Errors
/// Any [`NodeError`]: a setting that cannot work, no rights, no eBPF. Then nothing is left behind that was not there.
pub fn run(load: &Load<'_, VtepConfig>, stop: &Stop) -> Result<(), NodeError> {
    runner::run::<Daemon>(load, stop)
}

/// Asks the VTEP that listens on `path`.
///
/// # Errors
/// As for [`socket::ask`].
pub fn ask(path: &Path, request: &Request) -> Result<Answer, NodeError> {
    socket::ask(DaemonKind::Vtep, path, request)
}

struct Daemon {
    config: VtepConfig,
    /// What the data path does now.
    settings: Settings,
    kernel: Kernel,
    upcalls: Upcalls,
    stations: Option<Stations>,
    tunnels: TunnelPort,
    clock: Clock,
    age_at_ns: Option<u64>,
    io: Tally<IoFault>,
}

impl Daemon {
    /// Becomes what is wanted from what was found, and takes stations of an earlier run over.
    fn begin(&mut self, wanted: Settings, known: Vec<kernel::Station>) -> Result<(), NodeError> {
        let taken_over = !self.settings.vnis.is_empty();
        self.kernel.take_all(&difference(&self.settings, &wanted))?;
        self.settings = wanted;
        self.follow()?;
        self.kernel.succeed()?;
        self.adopt(known);
        if taken_over {
            info!("data path of an earlier run taken over");
            self.sweep()?;
        }
        Ok(())
    }

    /// Becomes what `after` says, touching nothing else; on failure what it was before.
    fn become_settings(&mut self, config: &VtepConfig, after: Settings) -> Result<(), NodeError> {
        after.check(&host::facts(config, &after)?)?;
        stations::check(config, &after)?;
        let mut before = self.settings.clone();
        for name in self.kernel.replaced(&before) {
            // Its interface is another one now: what the data path had on the old one is gone.
            self.kernel.take(&Operation::DetachPort(name.clone()))?;
            before.ports.remove(&name);
        }
        if let Err(error) = self.kernel.take_all(&difference(&before, &after)) {
            self.undo(&after);
            return Err(error);
        }
        self.settings = after;
        self.follow()
    }

    /// Takes back what was done on the way to `after`.
    fn undo(&mut self, after: &Settings) {
        for step in difference(after, &self.settings) {
            if let Err(error) = self.kernel.take(&step) {
                warn!(%error, "going back after a change that failed");
            }
        }
    }

    /// What depends on the settings and is not in the data path.
    fn follow(&mut self) -> Result<(), NodeError> {
        let period_ns = ageing::period_ns(&self.settings);
        self.age_at_ns = period_ns.map(|period_ns| self.clock.now_ns() + period_ns);
        self.kernel.hear(&self.settings)?;
        self.follow_directory()
    }

    fn addition(&self, item: Item) -> Result<Change, NodeError> {
        Ok(match item {
            Item::Vni(table) => Change::AddVnis(table.vnis()?, table.segment(&self.config.segment)?),
            Item::Port(table) => {
                let (name, port) = table.port()?;
                Change::AddPort(name, port)
            }
            Item::Peer(peer) => Change::AddPeer(peer),
            Item::Entry(table) => {
                let (vni, mac, entry) = table.entry()?;
                Change::SetEntry(vni, mac, entry)
            }
        })
    }

    fn take_upcalls(&mut self) -> Result<(), NodeError> {
        for upcall in self.upcalls.take()? {
            match upcall {
                Upcall::ArpMiss { vni, from, sender_mac, sender, target } => {
                    let asker = weft_control::vtep::arp::Asker { mac: MacAddress(sender_mac), ip: sender };
                    self.asked(kernel::ours(vni), from, asker, target);
                }
                Upcall::UnicastMiss { vni, destination_mac, .. } => {
                    self.missed(kernel::ours(vni), MacAddress(destination_mac));
                }
                Upcall::Learned { vni, mac, to } => debug!(%vni, mac = %MacAddress(mac), ?to, "learned"),
                Upcall::Moved { vni, mac, to } => {
                    info!(%vni, mac = %MacAddress(mac), ?to, "moved");
                }
                Upcall::UnknownPeer { vni, peer } => {
                    warn!(%vni, %peer, "frames from a VTEP that is no peer");
                }
            }
        }
        Ok(())
    }

    fn age(&mut self) {
        let over = self.kernel.age_out();
        match over {
            Ok(0) => {}
            Ok(count) => debug!(count, "entries were silent for too long"),
            Err(error) => {
                warn!(%error, "ageing");
                self.io.add(IoFault::NotAged);
            }
        }
        let period_ns = ageing::period_ns(&self.settings);
        self.age_at_ns = period_ns.map(|period_ns| self.clock.now_ns() + period_ns);
    }
}

fn removal(item: Item) -> Result<Change, NodeError> {
    Ok(match item {
        Item::Vni(table) => Change::RemoveVnis(table.vnis()?),
        Item::Port(table) if table.vlans.is_empty() => Change::RemovePort(table.interface),
        Item::Port(table) => Change::RemoveVlans(table.interface.clone(), table.only_vlans()?),
        Item::Peer(peer) => Change::RemovePeer(peer),
        Item::Entry(table) => {
            let (vni, mac): (Vni, MacAddress) = table.key()?;
            Change::RemoveEntry(vni, mac)
        }
    })
}

impl runner::Daemon for Daemon {
    const KIND: DaemonKind = DaemonKind::Vtep;

    type Settings = VtepConfig;
    type What = What;
    type Shown = Shown;
    type Item = Item;

    fn start(config: &VtepConfig) -> Result<Self, NodeError> {
        let wanted = config.settings()?;
        wanted.check(&host::facts(config, &wanted)?)?;
        stations::check(config, &wanted)?;
        let tunnels = TunnelPort::bind(config)?;
        let stations = Stations::open(config)?;
        let mut kernel = Kernel::open(config)?;
        let is_fresh = kernel.is_fresh();
        let (settings, known) = kernel.found()?;
        let upcalls = kernel.upcalls()?;
        let (config, clock, io) = (config.clone(), Clock::start(), Tally::default());
        let mut daemon = Self { config, settings, kernel, upcalls, stations, tunnels, clock, age_at_ns: None, io };
        match daemon.begin(wanted, known) {
            Ok(()) => Ok(daemon),
            Err(error) => {
                // The first error is the one to tell.
                let _ = daemon.end(is_fresh);
                Err(error)
            }
        }
    }

    fn ready_line(&self) -> String {
        let (VtepConfig { local, uplink, .. }, Settings { vnis, ports, .. }) = (&self.config, &self.settings);
        let (vnis, ports) = (runner::counted(vnis.len(), "segment"), runner::counted(ports.len(), "port"));
        format!("VTEP ready: {local} on {}, {vnis}, {ports}", runner::listed(uplink))
    }

    fn watch(&self, poller: &Poller) -> Result<(), NodeError> {
        poller.add(&self.upcalls, UPCALLS)?;
        poller.add(&self.tunnels, TUNNELS)?;
        self.stations.as_ref().map_or(Ok(()), |stations| poller.add(stations, ANSWERS))
    }

    fn ready(&mut self, token: u64) -> Result<(), NodeError> {
        match token {
            UPCALLS => self.take_upcalls()?,
            TUNNELS => self.tunnels.drain(),
            _ => self.read_answers(),
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let stations = self.stations.as_ref().and_then(Stations::next_deadline_ns);
        [self.age_at_ns, stations].into_iter().flatten().min()
    }

    fn deadline(&mut self) -> Result<(), NodeError> {
        let now_ns = self.clock.now_ns();
        if self.age_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.age();
        }
        self.confirm_stations();
        Ok(())
    }

    fn show(&self, what: What) -> Result<Shown, NodeError> {
        self.shown(what)
    }

    fn metrics(&self, to: &mut Metrics) -> Result<(), NodeError> {
        self.list_metrics(to)
    }

    fn readiness(&self) -> Readiness {
        self.stations.as_ref().map_or_else(|| Silence::default().readiness(), |stations| stations.silence.readiness())
    }

    fn in_force(&self, config: &VtepConfig) -> VtepConfig {
        config.with_settings(&self.settings)
    }

    fn change(&mut self, item: Item, add: bool) -> Result<(), NodeError> {
        let change = if add { self.addition(item)? } else { removal(item)? };
        let after = self.settings.changed(change)?;
        self.become_settings(&self.config.clone(), after)
    }

    fn reload(&mut self, config: &VtepConfig) -> Result<Vec<String>, NodeError> {
        let after = config.settings()?;
        let removed = removed(&self.settings, &after);
        self.become_settings(config, after)?;
        self.config = config.clone();
        Ok(removed)
    }

    fn end(self, remove: bool) -> Result<(), NodeError> {
        if remove { self.kernel.remove() } else { Ok(()) }
    }
}
