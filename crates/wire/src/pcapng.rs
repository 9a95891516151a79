//! Frames in a pcapng file, which Wireshark and tshark read (draft-ietf-opsawg-pcapng): the lab and the simulator write
//! their captures alike.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};

/// Longest frame that a file may hold.
pub const SNAP_BYTES: u32 = 262_144;
/// Times in the file are nanoseconds: the exponent of ten of `if_tsresol`.
const NANOSECONDS: u8 = 9;

/// A file with the Ethernet frames of one interface.
pub struct Writer<W: Write> {
    file: PcapNgWriter<W>,
}

impl<W: Write> std::fmt::Debug for Writer<W> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Begins a file; `interface` is the name that readers show.
    pub fn new(file: W, interface: &str) -> io::Result<Self> {
        let mut file = PcapNgWriter::new(file).map_err(to_io)?;
        let options = vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(interface)),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ];
        let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: SNAP_BYTES, options };
        file.write_pcapng_block(block).map_err(to_io)?;
        Ok(Self { file })
    }

    /// Adds a frame: when it was seen (from 1970, or from the start of a simulation), how long it was on the wire in
    /// bytes, and as much of it as there is.
    pub fn write(&mut self, seen_at: Duration, original_bytes: u32, frame: &[u8]) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: seen_at,
            original_len: original_bytes,
            data: Cow::Borrowed(frame),
            options: Vec::new(),
        };
        self.file.write_pcapng_block(block).map_err(to_io).map(drop)
    }

    /// Hands everything on, so that whoever reads along sees what there is.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.get_mut().flush()
    }
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
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
    }
}
