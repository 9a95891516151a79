//! `weft node vtep` in a server of a bed: the daemon as it is deployed, configured by a file.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use weft_node::settings_text;
use weft_node::vtep::protocol::{Request, What};
use weft_node::vtep::{VtepConfig, ask};

use crate::error::LabError;
use crate::home::namespace_path;
use crate::process::{Daemon, ProcessId, kill_all, log_tail};
use crate::tester::bed::file_of;
use crate::tester::usage::pss_bytes;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A VTEP that runs until this is dropped. Its files go with the bed's namespaces.
#[derive(Debug)]
pub(super) struct VtepDaemon {
    process: ProcessId,
}

impl VtepDaemon {
    /// Starts it in a namespace and waits until it answers. The socket is chosen here.
    pub(super) fn start(weft_binary: &Path, namespace: &str, config: VtepConfig) -> Result<Self, LabError> {
        let file = |kind: &str| file_of(namespace, &format!("vtep.{kind}"));
        let (text, log, socket) = (file("toml")?, file("log")?, file("sock")?);
        let config = VtepConfig { socket: socket.clone(), ..config };
        std::fs::write(&text, settings_text(&config)).map_err(LabError::io(format!("write {}", text.display())))?;
        let mut command = Command::new(weft_binary);
        command.args(["node", "vtep", "--config"]).arg(&text);
        let process = Daemon { namespace: Some(&namespace_path(namespace)), log: &log, record: None, nice: 0 }
            .spawn(&mut command)?;
        let started = Self { process };
        started.wait(&socket).map_err(|what| LabError::Daemon {
            daemon: "vtep",
            node: namespace.to_owned(),
            what: what.to_owned(),
            log: log_tail(&log),
        })?;
        Ok(started)
    }

    fn wait(&self, socket: &Path) -> Result<(), &'static str> {
        let deadline = Instant::now() + START_TIMEOUT;
        while ask(socket, &Request::Show(What::Peers)).is_err() {
            if !self.process.is_alive() {
                return Err("ended at its start");
            }
            if Instant::now() > deadline {
                return Err("was not ready in 60 s");
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Its own pages and its share of those that it shares, bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        pss_bytes(self.process.pid).unwrap_or(0)
    }
}

impl Drop for VtepDaemon {
    fn drop(&mut self) {
        // Without a pin directory its programs go with it.
        kill_all(&[self.process]);
    }
}
