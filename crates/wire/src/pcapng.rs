//! Frames in a pcapng file, which Wireshark and tshark read (draft-ietf-opsawg-pcapng): the lab and the simulator write
//! their captures alike.
//!
//! A file is one section with one or more interfaces, in little-endian order. Every block begins with its type and its length,
//! which it ends with as well, and is padded to 4 bytes:
//!
//! ```text
//! section header (4.1)         0x0a0d0d0a   28    0x1a2b3c4d   version 1.0 (2, 2)   length unknown: all ones (8)   28
//! interface description (4.2)  1   LENGTH   link type (2)   0 (2)   snap length   options   LENGTH
//! enhanced packet (4.3)        6   LENGTH   interface   time, high word   low word   captured   original   frame   options   LENGTH
//! interface statistics (4.6)   5   LENGTH   interface   time, high word   low word   options   LENGTH
//! option (3.5)                 code (2)   length (2)   value, padded to 4
//! ```

use std::io::{self, Write};
use std::time::Duration;

/// Longest frame that a file may hold.
pub const SNAP_BYTES: u32 = 262_144;

pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
pub(crate) const ENHANCED_PACKET: u32 = 6;
/// Tells a reader the order of bytes.
pub(crate) const MAGIC: u32 = 0x1a2b_3c4d;
pub(crate) const ETHERNET: u16 = 1;
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;
const ISB_USRDELIV: u16 = 8;
/// Times in the file are nanoseconds: the exponent of ten of `if_tsresol`.
const NANOSECONDS: u8 = 9;
/// The length behind a block.
const TRAILER_LEN: u32 = 4;

/// What a file says of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The name that readers show.
    pub name: String,
    /// What it is; nothing: not said.
    pub description: String,
    /// Bits per second.
    pub speed_bps: Option<u64>,
}

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Into the interface's node.
    Inbound = 1,
    /// Out of it.
    Outbound = 2,
}

/// A frame and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Place of its interface among those of the file.
    pub interface: u32,
    /// From 1970, or from the start of a simulation.
    pub seen_at: Duration,
    /// `None`: not known.
    pub direction: Option<Direction>,
    /// How long it was on the wire.
    pub original_bytes: u32,
    /// As much of it as there is.
    pub frame: &'a [u8],
}

/// What became of an interface's frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames that there were, lost ones among them.
    pub received: u64,
    /// Frames that the capture has lost.
    pub dropped: u64,
    /// Frames that are in the file.
    pub written: u64,
    /// Whatever else there is to say, a line each.
    pub comments: Vec<String>,
}

/// A file with Ethernet frames.
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
    /// Begins a file of one interface; `interface` is the name that readers show.
    pub fn new(file: W, interface: &str) -> io::Result<Self> {
        let interface = Interface { name: interface.to_owned(), ..Interface::default() };
        Self::of_all(file, &[interface], SNAP_BYTES)
    }

    /// Begins a file of these interfaces, with at most `snap_bytes` of each frame.
    pub fn of_all(file: W, interfaces: &[Interface], snap_bytes: u32) -> io::Result<Self> {
        let mut writer = Self { file, block: Vec::new() };
        writer.write_block(SECTION_HEADER, |body| {
            body.extend(MAGIC.to_le_bytes());
            body.extend([1, 0, 0, 0]);
            body.extend(u64::MAX.to_le_bytes());
        })?;
        for interface in interfaces {
            writer.describe(interface, snap_bytes)?;
        }
        Ok(writer)
    }

    fn describe(&mut self, interface: &Interface, snap_bytes: u32) -> io::Result<()> {
        self.write_block(INTERFACE_DESCRIPTION, |body| {
            body.extend(ETHERNET.to_le_bytes());
            body.extend([0, 0]);
            body.extend(snap_bytes.to_le_bytes());
            put_option(body, IF_NAME, interface.name.as_bytes());
            if !interface.description.is_empty() {
                put_option(body, IF_DESCRIPTION, interface.description.as_bytes());
            }
            interface.speed_bps.iter().for_each(|speed| put_option(body, IF_SPEED, &speed.to_le_bytes()));
            put_option(body, IF_TSRESOL, &[NANOSECONDS]);
            end_options(body);
        })
    }

    /// Adds a frame of the first interface: when it was seen (from 1970, or from the start of a simulation), how long it was
    /// on the wire in bytes, and as much of it as there is.
    pub fn write(&mut self, seen_at: Duration, original_bytes: u32, frame: &[u8]) -> io::Result<()> {
        self.write_packet(&Packet { interface: 0, seen_at, direction: None, original_bytes, frame })
    }

    /// Adds a frame.
    pub fn write_packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        let captured = length(packet.frame)?;
        self.write_block(ENHANCED_PACKET, |body| {
            body.extend(packet.interface.to_le_bytes());
            put_time(body, packet.seen_at);
            body.extend(captured.to_le_bytes());
            body.extend(packet.original_bytes.to_le_bytes());
            body.extend(packet.frame);
            if let Some(direction) = packet.direction {
                pad(body);
                put_option(body, EPB_FLAGS, &(direction as u32).to_le_bytes());
                end_options(body);
            }
        })
    }

    /// Says what became of an interface's frames until `at`.
    pub fn write_statistics(&mut self, interface: u32, at: Duration, said: &Statistics) -> io::Result<()> {
        self.write_block(INTERFACE_STATISTICS, |body| {
            body.extend(interface.to_le_bytes());
            put_time(body, at);
            said.comments.iter().for_each(|comment| put_option(body, COMMENT, comment.as_bytes()));
            let counts = [(ISB_IFRECV, said.received), (ISB_IFDROP, said.dropped), (ISB_USRDELIV, said.written)];
            counts.iter().for_each(|(code, count)| put_option(body, *code, &count.to_le_bytes()));
            end_options(body);
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

/// In the resolution that every interface is described with.
fn put_time(body: &mut Vec<u8>, time: Duration) {
    let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    body.extend(((time_ns >> 32) as u32).to_le_bytes());
    body.extend((time_ns as u32).to_le_bytes());
}

fn end_options(body: &mut Vec<u8>) {
    put_option(body, 0, &[]);
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

    /// Sections 4.2, 4.3 and 4.6: what blocks of several interfaces have beside that.
    #[test]
    fn interfaces_directions_and_statistics_are_where_the_draft_has_them() {
        let interface = |name: &str| Interface { name: name.into(), description: "a link".into(), speed_bps: Some(7) };
        let mut bytes = Vec::new();
        let mut writer = Writer::of_all(&mut bytes, &[interface("a:b"), interface("b:a")], 96).unwrap();
        let packet = Packet {
            interface: 1,
            seen_at: Duration::from_nanos(5),
            direction: Some(Direction::Outbound),
            original_bytes: 60,
            frame: &[0xaa; 5],
        };
        writer.write_packet(&packet).unwrap();
        let said = Statistics { received: 3, dropped: 2, written: 1, comments: vec!["why".into()] };
        writer.write_statistics(1, Duration::from_nanos(6), &said).unwrap();
        drop(writer);
        let words =
            |bytes: &[u8]| -> Vec<u32> { bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect() };
        let mut blocks = Vec::new();
        let mut rest = &bytes[..];
        while let [_, _, _, _, length @ ..] = rest {
            let length = u32::from_le_bytes(length[..4].try_into().unwrap()) as usize;
            blocks.push(words(&rest[..length]));
            rest = &rest[length..];
        }
        let kinds: Vec<u32> = blocks.iter().map(|block| block[0]).collect();
        assert_eq!(kinds, [SECTION_HEADER, 1, 1, 6, 5]);
        assert_eq!(blocks[2][3], 96, "snap length");
        assert_eq!(blocks[2][6..9], [3 | 6 << 16, u32::from_le_bytes(*b"a li"), u32::from_le_bytes(*b"nk\0\0")]);
        assert_eq!(blocks[2][9..12], [8 | 8 << 16, 7, 0], "speed");
        let packet = &blocks[3];
        assert_eq!(packet[2..7], [1, 0, 5, 5, 60]);
        assert_eq!(packet[7..12], [0xaaaa_aaaa, 0xaa, 2 | 4 << 16, 2, 0], "outbound, behind the padded frame");
        let counts =
            [1 | 3 << 16, u32::from_le_bytes(*b"why\0"), 4 | 8 << 16, 3, 0, 5 | 8 << 16, 2, 0, 8 | 8 << 16, 1, 0];
        assert_eq!((&blocks[4][2..5], &blocks[4][5..16]), (&[1, 0, 6][..], &counts[..]));
    }
}
