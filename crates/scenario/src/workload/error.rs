//! Why a workload is refused.

use super::FLOWS_MAX;

/// Why a workload is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// Nobody to send to.
    #[error("a workload needs at least 2 servers; the fabric has {servers}")]
    TooFewServers {
        /// How many the fabric has.
        servers: u32,
    },
    /// A server's number is not below the number of servers.
    #[error("there is no server number {server}; the fabric's {servers} servers are numbered from 0")]
    NoSuchServer {
        /// The number.
        server: u32,
        /// How many the fabric has.
        servers: u32,
    },
    /// Sender and receiver are the same.
    #[error("server {server} cannot send to itself; choose another `from` or `to`")]
    ToItself {
        /// The server's number.
        server: u32,
    },
    /// A permutation that maps servers onto themselves or goes round more than once.
    #[error("`shift` is {shift}; with this fabric it is 1 to {most}")]
    Shift {
        /// The shift.
        shift: u32,
        /// The largest that makes sense.
        most: u32,
    },
    /// Flows with nothing to send.
    #[error("`bytes_per_flow` is 0; give each flow something to send, such as `1 MB`")]
    ZeroBytes,
    /// No flows, or more than can be kept.
    #[error("the workload starts {flows} flows; allowed are 1 to {FLOWS_MAX}")]
    Flows {
        /// How many it would start.
        flows: u64,
    },
    /// Nothing can be sent in no time.
    #[error("`duration` is 0; choose a time such as `10 s`")]
    ZeroDuration,
    /// The servers of the mix offer nothing.
    #[error("`offered_rate_per_server` is 0; choose a rate such as `4 Mbit/s`")]
    ZeroRate,
    /// Sizes cannot be divided by zero.
    #[error("`size_divisor` is 0; 1 leaves the sizes as in the paper")]
    ZeroDivisor,
}
