//! RFC 2544 section 26.4 with RFC 9004: the longest burst at full rate that arrives without loss, so a device's buffer.

use serde::Serialize;

/// What became of one burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstOutcome {
    /// Its length, frames.
    pub frames: u64,
    /// Frames of it that were lost.
    pub lost: u64,
}

/// Several bisections one after another; their mean counts (RFC 9004 asks for that).
#[derive(Clone, Debug)]
pub struct BurstSearch {
    max_frames: u64,
    repeats: u32,
    found: Vec<u64>,
    passed: u64,
    failed: Option<u64>,
}

/// The longest bursts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BurstVerdict {
    /// Mean of the repetitions, frames.
    pub frames_mean: f64,
    /// The shortest of them, frames.
    pub frames_min: u64,
    /// The longest, frames.
    pub frames_max: u64,
    /// The longest burst that was tried never lost a frame: the device has no limit that this would show.
    pub unlimited: bool,
}

impl BurstSearch {
    /// Bursts of at most `max_frames`, `repeats` times.
    pub fn new(max_frames: u64, repeats: u32) -> Self {
        Self { max_frames: max_frames.max(1), repeats: repeats.max(1), found: Vec::new(), passed: 0, failed: None }
    }

    /// The length of the next burst, frames; `None` at the end.
    pub fn next_frames(&self) -> Option<u64> {
        if self.found.len() >= self.repeats as usize {
            return None;
        }
        Some(self.failed.map_or(self.max_frames, |failed| u64::midpoint(self.passed, failed)))
    }

    /// Takes the result of the burst that [`Self::next_frames`] asked for.
    pub fn record(&mut self, outcome: BurstOutcome) {
        if outcome.lost == 0 {
            self.passed = self.passed.max(outcome.frames);
        } else {
            self.failed = Some(outcome.frames);
        }
        // Within one frame, or one in five hundred.
        let close = |failed: u64| failed.saturating_sub(self.passed) <= 1 + failed / 500;
        if self.passed == self.max_frames || self.failed.is_some_and(close) {
            self.found.push(self.passed);
            (self.passed, self.failed) = (0, None);
        }
    }

    /// What was found; `None` before the first repetition is done.
    pub fn verdict(&self) -> Option<BurstVerdict> {
        let (min, max) = (*self.found.iter().min()?, *self.found.iter().max()?);
        Some(BurstVerdict {
            frames_mean: self.found.iter().sum::<u64>() as f64 / self.found.len() as f64,
            frames_min: min,
            frames_max: max,
            unlimited: min == self.max_frames,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(max: u64, repeats: u32, mut buffer: impl FnMut() -> u64) -> BurstVerdict {
        let mut search = BurstSearch::new(max, repeats);
        let mut bursts = 0;
        while let Some(frames) = search.next_frames() {
            search.record(BurstOutcome { frames, lost: frames.saturating_sub(buffer()) });
            bursts += 1;
            assert!(bursts < 1000, "it ends");
        }
        search.verdict().unwrap()
    }

    #[test]
    fn the_buffer_is_found() {
        let verdict = run(1_000_000, 3, || 5000);
        assert!(verdict.frames_min >= 4985 && verdict.frames_max <= 5000 && !verdict.unlimited, "{verdict:?}");
        assert_eq!(run(100, 2, || 1).frames_max, 1);
        assert_eq!(run(100, 2, || 0).frames_max, 0);
    }

    #[test]
    fn a_device_that_keeps_up_has_no_limit() {
        let verdict = run(1000, 2, || u64::MAX);
        assert_eq!((verdict.frames_mean, verdict.unlimited), (1000.0, true));
    }

    #[test]
    fn repetitions_show_the_spread() {
        let mut search = BurstSearch::new(10_000, 2);
        while let Some(frames) = search.next_frames() {
            let buffer = if search.found.is_empty() { 4000 } else { 6000 };
            search.record(BurstOutcome { frames, lost: frames.saturating_sub(buffer) });
        }
        let verdict = search.verdict().unwrap();
        assert!(verdict.frames_min <= 4000 && verdict.frames_max > 5900 && (verdict.frames_mean - 5000.0).abs() < 30.0);
        assert_eq!(BurstSearch::new(1, 1).verdict(), None);
    }
}
