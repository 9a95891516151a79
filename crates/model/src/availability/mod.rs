//! What servers can send to each other while devices fail (VL2 3.4): flow level, event by event.
//!
//! Between two events nothing changes, so a month of failures is some hundred states of the network. In each, servers of
//! working racks send across the top of the network, to the racks that are farthest from their own, evenly and as fast as
//! their NICs: the bisection, which the paper speaks of. Routing spreads that (`spread`) and the links' rates are shared
//! fairly (`fair`). The capacity is what arrives over what all servers there are would send.

mod failures;
mod fair;
mod spread;

use std::collections::{BTreeMap, BTreeSet};

use weft_scenario::engine::Progress;
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::record::{AvailabilityRow, FailureRow, Records};
use weft_scenario::routing::EcmpRoutes;
use weft_scenario::topology::{Fabric, Role};
use weft_scenario::workload::model::AvailabilitySpec;

use self::failures::Failure;
use self::fair::Flow;
use self::spread::Spread;
use crate::ModelError;

/// A network's state: what works and what it carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Servers whose ToR works, over all.
    pub servers_ratio: f64,
    /// What servers ask whose ToRs work and whose receivers' do, over what all ask.
    pub demand_ratio: f64,
    /// What arrives over what all servers ask.
    pub capacity_ratio: f64,
    /// Pairs of working racks that talk and have no way, over all such pairs.
    pub cut_ratio: f64,
}

/// Draws the failures of a fabric and follows its state through them.
pub fn run(
    spec: &AvailabilitySpec,
    fabric: &Fabric,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Records, ModelError> {
    let failures = failures::failures(&spec.failures, fabric, seed)?;
    let end_ns = spec.failures.duration.0;
    let mut times: BTreeSet<u64> = failures.iter().flat_map(|one| [one.at.0, one.ends().0]).collect();
    times.insert(0);
    times.retain(|time| *time < end_ns);
    let racks = Racks::of(fabric)?;
    let mut known: BTreeMap<BTreeSet<NodeId>, State> = BTreeMap::new();
    let mut records = Records { failures: failures.iter().map(failure_row).collect(), ..Records::default() };
    let starts: Vec<u64> = times.into_iter().collect();
    for (number, from_ns) in starts.iter().enumerate() {
        if progress.interrupted() {
            return Err(ModelError::Interrupted);
        }
        let down = down_at(&failures, *from_ns);
        let state = *known.entry(down.clone()).or_insert_with(|| racks.state(fabric, &down));
        let until_ns = starts.get(number + 1).copied().unwrap_or(end_ns);
        records.availability.push(AvailabilityRow {
            time_ns: *from_ns,
            lasts_ns: until_ns - from_ns,
            down: down.len() as u32,
            servers_ratio: state.servers_ratio,
            demand_ratio: state.demand_ratio,
            capacity_ratio: state.capacity_ratio,
            cut_ratio: state.cut_ratio,
        });
        progress.advance(number as f64 / starts.len() as f64, &format!("{number} of {} states", starts.len()));
    }
    records.facts = facts(&racks, fabric);
    records.facts.push(("availability.states".into(), known.len() as f64));
    Ok(records)
}

/// The state of a fabric with some switches down.
pub fn state(fabric: &Fabric, down: &BTreeSet<NodeId>) -> Result<State, ModelError> {
    Ok(Racks::of(fabric)?.state(fabric, down))
}

/// Capacity of the whole network and with one switch of a tier down.
fn facts(racks: &Racks, fabric: &Fabric) -> Vec<(String, f64)> {
    let capacity = |down: Option<NodeId>| racks.state(fabric, &down.into_iter().collect()).capacity_ratio;
    let one_of = |role: Role| fabric.with_role(role).next();
    let top = one_of(Role::Intermediate).or(one_of(Role::Core));
    let switches = fabric.switches().count() as f64;
    let mut facts =
        vec![("availability.switches".to_owned(), switches), ("availability.whole".to_owned(), capacity(None))];
    for (tier, switch) in [("top", top), ("aggregation", one_of(Role::Aggregation))] {
        facts.extend(switch.map(|switch| (format!("availability.one_down.{tier}"), capacity(Some(switch)))));
    }
    facts
}

fn down_at(failures: &[Failure], time_ns: u64) -> BTreeSet<NodeId> {
    let lasting = failures.iter().filter(|one| one.at.0 <= time_ns && time_ns < one.ends().0);
    lasting.flat_map(|one| one.switches.iter().copied()).collect()
}

fn failure_row(failure: &Failure) -> FailureRow {
    FailureRow {
        time_ns: failure.at.0,
        lasts_ns: failure.lasts.0,
        switches: failure.switches.len() as u32,
        takes_group: failure.takes_group.into(),
    }
}

/// ToRs with their servers, and which pairs of them talk.
struct Racks {
    racks: Vec<Rack>,
    /// What each asks of racks across the top: places of sender and receiver, bits per second.
    demands: Vec<(usize, usize, f64)>,
}

#[derive(Clone, Copy)]
struct Rack {
    tor: NodeId,
    servers: f64,
    rate_bps: f64,
}

impl Racks {
    fn of(fabric: &Fabric) -> Result<Self, ModelError> {
        let mut racks = BTreeMap::new();
        for server in fabric.servers() {
            let Some((tor, link)) = fabric.edge_of(server) else { continue };
            let rack = racks.entry(tor).or_insert(Rack { tor, servers: 0.0, rate_bps: 0.0 });
            rack.servers += 1.0;
            rack.rate_bps += fabric.link(link).spec.rate.0 as f64;
        }
        let racks: Vec<Rack> = racks.into_values().collect();
        match demands(fabric, &racks) {
            demands if demands.is_empty() => {
                Err(ModelError::Shape("the question needs a fabric with servers in at least two racks".into()))
            }
            demands => Ok(Self { racks, demands }),
        }
    }

    fn state(&self, fabric: &Fabric, down: &BTreeSet<NodeId>) -> State {
        let works = |place: usize| !down.contains(&self.racks[place].tor);
        let mut spread = Spread::new(fabric, down);
        let (mut flows, mut cut, mut asked) = (Vec::new(), 0, 0.0);
        for (from, to, wanted) in self.demands.iter().filter(|demand| works(demand.0) && works(demand.1)) {
            asked += wanted;
            match spread.between(self.racks[*from].tor, self.racks[*to].tor) {
                Some(links) => flows.push(Flow { links, wanted: *wanted }),
                None => cut += 1,
            }
        }
        let rate = |direction: usize| fabric.link(LinkId(direction as u32 / 2)).spec.rate.0 as f64;
        let rates: Vec<f64> = (0..2 * fabric.links().len()).map(rate).collect();
        let shares = fair::shares(&flows, &rates);
        let carried: f64 = flows.iter().zip(&shares).map(|(flow, share)| flow.wanted * share).sum();
        let all: f64 = self.demands.iter().map(|demand| demand.2).sum();
        let servers: f64 = self.racks.iter().map(|rack| rack.servers).sum();
        let working = self.racks.iter().filter(|rack| !down.contains(&rack.tor));
        let pairs = (flows.len() + cut) as f64;
        State {
            servers_ratio: working.map(|rack| rack.servers).sum::<f64>() / servers,
            demand_ratio: asked / all,
            capacity_ratio: carried / all,
            cut_ratio: if pairs > 0.0 { cut as f64 / pairs } else { 0.0 },
        }
    }
}

/// Every server sends at its rate, evenly to the servers of the racks that are farthest from its own.
fn demands(fabric: &Fabric, racks: &[Rack]) -> Vec<(usize, usize, f64)> {
    let routes = EcmpRoutes::compute(fabric, &BTreeSet::new());
    let distance = |from: &Rack, to: &Rack| routes.distance(from.tor, to.tor).unwrap_or(0);
    let mut demands = Vec::new();
    for (place, from) in racks.iter().enumerate() {
        let farthest = racks.iter().map(|to| distance(from, to)).max().unwrap_or(0);
        let far = || racks.iter().enumerate().filter(|(_, to)| farthest > 0 && distance(from, to) == farthest);
        let servers: f64 = far().map(|(_, to)| to.servers).sum();
        demands.extend(far().map(|(other, to)| (place, other, from.rate_bps * to.servers / servers)));
    }
    demands
}

#[cfg(test)]
mod tests {
    use weft_scenario::topology::{ClosParams, ConventionalParams, LinkParams, conventional, vl2_clos};
    use weft_scenario::units::BitsPerSec;

    use super::*;

    fn links() -> LinkParams {
        LinkParams::for_server_rate(BitsPerSec(1_000_000_000))
    }

    fn clos() -> Fabric {
        vl2_clos(&ClosParams { links: links(), ..ClosParams::with_ports(8) }).unwrap()
    }

    fn of(fabric: &Fabric, down: &[&str]) -> State {
        state(fabric, &down.iter().map(|name| fabric.find(name).unwrap()).collect()).unwrap()
    }

    fn assert_near(got: f64, wanted: f64) {
        assert!((got - wanted).abs() < 1e-6, "{got} is not {wanted}");
    }

    #[test]
    fn a_whole_clos_network_carries_everything() {
        let state = of(&clos(), &[]);
        assert_near(state.capacity_ratio, 1.0);
        assert_eq!((state.servers_ratio, state.cut_ratio), (1.0, 0.0));
    }

    #[test]
    fn one_of_four_intermediates_costs_a_quarter() {
        assert_near(of(&clos(), &["int1"]).capacity_ratio, 0.75);
        assert_near(of(&clos(), &["int1", "int2"]).capacity_ratio, 0.5);
    }

    #[test]
    fn a_dead_tor_costs_what_its_servers_send_and_get() {
        // 16 racks, each with 12 farther than its own Aggregations: 24 of 192 pairs are gone, the others lose nothing.
        let state = of(&clos(), &["tor1"]);
        assert_near(state.servers_ratio, 15.0 / 16.0);
        assert_near(state.demand_ratio, 168.0 / 192.0);
        assert_near(state.capacity_ratio, 168.0 / 192.0);
    }

    #[test]
    fn one_of_two_core_routers_costs_half() {
        let params = ConventionalParams {
            tors: 72,
            aggregation_pairs: 8,
            tor_oversubscription: 1,
            aggregation_oversubscription: 1,
            access_oversubscription: 1,
            links: links(),
            ..ConventionalParams::default()
        };
        let fabric = conventional(&params).unwrap();
        assert_near(of(&fabric, &[]).capacity_ratio, 1.0);
        assert_near(of(&fabric, &["core1"]).capacity_ratio, 0.5);
        assert_near(of(&fabric, &["access1"]).capacity_ratio, 0.5);
    }

    #[test]
    fn both_of_a_pair_cut_its_racks_off_in_the_conventional_network() {
        let params = ConventionalParams {
            tors: 6,
            aggregation_pairs: 3,
            access_pairs: 1,
            links: links(),
            ..ConventionalParams::default()
        };
        let fabric = conventional(&params).unwrap();
        let (whole, one, both) = (of(&fabric, &[]), of(&fabric, &["agg1"]), of(&fabric, &["agg1", "agg2"]));
        assert!(one.capacity_ratio < whole.capacity_ratio && one.cut_ratio == 0.0);
        // Racks 1 and 4 of 6 are below them. Each rack talks to the 4 of other pairs: 16 of 24 pairs have an end there.
        assert_near(both.cut_ratio, 16.0 / 24.0);
        assert_eq!(of(&fabric, &["core1", "core2"]).cut_ratio, 0.0, "one domain does not need the core");
    }

    #[test]
    fn intermediates_that_are_all_down_leave_nothing() {
        let state = of(&clos(), &["int1", "int2", "int3", "int4"]);
        assert_eq!((state.capacity_ratio, state.cut_ratio), (0.0, 1.0));
    }
}
