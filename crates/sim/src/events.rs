//! All events of a run in the order of their keys. Few are in one heap. Of many, only the next ones are in order and the
//! others lie in bins, each for a range of keys: an event costs the same however many there are, and the next ones are known
//! some time ahead, so that what they need can be fetched from memory ([`Events::ahead`]).
//!
//! Whichever it is, the order is that of the keys, and results are the same.

use std::ops::RangeInclusive;

use crate::heap::{EventHeap, NO_EVENT};

/// More events than this go to bins; fewer than a quarter of it come back into one heap.
const MANY: usize = 1_024;
/// Of so many times as many, more than the processor holds near it, those ahead are handed out ([`Events::ahead`]).
const MORE: usize = 16;
/// Of all but the latest events each has its bin, with so many bins: more would be more memory that is used in turn. Later events
/// wait in a heap of their own.
const BINS: RangeInclusive<u64> = 1_024..=16_384;
/// One event of so many may be among the latest; if more than twice as many are, there should be more bins.
const LATEST: usize = 16;
/// Bins that all events should fill, on average.
const FILLED_BINS: usize = 512;
/// Events that a bin should have on average: few are quick to bring into order, and bins of many are few.
const BIN_EVENTS: RangeInclusive<u64> = 16..=128;
/// After so many bins it is looked whether they have as many.
const BINS_PER_LOOK: u32 = 4_096;
/// Events that are handed out at once: few, so that what they need is not asked for in one burst, which memory is slow at.
pub(crate) const AHEAD: usize = 4;
/// So many events at least come before those that are handed out: enough for a few steps, one after each [`AHEAD`] events.
const LEAD: usize = 60;
/// So many of the next events are in order at least, if there are as many.
const IN_ORDER: usize = 12;
/// The same where events ahead are handed out.
const IN_ORDER_AHEAD: usize = LEAD + 2 * AHEAD;

/// A queue of keys.
#[derive(Debug)]
pub(crate) struct Events {
    /// Keys below the horizon that are not in the run.
    near: EventHeap,
    /// Keys of the bins that were opened, in order, the place of the next one, and that one; [`NO_EVENT`] at the end.
    run: Vec<u64>,
    at: usize,
    run_top: u64,
    /// So many keys are in the run at least.
    in_order: usize,
    /// The run has been handed out up to here.
    handed: usize,
    /// Keys from here on are in bins; [`NO_EVENT`] while all are near.
    horizon: u64,
    bins: Vec<Vec<u64>>,
    /// A bit for each bin that is not empty.
    occupied: Vec<u64>,
    /// A bin's keys agree in all bits above so many.
    width_bits: u32,
    /// A bin should have so many keys.
    bin_events: u64,
    /// Number of the first bin that was not opened. Bin n is kept in place n modulo the number of bins, a power of two.
    first: u64,
    binned: usize,
    /// Keys beyond the bins.
    far: EventHeap,
    /// Since it was looked whether the bins fit: bins that were opened, their keys, and keys that were put beyond the bins.
    opened: u32,
    opened_events: u64,
    late: u64,
    many: usize,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self::binned_above(MANY)
    }

    fn binned_above(many: usize) -> Self {
        Self {
            near: EventHeap::new(),
            run: Vec::new(),
            at: 0,
            run_top: NO_EVENT,
            in_order: IN_ORDER,
            handed: 0,
            horizon: NO_EVENT,
            bins: Vec::new(),
            occupied: Vec::new(),
            width_bits: 0,
            bin_events: 0,
            first: 0,
            binned: 0,
            far: EventHeap::new(),
            opened: 0,
            opened_events: 0,
            late: 0,
            many,
        }
    }

    /// The least key; [`NO_EVENT`] if there is none.
    #[inline(always)]
    pub(crate) fn top(&self) -> u64 {
        self.run_top.min(self.near.top())
    }

    /// The key that comes so many places behind the least one, if it is known; what is added later may come before it.
    #[inline(always)]
    pub(crate) fn soon(&self, places: usize) -> Option<u64> {
        self.run.get(self.at + places).copied()
    }

    /// Adds a key.
    #[inline]
    pub(crate) fn push(&mut self, key: u64) {
        if key >= self.horizon {
            return self.put_aside(key);
        }
        self.near.push(key);
        if self.near.len() > self.many && self.horizon == NO_EVENT {
            let keys = self.take_all();
            self.spread(keys);
        }
    }

    /// Puts a key in the place of the least one.
    #[inline(always)]
    pub(crate) fn replace_top(&mut self, key: u64) {
        if key < self.horizon && self.near.top() < self.run_top {
            return self.near.replace_top(key);
        }
        // Added first, so that no bin is opened too soon; it is not the least, since events cause later ones.
        self.push(key);
        self.pop();
    }

    /// Removes the least key.
    #[inline]
    pub(crate) fn pop(&mut self) {
        if self.run_top < self.near.top() {
            self.at += 1;
            self.run_top = self.run.get(self.at).copied().unwrap_or(NO_EVENT);
            if self.at + self.in_order > self.run.len() {
                self.open();
            }
        } else {
            self.near.pop();
        }
    }

    /// Keeps the keys that `change` returns, changed by it; the order of the changed keys may be any.
    pub(crate) fn rebuild(&mut self, change: impl Fn(u64) -> Option<u64>) {
        let keys: Vec<u64> = self.take_all().into_iter().filter_map(change).collect();
        if keys.len() > self.many { self.spread(keys) } else { keys.into_iter().for_each(|key| self.near.push(key)) }
    }

    /// Whether there are so many events that those ahead are handed out.
    #[inline(always)]
    pub(crate) fn hands_out(&self) -> bool {
        self.in_order == IN_ORDER_AHEAD
    }

    /// [`AHEAD`] keys that [`LEAD`] others come before, if these are known and were not handed out before.
    pub(crate) fn ahead(&mut self) -> Option<&[u64]> {
        let begin = self.handed.max(self.at + LEAD);
        if !self.hands_out() || begin > self.at + LEAD + AHEAD {
            return None;
        }
        self.handed = begin + AHEAD;
        self.run.get(begin..begin + AHEAD)
    }

    /// All keys, in any order; none are left.
    fn take_all(&mut self) -> Vec<u64> {
        let mut keys = self.run.split_off(self.at.min(self.run.len()));
        self.bins.iter_mut().for_each(|bin| keys.append(bin));
        keys.extend(std::mem::replace(&mut self.near, EventHeap::new()).into_keys());
        keys.extend(std::mem::replace(&mut self.far, EventHeap::new()).into_keys());
        self.run.clear();
        self.occupied.fill(0);
        (self.at, self.handed, self.binned) = (0, 0, 0);
        self.in_order = IN_ORDER;
        (self.run_top, self.horizon) = (NO_EVENT, NO_EVENT);
        keys
    }

    /// Puts keys into bins that are as wide as the nearer half of them needs, and as many as all but the latest need.
    #[cold]
    fn spread(&mut self, mut keys: Vec<u64>) {
        keys.sort_unstable();
        let half = keys.len() / 2;
        let (Some(least), Some(middle)) = (keys.first().copied(), keys.get(half).copied()) else { return };
        let late = keys[keys.len() - 1 - keys.len() / LATEST];
        self.bin_events = ((keys.len() / FILLED_BINS) as u64).clamp(*BIN_EVENTS.start(), *BIN_EVENTS.end());
        self.in_order = if keys.len() > MORE * self.many { IN_ORDER_AHEAD } else { IN_ORDER };
        let width = ((middle - least) / half.max(1) as u64).saturating_mul(self.bin_events);
        self.width_bits = width.max(1).ilog2();
        let bins = ((late - least) >> self.width_bits).clamp(*BINS.start(), *BINS.end());
        self.bins.resize_with(bins.next_power_of_two() as usize, Vec::new);
        self.occupied.resize(self.bins.len() / 64, 0);
        self.first = least >> self.width_bits;
        self.horizon = self.first << self.width_bits;
        keys.into_iter().for_each(|key| self.put_aside(key));
        (self.opened, self.opened_events, self.late) = (0, 0, 0);
        self.open();
    }

    /// Where a bin is kept.
    #[inline(always)]
    fn place(&self, bin: u64) -> usize {
        bin as usize & (self.bins.len() - 1)
    }

    #[inline]
    fn put_aside(&mut self, key: u64) {
        let bin = key >> self.width_bits;
        if bin - self.first >= self.bins.len() as u64 {
            self.late += 1;
            return self.far.push(key);
        }
        let place = self.place(bin);
        self.bins[place].push(key);
        self.occupied[place / 64] |= 1 << (place % 64);
        self.binned += 1;
    }

    /// Opens bins until enough keys are in order; of few the order is kept in one heap.
    #[cold]
    fn open(&mut self) {
        if self.horizon == NO_EVENT {
            return;
        }
        self.run.drain(..self.at);
        self.handed = self.handed.saturating_sub(self.at);
        self.at = 0;
        while self.run.len() < 2 * self.in_order {
            if self.binned + self.far.len() <= self.many / 4 {
                let keys = self.take_all();
                return keys.into_iter().for_each(|key| self.near.push(key));
            }
            self.open_bin();
            if (self.opened == BINS_PER_LOOK || self.has_too_few_bins()) && self.look() {
                return;
            }
        }
        self.run_top = self.run.first().copied().unwrap_or(NO_EVENT);
    }

    /// Puts the keys of the next bin at the end of the run.
    fn open_bin(&mut self) {
        let far = (self.far.top() != NO_EVENT).then_some(self.far.top() >> self.width_bits);
        let bin = self.next_bin().into_iter().chain(far).min().expect("there are many keys");
        let ordered = self.run.len();
        if bin - self.first < self.bins.len() as u64 {
            let place = self.place(bin);
            self.binned -= self.bins[place].len();
            self.run.append(&mut self.bins[place]);
            self.occupied[place / 64] &= !(1 << (place % 64));
        }
        while self.far.top() != NO_EVENT && self.far.top() >> self.width_bits == bin {
            self.run.push(self.far.top());
            self.far.pop();
        }
        self.run[ordered..].sort_unstable();
        self.first = bin + 1;
        self.horizon =
            if self.first > NO_EVENT >> self.width_bits { NO_EVENT - 1 } else { self.first << self.width_bits };
        self.opened += 1;
        self.opened_events += (self.run.len() - ordered) as u64;
    }

    /// Whether more events are beyond the bins than should be; not said before as many have passed as there are, since to make
    /// other bins takes some time for each.
    fn has_too_few_bins(&self) -> bool {
        self.late * LATEST as u64 > 2 * self.opened_events
            && self.opened_events > (self.binned + self.far.len()) as u64
            && self.bins.len() < *BINS.end() as usize
    }

    /// Makes other bins if these are far too full, too empty or too few, or there are far more or fewer events; whether it did.
    fn look(&mut self) -> bool {
        let mean = self.opened_events / u64::from(self.opened);
        let are_too_few = self.has_too_few_bins();
        (self.opened, self.opened_events, self.late) = (0, 0, 0);
        let count = self.binned + self.far.len();
        let more = if self.hands_out() { count > MORE / 2 * self.many } else { count > MORE * self.many };
        let fits =
            (self.bin_events / 4..=4 * self.bin_events).contains(&mean) && more == self.hands_out() && !are_too_few;
        if !fits {
            let keys = self.take_all();
            self.spread(keys);
        }
        !fits
    }

    /// Number of the first bin that is not empty.
    fn next_bin(&self) -> Option<u64> {
        let (begin, words) = (self.place(self.first) as u64, self.occupied.len() as u64);
        let seen = |step: u64| {
            let word = (begin / 64 + step) % words;
            let mask = match step {
                0 => u64::MAX << (begin % 64),
                _ if step == words => !(u64::MAX << (begin % 64)),
                _ => u64::MAX,
            };
            let bits = self.occupied[word as usize] & mask;
            (bits != 0).then(|| word * 64 + u64::from(bits.trailing_zeros()))
        };
        let place = (0..=words).find_map(seen)?;
        Some(self.first + self.place(place.wrapping_sub(begin)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u64),
        Replace(u64),
        Pop,
        Rebuild(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Some are near, some beyond all bins.
        let gap = prop_oneof![6 => 0u64..3_000, 1 => 0u64..1 << 40];
        let step = prop_oneof![
            5 => gap.clone().prop_map(Step::Push),
            6 => gap.clone().prop_map(Step::Replace),
            3 => Just(Step::Pop),
        ];
        let rare = prop_oneof![60 => step, 1 => gap.prop_map(Step::Rebuild)];
        proptest::collection::vec(rare, 0..1_500)
    }

    /// Queues that grow let events come later than those for which the bins were made.
    #[test]
    fn there_are_bins_for_most_events_however_late_they_become() {
        let mut events = Events::new();
        for step in 0..60_000_u64 {
            let chance = crate::hash::scramble(step);
            match step {
                0..6_000 => events.push(events.top().min(step) + chance % 20_000),
                _ => events.replace_top(events.top() + chance % 400_000),
            }
        }
        let (far, binned) = (events.far.len(), events.binned);
        assert!(far * LATEST / 2 <= binned, "{far} are beyond the bins, {binned} in them");
    }

    proptest! {
        /// The queue agrees with an ordered set at every step, however soon it makes bins. What is added is never before
        /// the least key, as with events.
        #[test]
        fn the_top_is_always_the_least(steps in steps(), many in 1usize..300) {
            let (mut events, mut set) = (Events::binned_above(many), BTreeSet::new());
            let mut now = 0;
            for step in steps {
                match step {
                    Step::Push(gap) => {
                        if set.insert(now + gap) {
                            events.push(now + gap);
                        }
                    }
                    Step::Replace(gap) => {
                        let key = now + gap;
                        if !set.is_empty() && !set.contains(&key) {
                            set.pop_first();
                            set.insert(key);
                            events.replace_top(key);
                        }
                    }
                    Step::Pop => {
                        if set.pop_first().is_some() {
                            events.pop();
                        }
                    }
                    Step::Rebuild(bound) => {
                        set = set.into_iter().filter(|key| key % 7 != bound % 7).map(|key| key - now).collect();
                        events.rebuild(|key| (key % 7 != bound % 7).then_some(key - now));
                        now = 0;
                    }
                }
                prop_assert_eq!(events.top(), set.first().copied().unwrap_or(NO_EVENT));
                if let Some(ahead) = events.ahead().map(<[u64]>::to_vec) {
                    prop_assert_eq!(ahead.len(), AHEAD);
                    let before = set.range(..ahead[0]).count();
                    prop_assert!(before >= LEAD, "{} before", before);
                    prop_assert!(ahead.iter().all(|key| set.contains(key)));
                }
                now = set.first().copied().unwrap_or(now);
            }
        }
    }
}
