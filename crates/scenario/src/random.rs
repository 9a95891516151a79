//! Randomness from a seed, the same on every machine: PCG64 with integer arithmetic only.

use rand::Rng;
use rand_pcg::Pcg64;

/// What a stream of random numbers is for. Streams of different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The order in which a sender of the shuffle visits its receivers.
    ShuffleOrder = 1,
    /// Number, sizes and receivers of one server's flows in the data-centre mix.
    Mix = 2,
    /// Starts, receivers and sizes of one server's background flows.
    Background = 3,
    /// Starts and workers of one client's queries.
    Query = 4,
    /// Ends and sizes of one service's short flows.
    Bursts = 5,
    /// Phases and flows of one server of a flow log.
    FlowLog = 6,
    /// Ends and starts of streams of datagrams.
    Datagrams = 7,
    /// When devices fail, for how long and which.
    Failures = 16,
    /// Traffic matrices of a day.
    Matrices = 17,
}

/// An endless stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    /// The stream number `index` of a purpose in the run with this seed.
    pub fn new(seed: u64, purpose: Purpose, index: u32) -> Self {
        let mut key =
            [purpose as u64, u64::from(index)].into_iter().fold(scramble(seed), |key, part| scramble(key ^ part));
        let mut word = || {
            key = key.wrapping_add(GOLDEN);
            u128::from(scramble(key))
        };
        Self(Pcg64::new(word() << 64 | word(), word() << 64 | word()))
    }

    /// A number below `bound`, each equally likely (Lemire's method); 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let unfair = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(bound);
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number from 0 to just below 1, from 53 random bits.
    pub fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number with the exponential distribution of mean 1, from 53 random bits.
    pub fn exponential(&mut self) -> f64 {
        let uniform = ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -libm::log(uniform)
    }

    /// So many of the items, each choice equally likely; the items change their order.
    pub fn choose<'a, T>(&mut self, items: &'a mut [T], count: usize) -> &'a [T] {
        let count = count.min(items.len());
        for place in 0..count {
            let rest = (items.len() - place) as u64;
            items.swap(place, place + self.below(rest) as usize);
        }
        &items[..count]
    }

    /// Puts the items in random order, each order equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let place = self.below(last as u64 + 1) as usize;
            items.swap(last, place);
        }
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finalizer: neighbouring inputs become unrelated outputs.
pub fn scramble(input: u64) -> u64 {
    let mut word = input.wrapping_add(GOLDEN);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(seed: u64, purpose: Purpose, index: u32) -> Vec<u64> {
        let mut stream = Stream::new(seed, purpose, index);
        (0..8).map(|_| stream.below(1_000_000)).collect()
    }

    #[test]
    fn splitmix_gives_its_published_first_output() {
        assert_eq!(scramble(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn a_seed_gives_the_same_numbers_on_every_machine() {
        // Computed apart, from the published definitions of SplitMix64, PCG XSL-RR 128/64 and Lemire's method.
        let expected = [208_933, 819_137, 694_254, 287_141, 641_652, 230_092, 238_749, 768_407];
        assert_eq!(draws(1, Purpose::Mix, 0), expected);
    }

    #[test]
    fn seed_purpose_and_index_each_make_another_stream() {
        let base = draws(1, Purpose::Mix, 0);
        for other in [draws(2, Purpose::Mix, 0), draws(1, Purpose::ShuffleOrder, 0), draws(1, Purpose::Mix, 1)] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn every_number_below_the_bound_is_equally_likely() {
        let mut stream = Stream::new(7, Purpose::Mix, 0);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[stream.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 400), "{counts:?}");
        assert_eq!((stream.below(1), stream.below(0)), (0, 0));
    }

    #[test]
    fn exponential_numbers_have_the_mean_1_and_its_tail() {
        let mut stream = Stream::new(7, Purpose::Background, 0);
        let drawn: Vec<f64> = (0..100_000).map(|_| stream.exponential()).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.015, "{mean}");
        // P(X > 2) = e^-2 = 0.1353.
        let tail = drawn.iter().filter(|value| **value > 2.0).count();
        assert!(tail.abs_diff(13_534) < 500, "{tail}");
        assert!(drawn.iter().all(|value| *value >= 0.0 && value.is_finite()));
    }

    #[test]
    fn every_choice_is_equally_likely() {
        let mut stream = Stream::new(7, Purpose::Query, 1);
        let (mut items, mut counts) = ([0, 1, 2, 3, 4], std::collections::BTreeMap::new());
        for _ in 0..20_000 {
            let chosen = stream.choose(&mut items, 2);
            *counts.entry((chosen[0], chosen[1])).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 20);
        assert!(counts.values().all(|count| count.abs_diff(1000) < 150), "{counts:?}");
        assert_eq!(stream.choose(&mut items, 9).len(), 5);
    }

    #[test]
    fn every_order_is_equally_likely() {
        let mut stream = Stream::new(7, Purpose::Mix, 1);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..24_000 {
            let mut items = [1, 2, 3, 4];
            stream.shuffle(&mut items);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|count| count.abs_diff(1000) < 150), "{counts:?}");
    }
}
