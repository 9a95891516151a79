//! The wire between two virtual switches: a veth pair, or two ports of the user's, which are borrowed for the time of a bed.

use std::process::Command;

use serde::Deserialize;

use crate::batch::{self, Program};
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::tester::error::TesterError;
use crate::tester::port::Port;

/// What is between the switches.
#[derive(Clone, Debug)]
pub enum Wire {
    /// A veth pair of weft's own.
    Veth,
    /// Two ports of the user's that are connected: what leaves by the first comes in at the second.
    Ports(Box<[Port; 2]>),
}

impl Wire {
    /// Two ports of the user's.
    ///
    /// # Errors
    /// [`TesterError::Refused`] for ports that are the same, down, or in use: a benchmark would cut off whoever uses them.
    pub fn between(left: &str, right: &str) -> Result<Self, TesterError> {
        let (left, right) = (Port::open(left)?, Port::open(right)?);
        if left.is_same(&right) {
            let why = format!("port `{}` cannot send to itself; give two different ports", left.name());
            return Err(TesterError::Refused(why));
        }
        for port in [&left, &right] {
            if let Some(user) = user_of(port)? {
                let why = format!(
                    "port `{}` {user}: the benchmark would cut it off; give ports that nothing uses",
                    port.name()
                );
                return Err(TesterError::Refused(why));
            }
        }
        Ok(Self::Ports(Box::new([left, right])))
    }

    /// As results name it.
    pub fn name(&self) -> String {
        match self {
            Self::Veth => "veth pair".to_owned(),
            Self::Ports(ports) => ports.each_ref().map(Port::name).join(" to "),
        }
    }

    /// Whether all that a frame causes runs on the core that sends it, so that its CPU time is seen.
    pub fn is_on_one_core(&self) -> bool {
        match self {
            Self::Veth => true,
            Self::Ports(ports) => ports.iter().all(Port::is_veth),
        }
    }

    /// Largest packet that fits, bytes, where the wire is the user's.
    pub fn mtu(&self) -> Option<u32> {
        match self {
            Self::Veth => None,
            Self::Ports(ports) => ports.iter().map(Port::mtu).min(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Link {
    #[serde(default)]
    master: Option<String>,
    #[serde(default)]
    addr_info: Vec<Address>,
}

#[derive(Debug, Deserialize)]
struct Address {
    local: String,
    #[serde(default)]
    scope: String,
}

/// What uses a port, in words.
fn user_of(port: &Port) -> Result<Option<String>, TesterError> {
    let interface = port.interface();
    let output = port.inside(|| Command::new("ip").args(["-json", "address", "show", "dev", interface]).output())?;
    let output = output.map_err(LabError::io("run ip"))?;
    Ok(user_in(&output.stdout))
}

fn user_in(json: &[u8]) -> Option<String> {
    // `ip -json` prints empty objects for what does not fit a filter.
    let links: Vec<Link> = serde_json::from_slice(json).unwrap_or_default();
    for link in links {
        if let Some(master) = link.master {
            return Some(format!("is a port of `{master}`"));
        }
        if let Some(address) = link.addr_info.iter().find(|address| address.scope != "link") {
            return Some(format!("has the address {}", address.local));
        }
    }
    None
}

/// A port of the user's inside a bed; dropping it takes it back where it was.
#[derive(Debug)]
pub(super) struct BorrowedPort {
    port: Port,
    /// The bed's namespace.
    namespace: String,
}

impl BorrowedPort {
    /// Moves a port into a namespace, up and taking all frames; `header_bytes` is what will be put in front of them.
    pub(super) fn take(port: &Port, namespace: &str, header_bytes: u32) -> Result<Self, TesterError> {
        let interface = port.interface();
        let target = namespace_path(namespace);
        let away = format!("link set dev {interface} netns {}", target.display());
        port.inside(|| batch::run(Program::Ip, port.name(), &[away]))??;
        let taken = Self { port: port.clone(), namespace: namespace.to_owned() };
        let up = [format!("link set dev {interface} promisc on"), format!("link set dev {interface} up")];
        netns::in_namespace(&target, || {
            // Where the port allows it, frames keep their size in spite of the outer header; where not, sizes are refused.
            let wider = format!("link set dev {interface} mtu {}", port.mtu() + header_bytes);
            if header_bytes > 0 {
                let _as_it_is = batch::run(Program::Ip, port.name(), &[wider]);
            }
            batch::run(Program::Ip, port.name(), &up)
        })??;
        Ok(taken)
    }
}

impl Drop for BorrowedPort {
    fn drop(&mut self) {
        let interface = self.port.interface();
        let home = self.port.namespace_text();
        let back = [
            format!("link set dev {interface} promisc off"),
            format!("link set dev {interface} mtu {}", self.port.mtu()),
            format!("link set dev {interface} netns {home}"),
        ];
        // Nothing can be done about a failure here; a real NIC goes back by itself when the namespace is deleted.
        let _back = netns::in_namespace(&namespace_path(&self.namespace), || {
            back.iter().try_for_each(|line| batch::run(Program::Ip, self.port.name(), std::slice::from_ref(line)))
        });
        let up = format!("link set dev {interface} up");
        let _up = self.port.inside(|| batch::run(Program::Ip, self.port.name(), &[up]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_somebody_uses_are_told_from_idle_ones() {
        let idle = br#"[{},{"ifname":"e1","addr_info":[{"family":"inet6","local":"fe80::1","scope":"link"}]}]"#;
        assert_eq!(user_in(idle), None);
        let addressed = br#"[{"ifname":"e1","addr_info":[{"family":"inet","local":"10.0.0.1","scope":"global"}]}]"#;
        assert_eq!(user_in(addressed).unwrap(), "has the address 10.0.0.1");
        assert_eq!(user_in(br#"[{"ifname":"e1","master":"br0"}]"#).unwrap(), "is a port of `br0`");
        assert_eq!(user_in(b"junk"), None);
    }
}
