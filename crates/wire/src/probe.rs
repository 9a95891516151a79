//! The probe that the test centre puts behind the UDP header of every frame it sends.
//!
//! 18 bytes, which is all that a 64-byte frame (with its FCS) leaves behind Ethernet, IPv4 and UDP. Integers are
//! big-endian:
//!
//! ```text
//!  0 magic (2)   2 stream (2)   4 sequence (4)
//!  8 seed (1)    9 time of sending, the low 40 bits of nanoseconds (5)   14 virtual delay, in units of 64 ns (2)
//! 16 Internet checksum of bytes 0 to 15 (2)
//! 18 pattern: little-endian words n * K, n from 1, K from the seed; what is left of the last word is cut off
//! ```
//!
//! * **seed** changes with every trial: a frame of an earlier trial that was held up somewhere is told from one of this.
//! * **virtual delay** is what emulated links would have held the frame; they do not, they only say so here. Every link
//!   adds whole units and takes the rest off the time of sending, so nothing is lost by rounding.
//! * The **checksum** makes the probe sum to nothing, as the complement of RFC 7820 (section 3) does: the checksum of the datagram
//!   around it is the same whatever the probe says, and links that write a new stamp leave it right.
//! * **pattern** is a Weyl sequence: every bit error shows, and checking costs an addition for each word.
//!
//! The generator and analyser of `weft-datapath` write and read the same bytes in C.

use crate::bytes::{put, u16_at, u32_at, u64_at};
use crate::checksum;
use crate::error::{ParseError, need};

/// Length of the probe without its pattern, bytes.
pub const PROBE_LEN: usize = 18;
/// The first two bytes.
pub const MAGIC: u16 = 0x5750;
/// Unit of the virtual delay, nanoseconds.
pub const DELAY_UNIT_NS: u64 = 64;
/// Times of sending are modulo this, nanoseconds: 18 minutes.
pub const TIME_MODULUS_NS: u64 = 1 << TIME_BITS;

const TIME_BITS: u32 = 40;
const CHECKSUM_AT: usize = 16;

/// The probe as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Probe {
    /// Which stream the frame belongs to.
    pub stream: u16,
    /// Number of the frame in its stream, from 0.
    pub sequence: u32,
    /// Which trial, and which pattern.
    pub seed: u8,
    /// When sending began, on the kernel's monotonic clock, modulo [`TIME_MODULUS_NS`]; higher bits are not sent.
    pub sent_ns: u64,
    /// Virtual delay in units of [`DELAY_UNIT_NS`].
    pub delay_units: u16,
}

impl Probe {
    /// Reads the probe at the start of a UDP payload.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] below 18 bytes, [`ParseError::Magic`] for what is no probe, [`ParseError::Checksum`] for
    /// one that was damaged on the way.
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        need(payload, PROBE_LEN)?;
        let magic = u16_at(payload, 0);
        if magic != MAGIC {
            return Err(ParseError::Magic(magic));
        }
        if checksum::of(&payload[..PROBE_LEN]) != 0 {
            return Err(ParseError::Checksum(u16_at(payload, CHECKSUM_AT)));
        }
        let word = u64_at(payload, 8);
        Ok(Self {
            stream: u16_at(payload, 2),
            sequence: u32_at(payload, 4),
            seed: payload[8],
            sent_ns: word >> 16 & (TIME_MODULUS_NS - 1),
            delay_units: word as u16,
        })
    }

    /// The probe's bytes, without pattern.
    pub fn to_bytes(self) -> [u8; PROBE_LEN] {
        let mut bytes = [0; PROBE_LEN];
        let time = self.sent_ns & (TIME_MODULUS_NS - 1);
        let word = u64::from(self.seed) << (TIME_BITS + 16) | time << 16 | u64::from(self.delay_units);
        put(&mut bytes, 0, &MAGIC.to_be_bytes());
        put(&mut bytes, 2, &self.stream.to_be_bytes());
        put(&mut bytes, 4, &self.sequence.to_be_bytes());
        put(&mut bytes, 8, &word.to_be_bytes());
        let checksum = checksum::of(&bytes[..CHECKSUM_AT]);
        put(&mut bytes, CHECKSUM_AT, &checksum.to_be_bytes());
        bytes
    }

    /// Writes probe and pattern over the whole of `payload`.
    ///
    /// # Panics
    /// When `payload` is shorter than [`PROBE_LEN`].
    pub fn fill(self, payload: &mut [u8]) {
        put(payload, 0, &self.to_bytes());
        fill_pattern(self.seed, &mut payload[PROBE_LEN..]);
    }

    /// One-way latency of a frame that was completely received at `now_ns` of the same clock: time on the way and
    /// virtual delay.
    pub fn latency_ns(self, now_ns: u64) -> u64 {
        let on_the_way = now_ns.wrapping_sub(self.sent_ns) & (TIME_MODULUS_NS - 1);
        on_the_way + u64::from(self.delay_units) * DELAY_UNIT_NS
    }

    /// The probe after a link that would have held the frame for `delay_ns`. `None` if that does not fit the field.
    #[must_use]
    pub fn delayed(self, delay_ns: u64) -> Option<Self> {
        let delay_units = u16::try_from(u64::from(self.delay_units) + delay_ns / DELAY_UNIT_NS).ok()?;
        let sent_ns = self.sent_ns.wrapping_sub(delay_ns % DELAY_UNIT_NS) & (TIME_MODULUS_NS - 1);
        Some(Self { delay_units, sent_ns, ..self })
    }
}

/// The word K that a seed's pattern counts by: odd, so that all words differ.
pub const fn pattern_step(seed: u8) -> u64 {
    0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(2 * seed as u64 + 1)
}

/// Writes a seed's pattern.
pub fn fill_pattern(seed: u8, bytes: &mut [u8]) {
    let mut word = 0u64;
    for chunk in bytes.chunks_mut(8) {
        word = word.wrapping_add(pattern_step(seed));
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

/// Whether `bytes` are a seed's pattern, from its beginning.
pub fn is_pattern(seed: u8, bytes: &[u8]) -> bool {
    let mut word = 0u64;
    bytes.chunks(8).all(|chunk| {
        word = word.wrapping_add(pattern_step(seed));
        *chunk == word.to_le_bytes()[..chunk.len()]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE: Probe =
        Probe { stream: 0x0102, sequence: 0x0304_0506, seed: 0x07, sent_ns: 0x08_090a_0b0c, delay_units: 0x0d0e };
    const BYTES: [u8; PROBE_LEN] = [
        0x57, 0x50, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, // magic, stream, sequence
        0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, // seed, time, virtual delay
        0x77, 0x77, // checksum: the words above sum to 0x8888, and this is the complement
    ];

    #[test]
    fn bytes_are_as_drawn() {
        assert_eq!(PROBE.to_bytes(), BYTES);
        assert_eq!(Probe::parse(&BYTES), Ok(PROBE));
    }

    #[test]
    fn what_is_no_whole_probe_is_refused() {
        let bytes = PROBE.to_bytes();
        for found_bytes in 0..PROBE_LEN {
            let error = Probe::parse(&bytes[..found_bytes]).unwrap_err();
            assert_eq!(error, ParseError::Truncated { needed_bytes: PROBE_LEN, found_bytes });
        }
        let mut other = bytes;
        other[0] ^= 1;
        assert!(matches!(Probe::parse(&other), Err(ParseError::Magic(0x5650))));
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        for bit in 16..PROBE_LEN * 8 {
            let mut bytes = PROBE.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(Probe::parse(&bytes), Err(ParseError::Checksum(_))), "bit {bit}");
        }
        let mut payload = [0; 200];
        PROBE.fill(&mut payload);
        assert!(is_pattern(PROBE.seed, &payload[PROBE_LEN..]));
        for bit in PROBE_LEN * 8..200 * 8 {
            payload[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_pattern(PROBE.seed, &payload[PROBE_LEN..]), "bit {bit}");
            payload[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(!is_pattern(PROBE.seed ^ 1, &payload[PROBE_LEN..]), "each trial has its own");
    }

    #[test]
    fn a_datagram_s_checksum_does_not_depend_on_the_probe() {
        let around = checksum::of(&[0x12, 0x34, 0x56]);
        let mut probe = PROBE;
        for step in 0..1000u64 {
            probe.sequence = probe.sequence.wrapping_mul(0x9e37_79b1).wrapping_add(1);
            probe.sent_ns = probe.sent_ns.wrapping_add(step << 20 | 0xffff) & (TIME_MODULUS_NS - 1);
            assert_eq!(checksum::extended(around, &probe.to_bytes()), around, "{probe:?}");
        }
    }

    #[test]
    fn latency_survives_the_wrap_of_the_clock() {
        let sent = Probe { sent_ns: TIME_MODULUS_NS - 5, delay_units: 2, ..PROBE };
        assert_eq!(Probe::parse(&sent.to_bytes()).unwrap().latency_ns(7 * TIME_MODULUS_NS + 10), 15 + 128);
    }

    #[test]
    fn virtual_delays_add_up_to_the_nanosecond() {
        let mut probe = Probe { sent_ns: 20, delay_units: 0, ..PROBE };
        for delay_ns in [1, 63, 64, 65, 1000, 4321] {
            probe = probe.delayed(delay_ns).unwrap();
        }
        assert_eq!(probe.latency_ns(100), 80 + 1 + 63 + 64 + 65 + 1000 + 4321);
        assert_eq!(probe.delayed(DELAY_UNIT_NS << 16), None);
    }
}
