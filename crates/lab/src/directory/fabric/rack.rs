//! A rack's AAs move at once: until every directory server shows it, and until agents with stale mappings are corrected by what
//! their packets to the old ToR set off. Beside it the same updates one after another.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_control::agent::Timing;
use weft_node::directory::protocol::MappingToSet;
use weft_node::stop::Stop;
use weft_testbed::bench::median;
use weft_testbed::load::agents::{Agents, Moved, StaleReport};

use super::outage::watched;
use super::{Run, failed};
use crate::directory::bed::Bed;
use crate::directory::tier::{Tier, connect, mark, refused};
use crate::directory::visible::{self, Fresh, Visible};
use crate::error::LabError;

/// Agents that talk to the rack, and how many of its AAs each.
const TALKERS: u32 = 1000;
const AAS_EACH: u32 = 8;
/// An update that is not visible by then never is.
const VISIBLE_MAX: Duration = Duration::from_secs(30);
/// A stale mapping that is not corrected by then was not corrected by this.
const STALE_MAX: Duration = Duration::from_secs(30);

/// A rack that moves, medians over the rounds where nothing else is said.
#[derive(Clone, Debug, Serialize)]
pub struct RackNumbers {
    /// Servers that move.
    pub servers: u32,
    /// Their AAs, all in one request.
    pub aas: u32,
    /// From the request until the last AA is visible at the slowest directory server.
    pub visible_p50_ms: f64,
    pub visible_last_ms: f64,
    /// AAs that were not, in all rounds.
    pub never_visible: u64,
    /// The same AAs one after another, each update acknowledged before the next is issued.
    pub one_by_one_last_ms: f64,
    /// `one_by_one_last_ms` over `visible_last_ms`.
    pub one_by_one_over_at_once: f64,
    /// Stale mappings of agents.
    pub stale: u64,
    /// Of these, those that were not corrected within 30 s, in all rounds.
    pub uncorrected: u64,
    /// From the request until half of them were corrected.
    pub corrected_p50_ms: f64,
    pub corrected_p99_ms: f64,
    /// The last one, worst round.
    pub corrected_last_ms: f64,
    /// Packets that went to the ToR which the rack left.
    pub astray: f64,
    /// Pairs of AAs that the ToR told the directory.
    pub reported: f64,
    /// When an agent asks for a mapping again by itself, at the earliest: what corrections spare.
    pub confirmed_after_s: f64,
}

/// Where the rack moves, and who hears of it.
struct Move {
    moved: Moved,
    mappings: Vec<MappingToSet>,
    /// The number of its update, which the mapping shows.
    update: u32,
}

pub(super) fn measure(run: &Run<'_>, bed: &Bed) -> Result<RackNumbers, LabError> {
    run.progress.phase("rack", &format!("{} servers move with all their AAs", run.options.rack));
    let mut agents = Agents::new(&run.layout.agents(run, bed)).map_err(|error| failed(&error))?;
    let (mut p50, mut last, mut slow, mut never, mut stale) = (Vec::new(), Vec::new(), Vec::new(), 0, Vec::new());
    for round in 0..run.options.rounds {
        run.go_on()?;
        run.progress.advance(f64::from(round) / f64::from(run.options.rounds), "");
        let away = Move::of(run, round, true);
        let known = watched(run, |stop| agents.learn(&away.moved, stop))?;
        run.go_on()?;
        let wanted: u64 = away.moved.talks_to.iter().map(|aas| aas.len() as u64).sum();
        if known != wanted {
            return Err(LabError::DirectoryLoad(format!("of {wanted} mappings of the rack agents learnt {known}")));
        }
        let (visible, report) = at_once(run, bed, &away, &mut agents)?;
        p50.push(visible.everywhere.percentile_ns(0.5) as f64 / 1e6);
        last.push(visible.everywhere.percentile_ns(1.0) as f64 / 1e6);
        stale.push(report);
        let back = one_by_one(bed, &Move::of(run, round, false))?;
        slow.push(back.everywhere.percentile_ns(1.0) as f64 / 1e6);
        never += visible.never + back.never;
    }
    let of = |value: &dyn Fn(&StaleReport) -> f64| median(&stale.iter().map(value).collect::<Vec<_>>());
    let (visible_last_ms, one_by_one_last_ms) = (median(&last), median(&slow));
    Ok(RackNumbers {
        servers: run.options.rack,
        aas: run.layout.places.aas_of_a_rack(),
        visible_p50_ms: median(&p50),
        visible_last_ms,
        never_visible: never,
        one_by_one_last_ms,
        one_by_one_over_at_once: one_by_one_last_ms / visible_last_ms.max(1e-9),
        stale: stale.first().map_or(0, |report| report.stale),
        uncorrected: stale.iter().map(|report| report.stale - report.corrected).sum(),
        corrected_p50_ms: of(&|report| report.corrected_ns.value_at_quantile(0.5) as f64 / 1e6),
        corrected_p99_ms: of(&|report| report.corrected_ns.value_at_quantile(0.99) as f64 / 1e6),
        corrected_last_ms: stale.iter().map(|report| report.corrected_ns.max()).max().unwrap_or(0) as f64 / 1e6,
        astray: of(&|report| report.astray as f64),
        reported: of(&|report| report.reported as f64),
        confirmed_after_s: Timing::default().lifetime_ns as f64 * 0.75 / 1e9,
    })
}

impl Move {
    /// The first rack behind the last one's ToR, or back again.
    fn of(run: &Run<'_>, round: u32, away: bool) -> Self {
        let (layout, places) = (&run.layout, &run.layout.places);
        let [home, guest] = [places.tor_la(0), places.tor_la(places.racks() - 1)];
        let (from_tor, to_tor) = if away { (home, guest) } else { (guest, home) };
        let update = 1 + round * 2 + u32::from(!away);
        let count = places.aas_of_a_rack();
        let mapping = |number| MappingToSet { tor_la: to_tor, anycast_la: mark(update), ..layout.mapping(number) };
        let mappings: Vec<_> = (0..count).map(mapping).collect();
        let each = AAS_EACH.min(count);
        let talks = |talker: u32| (0..each).map(|k| mappings[((talker * each + k) % count) as usize].aa).collect();
        let talkers = TALKERS.min(run.options.agents - run.options.rack);
        // Those of the rack itself move, and talk to nobody.
        let silent = std::iter::repeat_n(Vec::new(), run.options.rack as usize);
        let talks_to = silent.chain((0..talkers).map(talks)).collect();
        Self { moved: Moved { from_tor, to_tor, talks_to }, mappings, update }
    }

    /// What is watched for, from the request on.
    fn fresh(&self) -> impl Iterator<Item = Fresh> + '_ {
        (0..self.mappings.len() as u32).map(|aa| Fresh { aa, update: self.update, due_ns: 0 })
    }
}

/// All in one request, while agents go on sending.
fn at_once(run: &Run<'_>, bed: &Bed, away: &Move, agents: &mut Agents) -> Result<(Visible, StaleReport), LabError> {
    let servers = bed.servers();
    let mut client = connect(&servers[0])?;
    let stop = Stop::manual().map_err(|error| failed(&error))?;
    let (tell, fresh) = channel();
    away.fresh().try_for_each(|fresh| tell.send(fresh)).expect("the receiver is kept until all is visible");
    drop(tell);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let talking = scope.spawn(|| agents.use_stale(&away.moved, start, STALE_MAX, &stop));
        let updating = scope.spawn(|| client.set_many(away.mappings.clone()));
        let visible = visible::watch(&servers, &bed.access(), start, VISIBLE_MAX, &fresh);
        let updated = updating.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        while !talking.is_finished() {
            if run.progress.interrupted() || updated.is_err() {
                stop.request();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let report = talking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        updated.map_err(|error| refused(&servers[0].name, &error))?;
        run.go_on()?;
        Ok((visible?.0, report.map_err(|error| failed(&error))?))
    })
}

/// One after another through one session.
fn one_by_one(bed: &Bed, back: &Move) -> Result<Visible, LabError> {
    let servers = bed.servers();
    let mut client = connect(&servers[0])?;
    let (tell, fresh) = channel();
    let start = Instant::now();
    std::thread::scope(|scope| {
        let updating = scope.spawn(move || {
            for (mapping, fresh) in back.mappings.iter().zip(back.fresh()) {
                // The watcher ends only after this.
                let _ = tell.send(fresh);
                client.set(*mapping)?;
            }
            Ok::<_, weft_node::NodeError>(())
        });
        let visible = visible::watch(&servers, &bed.access(), start, VISIBLE_MAX, &fresh);
        let updated = updating.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        updated.map_err(|error| refused(&servers[0].name, &error))?;
        Ok(visible?.0)
    })
}
