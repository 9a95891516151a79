//! What a Hello says of a restart (RFC 8706 section 3.2, which took the place of RFC 5306).

use crate::isis::SystemId;
use crate::isis::cursor::{Reader, Writer};

/// TLV 211: flags 1, then the remaining time 2, then a system ID 6, as far as they are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Restart {
    /// [`Self::REQUEST`], [`Self::ACKNOWLEDGEMENT`], [`Self::SUPPRESS`]; other bits are kept.
    pub flags: u8,
    /// Until the sender gives up the adjacency, seconds; with an acknowledgement.
    pub remaining_s: Option<u16>,
    /// On a shared link: whom the acknowledgement is for.
    pub neighbor: Option<SystemId>,
}

impl Restart {
    /// RR: the sender restarts, and asks for what it has forgotten.
    pub const REQUEST: u8 = 1;
    /// RA: the sender has heard that the other end restarts.
    pub const ACKNOWLEDGEMENT: u8 = 2;
    /// SA: the sender starts, and wants no paths yet.
    pub const SUPPRESS: u8 = 4;

    /// Whether all of these flags are set.
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    pub(in crate::isis) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut restart = Self { flags: reader.u8()?, ..Self::default() };
        if !reader.is_empty() {
            restart.remaining_s = Some(reader.u16()?);
        }
        if !reader.is_empty() {
            restart.neighbor = Some(SystemId(reader.array()?));
        }
        Some(restart)
    }

    /// The layout has no gaps: without a remaining time there is no system ID.
    pub(in crate::isis) fn write(&self, writer: &mut Writer) {
        writer.u8(self.flags);
        let Some(remaining_s) = self.remaining_s else { return };
        writer.u16(remaining_s);
        self.neighbor.iter().for_each(|system| writer.slice(&system.0));
    }
}
