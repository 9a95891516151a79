//! Few large flows over several paths, by the TCP of real kernels: whole, or split below the flow.

use serde::{Deserialize, Serialize};

use super::WorkloadError;
use super::frames::{check_distinct, check_time, range};
use crate::units::Nanos;

/// Most subflows of a connection that Linux has.
const SUBFLOWS_MOST: u32 = 8;
/// Most rounds of one trial.
const ROUNDS_MOST: u32 = 1_000;

/// How an elephant is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// One TCP connection: one hash, one path.
    Tcp,
    /// Multipath TCP (RFC 8684) by the kernel: one connection of several subflows, among which the sender's scheduler shares
    /// the data as each gets on.
    Mptcp,
    /// As many TCP connections as MPTCP has subflows, striped by the application: more hashes, without anything that shares.
    Striped,
}

impl Split {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Mptcp, Self::Striped];

    /// As plans and records write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
            Self::Striped => "striped",
        }
    }
}

/// One elephant from each server of the first half to its counterpart in the second, all at once. Servers' own lines have a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ElephantSpec {
    /// How they are sent, in turns.
    pub splits: Vec<Split>,
    /// Subflows of each, where there are several.
    pub subflows: u32,
    /// How long they send in each turn.
    pub each: Nanos,
    /// Turns; each has ports of its own and so another draw of the hashes.
    pub rounds: u32,
}

impl ElephantSpec {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        check_distinct("splits", &self.splits)?;
        range("subflows", self.subflows, 2, SUBFLOWS_MOST)?;
        range("rounds", self.rounds, 1, ROUNDS_MOST)?;
        check_time("each", self.each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let good = ElephantSpec { splits: Split::ALL.to_vec(), subflows: 8, each: Nanos(1_000_000_000), rounds: 7 };
        good.check().unwrap();
        let refused = |spec: ElephantSpec| spec.check().unwrap_err().to_string();
        assert!(refused(ElephantSpec { subflows: 9, ..good.clone() }).contains("`subflows`"));
        assert!(refused(ElephantSpec { splits: vec![Split::Tcp, Split::Tcp], ..good.clone() }).contains("`splits`"));
        assert!(refused(ElephantSpec { rounds: 0, ..good.clone() }).contains("`rounds`"));
        assert!(refused(ElephantSpec { each: Nanos(0), ..good }).contains("`each`"));
        for split in Split::ALL {
            assert_eq!(serde_json::to_string(&split).unwrap(), format!("\"{}\"", split.name()));
        }
    }
}
