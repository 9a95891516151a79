//! CPU time per frame at every switch: the same chain ended behind the test centre, S1, the middle and S2. All chains are up
//! at once and take turns; a switch's share is the difference of the least disturbed runs of two chains.

use std::time::Duration;

use weft_datapath::tester::{Generator, SendOrder};
use weft_scenario::record::{ChainRow, Records};
use weft_scenario::workload::Runs;
use weft_scenario::workload::trill::{CostSpec, Way};

use super::bed::{Bed, End, PORT, Shape};
use super::crossing::stream_plan;
use super::switch::{GATEWAY, Spread};
use crate::home::namespace_path;
use crate::netns;
use crate::tester::TesterError;
use crate::tester::bed::BED_MTU;
use crate::tester::cost::ChainCost;
use crate::tester::experiment::{Context, facts_of, order_of};
use crate::tester::path::last_cpu;
use crate::tester::rate::FrameSize;
use crate::tester::reference::Reference;
use crate::tester::stream::{Stream, StreamPlan};

/// Frames that the kernel sends in one go.
const BATCH: u32 = 64;
const ENDS: [(End, &str); 3] = [(End::S1, "s1"), (End::Middle, "middle"), (End::S2, "s2")];

/// A chain with its generator. Fields end in this order.
struct Chain {
    way: &'static str,
    until: &'static str,
    generator: Generator,
    streams: Vec<Stream>,
    bed: Bed,
    runs_ns: Vec<f64>,
    most_per_s: f64,
    lost: u64,
}

pub(super) fn run(spec: &CostSpec, seed: u64, context: &Context<'_>) -> Result<Records, TesterError> {
    let progress = context.progress;
    let stop = || progress.interrupted();
    let mut chains = vec![Chain::new(spec, seed, spec.ways[0], (End::Tester, ""))?];
    for way in &spec.ways {
        context.attend(0.0, way.name())?;
        for end in ENDS {
            chains.push(Chain::new(spec, seed, *way, end)?);
        }
    }
    let mut records = Records::default();
    let cpu = last_cpu()?;
    for (place, bytes) in spec.frame_bytes.iter().enumerate() {
        for chain in &mut chains {
            chain.set_size(*bytes)?;
        }
        for _ in 0..spec.cost.count {
            context.attend(place as f64 / spec.frame_bytes.len() as f64, &format!("{bytes} bytes"))?;
            chains.iter_mut().try_for_each(|chain| chain.run(*bytes, spec.cost, cpu))?;
        }
        for chain in &chains {
            records.chains.push(chain.row(*bytes)?);
        }
    }
    let mut reference = Reference::open(&StreamPlan::default(), spec.frame_bytes[0], &stop)?;
    records.facts.extend(facts_of(&reference.calibration(&stop)?));
    Ok(records)
}

pub(super) fn size_of(bytes: u32) -> Result<FrameSize, TesterError> {
    FrameSize::new(bytes, BED_MTU, false).map_err(TesterError::Refused)
}

/// Frames of a size, one behind the other without a pause.
pub(super) fn as_fast_as_can_be(size: FrameSize, runs: Runs, cpu: usize) -> SendOrder {
    let order = order_of(runs);
    SendOrder {
        frame_bytes: size.kernel_bytes() as usize,
        interval_ns: 0.0,
        duration_ns: u64::try_from(order.duration.as_nanos()).unwrap_or(u64::MAX),
        limit: order.frames.unwrap_or(u64::MAX),
        batch: BATCH,
        spin: false,
        slip_ns: Duration::from_millis(1).as_nanos() as u64,
        seed: 1,
        cpu,
    }
}

impl Chain {
    fn new(spec: &CostSpec, seed: u64, way: Way, (end, until): (End, &'static str)) -> Result<Self, TesterError> {
        let plan = stream_plan(spec.stations, seed, way.is_between_vlans().then_some(GATEWAY));
        let bed = Bed::new(Shape { network: spec.network, way, end: Some(end), spread: Spread::default() }, &plan)?;
        let streams = plan.streams().map_err(TesterError::Refused)?;
        let heads = heads(&streams, size_of(spec.frame_bytes[0])?);
        let generator = netns::in_namespace(&namespace_path(bed.sender()), || Generator::load(PORT, &heads))??;
        let way = if end == End::Tester { "" } else { way.name() };
        Ok(Self { way, until, generator, streams, bed, runs_ns: Vec::new(), most_per_s: 0.0, lost: 0 })
    }

    fn set_size(&mut self, bytes: u32) -> Result<(), TesterError> {
        self.generator.set_heads(&heads(&self.streams, size_of(bytes)?))?;
        (self.runs_ns, self.most_per_s, self.lost) = (Vec::new(), 0.0, 0);
        Ok(())
    }

    fn run(&mut self, bytes: u32, runs: Runs, cpu: usize) -> Result<(), TesterError> {
        let order = as_fast_as_can_be(size_of(bytes)?, runs, cpu);
        let before = self.bed.cut_frames()?;
        let send = || self.generator.send(&order, &|| false);
        let sent = netns::in_namespace(&namespace_path(self.bed.sender()), send)??;
        let came = self.bed.cut_frames()? - before;
        self.lost += sent.frames.saturating_sub(came);
        if came > 0 {
            self.runs_ns.push(sent.cpu_ns as f64 / came as f64);
            self.most_per_s = self.most_per_s.max(came as f64 * 1e9 / sent.span_ns.max(1) as f64);
        }
        Ok(())
    }

    fn row(&self, bytes: u32) -> Result<ChainRow, TesterError> {
        let cost = ChainCost::of(&self.runs_ns).ok_or_else(|| {
            let why =
                format!("no frame of {bytes} bytes comes past {} of `{}`; please report it", self.until, self.way);
            TesterError::NoPath(why)
        })?;
        Ok(ChainRow {
            way: self.way.to_owned(),
            until: self.until.to_owned(),
            frame_bytes: bytes,
            chain_ns_per_frame: cost.min_ns,
            chain_quartile_ns_per_frame: cost.quartile_ns,
            most_per_s: self.most_per_s,
            runs: cost.runs as u32,
            lost_frames: self.lost,
        })
    }
}

pub(super) fn heads(streams: &[Stream], size: FrameSize) -> Vec<Vec<u8>> {
    streams.iter().map(|stream| stream.head(size)).collect()
}
