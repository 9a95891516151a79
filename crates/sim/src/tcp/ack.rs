//! What an acknowledgement says. Without blocks it is two words, so that the engine can carry it in a packet by value
//! and keep the rare blocks elsewhere.

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The next segment that the receiver expects: all before it have arrived.
    pub cumulative: u32,
    /// Echo of congestion experienced (RFC 3168, RFC 8257 3.2): the segments that this ACK reports were marked.
    pub ece: bool,
    /// Segments above the cumulative point, or a duplicate (RFC 2018, RFC 2883).
    pub sack: Option<SackBlocks>,
}

/// Up to three blocks, as many as fit beside the timestamps option (RFC 2018 section 3); unused ones are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    /// First segment of each block and the segment after its last, most recent first. A first block that is below the
    /// cumulative point or inside the second reports a duplicate (RFC 2883 section 4).
    pub ranges: [(u32, u32); 3],
}

impl SackBlocks {
    /// The duplicate that these blocks report beside `cumulative`, by the receiver's rules of RFC 2883 section 4.
    pub(super) fn duplicate(&self, cumulative: u32) -> Option<(u32, u32)> {
        let [first, second, _] = self.ranges;
        let inside = second.0 <= first.0 && first.1 <= second.1;
        (first.0 < first.1 && (first.1 <= cumulative || inside)).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(ranges: &[(u32, u32)]) -> SackBlocks {
        let mut all = SackBlocks::default();
        all.ranges[..ranges.len()].copy_from_slice(ranges);
        all
    }

    #[test]
    fn duplicates_are_told_from_news_as_rfc_2883_says() {
        // RFC 2883 4.1.1: a duplicate below the cumulative ACK.
        assert_eq!(blocks(&[(3, 4)]).duplicate(4), Some((3, 4)));
        // 4.1.2: the same, with a real block after it.
        assert_eq!(blocks(&[(3, 4), (6, 9)]).duplicate(5), Some((3, 4)));
        // 4.2.1: a duplicate inside the block that follows.
        assert_eq!(blocks(&[(7, 8), (6, 9)]).duplicate(5), Some((7, 8)));
        assert_eq!(blocks(&[(6, 9), (11, 12)]).duplicate(5), None);
        assert_eq!(blocks(&[(6, 9)]).duplicate(5), None);
        assert_eq!(blocks(&[]).duplicate(5), None);
    }

    #[test]
    fn an_ack_is_small() {
        assert!(size_of::<Ack>() <= 36, "{}", size_of::<Ack>());
    }
}
