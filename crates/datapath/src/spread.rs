//! Other paths for flows that are under way (VL2 4.2.2), at the sender's host: see `bpf/lib/vl2_spread.h`.

use std::time::Duration;

use libbpf_rs::OpenObject;

use crate::abi::{SPREAD_RULE_FLOWLETS, SPREAD_RULE_NONE, SPREAD_RULE_REHASH, SPREAD_RULE_TIMEOUTS, SpreadConstants};
use crate::error::DatapathError;
use crate::object;

/// The map of the rule's counters.
pub(crate) const COUNTERS: &str = "spread_counters";
const FLOWS: &str = "flow_map";
/// Connections that the data path keeps in view; the least recently used one makes room.
const FLOWS_MAX: u32 = 4096;

/// Which flows under way get another path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// None: a flow's five-tuple chooses, for good.
    #[default]
    Never,
    /// A large TCP flow that sends bytes again, that is, which loses: always after a timeout, else with one chance in two.
    Rehash {
        /// Time between two choices for one flow, and the pause that tells a timeout.
        hold: Duration,
        /// What a flow has sent before it counts as large, bytes.
        large_bytes: u64,
        /// After a timeout alone.
        only_timeouts: bool,
    },
    /// Every TCP flow after a pause.
    Flowlets {
        /// The pause.
        gap: Duration,
    },
}

impl Spread {
    fn constants(self) -> SpreadConstants {
        let of = |rule, hold: Duration, large_bytes| SpreadConstants {
            hold_ns: u64::try_from(hold.as_nanos()).unwrap_or(u64::MAX),
            large_bytes,
            rule,
            reserved: 0,
        };
        match self {
            Self::Never => of(SPREAD_RULE_NONE, Duration::ZERO, 0),
            Self::Rehash { hold, large_bytes, only_timeouts: false } => of(SPREAD_RULE_REHASH, hold, large_bytes),
            Self::Rehash { hold, large_bytes, only_timeouts: true } => of(SPREAD_RULE_TIMEOUTS, hold, large_bytes),
            Self::Flowlets { gap } => of(SPREAD_RULE_FLOWLETS, gap, 0),
        }
    }
}

/// Whether a rule makes sense.
pub(crate) fn check(spread: Spread) -> Result<(), DatapathError> {
    let (Spread::Rehash { hold: time, .. } | Spread::Flowlets { gap: time }) = spread else { return Ok(()) };
    if time.is_zero() {
        let why = "a time of 0 would move a flow with every packet; choose some round-trip times".to_owned();
        return Err(DatapathError::Config { field: "spread", why });
    }
    Ok(())
}

/// Sets the rule of an object before it is loaded. Without one the flows' map takes no memory.
pub(crate) fn prepare(open: &mut OpenObject, spread: Spread) -> Result<(), DatapathError> {
    object::set_constants(open, ".rodata.spread", &spread.constants());
    object::set_max_entries(open, FLOWS, if spread == Spread::Never { 1 } else { FLOWS_MAX })
}
