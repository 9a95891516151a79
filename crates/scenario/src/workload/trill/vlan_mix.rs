//! Traffic of which a share crosses VLANs and the rest stays within one: what larger VLANs save.

use serde::{Deserialize, Serialize};

use super::{PER_S_MOST, STATIONS_MOST, Way};
use crate::units::Nanos;
use crate::workload::WorkloadError;
use crate::workload::frames::{Runs, check_distinct, check_sizes, check_time, range};

/// Most rounds of one trial.
const ROUNDS_MOST: u32 = 1_000;

/// Frames from stations in one VLAN to stations behind the far edge switch, some of them in the same VLAN and some in another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VlanMixSpec {
    /// How frames get from VLAN to VLAN, each on a campus of its own.
    pub ways: Vec<Way>,
    /// Streams, of 100, that go to the other VLAN.
    pub crossing_percent: Vec<u32>,
    /// Size with FCS.
    pub frame_bytes: u32,
    /// Stations of the test centre that send.
    pub stations: u32,
    /// Rate of all together, frames per second.
    pub per_s: u32,
    /// How long each share is sent.
    pub trial: Nanos,
    /// How often all shares of all ways take their turn; each round is a sample.
    pub rounds: u32,
    /// Runs for CPU time in each turn.
    pub cost: Runs,
}

impl VlanMixSpec {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        check_distinct("ways", &self.ways)?;
        if let Some(way) = self.ways.iter().find(|way| !way.is_between_vlans()) {
            return Err(WorkloadError::WithinVlan { way: way.name() });
        }
        check_distinct("crossing_percent", &self.crossing_percent)?;
        self.crossing_percent.iter().try_for_each(|percent| range("crossing_percent", *percent, 0, 100))?;
        check_sizes("frame_bytes", &[self.frame_bytes])?;
        range("stations", self.stations, 1, STATIONS_MOST)?;
        range("per_s", self.per_s, 1, PER_S_MOST)?;
        range("rounds", self.rounds, 1, ROUNDS_MOST)?;
        check_time("trial", self.trial)?;
        self.cost.check()
    }
}

/// Share of the traffic that crosses VLANs, 0 to 1, where each of `hosts` hosts sends as much to every other and VLANs have
/// `vlan_hosts` hosts each: of the N - 1 others, s - 1 are in the sender's VLAN.
pub fn crossing_share(hosts: f64, vlan_hosts: f64) -> f64 {
    if hosts <= 1.0 { 0.0 } else { 1.0 - (vlan_hosts - 1.0) / (hosts - 1.0) }
}

/// Hosts in each VLAN for that share: the inverse of [`crossing_share`].
pub fn vlan_hosts(hosts: f64, crossing_share: f64) -> f64 {
    1.0 + (1.0 - crossing_share) * (hosts - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_vlan_keeps_everything_and_vlans_of_one_keep_nothing() {
        assert_eq!((crossing_share(1024.0, 1024.0), crossing_share(1024.0, 1.0)), (0.0, 1.0));
        // 4 VLANs of 25: of 99 others 24 are in mine.
        assert!((crossing_share(100.0, 25.0) - 75.0 / 99.0).abs() < 1e-12);
        assert_eq!(crossing_share(1.0, 1.0), 0.0, "nobody to send to");
        for size in [1.0, 2.0, 32.0, 512.0, 1024.0] {
            assert!((vlan_hosts(1024.0, crossing_share(1024.0, size)) - size).abs() < 1e-9);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let good = VlanMixSpec {
            ways: vec![Way::TrillRouted],
            crossing_percent: vec![0, 100],
            frame_bytes: 64,
            stations: 8,
            per_s: 1_000,
            trial: Nanos(1_000_000),
            rounds: 1,
            cost: Runs { count: 1, each: Nanos(1_000_000) },
        };
        good.check().unwrap();
        let refused = |spec: VlanMixSpec| spec.check().unwrap_err().to_string();
        assert!(refused(VlanMixSpec { ways: vec![Way::Trill], ..good.clone() }).contains("`trill`"));
        assert!(refused(VlanMixSpec { crossing_percent: vec![101], ..good.clone() }).contains("`crossing_percent`"));
        assert!(refused(VlanMixSpec { crossing_percent: vec![], ..good.clone() }).contains("`crossing_percent`"));
        assert!(refused(VlanMixSpec { rounds: 0, ..good }).contains("`rounds`"));
    }
}
