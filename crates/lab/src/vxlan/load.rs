//! Rates from the test centre's port to the VMs of a server, and the rate at which the server begins to lose.

use std::time::Duration;

use weft_datapath::tester::{Generator, SendOrder, Sent};
use weft_scenario::record::OfferedRow;

use super::bed::{Bed, frame_size};
use super::cores::{Cores, steer};
use super::vm::order::Order;
use crate::home::namespace_path;
use crate::netns;
use crate::tester::TesterError;
use crate::tester::search::{Outcome, Rfc2544Search};

/// Room in a VM's socket for frames that it has not taken yet: about a thousand, as in a network card's ring. (Each is charged
/// with the page that it lies in.)
pub(super) const SOCKET_BYTES: u32 = 4 << 20;
/// VMs listen a little longer than is sent: the last frames are under way.
const SLACK: Duration = Duration::from_millis(15);
/// The kernel takes so long until the first frame leaves.
const SET_UP: Duration = Duration::from_millis(25);
/// Fewer frames than this are no trial: other work was in the way before it began.
const FRAMES_LEAST: u64 = 50;
const ATTEMPTS: usize = 3;
/// Later than this the generator begins a new schedule: a burst to catch up would measure the burst.
const SLIP_NS: u64 = 20_000;
/// Below so many frames a second waiting is done inside the program, above them frames leave in batches.
const SPIN_PPS: f64 = 10_000.0;
const SINGLE_PPS: f64 = 1_000_000.0;
const BATCH: u32 = 64;
/// The bounds of a search end within this share of each other.
const RESOLUTION: f64 = 0.06;

/// A generator for the VMs of one server.
pub(super) struct Load {
    generator: Generator,
    from: u8,
    server: u8,
    vms: u8,
    frame_bytes: u32,
    namespace: String,
    cores: Cores,
}

/// What one rate did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offered {
    /// The rate that was asked for, frames per second; 0: as fast as possible.
    pub(super) asked_per_s: f64,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) wall_ns: u64,
    pub(super) vm_cpu_ns: u64,
}

impl Offered {
    pub(super) fn sent_per_s(&self) -> f64 {
        self.sent as f64 * 1e9 / self.wall_ns.max(1) as f64
    }

    fn outcome(&self) -> Outcome {
        let lost = self.sent.saturating_sub(self.received);
        let offered_pps = self.sent_per_s();
        let asked_pps = if self.asked_per_s > 0.0 { self.asked_per_s } else { offered_pps };
        Outcome { asked_pps, offered_pps, expected: self.sent, lost }
    }

    pub(super) fn row(&self, kind: &str, bed: &Bed, server: u8, bytes: u32, percent: u32) -> OfferedRow {
        OfferedRow {
            kind: kind.to_owned(),
            path: bed.shape.path.name().to_owned(),
            server: format!("server{server}"),
            vm_pairs: bed.shape.vms,
            frame_bytes: bytes,
            offered_percent: percent,
            asked_per_s: self.asked_per_s,
            wall_ns: self.wall_ns,
            sent_frames: self.sent,
            received_frames: self.received,
            vm_cpu_ns: self.vm_cpu_ns,
            ..OfferedRow::default()
        }
    }
}

impl Load {
    /// From the test centre's port to the first `vms` VMs of a server, in turns.
    pub(super) fn open(bed: &Bed, server: u8, vms: u8, frame_bytes: u32, cores: Cores) -> Result<Self, TesterError> {
        let from = bed.sender();
        let namespace = bed.test_centre(1).to_owned();
        let size = frame_size(frame_bytes)?;
        let heads: Vec<Vec<u8>> =
            bed.streams_to_vms(from, server, vms).iter().map(|stream| stream.head(size)).collect();
        let generator = netns::in_namespace(&namespace_path(&namespace), || Generator::load("g0", &heads))??;
        Ok(Self { generator, from, server, vms, frame_bytes, namespace, cores })
    }

    /// Frames of another size.
    pub(super) fn set_size(&mut self, bed: &Bed, frame_bytes: u32) -> Result<(), TesterError> {
        let size = frame_size(frame_bytes)?;
        let streams = bed.streams_to_vms(self.from, self.server, self.vms);
        self.generator.set_heads(&streams.iter().map(|stream| stream.head(size)).collect::<Vec<_>>())?;
        self.frame_bytes = frame_bytes;
        Ok(())
    }

    /// Sends; `pps`: `None`: as fast as possible.
    pub(super) fn send(&self, pps: Option<f64>, duration: Duration, frames: u64) -> Result<Sent, TesterError> {
        let batch = if pps.is_some_and(|pps| pps <= SINGLE_PPS) { 1 } else { BATCH };
        let order = SendOrder {
            frame_bytes: frame_size(self.frame_bytes)?.kernel_bytes() as usize,
            interval_ns: pps.map_or(0.0, |pps| 1e9 / pps),
            duration_ns: duration.as_nanos() as u64,
            limit: frames,
            batch,
            spin: pps.is_some_and(|pps| pps < SPIN_PPS),
            slip_ns: SLIP_NS,
            seed: 1,
            cpu: self.cores.tester,
        };
        Ok(netns::in_namespace(&namespace_path(&self.namespace), || self.generator.send(&order, &|| false))??)
    }

    /// Offers a rate to the VMs, which receive on the server's core together with the server's soft interrupts.
    pub(super) fn offer(&self, bed: &mut Bed, pps: Option<f64>, duration: Duration) -> Result<Offered, TesterError> {
        let mut offered = self.offer_once(bed, pps, duration)?;
        for _ in 1..ATTEMPTS {
            if offered.sent >= FRAMES_LEAST {
                break;
            }
            offered = self.offer_once(bed, pps, duration)?;
        }
        Ok(offered)
    }

    fn offer_once(&self, bed: &mut Bed, pps: Option<f64>, duration: Duration) -> Result<Offered, TesterError> {
        let duration = duration + SET_UP;
        let receive = Order::Receive {
            duration_ns: (duration + SLACK).as_nanos() as u64,
            buffer_bytes: SOCKET_BYTES,
            core: Some(self.cores.server),
        };
        for vm in 1..=self.vms {
            bed.vm(self.server, vm).begin_receiving(&receive)?;
        }
        let sent = self.send(pps, duration, u64::MAX)?;
        let mut offered = Offered {
            asked_per_s: pps.unwrap_or(0.0),
            sent: sent.frames,
            wall_ns: sent.span_ns.max(1),
            ..Offered::default()
        };
        for vm in 1..=self.vms {
            let reply = bed.vm(self.server, vm).reply()?;
            offered.received += reply.frames;
            offered.vm_cpu_ns += reply.cpu_ns;
        }
        offered.received = offered.received.min(offered.sent);
        Ok(offered)
    }

    /// The highest rate that loses at most so much, frames per second, and every trial of the search.
    pub(super) fn find_rate(
        &self,
        bed: &mut Bed,
        loss_ratio: f64,
        trial: Duration,
    ) -> Result<(f64, Vec<Offered>), TesterError> {
        let flood = self.offer(bed, None, trial)?;
        let mut trials = vec![Offered { asked_per_s: flood.sent_per_s(), ..flood }];
        let mut search = Rfc2544Search::new(flood.sent_per_s(), loss_ratio, RESOLUTION);
        search.record(trials[0].outcome());
        while let Some(pps) = search.next_pps() {
            let mut best = self.offer(bed, Some(pps), trial)?;
            if best.outcome().loss_ratio() > loss_ratio {
                // Once more: other work on the machine makes a server lose, never the other way round.
                let again = self.offer(bed, Some(pps), trial)?;
                if again.outcome().loss_ratio() < best.outcome().loss_ratio() {
                    best = again;
                }
            }
            search.record(best.outcome());
            trials.push(best);
        }
        Ok((search.verdict().pps, trials))
    }
}

/// Soft interrupts of a server's uplink on the core of its VMs until this is dropped.
pub(super) struct Steered {
    namespace: String,
    interface: String,
}

impl Steered {
    pub(super) fn new(bed: &Bed, server: u8, cores: Cores) -> Result<Self, TesterError> {
        let place = bed.uplink(server);
        steer(place.namespace(), place.interface(), Some(cores.server))?;
        Ok(Self { namespace: place.namespace().to_owned(), interface: place.interface().to_owned() })
    }
}

impl Drop for Steered {
    fn drop(&mut self) {
        // If it fails the namespace is gone, and its settings with it.
        let _ = steer(&self.namespace, &self.interface, None);
    }
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
