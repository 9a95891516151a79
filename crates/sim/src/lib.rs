//! The packet-level simulator: a scenario runs in virtual time, one event per packet and hop.
//!
//! No privileges, no IO and no clock; integers only, so that a seed gives the same bytes on every machine, on however many
//! threads.
//!
//! * [`run`] runs a [`Job`] under an [`Observer`] and yields an [`Outcome`]
//! * [`tcp`] is TCP as pure state machines; it knows nothing of networks
//! * `network` moves packets: ports, shared buffers, the event heap; `routes` says where to
//! * `run/` joins the two: hosts, connections, timers, faults, records
//! * [`SimEngine`] is the engine of experiments: scenarios in, records out
//! * [`memory`] says beforehand what a run takes
//! * [`bench`] are the jobs by which its speed is judged

#![deny(unsafe_code)]

pub mod bench;
mod error;
mod events;
mod hash;
mod heap;
mod ideal;
mod job;
pub mod memory;
mod network;
mod observer;
mod outcome;
mod packet;
mod prefetch;
mod routes;
mod run;
mod scenario;
pub mod tcp;
mod time;
mod ways;

pub use error::SimError;
pub use ideal::IdealTimes;
pub use job::{
    CpuClock, DatagramFlow, ETHERNET_FRAMING_BYTES, Flow, Job, LAYER_1_BYTES, PacketSizes, Settings, Source, Watch,
};
pub use observer::{Observer, Progress, TraceLine, Unobserved, WindowTimes};
pub use outcome::{
    DatagramOutcome, FabricEvent, FabricEventKind, FlowOutcome, FlowWay, Outcome, PortCounters, PortOutcome, Sample,
    TcpSample, Totals, Toward, Volume, WayChoice, WayHop,
};
pub use routes::Header;
pub use run::{DATAGRAM_HEADER_BYTES, datagram_ways, run};
pub use scenario::{SimEngine, missed_fault, records, threads};
pub use time::{PS_PER_NS, PS_PER_S};
