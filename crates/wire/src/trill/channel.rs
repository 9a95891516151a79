//! RBridge Channel messages (RFC 7178 section 2.1) and BFD Echoes in them (RFC 7175 section 4).
//!
//! ```text
//! behind Ethertype 8946:   0 CHV=0 (4) protocol (12)   2 SL MH NA reserved=0 (9) ERR (4)   4 what the protocol says
//! an Echo of ours:         0 system ID   6 port   8 session   16 number   20
//! ```

use super::frame::{self, Label, RBRIDGE_CHANNEL, View};
use super::{ALL_EGRESS_RBRIDGES, ETHERTYPE, HOP_COUNT_MAX, Header};
use crate::bytes::{array, u16_at, u32_at, u64_at};
use crate::error::{ParseError, need};
use crate::ethernet::{self, MacAddress};
use crate::isis::SystemId;

/// Channel protocol of BFD Control packets (RFC 7175 section 8).
pub const BFD_CONTROL: u16 = 2;
/// Channel protocol of BFD Echoes (RFC 7175 section 8).
pub const BFD_ECHO: u16 = 3;

const HEADER_LEN: usize = 4;
const ECHO_LEN: usize = 20;
const SILENT: u16 = 1 << 15;
const MULTI_HOP: u16 = 1 << 14;
const NATIVE: u16 = 1 << 13;
/// VLAN and priority of one-hop messages that connectivity hangs on (RFC 7178 section 2.1.3).
const CRITICAL: Label = Label::Vlan { vlan: 1, priority: 7 };

/// The header of a channel message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelHeader {
    /// What the message is about, 12 bits.
    pub protocol: u16,
    /// "SL": no error message is wanted for it.
    pub silent: bool,
    /// "MH": it may go further than one hop.
    pub multi_hop: bool,
    /// "NA": it is exchanged with end stations.
    pub native: bool,
    /// "ERR", 4 bits.
    pub error: u8,
}

impl ChannelHeader {
    /// Reads the header that follows Ethertype [`RBRIDGE_CHANNEL`].
    ///
    /// # Errors
    /// [`ParseError::Truncated`], [`ParseError::Version`] other than 0.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        need(bytes, HEADER_LEN)?;
        let (first, second) = (u16_at(bytes, 0), u16_at(bytes, 2));
        if first >> 12 != 0 {
            return Err(ParseError::Version((first >> 12) as u8));
        }
        let is_set = |mask| second & mask != 0;
        Ok(Self {
            protocol: first,
            silent: is_set(SILENT),
            multi_hop: is_set(MULTI_HOP),
            native: is_set(NATIVE),
            error: second as u8 & 0xf,
        })
    }

    /// The header's bytes. Values that do not fit their field lose their upper bits.
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let bit = |set: bool, mask: u16| if set { mask } else { 0 };
        let flags = bit(self.silent, SILENT) | bit(self.multi_hop, MULTI_HOP) | bit(self.native, NATIVE);
        let [a, b] = (self.protocol & 0xfff).to_be_bytes();
        let [c, d] = (flags | u16::from(self.error & 0xf)).to_be_bytes();
        [a, b, c, d]
    }
}

/// What an Echo holds: for nobody but who sent it (RFC 7175 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The sender.
    pub system: SystemId,
    /// The port that it left by.
    pub port: u16,
    /// Drawn at random, so that nobody else can answer.
    pub session: u64,
    /// Counts the session's Echoes.
    pub number: u32,
}

impl Echo {
    /// The whole frame, from the port's address `source` to the `neighbor`, which forwards it back because both nicknames
    /// are the sender's own.
    pub fn emit(&self, neighbor: MacAddress, source: MacAddress, nickname: u16) -> Vec<u8> {
        let header = ChannelHeader { protocol: BFD_ECHO, silent: true, multi_hop: true, native: false, error: 0 };
        let mut payload = header.to_bytes().to_vec();
        payload.extend(self.system.0);
        payload.extend(self.port.to_be_bytes());
        payload.extend(self.session.to_be_bytes());
        payload.extend(self.number.to_be_bytes());
        let mut body = Header::unicast(nickname, nickname).to_bytes();
        body.extend(frame::emit_inner(ALL_EGRESS_RBRIDGES, source, CRITICAL, RBRIDGE_CHANNEL, &payload));
        ethernet::Header { destination: neighbor, source, ethertype: ETHERTYPE }.emit_with(&body)
    }

    /// Reads an Echo that came back, and how many RBridges have forwarded it: one, if it was the neighbour and nobody else
    /// (RFC 7175 section 4.1).
    ///
    /// # Errors
    /// Those of [`View::new`] and [`ChannelHeader::parse`]; [`ParseError::Protocol`] for what is no channel message,
    /// [`ParseError::Kind`] for other channel protocols, frames for many, and Echoes that are not marked as multi-hop.
    pub fn parse(bytes: &[u8]) -> Result<(Self, u8), ParseError> {
        let view = View::new(bytes)?;
        if view.inner_ethertype() != RBRIDGE_CHANNEL || view.inner_destination() != ALL_EGRESS_RBRIDGES {
            return Err(ParseError::Protocol(view.inner_ethertype()));
        }
        let channel = ChannelHeader::parse(view.payload())?;
        if channel.protocol != BFD_ECHO || !channel.multi_hop || view.header().multi_destination {
            return Err(ParseError::Kind(channel.protocol));
        }
        let data = &view.payload()[HEADER_LEN..];
        need(data, ECHO_LEN)?;
        let echo = Self {
            system: SystemId(array(data, 0)),
            port: u16_at(data, 6),
            session: u64_at(data, 8),
            number: u32_at(data, 16),
        };
        Ok((echo, HOP_COUNT_MAX - view.header().hop_count))
    }
}
