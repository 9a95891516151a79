//! The life of one flow in lines that a person can read.

use super::part::Part;
use crate::network::Sent;
use crate::observer::TraceLine;
use crate::packet::{Flags, Packet};
use crate::routes::Hop;
use crate::routes::walk::sender_of;
use crate::tcp::{Ack, Expiry};

/// What is said about the end of a flow.
pub(super) fn end_text(complete: bool) -> String {
    if complete { "all acknowledged".to_owned() } else { "given up: no answer to the SYN".to_owned() }
}

/// What the observer is told.
#[derive(Debug)]
pub(super) enum Shown {
    Line(TraceLine),
    /// When the frame was on the captured link, and its bytes.
    Packet(u64, Vec<u8>),
}

impl Part<'_> {
    #[cold]
    pub(super) fn trace(&mut self, text: String) {
        self.shown.push(Shown::Line(TraceLine { time_ps: self.network.now_ps, text }));
    }

    /// A packet was put on a link, or not.
    #[cold]
    pub(super) fn trace_hop(&mut self, hop: Hop, packet: Packet, sent: Sent) {
        let (link, node) = sender_of(&self.job.fabric, hop.port());
        let name = |node| self.job.fabric.node(node).name.as_str();
        let far = self.job.fabric.link(link).far_end(node).map_or("", |end| name(end.node));
        let queue_bytes = self.network.backlog_bytes(hop.port());
        let what = match (packet.flags().has(Flags::ACK), packet.flags().has(Flags::SYN)) {
            (false, true) => "SYN".to_owned(),
            (true, true) => "SYN-ACK".to_owned(),
            (false, false) => format!("segment {}", packet.sequence()),
            (true, false) => format!("ACK {}", self.acknowledged_by(&packet)),
        };
        let fate = match sent {
            Sent::Queued => format!("queue {queue_bytes} B"),
            Sent::Refused => format!("dropped: buffer full, queue {queue_bytes} B"),
            Sent::Lost => "lost: link down".to_owned(),
        };
        let text = format!("{what} {} -> {far}, {fate}", name(node));
        self.trace(text);
    }

    /// The sender has looked at an acknowledgement.
    #[cold]
    pub(super) fn trace_ack(&mut self, place: u32, ack: &Ack) {
        let sender = &self.senders[place as usize].sender;
        let ssthresh = sender.ssthresh().map_or("none".to_owned(), |segments| segments.to_string());
        let srtt_us = sender.srtt().unwrap_or(0) / 1_000_000;
        let text = format!(
            "sender {:?}: ACK {}{}, window {}, threshold {ssthresh}, in flight {}, srtt {srtt_us} us",
            sender.state(),
            ack.cumulative,
            blocks_text(ack),
            sender.cwnd(),
            sender.in_flight(),
        );
        self.trace(text);
    }

    /// The timer of the sender ran out.
    #[cold]
    pub(super) fn trace_timer(&mut self, place: u32, expiry: Expiry) {
        let sender = &self.senders[place as usize].sender;
        let text = format!("sender {:?}: timer {expiry:?}, window {}", sender.state(), sender.cwnd());
        self.trace(text);
    }

    /// The next segment that an acknowledgement under way asks for.
    pub(super) fn acknowledged_by(&self, packet: &Packet) -> u32 {
        if packet.flags().has(Flags::SACK) {
            self.long_acks.look(packet.sequence()).cumulative
        } else {
            packet.sequence()
        }
    }
}

fn blocks_text(ack: &Ack) -> String {
    let blocks = ack.sack.iter().flat_map(|blocks| blocks.ranges).filter(|(first, end)| first < end);
    blocks.map(|(first, end)| format!(" [{first}, {end})")).collect()
}
