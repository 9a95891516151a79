//! Look-ups answered at the card: the XDP program alone, on a table in memory and on one in the CPU's cache, beside what the
//! server of this run takes for the same.

use serde::Serialize;
use weft_datapath::DatapathError;
use weft_testbed::bench::{self, BenchOptions, CardNumbers};

use super::{Bench, LookupNumbers};
use crate::error::LabError;

/// Mappings of the table that no cache holds; in quick runs a tenth.
const LARGE: u32 = 2_000_000;
/// Mappings of the table that every cache holds.
const SMALL: u32 = 1_000;

/// Look-ups at the card by one size of its table.
#[derive(Clone, Debug, Serialize)]
pub struct CardLookups {
    #[serde(flatten)]
    pub numbers: CardNumbers,
    /// Look-ups per CPU second over those of the server at one AA a datagram, without bursts.
    pub over_server: f64,
}

/// Nothing where this process may not load programs.
pub(super) fn measure(bench: &Bench<'_>, server: &[LookupNumbers]) -> Result<Vec<CardLookups>, LabError> {
    let quick = bench.options.quick;
    let large = if quick { LARGE / 10 } else { LARGE };
    bench.progress.phase("look-ups at the card", &format!("{SMALL} and {large} mappings, the program alone"));
    bench.go_on()?;
    let options = BenchOptions { repeat: if quick { 100_000 } else { 500_000 }, rounds: bench.options.rounds };
    let sizes = match bench::card(&[large, SMALL], &options) {
        Err(DatapathError::NoRights { .. } | DatapathError::NoEbpf { .. }) => Vec::new(),
        sizes => sizes.map_err(|error| LabError::DirectoryLoad(error.to_string()))?,
    };
    let plain = server.iter().find(|row| row.questions_per_datagram == 1 && !row.gro);
    let server_per_cpu_s = plain.map_or(f64::INFINITY, |row| row.lookups_per_cpu_s);
    let row = |numbers: CardNumbers| CardLookups { over_server: numbers.lookups_per_cpu_s / server_per_cpu_s, numbers };
    Ok(sizes.into_iter().map(row).collect())
}
