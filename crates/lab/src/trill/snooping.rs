//! Bridges that find out who listens to IP multicast groups (IGMP snooping, RFC 4541): the first of them asks, and all of them learn from
//! the answers, and from the questions where the rest of the groups must go.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use serde::Deserialize;
use weft_scenario::id::NodeId;

use super::bridges;
use crate::batch::Program;
use crate::error::LabError;
use crate::plan::{bridge_name, bridged_vlans};
use crate::up::Lab;

/// Who asks must have an address: nobody remembers where questions from 0.0.0.0 come from. This one is of no network (RFC 5737).
const QUERIER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Hosts answer within that, and so long after the first question groups still go everywhere; hundredths of a second.
const RESPONSE: u32 = 100;

/// Has all bridges of a lab snoop, and the first ask.
pub(super) fn start(lab: &Lab) -> Result<(), LabError> {
    let snoop = format!("mcast_snooping 1 mcast_query_response_interval {RESPONSE}");
    bridges::on_bridges(lab, |bridge| vec![format!("link set dev {bridge} type bridge {snoop}")])?;
    let Some(first) = bridges::all(lab).next() else { return Ok(()) };
    let ask = |bridge: String| {
        let asks = "mcast_query_use_ifaddr 1 mcast_querier 1";
        [format!("address replace {QUERIER}/32 dev {bridge}"), format!("link set dev {bridge} type bridge {asks}")]
    };
    let lines: Vec<String> = bridged_vlans(&lab.scenario, first).into_iter().map(bridge_name).flat_map(ask).collect();
    lab.batch(first, Program::Ip, &lines)
}

/// What a bridge has heard of groups.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Heard {
    #[serde(default)]
    mdb: Vec<Entry>,
    /// Ports to who asks, by bridge.
    #[serde(default)]
    router: BTreeMap<String, Vec<serde::de::IgnoredAny>>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    port: String,
    grp: String,
}

impl Heard {
    /// Of a switch that is a bridge. Ports to who asks are details.
    pub(crate) fn at(namespace: &Path) -> Result<Self, LabError> {
        let all: Vec<Self> = bridges::shown(namespace, "bridge", &["-json", "-details", "mdb", "show"])?;
        let mut heard = Self::default();
        for one in all {
            heard.mdb.extend(one.mdb);
            heard.router.extend(one.router);
        }
        Ok(heard)
    }

    /// Whether somebody behind a port listens to a group.
    pub(crate) fn listens(&self, port: &str, group: Ipv4Addr) -> bool {
        let group = group.to_string();
        self.mdb.iter().any(|entry| entry.port == port && entry.grp == group)
    }

    /// Whether it knows who asks.
    pub(crate) fn knows_querier(&self) -> bool {
        self.router.values().any(|ports| !ports.is_empty())
    }
}

/// Bridges that do not ask themselves.
pub(crate) fn asked(lab: &Lab) -> impl Iterator<Item = NodeId> {
    bridges::all(lab).skip(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_iproute2_says_of_groups_is_read() {
        let text = r#"[{"mdb":[{"index":8,"dev":"br1","port":"s2","grp":"239.1.2.3","state":"temp","flags":[]},
            {"index":8,"dev":"br1","port":"spine1","grp":"ff02::1:ff00:1","state":"temp","flags":[]}],
            "router":{"br1":[{"port":"spine1","timer":"255.00","type":"temp"}]}}]"#;
        let heard: Heard = serde_json::from_str::<Vec<Heard>>(text).unwrap().swap_remove(0);
        assert!(heard.listens("s2", Ipv4Addr::new(239, 1, 2, 3)) && heard.knows_querier());
        assert!(!heard.listens("spine1", Ipv4Addr::new(239, 1, 2, 3)));
        let nothing = serde_json::from_str::<Vec<Heard>>(r#"[{"mdb":[],"router":{}}]"#).unwrap().swap_remove(0);
        assert!(!nothing.knows_querier());
    }
}
