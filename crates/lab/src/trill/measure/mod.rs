//! The TRILL papers' experiments: switches between two ports of the test centre, as namespaces of this machine.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`crossing`] | rates and loads from port to port: delivery, order, latency, paths |
//! | [`cost`] | CPU time per frame at every switch, with the chain cut |
//! | [`convergence`] | a middle switch is lost |
//! | [`spread`] | a switch's work spread over CPUs by egress nickname |
//! | [`elephants`] | few large flows by this kernel's TCP and multipath TCP |
//! | [`mix`] | a share of the traffic crosses VLANs |
//! | [`campus`] | the campus with daemons, or bridges with 802.1D, on the same wires |
//! | [`bed`], [`switch`] | switches without daemons: a line, and chains that can end anywhere |

mod bed;
mod campus;
mod convergence;
mod cost;
mod crossing;
mod elephants;
mod mix;
mod spread;
mod switch;

use std::path::Path;

use weft_scenario::engine::Progress;
use weft_scenario::record::Records;
use weft_scenario::workload::TrillSpec;

use crate::sysctls::HurriedWaits;
use crate::tester::TesterError;
use crate::tester::experiment::Context;

/// Runs one experiment; addresses and ports of the stations come from the seed.
pub(crate) fn run(
    spec: &TrillSpec,
    seed: u64,
    weft_binary: &Path,
    progress: &dyn Progress,
) -> Result<Records, TesterError> {
    // Each program that is attached and each start of the generator waits for the kernel; frames cost the same.
    let _quick = HurriedWaits::begin()?;
    let context = Context { weft_binary, progress };
    match spec {
        TrillSpec::Crossing(spec) => crossing::run(spec, seed, &context),
        TrillSpec::Cost(spec) => cost::run(spec, seed, &context),
        TrillSpec::Convergence(spec) => convergence::run(spec, seed, &context),
        TrillSpec::Spread(spec) => spread::run(spec, seed, &context),
        TrillSpec::VlanMix(spec) => mix::run(spec, seed, &context),
        TrillSpec::Elephants(spec) => elephants::run(spec, &context),
    }
}
