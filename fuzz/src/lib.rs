//! What must hold for any bytes at all, as functions that a fuzzer, a corpus replay and a random test all call.
//!
//! A body returns when its bytes are fine or properly refused, and panics when an invariant is broken.

#![forbid(unsafe_code)]

mod bodies;
mod flow_log;
mod rbridge;
pub mod seeds;
mod trill;
mod trill_links;

pub use bodies::{any_frame, directory_datagram, directory_update, vl2_stack};
pub use flow_log::flow_log;
pub use rbridge::isis_rbridge;
pub use trill::{isis_pdu, isis_tlv, trill_frame};
pub use trill_links::{trill_echo, trill_elided};

/// One fuzz target: its name (also of its corpus folder and its libFuzzer binary) and its body.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name of the folder below `corpus/` and of the file below `fuzz_targets/`.
    pub name: &'static str,
    /// The body.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 11] = [
    Target { name: "any_frame", run: any_frame },
    Target { name: "directory_datagram", run: directory_datagram },
    Target { name: "directory_update", run: directory_update },
    Target { name: "flow_log", run: flow_log },
    Target { name: "isis_pdu", run: isis_pdu },
    Target { name: "isis_rbridge", run: isis_rbridge },
    Target { name: "isis_tlv", run: isis_tlv },
    Target { name: "trill_echo", run: trill_echo },
    Target { name: "trill_elided", run: trill_elided },
    Target { name: "trill_frame", run: trill_frame },
    Target { name: "vl2_stack", run: vl2_stack },
];
