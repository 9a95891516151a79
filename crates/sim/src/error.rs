//! Why a run is refused or not finished.

use weft_scenario::fault::FaultError;
use weft_scenario::overlay::Overlay;
use weft_scenario::topology::TopologyError;
use weft_scenario::workload::WorkloadError;

/// Why a run is refused or not finished.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The observer asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The network is larger than the engine's keys.
    #[error("the fabric has {links} links; the simulator takes up to {most}")]
    TooManyLinks {
        /// How many it has.
        links: usize,
        /// How many are allowed.
        most: usize,
    },
    /// A queue that takes longer to drain than the engine's clock allows for one hop.
    #[error("link {link}: a full queue and the way to the far end take over {most_ms} ms; lower its buffer or delay")]
    TooSlow {
        link: String,
        /// The longest time allowed, in milliseconds.
        most_ms: u64,
    },
    /// A packet does not fit through a link.
    #[error(transparent)]
    TooLong(#[from] TopologyError),
    /// Two servers cannot reach each other.
    #[error("there is no path from {from} to {to}")]
    NoPath {
        /// Name of the sending server.
        from: String,
        /// Name of the receiving server.
        to: String,
    },
    /// A flow names a server that is not there, or sends to itself.
    #[error("flow {flow}: {why}")]
    BadFlow {
        /// Place of the flow in its list.
        flow: usize,
        /// What is wrong with it.
        why: WorkloadError,
    },
    /// A setting that makes no sense.
    #[error("`{setting}` is {value}; {advice}")]
    BadSetting {
        setting: &'static str,
        value: u64,
        /// What to do about it.
        advice: &'static str,
    },
    /// A switch of a kind of its own.
    #[error(
        "{place}: `{node}` forwards with `{overlay}`; the simulator's switches are all of one kind: use the lab, or take the key away"
    )]
    OwnForwarding {
        /// `file:line`.
        place: String,
        node: String,
        /// What its file says.
        overlay: Overlay,
    },
    /// Settings that exclude each other.
    #[error("{0}")]
    BadCombination(&'static str),
    /// Something that cannot break.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The workload cannot be made.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The books do not balance: a mistake of the simulator, never of its user.
    #[error("the simulator made a mistake at {time_ps} ps: {what}; please report it with the scenario and seed")]
    Unbalanced {
        /// Simulated time in picoseconds.
        time_ps: u64,
        /// Which rule is broken.
        what: String,
    },
}
