//! Rates on every direction of every link, and their share of the links' rates.

use weft_scenario::topology::Fabric;

use super::clos::Clos;

/// Rates, bits per second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Load {
    /// From rack r over its k-th uplink.
    pub(super) up: Vec<Vec<f64>>,
    /// To rack r over its k-th uplink.
    pub(super) down: Vec<Vec<f64>>,
    /// From Aggregation a to Intermediate i.
    pub(super) core_up: Vec<Vec<f64>>,
    /// From Intermediate i to Aggregation a.
    pub(super) core_down: Vec<Vec<f64>>,
}

impl Load {
    pub(super) fn zero(clos: &Clos) -> Self {
        let racks: Vec<Vec<f64>> = clos.racks.iter().map(|rack| vec![0.0; rack.uplinks.len()]).collect();
        let core = vec![vec![0.0; clos.intermediates.len()]; clos.aggregations.len()];
        Self { up: racks.clone(), down: racks, core_up: core.clone(), core_down: core }
    }

    /// Adds what Aggregation `a` sends up, evenly over the Intermediates.
    pub(super) fn add_core_up(&mut self, aggregation: usize, rate: f64) {
        add_evenly(&mut self.core_up[aggregation], rate);
    }

    /// The same for what comes down to it.
    pub(super) fn add_core_down(&mut self, aggregation: usize, rate: f64) {
        add_evenly(&mut self.core_down[aggregation], rate);
    }

    /// Share of its rate that each direction of each link uses, in the order of [`directions`].
    pub(super) fn uses(&self, clos: &Clos) -> Vec<f64> {
        let mut uses = Vec::new();
        for rates in [&self.up, &self.down] {
            for (rack, rates) in clos.racks.iter().zip(rates) {
                uses.extend(rack.uplinks.iter().zip(rates).map(|((_, most), rate)| rate / most));
            }
        }
        for rates in [&self.core_up, &self.core_down] {
            uses.extend(rates.iter().flatten().map(|rate| rate / clos.core_rate));
        }
        uses
    }
}

fn add_evenly(rates: &mut [f64], rate: f64) {
    let each = rate / rates.len() as f64;
    rates.iter_mut().for_each(|one| *one += each);
}

/// Sender and receiver of each direction in the order of [`Load::uses`].
pub(super) fn directions(clos: &Clos, fabric: &Fabric) -> Vec<(String, String)> {
    let name = |id| fabric.node(id).name.clone();
    let racks = clos.racks.iter().flat_map(|rack| rack.uplinks.iter().map(|up| (rack.tor, clos.aggregations[up.0])));
    let racks: Vec<_> = racks.map(|(tor, aggregation)| (name(tor), name(aggregation))).collect();
    let core = clos.aggregations.iter().flat_map(|one| clos.intermediates.iter().map(|top| (*one, *top)));
    let core: Vec<_> = core.map(|(aggregation, top)| (name(aggregation), name(top))).collect();
    let turned = |list: &[(String, String)]| list.iter().map(|(a, b)| (b.clone(), a.clone())).collect::<Vec<_>>();
    [racks.clone(), turned(&racks), core.clone(), turned(&core)].concat()
}

/// The largest of some uses.
pub(super) fn largest(uses: &[f64]) -> f64 {
    uses.iter().copied().fold(0.0, f64::max)
}

/// Keeps the larger of each.
pub(super) fn keep_largest(most: &mut Vec<f64>, uses: &[f64]) {
    most.resize(uses.len(), 0.0);
    most.iter_mut().zip(uses).for_each(|(most, one)| *most = most.max(*one));
}
