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

use rand_pcg::Pcg64;
use tracing::{debug, info, warn};
use weft_control::address::{Locator, Mapping};
use weft_control::agent::{Agent, Bounds, Config, Event, Input, Output, Timing};
use weft_control::tally::Tally;
use weft_control::{Machine, NS_PER_S, counted};
use weft_datapath::AGENT_MARK;
use weft_datapath::host::{self as datapath, HostConfig, HostDatapath, OwnAddresses};

use crate::error::NodeError;
use crate::key::{self, Derived};
use crate::poll::Poller;
use crate::runner::{self, Clock};
use crate::silence::Silence;
use crate::stop::Stop;
use crate::sys::{self, PacketSocket, Received};
use crate::unix::StatusSocket;
use crate::{READY_LOG, run_folder};

pub use broadcast::BroadcastConfig;
pub use config::{AGENT_PORT, AgentConfig, RateLimitConfig, RateLimitedTraffic, SpreadConfig};
pub use status::AgentStatus;

const MISSES: u64 = 0;
const ANSWERS: u64 = 1;
const STATUS: u64 = 2;

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

/// Runs an agent until it is told to stop. With a `pin_dir` the data path stays at work afterwards.
///
/// # Errors
/// Any [`NodeError`]: a setting that cannot work, an MTU that does not fit, no rights, no eBPF.
pub fn run(config: &AgentConfig, stop: &Stop) -> Result<(), NodeError> {
    let mut daemon = Daemon::start(config)?;
    let AgentConfig { aa, la, interface, directory_servers, .. } = config;
    info!(target: READY_LOG, "agent ready: AA {aa} on {interface}, asks {directory_servers:?} from LA {la}");
    runner::serve(&mut daemon, stop)
}

struct Daemon<'a> {
    config: &'a AgentConfig,
    machine: Agent,
    datapath: HostDatapath,
    /// Frames without a mapping come in here; ICMP errors to the host go out here.
    misses: PacketSocket,
    /// Frames with a new mapping go out here.
    uplink: PacketSocket,
    answers: UdpSocket,
    status: Option<StatusSocket>,
    io: Tally<IoFault>,
    silence: Silence,
    clock: Clock,
    /// Last, so that it goes when the data path no longer needs it.
    pair: host::MissPair,
}

impl<'a> Daemon<'a> {
    fn start(config: &'a AgentConfig) -> Result<Self, NodeError> {
        let checked = config.check()?;
        let key =
            key::read_or_open(config.key_file.as_deref(), Derived { la: Some(config.la), service: config.service })?;
        host::fit_mtu(config, checked.aa_block)?;
        let answers = bind_udp(config.la, config.port)?;
        let status = config.status_socket.as_deref().map(StatusSocket::bind).transpose()?;
        let pair = host::miss_pair(config)?;
        let miss = config.miss_interface.as_str();
        let misses = PacketSocket::receiving(miss)
            .map_err(NodeError::system(format!("reading frames at `{miss}` (needs root or CAP_NET_RAW)")))?;
        let uplink = PacketSocket::sending(&config.interface, AGENT_MARK)
            .map_err(NodeError::system(format!("sending frames on `{}`", config.interface)))?;
        let datapath = attach(config, &checked)?;
        let machine = machine(config, &checked, key, &answers)?;
        let (io, silence, clock) = (Tally::default(), Silence::default(), Clock::start());
        let mut daemon = Self { config, machine, datapath, misses, uplink, answers, status, io, silence, clock, pair };
        daemon.adopt()?;
        if config.pin_dir.is_some() {
            daemon.pair.keep();
        }
        Ok(daemon)
    }

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

    fn answer_status(&self) {
        if let Some(socket) = &self.status {
            socket.answer(|| {
                let counters = self.datapath.counters().unwrap_or_default();
                let spread = self.datapath.spread_counters().unwrap_or_default();
                let received = self.datapath.receive_counters().unwrap_or_default();
                status::of(self.config, &self.machine, &self.io, [counters, spread, received])
            });
        }
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

impl runner::Daemon for Daemon<'_> {
    fn watch(&self, poller: &Poller) -> Result<(), NodeError> {
        poller.add(&self.misses, MISSES)?;
        poller.add(&self.answers, ANSWERS)?;
        self.status.as_ref().map_or(Ok(()), |status| poller.add(status, STATUS))
    }

    fn ready(&mut self, token: u64) -> Result<(), NodeError> {
        match token {
            MISSES => self.read_misses()?,
            ANSWERS => self.read_answers()?,
            _ => self.answer_status(),
        }
        Ok(())
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.machine.next_deadline_ns()
    }

    fn deadline(&mut self) -> Result<(), NodeError> {
        self.handle(Input::Deadline);
        Ok(())
    }
}

/// A UDP socket for directory datagrams on this host's LA.
pub(crate) fn bind_udp(la: Ipv4Addr, port: u16) -> Result<UdpSocket, NodeError> {
    let address = SocketAddrV4::new(la, port);
    let socket = UdpSocket::bind(address).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => NodeError::AddressInUse { address },
        ErrorKind::AddrNotAvailable => {
            NodeError::config("la", format!("{la} is not an address of this host; add it first"))
        }
        _ => NodeError::system(format!("binding UDP {address}"))(error),
    })?;
    crate::directory::set_up_socket(&socket).map_err(NodeError::system("setting up the UDP socket"))?;
    Ok(socket)
}

fn attach(config: &AgentConfig, checked: &config::Checked) -> Result<HostDatapath, NodeError> {
    run_folder::for_pins(config.pin_dir.as_deref())?;
    let host = HostConfig {
        interface: config.interface.clone(),
        miss_interface: config.redirect_interface.clone(),
        aa_block: (checked.aa_block.network(), checked.aa_block.length()),
        gateway_mac: checked.gateway_mac,
        underlay_mtu: config.underlay_mtu,
        own_tor_la: config.own_tor_la,
        rack_direct: config.rack_direct,
        rate_limit: config.rate_limit.as_ref().map(config::RateLimitConfig::limit),
        map_entries: config.map_entries,
        spread: SpreadConfig::rule(config.spread),
        broadcast: checked.broadcast.clone().map(|broadcast| host::fit_broadcast(config, broadcast)).transpose()?,
        own: Some(OwnAddresses { aa: config.aa, la: config.la, public_la: config.public_la }),
        pin_dir: config.pin_dir.clone(),
    };
    Ok(HostDatapath::attach(&host)?)
}

fn machine(
    config: &AgentConfig,
    checked: &config::Checked,
    key: weft_wire::directory::Key,
    answers: &UdpSocket,
) -> Result<Agent, NodeError> {
    let local = match answers.local_addr().map_err(NodeError::system("reading the UDP socket's address"))? {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => SocketAddrV4::new(config.la, config.port),
    };
    let path_mtu = u16::try_from(config.underlay_mtu - host::OUTER_BYTES).unwrap_or(u16::MAX);
    let machine = Config {
        aa: config.aa,
        aa_block: checked.aa_block,
        local,
        servers: config.directory_servers.clone(),
        key,
        key_id: config.key_id,
        service: config.service,
        path_mtu,
        timing: Timing { lifetime_ns: u64::from(config.mapping_lifetime_s) * NS_PER_S, ..Timing::default() },
        bounds: Bounds { entries_max: config.map_entries as usize, ..Bounds::default() },
    };
    let seed = sys::random_u128().map_err(NodeError::system("reading random bytes"))?;
    Ok(Agent::new(machine, Pcg64::new(seed, u128::from(u32::from(config.aa)))))
}
