//! Frames of links between RBridges. XDP takes and sends them past every packet socket, so they come from the taps of
//! the data paths: each shows what leaves by its ends. What daemons send and receive a packet socket sees.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use weft_datapath::trill::{Tap, Tapped};

use crate::capture::Frame;
use crate::error::LabError;
use crate::overlay::datapath_error;

/// Ethertype of TRILL data; TRILL IS-IS is left to the packet socket.
const TRILL: [u8; 2] = [0x22, 0xf3];

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

/// A port at such a link.
#[derive(Clone, Debug)]
pub(crate) struct TrunkPort {
    /// What frames are to be known by.
    pub(crate) place: usize,
    pub(crate) own: End,
    pub(crate) far: End,
}

/// The open taps of the RBridges at some links, one each: a tap has one reader.
pub(crate) struct Trunks {
    taps: Vec<(String, Tap)>,
    wanted: Vec<Wanted>,
    waiting: VecDeque<(usize, bool, Tapped)>,
    /// From the kernel's monotonic clock to the time since 1970.
    offset: Duration,
}

/// What a tap's frames from this address are: those of a port, on their way out of it or into it.
struct Wanted {
    tap: usize,
    mac: [u8; 6],
    place: usize,
    outgoing: bool,
}

impl Trunks {
    /// Opens the taps.
    pub(crate) fn open(ports: &[TrunkPort]) -> Result<Self, LabError> {
        let mut trunks = Self { taps: Vec::new(), wanted: Vec::new(), waiting: VecDeque::new(), offset: offset() };
        for TrunkPort { place, own, far } in ports {
            for (end, outgoing) in [(own, true), (far, false)] {
                let tap = trunks.tap_of(end)?;
                trunks.wanted.push(Wanted { tap, mac: end.mac, place: *place, outgoing });
            }
        }
        Ok(trunks)
    }

    fn tap_of(&mut self, end: &End) -> Result<usize, LabError> {
        if let Some(place) = self.taps.iter().position(|(node, _)| *node == end.node) {
            return Ok(place);
        }
        let tap = Tap::open_pinned(&end.pins, 1).map_err(|error| datapath_error(&end.node, &error))?;
        self.taps.push((end.node.clone(), tap));
        Ok(self.taps.len() - 1)
    }

    /// What is readable when there is a frame.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.taps.iter().map(|(_, tap)| tap.as_fd())
    }

    /// The next frame with its port's place, if there is one.
    pub(crate) fn receive_now(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, Frame)>> {
        if self.waiting.is_empty() {
            self.take()?;
        }
        let Some((place, outgoing, frame)) = self.waiting.pop_front() else { return Ok(None) };
        let captured_bytes = frame.bytes.len().min(buffer.len());
        buffer[..captured_bytes].copy_from_slice(&frame.bytes[..captured_bytes]);
        let time_since_1970 = self.offset + Duration::from_nanos(frame.time_ns);
        Ok(Some((place, Frame { time_since_1970, captured_bytes, original_bytes: frame.length, outgoing })))
    }

    fn take(&mut self) -> io::Result<()> {
        let mut taken = Vec::new();
        for (place, (_, tap)) in self.taps.iter().enumerate() {
            for frame in tap.take().map_err(io::Error::other)? {
                let of_it = |wanted: &&Wanted| wanted.tap == place && leaves_by(&frame.bytes, wanted.mac);
                let ports = self.wanted.iter().filter(of_it).map(|wanted| (wanted.place, wanted.outgoing));
                taken.extend(ports.map(|(place, outgoing)| (place, outgoing, frame.clone())));
            }
        }
        taken.sort_by_key(|(_, _, frame)| frame.time_ns);
        self.waiting = taken.into();
        Ok(())
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
