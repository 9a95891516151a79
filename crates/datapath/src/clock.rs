//! The kernel's clocks, as a number.

use rustix::time::{ClockId, clock_gettime};

/// A clock's time, nanoseconds.
pub fn ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
