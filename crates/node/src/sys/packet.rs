//! Whole Ethernet frames. Of an agent's interface they come with the kernel's vnet header in front, which carries what
//! checksum and segmentation offload still have to do (`struct virtio_net_hdr`): a super frame that passes through keeps
//! its shape.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{interface_index, set_int};

/// Length of the vnet header, bytes.
pub(crate) const VNET_LEN: usize = 10;

/// Room for the header and the largest super frame.
const BUFFER_LEN: usize = VNET_LEN + 14 + 65_536;

/// A packet socket on one interface.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

/// What a read found.
pub(crate) enum Received {
    /// A frame with its vnet header.
    Frame(Vec<u8>),
    /// A frame longer than any that a kernel makes.
    TooLong,
    /// Nothing more.
    Empty,
}

impl PacketSocket {
    /// Reads all frames that arrive on the interface, and sends on it.
    pub(crate) fn receiving(interface: &str) -> io::Result<Self> {
        let socket = Self::open(interface, libc::ETH_P_ALL as u16)?;
        let fd = socket.fd.as_raw_fd();
        set_int(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        if rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket.fd, 8 << 20).is_err() {
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket.fd, 8 << 20)?;
        }
        Ok(socket)
    }

    /// Sends on the interface with this mark, and reads nothing.
    pub(crate) fn sending(interface: &str, mark: u32) -> io::Result<Self> {
        let socket = Self::open(interface, 0)?;
        set_int(socket.fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MARK, mark as i32)?;
        Ok(socket)
    }

    fn open(interface: &str, protocol: u16) -> io::Result<Self> {
        let index = interface_index(interface)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Protocol 0 until it is bound: frames of other interfaces must not get in.
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None::<rustix::net::Protocol>)?;
        set_int(fd.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        bind(&fd, index, protocol)?;
        Ok(Self { fd, buffer: vec![0; BUFFER_LEN] })
    }

    /// The next frame that arrived.
    pub(crate) fn receive(&mut self) -> io::Result<Received> {
        match rustix::net::recv(&self.fd, &mut self.buffer[..], rustix::net::RecvFlags::TRUNC) {
            Ok((_, len)) if len > BUFFER_LEN => Ok(Received::TooLong),
            Ok((_, len)) => Ok(Received::Frame(self.buffer[..len].to_vec())),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(Received::Empty),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sends a frame that starts with its vnet header.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.fd, frame, rustix::net::SendFlags::empty())?;
        Ok(())
    }
}

/// A packet socket that reads the frames of one Ethertype that arrive on any interface.
#[derive(Debug)]
pub(crate) struct TypeSocket {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

impl TypeSocket {
    pub(crate) fn open(ethertype: u16) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None::<rustix::net::Protocol>)?;
        if rustix::net::sockopt::set_socket_recv_buffer_size_force(&fd, 8 << 20).is_err() {
            rustix::net::sockopt::set_socket_recv_buffer_size(&fd, 8 << 20)?;
        }
        bind(&fd, 0, ethertype)?;
        Ok(Self { fd, buffer: vec![0; 14 + 65_536] })
    }

    /// The next frame that arrived, and the index of the interface that it came by; `None`: nothing more.
    pub(crate) fn receive(&mut self) -> io::Result<Option<(u32, &[u8])>> {
        // SAFETY: an all-zero sockaddr_ll is valid.
        let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut from_len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: buffer and address are writable for the lengths given.
        let length = unsafe {
            libc::recvfrom(
                self.fd.as_raw_fd(),
                self.buffer.as_mut_ptr().cast(),
                self.buffer.len(),
                0,
                (&raw mut from).cast(),
                &raw mut from_len,
            )
        };
        match usize::try_from(length) {
            Ok(length) => Ok(Some((u32::try_from(from.sll_ifindex).unwrap_or(0), &self.buffer[..length]))),
            Err(_) => match io::Error::last_os_error() {
                error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
                error => Err(error),
            },
        }
    }
}

impl AsFd for TypeSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A packet socket that sends whole frames out of any interface, and reads nothing.
#[derive(Debug)]
pub(crate) struct FrameSender(OwnedFd);

impl FrameSender {
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Protocol 0: nothing is received.
        Ok(Self(socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None::<rustix::net::Protocol>)?))
    }

    /// Sends a frame out of the interface with this index.
    pub(crate) fn send(&self, ifindex: u32, frame: &[u8]) -> io::Result<()> {
        let address = link_address(ifindex, 0)?;
        // SAFETY: the frame and the address are readable for the lengths given.
        let sent = unsafe {
            libc::sendto(
                self.0.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn link_address(index: u32, protocol: u16) -> io::Result<libc::sockaddr_ll> {
    // SAFETY: an all-zero sockaddr_ll is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = i32::try_from(index).map_err(io::Error::other)?;
    Ok(address)
}

fn bind(fd: &OwnedFd, index: u32, protocol: u16) -> io::Result<()> {
    let address = link_address(index, protocol)?;
    // SAFETY: the address is a sockaddr_ll of the length given.
    let result = unsafe {
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
