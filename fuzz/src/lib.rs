//! What must hold for any bytes at all, as functions that a fuzzer, a corpus replay and a random test all call.
//!
//! A body returns when its bytes are fine or properly refused, and panics when an invariant is broken.

#![forbid(unsafe_code)]

mod bodies;
mod captures;
mod flow_log;
mod rbridge;
pub mod seeds;
mod sessions;
mod snooped;
mod stored;
mod texts;
mod trill;
mod trill_links;
mod vxlan;

pub use bodies::{any_frame, directory_datagram, directory_update, vl2_stack};
pub use captures::capture_file;
pub use flow_log::flow_log;
pub use rbridge::isis_rbridge;
pub use sessions::{bulk_mappings, session_answers, session_lines};
pub use snooped::{bpdu, listener_message};
pub use stored::{stored_record, stored_snapshot};
pub use texts::{campus_keys, daemon_settings, fabric_yaml, plan_toml};
pub use trill::{isis_pdu, isis_tlv, trill_frame};
pub use trill_links::{trill_echo, trill_elided};
pub use vxlan::vxlan_frame;

/// One fuzz target: its name (also of its corpus folder and its libFuzzer binary) and its body.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name of the folder below `corpus/` and of the file below `fuzz_targets/`.
    pub name: &'static str,
    /// The body.
    pub run: fn(&[u8]),
    /// How many mutations of each file `make test-long` tries, fewer where one takes long; `make test` tries a quarter of them.
    pub mutations: usize,
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run, mutations: 5000 }
}

/// One that reads text, which takes long.
const fn text(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run, mutations: 500 }
}

/// Every target.
pub const TARGETS: [Target; 24] = [
    target("any_frame", any_frame),
    target("bpdu", bpdu),
    target("bulk_mappings", bulk_mappings),
    target("campus_keys", campus_keys),
    target("capture_file", capture_file),
    text("daemon_settings", daemon_settings),
    target("directory_datagram", directory_datagram),
    target("directory_update", directory_update),
    text("fabric_yaml", fabric_yaml),
    target("flow_log", flow_log),
    target("isis_pdu", isis_pdu),
    target("isis_rbridge", isis_rbridge),
    target("isis_tlv", isis_tlv),
    target("listener_message", listener_message),
    text("plan_toml", plan_toml),
    target("session_answers", session_answers),
    target("session_lines", session_lines),
    target("stored_record", stored_record),
    target("stored_snapshot", stored_snapshot),
    target("trill_echo", trill_echo),
    target("trill_elided", trill_elided),
    target("trill_frame", trill_frame),
    target("vl2_stack", vl2_stack),
    target("vxlan_frame", vxlan_frame),
];
