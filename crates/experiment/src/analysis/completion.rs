//! Flow completion times, and in which class of sizes a flow is.

use weft_scenario::record::FlowRow;
use weft_scenario::workload::{FlowClass, Workload};

/// Classes in which the leaf-spine paper reports completion times; sizes on the paper's scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeClass {
    /// Background flows below 100 kB.
    Small,
    /// Background flows of 100 kB to 10 MB.
    Medium,
    /// Background flows above 10 MB: "Large (10MB, inf)".
    Large,
    /// Responses to queries, whatever their size.
    Query,
}

/// Below this a flow is small.
const SMALL_BELOW_BYTES: u64 = 100_000;
/// Above this a flow is large.
const LARGE_ABOVE_BYTES: u64 = 10_000_000;

impl SizeClass {
    /// Every class.
    pub const ALL: [Self; 4] = [Self::Small, Self::Medium, Self::Large, Self::Query];

    /// As names of metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
            Self::Query => "query",
        }
    }

    /// The class of a flow whose size was divided by `size_divisor`.
    pub fn of(flow: &FlowRow, size_divisor: u32) -> Self {
        let bytes = flow.bytes_asked.saturating_mul(u64::from(size_divisor));
        match flow.class {
            FlowClass::Query => Self::Query,
            _ if bytes < SMALL_BELOW_BYTES => Self::Small,
            _ if bytes <= LARGE_ABOVE_BYTES => Self::Medium,
            _ => Self::Large,
        }
    }
}

/// By what the sizes of a workload's background flows were divided.
pub fn size_divisor(workload: &Workload) -> u32 {
    match workload {
        Workload::Traffic(traffic) => traffic.background.as_ref().map_or(1, |background| background.size_divisor),
        Workload::Mix(mix) => mix.size_divisor,
        _ => 1,
    }
}

/// From start to last byte, in nanoseconds.
pub fn fct_ns(flow: &FlowRow) -> Option<f64> {
    flow.end_ns.map(|end| end.saturating_sub(flow.start_ns) as f64)
}

/// Completion time / what it would have been alone on an idle network, where the engine knows that.
pub fn slowdown(flow: &FlowRow) -> Option<f64> {
    let ideal = flow.ideal_ns.filter(|ideal| *ideal > 0)?;
    Some(fct_ns(flow)? / ideal as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing;

    #[test]
    fn classes_are_on_the_papers_scale() {
        let flow = |bytes, class| FlowRow { class, ..testing::flow(bytes, 0, None) };
        let background = |bytes, divisor| SizeClass::of(&flow(bytes, FlowClass::Background), divisor);
        assert_eq!(background(99_999, 1), SizeClass::Small);
        assert_eq!(background(100_000, 1), SizeClass::Medium);
        assert_eq!(background(10_000_000, 1), SizeClass::Medium);
        assert_eq!(background(10_000_001, 1), SizeClass::Large);
        assert_eq!(background(1_000_001, 10), SizeClass::Large);
        assert_eq!(SizeClass::of(&flow(99_999_999, FlowClass::Query), 1), SizeClass::Query);
    }
}
