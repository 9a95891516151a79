//! What a generator's frames are, whichever way they leave: lengths, headers, and whose turn it is.

use weft_datapath::DatapathError;
use weft_wire::{checksum, probe, udp};

/// Most turns in a round of lengths.
pub const TURNS_MAX: usize = crate::abi::TESTER_TURNS as usize;
/// Most headers: those of all streams for every length.
const HEADS_MAX: usize = 1 << 19;

/// The frames of streams: one after the other sends its next frame, and after the last one the first again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames {
    /// The lengths that there are.
    pub lengths: Vec<Length>,
    /// Places in `lengths` that a stream's frames have in turn. Each stream is one further than the stream before it, so that frames
    /// are mixed alike in every stream and on the line.
    pub turns: Vec<usize>,
}

/// Frames of one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Length {
    /// Without FCS, bytes.
    pub frame_bytes: usize,
    /// By stream: headers up to the probe, all of 42 bytes (IPv4) or all of 62 (IPv6), or of 4 more with a tag. The UDP checksum, the
    /// last two bytes, covers no payload; 0 is none.
    pub heads: Vec<Vec<u8>>,
}

impl Frames {
    /// Frames of one length.
    pub fn of_one_length(frame_bytes: usize, heads: Vec<Vec<u8>>) -> Self {
        Self { lengths: vec![Length { frame_bytes, heads }], turns: vec![0] }
    }

    /// The place in `lengths` of a frame.
    pub fn place(&self, stream: usize, sequence: u32) -> usize {
        self.turns[(sequence.wrapping_add(stream as u32) as usize) % self.turns.len()]
    }

    /// How many streams there are.
    pub fn streams(&self) -> usize {
        self.lengths[0].heads.len()
    }

    /// Length of the headers, bytes.
    pub fn head_bytes(&self) -> usize {
        self.lengths[0].heads[0].len()
    }

    /// The longest frame, bytes.
    pub fn longest_bytes(&self) -> usize {
        self.lengths.iter().map(|length| length.frame_bytes).max().unwrap_or(0)
    }

    /// The same with UDP checksums that cover the pattern of this seed as well, where there are any. What the probe says is nothing to
    /// them: see [`probe`].
    #[must_use]
    pub fn of_seed(mut self, seed: u8) -> Self {
        for Length { frame_bytes, heads } in &mut self.lengths {
            let mut pattern = vec![0; *frame_bytes - heads[0].len() - probe::PROBE_LEN];
            probe::fill_pattern(seed, &mut pattern);
            let sum = (!checksum::of(&pattern)).to_be_bytes();
            for head in heads {
                let field = head.last_chunk_mut().expect("heads end with a UDP header");
                *field = udp::covering(u16::from_be_bytes(*field), &sum).to_be_bytes();
            }
        }
        self
    }

    /// # Errors
    /// [`DatapathError::Config`] for what cannot be sent.
    pub(super) fn check(&self) -> Result<(), DatapathError> {
        let heads = || self.lengths.iter().flat_map(|length| &length.heads);
        let (streams, first) = (self.lengths.first().map_or(0, |length| length.heads.len()), heads().next());
        let head_bytes = first.map_or(0, Vec::len);
        if !matches!(head_bytes, 42 | 46 | 62 | 66) || heads().any(|head| head.len() != head_bytes) {
            return Err(config("streams need headers of 42 bytes (IPv6: 62), or all of 4 more with a tag"));
        }
        let alike = self.lengths.iter().all(|length| length.heads.len() == streams);
        if !alike || streams > 1 << 16 || heads().count() > HEADS_MAX {
            return Err(config("there are too many streams or lengths, or not all streams have all lengths"));
        }
        let turns = self.turns.len();
        if turns == 0 || turns > TURNS_MAX || self.turns.iter().any(|place| *place >= self.lengths.len()) {
            return Err(config(&format!("{turns} turns; a round of lengths has 1 to {TURNS_MAX}")));
        }
        let least = head_bytes + probe::PROBE_LEN;
        match self.lengths.iter().find(|length| length.frame_bytes < least) {
            Some(length) => Err(config(&format!("{} bytes; such frames have at least {least}", length.frame_bytes))),
            None => Ok(()),
        }
    }
}

pub(super) fn config(why: &str) -> DatapathError {
    DatapathError::Config { field: "frame", why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(turns: Vec<usize>) -> Frames {
        let length = |frame_bytes| Length { frame_bytes, heads: vec![vec![0; 62]; 3] };
        Frames { lengths: vec![length(80), length(200)], turns }
    }

    #[test]
    fn streams_begin_their_rounds_one_after_the_other() {
        let frames = frames(vec![0, 0, 1]);
        let of = |stream| (0..6).map(|sequence| frames.place(stream, sequence)).collect::<Vec<_>>();
        assert_eq!([of(0), of(1), of(2)], [[0, 0, 1, 0, 0, 1], [0, 1, 0, 0, 1, 0], [1, 0, 0, 1, 0, 0]]);
        assert_eq!(Frames::of_one_length(80, vec![vec![0; 42]]).place(0, u32::MAX), 0);
    }

    #[test]
    fn checksums_cover_the_pattern_where_there_are_any() {
        let mut plain = frames(vec![0]);
        plain.lengths[1].heads[2][60..].copy_from_slice(&[0x12, 0x34]);
        let sealed = plain.clone().of_seed(9);
        assert_eq!(sealed.lengths[0], plain.lengths[0], "0 is none");
        let mut payload = vec![0; 200 - 62];
        probe::Probe { stream: 2, sequence: 77, seed: 9, sent_ns: 12_345_678, delay_units: 3 }.fill(&mut payload);
        let expected = checksum::extended(0x1234, &payload).to_be_bytes();
        assert_eq!(sealed.lengths[1].heads[2][60..], expected);
        assert_ne!(plain.of_seed(10).lengths[1].heads[2][60..], expected, "each trial has its own pattern");
    }

    #[test]
    fn frames_that_cannot_be_are_refused() {
        let refused = |frames: Frames| frames.check().unwrap_err().to_string();
        let one = |frame_bytes, heads| Frames::of_one_length(frame_bytes, heads);
        assert!(refused(one(60, vec![])).contains("42 bytes"));
        assert!(refused(one(60, vec![vec![0; 41]])).contains("42 bytes"));
        assert!(refused(one(60, vec![vec![0; 42], vec![0; 46]])).contains("42 bytes"));
        assert!(refused(one(79, vec![vec![0; 62]])).contains("at least 80"));
        assert!(refused(frames(vec![])).contains("0 turns"));
        assert!(refused(frames(vec![2])).contains("1 turns"));
        assert!(refused(frames(vec![0; 257])).contains("1 to 256"));
        let mut uneven = frames(vec![0, 1]);
        uneven.lengths[1].heads.pop();
        assert!(refused(uneven).contains("not all streams"));
        assert!(frames(vec![0, 1]).check().is_ok());
    }
}
