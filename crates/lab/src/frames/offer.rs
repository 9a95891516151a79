//! Rates from port to port: what arrives, in which order, how late and by which switch.

use std::time::{Duration, Instant};

use weft_scenario::record::{CrossingRow, PathShareRow, Records};
use weft_scenario::workload::Offer;

use super::Run;
use super::bed::Bed;
use super::broken::{self, Breaking};
use super::cost::row_of;
use super::hops::Hops;
use crate::tester::TesterError;
use crate::tester::latency::LatencySummary;
use crate::tester::path::{Path, Trial, TrialOrder};
use crate::tester::port::{Port, PortTraffic};
use crate::tester::rate::LAYER1_EXTRA_BYTES;
use crate::tester::reference::{Reference, Stop, run_ns, steady_trial};

/// How long a spanning tree may take: twice the forwarding delay, and the time to hear of the root.
const CONVERGENCE: Duration = Duration::from_secs(20);
/// Rate of the frames that find out whether a way carries.
const TEACHING_PPS: f64 = 10_000.0;
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// How long the switches' own messages are counted.
const LISTEN: Duration = Duration::from_millis(500);

/// The test centre's path over the lab.
pub(super) struct Crossing<'a> {
    run: &'a Run<'a>,
    bed: &'a Bed<'a>,
    pub(super) path: Path,
    second: Vec<(String, Port)>,
    /// What comes to each of these when nothing is offered: the switches' own messages.
    own: &'a [PerSecond],
}

/// Frames and bytes per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PerSecond {
    frames: f64,
    bytes: f64,
}

/// What the test centre alone reads at the same size and rate.
struct Floor {
    mean_ns: f64,
    p50_ns: u64,
    quiet: bool,
}

/// Reads what comes to every switch of the second hop by itself.
pub(super) fn listen(run: &Run<'_>, bed: &Bed<'_>) -> Result<Vec<PerSecond>, TesterError> {
    let second = Hops::of(run.lab, bed)?.second()?;
    let (before, start) = (taken(&second)?, Instant::now());
    std::thread::sleep(LISTEN);
    let (after, seconds) = (taken(&second)?, start.elapsed().as_secs_f64());
    let rate = |(before, after): (&PortTraffic, &PortTraffic)| PerSecond {
        frames: (after.received_frames - before.received_frames) as f64 / seconds,
        bytes: (after.received_bytes - before.received_bytes) as f64 / seconds,
    };
    Ok(before.iter().zip(&after).map(rate).collect())
}

/// What every switch of the second hop has taken from the first.
fn taken(second: &[(String, Port)]) -> Result<Vec<PortTraffic>, TesterError> {
    second.iter().map(|(_, port)| port.traffic()).collect()
}

impl<'a> Crossing<'a> {
    pub(super) fn open(run: &'a Run<'a>, bed: &'a Bed<'a>, own: &'a [PerSecond]) -> Result<Self, TesterError> {
        let receiving = bed.receivers.iter().map(|server| bed.port(*server)).collect::<Result<Vec<_>, _>>()?;
        let path = Path::open(&bed.port(bed.sender)?, &receiving, &bed.plan, run.spec.frame_bytes[0])?;
        Ok(Self { run, bed, path, second: Hops::of(run.lab, bed)?.second()?, own })
    }

    /// Until a frame of every station arrives.
    pub(super) fn wait_until_it_carries(&mut self, stop: Stop<'_>) -> Result<(), TesterError> {
        let deadline = Instant::now() + CONVERGENCE;
        let stations = self.run.spec.stations;
        let pps = self.teaching_pps();
        let order = TrialOrder {
            frames: Some(u64::from(stations)),
            ..TrialOrder::paced(pps, Duration::from_secs_f64(2.0 * f64::from(stations) / pps))
        };
        loop {
            self.path.teach(self.word_pause())?;
            let account = self.path.trial(&order, stop)?.account;
            if account.lost == 0 && account.counts.received > 0 {
                return Ok(());
            }
            if Instant::now() > deadline {
                let overlay = self.run.lab.scenario.overlay;
                let why =
                    format!("{} of {} frames do not cross `{overlay}`; please report it", account.lost, account.sent);
                return Err(TesterError::NoPath(why));
            }
            std::thread::sleep(ASK_AGAIN);
        }
    }

    /// Links in virtual time drop what is too much for them.
    fn teaching_pps(&self) -> f64 {
        let bits = f64::from(self.run.spec.frame_bytes[0] + LAYER1_EXTRA_BYTES) * 8.0;
        let half = self.run.path_rate().0 as f64 / 2.0 / bits;
        if self.run.lab.scenario.shaped { half.min(TEACHING_PPS) } else { TEACHING_PPS }
    }

    /// After what one station says.
    fn word_pause(&self) -> Duration {
        if self.run.lab.scenario.shaped { Duration::from_secs_f64(1.0 / self.teaching_pps()) } else { Duration::ZERO }
    }

    /// Every rate of every size.
    pub(super) fn all_sizes(&mut self, reference: &mut Reference, records: &mut Records) -> Result<(), TesterError> {
        let (run, path_rate) = (self.run, self.run.path_rate());
        if run.spec.offers(run.spec.frame_bytes[0], path_rate).is_empty() {
            return Ok(());
        }
        let stop = || run.progress.interrupted();
        for (place, bytes) in run.spec.frame_bytes.iter().enumerate() {
            reference.set_own_size(*bytes)?;
            self.path.set_sizes(*bytes)?;
            for offer in run.spec.offers(*bytes, path_rate) {
                run.attend(place, *bytes)?;
                self.offer(*bytes, offer, reference, records, &stop)?;
            }
        }
        Ok(())
    }

    fn offer(
        &mut self,
        bytes: u32,
        offer: Offer,
        reference: &mut Reference,
        records: &mut Records,
        stop: Stop<'_>,
    ) -> Result<(), TesterError> {
        let time = self.run.spec.trial.expect("a checked workload with rates says how long");
        let order = TrialOrder::paced(offer.per_s, Duration::from_nanos(time.0));
        // Nobody answers, and what was learned is forgotten after a while.
        self.path.teach(self.word_pause())?;
        let (before, start) = (self.by_switch()?, Instant::now());
        let (trial, floor) = if !self.run.trial.faults.is_empty() {
            let Run { lab, progress, trial, .. } = *self.run;
            let breaking = Breaking { lab, progress, faults: &trial.faults };
            let trial = broken::offer(&breaking, &mut self.path, &order, records, stop)?;
            (trial, Floor { mean_ns: 0.0, p50_ns: 0, quiet: true })
        } else if self.run.lab.scenario.shaped {
            reference.match_to(&self.path, stop)?;
            let trial = steady_trial(&mut self.path, &order, stop)?;
            let floor = reference.own_trial(&order, stop)?.latency.summary();
            (trial, Floor { mean_ns: floor.mean, p50_ns: floor.p50, quiet: true })
        } else {
            // Latency of the switches alone is some hundred nanoseconds, so it needs a quiet machine.
            let measured = reference.measure(&mut self.path, &order, stop)?;
            let (mean_ns, p50_ns) = (measured.floor_mean_ns, measured.latency_ns.floor_p50);
            (measured.trial, Floor { mean_ns, p50_ns, quiet: measured.noise.quiet })
        };
        let (after, seconds) = (self.by_switch()?, start.elapsed().as_secs_f64());
        records.crossings.push(self.row(bytes, offer, &trial, &floor));
        for (place, (switch, _)) in self.second.iter().enumerate() {
            let (before, after, own) = (&before[place], &after[place], self.own[place]);
            let net = |all: u64, own_per_s: f64| all.saturating_sub((own_per_s * seconds).round() as u64);
            records.path_shares.push(PathShareRow {
                frame_bytes: bytes,
                load_percent: offer.load_percent,
                crossing_percent: self.bed.mix.percent(),
                switch: switch.clone(),
                frames: net(after.received_frames - before.received_frames, own.frames),
                bytes: net(after.received_bytes - before.received_bytes, own.bytes),
            });
        }
        Ok(())
    }

    /// CPU time of the whole way, where no hop can be told from another: the test centre's own path and this one in turns.
    pub(super) fn cost(&mut self, reference: &mut Reference, records: &mut Records) -> Result<(), TesterError> {
        let (run, hops) = (self.run, Hops::of(self.run.lab, self.bed)?.count());
        let (cost, stop) = (run.spec.cost.expect("asked for"), || run.progress.interrupted());
        let each = Duration::from_nanos(cost.each.0);
        for bytes in &run.spec.frame_bytes {
            reference.set_own_size(*bytes)?;
            self.path.set_sizes(*bytes)?;
            self.path.teach(self.word_pause())?;
            let (mut alone, mut whole) = (Vec::new(), Vec::new());
            for _ in 0..cost.count {
                whole.extend(run_ns(&mut self.path, each, &stop)?);
                alone.extend(reference.own_run_ns(each, &stop)?);
            }
            for (hops, runs) in [(0, &alone), (hops, &whole)] {
                records.chains.push(row_of(self.bed, (hops, String::new()), *bytes, runs)?);
            }
        }
        Ok(())
    }

    fn by_switch(&self) -> Result<Vec<PortTraffic>, TesterError> {
        taken(&self.second)
    }

    fn row(&self, bytes: u32, offer: Offer, trial: &Trial, floor: &Floor) -> CrossingRow {
        let latency: LatencySummary = trial.latency.summary();
        let sent = trial.account.sent;
        // What was offered, not what was asked for: a busy machine sends less.
        let interval_ns = trial.streams.len() as f64 * 1e9 / trial.offered_pps.max(1.0);
        let worst = trial.streams.iter().map(|stream| stream.lost).max().unwrap_or(0);
        CrossingRow {
            kind: "given".to_owned(),
            frame_bytes: bytes,
            load_percent: offer.load_percent,
            asked_per_s: offer.per_s,
            crossing_percent: self.bed.mix.percent(),
            wall_ns: if trial.offered_pps > 0.0 { (sent as f64 * 1e9 / trial.offered_pps) as u64 } else { 0 },
            sent_frames: sent,
            received_frames: trial.account.counts.received,
            reordered_frames: trial.account.counts.reordered,
            streams: trial.streams.len() as u32,
            hit_streams: trial.streams.iter().filter(|stream| stream.lost > 0).count() as u32,
            outage_ns: (worst as f64 * interval_ns) as u64,
            latency_mean_ns: latency.mean,
            latency_p50_ns: latency.p50,
            latency_p99_ns: latency.p99,
            floor_mean_ns: floor.mean_ns,
            floor_p50_ns: floor.p50_ns,
            receiver_cpu_ns: 0,
            quiet: floor.quiet.into(),
        }
    }
}
