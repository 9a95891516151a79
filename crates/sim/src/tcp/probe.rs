//! Tail loss probes (RFC 8985 section 7): when ACKs stop coming, one segment is sent to provoke one, long before the
//! retransmission timer would.

use super::ack::Ack;

/// A probe that is due or on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// To be sent, whatever the window says.
    Due,
    /// Sent when everything below `end` was outstanding (TLP.end_seq).
    Sent {
        /// The segment after the highest that was sent.
        end: u32,
        /// It was a segment sent before (TLP.is_retrans).
        again: bool,
    },
}

/// What an ACK says about a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeFate {
    /// Nothing yet.
    Open,
    /// Nothing was lost, or ordinary recovery will find it.
    Settled,
    /// The probe repaired the loss of the last segment, and the window must answer for it.
    RepairedLoss,
}

impl Probe {
    /// Judges an ACK (RFC 8985 7.4.2). `advanced`: it moved the cumulative point.
    pub(super) fn judge(self, ack: &Ack, advanced: bool) -> ProbeFate {
        let Self::Sent { end, again } = self else {
            return if advanced { ProbeFate::Settled } else { ProbeFate::Open };
        };
        if ack.cumulative < end {
            return ProbeFate::Open;
        }
        let duplicate = ack.sack.and_then(|blocks| blocks.duplicate(ack.cumulative));
        match duplicate {
            _ if !again => ProbeFate::Settled,
            Some((_, duplicate_end)) if duplicate_end == end => ProbeFate::Settled,
            _ if ack.cumulative > end => ProbeFate::RepairedLoss,
            None if !advanced && ack.sack.is_none() => ProbeFate::Settled,
            _ => ProbeFate::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ack::SackBlocks;
    use super::*;

    fn ack(cumulative: u32, sack: &[(u32, u32)]) -> Ack {
        let mut blocks = SackBlocks::default();
        blocks.ranges[..sack.len()].copy_from_slice(sack);
        Ack { cumulative, ece: false, sack: (!sack.is_empty()).then_some(blocks) }
    }

    #[test]
    fn a_probe_with_new_data_cannot_hide_a_loss() {
        let probe = Probe::Sent { end: 10, again: false };
        assert_eq!(probe.judge(&ack(9, &[(9, 10)]), true), ProbeFate::Open);
        assert_eq!(probe.judge(&ack(10, &[]), true), ProbeFate::Settled);
    }

    #[test]
    fn a_repeated_segment_that_nobody_missed_is_reported_twice() {
        let probe = Probe::Sent { end: 10, again: true };
        assert_eq!(probe.judge(&ack(10, &[]), true), ProbeFate::Open, "the original or the probe");
        assert_eq!(probe.judge(&ack(10, &[(9, 10)]), false), ProbeFate::Settled, "the other one");
        assert_eq!(probe.judge(&ack(10, &[]), false), ProbeFate::Settled, "the same without D-SACK");
        assert_eq!(probe.judge(&ack(11, &[]), true), ProbeFate::RepairedLoss, "there was no other one");
    }
}
