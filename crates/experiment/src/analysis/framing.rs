//! How much of a link's rate can be payload: the arithmetic behind every efficiency (VL2 5.1).
//!
//! The paper counts two full-size segments and their acknowledgement: 3154 bytes on the link, 2920 of them payload.

/// Ethernet header, frame check sequence, preamble with start delimiter, and inter-frame gap.
const ETHERNET_BYTES: f64 = (14 + 4 + 8 + 12) as f64;
/// IPv4 and TCP header, both without options.
const IPV4_TCP_BYTES: f64 = (20 + 20) as f64;
/// Payload of a full-size segment at an MTU of 1500 bytes.
const SEGMENT_PAYLOAD_BYTES: f64 = 1460.0;
/// VL2's two outer IPv4 headers.
pub const VL2_HEADERS_BYTES: f64 = (20 + 20) as f64;
/// Segments that the paper counts for one acknowledgement: every second one, as RFC 1122 asks.
pub const PAPER_SEGMENTS_PER_ACK: f64 = 2.0;

/// Share of a full-duplex link's rate that is payload when every host sends and receives at once, so that each
/// direction carries data and the acknowledgements of the other; `extra_bytes` are encapsulation headers per frame.
pub fn payload_ratio(segments_per_ack: f64, extra_bytes: f64) -> f64 {
    let acknowledgement = ETHERNET_BYTES + IPV4_TCP_BYTES + extra_bytes;
    let segment = acknowledgement + SEGMENT_PAYLOAD_BYTES;
    segments_per_ack * SEGMENT_PAYLOAD_BYTES / (segments_per_ack * segment + acknowledgement)
}

/// The paper's denominator without its NIC limit: 2920/3154.
pub fn headers_only_ratio() -> f64 {
    payload_ratio(PAPER_SEGMENTS_PER_ACK, 0.0)
}

/// The most that an encapsulating fabric can reach of [`headers_only_ratio`].
pub fn encapsulation_bound(segments_per_ack: f64) -> f64 {
    payload_ratio(segments_per_ack, VL2_HEADERS_BYTES) / headers_only_ratio()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_frames_give_the_papers_ratio() {
        assert!((headers_only_ratio() - 2920.0 / 3154.0).abs() < 1e-12);
        assert!((payload_ratio(2.0, VL2_HEADERS_BYTES) - 2920.0 / 3274.0).abs() < 1e-12);
    }

    #[test]
    fn fewer_acknowledgements_raise_the_bound() {
        assert!((encapsulation_bound(2.0) - 0.963_347).abs() < 1e-6);
        assert!((encapsulation_bound(6.8) - 0.988_48).abs() < 1e-4);
    }
}
