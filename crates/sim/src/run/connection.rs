//! TCP's way in and out of the network: connections open, packets arrive at hosts, timers run out, flows end. How flows
//! share a host's card is in `host`.

use super::flow::{Direction, Identity, NEVER, NO_ROUTE, Phase, listed_id, segments_of};
use super::part::Part;
use super::timers::Timer;
use super::trace;
use crate::job::Flow;
use crate::network::Sent;
use crate::packet::{Flags, Packet};
use crate::tcp::{Ack, AckDecision, Expiry, Sender, Transmit};
use crate::time::ps;

impl Part<'_> {
    /// Sets a timer for when the next flow of the list is due.
    pub(super) fn arm_next_start(&mut self) {
        if let Some(place) = self.to_start.last() {
            let start_ns = self.job.source.flows()[*place as usize].spec.start_ns;
            self.arm(ps(start_ns), Timer::Start);
        }
    }

    /// Starts every flow of the list whose time has come.
    pub(super) fn start_due(&mut self) {
        let flows = self.job.source.flows();
        while let Some(number) =
            self.to_start.pop_if(|place| ps(flows[*place as usize].spec.start_ns) <= self.network.now_ps)
        {
            let flow = flows[number as usize];
            let who = self.identity(&flow, number, listed_id(number));
            self.start(who, &flow, segments_of(flow.spec.bytes, &self.job.settings.sizes).0);
        }
        self.arm_next_start();
    }

    pub(super) fn identity(&self, flow: &Flow, number: u32, id: u64) -> Identity {
        let sizes = &self.job.settings.sizes;
        let (segments, last_bytes) = segments_of(flow.spec.bytes, sizes);
        Identity {
            from: flow.spec.from,
            to: flow.spec.to,
            number,
            id,
            segments,
            last_ip_bytes: (last_bytes + sizes.header_bytes) as u16,
            traced: self.job.watch.trace_flow == Some(number),
            is_stream: false,
        }
    }

    /// Opens the connection of a flow, of which so many segments may be sent at once.
    pub(super) fn start(&mut self, who: Identity, flow: &Flow, granted: u32) {
        let tcp = &self.job.settings.tcp;
        let place = self.open(Sender::new(tcp, granted), who, flow.through, granted);
        self.started += 1;
        self.senders[place as usize].sender.connect(self.network.now_ps, tcp);
        self.send_syn(place);
        self.arm_sender(place);
    }

    fn send_syn(&mut self, place: u32) {
        let bytes = self.job.settings.sizes.header_bytes as u16;
        self.send_data(place, 0, bytes, Flags::SYN);
    }

    /// A packet reached the receiver of its flow.
    #[inline(never)]
    pub(super) fn received(&mut self, packet: Packet) {
        let place = packet.flow();
        self.totals.delivered.add(packet.ip_bytes());
        let end = &mut self.receivers[place as usize];
        end.packets.arrives();
        if end.who.is_stream {
            let who = end.who;
            return self.datagram_received(who, packet.sequence());
        }
        if packet.flags().has(Flags::SYN) {
            let bytes = self.job.settings.sizes.header_bytes as u16;
            self.send_back(place, 0, bytes, Flags::ACK.with(Flags::SYN));
        } else {
            self.data_received(packet);
        }
        if self.receivers[place as usize].packets.sent_to_it.is_some() {
            self.receiver_may_go(place);
        }
    }

    #[inline(always)]
    fn data_received(&mut self, packet: Packet) {
        let place = packet.flow();
        let marked = packet.flags().has(Flags::CE);
        self.totals.marked += u64::from(marked);
        let end = &mut self.receivers[place as usize];
        let before = end.receiver.delivered();
        let decision = end.receiver.on_data(self.network.now_ps, packet.sequence(), marked, &self.job.settings.tcp);
        let is_complete = self.delivered(place, before);
        match decision {
            // The last segment carries the FIN, which is acknowledged at once.
            AckDecision::Delay(due_ps) if !is_complete => return self.arm_receiver(place, due_ps),
            AckDecision::NowAfter { cumulative, ece } => self.send(place, Ack { cumulative, ece, sack: None }),
            AckDecision::Now | AckDecision::Delay(_) => {}
        }
        self.send_ack(place);
    }

    /// Counts what has reached the application since it had `before` segments; whether that completes the flow.
    #[inline]
    fn delivered(&mut self, place: u32, before: u32) -> bool {
        let end = &self.receivers[place as usize];
        let (who, after, sizes) = (end.who, end.receiver.delivered(), &self.job.settings.sizes);
        if after == before {
            return false;
        }
        self.totals.received_bytes += who.payload_bytes(after, sizes) - who.payload_bytes(before, sizes);
        if after < who.segments {
            return false;
        }
        self.tell_completed(who);
        true
    }

    #[inline(always)]
    fn send_ack(&mut self, place: u32) {
        let ack = self.receivers[place as usize].receiver.ack();
        self.send(place, ack);
    }

    #[inline(always)]
    fn send(&mut self, place: u32, ack: Ack) {
        let flags = Flags::ACK.with_if(ack.ece, Flags::ECE);
        let bytes = self.job.settings.sizes.header_bytes as u16;
        let (sequence, flags) = match ack.sack {
            None => (ack.cumulative, flags),
            Some(_) => (self.long_acks.put(ack), flags.with(Flags::SACK)),
        };
        self.send_back(place, sequence, bytes, flags);
    }

    fn arm_receiver(&mut self, place: u32, due_ps: u64) {
        let end = &mut self.receivers[place as usize];
        if due_ps < end.timer_ps {
            end.timer_ps = due_ps;
            let timer = Timer::Receiver(place, end.who.id);
            self.arm(due_ps, timer);
        }
    }

    /// A delayed acknowledgement may be due.
    pub(super) fn receiver_timer_ends(&mut self, place: u32, flow: u64) {
        let now_ps = self.network.now_ps;
        let end = &mut self.receivers[place as usize];
        if end.timer_ps != now_ps || end.who.id != flow || end.is_gone {
            return;
        }
        end.timer_ps = NEVER;
        match end.receiver.deadline() {
            Some(due_ps) if due_ps <= now_ps => self.send_ack(place),
            Some(due_ps) => self.arm_receiver(place, due_ps),
            None => {}
        }
    }

    /// A packet reached the sender of its flow.
    #[inline(never)]
    pub(super) fn acknowledged(&mut self, packet: Packet) {
        let place = packet.flow();
        self.totals.delivered.add(packet.ip_bytes());
        let ack = if packet.flags().has(Flags::SACK) {
            self.long_acks.take(packet.sequence())
        } else {
            Ack { cumulative: packet.sequence(), ece: packet.flags().has(Flags::ECE), sack: None }
        };
        let (now_ps, tcp) = (self.network.now_ps, &self.job.settings.tcp);
        let end = &mut self.senders[place as usize];
        end.packets.arrives();
        if end.phase == Phase::Ended {
            return self.sender_may_go(place);
        }
        if packet.flags().has(Flags::SYN) {
            if end.phase == Phase::Open {
                return;
            }
            end.phase = Phase::Open;
            end.sender.opened(now_ps, tcp);
            self.mix_flow_opened(place);
        } else {
            end.sender.on_ack(now_ps, &ack, tcp);
        }
        let end = &self.senders[place as usize];
        if end.who.traced {
            self.trace_ack(place, &ack);
        }
        let end = &self.senders[place as usize];
        if end.sender.is_done() && end.granted == end.who.segments {
            return self.end(place, true);
        }
        self.pump(place);
    }

    /// The timer of a sender may have run out.
    pub(super) fn sender_timer_ends(&mut self, place: u32, flow: u64) {
        let now_ps = self.network.now_ps;
        let end = &mut self.senders[place as usize];
        if end.timer_ps != now_ps || end.who.id != flow {
            return;
        }
        end.timer_ps = NEVER;
        if end.phase == Phase::Ended {
            return;
        }
        let expiry = end.sender.on_deadline(now_ps, &self.job.settings.tcp);
        if end.who.traced && expiry != Expiry::Stale {
            self.trace_timer(place, expiry);
        }
        match expiry {
            Expiry::Stale => self.arm_sender(place),
            Expiry::Poll => self.pump(place),
            Expiry::ResendSyn => {
                self.send_syn(place);
                self.arm_sender(place);
            }
            Expiry::Failed => self.end(place, false),
        }
    }

    /// Sends the next segment if TCP has one; whether it had.
    #[inline(always)]
    pub(super) fn send_next(&mut self, place: u32) -> bool {
        let end = &mut self.senders[place as usize];
        let Some(Transmit { seq, retransmission }) = end.sender.poll(self.network.now_ps, &self.job.settings.tcp)
        else {
            return false;
        };
        if retransmission {
            self.totals.retransmits += 1;
            let sent_bytes = u64::from(seq) * u64::from(self.job.settings.sizes.segment_bytes);
            self.spread.repeats(place, sent_bytes, self.network.now_ps);
        }
        let bytes = if seq + 1 == end.who.segments {
            end.who.last_ip_bytes
        } else {
            (self.job.settings.sizes.segment_bytes + self.job.settings.sizes.header_bytes) as u16
        };
        self.send_data(place, seq, bytes, self.data_flags);
        true
    }

    /// Sets the sender's timer no later than its deadline.
    #[inline]
    pub(super) fn arm_sender(&mut self, place: u32) {
        let end = &mut self.senders[place as usize];
        if let Some(due_ps) = end.sender.deadline()
            && due_ps < end.timer_ps
        {
            end.timer_ps = due_ps;
            let timer = Timer::Sender(place, end.who.id);
            self.arm(due_ps, timer);
        }
    }

    /// A host sends a packet of a flow's data.
    #[inline(always)]
    pub(super) fn send_data(&mut self, place: u32, sequence: u32, ip_bytes: u16, flags: Flags) {
        self.totals.sent.add(ip_bytes);
        let end = &mut self.senders[place as usize];
        end.packets.leaves();
        let (flags, receiver, to) = (flags.with_if(end.who.traced, Flags::TRACED), end.receiver, end.who.to);
        let route = if self.spread.is_fixed() { end.route } else { self.respread(Direction::Data, place) };
        self.launch(Packet::new(receiver, sequence, route, ip_bytes, flags), to);
    }

    /// A host sends a packet back to where a flow's data comes from.
    #[inline(always)]
    fn send_back(&mut self, place: u32, sequence: u32, ip_bytes: u16, flags: Flags) {
        self.totals.sent.add(ip_bytes);
        let end = &mut self.receivers[place as usize];
        end.packets.leaves();
        let (flags, sender, to) = (flags.with_if(end.who.traced, Flags::TRACED), end.sender, end.who.from);
        let route = if self.spread.is_fixed() { end.route } else { self.respread(Direction::Ack, place) };
        self.launch(Packet::new(sender, sequence, route, ip_bytes, flags), to);
    }

    #[inline(always)]
    fn launch(&mut self, packet: Packet, to: u32) {
        if packet.route() == NO_ROUTE {
            return self.dropped(packet, Sent::Lost, Some(self.cut.part_of_host(to)));
        }
        self.forward(self.network.routes.hop(packet.route()), packet);
    }

    /// Everything is acknowledged, or the connection has failed.
    fn end(&mut self, place: u32, complete: bool) {
        let now_ps = self.network.now_ps;
        let end = &mut self.senders[place as usize];
        end.phase = Phase::Ended;
        let who = end.who;
        let outcome = &mut self.outcomes[who.number as usize];
        outcome.retransmits = end.sender.retransmits();
        outcome.acknowledged_ps = complete.then_some(now_ps);
        self.totals.timeouts += u64::from(end.sender.timeouts());
        self.totals.flows_done += u64::from(complete);
        if who.traced {
            self.trace(trace::end_text(complete));
        }
        self.tell_ended(place);
        self.count_end();
        if self.mix.is_some() {
            self.begin_next_of_mix(who.from);
        }
    }
}
