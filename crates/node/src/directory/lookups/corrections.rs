//! Reports of ToRs to corrections of stale agents (VL2 4.3.2): rare, so all look-up threads share one corrector.

use std::net::{SocketAddrV4, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use weft_control::directory::{CorrectionLimits, Corrector, CorrectorConfig, KeyRing, Report, Table};

use crate::directory::DirectoryConfig;

/// The corrector, its clock and its output.
pub(in crate::directory) struct Corrections {
    corrector: Mutex<Corrector>,
    start: Instant,
}

impl Corrections {
    /// For a server that is asked at `local`.
    pub(super) fn new(config: &DirectoryConfig, keys: &KeyRing, local: SocketAddrV4) -> Self {
        Self { corrector: Mutex::new(Corrector::new(told(config, keys, local))), start: Instant::now() }
    }

    /// Goes by other settings from now on.
    pub(super) fn reconfigure(&self, config: &DirectoryConfig, keys: &KeyRing, local: SocketAddrV4) {
        self.corrector().reconfigure(told(config, keys, local));
    }

    /// What became of the packets that were reported, by name.
    pub(in crate::directory) fn counts(&self) -> Vec<(&'static str, u64)> {
        self.corrector().counts().iter().collect()
    }

    /// Takes a report and tells the agents what follows from it.
    pub(super) fn report(&self, table: &Table, report: &Report, socket: &UdpSocket) {
        let now_ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut corrections = Vec::new();
        self.corrector().report(now_ns, table, report, &mut corrections);
        for correction in corrections {
            // A correction that is lost is asked for again by the next packet that goes astray.
            let _ = socket.send_to(&correction.datagram, correction.to);
        }
    }

    fn corrector(&self) -> MutexGuard<'_, Corrector> {
        self.corrector.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told(config: &DirectoryConfig, keys: &KeyRing, local: SocketAddrV4) -> CorrectorConfig {
    CorrectorConfig {
        local,
        agent_port: config.agent_port,
        tor_las: config.tor_set(),
        keys: keys.clone(),
        limits: CorrectionLimits::default(),
    }
}
