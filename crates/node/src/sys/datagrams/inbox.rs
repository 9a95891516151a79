//! The receiving half: buffers of one batch, set up once and used again by every call.

use std::io;
use std::net::SocketAddrV4;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use super::{BATCH, Outbox, Sent, from_socket_address};

/// Room for one message: the longest burst.
const ROOM_BYTES: usize = 65_536;
/// From one message's room to the next. The cache lines on top keep the heads of the messages, often all that is used,
/// from falling into the same cache sets.
const STRIDE_BYTES: usize = ROOM_BYTES + 17 * 64;

/// Datagrams kept for an answer: a run of a message's bytes, in segments of equal length (the last may be shorter).
#[derive(Clone, Debug)]
struct Kept {
    message: usize,
    bytes: Range<usize>,
    segment: usize,
}

/// What the kernel needs to know and tells about one message.
#[repr(C)]
struct Slot {
    sender: libc::sockaddr_in,
    vector: libc::iovec,
    control: [u64; 4],
}

/// One batch of received messages.
pub struct Inbox {
    /// The kernel writes to the memory behind these pointers, so no reference to it is kept between calls. Freed on drop.
    bytes: NonNull<[u8]>,
    slots: NonNull<[Slot]>,
    headers: Vec<libc::mmsghdr>,
    /// Messages of the last batch.
    count: usize,
    kept: Vec<Kept>,
}

// SAFETY: the memory belongs to this value alone; nothing else has the pointers.
#[allow(clippy::non_send_fields_in_send_ty)]
unsafe impl Send for Inbox {}

impl Default for Inbox {
    fn default() -> Self {
        let bytes: NonNull<[u8]> = NonNull::from(Box::leak(vec![0u8; BATCH * STRIDE_BYTES].into_boxed_slice()));
        // SAFETY: an all-zero Slot is valid: numbers and a null pointer.
        let slots: Box<[Slot]> = (0..BATCH).map(|_| unsafe { std::mem::zeroed() }).collect();
        let slots: NonNull<[Slot]> = NonNull::from(Box::leak(slots));
        let headers = (0..BATCH).map(|index| header(bytes, slots, index)).collect();
        Self { bytes, slots, headers, count: BATCH, kept: Vec::with_capacity(BATCH) }
    }
}

impl Inbox {
    /// Reads what is there, at most one batch, without waiting. Returns how many messages there were.
    ///
    /// # Errors
    /// The kernel's.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        for header in &mut self.headers[..self.count] {
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            header.msg_hdr.msg_controllen = size_of::<[u64; 4]>() as _;
        }
        self.count = 0;
        self.kept.clear();
        // SAFETY: every header points to its own slot and its own room, which live until this value is dropped and to
        // which no reference exists now; the count is that of the headers.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        self.count = match usize::try_from(count) {
            Ok(count) => count,
            Err(_) => match io::Error::last_os_error() {
                // A connected socket tells here that an earlier datagram found nobody.
                error if is_passing(&error) => 0,
                error => return Err(error),
            },
        };
        Ok(self.count)
    }

    /// Shows every datagram of the batch with its sender. What `keep` says yes to goes back by [`Self::send_back`].
    pub fn for_each(&mut self, mut keep: impl FnMut(SocketAddrV4, &mut [u8]) -> bool) {
        self.kept.clear();
        for message in 0..self.count {
            let length = (self.headers[message].msg_len as usize).min(ROOM_BYTES);
            let truncated = self.headers[message].msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            // SAFETY: the index is below BATCH; the kernel is done with the slot and nothing else refers to it.
            let slot = unsafe { &self.slots.as_ref()[message] };
            let sender = from_socket_address(&slot.sender);
            let controls = self.headers[message].msg_hdr.msg_controllen;
            let segment = segment_bytes(&slot.control, controls).unwrap_or(length).max(1);
            // SAFETY: as above; rooms do not overlap.
            let room = unsafe { &mut self.bytes.as_mut()[message * STRIDE_BYTES..][..length] };
            if truncated || length == 0 {
                keep(sender, &mut []);
                continue;
            }
            for (index, datagram) in room.chunks_mut(segment).enumerate() {
                let start = index * segment;
                let end = start + datagram.len();
                if keep(sender, datagram) {
                    match self.kept.last_mut() {
                        Some(last) if last.message == message && last.bytes.end == start => last.bytes.end = end,
                        _ => self.kept.push(Kept { message, bytes: start..end, segment }),
                    }
                }
            }
        }
    }

    /// Sends the datagrams that were kept back to their senders, as they are now.
    pub(crate) fn send_back(&mut self, socket: BorrowedFd<'_>, outbox: &mut Outbox) -> Sent {
        for Kept { message, bytes, segment } in self.kept.drain(..) {
            // SAFETY: as in `for_each`.
            let sender = from_socket_address(unsafe { &self.slots.as_ref()[message].sender });
            let base = message * STRIDE_BYTES;
            outbox.push(Some(sender), segment.min(bytes.len()), base + bytes.start..base + bytes.end);
        }
        // SAFETY: nothing writes to the rooms during the call.
        outbox.send(socket, unsafe { self.bytes.as_ref() })
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // SAFETY: both came from `Box::leak` in `new` and are freed once, here.
        unsafe {
            drop(Box::from_raw(self.bytes.as_ptr()));
            drop(Box::from_raw(self.slots.as_ptr()));
        }
    }
}

/// The header of message `index`; its pointers stay right as long as the memory is there.
fn header(bytes: NonNull<[u8]>, slots: NonNull<[Slot]>, index: usize) -> libc::mmsghdr {
    // SAFETY: the index is below BATCH, so both offsets are inside their allocations; nobody else refers to the slot; an
    // all-zero mmsghdr is valid.
    unsafe {
        let slot = slots.cast::<Slot>().as_ptr().add(index);
        (*slot).vector =
            libc::iovec { iov_base: bytes.cast::<u8>().as_ptr().add(index * STRIDE_BYTES).cast(), iov_len: ROOM_BYTES };
        let mut header: libc::mmsghdr = std::mem::zeroed();
        header.msg_hdr.msg_name = (&raw mut (*slot).sender).cast();
        header.msg_hdr.msg_iov = &raw mut (*slot).vector;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_control = (&raw mut (*slot).control).cast();
        header
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused)
}

/// How long the datagrams of a burst are, if the message is one: the value of its `UDP_GRO` control message.
fn segment_bytes(control: &[u64; 4], length: usize) -> Option<usize> {
    // SAFETY: an all-zero msghdr is valid; the control pointer and length describe `control`, which the macros only read.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_control = control.as_ptr().cast_mut().cast();
        header.msg_controllen = length.min(size_of_val(control)) as _;
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        if first.is_null() || (*first).cmsg_level != libc::SOL_UDP || (*first).cmsg_type != libc::UDP_GRO {
            return None;
        }
        let value = libc::CMSG_DATA(first).cast::<libc::c_int>().read_unaligned();
        usize::try_from(value).ok().filter(|bytes| *bytes > 0)
    }
}
