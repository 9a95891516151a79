//! Frames by packet socket (`AF_PACKET`, past the queueing discipline): for ports that live frames cannot leave by, and for
//! the single frames that bridges learn stations from. A third of the speed and three times the floor of live frames.
#![allow(unsafe_code)]

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::time::ClockId;
use weft_testbed::cpu;
use weft_testbed::tester::{Frames, SendOrder, Sent};
use weft_wire::probe::{PROBE_LEN, Probe, fill_pattern};

use super::latency::{BUCKETS, bucket_of};
use crate::netns::join;
use crate::sys::{bind_to_interface, now_ns, packet_socket, set_option};

/// Frames in one call when unpaced.
const BATCH: usize = 32;

/// A socket that sends out of one interface of the namespace that it was opened in.
pub(crate) struct PacketSender(OwnedFd);

impl PacketSender {
    pub(crate) fn open(interface: &str) -> io::Result<Self> {
        let socket = packet_socket()?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        bind_to_interface(&socket, interface, 0)?;
        Ok(Self(socket))
    }

    /// Sends one frame; a full queue is not an error but `false`.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<bool> {
        // SAFETY: the pointer and length are those of `frame`.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if sent >= 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR) => Ok(false),
            _ => Err(error),
        }
    }

    /// Sends frames in one call; how many went.
    fn send_many(&self, frames: &[&[u8]]) -> io::Result<usize> {
        let mut parts: Vec<libc::iovec> = frames
            .iter()
            .map(|frame| libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() })
            .collect();
        let mut messages: Vec<libc::mmsghdr> = parts
            .iter_mut()
            .map(|part| {
                // SAFETY: all-zero is a valid value of this plain C structure.
                let mut message: libc::mmsghdr = unsafe { zeroed() };
                message.msg_hdr.msg_iov = part;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        // SAFETY: every message points to one part, every part to a frame; all outlive the call.
        let sent = unsafe { libc::sendmmsg(self.0.as_raw_fd(), messages.as_mut_ptr(), messages.len() as u32, 0) };
        if sent >= 0 {
            return Ok(sent as usize);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR) => Ok(0),
            _ => Err(error),
        }
    }

    /// Sends a trial from a thread of its own that waits for each frame's time with its eyes on the clock.
    pub(crate) fn send_trial(
        &self,
        source: &dyn Source,
        order: &SendOrder,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> io::Result<Sent> {
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                cpu::take(order.cpu).map_err(io::Error::other)?;
                Schedule::new(source, order).run(self, stop)
            });
            join(sender)
        })
    }
}

/// What a trial's frames are.
pub(crate) trait Source: Sync {
    /// Room for any frame, with what is the same in all of them.
    fn room(&self) -> Vec<u8>;

    /// Writes the frame of this number, from 0 on, that leaves now; its length.
    fn write(&self, room: &mut [u8], number: u64, now_ns: u64) -> usize;
}

/// Frames of streams, with a probe.
pub(crate) struct Probed {
    frames: Frames,
    seed: u8,
}

impl Probed {
    /// Those of a trial.
    pub(crate) fn new(frames: &Frames, seed: u8) -> Self {
        Self { frames: frames.clone().of_seed(seed), seed }
    }
}

impl Source for Probed {
    fn room(&self) -> Vec<u8> {
        let mut room = vec![0; self.frames.longest_bytes()];
        fill_pattern(self.seed, &mut room[self.frames.head_bytes() + PROBE_LEN..]);
        room
    }

    fn write(&self, room: &mut [u8], number: u64, now_ns: u64) -> usize {
        let streams = self.frames.streams() as u64;
        let (stream, sequence) = ((number % streams) as usize, (number / streams) as u32);
        let length = &self.frames.lengths[self.frames.place(stream, sequence)];
        let head = &length.heads[stream];
        let probe = Probe { stream: stream as u16, sequence, seed: self.seed, sent_ns: now_ns, delay_units: 0 };
        room[..head.len()].copy_from_slice(head);
        room[head.len()..head.len() + PROBE_LEN].copy_from_slice(&probe.to_bytes());
        length.frame_bytes
    }
}

/// Frames as they are, the first again after the last.
impl Source for Vec<Vec<u8>> {
    fn room(&self) -> Vec<u8> {
        vec![0; self.iter().map(Vec::len).max().unwrap_or(0)]
    }

    fn write(&self, room: &mut [u8], number: u64, _now_ns: u64) -> usize {
        let frame = &self[(number % self.len() as u64) as usize];
        room[..frame.len()].copy_from_slice(frame);
        frame.len()
    }
}

/// One trial's progress.
struct Schedule<'a> {
    order: &'a SendOrder,
    source: &'a dyn Source,
    /// Room for what goes in one call, each as long as the longest frame.
    buffers: Vec<Vec<u8>>,
    /// How much of each is its frame.
    lengths: Vec<usize>,
    sent: Sent,
    first_ns: u64,
    last_ns: u64,
}

impl<'a> Schedule<'a> {
    fn new(source: &'a dyn Source, order: &'a SendOrder) -> Self {
        let paced = order.interval_ns > 0.0;
        let count = if paced { 1 } else { BATCH };
        let gaps = if paced { vec![0; BUCKETS] } else { Vec::new() };
        Self {
            order,
            source,
            buffers: vec![source.room(); count],
            lengths: vec![0; count],
            sent: Sent { gaps, ..Sent::default() },
            first_ns: 0,
            last_ns: 0,
        }
    }

    fn run(mut self, socket: &PacketSender, stop: &(dyn Fn() -> bool + Sync)) -> io::Result<Sent> {
        let cpu = now_ns(ClockId::ThreadCPUTime);
        let end = now_ns(ClockId::Monotonic) + self.order.duration_ns;
        let mut due = now_ns(ClockId::Monotonic) as f64;
        let mut turns = 0u64;
        loop {
            let now = now_ns(ClockId::Monotonic);
            let asks = turns.is_multiple_of(1 << 12) && stop();
            turns += 1;
            if now >= end || self.sent.frames >= self.order.limit || asks {
                break;
            }
            if self.order.interval_ns > 0.0 {
                if (now as f64) < due {
                    continue;
                }
                if now as f64 - due > self.order.slip_ns as f64 {
                    self.sent.slips += 1;
                    due = now as f64;
                }
                due += self.order.interval_ns;
            }
            self.send_next(socket)?;
        }
        self.sent.span_ns = self.last_ns.saturating_sub(self.first_ns);
        self.sent.cpu_ns = now_ns(ClockId::ThreadCPUTime) - cpu;
        Ok(self.sent)
    }

    fn send_next(&mut self, socket: &PacketSender) -> io::Result<()> {
        let count = self.buffers.len().min(usize::try_from(self.order.limit - self.sent.frames).unwrap_or(usize::MAX));
        let mut now = 0;
        for place in 0..count {
            now = now_ns(ClockId::Monotonic);
            let number = self.sent.frames + place as u64;
            self.lengths[place] = self.source.write(&mut self.buffers[place], number, now);
        }
        let frame = |place: usize| &self.buffers[place][..self.lengths[place]];
        let sent = if count == 1 {
            usize::from(socket.send(frame(0))?)
        } else {
            socket.send_many(&(0..count).map(frame).collect::<Vec<_>>())?
        };
        if sent > 0 {
            if self.sent.frames == 0 {
                self.first_ns = now;
            } else if let Some(gap) = self.sent.gaps.get_mut(bucket_of(now - self.last_ns)) {
                *gap += 1;
            }
            self.last_ns = now;
        }
        self.sent.frames += sent as u64;
        Ok(())
    }
}
