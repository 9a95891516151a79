//! `weft node agent`: the VL2 agent of one host (VL2 4.2.1).
//!
//! The data path in the kernel encapsulates frames to AAs that it knows. The others, and ARP requests for them, it
//! sends out of `redirect_interface`; the agent reads them at the far end of that veth pair, asks the directory, puts
//! the mapping into the data path and sends the frame out of the host's interface again. So not even the first packet
//! is lost. With a `pin_dir` the data path works on while the agent restarts, and the agent takes its map over.

mod broadcast;
mod config;
mod frame;
mod host;
pub mod status;

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::Path;

use rand_pcg::Pcg64;
use tracing::{debug, info, warn};
use weft_control::address::{Locator, Mapping};
use weft_control::agent::{Agent, Bounds, Config, Event, Input, Output, Timing};
use weft_control::tally::Tally;
use weft_control::{Machine, NS_PER_S, counted};
use weft_datapath::AGENT_MARK;
use weft_datapath::abi::{HOST_OUTCOMES_DROPPED, RECEIVE_OUTCOMES_DROPPED};
use weft_datapath::host::{self as datapath, HostConfig, HostDatapath, OwnAddresses};

use crate::error::NodeError;
use crate::key::{self, Derived};
use crate::poll::Poller;
use crate::runner::{self, Clock, DaemonKind, Load, Settings};
use crate::silence::Silence;
use crate::socket::Nothing;
use crate::stop::Stop;
use crate::sys::{self, PacketSocket, Received};
use crate::udp;
use crate::watch::{Metrics, Readiness};

pub use broadcast::BroadcastConfig;
pub use config::{AGENT_PORT, AgentConfig, RateLimitConfig, RateLimitedTraffic, SpreadConfig};
pub(crate) use host::remove_pair;
pub use status::AgentStatus;

const MISSES: u64 = 0;
const ANSWERS: u64 = 1;

/// Frames or datagrams that are read before the others have their turn.
const BURST: usize = 64;

counted! {
    /// What the daemon itself could not do.
    pub enum IoFault {
        /// A missed frame is neither ARP nor IPv4.
        NotForAgent = "not_for_agent",
        /// A missed frame is longer than any that a kernel makes.
        FrameTooLong = "frame_too_long",
        /// A released frame could not be sent.
        NotReleased = "not_released",
        /// The data path did not take a mapping.
        NotInstalled = "not_installed",
        /// A datagram could not be sent.
        NotSent = "not_sent",
        /// A packet was too long and no ICMP error may answer it, or it could not be sent.
        NotToldTooBig = "not_told_too_big",
    }
}

/// Runs an agent until it is told to stop. With a `pin_dir` the data path stays at work afterwards, unless a request to stop
/// came by the socket.
///
/// # Errors
/// Any [`NodeError`]: a setting that cannot work, an MTU that does not fit, no rights, no eBPF.
pub fn run(load: &Load<'_, AgentConfig>, stop: &Stop) -> Result<(), NodeError> {
    runner::run::<Daemon>(load, stop)
}

struct Daemon {
    config: AgentConfig,
    machine: Agent,
    datapath: HostDatapath,
    /// Frames without a mapping come in here; ICMP errors to the host go out here.
    misses: PacketSocket,
    /// Frames with a new mapping go out here.
    uplink: PacketSocket,
    answers: UdpSocket,
    io: Tally<IoFault>,
    silence: Silence,
    clock: Clock,
    /// Last, so that it goes when the data path no longer needs it.
    pair: host::MissPair,
}

impl Daemon {
    /// Takes over the mappings of an earlier run; refusals of that run are asked for anew.
    fn adopt(&mut self) -> Result<(), NodeError> {
        let entries = self.datapath.entries()?;
        let count = entries.len();
        for (aa, entry) in entries {
            if entry.refused {
                self.datapath.remove(aa)?;
            } else {
                let locator = Locator { tor_la: entry.tor_la, anycast_la: entry.anycast_la };
                self.handle(Input::Adopt { aa, mapping: Mapping { locator, version: entry.version } });
            }
        }
        if count > 0 {
            info!(count, "mappings of an earlier run taken over");
        }
        Ok(())
    }

    fn read_misses(&mut self) -> Result<(), NodeError> {
        for _ in 0..BURST {
            match self.misses.receive() {
                Ok(Received::Frame(frame)) => match frame::look(&frame) {
                    Ok(frame::Missed { aa, packet_bytes }) => {
                        self.handle(Input::Miss { aa, packet_bytes, held: frame })
                    }
                    Err(_) => self.io.add(IoFault::NotForAgent),
                },
                Ok(Received::TooLong) => self.io.add(IoFault::FrameTooLong),
                Ok(Received::Empty) => break,
                Err(error) => {
                    let what = format!("reading frames at `{}`; is it still there and up?", self.config.miss_interface);
                    return Err(NodeError::system(what)(error));
                }
            }
        }
        Ok(())
    }

    fn read_answers(&mut self) -> Result<(), NodeError> {
        let mut buffer = [0; 2048];
        for _ in 0..BURST {
            match self.answers.recv_from(&mut buffer) {
                Ok((length, SocketAddr::V4(from))) => {
                    self.handle(Input::Datagram { from, bytes: &buffer[..length] });
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // An ICMP error about an earlier question, or a signal.
                Err(error) => debug!(%error, "reading answers"),
            }
        }
        Ok(())
    }

    fn handle(&mut self, input: Input<'_>) {
        let mut outputs = Vec::new();
        self.machine.handle(self.clock.now_ns(), input, &mut outputs);
        for output in outputs {
            if let Err(fault) = self.carry_out(output) {
                self.io.add(fault);
            }
        }
        let heard = self.machine.counters().events.get(Event::Heard);
        if let Some(notice) = self.silence.look(self.clock.now_ns(), heard) {
            notice.log(&self.config.directory_servers, self.config.la, &self.key_name());
        }
    }

    /// The agent's key, for people.
    fn key_name(&self) -> String {
        let file = self.config.key_file.as_ref().map_or("no key".into(), |file| file.display().to_string());
        format!("{file} (service {})", self.config.service)
    }

    fn carry_out(&mut self, output: Output) -> Result<(), IoFault> {
        match output {
            Output::Send { to, datagram } => {
                self.silence.asked(self.clock.now_ns());
                self.answers.send_to(&datagram, to).map_err(|_| IoFault::NotSent)?;
            }
            Output::Install { aa, mapping } => {
                let Locator { tor_la, anycast_la } = mapping.locator;
                debug!(%aa, %tor_la, version = mapping.version, "mapping");
                self.set(aa, &datapath::Mapping { tor_la, anycast_la, refused: false, version: mapping.version })?;
            }
            Output::Refuse { aa } => {
                let nowhere = Ipv4Addr::UNSPECIFIED;
                self.set(aa, &datapath::Mapping { tor_la: nowhere, anycast_la: nowhere, refused: true, version: 0 })?;
            }
            Output::Remove { aa } => {
                self.datapath.remove(aa).map_err(|_| IoFault::NotInstalled)?;
            }
            Output::Release { held, .. } => self.uplink.send(&held).map_err(|_| IoFault::NotReleased)?,
            Output::Drop { aa, reason } => debug!(%aa, ?reason, "frame dropped"),
            Output::IcmpTooBig { held: frame, mtu } => {
                let answer =
                    frame::too_big_answer(&frame, self.pair.near_mac, mtu).map_err(|_| IoFault::NotToldTooBig)?;
                self.misses.send(&answer).map_err(|_| IoFault::NotToldTooBig)?;
            }
        }
        Ok(())
    }

    fn set(&self, aa: Ipv4Addr, mapping: &datapath::Mapping) -> Result<(), IoFault> {
        self.datapath.set(aa, mapping).map_err(|error| {
            warn!(%error, "data path");
            IoFault::NotInstalled
        })
    }
}

impl Settings for AgentConfig {
    const LIVE: &'static [&'static str] = &[
        "directory_servers",
        "key_file",
        "key_id",
        "mapping_lifetime_s",
        "public_la",
        "rack_direct",
        "rate_limit",
        "spread",
        "broadcast",
    ];

    fn check(&self) -> Result<(), NodeError> {
        self.checked().map(drop)
    }

    fn places(&self) -> (&Path, Option<&Path>) {
        (&self.socket, self.pin_dir.as_deref())
    }

    fn http_listen(&self) -> Option<SocketAddrV4> {
        self.http_listen
    }
}

impl runner::Daemon for Daemon {
    const KIND: DaemonKind = DaemonKind::Agent;

    type Settings = AgentConfig;
    type What = ();
    type Shown = AgentStatus;
    type Item = Nothing;

    fn start(config: &AgentConfig) -> Result<Self, NodeError> {
        let checked = config.checked()?;
        host::fit_mtu(config, checked.aa_block)?;
        let answers = udp::bind(config.la, config.port)?;
        let machine = machine(config, &answers)?;
        let seed = sys::random_u128().map_err(NodeError::system("reading random bytes"))?;
        let machine = Agent::new(machine, Pcg64::new(seed, u128::from(u32::from(config.aa))));
        let pair = host::miss_pair(config)?;
        let miss = config.miss_interface.as_str();
        let misses = PacketSocket::receiving(miss)
            .map_err(NodeError::system(format!("reading frames at `{miss}` (needs root or CAP_NET_RAW)")))?;
        let uplink = PacketSocket::sending(&config.interface, AGENT_MARK)
            .map_err(NodeError::system(format!("sending frames on `{}`", config.interface)))?;
        let datapath = HostDatapath::attach(&host_config(config)?)?;
        let (config, io, silence, clock) = (config.clone(), Tally::default(), Silence::default(), Clock::start());
        let mut daemon = Self { config, machine, datapath, misses, uplink, answers, io, silence, clock, pair };
        daemon.adopt()?;
        if daemon.config.pin_dir.is_some() {
            daemon.pair.keep();
        }
        Ok(daemon)
    }

    fn ready_line(&self) -> String {
        let AgentConfig { aa, la, interface, directory_servers, .. } = &self.config;
        let servers = runner::listed(directory_servers);
        format!("agent ready: AA {aa} on {interface}, asks {servers} from LA {la}")
    }

    fn watch(&self, poller: &Poller) -> Result<(), NodeError> {
        poller.add(&self.misses, MISSES)?;
        poller.add(&self.answers, ANSWERS)
    }

    fn ready(&mut self, token: u64) -> Result<(), NodeError> {
        if token == MISSES { self.read_misses() } else { self.read_answers() }
    }

    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.machine.next_deadline_ns()
    }

    fn deadline(&mut self) -> Result<(), NodeError> {
        self.handle(Input::Deadline);
        Ok(())
    }

    fn show(&self, (): ()) -> Result<AgentStatus, NodeError> {
        let datapath = [self.datapath.counters()?, self.datapath.spread_counters()?, self.datapath.receive_counters()?];
        Ok(status::of(&self.config, &self.machine, &self.io, datapath))
    }

    fn metrics(&self, to: &mut Metrics) -> Result<(), NodeError> {
        let (summary, counters) = (self.machine.summary(), self.machine.counters());
        to.gauge("mappings", "AAs whose place is known", summary.mappings);
        to.gauge("resolving", "AAs that a server is asked for now", summary.resolving);
        to.gauge("negative", "AAs that a server said do not exist or may not be reached", summary.negative);
        to.gauge("waiting_frames", "Frames that wait for an answer", summary.waiting_frames);
        to.gauge("revision", "Highest revision of the directory that was heard of", summary.revision);
        to.gauge("directory_answers", "0 while servers are asked and none answers", !self.silence.is_told());
        to.tally("events", "What the agent did", "event", counters.events.iter());
        to.tally("held_dropped_frames", "Frames given up while they waited", "reason", counters.dropped.iter());
        to.tally("ignored_datagrams", "Datagrams not believed", "reason", counters.ignored.iter());
        to.tally("faults", "What the daemon itself could not do", "fault", self.io.iter());
        to.outcomes(["frames", "dropped_frames"], &HOST_OUTCOMES_DROPPED, &[([], self.datapath.counters()?)]);
        let received = self.datapath.receive_counters()?;
        let names = ["received_frames", "received_dropped_frames"];
        to.outcomes(names, &RECEIVE_OUTCOMES_DROPPED, &[([], received)]);
        let spread = self.datapath.spread_counters()?;
        to.tally("spread_segments", "Segments of flows where a rule moves flows under way", "outcome", spread);
        Ok(())
    }

    fn readiness(&self) -> Readiness {
        self.silence.readiness()
    }

    fn pair(config: &AgentConfig) -> Option<&str> {
        Some(&config.redirect_interface)
    }

    fn reload(&mut self, config: &AgentConfig) -> Result<Vec<String>, NodeError> {
        let machine = machine(config, &self.answers)?;
        self.datapath.replace(&host_config(config)?)?;
        self.machine.reconfigure(machine);
        self.config = config.clone();
        Ok(Vec::new())
    }

    fn end(mut self, remove: bool) -> Result<(), NodeError> {
        if remove {
            self.datapath.detach()?;
            self.pair.give_up();
        }
        Ok(())
    }
}

fn host_config(config: &AgentConfig) -> Result<HostConfig, NodeError> {
    let checked = config.checked()?;
    Ok(HostConfig {
        interface: config.interface.clone(),
        miss_interface: config.redirect_interface.clone(),
        aa_block: checked.aa_block,
        gateway_mac: checked.gateway_mac,
        underlay_mtu: config.underlay_mtu,
        own_tor_la: config.own_tor_la,
        rack_direct: config.rack_direct,
        rate_limit: config.rate_limit.as_ref().map(config::RateLimitConfig::limit),
        map_entries: config.map_entries,
        spread: SpreadConfig::rule(config.spread),
        broadcast: checked.broadcast.map(|broadcast| host::fit_broadcast(config, broadcast)).transpose()?,
        own: Some(OwnAddresses { aa: config.aa, la: config.la, public_la: config.public_la }),
        pin_dir: config.pin_dir.clone(),
    })
}

fn machine(config: &AgentConfig, answers: &UdpSocket) -> Result<Config, NodeError> {
    let whose = Derived { la: Some(config.la), service: config.service };
    Ok(Config {
        aa: config.aa,
        aa_block: config.checked()?.aa_block,
        local: udp::local(answers)?,
        servers: config.directory_servers.clone(),
        key: key::read_or_open(config.key_file.as_deref(), whose)?,
        key_id: config.key_id,
        service: config.service,
        path_mtu: u16::try_from(config.underlay_mtu - host::OUTER_BYTES).unwrap_or(u16::MAX),
        timing: Timing { lifetime_ns: u64::from(config.mapping_lifetime_s) * NS_PER_S, ..Timing::default() },
        bounds: Bounds { entries_max: config.map_entries as usize, ..Bounds::default() },
    })
}
