//! Datagrams at steady rates, whatever becomes of them: an application without congestion control, and the limit of its
//! host's agent.
//!
//! A datagram for which the network card has no room is lost at its source, as in a socket whose buffer is full.

use weft_scenario::workload::FlowSpec;
use weft_scenario::workload::services::{DATAGRAM_PAYLOAD_BYTES, DatagramLimit, DatagramStream};

use super::Simulation;
use super::flow::{Direction, Phase};
use super::timers::Timer;
use crate::job::Flow;
use crate::packet::Flags;
use crate::time::{PS_PER_S, ps};

/// Headers of IPv4 and UDP.
const HEADER_BYTES: u32 = 28;
/// What the limit counts around an IP packet: Ethernet's header.
const FRAME_HEADER_BYTES: u32 = 14;
const IP_BYTES: u32 = DATAGRAM_PAYLOAD_BYTES + HEADER_BYTES;

/// The streams of a run.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    streams: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    spec: DatagramStream,
    /// Its place among the flows, so that it has routes.
    place: u32,
    received: u64,
    bucket: Option<Bucket>,
}

impl Datagrams {
    /// Payload that has reached each of so many servers.
    pub(super) fn received_bytes(&self, servers: usize) -> Vec<u64> {
        let mut bytes = vec![0; servers];
        for stream in &self.streams {
            bytes[stream.spec.to as usize] += stream.received * u64::from(DATAGRAM_PAYLOAD_BYTES);
        }
        bytes
    }
}

impl Simulation<'_> {
    /// Gives every stream routes, and a timer for when it begins.
    pub(super) fn begin_datagrams(&mut self) {
        for (number, spec) in (0..).zip(&self.job.datagrams) {
            let flow = Flow::from(FlowSpec::bulk(spec.from, spec.to, 0, spec.start_ns));
            // Hashes of streams do not repeat those of the flows.
            let mut state = self.new_state(&flow, u32::MAX - number, 0);
            state.phase = Phase::Datagrams;
            let place = self.settle(state, None);
            self.datagrams.streams.push(Stream {
                spec: *spec,
                place,
                received: 0,
                bucket: spec.limit.map(Bucket::new),
            });
            self.arm(ps(spec.start_ns), Timer::Datagram(number));
        }
    }

    /// Sends a datagram if limit and card allow, and sets the timer of the next.
    pub(super) fn send_datagram(&mut self, number: u32) {
        let now_ps = self.network.now_ps;
        let stream = &mut self.datagrams.streams[number as usize];
        let (spec, place) = (stream.spec, stream.place);
        if now_ps >= ps(spec.end_ns) {
            return;
        }
        let allowed = stream.bucket.as_mut().is_none_or(|bucket| bucket.allows(now_ps, IP_BYTES + FRAME_HEADER_BYTES));
        let host = &self.hosts[spec.from as usize];
        if allowed && host.has_room(&self.network.ports[host.nic as usize], now_ps) {
            self.inject(place, Direction::Data, number, IP_BYTES as u16, Flags::default());
        }
        let gap_ps = bits_ps(DATAGRAM_PAYLOAD_BYTES, spec.rate.0);
        self.arm(now_ps.saturating_add(gap_ps), Timer::Datagram(number));
    }

    /// A datagram of the stream of this number has arrived.
    pub(super) fn datagram_received(&mut self, number: u32) {
        self.datagrams.streams[number as usize].received += 1;
        self.totals.received_bytes += u64::from(DATAGRAM_PAYLOAD_BYTES);
    }
}

/// How long so many bytes take at a rate.
fn bits_ps(bytes: u32, bits_per_s: u64) -> u64 {
    let bit_ps = u128::from(bytes) * 8 * u128::from(PS_PER_S);
    u64::try_from(bit_ps / u128::from(bits_per_s.max(1))).unwrap_or(u64::MAX).max(1)
}

/// The agent's token bucket.
#[derive(Debug)]
struct Bucket {
    bits_per_s: u64,
    burst_ps: u64,
    /// When everything that was let out would have been sent at the rate.
    paid_until_ps: u64,
}

impl Bucket {
    fn new(limit: DatagramLimit) -> Self {
        let burst_bytes = u32::try_from(limit.burst.0).unwrap_or(u32::MAX);
        Self { bits_per_s: limit.rate.0, burst_ps: bits_ps(burst_bytes, limit.rate.0), paid_until_ps: 0 }
    }

    fn allows(&mut self, now_ps: u64, frame_bytes: u32) -> bool {
        let paid_ps = self.paid_until_ps.max(now_ps).saturating_add(bits_ps(frame_bytes, self.bits_per_s));
        let allowed = paid_ps - now_ps <= self.burst_ps;
        if allowed {
            self.paid_until_ps = paid_ps;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use weft_scenario::units::{BitsPerSec, Bytes};

    use super::*;

    #[test]
    fn a_bucket_lets_out_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::new(DatagramLimit { rate: BitsPerSec(8_000_000), burst: Bytes(3_000) });
        let at_ms = |ms: u64| ms * PS_PER_S / 1000;
        assert_eq!([0; 4].map(|_| bucket.allows(at_ms(5), 1000)), [true, true, true, false]);
        // A thousand bytes a millisecond.
        let allowed = (6..16).filter(|ms| (0..3).any(|_| bucket.allows(at_ms(*ms), 1000))).count();
        assert_eq!(allowed, 10);
        assert_eq!([0; 4].map(|_| bucket.allows(at_ms(1000), 1000)), [true, true, true, false]);
    }
}
