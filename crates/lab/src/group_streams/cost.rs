//! CPU time of a copy: the test centre alone, a frame to one station and one to a group, in turns; all stations drop what comes. What
//! RBridges have threads of the kernel copy is counted with what the sender's core does.
//!
//! An edge switch lets its port send a thousand frames for groups at once and so many a second, so runs are short and apart.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use weft_scenario::record::{CopyCostRow, Records};
use weft_scenario::workload::Runs;
use weft_testbed::loss::Cuts;
use weft_testbed::tester::{Frames, SendOrder};
use weft_testbed::{Cut, cpu};

use super::Run;
use super::bed::Bed;
use crate::error::LabError;
use crate::frames::cost::{Alone, Sender, as_fast_as_can_be, settled, size_of};
use crate::tester::TesterError;
use crate::tester::cost::ChainCost;
use crate::tester::path::{frames_of_size, socket_of};
use crate::tester::stream::{Stream, StreamPlan};

/// Frames of a run: half of what a port may send at once.
const FRAMES: u64 = 500;
/// After a run: what it took of the limit is given back, at ten thousand a second.
const REST: Duration = Duration::from_millis(60);
/// After the first frames for a group's new receivers.
const PREPARED: Duration = Duration::from_secs(3);

/// Messages of the switches, which are taken off as a rate, come in ones and twos.
const MESSAGES: f64 = 0.02;

/// All that is measured in turns. Fields end in this order.
pub(super) struct Costs<'a> {
    run: &'a Run<'a>,
    bed: &'a Bed<'a>,
    cost: Runs,
    sender: Sender,
    alone: Box<Alone>,
    one: Frames,
    many: Frames,
    /// What the first receiver says, so that switches know where it is.
    word: Vec<u8>,
    cuts: Cuts,
    /// Those that frames for several ports are handed to, of every RBridge of this machine.
    copiers: Vec<u32>,
    _ends: Vec<Cut>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    None,
    Unicast,
    Tree,
}

/// One run of a way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Reading {
    frame_ns: f64,
    /// Of each frame.
    copies: f64,
}

impl<'a> Costs<'a> {
    pub(super) fn open(run: &'a Run<'a>, bed: &'a Bed<'a>, cost: Runs, group: &Stream) -> Result<Self, TesterError> {
        let plan = StreamPlan { seed: run.trial.seed, ..StreamPlan::default() };
        let station = plan.streams().map_err(TesterError::Refused)?.swap_remove(0);
        let size = size_of(run.spec.frame_bytes)?;
        let (one, many) =
            (frames_of_size(std::slice::from_ref(&station), size), frames_of_size(std::slice::from_ref(group), size));
        let mut word = station.reversed().head(size);
        word.resize(size.kernel_bytes() as usize, 0);
        let cuts = Cuts::load()?;
        let _ends = bed.stations.iter().map(|station| end_at(bed, station, &cuts)).collect::<Result<_, _>>()?;
        let sender = Sender::open(bed.sender.port.clone(), &one)?;
        let alone = Box::new(Alone::new(&one, &cuts)?);
        let copiers = cpu::kernel_threads("cpumap/");
        Ok(Self { run, bed, cost, sender, alone, one, many, word, cuts, copiers, _ends })
    }

    /// With so many receivers, who have joined.
    pub(super) fn of(&mut self, receivers: u32, records: &mut Records) -> Result<(), TesterError> {
        let order = SendOrder { limit: FRAMES, ..as_fast_as_can_be(self.cost)? };
        let mut all = [Way::None, Way::Unicast, Way::Tree].map(|way| (way, Vec::new()));
        // Switches that go by what they have met prepare for it: an RBridge a map of the ports that the group's frames leave by.
        self.once(Way::Tree, &order)?;
        sleep(PREPARED);
        for _ in 0..self.cost.count {
            if self.run.progress.interrupted() {
                return Err(TesterError::Interrupted);
            }
            for (way, runs) in &mut all {
                runs.push(self.once(*way, &order)?);
            }
        }
        for (way, runs) in &all {
            records.copy_costs.push(self.row(*way, receivers, runs)?);
        }
        Ok(())
    }

    fn once(&mut self, way: Way, order: &SendOrder) -> Result<Reading, TesterError> {
        if way == Way::None {
            let sent = self.alone.sender.send(order)?;
            return Ok(Reading { frame_ns: sent.cpu_ns as f64 / sent.frames.max(1) as f64, copies: 0.0 });
        }
        if way == Way::Unicast {
            self.speak()?;
        }
        self.sender.set_frames(if way == Way::Tree { &self.many } else { &self.one })?;
        let (trunks, arrived) = (self.bed.trunks.read()?, self.cuts.frames()?);
        let copying = self.copying_ns();
        let sent = self.sender.send(order)?;
        let arrived = settled(&self.cuts)? - arrived;
        let cpu_ns = sent.cpu_ns + since(&copying, &self.copying_ns());
        let carried: f64 = self.bed.trunks.since(&trunks)?.into_iter().sum();
        sleep(REST);
        let frames = sent.frames.max(1) as f64;
        Ok(Reading { frame_ns: cpu_ns as f64 / frames, copies: (carried + arrived as f64) / frames })
    }

    /// Tells where the first receiver is, before each run: who loses a neighbour for a moment forgets the stations behind it.
    fn speak(&self) -> Result<(), TesterError> {
        socket_of(&self.bed.stations[0].port)?.send(&self.word).map_err(LabError::io("speak as a receiver"))?;
        sleep(REST);
        Ok(())
    }

    /// CPU time of each copier; those of a lab that is going may be gone.
    fn copying_ns(&self) -> BTreeMap<u32, u64> {
        self.copiers.iter().filter_map(|copier| Some((*copier, cpu::time_ns(*copier, "").ok()?))).collect()
    }

    fn row(&self, way: Way, receivers: u32, runs: &[Reading]) -> Result<CopyCostRow, TesterError> {
        let nothing = || TesterError::NoPath("no frame was sent; please report it".to_owned());
        let whole = whole(runs);
        let runs_ns: Vec<f64> = whole.iter().map(|run| run.frame_ns).collect();
        let cost = ChainCost::of(&runs_ns).ok_or_else(nothing)?;
        Ok(CopyCostRow {
            way: way.name().to_owned(),
            receivers,
            frame_bytes: self.run.spec.frame_bytes,
            copies_per_frame: whole.iter().map(|run| run.copies).sum::<f64>() / whole.len() as f64,
            chain_ns_per_frame: cost.min_ns,
            chain_quartile_ns_per_frame: cost.quartile_ns,
            runs: cost.runs as u32,
        })
    }
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Unicast => "unicast",
            Self::Tree => "tree",
        }
    }
}

/// What those that are in both readings have used in between.
fn since(before: &BTreeMap<u32, u64>, now: &BTreeMap<u32, u64>) -> u64 {
    now.iter().filter_map(|(thread, ns)| Some(ns.saturating_sub(*before.get(thread)?))).sum()
}

/// Those with as many copies as there should be, which is the middle: a copy that was lost on the way costs nothing, and on a busy machine
/// an RBridge may lose a neighbour, and with it the station that frames are for, so that they go to everybody.
fn whole(runs: &[Reading]) -> Vec<Reading> {
    let mut copies: Vec<f64> = runs.iter().map(|run| run.copies).collect();
    copies.sort_by(f64::total_cmp);
    let middle = copies.get(copies.len() / 2).copied().unwrap_or_default();
    runs.iter().filter(|run| (run.copies - middle).abs() <= middle * MESSAGES).copied().collect()
}

/// Ends what comes to a station: where its switch forwards at XDP, before the kernel makes a packet of a frame.
fn end_at(bed: &Bed<'_>, station: &super::bed::Station, cuts: &Cuts) -> Result<Cut, TesterError> {
    let in_driver = bed.lab.scenario.forwarding(station.edge).is_in_driver();
    let port = station.port.interface();
    Ok(station.port.inside(|| if in_driver { cuts.cut_at_xdp(port) } else { cuts.cut(port) })??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copier_that_ends_meanwhile_or_begins_is_not_counted() {
        let (before, now) = ([(1, 500), (2, 70)].into(), [(1, 530), (3, 9)].into());
        assert_eq!(since(&before, &now), 30);
    }

    #[test]
    fn a_run_with_fewer_copies_or_more_is_none() {
        let run = |frame_ns, copies| Reading { frame_ns, copies };
        let runs = [run(900.0, 5.01), run(400.0, 3.0), run(950.0, 4.98)];
        assert_eq!(whole(&runs), [runs[0], runs[2]]);
        let runs = [run(800.0, 3.0), run(16_000.0, 88.9), run(820.0, 2.99), run(800.0, 3.01), run(900.0, 3.2)];
        assert_eq!(whole(&runs), [runs[0], runs[2], runs[3]], "to a station that was not known for a moment");
        assert_eq!(whole(&[run(1.0, 0.0), run(2.0, 0.0)]).len(), 2, "the test centre alone makes none");
        assert_eq!(whole(&[]), []);
    }
}
