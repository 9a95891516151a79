//! What an RBridge forwards whose work is spread over CPUs by egress nickname, and how evenly. One line for each number of
//! CPUs; all are up at once and take turns.
//!
//! The generator, S1 and the dispatcher share one CPU with the last of the workers where there are no more CPUs: what spreading
//! gains is then little, and how even it is shows all the same.

use std::thread::sleep;
use std::time::Duration;

use weft_datapath::tester::Generator;
use weft_scenario::record::Records;
use weft_scenario::workload::trill::{Network, SpreadSpec, Way};

use super::bed::{Bed, End, PORT, Shape};
use super::cost::{as_fast_as_can_be, heads, size_of};
use super::crossing::stream_plan;
use super::switch::Spread;
use crate::home::namespace_path;
use crate::netns;
use crate::tester::TesterError;
use crate::tester::experiment::Context;
use crate::tester::path::last_cpu;
use crate::tester::stream::Stream;

/// Frames that wait for a CPU have been worked on when so long none has come.
const QUIET: Duration = Duration::from_millis(5);

/// A line with its generator. Fields end in this order.
struct Line {
    cpus: u32,
    generator: Generator,
    streams: Vec<Stream>,
    bed: Bed,
    sums: Sums,
}

/// What became of the frames of one size.
#[derive(Default)]
struct Sums {
    sent: u64,
    came: u64,
    most_per_s: f64,
    by_cpu: Vec<u64>,
}

pub(super) fn run(spec: &SpreadSpec, seed: u64, context: &Context<'_>) -> Result<Records, TesterError> {
    let mut lines = Vec::new();
    for cpus in &spec.cpus {
        context.attend(0.0, &format!("{cpus} CPUs"))?;
        lines.push(Line::new(spec, seed, *cpus)?);
    }
    let mut records = Records::default();
    for (place, bytes) in spec.frame_bytes.iter().enumerate() {
        for line in &mut lines {
            line.generator.set_heads(&heads(&line.streams, size_of(*bytes)?))?;
            line.sums = Sums::default();
        }
        for _ in 0..spec.runs.count {
            context.attend(place as f64 / spec.frame_bytes.len() as f64, &format!("{bytes} bytes"))?;
            lines.iter_mut().try_for_each(|line| line.run(spec, *bytes))?;
        }
        lines.iter().for_each(|line| line.tell(*bytes, &mut records));
    }
    Ok(records)
}

impl Line {
    fn new(spec: &SpreadSpec, seed: u64, cpus: u32) -> Result<Self, TesterError> {
        let present = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        if cpus > present {
            let why = format!("work is to be spread over {cpus} CPUs, and there are {present}; take fewer");
            return Err(TesterError::Refused(why));
        }
        let plan = stream_plan(spec.stations, seed, None);
        let nicknames = u16::try_from(spec.nicknames).expect("a checked workload has at most 4096");
        let spread = Spread { nicknames, cpus };
        let shape = Shape { network: Network::Line, way: Way::Trill, end: Some(End::Middle), spread };
        let bed = Bed::new(shape, &plan)?;
        let streams = plan.streams().map_err(TesterError::Refused)?;
        let heads = heads(&streams, size_of(spec.frame_bytes[0])?);
        let generator = netns::in_namespace(&namespace_path(bed.sender()), || Generator::load(PORT, &heads))??;
        Ok(Self { cpus, generator, streams, bed, sums: Sums::default() })
    }

    fn run(&mut self, spec: &SpreadSpec, bytes: u32) -> Result<(), TesterError> {
        let order = as_fast_as_can_be(size_of(bytes)?, spec.runs, last_cpu()?);
        let (before, worked) = (self.bed.cut_frames()?, self.bed.transit_by_cpu()?);
        let send = || self.generator.send(&order, &|| false);
        let sent = netns::in_namespace(&namespace_path(self.bed.sender()), send)??;
        let came = self.settled()? - before;
        let sums = &mut self.sums;
        sums.sent += sent.frames;
        sums.came += came;
        sums.most_per_s = sums.most_per_s.max(came as f64 * 1e9 / sent.span_ns.max(1) as f64);
        sums.by_cpu.resize(worked.len(), 0);
        for ((sum, after), before) in sums.by_cpu.iter_mut().zip(self.bed.transit_by_cpu()?).zip(worked) {
            *sum += after - before;
        }
        Ok(())
    }

    /// Frames that came to the end, once no more come.
    fn settled(&self) -> Result<u64, TesterError> {
        let mut before = self.bed.cut_frames()?;
        loop {
            sleep(QUIET);
            let now = self.bed.cut_frames()?;
            if now == before {
                return Ok(now);
            }
            before = now;
        }
    }

    fn tell(&self, bytes: u32, records: &mut Records) {
        let Sums { sent, came, most_per_s, by_cpu } = &self.sums;
        let name = |what: &str| format!("spread.{}.{bytes}.{what}", self.cpus);
        let told = [("sent_frames", *sent as f64), ("received_frames", *came as f64), ("most_per_s", *most_per_s)];
        records.facts.extend(told.map(|(what, value)| (name(what), value)));
        for (cpu, frames) in by_cpu.iter().enumerate() {
            records.facts.push((name(&format!("cpu.{cpu}")), *frames as f64));
        }
    }
}
