//! CPU time per frame at every switch: the same chain ended behind the test centre and behind every hop, in turns; a switch's
//! share is the difference of the least disturbed runs of two chains.

use std::thread::sleep;
use std::time::Duration;

use weft_datapath::bed::{BedPrograms, Cut};
use weft_datapath::tester::{Generator, SendOrder};
use weft_scenario::engine::Overlay;
use weft_scenario::record::{ChainRow, Records};
use weft_scenario::workload::Runs;

use super::Run;
use super::bed::Bed;
use super::hops::Hops;
use crate::home::namespace_path;
use crate::netns;
use crate::tester::TesterError;
use crate::tester::bed::{BED_MTU, Namespaces, make_namespaces, wire};
use crate::tester::cost::ChainCost;
use crate::tester::experiment::order_of;
use crate::tester::path::last_cpu;
use crate::tester::port::Port;
use crate::tester::rate::FrameSize;
use crate::tester::stream::Stream;
use crate::trill::rbridges;

/// Frames that the kernel sends in one go.
const BATCH: u32 = 64;
/// Frames that wait for a CPU have been worked on when so long none has come.
const QUIET: Duration = Duration::from_millis(5);
const TESTER: &str = "g0";

/// All chains of one trial. Fields end in this order.
pub(super) struct Costs<'a> {
    run: &'a Run<'a>,
    bed: &'a Bed<'a>,
    hops: Hops<'a>,
    cost: Runs,
    alone: Alone,
    generator: Generator,
    sender: Port,
    cuts: BedPrograms,
    /// At the receiving ports, from the beginning to the end.
    _last: Vec<Cut>,
}

/// The test centre's own chain: a wire, and a port that drops every frame.
struct Alone {
    generator: Generator,
    port: Port,
    cuts: BedPrograms,
    _end: Cut,
    _namespaces: Namespaces,
}

/// Runs of one chain.
#[derive(Default)]
struct Chain {
    runs_ns: Vec<f64>,
    most_per_s: f64,
    lost: u64,
}

impl<'a> Costs<'a> {
    pub(super) fn open(run: &'a Run<'a>, bed: &'a Bed<'a>) -> Result<Self, TesterError> {
        let cost = run.spec.cost.expect("asked for");
        let hops = Hops::of(run.lab, bed)?;
        let heads = heads(&bed.streams, size_of(run.spec.frame_bytes[0])?);
        let sender = bed.port(bed.sender)?;
        let generator = sender.inside(|| Generator::load(sender.interface(), &heads))??;
        let cuts = BedPrograms::load()?;
        let last = hops.cut_at_receivers(&cuts, bed)?;
        Ok(Self { run, bed, hops, cost, alone: Alone::new(&heads)?, generator, sender, cuts, _last: last })
    }

    pub(super) fn all_sizes(&mut self, records: &mut Records) -> Result<(), TesterError> {
        let run = self.run;
        for (place, bytes) in run.spec.frame_bytes.iter().enumerate() {
            run.attend(place, *bytes)?;
            self.size(*bytes, records)?;
        }
        Ok(())
    }

    /// All chains at one size, in turns.
    fn size(&mut self, bytes: u32, records: &mut Records) -> Result<(), TesterError> {
        let size = size_of(bytes)?;
        let heads = heads(&self.bed.streams, size);
        self.generator.set_heads(&heads)?;
        self.alone.generator.set_heads(&heads)?;
        let order = as_fast_as_can_be(size, self.cost)?;
        let whole = self.hops.count();
        let mut chains: Vec<(usize, Chain)> = (0..=whole).map(|hop| (hop, Chain::default())).collect();
        let worked = self.transit_by_cpu()?;
        for _ in 0..self.cost.count {
            self.run.attend(0, bytes)?;
            for (hop, chain) in &mut chains {
                match *hop {
                    0 => chain.run(&self.alone.generator, &self.alone.port, &self.alone.cuts, &order, false)?,
                    hop => {
                        let _cuts =
                            if hop < whole { self.hops.cut_behind(hop, &self.cuts, self.bed)? } else { Vec::new() };
                        chain.run(&self.generator, &self.sender, &self.cuts, &order, self.is_spread())?;
                    }
                }
            }
        }
        for (hop, chain) in &chains {
            records.chains.push(self.row(*hop, bytes, chain)?);
        }
        let names = (0..).map(|cpu| format!("transit.{bytes}.cpu.{cpu}"));
        let frames = self.transit_by_cpu()?.into_iter().zip(worked).map(|(after, before)| (after - before) as f64);
        records.facts.extend(names.zip(frames));
        Ok(())
    }

    /// Whether switches without hosts hand frames to other CPUs.
    fn is_spread(&self) -> bool {
        self.run.lab.scenario.switching.cpus > 0
    }

    /// Frames that the second hop's first switch, where it spreads its work, has sent on, by the CPU that worked on them.
    fn transit_by_cpu(&self) -> Result<Vec<u64>, TesterError> {
        match self.run.lab.scenario.overlay {
            Overlay::RBridge { .. } if self.is_spread() && self.hops.count() > 1 => {
                let switch = self.hops.switches(2)[0];
                Ok(rbridges::with_maps(self.run.lab, switch, |maps| maps.by_cpu("transit"))?)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn row(&self, hop: usize, bytes: u32, chain: &Chain) -> Result<ChainRow, TesterError> {
        let until = if hop == 0 { String::new() } else { self.hops.name(hop) };
        let row = row_of(self.bed, (hop, until), bytes, &chain.runs_ns)?;
        Ok(ChainRow { most_per_s: chain.most_per_s, lost_frames: chain.lost, ..row })
    }
}

/// What runs of a chain have shown, which ends behind so many hops, at the switches of this name.
pub(super) fn row_of(
    bed: &Bed<'_>,
    (hops, until): (usize, String),
    bytes: u32,
    runs_ns: &[f64],
) -> Result<ChainRow, TesterError> {
    let missing = || TesterError::NoPath(format!("no frame of {bytes} bytes comes past `{until}`; please report it"));
    let cost = ChainCost::of(runs_ns).ok_or_else(missing)?;
    Ok(ChainRow {
        until,
        hops: hops as u32,
        crossing_percent: bed.mix.percent(),
        frame_bytes: bytes,
        chain_ns_per_frame: cost.min_ns,
        chain_quartile_ns_per_frame: cost.quartile_ns,
        runs: cost.runs as u32,
        ..ChainRow::default()
    })
}

impl Chain {
    fn run(
        &mut self,
        generator: &Generator,
        port: &Port,
        cuts: &BedPrograms,
        order: &SendOrder,
        settle: bool,
    ) -> Result<(), TesterError> {
        let before = cuts.cut_frames()?;
        let sent = port.inside(|| generator.send(order, &|| false))??;
        let came = if settle { settled(cuts)? } else { cuts.cut_frames()? } - before;
        self.lost += sent.frames.saturating_sub(came);
        if came > 0 {
            self.runs_ns.push(sent.cpu_ns as f64 / came as f64);
            self.most_per_s = self.most_per_s.max(came as f64 * 1e9 / sent.span_ns.max(1) as f64);
        }
        Ok(())
    }
}

/// Frames that came to the end, once no more come.
fn settled(cuts: &BedPrograms) -> Result<u64, TesterError> {
    let mut before = cuts.cut_frames()?;
    loop {
        sleep(QUIET);
        let now = cuts.cut_frames()?;
        if now == before {
            return Ok(now);
        }
        before = now;
    }
}

impl Alone {
    fn new(heads: &[Vec<u8>]) -> Result<Self, TesterError> {
        let namespaces = make_namespaces(&["a", "b"].map(str::to_owned))?;
        let [near, far] = namespaces.names() else { unreachable!("two namespaces") };
        wire(near, TESTER, far, TESTER)?;
        let cuts = BedPrograms::load()?;
        let end = netns::in_namespace(&namespace_path(far), || cuts.cut_at_xdp(TESTER))??;
        let port = Port::open(&format!("{near}:{TESTER}"))?;
        let generator = port.inside(|| Generator::load(TESTER, heads))??;
        Ok(Self { generator, port, cuts, _end: end, _namespaces: namespaces })
    }
}

fn size_of(bytes: u32) -> Result<FrameSize, TesterError> {
    FrameSize::new(bytes, BED_MTU, false).map_err(TesterError::Refused)
}

/// Frames of a size, one behind the other without a pause.
fn as_fast_as_can_be(size: FrameSize, runs: Runs) -> Result<SendOrder, TesterError> {
    let order = order_of(runs);
    Ok(SendOrder {
        frame_bytes: size.kernel_bytes() as usize,
        interval_ns: 0.0,
        duration_ns: u64::try_from(order.duration.as_nanos()).unwrap_or(u64::MAX),
        limit: order.frames.unwrap_or(u64::MAX),
        batch: BATCH,
        spin: false,
        slip_ns: Duration::from_millis(1).as_nanos() as u64,
        seed: 1,
        cpu: last_cpu()?,
    })
}

fn heads(streams: &[Stream], size: FrameSize) -> Vec<Vec<u8>> {
    streams.iter().map(|stream| stream.head(size)).collect()
}
