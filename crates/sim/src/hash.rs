//! Chance from a seed: integers only, so that a run is the same on every machine.

/// SplitMix64's step and finalizer (Steele, Lea and Flood, 2014): neighbouring inputs become unrelated outputs.
#[inline]
pub(crate) fn scramble(input: u64) -> u64 {
    let mut word = input.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A number below `bound` from 64 scrambled bits, each as likely as the others to one part in 2^32.
#[inline]
pub(crate) fn below(word: u64, bound: u32) -> u32 {
    (((word >> 32) * u64::from(bound)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_its_published_first_output() {
        assert_eq!(scramble(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn numbers_spread_evenly_below_the_bound() {
        let mut counts = [0u32; 5];
        (0..50_000).for_each(|input| counts[below(scramble(input), 5) as usize] += 1);
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 400), "{counts:?}");
    }
}
