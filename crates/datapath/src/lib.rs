//! All eBPF of weft and its loader: the VL2 host agent, the VL2 switches, their XDP variants and their benchmark, the
//! VXLAN tunnel end point, the test centre's programs.
//!
//! The programs are C (`bpf/`), compiled at build time and embedded. Everything here acts in the network namespace of
//! the calling thread, and nothing waits: a caller that serves several namespaces enters each before it calls.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`host`] | a server: encapsulation on TC egress, ARP, misses to the agent (VL2 4.2.1) |
//! | [`switch`] | an Intermediate or ToR: decapsulation on TC ingress (VL2 4.2.1) |
//! | [`loss`] | a network that loses datagrams of one port, for measurements |
//! | [`broadcast`] | broadcast and multicast of a server's service (VL2 4.2.3) |
//! | [`spread`] | other paths for flows under way, at the sender (VL2 4.2.2) |
//! | [`stale`] | a sample of the packets that a ToR cannot deliver (VL2 4.3.2) |
//! | [`mod@bench`] | nanoseconds per packet of the XDP variants, relative to a layer-2 program |
//! | [`trill`] | an RBridge: ingress, transit, egress and distribution trees on XDP |
//! | [`tester`] | the test centre's generator, analyser and emulated links |
//! | [`bed`] | parts of beds for experiments: ends of chains, segments for streams |
//! | [`l2`] | the plain layer-2 switch that every ratio is over |
//! | [`offload`] | what an interface does for the stack, and XDP wants otherwise |
//! | [`vxlan`] | a VXLAN tunnel end point on TC and XDP (RFC 7348) |
//! | [`capability`] | every object by name, to find out whether this kernel takes it |
//! | [`probe`] | hooks and cards, asked without one of our objects |
//! | [`bpffs`] | the file system that pinned maps and links live in |
//! | [`frame`] | one frame through a loaded program without a network |
//! | [`abi`] | what programs and user space share |

pub mod abi;
pub mod bed;
pub mod bench;
pub mod bpffs;
pub mod broadcast;
pub mod capability;
mod clock;
pub mod copies;
mod counters;
mod error;
mod filter;
pub mod frame;
mod hook;
pub mod host;
mod interface;
pub mod l2;
mod link;
pub mod loss;
mod membership;
mod object;
pub mod offload;
mod pin;
pub mod probe;
mod refusal;
mod ring;
pub mod spread;
pub mod stale;
pub mod switch;
pub mod tester;
pub mod trill;
pub mod vxlan;
pub mod xdp;

pub use abi::AGENT_MARK;
pub use error::DatapathError;
pub use hook::TcHook;
