//! How switches and network cards of the simulator queue, mark and choose paths. The lab has Linux's queues and follows four
//! alone ([`crate::effect`] finds the others where nothing follows them): its VL2 agents follow `load_balance` where it is `flowlet` or `rehash`, `bfd` is for its routing
//! daemons, `cpus` and `trees` for its RBridges, and `groups` for these and for bridges.
//!
//! ```toml
//! [switching]
//! forwarding = "cut-through"
//! buffer = { shared-pool = { pool = "10 MB", dynamic_alpha_milli = 1000, tier_pools = { leaf = "100 MB" } } }
//! ecn_threshold = "97.5 kB"
//! load_balance = { flowlet = { gap = "500 us" } }
//! reconvergence = "50 ms"
//! host_queue = { drop-tail = { limit = "400 kB" } }
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::topology::{Fabric, Link, Role};
use crate::units::{Bytes, Nanos};

/// How switches and network cards queue, mark and choose paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Switching {
    /// When a switch begins to send a packet on.
    pub forwarding: Forwarding,
    /// Which packets a switch has room for.
    pub buffer: BufferPolicy,
    /// A packet that meets more than this in its output queue is marked (RFC 3168: CE) if its sender understands marks, which
    /// DCTCP alone does; `None`: no marks.
    pub ecn_threshold: Option<Bytes>,
    /// Which of several equal paths a packet takes.
    pub load_balance: LoadBalance,
    /// Time from a failure or repair until all routes have changed. Until then packets are lost on the dead link.
    pub reconvergence: Nanos,
    /// Neighbours send each other BFD packets so often (RFC 5880), 10 ms to 1 s, and a link is taken for dead after
    /// [`BFD_MULTIPLIER`] of these times without one; `None`: after a second without an OSPF Hello. In the simulator it is
    /// that time that a silent failure takes longer than `reconvergence`.
    pub bfd: Option<Nanos>,
    /// What happens when a server sends faster than its link.
    pub host_queue: HostQueue,
    /// RBridges without servers hand frames to so many CPUs, from the first, by egress nickname; 0: each is worked on where it
    /// comes in.
    pub cpus: u32,
    /// RBridges and bridges find out which IP multicast groups hosts listen to, and send frames for groups there alone. A campus's file
    /// says it of its RBridges by `groups: true`.
    pub groups: bool,
    /// RBridges compute so many distribution trees, at most [`TREES_MOST`], and bring their frames onto all of them; roots are those
    /// without servers. 0: one, whosever.
    pub trees: u16,
}

/// Most distribution trees of RBridges.
const TREES_MOST: u16 = 4;

/// After so many missing packets BFD takes a link for dead: one more than usual, because daemons that wait for a busy core are
/// no failure.
pub const BFD_MULTIPLIER: u64 = 4;
/// Without BFD: four Hellos, one every 250 ms.
const OSPF_DEAD_INTERVAL: Nanos = Nanos(1_000_000_000);
/// What routing daemons can do.
const BFD_INTERVALS: std::ops::RangeInclusive<Nanos> = Nanos(10_000_000)..=Nanos(1_000_000_000);

/// When a switch begins to send a packet on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// When its last bit has arrived.
    #[default]
    StoreAndForward,
    /// When its header has arrived, if the output is free and no faster than the input; else as above.
    CutThrough,
}

/// Which packets a switch has room for. What does not fit is dropped (DropTail).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum BufferPolicy {
    /// Each output port has a buffer of its own: [`crate::topology::LinkSpec::buffer`].
    #[default]
    PerPort,
    /// All output ports of a switch share one pool; the links' buffers do not count.
    SharedPool {
        /// Size of each switch's pool.
        pool: Bytes,
        /// A port may hold at most this many thousandths of what is free in the pool (Choudhury and Hahne, "Dynamic Queue
        /// Length Thresholds in a Shared Memory ATM Switch", 1996: their alpha); `None`: as much as there is.
        #[serde(default)]
        dynamic_alpha_milli: Option<u32>,
        /// Pools of tiers that differ, for instance `leaf = "100 MB"`.
        #[serde(default)]
        tier_pools: BTreeMap<Role, Bytes>,
    },
}

impl BufferPolicy {
    /// The shared pool of a switch of this role; `None` if its ports have buffers of their own.
    pub fn pool_of(&self, role: Role) -> Option<Bytes> {
        match self {
            Self::PerPort => None,
            Self::SharedPool { pool, tier_pools, .. } => Some(*tier_pools.get(&role).unwrap_or(pool)),
        }
    }
}

/// Which of several equal paths a packet takes. VL2's own spreading, anycast and then ECMP, is
/// [`crate::engine::Overlay::Vl2`] with [`LoadBalance::FlowEcmp`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LoadBalance {
    /// All packets of a flow take the path that each switch's own hash of the flow picks (RFC 2992).
    #[default]
    FlowEcmp,
    /// Each packet takes a random one of the equal next hops.
    PacketSpray,
    /// A flow may change its path after a pause in it (Sinha, Kandula and Katabi, "Harnessing TCP's Burstiness with
    /// Flowlet Switching", 2004).
    Flowlet {
        /// The shortest pause after which the path is chosen anew.
        gap: Nanos,
    },
    /// A large flow that loses may change its path (VL2 4.2.2): always after a timeout, otherwise with one chance in two, so
    /// that flows which collide, and lose at about the same time, do not all leave.
    Rehash {
        /// Time between two choices for one flow, and the pause that tells a timeout.
        hold: Nanos,
        /// What a flow has sent before it counts as large.
        large: Bytes,
        /// Whether it moves after a timeout alone, the loss of a full window that the paper names.
        #[serde(default)]
        only_timeouts: bool,
    },
    /// All packets stay on one tree: [`crate::routing::SpanningTree`].
    SpanningTree,
}

/// What happens when a server sends faster than its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HostQueue {
    /// TCP waits while this much is queued for the link, and the server's flows take turns. Nothing is lost.
    BackPressure {
        /// Most that is queued.
        limit: Bytes,
    },
    /// The network card has a queue of its own and drops what does not fit.
    DropTail {
        /// Most that is queued.
        limit: Bytes,
    },
}

impl Default for HostQueue {
    /// Back-pressure at 128 KiB, the bytes that Linux let a flow queue below TCP when it first had such a limit
    /// (`tcp_limit_output_bytes` of Linux 3.6).
    fn default() -> Self {
        Self::BackPressure { limit: Bytes(128 << 10) }
    }
}

/// Why settings of switches are refused; names the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` of the switching is {value}: {reason}")]
pub struct SwitchingError {
    pub setting: String,
    pub value: String,
    /// Why it cannot be.
    pub reason: String,
}

impl Switching {
    /// Whether the settings make sense on this fabric; says which does not.
    pub fn check(&self, fabric: &Fabric) -> Result<(), SwitchingError> {
        self.buffer.check(fabric)?;
        if let Some(interval) = self.bfd.filter(|interval| !BFD_INTERVALS.contains(interval)) {
            return refuse("bfd", interval, "choose 10 ms to 1 s between two packets");
        }
        if self.trees > TREES_MOST {
            return refuse("trees", self.trees, format!("RBridges compute at most {TREES_MOST}"));
        }
        if self.ecn_threshold == Some(Bytes(0)) {
            return refuse("ecn_threshold", Bytes(0), "every packet would be marked; leave it out for no marks");
        }
        if self.load_balance == (LoadBalance::Flowlet { gap: Nanos(0) }) {
            return refuse(
                "load_balance.flowlet.gap",
                Nanos(0),
                "every packet would be a flowlet: packet-spray does that",
            );
        }
        if let LoadBalance::Rehash { hold: Nanos(0), .. } = self.load_balance {
            return refuse(
                "load_balance.rehash.hold",
                Nanos(0),
                "every loss would move a flow; choose some round trips",
            );
        }
        let (HostQueue::BackPressure { limit } | HostQueue::DropTail { limit }) = self.host_queue;
        let frame = largest_frame(fabric, |link| fabric.edge_of(link.b.node).is_some());
        if limit < frame {
            return refuse("host_queue.limit", limit, format!("less than one frame of {frame}"));
        }
        Ok(())
    }
}

impl Switching {
    /// How long it takes at most until the ends of a link notice that nothing comes any more.
    pub fn silence(&self) -> Nanos {
        self.bfd.map_or(OSPF_DEAD_INTERVAL, |interval| Nanos(interval.0 * BFD_MULTIPLIER))
    }
}

impl BufferPolicy {
    fn check(&self, fabric: &Fabric) -> Result<(), SwitchingError> {
        let Self::SharedPool { pool, dynamic_alpha_milli, tier_pools } = self else { return Ok(()) };
        let frame = largest_frame(fabric, |_| true);
        let pools = std::iter::once((None, pool)).chain(tier_pools.iter().map(|(role, pool)| (Some(*role), pool)));
        for (role, pool) in pools {
            let setting = match role {
                None => "buffer.shared-pool.pool".to_owned(),
                Some(role) => format!("buffer.shared-pool.tier_pools.{}", format!("{role:?}").to_lowercase()),
            };
            if *pool < frame {
                return refuse(setting, pool, format!("less than one frame of {frame}"));
            }
            if role.is_some_and(|role| !role.is_switch() || fabric.with_role(role).next().is_none()) {
                return refuse(setting, pool, "the fabric has no such switches");
            }
        }
        if *dynamic_alpha_milli == Some(0) {
            return refuse(
                "buffer.shared-pool.dynamic_alpha_milli",
                0,
                "no port could hold anything; 1000 is an alpha of 1",
            );
        }
        Ok(())
    }
}

/// The longest IP packet of the links that are asked about.
fn largest_frame(fabric: &Fabric, asked: impl Fn(&Link) -> bool) -> Bytes {
    let longest = fabric.links().iter().filter(|link| asked(link)).map(|link| link.spec.mtu_bytes).max();
    Bytes(u64::from(longest.unwrap_or(0)))
}

fn refuse(setting: impl Into<String>, value: impl ToString, reason: impl Into<String>) -> Result<(), SwitchingError> {
    Err(SwitchingError { setting: setting.into(), value: value.to_string(), reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{LeafSpineParams, leaf_spine};

    fn fabric() -> Fabric {
        leaf_spine(&LeafSpineParams::default()).unwrap()
    }

    fn pool(pool: u64, dynamic_alpha_milli: Option<u32>, tier_pools: &[(Role, u64)]) -> Switching {
        let tier_pools = tier_pools.iter().map(|(role, pool)| (*role, Bytes(*pool))).collect();
        let buffer = BufferPolicy::SharedPool { pool: Bytes(pool), dynamic_alpha_milli, tier_pools };
        Switching { buffer, ..Switching::default() }
    }

    #[test]
    fn the_defaults_make_sense() {
        assert_eq!(Switching::default().check(&fabric()), Ok(()));
        assert_eq!(toml::from_str::<Switching>("").unwrap(), Switching::default());
    }

    #[test]
    fn a_tier_may_have_a_pool_of_its_own() {
        let switching = pool(10_000_000, None, &[(Role::Leaf, 100_000_000)]);
        assert_eq!(switching.check(&fabric()), Ok(()));
        assert_eq!(switching.buffer.pool_of(Role::Leaf), Some(Bytes(100_000_000)));
        assert_eq!(switching.buffer.pool_of(Role::Spine), Some(Bytes(10_000_000)));
        assert_eq!(BufferPolicy::PerPort.pool_of(Role::Leaf), None);
    }

    #[test]
    fn plans_write_it_as_the_module_says() {
        let text = r#"
            forwarding = "cut-through"
            buffer = { shared-pool = { pool = "10 MB", dynamic_alpha_milli = 1000, tier_pools = { leaf = "100 MB" } } }
            ecn_threshold = "97.5 kB"
            load_balance = { flowlet = { gap = "500 us" } }
            reconvergence = "50 ms"
            host_queue = { drop-tail = { limit = "400 kB" } }
        "#;
        let expected = Switching {
            forwarding: Forwarding::CutThrough,
            ecn_threshold: Some(Bytes(97_500)),
            load_balance: LoadBalance::Flowlet { gap: Nanos(500_000) },
            reconvergence: Nanos(50_000_000),
            host_queue: HostQueue::DropTail { limit: Bytes(400_000) },
            ..pool(10_000_000, Some(1000), &[(Role::Leaf, 100_000_000)])
        };
        assert_eq!(toml::from_str::<Switching>(text).unwrap(), expected);
        let plain = "forwarding = \"store-and-forward\"\nbuffer = \"per-port\"\nload_balance = \"flow-ecmp\"";
        assert_eq!(toml::from_str::<Switching>(plain).unwrap(), Switching::default());
        for (name, kind) in [("packet-spray", LoadBalance::PacketSpray), ("spanning-tree", LoadBalance::SpanningTree)] {
            let read = toml::from_str::<Switching>(&format!("load_balance = \"{name}\"")).unwrap();
            assert_eq!(read.load_balance, kind);
        }
        let json = serde_json::to_string(&expected).unwrap();
        assert_eq!(serde_json::from_str::<Switching>(&json).unwrap(), expected);
    }

    #[test]
    fn unknown_settings_are_refused() {
        for text in [
            "buffers = \"per-port\"",
            "buffer = \"shared\"",
            "buffer = { shared-pool = { pool = \"1 MB\", size = 3 } }",
            "buffer = { shared-pool = { pool = \"1 MB\", tier_pools = { rack = \"1 MB\" } } }",
            "load_balance = { flowlet = { gap = \"1 us\", size = 3 } }",
            "load_balance = \"flowlet\"",
            "host_queue = { drop-tail = {} }",
            "reconvergence = \"-1 s\"",
        ] {
            assert!(toml::from_str::<Switching>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn senseless_settings_are_refused_by_name() {
        let host_queue = |host_queue| Switching { host_queue, ..Switching::default() };
        let flowlet = LoadBalance::Flowlet { gap: Nanos(0) };
        for (switching, message) in [
            (pool(0, None, &[]), "`buffer.shared-pool.pool` of the switching is 0 B: less than one frame of 1600 B"),
            (pool(1_599, None, &[]), "is 1599 B: less than one frame"),
            (pool(1_600, Some(0), &[]), "`buffer.shared-pool.dynamic_alpha_milli` of the switching is 0"),
            (pool(1_600, None, &[(Role::Spine, 10)]), "`buffer.shared-pool.tier_pools.spine` of the switching is 10 B"),
            (
                pool(1_600, None, &[(Role::Server, 9_999)]),
                "tier_pools.server` of the switching is 9999 B: the fabric has no",
            ),
            (pool(1_600, None, &[(Role::Tor, 9_999)]), "tier_pools.tor` of the switching is 9999 B: the fabric has no"),
            (
                Switching { ecn_threshold: Some(Bytes(0)), ..Switching::default() },
                "`ecn_threshold` of the switching is 0 B",
            ),
            (
                Switching { load_balance: flowlet, ..Switching::default() },
                "`load_balance.flowlet.gap` of the switching",
            ),
            (host_queue(HostQueue::DropTail { limit: Bytes(1_599) }), "`host_queue.limit` of the switching is 1599 B"),
            (host_queue(HostQueue::BackPressure { limit: Bytes(0) }), "`host_queue.limit` of the switching is 0 B"),
        ] {
            let error = switching.check(&fabric()).unwrap_err().to_string();
            assert!(error.contains(message), "wanted `{message}`, got `{error}`");
        }
    }
}
