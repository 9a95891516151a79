//! What an agent needs of its host: an MTU that fits, and the veth pair over which misses reach it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use tracing::info;
use weft_datapath::broadcast::Broadcast;
use weft_wire::block::Block;
use weft_wire::ethernet::MacAddress;

use super::AgentConfig;
use crate::error::NodeError;
use crate::sys;

/// Outer headers of VL2, bytes.
pub(super) const OUTER_BYTES: u32 = weft_wire::vl2::OVERHEAD_BYTES as u32;

/// Alias of a pair that an agent made, this or an earlier one.
const MARK: &str = "weft agent";

/// The veth pair for misses. One that an agent made goes with the value, unless it is kept.
pub(super) struct MissPair {
    /// MAC of the end that the host's stack reads.
    pub(super) near_mac: MacAddress,
    near: String,
    is_ours: bool,
    kept: bool,
}

/// Finds the pair or makes it, and sets both ends up: quiet (no IPv6, no ARP) and wide enough for any frame.
pub(super) fn miss_pair(config: &AgentConfig) -> Result<MissPair, NodeError> {
    let (near, far) = (config.redirect_interface.as_str(), config.miss_interface.as_str());
    let mut pair = MissPair { near_mac: MacAddress([0; 6]), near: near.to_owned(), is_ours: false, kept: false };
    let missing = [near, far].map(|name| sys::interface_index(name).is_err());
    match missing {
        [true, true] => {
            ip(&["link", "add", "dev", near, "type", "veth", "peer", "name", far])?;
            pair.is_ours = true;
            ip(&["link", "set", "dev", near, "alias", MARK])?;
        }
        [false, false] => (pair.is_ours, pair.kept) = (has_mark(near), true),
        [near_missing, _] => {
            let (there, not) = if near_missing { (far, near) } else { (near, far) };
            let why =
                format!("`{there}` exists without `{not}`; delete it (ip link del {there}) or choose other names");
            return Err(NodeError::config("redirect_interface", why));
        }
    }
    for name in [near, far] {
        // Absent on kernels without IPv6.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        ip(&["link", "set", "dev", name, "mtu", "65535", "arp", "off", "up"])?;
    }
    // ICMP errors that come in here have the address of a far host as their source.
    let filter = format!("/proc/sys/net/ipv4/conf/{near}/rp_filter");
    std::fs::write(&filter, "0").map_err(NodeError::at("writing", Path::new(&filter)))?;
    let mac = sys::interface_mac(near).map_err(NodeError::system(format!("reading the MAC of `{near}`")))?;
    pair.near_mac = MacAddress(mac);
    Ok(pair)
}

impl MissPair {
    /// Leaves the pair in place: a pinned data path sends into it.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }

    /// Nobody sends into it any more.
    pub(super) fn give_up(&mut self) {
        self.kept = false;
    }
}

impl Drop for MissPair {
    fn drop(&mut self) {
        if self.is_ours && !self.kept {
            delete(&self.near);
        }
    }
}

/// Removes the pair with this end if an agent made it, which is gone.
pub(crate) fn remove_pair(near: &str) {
    if has_mark(near) {
        delete(near);
    }
}

fn delete(near: &str) {
    // It may have gone with its namespace.
    let _ = ip(&["link", "del", "dev", near]);
}

/// Limits broadcast to what the members' interfaces take in, outer header included: they are taken to be as wide as the own
/// one.
pub(super) fn fit_broadcast(config: &AgentConfig, broadcast: Broadcast) -> Result<Broadcast, NodeError> {
    Ok(Broadcast { mtu: interface_mtu(&config.interface)?.min(config.underlay_mtu), ..broadcast })
}

/// Makes sure that the interface's packets fit the fabric with both outer headers, or that the AA route's do.
pub(super) fn fit_mtu(config: &AgentConfig, aa_block: Block) -> Result<(), NodeError> {
    let interface = config.interface.as_str();
    let mtu = interface_mtu(interface)?;
    let most = config.underlay_mtu - OUTER_BYTES;
    if mtu <= most || aa_route_mtu(interface, aa_block).is_some_and(|mtu| mtu <= most) {
        return Ok(());
    }
    if !config.clamp_mtu {
        let (interface, underlay_mtu) = (interface.to_owned(), config.underlay_mtu);
        return Err(NodeError::Mtu { interface, mtu, underlay_mtu, most });
    }
    let (block, mtu_text, aa) = (aa_block.to_string(), most.to_string(), config.aa.to_string());
    let route = ["route", "replace", &block, "dev", interface, "proto", "kernel", "scope", "link", "src", &aa, "mtu"];
    let mut arguments = route.to_vec();
    arguments.push(&mtu_text);
    ip(&arguments)?;
    info!(mtu, clamped_to = most, route = block, "MTU of the AA route lowered");
    Ok(())
}

fn has_mark(interface: &str) -> bool {
    let links = ip_output(&["-j", "link", "show", "dev", interface]).ok();
    links
        .and_then(|links| serde_json::from_slice::<serde_json::Value>(&links).ok())
        .is_some_and(|links| links[0]["ifalias"] == MARK)
}

fn interface_mtu(interface: &str) -> Result<u32, NodeError> {
    let missing = |_| weft_datapath::DatapathError::NoInterface { name: interface.to_owned() };
    Ok(sys::interface_mtu(interface).map_err(missing)?)
}

/// MTU that the AA route has been given: on an interface that is wider so that others' broadcast comes in with its outer
/// header.
fn aa_route_mtu(interface: &str, aa_block: Block) -> Option<u32> {
    let block = aa_block.to_string();
    let output = ip_output(&["-j", "route", "show", "exact", &block, "dev", interface]).ok()?;
    let routes: serde_json::Value = serde_json::from_slice(&output).ok()?;
    routes[0]["metrics"][0]["mtu"].as_u64()?.try_into().ok()
}

fn ip(arguments: &[&str]) -> Result<(), NodeError> {
    ip_output(arguments).map(drop)
}

fn ip_output(arguments: &[&str]) -> Result<Vec<u8>, NodeError> {
    let command = || format!("ip {}", arguments.join(" "));
    let failed = |output: String| NodeError::Command { command: command(), output };
    // In a group of its own: Ctrl-C ends the daemon, which may have to undo what `ip` does.
    let output = Command::new("ip")
        .process_group(0)
        .args(arguments)
        .output()
        .map_err(|error| failed(format!("{error}; install the package iproute2")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(failed(text.lines().map(str::trim).collect::<Vec<_>>().join("; ")))
}
