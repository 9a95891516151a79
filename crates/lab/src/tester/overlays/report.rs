//! From samples to rows, floors and the sentence. Pure.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_scenario::judge::{Check, Verdict};

use super::OverlayOptions;
use super::encapsulation::{Encapsulation, Hook};
use super::own::OwnReport;
use crate::tester::compare::{self, Estimate, Order};
use crate::tester::cost::Calibration;

/// CPU nanoseconds of generator and counting analyser for a frame of 64 bytes, at most.
const GENERATOR_NS_MAX: f64 = 230.0;
/// Median of the latency floor, nanoseconds, at most.
const FLOOR_NS_MAX: f64 = 300.0;
/// A kernel bridge on the machine where these two were set: a third of what a row of three took (Linux 6.18).
const REFERENCE_BRIDGE: BridgeHop = BridgeHop { cpu_ns: 619.0, latency_ns: 924.0 };
/// What our VXLAN may take more than its baseline, over what the kernel's takes more than its own.
const EXTRA_RATIO_MAX: f64 = 0.7;
/// How far the median gap may be off.
const PACING_RATIO_MAX: f64 = 0.02;

/// One size in one turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// Tester and path, CPU nanoseconds per frame: the least of the turn's undisturbed runs.
    pub(super) chain_ns: f64,
    pub(super) received_pps: f64,
    pub(super) lost: u64,
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
}

/// All samples, by encapsulation and size, in rounds.
#[derive(Debug, Default)]
pub(super) struct Samples(BTreeMap<(Encapsulation, u32), Vec<Sample>>);

impl Samples {
    pub(super) fn push(&mut self, one: Encapsulation, size: u32, sample: Sample) {
        self.0.entry((one, size)).or_default().push(sample);
    }

    fn of(&self, one: Encapsulation, size: u32) -> &[Sample] {
        self.0.get(&(one, size)).map_or(&[], Vec::as_slice)
    }

    /// CPU nanoseconds of the path by round.
    fn path_ns(&self, one: Encapsulation, size: u32, floor_ns: f64) -> Vec<f64> {
        self.of(one, size).iter().map(|sample| sample.chain_ns - floor_ns).collect()
    }
}

/// Runs that other work spoilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Noise {
    /// Runs that did not count because the tester alone was disturbed beside them.
    pub runs_rejected: u32,
    /// Turns of a size in which no run was undisturbed, so that the least of the others counted.
    pub samples_disturbed: u32,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct OverlayReport {
    /// Version of this form.
    pub schema_version: u32,
    /// What was between the switches.
    pub wire: String,
    /// All that a frame causes ran on the measured core; otherwise receiving on other cores is not in the numbers.
    pub whole_path: bool,
    /// Rounds.
    pub rounds: u32,
    /// Whether the machine was quiet.
    #[serde(flatten)]
    pub noise: Noise,
    /// The tester alone.
    pub tester: OwnReport,
    /// A kernel bridge, by which the machine's speed is known. `None`: bridges were not measured.
    pub bridge: Option<BridgeHop>,
    /// The cost method, checked in this run.
    pub calibration: Calibration,
    /// The measurements.
    pub rows: Vec<OverlayRow>,
    /// The floors.
    pub checks: Vec<Check>,
    /// What VXLAN costs, in one sentence.
    pub sentence: String,
}

/// One encapsulation at one size.
#[derive(Clone, Debug, Serialize)]
pub struct OverlayRow {
    /// Which.
    pub encapsulation: Encapsulation,
    /// Where it handles frames.
    pub hook: Hook,
    /// Switches on the way.
    pub switches: usize,
    /// What it is compared with; `None`: it is a baseline.
    pub baseline: Option<Encapsulation>,
    /// Size of the server's frame with FCS, bytes.
    pub frame_bytes: u32,
    /// What is put in front of it, bytes.
    pub header_bytes: u32,
    /// CPU nanoseconds per frame, all switches together, without the tester.
    pub cpu_ns: Estimate,
    /// What it takes more than its baseline, nanoseconds per frame.
    pub extra_ns: Option<Estimate>,
    /// The same as a share of the baseline.
    pub extra_ratio: Option<Estimate>,
    /// Whether it takes more than its baseline at all.
    pub against_baseline: Option<Order>,
    /// The highest rate seen with generator and path on one core, frames per second.
    pub received_pps: f64,
    /// Frames lost in all rounds.
    pub lost: u64,
    /// Median latency at 100,000 frames per second, the tester's floor included, nanoseconds: the least of all rounds.
    pub p50_ns: u64,
    /// 99th percentile, likewise.
    pub p99_ns: u64,
}

/// What one kernel bridge takes on this machine, without the tester.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BridgeHop {
    /// CPU nanoseconds per frame.
    pub cpu_ns: f64,
    /// Nanoseconds that a frame is longer under way, by medians at 100,000 frames per second.
    pub latency_ns: f64,
}

impl BridgeHop {
    /// Whether the machine is slower than the one that floors in nanoseconds were set on; then they say nothing, and their
    /// ratios to the bridge count.
    pub fn is_slower_machine(self) -> bool {
        self.cpu_ns > REFERENCE_BRIDGE.cpu_ns || self.latency_ns > REFERENCE_BRIDGE.latency_ns
    }

    /// Of the row at the smallest size.
    fn of(rows: &[OverlayRow], tester: &OwnReport) -> Option<Self> {
        let bridges = rows.iter().filter(|row| row.encapsulation == Encapsulation::Bridge);
        let row = bridges.min_by_key(|row| row.frame_bytes)?;
        let each = |sum: f64| sum / row.switches as f64;
        let latency_ns = each(row.p50_ns.saturating_sub(tester.floor_p50_ns) as f64);
        Some(Self { cpu_ns: each(row.cpu_ns.mean), latency_ns })
    }
}

pub(super) fn report(
    options: &OverlayOptions,
    order: &[Encapsulation],
    samples: &Samples,
    floors: &BTreeMap<u32, f64>,
    tester: OwnReport,
    calibration: Calibration,
    noise: Noise,
) -> OverlayReport {
    let rows: Vec<OverlayRow> = order
        .iter()
        .flat_map(|one| floors.iter().filter_map(|(size, floor)| row(*one, *size, *floor, samples)))
        .collect();
    let sentence = sentence(&rows);
    let bridge = BridgeHop::of(&rows, &tester);
    let mut checks = own_checks(&tester, calibration.holds, bridge);
    for size in floors.keys() {
        for ours in [Encapsulation::WeftVxlanXdp, Encapsulation::WeftVxlanTc] {
            checks.extend(extra_check(ours, *size, samples));
        }
    }
    OverlayReport {
        schema_version: 2,
        wire: options.wire.name(),
        whole_path: options.wire.is_on_one_core(),
        rounds: options.rounds.max(3),
        noise,
        checks,
        tester,
        bridge,
        calibration,
        rows,
        sentence,
    }
}

fn row(one: Encapsulation, size: u32, floor_ns: f64, samples: &Samples) -> Option<OverlayRow> {
    let (own, turns) = (samples.path_ns(one, size, floor_ns), samples.of(one, size));
    let against = one.baseline().map(|baseline| samples.path_ns(baseline, size, floor_ns));
    let pairs = |of: fn(f64, f64) -> f64| {
        let against = against.as_ref()?;
        compare::estimate(&own.iter().zip(against).map(|(own, plain)| of(*own, *plain)).collect::<Vec<_>>())
    };
    let compared = against.as_ref().and_then(|plain| compare::compare(plain, &own));
    Some(OverlayRow {
        encapsulation: one,
        hook: one.hook(),
        switches: one.switches(),
        baseline: one.baseline(),
        frame_bytes: size,
        header_bytes: one.header_bytes(),
        cpu_ns: compare::estimate(&own)?,
        extra_ns: pairs(|own, plain| own - plain),
        extra_ratio: pairs(|own, plain| own / plain - 1.0),
        against_baseline: against.is_some().then(|| compared.map_or(Order::Inconclusive, |found| found.order)),
        received_pps: turns.iter().map(|turn| turn.received_pps).fold(0.0, f64::max),
        lost: turns.iter().map(|turn| turn.lost).sum(),
        p50_ns: turns.iter().map(|turn| turn.p50_ns).min()?,
        p99_ns: turns.iter().map(|turn| turn.p99_ns).min()?,
    })
}

fn own_checks(tester: &OwnReport, method_holds: bool, bridge: Option<BridgeHop>) -> Vec<Check> {
    // Noise only ever adds: what passes has passed, what fails in a noisy phase may be the noise.
    let judge = |id: &str, ours: f64, want_max: f64, unit, is_sure: bool| {
        Check::at_most(id, ours, want_max, unit).unless((!is_sure).then_some("noise, or a slower machine"))
    };
    let (generator, floor) = (tester.generator_ns, tester.floor_p50_ns as f64);
    let is_sure = method_holds && !bridge.is_some_and(BridgeHop::is_slower_machine);
    let mut checks = vec![
        judge("generator and counting analyser, 64 B", generator, GENERATOR_NS_MAX, "ns of CPU", is_sure),
        judge("latency floor p50, 100 K frames/s", floor, FLOOR_NS_MAX, "ns", is_sure),
    ];
    if let Some(bridge) = bridge {
        let most = [GENERATOR_NS_MAX / REFERENCE_BRIDGE.cpu_ns, FLOOR_NS_MAX / REFERENCE_BRIDGE.latency_ns];
        let ratios = [generator / bridge.cpu_ns, floor / bridge.latency_ns];
        checks.push(judge(
            "generator and analyser over a kernel bridge",
            ratios[0],
            most[0],
            "of its CPU",
            method_holds,
        ));
        checks.push(judge("latency floor over a kernel bridge's", ratios[1], most[1], "of its p50", method_holds));
    }
    checks.extend(tester.pacing.iter().map(|pacing| {
        let id = format!("median gap off, {:.0} K frames/s", pacing.asked_pps / 1e3);
        judge(&id, pacing.error_ratio, PACING_RATIO_MAX, "ratio", method_holds)
    }));
    checks
}

/// Extra over extra, by rounds. `None` where one of them was not measured. Where the kernel's device costs nothing that can
/// be told from noise, a ratio to it says nothing.
fn extra_check(ours: Encapsulation, size: u32, samples: &Samples) -> Option<Check> {
    let extra = |one: Encapsulation| -> Option<Vec<f64>> {
        let pairs = samples.of(one, size).iter().zip(samples.of(one.baseline()?, size));
        Some(pairs.map(|(own, plain)| own.chain_ns - plain.chain_ns).collect())
    };
    let (own, kernels) = (extra(ours)?, extra(Encapsulation::KernelVxlan)?);
    let ratios: Vec<f64> = own.iter().zip(&kernels).map(|(own, kernels)| own / kernels).collect();
    let ratio = compare::estimate(&ratios)?;
    let id = format!("extra CPU of {} over kernel-vxlan's, {size} B", ours.name());
    let check = Check::at_most(id, ratio.mean, EXTRA_RATIO_MAX, "ratio").over([ratio.low, ratio.high]);
    Some(match compare::estimate(&kernels)?.low <= 0.0 {
        true => Check { verdict: Verdict::Inconclusive, why: Some("the kernel's extra is noise"), ..check },
        false => check,
    })
}

/// Of the VXLAN that a user would choose, at 1518 bytes if they were measured, else at the largest size.
fn sentence(rows: &[OverlayRow]) -> String {
    let vxlan = rows.iter().filter_map(|row| Some((row.encapsulation.vxlan_choice()?, row)));
    let order = |choice: &u32, row: &OverlayRow| (*choice, row.frame_bytes != 1518, u32::MAX - row.frame_bytes);
    let Some((_, row)) = vxlan.min_by_key(|(choice, row)| order(choice, row)) else {
        return "VXLAN was not measured".to_owned();
    };
    let Some(extra) = row.extra_ratio else { return "VXLAN was not measured".to_owned() };
    let doubt = if row.against_baseline == Some(Order::Inconclusive) { " (inconclusive)" } else { "" };
    let (mean, half) = (extra.mean * 100.0, (extra.high - extra.low) * 50.0);
    // No digit that the interval does not carry.
    let digits = usize::from(half < 0.95);
    format!("VXLAN costs {mean:.digits$} % +- {half:.digits$} CPU at {} B{doubt}", row.frame_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(chain_ns: f64) -> Sample {
        Sample { chain_ns, received_pps: 1e9 / chain_ns, lost: 0, p50_ns: 900, p99_ns: 1000 }
    }

    fn samples(plain: [f64; 3], vxlan: [f64; 3]) -> Samples {
        let mut samples = Samples::default();
        for (plain, vxlan) in plain.into_iter().zip(vxlan) {
            samples.push(Encapsulation::Bridge, 1518, sample(plain));
            samples.push(Encapsulation::KernelVxlan, 1518, sample(vxlan));
        }
        samples
    }

    fn rows(samples: &Samples) -> Vec<OverlayRow> {
        [Encapsulation::Bridge, Encapsulation::KernelVxlan]
            .into_iter()
            .map(|one| row(one, 1518, 200.0, samples).unwrap())
            .collect()
    }

    #[test]
    fn the_tester_is_taken_off_before_shares_are_formed() {
        let rows = rows(&samples([1200.0, 1201.0, 1199.0], [1310.0, 1314.0, 1306.0]));
        assert!((rows[0].cpu_ns.mean - 1000.0).abs() < 1e-9 && rows[0].extra_ns.is_none());
        assert!((rows[1].extra_ns.unwrap().mean - 110.0).abs() < 1e-9);
        assert_eq!(rows[1].against_baseline, Some(Order::Above));
        assert_eq!(sentence(&rows), "VXLAN costs 11.0 % +- 0.7 CPU at 1518 B");
    }

    #[test]
    fn noise_makes_no_sentence_that_looks_sure() {
        let rows = rows(&samples([1200.0, 1500.0, 1100.0], [1310.0, 1400.0, 1390.0]));
        assert_eq!(rows[1].against_baseline, Some(Order::Inconclusive));
        assert!(sentence(&rows).ends_with(" CPU at 1518 B (inconclusive)"), "{}", sentence(&rows));
        assert_eq!(sentence(&rows[..1]), "VXLAN was not measured");
    }

    #[test]
    fn our_extra_is_judged_against_the_kernels_by_its_interval() {
        let against = |kernels: [f64; 3], ours: [f64; 3]| {
            let mut all = samples([1200.0; 3], kernels.map(|kernels| 1200.0 + kernels));
            for own in ours {
                all.push(Encapsulation::L2Tc, 1518, sample(400.0));
                all.push(Encapsulation::WeftVxlanTc, 1518, sample(400.0 + own));
            }
            let check = extra_check(Encapsulation::WeftVxlanTc, 1518, &all).unwrap();
            assert!(check.id.contains("weft-vxlan-tc over kernel-vxlan's, 1518 B"), "{check:?}");
            check.verdict
        };
        let with = |ours| against([1000.0, 1005.0, 995.0], ours);
        assert_eq!(with([500.0, 505.0, 495.0]), Verdict::Pass);
        assert_eq!(with([900.0, 905.0, 895.0]), Verdict::Fail);
        assert_eq!(with([600.0, 900.0, 500.0]), Verdict::Inconclusive);
        assert_eq!(against([-100.0, -90.0, -80.0], [500.0, 505.0, 495.0]), Verdict::Inconclusive);
        assert_eq!(against([-900.0, 1000.0, 1000.0], [10.0, 10.0, 10.0]), Verdict::Inconclusive);
        assert!(extra_check(Encapsulation::WeftVxlanXdp, 1518, &samples([1.0; 3], [2.0; 3])).is_none());
    }

    #[test]
    fn floors_pass_in_noise_but_do_not_fail_in_it() {
        let own = |generator_ns| OwnReport {
            generator_ns,
            generator_pps: 5e6,
            floor_p50_ns: 240,
            floor_p99_ns: 300,
            pacing: Vec::new(),
        };
        let verdict = |ns, holds| own_checks(&own(ns), holds, None)[0].verdict;
        assert_eq!([verdict(200.0, true), verdict(200.0, false)], [Verdict::Pass; 2]);
        assert_eq!([verdict(300.0, true), verdict(300.0, false)], [Verdict::Fail, Verdict::Inconclusive]);
    }
    #[test]
    fn on_a_slower_machine_ratios_to_its_bridge_are_judged() {
        let own = |generator_ns, floor_p50_ns| OwnReport {
            generator_ns,
            generator_pps: 3e6,
            floor_p50_ns,
            floor_p99_ns: 500,
            pacing: Vec::new(),
        };
        let verdicts = |own: &OwnReport, bridge| {
            own_checks(own, true, Some(bridge)).iter().map(|check| check.verdict).collect::<Vec<_>>()
        };
        let slower = BridgeHop { cpu_ns: 1200.0, latency_ns: 1500.0 };
        use Verdict::{Fail, Inconclusive, Pass};
        assert_eq!(verdicts(&own(280.0, 350), slower), [Inconclusive, Inconclusive, Pass, Pass]);
        assert_eq!(verdicts(&own(460.0, 350), slower), [Inconclusive, Inconclusive, Fail, Pass]);
        assert_eq!(verdicts(&own(280.0, 350), REFERENCE_BRIDGE), [Fail, Fail, Fail, Fail]);
        assert_eq!(verdicts(&own(230.0, 300), REFERENCE_BRIDGE), [Pass; 4]);
    }

    #[test]
    fn a_bridge_is_what_a_switch_of_the_row_takes() {
        let tester = OwnReport {
            generator_ns: 200.0,
            generator_pps: 5e6,
            floor_p50_ns: 240,
            floor_p99_ns: 300,
            pacing: Vec::new(),
        };
        let rows = rows(&samples([1200.0; 3], [2200.0; 3]));
        let hop = BridgeHop::of(&rows, &tester).unwrap();
        assert_eq!((hop.cpu_ns, hop.latency_ns), (rows[0].cpu_ns.mean / 2.0, 330.0));
        assert_eq!(BridgeHop::of(&rows[1..], &tester), None);
    }
}
