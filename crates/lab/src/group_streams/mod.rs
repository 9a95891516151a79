//! Streams to many receivers over a campus (`kind = "multicast"`): what arrives where, what every link between switches carries, what a
//! copy costs, and what a link that fails does to receivers.
//!
//! The test centre sends in the place of the first server and counts at every other station of its VLAN. Who receives has joined the
//! groups by sockets of its own, so that its kernel tells the switches.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`bed`] | who sends, who receives, in which order stations become receivers |
//! | [`members`] | their sockets |
//! | [`known`] | the wait until all switches know who listens |
//! | [`trunks`] | what links between switches carry |
//! | [`delivery`] | one stream, and what arrived of it |
//! | [`cost`] | CPU time of copies beside that of frames to one station |

mod bed;
mod cost;
mod delivery;
mod known;
mod members;
mod trunks;

use std::net::{IpAddr, Ipv4Addr};

use weft_scenario::engine::{Progress, Trial};
use weft_scenario::record::Records;
use weft_scenario::workload::{Copies, MulticastSpec};

use self::bed::Bed;
use self::cost::Costs;
use self::delivery::Delivery;
use self::members::Members;
use crate::sys;
use crate::sysctls::HurriedWaits;
use crate::tester::TesterError;
use crate::tester::stream::{Stream, StreamPlan};
use crate::up::Lab;

/// Every port's program and every receiver's sockets keep files open.
const FILES: u64 = 16_000;

/// Everything that one trial is run with.
pub(crate) struct Run<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) spec: &'a MulticastSpec,
    pub(crate) trial: &'a Trial,
    pub(crate) progress: &'a dyn Progress,
}

/// Runs one trial; groups, addresses and ports come from its seed.
pub(crate) fn run(run: &Run<'_>) -> Result<Records, TesterError> {
    // Each program that is attached waits for the kernel.
    let _quick = HurriedWaits::begin()?;
    // Where it may not be raised, attaching the programs says so.
    sys::raise_file_limit(FILES);
    let mut records = Records::default();
    let bed = Bed::new(run)?;
    match run.spec.copies {
        Copies::Tree => to_groups(run, &bed, &mut records)?,
        Copies::Ingress => to_each(run, &bed, &mut records)?,
    }
    Ok(records)
}

/// Streams that switches copy.
fn to_groups(run: &Run<'_>, bed: &Bed<'_>, records: &mut Records) -> Result<(), TesterError> {
    let plan = StreamPlan { unicast: 0, group: run.spec.groups as u16, seed: run.trial.seed, ..StreamPlan::default() };
    let streams = plan.streams().map_err(TesterError::Refused)?;
    let groups = groups_of(&streams);
    let mut members = Members::default();
    let mut delivery = None;
    for (place, receivers) in run.ascending().into_iter().enumerate() {
        run.attend(place, receivers)?;
        members.join(bed, receivers, &groups)?;
        known::wait(run, bed, receivers, &groups)?;
        let delivery = match &mut delivery {
            Some(open) => open,
            none => none.insert(Delivery::open(run, bed, bed.stations.len(), &plan)?),
        };
        delivery.wait_until_it_carries(receivers)?;
        match run.spec.link_down_at {
            Some(at) => delivery.with_a_link_down(at, receivers, records)?,
            None => delivery.measure(receivers, records)?,
        }
    }
    drop(delivery);
    let Some(cost) = run.spec.cost else { return Ok(()) };
    let mut costs = Costs::open(run, bed, cost, &streams[0])?;
    for receivers in run.ascending().into_iter().rev() {
        members.keep(receivers);
        known::wait(run, bed, receivers, &groups)?;
        costs.of(receivers, records)?;
    }
    Ok(())
}

/// A stream of which the sender makes a copy for each receiver.
fn to_each(run: &Run<'_>, bed: &Bed<'_>, records: &mut Records) -> Result<(), TesterError> {
    for (place, receivers) in run.ascending().into_iter().enumerate() {
        run.attend(place, receivers)?;
        let plan =
            StreamPlan { unicast: receivers as u16, in_turn: true, seed: run.trial.seed, ..StreamPlan::default() };
        let mut delivery = Delivery::open(run, bed, receivers as usize, &plan)?;
        delivery.wait_until_it_carries(receivers)?;
        delivery.measure(receivers, records)?;
    }
    Ok(())
}

fn groups_of(streams: &[Stream]) -> Vec<Ipv4Addr> {
    let group = |stream: &Stream| match stream.destination.ip {
        IpAddr::V4(group) => Some(group),
        IpAddr::V6(_) => None,
    };
    streams.iter().filter_map(group).collect()
}

impl Run<'_> {
    /// Numbers of receivers: nobody has to leave a group before all is measured.
    fn ascending(&self) -> Vec<u32> {
        let mut all = self.spec.receivers.clone();
        all.sort_unstable();
        all
    }

    /// Ends a trial that the user does not want any more.
    fn attend(&self, place: usize, receivers: u32) -> Result<(), TesterError> {
        let done = place as f64 / self.spec.receivers.len() as f64;
        self.progress.advance(done, &format!("{receivers} receivers"));
        if self.progress.interrupted() { Err(TesterError::Interrupted) } else { Ok(()) }
    }
}
