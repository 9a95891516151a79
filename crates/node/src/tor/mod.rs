//! `weft node tor`: tells the directory which packets came to a ToR for AAs that are not behind it (VL2 4.3.2).
//!
//! The switch's data path drops such packets, counts them as `no_such_host` and samples their ends; this daemon reads the
//! samples and sends reports, and the directory corrects the agents that use stale mappings. When, how often and to whom
//! is decided in [`weft_control::tor`]. Without the daemon nothing but this is missing.

mod config;
mod status;

use std::net::UdpSocket;

use rand_pcg::Pcg64;
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
use crate::runner::{self, Clock, DaemonKind, Load};
use crate::socket::Nothing;
use crate::stop::Stop;
use crate::watch::Metrics;
use crate::{sys, udp};

pub use config::{REPORTER_PORT, TorConfig};
pub use status::{TorStatus, read};

const SAMPLES: u64 = 0;

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
pub fn run(load: &Load<'_, TorConfig>, stop: &Stop) -> Result<(), NodeError> {
    runner::run::<Daemon>(load, stop)
}

struct Daemon {
    config: TorConfig,
    machine: Reporter,
    samples: StaleSamples,
    switch: SwitchMaps,
    socket: UdpSocket,
    io: Tally<IoFault>,
    clock: Clock,
}

impl Daemon {
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

fn machine(config: &TorConfig, socket: &UdpSocket) -> Result<Config, NodeError> {
    let whose = Derived { la: Some(config.la), service: COMMON_SERVICE };
    let key = key::read_or_open(config.key_file.as_deref(), whose)?;
    let (local, servers) = (udp::local(socket)?, config.directory_servers.clone());
    Ok(Config { local, servers, key, key_id: config.key_id, limits: Limits::default() })
}

impl runner::Daemon for Daemon {
    const KIND: DaemonKind = DaemonKind::Tor;

    type Settings = TorConfig;
    type What = ();
    type Shown = TorStatus;
    type Item = Nothing;

    fn start(config: &TorConfig) -> Result<Self, NodeError> {
        let samples = StaleSamples::open_pinned(&config.pin_dir)?;
        let switch = SwitchMaps::open_pinned(&config.pin_dir)?;
        let socket = udp::bind(config.la, config.port)?;
        let seed = sys::random_u128().map_err(NodeError::system("reading random bytes"))?;
        let rng = Pcg64::new(seed, u128::from(u32::from(config.la)));
        let machine = Reporter::new(machine(config, &socket)?, rng);
        let (config, io, clock) = (config.clone(), Tally::default(), Clock::start());
        Ok(Self { config, machine, samples, switch, socket, io, clock })
    }

    fn ready_line(&self) -> String {
        let TorConfig { la, directory_servers, pin_dir, .. } = &self.config;
        let servers = runner::listed(directory_servers);
        format!("ToR reporter ready: reports from LA {la} to {servers} what {} drops", pin_dir.display())
    }

    fn watch(&self, poller: &Poller) -> Result<(), NodeError> {
        poller.add(&self.samples, SAMPLES)
    }

    fn ready(&mut self, _: u64) -> Result<(), NodeError> {
        for ends in self.samples.take()? {
            self.handle(Input::Sample(Stale { aa: ends.aa, source_aa: ends.source_aa }));
        }
        Ok(())
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

    fn show(&self, (): ()) -> Result<TorStatus, NodeError> {
        Ok(status::of(&self.config, self.machine.counts(), &self.io, self.switch.counters()?))
    }

    /// Without the data path's counters: they are the switch's.
    fn metrics(&self, to: &mut Metrics) -> Result<(), NodeError> {
        to.tally(
            "events",
            "What became of samples of packets for AAs that are not here",
            "event",
            self.machine.counts().iter(),
        );
        to.tally("faults", "What the daemon itself could not do", "fault", self.io.iter());
        Ok(())
    }

    fn reload(&mut self, config: &TorConfig) -> Result<Vec<String>, NodeError> {
        self.machine.reconfigure(machine(config, &self.socket)?);
        self.config = config.clone();
        Ok(Vec::new())
    }

    /// The data path is the switch's.
    fn end(self, _: bool) -> Result<(), NodeError> {
        Ok(())
    }
}
