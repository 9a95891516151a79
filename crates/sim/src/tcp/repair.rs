//! What to send while something is wrong: NextSeg of RFC 6675 section 4.

use super::config::{Config, LossDetection};
use super::episode::{Episode, Phase};
use super::probe::Probe;
use super::sender::{Sender, Transmit};
use super::timer::Waiting;

/// What is to be sent.
enum Choice {
    New,
    Again(u32),
}

impl Sender {
    /// [`Sender::poll`] while an episode exists.
    #[cold]
    #[inline(never)]
    pub(super) fn poll_in_trouble(&mut self, now_ps: u64, config: &Config) -> Option<Transmit> {
        let mut episode = self.episode.take()?;
        if self.board.outstanding() == 0 && self.has_new() {
            self.end_idle(now_ps, config);
        }
        let transmit = match self.choose(&mut episode, config) {
            Some(Choice::New) => Some(self.send_new(now_ps)),
            Some(Choice::Again(seq)) => Some(self.resend(seq, now_ps, &mut episode, config)),
            None => None,
        };
        if transmit.is_some() {
            self.note_sent(now_ps, &mut episode, config);
        }
        self.episode = Some(episode);
        transmit
    }

    fn choose(&mut self, episode: &mut Episode, config: &Config) -> Option<Choice> {
        if episode.probe == Some(Probe::Due) {
            return Some(self.choose_probe(episode, config));
        }
        let forced = std::mem::take(&mut episode.fast_retransmit) && self.board.unrepaired() > 0;
        if self.board.pipe() >= self.window.cwnd && !forced {
            self.usage.limited(self.board.next());
            return None;
        }
        // Rule 1.
        if self.board.unrepaired() > 0 {
            return Some(Choice::Again(self.first_unrepaired(episode)));
        }
        // Rule 2.
        if self.may_send_new(config) {
            return Some(Choice::New);
        }
        let plain = config.sack && config.loss_detection != LossDetection::Rack;
        if plain && episode.phase == Phase::Recovery {
            self.speculate(episode, config).map(Choice::Again)
        } else {
            None
        }
    }

    /// New data where there are, else the last segment again (RFC 8985 7.3).
    fn choose_probe(&mut self, episode: &mut Episode, config: &Config) -> Choice {
        let new = self.may_send_new(config);
        let next = self.board.next();
        episode.probe = Some(Probe::Sent { end: next + u32::from(new), again: !new });
        self.timer.stop();
        if new { Choice::New } else { Choice::Again(next - 1) }
    }

    /// Whether there is new data and the receiver's window has room for it.
    fn may_send_new(&self, config: &Config) -> bool {
        self.has_new() && self.board.outstanding() < config.window_cap
    }

    fn first_unrepaired(&self, episode: &mut Episode) -> u32 {
        let mut seq = episode.repaired.max(self.board.una());
        while !self.board.get(seq).is_lost() || self.board.get(seq).is_resent() {
            seq += 1;
        }
        episode.repaired = seq;
        seq
    }

    /// Rules 3 and 4, where nothing else may be sent: the first segment below a SACKed one that was sent once, else the
    /// highest that has not arrived, once per recovery (not yet known when FACK was in use). One that is on its way again already is not repeated.
    fn speculate(&self, episode: &mut Episode, config: &Config) -> Option<u32> {
        let (una, next) = (self.board.una(), self.board.next());
        let open = |seq: &u32| {
            let segment = self.board.get(*seq);
            !segment.is_sacked() && !segment.is_resent()
        };
        let below_sacked = (episode.repaired.max(una)..episode.sacks.end()).find(open);
        let rescues = config.loss_detection == LossDetection::DuplicateThreshold;
        if below_sacked.is_some() || !rescues || std::mem::replace(&mut episode.rescued, true) {
            return below_sacked;
        }
        (una..next).rev().find(|&seq| !self.board.get(seq).is_sacked()).filter(open)
    }

    fn resend(&mut self, seq: u32, now_ps: u64, episode: &mut Episode, config: &Config) -> Transmit {
        self.board.resend(seq, now_ps);
        self.retransmits += 1;
        if let Some(undo) = &mut self.undo {
            undo.retransmitted();
        }
        match config.loss_detection {
            LossDetection::Rack => episode.rack.retransmitted(seq),
            LossDetection::Forward if episode.phase == Phase::Recovery => {
                episode.forward.retransmitted(seq, self.board.next());
            }
            LossDetection::Forward | LossDetection::DuplicateThreshold => {}
        }
        if seq == self.board.una() && self.timer.waiting() == Waiting::Retransmission {
            self.timer.stop();
        }
        Transmit { seq, retransmission: true }
    }

    /// The retransmission timer runs whenever something is outstanding (RFC 6298 5.1), and starts anew with a probe or
    /// with the oldest segment.
    fn note_sent(&mut self, now_ps: u64, episode: &mut Episode, config: &Config) {
        if let Some(reduction) = &mut episode.reduction {
            reduction.sent();
        }
        if self.timer.waiting() == Waiting::Nothing {
            self.timer.start(Waiting::Retransmission, now_ps + self.rtt.rto_ps(config));
        }
    }
}
