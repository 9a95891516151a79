//! A flow log becomes records, as a run does: what VL2 measured in its data centre (3.1 to 3.3) from a log of one's own or
//! a generated one. Analyses then read the records.
//!
//! * [`reader`]: text to flows, line by line; what is wrong is refused with its line
//! * [`places`]: which address is a server, and in which rack
//! * [`Recorder`]: flows to records, one flow at a time, so that a log need not fit into memory
//! * [`sizes`], [`concurrency`], [`matrices`]: what it keeps
//! * [`clusters`]: few matrices that stand for many
//! * [`generated`]: a log of the workload `flow-log`, recorded or written down
//!
//! Times are nanoseconds from the start of the first flow.

pub mod clusters;
pub mod concurrency;
pub mod generated;
pub mod matrices;
pub mod places;
pub mod reader;
pub mod sizes;

use weft_scenario::record::{MatrixRow, Records};
use weft_scenario::units::Nanos;

use clusters::Clustering;
use concurrency::Concurrency;
use matrices::Matrices;
use sizes::Sizes;

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A server of the data centre.
    Server { server: u32, rack: u32 },
    /// Somewhere else; all of it counts as one rack (VL2 3.3).
    Outside,
}

impl End {
    fn server(self) -> Option<u32> {
        match self {
            Self::Server { server, .. } => Some(server),
            Self::Outside => None,
        }
    }
}

/// A flow in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Who sent.
    pub from: End,
    /// Who received.
    pub to: End,
    /// How much.
    pub bytes: u64,
    /// When it began, from the start of the log.
    pub start_ns: u64,
    /// When it ended, not before its start.
    pub end_ns: u64,
}

/// What is recorded.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Length of the interval of one matrix; `None`: no matrices.
    pub interval: Option<Nanos>,
    /// How many clusters the course of the traffic is told in.
    pub best_clusters: usize,
}

impl Default for Options {
    /// As in the paper: 100 s, 40 clusters.
    fn default() -> Self {
        Self { interval: Some(Nanos(100_000_000_000)), best_clusters: 40 }
    }
}

/// Names of the facts about a log ([`Records::facts`]).
pub mod fact {
    /// Flows.
    pub const FLOWS: &str = "log.flows";
    /// Bytes of flows between servers.
    pub const BYTES_INSIDE: &str = "log.bytes_inside";
    /// Bytes of flows with one end outside.
    pub const BYTES_CROSSING: &str = "log.bytes_crossing";
    /// Bytes of flows with both ends outside; they are in no other number but the sizes.
    pub const BYTES_ELSEWHERE: &str = "log.bytes_elsewhere";
    /// Servers seen.
    pub const SERVERS: &str = "log.servers";
    /// Time that was looked at, in seconds.
    pub const WINDOW_S: &str = "log.window_s";
    /// Time that all flows were open at servers within it, in seconds, counted flow by flow.
    pub const OPEN_S: &str = "log.open_s";
    /// Matrices.
    pub const MATRICES: &str = "log.matrices";
}

/// Keeps what the records need of flows that come in the order of their starts.
#[derive(Debug)]
pub struct Recorder {
    options: Options,
    flows: u64,
    inside_bytes: u64,
    crossing_bytes: u64,
    elsewhere_bytes: u64,
    open_ns: u128,
    last_start_ns: u64,
    sizes: Sizes,
    concurrency: Concurrency,
    matrices: Option<Matrices>,
}

impl Recorder {
    /// Nothing is recorded yet.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            flows: 0,
            inside_bytes: 0,
            crossing_bytes: 0,
            elsewhere_bytes: 0,
            open_ns: 0,
            last_start_ns: 0,
            sizes: Sizes::default(),
            concurrency: Concurrency::default(),
            matrices: options.interval.map(Matrices::new),
        }
    }

    /// Records a flow; says why it cannot.
    ///
    /// # Panics
    /// When flows do not come in the order of their starts: whoever reads them has to see to it.
    pub fn add(&mut self, flow: &Flow) -> Result<(), String> {
        assert!(flow.start_ns >= self.last_start_ns, "flows come in the order of their starts");
        self.last_start_ns = flow.start_ns;
        self.flows += 1;
        self.sizes.add(flow.bytes);
        let inside = [flow.from.server(), flow.to.server()];
        let bytes = match inside {
            [Some(_), Some(_)] => &mut self.inside_bytes,
            [None, None] => &mut self.elsewhere_bytes,
            _ => &mut self.crossing_bytes,
        };
        *bytes = bytes.saturating_add(flow.bytes);
        if let Some(matrices) = &self.matrices {
            matrices.last_interval(flow)?;
        }
        if inside == [None, None] {
            return Ok(());
        }
        let ends = inside.into_iter().flatten().count() as u128 - u128::from(inside[0] == inside[1]);
        self.open_ns += u128::from(flow.end_ns - flow.start_ns) * ends;
        self.concurrency.add(flow.start_ns, flow.end_ns, inside);
        match &mut self.matrices {
            Some(matrices) => matrices.add(flow),
            None => Ok(()),
        }
    }

    /// Flows so far.
    pub fn flows(&self) -> u64 {
        self.flows
    }

    /// The records of the time up to `until_ns`, or to the start of the last flow. `on_merge` hears how much of the
    /// clustering is done, 0 to 1, and stops it by answering `false`; then there is no result.
    pub fn finish(self, until_ns: Option<u64>, on_merge: impl FnMut(f64) -> bool) -> Option<Records> {
        let until_ns = until_ns.unwrap_or(self.last_start_ns);
        let servers = self.concurrency.servers();
        let (concurrency, overhang_ns) = self.concurrency.finish(until_ns);
        let matrices = self.matrices.map(|matrices| matrices.finish(until_ns)).unwrap_or_default();
        let mut facts: Vec<(String, f64)> = [
            (fact::FLOWS, self.flows as f64),
            (fact::BYTES_INSIDE, self.inside_bytes as f64),
            (fact::BYTES_CROSSING, self.crossing_bytes as f64),
            (fact::BYTES_ELSEWHERE, self.elsewhere_bytes as f64),
            (fact::SERVERS, f64::from(servers)),
            (fact::WINDOW_S, until_ns as f64 / 1e9),
            (fact::OPEN_S, self.open_ns.saturating_sub(overhang_ns) as f64 / 1e9),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec();
        facts.push((fact::MATRICES.to_owned(), matrices.len() as f64));
        let mut records = Records { flow_sizes: self.sizes.rows(), concurrency, facts, ..Records::default() };
        let clustering = match clusters::fits(&matrices) {
            true => Some(Clustering::of(&matrices, on_merge)?),
            false => None,
        };
        let chosen = clustering.as_ref().map(|one| one.classify(&matrices, self.options.best_clusters));
        records.fitting = clustering.map(|one| one.fitting()).unwrap_or_default();
        let row = |(interval, matrix): (usize, &Vec<f64>)| MatrixRow {
            interval: interval as u32,
            bytes: matrix.iter().sum::<f64>() as u64,
            pairs: matrix.iter().filter(|bytes| **bytes > 0.0).count() as u32,
            cluster: chosen.as_ref().map(|chosen| chosen[interval]),
        };
        records.matrices = matrices.iter().enumerate().map(row).collect();
        Some(records)
    }
}

#[cfg(test)]
mod tests;
