//! The floors: what each job must count, how fast and how small it must be.
//!
//! Counts and completion times are R1's, which other simulators agree on (htsim: 8,000,800 packet-hops, no drops,
//! 12,369.4 us). Paces are five times htsim's on R1 and nine times at 1600 hosts.

use weft_scenario::judge::Check;

use super::daytone::DaytoneRow;
use super::measure::{JobRow, SweepRow, paired_ratio};
use super::ns3::Ns3Row;

/// Bounds of one job; without one nothing is wanted.
#[derive(Default)]
struct Floors {
    hops: Option<(f64, f64)>,
    drops_max: Option<f64>,
    fct_us: Option<f64>,
    pace_min: Option<f64>,
    rss_max: Option<f64>,
    /// Of its pace over r1a's in the same rounds.
    over_r1a_min: Option<f64>,
    wall_max_s: Option<f64>,
    /// Its memory is estimated beforehand, see [`ESTIMATE_OVER_RSS`].
    is_estimated: bool,
}

/// An estimate of memory over what was used: never below, and not much above.
const ESTIMATE_OVER_RSS: [f64; 2] = [1.0, 1.3];
/// Mean completion times may differ by so much.
const FCT_TOLERANCE: f64 = 0.001;
/// CPU time of one shared pool a switch over that of buffers by port.
const SHARED_CPU_MAX: f64 = 1.15;
/// Total CPU time of a sweep on two workers over serial.
const SWEEP_CPU_MAX: f64 = 1.08;
/// CPU time on one thread over that of the slowest of two, window by window.
const TWO_THREADS_MIN: f64 = 1.6;
/// Our packet-hops per CPU second over ns-3's.
const NS3_RATIO_MIN: f64 = 90.0;
/// daytone's CPU time over ours.
const DAYTONE_RATIO_MIN: f64 = 20.0;
/// Streams with the same mean delay in both over all. daytone 0.3.4 keeps a few packets that wait behind another until the next
/// one comes, a second later: of 512 streams that is two.
const DAYTONE_EQUAL_MIN: f64 = 0.99;

fn floors(job: &str) -> Floors {
    let r1_pace = Some(17e6);
    match job {
        "r1a" => Floors {
            // A transport with FIN exchanges may have 1600 more.
            hops: Some((8_000_800.0, 8_002_400.0)),
            drops_max: Some(0.0),
            fct_us: Some(12_368.8),
            pace_min: r1_pace,
            rss_max: Some(10e6),
            ..Floors::default()
        },
        "r1b" | "r1w" => Floors { pace_min: r1_pace, ..Floors::default() },
        "hosts1600" => Floors {
            hops: Some((12_812_800.0, 12_812_800.0)),
            fct_us: Some(1_288.0),
            pace_min: Some(12e6),
            rss_max: Some(40e6),
            ..Floors::default()
        },
        // 4096 streams of 1500 packets over 6 links.
        "fat32" => Floors {
            hops: Some((36_864_000.0, 36_864_000.0)),
            drops_max: Some(0.0),
            over_r1a_min: Some(0.2),
            ..Floors::default()
        },
        // 1.2 kB for each of 103,680 servers.
        "rest_103680" => {
            Floors { rss_max: Some(125e6), wall_max_s: Some(5.0), is_estimated: true, ..Floors::default() }
        }
        "vl2_1600" => at_size(0.3),
        "vl2_20480" => at_size(0.2),
        "vl2_103680" => Floors { rss_max: Some(1e9), ..at_size(0.15) },
        _ => Floors::default(),
    }
}

fn at_size(over_r1a_min: f64) -> Floors {
    Floors { drops_max: Some(0.0), over_r1a_min: Some(over_r1a_min), is_estimated: true, ..Floors::default() }
}

/// Every check that what was measured allows.
pub(super) fn checks(
    jobs: &[JobRow],
    sweep: Option<&SweepRow>,
    ns3: Option<&Ns3Row>,
    daytone: &[DaytoneRow],
) -> Vec<Check> {
    let mut checks: Vec<Check> = jobs.iter().flat_map(job_checks).collect();
    let find = |id: &str| jobs.iter().find(|job| job.id == id);
    if let (Some(own), Some(shared)) = (find("r1a"), find("r1a_shared")) {
        let ratio = paired_ratio(&shared.cpu_by_round_s, &own.cpu_by_round_s);
        checks.push(Check::at_most("r1a_shared.cpu_over_r1a", ratio, SHARED_CPU_MAX, "ratio"));
    }
    if let Some(r1a) = find("r1a") {
        let at_size = jobs.iter().filter_map(|job| Some((job, floors(&job.id).over_r1a_min?)));
        checks.extend(at_size.map(|(job, min)| {
            let hops = job.counts.packet_hops as f64 / r1a.counts.packet_hops.max(1) as f64;
            let ratio = hops * paired_ratio(&r1a.cpu_by_round_s, &job.cpu_by_round_s);
            Check::at_least(format!("{}.pace_over_r1a", job.id), ratio, min, "ratio")
        }));
    }
    for job in jobs.iter().filter(|job| job.slowest_s > 0.0) {
        // It is named as the job on one thread, with a word more.
        if let Some(serial) = job.id.rsplit_once('_').and_then(|(serial, _)| find(serial)) {
            checks.extend(thread_checks(job, serial));
        }
    }
    if let Some(sweep) = sweep {
        checks.push(Check::at_most("sweep.cpu_over_serial", sweep.cpu_ratio, SWEEP_CPU_MAX, "ratio"));
    }
    if let Some(ns3) = ns3 {
        checks.push(Check::at_least("vs_ns3.ratio", ns3.ratio, NS3_RATIO_MIN, "ratio"));
    }
    checks.extend(daytone.iter().flat_map(daytone_checks));
    checks
}

/// A job on two threads does what it does on one, in less time where each has a processor.
fn thread_checks(job: &JobRow, serial: &JobRow) -> [Check; 2] {
    let differing = f64::from(u8::from(job.counts != serial.counts));
    let ratio = paired_ratio(&serial.cpu_by_round_s, &job.slowest_by_round_s);
    [
        Check::at_most(format!("{}.differs_from_one_thread", job.id), differing, 0.0, "counts"),
        Check::at_least(format!("{}.one_thread_over_slowest", job.id), ratio, TWO_THREADS_MIN, "ratio"),
    ]
}

fn daytone_checks(row: &DaytoneRow) -> impl Iterator<Item = Check> {
    let id = |what: &str| format!("vs_daytone.{}.{what}", row.job);
    let wanted = row.daytone_packets as f64;
    let packets = within(id("packets"), row.packets as f64, [wanted, wanted], "packets");
    let equal = row.equal_streams as f64 / row.streams.max(1) as f64;
    let equal = Check::at_least(id("equal_streams"), equal, DAYTONE_EQUAL_MIN, "ratio");
    let ratio = Check::at_least(id("ratio"), row.ratio, DAYTONE_RATIO_MIN, "ratio");
    packets.into_iter().chain([equal, ratio])
}

fn job_checks(job: &JobRow) -> Vec<Check> {
    let floors = floors(&job.id);
    let id = |what: &str| format!("{}.{what}", job.id);
    let mut checks = Vec::new();
    if let Some((min, max)) = floors.hops {
        checks.extend(within(id("packet_hops"), job.counts.packet_hops as f64, [min, max], "hops"));
    }
    if let Some(max) = floors.drops_max {
        checks.push(Check::at_most(id("drops"), job.counts.drops as f64, max, "packets"));
    }
    if let Some(us) = floors.fct_us {
        let (min, max) = (us * (1.0 - FCT_TOLERANCE), us * (1.0 + FCT_TOLERANCE));
        checks.extend(within(id("mean_fct_us"), job.counts.mean_fct_us, [min, max], "us"));
    }
    if let Some(min) = floors.pace_min {
        checks.push(Check::at_least(id("hops_per_cpu_s"), job.hops_per_cpu_s.round(), min, "1/s"));
    }
    if let Some(max) = floors.rss_max {
        checks.push(Check::at_most(id("peak_rss_bytes"), job.peak_rss_bytes as f64, max, "B"));
    }
    if floors.is_estimated {
        checks.extend(within(id("estimated_over_peak_rss"), job.estimated_over_peak_rss, ESTIMATE_OVER_RSS, "ratio"));
    }
    if let Some(max) = floors.wall_max_s {
        checks.push(Check::at_most(id("wall_s"), job.wall_s, max, "s"));
    }
    checks
}

/// A floor and a ceiling of one number.
fn within(id: String, ours: f64, [min, max]: [f64; 2], unit: &'static str) -> [Check; 2] {
    [Check::at_least(id.clone(), ours, min, unit), Check::at_most(id, ours, max, unit)]
}

#[cfg(test)]
mod tests {
    use weft_scenario::judge::Verdict;

    use super::super::child::Counts;
    use super::*;

    fn r1a() -> JobRow {
        JobRow {
            id: "r1a".to_owned(),
            counts: Counts {
                packet_hops: 8_000_800,
                mean_fct_us: 12_368.8,
                mean_received_us: 12_367.5,
                ..Counts::default()
            },
            cpu_s: 0.4,
            hops_per_cpu_s: 20e6,
            peak_rss_bytes: 9_000_000,
            estimated_over_peak_rss: 1.1,
            wall_s: 0.4,
            slowest_s: 0.0,
            cpu_by_round_s: vec![0.3, 0.4, 0.9],
            slowest_by_round_s: vec![0.0; 3],
        }
    }

    fn failing(jobs: &[JobRow]) -> Vec<String> {
        names_of_failing(checks(jobs, None, None, &[]))
    }

    fn names_of_failing(checks: Vec<Check>) -> Vec<String> {
        checks.into_iter().filter(|check| check.verdict != Verdict::Pass).map(|check| check.id).collect()
    }

    #[test]
    fn a_slip_beside_daytone_is_named_with_its_network() {
        let row = || DaytoneRow {
            job: "fat16",
            daytone_version: "0.3.4".to_owned(),
            servers: 1_024,
            streams: 512,
            equal_streams: 507,
            daytone_packets: 153_600,
            daytone_mean_delay_us: 48_020.0,
            daytone_cpu_s: 4.0,
            daytone_hops_per_cpu_s: 230_400.0,
            daytone_peak_rss_bytes: 53_000_000,
            daytone_bytes_per_server: 52_000,
            packets: 153_600,
            mean_delay_us: 48_020.001,
            packet_hops: 921_600,
            cpu_s: 0.1,
            hops_per_cpu_s: 9_216_000.0,
            peak_rss_bytes: 10_000_000,
            bytes_per_server: 9_700,
            ratio: 40.0,
        };
        let failing = |row| names_of_failing(checks(&[], None, None, &[row]));
        assert_eq!(failing(row()), [""; 0]);
        for (row, id) in [
            (DaytoneRow { packets: 153_599, ..row() }, "packets"),
            (DaytoneRow { packets: 153_601, ..row() }, "packets"),
            (DaytoneRow { equal_streams: 506, ..row() }, "equal_streams"),
            (DaytoneRow { streams: 0, equal_streams: 0, ..row() }, "equal_streams"),
            (DaytoneRow { ratio: 19.9, ..row() }, "ratio"),
        ] {
            assert_eq!(failing(row), [format!("vs_daytone.fat16.{id}")]);
        }
    }

    #[test]
    fn the_reference_passes_and_every_slip_is_named() {
        assert_eq!(failing(&[r1a()]), [""; 0]);
        for (row, id) in [
            (JobRow { counts: Counts { packet_hops: 8_000_799, ..r1a().counts }, ..r1a() }, "r1a.packet_hops"),
            (JobRow { counts: Counts { drops: 1, ..r1a().counts }, ..r1a() }, "r1a.drops"),
            (JobRow { counts: Counts { mean_fct_us: 12_381.3, ..r1a().counts }, ..r1a() }, "r1a.mean_fct_us"),
            (JobRow { hops_per_cpu_s: 16.9e6, ..r1a() }, "r1a.hops_per_cpu_s"),
            (JobRow { peak_rss_bytes: 10_000_001, ..r1a() }, "r1a.peak_rss_bytes"),
        ] {
            assert_eq!(failing(&[row]), [id]);
        }
        let at_size = |cpu_s: f64| JobRow { id: "vl2_20480".to_owned(), cpu_by_round_s: vec![cpu_s; 3], ..r1a() };
        assert_eq!(failing(&[r1a(), at_size(1.9)]), [""; 0], "a fifth of r1a's pace");
        assert_eq!(failing(&[r1a(), at_size(2.1)]), ["vl2_20480.pace_over_r1a"]);
        let two = |slowest_s: f64, drops: u64| JobRow {
            id: "vl2_20480_x2".to_owned(),
            counts: Counts { drops, ..r1a().counts },
            slowest_s,
            slowest_by_round_s: vec![slowest_s; 3],
            ..r1a()
        };
        let beside = |job: JobRow| failing(&[r1a(), at_size(1.0), job]);
        assert_eq!(beside(two(0.62, 0)), [""; 0]);
        assert_eq!(beside(two(0.63, 0)), ["vl2_20480_x2.one_thread_over_slowest"]);
        assert_eq!(beside(two(0.5, 1)), ["vl2_20480_x2.differs_from_one_thread"]);
        let wrong = |ratio| JobRow { estimated_over_peak_rss: ratio, ..at_size(1.0) };
        for ratio in [0.99, 1.31] {
            assert_eq!(failing(&[wrong(ratio)]), ["vl2_20480.estimated_over_peak_rss"]);
        }
        let shared = JobRow { id: "r1a_shared".to_owned(), cpu_by_round_s: vec![0.31, 0.47, 1.1], ..r1a() };
        assert_eq!(failing(&[r1a(), shared]), ["r1a_shared.cpu_over_r1a"]);
    }
}
