//! The frames of a capture file that can be sent as they are.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use weft_testbed::tester::{Replayer, digest};
use weft_wire::ethernet;
use weft_wire::ethernet::ethertype::VLAN;
use weft_wire::pcap::{Frame, Reader};
use weft_wire::vlan::TAG_LEN;

use crate::tester::rate::FCS_BYTES;

/// Longest file, bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Most frames of a file.
const FRAMES_MAX: usize = Replayer::FRAMES_MAX;
/// Ethernet's least without FCS: what is shorter was captured before the card padded it.
const LEAST_BYTES: usize = 60;
/// EtherType of an outer tag (IEEE 802.1ad).
const SERVICE_VLAN: u16 = 0x88a8;

/// Frames in the order of their file, none of them cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded(pub(super) Vec<Vec<u8>>);

impl Recorded {
    /// Reads a pcap or pcapng file.
    ///
    /// # Errors
    /// One line with the file and the place, for what cannot be read, and frames that cannot be sent.
    pub fn open(path: &Path, mtu_bytes: u32) -> Result<Self, String> {
        let named = |why: String| format!("{}: {why}", path.display());
        let file = File::open(path).map_err(|error| named(error.to_string()))?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| named(error.to_string()))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(named(format!("more than {} MiB; cut it: editcap -r IN OUT 1-1000", FILE_BYTES_MAX >> 20)));
        }
        Self::of(&bytes, mtu_bytes).map_err(named)
    }

    /// The frames of a file's bytes.
    ///
    /// # Errors
    /// One line with the place.
    pub fn of(file: &[u8], mtu_bytes: u32) -> Result<Self, String> {
        let mut frames = Vec::new();
        for frame in Reader::new(file).map_err(|error| error.to_string())? {
            let frame = frame.map_err(|error| error.to_string())?;
            if frames.len() == FRAMES_MAX {
                return Err(format!("more than {FRAMES_MAX} frames; cut it: editcap -r IN OUT 1-{FRAMES_MAX}"));
            }
            let bytes = to_send(&frame, mtu_bytes);
            frames.push(bytes.map_err(|why| format!("frame {} (byte {}): {why}", frame.number, frame.at))?);
        }
        if frames.is_empty() { Err("there are no frames in it".to_owned()) } else { Ok(Self(frames)) }
    }

    /// How many there are; never none.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Mean length with FCS, bytes.
    pub fn mean_bytes(&self) -> f64 {
        let bytes: usize = self.0.iter().map(Vec::len).sum();
        bytes as f64 / self.count() as f64 + f64::from(FCS_BYTES)
    }

    /// Longest frame without FCS, bytes.
    pub(super) fn longest_bytes(&self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// By frame, its digest.
    pub(super) fn digests(&self) -> Vec<u64> {
        self.0.iter().map(|frame| digest(frame)).collect()
    }
}

/// A frame as it leaves.
fn to_send(frame: &Frame<'_>, mtu_bytes: u32) -> Result<Vec<u8>, String> {
    let Frame { bytes, original_bytes, .. } = *frame;
    if bytes.len() < original_bytes as usize {
        return Err(format!("only {} of its {original_bytes} bytes were captured; capture whole frames", bytes.len()));
    }
    if bytes.len() < ethernet::HEADER_LEN {
        return Err(format!("{} bytes are no Ethernet frame", bytes.len()));
    }
    let is_tagged = matches!(u16::from_be_bytes([bytes[12], bytes[13]]), VLAN | SERVICE_VLAN);
    let most = mtu_bytes as usize + ethernet::HEADER_LEN + if is_tagged { TAG_LEN } else { 0 };
    if bytes.len() > most {
        return Err(format!(
            "{} bytes, where the ports' MTU of {mtu_bytes} allows {most}: raise the MTU, or capture with offloads off \
             (ethtool -K IF tso off gso off gro off)",
            bytes.len()
        ));
    }
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().max(LEAST_BYTES), 0);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weft_wire::pcapng::Writer;

    use super::*;

    fn file(frames: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, "eth0").unwrap();
        for (original, frame) in frames {
            writer.write(Duration::ZERO, *original, frame).unwrap();
        }
        drop(writer);
        file
    }

    fn of(bytes: usize) -> (u32, Vec<u8>) {
        (bytes as u32, (0..bytes).map(|place| place as u8).collect())
    }

    #[test]
    fn frames_are_as_they_were_and_short_ones_are_padded() {
        let frames = Recorded::of(&file(&[of(1514), of(14), of(60)]), 1500).unwrap();
        assert_eq!(frames.0[0], of(1514).1);
        assert_eq!(frames.0[1], [of(14).1, vec![0; 46]].concat());
        assert_eq!(frames.0[2], of(60).1);
        assert_eq!((frames.count(), frames.longest_bytes()), (3, 1514));
        assert!((frames.mean_bytes() - (1634.0 / 3.0 + 4.0)).abs() < 1e-9);
        let digests = frames.digests();
        assert!(digests[0] != digests[1] && digests[1] != digests[2]);
    }

    #[test]
    fn frames_that_cannot_be_sent_are_refused_with_their_number() {
        let refused = |frames: &[(u32, Vec<u8>)]| Recorded::of(&file(frames), 1500).unwrap_err();
        assert_eq!(refused(&[]), "there are no frames in it");
        let cut = refused(&[of(60), (1514, of(96).1)]);
        assert!(cut.starts_with("frame 2 (byte ") && cut.contains("only 96 of its 1514 bytes"), "{cut}");
        assert!(refused(&[of(13)]).contains("13 bytes are no Ethernet frame"));
        assert!(refused(&[of(1515)]).contains("1515 bytes, where the ports' MTU of 1500 allows 1514"));
        let mut tagged = of(1518);
        tagged.1[12..14].copy_from_slice(&[0x81, 0]);
        assert!(Recorded::of(&file(std::slice::from_ref(&tagged)), 1500).is_ok());
        assert!(refused(&[(1519, [tagged.1, vec![0]].concat())]).contains("allows 1518"));
        let many = Recorded::of(&file(&vec![of(60); FRAMES_MAX]), 1500).unwrap();
        assert_eq!(many.count(), FRAMES_MAX);
        assert!(refused(&vec![of(60); FRAMES_MAX + 1]).contains("more than 16384 frames"));
        assert_eq!(Recorded::of(b"", 1500).unwrap_err(), "byte 0: the file is empty");
    }

    #[test]
    fn files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcap");
        assert!(Recorded::open(&path, 1500).unwrap_err().contains("a.pcap: No such file"));
        std::fs::write(&path, "GIF89a").unwrap();
        let why = Recorded::open(&path, 1500).unwrap_err();
        assert!(why.contains("a.pcap: byte 0: neither pcap nor pcapng"), "{why}");
        std::fs::File::create(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(Recorded::open(&path, 1500).unwrap_err().contains("more than 64 MiB"));
    }
}
