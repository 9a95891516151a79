//! CPU time per frame at every switch: the same chain ended behind the test centre and behind every hop, in turns; a switch's
//! share is the difference of the least disturbed runs of two chains.

use std::thread::sleep;
use std::time::Duration;

use weft_scenario::engine::Overlay;
use weft_scenario::record::{ChainRow, Records};
use weft_scenario::workload::{End, Runs};
use weft_testbed::Cut;
use weft_testbed::loss::Cuts;
use weft_testbed::tester::{Frames, Generator, SendOrder};

use super::Run;
use super::bed::Bed;
use super::hops::Hops;
use super::sockets::Sockets;
use super::vm::order::Reply;
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::tester::TesterError;
use crate::tester::bed::{BED_MTU, Namespaces, make_namespaces, wire};
use crate::tester::cost::ChainCost;
use crate::tester::experiment::order_of;
use crate::tester::path::{TrialOrder, frames_of_size, last_cpu};
use crate::tester::port::Port;
use crate::tester::rate::FrameSize;
use crate::tester::stream::Headers;
use crate::trill::rbridges;

/// Frames that the kernel sends in one go.
pub(super) const BATCH: u32 = 64;
/// Frames that wait for a CPU have been worked on when so long none has come.
const QUIET: Duration = Duration::from_millis(5);
/// More would not fit into a socket.
const SOCKET_FRAMES_MOST: u64 = 8_192;
const TESTER: &str = "g0";
/// From new adjacencies to the next cut: time for Hellos and Echoes to go both ways.
const REST: Duration = Duration::from_millis(500);
/// Runs of a chain that may come to nothing.
const ATTEMPTS: u32 = 5;

/// All chains of one trial. Fields end in this order.
pub(super) struct Costs<'a> {
    run: &'a Run<'a>,
    bed: &'a Bed<'a>,
    hops: Hops<'a>,
    cost: Runs,
    source: Source,
    /// Where frames end in sockets.
    sockets: Option<&'a mut Sockets>,
    cuts: Cuts,
    /// The size that is measured now.
    frame_bytes: u32,
    /// At the receiving ports, from the beginning to the end.
    _last: Vec<Cut>,
}

/// Whoever sends.
enum Source {
    /// The test centre, by itself and at the sending server.
    Port { alone: Box<Alone>, own: Box<Sender> },
    /// The process at the sending server.
    Socket,
}

/// The test centre's frames out of a port.
pub(crate) struct Sender {
    generator: Generator,
    port: Port,
}

/// The test centre's own chain: a wire, and a port that drops every frame.
pub(crate) struct Alone {
    pub(crate) sender: Sender,
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
    pub(super) fn open(
        run: &'a Run<'a>,
        bed: &'a Bed<'a>,
        sockets: Option<&'a mut Sockets>,
    ) -> Result<Self, TesterError> {
        let cost = run.spec.cost.expect("asked for");
        let hops = Hops::of(run.lab, bed)?;
        let cuts = Cuts::load()?;
        let source = match run.spec.from {
            End::Port => {
                let frames = frames_of_size(&bed.streams, size_of(run.spec.frame_bytes[0])?);
                let own = Sender::open(bed.port(bed.sender)?, &frames)?;
                Source::Port { alone: Box::new(Alone::new(&frames, &cuts)?), own: Box::new(own) }
            }
            End::Socket => Source::Socket,
        };
        let _last = if sockets.is_none() { hops.cut_at_receivers(&cuts, bed)? } else { Vec::new() };
        let frame_bytes = run.spec.frame_bytes[0];
        Ok(Self { run, bed, hops, cost, source, sockets, cuts, frame_bytes, _last })
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
        if let Source::Port { alone, own } = &mut self.source {
            let frames = frames_of_size(&self.bed.streams, size);
            own.set_frames(&frames)?;
            alone.sender.set_frames(&frames)?;
        }
        self.frame_bytes = bytes;
        let mut order = as_fast_as_can_be(self.cost)?;
        if self.sockets.is_some() {
            order.limit = order.limit.min(SOCKET_FRAMES_MOST);
        }
        let last = self.hops.count() + usize::from(self.sockets.is_some());
        let mut chains: Vec<Chain> = (0..=last).map(|_| Chain::default()).collect();
        let worked = self.transit_by_cpu()?;
        for _ in 0..self.cost.count {
            self.run.attend(0, bytes)?;
            for (hop, chain) in chains.iter_mut().enumerate() {
                self.until_settled(hop, &order, chain)?;
            }
        }
        for (hop, chain) in chains.iter().enumerate() {
            records.chains.push(self.row(hop, bytes, chain)?);
        }
        let names = (0..).map(|cpu| format!("transit.{bytes}.cpu.{cpu}"));
        let frames = self.transit_by_cpu()?.into_iter().zip(worked).map(|(after, before)| (after - before) as f64);
        records.facts.extend(names.zip(frames));
        Ok(())
    }

    /// Ends the chain behind so many hops, until the result is dropped; where nothing is cut it ends by itself.
    fn end_behind(&self, hop: usize) -> Result<Vec<Cut>, LabError> {
        let whole = self.hops.count();
        match (hop, &self.sockets) {
            (0, _) if matches!(self.source, Source::Socket) => self.hops.cut_behind_sender(&self.cuts, self.bed),
            (hop, Some(_)) if hop == whole => self.hops.cut_at_receivers(&self.cuts, self.bed),
            (hop, _) if (1..whole).contains(&hop) => self.hops.cut_behind(hop, &self.cuts),
            _ => Ok(Vec::new()),
        }
    }

    /// A run of a chain in which no RBridge misses a neighbour. The cut takes Echoes, too: where one lasts longer than they may stay
    /// away, adjacencies end, and what follows is about a campus that looks for new ways.
    fn until_settled(&mut self, hop: usize, order: &SendOrder, chain: &mut Chain) -> Result<(), TesterError> {
        for _ in 0..ATTEMPTS {
            let cuts = self.end_behind(hop)?;
            let is_done = self.once(hop, order, chain)?;
            drop(cuts);
            if is_done {
                return Ok(());
            }
            rbridges::wait_for_routes(self.run.lab, self.run.progress)?;
            sleep(REST);
        }
        let each = Duration::from_nanos(self.cost.each.0);
        let why = format!("RBridges missed neighbours in {ATTEMPTS} of {ATTEMPTS} runs of a chain");
        Err(TesterError::Refused(format!("{why}; make `cost.each` ({each:?}) shorter, or let nothing else run here")))
    }

    /// One run of the chain that ends behind so many hops; whether the campus was as it should be. Processes take what has come when all
    /// of it is sent, so nobody waits for anybody; frames that the kernel has left to a thread of its own, or to another CPU, are waited for.
    fn once(&mut self, hop: usize, order: &SendOrder, chain: &mut Chain) -> Result<bool, TesterError> {
        let before = self.cuts.frames()?;
        let sent = self.send(hop, order)?;
        let at_once = self.cuts.frames()? - before;
        let counted = if at_once < sent.frames { settled(&self.cuts)? - before } else { at_once };
        let taken = self.sockets.as_mut().map_or(Ok(Reply::default()), |sockets| sockets.take())?;
        if !rbridges::have_routes(self.run.lab)? {
            return Ok(false);
        }
        if hop <= self.hops.count() {
            chain.came(&sent, counted, 0.0);
        } else if taken.frames * 10 >= sent.frames * 9 {
            // A run in which only some arrived tells nothing about taking them.
            chain.came(&sent, taken.frames, taken.cpu_ns as f64 / taken.frames.max(1) as f64);
        }
        Ok(true)
    }

    fn send(&mut self, hop: usize, order: &SendOrder) -> Result<Reply, TesterError> {
        match &self.source {
            Source::Port { alone, .. } if hop == 0 => alone.sender.send(order),
            Source::Port { own, .. } => own.send(order),
            Source::Socket => {
                let sockets = self.sockets.as_mut().expect("frames from a socket end in one");
                Ok(sockets.send(self.frame_bytes, order.limit, Duration::from_nanos(order.duration_ns))?)
            }
        }
    }

    /// Whether switches without hosts hand frames to other CPUs.
    fn is_spread(&self) -> bool {
        self.run.lab.scenario.switching.cpus > 0
    }

    /// Frames that the second hop's first switch, where it spreads its work, has sent on, by the CPU that worked on them.
    fn transit_by_cpu(&self) -> Result<Vec<u64>, TesterError> {
        let second = (self.is_spread() && self.hops.count() > 1).then(|| self.hops.switches(2)[0]);
        let forwarding = second.map(|switch| (switch, self.run.lab.scenario.forwarding(switch)));
        match forwarding {
            Some((switch, Overlay::RBridge { .. })) => {
                Ok(rbridges::with_maps(self.run.lab, switch, |maps| maps.by_cpu("transit"))?)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn row(&self, hop: usize, bytes: u32, chain: &Chain) -> Result<ChainRow, TesterError> {
        let until = if hop == 0 { String::new() } else { self.hops.name(hop, self.bed) };
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
    /// So many of what was sent came to the end, and taking one there took so long.
    fn came(&mut self, sent: &Reply, frames: u64, taking_ns: f64) {
        self.lost += sent.frames.saturating_sub(frames);
        if frames > 0 {
            self.runs_ns.push(sent.cpu_ns as f64 / frames as f64 + taking_ns);
            self.most_per_s = self.most_per_s.max(frames as f64 * 1e9 / sent.wall_ns.max(1) as f64);
        }
    }
}

/// Frames that came to the end, once no more come.
pub(crate) fn settled(cuts: &Cuts) -> Result<u64, TesterError> {
    let mut before = cuts.frames()?;
    loop {
        sleep(QUIET);
        let now = cuts.frames()?;
        if now == before {
            return Ok(now);
        }
        before = now;
    }
}

impl Sender {
    pub(crate) fn open(port: Port, frames: &Frames) -> Result<Self, TesterError> {
        let generator = port.inside(|| Generator::load(port.interface(), frames))??;
        Ok(Self { generator, port })
    }

    /// Frames of another size from now on.
    pub(crate) fn set_frames(&mut self, frames: &Frames) -> Result<(), TesterError> {
        Ok(self.generator.set_frames(frames)?)
    }

    pub(crate) fn send(&self, order: &SendOrder) -> Result<Reply, TesterError> {
        let sent = self.port.inside(|| self.generator.send(order, &|| false))??;
        Ok(Reply { frames: sent.frames, cpu_ns: sent.cpu_ns, wall_ns: sent.span_ns })
    }
}

impl Alone {
    pub(crate) fn new(frames: &Frames, cuts: &Cuts) -> Result<Self, TesterError> {
        let namespaces = make_namespaces(&["a", "b"].map(str::to_owned))?;
        let [near, far] = namespaces.names() else { unreachable!("two namespaces") };
        wire(near, TESTER, far, TESTER)?;
        let _end = netns::in_namespace(&namespace_path(far), || cuts.cut_at_xdp(TESTER))??;
        let sender = Sender::open(Port::open(&format!("{near}:{TESTER}"))?, frames)?;
        Ok(Self { sender, _end, _namespaces: namespaces })
    }
}

pub(crate) fn size_of(bytes: u32) -> Result<FrameSize, TesterError> {
    FrameSize::new(bytes, BED_MTU, Headers::default()).map_err(TesterError::Refused)
}

/// Frames one behind the other without a pause.
pub(crate) fn as_fast_as_can_be(runs: Runs) -> Result<SendOrder, TesterError> {
    let order = TrialOrder { batch: Some(BATCH), ..order_of(runs) };
    Ok(SendOrder { slip_ns: 1_000_000, ..order.to_send(1, last_cpu()?) })
}
