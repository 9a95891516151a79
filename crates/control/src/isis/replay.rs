//! Numbers of Hellos and sequence numbers PDUs (RFC 7602): nothing else tells an old one that somebody says again from a new one.
//! An LSP has a number of its own.

use std::collections::BTreeMap;

use weft_wire::isis::{Kind, Pdu, SystemId, Tlv, View};

use super::counters::DropReason;

/// Session and packet.
type Number = (u64, u32);

/// The last number that was said, and of each neighbour the last that was heard.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    said: Number,
    /// By port, neighbour and kind of PDU.
    heard: BTreeMap<(usize, SystemId, u8), Number>,
}

impl Numbers {
    /// The PDU with the next number of this session, if it is of a kind that has one.
    pub(super) fn number(&mut self, session: u64, pdu: &Pdu) -> Pdu {
        let mut pdu = pdu.clone();
        if let Pdu::P2pHello(_) | Pdu::LanHello(_) | Pdu::Csnp(_) | Pdu::Psnp(_) = pdu
            && let Some(tlvs) = pdu.tlvs_mut()
        {
            let (before, packet) = self.said;
            self.said = match packet.checked_add(1) {
                _ if session > before => (session, 0),
                Some(packet) => (before, packet),
                None => (before + 1, 0),
            };
            tlvs.push(Tlv::ExtendedSequence { session: self.said.0, packet: self.said.1 });
        }
        pdu
    }

    /// Judges an authentic PDU by its number, which then is the last one heard.
    ///
    /// # Errors
    /// [`DropReason::NoNumber`], [`DropReason::Replayed`].
    pub(super) fn check(&mut self, port: usize, view: &View<'_>) -> Result<(), DropReason> {
        let (Kind::P2pHello | Kind::LanHello | Kind::Csnp | Kind::Psnp, Some(source)) = (view.kind(), view.source())
        else {
            return Ok(());
        };
        let number = view.tlvs().find_map(|(code, value)| match Tlv::parse(code, value) {
            Tlv::ExtendedSequence { session, packet } => Some((session, packet)),
            _ => None,
        });
        let number = number.ok_or(DropReason::NoNumber)?;
        let key = (port, source, view.kind() as u8);
        if self.heard.get(&key).is_some_and(|last| number <= *last) {
            return Err(DropReason::Replayed);
        }
        self.heard.insert(key, number);
        Ok(())
    }
}
