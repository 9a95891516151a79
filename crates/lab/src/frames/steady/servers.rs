//! The VXLAN draft's servers at its rates (draft-liu-nvo3-ps-vxlan-perfomance-00, 2.5 and 3.1). Each has a core: whoever sends and its
//! edge switch one, the receiving VMs, their edge switch and its soft interrupts the other.
//!
//! What lies between the two servers shares the core of the sending one. So that one is looked at with the chain ended behind its edge
//! switch, and then the other with frames that go all the way.

use std::time::Duration;

use weft_scenario::record::{Records, UsageRow};
use weft_scenario::workload::End;
use weft_testbed::loss::Cuts;

use super::super::Run;
use super::super::bed::Bed;
use super::super::cores::Steered;
use super::super::hops::Hops;
use super::super::rates::{Offered, Rates};
use super::super::sockets::Sockets;
use super::super::vm::Vm;
use super::super::vm::order::{FRAME_OVER_PAYLOAD, Order};
use super::{CoreClock, each};
use crate::error::LabError;
use crate::tester::TesterError;
use crate::tester::usage::KernelMemory;

/// Receivers listen a little longer than is sent.
const SLACK: Duration = Duration::from_millis(15);

/// Holds every rate of the workload, and none before them.
pub(in super::super) fn of_servers(
    run: &Run<'_>,
    bed: &Bed<'_>,
    sockets: &mut Sockets,
    records: &mut Records,
) -> Result<(), TesterError> {
    let hops = Hops::of(run.lab, bed)?;
    match run.spec.from {
        End::Port => from_port(run, bed, &hops, sockets, records),
        End::Socket => Between { run, bed, hops, cuts: Cuts::load()?, sockets }.all_rates(records),
    }
}

/// The test centre sends to the only server.
fn from_port(
    run: &Run<'_>,
    bed: &Bed<'_>,
    hops: &Hops<'_>,
    sockets: &mut Sockets,
    records: &mut Records,
) -> Result<(), TesterError> {
    let at = (hops.switch(hops.count()), hops.count());
    let mut rates = Rates::open(run, bed, sockets)?;
    let core = rates.sockets.cores.server;
    let idle = Meter::begin(core, &rates.sockets.receivers)?;
    hear_nothing(rates.sockets, each(run))?;
    records.usage.push(idle.row(&rates.sockets.receivers, at, 0, waited(run))?);
    for (place, (bytes, per_s)) in run.spec.steady_offers().into_iter().enumerate() {
        run.attend(place, bytes)?;
        rates.set_size(bytes)?;
        let meter = Meter::begin(core, &rates.sockets.receivers)?;
        let offered = rates.offer_once(Some(per_s), each(run))?;
        records.usage.push(meter.row(&rates.sockets.receivers, at, bytes, offered)?);
    }
    Ok(())
}

/// Nothing was sent for so long.
fn waited(run: &Run<'_>) -> Offered {
    Offered { wall_ns: each(run).as_nanos() as u64, ..Offered::default() }
}

/// The receivers listen, and nobody sends.
fn hear_nothing(sockets: &mut Sockets, time: Duration) -> Result<(), TesterError> {
    sockets.listen(time, Some(sockets.cores.server))?;
    sockets.heard(Offered::default()).map(drop)
}

/// VMs of one server send to those of another.
struct Between<'a> {
    run: &'a Run<'a>,
    bed: &'a Bed<'a>,
    hops: Hops<'a>,
    cuts: Cuts,
    sockets: &'a mut Sockets,
}

impl Between<'_> {
    fn all_rates(&mut self, records: &mut Records) -> Result<(), TesterError> {
        let server = self.sockets.cores.server;
        let entries = self.hops.entries(self.hops.count(), self.bed)?;
        let _steered = entries.into_iter().map(|port| Steered::new(port, server)).collect::<Result<Vec<_>, _>>()?;
        records.usage.extend(self.idle()?);
        for (place, (bytes, per_s)) in self.run.spec.steady_offers().into_iter().enumerate() {
            self.run.attend(place, bytes)?;
            self.sockets.meet(self.run)?;
            records.usage.extend([self.sending(bytes, per_s)?, self.receiving(bytes, per_s)?]);
        }
        Ok(())
    }

    fn idle(&mut self) -> Result<[UsageRow; 2], TesterError> {
        let (first, second) = self.meters()?;
        hear_nothing(self.sockets, each(self.run))?;
        let waited = waited(self.run);
        Ok([
            first.row(&self.sockets.senders, self.at(1), 0, waited)?,
            second.row(&self.sockets.receivers, self.at(self.hops.count()), 0, waited)?,
        ])
    }

    fn meters(&self) -> Result<(Meter, Meter), TesterError> {
        let (cores, sockets) = (self.sockets.cores, &self.sockets);
        Ok((Meter::begin(cores.tester, &sockets.senders)?, Meter::begin(cores.server, &sockets.receivers)?))
    }

    /// The edge switch of a server, and how many switches a frame has passed with it.
    fn at(&self, hop: usize) -> (&str, usize) {
        (self.hops.switch(hop), hop)
    }

    /// The sending server, with the chain ended behind it.
    fn sending(&mut self, bytes: u32, per_s: f64) -> Result<UsageRow, TesterError> {
        let _cuts = if self.hops.count() > 1 { self.hops.cut_behind(1, &self.cuts)? } else { Vec::new() };
        let before = self.cuts.frames()?;
        let meter = Meter::begin(self.sockets.cores.tester, &self.sockets.senders)?;
        let offered = self.send(bytes, per_s)?;
        let received = self.cuts.frames()? - before;
        meter.row(&self.sockets.senders, self.at(1), bytes, Offered { received, ..offered })
    }

    /// The receiving server.
    fn receiving(&mut self, bytes: u32, per_s: f64) -> Result<UsageRow, TesterError> {
        let core = self.sockets.cores.server;
        self.sockets.listen(each(self.run) + SLACK, Some(core))?;
        let meter = Meter::begin(core, &self.sockets.receivers)?;
        let offered = self.send(bytes, per_s)?;
        let offered = self.sockets.heard(offered)?;
        meter.row(&self.sockets.receivers, self.at(self.hops.count()), bytes, offered)
    }

    /// Every sending VM its share of the rate to a receiver of its own.
    fn send(&mut self, bytes: u32, per_s: f64) -> Result<Offered, TesterError> {
        let (duration, core) = (each(self.run), Some(self.sockets.cores.tester));
        let share = (per_s / self.sockets.senders.len() as f64).round().max(1.0) as u32;
        for (sender, receiver) in self.sockets.senders.iter_mut().zip(&self.sockets.receivers) {
            sender.begin(&Order::Send {
                to: receiver.socket(),
                payload_bytes: bytes - FRAME_OVER_PAYLOAD,
                frames: u64::MAX,
                per_s: share,
                duration_ns: duration.as_nanos() as u64,
                core,
            })?;
        }
        let mut offered = Offered { asked_per_s: per_s, ..waited(self.run) };
        for sender in &mut self.sockets.senders {
            offered.sent += sender.reply()?.frames;
        }
        Ok(offered)
    }
}

/// A server's core and VMs, from a time on.
struct Meter {
    clock: CoreClock,
    vms_ns: u64,
}

impl Meter {
    fn begin(core: usize, vms: &[Vm]) -> Result<Self, LabError> {
        Ok(Self { vms_ns: cpu_ns(vms)?, clock: CoreClock::read(core)? })
    }

    /// What it used until now, at its switch.
    fn row(
        self,
        vms: &[Vm],
        (node, hops): (&str, usize),
        frame_bytes: u32,
        offered: Offered,
    ) -> Result<UsageRow, TesterError> {
        let core = self.clock.since()?;
        let kernel = KernelMemory::read().map_err(LabError::io("read /proc/meminfo"))?;
        Ok(UsageRow {
            node: node.to_owned(),
            hops: hops as u32,
            frame_bytes,
            asked_per_s: offered.asked_per_s,
            wall_ns: offered.wall_ns,
            sent_frames: offered.sent,
            received_frames: offered.received,
            cpu_ns: core.busy_ns,
            process_cpu_ns: cpu_ns(vms)?.saturating_sub(self.vms_ns),
            idle_ns: core.idle_ns,
            process_bytes: vms.iter().map(Vm::memory_bytes).sum(),
            kernel_bytes: kernel.total_bytes(),
        })
    }
}

fn cpu_ns(vms: &[Vm]) -> Result<u64, LabError> {
    vms.iter().map(Vm::cpu_ns).sum()
}
