//! The one timer of a sender (RFC 8985 section 8: retransmission, loss probe and reordering never wait at once).
//!
//! A deadline usually moves away with every ACK. The engine may keep an entry for an old one and call when that comes:
//! the sender then says [`Expiry::Stale`] and the engine asks for the deadline again. It must also look after every
//! call that a deadline may have come nearer.

/// What an expired deadline asks of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Nothing was due.
    Stale,
    /// Call [`super::Sender::poll`]: there may be something to send.
    Poll,
    /// Send the SYN again.
    ResendSyn,
    /// The peer never answered a SYN: the connection has failed.
    Failed,
}

/// What the timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Nothing,
    SynAck,
    /// RFC 6298.
    Retransmission,
    /// RFC 8985 section 7.
    Probe,
    /// RFC 8985 section 6.
    Reordering,
}

/// When it expires, and what for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    at_ps: u64,
    waiting: Waiting,
}

impl Timer {
    pub(super) fn off() -> Self {
        Self { at_ps: u64::MAX, waiting: Waiting::Nothing }
    }

    #[inline]
    pub(super) fn start(&mut self, waiting: Waiting, at_ps: u64) {
        *self = Self { at_ps, waiting };
    }

    #[inline]
    pub(super) fn stop(&mut self) {
        *self = Self::off();
    }

    #[inline]
    pub(super) fn waiting(&self) -> Waiting {
        self.waiting
    }

    #[inline]
    pub(super) fn deadline_ps(&self) -> Option<u64> {
        (self.at_ps != u64::MAX).then_some(self.at_ps)
    }

    /// What is due at `now_ps`, once.
    pub(super) fn expire(&mut self, now_ps: u64) -> Waiting {
        if now_ps < self.at_ps {
            return Waiting::Nothing;
        }
        let due = self.waiting;
        self.stop();
        due
    }
}
