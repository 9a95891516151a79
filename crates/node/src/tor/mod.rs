//! `weft node tor`: tells the directory which packets came to a ToR for AAs that are not behind it (VL2 4.3.2).
//!
//! The switch's data path drops such packets, counts them as `no_such_host` and samples their ends; this daemon reads the
//! samples and sends reports, and the directory corrects the agents that use stale mappings. When, how often and to whom
//! is decided in [`weft_control::tor`]. Without the daemon nothing but this is missing.

mod config;
mod status;

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};

use rand_pcg::Pcg64;
use tracing::info;
use weft_control::directory::Stale;
use weft_control::directory::policy::COMMON_SERVICE;
use weft_control::tally::Tally;
use weft_control::tor::{Config, Input, Limits, Output, Reporter};
use weft_control::{Machine, counted};
use weft_datapath::stale::StaleSamples;
use weft_datapath::switch::SwitchMaps;

use crate::error::NodeError;
use crate::key::{self, Derived};
use crate::poll::Poller;
use crate::runner::{self, Clock};
use crate::stop::Stop;
use crate::unix::StatusSocket;
use crate::{READY_LOG, agent, sys};

pub use config::{REPORTER_PORT, TorConfig};
pub use status::{TorStatus, read};

const SAMPLES: u64 = 0;
const STATUS: u64 = 1;

counted! {
    /// What the daemon could not do.
    pub enum IoFault {
        /// A report could not be sent.
        NotSent = "not_sent",
    }
}

/// Runs a reporter until it is told to stop.
///
/// # Errors
/// Any [`NodeError`]: a setting that cannot work, no data path pinned, no rights.
pub fn run(config: &TorConfig, stop: &Stop) -> Result<(), NodeError> {
    let mut daemon = Daemon::start(config)?;
    let TorConfig { la, directory_servers, pin_dir, .. } = config;
    let pins = pin_dir.display();
    info!(target: READY_LOG, "ToR reporter ready: reports from LA {la} to {directory_servers:?} what {pins} drops");
    runner::serve(&mut daemon, stop)
}

struct Daemon<'a> {
    config: &'a TorConfig,
    machine: Reporter,
    samples: StaleSamples,
    switch: SwitchMaps,
    socket: UdpSocket,
    status: Option<StatusSocket>,
    io: Tally<IoFault>,
    clock: Clock,
}

impl<'a> Daemon<'a> {
    fn start(config: &'a TorConfig) -> Result<Self, NodeError> {
        config.check()?;
        let key =
            key::read_or_open(config.key_file.as_deref(), Derived { la: Some(config.la), service: COMMON_SERVICE })?;
        let samples = StaleSamples::open_pinned(&config.pin_dir)?;
        let switch = SwitchMaps::open_pinned(&config.pin_dir)?;
        let socket = agent::bind_udp(config.la, config.port)?;
        let local = match socket.local_addr().map_err(NodeError::system("reading the UDP socket's address"))? {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(_) => SocketAddrV4::new(config.la, config.port),
        };
        let status = config.status_socket.as_deref().map(StatusSocket::bind).transpose()?;
        let servers = config.directory_servers.clone();
        let reporter = Config { local, servers, key, key_id: config.key_id, limits: Limits::default() };
        let seed = sys::random_u128().map_err(NodeError::system("reading random bytes"))?;
        let machine = Reporter::new(reporter, Pcg64::new(seed, u128::from(u32::from(config.la))));
        let (io, clock) = (Tally::default(), Clock::start());
        Ok(Self { config, machine, samples, switch, socket, status, io, clock })
    }

    fn read_samples(&mut self) -> Result<(), NodeError> {
        for ends in self.samples.take()? {
            self.handle(Input::Sample(Stale { aa: ends.aa, source_aa: ends.source_aa }));
        }
        Ok(())
    }

    fn answer_status(&self) {
        if let Some(socket) = &self.status {
            socket.answer(|| {
                let counters = self.switch.counters().unwrap_or_default();
                status::of(self.config, self.machine.counts(), &self.io, counters)
            });
        }
    }

    fn handle(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.machine.handle(self.clock.now_ns(), input, &mut outputs);
        for Output::Send { to, datagram } in outputs {
            if self.socket.send_to(&datagram, to).is_err() {
                self.io.add(IoFault::NotSent);
            }
        }
    }
}

impl runner::Daemon for Daemon<'_> {
    fn watch(&self, poller: &Poller) -> Result<(), NodeError> {
        poller.add(&self.samples, SAMPLES)?;
        self.status.as_ref().map_or(Ok(()), |status| poller.add(status, STATUS))
    }

    fn ready(&mut self, token: u64) -> Result<(), NodeError> {
        match token {
            SAMPLES => self.read_samples()?,
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
