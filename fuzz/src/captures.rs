//! Any bytes as a capture file: refused at a place that exists, or frames that can be written and read again.

use std::time::Duration;

use weft_wire::pcap::{CaptureError, Reader};
use weft_wire::pcapng::Writer;

use crate::seeds::Seed;

/// Any bytes as a capture file.
///
/// # Panics
/// When what is refused has no place, or frames do not come back.
pub fn capture_file(bytes: &[u8]) {
    let refused = |error: CaptureError| {
        assert!(error.at <= bytes.len(), "{error}");
        assert!(!error.to_string().contains('\n'), "one line: {error}");
    };
    let mut reader = match Reader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return refused(error),
    };
    let mut frames = Vec::new();
    let mut behind = 0;
    while let Some(frame) = reader.next() {
        match frame {
            Ok(frame) => {
                assert!(frame.at >= behind && frame.at + frame.bytes.len() <= bytes.len(), "{frame:?}");
                behind = frame.at + frame.bytes.len();
                frames.push(frame);
                assert_eq!(frame.number, frames.len());
            }
            Err(error) => {
                refused(error);
                assert_eq!(reader.next(), None, "nothing after an error");
            }
        }
    }
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, "again").expect("memory takes it");
    for frame in &frames {
        writer.write(Duration::ZERO, frame.original_bytes, frame.bytes).expect("memory takes it");
    }
    drop(writer);
    let again: Vec<_> = Reader::new(&file).expect("ours").map(|frame| frame.expect("ours")).collect();
    assert_eq!(again.len(), frames.len());
    for (frame, again) in frames.iter().zip(again) {
        assert_eq!((again.original_bytes, again.bytes), (frame.original_bytes, frame.bytes));
    }
}

/// Files of both formats, and odd ones.
pub(crate) fn seeds() -> Vec<Seed> {
    let file = |name, bytes| Seed { target: "capture_file", name, bytes };
    let pcap = |magic: u32, link_type: u32, put: fn(u32) -> [u8; 4]| {
        let words = [magic, 0, 0, 0, 65_535, link_type, 1, 2, 3, 60];
        let mut bytes: Vec<u8> = words.into_iter().flat_map(put).collect();
        let (major, minor) = if put(1) == 1u32.to_le_bytes() { ([2, 0], [4, 0]) } else { ([0, 2], [0, 4]) };
        bytes[4..8].copy_from_slice(&[major, minor].concat());
        [&bytes[..], b"abc"].concat()
    };
    let little = pcap(0xa1b2_c3d4, 1, u32::to_le_bytes);
    let block = |kind: u32, words: &[u32], put: fn(u32) -> [u8; 4]| {
        let length = words.len() as u32 * 4 + 12;
        [&[kind, length][..], words, &[length]].concat().into_iter().flat_map(put).collect::<Vec<u8>>()
    };
    let pcapng = |put: fn(u32) -> [u8; 4], version: u32, link_type: u32| {
        let section = block(0x0a0d_0d0a, &[0x1a2b_3c4d, version, u32::MAX, u32::MAX], put);
        let packets = [
            block(6, &[0, 1, 2, 4, 9, 0xabcd], put),
            block(2, &[0, 1, 2, 3, 3, 0xabcd], put),
            block(3, &[4, 0xabcd], put),
            block(9, &[], put),
        ];
        [section, block(1, &[link_type, 0, 13 << 16 | 1, 0], put), packets.concat()].concat()
    };
    vec![
        file("empty", Vec::new()),
        file("pcap", little.clone()),
        file("pcap-big-endian", pcap(0xa1b2_3c4d, 1, u32::to_be_bytes)),
        file("pcap-cut", little[..little.len() - 1].to_vec()),
        file("pcap-fcs", pcap(0xa1b2_c3d4, 0x2400_0001, u32::to_le_bytes)),
        file("pcap-of-something-else", pcap(0xa1b2_c3d4, 113, u32::to_le_bytes)),
        file("pcapng", pcapng(u32::to_le_bytes, 1, 1)),
        file("pcapng-big-endian", pcapng(u32::to_be_bytes, 1 << 16, 1 << 16)),
        file("pcapng-cut", pcapng(u32::to_le_bytes, 1, 1)[..70].to_vec()),
        file(
            "pcapng-two-orders",
            [pcapng(u32::to_le_bytes, 1, 1), pcapng(u32::to_be_bytes, 1 << 16, 1 << 16)].concat(),
        ),
        file("pcapng-version", pcapng(u32::to_le_bytes, 2, 1)),
    ]
}
