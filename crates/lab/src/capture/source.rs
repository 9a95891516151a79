//! Where a capture's frames come from: a packet socket at each port; where RBridges forward, what sees their frames.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use weft_scenario::addressing::port_mac;
use weft_scenario::engine::Overlay;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::topology::Fabric;

use super::ports::{Port, peer_of};
use super::socket::{self, Counts, Frame, PacketSocket};
use crate::error::LabError;
use crate::home::{namespace_path, node_pin_dir};
use crate::netns;
use crate::state::LabState;
use crate::sys;
use crate::trill::{TrunkEnd, TrunkPort, Trunks};

/// Bytes that may wait in the kernel for one capture, all its sockets together, and for one of them at least.
const ROOM_BYTES: usize = 256 << 20;
const ROOM_MIN_BYTES: usize = 1 << 20;
/// Frames that are taken from one source before others have their turn.
const BURST: usize = 256;

/// Frames of some ports.
pub(super) struct Sources {
    /// In the ports' order.
    sockets: Vec<Socket>,
    trunks: Option<Trunks>,
}

struct Socket {
    socket: PacketSocket,
    /// It is at the other end of the link, where the same frames go the other way.
    at_peer: bool,
}

impl Sources {
    /// Opens them all; what comes from now on waits for whoever reads.
    pub(super) fn open(state: &LabState, fabric: &Fabric, ports: &[Port]) -> Result<Self, LabError> {
        // Each has a socket, a few maps of a tap while that is opened, and there are files beside.
        sys::raise_file_limit(4 * ports.len() as u64 + 256);
        let room = (ROOM_BYTES / ports.len().max(1)).clamp(ROOM_MIN_BYTES, socket::BUFFER_BYTES);
        let mut trunks = Vec::new();
        let mut sockets = Vec::new();
        for (place, port) in ports.iter().enumerate() {
            let at_peer = match rbridge_link(state, fabric, port) {
                Some(RBridgeLink::Trunk([own, far])) => {
                    trunks.push(TrunkPort { place, own, far });
                    None
                }
                Some(RBridgeLink::Host) => peer_of(fabric, port),
                None => None,
            };
            let (node, interface) = at_peer.unwrap_or((port.node, &port.interface));
            let socket = open_socket(state, &fabric.node(node).name, interface, room)?;
            sockets.push(Socket { socket, at_peer: at_peer.is_some() });
        }
        let trunks = if trunks.is_empty() { None } else { Some(Trunks::open(&trunks)?) };
        Ok(Self { sockets, trunks })
    }

    /// Waits until there may be a frame, or so long.
    pub(super) fn wait(&self, patience: Duration) -> io::Result<bool> {
        let descriptors: Vec<BorrowedFd<'_>> = self.sockets.iter().map(|one| one.socket.as_fd()).collect();
        let trunks = self.trunks.iter().flat_map(Trunks::descriptors);
        let mut all: Vec<PollFd<'_>> =
            descriptors.into_iter().chain(trunks).map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN)).collect();
        let patience = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        match poll(&mut all, Some(&patience)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Takes what there is, without waiting and in no order; at most a burst from each source. `take` gets each frame with its
    /// port's place and its bytes. `None`: there is no more; else the time until which every source has shown all.
    pub(super) fn take(
        &mut self,
        buffer: &mut [u8],
        mut take: impl FnMut(usize, Frame, &[u8]),
    ) -> io::Result<Option<Duration>> {
        let mut shown = None;
        for (place, one) in self.sockets.iter().enumerate() {
            let receive = |buffer: &mut [u8]| {
                let turned = |frame: Frame| (place, Frame { outgoing: frame.outgoing != one.at_peer, ..frame });
                Ok(one.socket.receive_now(buffer)?.map(turned))
            };
            shown = earlier(shown, burst(buffer, receive, &mut take)?);
        }
        if let Some(trunks) = &mut self.trunks {
            shown = earlier(shown, burst(buffer, |buffer| trunks.receive_now(buffer), &mut take)?);
        }
        Ok(shown)
    }

    /// What came to each port's socket since the last call.
    pub(super) fn counts(&self) -> io::Result<Vec<Counts>> {
        self.sockets.iter().map(|one| one.socket.counts()).collect()
    }
}

/// The time of the last frame if there may be more.
fn burst(
    buffer: &mut [u8],
    mut receive: impl FnMut(&mut [u8]) -> io::Result<Option<(usize, Frame)>>,
    take: &mut impl FnMut(usize, Frame, &[u8]),
) -> io::Result<Option<Duration>> {
    let mut last = None;
    for _ in 0..BURST {
        let Some((place, frame)) = receive(buffer)? else { return Ok(None) };
        take(place, frame, &buffer[..frame.captured_bytes]);
        last = Some(frame.time_since_1970);
    }
    Ok(last)
}

fn earlier(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// A link of an RBridge, whose frames its packet sockets do not see.
enum RBridgeLink {
    /// To another one.
    Trunk([TrunkEnd; 2]),
    /// To a host or a bridge, whose packet socket sees the same frames.
    Host,
}

fn rbridge_link(state: &LabState, fabric: &Fabric, port: &Port) -> Option<RBridgeLink> {
    let is_rbridge = |node: NodeId| {
        let kind = fabric.forwards_with(node, state.overlay);
        fabric.node(node).role.is_switch() && matches!(kind, Overlay::RBridge { .. })
    };
    if !state.overlay.forwards_frames() || !is_rbridge(port.node) {
        return None;
    }
    let (far, _) = peer_of(fabric, port)?;
    if !is_rbridge(far) {
        return Some(RBridgeLink::Host);
    }
    let end = |node: NodeId, link: LinkId| {
        let name = fabric.node(node).name.clone();
        TrunkEnd { pins: node_pin_dir(&state.lab, &name), mac: port_mac(fabric, link, node), node: name }
    };
    Some(RBridgeLink::Trunk([end(port.node, port.link?), end(far, port.link?)]))
}

fn open_socket(state: &LabState, name: &str, interface: &str, room: usize) -> Result<PacketSocket, LabError> {
    let node = state.node(name)?;
    let namespace = namespace_path(&node.namespace);
    netns::in_namespace(&namespace, || PacketSocket::open_with_room(interface, room))?.map_err(|error| {
        if error.raw_os_error() == Some(libc::ENODEV) {
            LabError::NoSuchInterface {
                node: node.name.clone(),
                interface: interface.to_owned(),
                known: node.interfaces.join(", "),
            }
        } else {
            LabError::io(format!("capture at {name}:{interface}"))(error)
        }
    })
}
