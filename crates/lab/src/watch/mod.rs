//! What a lab that is up does at this moment, for who looks on: its links' counters, what is broken, what its daemons cost, and how long
//! datagrams between its servers were lost.
//!
//! * `beats`: those datagrams
//! * `usage`: CPU of the daemons

mod beats;
pub(crate) mod usage;

use std::fs;
use std::ops::ControlFlow;
use std::time::{Duration, Instant, SystemTime};

use weft_scenario::fault::FaultKind;
use weft_scenario::id::LinkId;
use weft_scenario::record::Moment;
use weft_scenario::topology::Fabric;

use crate::error::LabError;
use crate::home::namespace_path;
use crate::state::{LabState, MovedServer};
use crate::traffic::{PortWatch, TrafficError, WatchedPort};
use crate::up::Lab;
use beats::Beats;
pub use beats::Disturbance;
use usage::Usage;

/// How often the daemons' CPU is read.
const USAGE_EVERY: Duration = Duration::from_secs(1);

/// A lab that somebody looks at.
#[derive(Debug)]
pub struct Onlooker {
    lab: Lab,
    ports: Vec<WatchedPort>,
}

/// One look.
#[derive(Clone, Debug)]
pub struct Sight {
    /// Counters since the first look, in the order of [`Onlooker::ports`].
    pub moment: Moment,
    /// What people have broken, if that is not what it was at the look before.
    pub broken: Option<Vec<FaultKind>>,
    /// Servers that are not at home, in the same way.
    pub moved: Option<Vec<MovedServer>>,
    /// CPU of each node's daemons, 1 is a core, where there is a new reading.
    pub usage: Option<Vec<(String, f64)>>,
    /// Losses that are over.
    pub disturbances: Vec<Disturbance>,
    /// Flows of datagrams that hear nothing now, of all that ever did.
    pub quiet: (u32, u32),
}

impl Onlooker {
    /// Of the lab of this name.
    ///
    /// # Errors
    /// [`LabError`]: there is none, or it is not up yet.
    pub fn open(name: &str) -> Result<Self, LabError> {
        let lab = Lab::open(name)?;
        let ports = watched_ports(&lab);
        Ok(Self { lab, ports })
    }

    /// What the lab was made from.
    pub fn fabric(&self) -> &Fabric {
        &self.lab.scenario.fabric
    }

    /// What is on disk about it, as it was when it was opened.
    pub fn state(&self) -> &LabState {
        &self.lab.state
    }

    /// Both ends of every link.
    pub fn ports(&self) -> &[WatchedPort] {
        &self.ports
    }

    /// Looks at these distances until `see` has enough, or the lab is no more or has another fabric.
    ///
    /// # Errors
    /// [`LabError`]: the kernel refuses.
    pub fn look(&self, every: Duration, mut see: impl FnMut(Sight) -> ControlFlow<()>) -> Result<(), LabError> {
        let failed = |error: TrafficError| LabError::Traffic(error.to_string());
        let mut ports = PortWatch::open(&self.ports).map_err(failed)?;
        let mut beats = Beats::start(&self.lab)?;
        let (mut usage, mut file) = (Usage::of(&self.lab.state.processes), StateFile::of(&self.lab.state.lab));
        let (start, mut due, mut read) = (Instant::now(), Instant::now(), Instant::now());
        loop {
            let (broken, moved) = match file.changed() {
                Changed::Gone => return Ok(()),
                Changed::Not => (None, None),
                // Somebody has made another fabric of it: that is another picture.
                Changed::To(state) if state.fabric_yaml != self.lab.state.fabric_yaml => return Ok(()),
                Changed::To(state) => {
                    usage.follow(&state.processes);
                    (Some(state.faults), Some(state.moved))
                }
            };
            let moment = ports.moment(start.elapsed().as_nanos() as u64).map_err(failed)?;
            let usage = (read.elapsed() >= USAGE_EVERY).then(|| {
                read = Instant::now();
                usage.read()
            });
            let (disturbances, quiet) = (beats.over(), beats.quiet());
            if see(Sight { moment, broken, moved, usage, disturbances, quiet }).is_break() {
                return Ok(());
            }
            due = (due + every).max(Instant::now());
            std::thread::sleep(due - Instant::now());
        }
    }
}

/// Both directions of every link.
pub(crate) fn watched_ports(lab: &Lab) -> Vec<WatchedPort> {
    let fabric = &lab.scenario.fabric;
    let port = |link: LinkId, node| {
        let here = fabric.link(link).end_at(node)?;
        let far = fabric.link(link).far_end(node)?;
        Some(WatchedPort {
            namespace: namespace_path(&lab.plan.node(node).namespace),
            node: fabric.node(node).name.clone(),
            interface: here.interface.clone(),
            peer: fabric.node(far.node).name.clone(),
            class: fabric.link_class(link),
        })
    };
    let links = (0..fabric.links().len() as u32).map(LinkId);
    let ends = links.flat_map(|link| [fabric.link(link).a.node, fabric.link(link).b.node].map(|node| port(link, node)));
    ends.flatten().collect()
}

/// The file with the lab's state, read when it has been written.
struct StateFile {
    lab: String,
    written: Option<SystemTime>,
}

enum Changed {
    Not,
    To(Box<LabState>),
    Gone,
}

impl StateFile {
    fn of(lab: &str) -> Self {
        Self { lab: lab.to_owned(), written: None }
    }

    /// What it says if that is new; at first it is.
    fn changed(&mut self) -> Changed {
        let written = fs::metadata(LabState::path(&self.lab)).and_then(|found| found.modified()).ok();
        if written.is_some() && written == self.written {
            return Changed::Not;
        }
        self.written = written;
        LabState::load(&self.lab).map_or(Changed::Gone, |state| Changed::To(Box::new(state)))
    }
}
