//! One stream after another, or all in turns, and what arrived where.

use std::time::{Duration, Instant};

use weft_scenario::fault::{Fault, FaultKind};
use weft_scenario::id::NodeId;
use weft_scenario::record::{DeliveryRow, LinkCopyRow, Records};
use weft_scenario::units::Nanos;
use weft_scenario::workload::Copies;

use super::Run;
use super::bed::Bed;
use crate::frames::broken::{self, Breaking};
use crate::tester::TesterError;
use crate::tester::account::{StreamCounts, sent_of};
use crate::tester::path::{Path, Trial, TrialOrder};
use crate::tester::port::Port;
use crate::tester::stream::StreamPlan;

/// How long the ways may take until they carry.
const CONVERGENCE: Duration = Duration::from_secs(20);
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// How long frames are sent to see by which link they leave the sender's switch.
const LOOK: Duration = Duration::from_millis(200);

/// Fewer frames may be messages of the switches.
const FRAMES_OF_STREAM: f64 = 20.0;

/// The test centre at the sender and at stations.
pub(super) struct Delivery<'a> {
    run: &'a Run<'a>,
    bed: &'a Bed<'a>,
    path: Path,
}

impl<'a> Delivery<'a> {
    /// Counts at the first so many stations.
    pub(super) fn open(
        run: &'a Run<'a>,
        bed: &'a Bed<'a>,
        stations: usize,
        plan: &StreamPlan,
    ) -> Result<Self, TesterError> {
        let ports: Vec<Port> = bed.stations[..stations].iter().map(|station| station.port.clone()).collect();
        Ok(Self { run, bed, path: Path::open(&bed.sender.port, &ports, plan, run.spec.frame_bytes)? })
    }

    /// Until a frame of every stream comes to each of its receivers.
    pub(super) fn wait_until_it_carries(&mut self, receivers: u32) -> Result<(), TesterError> {
        let deadline = Instant::now() + CONVERGENCE;
        let streams = self.streams(receivers);
        let order = TrialOrder { frames: Some(streams as u64), ..self.order(receivers, CONVERGENCE) };
        loop {
            let (trial, account) = self.send(&order, receivers)?;
            if trial.account.sent > 0 && account.received == account.wanted {
                return Ok(());
            }
            if Instant::now() > deadline {
                let (overlay, Account { received, wanted, .. }) = (self.run.lab.scenario.overlay, account);
                let why = format!("{received} of {wanted} copies cross `{overlay}`; please report it");
                return Err(TesterError::NoPath(why));
            }
            std::thread::sleep(ASK_AGAIN);
        }
    }

    /// Sends for as long as the workload says.
    pub(super) fn measure(&mut self, receivers: u32, records: &mut Records) -> Result<(), TesterError> {
        let order = self.order(receivers, duration(self.run.spec.trial));
        let before = self.bed.trunks.read()?;
        let (trial, account) = self.send(&order, receivers)?;
        let carried = self.bed.trunks.since(&before)?;
        records.deliveries.push(self.row(receivers, &trial, account, String::new()));
        let row = |(way, frames): (&super::trunks::Way, f64)| LinkCopyRow {
            copies: self.run.spec.copies.name().to_owned(),
            receivers,
            groups: self.run.spec.groups,
            sender_frames: trial.account.sent,
            node: self.bed.name(way.from).to_owned(),
            peer: self.bed.name(way.to).to_owned(),
            frames,
        };
        records.link_copies.extend(self.bed.trunks.ways().iter().zip(carried).map(row));
        Ok(())
    }

    /// The same, while the link goes down by which the sender's switch sends on most of it.
    pub(super) fn with_a_link_down(
        &mut self,
        at: Nanos,
        receivers: u32,
        records: &mut Records,
    ) -> Result<(), TesterError> {
        let fault = Fault { at, lasts: None, kind: self.busiest_link(receivers)? };
        let order = self.order(receivers, duration(self.run.spec.trial));
        let breaking =
            Breaking { lab: self.run.lab, progress: self.run.progress, faults: std::slice::from_ref(&fault) };
        let stop = || self.run.progress.interrupted();
        let trial = broken::offer(&breaking, &mut self.path, &order, records, &stop)?;
        let account = self.account(&trial, receivers)?;
        records.deliveries.push(self.row(receivers, &trial, account, fault.subject()));
        self.wait_until_it_carries(receivers)
    }

    fn busiest_link(&mut self, receivers: u32) -> Result<FaultKind, TesterError> {
        let before = self.bed.trunks.read()?;
        self.send(&self.order(receivers, LOOK), receivers)?;
        let carried = self.bed.trunks.since(&before)?;
        let ways: Vec<_> =
            self.bed.trunks.ways().iter().zip(carried).map(|(way, net)| (way.from, way.to, net)).collect();
        let (from, to) = branch_of(self.bed.sender.edge, &ways).ok_or_else(|| {
            let edge = self.bed.name(self.bed.sender.edge);
            TesterError::Refused(format!("no link of `{edge}` carries the stream, so none can go down"))
        })?;
        let [a, b] = [from, to].map(|node| self.bed.name(node).to_owned());
        Ok(FaultKind::LinkDown { a, b })
    }

    fn streams(&self, receivers: u32) -> u32 {
        match self.run.spec.copies {
            Copies::Tree => self.run.spec.groups,
            Copies::Ingress => receivers,
        }
    }

    fn order(&self, receivers: u32, time: Duration) -> TrialOrder {
        let copies = if self.run.spec.copies == Copies::Ingress { receivers } else { 1 };
        TrialOrder::paced(f64::from(self.run.spec.per_s) * f64::from(copies), time)
    }

    fn send(&mut self, order: &TrialOrder, receivers: u32) -> Result<(Trial, Account), TesterError> {
        let stop = || self.run.progress.interrupted();
        self.path.teach(Duration::ZERO)?;
        let trial = self.path.trial(order, &stop)?;
        let account = self.account(&trial, receivers)?;
        Ok((trial, account))
    }

    fn account(&self, trial: &Trial, receivers: u32) -> Result<Account, TesterError> {
        // What was offered, not what was asked for: a busy machine sends less.
        let interval_ns = f64::from(self.streams(receivers)) * 1e9 / trial.offered_pps.max(1.0);
        let own = |station: usize, stream: usize| match self.run.spec.copies {
            Copies::Tree => station < receivers as usize,
            Copies::Ingress => station == stream,
        };
        Ok(Account::of(&self.path.counts()?, trial.account.sent, interval_ns, own))
    }

    fn row(&self, receivers: u32, trial: &Trial, account: Account, link_down: String) -> DeliveryRow {
        let (spec, sent) = (self.run.spec, trial.account.sent);
        DeliveryRow {
            copies: spec.copies.name().to_owned(),
            receivers,
            groups: spec.groups,
            frame_bytes: spec.frame_bytes,
            asked_per_s: f64::from(spec.per_s),
            wall_ns: if trial.offered_pps > 0.0 { (sent as f64 * 1e9 / trial.offered_pps) as u64 } else { 0 },
            sender_frames: sent,
            wanted_copies: account.wanted,
            received_copies: account.received,
            worst_ratio: account.worst_ratio,
            duplicated_copies: account.duplicated,
            strangers: (self.bed.stations.len() as u32).saturating_sub(receivers),
            stray_copies: account.stray,
            link_down,
            hit_receivers: account.hit,
            outage_ns: account.outage_ns,
        }
    }
}

/// Of the links of a switch, each with its ends and what it carried, the one by which it sends a stream on. A bridge sends to ports, too,
/// that block at the other end: what goes on from there counts.
fn branch_of(switch: NodeId, ways: &[(NodeId, NodeId, f64)]) -> Option<(NodeId, NodeId)> {
    let goes_on = |at: NodeId| ways.iter().filter(|(from, ..)| *from == at).map(|(.., frames)| frames).sum::<f64>();
    let own = ways.iter().filter(|(from, _, frames)| *from == switch && *frames >= FRAMES_OF_STREAM);
    let most = own.max_by(|one, other| (one.2 + goes_on(one.1)).total_cmp(&(other.2 + goes_on(other.1))));
    most.map(|(from, to, _)| (*from, *to))
}

fn duration(time: Nanos) -> Duration {
    Duration::from_nanos(time.0)
}

/// What became of a stream's copies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Account {
    wanted: u64,
    received: u64,
    worst_ratio: f64,
    duplicated: u64,
    /// Copies at stations that they were not for.
    stray: u64,
    hit: u32,
    outage_ns: u64,
}

impl Account {
    /// From what each station has counted of each stream; `is_for` says which station a stream is for. A stream sends a frame every
    /// `interval_ns`.
    fn of(counts: &[Vec<StreamCounts>], sent: u64, interval_ns: f64, is_for: impl Fn(usize, usize) -> bool) -> Self {
        let mut account = Self { worst_ratio: 1.0, ..Self::default() };
        for (station, streams) in counts.iter().enumerate() {
            let (mut wanted, mut received, mut lost_most) = (0, 0, 0);
            for (stream, counts) in streams.iter().enumerate() {
                if !is_for(station, stream) {
                    account.stray += counts.received + counts.misdelivered + counts.corrupt + counts.stale;
                    continue;
                }
                let (of_stream, once) = (sent_of(stream, streams.len(), sent), counts.received - counts.duplicated);
                wanted += of_stream;
                received += once;
                lost_most = lost_most.max(of_stream.saturating_sub(once));
                account.duplicated += counts.duplicated;
            }
            account.wanted += wanted;
            account.received += received;
            account.hit += u32::from(lost_most > 0);
            account.outage_ns = account.outage_ns.max((lost_most as f64 * interval_ns) as u64);
            if wanted > 0 {
                account.worst_ratio = account.worst_ratio.min(received as f64 / wanted as f64);
            }
        }
        account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(received: u64) -> StreamCounts {
        StreamCounts { received, ..StreamCounts::default() }
    }

    #[test]
    fn receivers_are_judged_by_the_worst_and_others_get_nothing_or_strays() {
        let doubled = StreamCounts { received: 11, duplicated: 1, ..StreamCounts::default() };
        let counts = [vec![received(10), doubled], vec![received(10), received(7)], vec![received(2), received(0)]];
        let account = Account::of(&counts, 20, 1_000.0, |station, _| station < 2);
        let expected =
            Account { wanted: 40, received: 37, worst_ratio: 0.85, duplicated: 1, stray: 2, hit: 1, outage_ns: 3_000 };
        assert_eq!(account, expected);
    }

    #[test]
    fn the_branch_is_where_the_stream_goes_on() {
        let [edge, other, first, second] = [0, 1, 2, 3].map(NodeId);
        let blocked = [(edge, first, 400.0), (edge, second, 401.0), (first, other, 400.0), (second, edge, 0.5)];
        assert_eq!(branch_of(edge, &blocked), Some((edge, first)));
        assert_eq!(branch_of(edge, &blocked[1..2]), Some((edge, second)), "it ends there");
        assert_eq!(branch_of(edge, &[(edge, first, 3.0)]), None);
    }

    #[test]
    fn a_copy_of_the_ingress_is_for_one_station() {
        let counts = [vec![received(5), received(1)], vec![received(0), received(4)]];
        let account = Account::of(&counts, 10, 1_000.0, |station, stream| station == stream);
        let (wanted, received, stray, hit) = (account.wanted, account.received, account.stray, account.hit);
        assert_eq!((wanted, received, stray, hit), (10, 9, 1, 1));
        assert_eq!(account.worst_ratio, 0.8);
    }
}
