//! Rtnetlink, as far as a lab speaks it itself: a socket, the head of a message, the attributes behind it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// Numbers of `linux/netlink.h`.
pub(crate) const NLM_F_REQUEST: u16 = 1;
pub(crate) const NLMSG_ERROR: u16 = 2;
/// Size of `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;

/// A socket of the calling thread's namespace; it stays there.
pub(crate) struct Rtnetlink {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Rtnetlink {
    pub(crate) fn open() -> io::Result<Self> {
        // No protocol is protocol 0, which is NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket, buffer: vec![0; 1 << 16] })
    }

    pub(crate) fn send(&self, message: &[u8]) -> io::Result<()> {
        Ok(send(&self.socket, message, SendFlags::empty()).map(drop)?)
    }

    /// The next datagram.
    pub(crate) fn receive(&mut self) -> io::Result<&[u8]> {
        let (length, _) = recv(&self.socket, self.buffer.as_mut_slice(), RecvFlags::empty())?;
        Ok(&self.buffer[..length])
    }
}

/// A message: the head, then `body`, which is a multiple of 4 bytes long.
pub(crate) fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut message = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.resize(HEADER, 0);
    message.extend(body);
    message
}

/// The payload of the first attribute of this kind.
pub(crate) fn attribute(mut data: &[u8], kind: u16) -> Option<&[u8]> {
    while data.len() >= 4 {
        let length = usize::from(u16_at(data, 0));
        let value = data.get(4..length)?;
        // The upper two bits are flags.
        if u16_at(data, 2) & 0x3fff == kind {
            return Some(value);
        }
        data = data.get(length.next_multiple_of(4)..)?;
    }
    None
}

pub(crate) fn u16_at(data: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([data[at], data[at + 1]])
}

pub(crate) fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}
