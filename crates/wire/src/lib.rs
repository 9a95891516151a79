//! Every byte format that weft speaks, once.
//!
//! Each format has one file and two levels. A **view** (`View`) is a checked, borrowed look at bytes: making one
//! verifies every length and fixed field, and no accessor can fail afterwards. A **value** (`Header`, `Packet`,
//! `Message`, `Stack`) is plain data with `parse`, `buffer_len` and `emit_into`; `emit_into` writes every byte of its
//! format, whatever the buffer held before. Reading never allocates and never panics.
//!
//! | module | format | from |
//! | --- | --- | --- |
//! | [`ethernet`] | Ethernet II header | IEEE 802.3 |
//! | [`vlan`] | VLAN tag | IEEE 802.1Q |
//! | [`bpdu`] | the root in a bridge's BPDU | IEEE 802.1D, IEEE 802.1Q |
//! | [`arp`] | ARP for IPv4 over Ethernet | RFC 826 |
//! | [`ipv4`] | IPv4 header, ECN | RFC 791, RFC 3168 |
//! | [`ipv6`] | IPv6 header | RFC 8200 |
//! | [`udp`] | UDP header | RFC 768 |
//! | [`icmp`] | "fragmentation needed" | RFC 792, RFC 1191 |
//! | [`vl2`] | two IPv4 headers around a packet | VL2 4.2.1, RFC 2003, RFC 6040 |
//! | [`vxlan`] | an Ethernet frame in UDP: its header | RFC 7348 |
//! | [`trill`] | header between outer and inner Ethernet | RFC 6325 |
//! | [`isis`] | IS-IS as TRILL speaks it: PDUs, TLVs, checksum | ISO 10589, RFC 6325, RFC 7176 |
//! | [`flow`] | five-tuple and the flow hash in outer source addresses | VL2 4.2.2 |
//! | [`probe`] | stamp and pattern in the test centre's frames | ours |
//! | [`directory`] | look-up datagram between agents and directory servers | VL2 4.4 |
//! | [`block`] | blocks of IPv4 addresses, as people write them | |
//! | [`checksum`] | Internet checksum | RFC 1071, RFC 1624 |
//! | [`pcapng`] | captures for Wireshark: with `pcap` the formats here that are files | draft-ietf-opsawg-pcapng |
//! | [`pcap`] | captures of others, in either format | draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng |
//! | [`mod@print`] | all of it on one line | |

#![forbid(unsafe_code)]

pub mod arp;
pub mod block;
pub mod bpdu;
mod bytes;
pub mod checksum;
pub mod directory;
mod error;
pub mod ethernet;
pub mod flow;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod isis;
pub mod listener;
pub mod pcap;
pub mod pcapng;
pub mod print;
pub mod probe;
pub mod trill;
pub mod udp;
pub mod vl2;
pub mod vlan;
pub mod vxlan;

pub use error::ParseError;
