//! The VXLAN draft's experiments (draft-liu-nvo3-ps-vxlan-perfomance-00): servers with a virtual switch and test VMs as
//! namespaces of this machine, measured by the test centre.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`benchmark`] | traffic model A: what one server carries, and what that costs it |
//! | [`servers`] | traffic model B: two servers without and with VXLAN |
//! | [`segments`] | what thousands of segments take |
//! | [`bed`], [`switching`] | servers, VMs, wires; a virtual switch of each kind |
//! | [`daemon`] | our VTEP as it is deployed |
//! | [`vm`] | a VM: a process that sends and receives, in its namespace |
//! | [`load`], [`lockstep`] | rates from the test centre to VMs; CPU time with the chain cut |
//! | [`cores`] | who runs where |
//!
//! CPU time of a switch is a difference of chains that end at different places (tester, `cost`). A VM and the switches behind
//! it take turns on one core, so that neither waits for the other and every soft interrupt is charged to whom caused it.

mod bed;
mod benchmark;
mod cores;
mod daemon;
mod load;
mod lockstep;
mod segments;
mod servers;
mod switching;
pub mod vm;

use std::path::Path;

use weft_scenario::engine::Progress;
use weft_scenario::record::Records;
use weft_scenario::workload::VxlanSpec;

use crate::sysctls::HurriedWaits;
use crate::tester::TesterError;
use crate::tester::experiment::Context;

/// Runs one experiment. VMs are processes of `weft_binary`.
pub(crate) fn run(spec: &VxlanSpec, weft_binary: &Path, progress: &dyn Progress) -> Result<Records, TesterError> {
    // Each program that is attached and each start of the generator waits for the kernel; frames cost the same.
    let _quick = HurriedWaits::begin()?;
    let context = Context { weft_binary, progress };
    match spec {
        VxlanSpec::Benchmark(spec) => benchmark::run(spec, &context),
        VxlanSpec::Servers(spec) => servers::run(spec, &context),
        VxlanSpec::Segments(spec) => segments::run(spec, &context),
    }
}
