//! Frames of a test centre through whatever forwards them, and what other experiments share with it: sizes, runs, and what of
//! them makes sense.

use serde::{Deserialize, Serialize};

use super::WorkloadError;
use crate::units::{BitsPerSec, Bytes, Nanos, Percent, named};

/// Sizes of Ethernet frames with FCS, bytes.
pub(super) const FRAME_LEAST: u32 = 64;
/// The largest frame of a station whose MTU is 1500 bytes.
pub(super) const FRAME_MOST: u32 = 1518;
/// Most runs of one number.
const RUNS_MOST: u32 = 1_000;

/// Most stations at a port of the test centre.
const STATIONS_MOST: u32 = 16_384;
/// Most servers that streams go to.
const RECEIVERS_MOST: u32 = 1024;
/// The highest rate that may be asked for, frames per second.
const PER_S_MOST: u32 = 100_000_000;
/// The highest load, percent of a path.
const LOAD_MOST: u32 = 10_000;

/// Most processes at either end.
const SOCKETS_MOST: u32 = 16;

/// Frames from the fabric's first server to the first behind another switch, or, where all are behind one, to the next: rates, loads, and
/// what a frame costs at every switch on its way. Between servers in different VLANs they go by the fabric's gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FramesSpec {
    /// Sizes with FCS, bytes; everything is done with one before the next.
    #[serde(deserialize_with = "named::numbers::<Bytes, _, _>")]
    #[schemars(with = "Vec<named::Number<Bytes>>")]
    pub frame_bytes: Vec<u32>,
    /// Stations at the sending port, each with a stream to one at a receiving port.
    pub stations: u32,
    /// Where frames begin.
    #[serde(default)]
    pub from: End,
    /// Where they end.
    #[serde(default)]
    pub to: End,
    /// Servers behind other switches than the sender's that streams go to in turn. More than one are for `cost` alone, or for
    /// sockets, of which as many send.
    #[serde(default = "one")]
    pub receivers: u32,
    /// Rates of all streams together, frames per second.
    #[serde(default)]
    pub per_s: Vec<u32>,
    /// Rates in percent of a path's.
    #[serde(default, deserialize_with = "named::numbers::<Percent, _, _>")]
    #[schemars(with = "Vec<named::Number<Percent>>")]
    pub load_percent: Vec<u32>,
    /// What loads are percent of where links have no rate; otherwise the slowest link between two switches.
    #[serde(default)]
    pub path_rate: Option<BitsPerSec>,
    /// Layer at which loads fill a path.
    #[serde(default)]
    pub load_of: Layer,
    /// The highest rate that sockets take is searched.
    #[serde(default)]
    pub search: Option<Search>,
    /// How long each rate is offered. From sockets all frames that they can send are offered so long, on all cores.
    #[serde(default)]
    pub trial: Option<Nanos>,
    /// Streams, of 100, that go to another VLAN; the others stay in the sender's, behind the same switch. Empty: all go to
    /// the same server.
    #[serde(default, deserialize_with = "named::numbers::<Percent, _, _>")]
    #[schemars(with = "Vec<named::Number<Percent>>")]
    pub crossing_percent: Vec<u32>,
    /// Runs for the CPU time of a frame, with the chain of switches ended behind each.
    #[serde(default)]
    pub cost: Option<Runs>,
    /// Rates that are held for a while, and what switches or servers use meanwhile.
    #[serde(default)]
    pub steady: Option<Steady>,
}

/// What stands at a server.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// A port of the test centre, in the place of the server.
    #[default]
    Port,
    /// A process with a UDP socket behind the server's own network stack, in a control group with the quota of the VXLAN draft's VMs
    /// (draft-liu-nvo3-ps-vxlan-perfomance-00, 2.4). Its CPU time is the last hop of `chains`, or the first.
    Socket,
}

/// A search for the highest rate, by bisection (RFC 2544, 26.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// What may be lost.
    #[serde(deserialize_with = "named::number::<Percent, _, _>")]
    #[schemars(with = "named::Number<Percent>")]
    pub loss_percent: u32,
    /// Rates in percent of the one found that are offered then.
    #[serde(default, deserialize_with = "named::numbers::<Percent, _, _>")]
    #[schemars(with = "Vec<named::Number<Percent>>")]
    pub offered_percent: Vec<u32>,
}

/// Rates that are held, after a time without frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// Bits of frames with FCS: one rate for each of `frame_bytes`, in their order; of one size any number.
    pub rates: Vec<BitsPerSec>,
    /// How long nothing is sent, and then each rate.
    pub each: Nanos,
}

/// Layer at which a load fills a path.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// With preamble and inter-frame gap: a load of 100 fills the line.
    #[default]
    Layer1,
    /// Bits of frames with FCS alone.
    Layer2,
}

/// A rate of frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// Percent of a path; 0: the rate was given as such.
    pub load_percent: u32,
    /// Frames per second.
    pub per_s: f64,
}

fn one() -> u32 {
    1
}

/// Preamble, start delimiter and inter-frame gap (IEEE 802.3), bytes.
const LAYER1_EXTRA_BYTES: u32 = 20;

impl FramesSpec {
    /// The rates for a size; `path` is the slowest link between two switches.
    pub fn offers(&self, frame_bytes: u32, path: BitsPerSec) -> Vec<Offer> {
        let rate_bps = self.path_rate.unwrap_or(path).0 as f64;
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

    /// The rates that are held: sizes, and frames per second.
    pub fn steady_offers(&self) -> Vec<(u32, f64)> {
        let rates = self.steady.iter().flat_map(|steady| &steady.rates);
        let per_s = |(bytes, rate): (&u32, &BitsPerSec)| (*bytes, rate.0 as f64 / f64::from(*bytes) / 8.0);
        self.frame_bytes.iter().cycle().zip(rates).map(per_s).collect()
    }

    /// Whether the workload makes sense; says what does not.
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        check_sizes("frame_bytes", &self.frame_bytes)?;
        range("stations", self.stations, 1, STATIONS_MOST)?;
        self.per_s.iter().try_for_each(|rate| range("per_s", *rate, 1, PER_S_MOST))?;
        self.load_percent.iter().try_for_each(|percent| range("load_percent", *percent, 1, LOAD_MOST))?;
        self.crossing_percent.iter().try_for_each(|percent| range("crossing_percent", *percent, 0, 100))?;
        if self.path_rate.is_some_and(|rate| rate.0 == 0) {
            return Err(WorkloadError::ZeroServiceRate { setting: "path_rate" });
        }
        range("receivers", self.receivers, 1, RECEIVERS_MOST)?;
        let offers = !self.per_s.is_empty() || !self.load_percent.is_empty();
        let of_ports = offers || (self.to == End::Port && self.steady.is_some());
        if self.receivers > 1 && (of_ports || !self.crossing_percent.is_empty()) {
            return Err(WorkloadError::CostAlone);
        }
        self.check_sockets()?;
        self.check_steady()?;
        let offers = offers || self.search.is_some() || (self.from == End::Socket && self.trial.is_some());
        match (offers, self.trial, self.cost) {
            (true, None, _) => Err(WorkloadError::ZeroTime { setting: "trial" }),
            (true, Some(trial), None) => check_time("trial", trial),
            (true, Some(trial), Some(cost)) => check_time("trial", trial).and(cost.check()),
            (false, _, Some(cost)) => cost.check(),
            (false, _, None) if self.steady.is_some() => Ok(()),
            (false, _, None) => Err(WorkloadError::NoRates),
        }
    }

    fn check_steady(&self) -> Result<(), WorkloadError> {
        let Some(steady) = &self.steady else { return Ok(()) };
        if steady.rates.iter().any(|rate| rate.0 == 0) {
            return Err(WorkloadError::ZeroServiceRate { setting: "steady.rates" });
        }
        let (rates, sizes) = (steady.rates.len(), self.frame_bytes.len());
        if rates == 0 || (rates != sizes && sizes != 1) {
            return Err(WorkloadError::SteadyRates { rates, sizes });
        }
        check_time("steady.each", steady.each)
    }

    fn check_sockets(&self) -> Result<(), WorkloadError> {
        let of_ports = [
            ("per_s", !self.per_s.is_empty()),
            ("load_percent", !self.load_percent.is_empty()),
            ("crossing_percent", !self.crossing_percent.is_empty()),
        ];
        match (self.to, of_ports.into_iter().find(|(_, is_set)| *is_set)) {
            (End::Socket, Some((setting, _))) => return Err(WorkloadError::ForPorts { setting }),
            (End::Port, _) if self.from == End::Socket => return Err(WorkloadError::ForSockets { setting: "from" }),
            (End::Port, _) if self.search.is_some() => return Err(WorkloadError::ForSockets { setting: "search" }),
            (End::Port, _) => return Ok(()),
            _ => range("receivers", self.receivers, 1, SOCKETS_MOST)?,
        }
        let Some(search) = &self.search else { return Ok(()) };
        if self.from == End::Socket {
            return Err(WorkloadError::ForPorts { setting: "search" });
        }
        range("search.loss_percent", search.loss_percent, 0, 50)?;
        search.offered_percent.iter().try_for_each(|percent| range("search.offered_percent", *percent, 1, LOAD_MOST))
    }
}

/// How a number is measured: several short runs, of which the least disturbed counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// How many.
    pub count: u32,
    /// How long each takes.
    pub each: Nanos,
}

impl Runs {
    pub(super) fn check(self) -> Result<(), WorkloadError> {
        range("cost.count", self.count, 1, RUNS_MOST)?;
        check_time("cost.each", self.each)
    }
}

pub(super) fn range(setting: &'static str, value: u32, least: u32, most: u32) -> Result<(), WorkloadError> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(WorkloadError::DirectoryRange { setting, value, least, most }),
    }
}

pub(super) fn check_time(setting: &'static str, time: Nanos) -> Result<(), WorkloadError> {
    if time.0 == 0 { Err(WorkloadError::ZeroTime { setting }) } else { Ok(()) }
}

pub(super) fn check_sizes(setting: &'static str, sizes: &[u32]) -> Result<(), WorkloadError> {
    check_distinct(setting, sizes)?;
    sizes.iter().try_for_each(|bytes| range(setting, *bytes, FRAME_LEAST, FRAME_MOST))
}

/// A list has something in it, and nothing twice.
pub(super) fn check_distinct<T: PartialEq>(setting: &'static str, list: &[T]) -> Result<(), WorkloadError> {
    let twice = list.iter().enumerate().any(|(place, item)| list[..place].contains(item));
    if list.is_empty() || twice { Err(WorkloadError::NotAList { setting }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use super::*;

    const FRAMES: &str = "kind = \"frames\"\nframe_bytes = [64, 1518]\nstations = 1024\n";
    const LINE: BitsPerSec = BitsPerSec(100_000_000);

    fn read(keys: &str) -> Result<FramesSpec, String> {
        match toml::from_str(&format!("{FRAMES}{keys}")).map_err(|error| error.message().to_owned())? {
            Workload::Frames(spec) => spec.check().map(|()| spec).map_err(|error| error.to_string()),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn loads_are_shares_of_one_path_on_the_layer_that_the_plan_names() {
        let of = |layer: &str| {
            let keys = format!("trial = \"50 ms\"\nload_percent = [80, 400]\nload_of = \"{layer}\"\n");
            read(&keys).unwrap().offers(64, LINE)
        };
        let (first, second) = (of("layer1"), of("layer2"));
        assert_eq!(first.len(), 2);
        assert!((first[0].per_s - 80e6 / (84.0 * 8.0)).abs() < 1e-6 && (second[0].per_s - 80e6 / 512.0).abs() < 1e-6);
        // 64-byte frames at 0.8 of layer 2 are more than the line carries.
        assert!((second[0].per_s * 84.0 * 8.0 / 100e6 - 1.05).abs() < 1e-9);
        assert!((first[1].per_s / first[0].per_s - 5.0).abs() < 1e-12);
        let named = read("trial = \"50 ms\"\nload_percent = [400]\nper_s = [7]\npath_rate = \"25 Mbit/s\"").unwrap();
        let offers = named.offers(64, LINE);
        assert_eq!(offers[0], Offer { load_percent: 0, per_s: 7.0 });
        assert!((offers[1].per_s - 100e6 / (84.0 * 8.0)).abs() < 1e-6);
    }

    #[test]
    fn a_rate_is_held_for_each_size_or_many_for_one() {
        let offers = |text: &str| read(text).unwrap().steady_offers();
        let keys = "steady = { rates = [\"512 kbit/s\", \"12144 kbit/s\"], each = \"1 s\" }";
        assert_eq!(offers(keys), [(64, 1_000.0), (1518, 1_000.0)]);
        let one = format!("{FRAMES}{keys}").replace("[64, 1518]", "[64]");
        let Workload::Frames(spec) = toml::from_str(&one).unwrap() else { panic!("frames") };
        spec.check().unwrap();
        assert_eq!(spec.steady_offers()[0], (64, 1_000.0));
        assert_eq!(spec.steady_offers().len(), 2);
        assert_eq!(offers("per_s = [1]\ntrial = \"1 s\""), []);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (keys, message) in [
            ("", "sends nothing"),
            ("per_s = [1]", "`trial` is 0"),
            ("per_s = [0]\ntrial = \"1 s\"", "`per_s` is 0"),
            ("load_percent = [0]\ntrial = \"1 s\"", "`load_percent` is 0"),
            ("crossing_percent = [101]\nper_s = [1]\ntrial = \"1 s\"", "`crossing_percent` is 101"),
            ("path_rate = \"0 Mbit/s\"\nper_s = [1]\ntrial = \"1 s\"", "`path_rate` is 0"),
            ("receivers = 2\nper_s = [1]\ntrial = \"1 s\"", "one of `receivers`"),
            ("receivers = 0\nper_s = [1]\ntrial = \"1 s\"", "`receivers` is 0"),
            ("cost = { count = 0, each = \"1 ms\" }", "`cost.count` is 0"),
            ("from = \"socket\"\ntrial = \"1 s\"", "`from` needs `to = \"socket\"`"),
            ("search = { loss_percent = 2 }\ntrial = \"1 s\"", "`search` needs `to = \"socket\"`"),
            ("to = \"socket\"\nper_s = [1]\ntrial = \"1 s\"", "`per_s` is for ports"),
            (
                "from = \"socket\"\nto = \"socket\"\nsearch = { loss_percent = 2 }\ntrial = \"1 s\"",
                "`search` is for ports",
            ),
            ("to = \"socket\"\nsearch = { loss_percent = 51 }\ntrial = \"1 s\"", "`search.loss_percent` is 51"),
            ("to = \"socket\"\nsearch = { loss_percent = 2 }", "`trial` is 0"),
            ("to = \"socket\"\nreceivers = 17\ncost = { count = 1, each = \"1 ms\" }", "`receivers` is 17"),
            ("to = \"socket\"", "sends nothing"),
            ("steady = { rates = [\"1 Mbit/s\"], each = \"1 s\" }", "1 of `steady.rates` for 2 sizes"),
            ("steady = { rates = [\"1 Mbit/s\", \"0 Mbit/s\"], each = \"1 s\" }", "`steady.rates` is 0"),
            ("steady = { rates = [\"1 Mbit/s\", \"2 Mbit/s\"], each = \"0 s\" }", "`steady.each` is 0"),
            ("to = \"vm\"", "unknown variant `vm`"),
            ("per_s = [1]\ncolour = 1", "unknown field `colour`"),
        ] {
            let error = read(keys).unwrap_err();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
        for keys in [
            "cost = { count = 1, each = \"1 ms\" }",
            "from = \"socket\"\nto = \"socket\"\nreceivers = 4\ntrial = \"1 s\"",
            "to = \"socket\"\nreceivers = 2\nsearch = { loss_percent = 2, offered_percent = [50, 300] }\ntrial = \"1 s\"",
        ] {
            read(keys).unwrap_or_else(|error| panic!("{keys}: {error}"));
        }
    }
}
