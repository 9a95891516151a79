//! The eBPF that is deployed, and its loader: the VL2 host agent, the VL2 switches, the directory's look-ups, the
//! RBridge, the VXLAN tunnel end point.
//!
//! The programs are C (`bpf/`), compiled at build time and embedded. Everything here acts in the network namespace of
//! the calling thread, and nothing waits: a caller that serves several namespaces enters each before it calls.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`host`] | a server: encapsulation on TC egress, ARP, misses to the agent (VL2 4.2.1) |
//! | [`switch`] | an Intermediate or ToR: decapsulation on TC ingress (VL2 4.2.1) |
//! | [`broadcast`] | broadcast and multicast of a server's service (VL2 4.2.3) |
//! | [`spread`] | other paths for flows under way, at the sender (VL2 4.2.2) |
//! | [`stale`] | a sample of the packets that a ToR cannot deliver (VL2 4.3.2) |
//! | [`trill`] | an RBridge: ingress, transit, egress and distribution trees on XDP |
//! | [`offload`] | what an interface does for the stack, and XDP wants otherwise |
//! | [`vxlan`] | a VXLAN tunnel end point on TC and XDP (RFC 7348) |
//! | [`directory`] | look-ups of a directory server, answered at its card (VL2 4.3.2) |
//! | [`copies`] | whether the kernel's copies of a frame are each their own |
//! | [`capability`] | an object, loaded to find out whether this kernel takes it |
//! | [`probe`] | hooks and cards, asked without one of our objects |
//! | [`bpffs`] | the file system that pinned maps and links live in |
//! | [`frame`] | one frame through a loaded program without a network |
//! | [`table`] | a map, typed |
//! | [`abi`] | what programs and user space share |
//!
//! `weft-testbed` has programs of its own and stands on what ours stand on: [`object`] (files, maps, programs), [`hook`] and
//! [`interface`] (where a program goes), [`table`], [`clock`], and the macro [`abi::header`].

pub mod abi;
pub mod bpffs;
pub mod broadcast;
pub mod capability;
pub mod clock;
pub mod copies;
pub mod directory;
mod error;
mod filter;
pub mod frame;
pub mod hook;
pub mod host;
pub mod interface;
mod link;
mod membership;
pub mod object;
pub mod offload;
pub mod pin;
pub mod probe;
mod refusal;
mod ring;
pub mod spread;
pub mod stale;
pub mod switch;
pub mod table;
pub mod trill;
pub mod vxlan;

pub use abi::AGENT_MARK;
pub use error::DatapathError;
pub use hook::TcHook;
