//! Questions about a network that are answered by calculation, without sending a packet: what it costs (VL2 6), how well
//! its links can be used (VL2 6, Figure 15), and how much of it works while devices fail (VL2 3.4).

use serde::{Deserialize, Serialize};

use super::WorkloadError;
use super::frames::range;
use super::matrices::MatricesSpec;
use crate::units::{Bytes, Nanos, Share, named};

/// One question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "question", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ModelSpec {
    /// What networks of some sizes cost, VL2's and the conventional one's.
    Cost(CostSpec),
    /// How loaded links are under VLB, adaptive and the best oblivious routing.
    LinkUse(LinkUseSpec),
    /// What servers can send while devices fail.
    Availability(AvailabilitySpec),
}

/// A switch that can be bought.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchPrice {
    /// How many ports it has.
    pub ports: u32,
    /// What it costs, dollars.
    pub usd: f64,
}

impl SwitchPrice {
    /// Dollars for one port.
    pub fn usd_per_port(&self) -> f64 {
        self.usd / f64::from(self.ports.max(1))
    }
}

/// Street prices. The paper names those of `commodity` and leaves out ToRs and cables; those of `conventional` are what
/// its reference 1 (Al-Fares et al., SIGCOMM 2008) took in the year before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Prices {
    /// Switches of a VL2 network, with ports of 10 Gb/s: whole switches are bought.
    pub commodity: Vec<SwitchPrice>,
    /// A router or Aggregation of a conventional network with ports of 10 Gb/s: bought by the port.
    pub conventional_10g: SwitchPrice,
    /// The same with ports of 1 Gb/s.
    pub conventional_1g: SwitchPrice,
    /// A ToR, dollars.
    pub tor_usd: f64,
    /// A cable between switches, dollars.
    pub cable_usd: f64,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            commodity: vec![SwitchPrice { ports: 24, usd: 6_000.0 }, SwitchPrice { ports: 144, usd: 75_000.0 }],
            conventional_10g: SwitchPrice { ports: 128, usd: 700_000.0 },
            conventional_1g: SwitchPrice { ports: 48, usd: 7_000.0 },
            tor_usd: 0.0,
            cable_usd: 0.0,
        }
    }
}

/// Networks to price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostSpec {
    pub servers: Vec<u32>,
    /// Oversubscriptions, 1 for none.
    pub oversubscription: Vec<u32>,
    /// Servers below each ToR, of 1 Gb/s each.
    #[serde(default = "twenty")]
    pub servers_per_tor: u32,
    /// What things cost.
    #[serde(default)]
    pub prices: Prices,
}

/// A day of matrices on a Clos network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkUseSpec {
    /// The matrices, drawn from the seed.
    pub matrices: MatricesSpec,
    /// How many of the network's Intermediates there are; all without it. Fewer oversubscribe the core.
    pub intermediates: Option<u32>,
    /// Bytes of a flow where VLB places whole flows; the paper's chunk is 100 MB.
    #[serde(default = "chunk", deserialize_with = "named::number::<Bytes, _, _>")]
    #[schemars(with = "named::Number<Bytes>")]
    pub flow_bytes: u64,
    /// The most that the most loaded link may be used, times its rate: a matrix that no routing carries within it is
    /// refused. Without it nothing is.
    #[serde(default, deserialize_with = "named::share")]
    #[schemars(with = "Option<Share>")]
    pub most_use: Option<f64>,
}

/// A month: 30 days.
pub const MONTH: Nanos = Nanos(30 * DAY_NS);
const DAY_NS: u64 = 86_400_000_000_000;

/// What may be chosen about failures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FailureModel {
    /// For how long failures begin.
    pub duration: Nanos,
    /// Failures a month for each switch of the network. The paper does not say; 1 is our choice.
    pub per_switch_month: f64,
    /// Share of failures, in per mille, that take all of a redundant pair.
    pub group_per_mille: f64,
}

impl Default for FailureModel {
    fn default() -> Self {
        Self { duration: MONTH, per_switch_month: 1.0, group_per_mille: 3.0 }
    }
}

/// A month of failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AvailabilitySpec {
    /// What fails.
    pub failures: FailureModel,
}

fn twenty() -> u32 {
    20
}

fn chunk() -> u64 {
    100_000_000
}

impl ModelSpec {
    /// As plans and messages write the question.
    pub fn question(&self) -> &'static str {
        match self {
            Self::Cost(_) => "cost",
            Self::LinkUse(_) => "link-use",
            Self::Availability(_) => "availability",
        }
    }

    /// Whether the question makes sense.
    pub fn check(&self) -> Result<(), WorkloadError> {
        match self {
            Self::Cost(spec) => spec.check(),
            Self::LinkUse(spec) => spec.check(),
            Self::Availability(spec) => spec.failures.check(),
        }
    }
}

fn refuse(what: impl Into<String>) -> Result<(), WorkloadError> {
    Err(WorkloadError::Model { what: what.into() })
}

impl CostSpec {
    /// Whether numbers and prices make sense.
    pub fn check(&self) -> Result<(), WorkloadError> {
        if self.servers.is_empty() || self.oversubscription.is_empty() {
            return refuse("`servers` and `oversubscription` must each name at least one number");
        }
        for servers in &self.servers {
            range("servers", *servers, 1, 10_000_000)?;
        }
        for ratio in &self.oversubscription {
            range("oversubscription", *ratio, 1, 1000)?;
        }
        range("servers_per_tor", self.servers_per_tor, 1, 252)?;
        self.prices.check()
    }
}

impl Prices {
    fn check(&self) -> Result<(), WorkloadError> {
        if self.commodity.is_empty() {
            return refuse("`prices.commodity` names no switch; give it `{ ports, usd }`");
        }
        for switch in self.commodity.iter().chain([&self.conventional_10g, &self.conventional_1g]) {
            range("ports", switch.ports, 4, 4096)?;
            if !switch.ports.is_multiple_of(2) {
                return refuse(format!(
                    "a switch with {} ports: half of them go up, so give an even number",
                    switch.ports
                ));
            }
        }
        let switches = self.commodity.iter().chain([&self.conventional_10g, &self.conventional_1g]);
        let prices = switches.map(|switch| ("usd", switch.usd));
        for (name, usd) in prices.chain([("tor_usd", self.tor_usd), ("cable_usd", self.cable_usd)]) {
            if !(usd.is_finite() && usd >= 0.0) {
                return refuse(format!("`{name}` is {usd}; a price is 0 or more dollars"));
            }
        }
        Ok(())
    }
}

impl FailureModel {
    /// Whether the settings make sense.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let refuse =
            |setting, value: f64, allowed| refuse(format!("`{setting}` of the failures is {value}; choose {allowed}"));
        if self.duration.0 == 0 || self.duration.0 > 400 * DAY_NS {
            return refuse("duration", self.duration.as_secs_f64(), "up to 400 days");
        }
        if !(self.per_switch_month > 0.0 && self.per_switch_month <= 1000.0) {
            return refuse("per_switch_month", self.per_switch_month, "above 0, at most 1000");
        }
        if !(0.0..=1000.0).contains(&self.group_per_mille) {
            return refuse("group_per_mille", self.group_per_mille, "0 to 1000");
        }
        Ok(())
    }
}

impl LinkUseSpec {
    fn check(&self) -> Result<(), WorkloadError> {
        self.matrices.check()?;
        if self.intermediates == Some(0) {
            return refuse("`intermediates` is 0; leave it out for all of the network's");
        }
        if self.flow_bytes == 0 {
            return refuse("`flow_bytes` is 0; the paper's flows have 100000000");
        }
        match self.most_use {
            Some(most) if !(most > 0.0 && most.is_finite()) => {
                refuse(format!("`most_use` is {most}; 1 is the links' rate"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use super::*;

    fn read(keys: &str) -> Result<ModelSpec, String> {
        match toml::from_str(&format!("kind = \"model\"\n{keys}")).map_err(|error| error.message().to_owned())? {
            Workload::Model(spec) => spec.check().map(|()| spec).map_err(|error| error.to_string()),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn prices_are_the_papers_unless_they_are_given() {
        let spec = read("question = \"cost\"\nservers = [35000]\noversubscription = [1]").unwrap();
        let ModelSpec::Cost(spec) = spec else { panic!() };
        assert_eq!((spec.servers_per_tor, spec.prices.commodity[1].usd), (20, 75_000.0));
        let keys = "question = \"cost\"\nservers = [1]\noversubscription = [1]\nprices = { tor_usd = 2000 }";
        let ModelSpec::Cost(spec) = read(keys).unwrap() else { panic!() };
        assert_eq!((spec.prices.tor_usd, spec.prices.commodity.len()), (2000.0, 2));
    }

    #[test]
    fn failures_that_make_no_sense_are_refused_by_name() {
        let good = FailureModel::default();
        for (model, setting) in [
            (FailureModel { duration: Nanos(0), ..good }, "`duration`"),
            (FailureModel { per_switch_month: 0.0, ..good }, "`per_switch_month`"),
            (FailureModel { per_switch_month: f64::NAN, ..good }, "`per_switch_month`"),
            (FailureModel { group_per_mille: 1001.0, ..good }, "`group_per_mille`"),
        ] {
            assert!(model.check().unwrap_err().to_string().contains(setting));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let cost = "question = \"cost\"\nservers = [35000]\noversubscription = [1]\n";
        for (keys, message) in [
            ("question = \"cost\"\nservers = []\noversubscription = [1]".to_owned(), "at least one"),
            ("question = \"cost\"\nservers = [1]\noversubscription = [0]".to_owned(), "`oversubscription` is 0"),
            (format!("{cost}prices = {{ tor_usd = -1 }}"), "`tor_usd` is -1"),
            (format!("{cost}prices = {{ commodity = [] }}"), "names no switch"),
            (format!("{cost}prices = {{ commodity = [{{ ports = 25, usd = 1 }}] }}"), "even number"),
            (format!("{cost}colour = 1"), "unknown field `colour`"),
            ("question = \"link-use\"\nmatrices = { count = 0 }".to_owned(), "`count`"),
            ("question = \"link-use\"\nmatrices = {}\nmost_use = 0.0".to_owned(), "`most_use` is 0"),
            ("question = \"availability\"\nfailures = { per_switch_month = 0 }".to_owned(), "`per_switch_month`"),
            ("question = \"colour\"".to_owned(), "unknown variant `colour`"),
        ] {
            let error = read(&keys).unwrap_err();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }
}
