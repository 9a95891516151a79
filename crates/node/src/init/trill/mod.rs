//! A campus of RBridges that share a key.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::SocketAddrV4;

use serde::Deserialize;
use weft_wire::trill::OVERHEAD_BYTES;

use super::hosts_file::{At, HostsFile};
use super::names::{Interfaces, Names};
use super::tree::{Vault, random_hex};
use super::{Deployment, Host};
use crate::error::NodeError;
use crate::rbridge::{AuthenticationTable, PortTable, RBridgeConfig, TimingTable, XdpChoice};
use crate::runner::DaemonKind;

/// What a station's frame has more on a link.
const OUTER_BYTES: u32 = OVERHEAD_BYTES as u32;
/// Links carry IS-IS, which is this long at least, bytes (RFC 6325 section 4.3).
const LINK_MTU_MIN: u32 = 1470;
const KEYS: &str = "campus.keys";

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Campus {
    /// Of what stations send, bytes.
    mtu: u32,
    #[serde(default)]
    xdp: XdpChoice,
    /// When things happen, as in an RBridge's settings.
    #[serde(default)]
    timing: TimingTable,
    /// Where every RBridge has its metrics; without it nowhere.
    http_listen: Option<SocketAddrV4>,
    /// Both ends of each, as `s1:eth1`.
    links: Vec<[String; 2]>,
    rbridge: Vec<Bridge>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bridge {
    name: String,
    nickname: Option<u16>,
    root_priority: Option<u16>,
    /// VLANs of ports to stations that know nothing of them.
    #[serde(default)]
    access: BTreeMap<String, u16>,
    /// VLANs of ports to stations with tags, as `"10,20-30"`.
    #[serde(default)]
    trunks: BTreeMap<String, String>,
}

/// What the file says.
pub(super) fn deployment(file: &HostsFile, vault: &Vault) -> Result<Deployment, NodeError> {
    let campus: Campus = file.parse()?;
    let links = check(file, &campus)?;
    let keys = vault.secret(KEYS, || format!("1 hmac-sha-256 {}\n", random_hex(2)))?;
    crate::rbridge::parse_keys(&keys).map_err(|why| NodeError::config(KEYS, why))?;
    let mut hosts = Vec::new();
    for (index, bridge) in campus.rbridge.iter().enumerate() {
        let links = links.get(&*bridge.name).map(Vec::as_slice).unwrap_or_default();
        let mut host = Host::new(&bridge.name, "an RBridge");
        let settings = bridge.settings(&campus, links);
        host.daemon(DaemonKind::Rbridge, &settings, |why| file.fault(At::of("rbridge", index, "name"), why))?;
        host.secret(KEYS, keys.clone());
        host.file("network.sh", bridge.network(&campus, links));
        hosts.push(host);
    }
    Ok(Deployment { hosts, secrets: vec![(KEYS, keys)], certificates: None })
}

/// Each RBridge's ports to others.
type Links<'c> = BTreeMap<&'c str, Vec<&'c str>>;

fn check<'c>(file: &HostsFile, campus: &'c Campus) -> Result<Links<'c>, NodeError> {
    if !(68..=65_535 - OUTER_BYTES).contains(&campus.mtu) {
        let why = format!("{} is not 68 to {}; 1500 is usual", campus.mtu, 65_535 - OUTER_BYTES);
        return Err(file.fault(At::top("mtu"), why));
    }
    let (mut names, mut interfaces, mut nicknames) = (Names::new(file), Interfaces::default(), BTreeSet::new());
    for (index, bridge) in campus.rbridge.iter().enumerate() {
        let at = |key| At::of("rbridge", index, key);
        names.take("rbridge", index, &bridge.name)?;
        if let Some(nickname) = bridge.nickname.filter(|nickname| !nicknames.insert(*nickname)) {
            return Err(file.fault(at("nickname"), format!("{nickname} is another RBridge's already")));
        }
        for port in bridge.access.keys() {
            interfaces.take(file, at("access"), (&bridge.name, port), "a port to stations".to_owned())?;
        }
        for port in bridge.trunks.keys() {
            interfaces.take(file, at("trunks"), (&bridge.name, port), "a port to stations".to_owned())?;
        }
    }
    let mut links = Links::new();
    for [a, b] in &campus.links {
        for (end, other) in [(a, b), (b, a)] {
            let at = At::top("links");
            let why =
                || file.fault(at, format!("`{end}` is no port of an RBridge; write as in [\"s1:eth1\", \"s2:eth1\"]"));
            let (name, port) = end.split_once(':').ok_or_else(why)?;
            if !campus.rbridge.iter().any(|bridge| bridge.name == name) {
                return Err(file.fault(at, format!("{end}: there is no [[rbridge]] called `{name}`")));
            }
            if other.split(':').next() == Some(name) {
                return Err(file.fault(at, format!("{end} and {other} are at one RBridge; a link joins two")));
            }
            interfaces.take(file, at, (name, port), format!("the end of a link to {other}"))?;
            links.entry(name).or_default().push(port);
        }
    }
    joined(file, campus)?;
    Ok(links)
}

/// All RBridges are one campus.
fn joined(file: &HostsFile, campus: &Campus) -> Result<(), NodeError> {
    let name = |end: &'_ String| end.split(':').next().unwrap_or_default().to_owned();
    let mut reached: BTreeSet<String> = campus.rbridge.first().map(|bridge| bridge.name.clone()).into_iter().collect();
    for _ in &campus.rbridge {
        for [a, b] in &campus.links {
            let (a, b) = (name(a), name(b));
            if reached.contains(&a) || reached.contains(&b) {
                reached.extend([a, b]);
            }
        }
    }
    match campus.rbridge.iter().position(|bridge| !reached.contains(&bridge.name)) {
        Some(index) => {
            let why = format!("no links lead to it from `{}`", campus.rbridge[0].name);
            Err(file.fault(At::of("rbridge", index, "name"), why))
        }
        None => Ok(()),
    }
}

impl Bridge {
    fn settings(&self, campus: &Campus, links: &[&str]) -> RBridgeConfig {
        let mut config = RBridgeConfig::new(&self.name);
        config.nickname = self.nickname;
        config.root_priority = self.root_priority.unwrap_or(config.root_priority);
        config.xdp = campus.xdp;
        config.timing = campus.timing;
        config.http_listen = campus.http_listen;
        config.pin_dir = Some("/run/weft/bpf/rbridge".into());
        config.authentication = Some(AuthenticationTable {
            key_file: "/etc/weft/campus.keys".into(),
            accept_unsigned: false,
            replay_check: true,
        });
        let access = self.access.iter().map(|(port, vlan)| PortTable::access(port, *vlan));
        let trunks = self.trunks.iter().map(|(port, vlans)| PortTable::trunk(port, vlans));
        let ends = links.iter().map(|port| PortTable::p2p(*port));
        config.port = ends.chain(access).chain(trunks).collect();
        config
    }

    fn network(&self, campus: &Campus, links: &[&str]) -> String {
        let mut lines = format!("# The interfaces of {}.\nset -e\n", self.name);
        for port in links {
            let _ = writeln!(lines, "ip link set {port} mtu {} up", (campus.mtu + OUTER_BYTES).max(LINK_MTU_MIN));
        }
        for port in self.access.keys().chain(self.trunks.keys()) {
            let _ = writeln!(lines, "ip link set {port} up");
        }
        lines
    }
}
