//! `weft node vtep`: a VXLAN tunnel end point (RFC 7348) in a virtual switch or in a ToR.
//!
//! The data path in the kernel switches, encapsulates and learns by itself ([`weft_datapath::vxlan`]). The daemon sets it up
//! from a file or from flags, changes it while it runs, lets entries age, and asks the directory for stations of
//! directory-driven segments. What to change, and what can work, is decided in [`weft_control::vtep`]. With a `pin_dir`
//! the data path works on while the daemon restarts.

mod config;
mod host;
mod kernel;
pub mod protocol;
mod settings;
mod show;
mod stations;

use std::path::Path;

use tracing::{debug, info, warn};
use weft_control::counted;
use weft_control::tally::Tally;
use weft_control::vtep::{Change, Fault, Operation, Settings, Vni, ageing, difference, removed};
use weft_datapath::vxlan::{Upcall, Upcalls};
use weft_wire::ethernet::MacAddress;

use crate::READY_LOG;
use crate::command::{self, CommandSocket};
use crate::error::NodeError;
use crate::poll::Poller;
use crate::runner::{self, Clock};
use crate::stop::{Hangup, Stop};
use host::TunnelPort;
use kernel::Kernel;
use protocol::{Answer, Item, Request};
use stations::Stations;

pub use config::{
    AttachChoice, Capacity, DirectoryTable, EntryTable, FloodText, HookChoice, PortTable, SOCKET_DEFAULT, SegmentTable,
    Strangers, TaggedText, VniIds, VtepConfig,
};

const COMMANDS: u64 = 0;
const UPCALLS: u64 = 1;
const TUNNELS: u64 = 2;
const HANGUP: u64 = 3;
const ANSWERS: u64 = 4;

counted! {
    /// What the daemon itself could not do.
    pub enum IoFault {
        /// A question could not be sent to a directory server.
        NotSent = "not_sent",
        /// An ARP answer could not be sent out of its port.
        NotAnswered = "not_answered",
        /// The data path did not take a station.
        NotInstalled = "not_installed",
        /// The data path could not be asked what is over.
        NotAged = "not_aged",
    }
}

/// Runs a VTEP until it is told to stop. `load` gives its configuration, and gives it again after a hangup. With a
/// `pin_dir` the data path stays at work afterwards, unless `weft vtep stop` ended it.
///
/// # Errors
/// Any [`NodeError`]: a setting that cannot work, no rights, no eBPF. Then nothing is left behind that was not there.
pub fn run(load: &dyn Fn() -> Result<VtepConfig, NodeError>, stop: &Stop, hangup: &Hangup) -> Result<(), NodeError> {
    let mut daemon = Daemon::start(load, stop, hangup)?;
    let VtepConfig { local, uplink, socket, .. } = &daemon.config;
    let (vnis, ports, socket) = (daemon.settings.vnis.len(), daemon.settings.ports.len(), socket.display());
    info!(target: READY_LOG, "VTEP ready: {local} on {uplink:?}, {vnis} segments, {ports} ports, socket {socket}");
    runner::serve(&mut daemon, stop)?;
    daemon.end()
}

/// Asks the VTEP that listens on `path`.
///
/// # Errors
/// [`NodeError::System`] when none listens there, [`NodeError::Refused`] with its reason, [`NodeError::Protocol`].
pub fn ask(path: &Path, request: &Request) -> Result<Answer, NodeError> {
    command::ask(path, NOBODY, request)
}

/// Ends the VTEP that listens on `path`, a process of its own, and waits for its end.
///
/// # Errors
/// As for [`ask`].
pub fn stop(path: &Path) -> Result<(), NodeError> {
    command::ask_to_end::<_, Answer>(path, NOBODY, &Request::Stop)
}

const NOBODY: &str = "no VTEP answers; start one (weft node vtep) or name its --socket";

command::can_refuse!(Answer);

struct Daemon<'a> {
    load: &'a dyn Fn() -> Result<VtepConfig, NodeError>,
    config: VtepConfig,
    /// What the data path does now.
    settings: Settings,
    kernel: Kernel,
    upcalls: Upcalls,
    stations: Option<Stations>,
    commands: CommandSocket,
    tunnels: TunnelPort,
    hangup: &'a Hangup,
    stop: &'a Stop,
    clock: Clock,
    age_at_ns: Option<u64>,
    io: Tally<IoFault>,
    /// Whether the data path goes with the daemon although it is pinned.
    remove: bool,
}

impl<'a> Daemon<'a> {
    fn start(
        load: &'a dyn Fn() -> Result<VtepConfig, NodeError>,
        stop: &'a Stop,
        hangup: &'a Hangup,
    ) -> Result<Self, NodeError> {
        let config = load()?;
        let settings = config.settings()?;
        settings.check(&host::facts(&config, &settings)?)?;
        stations::check(&config, &settings)?;
        let commands = CommandSocket::bind(&config.socket)?;
        let tunnels = TunnelPort::bind(&config)?;
        let stations = Stations::open(&config)?;
        let mut kernel = Kernel::open(&config)?;
        let fresh = kernel.is_fresh();
        let (found, known) = kernel.found()?;
        let upcalls = kernel.upcalls()?;
        let (clock, io) = (Clock::start(), Tally::default());
        let mut daemon = Self {
            load,
            config,
            settings: found,
            kernel,
            upcalls,
            stations,
            commands,
            tunnels,
            hangup,
            stop,
            clock,
            age_at_ns: None,
            io,
            remove: false,
        };
        match daemon.begin(settings, known) {
            Ok(()) => Ok(daemon),
            Err(error) if fresh => {
                daemon.remove = true;
                // The first error is the one to tell.
                let _ = daemon.end();
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Becomes what is wanted from what was found, and takes stations of an earlier run over.
    fn begin(&mut self, wanted: Settings, known: Vec<kernel::Station>) -> Result<(), NodeError> {
        let taken_over = !self.settings.vnis.is_empty();
        self.kernel.take_all(&difference(&self.settings, &wanted))?;
        self.settings = wanted;
        self.follow()?;
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

    fn answer_commands(&mut self) {
        while let Some((request, mut reply)) = self.commands.next::<Request, Answer>() {
            let answer = self.carry_out(request).unwrap_or_else(|error| Answer::Refused(error.to_string()));
            reply.send(&answer);
        }
    }

    fn carry_out(&mut self, request: Request) -> Result<Answer, NodeError> {
        match request {
            Request::Show(what) => return self.show(what),
            Request::Add(item) => {
                let change = self.addition(item)?;
                self.change(change)?;
            }
            Request::Remove(item) => self.change(removal(item)?)?,
            Request::Reload => return self.reload().map(Answer::Reloaded),
            Request::Stop => {
                self.remove = true;
                self.stop.request();
            }
        }
        Ok(Answer::Done)
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

    fn change(&mut self, change: Change) -> Result<(), NodeError> {
        let after = self.settings.changed(change)?;
        self.become_settings(&self.config.clone(), after)
    }

    /// Reads the configuration again. Returns what is no longer there, for people.
    fn reload(&mut self) -> Result<Vec<String>, NodeError> {
        let config = (self.load)()?;
        if let Some(name) = config.fixed_difference(&self.config) {
            return Err(Fault { setting: name, why: "cannot change at run time; restart the daemon".to_owned() }.into());
        }
        let after = config.settings()?;
        let removed = removed(&self.settings, &after);
        self.become_settings(&config, after)?;
        self.config = config;
        info!(segments = self.settings.vnis.len(), ?removed, "configuration read again");
        Ok(removed)
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
                Upcall::Moved { vni, mac, to } => info!(%vni, mac = %MacAddress(mac), ?to, "moved"),
                Upcall::UnknownPeer { vni, peer } => warn!(%vni, %peer, "frames from a VTEP that is no peer"),
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

    /// Ends: what is pinned stays at work, unless it is to be removed.
    fn end(self) -> Result<(), NodeError> {
        if self.remove || self.config.pin_dir.is_none() { self.kernel.remove() } else { Ok(()) }
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

impl runner::Daemon for Daemon<'_> {
    fn watch(&self, poller: &Poller) -> Result<(), NodeError> {
        poller.add(&self.commands, COMMANDS)?;
        poller.add(&self.upcalls, UPCALLS)?;
        poller.add(&self.tunnels, TUNNELS)?;
        poller.add(self.hangup, HANGUP)?;
        self.stations.as_ref().map_or(Ok(()), |stations| poller.add(stations, ANSWERS))
    }

    fn ready(&mut self, token: u64) -> Result<(), NodeError> {
        match token {
            COMMANDS => self.answer_commands(),
            UPCALLS => self.take_upcalls()?,
            TUNNELS => self.tunnels.drain(),
            HANGUP => {
                self.hangup.take();
                if let Err(error) = self.reload() {
                    warn!(%error, "the configuration stays as it was");
                }
            }
            _ => self.read_answers(),
        }
        Ok(())
    }

    fn clock(&self) -> &Clock {
        &self.clock
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
}
