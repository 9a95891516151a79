//! What became of every frame: from the generator's and the analysers' counters to losses per stream.

use serde::Serialize;

use super::stream::{Cast, Stream};

/// What one analyser counted of one stream. Every frame is in exactly one of the first four, and those that are
/// `received` may be in the others as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamCounts {
    /// Arrived whole at the right station, duplicates included.
    pub received: u64,
    /// Arrived at a station that it was not sent to: another port, hardware address or VLAN.
    pub misdelivered: u64,
    /// Arrived with a payload that is not the one sent. (A damaged header cannot tell its stream: see [`PortCounts`].)
    pub corrupt: u64,
    /// Arrived with a number so old that nobody can tell a duplicate from a latecomer.
    pub stale: u64,
    /// Arrived after a frame that was sent later (RFC 4737).
    pub reordered: u64,
    /// Arrived once more.
    pub duplicated: u64,
}

/// What one analyser counted beside streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortCounts {
    /// Probes whose checksum was wrong.
    pub damaged: u64,
    /// Probes of an earlier trial.
    pub earlier: u64,
    /// Probes of a stream that there is not.
    pub unknown: u64,
}

/// One stream, over all analysers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamResult {
    /// The stream's number.
    pub stream: u16,
    /// Frames sent.
    pub sent: u64,
    /// Frames that had to arrive: for a group one at every port.
    pub expected: u64,
    /// Of those, the ones that did not arrive whole.
    pub lost: u64,
    /// The counts behind it.
    #[serde(flatten)]
    pub counts: StreamCounts,
}

/// All streams together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Frames sent.
    pub sent: u64,
    /// Frames that had to arrive.
    pub expected: u64,
    /// Frames that did not.
    pub lost: u64,
    /// Sums over streams.
    #[serde(flatten)]
    pub counts: StreamCounts,
    /// Sums over ports.
    #[serde(flatten)]
    pub ports: PortCounts,
}

impl Account {
    /// Lost of expected, 0 to 1; 0 if nothing was sent.
    pub fn loss_ratio(&self) -> f64 {
        if self.expected == 0 { 0.0 } else { self.lost as f64 / self.expected as f64 }
    }

    /// Whether every frame arrived once, whole, in order and nowhere else.
    pub fn is_clean(&self) -> bool {
        let StreamCounts { received: _, misdelivered, corrupt, stale, reordered, duplicated } = self.counts;
        let odd = misdelivered + corrupt + stale + reordered + duplicated + self.ports.damaged + self.ports.unknown;
        self.lost == 0 && odd == 0
    }
}

/// Frames of each of `streams` streams when they took turns and `total` were sent.
pub fn sent_of(stream: usize, streams: usize, total: u64) -> u64 {
    let streams = streams.max(1) as u64;
    total / streams + u64::from((stream as u64) < total % streams)
}

/// Frames that have to arrive at `ports` ports when `total` were sent.
pub fn expected(streams: &[Stream], total: u64, ports: usize) -> u64 {
    let each = streams.iter().enumerate();
    each.map(|(place, stream)| sent_of(place, streams.len(), total) * copies(stream, ports)).sum()
}

/// Unicast goes to one port, all else to all.
fn copies(stream: &Stream, ports: usize) -> u64 {
    if stream.cast == Cast::Unicast { 1 } else { ports as u64 }
}

/// Adds up. `ports` has one entry for each analyser; unicast goes to one of them, groups to all.
pub fn account(streams: &[Stream], total_sent: u64, ports: &[Vec<StreamCounts>]) -> Vec<StreamResult> {
    let one = |(place, stream): (usize, &Stream)| {
        let sent = sent_of(place, streams.len(), total_sent);
        let copies = copies(stream, ports.len());
        let at_each = ports.iter().map(|port| port.get(place).copied().unwrap_or_default());
        // Port by port: a second copy at one port does not make up for none at another.
        let first = if stream.cast == Cast::Unicast { stream.receiver.place(ports.len()) } else { 0 };
        let wanted = at_each.clone().skip(first).take(copies as usize);
        let lost = wanted.map(|counts| sent.saturating_sub(unique(&counts))).sum();
        StreamResult {
            stream: stream.number,
            sent,
            expected: sent * copies,
            lost,
            counts: at_each.fold(StreamCounts::default(), sum),
        }
    };
    streams.iter().enumerate().map(one).collect()
}

/// Sums of all streams and ports.
pub fn total(streams: &[StreamResult], ports: &[PortCounts]) -> Account {
    let mut all = Account::default();
    for stream in streams {
        all.sent += stream.sent;
        all.expected += stream.expected;
        all.lost += stream.lost;
        all.counts = sum(all.counts, stream.counts);
    }
    for port in ports {
        all.ports.damaged += port.damaged;
        all.ports.earlier += port.earlier;
        all.ports.unknown += port.unknown;
    }
    all
}

fn unique(counts: &StreamCounts) -> u64 {
    counts.received.saturating_sub(counts.duplicated)
}

fn sum(a: StreamCounts, b: StreamCounts) -> StreamCounts {
    StreamCounts {
        received: a.received + b.received,
        misdelivered: a.misdelivered + b.misdelivered,
        corrupt: a.corrupt + b.corrupt,
        stale: a.stale + b.stale,
        reordered: a.reordered + b.reordered,
        duplicated: a.duplicated + b.duplicated,
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::StreamPlan;
    use super::*;

    fn received(received: u64) -> StreamCounts {
        StreamCounts { received, ..StreamCounts::default() }
    }

    #[test]
    fn turns_are_shared_fairly() {
        assert_eq!((0..3).map(|stream| sent_of(stream, 3, 8)).collect::<Vec<_>>(), [3, 3, 2]);
        assert_eq!(sent_of(0, 0, 8), 8);
    }

    #[test]
    fn a_duplicate_does_not_hide_a_loss() {
        let streams = StreamPlan { unicast: 2, ..StreamPlan::default() }.streams().unwrap();
        let doubled = StreamCounts { received: 5, duplicated: 1, ..StreamCounts::default() };
        let results = account(&streams, 10, &[vec![doubled, received(5)]]);
        assert_eq!((results[0].lost, results[1].lost), (1, 0));
        let all = total(&results, &[PortCounts { earlier: 3, ..PortCounts::default() }]);
        assert_eq!((all.sent, all.lost, all.counts.duplicated, all.ports.earlier), (10, 1, 1, 3));
        assert!(!all.is_clean() && (all.loss_ratio() - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_group_is_owed_a_copy_at_every_port() {
        let streams = StreamPlan { unicast: 1, group: 1, ..StreamPlan::default() }.streams().unwrap();
        let first = vec![received(4), received(4)];
        let second = vec![received(0), received(3)];
        let results = account(&streams, 8, &[first, second]);
        assert_eq!(expected(&streams, 8, 2), 12);
        assert_eq!((results[0].expected, results[0].lost), (4, 0));
        assert_eq!((results[1].expected, results[1].lost, results[1].counts.received), (8, 1, 7));
    }

    #[test]
    fn a_direct_stream_must_come_to_the_last_port() {
        let gateway = Some(weft_wire::ethernet::MacAddress([2, 0, 0, 0, 0, 9]));
        let plan = StreamPlan { unicast: 2, gateway, direct_percent: 50, ..StreamPlan::default() };
        let streams = plan.streams().unwrap();
        let results = account(&streams, 8, &[vec![received(4), received(4)], vec![received(0), received(3)]]);
        assert_eq!((results[0].lost, results[1].lost), (0, 1), "what came to the other port does not count");
    }

    #[test]
    fn earlier_trials_do_not_spoil_a_clean_one() {
        let streams = StreamPlan::default().streams().unwrap();
        let results = account(&streams, 4, &[vec![received(4)]]);
        assert!(total(&results, &[PortCounts { earlier: 9, ..PortCounts::default() }]).is_clean());
        assert!(!total(&results, &[PortCounts { damaged: 1, ..PortCounts::default() }]).is_clean());
        let corrupt = StreamCounts { received: 3, corrupt: 1, ..StreamCounts::default() };
        let spoilt = total(&account(&streams, 4, &[vec![corrupt]]), &[]);
        assert_eq!((spoilt.lost, spoilt.is_clean()), (1, false), "a corrupt frame is lost as well");
        assert_eq!(Account::default().loss_ratio(), 0.0);
    }
}
