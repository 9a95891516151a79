//! What happens to packets on their way.

use weft_sim::tcp::Transmit;

/// A microsecond.
pub(crate) const US: u64 = 1_000_000;
/// A millisecond.
pub(crate) const MS: u64 = 1_000 * US;

/// A packet that enters the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    Syn,
    SynAck,
    Data(Transmit),
    Ack,
}

/// Decides the fate of each packet: one entry per copy that arrives, with its delay in picoseconds.
pub(crate) trait Channel {
    fn fate(&mut self, packet: Packet) -> Vec<u64>;

    /// Whether a switch marks this data packet.
    fn marks(&mut self, _seq: u32) -> bool {
        false
    }
}

/// A channel with a fixed delay each way that loses the transmissions that a script names.
pub(crate) struct Scripted {
    pub(crate) delay_ps: u64,
    /// `(seq, n)`: the n-th transmission of that segment is lost, from 0.
    pub(crate) lost: Vec<(u32, usize)>,
    /// `(seq, n, extra)`: that transmission takes longer.
    pub(crate) late: Vec<(u32, usize, u64)>,
    seen: Vec<u32>,
}

impl Scripted {
    pub(crate) fn new(delay_ps: u64, lost: &[(u32, usize)]) -> Self {
        Self { delay_ps, lost: lost.to_vec(), late: vec![], seen: vec![] }
    }
}

impl Channel for Scripted {
    fn fate(&mut self, packet: Packet) -> Vec<u64> {
        let Packet::Data(Transmit { seq, .. }) = packet else { return vec![self.delay_ps] };
        let nth = self.seen.iter().filter(|&&seen| seen == seq).count();
        self.seen.push(seq);
        let extra: u64 = self.late.iter().filter(|late| (late.0, late.1) == (seq, nth)).map(|late| late.2).sum();
        if self.lost.contains(&(seq, nth)) { vec![] } else { vec![self.delay_ps + extra] }
    }
}

/// How bad a channel is; chances are in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Badness {
    pub(crate) data_loss: u64,
    pub(crate) ack_loss: u64,
    pub(crate) duplication: u64,
    pub(crate) late: u64,
    pub(crate) marks: u64,
    /// Lateness, at most.
    pub(crate) late_ps: u64,
}

/// A channel that does harm at random.
pub(crate) struct Adversary {
    badness: Badness,
    delay_ps: u64,
    state: u64,
    pub(crate) lost: u32,
    pub(crate) late: u32,
    pub(crate) repeated: u32,
}

impl Adversary {
    pub(crate) fn new(badness: Badness, delay_ps: u64, seed: u64) -> Self {
        Self { badness, delay_ps, state: seed, lost: 0, late: 0, repeated: 0 }
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014).
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn chance(&mut self, thousandths: u64) -> bool {
        self.random() % 1000 < thousandths
    }

    fn copy(&mut self) -> u64 {
        let late = self.chance(self.badness.late);
        self.late += u32::from(late);
        self.delay_ps + if late { self.random() % self.badness.late_ps.max(1) } else { 0 }
    }
}

impl Channel for Adversary {
    fn fate(&mut self, packet: Packet) -> Vec<u64> {
        let is_ack = matches!(packet, Packet::Ack | Packet::SynAck);
        if self.chance(if is_ack { self.badness.ack_loss } else { self.badness.data_loss }) {
            self.lost += 1;
            return vec![];
        }
        let repeated = self.chance(self.badness.duplication);
        self.repeated += u32::from(repeated);
        (0..1 + u32::from(repeated)).map(|_| self.copy()).collect()
    }

    fn marks(&mut self, _seq: u32) -> bool {
        self.chance(self.badness.marks)
    }
}
