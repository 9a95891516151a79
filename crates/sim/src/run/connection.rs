//! TCP's way in and out of the network: connections open, packets arrive at hosts, timers run out, flows end. How flows
//! share a host's card is in `host`.

use weft_scenario::id::NodeId;

use super::flow::{Direction, FlowState, NEVER, NO_ROUTE, Phase, segments_of};
use super::timers::Timer;
use super::{Simulation, trace};
use crate::job::Flow;
use crate::network::Sent;
use crate::packet::{Flags, Packet};
use crate::tcp::{Ack, AckDecision, Expiry, Receiver, Sender, Transmit};
use crate::time::ps;

impl Simulation<'_> {
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
            self.start(&flow, number, segments_of(flow.spec.bytes, &self.job.settings.sizes).0);
        }
        self.arm_next_start();
    }

    /// Opens the connection of a flow, of which so many segments may be sent at once. Returns its place.
    pub(super) fn start(&mut self, flow: &Flow, number: u32, granted: u32) -> u32 {
        let state = self.new_state(flow, number, granted);
        let place = self.settle(state, flow.through);
        self.started += 1;
        self.flows[place as usize].sender.connect(self.network.now_ps, &self.job.settings.tcp);
        self.send_syn(place);
        self.arm_sender(place);
        place
    }

    pub(super) fn new_state(&self, flow: &Flow, number: u32, granted: u32) -> FlowState {
        let (tcp, sizes) = (&self.job.settings.tcp, &self.job.settings.sizes);
        let (segments, last_bytes) = segments_of(flow.spec.bytes, sizes);
        FlowState {
            sender: Sender::new(tcp, granted),
            receiver: Receiver::new(tcp),
            routes: [NO_ROUTE; 2],
            segments,
            last_ip_bytes: (last_bytes + sizes.header_bytes) as u16,
            phase: Phase::Opening,
            waiting: false,
            traced: self.job.watch.trace_flow == Some(number),
            in_flight: 0,
            sender_timer_ps: NEVER,
            receiver_timer_ps: NEVER,
            from: flow.spec.from,
            to: flow.spec.to,
            number,
            granted,
        }
    }

    /// Gives a flow a place and routes.
    pub(super) fn settle(&mut self, state: FlowState, through: Option<NodeId>) -> u32 {
        let place = self.free_places.pop().unwrap_or(self.flows.len() as u32);
        let number = state.number;
        if (place as usize) < self.flows.len() {
            self.flows[place as usize] = state;
        } else {
            self.flows.push(state);
        }
        self.spread.begin(place, self.job.settings.seed, number, through);
        self.choose_routes(place);
        place
    }

    fn send_syn(&mut self, place: u32) {
        let bytes = self.job.settings.sizes.header_bytes as u16;
        self.inject(place, Direction::Data, 0, bytes, Flags::SYN);
    }

    /// A packet reached the receiver of its flow.
    #[inline]
    pub(super) fn received(&mut self, packet: Packet) {
        let place = packet.flow();
        self.totals.delivered.add(packet.ip_bytes());
        let flow = &mut self.flows[place as usize];
        if flow.phase == Phase::Ended {
            return self.left_network(place);
        }
        flow.in_flight -= 1;
        if flow.phase == Phase::Datagrams {
            return self.datagram_received(place, packet.sequence());
        }
        if packet.flags().has(Flags::SYN) {
            let bytes = self.job.settings.sizes.header_bytes as u16;
            return self.inject(place, Direction::Ack, 0, bytes, Flags::ACK.with(Flags::SYN));
        }
        let marked = packet.flags().has(Flags::CE);
        self.totals.marked += u64::from(marked);
        let before = flow.receiver.delivered();
        let decision = flow.receiver.on_data(self.network.now_ps, packet.sequence(), marked, &self.job.settings.tcp);
        let is_complete = self.delivered(place, before);
        match decision {
            AckDecision::Now => self.send_ack(place),
            AckDecision::NowAfter { cumulative, ece } => {
                self.send(place, Ack { cumulative, ece, sack: None });
                self.send_ack(place);
            }
            // The last segment carries the FIN, which is acknowledged at once.
            AckDecision::Delay(_) if is_complete => self.send_ack(place),
            AckDecision::Delay(due_ps) => self.arm_receiver(place, due_ps),
        }
    }

    /// Counts what has reached the application since it had `before` segments; whether that completes the flow.
    #[inline]
    fn delivered(&mut self, place: u32, before: u32) -> bool {
        let flow = &self.flows[place as usize];
        let (after, sizes) = (flow.receiver.delivered(), &self.job.settings.sizes);
        if after == before {
            return false;
        }
        self.totals.received_bytes += flow.payload_bytes(after, sizes) - flow.payload_bytes(before, sizes);
        if after < flow.segments {
            return false;
        }
        let outcome = &mut self.outcomes[flow.number as usize];
        outcome.received_ps = Some(self.network.now_ps);
        outcome.received_bytes = outcome.spec.bytes;
        true
    }

    fn send_ack(&mut self, place: u32) {
        let ack = self.flows[place as usize].receiver.ack();
        self.send(place, ack);
    }

    #[inline]
    fn send(&mut self, place: u32, ack: Ack) {
        let flags = Flags::ACK.with_if(ack.ece, Flags::ECE);
        let bytes = self.job.settings.sizes.header_bytes as u16;
        if ack.sack.is_none() {
            return self.inject(place, Direction::Ack, ack.cumulative, bytes, flags);
        }
        let kept = self.long_acks.put(ack);
        self.inject(place, Direction::Ack, kept, bytes, flags.with(Flags::SACK));
    }

    fn arm_receiver(&mut self, place: u32, due_ps: u64) {
        let flow = &mut self.flows[place as usize];
        if due_ps < flow.receiver_timer_ps {
            flow.receiver_timer_ps = due_ps;
            self.arm(due_ps, Timer::Receiver(place));
        }
    }

    /// A delayed acknowledgement may be due.
    pub(super) fn receiver_timer_ends(&mut self, place: u32) {
        let now_ps = self.network.now_ps;
        let flow = &mut self.flows[place as usize];
        if flow.receiver_timer_ps != now_ps {
            return;
        }
        flow.receiver_timer_ps = NEVER;
        match flow.receiver.deadline() {
            Some(_) if flow.phase == Phase::Ended => {}
            Some(due_ps) if due_ps <= now_ps => self.send_ack(place),
            Some(due_ps) => self.arm_receiver(place, due_ps),
            None => {}
        }
    }

    /// A packet reached the sender of its flow.
    #[inline]
    pub(super) fn acknowledged(&mut self, packet: Packet) {
        let place = packet.flow();
        self.totals.delivered.add(packet.ip_bytes());
        let ack = if packet.flags().has(Flags::SACK) {
            self.long_acks.take(packet.sequence())
        } else {
            Ack { cumulative: packet.sequence(), ece: packet.flags().has(Flags::ECE), sack: None }
        };
        let (now_ps, tcp) = (self.network.now_ps, &self.job.settings.tcp);
        let flow = &mut self.flows[place as usize];
        if flow.phase == Phase::Ended {
            return self.left_network(place);
        }
        flow.in_flight -= 1;
        if packet.flags().has(Flags::SYN) {
            if flow.phase == Phase::Open {
                return;
            }
            flow.phase = Phase::Open;
            flow.sender.opened(now_ps, tcp);
            self.mix_flow_opened(place);
        } else {
            flow.sender.on_ack(now_ps, &ack, tcp);
        }
        if self.flows[place as usize].traced {
            self.trace_ack(place, &ack);
        }
        let flow = &self.flows[place as usize];
        if flow.sender.is_done() && flow.granted == flow.segments {
            return self.end(place, true);
        }
        self.pump(place);
    }

    /// The timer of a sender may have run out.
    pub(super) fn sender_timer_ends(&mut self, place: u32) {
        let now_ps = self.network.now_ps;
        let flow = &mut self.flows[place as usize];
        if flow.sender_timer_ps != now_ps {
            return;
        }
        flow.sender_timer_ps = NEVER;
        if flow.phase == Phase::Ended {
            return;
        }
        let expiry = flow.sender.on_deadline(now_ps, &self.job.settings.tcp);
        if flow.traced && expiry != Expiry::Stale {
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
    #[inline]
    pub(super) fn send_next(&mut self, place: u32) -> bool {
        let flow = &mut self.flows[place as usize];
        let Some(Transmit { seq, retransmission }) = flow.sender.poll(self.network.now_ps, &self.job.settings.tcp)
        else {
            return false;
        };
        if retransmission {
            self.totals.retransmits += 1;
            let sent_bytes = u64::from(seq) * u64::from(self.job.settings.sizes.segment_bytes);
            self.spread.repeats(place, sent_bytes, self.network.now_ps);
        }
        let bytes = if seq + 1 == flow.segments {
            flow.last_ip_bytes
        } else {
            (self.job.settings.sizes.segment_bytes + self.job.settings.sizes.header_bytes) as u16
        };
        self.inject(place, Direction::Data, seq, bytes, self.data_flags);
        true
    }

    /// Sets the sender's timer no later than its deadline.
    #[inline]
    pub(super) fn arm_sender(&mut self, place: u32) {
        let flow = &mut self.flows[place as usize];
        if let Some(due_ps) = flow.sender.deadline()
            && due_ps < flow.sender_timer_ps
        {
            flow.sender_timer_ps = due_ps;
            self.arm(due_ps, Timer::Sender(place));
        }
    }

    /// A host sends a packet.
    #[inline]
    pub(super) fn inject(&mut self, place: u32, direction: Direction, sequence: u32, ip_bytes: u16, flags: Flags) {
        self.totals.sent.add(ip_bytes);
        let flow = &mut self.flows[place as usize];
        flow.in_flight += 1;
        let flags = flags.with_if(flow.traced, Flags::TRACED);
        let route =
            if self.spread.is_fixed() { flow.routes[direction as usize] } else { self.respread(place, direction) };
        let packet = Packet::new(place, sequence, route, ip_bytes, flags);
        if route == NO_ROUTE {
            return self.dropped(packet, Sent::Lost);
        }
        self.forward(self.network.routes.hop(route), packet);
    }

    /// A packet of the flow is no longer in the network.
    pub(super) fn left_network(&mut self, place: u32) {
        self.flows[place as usize].in_flight -= 1;
        self.free_if_gone(place);
    }

    pub(super) fn free_if_gone(&mut self, place: u32) {
        if self.flows[place as usize].is_gone() {
            self.free_places.push(place);
        }
    }

    /// Everything is acknowledged, or the connection has failed.
    fn end(&mut self, place: u32, complete: bool) {
        let now_ps = self.network.now_ps;
        let flow = &mut self.flows[place as usize];
        flow.phase = Phase::Ended;
        let outcome = &mut self.outcomes[flow.number as usize];
        outcome.retransmits = flow.sender.retransmits();
        self.totals.timeouts += u64::from(flow.sender.timeouts());
        outcome.received_bytes = flow.payload_bytes(flow.receiver.delivered(), &self.job.settings.sizes);
        outcome.acknowledged_ps = complete.then_some(now_ps);
        let (from, traced) = (flow.from, flow.traced);
        if traced {
            self.trace(trace::end_text(complete));
        }
        self.totals.flows_done += u64::from(complete);
        self.unfinished = self.unfinished.saturating_sub(1);
        self.free_if_gone(place);
        if self.mix.is_some() {
            self.begin_next_of_mix(from);
        } else if self.unfinished == 0 && self.job.datagrams.is_empty() {
            self.finish();
        }
    }
}
