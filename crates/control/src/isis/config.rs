//! What may be chosen about an RBridge, with the reasons for the defaults.

use weft_wire::ethernet::MacAddress;
use weft_wire::isis::SystemId;
use weft_wire::vlan::VlanSet;

use super::authentication::KeyChain;
use crate::{NS_PER_MS, NS_PER_S};

/// A port by its number, which is also its extended circuit ID (RFC 5303).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// Who the RBridge is.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its IS-IS system ID, unlike any other's in the campus.
    pub system: SystemId,
    /// Its name in LSPs (RFC 5301); at most 64 bytes are sent.
    pub hostname: String,
    /// Its ports; numbers unlike each other.
    pub ports: Vec<PortConfig>,
    /// The nickname that it wants.
    pub nickname: Wish,
    /// Priority to be the root of a distribution tree; default 0x8000 (RFC 6325 section 4.5).
    pub root_priority: u16,
    /// VLANs that its end stations are in. Changed later by [`Input::Interest`](super::Input::Interest).
    pub vlans: VlanSet,
    /// Most distribution trees that it computes, at least 1; it also asks for so many when it is the first root.
    pub trees_max: u16,
    /// Keys that all RBridges of the campus share; without them everybody on a link is believed.
    pub keys: Option<KeyChain>,
    /// When things happen.
    pub timing: Timing,
    /// How much is held.
    pub bounds: Bounds,
}

/// One port. Only point-to-point links yet: a shared link's Hellos are dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Its number.
    pub id: PortId,
    /// Its address.
    pub mac: MacAddress,
    /// Metric of sending over it, 1 to 0xfffffe; see [`cost_of_rate`].
    pub cost: u32,
    /// VLAN that Hellos name as outer and Designated VLAN.
    pub designated_vlan: u16,
    /// Whether the adjacency is held back until a frame of 1470 bytes was seen to pass (RFC 6325 section 4.3.2).
    pub mtu_test: bool,
    /// Whether Hellos offer to take data frames without outer header ([`weft_wire::trill::elided`]); no standard's.
    pub offers_elision: bool,
}

/// The metric of a link (RFC 6325 section 4.2.4.4): 20 * 10^12 over its rate, within what a TLV can say.
pub const fn cost_of_rate(bits_per_s: u64) -> u32 {
    const LARGEST: u64 = 0xff_fffe;
    let cost = 20_000_000_000_000 / if bits_per_s == 0 { 1 } else { bits_per_s };
    (if cost < 1 {
        1
    } else if cost > LARGEST {
        LARGEST
    } else {
        cost
    }) as u32
}

/// The nickname that an RBridge wants (RFC 6325 section 3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Any that is free.
    Any,
    /// The one it had before, if it is free.
    Last(u16),
    /// This one, chosen by a person: it is announced with a priority above all that were not.
    Configured(u16),
}

/// When things happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Between Hellos; each is sent up to a quarter earlier. 10 s is what products use.
    pub hello_ns: u64,
    /// How long a neighbour may believe a Hello, seconds; three Hellos.
    pub holding_s: u16,
    /// Between a change and the LSP that tells it: short, for it delays every convergence.
    pub lsp_delay_ns: u64,
    /// Between two versions of own LSPs, so that a flapping link does not flood the campus.
    pub lsp_interval_ns: u64,
    /// Age at which own LSPs are issued anew, up to a quarter earlier (ISO 10589: 900 s).
    pub refresh_ns: u64,
    /// Between sending an LSP and sending it again, when nothing acknowledged it (ISO 10589: 5 s).
    pub resend_ns: u64,
    /// Between receiving an LSP and acknowledging it together with others (ISO 10589: 2 s).
    pub psnp_ns: u64,
    /// Between a change of the graph and the new routes; the loss of an own neighbour does not wait.
    pub spf_delay_ns: u64,
    /// Between two computations while changes do not end; the first few follow each other faster.
    pub spf_interval_ns: u64,
    /// How long a nickname that was not configured waits for a neighbour's LSPs at most.
    pub nickname_wait_ns: u64,
    /// The same after a neighbour's list of LSPs has come.
    pub nickname_settle_ns: u64,
    /// Between MTU-probes.
    pub mtu_probe_ns: u64,
    /// Between BFD Echoes to each neighbour (RFC 7175 section 4); `None`: none are sent.
    pub echo_ns: Option<u64>,
    /// Echoes in a row that a neighbour does not return, while it says no Hello either, until it counts as gone. So many
    /// intervals should be longer than one between Hellos.
    pub echoes_missed: u32,
    /// How long the overload bit stays after an LSP found no room (ISO 10589: 60 s).
    pub overload_ns: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            hello_ns: 10 * NS_PER_S,
            holding_s: 30,
            lsp_delay_ns: 20 * NS_PER_MS,
            lsp_interval_ns: NS_PER_S,
            refresh_ns: 900 * NS_PER_S,
            resend_ns: 5 * NS_PER_S,
            psnp_ns: 2 * NS_PER_S,
            spf_delay_ns: 50 * NS_PER_MS,
            spf_interval_ns: 500 * NS_PER_MS,
            nickname_wait_ns: 5 * NS_PER_S,
            nickname_settle_ns: NS_PER_S,
            mtu_probe_ns: NS_PER_S,
            echo_ns: None,
            echoes_missed: 3,
            overload_ns: 60 * NS_PER_S,
        }
    }
}

/// How much is held of what others send; beyond that it is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Fragments of LSPs; at most 65535.
    pub lsps_max: usize,
    /// Bytes of LSPs.
    pub lsp_bytes_max: usize,
    /// LSPs asked for or acknowledged on one port at a time without being held.
    pub requests_max: usize,
    /// LSPs sent over one port in a burst.
    pub burst_max: usize,
    /// Between bursts.
    pub burst_ns: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { lsps_max: 16_384, lsp_bytes_max: 16 << 20, requests_max: 4096, burst_max: 64, burst_ns: 5 * NS_PER_MS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_metric() {
        const GBIT: u64 = 1_000_000_000;
        let costs = [10 * GBIT, GBIT, GBIT / 10, 40_000 * GBIT, 1_000_000, 0].map(cost_of_rate);
        assert_eq!(costs, [2_000, 20_000, 200_000, 1, 0xff_fffe, 0xff_fffe], "at least 1, never 2^24 - 1");
    }
}
