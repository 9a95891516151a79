//! A packet socket (`AF_PACKET`) that sees every frame of one interface in both directions, with the kernel's times.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_recv_buffer_size_force, set_socket_timeout};

use crate::sys::{bind_to_interface, check, packet_socket, set_option};

/// How long [`PacketSocket::receive`] waits.
const PATIENCE: Duration = Duration::from_millis(100);
/// Room for what a reader has not taken yet.
pub(crate) const BUFFER_BYTES: usize = 32 << 20;

/// A received frame; its bytes are in the caller's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) time_since_1970: Duration,
    pub(crate) captured_bytes: usize,
    pub(crate) original_bytes: u32,
    /// Whether it leaves by the interface.
    pub(crate) outgoing: bool,
}

/// Frames of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// That came to it.
    pub(crate) received: u64,
    /// Of those, the ones that it had no room for.
    pub(crate) dropped: u64,
}

pub(crate) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens a socket on an interface of the calling thread's namespace. `ENODEV` if there is none of that name.
    pub(crate) fn open(interface: &str) -> io::Result<Self> {
        Self::open_with_room(interface, BUFFER_BYTES)
    }

    /// The same with so many bytes of room.
    pub(crate) fn open_with_room(interface: &str, bytes: usize) -> io::Result<Self> {
        let socket = Self(packet_socket()?);
        set_option(&socket.0, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        set_socket_recv_buffer_size_force(&socket.0, bytes)?;
        set_socket_timeout(&socket.0, Timeout::Recv, Some(PATIENCE))?;
        bind_to_interface(&socket.0, interface, libc::ETH_P_ALL as u16)?;
        Ok(socket)
    }

    /// The same, but only for what comes in by one queue, as the kernel notes it: that of the receiver counted from 1 where
    /// the driver polls, otherwise, on veth, that of the sender counted from 0.
    pub(crate) fn open_queue(interface: &str, noted: u16) -> io::Result<Self> {
        let socket = Self::open(interface)?;
        socket.keep_queue(noted)?;
        Ok(socket)
    }

    /// Numbers of linux/filter.h: load the direction or the queue, go on if equal.
    fn keep_queue(&self, noted: u16) -> io::Result<()> {
        const LOAD: u16 = 0x20;
        const IF_EQUAL: u16 = 0x15;
        const RETURN: u16 = 0x06;
        const QUEUE: u32 = 0xffff_f000 + 24;
        const DIRECTION: u32 = 0xffff_f000 + 4;
        let line = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let mut program = [
            line(LOAD, 0, 0, DIRECTION),
            line(IF_EQUAL, 3, 0, u32::from(libc::PACKET_OUTGOING)),
            line(LOAD, 0, 0, QUEUE),
            line(IF_EQUAL, 0, 1, u32::from(noted)),
            line(RETURN, 0, 0, u32::MAX),
            line(RETURN, 0, 0, 0),
        ];
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: the pointer and length describe `filter`, which points to `program`; both live through the call.
        check(unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const filter).cast(),
                size_of_val(&filter) as libc::socklen_t,
            )
        })
    }

    /// Waits a short time for a frame. `None` if none came, or if the interface went down meanwhile.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Frame>> {
        self.receive_with(buffer, 0)
    }

    /// The same without waiting.
    pub(crate) fn receive_now(&self, buffer: &mut [u8]) -> io::Result<Option<Frame>> {
        self.receive_with(buffer, libc::MSG_DONTWAIT)
    }

    fn receive_with(&self, buffer: &mut [u8], flags: libc::c_int) -> io::Result<Option<Frame>> {
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut control = [0u64; 16];
        // SAFETY: all-zero is a valid value of these plain C structures.
        let (mut message, mut from): (libc::msghdr, libc::sockaddr_ll) = unsafe { (zeroed(), zeroed()) };
        message.msg_name = (&raw mut from).cast();
        message.msg_namelen = size_of_val(&from) as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        // SAFETY: `message` points to `from`, `part` and `control`, and `part` to `buffer`; all live through the call and
        // their lengths are their own.
        let length = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, libc::MSG_TRUNC | flags) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ENETDOWN) => Ok(None),
                _ => Err(error),
            };
        }
        let original = length as usize;
        Ok(Some(Frame {
            time_since_1970: time_in(&message),
            captured_bytes: original.min(buffer.len()),
            original_bytes: original as u32,
            outgoing: from.sll_pkttype == libc::PACKET_OUTGOING,
        }))
    }

    /// What came since the last call.
    pub(crate) fn counts(&self) -> io::Result<Counts> {
        // SAFETY: all-zero is a valid value of this plain C structure.
        let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
        let mut length = size_of_val(&statistics) as libc::socklen_t;
        // SAFETY: the pointers describe `statistics` and its length; both live through the call.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        check(result)?;
        Ok(Counts { received: statistics.tp_packets.into(), dropped: statistics.tp_drops.into() })
    }
}

/// The kernel's time of arrival from a message's control data.
fn time_in(message: &libc::msghdr) -> Duration {
    // SAFETY: `message` was filled by a successful `recvmsg`, so its control buffer holds whole headers.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: the header lies in the control buffer, see above.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS {
            // SAFETY: data of this kind is a timespec; it may not be aligned.
            let time: libc::timespec = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
            return Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        }
        // SAFETY: both pointers are of the same message.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
