//! The sending half: datagrams of equal length to one peer leave as one burst.

use std::io;
use std::net::SocketAddrV4;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::to_socket_address;

/// Datagrams in one burst: what the oldest kernel with `UDP_SEGMENT` takes.
const SEGMENTS_MAX: usize = 64;
/// Bytes in one burst, below the longest IPv4 packet.
const BURST_BYTES_MAX: usize = 65_000;
/// Room for one control message with a `u16`.
const CONTROL_WORDS: usize = 3;

/// What became of a batch, in datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// That left.
    pub datagrams: usize,
    /// That did not.
    pub failed: usize,
}

/// One message to the kernel: datagrams of `segment` bytes, the last perhaps shorter.
struct Burst {
    to: Option<SocketAddrV4>,
    segment: usize,
    bytes: usize,
    pieces: Range<usize>,
}

/// A batch to be sent. Its arrays are used again.
pub struct Outbox {
    bursts: Vec<Burst>,
    pieces: Vec<Range<usize>>,
    /// Datagrams that may share a burst.
    segments_max: usize,
    vectors: Vec<libc::iovec>,
    names: Vec<libc::sockaddr_in>,
    controls: Vec<[u64; CONTROL_WORDS]>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers in the arrays are set and used within one call of `submit` only.
#[allow(clippy::non_send_fields_in_send_ty)]
unsafe impl Send for Outbox {}

impl Default for Outbox {
    fn default() -> Self {
        Self::with_bursts_of(SEGMENTS_MAX)
    }
}

impl Outbox {
    /// One whose bursts have at most so many datagrams; 1: no bursts.
    pub fn with_bursts_of(segments_max: usize) -> Self {
        Self {
            bursts: Vec::new(),
            pieces: Vec::new(),
            segments_max: segments_max.clamp(1, SEGMENTS_MAX),
            vectors: Vec::new(),
            names: Vec::new(),
            controls: Vec::new(),
            headers: Vec::new(),
        }
    }

    /// Adds datagrams of `segment` bytes each (the last may be shorter): the given range of what [`Self::send`] is handed.
    /// They join what was pushed before where they can. `to`: `None` on a connected socket.
    pub fn push(&mut self, to: Option<SocketAddrV4>, segment: usize, range: Range<usize>) {
        let segment = segment.max(1);
        let most = segment * (BURST_BYTES_MAX / segment).clamp(1, self.segments_max);
        let mut rest = range;
        while !rest.is_empty() {
            let taken = self.join(to, segment, most, &rest).unwrap_or_else(|| {
                let bytes = rest.len().min(most);
                let pieces = self.pieces.len()..self.pieces.len() + 1;
                self.bursts.push(Burst { to, segment, bytes, pieces });
                bytes
            });
            self.pieces.push(rest.start..rest.start + taken);
            rest.start += taken;
        }
    }

    /// Extends the last burst. Returns how many bytes it takes.
    fn join(&mut self, to: Option<SocketAddrV4>, segment: usize, most: usize, rest: &Range<usize>) -> Option<usize> {
        let last = self.bursts.last_mut()?;
        let fits = last.to == to && last.segment == segment && last.bytes % segment == 0 && last.bytes < most;
        let bytes = fits.then(|| rest.len().min(most - last.bytes))?;
        last.bytes += bytes;
        last.pieces.end += 1;
        Some(bytes)
    }

    /// Sends everything pushed since the last call; ranges are of `bytes`. Does not wait: what finds no room fails.
    ///
    /// # Panics
    /// When a pushed range is not inside `bytes`.
    pub fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8]) -> Sent {
        let mut sent = Sent::default();
        let mut next = 0;
        while next < self.bursts.len() {
            let taken = self.submit(socket, bytes, next);
            match taken {
                Ok(taken) => {
                    sent.datagrams += self.bursts[next..next + taken].iter().map(Burst::datagrams).sum::<usize>();
                    next += taken;
                }
                Err(error) => {
                    let outcome = self.send_singly(socket, bytes, next, &error);
                    sent.datagrams += outcome.datagrams;
                    sent.failed += outcome.failed;
                    next += 1;
                }
            }
        }
        self.bursts.clear();
        self.pieces.clear();
        sent
    }

    /// One system call for the bursts from `first` on. Returns how many of them the kernel took, at least one.
    fn submit(&mut self, socket: BorrowedFd<'_>, bytes: &[u8], first: usize) -> io::Result<usize> {
        self.lay_out(bytes, first);
        // SAFETY: `lay_out` made every header point into `bytes` and into arrays of this value that do not change until
        // the call returns; the kernel only reads them, except for the lengths in the headers.
        let count = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        match usize::try_from(count) {
            Ok(count) if count > 0 => Ok(count),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn lay_out(&mut self, bytes: &[u8], first: usize) {
        let bursts = &self.bursts[first..];
        let first_piece = bursts.first().map_or(0, |burst| burst.pieces.start);
        let vector = |piece: &Range<usize>| {
            let piece = &bytes[piece.clone()];
            libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() }
        };
        self.vectors.clear();
        self.vectors.extend(self.pieces[first_piece..].iter().map(vector));
        self.names.clear();
        self.names.extend(
            bursts.iter().map(|burst| {
                to_socket_address(burst.to.unwrap_or(SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, 0)))
            }),
        );
        self.controls.clear();
        self.controls.extend(bursts.iter().map(|burst| segment_control(burst.segment)));
        // No array grows from here on, so pointers into them stay right.
        self.headers.clear();
        for (index, burst) in bursts.iter().enumerate() {
            // SAFETY: an all-zero mmsghdr is valid.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            if burst.to.is_some() {
                header.msg_hdr.msg_name = (&raw mut self.names[index]).cast();
                header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            }
            header.msg_hdr.msg_iov = &raw mut self.vectors[burst.pieces.start - first_piece];
            header.msg_hdr.msg_iovlen = burst.pieces.len() as _;
            if burst.bytes > burst.segment {
                header.msg_hdr.msg_control = (&raw mut self.controls[index]).cast();
                header.msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
            }
            self.headers.push(header);
        }
    }

    /// What the kernel did not take as a burst: datagram by datagram if that may help.
    fn send_singly(&mut self, socket: BorrowedFd<'_>, bytes: &[u8], index: usize, error: &io::Error) -> Sent {
        let burst = &self.bursts[index];
        let datagrams = burst.datagrams();
        let cannot_segment = matches!(
            error.raw_os_error(),
            Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP | libc::ENOPROTOOPT)
        );
        if datagrams == 1 || !cannot_segment {
            return Sent { datagrams: 0, failed: datagrams };
        }
        if error.raw_os_error() == Some(libc::EIO) {
            // The device has no checksum offload, so it will not segment later either.
            self.segments_max = 1;
        }
        let whole: Vec<u8> =
            self.pieces[burst.pieces.clone()].iter().flat_map(|piece| bytes[piece.clone()].iter().copied()).collect();
        let mut alone = Self::with_bursts_of(1);
        alone.push(burst.to, burst.segment, 0..whole.len());
        alone.send(socket, &whole)
    }
}

impl Burst {
    fn datagrams(&self) -> usize {
        self.bytes.div_ceil(self.segment)
    }
}

/// A `UDP_SEGMENT` control message.
fn segment_control(segment: usize) -> [u64; CONTROL_WORDS] {
    let mut control = [0u64; CONTROL_WORDS];
    // SAFETY: an all-zero msghdr is valid; the control pointer and length describe `control`, which has room for one
    // header and a u16, so the first header exists and its data is inside.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        (*first).cmsg_level = libc::SOL_UDP;
        (*first).cmsg_type = libc::UDP_SEGMENT;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as libc::c_uint) as _;
        libc::CMSG_DATA(first).cast::<u16>().write_unaligned(u16::try_from(segment).unwrap_or(u16::MAX));
    }
    control
}
