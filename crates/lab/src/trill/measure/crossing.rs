//! Rates and loads from port to port: what arrives, in which order, how late and by which middle switch. All ways are up at
//! once and take turns at every rate, so that a change of the machine's mood meets all of them.

use std::time::{Duration, Instant};

use weft_scenario::record::{CrossingRow, PathShareRow, Records};
use weft_scenario::workload::trill::{CrossingSpec, Network, Offer, StpTimers, Way};
use weft_wire::ethernet::MacAddress;

use super::bed::{Bed, Shape};
use super::campus::CampusBed;
use super::switch::{GATEWAY, Spread};
use crate::tester::TesterError;
use crate::tester::experiment::Context;
use crate::tester::latency::LatencySummary;
use crate::tester::path::{Path, Trial, TrialOrder};
use crate::tester::port::{Port, PortTraffic};
use crate::tester::reference::{Reference, Stop, steady_trial};
use crate::tester::stream::StreamPlan;

/// How long a spanning tree may take: twice the forwarding delay, and the time to hear of the root.
const CONVERGENCE: Duration = Duration::from_secs(20);
/// Rate of the frames that find out whether a way carries.
pub(super) const TEACHING_PPS: f64 = 10_000.0;
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// One way with the test centre's path over it. Fields end in this order.
pub(super) struct Crossing {
    pub(super) way: Way,
    pub(super) path: Path,
    middles: Vec<(String, Port)>,
    pub(super) between: Between,
}

/// What is between the test centre's ports.
#[allow(dead_code)] // A line is held for its namespaces.
pub(super) enum Between {
    Line(Box<Bed>),
    Campus(Box<CampusBed>),
}

pub(super) fn run(spec: &CrossingSpec, seed: u64, context: &Context<'_>) -> Result<Records, TesterError> {
    let progress = context.progress;
    let stop = || progress.interrupted();
    let mut crossings = Vec::new();
    for way in &spec.ways {
        context.attend(0.0, way.name())?;
        crossings.push(Crossing::new(*way, spec, StpTimers::Quick, seed, context)?);
    }
    for crossing in &mut crossings {
        context.attend(0.0, crossing.way.name())?;
        crossing.wait_until_it_carries(spec, &stop)?;
    }
    let plan = stream_plan(spec.stations, seed, None);
    let mut reference = Reference::open(&plan, spec.frame_bytes[0], &stop)?;
    let mut records = Records::default();
    for (place, bytes) in spec.frame_bytes.iter().enumerate() {
        context.attend(place as f64 / spec.frame_bytes.len() as f64, &format!("{bytes} bytes"))?;
        reference.set_own_size(*bytes)?;
        for crossing in &mut crossings {
            crossing.path.set_size(*bytes)?;
        }
        for offer in spec.offers(*bytes) {
            for crossing in &mut crossings {
                context.attend(place as f64 / spec.frame_bytes.len() as f64, &format!("{bytes} bytes"))?;
                crossing.offer(spec, *bytes, offer, &mut reference, &mut records, &stop)?;
            }
        }
    }
    Ok(records)
}

/// Streams of the test centre; `gateway`: who they are addressed to at first.
pub(super) fn stream_plan(stations: u32, seed: u64, gateway: Option<MacAddress>) -> StreamPlan {
    let unicast = u16::try_from(stations).expect("a checked workload has at most 16,384 stations");
    StreamPlan { unicast, gateway, seed, ..StreamPlan::default() }
}

/// Until a frame of every station arrives.
pub(super) fn wait_until_it_carries(
    path: &mut Path,
    way: &str,
    stations: u32,
    pps: f64,
    stop: Stop<'_>,
) -> Result<(), TesterError> {
    let deadline = Instant::now() + CONVERGENCE;
    let order = TrialOrder {
        frames: Some(u64::from(stations)),
        ..TrialOrder::paced(pps, Duration::from_secs_f64(2.0 * f64::from(stations) / pps))
    };
    loop {
        path.teach()?;
        let trial = path.trial(&order, stop)?;
        if trial.account.lost == 0 && trial.account.counts.received > 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            let (lost, sent) = (trial.account.lost, trial.account.sent);
            return Err(TesterError::NoPath(format!("{lost} of {sent} frames do not cross `{way}`; please report it")));
        }
        std::thread::sleep(ASK_AGAIN);
    }
}

impl Crossing {
    pub(super) fn new(
        way: Way,
        spec: &CrossingSpec,
        timers: StpTimers,
        seed: u64,
        context: &Context<'_>,
    ) -> Result<Self, TesterError> {
        match spec.network {
            Network::Line => {
                let plan = stream_plan(spec.stations, seed, way.is_between_vlans().then_some(GATEWAY));
                let bed = Bed::new(Shape { network: spec.network, way, end: None, spread: Spread::default() }, &plan)?;
                let (ports, middles) = (bed.ports()?, bed.middles()?);
                Self::over(way, spec, &plan, ports, middles, Between::Line(Box::new(bed)))
            }
            Network::Campus => {
                let bed = CampusBed::new(way, spec.link.as_ref(), timers, context)?;
                let plan = stream_plan(spec.stations, seed, bed.gateway(way));
                bed.tell(way, &plan.streams().map_err(TesterError::Refused)?)?;
                let (ports, middles) = (bed.ports()?, bed.middles()?);
                Self::over(way, spec, &plan, ports, middles, Between::Campus(Box::new(bed)))
            }
        }
    }

    fn over(
        way: Way,
        spec: &CrossingSpec,
        plan: &StreamPlan,
        [sending, receiving]: [Port; 2],
        middles: Vec<(String, Port)>,
        between: Between,
    ) -> Result<Self, TesterError> {
        let path = Path::open(&sending, &[receiving], plan, spec.frame_bytes[0])?;
        Ok(Self { way, path, middles, between })
    }

    /// What every middle switch has taken from S1, with its name.
    pub(super) fn by_middle(&self) -> Result<Vec<(String, PortTraffic)>, TesterError> {
        let count = |(name, port): &(String, Port)| Ok((name.clone(), port.traffic()?));
        self.middles.iter().map(count).collect()
    }

    /// Until every frame of a round arrives: bridges forward late, and have to learn where stations are.
    pub(super) fn wait_until_it_carries(&mut self, spec: &CrossingSpec, stop: Stop<'_>) -> Result<(), TesterError> {
        // Half of what one emulated line carries, so that no queue is full.
        let line_pps = spec.link.map(|link| link.rate.0 as f64 / (f64::from(spec.frame_bytes[0] + 64) * 8.0));
        let pps = line_pps.map_or(TEACHING_PPS, |pps| TEACHING_PPS.min(pps / 2.0));
        wait_until_it_carries(&mut self.path, self.way.name(), spec.stations, pps, stop)
    }

    fn offer(
        &mut self,
        spec: &CrossingSpec,
        bytes: u32,
        offer: Offer,
        reference: &mut Reference,
        records: &mut Records,
        stop: Stop<'_>,
    ) -> Result<(), TesterError> {
        let order = TrialOrder::paced(offer.per_s, Duration::from_nanos(spec.trial.0));
        // Nobody answers, and what was learned is forgotten after a while.
        self.path.teach()?;
        let before = self.by_middle()?;
        let (trial, floor) = match spec.link {
            // Latency of the switches alone is some hundred nanoseconds, so it needs a quiet machine.
            None => {
                let measured = reference.measure(&mut self.path, &order, stop)?;
                let (p50, mean) = (measured.latency_ns.floor_p50, measured.floor_mean_ns);
                (measured.trial, LatencySummary { p50, mean, ..LatencySummary::default() })
            }
            Some(_) => {
                reference.match_to(&self.path, stop)?;
                let trial = steady_trial(&mut self.path, &order, stop)?;
                let floor = reference.own_trial(&order, stop)?;
                (trial, floor.latency.summary())
            }
        };
        let after = self.by_middle()?;
        records.crossings.push(self.row(bytes, offer, &trial, &floor));
        records.path_shares.extend(before.into_iter().zip(after).map(|((switch, before), (_, after))| PathShareRow {
            way: self.way.name().to_owned(),
            frame_bytes: bytes,
            load_percent: offer.load_percent,
            switch,
            frames: after.received_frames - before.received_frames,
            bytes: after.received_bytes - before.received_bytes,
        }));
        Ok(())
    }

    fn row(&self, bytes: u32, offer: Offer, trial: &Trial, floor: &LatencySummary) -> CrossingRow {
        let latency = trial.latency.summary();
        let sent = trial.account.sent;
        CrossingRow {
            way: self.way.name().to_owned(),
            frame_bytes: bytes,
            load_percent: offer.load_percent,
            asked_per_s: offer.per_s,
            wall_ns: if trial.offered_pps > 0.0 { (sent as f64 * 1e9 / trial.offered_pps) as u64 } else { 0 },
            sent_frames: sent,
            received_frames: trial.account.counts.received,
            reordered_frames: trial.account.counts.reordered,
            latency_mean_ns: latency.mean,
            latency_p50_ns: latency.p50,
            latency_p99_ns: latency.p99,
            floor_mean_ns: floor.mean,
            floor_p50_ns: floor.p50,
        }
    }
}
