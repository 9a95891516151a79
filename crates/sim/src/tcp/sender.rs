//! The sending end: what to send next, and what an ACK means while nothing is wrong. Trouble is `recovery`'s.

use super::ack::Ack;
use super::config::Config;
use super::congestion::{Control, Delivery};
use super::episode::{Episode, Phase};
use super::rack::Reordering;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::timer::{Expiry, Timer, Waiting};
use super::undo::Undo;
use super::usage::Usage;
use super::window::Window;

/// The sender of one flow.
///
/// The engine sends the SYN and calls [`Self::connect`], calls [`Self::opened`] at the SYN-ACK, asks [`Self::poll`]
/// whenever its NIC has room and after every [`Self::on_ack`], and keeps a timer for [`Self::deadline`].
#[derive(Debug)]
pub struct Sender {
    pub(super) board: Scoreboard,
    pub(super) window: Window,
    pub(super) usage: Usage,
    pub(super) timer: Timer,
    pub(super) rtt: RttEstimator,
    /// Segments that the application has handed over.
    end: u32,
    pub(super) control: Control,
    /// Some exactly while something is wrong.
    pub(super) episode: Option<Box<Episode>>,
    pub(super) undo: Option<Undo>,
    pub(super) reordering: Reordering,
    /// Without SACK, no fast retransmission starts before more than this is acknowledged (RFC 6582: recover).
    pub(super) recover: u32,
    /// Marks reduce the window again when more than this is acknowledged.
    marked_until: u32,
    connection: Connection,
    pub(super) retransmits: u32,
    pub(super) timeouts: u32,
}

/// A segment to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    pub seq: u32,
    /// It was sent before.
    pub retransmission: bool,
}

/// What a sender is about, for traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not connected, or waiting for the SYN-ACK.
    Opening,
    /// Nothing is wrong.
    Open,
    /// Something arrived out of order.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout.
    Loss,
    /// The peer never answered.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Closed,
    Opening { sent_ps: u64, retries: u8 },
    Open,
    Failed,
}

impl Sender {
    /// A sender with `segments` to send, not connected yet.
    pub fn new(config: &Config, segments: u32) -> Self {
        Self {
            board: Scoreboard::default(),
            window: Window::new(config.initial_window, config.window_cap),
            usage: Usage::default(),
            timer: Timer::off(),
            rtt: RttEstimator::new(),
            end: segments,
            control: Control::new(config),
            episode: None,
            undo: None,
            reordering: Reordering::default(),
            recover: 0,
            marked_until: 0,
            connection: Connection::Closed,
            retransmits: 0,
            timeouts: 0,
        }
    }

    /// The SYN is sent now.
    pub fn connect(&mut self, now_ps: u64, config: &Config) {
        self.connection = Connection::Opening { sent_ps: now_ps, retries: 0 };
        self.timer.start(Waiting::SynAck, now_ps + self.rtt.rto_ps(config));
    }

    /// The SYN-ACK has arrived: data may flow. It gives the first round-trip time, unless the SYN was repeated and
    /// timestamps do not tell which one it answers (RFC 6298 section 3). A SYN lost more than once makes the initial
    /// window 1 (RFC 5681 3.1; once, the first timeout may have been too short, says Linux).
    pub fn opened(&mut self, now_ps: u64, config: &Config) {
        let Connection::Opening { sent_ps, retries } = self.connection else { return };
        self.connection = Connection::Open;
        self.timer.stop();
        if retries == 0 || config.timestamps {
            self.rtt.sample(now_ps - sent_ps);
        } else {
            self.rtt.open_unmeasured();
        }
        if retries > 1 {
            self.window.set(1);
        }
    }

    /// The application has `segments` more to send; fewer than 2^32 in all.
    pub fn add_segments(&mut self, segments: u32) {
        self.end += segments;
    }

    /// The segment to send now, if the window, recovery and the application have one.
    #[inline(always)]
    pub fn poll(&mut self, now_ps: u64, config: &Config) -> Option<Transmit> {
        if self.episode.is_some() {
            return self.poll_in_trouble(now_ps, config);
        }
        if !self.has_new() || self.connection != Connection::Open {
            return None;
        }
        if self.board.outstanding() >= self.window.cwnd {
            self.usage.limited(self.board.next());
            return None;
        }
        if self.board.outstanding() == 0 {
            self.end_idle(now_ps, config);
        }
        let transmit = self.send_new(now_ps);
        let oldest_ps = self.board.get(self.board.una()).sent_ps();
        if self.timer.waiting() == Waiting::Nothing || config.probes() {
            self.start_timer(now_ps, oldest_ps, config);
        }
        Some(transmit)
    }

    /// An ACK has arrived.
    #[inline]
    pub fn on_ack(&mut self, now_ps: u64, ack: &Ack, config: &Config) {
        let news = ack.cumulative > self.board.una() && ack.cumulative <= self.board.next();
        if news && self.episode.is_none() && ack.sack.is_none() {
            self.on_ack_in_order(now_ps, ack, config);
        } else {
            self.on_ack_in_trouble(now_ps, ack, config);
        }
    }

    /// When [`Self::on_deadline`] is due. It may come nearer with every call that takes `&mut self`.
    #[inline]
    pub fn deadline(&self) -> Option<u64> {
        self.timer.deadline_ps()
    }

    /// Acts on the timer. Deadlines that have moved since are harmless.
    pub fn on_deadline(&mut self, now_ps: u64, config: &Config) -> Expiry {
        match self.timer.expire(now_ps) {
            Waiting::Nothing => return Expiry::Stale,
            Waiting::SynAck => return self.repeat_syn(now_ps, config),
            Waiting::Retransmission => self.time_out(now_ps, config),
            Waiting::Probe => self.probe_is_due(now_ps, config),
            Waiting::Reordering => self.reordering_is_over(now_ps, config),
        }
        Expiry::Poll
    }

    /// Whether everything handed over so far is acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.board.una() == self.end && self.connection == Connection::Open
    }

    /// Fetches what the next acknowledgement needs ahead of its use.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        self.board.prefetch();
        self.control.prefetch();
    }

    /// Segments that are cumulatively acknowledged.
    pub fn acknowledged(&self) -> u32 {
        self.board.una()
    }

    /// Segments sent and not cumulatively acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.board.outstanding()
    }

    /// Segments thought to be in the network (pipe of RFC 6675).
    pub fn in_flight(&self) -> u32 {
        self.board.pipe()
    }

    /// Congestion window in segments.
    pub fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// Slow-start threshold in segments; `None` before the first loss.
    pub fn ssthresh(&self) -> Option<u32> {
        (!self.window.is_unbounded()).then_some(self.window.ssthresh)
    }

    /// Smoothed round-trip time in picoseconds, once measured.
    pub fn srtt(&self) -> Option<u64> {
        self.rtt.srtt_ps()
    }

    /// Retransmission timeout in picoseconds, back-off included.
    pub fn rto(&self, config: &Config) -> u64 {
        self.rtt.rto_ps(config)
    }

    /// Segments sent again so far.
    pub fn retransmits(&self) -> u32 {
        self.retransmits
    }

    /// Retransmission timeouts so far.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// What it is about.
    pub fn state(&self) -> State {
        match (self.connection, self.episode.as_ref().map(|episode| episode.phase)) {
            (Connection::Closed | Connection::Opening { .. }, _) => State::Opening,
            (Connection::Failed, _) => State::Failed,
            (Connection::Open, None) => State::Open,
            (Connection::Open, Some(Phase::Disorder)) => State::Disorder,
            (Connection::Open, Some(Phase::Recovery)) => State::Recovery,
            (Connection::Open, Some(Phase::Loss)) => State::Loss,
        }
    }

    /// Whether the application has a segment that was never sent.
    #[inline]
    pub(super) fn has_new(&self) -> bool {
        self.board.next() < self.end
    }

    #[inline]
    pub(super) fn send_new(&mut self, now_ps: u64) -> Transmit {
        let seq = self.board.send(now_ps);
        self.usage.sent(self.board.outstanding());
        Transmit { seq, retransmission: false }
    }

    #[inline]
    fn on_ack_in_order(&mut self, now_ps: u64, ack: &Ack, config: &Config) {
        let (una, next) = (ack.cumulative, self.board.next());
        let oldest = self.board.get(self.board.una());
        let newest = self.board.get(una - 1);
        let segments = una - self.board.una();
        self.board.advance_clean(una);
        if !oldest.is_ambiguous() {
            self.rtt.sample(now_ps - oldest.sent_ps());
        }
        let rtt_ps = (!newest.is_ambiguous()).then(|| now_ps - newest.sent_ps());
        let srtt_ps = self.rtt.srtt_ps().unwrap_or(0);
        self.size_window(&Delivery { now_ps, segments, rtt_ps, srtt_ps, ece: ack.ece, una, next });
        self.start_timer(now_ps, now_ps, config);
    }

    /// Grows the window if it was the limit, or shrinks it if the network marked packets.
    #[inline(always)]
    pub(super) fn size_window(&mut self, delivery: &Delivery) {
        self.control.observe(&mut self.window, delivery);
        if delivery.ece {
            self.obey_marks(delivery);
        } else if self.usage.allows_growth(&self.window) {
            self.control.grow(&mut self.window, delivery);
        }
        self.usage.acknowledged(delivery.una, delivery.next);
    }

    /// Reduces the window, at most once per window of data (RFC 3168 6.1.2, RFC 8257 3.3).
    fn obey_marks(&mut self, delivery: &Delivery) {
        if delivery.una > self.marked_until {
            self.window.ssthresh = self.control.ssthresh_after_marks(&self.window);
            self.window.set(self.window.ssthresh);
            self.marked_until = delivery.next;
        }
    }

    /// Starts the timer for what is outstanding: a loss probe where one comes before the retransmission timeout, which
    /// counts from `since_ps` and is over now if it should have been before.
    #[inline]
    pub(super) fn start_timer(&mut self, now_ps: u64, since_ps: u64, config: &Config) {
        if self.board.outstanding() == 0 {
            return self.timer.stop();
        }
        let rto_at_ps = (since_ps + self.rtt.rto_ps(config)).max(now_ps);
        if config.probes() {
            let probe_at_ps = now_ps + self.probe_timeout_ps(config);
            if probe_at_ps < rto_at_ps {
                return self.timer.start(Waiting::Probe, probe_at_ps);
            }
        }
        self.timer.start(Waiting::Retransmission, rto_at_ps);
    }

    /// PTO of RFC 8985 7.2.
    #[inline]
    fn probe_timeout_ps(&self, config: &Config) -> u64 {
        let Some(srtt_ps) = self.rtt.srtt_ps() else { return config.rto_initial_ps };
        let extra_ps = if self.board.outstanding() == 1 { config.probe_ack_delay_ps } else { config.probe_margin_ps };
        2 * srtt_ps + extra_ps
    }

    /// The flow sends after having had nothing outstanding: a window that was not used for long is worth less.
    pub(super) fn end_idle(&mut self, now_ps: u64, config: &Config) {
        let Some(last) = self.board.next().checked_sub(1).filter(|_| config.idle_restart) else { return };
        let idle_ps = now_ps - self.board.get(last).sent_ps();
        let timeouts = idle_ps / self.rtt.rto_ps(config).max(1);
        if timeouts > 0 {
            self.window.decay(timeouts, config.initial_window);
            self.control.restart();
        }
    }

    fn repeat_syn(&mut self, now_ps: u64, config: &Config) -> Expiry {
        let Connection::Opening { retries, .. } = self.connection else { return Expiry::Stale };
        if retries >= config.syn_retries {
            self.connection = Connection::Failed;
            return Expiry::Failed;
        }
        self.connection = Connection::Opening { sent_ps: now_ps, retries: retries + 1 };
        self.rtt.back_off();
        self.timer.start(Waiting::SynAck, now_ps + self.rtt.rto_ps(config));
        Expiry::ResendSyn
    }
}
