//! Who watches a run while it goes on.

use std::ops::ControlFlow;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time in nanoseconds.
    pub time_ns: u64,
    /// Flows whose last byte has been acknowledged.
    pub flows_done: u64,
    pub flows_started: u64,
    /// Packets that were serialised onto a link, so far.
    pub packet_hops: u64,
    /// Payload that reached applications, in bytes.
    pub received_bytes: u64,
    /// Share of the run that is done in thousandths: of the payload, or of the time where that is what ends it.
    pub done_milli: u32,
}

/// Something that happened to the traced flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// Simulated time in picoseconds.
    pub time_ps: u64,
    /// What happened, for people.
    pub text: String,
}

/// What threads of a run did, by [`crate::Watch::cpu_clock`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowTimes {
    /// Windows after which threads waited for each other; 0 in a run of one part.
    pub windows: u64,
    /// CPU time of the thread that was slowest, window by window: what the run takes where every thread has a processor.
    pub slowest_ns: u64,
    /// CPU time of all threads in windows.
    pub all_ns: u64,
}

/// Watches a run. Nothing that it does changes the outcome, except that it may end the run.
pub trait Observer {
    /// Called about every 65,536 packet-hops; breaking interrupts the run.
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()>;

    /// Something happened to the traced flow ([`crate::Watch::trace_flow`]).
    fn trace(&mut self, line: TraceLine) {
        let _ = line;
    }

    /// The run has ended: what its threads did.
    fn windows(&mut self, times: &WindowTimes) {
        let _ = times;
    }

    /// A packet was put on the captured link ([`crate::Watch::capture`]): simulated time and the Ethernet frame.
    fn packet(&mut self, time_ps: u64, frame: &[u8]) {
        let _ = (time_ps, frame);
    }
}

/// Nobody: runs to the end and says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn progress(&mut self, _progress: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
