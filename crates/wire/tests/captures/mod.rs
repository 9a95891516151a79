//! The reference frames of `tests/data/trill`, from pcap files (draft-ietf-opsawg-pcap).

use std::path::Path;

/// Of the file, and in front of each frame.
const FILE_HEADER_LEN: usize = 24;
const FRAME_HEADER_LEN: usize = 16;

/// Every frame of a capture.
pub fn frames(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/trill").join(name).with_extension("pcap");
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (header, mut rest) = bytes.split_at(FILE_HEADER_LEN);
    let word = match header[..4] {
        [0xd4, 0xc3, 0xb2, 0xa1] => u32::from_le_bytes,
        [0xa1, 0xb2, 0xc3, 0xd4] => u32::from_be_bytes,
        _ => panic!("{}: no pcap file with microseconds", path.display()),
    };
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let (header, body) = rest.split_at(FRAME_HEADER_LEN);
        let (frame, next) = body.split_at(word(header[8..12].try_into().unwrap()) as usize);
        frames.push(frame.to_vec());
        rest = next;
    }
    frames
}
