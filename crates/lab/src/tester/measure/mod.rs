//! The measurements of `weft measure`, each a function from options to rows.
//!
//! All of them measure the tester itself in the same run, over a veth pair of its own: what the generator can send, and
//! the latency that would be read if the path took no time.

mod latency;
mod loss;
mod session;
mod soak;
mod throughput;

use std::time::Duration;

use serde::Serialize;

use super::path::Means;
use super::sizes::Sizes;
use super::stream::{IpVersion, StreamPlan};

pub use super::cost::CostCells;
pub use super::find::{LimitedBy, Method};
pub use super::gate::Quiet;
pub use super::latency::LatencyCells;
pub use super::sizes::SizeCells;

pub use latency::{LatencyRow, latency};
pub use loss::{BurstRow, LossRow, bursts, loss};
pub(super) use session::check_trials;
pub use soak::{SoakRow, soak};
pub use throughput::{ThroughputRow, throughput};

/// What is measured, and how thoroughly.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// The sending port: `IF` or `NAMESPACE:IF`.
    pub sending: String,
    /// The receiving ports; unicast goes to the first.
    pub receiving: Vec<String>,
    pub plan: StreamPlan,
    /// What is measured one after the other: sizes, and mixes of them.
    pub sizes: Vec<Sizes>,
    /// Length of one trial.
    pub trial: Duration,
    /// Rates, frames per second: for latency and soak what is sent; for searches the largest is where they begin. None:
    /// found out.
    pub rates_pps: Vec<f64>,
}

/// What is the same for all rows.
#[derive(Clone, Debug, Serialize)]
pub struct Bench {
    /// The sending port.
    pub tx: String,
    /// The receiving ports.
    pub rx: Vec<String>,
    /// How frames leave.
    pub means: Means,
    /// How the tester's own floor is measured.
    pub floor_means: Means,
    /// Frames are counted in the driver; otherwise in the stack, which adds to latency.
    pub counted_in_driver: bool,
    /// What stations speak.
    pub ip: IpVersion,
    pub streams: usize,
    /// Seed of their addresses.
    pub seed: u64,
    /// Core that sends.
    pub cpu: usize,
    /// What the generator sends into its own counting sink, frames per second.
    pub generator_pps: f64,
    /// What that costs, generator, veth and analyser, CPU nanoseconds per frame.
    pub generator_ns: f64,
}

/// Rows with what is the same for all.
#[derive(Clone, Debug, Serialize)]
pub struct Report<Row> {
    /// Version of this form.
    pub schema_version: u32,
    /// The ports and the tester.
    #[serde(flatten)]
    pub bench: Bench,
    /// The user did not stop it early.
    pub complete: bool,
    /// The measurements.
    pub rows: Vec<Row>,
}

fn report<Row>(bench: Bench, rows: Vec<Row>) -> Report<Row> {
    Report { schema_version: 1, bench, complete: true, rows }
}
