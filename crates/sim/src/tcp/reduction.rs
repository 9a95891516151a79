//! Proportional rate reduction (RFC 6937): recovery sends in proportion to what is delivered, and ends at `ssthresh`.

/// The reduction of one recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reduction {
    /// RecoverFS: segments outstanding when recovery began.
    flight: u32,
    /// prr_delivered: segments delivered since.
    delivered: u32,
    /// prr_out: segments sent since.
    sent: u32,
}

/// One ACK, as the reduction sees it. All counts are segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Newly delivered by this ACK (DeliveredData).
    pub(super) delivered: u32,
    /// In flight after it.
    pub(super) pipe: u32,
    /// Target of the reduction.
    pub(super) ssthresh: u32,
    /// Whether it advanced the cumulative point and showed no new loss, so that growing by one more is safe (PRR-SSRB).
    pub(super) in_good_shape: bool,
}

impl Reduction {
    pub(super) fn new(flight: u32) -> Self {
        Self { flight: flight.max(1), delivered: 0, sent: 0 }
    }

    pub(super) fn sent(&mut self) {
        self.sent += 1;
    }

    /// The window after an ACK (RFC 6937 section 3). The fast retransmission itself does not wait for it.
    pub(super) fn window(&mut self, step: Step) -> u32 {
        self.delivered += step.delivered;
        let allowance =
            if step.pipe > step.ssthresh { self.proportional(step.ssthresh) } else { self.slow_start(step) };
        step.pipe + allowance
    }

    fn proportional(&self, ssthresh: u32) -> u32 {
        let share = (u64::from(self.delivered) * u64::from(ssthresh)).div_ceil(u64::from(self.flight));
        u32::try_from(share).unwrap_or(u32::MAX).saturating_sub(self.sent)
    }

    fn slow_start(&self, step: Step) -> u32 {
        let conserved = self.delivered.saturating_sub(self.sent).max(step.delivered);
        (conserved + u32::from(step.in_good_shape)).min(step.ssthresh - step.pipe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6937 section 4: 20 segments in flight, the first lost, and a window halved to 10. While pipe
    /// is above ssthresh, one segment goes out for every second ACK.
    #[test]
    fn one_loss_halves_smoothly() {
        let mut reduction = Reduction::new(20);
        let (mut pipe, mut sent) = (19, vec![]);
        for ack in 1..=19 {
            // Each ACK SACKs one segment; the lost one left the pipe when recovery began.
            pipe -= 1;
            let step = Step { delivered: 1, pipe, ssthresh: 10, in_good_shape: false };
            let window = reduction.window(step);
            while pipe < window {
                reduction.sent();
                pipe += 1;
                sent.push(ack);
            }
        }
        // The retransmission on the first ACK, then every odd one.
        assert_eq!(sent[..5], [1, 3, 5, 7, 9]);
        assert_eq!((pipe, sent.len()), (10, 10), "the pipe ends at ssthresh");
    }

    /// The second example of RFC 6937 section 4: of 20, the first 15 are lost. The pipe falls far below ssthresh and
    /// what is delivered limits what is sent, with one more per ACK in good shape.
    #[test]
    fn a_burst_loss_sends_no_burst() {
        let mut reduction = Reduction::new(20);
        let bad = Step { delivered: 1, pipe: 4, ssthresh: 10, in_good_shape: false };
        assert_eq!(reduction.window(bad), 5);
        reduction.sent();
        let good = Step { delivered: 1, pipe: 4, ssthresh: 10, in_good_shape: true };
        assert_eq!(reduction.window(good), 6);
    }
}
