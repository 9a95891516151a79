//! The ideal that fabrics are measured against: one output-queued switch that all servers hang on, with nothing between
//! them ("On the Data Path Performance of Leaf-Spine Datacenter Fabrics": "ideal OQ switch").
//!
//! Only the receiver's link can be crowded, and the switch has all the buffer that it takes.

use super::builder::{Builder, FABRIC_MTU_BYTES, LinkParams, check_counts};
use super::{Fabric, Role, TopologyError};
use crate::units::{BitsPerSec, Bytes, Nanos};

/// A buffer that does not fill: what its link sends in so many seconds.
const UNLIMITED_S: u64 = 60;

/// Most servers of the switch: a round number that the largest rack prefix holds.
const SERVERS_MAX: u32 = 4_000;

/// What may be chosen about the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputQueuedParams {
    /// How many servers.
    pub servers: u32,
    /// Rate of their links.
    pub rate: BitsPerSec,
    /// Buffer at each end of a link; `None`: one that does not fill, what the link sends in a minute.
    pub buffer: Option<Bytes>,
    /// One-way propagation delay of their links.
    pub delay: Nanos,
}

impl Default for OutputQueuedParams {
    /// 100 servers with 10 Gb/s, as in the paper.
    fn default() -> Self {
        Self { servers: 100, rate: BitsPerSec(10_000_000_000), buffer: None, delay: Nanos(0) }
    }
}

/// Builds the switch, `leaf1`, and its servers `s1`...
pub fn output_queued(params: &OutputQueuedParams) -> Result<Fabric, TopologyError> {
    let OutputQueuedParams { servers, rate, buffer, delay } = *params;
    check(params)?;
    let unlimited = Bytes((rate.0 / 8).saturating_mul(UNLIMITED_S).max(FABRIC_MTU_BYTES.into()));
    let server_buffer = buffer.unwrap_or(unlimited);
    let links = LinkParams { server_buffer, delay, ..LinkParams::for_server_rate(rate) };
    let mut builder = Builder::new(&links);
    let switch = builder.node("leaf1", Role::Leaf);
    builder.servers(&[switch], &[servers]);
    builder.finish("output-queued")
}

/// Whether the parameters make a fabric.
pub(super) fn check(params: &OutputQueuedParams) -> Result<(), TopologyError> {
    check_counts(&[("servers", params.servers, SERVERS_MAX, "choose 1 to 4000")])
}

#[cfg(test)]
mod tests {
    use super::super::LinkSpec;
    use super::*;

    #[test]
    fn every_server_is_one_hop_from_every_other() {
        let fabric =
            output_queued(&OutputQueuedParams { delay: Nanos(1_000), ..OutputQueuedParams::default() }).unwrap();
        assert_eq!((fabric.switches().count(), fabric.servers().count(), fabric.links().len()), (1, 100, 100));
        let spec = LinkSpec {
            rate: BitsPerSec(10_000_000_000),
            buffer: Bytes(75_000_000_000),
            mtu_bytes: FABRIC_MTU_BYTES,
            delay: Nanos(1_000),
        };
        assert!(fabric.links().iter().all(|link| link.spec == spec));
    }

    #[test]
    fn a_buffer_may_be_chosen_and_always_holds_a_packet() {
        let buffer = |rate, buffer| {
            let params = OutputQueuedParams { rate: BitsPerSec(rate), buffer, ..OutputQueuedParams::default() };
            output_queued(&params).unwrap().links()[0].spec.buffer
        };
        assert_eq!(buffer(1_000, Some(Bytes(9_999))), Bytes(9_999));
        assert_eq!(buffer(1, None), Bytes(1_600));
    }

    #[test]
    fn no_servers_or_too_many_are_refused() {
        for servers in [0, 4_001, u32::MAX] {
            let params = OutputQueuedParams { servers, ..OutputQueuedParams::default() };
            assert!(matches!(output_queued(&params), Err(TopologyError::BadParameter { .. })));
        }
    }
}
