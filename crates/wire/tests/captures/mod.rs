//! The reference frames of `tests/data/trill`.

use std::fs::File;
use std::path::Path;

use pcap_file::pcap::PcapReader;

/// Every frame of a capture.
pub fn frames(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/trill").join(name).with_extension("pcap");
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = PcapReader::new(file).unwrap();
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        frames.push(packet.unwrap().data.into_owned());
    }
    frames
}
