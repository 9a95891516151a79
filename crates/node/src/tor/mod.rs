//! `weft node tor`: tells the directory which packets came to a ToR for AAs that are not behind it (VL2 4.3.2).
//!
//! The switch's data path drops such packets, counts them as `no_such_host` and samples their ends; this daemon reads the
//! samples and sends reports, and the directory corrects the agents that use stale mappings. When, how often and to whom
//! is decided in [`weft_control::tor`]. Without the daemon nothing but this is missing.

mod config;
mod status;

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Instant;

use rand_pcg::Pcg64;
use tracing::info;
use weft_control::directory::Stale;
use weft_control::tally::Tally;
use weft_control::tor::{Config, Input, Limits, Output, Reporter};
use weft_control::{Machine, counted};
use weft_datapath::stale::StaleSamples;
use weft_datapath::switch::SwitchMaps;

use crate::error::NodeError;
use crate::poll::Poller;
use crate::stop::Stop;
use crate::unix::StatusSocket;
use crate::{agent, key, sys};

pub use config::{REPORTER_PORT, TorConfig};
pub use status::{TorStatus, read};

const STOP: u64 = 0;
const SAMPLES: u64 = 1;
const STATUS: u64 = 2;

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
    info!(la = %config.la, "ToR reporter ready");
    daemon.serve(stop)
}

struct Daemon<'a> {
    config: &'a TorConfig,
    machine: Reporter,
    samples: StaleSamples,
    switch: SwitchMaps,
    socket: UdpSocket,
    status: Option<StatusSocket>,
    io: Tally<IoFault>,
    began: Instant,
}

impl<'a> Daemon<'a> {
    fn start(config: &'a TorConfig) -> Result<Self, NodeError> {
        config.check()?;
        let key = key::read_or_open(config.key_file.as_deref())?;
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
        let (io, began) = (Tally::default(), Instant::now());
        Ok(Self { config, machine, samples, switch, socket, status, io, began })
    }

    fn serve(&mut self, stop: &Stop) -> Result<(), NodeError> {
        let poller = Poller::new()?;
        poller.add(stop, STOP)?;
        poller.add(&self.samples, SAMPLES)?;
        if let Some(status) = &self.status {
            poller.add(status, STATUS)?;
        }
        loop {
            let wait_ns = self.machine.next_deadline_ns().map(|at_ns| at_ns.saturating_sub(self.now_ns()));
            for token in poller.wait(wait_ns)? {
                match token {
                    SAMPLES => self.read_samples()?,
                    STATUS => self.answer_status(),
                    _ => return Ok(()),
                }
            }
            if self.machine.next_deadline_ns().is_some_and(|at_ns| at_ns <= self.now_ns()) {
                self.handle(Input::Deadline);
            }
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
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
        self.machine.handle(self.now_ns(), input, &mut outputs);
        for Output::Send { to, datagram } in outputs {
            if self.socket.send_to(&datagram, to).is_err() {
                self.io.add(IoFault::NotSent);
            }
        }
    }
}
