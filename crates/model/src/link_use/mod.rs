//! How loaded the links of a Clos network are on a day of traffic matrices, by routing (VL2 6, Figure 15).
//!
//! * [`Routing::Vlb`]: everything split evenly (`vlb`)
//! * [`Routing::VlbFlows`]: the same with whole flows, placed by a hash
//! * [`Routing::Adaptive`]: for each matrix the routing that is best for it, a linear program (`adaptive`)
//! * [`Routing::Oblivious`]: the one routing that is best for the day, a linear program (`oblivious`)
//!
//! "Best" is the least use of the most loaded link, as in the paper. A link's use is its largest over the day's matrices.
//!
//! What to expect: on a Clos network without oversubscription the uplinks of the busiest ToR are its most loaded links, no
//! routing can do without them, and VLB splits them evenly, so it is optimal. Adaptive routing wins where the core is the
//! bottleneck: it turns traffic round below the core and moves it to Aggregations with room.

mod adaptive;
mod clos;
mod load;
mod oblivious;
mod program;
mod vlb;

use weft_scenario::engine::Progress;
use weft_scenario::record::{LinkUseRow, Records, RoutedMatrixRow};
use weft_scenario::topology::Fabric;
use weft_scenario::units::BitsPerSec;
use weft_scenario::workload::Matrix;
use weft_scenario::workload::model::LinkUseSpec;

use self::clos::Clos;
use self::load::{Load, directions, keep_largest, largest};
use crate::ModelError;

/// A way to route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Valiant load balancing, everything split evenly.
    Vlb,
    /// The same with whole flows.
    VlbFlows,
    /// The best for each matrix.
    Adaptive,
    /// The best for all matrices.
    Oblivious,
}

impl Routing {
    /// Every routing.
    pub const ALL: [Self; 4] = [Self::Vlb, Self::VlbFlows, Self::Adaptive, Self::Oblivious];

    /// As records write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vlb => "vlb",
            Self::VlbFlows => "vlb-flows",
            Self::Adaptive => "adaptive",
            Self::Oblivious => "oblivious",
        }
    }
}

/// Draws the day and routes it in every way.
pub fn run(spec: &LinkUseSpec, fabric: &Fabric, seed: u64, progress: &dyn Progress) -> Result<Records, ModelError> {
    let clos = Clos::of(fabric, spec.intermediates)?;
    let rates: Vec<BitsPerSec> = clos.racks.iter().map(|rack| rack.servers).collect();
    route(spec, &clos, fabric, &spec.matrices.matrices(&rates, seed), seed, progress)
}

/// Routes a day of matrices between the fabric's racks in every way.
pub fn route_day(
    spec: &LinkUseSpec,
    fabric: &Fabric,
    day: &[Matrix],
    seed: u64,
    progress: &dyn Progress,
) -> Result<Records, ModelError> {
    let clos = Clos::of(fabric, spec.intermediates)?;
    match day.iter().position(|matrix| matrix.racks() != clos.racks.len()) {
        None => route(spec, &clos, fabric, day, seed, progress),
        Some(number) => {
            let (has, racks) = (day[number].racks(), clos.racks.len());
            Err(ModelError::Setting(format!("matrix {} is between {has} racks; the fabric has {racks}", number + 1)))
        }
    }
}

fn route(
    spec: &LinkUseSpec,
    clos: &Clos,
    fabric: &Fabric,
    day: &[Matrix],
    seed: u64,
    progress: &dyn Progress,
) -> Result<Records, ModelError> {
    let interval = spec.matrices.interval;
    let names = directions(clos, fabric);
    let mut records = Records::default();
    for routing in Routing::ALL {
        let loads: Vec<Load> = match routing {
            Routing::Vlb => day.iter().map(|matrix| vlb::even(clos, matrix)).collect(),
            Routing::VlbFlows => {
                let seeded = (0u64..).map(|number| seed.wrapping_add(number << 32));
                let of = |(matrix, seed)| vlb::by_flows(clos, matrix, interval, spec.flow_bytes, seed);
                day.iter().zip(seeded).map(of).collect()
            }
            Routing::Adaptive => adaptive_day(spec, clos, day, progress)?,
            Routing::Oblivious => oblivious::best(clos, day, progress)?,
        };
        add(&mut records, routing, clos, &names, day, &loads, interval.0);
    }
    Ok(records)
}

fn adaptive_day(
    spec: &LinkUseSpec,
    clos: &Clos,
    day: &[Matrix],
    progress: &dyn Progress,
) -> Result<Vec<Load>, ModelError> {
    let mut loads = Vec::with_capacity(day.len());
    for (number, matrix) in day.iter().enumerate() {
        if progress.interrupted() {
            return Err(ModelError::Interrupted);
        }
        progress.advance(number as f64 / day.len() as f64, &format!("adaptive routing: matrix {number}"));
        let start_s = number as f64 * spec.matrices.interval.as_secs_f64();
        let place = format!("matrix {} (from {start_s} s)", number + 1);
        loads.push(adaptive::best(clos, matrix, spec.most_use, &place)?);
    }
    Ok(loads)
}

fn add(
    records: &mut Records,
    routing: Routing,
    clos: &Clos,
    names: &[(String, String)],
    day: &[Matrix],
    loads: &[Load],
    interval_ns: u64,
) {
    let mut most = Vec::new();
    for ((number, load), matrix) in (0u64..).zip(loads).zip(day) {
        let uses = load.uses(clos);
        keep_largest(&mut most, &uses);
        records.routed_matrices.push(RoutedMatrixRow {
            routing: routing.name().into(),
            time_ns: number * interval_ns,
            offered_bps: matrix.total_bps(),
            use_ratio: rounded(largest(&uses)),
        });
    }
    records.link_uses.extend(names.iter().zip(most).map(|((node, peer), used)| LinkUseRow {
        routing: routing.name().into(),
        node: node.clone(),
        peer: peer.clone(),
        use_ratio: rounded(used),
    }));
}

/// To nine digits behind the point: what is below depends on the order in which a processor adds.
fn rounded(ratio: f64) -> f64 {
    (ratio * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests;
