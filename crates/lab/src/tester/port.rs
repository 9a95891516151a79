//! A port of the test centre: an interface here or in a named network namespace.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;
use weft_testbed::tester::Sent;

use super::error::TesterError;
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::process;

/// An interface that frames are sent or received on.
#[derive(Clone, Debug)]
pub struct Port {
    namespace: Option<PathBuf>,
    interface: String,
    name: String,
    facts: Facts,
}

#[derive(Clone, Debug, Deserialize)]
struct Facts {
    flags: Vec<String>,
    mtu: u32,
    #[serde(default)]
    linkinfo: LinkInfo,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct LinkInfo {
    #[serde(default)]
    info_kind: String,
}

/// Counters of an interface, as the kernel shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortTraffic {
    pub(crate) received_bytes: u64,
    pub(crate) received_frames: u64,
    pub(crate) sent_frames: u64,
    pub(crate) send_drops: u64,
}

impl Port {
    /// Finds an interface: `IF`, or `NAMESPACE:IF` with a namespace of `/run/netns`.
    ///
    /// # Errors
    /// [`TesterError::Refused`] if there is none of that name, or it is down.
    pub fn open(name: &str) -> Result<Self, TesterError> {
        let (namespace, interface) = match name.split_once(':') {
            None => (None, name),
            Some((namespace, interface)) => (Some(namespace_path(namespace)), interface),
        };
        if namespace.as_ref().is_some_and(|path| !path.exists()) {
            let why = format!("port `{name}`: there is no such network namespace; see: ip netns list");
            return Err(TesterError::Refused(why));
        }
        let facts = match &namespace {
            None => facts_of(interface),
            Some(path) => netns::in_namespace(path, || facts_of(interface))?,
        };
        let facts = facts.map_err(|why| TesterError::Refused(format!("port `{name}`: {why}")))?;
        let port = Self { namespace, interface: interface.to_owned(), name: name.to_owned(), facts };
        port.check_up()?;
        Ok(port)
    }

    fn check_up(&self) -> Result<(), TesterError> {
        let has = |flag: &str| self.facts.flags.iter().any(|found| found == flag);
        let (name, interface) = (&self.name, &self.interface);
        match () {
            () if has("LOOPBACK") => {
                Err(TesterError::Refused(format!("port `{name}` is the loopback; give a real interface or a veth end")))
            }
            () if !has("UP") => {
                Err(TesterError::Refused(format!("port `{name}` is down; bring it up: ip link set {interface} up")))
            }
            () if !has("LOWER_UP") => {
                Err(TesterError::Refused(format!("port `{name}` has no carrier; plug it in, or bring its peer up")))
            }
            () => Ok(()),
        }
    }

    /// As the user wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Largest packet, bytes.
    pub fn mtu(&self) -> u32 {
        self.facts.mtu
    }

    /// Whether it is one end of a veth pair, where what cannot be sent is lost by whoever is at the other end.
    pub fn is_veth(&self) -> bool {
        self.facts.linkinfo.info_kind == "veth"
    }

    /// The interface's name in its namespace.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Rate of the line, bits per second, where there is a line. A veth pair has none, whatever it claims.
    pub fn line_bps(&self) -> Option<f64> {
        if self.is_veth() || self.namespace.is_some() {
            return None;
        }
        let text = std::fs::read_to_string(format!("/sys/class/net/{}/speed", self.interface)).ok()?;
        text.trim().parse::<f64>().ok().filter(|mbps| *mbps > 0.0).map(|mbps| mbps * 1e6)
    }

    /// Whether two names mean one interface.
    pub fn is_same(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.interface == other.interface
    }

    /// Runs `work` in the port's namespace, on a thread of its own.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        match &self.namespace {
            None => Ok(work()),
            Some(path) => netns::in_namespace(path, work),
        }
    }

    /// Sends by `send`, which ends early when its argument says so: what was sent, and how many frames of it the port itself has dropped.
    ///
    /// # Errors
    /// [`TesterError::Interrupted`] if `stop` said so, or any other.
    pub(crate) fn sends(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        send: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> Result<Sent, TesterError>,
    ) -> Result<(Sent, u64), TesterError> {
        let before = self.traffic()?;
        let asked = AtomicBool::new(false);
        let sent = send(&|| {
            let now = stop();
            asked.fetch_or(now, Ordering::Relaxed);
            now
        })?;
        if asked.load(Ordering::Relaxed) {
            return Err(TesterError::Interrupted);
        }
        let drops = if self.is_veth() { 0 } else { self.traffic()?.send_drops - before.send_drops };
        Ok((sent, drops))
    }

    /// The interface's counters now.
    pub(crate) fn traffic(&self) -> Result<PortTraffic, TesterError> {
        let text = self.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
        let text = text.map_err(LabError::io("read /proc/thread-self/net/dev"))?;
        traffic_in(&text, &self.interface)
            .ok_or_else(|| TesterError::Refused(format!("port `{}` has gone away", self.name)))
    }
}

fn facts_of(interface: &str) -> Result<Facts, String> {
    let missing = || "there is no such interface; see: ip link".to_owned();
    // `ip` reads some words as options; no interface is called so.
    if interface.is_empty() || interface.len() > 15 || interface.starts_with('-') {
        return Err(missing());
    }
    let output = process::command("ip").args(["-json", "-details", "link", "show", "dev", interface]).output();
    let output = output.map_err(|error| format!("cannot run `ip`: {error}; install iproute2"))?;
    if !output.status.success() {
        return Err(missing());
    }
    let found: Vec<Facts> =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("`ip -json` cannot be read: {error}"))?;
    found.into_iter().next().ok_or_else(missing)
}

/// One interface's line of `/proc/net/dev`: eight numbers received, then bytes, packets, errors, drops sent.
fn traffic_in(text: &str, interface: &str) -> Option<PortTraffic> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))?;
    let numbers: Vec<u64> = line.split_whitespace().map_while(|number| number.parse().ok()).collect();
    Some(PortTraffic {
        received_bytes: *numbers.first()?,
        received_frames: *numbers.get(1)?,
        sent_frames: *numbers.get(9)?,
        send_drops: *numbers.get(11)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_the_whole_name() {
        let text = "Inter-|   Receive\n face |bytes\n eth10: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  \
                    eth1: 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36\n";
        assert_eq!(
            traffic_in(text, "eth1"),
            Some(PortTraffic { received_bytes: 21, received_frames: 22, sent_frames: 30, send_drops: 32 })
        );
        assert_eq!(traffic_in(text, "eth"), None);
        assert_eq!(traffic_in("", "eth1"), None);
    }

    #[test]
    fn ports_that_are_not_there_are_refused_by_name() {
        for name in ["weft-none", "", "-json", "weft-no-such-namespace:eth0", "a-name-of-more-than-fifteen-bytes"] {
            let error = Port::open(name).expect_err("no such port").to_string();
            assert!(error.contains(&format!("`{name}`")) && error.contains("no such"), "{error}");
        }
        let error = Port::open("lo").expect_err("loopback").to_string();
        assert!(error.contains("loopback"), "{error}");
    }
}
