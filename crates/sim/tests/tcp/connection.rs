//! Drives both ends over a channel and checks after every step what must always hold.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_sim::tcp::{Ack, AckDecision, Config, Expiry, Receiver, Sender, State, Transmit};

use crate::channel::{Channel, Packet, US};

/// Time that a segment takes on the sender's link.
pub(crate) const SEGMENT_PS: u64 = 12 * US / 10;
/// Events after which a connection counts as stuck.
const EVENTS_MAX: usize = 3_000_000;

/// A connection between two ends.
pub(crate) struct Connection<C> {
    pub(crate) config: Config,
    pub(crate) channel: C,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) now_ps: u64,
    /// Every data packet, with the time.
    pub(crate) sent: Vec<(u64, Transmit)>,
    /// Window after each step that the sender took, with the time.
    pub(crate) windows: Vec<(u64, u32, State)>,
    /// Most segments that were outstanding.
    pub(crate) peak: u32,
    segments: u32,
    arrived: Vec<bool>,
    events: BinaryHeap<Reverse<(u64, usize, Event)>>,
    order: usize,
    link_free_ps: u64,
    /// Sends that may exceed the window: one per ACK or deadline.
    forced_left: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    SynArrives,
    SynAckArrives,
    DataArrives { seq: u32, ce: bool },
    AckArrives { cumulative: u32, ece: bool, sack: Option<[(u32, u32); 3]> },
    SenderDeadline,
    ReceiverDeadline,
    LinkFree,
}

impl<C: Channel> Connection<C> {
    pub(crate) fn new(config: Config, channel: C, segments: u32) -> Self {
        let mut connection = Self {
            sender: Sender::new(&config, segments),
            receiver: Receiver::new(&config),
            config,
            channel,
            now_ps: 0,
            sent: vec![],
            windows: vec![],
            peak: 0,
            segments,
            arrived: vec![false; segments as usize],
            events: BinaryHeap::new(),
            order: 0,
            link_free_ps: 0,
            forced_left: 0,
        };
        connection.sender.connect(0, &connection.config);
        connection.enter(Packet::Syn, |_| Event::SynArrives);
        connection.watch_sender();
        connection
    }

    /// Runs until everything is acknowledged.
    pub(crate) fn run(mut self) -> Self {
        for _ in 0..EVENTS_MAX {
            if self.sender.is_done() {
                assert_eq!(self.receiver.delivered(), self.segments);
                assert!(self.arrived.iter().all(|&arrived| arrived));
                return self;
            }
            let Some(Reverse((at_ps, _, event))) = self.events.pop() else { panic!("nothing will ever happen again") };
            assert!(at_ps >= self.now_ps);
            self.now_ps = at_ps;
            self.handle(event);
            if self.sender.state() == State::Failed {
                return self;
            }
        }
        panic!("the connection does not end: {:?}", self.sender);
    }

    /// Segments in the order of sending, retransmissions only.
    pub(crate) fn repeated(&self) -> Vec<u32> {
        self.sent.iter().filter(|(_, t)| t.retransmission).map(|(_, t)| t.seq).collect()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::SynArrives => self.enter(Packet::SynAck, |_| Event::SynAckArrives),
            Event::SynAckArrives => self.sender.opened(self.now_ps, &self.config),
            Event::DataArrives { seq, ce } => self.data_arrives(seq, ce),
            Event::AckArrives { cumulative, ece, sack } => {
                let sack = sack.map(|ranges| weft_sim::tcp::SackBlocks { ranges });
                self.sender.on_ack(self.now_ps, &Ack { cumulative, ece, sack }, &self.config);
                self.forced_left = 1;
            }
            Event::SenderDeadline => self.sender_deadline(),
            Event::ReceiverDeadline => {
                if self.receiver.deadline().is_some_and(|deadline_ps| deadline_ps <= self.now_ps) {
                    self.send_ack();
                }
            }
            Event::LinkFree => (),
        }
        self.fill_link();
        self.watch_sender();
        self.check();
    }

    fn sender_deadline(&mut self) {
        match self.sender.on_deadline(self.now_ps, &self.config) {
            Expiry::ResendSyn => self.enter(Packet::Syn, |_| Event::SynArrives),
            Expiry::Poll => self.forced_left = 1,
            Expiry::Stale | Expiry::Failed => (),
        }
    }

    fn data_arrives(&mut self, seq: u32, ce: bool) {
        self.arrived[seq as usize] = true;
        let before = self.receiver.delivered();
        let decision = self.receiver.on_data(self.now_ps, seq, ce, &self.config);
        let in_order = self.arrived.iter().position(|arrived| !arrived).unwrap_or(self.arrived.len());
        assert_eq!(self.receiver.delivered() as usize, in_order, "the application sees the unbroken beginning");
        assert!(self.receiver.delivered() >= before);
        match decision {
            AckDecision::Now => self.send_ack(),
            AckDecision::NowAfter { cumulative, ece } => {
                self.enter_ack(Ack { cumulative, ece, sack: None });
                self.send_ack();
            }
            AckDecision::Delay(at_ps) => self.schedule(at_ps, Event::ReceiverDeadline),
        }
    }

    fn send_ack(&mut self) {
        let ack = self.receiver.ack();
        self.enter_ack(ack);
    }

    fn enter_ack(&mut self, ack: Ack) {
        let Ack { cumulative, ece, sack } = ack;
        self.enter(Packet::Ack, |_| Event::AckArrives { cumulative, ece, sack: sack.map(|blocks| blocks.ranges) });
    }

    /// Sends one segment if the link is free; the next is asked for when it is free again.
    fn fill_link(&mut self) {
        if self.now_ps < self.link_free_ps {
            return;
        }
        let (in_flight, cwnd, next) =
            (self.sender.in_flight(), self.sender.cwnd(), self.sender.acknowledged() + self.sender.outstanding());
        let Some(transmit) = self.sender.poll(self.now_ps, &self.config) else { return };
        if in_flight >= cwnd {
            assert!(self.forced_left > 0, "{in_flight} in flight, window {cwnd}");
            self.forced_left -= 1;
        }
        if transmit.retransmission {
            assert!((self.sender.acknowledged()..next).contains(&transmit.seq));
        } else {
            assert_eq!(transmit.seq, next, "new segments go out in order");
        }
        self.sent.push((self.now_ps, transmit));
        self.link_free_ps = self.now_ps + SEGMENT_PS;
        self.schedule(self.link_free_ps, Event::LinkFree);
        self.enter(Packet::Data(transmit), |channel| Event::DataArrives {
            seq: transmit.seq,
            ce: channel.marks(transmit.seq),
        });
    }

    fn enter(&mut self, packet: Packet, event: impl Fn(&mut C) -> Event) {
        for delay_ps in self.channel.fate(packet) {
            let event = event(&mut self.channel);
            self.schedule(self.now_ps + delay_ps, event);
        }
    }

    fn watch_sender(&mut self) {
        if let Some(at_ps) = self.sender.deadline() {
            self.schedule(at_ps.max(self.now_ps), Event::SenderDeadline);
        }
    }

    fn schedule(&mut self, at_ps: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at_ps, self.order, event)));
    }

    fn check(&mut self) {
        let sender = &self.sender;
        self.peak = self.peak.max(sender.outstanding());
        self.windows.push((self.now_ps, sender.cwnd(), sender.state()));
        assert!(sender.cwnd() >= 1);
        assert!(sender.cwnd() <= self.config.window_cap);
        assert!(sender.outstanding() <= self.config.window_cap);
        assert!(sender.in_flight() <= 2 * sender.outstanding());
        assert!(sender.outstanding() == 0 || sender.deadline().is_some(), "a timer runs whenever data are outstanding");
        assert!(sender.deadline().is_none_or(|due_ps| due_ps >= self.now_ps), "no timer is due before it is set");
        assert!(sender.acknowledged() <= self.receiver.delivered());
        assert!(sender.ssthresh().is_none_or(|ssthresh| ssthresh >= 2));
    }
}
