//! The order of events: keys of them, and a 4-ary heap of keys; at most one per busy link.
//!
//! A key holds a time, a lot and a port, in this order: of events at one time the lot decides, a hash of time and port with the
//! run's seed. Were it the port, the hosts with low numbers would always be served first. The root stands apart, so
//! that the four children of a node are one group, of which the least is found without branches.

use crate::hash::scramble;

/// Key of a heap without events.
pub(crate) const NO_EVENT: u64 = u64::MAX;
/// Bits of a key that hold the lot. Of 256 ties one is still a tie and goes to the lower port.
const LOT_BITS: u32 = 8;

/// Draws the lots of a port: the upper bits of the product of the salted time and a random factor of the port's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lots(u64);

impl Lots {
    pub(crate) fn of(port: u32) -> Self {
        let own = (u64::from(port) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self((own ^ own >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1)
    }

    #[inline(always)]
    fn at(self, salted_ps: u64) -> u64 {
        salted_ps.wrapping_mul(self.0) >> (u64::BITS - LOT_BITS)
    }
}

/// Makes keys and reads them.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    port_bits: u32,
    /// Below the time of a key: lot and port.
    time_shift: u32,
    port_mask: u64,
    /// What makes the lots of a run its own.
    salt: u64,
}

impl Keys {
    /// Keys of a network with so many ports. What these do not need of the 64 bits is for time.
    pub(crate) fn new(ports: usize, seed: u64) -> Self {
        let port_bits = usize::BITS - ports.leading_zeros();
        let (time_shift, port_mask) = (LOT_BITS + port_bits, (1 << port_bits) - 1);
        Self { port_bits, time_shift, port_mask, salt: scramble(seed) }
    }

    /// The key of an event of this port at this time, for keys that count time from `epoch_ps`. The lot depends on nothing else
    /// that has happened.
    #[inline(always)]
    pub(crate) fn draw(&self, at_ps: u64, epoch_ps: u64, port: u32, lots: Lots) -> u64 {
        let lot = lots.at(at_ps ^ self.salt);
        ((at_ps - epoch_ps) << LOT_BITS | lot) << self.port_bits | u64::from(port)
    }

    /// The least key of this time; [`NO_EVENT`] if that is beyond what keys hold.
    pub(crate) fn first_at(&self, time_ps: u64) -> u64 {
        if time_ps > self.latest_ps() { NO_EVENT } else { time_ps << self.time_shift }
    }

    /// The latest time that a key holds.
    pub(crate) fn latest_ps(&self) -> u64 {
        u64::MAX >> self.time_shift
    }

    #[inline(always)]
    pub(crate) fn time_ps(&self, key: u64) -> u64 {
        key >> self.time_shift
    }

    #[inline(always)]
    pub(crate) fn port(&self, key: u64) -> u32 {
        (key & self.port_mask) as u32
    }
}

const GROUP: usize = 4;

/// The children of a node.
type Group = [u64; GROUP];

/// Keys in heap order. Node n has group n as its children; group g holds the nodes 4 g + 1 to 4 g + 4.
#[derive(Clone, Debug)]
pub(crate) struct EventHeap {
    root: u64,
    groups: Vec<Group>,
    len: usize,
}

impl EventHeap {
    pub(crate) fn new() -> Self {
        Self { root: NO_EVENT, groups: Vec::new(), len: 0 }
    }

    /// The least key; [`NO_EVENT`] if there is none.
    #[inline(always)]
    pub(crate) fn top(&self) -> u64 {
        self.root
    }

    /// How many keys it holds.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All keys, in any order.
    pub(crate) fn into_keys(self) -> impl Iterator<Item = u64> {
        std::iter::once(self.root).chain(self.groups.into_iter().flatten()).filter(|key| *key != NO_EVENT)
    }

    /// Adds a key.
    #[inline]
    pub(crate) fn push(&mut self, key: u64) {
        let mut node = self.len;
        self.len += 1;
        if node == 0 {
            self.root = key;
            return;
        }
        let (mut group, mut lane) = place(node);
        if group == self.groups.len() {
            self.groups.push([NO_EVENT; GROUP]);
        }
        while group > 0 {
            let (parent_group, parent_lane) = place(group);
            let parent = self.groups[parent_group][parent_lane];
            if parent <= key {
                break;
            }
            self.groups[group][lane] = parent;
            node = group;
            (group, lane) = place(node);
        }
        if group == 0 && key < self.root {
            self.groups[0][lane] = self.root;
            self.root = key;
        } else {
            self.groups[group][lane] = key;
        }
    }

    /// Puts a key in the place of the least one.
    #[inline(always)]
    pub(crate) fn replace_top(&mut self, key: u64) {
        let Some(children) = self.groups.first() else {
            self.root = key;
            return;
        };
        let (mut place, least) = least_of(children);
        if least >= key {
            self.root = key;
            return;
        }
        self.root = least;
        // The children of the node in a place are the group one after it.
        while let Some(children) = self.groups.get(place + 1) {
            let (lane, least) = least_of(children);
            if least >= key {
                break;
            }
            self.groups.as_flattened_mut()[place] = least;
            place = GROUP * (place + 1) + lane;
        }
        self.groups.as_flattened_mut()[place] = key;
    }

    /// Removes the least key.
    #[inline]
    pub(crate) fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
        if self.len == 0 {
            self.root = NO_EVENT;
            return;
        }
        let (group, lane) = place(self.len);
        let last = std::mem::replace(&mut self.groups[group][lane], NO_EVENT);
        if lane == 0 {
            self.groups.pop();
        }
        self.replace_top(last);
    }
}

/// Group and lane of a node that is not the root.
#[inline(always)]
fn place(node: usize) -> (usize, usize) {
    ((node - 1) / GROUP, (node - 1) % GROUP)
}

/// Lane and value of the least of four keys.
#[inline(always)]
fn least_of(group: &Group) -> (usize, u64) {
    let [a, b, c, d] = *group;
    let (low_lane, low) = if b < a { (1, b) } else { (0, a) };
    let (high_lane, high) = if d < c { (3, d) } else { (2, c) };
    if high < low { (high_lane, high) } else { (low_lane, low) }
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
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let key = 0u64..5_000;
        let step = prop_oneof![
            4 => key.clone().prop_map(Step::Push),
            4 => key.prop_map(Step::Replace),
            3 => Just(Step::Pop),
        ];
        proptest::collection::vec(step, 0..400)
    }

    #[test]
    fn a_key_says_what_went_in_and_the_earlier_one_is_less() {
        let keys = Keys::new(65_535, 7);
        let latest_ps = keys.latest_ps();
        assert_eq!(latest_ps, (1 << 40) - 1);
        for (time_ps, port) in [(0, 0), (1, 65_534), (latest_ps, 3)] {
            let key = keys.draw(time_ps, 0, port, Lots::of(port));
            assert_eq!((keys.time_ps(key), keys.port(key)), (time_ps, port));
            assert!((keys.first_at(time_ps)..keys.first_at(time_ps + 1)).contains(&key));
            let later = keys.draw(time_ps + 1_000, 1_000, port, Lots::of(port));
            assert_eq!((keys.time_ps(later), keys.port(later)), (time_ps, port));
        }
    }

    /// Of any ports and at any distance of times, each is as likely to be first, also among many.
    #[test]
    fn each_of_some_ports_is_as_likely_to_be_first() {
        let keys = Keys::new(300, 1);
        for step_ps in [1, 800, 51_200, 1_200_000] {
            for ports in [&[0, 299][..], &[0, 1], &[6, 7], &[2, 4, 6, 8, 10, 12, 14, 16]] {
                let mut first = vec![0u32; ports.len()];
                for time_ps in (0..8_000).map(|step| step * step_ps) {
                    let key = |place: &usize| keys.draw(time_ps, 0, ports[*place], Lots::of(ports[*place]));
                    first[(0..ports.len()).min_by_key(key).expect("there are ports")] += 1;
                }
                let fair = 8_000 / ports.len() as u32;
                let even = first.iter().all(|count| count.abs_diff(fair) < fair / 6);
                assert!(even, "{step_ps} ps, ports {ports:?}: {first:?}");
            }
        }
    }

    proptest! {
        /// The heap agrees with an ordered set at every step.
        #[test]
        fn the_top_is_always_the_least(steps in steps()) {
            let (mut heap, mut set) = (EventHeap::new(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Push(key) => {
                        if set.insert(key) {
                            heap.push(key);
                        }
                    }
                    Step::Replace(key) => {
                        if !set.is_empty() && !set.contains(&key) {
                            set.pop_first();
                            set.insert(key);
                            heap.replace_top(key);
                        }
                    }
                    Step::Pop => {
                        set.pop_first();
                        heap.pop();
                    }
                }
                prop_assert_eq!(heap.top(), set.first().copied().unwrap_or(NO_EVENT));
            }
        }
    }
}
