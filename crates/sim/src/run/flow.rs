//! The two ends of a flow, each where its host is, and what the network still holds for them. They know of each other only
//! what packets tell, and the numbers that are needed to know when a place is free again.

use crate::job::PacketSizes;
use crate::tcp::{self, Receiver, Sender};

/// Route of an end that cannot reach the other one at the moment.
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

/// How far a flow is, as its sender knows.
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

/// Who a flow is, the same at both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    /// Numbers of its servers.
    pub(super) from: u32,
    pub(super) to: u32,
    /// Its place among the outcomes of its sender's part.
    pub(super) number: u32,
    /// Its number in the whole network, see [`listed_id`] and [`mix_id`]. Chance and order depend on this alone.
    pub(super) id: u64,
    /// Segments in all; `u32::MAX` for a flow without an end.
    pub(super) segments: u32,
    /// Length of the last segment's packet.
    pub(super) last_ip_bytes: u16,
    pub(super) traced: bool,
    /// It has no connection.
    pub(super) is_stream: bool,
}

/// The number of the flow in this place of the list.
pub(super) fn listed_id(number: u32) -> u64 {
    number.into()
}

/// The number of a server's flow of the mix, of which it had so many before.
pub(super) fn mix_id(server: u32, before: u32) -> u64 {
    u64::from(server) << 32 | u64::from(before)
}

/// Packets of one end, modulo 2^32.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketCounts {
    /// Those that it sent.
    pub(super) sent: u32,
    /// Those for it that are no longer under way.
    pub(super) arrived: u32,
    /// Those that the other end sent in all, known once that sends no more.
    pub(super) sent_to_it: Option<u32>,
}

impl PacketCounts {
    /// Counts one more that was sent.
    pub(super) fn leaves(&mut self) {
        self.sent = self.sent.wrapping_add(1);
    }

    /// Counts one that has arrived, or was lost on its way.
    pub(super) fn arrives(&mut self) {
        self.arrived = self.arrived.wrapping_add(1);
    }

    /// Whether nothing for it is under way, nor ever will be.
    pub(super) fn has_all(&self) -> bool {
        self.sent_to_it == Some(self.arrived)
    }
}

/// What sends data.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct SenderEnd {
    pub(super) sender: Sender,
    pub(super) who: Identity,
    /// Place of the route of its data.
    pub(super) route: u32,
    pub(super) phase: Phase,
    /// It stands in the row of its host.
    pub(super) waiting: bool,
    /// Segments that its source lets it send.
    pub(super) granted: u32,
    /// When its timer is due.
    pub(super) timer_ps: u64,
    /// Place of the other end in its part.
    pub(super) receiver: u32,
    pub(super) packets: PacketCounts,
}

/// What data is sent to.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct ReceiverEnd {
    pub(super) receiver: Receiver,
    pub(super) who: Identity,
    /// Place of the route of its acknowledgements.
    pub(super) route: u32,
    /// When its timer is due.
    pub(super) timer_ps: u64,
    /// Place of the other end in its part.
    pub(super) sender: u32,
    pub(super) packets: PacketCounts,
    /// Nothing of it is left.
    pub(super) is_gone: bool,
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

impl Identity {
    /// Payload of so many segments from the first on.
    pub(super) fn payload_bytes(&self, segments: u32, sizes: &PacketSizes) -> u64 {
        let full = u64::from(segments) * u64::from(sizes.segment_bytes);
        if segments < self.segments {
            return full;
        }
        let short = sizes.segment_bytes + sizes.header_bytes - u32::from(self.last_ip_bytes);
        full - u64::from(short)
    }
}

impl SenderEnd {
    /// Whether nothing of the flow is left anywhere, so that its places may be given to another.
    pub(super) fn is_gone(&self) -> bool {
        self.phase == Phase::Ended && !self.waiting && self.packets.has_all()
    }
}

impl ReceiverEnd {
    /// Payload that the application got.
    pub(super) fn delivered_bytes(&self, sizes: &PacketSizes) -> u64 {
        self.who.payload_bytes(self.receiver.delivered(), sizes)
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
