//! Outcome counters: per-CPU arrays in the kernel, sums with names here.

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::error::DatapathError;

/// Each outcome's name with its sum over all CPUs, in the order of the programs' enum.
///
/// # Errors
/// [`DatapathError::Map`].
pub fn read(
    map: &MapHandle,
    map_name: &'static str,
    names: &'static [&'static str],
) -> Result<Vec<(&'static str, u64)>, DatapathError> {
    let mut counters = Vec::with_capacity(names.len());
    for (index, name) in (0u32..).zip(names) {
        let per_cpu = map
            .lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)
            .map_err(|source| DatapathError::Map { map: map_name, what: "reading", source })?
            .unwrap_or_default();
        counters.push((*name, per_cpu.iter().filter_map(|value| as_u64(value)).sum()));
    }
    Ok(counters)
}

fn as_u64(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_ne_bytes)
}
