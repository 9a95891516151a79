//! `weft node switch`: VL2's data path on a switch that runs Linux (VL2 4.2). An Intermediate takes the anycast header off and
//! sends on to the ToR, a ToR takes its own off and delivers to its server.
//!
//! Routes and ECMP are the kernel's, by whatever routing daemon there is. With a `pin_dir` the data path stays at work when the
//! daemon ends, and `weft node tor` reports from it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weft_datapath::abi::SWITCH_OUTCOMES_DROPPED;
use weft_datapath::switch::{self, SwitchDatapath};

use crate::error::NodeError;
use crate::run_folder;
use crate::runner::{self, DaemonKind, Load, Settings};
use crate::socket::{self, Nothing, named};
use crate::stop::Stop;
use crate::watch::Metrics;

/// Which header the switch takes off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// The first one, addressed to an anycast LA.
    Intermediate,
    /// The second one, addressed to the ToR.
    Tor,
}

/// The configuration file of `weft node switch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// Which header it takes off.
    pub tier: Tier,
    /// Interfaces towards other switches, at least one.
    pub ports: Vec<String>,
    /// A ToR's interfaces towards servers, at least one; none at an Intermediate.
    #[serde(default)]
    pub host_ports: Vec<String>,
    /// LAs that it takes the header off for: the anycast LAs of an Intermediate, a ToR's own.
    pub own_las: Vec<Ipv4Addr>,
    /// Directory in a bpffs where the data path is pinned, so that it works on while nobody runs.
    #[serde(default)]
    pub pin_dir: Option<PathBuf>,
    /// Path of the switch's control socket.
    #[serde(default = "control_socket")]
    pub socket: PathBuf,
    /// Address and TCP port for `/metrics`, `/healthz` and `/readyz`: HTTP that everybody who reaches it may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_listen: Option<SocketAddrV4>,
}

fn control_socket() -> PathBuf {
    DaemonKind::Switch.socket()
}

impl SwitchConfig {
    /// A configuration to start from.
    pub fn example() -> Self {
        Self {
            tier: Tier::Tor,
            ports: vec!["swp1".to_owned(), "swp2".to_owned()],
            host_ports: vec!["swp11".to_owned(), "swp12".to_owned()],
            own_las: vec![Ipv4Addr::new(10, 1, 0, 1)],
            pin_dir: Some("/run/weft/bpf/switch".into()),
            socket: control_socket(),
            http_listen: None,
        }
    }
}

impl Settings for SwitchConfig {
    const LIVE: &'static [&'static str] = &["own_las"];

    fn check(&self) -> Result<(), NodeError> {
        if self.ports.is_empty() {
            return Err(NodeError::config("ports", "is empty; name the interfaces towards other switches"));
        }
        if self.own_las.is_empty() {
            return Err(NodeError::config("own_las", "is empty; nothing would be taken off"));
        }
        match (self.tier, self.host_ports.is_empty()) {
            (Tier::Tor, true) => Err(NodeError::config("host_ports", "is empty; a ToR delivers by these only")),
            (Tier::Intermediate, false) => {
                Err(NodeError::config("host_ports", "has no effect at an Intermediate; remove it"))
            }
            _ => Ok(()),
        }
    }

    fn places(&self) -> (&Path, Option<&Path>) {
        (&self.socket, self.pin_dir.as_deref())
    }

    fn http_listen(&self) -> Option<SocketAddrV4> {
        self.http_listen
    }
}

/// A switch's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchStatus {
    pub schema_version: u32,
    /// Which header it takes off.
    pub tier: Tier,
    /// LAs that it takes the header off for.
    pub own_las: Vec<Ipv4Addr>,
    /// What became of packets, by outcome ([`weft_datapath::abi::SWITCH_OUTCOMES`]), every reason of a drop among them.
    pub datapath: BTreeMap<String, u64>,
}

/// Reads the state of the switch that listens on `path`.
///
/// # Errors
/// As for [`socket::ask`].
pub fn read(path: impl AsRef<Path>) -> Result<SwitchStatus, NodeError> {
    socket::show(DaemonKind::Switch, path.as_ref(), ())
}

struct Daemon {
    config: SwitchConfig,
    datapath: SwitchDatapath,
}

impl runner::Daemon for Daemon {
    const KIND: DaemonKind = DaemonKind::Switch;

    type Settings = SwitchConfig;
    type What = ();
    type Shown = SwitchStatus;
    type Item = Nothing;

    /// Takes over what is pinned, or loads it, and puts it on all ports.
    fn start(config: &SwitchConfig) -> Result<Self, NodeError> {
        let tier = match config.tier {
            Tier::Intermediate => switch::Tier::Intermediate,
            Tier::Tor => switch::Tier::Tor,
        };
        let SwitchConfig { ports, host_ports, own_las, pin_dir, .. } = config.clone();
        let datapath = SwitchDatapath::attach(&switch::SwitchConfig { ports, host_ports, own_las, tier, pin_dir })?;
        Ok(Self { config: config.clone(), datapath })
    }

    fn ready_line(&self) -> String {
        let SwitchConfig { tier, ports, host_ports, own_las, .. } = &self.config;
        let [las, ports, hosts] = [runner::listed(own_las), runner::listed(ports), runner::listed(host_ports)];
        let servers = if hosts.is_empty() { String::new() } else { format!(", servers at {hosts}") };
        format!("{tier:?} ready: takes headers to {las} off at {ports}{servers}")
    }

    fn show(&self, (): ()) -> Result<SwitchStatus, NodeError> {
        let SwitchConfig { tier, own_las, .. } = self.config.clone();
        Ok(SwitchStatus { schema_version: 1, tier, own_las, datapath: named(self.datapath.counters()?) })
    }

    fn metrics(&self, to: &mut Metrics) -> Result<(), NodeError> {
        let tier = match self.config.tier {
            Tier::Intermediate => "intermediate",
            Tier::Tor => "tor",
        };
        to.gauges("own_las", "LAs that the header is taken off for")
            .add([("tier", tier.to_owned())], self.config.own_las.len());
        let counts = self.datapath.counters()?;
        to.outcomes(["packets", "dropped_packets"], &SWITCH_OUTCOMES_DROPPED, &[([], counts)]);
        Ok(())
    }

    fn reload(&mut self, config: &SwitchConfig) -> Result<Vec<String>, NodeError> {
        self.datapath.set_own_las(&config.own_las)?;
        self.config = config.clone();
        Ok(Vec::new())
    }

    fn end(self, remove: bool) -> Result<(), NodeError> {
        if remove { Ok(self.datapath.detach()?) } else { Ok(()) }
    }
}

/// Puts the data path on the switch's ports until it is told to stop. With a `pin_dir` it stays at work afterwards, unless a
/// request to stop came by the socket.
///
/// # Errors
/// Any [`NodeError`]: a setting that cannot work, a port that is not there, no rights, no eBPF.
pub fn run(load: &Load<'_, SwitchConfig>, stop: &Stop) -> Result<(), NodeError> {
    runner::run::<Daemon>(load, stop)
}

/// Takes the data path off all ports, pins included.
///
/// # Errors
/// As for [`run`].
pub fn remove(config: &SwitchConfig) -> Result<(), NodeError> {
    config.check()?;
    run_folder::for_pins(config.pin_dir.as_deref())?;
    runner::Daemon::end(<Daemon as runner::Daemon>::start(config)?, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut SwitchConfig)) -> String {
        let mut config = SwitchConfig::example();
        change(&mut config);
        config.check().expect_err("it cannot work").to_string()
    }

    #[test]
    fn the_example_is_read_as_it_is_written_and_makes_sense() {
        let example = SwitchConfig::example();
        let text = serde_json::to_string(&example).unwrap();
        assert_eq!(serde_json::from_str::<SwitchConfig>(&text).unwrap(), example);
        example.check().unwrap();
        assert!(serde_json::from_str::<SwitchConfig>(&text.replace("\"ports\"", "\"port\"")).is_err());
    }

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        for (message, expected) in [
            (refusal(|config| config.ports.clear()), "ports"),
            (refusal(|config| config.own_las.clear()), "own_las"),
            (refusal(|config| config.host_ports.clear()), "host_ports"),
            (refusal(|config| config.tier = Tier::Intermediate), "no effect at an Intermediate"),
        ] {
            assert!(message.contains(expected), "{message}");
        }
    }
}
