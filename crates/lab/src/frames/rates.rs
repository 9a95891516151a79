//! Rates of frames to sockets: the highest that loses no more than it may, what arrives around it, and as many as sockets can send.
//!
//! The receivers' edge switch, its soft interrupts and the receiving processes share one core and everything before them another, so
//! that too much traffic starves the receivers as it does in the VXLAN draft (2.1).

use std::time::Duration;

use weft_scenario::record::{CrossingRow, Records};
use weft_scenario::workload::Search;
use weft_testbed::tester::{Generator, SendOrder};

use super::Run;
use super::bed::Bed;
use super::cores::Steered;
use super::cost::{BATCH, size_of};
use super::hops::Hops;
use super::sockets::Sockets;
use super::vm::order::{FRAME_OVER_PAYLOAD, Order};
use crate::tester::TesterError;
use crate::tester::path::{TrialOrder, frames_of_size};
use crate::tester::port::Port;
use crate::tester::search::{Outcome, Rfc2544Search};

/// Room in a process's socket for frames that it has not taken yet: about a thousand, as in a network card's ring. (Each is charged
/// with the page that it lies in.)
const SOCKET_BYTES: u32 = 4 << 20;
/// Receivers listen a little longer than is sent: the last frames are under way.
const SLACK: Duration = Duration::from_millis(15);
/// The kernel takes so long until the first frame leaves.
const SET_UP: Duration = Duration::from_millis(25);
/// Fewer frames than this are no trial: other work was in the way before it began.
const FRAMES_LEAST: u64 = 50;
const ATTEMPTS: usize = 3;
/// Above so many frames a second they leave in batches.
const SINGLE_PPS: f64 = 1_000_000.0;
/// The bounds of a search end within this share of each other.
const RESOLUTION: f64 = 0.06;

/// Rates from the test centre's port.
pub(super) struct Rates<'a> {
    run: &'a Run<'a>,
    bed: &'a Bed<'a>,
    pub(super) sockets: &'a mut Sockets,
    generator: Generator,
    port: Port,
    _steered: Vec<Steered>,
}

/// What one rate did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offered {
    /// The rate that was asked for, frames per second; 0: as fast as possible.
    pub(super) asked_per_s: f64,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) wall_ns: u64,
    pub(super) receiver_cpu_ns: u64,
}

impl Offered {
    fn sent_per_s(&self) -> f64 {
        self.sent as f64 * 1e9 / self.wall_ns.max(1) as f64
    }

    fn outcome(&self) -> Outcome {
        let lost = self.sent.saturating_sub(self.received);
        let offered_pps = self.sent_per_s();
        let asked_pps = if self.asked_per_s > 0.0 { self.asked_per_s } else { offered_pps };
        Outcome { asked_pps, offered_pps, expected: self.sent, lost }
    }

    fn row(&self, kind: &str, streams: usize, frame_bytes: u32, load_percent: u32) -> CrossingRow {
        CrossingRow {
            kind: kind.to_owned(),
            frame_bytes,
            load_percent,
            asked_per_s: self.asked_per_s,
            crossing_percent: 100,
            wall_ns: self.wall_ns,
            sent_frames: self.sent,
            received_frames: self.received,
            streams: streams as u32,
            receiver_cpu_ns: self.receiver_cpu_ns,
            quiet: 1,
            ..CrossingRow::default()
        }
    }
}

impl<'a> Rates<'a> {
    pub(super) fn open(run: &'a Run<'a>, bed: &'a Bed<'a>, sockets: &'a mut Sockets) -> Result<Self, TesterError> {
        let size = size_of(run.spec.frame_bytes[0])?;
        let port = bed.port(bed.sender)?;
        let generator = port.inside(|| Generator::load(port.interface(), &frames_of_size(&bed.streams, size)))??;
        let hops = Hops::of(run.lab, bed)?;
        let entries = hops.entries(hops.count(), bed)?;
        let steer = |port: Port| Steered::new(port, sockets.cores.server);
        let _steered = entries.into_iter().map(steer).collect::<Result<_, _>>()?;
        Ok(Self { run, bed, sockets, generator, port, _steered })
    }

    /// The highest rate of every size, and the shares of it.
    pub(super) fn all_sizes(&mut self, search: &Search, records: &mut Records) -> Result<(), TesterError> {
        for (place, bytes) in self.run.spec.frame_bytes.iter().enumerate() {
            self.run.attend(place, *bytes)?;
            self.set_size(*bytes)?;
            let (pps, trials) = self.find(search)?;
            let streams = self.bed.streams.len();
            records.crossings.extend(trials.iter().map(|trial| trial.row("search", streams, *bytes, 0)));
            for percent in search.offered_percent.iter().filter(|_| pps > 0.0) {
                let offered = self.offer(Some(pps * f64::from(*percent) / 100.0))?;
                records.crossings.push(offered.row("share", streams, *bytes, *percent));
            }
            records.memory.push(self.sockets.memory(self.run.lab, *bytes)?);
        }
        Ok(())
    }

    /// Frames of a size from now on, and everybody knows where everybody is.
    pub(super) fn set_size(&mut self, bytes: u32) -> Result<(), TesterError> {
        self.generator.set_frames(&frames_of_size(&self.bed.streams, size_of(bytes)?))?;
        self.sockets.meet(self.run)
    }

    /// The highest rate that loses at most so much, frames per second, and every trial of the search.
    fn find(&mut self, search: &Search) -> Result<(f64, Vec<Offered>), TesterError> {
        let loss_ratio = f64::from(search.loss_percent) / 100.0;
        let flood = self.offer(None)?;
        let mut trials = vec![Offered { asked_per_s: flood.sent_per_s(), ..flood }];
        let mut search = Rfc2544Search::new(flood.sent_per_s(), loss_ratio, RESOLUTION);
        search.record(trials[0].outcome());
        while let Some(pps) = search.next_pps() {
            let mut best = self.offer(Some(pps))?;
            if best.outcome().loss_ratio() > loss_ratio {
                // Once more: other work on the machine makes a server lose, never the other way round.
                let again = self.offer(Some(pps))?;
                if again.outcome().loss_ratio() < best.outcome().loss_ratio() {
                    best = again;
                }
            }
            search.record(best.outcome());
            trials.push(best);
        }
        Ok((search.verdict().pps, trials))
    }

    /// Offers a rate; `None`: as fast as possible.
    fn offer(&mut self, pps: Option<f64>) -> Result<Offered, TesterError> {
        let mut offered = Offered::default();
        for _ in 0..ATTEMPTS {
            offered = self.offer_once(pps, trial_of(self.run))?;
            if offered.sent >= FRAMES_LEAST {
                break;
            }
        }
        Ok(offered)
    }

    /// Offers a rate once for so long.
    pub(super) fn offer_once(&mut self, pps: Option<f64>, duration: Duration) -> Result<Offered, TesterError> {
        if self.run.progress.interrupted() {
            return Err(TesterError::Interrupted);
        }
        let duration = duration + SET_UP;
        let order = order(pps, duration, self.sockets.cores.tester);
        self.sockets.listen(duration + SLACK, Some(self.sockets.cores.server))?;
        let sent = self.port.inside(|| self.generator.send(&order, &|| false))??;
        let offered = Offered {
            asked_per_s: pps.unwrap_or(0.0),
            sent: sent.frames,
            wall_ns: sent.span_ns.max(1),
            ..Offered::default()
        };
        self.sockets.heard(offered)
    }
}

/// The test centre's frames at a rate, or as fast as possible, from a core.
pub(super) fn order(pps: Option<f64>, duration: Duration, cpu: usize) -> SendOrder {
    let batch = if pps.is_some_and(|pps| pps <= SINGLE_PPS) { 1 } else { BATCH };
    TrialOrder { pps, batch: Some(batch), ..TrialOrder::unpaced(duration) }.to_send(1, cpu)
}

impl Sockets {
    /// Lets the receivers take frames for so long.
    pub(super) fn listen(&mut self, duration: Duration, core: Option<usize>) -> Result<(), TesterError> {
        let order = Order::Receive { duration_ns: duration.as_nanos() as u64, buffer_bytes: SOCKET_BYTES, core };
        self.receivers.iter_mut().try_for_each(|vm| Ok(vm.begin_receiving(&order)?))
    }

    /// What the receivers have of what was sent.
    pub(super) fn heard(&mut self, mut offered: Offered) -> Result<Offered, TesterError> {
        for vm in &mut self.receivers {
            let reply = vm.reply()?;
            offered.received += reply.frames;
            offered.receiver_cpu_ns += reply.cpu_ns;
        }
        offered.received = offered.received.min(offered.sent);
        Ok(offered)
    }
}

/// Every sending process to a receiver of its own at once, as many frames as it can, on all cores.
pub(super) fn all_pairs(run: &Run<'_>, sockets: &mut Sockets, records: &mut Records) -> Result<(), TesterError> {
    let duration = trial_of(run);
    for (place, bytes) in run.spec.frame_bytes.iter().enumerate() {
        run.attend(place, *bytes)?;
        sockets.meet(run)?;
        sockets.listen(duration, None)?;
        for (sender, receiver) in sockets.senders.iter_mut().zip(&sockets.receivers) {
            sender.begin(&Order::Send {
                to: receiver.socket(),
                payload_bytes: bytes - FRAME_OVER_PAYLOAD,
                frames: u64::MAX,
                per_s: 0,
                duration_ns: duration.as_nanos() as u64,
                core: None,
            })?;
        }
        let mut offered = Offered { wall_ns: duration.as_nanos() as u64, ..Offered::default() };
        for sender in &mut sockets.senders {
            offered.sent += sender.reply()?.frames;
        }
        let streams = sockets.senders.len();
        records.crossings.push(sockets.heard(offered)?.row("send", streams, *bytes, 0));
    }
    Ok(())
}

fn trial_of(run: &Run<'_>) -> Duration {
    Duration::from_nanos(run.spec.trial.expect("a checked workload with rates says how long").0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_arrive_is_lost_and_a_flood_asks_for_what_it_sent() {
        let flood = Offered { sent: 2_000, received: 500, wall_ns: 1_000_000, ..Offered::default() };
        let outcome = flood.outcome();
        assert_eq!((outcome.asked_pps, outcome.offered_pps, outcome.lost), (2e6, 2e6, 1_500));
        let paced = Offered { asked_per_s: 3e6, ..flood };
        assert!(paced.outcome().fell_short() && (paced.outcome().loss_ratio() - 0.75).abs() < 1e-12);
        assert_eq!(Offered::default().outcome().loss_ratio(), 0.0);
    }
}
