//! A stream to many receivers: for an IP multicast group that they have joined, or as a copy to each, made by whoever sends.

use serde::{Deserialize, Serialize};

use super::WorkloadError;
use super::frames::{FRAME_LEAST, FRAME_MOST, Runs, check_distinct, check_time, range};
use crate::units::{Bytes, Nanos, named};

/// Most receivers of a stream.
const RECEIVERS_MOST: u32 = 1024;
/// Most groups: a port's table of them has room for 512 and is never full here.
const GROUPS_MOST: u32 = 256;
/// The highest rate: edge switches let no port send more frames for groups in a second.
const PER_S_MOST: u32 = 10_000;

/// Frames from the fabric's first server to so many others of its VLAN, which are spread over the edge switches: in turns over all but the
/// last, until these have no more. Who receives has joined the groups with sockets of its own, so that switches hear of it from its kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MulticastSpec {
    /// Numbers of receivers; everything is done with one before the next larger one.
    pub receivers: Vec<u32>,
    /// Groups, each with a stream of its own that all receivers have joined. Streams take turns.
    #[serde(default = "one")]
    pub groups: u32,
    /// Who makes the copies.
    #[serde(default)]
    pub copies: Copies,
    /// Size with FCS, bytes.
    #[serde(deserialize_with = "named::number::<Bytes, _, _>")]
    #[schemars(with = "named::Number<Bytes>")]
    pub frame_bytes: u32,
    /// Frames of all streams together per second; with copies by the ingress so many to each receiver.
    pub per_s: u32,
    /// How long they are sent.
    pub trial: Nanos,
    /// When the link goes down by which the sender's switch sends on most of the frames, from the start of the trial; it is up again
    /// after it. `None`: never.
    #[serde(default)]
    pub link_down_at: Option<Nanos>,
    /// Runs for the CPU time of a copy, beside that of a frame to one station.
    #[serde(default)]
    pub cost: Option<Runs>,
}

/// Who makes a frame's copies.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Copies {
    /// Switches, each where its tree branches.
    #[default]
    Tree,
    /// The sender: a frame to each receiver's own address, one after another (head-end replication).
    Ingress,
}

impl Copies {
    /// As plans and rows have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Ingress => "ingress",
        }
    }
}

fn one() -> u32 {
    1
}

impl MulticastSpec {
    /// Whether the workload makes sense for so many servers; says what does not.
    pub(super) fn check(&self, n_servers: u32) -> Result<(), WorkloadError> {
        check_distinct("receivers", &self.receivers)?;
        let most = RECEIVERS_MOST.min(n_servers - 1);
        self.receivers.iter().try_for_each(|receivers| range("receivers", *receivers, 1, most))?;
        range("groups", self.groups, 1, GROUPS_MOST)?;
        range("frame_bytes", self.frame_bytes, FRAME_LEAST, FRAME_MOST)?;
        range("per_s", self.per_s, 1, PER_S_MOST)?;
        check_time("trial", self.trial)?;
        self.cost.map_or(Ok(()), Runs::check)?;
        if self.link_down_at.is_some_and(|at| at >= self.trial) {
            return Err(WorkloadError::LateLink);
        }
        let of_trees =
            [("groups", self.groups > 1), ("link_down_at", self.link_down_at.is_some()), ("cost", self.cost.is_some())];
        match of_trees.into_iter().find(|(_, is_set)| *is_set && self.copies == Copies::Ingress) {
            Some((setting, _)) => Err(WorkloadError::ForTrees { setting }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use super::*;

    const STREAM: &str = "kind = \"multicast\"\nframe_bytes = 512\nper_s = 4000\ntrial = \"1 s\"\n";

    fn read(keys: &str) -> Result<MulticastSpec, String> {
        match toml::from_str(&format!("{STREAM}{keys}")).map_err(|error| error.message().to_owned())? {
            Workload::Multicast(spec) => spec.check(9).map(|()| spec).map_err(|error| error.to_string()),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_stream_goes_to_a_group_by_a_tree_unless_it_says_otherwise() {
        let spec = read("receivers = [2, 8]").unwrap();
        assert_eq!((spec.groups, spec.copies, spec.link_down_at), (1, Copies::Tree, None));
        let copied = read("receivers = [2, 8]\ncopies = \"ingress\"").unwrap();
        assert_eq!(copied.copies.name(), "ingress");
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (keys, message) in [
            ("receivers = []", "`receivers` must name something"),
            ("receivers = [2, 2]", "`receivers` must name something, and nothing twice"),
            ("receivers = [0]", "`receivers` is 0; it is 1 to 8"),
            ("receivers = [9]", "`receivers` is 9; it is 1 to 8"),
            ("receivers = [2]\ngroups = 0", "`groups` is 0"),
            ("receivers = [2]\ngroups = 257", "`groups` is 257"),
            ("receivers = [2]\nlink_down_at = \"1 s\"", "`link_down_at` is not before the end"),
            ("receivers = [2]\ncost = { count = 0, each = \"1 ms\" }", "`cost.count` is 0"),
            ("receivers = [2]\ncopies = \"ingress\"\ngroups = 2", "`groups` is for `copies = \"tree\"`"),
            ("receivers = [2]\ncopies = \"ingress\"\nlink_down_at = \"1 ms\"", "`link_down_at` is for `copies"),
            ("receivers = [2]\ncopies = \"ingress\"\ncost = { count = 1, each = \"1 ms\" }", "`cost` is for `copies"),
            ("receivers = [2]\ncopies = \"some\"", "unknown variant `some`"),
        ] {
            let error = read(keys).unwrap_err();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
        for (from, to, message) in [
            ("per_s = 4000", "per_s = 10001", "`per_s` is 10001"),
            ("frame_bytes = 512", "frame_bytes = 63", "`frame_bytes` is 63"),
            ("trial = \"1 s\"", "trial = \"0 s\"", "`trial` is 0"),
        ] {
            let text = format!("{STREAM}receivers = [2]").replace(from, to);
            let error = toml::from_str::<Workload>(&text).unwrap().check(9).unwrap_err().to_string();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }
}
