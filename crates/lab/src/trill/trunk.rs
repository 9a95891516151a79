//! Frames of a link between two RBridges. XDP takes and sends them past every packet socket, so they come from the taps of
//! the two data paths: each shows what leaves by its end. What daemons send and receive a packet socket sees.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};
use weft_datapath::trill::{Tap, Tapped};

use crate::capture::{Frame, PacketSocket};
use crate::error::LabError;
use crate::overlay::datapath_error;

/// Ethertype of TRILL data; TRILL IS-IS is left to the packet socket.
const TRILL: [u8; 2] = [0x22, 0xf3];
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// One end of a link between RBridges.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// Its node, for messages.
    pub(crate) node: String,
    /// Where its RBridge's data path is pinned.
    pub(crate) pins: PathBuf,
    /// MAC of its port.
    pub(crate) mac: [u8; 6],
}

/// The open taps of both ends, and a packet socket at one of them.
pub(crate) struct Trunk {
    socket: PacketSocket,
    taps: Vec<(Tap, [u8; 6])>,
    waiting: VecDeque<Tapped>,
    /// From the kernel's monotonic clock to the time since 1970.
    offset: Duration,
}

impl Trunk {
    /// Opens the taps.
    pub(crate) fn open(socket: PacketSocket, ends: &[End]) -> Result<Self, LabError> {
        let open =
            |end: &End| Ok((Tap::open_pinned(&end.pins, 1).map_err(|e| datapath_error(&end.node, &e))?, end.mac));
        let taps = ends.iter().map(open).collect::<Result<_, LabError>>()?;
        Ok(Self { socket, taps, waiting: VecDeque::new(), offset: offset() })
    }

    /// Waits a short time for a frame of either kind.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Frame>> {
        if let Some(frame) = self.tapped(buffer)? {
            return Ok(Some(frame));
        }
        if let Some(frame) = self.socket.receive_now(buffer)? {
            return Ok(Some(frame));
        }
        let mut sources: Vec<PollFd<'_>> = self.taps.iter().map(|(tap, _)| PollFd::new(tap, PollFlags::IN)).collect();
        sources.push(PollFd::new(&self.socket, PollFlags::IN));
        match poll(&mut sources, Some(&PATIENCE)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        drop(sources);
        self.receive_now(buffer)
    }

    /// The same without waiting.
    pub(crate) fn receive_now(&mut self, buffer: &mut [u8]) -> io::Result<Option<Frame>> {
        match self.tapped(buffer)? {
            Some(frame) => Ok(Some(frame)),
            None => self.socket.receive_now(buffer),
        }
    }

    /// Frames that the packet socket could not hold since the last call.
    pub(crate) fn dropped(&self) -> io::Result<u64> {
        self.socket.dropped()
    }

    fn tapped(&mut self, buffer: &mut [u8]) -> io::Result<Option<Frame>> {
        if self.waiting.is_empty() {
            let mut taken = Vec::new();
            for (tap, mac) in &self.taps {
                let frames = tap.take().map_err(io::Error::other)?;
                taken.extend(frames.into_iter().filter(|frame| leaves_by(&frame.bytes, *mac)));
            }
            taken.sort_by_key(|frame| frame.time_ns);
            self.waiting = taken.into();
        }
        let Some(frame) = self.waiting.pop_front() else { return Ok(None) };
        let captured_bytes = frame.bytes.len().min(buffer.len());
        buffer[..captured_bytes].copy_from_slice(&frame.bytes[..captured_bytes]);
        let time_since_1970 = self.offset + Duration::from_nanos(frame.time_ns);
        Ok(Some(Frame { time_since_1970, captured_bytes, original_bytes: frame.length }))
    }
}

/// Whether a TRILL data frame was sent by the port with this address.
fn leaves_by(frame: &[u8], mac: [u8; 6]) -> bool {
    frame.get(6..12) == Some(&mac) && frame.get(12..14) == Some(&TRILL)
}

fn offset() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let monotonic = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(monotonic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_that_the_port_sent_is_taken() {
        let frame = |source: [u8; 6], ethertype: [u8; 2]| [&[0; 6][..], &source, &ethertype, &[0; 46]].concat();
        let mac = [2, 0, 0, 0, 0, 1];
        assert!(leaves_by(&frame(mac, TRILL), mac));
        assert!(!leaves_by(&frame([2; 6], TRILL), mac), "of the other end");
        assert!(!leaves_by(&frame(mac, [0x22, 0xf4]), mac), "IS-IS");
        assert!(!leaves_by(&frame(mac, TRILL)[..13], mac));
    }
}
