//! The far end of a link: sends and receives whole frames of an interface, without a host behind it.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::Namespace;

const FRAME_MAX: usize = 65_600;

/// A packet socket on one interface.
pub(crate) struct Tap {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Tap {
    /// One that sees what comes in, and with `outgoing` what goes out as well.
    pub(crate) fn open(namespace: &Namespace, interface: &str, outgoing: bool) -> Self {
        let socket = namespace.within(|| bound(interface, outgoing));
        set_socket_recv_buffer_size_force(&socket, 16 << 20).expect("root may have long buffers");
        Self { socket, buffer: vec![0; FRAME_MAX] }
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        assert_eq!(send(&self.socket, frame, SendFlags::empty()), Ok(frame.len()), "the frame is sent");
    }

    /// The next frame, if there is one.
    pub(crate) fn poll(&mut self) -> Option<&[u8]> {
        let (length, _) = recv(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT).ok()?;
        Some(&self.buffer[..length])
    }
}

fn bound(interface: &str, outgoing: bool) -> OwnedFd {
    let name = std::ffi::CString::new(interface).expect("no NUL in it");
    // SAFETY: the name is a C string; the address and the option are plain data, passed with their size; the descriptor
    // is checked, and nobody else owns it.
    unsafe {
        let raw = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        assert!(raw >= 0, "root may open packet sockets");
        let socket = OwnedFd::from_raw_fd(raw);
        let ignore = i32::from(!outgoing);
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING);
        let size = libc::socklen_t::try_from(size_of_val(&ignore)).expect("small");
        assert_eq!(libc::setsockopt(raw, level, option, std::ptr::from_ref(&ignore).cast(), size), 0);
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()).cast_signed();
        let size = libc::socklen_t::try_from(size_of_val(&address)).expect("small");
        assert_eq!(libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), size), 0, "it can be bound");
        socket
    }
}
