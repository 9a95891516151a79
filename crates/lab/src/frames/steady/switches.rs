//! Switches at XDP while a rate is held: the test centre on one core, all switches' ports on the other, each by its kernel thread.

use weft_scenario::record::{Records, UsageRow};
use weft_testbed::Cut;
use weft_testbed::cpu;
use weft_testbed::loss::Cuts;
use weft_testbed::tester::SendOrder;

use super::super::Run;
use super::super::bed::Bed;
use super::super::cores::Cores;
use super::super::cost::{Sender, size_of};
use super::super::hops::Hops;
use super::super::rates::order;
use super::super::vm::order::Reply;
use super::threads::Threaded;
use super::{CoreClock, each};
use crate::error::LabError;
use crate::tester::TesterError;
use crate::tester::path::frames_of_size;
use crate::tester::usage::{KernelMemory, pss_bytes};

/// As late as this the sender makes up for it. Its burst is no longer than what ports gather between two polls anyway.
const CATCH_UP_NS: u64 = 100_000;

/// Holds every rate of the workload, and none before them.
pub(in super::super) fn of_switches(run: &Run<'_>, bed: &Bed<'_>, records: &mut Records) -> Result<(), TesterError> {
    if !bed.has_hops() {
        return Err(TesterError::Refused("`steady` needs frames that only switches forward, all to one server".into()));
    }
    let mut switches = Switches::open(run, bed)?;
    records.usage.extend(switches.hold(0, 0.0)?);
    for (place, (bytes, per_s)) in run.spec.steady_offers().into_iter().enumerate() {
        run.attend(place, bytes)?;
        records.usage.extend(switches.hold(bytes, per_s)?);
    }
    Ok(())
}

/// The switches of one trial, hop by hop. Fields end in this order.
struct Switches<'a> {
    run: &'a Run<'a>,
    bed: &'a Bed<'a>,
    cores: Cores,
    sender: Sender,
    hops: Vec<Hop>,
    cuts: Cuts,
    _last: Vec<Cut>,
    /// Where frames end: theirs is nobody's time that is asked for.
    _receivers: Vec<Threaded>,
}

/// The switches side by side at one distance from the test centre.
struct Hop {
    name: String,
    ports: Vec<Threaded>,
    daemons: Vec<u32>,
}

/// CPU time of a hop so far.
#[derive(Clone, Copy)]
struct Times {
    threads_ns: u64,
    daemons_ns: u64,
}

impl<'a> Switches<'a> {
    fn open(run: &'a Run<'a>, bed: &'a Bed<'a>) -> Result<Self, TesterError> {
        let (cores, hops, cuts) = (Cores::of_this_machine()?, Hops::of(run.lab, bed)?, Cuts::load()?);
        let sender =
            Sender::open(bed.port(bed.sender)?, &frames_of_size(&bed.streams, size_of(run.spec.frame_bytes[0])?))?;
        let _last = hops.cut_at_receivers(&cuts, bed)?;
        let threaded = |port| Threaded::new(port, cores.server);
        let receivers = bed.receivers.iter().map(|server| bed.port(*server)).collect::<Result<Vec<_>, _>>()?;
        let _receivers = receivers.into_iter().map(threaded).collect::<Result<_, _>>()?;
        let hop = |number: usize| {
            let entries = hops.entries(number, bed)?;
            let is_here =
                |node: &str| hops.switches(number).iter().any(|switch| run.lab.plan.node(*switch).name == node);
            let daemons = run.lab.state.processes.iter().filter(|process| is_here(&process.node));
            Ok::<_, TesterError>(Hop {
                name: hops.name(number, bed),
                ports: entries.into_iter().map(threaded).collect::<Result<_, _>>()?,
                daemons: daemons.map(|process| process.id.pid).collect(),
            })
        };
        let hops = (1..=hops.count()).map(hop).collect::<Result<_, _>>()?;
        Ok(Self { run, bed, cores, sender, hops, cuts, _last, _receivers })
    }

    /// A rate, or none, and what every hop used of the time.
    fn hold(&mut self, bytes: u32, per_s: f64) -> Result<Vec<UsageRow>, TesterError> {
        let (before, arrived, clock) = (self.times()?, self.cuts.frames()?, CoreClock::read(self.cores.server)?);
        let sent = self.send(bytes, per_s)?;
        let (core, arrived, after) = (clock.since()?, self.cuts.frames()? - arrived, self.times()?);
        let kernel = KernelMemory::read().map_err(LabError::io("read /proc/meminfo"))?;
        let row = |(place, hop): (usize, &Hop)| {
            let daemons_ns = after[place].daemons_ns - before[place].daemons_ns;
            UsageRow {
                node: hop.name.clone(),
                hops: place as u32 + 1,
                frame_bytes: bytes,
                asked_per_s: per_s,
                wall_ns: sent.wall_ns,
                sent_frames: sent.frames,
                received_frames: arrived.min(sent.frames),
                cpu_ns: after[place].threads_ns - before[place].threads_ns + daemons_ns,
                process_cpu_ns: daemons_ns,
                idle_ns: core.idle_ns,
                process_bytes: hop.daemons.iter().map(|pid| pss_bytes(*pid).unwrap_or(0)).sum(),
                kernel_bytes: kernel.total_bytes(),
            }
        };
        Ok(self.hops.iter().enumerate().map(row).collect())
    }

    fn send(&mut self, bytes: u32, per_s: f64) -> Result<Reply, TesterError> {
        let duration = each(self.run);
        if per_s == 0.0 {
            std::thread::sleep(duration);
            return Ok(Reply { wall_ns: duration.as_nanos() as u64, ..Reply::default() });
        }
        let size = size_of(bytes)?;
        self.sender.set_frames(&frames_of_size(&self.bed.streams, size))?;
        let order = order(Some(per_s), duration, self.cores.tester);
        self.sender.send(&SendOrder { slip_ns: CATCH_UP_NS, ..order })
    }

    fn times(&self) -> Result<Vec<Times>, TesterError> {
        self.hops.iter().map(Hop::times).collect()
    }
}

impl Hop {
    fn times(&self) -> Result<Times, TesterError> {
        let threads_ns = self.ports.iter().map(Threaded::cpu_ns).sum::<Result<_, _>>()?;
        // A daemon that has ended has no time any more; whoever needs it says so.
        let daemons_ns = self.daemons.iter().filter_map(|pid| cpu::time_ns(*pid, "").ok()).sum();
        Ok(Times { threads_ns, daemons_ns })
    }
}
