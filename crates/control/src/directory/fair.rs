//! A queue that serves everybody who waits alike, whoever sent how much (start-time fair queueing, Goyal, Vin and Cheng 1996).
//!
//! A flow's head has a start tag: when it would begin in virtual time if all flows were served at once. The least goes
//! first, and what it costs is added to its flow's tag. A flow that was away comes back at the virtual time that it is then,
//! not where it left: silence earns nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Things that wait in flows, each flow in its own order.
#[derive(Clone, Debug)]
pub struct FairQueue<K, T> {
    /// Every flow that ever was: those who may be queued are few.
    flows: BTreeMap<K, Flow<T>>,
    /// The start tags of those in which something waits.
    order: BTreeSet<(u64, K)>,
    /// The start tag of what was served last.
    virtual_time: u64,
    len: usize,
}

#[derive(Clone, Debug)]
struct Flow<T> {
    /// Of its head; if it is empty, when it would have been done.
    start: u64,
    /// With what each costs.
    items: VecDeque<(u64, T)>,
}

impl<T> Default for Flow<T> {
    fn default() -> Self {
        Self { start: 0, items: VecDeque::new() }
    }
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        Self { flows: BTreeMap::new(), order: BTreeSet::new(), virtual_time: 0, len: 0 }
    }
}

impl<K: Copy + Ord, T> FairQueue<K, T> {
    /// How many things wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts something behind what waits in its flow.
    pub fn push_back(&mut self, key: K, cost: usize, item: T) {
        let flow = self.flows.entry(key).or_default();
        if flow.items.is_empty() {
            flow.start = flow.start.max(self.virtual_time);
            self.order.insert((flow.start, key));
        }
        flow.items.push_back((cost as u64, item));
        self.len += 1;
    }

    /// Puts back what was taken, in front of its flow and as if it had not been served.
    pub fn push_front(&mut self, flow: K, cost: usize, item: T) {
        self.change(flow, |state| {
            state.start = state.start.saturating_sub(cost as u64);
            state.items.push_front((cost as u64, item));
        });
        self.len += 1;
    }

    /// The first of each flow in which something waits, in the order in which they should be served.
    pub fn heads(&self) -> impl Iterator<Item = (K, &T)> {
        self.order.iter().filter_map(|(_, key)| {
            let (_, item) = self.flows.get(key)?.items.front()?;
            Some((*key, item))
        })
    }

    /// Serves the first of a flow.
    pub fn pop(&mut self, flow: K) -> Option<T> {
        let (item, start) = self.change(flow, |state| {
            let (cost, item) = state.items.pop_front()?;
            let start = state.start;
            state.start = start.saturating_add(cost);
            Some((item, start))
        })?;
        self.virtual_time = self.virtual_time.max(start);
        self.len -= 1;
        Some(item)
    }

    /// Everything that waits, flow by flow.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.flows.values().flat_map(|flow| flow.items.iter().map(|(_, item)| item))
    }

    /// Takes out what `wanted` names.
    pub fn take(&mut self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        for flow in self.flows.values_mut() {
            let items = std::mem::take(&mut flow.items);
            for (cost, item) in items {
                if wanted(&item) {
                    taken.push(item);
                } else {
                    flow.items.push_back((cost, item));
                }
            }
        }
        self.order = self
            .flows
            .iter()
            .filter(|(_, flow)| !flow.items.is_empty())
            .map(|(key, flow)| (flow.start, *key))
            .collect();
        self.len -= taken.len();
        taken
    }

    /// Changes the head of a flow, and with it its place in the order.
    fn change<R>(&mut self, key: K, change: impl FnOnce(&mut Flow<T>) -> R) -> R {
        let flow = self.flows.entry(key).or_default();
        if !flow.items.is_empty() {
            self.order.remove(&(flow.start, key));
        }
        let outcome = change(flow);
        if !flow.items.is_empty() {
            self.order.insert((flow.start, key));
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve(queue: &mut FairQueue<u8, u32>, count: usize) -> Vec<u32> {
        let next = |queue: &FairQueue<u8, u32>| queue.heads().next().map(|(key, _)| key);
        (0..count).filter_map(|_| next(queue).and_then(|key| queue.pop(key))).collect()
    }

    #[test]
    fn whoever_comes_late_is_served_at_once_and_order_within_a_flow_is_kept() {
        let mut queue = FairQueue::default();
        for item in 0..1000 {
            queue.push_back(1, 1, item);
        }
        assert_eq!(serve(&mut queue, 500).len(), 500);
        queue.push_back(2, 1, 2000);
        queue.push_back(2, 1, 2001);
        let served = serve(&mut queue, 5);
        assert!(served[..2].contains(&2000) && served[..4].contains(&2001), "{served:?}");
        let ones: Vec<_> = served.iter().filter(|item| **item < 1000).collect();
        assert!(ones.is_sorted(), "{served:?}");
        assert_eq!(queue.len(), 497);
    }

    #[test]
    fn what_costs_more_is_served_more_rarely() {
        let mut queue = FairQueue::default();
        for item in 0..100 {
            queue.push_back(1, 10, item);
            queue.push_back(2, 1, 1000 + item);
        }
        let served = serve(&mut queue, 55);
        let heavy = served.iter().filter(|item| **item < 1000).count();
        assert!((4..=6).contains(&heavy), "{heavy} of 55");
    }

    #[test]
    fn silence_earns_nothing_and_what_is_put_back_is_next() {
        let mut queue = FairQueue::default();
        queue.push_back(2, 1, 0);
        serve(&mut queue, 1);
        for item in 1..100 {
            queue.push_back(1, 1, item);
        }
        serve(&mut queue, 50);
        for item in 1000..1100 {
            queue.push_back(2, 1, item);
        }
        let served = serve(&mut queue, 20);
        let late = served.iter().filter(|item| **item >= 1000).count();
        assert!((9..=11).contains(&late), "{served:?}");
        let (key, item) = queue.heads().next().map(|(key, item)| (key, *item)).unwrap();
        queue.pop(key);
        queue.push_front(key, 1, item);
        assert_eq!(serve(&mut queue, 1), [item]);
    }

    #[test]
    fn what_is_taken_out_waits_no_more() {
        let mut queue = FairQueue::default();
        for item in 0..10 {
            queue.push_back(item as u8 % 2, 1, item);
        }
        assert_eq!(queue.take(|item| item % 2 == 1), [1, 3, 5, 7, 9]);
        assert_eq!((queue.len(), queue.iter().count(), queue.heads().count()), (5, 5, 1));
        assert_eq!(serve(&mut queue, 9), [0, 2, 4, 6, 8]);
        assert!(queue.is_empty());
    }
}
