//! What a frame costs on every way between two virtual switches: all ways up at once, in turns, the least of many runs.

use std::time::Duration;

use weft_scenario::record::{ChainRow, Records};
use weft_scenario::workload::vxlan::{MatrixSpec, Path};

use super::bed::{Bed, Shape};
use crate::tester::TesterError;
use crate::tester::cost::ChainCost;
use crate::tester::experiment::{Context, facts_of, order_of};
use crate::tester::overlays::{Encapsulation, OverlayBed, Wire};
use crate::tester::path::{Path as TesterPath, TrialOrder};
use crate::tester::reference::Reference;
use crate::tester::stream::StreamPlan;

/// Stations of the test centre: enough for hashes to have something to do.
const STREAMS: u16 = 16;

/// One way with the test centre's path over it. Fields end in this order.
struct Way {
    path: Path,
    tester: TesterPath,
    _bed: AnyBed,
}

/// Where the way is.
#[allow(dead_code)] // Held for their namespaces.
enum AnyBed {
    Servers(Box<Bed>),
    Overlay(Box<OverlayBed>),
}

pub(super) fn run(spec: &MatrixSpec, context: &Context<'_>) -> Result<Records, TesterError> {
    let plan = StreamPlan { unicast: STREAMS, ..StreamPlan::default() };
    let progress = context.progress;
    let stop = || progress.interrupted();
    let mut ways = Vec::new();
    for path in &spec.paths {
        context.attend(0.0, path.name())?;
        ways.push(Way::new(*path, &plan, spec.frame_bytes[0], context)?);
    }
    let mut reference = Reference::open(&plan, spec.frame_bytes[0], &stop)?;
    let mut records = Records::default();
    for (place, bytes) in spec.frame_bytes.iter().enumerate() {
        context.attend(place as f64 / spec.frame_bytes.len() as f64, &format!("{bytes} bytes"))?;
        records.chains.extend(size(spec, *bytes, &mut ways, &mut reference, &stop)?);
    }
    let calibration = reference.calibration(&stop)?;
    records.facts.extend(facts_of(&calibration));
    Ok(records)
}

/// All ways at one size, in turns with the tester alone.
fn size(
    spec: &MatrixSpec,
    bytes: u32,
    ways: &mut [Way],
    reference: &mut Reference,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<ChainRow>, TesterError> {
    let order = order_of(spec.cost);
    for way in ways.iter_mut() {
        way.tester.set_size(bytes)?;
    }
    reference.match_to(&ways[0].tester, stop)?;
    let mut alone = Vec::new();
    let mut runs = vec![Vec::new(); ways.len()];
    let mut lost = vec![0; ways.len()];
    for _ in 0..spec.cost.count {
        alone.extend(reference.own_trial(&order, stop)?.cpu_ns_per_frame());
        for (number, way) in ways.iter_mut().enumerate() {
            let trial = way.tester.trial(&order, stop)?;
            lost[number] += trial.account.lost;
            runs[number].extend(trial.cpu_ns_per_frame());
        }
    }
    let ways = ways.iter().zip(&runs).zip(lost).map(|((way, runs), lost)| row(way.path.name(), bytes, runs, lost));
    ways.chain([row("", bytes, &alone, 0)]).collect()
}

/// The test centre alone has no way.
fn row(way: &str, bytes: u32, runs_ns: &[f64], lost_frames: u64) -> Result<ChainRow, TesterError> {
    let cost = ChainCost::of(runs_ns)
        .ok_or_else(|| TesterError::NoPath(format!("no frame of {bytes} bytes crosses `{way}`; please report it")))?;
    Ok(ChainRow {
        way: way.to_owned(),
        frame_bytes: bytes,
        chain_ns_per_frame: cost.min_ns,
        chain_quartile_ns_per_frame: cost.quartile_ns,
        runs: cost.runs as u32,
        lost_frames,
        ..ChainRow::default()
    })
}

impl Way {
    fn new(path: Path, plan: &StreamPlan, bytes: u32, context: &Context<'_>) -> Result<Self, TesterError> {
        let overlay = match path {
            Path::XdpThree => Some(Encapsulation::L2XdpThree),
            Path::Vl2 => Some(Encapsulation::Vl2Xdp),
            Path::Trill => Some(Encapsulation::TrillXdp),
            _ => None,
        };
        let (tester, bed) = match overlay {
            Some(encapsulation) => {
                let bed = OverlayBed::new(encapsulation, &Wire::Veth, plan)?;
                (bed.path(plan, bytes)?, AnyBed::Overlay(Box::new(bed)))
            }
            None => {
                let shape = Shape { path, two_servers: true, tor: false, vms: 0 };
                let bed = Bed::new(shape, plan, context.weft_binary)?;
                (bed.path(plan, bytes)?, AnyBed::Servers(Box::new(bed)))
            }
        };
        let mut way = Self { path, tester, _bed: bed };
        // Nothing crosses a way that was set up wrongly; better to say so now.
        let order = TrialOrder { frames: Some(64), ..TrialOrder::unpaced(Duration::from_secs(1)) };
        match way.tester.trial(&order, &|| false)?.account.counts.received {
            1.. => Ok(way),
            0 => Err(TesterError::NoPath(format!("no frame crosses `{}`; please report it", path.name()))),
        }
    }
}
