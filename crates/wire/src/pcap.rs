//! Ethernet frames out of a capture file, pcap (draft-ietf-opsawg-pcap) or pcapng (draft-ietf-opsawg-pcapng), whoever wrote it and in
//! whichever order of bytes.
//!
//! A pcap file is a header, then a header in front of every frame:
//!
//! ```text
//! file    magic 0xa1b2c3d4 (us) or 0xa1b23c4d (ns)   version 2.4 (2, 2)   unused (8)   snap length (4)   link type (4)
//! frame   seconds (4)   fraction (4)   captured (4)   original (4)   frame
//! ```
//!
//! The link type is its lower half; if bit 26 is set, bits 28 to 31 say how many 16-bit words of FCS frames end with. Blocks of pcapng
//! are drawn in [`crate::pcapng`], which writes them; other writers have these as well:
//!
//! ```text
//! simple packet (4.4)     3   LENGTH   original   frame   LENGTH
//! packet (obsolete)       2   LENGTH   interface (2)   drops (2)   time (8)   captured   original   frame   LENGTH
//! ```
//!
//! Every interface must be an Ethernet, or there would be frames that are none.

use crate::pcapng::{ENHANCED_PACKET, ETHERNET, INTERFACE_DESCRIPTION, MAGIC, SECTION_HEADER};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const FILE_HEADER_LEN: usize = 24;
const FRAME_HEADER_LEN: usize = 16;

const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
/// Type and length in front, length behind.
const BLOCK_LEN_MIN: usize = 12;
/// What stands in front of the frame in a packet block, enhanced or obsolete.
const PACKET_BODY_LEN: usize = 20;
const IF_FCSLEN: u16 = 13;

/// A frame of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Which one, from 1 on, as Wireshark counts them.
    pub number: usize,
    /// Where its header or block begins, bytes from the start of the file.
    pub at: usize,
    /// How long it was on the wire, bytes without FCS.
    pub original_bytes: u32,
    /// As much of it as was captured.
    pub bytes: &'a [u8],
}

/// Why a file cannot be read any further, and where, bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {fault}")]
pub struct CaptureError {
    pub at: usize,
    pub fault: Fault,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There is nothing.
    #[error("the file is empty")]
    Empty,
    /// No magic number of ours, in either order.
    #[error("neither pcap nor pcapng begins like this")]
    Unknown,
    /// Another version of the format.
    #[error("version {0}.{1} of the format; pcap 2.4 and pcapng 1 can be read")]
    Version(u16, u16),
    /// Frames of something else.
    #[error("the link type is {0}; only Ethernet (1) can be read")]
    LinkType(u32),
    /// Frames with their check sequence.
    #[error("frames end with an FCS; capture without")]
    Fcs,
    /// The file is shorter than it says.
    #[error("the file is cut off: {0} bytes are missing")]
    CutOff(usize),
    /// A block whose length is too short for its type, no multiple of 4, or not the same at both ends.
    #[error("a block with a wrong length ({0})")]
    BlockLength(u32),
    /// A frame that does not fit its block.
    #[error("a frame of {0} bytes does not fit its block")]
    FrameLength(u32),
    /// A frame of an interface that was not described before.
    #[error("interface {0} is not described")]
    Interface(u32),
}

/// Walks over a file's frames. After an error there are no more.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    file: Bytes<'a>,
    at: usize,
    number: usize,
    format: Format,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Pcap,
    /// With what this section has described so far.
    Pcapng {
        interfaces: u32,
        /// Of the first interface, which simple packets are of; 0: none.
        snap_bytes: u32,
    },
}

impl<'a> Reader<'a> {
    /// Reads what a file begins with.
    ///
    /// # Errors
    /// [`CaptureError`] for an empty file, another format or version, and pcap files of other link types.
    pub fn new(file: &'a [u8]) -> Result<Self, CaptureError> {
        let mut file = Bytes { all: file, is_big_endian: false };
        if file.all.is_empty() {
            return Err(fault(0, Fault::Empty));
        }
        let magic = file.u32_at(0)?;
        if magic == SECTION_HEADER {
            return Ok(Self { file, at: 0, number: 0, format: Format::Pcapng { interfaces: 0, snap_bytes: 0 } });
        }
        file.is_big_endian = matches!(magic.swap_bytes(), MICROSECONDS | NANOSECONDS);
        if !file.is_big_endian && !matches!(magic, MICROSECONDS | NANOSECONDS) {
            return Err(fault(0, Fault::Unknown));
        }
        file.slice(0, FILE_HEADER_LEN)?;
        match (file.u16_at(4)?, file.u16_at(6)?) {
            (2, 4) => {}
            (major, minor) => return Err(fault(4, Fault::Version(major, minor))),
        }
        let link_type = file.u32_at(20)?;
        if link_type & 1 << 26 != 0 && link_type >> 28 != 0 {
            return Err(fault(20, Fault::Fcs));
        }
        check_link_type(20, link_type & 0xffff)?;
        Ok(Self { file, at: FILE_HEADER_LEN, number: 0, format: Format::Pcap })
    }

    /// The next frame; `None` at the end.
    fn read(&mut self) -> Result<Option<Frame<'a>>, CaptureError> {
        while self.at < self.file.all.len() {
            let at = self.at;
            let found = match self.format {
                Format::Pcap => Some(self.record()?),
                Format::Pcapng { interfaces, snap_bytes } => self.block(interfaces, snap_bytes)?,
            };
            if let Some((original_bytes, bytes)) = found {
                self.number += 1;
                return Ok(Some(Frame { number: self.number, at, original_bytes, bytes }));
            }
        }
        Ok(None)
    }

    /// A frame of a pcap file: its original length, and what there is.
    fn record(&mut self) -> Result<(u32, &'a [u8]), CaptureError> {
        let at = self.at;
        self.file.slice(at, FRAME_HEADER_LEN)?;
        let bytes = self.file.slice(at + FRAME_HEADER_LEN, self.file.u32_at(at + 8)? as usize)?;
        self.at = at + FRAME_HEADER_LEN + bytes.len();
        Ok((self.file.u32_at(at + 12)?, bytes))
    }

    /// A block of a pcapng file, and the frame if it has one.
    fn block(&mut self, interfaces: u32, snap_bytes: u32) -> Result<Option<(u32, &'a [u8])>, CaptureError> {
        let at = self.at;
        let kind = self.file.u32_at(at)?;
        if kind == SECTION_HEADER {
            self.file.is_big_endian = false;
            self.file.is_big_endian = match self.file.u32_at(at + 8)? {
                MAGIC => false,
                magic if magic.swap_bytes() == MAGIC => true,
                _ => return Err(fault(at + 8, Fault::Unknown)),
            };
        }
        let length = self.file.u32_at(at + 4)?;
        let wrong_length = fault(at + 4, Fault::BlockLength(length));
        if (length as usize) < BLOCK_LEN_MIN || !length.is_multiple_of(4) {
            return Err(wrong_length);
        }
        let block = self.file.slice(at, length as usize)?;
        if self.file.u32_at(at + block.len() - 4)? != length {
            return Err(wrong_length);
        }
        self.at = at + block.len();
        let body = Body { file: self.file, at: at + 8, len: block.len() - BLOCK_LEN_MIN };
        let needs = |bytes: usize| if body.len < bytes { Err(wrong_length) } else { Ok(()) };
        match kind {
            SECTION_HEADER => {
                needs(16)?;
                self.format = Format::Pcapng { interfaces: 0, snap_bytes: 0 };
                let (major, minor) = (self.file.u16_at(at + 12)?, self.file.u16_at(at + 14)?);
                if major != 1 {
                    return Err(fault(at + 12, Fault::Version(major, minor)));
                }
                Ok(None)
            }
            INTERFACE_DESCRIPTION => {
                needs(8)?;
                let snap = body.interface()?;
                let snap_bytes = if interfaces == 0 { snap } else { snap_bytes };
                self.format = Format::Pcapng { interfaces: interfaces.saturating_add(1), snap_bytes };
                Ok(None)
            }
            ENHANCED_PACKET | PACKET => {
                needs(PACKET_BODY_LEN)?;
                let interface = match kind {
                    PACKET => u32::from(self.file.u16_at(at + 8)?),
                    _ => self.file.u32_at(at + 8)?,
                };
                is_described(at, interface, interfaces)?;
                body.frame(PACKET_BODY_LEN, self.file.u32_at(at + 20)?, self.file.u32_at(at + 24)?).map(Some)
            }
            SIMPLE_PACKET => {
                needs(4)?;
                is_described(at, 0, interfaces)?;
                let original_bytes = self.file.u32_at(at + 8)?;
                let captured = if snap_bytes == 0 { original_bytes } else { original_bytes.min(snap_bytes) };
                body.frame(4, captured, original_bytes).map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Frame<'a>, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.read().transpose();
        if let Some(Err(_)) = found {
            self.at = self.file.all.len();
        }
        found
    }
}

/// What is between the lengths of a block.
#[derive(Clone, Copy)]
struct Body<'a> {
    file: Bytes<'a>,
    at: usize,
    len: usize,
}

impl<'a> Body<'a> {
    /// A frame behind `front` bytes: its original length, and what there is.
    fn frame(self, front: usize, captured: u32, original_bytes: u32) -> Result<(u32, &'a [u8]), CaptureError> {
        if captured as usize > self.len - front {
            return Err(fault(self.at, Fault::FrameLength(captured)));
        }
        Ok((original_bytes, self.file.slice(self.at + front, captured as usize)?))
    }

    /// The snap length of an Ethernet interface without FCS.
    fn interface(self) -> Result<u32, CaptureError> {
        check_link_type(self.at, u32::from(self.file.u16_at(self.at)?))?;
        let (mut at, end) = (self.at + 8, self.at + self.len);
        while at + 4 <= end {
            let (code, length) = (self.file.u16_at(at)?, usize::from(self.file.u16_at(at + 2)?));
            let value = at + 4;
            if code == 0 || value + length > end {
                break;
            }
            if code == IF_FCSLEN && length > 0 && self.file.all[value] != 0 {
                return Err(fault(at, Fault::Fcs));
            }
            at = value + length.next_multiple_of(4);
        }
        self.file.u32_at(self.at + 4)
    }
}

/// Bytes in an order.
#[derive(Clone, Copy, Debug)]
struct Bytes<'a> {
    all: &'a [u8],
    is_big_endian: bool,
}

impl<'a> Bytes<'a> {
    fn slice(self, at: usize, bytes: usize) -> Result<&'a [u8], CaptureError> {
        let end = at.saturating_add(bytes);
        let missing = end.saturating_sub(self.all.len());
        self.all.get(at..end).ok_or_else(|| fault(at.min(self.all.len()), Fault::CutOff(missing)))
    }

    fn u16_at(self, at: usize) -> Result<u16, CaptureError> {
        let bytes = [self.slice(at, 2)?[0], self.all[at + 1]];
        Ok(if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32_at(self, at: usize) -> Result<u32, CaptureError> {
        let bytes = *self.slice(at, 4)?.first_chunk().expect("four bytes");
        Ok(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }
}

fn check_link_type(at: usize, link_type: u32) -> Result<(), CaptureError> {
    if link_type == u32::from(ETHERNET) { Ok(()) } else { Err(fault(at, Fault::LinkType(link_type))) }
}

fn is_described(at: usize, interface: u32, interfaces: u32) -> Result<(), CaptureError> {
    if interface < interfaces { Ok(()) } else { Err(fault(at, Fault::Interface(interface))) }
}

const fn fault(at: usize, fault: Fault) -> CaptureError {
    CaptureError { at, fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words in either order.
    struct File {
        bytes: Vec<u8>,
        is_big_endian: bool,
    }

    impl File {
        fn new(is_big_endian: bool) -> Self {
            Self { bytes: Vec::new(), is_big_endian }
        }

        fn word(mut self, word: u32) -> Self {
            self.bytes.extend(if self.is_big_endian { word.to_be_bytes() } else { word.to_le_bytes() });
            self
        }

        fn half(mut self, half: u16) -> Self {
            self.bytes.extend(if self.is_big_endian { half.to_be_bytes() } else { half.to_le_bytes() });
            self
        }

        fn raw(mut self, bytes: &[u8]) -> Self {
            self.bytes.extend(bytes);
            self
        }

        /// A block around what `body` puts.
        fn block(self, kind: u32, body: impl FnOnce(Self) -> Self) -> Self {
            let is_big_endian = self.is_big_endian;
            let mut inside = body(Self::new(is_big_endian)).bytes;
            inside.resize(inside.len().next_multiple_of(4), 0);
            let length = inside.len() as u32 + 12;
            self.word(kind).word(length).raw(&inside).word(length)
        }

        fn section(self) -> Self {
            self.block(0x0a0d_0d0a, |body| body.word(0x1a2b_3c4d).half(1).half(0).word(u32::MAX).word(u32::MAX))
        }

        fn interface(self, link_type: u16, snap_bytes: u32) -> Self {
            self.block(1, |body| body.half(link_type).half(0).word(snap_bytes))
        }
    }

    fn pcap(is_big_endian: bool, magic: u32, link_type: u32) -> File {
        File::new(is_big_endian).word(magic).half(2).half(4).word(0).word(0).word(65_535).word(link_type)
    }

    fn frames(file: &[u8]) -> Result<Vec<Frame<'_>>, CaptureError> {
        Reader::new(file)?.collect()
    }

    fn refused(file: &[u8]) -> (usize, Fault) {
        let CaptureError { at, fault } = frames(file).unwrap_err();
        (at, fault)
    }

    #[test]
    fn frames_come_out_of_pcap_in_either_order_of_bytes() {
        for is_big_endian in [false, true] {
            for magic in [0xa1b2_c3d4, 0xa1b2_3c4d] {
                let file = pcap(is_big_endian, magic, 1).word(7).word(8).word(3).word(60).raw(b"abc");
                let file = file.word(9).word(9).word(2).word(2).raw(b"de");
                let expected = [
                    Frame { number: 1, at: 24, original_bytes: 60, bytes: b"abc" },
                    Frame { number: 2, at: 43, original_bytes: 2, bytes: b"de" },
                ];
                assert_eq!(frames(&file.bytes).unwrap(), expected);
            }
        }
        assert_eq!(frames(&pcap(false, 0xa1b2_c3d4, 1).bytes).unwrap(), []);
    }

    #[test]
    fn frames_come_out_of_every_block_of_pcapng() {
        for is_big_endian in [false, true] {
            let file = File::new(is_big_endian).section().interface(1, 5).interface(1, 0);
            let packet = |body: File, front: fn(File) -> File| front(body).word(0).word(0).word(3).word(60).raw(b"abc");
            let file = file.block(6, |body| packet(body, |body| body.word(1)));
            let file = file.block(0xbad, |body| body.raw(b"whatever"));
            let file = file.block(2, |body| packet(body, |body| body.half(1).half(9)));
            // As long as the first interface captures.
            let file = file.block(3, |body| body.word(9).raw(b"simpl"));
            // Another section knows no interface of the one before, and may have another order.
            let next = File { is_big_endian: !is_big_endian, ..file }.section().interface(1, 0);
            let next = next.block(3, |body| body.word(2).raw(b"ok"));
            let expected = [(1, 60, &b"abc"[..]), (2, 60, b"abc"), (3, 9, b"simpl"), (4, 2, b"ok")];
            let found: Vec<_> = frames(&next.bytes).unwrap();
            let in_short = |frame: &Frame<'_>| (frame.number, frame.original_bytes, frame.bytes.to_vec());
            let expected = expected.map(|(number, original, bytes)| (number, original, bytes.to_vec()));
            assert_eq!(found.iter().map(in_short).collect::<Vec<_>>(), expected);
            assert_eq!(found[0].at, 28 + 20 + 20);
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        assert_eq!(refused(b""), (0, Fault::Empty));
        assert_eq!(refused(b"\x0a\x0d"), (0, Fault::CutOff(2)));
        assert_eq!(refused(b"GIF89a"), (0, Fault::Unknown));
        assert_eq!(refused(&pcap(false, 0xa1b2_c3d4, 113).bytes), (20, Fault::LinkType(113)));
        assert_eq!(refused(&pcap(true, 0xa1b2_c3d4, 0x2400_0001).bytes), (20, Fault::Fcs));
        assert!(frames(&pcap(true, 0xa1b2_c3d4, 0x2000_0001).bytes).is_ok(), "a length that is not there");
        assert_eq!(refused(&pcap(false, 0xa1b2_c3d4, 1).bytes[..20]), (0, Fault::CutOff(4)));
        let mut old = pcap(false, 0xa1b2_c3d4, 1).bytes;
        old[6] = 3;
        assert_eq!(refused(&old), (4, Fault::Version(2, 3)));
        let file = pcap(false, 0xa1b2_c3d4, 1).word(0).word(0).word(8).word(8).raw(b"abc");
        assert_eq!(refused(&file.bytes), (40, Fault::CutOff(5)));
        assert_eq!(refused(&file.bytes[..30]), (24, Fault::CutOff(10)));
        let endless = pcap(false, 0xa1b2_c3d4, 1).word(0).word(0).word(u32::MAX).word(8);
        assert_eq!(refused(&endless.bytes), (40, Fault::CutOff(u32::MAX as usize)));
    }

    #[test]
    fn blocks_that_cannot_be_are_refused_with_their_place() {
        let section = || File::new(false).section();
        let with = |kind: u32, body: fn(File) -> File| refused(&section().interface(1, 0).block(kind, body).bytes);
        assert_eq!(refused(&section().interface(105, 0).bytes), (36, Fault::LinkType(105)));
        assert_eq!(refused(&section().word(7).word(8).word(8).bytes), (32, Fault::BlockLength(8)));
        assert_eq!(refused(&section().word(7).word(14).word(14).half(0).bytes), (32, Fault::BlockLength(14)));
        assert_eq!(refused(&section().word(7).word(12).word(16).bytes), (32, Fault::BlockLength(12)));
        assert_eq!(refused(&section().word(7).word(16).word(0).bytes), (28, Fault::CutOff(4)));
        assert_eq!(refused(&section().block(1, |body| body.half(1)).bytes), (32, Fault::BlockLength(16)));
        assert_eq!(refused(&section().block(3, |body| body.word(1).raw(b"x")).bytes), (28, Fault::Interface(0)));
        assert_eq!(with(6, |body| body.word(1).word(0).word(0).word(0).word(0)), (48, Fault::Interface(1)));
        assert_eq!(
            with(6, |body| body.word(0).word(0).word(0).word(5).word(9).raw(b"abcd")),
            (56, Fault::FrameLength(5))
        );
        assert_eq!(with(6, |body| body.word(0).word(0)), (52, Fault::BlockLength(20)));
        assert_eq!(with(3, |body| body.word(6).raw(b"abcd")), (56, Fault::FrameLength(6)));
        let fcs = section()
            .block(1, |body| body.half(1).half(0).word(0).half(2).half(1).raw(b"e\0\0\0").half(13).half(1).raw(&[4]));
        assert_eq!(refused(&fcs.bytes), (52, Fault::Fcs));
        let version =
            File::new(false).block(0x0a0d_0d0a, |body| body.word(0x1a2b_3c4d).half(2).half(0).word(0).word(0));
        assert_eq!(refused(&version.bytes), (12, Fault::Version(2, 0)));
        let order = File::new(false).block(0x0a0d_0d0a, |body| body.word(0x1a2b_3c4e).half(1).half(0).word(0).word(0));
        assert_eq!(refused(&order.bytes), (8, Fault::Unknown));
        let mut reader = section().word(7).word(8).word(8).bytes;
        reader.extend(section().bytes);
        assert_eq!(Reader::new(&reader).unwrap().count(), 1, "nothing after an error");
    }
}
