//! What a VTEP shows, and what is added to it and removed from it, by its control socket ([`crate::socket`]).
//!
//! ```text
//! {"show":"vni"}, {"show":{"fdb":{"vni":100}}}, {"show":"peers"}, {"show":"counters"}
//! {"add":{"vni":{"id":"100-199","age_s":60}}}, {"add":{"port":{"interface":"vm1","vni":100}}},
//! {"add":{"port":{"interface":"trunk1","vlans":["10=5010","100-199=10100-10199"]}}},
//! {"add":{"peer":"10.64.0.5"}}, {"add":{"entry":{"vni":100,"mac":M,"peer":A}}}
//! {"remove":..} the same; of an entry only vni and mac count, of a port only the interface and, to remove no more than them,
//! VLANs without VNIs, of VNIs only the id
//! ```

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::config::{EntryTable, PortTable, SegmentTable};
use crate::socket;

/// A request.
pub type Request = socket::Request<What, Item>;

/// An answer.
pub type Answer = socket::Answer<Shown>;

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum What {
    /// Segments.
    Vni,
    /// Forwarding entries.
    Fdb {
        /// Of this segment only.
        vni: Option<u32>,
    },
    /// Other VTEPs.
    Peers,
    Counters,
}

/// What is added or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Item {
    Vni(SegmentTable),
    /// An access port.
    Port(PortTable),
    /// Another VTEP.
    Peer(Ipv4Addr),
    /// A forwarding entry.
    Entry(EntryTable),
}

/// State.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Segments.
    Vnis(Vec<VniRow>),
    /// Forwarding entries.
    Fdb(Vec<FdbRow>),
    /// Other VTEPs.
    Peers(Vec<PeerRow>),
    /// Counters: of each group, numbers by name.
    Counters(BTreeMap<String, BTreeMap<String, u64>>),
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VniRow {
    pub vni: u32,
    /// Its access ports.
    pub ports: Vec<String>,
    /// Where frames to many go in the underlay.
    pub flood: String,
    /// Whether MACs are learned.
    pub learn: bool,
    /// How long a silent MAC is kept, seconds; 0: for ever.
    pub age_s: u32,
    /// Whether ARP is answered here.
    pub answer_arp: bool,
    /// Whether the directory is asked.
    pub directory: bool,
    /// Frames to unknown MACs flooded per second; none: all.
    pub unknown_per_s: Option<u32>,
    /// Broadcast and group frames flooded per second; none: all.
    pub broadcast_per_s: Option<u32>,
    /// MACs known.
    pub macs: u64,
    /// What passed, by name.
    pub counters: BTreeMap<String, u64>,
}

/// One forwarding entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FdbRow {
    /// Its segment.
    pub vni: u32,
    pub mac: String,
    /// The VTEP or the port that it is behind.
    pub to: String,
    /// `learned`, `static` or `directory`.
    pub origin: String,
    /// Time since its station was last heard, seconds; none where that does not count.
    pub silent_s: Option<f64>,
    /// The address that ARP is answered for with it, where that is known.
    pub ip: Option<Ipv4Addr>,
}

/// Another VTEP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRow {
    /// Its address.
    pub peer: Ipv4Addr,
    /// Segments whose frames to many are copied to it.
    pub floods: u64,
    /// MACs behind it.
    pub macs: u64,
    /// Traffic, by name.
    pub counters: BTreeMap<String, u64>,
}
