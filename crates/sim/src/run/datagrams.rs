//! Datagrams at steady rates, whatever becomes of them: an application without congestion control, and the limit of its
//! host's agent.
//!
//! A datagram for which the network card has no room is lost at its source, as in a socket whose buffer is full.

use weft_scenario::id::NodeId;
use weft_scenario::workload::FlowSpec;
use weft_scenario::workload::services::DatagramLimit;

use super::flow::{Direction, Identity};
use super::part::Part;
use super::setup;
use super::spread::Spreader;
use super::timers::Timer;
use crate::job::{DatagramFlow, Flow, Job};
use crate::outcome::DatagramOutcome;
use crate::packet::Flags;
use crate::tcp::Sender;
use crate::time::{PS_PER_S, ps};

/// Headers of IPv4 and UDP around a datagram.
pub const DATAGRAM_HEADER_BYTES: u32 = 28;
/// What the limit counts around an IP packet: Ethernet's header.
const FRAME_HEADER_BYTES: u32 = 14;

/// The streams of a run.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    streams: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    flow: DatagramFlow,
    /// Its sender's place.
    place: u32,
    gap_ps: u64,
    /// Number of the next datagram, which starts again at 0 after 2^32.
    next: u32,
    outcome: DatagramOutcome,
    bucket: Option<Bucket>,
}

impl Datagrams {
    /// The streams of a job, none of which has a place yet.
    pub(super) fn new(job: &Job) -> Self {
        Self { streams: job.datagrams.iter().map(|stream| Stream::new(*stream)).collect() }
    }

    /// Adds what has reached each server.
    pub(super) fn add_received_bytes(&self, by_server: &mut [u64]) {
        for stream in &self.streams {
            let flow = &stream.flow;
            by_server[flow.spec.to as usize] += stream.outcome.received * u64::from(flow.payload_bytes);
        }
    }

    /// What became of each stream as far as a part knows.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = DatagramOutcome> {
        self.streams.iter().map(|stream| stream.outcome)
    }
}

impl Stream {
    fn new(flow: DatagramFlow) -> Self {
        Self {
            flow,
            place: 0,
            gap_ps: bits_ps(flow.payload_bytes, flow.spec.rate.0),
            next: 0,
            outcome: DatagramOutcome::not_started(flow.spec),
            bucket: flow.spec.limit.map(Bucket::new),
        }
    }

    /// When the datagram of a number was due that arrives now. Numbers start again at 0 after 2^32, and none is under way for
    /// as long as that takes.
    fn due_ps(&self, number: u32, now_ps: u64) -> u64 {
        let start_ps = ps(self.flow.spec.start_ns);
        let due = now_ps.saturating_sub(start_ps) / self.gap_ps;
        let late = (due as u32).wrapping_sub(number);
        start_ps + (due - u64::from(late)) * self.gap_ps
    }
}

/// The nodes that each stream of a job passes while nothing has failed, from host to host; none where there is no way.
pub fn datagram_ways(job: &Job) -> Vec<Vec<NodeId>> {
    let servers: Vec<NodeId> = job.fabric.servers().collect();
    let mut router = setup::router(job);
    let mut spread = Spreader::new(job.settings.switching.load_balance);
    let mut way = |(place, stream): (u32, &DatagramFlow)| {
        let [from, to] = [stream.spec.from, stream.spec.to].map(|server| servers.get(server as usize).copied());
        let (from, to) = from.zip(to)?;
        spread.begin(Direction::Data, place, (job.settings.seed, flow_number(place).into()), None);
        let (salt, through) = spread.of(Direction::Data, place);
        let hops = router.explain(from, to, salt, through);
        let last = if hops.is_empty() { None } else { Some(to) };
        Some(hops.into_iter().map(|hop| hop.node).chain(last).collect())
    };
    (0..).zip(&job.datagrams).map(|stream| way(stream).unwrap_or_default()).collect()
}

/// The number among flows of a stream of this number, and the reverse. Hashes of streams do not repeat those of the flows.
fn flow_number(number: u32) -> u32 {
    u32::MAX - number
}

impl Part<'_> {
    /// Gives every stream from here routes, and a timer for when it begins.
    pub(super) fn begin_datagrams(&mut self) {
        for (number, stream) in (0..).zip(&self.job.datagrams) {
            let spec = &stream.spec;
            if self.cut.part_of_host(spec.from) != self.number {
                continue;
            }
            let flow = Flow::from(FlowSpec::bulk(spec.from, spec.to, 0, spec.start_ns));
            let who = self.identity(&flow, flow_number(number), flow_number(number).into());
            let sender = Sender::new(&self.job.settings.tcp, 0);
            let place = self.open(sender, Identity { is_stream: true, ..who }, None, 0);
            self.datagrams.streams[number as usize].place = place;
            self.arm(ps(spec.start_ns), Timer::Datagram(number));
        }
    }

    /// Sends a datagram if limit and card allow, and sets the timer of the next.
    pub(super) fn send_datagram(&mut self, number: u32) {
        let now_ps = self.network.now_ps;
        let stream = &mut self.datagrams.streams[number as usize];
        if now_ps >= ps(stream.flow.spec.end_ns) {
            return;
        }
        let ip_bytes = stream.flow.payload_bytes + DATAGRAM_HEADER_BYTES;
        let allowed = stream.bucket.as_mut().is_none_or(|bucket| bucket.allows(now_ps, ip_bytes + FRAME_HEADER_BYTES));
        let host = &self.hosts[stream.flow.spec.from as usize];
        let is_sent = allowed && host.has_room(&self.network.ports[host.nic], now_ps);
        let (place, datagram) = (stream.place, stream.next);
        stream.outcome.sent += u64::from(is_sent);
        stream.next = datagram.wrapping_add(1);
        let next_ps = now_ps.saturating_add(stream.gap_ps);
        if is_sent {
            self.send_data(place, datagram, ip_bytes as u16, Flags::default());
        }
        self.arm(next_ps, Timer::Datagram(number));
    }

    /// The datagram of this number of a stream has arrived.
    pub(super) fn datagram_received(&mut self, who: Identity, datagram: u32) {
        let number = flow_number(who.number);
        let stream = &mut self.datagrams.streams[number as usize];
        let delay_ps = self.network.now_ps - stream.due_ps(datagram, self.network.now_ps);
        stream.outcome.received += 1;
        stream.outcome.delay_sum_ps += u128::from(delay_ps);
        stream.outcome.delay_max_ps = stream.outcome.delay_max_ps.max(delay_ps);
        self.totals.received_bytes += u64::from(stream.flow.payload_bytes);
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
    use weft_scenario::workload::services::DatagramStream;

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

    #[test]
    fn a_datagram_is_found_by_its_number_also_once_numbers_begin_again() {
        let spec = DatagramStream {
            from: 0,
            to: 1,
            rate: BitsPerSec(8_000),
            start_ns: 5_000_000_000,
            end_ns: u64::MAX,
            limit: None,
        };
        let stream = Stream::new(DatagramFlow { spec, payload_bytes: 1_000 });
        assert_eq!(stream.gap_ps, PS_PER_S, "a thousand bytes a second");
        assert_eq!(stream.due_ps(0, 8 * PS_PER_S), 5 * PS_PER_S);
        assert_eq!(stream.due_ps(3, 8 * PS_PER_S), 8 * PS_PER_S, "it has just been sent");
        let fast = DatagramStream { rate: BitsPerSec(8_000_000_000_000), ..spec };
        let stream = Stream::new(DatagramFlow { spec: fast, payload_bytes: 1_000 });
        let at_ps = |datagram: u64| 5 * PS_PER_S + datagram * 1_000;
        assert_eq!(stream.due_ps(97, at_ps((1 << 32) + 98)), at_ps((1 << 32) + 97));
        assert_eq!(stream.due_ps(u32::MAX, at_ps((1 << 32) + 98)), at_ps((1 << 32) - 1));
    }
}
