//! What a VTEP needs of its host: its address and port for itself, its interfaces, and their MTUs.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use weft_control::vtep::{Host, Settings};

use super::VtepConfig;
use super::config::HookChoice;
use crate::error::NodeError;
use crate::settings_file::check_interface;
use crate::{sys, xdp};

/// The tunnels' UDP port at our address: nobody else can take it, and the stack answers no tunnel packet with ICMP. The
/// data path takes them before they get here; what it leaves is thrown away.
pub(super) struct TunnelPort(UdpSocket);

impl TunnelPort {
    pub(super) fn bind(config: &VtepConfig) -> Result<Self, NodeError> {
        let (local, udp_port) = (config.local, config.udp_port);
        if udp_port == 0 {
            return Err(NodeError::config("udp_port", "0 is no port; 4789 is VXLAN's"));
        }
        let address = SocketAddrV4::new(local, udp_port);
        let socket = UdpSocket::bind(address).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => {
                let why = format!(
                    "UDP {address} is bound already, by a kernel VXLAN device (ip -d link show type vxlan) or a process \
                     (ss -lunp); remove that, or choose another port on all VTEPs"
                );
                NodeError::config("udp_port", why)
            }
            ErrorKind::AddrNotAvailable => {
                NodeError::config("local", format!("{local} is not an address of this host; add it first (ip addr)"))
            }
            _ => NodeError::system(format!("binding UDP {address}"))(error),
        })?;
        socket.set_nonblocking(true).map_err(NodeError::system("setting up the tunnels' UDP port"))?;
        Ok(Self(socket))
    }

    /// Throws away what arrived.
    pub(super) fn drain(&self) {
        let mut buffer = [0; 64];
        // An error is one about an earlier packet, or that there are no more.
        while self.0.recv_from(&mut buffer).is_ok() {}
    }
}

impl AsFd for TunnelPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The parts of the configuration that only this host can judge, for [`Settings::check`].
pub(super) fn facts(config: &VtepConfig, settings: &Settings) -> Result<Host, NodeError> {
    config.uplink.iter().try_for_each(|name| check_interface("uplink", name))?;
    let names = config.uplink.iter().chain(settings.ports.keys());
    let mtu: BTreeMap<String, u32> =
        names.filter_map(|name| Some((name.clone(), sys::interface_mtu(name).ok()?))).collect();
    if config.hook == HookChoice::Xdp {
        mtu.iter()
            .try_for_each(|(name, mtu)| xdp::check_mtu(name, *mtu, settings.ports.contains_key(name), "--hook tc"))?;
    }
    Ok(Host { local: config.local, uplinks: config.uplink.clone(), mtu })
}

/// The names of this network namespace's interfaces by index.
pub(super) fn interface_names() -> BTreeMap<u32, String> {
    // Names come from /proc, which is always there; /sys shows another namespace's unless it was mounted inside.
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let names = table.lines().skip(2).filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim().to_owned());
    names.filter_map(|name| Some((sys::interface_index(&name).ok()?, name))).collect()
}
