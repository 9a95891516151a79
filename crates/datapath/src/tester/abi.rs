//! The Rust side of `bpf/tester_abi.h`; a test compares sizes and offsets.
#![allow(unsafe_code)]

use crate::abi::{Abi, abi_struct};

/// Number of buckets of a histogram.
pub const BUCKETS: usize = 3840;

/// Headers of one stream's frames.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Head {
    pub(crate) bytes: [u8; 48],
}

impl Default for Head {
    fn default() -> Self {
        Self { bytes: [0; 48] }
    }
}

// SAFETY: repr(C), an array of bytes.
unsafe impl Abi for Head {}

abi_struct! {
    /// What the generator is to do and has done. A tick is 2^-10 ns.
    GeneratorState = "tester_generator" {
        /// Ticks between frames; 0: as fast as possible.
        interval: u64,
        /// When the next frame is due, ticks.
        due: u64,
        /// Nothing is sent from then on.
        end_ns: u64,
        /// How long, from the first run on.
        duration_ns: u64,
        /// The first run; 0: there was none.
        began_ns: u64,
        /// Most frames.
        limit: u64,
        /// Later than this: a new schedule.
        slip_ns: u64,
        /// Frames sent.
        sent: u64,
        /// New schedules.
        slips: u64,
        /// Runs that were too early.
        polls: u64,
        /// When the first frame left.
        first_ns: u64,
        /// When the latest left.
        last_ns: u64,
        /// Number of streams.
        streams: u32,
        /// Whose turn it is.
        stream: u32,
        /// Sequence of that stream's next frame.
        sequence: u32,
        /// 42 or 46.
        head_bytes: u32,
        /// 1: wait inside the program.
        spin: u32,
        /// Seed of the trial.
        seed: u32,
    }
}

abi_struct! {
    /// Which trial the analyser counts.
    AnalyserState = "tester_analyser" {
        /// Number of the trial.
        trial: u32,
        /// Number of streams.
        streams: u32,
        /// Seed of the trial.
        seed: u32,
        /// The payload is checked in frames whose sequence has none of these bits.
        payload_mask: u32,
    }
}

abi_struct! {
    /// One stream at its receiver.
    StreamState = "tester_stream" {
        /// Hardware address and VLAN; 0: not expected here.
        station: u64,
        /// Which of the newest 64 have arrived.
        window: u64,
        /// Latency of the latest frame.
        latency_ns: u64,
        /// Sequence after the newest.
        next: u32,
        /// Number of the trial.
        trial: u32,
    }
}

abi_struct! {
    /// One stream's counters on one CPU.
    SeenState = "tester_seen" {
        /// Whole and at the right station.
        received: u64,
        /// At another.
        misdelivered: u64,
        /// With another payload.
        corrupt: u64,
        /// Too old to judge.
        stale: u64,
        /// After a later one.
        reordered: u64,
        /// Once more.
        duplicated: u64,
        /// Number of the trial.
        trial: u64,
    }
}

abi_struct! {
    /// One port on one CPU, without the histogram that follows.
    PortState = "tester_port" {
        /// Frames counted as received.
        frames: u64,
        /// Their bytes, without FCS.
        bytes: u64,
        /// When the first came.
        first_ns: u64,
        /// When the latest came.
        last_ns: u64,
        /// Sum of latencies.
        latency_sum_ns: u64,
        /// The longest.
        latency_max_ns: u64,
        /// Sum of differences between neighbours of a stream.
        jitter_sum_ns: u64,
        /// Their number.
        jitter_count: u64,
        /// Probes with a wrong checksum.
        damaged: u64,
        /// Probes of another trial.
        earlier: u64,
        /// Probes of no stream.
        unknown: u64,
    }
}

abi_struct! {
    /// An emulated link.
    LinkState = "tester_link" {
        /// The program's lock.
        lock: u32,
        /// FCS, preamble and gap.
        overhead_bytes: u32,
        /// Ticks that a byte takes.
        ticks_per_byte: u64,
        /// Longest wait.
        queue_ns: u64,
        /// Propagation.
        delay_ns: u64,
        /// When the line is idle, ticks.
        idle_ticks: u64,
        /// Frames taken.
        passed: u64,
        /// Frames refused.
        dropped: u64,
        /// Frames without a probe.
        foreign: u64,
        /// Probes with a full delay field.
        saturated: u64,
    }
}

abi_struct! {
    /// The tester's own device.
    RelayState = "tester_relay" {
        /// Slot of the way out, plus 1.
        to: u32,
        /// Extra cost.
        burn_ns: u32,
    }
}
