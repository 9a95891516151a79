//! What goes wrong in a simulated network.

use weft_control::NS_PER_MS;

/// What goes wrong, out of 1000 datagrams or events each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) loss: u64,
    pub(crate) duplication: u64,
    pub(crate) damage: u64,
    pub(crate) delay_max_ns: u64,
    /// Longest time until a server has applied a committed record.
    pub(crate) lag_max_ns: u64,
}

impl Faults {
    /// A network without faults.
    pub(crate) const NONE: Self =
        Self { loss: 0, duplication: 0, damage: 0, delay_max_ns: NS_PER_MS / 2, lag_max_ns: NS_PER_MS };
}
