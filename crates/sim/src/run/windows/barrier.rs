//! Where threads wait for each other, until one of them fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A thread looks so often whether the others have come before it sleeps: a few microseconds, less than waking takes.
const LOOKS: u32 = 2_000;

/// A barrier for a number of threads. If one panics, the others do so, too, where they would wait for it for ever.
#[derive(Debug)]
pub(super) struct Barrier {
    threads: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// Copy of [`State::round`], to look at without the lock.
    round: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    round: u64,
    broken: bool,
}

/// Breaks its barrier if its thread panics.
pub(super) struct Guard<'b>(&'b Barrier);

impl Barrier {
    pub(super) fn new(threads: usize) -> Self {
        Self { threads, state: Mutex::default(), changed: Condvar::new(), round: AtomicU64::new(0) }
    }

    /// To be kept by each thread as long as others may wait for it.
    pub(super) fn guard(&self) -> Guard<'_> {
        Guard(self)
    }

    /// Returns once all threads have called it.
    ///
    /// # Panics
    /// If another thread has.
    pub(super) fn wait(&self) {
        let mut state = self.lock();
        let round = state.round;
        state.waiting += 1;
        if state.waiting == self.threads {
            (state.waiting, state.round) = (0, round + 1);
            self.round.store(state.round, Ordering::Release);
            drop(state);
            return self.changed.notify_all();
        }
        drop(state);
        if (0..LOOKS).any(|_| {
            std::hint::spin_loop();
            self.round.load(Ordering::Acquire) != round
        }) {
            return;
        }
        let mut state = self.lock();
        while state.round == round && !state.broken {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        assert!(state.round != round, "another thread of this run has failed");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().broken = true;
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn nobody_is_a_round_ahead() {
        let (barrier, done) = (Barrier::new(3), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..500 {
                        done.fetch_add(1, Ordering::Relaxed);
                        barrier.wait();
                        assert_eq!(done.load(Ordering::Relaxed), 3 * (round + 1));
                        barrier.wait();
                    }
                });
            }
        });
    }

    #[test]
    fn who_waits_for_a_thread_that_has_failed_fails_as_well() {
        let barrier = Barrier::new(2);
        let fails = |fail: bool| {
            catch_unwind(AssertUnwindSafe(|| {
                let _guard = barrier.guard();
                assert!(!fail, "on purpose");
                barrier.wait();
            }))
            .is_err()
        };
        let failed = thread::scope(|scope| {
            let waiting = scope.spawn(|| fails(false));
            (fails(true), waiting.join().expect("it was caught"))
        });
        assert_eq!(failed, (true, true));
    }
}
