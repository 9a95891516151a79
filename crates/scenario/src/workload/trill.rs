//! What the two TRILL papers measure: frames from one port of a test centre to another, through switches that forward by
//! TRILL, by spanning tree, or as plain layer-2 switches at the same hook. The engine makes the switches; the plan says which
//! experiment runs on them.

use serde::{Deserialize, Serialize};

use super::WorkloadError;
use super::frames::{FRAME_LEAST, Runs, check_distinct, check_sizes, check_time, range};
use crate::units::{BitsPerSec, Nanos};

/// Most stations of the test centre.
const STATIONS_MOST: u32 = 16_384;
/// Most frames a second: what no machine sends.
const PER_S_MOST: u32 = 100_000_000;
/// Most percent of one path.
const LOAD_MOST: u32 = 10_000;

/// One experiment of the papers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "experiment", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TrillSpec {
    /// What becomes of frames that cross the switches at rates or loads.
    Crossing(CrossingSpec),
    /// What a frame costs at each switch.
    Cost(CostSpec),
    /// How long flows stand still when a middle switch is lost.
    Convergence(ConvergenceSpec),
}

/// Which switches there are between the test centre's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// S1, one middle switch, S2: the forwarding node of the fast-path paper between two that send and receive.
    Line,
    /// S1 and S2, each linked to S3, S4, S5 and S6: four paths.
    Campus,
}

impl Network {
    /// Switches between S1 and S2, and so paths.
    pub fn paths(self) -> u32 {
        match self {
            Self::Line => 1,
            Self::Campus => 4,
        }
    }
}

/// How the switches forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// TRILL with our programs in the driver: the fast path.
    Trill,
    /// The same programs in the stack (generic XDP): the slow path.
    TrillGeneric,
    /// Plain layer-2 switches as XDP programs along a spanning tree: Ethernet at TRILL's hook.
    Layer2,
    /// The kernel's bridges with 802.1D spanning tree.
    Stp,
    /// TRILL between two VLANs, routed at the ingress RBridge.
    TrillRouted,
    /// TRILL between two VLANs by a router with a leg in each, behind the first middle switch.
    TrillRouter,
}

impl Way {
    /// Every way.
    pub const ALL: [Self; 6] =
        [Self::Trill, Self::TrillGeneric, Self::Layer2, Self::Stp, Self::TrillRouted, Self::TrillRouter];

    /// As plans and records write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trill => "trill",
            Self::TrillGeneric => "trill-generic",
            Self::Layer2 => "layer2",
            Self::Stp => "stp",
            Self::TrillRouted => "trill-routed",
            Self::TrillRouter => "trill-router",
        }
    }

    /// Whether frames travel within TRILL.
    pub fn is_trill(self) -> bool {
        !matches!(self, Self::Layer2 | Self::Stp)
    }

    /// Whether the receiving stations are in another VLAN than the sending ones.
    pub fn is_between_vlans(self) -> bool {
        matches!(self, Self::TrillRouted | Self::TrillRouter)
    }
}

/// Links between switches, each direction with a line and a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmulatedLink {
    /// Between switches, on layer 1.
    pub rate: BitsPerSec,
    /// Between the test centre and S1 or S2, on layer 1.
    pub tester_rate: BitsPerSec,
    /// Longest wait for the line.
    pub queue: Nanos,
}

/// What a load is a share of: the paper names bits per second and not which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Frames with preamble and gap, as a line carries them.
    #[default]
    Layer1,
    /// Frames with FCS, without preamble and gap.
    Layer2,
}

/// Frames that cross.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossingSpec {
    /// The switches.
    pub network: Network,
    /// How they forward; all are up at once and take turns.
    pub ways: Vec<Way>,
    /// Sizes with FCS.
    pub frame_bytes: Vec<u32>,
    /// Stations of the test centre that send, each with its partner: so many flows.
    pub stations: u32,
    /// The links; without, they are as fast as the machine.
    #[serde(default)]
    pub link: Option<EmulatedLink>,
    /// Rates, frames per second.
    #[serde(default)]
    pub per_s: Vec<u32>,
    /// Rates in percent of one path.
    #[serde(default)]
    pub load_percent: Vec<u32>,
    /// Of what those are percent.
    #[serde(default)]
    pub load_of: Layer,
    /// How long each is sent.
    pub trial: Nanos,
}

/// CPU time per frame at every switch, by ending the chain earlier and earlier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostSpec {
    /// The switches.
    pub network: Network,
    /// How they forward.
    pub ways: Vec<Way>,
    /// Sizes with FCS.
    pub frame_bytes: Vec<u32>,
    /// Stations of the test centre that send.
    pub stations: u32,
    /// Rates that CPU use is told for, frames per second.
    #[serde(default)]
    pub per_s: Vec<u32>,
    /// Runs for CPU time.
    pub cost: Runs,
}

/// How a switch is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchLoss {
    /// Its links go down, and its neighbours see it at once.
    LinkDown,
    /// It forwards nothing and says nothing, and its links stay up.
    Silent,
}

impl SwitchLoss {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::LinkDown, Self::Silent];

    /// As plans and records write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::LinkDown => "link-down",
            Self::Silent => "silent",
        }
    }
}

/// The middle switch that carries most is lost a second after the first frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvergenceSpec {
    /// How the switches of the campus forward.
    pub ways: Vec<Way>,
    /// How the switch is lost, each on a campus of its own.
    pub losses: Vec<SwitchLoss>,
    /// Size with FCS.
    pub frame_bytes: u32,
    /// Stations of the test centre that send, each a flow.
    pub stations: u32,
    /// Rate of all together, frames per second.
    pub per_s: u32,
    /// How long they send.
    pub watch: Nanos,
}

/// One rate that a crossing asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// In percent of one path; 0: the rate was given itself.
    pub load_percent: u32,
    /// Frames per second.
    pub per_s: f64,
}

impl Offer {
    /// As metrics are called: the load in percent, or the rate.
    pub fn label(&self) -> String {
        if self.load_percent > 0 { self.load_percent.to_string() } else { self.per_s.to_string() }
    }
}

impl TrillSpec {
    /// As plans write it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Crossing(_) => "crossing",
            Self::Cost(_) => "cost",
            Self::Convergence(_) => "convergence",
        }
    }

    /// Whether the experiment makes sense; says what does not.
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        match self {
            Self::Crossing(spec) => spec.check(),
            Self::Convergence(spec) => {
                check_distinct("ways", &spec.ways)?;
                check_distinct("losses", &spec.losses)?;
                check_sizes("frame_bytes", &[spec.frame_bytes])?;
                range("stations", spec.stations, 1, STATIONS_MOST)?;
                range("per_s", spec.per_s, 1, PER_S_MOST)?;
                check_time("watch", spec.watch)
            }
            Self::Cost(spec) => {
                check_distinct("ways", &spec.ways)?;
                if spec.ways.contains(&Way::TrillRouter) {
                    return Err(WorkloadError::NeedsCampus);
                }
                check_sizes("frame_bytes", &spec.frame_bytes)?;
                range("stations", spec.stations, 1, STATIONS_MOST)?;
                spec.per_s.iter().try_for_each(|rate| range("per_s", *rate, 1, PER_S_MOST))?;
                spec.cost.check()
            }
        }
    }
}

impl CrossingSpec {
    /// The rates at a size of frames, in the plan's order.
    pub fn offers(&self, frame_bytes: u32) -> Vec<Offer> {
        let rate_bps = self.link.map_or(0.0, |link| link.rate.0 as f64);
        let bits = match self.load_of {
            Layer::Layer1 => f64::from(frame_bytes + LAYER1_EXTRA_BYTES) * 8.0,
            Layer::Layer2 => f64::from(frame_bytes) * 8.0,
        };
        let loads = self
            .load_percent
            .iter()
            .map(|percent| Offer { load_percent: *percent, per_s: rate_bps * f64::from(*percent) / 100.0 / bits });
        self.per_s.iter().map(|per_s| Offer { load_percent: 0, per_s: f64::from(*per_s) }).chain(loads).collect()
    }

    fn check(&self) -> Result<(), WorkloadError> {
        check_distinct("ways", &self.ways)?;
        check_sizes("frame_bytes", &self.frame_bytes)?;
        range("stations", self.stations, 1, STATIONS_MOST)?;
        check_time("trial", self.trial)?;
        if self.per_s.is_empty() && self.load_percent.is_empty() {
            return Err(WorkloadError::NoRates);
        }
        self.per_s.iter().try_for_each(|rate| range("per_s", *rate, 1, PER_S_MOST))?;
        self.load_percent.iter().try_for_each(|percent| range("load_percent", *percent, 1, LOAD_MOST))?;
        let on_campus = self.link.is_some() || self.ways.contains(&Way::TrillRouter);
        if self.network == Network::Line && on_campus {
            return Err(WorkloadError::NeedsCampus);
        }
        match self.link {
            None if !self.load_percent.is_empty() => Err(WorkloadError::LoadWithoutLink),
            Some(link) if link.rate.0 == 0 || link.tester_rate.0 == 0 => Err(WorkloadError::NoRates),
            _ => Ok(()),
        }
    }
}

/// What Ethernet sends around a frame: preamble, start delimiter and gap (IEEE 802.3), bytes.
pub const LAYER1_EXTRA_BYTES: u32 = 20;
/// What TRILL adds to a frame on a link between RBridges: outer header, TRILL header and the inner VLAN tag, bytes.
pub const TRILL_EXTRA_BYTES: u32 = 24;

/// Delivered with TRILL over `paths` links over delivered with one: the share of a line that headers leave, times the paths.
pub fn path_gain_limit(frame_bytes: u32, paths: u32) -> f64 {
    let plain = f64::from(frame_bytes.max(FRAME_LEAST) + LAYER1_EXTRA_BYTES);
    f64::from(paths) * plain / (plain + f64::from(TRILL_EXTRA_BYTES))
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use super::*;

    fn read(experiment: &str, keys: &str) -> Result<TrillSpec, String> {
        let text = format!("kind = \"trill\"\nexperiment = \"{experiment}\"\nnetwork = \"campus\"\n{keys}");
        match toml::from_str(&text).map_err(|error| error.message().to_owned())? {
            Workload::Trill(spec) => Ok(spec),
            other => Err(format!("{other:?}")),
        }
    }

    fn refusal(experiment: &str, keys: &str) -> String {
        read(experiment, keys).and_then(|spec| spec.check().map_err(|error| error.to_string())).unwrap_err()
    }

    const LINK: &str = "link = { rate = \"100 Mbit/s\", tester_rate = \"400 Mbit/s\", queue = \"1 ms\" }\n";
    const FRAMES: &str = "ways = [\"trill\", \"stp\"]\nframe_bytes = [64, 1518]\nstations = 1024\n";
    const TRIAL: &str = "trial = \"50 ms\"\n";

    #[test]
    fn loads_are_shares_of_one_path_on_the_layer_that_the_plan_names() {
        let of = |layer: &str| {
            let keys = format!("{FRAMES}{LINK}{TRIAL}load_percent = [80, 400]\nload_of = \"{layer}\"\n");
            match read("crossing", &keys).unwrap() {
                TrillSpec::Crossing(spec) => {
                    spec.check().unwrap();
                    spec.offers(64)
                }
                other => panic!("{other:?}"),
            }
        };
        let (first, second) = (of("layer1"), of("layer2"));
        assert_eq!(first.len(), 2);
        assert!((first[0].per_s - 80e6 / (84.0 * 8.0)).abs() < 1e-6 && (second[0].per_s - 80e6 / 512.0).abs() < 1e-6);
        // 64-byte frames at 0.8 of layer 2 are more than the line carries.
        assert!((second[0].per_s * 84.0 * 8.0 / 100e6 - 1.05).abs() < 1e-9);
        assert!((first[1].per_s / first[0].per_s - 5.0).abs() < 1e-12);
    }

    #[test]
    fn four_paths_carry_less_than_four_times_as_much() {
        assert!((path_gain_limit(64, 4) - 3.111).abs() < 1e-3);
        assert!((path_gain_limit(512, 4) - 3.827).abs() < 1e-3);
        assert!((path_gain_limit(1518, 4) - 3.938).abs() < 1e-3);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let crossing = |keys: &str| refusal("crossing", &format!("{FRAMES}{TRIAL}{keys}\n"));
        for (error, message) in [
            (crossing(""), "sends nothing"),
            (crossing("load_percent = [80]"), "give the workload a `link`"),
            (crossing("per_s = [0]"), "`per_s` is 0"),
            (crossing(&format!("{LINK}load_percent = [0]")), "`load_percent` is 0"),
            (crossing("per_s = [1]\ncolour = 1"), "unknown field `colour`"),
            (
                refusal(
                    "cost",
                    "ways = [\"trill\", \"trill\"]\nframe_bytes = [64]\nstations = 1\ncost = { count = 1, each = \"1 ms\" }",
                ),
                "`ways`",
            ),
            (
                refusal(
                    "cost",
                    "ways = [\"vxlan\"]\nframe_bytes = [64]\nstations = 1\ncost = { count = 1, each = \"1 ms\" }",
                ),
                "unknown variant `vxlan`",
            ),
            (refusal("ping", ""), "unknown variant `ping`"),
        ] {
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }

    #[test]
    fn names_are_those_of_plans() {
        for way in Way::ALL {
            assert_eq!(serde_json::to_string(&way).unwrap(), format!("\"{}\"", way.name()));
        }
        assert_eq!((Network::Line.paths(), Network::Campus.paths()), (1, 4));
    }
}
