//! The far end of a link: sends and receives whole IPv4 frames of an interface, without a host behind it.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_recv_buffer_size_force, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::netns::Namespace;

const FRAME_MAX: usize = 4096;
/// For some hundred frames that nobody has taken yet: of those that came as pages each counts as a whole one.
const ROOM_BYTES: usize = 4 << 20;

/// A packet socket on one interface.
pub struct Tap(OwnedFd);

impl Tap {
    pub fn open(namespace: &Namespace, interface: &str, wait: Duration) -> Self {
        Self::open_for(namespace, interface, wait, libc::ETH_P_IP)
    }

    /// Frames of all kinds, what goes out as well. Of a bridge's port no other socket sees any.
    pub fn open_for_all(namespace: &Namespace, interface: &str, wait: Duration) -> Self {
        Self::open_for(namespace, interface, wait, libc::ETH_P_ALL)
    }

    fn open_for(namespace: &Namespace, interface: &str, wait: Duration, protocol: libc::c_int) -> Self {
        let socket = namespace.enter(|| bound(interface, protocol));
        set_socket_timeout(&socket, Timeout::Recv, Some(wait)).expect("a valid timeout");
        set_socket_recv_buffer_size_force(&socket, ROOM_BYTES).expect("root may");
        Self(socket)
    }

    pub fn send(&self, frame: &[u8]) {
        assert_eq!(send(&self.0, frame, SendFlags::empty()), Ok(frame.len()), "the frame is sent");
    }

    /// The next frame that came in, or `None` after the wait.
    pub fn next(&self) -> Option<Vec<u8>> {
        self.receive(RecvFlags::empty())
    }

    /// The same without a wait.
    pub fn poll(&self) -> Option<Vec<u8>> {
        self.receive(RecvFlags::DONTWAIT)
    }

    fn receive(&self, flags: RecvFlags) -> Option<Vec<u8>> {
        let mut frame = vec![0; FRAME_MAX];
        let (length, _) = recv(&self.0, &mut frame[..], flags).ok()?;
        frame.truncate(length);
        Some(frame)
    }
}

/// For one EtherType: such a socket does not see what goes out.
fn bound(interface: &str, protocol: libc::c_int) -> OwnedFd {
    let protocol = (protocol as u16).to_be();
    let name = std::ffi::CString::new(interface).expect("no NUL in it");
    // SAFETY: the name is a C string; the address is plain data, filled and passed with its size; the descriptor is
    // checked, and nobody else owns it.
    unsafe {
        let raw = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        assert!(raw >= 0, "root may open packet sockets");
        let socket = OwnedFd::from_raw_fd(raw);
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()).cast_signed();
        let size = libc::socklen_t::try_from(size_of_val(&address)).expect("a small struct");
        assert_eq!(libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), size), 0, "it can be bound");
        socket
    }
}
