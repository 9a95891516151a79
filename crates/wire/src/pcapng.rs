//! Frames in a pcapng file, which Wireshark and tshark read (draft-ietf-opsawg-pcapng): the lab and the simulator write
//! their captures alike.
//!
//! A file is one section with one interface, in little-endian order. Every block begins with its type and its length, which
//! it ends with as well, and is padded to 4 bytes:
//!
//! ```text
//! section header (4.1)         0x0a0d0d0a   28    0x1a2b3c4d   version 1.0 (2, 2)   length unknown: all ones (8)   28
//! interface description (4.2)  1   LENGTH   link type (2)   0 (2)   snap length   options   LENGTH
//! enhanced packet (4.3)        6   LENGTH   interface 0   time, high word   low word   captured   original   frame   LENGTH
//! option (3.5)                 code (2)   length (2)   value, padded to 4
//! ```

use std::io::{self, Write};
use std::time::Duration;

/// Longest frame that a file may hold.
pub const SNAP_BYTES: u32 = 262_144;

pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
pub(crate) const ENHANCED_PACKET: u32 = 6;
/// Tells a reader the order of bytes.
pub(crate) const MAGIC: u32 = 0x1a2b_3c4d;
pub(crate) const ETHERNET: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// Times in the file are nanoseconds: the exponent of ten of `if_tsresol`.
const NANOSECONDS: u8 = 9;
/// The length behind a block.
const TRAILER_LEN: u32 = 4;

/// A file with the Ethernet frames of one interface.
pub struct Writer<W: Write> {
    file: W,
    /// The block that is being made; it keeps its room.
    block: Vec<u8>,
}

impl<W: Write> std::fmt::Debug for Writer<W> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Begins a file; `interface` is the name that readers show.
    pub fn new(file: W, interface: &str) -> io::Result<Self> {
        let mut writer = Self { file, block: Vec::new() };
        writer.write_block(SECTION_HEADER, |body| {
            body.extend(MAGIC.to_le_bytes());
            body.extend([1, 0, 0, 0]);
            body.extend(u64::MAX.to_le_bytes());
        })?;
        writer.write_block(INTERFACE_DESCRIPTION, |body| {
            body.extend(ETHERNET.to_le_bytes());
            body.extend([0, 0]);
            body.extend(SNAP_BYTES.to_le_bytes());
            put_option(body, IF_NAME, interface.as_bytes());
            put_option(body, IF_TSRESOL, &[NANOSECONDS]);
            // The end of the options.
            put_option(body, 0, &[]);
        })?;
        Ok(writer)
    }

    /// Adds a frame: when it was seen (from 1970, or from the start of a simulation), how long it was on the wire in
    /// bytes, and as much of it as there is.
    pub fn write(&mut self, seen_at: Duration, original_bytes: u32, frame: &[u8]) -> io::Result<()> {
        let seen_ns = u64::try_from(seen_at.as_nanos()).unwrap_or(u64::MAX);
        let captured = length(frame)?;
        self.write_block(ENHANCED_PACKET, |body| {
            for word in [0, (seen_ns >> 32) as u32, seen_ns as u32, captured, original_bytes] {
                body.extend(word.to_le_bytes());
            }
            body.extend(frame);
        })
    }

    /// Hands everything on, so that whoever reads along sees what there is.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// A block of this type, in one write.
    fn write_block(&mut self, kind: u32, put_body: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.block.clear();
        self.block.extend(kind.to_le_bytes());
        self.block.extend([0; 4]);
        put_body(&mut self.block);
        pad(&mut self.block);
        let length = length(&self.block)? + TRAILER_LEN;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.block.extend(length.to_le_bytes());
        self.file.write_all(&self.block)
    }
}

fn length(bytes: &[u8]) -> io::Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| io::Error::other("more bytes than a block of pcapng holds"))
}

fn put_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    // Names of interfaces are far shorter than what an option holds.
    let value = &value[..value.len().min(usize::from(u16::MAX - 3))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Block types and layout from the draft's sections 4.1 to 4.3, read by hand.
    #[test]
    fn the_file_is_what_the_draft_says() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, "tor1:agg1").unwrap();
        writer.write(Duration::from_nanos(0x1_2345_6789), 60, &[0xaa; 5]).unwrap();
        writer.flush().unwrap();
        drop(writer);
        let little = bytes[8..12] == [0x4d, 0x3c, 0x2b, 0x1a];
        let at = |place: usize| {
            let raw: [u8; 4] = bytes[place..place + 4].try_into().unwrap();
            if little { u32::from_le_bytes(raw) } else { u32::from_be_bytes(raw) }
        };
        assert_eq!(at(0), 0x0a0d_0d0a, "section header, the same in both orders");
        let interface = at(4) as usize;
        assert_eq!(at(interface), 1, "interface description");
        let packet = interface + at(interface + 4) as usize;
        assert_eq!(at(packet), 6, "enhanced packet");
        assert_eq!((at(packet + 12), at(packet + 16)), (0x1, 0x2345_6789), "nanoseconds, high word first");
        assert_eq!((at(packet + 20), at(packet + 24)), (5, 60), "captured and original length");
        assert_eq!(bytes[packet + 28..packet + 33], [0xaa; 5]);
        assert!(bytes.windows(9).any(|window| window == b"tor1:agg1"));
        assert_eq!(packet + at(packet + 4) as usize, bytes.len(), "padded, and nothing follows");
        let mut block = 0;
        while block < bytes.len() {
            let length = at(block + 4) as usize;
            assert!(length.is_multiple_of(4) && at(block + length - 4) as usize == length, "its length stands twice");
            block += length;
        }
    }
}
