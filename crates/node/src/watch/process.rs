//! What every process tells, under the names that Prometheus's own clients have for it, and which weft this is.

use std::fs;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::registry::Unit;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::metrics::Metrics;
use crate::runner::DaemonKind;

const NS_PER_S: f64 = 1e9;

/// When this process began, seconds of Unix time. First looked at as it begins.
static STARTED_S: LazyLock<f64> =
    LazyLock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()));

/// Remembers that the process begins now.
pub(super) fn begins() {
    LazyLock::force(&STARTED_S);
}

/// Of this process, which is such a daemon.
pub(super) fn metrics(kind: DaemonKind) -> Metrics {
    let mut metrics = Metrics::default();
    let labels = [("version", env!("CARGO_PKG_VERSION").to_owned()), ("daemon", kind.word().to_owned())];
    metrics.gauges("weft_build_info", "Which weft this is").add(labels, 1u32);
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let used_s = used.tv_sec as f64 + used.tv_nsec as f64 / NS_PER_S;
    metrics.counters("process_cpu", "CPU time of the process").in_unit(Unit::Seconds).add([], used_s);
    metrics
        .gauges("process_start_time", "When the process began, of Unix time")
        .in_unit(Unit::Seconds)
        .add([], *STARTED_S);
    metrics.gauges("process_resident_memory", "Memory in use").in_unit(Unit::Bytes).add([], resident_bytes());
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    metrics.gauge("process_open_fds", "File descriptors in use", open);
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    metrics.gauge("process_max_fds", "File descriptors that it may use", most);
    metrics
}

/// `VmRSS` of proc(5), which is in units of 1024 bytes.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map_or(0, |kib: u64| kib * 1024)
}
