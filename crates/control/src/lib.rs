//! Every protocol that weft speaks, without IO: (state, time, input) -> outputs.
//!
//! Nothing here opens a socket, reads a clock, starts a thread or draws unseeded randomness. A daemon feeds a
//! [`Machine`] with what arrives and carries out what it says; a test does the same in virtual time with loss, delay
//! and reordering, so the code that is tested is the code that ships.
//!
//! * [`agent`]: the VL2 agent's cache of mappings and its look-ups (VL2 4.2.1, 4.3)
//! * [`directory`]: the state of a directory server: updates, answers, log records (VL2 4.3)
//! * [`isis`]: the control plane of an RBridge (RFC 6325, 7176, 7177, 7780)
//! * [`snooper`]: which IP multicast groups stations listen to (RFC 6325 4.7, RFC 4541)
//! * [`address`]: the AA block and locators, shared by both
//! * [`tor`]: what a ToR reports of packets for AAs that are not behind it (VL2 4.3.2)
//! * [`vtep`]: a VXLAN tunnel end point: its settings, their differences, directory-driven forwarding (RFC 7348)
//! * [`tally`]: counters with a name for each reason

#![forbid(unsafe_code)]

pub mod address;
pub mod agent;
pub mod directory;
pub mod isis;
pub mod snooper;
pub mod tally;
pub mod tor;
pub mod vtep;

/// One millisecond in nanoseconds.
pub const NS_PER_MS: u64 = 1_000_000;
/// One second in nanoseconds.
pub const NS_PER_S: u64 = 1_000_000_000;

/// A protocol as a function of its state, the time and one input.
///
/// Time is a number of nanoseconds on any clock that never goes back; only differences matter. A machine never waits:
/// it says through [`Machine::next_deadline_ns`] when it wants to be called although nothing arrived.
pub trait Machine {
    /// What happens to it.
    type Input<'a>;
    /// What it wants done, in order.
    type Output;

    /// Takes one input at time `now_ns` and appends what is to be done to `outputs`.
    fn handle(&mut self, now_ns: u64, input: Self::Input<'_>, outputs: &mut Vec<Self::Output>);

    /// When it wants its deadline input, if nothing arrives before; `None`: not at all.
    fn next_deadline_ns(&self) -> Option<u64>;
}
