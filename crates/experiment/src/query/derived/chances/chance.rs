//! Flows thrown on links at random, each link equally likely: exact counts by integers, and draws.
//!
//! With n links there are n^k ways to place k flows. Ways in which no link gets more than c flows are counted link by
//! link: the next link takes any i <= c of the flows that are left.

use std::fmt;

use rand::RngExt;
use rand_pcg::Pcg64;

/// So many flows on so many links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chance {
    /// Flows, all of one rate.
    pub(super) flows: u32,
    /// Links, equally likely.
    pub(super) uplinks: u32,
    /// Flows that fit on one link without slowing down.
    pub(super) fit: u32,
}

/// An exact fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fraction {
    /// Above the line.
    pub(super) numerator: u128,
    /// Below the line.
    pub(super) denominator: u128,
}

impl Fraction {
    fn new(numerator: u128, denominator: u128) -> Option<Self> {
        let divisor = greatest_common_divisor(numerator, denominator);
        (denominator > 0).then(|| Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// The nearest number.
    pub(super) fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} / {}", self.numerator, self.denominator)
    }
}

fn greatest_common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl Chance {
    /// Probability that every link gets at most [`Chance::fit`] flows; `None` if the counts do not fit 128 bits.
    pub(super) fn all_fit(self) -> Option<Fraction> {
        let flows = self.flows as usize;
        // ways[k]: ways to place k given flows on the links so far.
        let mut ways = vec![0u128; flows + 1];
        ways[0] = 1;
        for _ in 0..self.uplinks {
            let with_next_link = |k: usize| {
                let most = k.min(self.fit as usize);
                (0..=most).try_fold(0u128, |sum, i| sum.checked_add(binomial(k, i)?.checked_mul(ways[k - i])?))
            };
            ways = (0..=flows).map(with_next_link).collect::<Option<_>>()?;
        }
        Fraction::new(ways[flows], self.placements()?)
    }

    /// Expected throughput over that of all flows at full rate: what a link cannot carry is lost. By linearity this is n
    /// times the expected load min(X, c) of one link, over k, with X of k flows on one of n links (binomial).
    pub(super) fn expected_throughput(self) -> Option<Fraction> {
        let (flows, links) = (self.flows as usize, u128::from(self.uplinks));
        let elsewhere = |i: usize| links.checked_sub(1)?.checked_pow(u32::try_from(flows - i).ok()?);
        let carried = (0..=flows).try_fold(0u128, |sum, i| {
            let load = i.min(self.fit as usize) as u128;
            sum.checked_add(binomial(flows, i)?.checked_mul(elsewhere(i)?)?.checked_mul(load)?)
        })?;
        Fraction::new(carried.checked_mul(links)?, self.placements()?.checked_mul(flows as u128)?)
    }

    /// In how many of `draws` random placements every link gets at most [`Chance::fit`] flows.
    pub(super) fn draw(self, draws: u32, seed: u64) -> u32 {
        const STREAM: u128 = 0x0ec3_9a11_7ce5;
        let mut generator = Pcg64::new(u128::from(seed), STREAM);
        let mut loads = vec![0u32; self.uplinks as usize];
        let mut fits = || {
            loads.fill(0);
            let mut all = true;
            for _ in 0..self.flows {
                let load = &mut loads[generator.random_range(0..self.uplinks) as usize];
                *load += 1;
                all &= *load <= self.fit;
            }
            all
        };
        (0..draws).map(|_| u32::from(fits())).sum()
    }

    fn placements(self) -> Option<u128> {
        u128::from(self.uplinks).checked_pow(self.flows)
    }
}

/// k choose i, multiplied and divided in turn so that every step is a whole number.
fn binomial(k: usize, i: usize) -> Option<u128> {
    (0..i).try_fold(1u128, |ways, j| Some(ways.checked_mul((k - j) as u128)? / (j as u128 + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOW: Chance = Chance { flows: 11, uplinks: 20, fit: 1 };
    const FAST: Chance = Chance { flows: 11, uplinks: 2, fit: 10 };

    #[test]
    fn eleven_flows_on_twenty_links_are_twenty_factorial_over_nine_factorial_over_twenty_to_the_eleventh() {
        let ways: u128 = (10..=20).product();
        let full = SLOW.all_fit().unwrap();
        assert_eq!(full, Fraction::new(ways, 20u128.pow(11)).unwrap());
        assert_eq!(format!("{:.6}", full.value()), "0.032736");
    }

    #[test]
    fn eleven_flows_on_two_fast_links_fail_only_if_all_share_one() {
        let full = FAST.all_fit().unwrap();
        assert_eq!(full.to_string(), "1023 / 1024");
        assert_eq!(format!("{:.5}", full.value()), "0.99902");
    }

    #[test]
    fn throughput_of_one_flow_a_link_is_the_share_of_links_that_are_hit() {
        // 20 (1 - (19/20)^11) links of 11 are used.
        let expected = 20.0 * (1.0 - 0.95f64.powi(11)) / 11.0;
        assert!((SLOW.expected_throughput().unwrap().value() - expected).abs() < 1e-12);
        // All flows on one of two links, probability 1/1024, lose one of eleven.
        assert_eq!(FAST.expected_throughput().unwrap().to_string(), "11263 / 11264");
    }

    #[test]
    fn draws_come_near_and_follow_their_seed() {
        let drawn = f64::from(SLOW.draw(200_000, 1)) / 200_000.0;
        let error = (0.032736f64 * (1.0 - 0.032736) / 200_000.0).sqrt();
        assert!((drawn - 0.032736).abs() < 4.0 * error, "{drawn}");
        assert_eq!(SLOW.draw(1000, 5), SLOW.draw(1000, 5));
        assert_ne!(SLOW.draw(1000, 5), SLOW.draw(1000, 6));
    }

    #[test]
    fn what_cannot_be_counted_is_not_guessed() {
        assert_eq!(Chance { flows: 100, uplinks: 20, fit: 1 }.all_fit(), None);
        assert_eq!(Chance { flows: 1, uplinks: 0, fit: 1 }.all_fit(), None);
    }

    /// Every placement, one by one.
    fn by_hand(chance: Chance) -> (u128, u128) {
        let (mut fit, mut carried) = (0, 0);
        for placement in 0..u128::from(chance.uplinks).pow(chance.flows) {
            let (mut loads, mut rest) = (vec![0u32; chance.uplinks as usize], placement);
            for _ in 0..chance.flows {
                loads[(rest % u128::from(chance.uplinks)) as usize] += 1;
                rest /= u128::from(chance.uplinks);
            }
            fit += u128::from(loads.iter().all(|load| *load <= chance.fit));
            carried += loads.iter().map(|load| u128::from((*load).min(chance.fit))).sum::<u128>();
        }
        (fit, carried)
    }

    proptest! {
        #[test]
        fn counting_agrees_with_trying_all(flows in 1u32..6, uplinks in 1u32..5, fit in 0u32..5) {
            let chance = Chance { flows, uplinks, fit };
            let all = u128::from(uplinks).pow(flows);
            let (fits, carried) = by_hand(chance);
            prop_assert_eq!(chance.all_fit(), Fraction::new(fits, all));
            prop_assert_eq!(chance.expected_throughput(), Fraction::new(carried, all * u128::from(flows)));
        }
    }
}
