//! What the VXLAN draft measures (draft-liu-nvo3-ps-vxlan-perfomance-00): servers with a virtual switch and test VMs, not
//! flows between the servers of a fabric. The engine makes the servers; the plan says which experiment runs on them.

use serde::{Deserialize, Serialize};

use super::WorkloadError;
use super::frames::{FRAME_LEAST, FRAME_MOST, Runs, check_distinct, check_sizes, check_time, range};
use crate::units::Nanos;

/// VNIs have 24 bits, but a machine has not the memory for a device of each.
const SEGMENTS_MOST: u32 = 5_000;
/// Most pairs of VMs.
const PAIRS_MOST: u32 = 16;

/// One experiment of the draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "experiment", rename_all = "kebab-case", deny_unknown_fields)]
pub enum VxlanSpec {
    /// Traffic model A (2.5): the test centre and one server. Which rate it carries at each size of frames.
    Benchmark(BenchmarkSpec),
    /// Traffic model B (3.1): two servers with a switch between them, without and with VXLAN.
    Servers(ServersSpec),
    /// Many segments at once (3.2).
    Segments(SegmentsSpec),
}

/// How frames get from virtual switch to virtual switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// The kernel's bridge, no encapsulation.
    Bridge,
    /// The kernel's VXLAN device as a port of the kernel's bridge.
    KernelVxlan,
    /// A plain layer-2 switch as eBPF at the TC hook: what our VTEP is compared with, at the same hook.
    Tc,
    /// Our VTEP at the TC hook.
    Vxlan,
    /// A plain layer-2 switch as XDP programs: the same for XDP.
    Xdp,
    /// Our VTEP with its XDP programs in front.
    VxlanXdp,
}

impl Path {
    /// Every way.
    pub const ALL: [Self; 6] = [Self::Bridge, Self::KernelVxlan, Self::Tc, Self::Vxlan, Self::Xdp, Self::VxlanXdp];

    /// As plans and records write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::KernelVxlan => "kernel-vxlan",
            Self::Tc => "tc",
            Self::Vxlan => "vxlan",
            Self::Xdp => "xdp",
            Self::VxlanXdp => "vxlan-xdp",
        }
    }

    /// Whether frames travel within VXLAN.
    pub fn is_vxlan(self) -> bool {
        matches!(self, Self::KernelVxlan | Self::Vxlan | Self::VxlanXdp)
    }
}

/// What holds many segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// No segments: as many ports, joined by a plain switch at the TC hook. What the ports take by themselves.
    Ports,
}

impl SegmentStore {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::KernelDevices, Self::KernelMetadata, Self::Map, Self::MapPorts, Self::Ports];

    /// As plans and records write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::KernelDevices => "kernel-devices",
            Self::KernelMetadata => "kernel-metadata",
            Self::Map => "map",
            Self::MapPorts => "map-ports",
            Self::Ports => "ports",
        }
    }
}

/// Model A. Frames come from the test centre to the VMs; the highest rate with at most `loss_percent` of loss is searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchmarkSpec {
    /// Sizes with FCS; an idle row comes by itself.
    pub frame_bytes: Vec<u32>,
    /// What may be lost ("less than 2 % of packet-lost is acceptable", 2.3).
    pub loss_percent: u32,
    /// Trials of the search.
    pub trial: Nanos,
    /// Rates in percent of the one found at which what arrives is counted, to show where it bends.
    pub offered_percent: Vec<u32>,
    /// Runs for CPU time.
    pub cost: Runs,
}

/// Model B. The first way of `paths` is the one without VXLAN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServersSpec {
    /// The ways.
    pub paths: Vec<Path>,
    /// Sizes with FCS.
    pub frame_bytes: Vec<u32>,
    /// Other sizes on the ways with VXLAN, place by place, as the draft pairs 1518 with 1450.
    #[serde(default)]
    pub vxlan_frame_bytes: Vec<u32>,
    /// Pairs of VMs, one VM of each on either server.
    pub vm_pairs: u32,
    /// What may be lost at the benchmark that sets the rates.
    pub loss_percent: u32,
    /// Trials for rate, loss and latency.
    pub trial: Nanos,
    /// Rates in percent of the benchmark at which what arrives is counted.
    pub offered_percent: Vec<u32>,
    /// Runs for CPU time.
    pub cost: Runs,
}

/// Many segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentsSpec {
    /// What holds them.
    pub stores: Vec<SegmentStore>,
    /// How many, one step after another.
    pub segments: Vec<u32>,
    /// Size of frames with FCS.
    pub frame_bytes: u32,
    /// Runs for rate, loss and latency.
    pub cost: Runs,
}

impl VxlanSpec {
    /// As plans write it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Benchmark(_) => "benchmark",
            Self::Servers(_) => "servers",
            Self::Segments(_) => "segments",
        }
    }

    /// Whether the experiment makes sense; says what does not.
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        match self {
            Self::Benchmark(spec) => {
                check_sizes("frame_bytes", &spec.frame_bytes)?;
                range("loss_percent", spec.loss_percent, 0, 50)?;
                check_offered(&spec.offered_percent)?;
                check_time("trial", spec.trial)?;
                spec.cost.check()
            }
            Self::Servers(spec) => spec.check(),
            Self::Segments(spec) => {
                check_distinct("stores", &spec.stores)?;
                check_distinct("segments", &spec.segments)?;
                spec.segments.iter().try_for_each(|count| range("segments", *count, 1, SEGMENTS_MOST))?;
                range("frame_bytes", spec.frame_bytes, FRAME_LEAST, FRAME_MOST)?;
                spec.cost.check()
            }
        }
    }
}

impl ServersSpec {
    /// The size that a way carries in the place of the `place`-th size.
    pub fn size_on(&self, path: Path, place: usize) -> u32 {
        let other = self.vxlan_frame_bytes.get(place).filter(|_| path.is_vxlan());
        other.copied().unwrap_or(self.frame_bytes[place])
    }

    fn check(&self) -> Result<(), WorkloadError> {
        check_distinct("paths", &self.paths)?;
        if self.paths[0].is_vxlan() {
            return Err(WorkloadError::FirstPathEncapsulates { path: self.paths[0].name() });
        }
        check_sizes("frame_bytes", &self.frame_bytes)?;
        if !self.vxlan_frame_bytes.is_empty() {
            self.vxlan_frame_bytes
                .iter()
                .try_for_each(|bytes| range("vxlan_frame_bytes", *bytes, FRAME_LEAST, FRAME_MOST))?;
            if self.vxlan_frame_bytes.len() != self.frame_bytes.len() {
                let (with, without) = (self.vxlan_frame_bytes.len(), self.frame_bytes.len());
                return Err(WorkloadError::SizePairs { with, without });
            }
        }
        range("vm_pairs", self.vm_pairs, 1, PAIRS_MOST)?;
        range("loss_percent", self.loss_percent, 0, 50)?;
        check_offered(&self.offered_percent)?;
        check_time("trial", self.trial)?;
        self.cost.check()
    }
}

fn check_offered(percent: &[u32]) -> Result<(), WorkloadError> {
    percent.iter().try_for_each(|percent| range("offered_percent", *percent, 1, 10_000))
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use super::*;

    fn read(experiment: &str, keys: &str) -> Result<VxlanSpec, String> {
        let text = format!("kind = \"vxlan\"\nexperiment = \"{experiment}\"\n{keys}");
        match toml::from_str(&text).map_err(|error| error.message().to_owned())? {
            Workload::Vxlan(spec) => Ok(spec),
            other => Err(format!("{other:?}")),
        }
    }

    fn refusal(experiment: &str, keys: &str) -> String {
        read(experiment, keys).and_then(|spec| spec.check().map_err(|error| error.to_string())).unwrap_err()
    }

    const COST: &str = "cost = { count = 3, each = \"20 ms\" }\n";
    const SERVERS: &str = "vm_pairs = 1\nloss_percent = 2\ntrial = \"30 ms\"\noffered_percent = [50, 200]\n";

    #[test]
    fn every_experiment_can_be_written() {
        let benchmark =
            format!("frame_bytes = [128, 1518]\nloss_percent = 2\ntrial = \"30 ms\"\noffered_percent = [50]\n{COST}");
        read("benchmark", &benchmark).unwrap().check().unwrap();
        let segments =
            format!("stores = [\"kernel-devices\", \"map\"]\nsegments = [1, 5000]\nframe_bytes = 64\n{COST}");
        read("segments", &segments).unwrap().check().unwrap();
        let pairs =
            "paths = [\"bridge\", \"kernel-vxlan\"]\nframe_bytes = [512, 1518]\nvxlan_frame_bytes = [512, 1450]\n";
        let VxlanSpec::Servers(servers) = read("servers", &format!("{pairs}{SERVERS}{COST}")).unwrap() else {
            panic!("two servers");
        };
        servers.check().unwrap();
        assert_eq!((servers.size_on(Path::Bridge, 1), servers.size_on(Path::KernelVxlan, 1)), (1518, 1450));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let servers = |keys: &str| refusal("servers", &format!("{keys}\n{SERVERS}{COST}"));
        for (error, message) in [
            (servers("paths = []\nframe_bytes = [64]"), "`paths`"),
            (servers("paths = [\"bridge\", \"bridge\"]\nframe_bytes = [64]"), "`paths`"),
            (servers("paths = [\"ovs\"]\nframe_bytes = [64]"), "unknown variant `ovs`"),
            (servers("paths = [\"tc\"]\nframe_bytes = [63]"), "`frame_bytes` is 63; it is 64 to 1518"),
            (servers("paths = [\"tc\"]\nframe_bytes = [64]\ncolour = 1"), "unknown field `colour`"),
            (
                refusal(
                    "servers",
                    &format!("paths = [\"tc\"]\nframe_bytes = [64]\n{SERVERS}cost = {{ count = 0, each = \"1 ms\" }}"),
                ),
                "`cost.count` is 0",
            ),
            (
                refusal("segments", &format!("stores = [\"map\"]\nsegments = [5001]\nframe_bytes = 64\n{COST}")),
                "`segments` is 5001",
            ),
            (servers("paths = [\"vxlan\", \"tc\"]\nframe_bytes = [64]"), "`vxlan` encapsulates"),
            (servers("paths = [\"tc\"]\nframe_bytes = [64]\nvxlan_frame_bytes = [64, 65]"), "2 sizes with VXLAN and 1"),
            (refusal("ping", ""), "unknown variant `ping`"),
        ] {
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }

    #[test]
    fn names_are_those_of_plans() {
        for path in Path::ALL {
            assert_eq!(serde_json::to_string(&path).unwrap(), format!("\"{}\"", path.name()));
        }
        for store in SegmentStore::ALL {
            assert_eq!(serde_json::to_string(&store).unwrap(), format!("\"{}\"", store.name()));
        }
    }
}
