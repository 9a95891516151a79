//! Datagrams in batches: one system call reads up to 64 questions, one sends their answers.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams per system call.
const BATCH: usize = 64;
/// Room for one datagram: above the longest valid one, so that longer ones show.
const ROOM: usize = 2048;

/// Buffers for one batch.
pub(crate) struct Datagrams {
    bytes: Vec<[u8; ROOM]>,
    senders: Vec<libc::sockaddr_in>,
    lengths: Vec<usize>,
    truncated: Vec<bool>,
    count: usize,
}

impl Datagrams {
    pub(crate) fn new() -> Self {
        // SAFETY: an all-zero sockaddr_in is valid.
        let nobody: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        Self {
            bytes: vec![[0; ROOM]; BATCH],
            senders: vec![nobody; BATCH],
            lengths: vec![0; BATCH],
            truncated: vec![false; BATCH],
            count: 0,
        }
    }

    /// Reads what is there, at most one batch, without waiting. Returns how many datagrams there were.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let mut vectors: Vec<libc::iovec> = self.bytes.iter_mut().map(iovec).collect();
        let mut headers: Vec<libc::mmsghdr> =
            vectors.iter_mut().zip(&mut self.senders).map(|(vector, sender)| header(vector, sender)).collect();
        // SAFETY: each header points to one iovec and one sockaddr_in, which live in `vectors` and `self` for the call
        // and do not move; the count is that of the headers.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        self.count = match usize::try_from(count) {
            Ok(count) => count,
            Err(_) => {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => 0,
                    _ => return Err(error),
                }
            }
        };
        for (index, header) in headers.iter().take(self.count).enumerate() {
            self.lengths[index] = header.msg_len as usize;
            self.truncated[index] = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        }
        Ok(self.count)
    }

    /// Datagram `index` of the batch: its sender and bytes; no bytes if it was too long to be read whole.
    pub(crate) fn get(&mut self, index: usize) -> (SocketAddrV4, &mut [u8]) {
        let sender = &self.senders[index];
        let ip = Ipv4Addr::from(u32::from_be(sender.sin_addr.s_addr));
        let from = SocketAddrV4::new(ip, u16::from_be(sender.sin_port));
        let length = if self.truncated[index] { 0 } else { self.lengths[index] };
        (from, &mut self.bytes[index][..length])
    }

    /// Sends the datagrams of these indexes back to their senders. Returns how many the kernel took.
    pub(crate) fn send_back(&mut self, socket: BorrowedFd<'_>, indexes: &[usize]) -> usize {
        let mut vectors: Vec<libc::iovec> = indexes
            .iter()
            .map(|index| libc::iovec { iov_len: self.lengths[*index], ..iovec(&mut self.bytes[*index]) })
            .collect();
        let mut headers: Vec<libc::mmsghdr> =
            vectors.iter_mut().zip(indexes).map(|(vector, index)| header(vector, &mut self.senders[*index])).collect();
        let (mut next, mut sent) = (0, 0);
        while next < headers.len() {
            // SAFETY: as in `receive`; the pointer and count name the headers not tried yet.
            let count = unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    headers[next..].as_mut_ptr(),
                    (headers.len() - next) as libc::c_uint,
                    libc::MSG_DONTWAIT,
                )
            };
            match usize::try_from(count) {
                Ok(count) if count > 0 => {
                    sent += count;
                    next += count;
                }
                // The first of them cannot be sent; the others perhaps can.
                _ => next += 1,
            }
        }
        sent
    }
}

fn iovec(bytes: &mut [u8; ROOM]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: ROOM }
}

fn header(vector: &mut libc::iovec, sender: &mut libc::sockaddr_in) -> libc::mmsghdr {
    // SAFETY: an all-zero mmsghdr is valid.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_name = std::ptr::from_mut(sender).cast();
    header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    header.msg_hdr.msg_iov = vector;
    header.msg_hdr.msg_iovlen = 1;
    header
}
