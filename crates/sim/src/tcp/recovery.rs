//! What an ACK or a timer means once something is out of order or lost: RFC 6675 and RFC 8985 with SACK, RFC 6582
//! without, RFC 5681 after a timeout.
//!
//! ```text
//!              out of order            lost                        timeout
//!   (no episode) --------> Disorder ----------> Recovery -----------------------+
//!        ^                  |  ^  |                | all of it acknowledged     v
//!        |   in order again |  |  +----------------|------ timeout ----------> Loss
//!        +------------------+  +-------------------+----------------------------+
//! ```

use super::ack::Ack;
use super::config::{Config, LossDetection};
use super::congestion::Delivery;
use super::episode::{Episode, Phase};
use super::probe::{Probe, ProbeFate};
use super::rack::{Rack, Reordering, RoundTrips};
use super::reduction::{Reduction, Step};
use super::sacks::DUPLICATE_THRESHOLD;
use super::scoreboard::Segment;
use super::sender::Sender;
use super::timer::Waiting;
use super::undo::Undo;

impl Sender {
    /// An ACK that is not simply the next one.
    #[cold]
    #[inline(never)]
    pub(super) fn on_ack_in_trouble(&mut self, now_ps: u64, ack: &Ack, config: &Config) {
        let una = self.board.una();
        if ack.cumulative < una || ack.cumulative > self.board.next() {
            return;
        }
        self.take_duplicate_report(ack);
        let repeats = ack.cumulative == una && ack.sack.is_none() && config.sack;
        if self.episode.is_none() && (repeats || self.board.outstanding() == 0) {
            return;
        }
        let mut episode = self.open_episode();
        let lost_before = self.board.lost();
        let news = self.learn(now_ps, ack, &mut episode, config);
        self.judge_probe(ack, &news, &mut episode);
        let look_again_ps = self.find_losses(now_ps, &mut episode, &news, config);
        self.change_phase(&mut episode, config);
        let in_good_shape = news.advanced > 0 && self.board.lost() <= lost_before;
        self.size_window_in_trouble(now_ps, ack, &news, in_good_shape, &mut episode);
        self.restart_timer(now_ps, &episode, &news, look_again_ps, config);
        self.keep_or_end(episode);
    }

    /// The retransmission timer has expired (RFC 5681 3.1, RFC 6298 5.4 to 5.6). The threshold is not reduced again for
    /// a segment that timed out before, nor in a recovery that has reduced it already.
    pub(super) fn time_out(&mut self, now_ps: u64, config: &Config) {
        let mut episode = self.open_episode();
        let (una, next) = (self.board.una(), self.board.next());
        let reduced = match episode.phase {
            Phase::Disorder => false,
            Phase::Recovery => self.undo.is_some(),
            Phase::Loss => episode.timed_out == Some(una),
        };
        if !reduced {
            self.undo = Some(Undo::new(&self.window, una));
            self.window.ssthresh = self.control.ssthresh_after_loss(&self.window);
        }
        self.control.timed_out();
        self.window.set(1);
        if !config.sack {
            self.board.forget_presumed(u32::MAX);
        }
        self.board.mark_all_lost();
        episode.start_over(Phase::Loss, una, next);
        episode.timed_out = Some(una);
        episode.rack.forget_retransmissions();
        self.recover = next;
        self.timeouts += 1;
        self.rtt.back_off();
        self.timer.start(Waiting::Retransmission, now_ps + self.rtt.rto_ps(config));
        self.episode = Some(episode);
    }

    /// No ACK has come for two round trips (RFC 8985 7.3).
    pub(super) fn probe_is_due(&mut self, now_ps: u64, config: &Config) {
        let mut episode = self.open_episode();
        episode.probe = Some(Probe::Due);
        self.timer.start(Waiting::Retransmission, now_ps + self.rtt.rto_ps(config));
        self.episode = Some(episode);
    }

    /// Segments that reordering might have explained have had their time (RFC 8985 section 6.3).
    pub(super) fn reordering_is_over(&mut self, now_ps: u64, config: &Config) {
        let mut episode = self.open_episode();
        let news = News::default();
        let look_again_ps = self.find_losses(now_ps, &mut episode, &news, config);
        self.change_phase(&mut episode, config);
        self.reduce(0, false, &mut episode);
        self.restart_timer(now_ps, &episode, &news, look_again_ps, config);
        self.keep_or_end(episode);
    }

    fn open_episode(&mut self) -> Box<Episode> {
        self.episode.take().unwrap_or_else(|| Box::new(Episode::new(self.board.una())))
    }

    fn keep_or_end(&mut self, episode: Box<Episode>) {
        let over = episode.phase == Phase::Disorder && episode.probe.is_none() && self.board.is_clean();
        if !over {
            self.episode = Some(episode);
        }
    }

    /// A segment has arrived twice: the retransmission was needless.
    fn take_duplicate_report(&mut self, ack: &Ack) {
        let Some(duplicate) = ack.sack.and_then(|blocks| blocks.duplicate(ack.cumulative)) else { return };
        let of_probe = |probe| matches!(probe, Probe::Sent { end, again: true } if end == duplicate.1);
        if self.episode.as_ref().and_then(|episode| episode.probe).is_some_and(of_probe) {
            return;
        }
        self.reordering.needless_retransmission(self.board.una(), self.board.next());
        if let Some(undo) = &mut self.undo
            && undo.duplicate(duplicate)
        {
            undo.restore(&mut self.window);
            self.undo = None;
            self.control.restart();
        }
    }

    /// Brings the scoreboard up to date.
    fn learn(&mut self, now_ps: u64, ack: &Ack, episode: &mut Episode, config: &Config) -> News {
        let mut learner = Learner {
            now_ps,
            min_rtt_ps: self.rtt.min_ps(),
            timestamps: config.timestamps,
            highest: episode.sacks.end(),
            rack: &mut episode.rack,
            reordering: &mut self.reordering,
            news: News { advanced: ack.cumulative - self.board.una(), ..News::default() },
        };
        while self.board.una() < ack.cumulative {
            let seq = self.board.una();
            let segment = self.board.retire();
            if !segment.is_sacked() {
                learner.arrived(seq, segment);
            }
        }
        if let Some(blocks) = ack.sack.as_ref().filter(|_| config.sack) {
            episode.sacks.read(&mut self.board, blocks, |seq, segment| learner.arrived(seq, segment));
        }
        let mut news = learner.news;
        if !config.sack {
            news.delivered = self.presume_delivered(news.advanced, episode.phase);
        }
        if let Some(rtt_ps) = news.oldest_rtt_ps {
            self.rtt.sample(rtt_ps);
        }
        news
    }

    /// Without SACK, how many segments this ACK delivered: a duplicate ACK one; one that advances those that duplicate
    /// ACKs have not yet counted.
    fn presume_delivered(&mut self, advanced: u32, phase: Phase) -> u32 {
        if advanced == 0 {
            return u32::from(self.board.presume_arrived());
        }
        let presumed = self.board.sacked();
        self.board.forget_presumed(if phase == Phase::Disorder { presumed } else { advanced - 1 });
        self.board.limit_presumed();
        advanced.saturating_sub(presumed).max(1)
    }

    fn judge_probe(&mut self, ack: &Ack, news: &News, episode: &mut Episode) {
        let Some(probe) = episode.probe else { return };
        let fate = probe.judge(ack, news.advanced > 0);
        if fate != ProbeFate::Open {
            episode.probe = None;
        }
        if fate == ProbeFate::RepairedLoss && episode.phase == Phase::Disorder {
            self.window.ssthresh = self.control.ssthresh_after_loss(&self.window);
            self.window.set(self.window.ssthresh);
        }
    }

    /// Marks what must be lost, and returns when to look again where that is a matter of time.
    fn find_losses(&mut self, now_ps: u64, episode: &mut Episode, news: &News, config: &Config) -> Option<u64> {
        if !config.sack {
            self.find_first_loss(episode, news);
            return None;
        }
        let repaired = &mut episode.repaired;
        let again = |seq: u32| *repaired = seq.min(*repaired);
        match config.loss_detection {
            LossDetection::Rack => {}
            LossDetection::Forward if !self.reordering.was_seen() => {
                episode.forward.detect_losses(&mut self.board, episode.sacks.end(), again);
                return None;
            }
            LossDetection::Forward | LossDetection::DuplicateThreshold => {
                episode.sacks.detect_losses(&mut self.board);
                return None;
            }
        }
        let hasty = episode.phase != Phase::Disorder || self.board.sacked() >= DUPLICATE_THRESHOLD;
        let round_trips = RoundTrips { min_ps: self.rtt.min_ps(), smoothed_ps: self.rtt.srtt_ps().unwrap_or(0) };
        episode.rack.detect_losses(&mut self.board, self.reordering, round_trips, hasty, now_ps, again)
    }

    /// Without SACK only the oldest segment can be known to be lost: by three duplicate ACKs, or by an ACK in recovery
    /// that does not end it (RFC 6582 3.2).
    fn find_first_loss(&mut self, episode: &Episode, news: &News) {
        let una = self.board.una();
        let lost = match episode.phase {
            Phase::Disorder => self.board.sacked() >= DUPLICATE_THRESHOLD && (self.recover == 0 || una > self.recover),
            Phase::Recovery => news.advanced > 0 && una < episode.point,
            Phase::Loss => false,
        };
        if lost {
            self.board.mark_lost(una);
        }
    }

    fn change_phase(&mut self, episode: &mut Episode, config: &Config) {
        if episode.phase != Phase::Disorder && self.board.una() >= episode.point {
            self.leave_recovery(episode);
        }
        if episode.phase == Phase::Disorder && self.board.lost() > 0 {
            self.enter_recovery(episode, config);
        }
    }

    /// RFC 6675 section 5, step 4; RFC 6582 3.2 step 2; RFC 6937 section 3.
    fn enter_recovery(&mut self, episode: &mut Episode, config: &Config) {
        let (una, next) = (self.board.una(), self.board.next());
        self.undo = Some(Undo::new(&self.window, una));
        self.window.ssthresh = self.control.ssthresh_after_loss(&self.window);
        episode.start_over(Phase::Recovery, una, next);
        episode.fast_retransmit = true;
        self.recover = next;
        if config.proportional_reduction {
            episode.reduction = Some(Reduction::new(self.board.outstanding()));
        } else {
            self.window.set(self.window.ssthresh);
        }
    }

    /// Everything that was outstanding when trouble began has been acknowledged. The window ends at the threshold,
    /// unless the reduction was taken back.
    fn leave_recovery(&mut self, episode: &mut Episode) {
        if episode.phase == Phase::Recovery && self.undo.is_some() {
            self.window.set(self.window.ssthresh);
        }
        let (una, next) = (self.board.una(), self.board.next());
        episode.start_over(Phase::Disorder, una, next);
        self.reordering.recovered();
    }

    fn size_window_in_trouble(
        &mut self,
        now_ps: u64,
        ack: &Ack,
        news: &News,
        in_good_shape: bool,
        episode: &mut Episode,
    ) {
        if episode.phase == Phase::Recovery {
            if news.delivered > 0 || episode.fast_retransmit {
                self.reduce(news.delivered, in_good_shape, episode);
            }
        } else if news.advanced > 0 {
            let delivery = Delivery {
                now_ps,
                segments: news.delivered,
                rtt_ps: news.newest_rtt_ps,
                srtt_ps: self.rtt.srtt_ps().unwrap_or(0),
                ece: ack.ece && episode.phase == Phase::Disorder,
                una: self.board.una(),
                next: self.board.next(),
            };
            self.size_window(&delivery);
        }
    }

    /// The window of proportional rate reduction, where that is on.
    fn reduce(&mut self, delivered: u32, in_good_shape: bool, episode: &mut Episode) {
        let Some(reduction) = &mut episode.reduction else { return };
        let step = Step { delivered, pipe: self.board.pipe(), ssthresh: self.window.ssthresh, in_good_shape };
        self.window.set(reduction.window(step));
    }

    /// ACKs that advance restart the timer (RFC 6298 5.3). Others end a wait that has become pointless: a probe's or
    /// for reordering; the retransmission timeout then counts from when the oldest segment was sent.
    fn restart_timer(
        &mut self,
        now_ps: u64,
        episode: &Episode,
        news: &News,
        look_again_ps: Option<u64>,
        config: &Config,
    ) {
        let in_order = episode.phase == Phase::Disorder && episode.probe.is_none() && self.board.is_clean();
        if self.board.outstanding() == 0 || (in_order && news.advanced > 0) {
            self.start_timer(now_ps, now_ps, config);
        } else if news.advanced > 0 {
            self.timer.start(Waiting::Retransmission, now_ps + self.rtt.rto_ps(config));
        } else if self.timer.waiting() != Waiting::Retransmission {
            let oldest_ps = self.board.get(self.board.una()).sent_ps();
            let at_ps = oldest_ps + self.rtt.rto_ps(config);
            self.timer.start(Waiting::Retransmission, at_ps.max(now_ps));
        }
        if let Some(at_ps) = look_again_ps
            && self.timer.deadline_ps().is_none_or(|deadline_ps| at_ps < deadline_ps)
        {
            self.timer.start(Waiting::Reordering, at_ps);
        }
    }
}

/// What an ACK has brought.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    /// Segments that the cumulative point moved by.
    advanced: u32,
    /// Segments that arrived, in order or not.
    delivered: u32,
    /// Round-trip time of the first of them that is not ambiguous.
    oldest_rtt_ps: Option<u64>,
    /// And of the last.
    newest_rtt_ps: Option<u64>,
}

/// Collects the news of one ACK.
struct Learner<'a> {
    now_ps: u64,
    min_rtt_ps: u64,
    timestamps: bool,
    /// The segment after the highest that was SACKed before.
    highest: u32,
    rack: &'a mut Rack,
    reordering: &'a mut Reordering,
    news: News,
}

impl Learner<'_> {
    fn arrived(&mut self, seq: u32, segment: Segment) {
        self.news.delivered += 1;
        self.rack.arrived(seq, segment, self.now_ps, self.min_rtt_ps);
        if !segment.is_ambiguous() && seq + 1 < self.highest {
            self.reordering.seen();
        }
        let rtt_ps = self.now_ps - segment.sent_ps();
        // Timestamps would tell which transmission is answered; an answer within the shortest round trip is to an
        // earlier one.
        if !segment.is_ambiguous() || (self.timestamps && rtt_ps >= self.min_rtt_ps) {
            self.news.oldest_rtt_ps.get_or_insert(rtt_ps);
            self.news.newest_rtt_ps = Some(rtt_ps);
        }
    }
}
