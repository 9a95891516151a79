//! Whether the machine that emulates the fabric had CPU to spare.

use std::collections::BTreeMap;

use weft_scenario::record::CpuRow;

use super::series::Window;

/// A run is CPU-bound if its busiest core idled less than this share of the window.
///
/// A fabric of namespaces forwards in soft interrupts, and one core without idle time delays every packet that it
/// handles, so the busiest core decides and not the mean. Measured shuffles whose busiest core idled a tenth of the
/// time or more reached the bound that headers set; those that lost goodput to the CPU showed no idle time at all. The
/// threshold lies between, on the careful side of the ticks that idle time is counted in.
pub const CPU_BOUND_IDLE_RATIO: f64 = 0.05;

/// Mean idle share of every core over the window, by core. Cores without a row in it are left out.
pub fn mean_idle(rows: &[CpuRow], window: Window) -> BTreeMap<u32, f64> {
    let mut sums: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
    for row in rows {
        let time_s = row.time_ns as f64 / 1e9;
        if time_s > window.from_s && time_s <= window.to_s {
            let sum = sums.entry(row.core).or_default();
            *sum = (sum.0 + row.idle_ratio, sum.1 + 1);
        }
    }
    sums.into_iter().map(|(core, (sum, count))| (core, sum / f64::from(count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(second: u64, core: u32, idle_ratio: f64) -> CpuRow {
        CpuRow { time_ns: second * 1_000_000_000, core, idle_ratio, softirq_ratio: 0.0 }
    }

    const WINDOW: Window = Window { from_s: 1.0, to_s: 3.0 };

    #[test]
    fn rows_outside_the_window_do_not_count() {
        let rows = [row(1, 0, 0.0), row(2, 0, 0.9), row(3, 0, 0.9), row(4, 0, 0.0), row(2, 1, 0.02), row(3, 1, 0.06)];
        assert_eq!(mean_idle(&rows, WINDOW), [(0, 0.9), (1, 0.04)].into());
        assert_eq!(mean_idle(&[], WINDOW), BTreeMap::new());
    }
}
