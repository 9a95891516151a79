//! Frames through a lab whose switches take them (`kind = "frames"`): rates and loads, what a frame costs at every switch, and what
//! faults do to streams.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`bed`] | where the test centre stands, and who must be told of its stations |
//! | [`hops`] | the switches on the way, and the chain ended behind each |
//! | [`offer`] | one rate: delivery, order, latency, paths |
//! | [`cost`] | CPU time per frame and switch |
//! | [`broken`] | a rate while something fails |
//! | [`sockets`], [`vm`] | frames that end in processes at servers: the VXLAN draft's VMs |
//! | [`rates`], [`cores`] | the highest rate that these take, and on which cores |
//! | [`steady`] | what switches and servers use while a rate is held |

mod bed;
pub(crate) mod broken;
mod cores;
pub(crate) mod cost;
mod hops;
mod offer;
mod rates;
mod sockets;
mod steady;
pub mod vm;

use std::path::Path;

use weft_scenario::engine::{Progress, Trial};
use weft_scenario::record::Records;
use weft_scenario::units::BitsPerSec;
use weft_scenario::workload::{End, FramesSpec};

use self::bed::Bed;
use self::cost::Costs;
use self::offer::Crossing;
use crate::sysctls::HurriedWaits;
use crate::tester::TesterError;
use crate::tester::experiment::facts_of;
use crate::tester::reference::Reference;
use crate::trill::Held;
use crate::up::Lab;

/// Everything that one trial is run with.
pub(crate) struct Run<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) held: &'a Held,
    pub(crate) spec: &'a FramesSpec,
    pub(crate) trial: &'a Trial,
    /// The program whose processes are at servers.
    pub(crate) weft_binary: &'a Path,
    pub(crate) progress: &'a dyn Progress,
}

/// Runs one trial; addresses and ports of the stations come from its seed.
pub(crate) fn run(run: &Run<'_>) -> Result<Records, TesterError> {
    // Each program that is attached and each start of the generator waits for the kernel; frames cost the same.
    let _quick = HurriedWaits::begin()?;
    let stop = || run.progress.interrupted();
    let mut records = Records::default();
    let mut reference = Reference::open(&bed::stream_plan(run), run.spec.frame_bytes[0], &stop)?;
    let mut bed = Bed::new(run)?;
    match run.spec.to {
        End::Port => between_ports(run, &mut bed, &mut reference, &mut records)?,
        End::Socket => sockets::run(run, &mut bed, &mut records)?,
    }
    if run.spec.cost.is_some() {
        records.facts.extend(facts_of(&reference.calibration(&stop)?));
    }
    Ok(records)
}

/// Runs one trial from the test centre's port to its ports.
fn between_ports(
    run: &Run<'_>,
    bed: &mut Bed<'_>,
    reference: &mut Reference,
    records: &mut Records,
) -> Result<(), TesterError> {
    let stop = || run.progress.interrupted();
    bed.tell()?;
    if bed.learns() {
        let own = offer::listen(run, bed)?;
        for (turn, mix) in Mix::all(run.spec).into_iter().enumerate() {
            bed.set_mix(mix)?;
            let mut crossing = Crossing::open(run, bed, &own)?;
            if turn == 0 {
                crossing.wait_until_it_carries(&stop)?;
            }
            crossing.all_sizes(reference, records)?;
            if run.spec.cost.is_some() && !bed.has_hops() {
                crossing.cost(reference, records)?;
            }
        }
    }
    if run.spec.cost.is_some() && bed.has_hops() {
        Costs::open(run, bed, None)?.all_sizes(records)?;
    }
    if run.spec.steady.is_some() {
        steady::of_switches(run, bed, records)?;
    }
    bed.forget()
}

/// Which streams go to another VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mix {
    /// All go to the second server, wherever that is.
    None,
    /// So many of 100 go there, and the others stay in the sender's VLAN.
    Percent(u32),
}

impl Mix {
    fn all(spec: &FramesSpec) -> Vec<Self> {
        match &spec.crossing_percent[..] {
            [] => vec![Self::None],
            all => all.iter().map(|percent| Self::Percent(*percent)).collect(),
        }
    }

    /// As rows have it.
    fn percent(self) -> u32 {
        match self {
            Self::None => 100,
            Self::Percent(percent) => percent,
        }
    }
}

impl Run<'_> {
    /// Ends a trial that the user does not want any more.
    fn attend(&self, place: usize, bytes: u32) -> Result<(), TesterError> {
        let done = place as f64 / self.spec.frame_bytes.len() as f64;
        self.progress.advance(done, &format!("{bytes} bytes"));
        if self.progress.interrupted() { Err(TesterError::Interrupted) } else { Ok(()) }
    }

    /// The slowest link between two switches.
    fn path_rate(&self) -> BitsPerSec {
        let fabric = &self.lab.scenario.fabric;
        let is_switch = |node| fabric.node(node).role.is_switch();
        let trunks = fabric.links().iter().filter(|link| is_switch(link.a.node) && is_switch(link.b.node));
        trunks.map(|link| link.spec.rate).min().unwrap_or(BitsPerSec(0))
    }
}
