//! A flow that is under way: both ends of its connection, its routes, and what the network still holds of it.

use crate::job::PacketSizes;
use crate::tcp::{self, Receiver, Sender};

/// Route of a flow that cannot reach its receiver at the moment.
pub(super) const NO_ROUTE: u32 = u32::MAX;
/// No timer is set.
pub(super) const NEVER: u64 = u64::MAX;

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From sender to receiver.
    Data = 0,
    /// Back.
    Ack = 1,
}

impl Direction {
    pub(super) const BOTH: [Self; 2] = [Self::Data, Self::Ack];
}

/// How far a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its SYN is not answered yet.
    Opening,
    Open,
    /// No connection: datagrams at a steady rate.
    Datagrams,
    /// Everything is acknowledged, or the connection has failed.
    Ended,
}

/// State of one flow.
#[derive(Debug)]
pub(super) struct FlowState {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// Places of its routes, by [`Direction`].
    pub(super) routes: [u32; 2],
    /// Segments in all; `u32::MAX` for a flow without an end.
    pub(super) segments: u32,
    /// Length of the last segment's packet.
    pub(super) last_ip_bytes: u16,
    pub(super) phase: Phase,
    /// It stands in the row of its host.
    pub(super) waiting: bool,
    pub(super) traced: bool,
    /// Packets of it that are under way.
    pub(super) in_flight: u32,
    /// When the timers of sender and receiver are due.
    pub(super) sender_timer_ps: u64,
    pub(super) receiver_timer_ps: u64,
    /// Numbers of its servers.
    pub(super) from: u32,
    pub(super) to: u32,
    /// Its place in the outcome.
    pub(super) number: u32,
    /// Segments that its source lets it send.
    pub(super) granted: u32,
}

/// Segments of a flow of so many bytes, and the payload of the last.
pub(super) fn segments_of(bytes: u64, sizes: &PacketSizes) -> (u32, u32) {
    let segment = u64::from(sizes.segment_bytes);
    match bytes {
        0 => (u32::MAX, sizes.segment_bytes),
        _ => {
            let segments = bytes.div_ceil(segment);
            let last = bytes - (segments - 1) * segment;
            (u32::try_from(segments).unwrap_or(u32::MAX), last as u32)
        }
    }
}

impl FlowState {
    /// Payload of so many segments from the first on.
    pub(super) fn payload_bytes(&self, segments: u32, sizes: &PacketSizes) -> u64 {
        let full = u64::from(segments) * u64::from(sizes.segment_bytes);
        if segments < self.segments {
            return full;
        }
        let short = sizes.segment_bytes + sizes.header_bytes - u32::from(self.last_ip_bytes);
        full - u64::from(short)
    }

    /// Reads what an arrival needs of it.
    #[inline]
    pub(super) fn read(&self) -> u64 {
        let sender =
            u64::from(self.sender.cwnd()) ^ self.sender.deadline().unwrap_or(0) ^ self.sender.srtt().unwrap_or(0);
        sender ^ u64::from(self.receiver.delivered() ^ self.in_flight)
    }

    /// Whether nothing of it is left anywhere, so that its place may be given to another.
    pub(super) fn is_gone(&self) -> bool {
        self.phase == Phase::Ended && self.in_flight == 0 && !self.waiting
    }
}

/// Acknowledgements with blocks, which are too long for a packet.
#[derive(Debug, Default)]
pub(super) struct LongAcks {
    acks: Vec<tcp::Ack>,
    free: Vec<u32>,
}

impl LongAcks {
    /// Keeps one and says where.
    pub(super) fn put(&mut self, ack: tcp::Ack) -> u32 {
        if let Some(place) = self.free.pop() {
            self.acks[place as usize] = ack;
            return place;
        }
        self.acks.push(ack);
        self.acks.len() as u32 - 1
    }

    /// Gives one back; its place is free again.
    pub(super) fn take(&mut self, place: u32) -> tcp::Ack {
        self.free.push(place);
        self.acks[place as usize]
    }

    /// One that is kept.
    pub(super) fn look(&self, place: u32) -> &tcp::Ack {
        &self.acks[place as usize]
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.acks.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_cut_into_segments_and_the_last_is_what_is_left() {
        let sizes = PacketSizes::bare();
        assert_eq!(segments_of(14_600_000, &sizes), (10_000, 1_460));
        assert_eq!(segments_of(14_600_001, &sizes), (10_001, 1));
        assert_eq!(segments_of(1, &sizes), (1, 1));
        assert_eq!(segments_of(0, &sizes), (u32::MAX, 1_460));
    }

    #[test]
    fn long_acks_reuse_their_places() {
        let mut acks = LongAcks::default();
        let ack = |cumulative| tcp::Ack { cumulative, ece: false, sack: None };
        let (first, second) = (acks.put(ack(1)), acks.put(ack(2)));
        assert_eq!(acks.take(first).cumulative, 1);
        assert_eq!(acks.put(ack(3)), first);
        assert_eq!((acks.take(second).cumulative, acks.take(first).cumulative, acks.len()), (2, 3, 0));
    }
}
