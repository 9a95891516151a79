//! What the two TRILL papers measure: frames from one port of a test centre to another, through switches that forward by
//! TRILL, by spanning tree, or as plain layer-2 switches at the same hook. The engine makes the switches; the plan says which
//! experiment runs on them.

mod elephants;
mod vlan_mix;

pub use elephants::{ELEPHANTS, ElephantSpec, Split};
pub use vlan_mix::{VlanMixSpec, crossing_share, vlan_hosts};

use serde::{Deserialize, Serialize};
use weft_wire::trill;

use super::WorkloadError;
use super::frames::{FRAME_LEAST, Runs, check_distinct, check_sizes, check_time, range};
use crate::units::{BitsPerSec, Nanos};

/// Most stations of the test centre.
const STATIONS_MOST: u32 = 16_384;
/// Most frames a second: what no machine sends.
const PER_S_MOST: u32 = 100_000_000;
/// Most CPUs that work is spread over: nicknames are dealt out in sixteen clusters.
const CPUS_MOST: u32 = 16;
/// Most RBridges that frames are sent to.
const NICKNAMES_MOST: u32 = 4096;
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
    /// What a switch forwards whose work is spread over CPUs.
    Spread(SpreadSpec),
    /// What a share of traffic costs that crosses VLANs.
    VlanMix(VlanMixSpec),
    /// Few large flows by the TCP of real kernels.
    Elephants(ElephantSpec),
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
    /// The same without outer headers between switches: an option, no RFC's.
    TrillElided,
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
    pub const ALL: [Self; 7] = [
        Self::Trill,
        Self::TrillElided,
        Self::TrillGeneric,
        Self::Layer2,
        Self::Stp,
        Self::TrillRouted,
        Self::TrillRouter,
    ];

    /// As plans and records write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trill => "trill",
            Self::TrillElided => "trill-elided",
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
    /// What one path is taken to carry where there is no `link`: loads are so many frames, and nothing limits them.
    #[serde(default)]
    pub path_rate: Option<BitsPerSec>,
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

/// A line of three RBridges whose middle one spreads its work over CPUs by egress nickname, as the fast-path paper's card does
/// over its clusters. The chain ends behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadSpec {
    /// Numbers of CPUs, each on a line of its own; 0: each frame is worked on where it comes in.
    pub cpus: Vec<u32>,
    /// Sizes with FCS.
    pub frame_bytes: Vec<u32>,
    /// Stations of the test centre that send.
    pub stations: u32,
    /// RBridges that they send to, in turn.
    pub nicknames: u32,
    /// Runs; lines take turns.
    pub runs: Runs,
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
    /// How long they send; through a spanning tree longer by what its timers may take.
    pub watch: Nanos,
    /// Timers of spanning trees.
    #[serde(default)]
    pub timers: StpTimers,
}

/// Timers of a spanning tree (IEEE 802.1D-1998 8.10.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StpTimers {
    /// What the standard recommends: hello 2 s, maximum age 20 s, forward delay 15 s.
    #[default]
    Standard,
    /// The shortest that Linux takes: hello 1 s, maximum age 6 s, forward delay 2 s (the standard's least is 4 s).
    Quick,
}

impl StpTimers {
    /// Between two messages of the root, seconds.
    pub const fn hello_s(self) -> u64 {
        match self {
            Self::Standard => 2,
            Self::Quick => 1,
        }
    }

    /// How long a message of the root is believed, seconds.
    pub const fn max_age_s(self) -> u64 {
        match self {
            Self::Standard => 20,
            Self::Quick => 6,
        }
    }

    /// How long a port listens, and how long it learns, before it forwards, seconds.
    pub const fn forward_delay_s(self) -> u64 {
        match self {
            Self::Standard => 15,
            Self::Quick => 2,
        }
    }

    /// How long the tree may take to lead around a switch, seconds: twice the forward delay, and before that the maximum
    /// age where nobody saw the loss.
    pub const fn recovery_s(self, loss: SwitchLoss) -> u64 {
        let unseen_s = match loss {
            SwitchLoss::LinkDown => 0,
            SwitchLoss::Silent => self.max_age_s(),
        };
        unseen_s + 2 * self.forward_delay_s()
    }
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
            Self::Spread(_) => "spread",
            Self::VlanMix(_) => "vlan-mix",
            Self::Elephants(_) => "elephants",
        }
    }

    /// Whether the experiment makes sense; says what does not.
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        match self {
            Self::Crossing(spec) => spec.check(),
            Self::Spread(spec) => {
                check_distinct("cpus", &spec.cpus)?;
                spec.cpus.iter().try_for_each(|cpus| range("cpus", *cpus, 0, CPUS_MOST))?;
                check_sizes("frame_bytes", &spec.frame_bytes)?;
                range("stations", spec.stations, 1, STATIONS_MOST)?;
                range("nicknames", spec.nicknames, 1, NICKNAMES_MOST)?;
                spec.runs.check()
            }
            Self::VlanMix(spec) => spec.check(),
            Self::Elephants(spec) => spec.check(),
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
        let rate_bps = self.link.map(|link| link.rate).or(self.path_rate).map_or(0.0, |rate| rate.0 as f64);
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
            None if !self.load_percent.is_empty() && self.path_rate.is_none_or(|rate| rate.0 == 0) => {
                Err(WorkloadError::LoadWithoutLink)
            }
            Some(_) if self.path_rate.is_some() => Err(WorkloadError::TwoPathRates),
            Some(link) if link.rate.0 == 0 || link.tester_rate.0 == 0 => Err(WorkloadError::NoRates),
            _ => Ok(()),
        }
    }
}

/// What Ethernet sends around a frame: preamble, start delimiter and gap (IEEE 802.3), bytes.
pub const LAYER1_EXTRA_BYTES: u32 = 20;
/// What TRILL adds to a frame on a link between RBridges: outer header, TRILL header and the inner VLAN tag, bytes.
pub const TRILL_EXTRA_BYTES: u32 = trill::OVERHEAD_BYTES as u32;
/// The same without the outer header, bytes.
pub const TRILL_ELIDED_EXTRA_BYTES: u32 = TRILL_EXTRA_BYTES - trill::elided::SAVED_LEN as u32;

/// Frames that a full line between RBridges carries without outer headers over those that it carries with them.
pub fn elision_gain_limit(frame_bytes: u32) -> f64 {
    let on_line = |extra: u32| f64::from(frame_bytes.max(FRAME_LEAST) + LAYER1_EXTRA_BYTES + extra);
    on_line(TRILL_EXTRA_BYTES) / on_line(TRILL_ELIDED_EXTRA_BYTES)
}

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
    fn a_spanning_tree_recovers_by_its_timers() {
        let recovery = |timers: StpTimers| SwitchLoss::ALL.map(|loss| timers.recovery_s(loss));
        assert_eq!(recovery(StpTimers::Standard), [30, 50], "half a minute, or the maximum age more");
        assert_eq!(recovery(StpTimers::Quick), [4, 10]);
    }

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
    fn loads_of_bare_links_are_shares_of_a_rate_that_the_plan_names() {
        let keys = format!("{FRAMES}{TRIAL}load_percent = [80, 400]\npath_rate = \"25 Mbit/s\"\n");
        let TrillSpec::Crossing(spec) = read("crossing", &keys).unwrap() else { panic!("a crossing") };
        spec.check().unwrap();
        let offers = spec.offers(64);
        assert!((offers[1].per_s - 100e6 / (84.0 * 8.0)).abs() < 1e-6 && offers[1].label() == "400");
        assert!(refusal("crossing", &format!("{keys}{LINK}")).contains("`path_rate`"));
    }

    #[test]
    fn four_paths_carry_less_than_four_times_as_much() {
        assert!((path_gain_limit(64, 4) - 3.111).abs() < 1e-3);
        assert!((path_gain_limit(512, 4) - 3.827).abs() < 1e-3);
        assert!((path_gain_limit(1518, 4) - 3.938).abs() < 1e-3);
    }

    #[test]
    fn fourteen_bytes_less_are_more_of_a_short_frame() {
        assert!((elision_gain_limit(64) - 108.0 / 94.0).abs() < 1e-12);
        assert!((elision_gain_limit(1518) - 1562.0 / 1548.0).abs() < 1e-12);
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
