//! One socket for all agents: it is at their port on every address, and says of each datagram which agent's LA it is from or to.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::net::sockopt;
use weft_node::NodeError;

/// Room for the answers that come while questions are sent.
const RECEIVE_BUFFER_BYTES: usize = 32 << 20;
/// Room for one control message with addresses, aligned as such messages are.
type Control = [u64; 8];
const PKTINFO_LEN: u32 = size_of::<libc::in_pktinfo>() as u32;

/// The socket.
#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    port: u16,
}

impl Socket {
    /// At this port of every address.
    pub(super) fn bind(port: u16) -> Result<Self, NodeError> {
        let failed = || NodeError::system(format!("binding the agents' UDP port {port}"));
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(failed())?;
        socket.set_nonblocking(true).map_err(failed())?;
        // Beyond the system's limit where this user may do that; with less room what is lost is counted.
        if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER_BYTES).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES);
        }
        say_destinations(&socket).map_err(failed())?;
        Ok(Self { socket, port })
    }

    /// Sends from an agent's LA.
    pub(super) fn send(&self, from: Ipv4Addr, to: SocketAddrV4, datagram: &[u8]) -> io::Result<()> {
        let mut address = wire_address(to);
        let mut part = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
        let mut control: Control = [0; 8];
        // SAFETY: all pointers are to values that live through the call, with their lengths; `control` has room for the one message
        // that is written to it, and the kernel writes to none of them.
        let sent = unsafe {
            let mut header: libc::msghdr = zeroed();
            header.msg_name = (&raw mut address).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut control).cast();
            header.msg_controllen = libc::CMSG_SPACE(PKTINFO_LEN) as _;
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::IPPROTO_IP;
            (*first).cmsg_type = libc::IP_PKTINFO;
            (*first).cmsg_len = libc::CMSG_LEN(PKTINFO_LEN) as _;
            let mut source: libc::in_pktinfo = zeroed();
            source.ipi_spec_dst.s_addr = u32::from_ne_bytes(from.octets());
            libc::CMSG_DATA(first).cast::<libc::in_pktinfo>().write_unaligned(source);
            libc::sendmsg(self.socket.as_raw_fd(), &raw const header, 0)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Reads a datagram, if there is one: which LA it is to, whom it is from, and how long it is.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Option<(Ipv4Addr, SocketAddrV4, usize)> {
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut control: Control = [0; 8];
        // SAFETY: all pointers are to values that live through the call, with their lengths; what is read of `control` the kernel
        // has written, as the length and kind of its message say.
        unsafe {
            let mut address: libc::sockaddr_in = zeroed();
            let mut header: libc::msghdr = zeroed();
            header.msg_name = (&raw mut address).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut control).cast();
            header.msg_controllen = size_of::<Control>() as _;
            let length = libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, 0);
            let length = usize::try_from(length).ok()?;
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            if first.is_null() || ((*first).cmsg_level, (*first).cmsg_type) != (libc::IPPROTO_IP, libc::IP_PKTINFO) {
                return None;
            }
            let to = libc::CMSG_DATA(first).cast::<libc::in_pktinfo>().read_unaligned().ipi_addr.s_addr;
            let from = SocketAddrV4::new(address.sin_addr.s_addr.to_ne_bytes().into(), u16::from_be(address.sin_port));
            Some((to.to_ne_bytes().into(), from, length))
        }
    }

    /// Throws away what is there.
    pub(super) fn drain(&self) {
        while self.socket.recv(&mut [0; 1]).is_ok() {}
    }

    /// Datagrams so far that found its queue full.
    pub(super) fn overflowed(&self) -> u64 {
        let text = std::fs::read_to_string("/proc/thread-self/net/udp").unwrap_or_default();
        drops_of(&text, self.port)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Has the kernel say of each datagram which address it was sent to.
fn say_destinations(socket: &UdpSocket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: pointer and length describe `on`, which lives through the call.
    let result = unsafe {
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_PKTINFO, (&raw const on).cast(), length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn wire_address(address: SocketAddrV4) -> libc::sockaddr_in {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut wire: libc::sockaddr_in = unsafe { zeroed() };
    wire.sin_family = libc::AF_INET as libc::sa_family_t;
    wire.sin_port = address.port().to_be();
    wire.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
    wire
}

/// Of the kernel's list of UDP sockets: the last column of the one at this port of every address.
fn drops_of(list: &str, port: u16) -> u64 {
    let local = format!("00000000:{port:04X}");
    let line = list.lines().find(|line| line.split_ascii_whitespace().nth(1) == Some(&local));
    line.and_then(|line| line.split_ascii_whitespace().last()?.parse().ok()).unwrap_or(0)
}

/// A UDP port that is free on every address now.
pub(super) fn free_port() -> io::Result<u16> {
    match UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()? {
        SocketAddr::V4(address) => Ok(address.port()),
        SocketAddr::V6(address) => Ok(address.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_from_one_la_and_to_another() {
        let port = free_port().unwrap();
        let socket = Socket::bind(port).unwrap();
        let [here, there] = [Ipv4Addr::new(127, 64, 0, 1), Ipv4Addr::new(127, 64, 7, 9)];
        socket.send(here, SocketAddrV4::new(there, port), b"hello").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(socket.receive(&mut buffer), Some((there, SocketAddrV4::new(here, port), 5)));
        assert_eq!((&buffer[..5], socket.receive(&mut [0; 16]), socket.overflowed()), (&b"hello"[..], None, 0));
        let nowhere = socket.send(Ipv4Addr::new(192, 0, 2, 1), SocketAddrV4::new(there, port), b"x");
        assert!(nowhere.is_err(), "an address of somebody else");
    }

    #[test]
    fn drops_are_those_of_the_port() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
            1: 0100007F:14B4 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 5 2 0 7\n\
            2: 00000000:14B4 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 6 2 0 42\n";
        assert_eq!((drops_of(list, 0x14b4), drops_of(list, 1), drops_of("", 1)), (42, 0, 0));
    }
}
