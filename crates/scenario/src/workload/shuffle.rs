//! How much to send so that a shuffle would take a given time on an ideal network.

use super::{WorkloadError, check_servers};
use crate::units::{BitsPerSec, Bytes, Nanos};

/// The share of a link's layer-1 rate that TCP payload can have at most, as (payload, wire) bytes (VL2 5.1): of every two
/// full-size segments and their one acknowledgement, 2 x 1460 bytes are payload, and 2 x 1538 + 78 bytes are on the wire.
/// A segment has 40 bytes of TCP and IPv4 headers and 38 of Ethernet (14 header, 4 FCS, 20 preamble and gap); the
/// acknowledgement is those 78 bytes alone. The paper counts the acknowledgement into the sender's link because in a
/// shuffle every server receives as much as it sends.
pub const GOODPUT_OF_LINE_RATE: (u64, u64) = (2920, 3154);

/// Payload of each flow of a shuffle that would last `ideal` if every server sent at the best possible goodput, its link
/// rate x 2920 / 3154, from the first to the last moment: ideal x rate / 8 x 2920 / 3154 / (n - 1), rounded down.
pub fn shuffle_bytes_for(ideal: Nanos, server_rate: BitsPerSec, n_servers: u32) -> Result<Bytes, WorkloadError> {
    check_servers(n_servers)?;
    let (payload, wire) = GOODPUT_OF_LINE_RATE;
    let bit_nanos = u128::from(ideal.0) * u128::from(server_rate.0);
    // At most 2^64 x 2^64 / 10^9 x 2920: the division by a second comes first so that the product fits.
    let bits = bit_nanos / 1_000_000_000;
    let bytes = bits * u128::from(payload) / (8 * u128::from(wire) * u128::from(n_servers - 1));
    match u64::try_from(bytes).unwrap_or(u64::MAX) {
        0 => Err(WorkloadError::ZeroBytes),
        bytes => Ok(Bytes(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_counts_two_segments_and_one_acknowledgement() {
        let ethernet = 14 + 4 + 20;
        let segment = 1500 + ethernet;
        let acknowledgement = 40 + ethernet;
        assert_eq!(GOODPUT_OF_LINE_RATE, (2 * 1460, 2 * segment + acknowledgement));
    }

    #[test]
    fn the_papers_shuffle_would_ideally_take_320_seconds() {
        let bytes = shuffle_bytes_for(Nanos(319_700_000_000), BitsPerSec(1_000_000_000), 75).unwrap();
        assert_eq!(bytes.0 / 1_000_000, 499, "{bytes}");
    }

    #[test]
    fn sixty_seconds_at_20_mbit_per_second_are_1_88_megabytes() {
        let bytes = shuffle_bytes_for(Nanos(60_000_000_000), BitsPerSec(20_000_000), 75).unwrap();
        assert_eq!(bytes, Bytes(60 * 2_500_000 * 2920 / (3154 * 74)));
        assert_eq!(bytes.0 / 10_000, 187);
    }

    #[test]
    fn extremes_neither_overflow_nor_vanish_silently() {
        assert!(shuffle_bytes_for(Nanos(u64::MAX), BitsPerSec(u64::MAX), 2).is_ok());
        assert_eq!(shuffle_bytes_for(Nanos(1), BitsPerSec(1), 2), Err(WorkloadError::ZeroBytes));
        let alone = shuffle_bytes_for(Nanos(1), BitsPerSec(1), 1);
        assert_eq!(alone, Err(WorkloadError::TooFewServers { servers: 1 }));
    }
}
