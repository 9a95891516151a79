//! Frames that leave as they are, one after the other and then from the first again, as live frames.

use weft_datapath::DatapathError;
use weft_datapath::abi::Abi;
use weft_datapath::object;

use super::frames::config;
use super::live::{FRAME_BYTES_MAX, Live, SendOrder, Sent};
use crate::abi::{TesterFrame, TesterGenerator};

/// Most frames: they stay in the kernel's memory, each with room for the longest.
const FRAMES_MAX: usize = 1 << 14;
const ETHERNET_BYTES: usize = 14;

/// A loaded sender of frames for one port.
#[derive(Debug)]
pub struct Replayer {
    live: Live,
    frames: u32,
    longest_bytes: usize,
}

impl Replayer {
    /// Most frames that one sender has.
    pub const FRAMES_MAX: usize = FRAMES_MAX;

    /// Loads a sender that sends out of an interface of the caller's namespace.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for no frames, too many, and lengths that cannot be sent; or any other.
    pub fn load<Bytes: AsRef<[u8]>>(interface: &str, frames: &[Bytes]) -> Result<Self, DatapathError> {
        if frames.is_empty() || frames.len() > FRAMES_MAX {
            return Err(config(&format!("{}; a sender has 1 to {FRAMES_MAX}", frames.len())));
        }
        let lengths = || frames.iter().map(|frame| frame.as_ref().len());
        if let Some(bytes) = lengths().find(|bytes| !(ETHERNET_BYTES..=FRAME_BYTES_MAX).contains(bytes)) {
            return Err(config(&format!("{bytes} bytes; live frames have {ETHERNET_BYTES} to {FRAME_BYTES_MAX}")));
        }
        let (count, longest_bytes) = (frames.len() as u32, lengths().max().unwrap_or(0));
        let live = Live::load(interface, |open| object::set_max_entries(open, "tester_frames", count))?;
        for (number, bytes) in (0u32..).zip(frames.iter().map(AsRef::as_ref)) {
            let cut = (longest_bytes - bytes.len()) as u32;
            let mut frame = TesterFrame { bytes: bytes.len() as u32, cut, ..TesterFrame::default() };
            frame.data[..bytes.len()].copy_from_slice(bytes);
            object::update(&live.object, "tester_frames", number.bytes(), frame.bytes())?;
        }
        Ok(Self { live, frames: count, longest_bytes })
    }

    /// Sends, from the first frame on, and returns when the time is over, the limit is reached or `stop` says so.
    ///
    /// # Errors
    /// [`DatapathError::Program`] where the kernel does not send live frames.
    pub fn send(&self, order: &SendOrder, stop: &(dyn Fn() -> bool + Sync)) -> Result<Sent, DatapathError> {
        let state = TesterGenerator { streams: self.frames, ..TesterGenerator::default() };
        self.live.send("tester_replay", &vec![0; self.longest_bytes], state, order, stop)
    }
}
