//! Which sizes frames have: one, or a mix of several in turns.
//!
//! A mix is a genome in the manner of RFC 6985, with sizes in the place of its letters: `imix:64x7,570x4,1518x1` is a round of 12 frames.
//! `imix` alone is that round, the simple mix of the trade's traffic generators; no standard says so, and RFC 6985 only how one is written.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use weft_testbed::tester::TURNS_MAX;

use super::rate::{FrameSize, LAYER1_EXTRA_BYTES, smallest_bytes};
use super::stream::Headers;

/// Most sizes in a mix.
const SIZES_MAX: usize = 16;
const PREFIX: &str = "imix";
const SIMPLE: [Share; 3] =
    [Share { bytes: 64, frames: 7 }, Share { bytes: 570, frames: 4 }, Share { bytes: 1518, frames: 1 }];

/// One size for all frames, or a mix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sizes(Vec<Share>);

/// How many frames of a round have a size, with FCS in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Share {
    bytes: u32,
    frames: u32,
}

/// The size of a row's frames.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SizeCells {
    /// With FCS, bytes; of a mix the mean, rounded.
    pub frame_bytes: u32,
    /// The mix as it is asked for: `imix`, or `imix:` and its round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix: Option<String>,
}

impl Sizes {
    /// The simple mix.
    pub fn simple_imix() -> Self {
        Self(SIMPLE.into())
    }

    /// More than one size.
    pub fn is_mix(&self) -> bool {
        self.0.len() > 1
    }

    /// Frames of a round.
    fn round(&self) -> u32 {
        self.0.iter().map(|share| share.frames).sum()
    }

    /// The mean with FCS, bytes.
    pub fn mean_bytes(&self) -> f64 {
        let bytes: u64 = self.0.iter().map(|share| u64::from(share.bytes) * u64::from(share.frames)).sum();
        bytes as f64 / f64::from(self.round())
    }

    /// The sizes that a port can send, in the order in which they are written.
    ///
    /// # Errors
    /// As [`FrameSize::new`], for the first that does not fit.
    pub fn lengths(&self, mtu_bytes: u32, headers: Headers) -> Result<Vec<FrameSize>, String> {
        let checked = |share: &Share| FrameSize::new(share.bytes, mtu_bytes, headers);
        let lengths = self.0.iter().map(checked).collect::<Result<_, _>>();
        let least = smallest_bytes(headers);
        let is_short = self.is_mix() && self.0.iter().any(|share| share.bytes < least);
        let longer = || Self(self.0.iter().map(|share| Share { bytes: share.bytes.max(least), ..*share }).collect());
        lengths.map_err(|why| if is_short { format!("{why}, as in {}", longer()) } else { why })
    }

    /// Places of the sizes in a round, each as evenly spread as can be: whoever is furthest behind its share is next.
    pub fn turns(&self) -> Vec<usize> {
        let round = i64::from(self.round());
        let mut owed = vec![0i64; self.0.len()];
        let next = |_| {
            owed.iter_mut().zip(&self.0).for_each(|(owed, share)| *owed += i64::from(share.frames));
            let most = owed.iter().copied().max().expect("there is a size");
            let place = owed.iter().position(|owed| *owed == most).expect("it was found there");
            owed[place] -= round;
            place
        };
        (0..round).map(next).collect()
    }

    /// Bits per second on layer 2: frames with their FCS.
    pub fn layer2_bps(&self, frames_per_s: f64) -> f64 {
        frames_per_s * self.mean_bytes() * 8.0
    }

    /// Bits per second on layer 1: with preamble and gap; a full 10 Gbit/s Ethernet has 1e10 of them.
    pub fn layer1_bps(&self, frames_per_s: f64) -> f64 {
        frames_per_s * (self.mean_bytes() + f64::from(LAYER1_EXTRA_BYTES)) * 8.0
    }

    /// Frames per second that fill a line of `line_bps` on layer 1.
    pub fn line_rate(&self, line_bps: f64) -> f64 {
        line_bps / self.layer1_bps(1.0)
    }

    /// As rows have it.
    pub fn cells(&self) -> SizeCells {
        SizeCells { frame_bytes: self.mean_bytes().round() as u32, mix: self.is_mix().then(|| self.to_string()) }
    }
}

impl From<u32> for Sizes {
    fn from(bytes: u32) -> Self {
        Self(vec![Share { bytes, frames: 1 }])
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [share] => write!(out, "{}", share.bytes),
            shares if *shares == SIMPLE => out.write_str(PREFIX),
            shares => {
                let shares: Vec<_> = shares.iter().map(|share| format!("{}x{}", share.bytes, share.frames)).collect();
                write!(out, "{PREFIX}:{}", shares.join(","))
            }
        }
    }
}

impl FromStr for Sizes {
    type Err = String;

    /// Reads `512`, `imix` or `imix:64x7,570x4,1518x1`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == PREFIX {
            return Ok(Self::simple_imix());
        }
        let Some(genome) = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix(':')) else {
            let bytes: u32 = text.parse().map_err(|_| {
                format!("`{text}` is no frame size; write bytes (512), imix, or a mix (imix:64x7,570x4,1518x1)")
            })?;
            return Ok(bytes.into());
        };
        let shares = genome.split(',').map(|part| {
            let numbers =
                part.split_once('x').and_then(|(bytes, frames)| Some((bytes.parse().ok()?, frames.parse().ok()?)));
            let (bytes, frames) = numbers.filter(|(_, frames)| *frames > 0).ok_or_else(|| {
                format!("`{part}` of `{text}` is no size with a number of frames; write BYTESxFRAMES, as in 64x7")
            })?;
            Ok(Share { bytes, frames })
        });
        let sizes = Self(shares.collect::<Result<_, String>>()?);
        sizes.check(text)?;
        Ok(if let [share] = sizes.0[..] { share.bytes.into() } else { sizes })
    }
}

impl Sizes {
    fn check(&self, text: &str) -> Result<(), String> {
        let twice = |(place, share): (usize, &Share)| self.0[..place].iter().any(|other| other.bytes == share.bytes);
        if let Some((_, share)) = self.0.iter().enumerate().find(|found| twice(*found)) {
            return Err(format!("size {} is in `{text}` twice; write it once, with all its frames", share.bytes));
        }
        let round: u64 = self.0.iter().map(|share| u64::from(share.frames)).sum();
        if self.0.len() > SIZES_MAX || round > TURNS_MAX as u64 {
            let found = format!("{} sizes and {round} frames", self.0.len());
            return Err(format!(
                "`{text}` has {found}; a mix has at most {SIZES_MAX} sizes and a round of {TURNS_MAX} frames"
            ));
        }
        Ok(())
    }
}

/// Sizes and mixes with commas between them: `64,imix,imix:64x7,570x4,1518x1`. What has an `x` belongs to the mix before it.
///
/// # Errors
/// As [`Sizes::from_str`].
pub fn list(text: &str) -> Result<Vec<Sizes>, String> {
    let mut parts: Vec<String> = Vec::new();
    for part in text.split(',') {
        match parts.last_mut() {
            Some(last) if last.starts_with("imix:") && part.contains('x') && !part.starts_with(PREFIX) => {
                last.push(',');
                last.push_str(part);
            }
            _ => parts.push(part.to_owned()),
        }
    }
    parts.iter().map(|part| part.parse()).collect()
}

impl SizeCells {
    /// The size, or the mix.
    pub fn name(&self) -> String {
        self.mix.clone().unwrap_or_else(|| self.frame_bytes.to_string())
    }
}

impl fmt::Display for SizeCells {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.mix {
            None => write!(out, "{}", self.frame_bytes),
            Some(mix) => write!(out, "{mix} ({})", self.frame_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::IpVersion;
    use super::*;

    #[test]
    fn ten_gigabit_carries_what_every_data_sheet_says() {
        let size = Sizes::from;
        assert_eq!(size(64).line_rate(1e10).floor(), 14_880_952.0);
        assert_eq!(size(1518).line_rate(1e10).floor(), 812_743.0);
        assert!((size(64).layer2_bps(14_880_952.38) - 7.619e9).abs() < 1e6);
        assert!((size(64).layer1_bps(14_880_952.38) - 1e10).abs() < 1e3);
    }

    #[test]
    fn the_simple_mix_is_seven_four_and_one() {
        let simple: Sizes = "imix".parse().unwrap();
        assert_eq!(simple, "imix:64x7,570x4,1518x1".parse().unwrap());
        assert!((simple.mean_bytes() - 4246.0 / 12.0).abs() < 1e-9);
        assert_eq!(simple.to_string(), "imix");
        assert_eq!(simple.cells().to_string(), "imix (354)");
        assert_eq!(simple.turns(), [0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 1, 0]);
        // 10 Gbit/s and 373.8 bytes a frame on the line.
        assert_eq!(simple.line_rate(1e10).floor(), 3_343_736.0);
        assert!((simple.layer2_bps(12.0) - 4246.0 * 8.0).abs() < 1e-6);
        assert!((simple.layer1_bps(12.0) - (4246.0 + 240.0) * 8.0).abs() < 1e-6);
    }

    #[test]
    fn turns_are_as_even_as_their_shares() {
        let mix: Sizes = "imix:64x50,570x30,1280x19,1518x1".parse().unwrap();
        let turns = mix.turns();
        for (place, share) in mix.0.iter().enumerate() {
            for until in 1..=turns.len() {
                let count = turns[..until].iter().filter(|turn| **turn == place).count() as f64;
                let due = f64::from(share.frames) * until as f64 / 100.0;
                assert!((count - due).abs() < 1.5, "{share:?}: {count} of the first {until}");
            }
            assert_eq!(turns.iter().filter(|turn| **turn == place).count(), share.frames as usize);
        }
    }

    #[test]
    fn lists_keep_mixes_together() {
        let texts = |text: &str| list(text).unwrap().iter().map(Sizes::to_string).collect::<Vec<_>>();
        assert_eq!(texts("64,imix:64x1,1518x2,512,imix"), ["64", "imix:64x1,1518x2", "512", "imix"]);
        assert_eq!(texts("imix:64x7,570x4,1518x1,imix:100x2"), ["imix", "100"]);
        assert_eq!(texts("64"), ["64"]);
    }

    #[test]
    fn what_is_no_size_says_how_one_is_written() {
        for (text, word) in [
            ("", "is no frame size"),
            ("64x7", "is no frame size"),
            ("imix:", "BYTESxFRAMES"),
            ("imix:64", "BYTESxFRAMES"),
            ("imix:64x0,128x1", "`64x0`"),
            ("imix:64x1,x", "`x`"),
            ("imix:64x1,64x2", "twice"),
            ("imix:64x200,128x57", "257 frames"),
        ] {
            let why = text.parse::<Sizes>().unwrap_err();
            assert!(why.contains(word), "{text}: {why}");
        }
    }

    #[test]
    fn a_mix_that_does_not_fit_says_which_would() {
        let headers = Headers { ip: IpVersion::V6, tagged: false };
        let why = Sizes::simple_imix().lengths(1500, headers).unwrap_err();
        assert!(why.contains("frame size 64 is below 84") && why.ends_with("as in imix:84x7,570x4,1518x1"), "{why}");
        let sizes = Sizes::simple_imix().lengths(1500, Headers::default()).unwrap();
        assert_eq!(sizes.iter().map(|size| size.bytes()).collect::<Vec<_>>(), [64, 570, 1518]);
        let why = Sizes::simple_imix().lengths(1400, Headers::default()).unwrap_err();
        assert!(why.contains("1518 does not fit"), "{why}");
    }
}
