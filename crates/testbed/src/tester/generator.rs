//! The generator: streams of frames with a probe, as live frames.

use weft_datapath::DatapathError;
use weft_datapath::abi::Abi;
use weft_datapath::object;
use weft_wire::probe;

use super::frames::{Frames, Length, config};
use super::live::{Live, SendOrder, Sent};
use crate::abi::{TesterGenerator, TesterHead, TesterTurn};

/// A loaded generator for one port.
#[derive(Debug)]
pub struct Generator {
    live: Live,
    frames: Frames,
}

impl Generator {
    /// Loads a generator that sends out of an interface of the caller's namespace.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for frames that cannot be, or any other.
    pub fn load(interface: &str, frames: &Frames) -> Result<Self, DatapathError> {
        frames.check()?;
        let heads = u32::try_from(frames.lengths.len() * frames.streams()).expect("heads are counted");
        let live = Live::load(interface, |open| object::set_max_entries(open, "tester_heads", heads))?;
        let generator = Self { live, frames: frames.clone() };
        generator.write_turns()?;
        generator.write_heads(frames)?;
        Ok(generator)
    }

    /// Whether [`Self::set_frames`] takes such frames; others need a generator of their own.
    pub fn takes(&self, frames: &Frames) -> bool {
        let shape = |frames: &Frames| (frames.lengths.len(), frames.streams(), frames.head_bytes());
        shape(frames) == shape(&self.frames)
    }

    /// Other lengths and headers for the same streams.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn set_frames(&mut self, frames: &Frames) -> Result<(), DatapathError> {
        frames.check()?;
        if !self.takes(frames) {
            return Err(config("the number of streams and of lengths, and the headers, cannot change"));
        }
        self.frames = frames.clone();
        self.write_turns()?;
        self.write_heads(frames)
    }

    fn write_turns(&self) -> Result<(), DatapathError> {
        let Frames { lengths, turns } = &self.frames;
        for (number, place) in (0u32..).zip(turns) {
            let heads = (place * self.frames.streams()) as u32;
            let cut = (self.frames.longest_bytes() - lengths[*place].frame_bytes) as u32;
            object::update(&self.live.object, "tester_turns", number.bytes(), TesterTurn { heads, cut }.bytes())?;
        }
        Ok(())
    }

    fn write_heads(&self, frames: &Frames) -> Result<(), DatapathError> {
        for (number, bytes) in (0u32..).zip(frames.lengths.iter().flat_map(|Length { heads, .. }| heads)) {
            let mut head = TesterHead::default();
            head.bytes[..bytes.len()].copy_from_slice(bytes);
            object::update(&self.live.object, "tester_heads", number.bytes(), head.bytes())?;
        }
        Ok(())
    }

    /// Sends, and returns when the time is over, the limit is reached or `stop` says so. The frames' payload is the
    /// pattern of the seed.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for a frame that is too long; [`DatapathError::Program`] where the kernel
    /// does not send live frames.
    pub fn send(&self, order: &SendOrder, stop: &(dyn Fn() -> bool + Sync)) -> Result<Sent, DatapathError> {
        // Checksums depend on the trial's pattern; where there are none, heads stay.
        let sealed = self.frames.clone().of_seed(order.seed);
        if sealed != self.frames {
            self.write_heads(&sealed)?;
        }
        let state = TesterGenerator {
            streams: self.frames.streams() as u32,
            head_bytes: self.frames.head_bytes() as u32,
            turns: self.frames.turns.len() as u32,
            ..TesterGenerator::default()
        };
        let program = if state.turns > 1 { "tester_generate_mix" } else { "tester_generate" };
        self.live.send(program, &self.template(order.seed), state, order, stop)
    }

    /// What pages hold before the program writes heads: the pattern, in its place.
    fn template(&self, seed: u8) -> Vec<u8> {
        let mut frame = vec![0; self.frames.longest_bytes()];
        probe::fill_pattern(seed, &mut frame[self.frames.head_bytes() + probe::PROBE_LEN..]);
        frame
    }
}
