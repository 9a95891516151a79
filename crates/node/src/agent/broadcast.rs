//! What an agent is told about broadcast: whom it reaches, and how much of it may leave (VL2 4.2.3).

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use weft_datapath::broadcast::Broadcast;
use weft_datapath::host::TokenBucket;
use weft_wire::block::Block;

use super::AgentConfig;
use crate::error::NodeError;

/// Most members of a service: as many copies of each packet, or as much state on every way through the underlay.
const MEMBERS_MAX: usize = 1024;

/// Broadcast and multicast of the host's service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BroadcastConfig {
    /// LAs of the service's hosts; the host itself may be among them. Nobody else is believed.
    pub members: Vec<Ipv4Addr>,
    /// The service's multicast group in the underlay, which the agent joins on `interface` for what the members send (RFC 4607).
    /// Without it the underlay has no multicast, and each member gets a copy.
    #[serde(default)]
    pub group: Option<Ipv4Addr>,
    /// The block that all LAs come from. Nothing from outside is believed.
    #[serde(default = "la_block")]
    pub la_block: String,
    /// Bits per second that leave in the long run; of frames without FCS and without outer headers, before copying.
    pub bits_per_s: u64,
    /// Bytes that may leave at once, at least one frame.
    pub burst_bytes: u32,
}

fn la_block() -> String {
    "10.0.0.0/8".to_owned()
}

impl BroadcastConfig {
    /// A service with a group in the underlay.
    pub fn example() -> Self {
        Self {
            members: vec![Ipv4Addr::new(10, 64, 0, 2), Ipv4Addr::new(10, 64, 1, 2)],
            group: Some(Ipv4Addr::new(239, 192, 0, 1)),
            la_block: la_block(),
            bits_per_s: 10_000_000,
            burst_bytes: 64_000,
        }
    }

    /// As the data path wants it. Rate and burst are its own matter.
    pub(super) fn check(&self, agent: &AgentConfig, aa_block: Block) -> Result<Broadcast, NodeError> {
        let refuse = |why: String| Err(NodeError::config("broadcast", why));
        let la_block: Block =
            self.la_block.parse().map_err(|error| NodeError::config("broadcast", format!("la_block: {error}")))?;
        if !la_block.contains(agent.la) {
            return refuse(format!("la_block {la_block} does not hold the host's LA {}", agent.la));
        }
        if la_block.overlaps(aa_block) {
            return refuse(format!("la_block {la_block} overlaps the AA block {aa_block}"));
        }
        if let Some(group) = self.group.filter(|group| !group.is_multicast() || group.octets()[..3] == [224, 0, 0]) {
            return refuse(format!("group {group} is none that routers forward; choose one of 239.192.0.0/14"));
        }
        Ok(Broadcast {
            aa: agent.aa,
            la: agent.la,
            la_block,
            members: others(&self.members, agent.la, la_block)?,
            group: self.group,
            mtu: agent.underlay_mtu,
            limit: TokenBucket { bits_per_s: self.bits_per_s, burst_bytes: self.burst_bytes },
        })
    }
}

fn others(members: &[Ipv4Addr], own: Ipv4Addr, la_block: Block) -> Result<Vec<Ipv4Addr>, NodeError> {
    let refuse = |why: String| Err(NodeError::config("broadcast", why));
    if members.len() > MEMBERS_MAX {
        let count = members.len();
        return refuse(format!("{count} members are more than {MEMBERS_MAX}; make smaller services"));
    }
    let mut seen = BTreeSet::new();
    for member in members {
        if !la_block.contains(*member) {
            return refuse(format!("member {member} is outside la_block {la_block}"));
        }
        if !seen.insert(*member) {
            return refuse(format!("member {member} is there twice"));
        }
    }
    seen.remove(&own);
    Ok(seen.into_iter().collect())
}
