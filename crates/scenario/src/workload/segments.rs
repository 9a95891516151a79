//! Many segments between two edge switches (VXLAN draft, 3.2): what holds them, and what that takes.

use serde::{Deserialize, Serialize};

use super::WorkloadError;
use super::frames::{FRAME_LEAST, FRAME_MOST, Runs, check_distinct, range};
use crate::units::{Bytes, named};

/// VNIs have 24 bits, but a machine has not the memory for a device of each.
const SEGMENTS_MOST: u32 = 5_000;

/// What holds many segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentStore {
    /// A VXLAN device of the kernel for each VNI.
    KernelDevices,
    /// One VXLAN device of the kernel on trunks of many VLANs; eBPF programs tell it the VNI of each frame by its VLAN (collect
    /// metadata).
    KernelMetadata,
    /// Our VTEP on trunks of many VLANs: entries of its maps.
    Map,
    /// The same with a port for each segment.
    MapPorts,
}

impl SegmentStore {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::KernelDevices, Self::KernelMetadata, Self::Map, Self::MapPorts];

    /// As plans and records write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::KernelDevices => "kernel-devices",
            Self::KernelMetadata => "kernel-metadata",
            Self::Map => "map",
            Self::MapPorts => "map-ports",
        }
    }
}

/// Segments between the first edge switch and the next, one server's frames in all of them in turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SegmentsSpec {
    /// What holds them.
    pub stores: Vec<SegmentStore>,
    /// How many, one step after another.
    pub segments: Vec<u32>,
    /// Size of frames with FCS.
    #[serde(deserialize_with = "named::number::<Bytes, _, _>")]
    #[schemars(with = "named::Number<Bytes>")]
    pub frame_bytes: u32,
    /// Runs for rate, loss and latency.
    pub cost: Runs,
}

impl SegmentsSpec {
    /// Whether the workload makes sense; says what does not.
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        check_distinct("stores", &self.stores)?;
        check_distinct("segments", &self.segments)?;
        self.segments.iter().try_for_each(|count| range("segments", *count, 1, SEGMENTS_MOST))?;
        range("frame_bytes", self.frame_bytes, FRAME_LEAST, FRAME_MOST)?;
        self.cost.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: &str) -> Result<SegmentsSpec, String> {
        let text = format!("frame_bytes = 64\ncost = {{ count = 3, each = \"20 ms\" }}\n{keys}");
        let spec: SegmentsSpec = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
        spec.check().map(|()| spec).map_err(|error| error.to_string())
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        read("stores = [\"kernel-devices\", \"map\"]\nsegments = [1, 5000]").unwrap();
        for (keys, message) in [
            ("stores = [\"map\"]\nsegments = [5001]", "`segments` is 5001"),
            ("stores = []\nsegments = [1]", "`stores`"),
            ("stores = [\"map\", \"map\"]\nsegments = [1]", "`stores`"),
            ("stores = [\"ovs\"]\nsegments = [1]", "unknown variant `ovs`"),
            ("stores = [\"map\"]\nsegments = [1]\ncolour = 1", "unknown field `colour`"),
        ] {
            let error = read(keys).unwrap_err();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }

    #[test]
    fn names_are_those_of_plans() {
        for store in SegmentStore::ALL {
            assert_eq!(serde_json::to_string(&store).unwrap(), format!("\"{}\"", store.name()));
        }
    }
}
