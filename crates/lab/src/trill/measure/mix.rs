//! Traffic of which a share crosses VLANs: the sending stations at S1 are in one VLAN, of the receiving ones at S2 some are in
//! the same and some in another, behind a port of their own. Campuses as in production; one for each way between VLANs, all up
//! at once.

use std::time::Duration;

use weft_scenario::record::{Records, VlanMixRow};
use weft_scenario::workload::trill::{StpTimers, VlanMixSpec, Way};

use super::campus::CampusBed;
use super::crossing::{TEACHING_PPS, stream_plan, wait_until_it_carries};
use crate::tester::TesterError;
use crate::tester::experiment::Context;
use crate::tester::path::{Path, TrialOrder};
use crate::tester::port::Port;
use crate::tester::reference::{Reference, Stop, run_ns};
use crate::tester::stream::StreamPlan;

/// A campus with the test centre's ports.
struct Mixed {
    way: Way,
    plan: StreamPlan,
    sending: Port,
    /// That of the other VLAN first.
    receiving: [Port; 2],
    _bed: CampusBed,
}

pub(super) fn run(spec: &VlanMixSpec, seed: u64, context: &Context<'_>) -> Result<Records, TesterError> {
    let progress = context.progress;
    let stop = || progress.interrupted();
    let mut campuses = Vec::new();
    for way in &spec.ways {
        context.attend(0.0, way.name())?;
        campuses.push(Mixed::new(*way, spec, seed, context)?);
    }
    let mut reference = Reference::open(&stream_plan(spec.stations, seed, None), spec.frame_bytes, &stop)?;
    let mut records = Records::default();
    for round in 0..spec.rounds {
        for percent in &spec.crossing_percent {
            let text = format!("round {} of {}, {percent} % cross", round + 1, spec.rounds);
            for campus in &campuses {
                context.attend(f64::from(round) / f64::from(spec.rounds), &text)?;
                records.vlan_mixes.push(campus.turn(spec, round, *percent, &mut reference, &stop)?);
            }
        }
    }
    Ok(records)
}

impl Mixed {
    fn new(way: Way, spec: &VlanMixSpec, seed: u64, context: &Context<'_>) -> Result<Self, TesterError> {
        let bed = CampusBed::new(way, None, StpTimers::Quick, context)?;
        let plan = stream_plan(spec.stations, seed, bed.gateway(way));
        bed.tell(way, &plan.streams().map_err(TesterError::Refused)?)?;
        let [sending, other_vlan] = bed.ports()?;
        Ok(Self { way, plan, sending, receiving: [other_vlan, bed.port_within_vlan()?], _bed: bed })
    }

    /// A share's latency at the workload's rate, and then its CPU time.
    fn turn(
        &self,
        spec: &VlanMixSpec,
        round: u32,
        percent: u32,
        reference: &mut Reference,
        stop: Stop<'_>,
    ) -> Result<VlanMixRow, TesterError> {
        let plan = StreamPlan { direct_percent: 100 - percent as u8, ..self.plan.clone() };
        let mut path = Path::open(&self.sending, &self.receiving, &plan, spec.frame_bytes)?;
        if round == 0 {
            wait_until_it_carries(&mut path, self.way.name(), spec.stations, TEACHING_PPS, stop)?;
        }
        let order = TrialOrder::paced(f64::from(spec.per_s), Duration::from_nanos(spec.trial.0));
        let measured = reference.measure(&mut path, &order, stop)?;
        let (mut chain_ns, mut tester_ns) = (f64::INFINITY, f64::INFINITY);
        let each = Duration::from_nanos(spec.cost.each.0);
        for _ in 0..spec.cost.count {
            chain_ns = chain_ns.min(run_ns(&mut path, each, stop)?.unwrap_or(f64::INFINITY));
            tester_ns = tester_ns.min(reference.own_run_ns(each, stop)?.unwrap_or(f64::INFINITY));
        }
        let latency = measured.trial.latency.summary();
        Ok(VlanMixRow {
            way: self.way.name().to_owned(),
            crossing_percent: percent,
            round,
            frame_bytes: spec.frame_bytes,
            offered_per_s: measured.trial.offered_pps,
            sent_frames: measured.trial.account.sent,
            received_frames: measured.trial.account.counts.received,
            latency_mean_ns: latency.mean,
            latency_p50_ns: latency.p50,
            latency_p99_ns: latency.p99,
            floor_mean_ns: measured.floor_mean_ns,
            floor_p50_ns: measured.latency_ns.floor_p50,
            quiet: u32::from(measured.noise.quiet),
            chain_ns_per_frame: chain_ns,
            tester_ns_per_frame: tester_ns,
        })
    }
}
