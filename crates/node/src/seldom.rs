//! How often a line may be written that somebody outside can cause: once a second, with how many were kept back meanwhile.

const INTERVAL_NS: u64 = 1_000_000_000;

/// Of one kind of line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seldom {
    not_before_ns: u64,
    kept_back: u64,
}

impl Seldom {
    /// Whether it may be written now: then how many were not since the last one.
    pub(crate) fn may(&mut self, now_ns: u64) -> Option<u64> {
        if now_ns < self.not_before_ns {
            self.kept_back += 1;
            return None;
        }
        self.not_before_ns = now_ns + INTERVAL_NS;
        Some(std::mem::take(&mut self.kept_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_second_says_how_many_there_were() {
        let mut line = Seldom::default();
        let said: Vec<Option<u64>> =
            [0, 1, 999_999_999, INTERVAL_NS, INTERVAL_NS + 1, 5 * INTERVAL_NS].map(|now_ns| line.may(now_ns)).to_vec();
        assert_eq!(said, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
