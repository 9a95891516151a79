//! The size of a frame, and what may be one.

use serde::Serialize;
use weft_wire::ethernet;
use weft_wire::probe::PROBE_LEN;
use weft_wire::vlan::TAG_LEN;

use super::stream::{Headers, IpVersion};

/// What Ethernet sends around a frame without counting it: preamble, start delimiter and the gap (IEEE 802.3), bytes.
pub const LAYER1_EXTRA_BYTES: u32 = 20;
/// The frame check sequence, which the kernel never sees, bytes.
pub const FCS_BYTES: u32 = 4;

const LARGEST_BYTES: u32 = 9216;
const ETHERNET_HEADER_BYTES: u32 = ethernet::HEADER_LEN as u32;
const TAG_BYTES: u32 = TAG_LEN as u32;

/// The sizes of RFC 2544 section 9.1 above the smallest, with one that leaves room for the headers of overlays, bytes.
const USUAL_BYTES: [u32; 7] = [128, 256, 512, 1024, 1280, 1450, 1518];

/// The size below which frames with these headers have no room for the probe, with FCS, bytes: with IPv4 Ethernet's own least.
pub const fn smallest_bytes(headers: Headers) -> u32 {
    (headers.bytes() + PROBE_LEN) as u32 + FCS_BYTES
}

/// The sizes that are measured where nobody says which: the smallest and the usual ones, bytes.
pub fn usual_bytes(headers: Headers) -> Vec<u32> {
    [smallest_bytes(headers)].into_iter().chain(USUAL_BYTES).collect()
}

/// Size of a frame as testers count it: from the destination address to the FCS, 64 to 9216 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct FrameSize(u32);

impl FrameSize {
    /// A size that a port can send.
    ///
    /// # Errors
    /// One line for sizes that Ethernet, the port's MTU or the probe do not allow.
    pub fn new(bytes: u32, mtu_bytes: u32, headers: Headers) -> Result<Self, String> {
        let tag = if headers.tagged { TAG_BYTES } else { 0 };
        let smallest = smallest_bytes(headers);
        let largest = LARGEST_BYTES.min(mtu_bytes + ETHERNET_HEADER_BYTES + tag + FCS_BYTES);
        if bytes < smallest {
            let why = match (headers.ip, headers.tagged) {
                (IpVersion::V4, false) => "Ethernet's least, FCS included",
                (IpVersion::V4, true) => "64, and 4 for the VLAN tag",
                (IpVersion::V6, false) => "the headers of IPv6 and UDP, the probe and the FCS",
                (IpVersion::V6, true) => "the headers of IPv6 and UDP, the probe, the FCS and a VLAN tag",
            };
            return Err(format!("frame size {bytes} is below {smallest} bytes ({why}); choose a larger one"));
        }
        if bytes > largest {
            return Err(format!(
                "frame size {bytes} does not fit: the ports' MTU of {mtu_bytes} allows {largest} bytes with FCS; \
                 choose a smaller one or raise the MTU"
            ));
        }
        Ok(Self(bytes))
    }

    /// With FCS, bytes.
    pub fn bytes(self) -> u32 {
        self.0
    }

    /// As the kernel counts: without FCS, bytes.
    pub fn kernel_bytes(self) -> u32 {
        self.0 - FCS_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Headers = Headers { ip: IpVersion::V4, tagged: false };
    const TAGGED: Headers = Headers { tagged: true, ..PLAIN };

    fn size(bytes: u32) -> FrameSize {
        FrameSize::new(bytes, 1500, PLAIN).unwrap()
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let refused = |bytes, mtu, headers| FrameSize::new(bytes, mtu, headers).unwrap_err();
        assert!([64, 1518].iter().all(|bytes| FrameSize::new(*bytes, 1500, PLAIN).is_ok()));
        assert_eq!(size(1518).kernel_bytes(), 1514);
        assert!(refused(63, 1500, PLAIN).contains("below 64"));
        assert!(refused(64, 1500, TAGGED).contains("below 68"));
        assert!(refused(1519, 1500, PLAIN).contains("allows 1518"));
        assert!(FrameSize::new(1522, 1500, TAGGED).is_ok());
        assert!(refused(9217, 65_535, PLAIN).contains("allows 9216"));
        assert!(refused(0, 0, PLAIN).contains("below 64"));
    }

    #[test]
    fn ipv6_needs_twenty_bytes_more() {
        let ipv6 = Headers { ip: IpVersion::V6, tagged: false };
        let tagged = Headers { tagged: true, ..ipv6 };
        assert!(FrameSize::new(83, 1500, ipv6).unwrap_err().contains("below 84 bytes (the headers of IPv6"));
        assert!(FrameSize::new(87, 1500, tagged).unwrap_err().contains("below 88"));
        assert!(FrameSize::new(84, 1500, ipv6).is_ok() && FrameSize::new(88, 1500, tagged).is_ok());
        assert_eq!([PLAIN, TAGGED, ipv6, tagged].map(smallest_bytes), [64, 68, 84, 88]);
        assert_eq!(usual_bytes(PLAIN), [64, 128, 256, 512, 1024, 1280, 1450, 1518]);
        assert!(usual_bytes(tagged).iter().all(|bytes| FrameSize::new(*bytes, 1500, tagged).is_ok()));
    }
}
