//! Virtual time: picoseconds since the start of the run, in 64 bits (213 days).

/// Picoseconds in a nanosecond.
pub const PS_PER_NS: u64 = 1_000;
/// Picoseconds in a second.
pub const PS_PER_S: u64 = 1_000_000_000_000;

/// Nanoseconds as picoseconds; what is longer than the clock can show becomes the end of time.
pub(crate) fn ps(nanos: u64) -> u64 {
    nanos.saturating_mul(PS_PER_NS)
}
