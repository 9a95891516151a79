//! Flows between the world outside and servers with a public LA (VL2 4.2.3).

use serde::{Deserialize, Serialize};

use super::{FlowSpec, WorkloadError, check_bytes, check_flows};
use crate::units::{Bytes, Nanos};

/// As many flows in as out, one after another or all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutsideLoad {
    /// How many in each direction.
    pub flows: u32,
    /// Payload of each.
    pub bytes_per_flow: Bytes,
    /// Time from one to the next of its direction; 0: all start at once.
    pub every: Nanos,
}

impl OutsideLoad {
    /// All flows, those that start together in the order of their servers. Their ends are numbered by themselves: servers with
    /// a public LA from 0, and whoever is outside after them. Servers take turns.
    pub fn flows(&self, public_servers: u32) -> Vec<FlowSpec> {
        let outside = public_servers;
        let pair = |number: u32| {
            let (server, start_ns) = (number % public_servers, u64::from(number) * self.every.0);
            let flow = |from, to| FlowSpec::bulk(from, to, self.bytes_per_flow.0, start_ns);
            [flow(outside, server), flow(server, outside)]
        };
        (0..self.flows).flat_map(pair).collect()
    }

    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        check_bytes(self.bytes_per_flow)?;
        check_flows(2 * u64::from(self.flows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn servers_take_turns_in_both_directions() {
        let load = OutsideLoad { flows: 3, bytes_per_flow: Bytes(7), every: Nanos(10) };
        let ends: Vec<_> = load.flows(2).iter().map(|flow| (flow.from, flow.to, flow.start_ns)).collect();
        assert_eq!(ends, [(2, 0, 0), (0, 2, 0), (2, 1, 10), (1, 2, 10), (2, 0, 20), (0, 2, 20)]);
        assert!(load.flows(2).iter().all(|flow| flow.bytes == 7));
    }

    #[test]
    fn a_load_of_nothing_is_refused_and_servers_alone_cannot_carry_one() {
        let load = |flows, bytes| OutsideLoad { flows, bytes_per_flow: Bytes(bytes), every: Nanos(0) };
        assert_eq!(load(0, 1).check(), Err(WorkloadError::Flows { flows: 0 }));
        assert_eq!(load(1, 0).check(), Err(WorkloadError::ZeroBytes));
        let workload = Workload::Outside(load(1, 1));
        assert_eq!(workload.initial_flows(4, 1), Err(WorkloadError::LabOnly { kind: "outside" }));
    }
}
