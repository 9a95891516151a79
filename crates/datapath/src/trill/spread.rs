//! Links' frames worked on by several CPUs: each serves its share of the egress nicknames, as each cluster of the fast-path
//! paper's card serves a sixteenth of them. A flow has one egress, so it stays on one CPU and in order.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapFlags, Object};

use super::abi::TrillSpread;
use crate::abi::Abi;
use crate::error::DatapathError;
use crate::object;
use crate::table::Table;

pub(super) const CPUS: &str = "trill_cpus";
const SPREAD: &str = ".data.trill_spread";
const WORKER: &str = "trill_worker";
const HANDING: &str = "handing frames to a CPU (is there one of this number?)";
/// Nicknames are dealt out in so many clusters.
pub const CLUSTERS: usize = 16;
/// Frames that may wait for a CPU; what comes when so many wait is dropped by the kernel.
const QUEUE_FRAMES: u32 = 2048;

/// The CPU of each cluster, in turn.
pub(super) fn begin(object: &Object, cpus: &[u32]) -> Result<(), DatapathError> {
    run_on(object, CPUS, WORKER, cpus)?;
    let spread = TrillSpread { cpu: std::array::from_fn(|cluster| cpus[cluster % cpus.len()]) };
    Table::of(object, SPREAD)?.put(&0u32, &spread)
}

/// Has each of these CPUs run a program on what it is handed by the map.
pub(super) fn run_on(object: &Object, map: &'static str, program: &str, cpus: &[u32]) -> Result<(), DatapathError> {
    let workers = object::map_handle(object, map)?;
    let program = object::program(object, program).as_fd().as_raw_fd();
    // `struct bpf_cpumap_val`: room of the queue, and the program.
    let value = [QUEUE_FRAMES.to_ne_bytes(), program.to_ne_bytes()].concat();
    cpus.iter().try_for_each(|cpu| {
        let failed = |source| DatapathError::Map { map, what: HANDING, source };
        workers.update(cpu.bytes(), &value, MapFlags::ANY).map_err(failed)
    })
}

/// So many entries the map of CPUs needs.
pub(super) fn entries(cpus: &[u32]) -> u32 {
    cpus.iter().max().map_or(1, |largest| largest + 1)
}
