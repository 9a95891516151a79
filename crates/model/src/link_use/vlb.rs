//! Valiant load balancing: over a random uplink, a random Intermediate, and a random way down, whatever the destination.

use rand::RngExt;
use rand_pcg::Pcg64;
use weft_scenario::units::Nanos;
use weft_scenario::workload::Matrix;

use super::clos::Clos;
use super::load::Load;

const STREAM: u128 = 0x071b_f10e_5a5b;

/// Everything split evenly: what many small flows come to. Traffic between racks on the same Aggregation goes up too.
pub(super) fn even(clos: &Clos, matrix: &Matrix) -> Load {
    let mut load = Load::zero(clos);
    for (number, rack) in clos.racks.iter().enumerate() {
        let each = rack.uplinks.len() as f64;
        for (place, (aggregation, _)) in rack.uplinks.iter().enumerate() {
            let (sent, received) = (matrix.sent_bps(number) / each, matrix.received_bps(number) / each);
            load.up[number][place] += sent;
            load.down[number][place] += received;
            load.add_core_up(*aggregation, sent);
            load.add_core_down(*aggregation, received);
        }
    }
    load
}

/// Whole flows of one size, each on a path drawn for it, as a hash does: uneven by chance.
pub(super) fn by_flows(clos: &Clos, matrix: &Matrix, interval: Nanos, flow_bytes: u64, seed: u64) -> Load {
    let mut load = Load::zero(clos);
    let mut generator = Pcg64::new(u128::from(seed), STREAM);
    for (from, to, rate) in matrix.demands() {
        let flows = (rate / 8.0 * interval.as_secs_f64() / flow_bytes as f64).round().max(1.0);
        let each = rate / flows;
        let (ups, downs) = (&clos.racks[from].uplinks, &clos.racks[to].uplinks);
        for _ in 0..flows as u64 {
            let up = generator.random_range(0..ups.len());
            let top = generator.random_range(0..clos.intermediates.len());
            let down = generator.random_range(0..downs.len());
            load.up[from][up] += each;
            load.core_up[ups[up].0][top] += each;
            load.core_down[downs[down].0][top] += each;
            load.down[to][down] += each;
        }
    }
    load
}
