//! The look-ups that wait for an answer, found by request number in one step.

/// Look-ups that may wait at a time.
pub(super) const OUTSTANDING_MAX: usize = 1 << 16;

/// Servers that one look-up may ask at a time.
pub(super) const FANOUT_MAX: usize = 8;
/// Servers that a load may know: their places fit a byte.
pub(super) const SERVERS_MAX: usize = 1 << 8;

/// The servers that were asked, as places among all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    places: [u8; FANOUT_MAX],
    count: u8,
}

impl Asked {
    pub(super) fn of(places: &[usize]) -> Self {
        let mut asked = Self::default();
        for (to, place) in asked.places.iter_mut().zip(places) {
            *to = u8::try_from(*place).expect("the load was checked: places fit a byte");
            asked.count += 1;
        }
        asked
    }

    pub(super) fn contains(&self, place: usize) -> bool {
        self.places[..usize::from(self.count)].iter().any(|asked| usize::from(*asked) == place)
    }
}

/// A look-up that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// When it was due, nanoseconds.
    pub(super) due_ns: u64,
    /// When it is looked at again, nanoseconds.
    pub(super) again_ns: u64,
    /// How often it was sent again.
    pub(super) retries: u32,
    /// The servers that were asked last.
    pub(super) asked: Asked,
    /// Whether it counts: it was due after the warm-up.
    pub(super) counts: bool,
    waits: bool,
    /// How often its slot was used: the upper half of its number.
    round: u32,
}

/// Slots for look-ups. A number is a slot and a round, so an answer to an earlier user of a slot is told apart.
pub(super) struct Requests {
    slots: Vec<Request>,
    free: Vec<u32>,
    mask: u64,
}

impl Requests {
    pub(super) fn new(most: usize, mask: u64) -> Self {
        let empty = Request {
            due_ns: 0,
            again_ns: 0,
            retries: 0,
            asked: Asked::default(),
            counts: false,
            waits: false,
            round: 0,
        };
        Self { slots: vec![empty; most], free: (0..most as u32).rev().collect(), mask }
    }

    /// How many more may wait.
    pub(super) fn room(&self) -> usize {
        self.free.len()
    }

    /// How many may wait at a time.
    pub(super) fn most(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn waiting(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Takes a slot for a look-up that these servers are asked. Returns the number of the request; `None` when too many wait.
    pub(super) fn start(&mut self, due_ns: u64, again_ns: u64, asked: Asked, counts: bool) -> Option<u64> {
        let index = self.free.pop()?;
        let slot = &mut self.slots[index as usize];
        *slot = Request { due_ns, again_ns, retries: 0, asked, counts, waits: true, round: slot.round.wrapping_add(1) };
        Some(number(index, slot.round) ^ self.mask)
    }

    /// Ends the request of this number. `None` if it does not wait.
    pub(super) fn finish(&mut self, number: u64) -> Option<Request> {
        let number = number ^ self.mask;
        let (index, round) = (number as u32, (number >> 32) as u32);
        let slot = self.slots.get_mut(index as usize).filter(|slot| slot.waits && slot.round == round)?;
        slot.waits = false;
        self.free.push(index);
        Some(*slot)
    }

    /// Notes whom the request of this number was asked last.
    pub(super) fn set_asked(&mut self, number: u64, asked: Asked) {
        let index = (number ^ self.mask) as u32;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.asked = asked;
        }
    }

    /// Shows every request whose time to be looked at is before `now_ns`, with its number; those that `retry` says no to
    /// have failed.
    pub(super) fn sweep(&mut self, now_ns: u64, mut retry: impl FnMut(u64, &mut Request) -> bool) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.waits && slot.again_ns < now_ns {
                let index = index as u32;
                slot.waits = retry(number(index, slot.round) ^ self.mask, slot);
                if !slot.waits {
                    self.free.push(index);
                }
            }
        }
    }
}

fn number(index: u32, round: u32) -> u64 {
    u64::from(round) << 32 | u64::from(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_its_own_request_once() {
        let mut requests = Requests::new(2, 0x1234_5678_9abc_def0);
        let first = requests.start(10, 11, Asked::default(), true).unwrap();
        let second = requests.start(20, 21, Asked::default(), false).unwrap();
        assert_eq!(requests.start(30, 31, Asked::default(), true), None);
        assert_eq!(requests.finish(first).unwrap().due_ns, 10);
        assert!(requests.finish(first).is_none());
        let third = requests.start(40, 41, Asked::default(), true).unwrap();
        assert_ne!(first, third, "a slot that is used again has another number");
        assert!(requests.finish(first).is_none() && requests.finish(7).is_none());
        assert_eq!((requests.waiting(), requests.room()), (2, 0));
        assert_eq!(requests.finish(second).unwrap().due_ns, 20);
        assert!(requests.finish(third).is_some());
    }

    #[test]
    fn who_was_asked_is_known_by_place() {
        let asked = Asked::of(&[2, 255]);
        assert_eq!([0, 2, 255, 3].map(|place| asked.contains(place)), [false, true, true, false]);
        assert!(!Asked::default().contains(0));
    }

    #[test]
    fn a_sweep_retries_or_gives_up_the_silent_ones() {
        let mut requests = Requests::new(3, 0);
        let numbers: Vec<u64> = (0..3).map(|k| requests.start(k, k * 10, Asked::default(), true).unwrap()).collect();
        let mut seen = Vec::new();
        requests.sweep(15, |number, request| {
            seen.push(number);
            request.again_ns = 100;
            number == numbers[0]
        });
        assert_eq!(seen, numbers[..2]);
        assert_eq!(requests.waiting(), 2);
        assert!(requests.finish(numbers[1]).is_none());
        assert_eq!(requests.finish(numbers[0]).unwrap().again_ns, 100);
    }
}
