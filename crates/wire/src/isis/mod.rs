//! IS-IS as TRILL speaks it: PDUs, TLVs and sub-TLVs, the checksum (ISO 10589, RFC 6325 section 4.2, RFC 7176, RFC 7177).
//!
//! ```text
//! 0 0x83   1 header length   2 version 1   3 ID length 0 (= 6)   4 PDU type   5 version 1   6 reserved   7 maximum areas
//! 8 fixed part, by PDU type   header length: type 1, length 1, value ...
//! ```
//!
//! * [`view`]: the checked look at a PDU; allocates nothing and is what a flood of LSPs meets first
//! * [`pdu`]: the PDUs as values
//! * [`tlv`]: what PDUs carry; [`hello`], [`lsp`] and [`group`] hold the larger ones
//! * [`id`]: system, node and LSP IDs
//! * [`authentication`]: TLV 10, and what its digest covers
//! * [`fletcher`]: the checksum of LSPs
//!
//! A TLV or sub-TLV that this code does not know, or whose length does not fit its layout, is kept as bytes
//! ([`Tlv::Other`](tlv::Tlv)) and written again as it came; only lengths that leave the PDU refuse it.

pub mod authentication;
mod cursor;
pub mod fletcher;
pub mod group;
pub mod hello;
pub mod id;
pub mod lsp;
pub mod pdu;
pub mod tlv;
pub mod view;

pub use id::{LspId, NodeId, SystemId, SystemIdError};
pub use pdu::{EmitError, Pdu};
pub use tlv::Tlv;
pub use view::{Kind, View};

/// Ethertype of TRILL IS-IS frames, "L2-IS-IS" (RFC 6325 section 7.2).
pub const ETHERTYPE: u16 = 0x22f4;
/// Network layer protocol identifier of TRILL (RFC 7176 section 4.3).
pub const NLPID_TRILL: u8 = 0xc0;
/// The one area that all RBridges are in (RFC 7176 section 4.2).
pub const AREA: [u8; 1] = [0];
/// The only circuit type: level 1 (RFC 7177 section 8.2).
pub const CIRCUIT_TYPE_LEVEL_1: u8 = 1;
/// The only value of the maximum areas field (RFC 7177 section 8.2).
pub const MAX_AREAS: u8 = 1;
/// The smallest value that the largest PDU of a campus may have, bytes (RFC 6325 section 4.3.1).
pub const PDU_LEN_MIN: u16 = 1470;
/// Metric of a link that shortest paths do not use (RFC 5305 section 3).
pub const METRIC_UNUSABLE: u32 = 0xff_ffff;
