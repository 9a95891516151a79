//! XDP programs alone: one buffer, many runs in the kernel, all loops interleaved in rounds.

use libbpf_rs::{Object, ProgramInput, ProgramMut};
use rustix::time::ClockId;
use weft_datapath::DatapathError;
use weft_datapath::vxlan::{Vtep, VtepProgram};
use weft_datapath::{clock, object};

use super::frames::{self, FRAME_BYTES};
use super::{
    BenchOptions, BenchReport, Ceiling, L2_OVER_EMPTY_MAX, ProgramCost, RawCost, VXLAN_DECAP_RATIO_MAX,
    VXLAN_ENCAP_RATIO_MAX, median,
};
use crate::files;
use crate::l2::PlainSwitch;

const XDP_DROP: u32 = 1;
const XDP_REDIRECT: u32 = 4;
const LOOPBACK: u32 = 1;

/// Nanoseconds per packet of the shipped programs, alone.
///
/// # Errors
/// Any [`DatapathError`]; [`DatapathError::Verdict`] if a program did not forward, because its time would then be that
/// of something else.
pub fn run(options: &BenchOptions) -> Result<BenchReport, DatapathError> {
    let mut samples = FRAME_BYTES.map(Samples::new);
    for _ in 0..options.rounds.max(1) {
        // Loaded anew for each round: a hash map's seed decides how long its chains are, and so what a look-up costs.
        let (vtep, l2) = (frames::pretended_vtep(LOOPBACK)?, frames::plain_switch(LOOPBACK)?);
        for samples in &mut samples {
            let bench = Bench::load((&vtep, &l2), samples.frame_bytes)?;
            samples.rounds.push(bench.round(options.repeat.max(1))?);
        }
    }
    let mut report = BenchReport {
        programs: Vec::new(),
        raw: Vec::new(),
        ceilings: Vec::new(),
        repeat: options.repeat.max(1),
        rounds: options.rounds.max(1),
    };
    for samples in &samples {
        samples.report(&mut report);
    }
    super::vl2::add(&mut report, options)?;
    super::trill::add(&mut report, options)?;
    Ok(report)
}

/// The loops of one frame size. A loop of a shipped program that changes the frame starts with a wrapper that restores
/// it and then tail-calls the program; the same wrapper with a target that only moves the head tells its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loop {
    Empty,
    Pair50,
    RestoreForVxlan,
    RestoreTunnelled,
    L2Forward,
    VxlanEncap,
    VxlanDecap,
}

const LOOPS: [Loop; 7] = [
    Loop::Empty,
    Loop::Pair50,
    Loop::RestoreForVxlan,
    Loop::RestoreTunnelled,
    Loop::L2Forward,
    Loop::VxlanEncap,
    Loop::VxlanDecap,
];

impl Loop {
    fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty_loop",
            Self::Pair50 => "push_and_pop_50",
            Self::RestoreForVxlan => "restore_only_50",
            Self::RestoreTunnelled => "restore_only_tunnel",
            Self::L2Forward => "l2_forward",
            Self::VxlanEncap => "vxlan_encap",
            Self::VxlanDecap => "vxlan_decap",
        }
    }

    fn is_shipped(self) -> bool {
        matches!(self, Self::L2Forward | Self::VxlanEncap | Self::VxlanDecap)
    }
}

struct Bench<'shipped> {
    vtep: &'shipped Vtep,
    l2: &'shipped PlainSwitch,
    frame_bytes: usize,
    plain: Vec<u8>,
    /// `bench.bpf.c` with a plain frame to restore, and with one in a tunnel.
    restore_plain: Object,
    restore_tunnelled: Object,
}

impl<'shipped> Bench<'shipped> {
    fn load((vtep, l2): (&'shipped Vtep, &'shipped PlainSwitch), frame_bytes: usize) -> Result<Self, DatapathError> {
        let plain = frames::plain(frame_bytes);
        Ok(Self {
            vtep,
            l2,
            frame_bytes,
            restore_plain: load_wrappers(&plain)?,
            restore_tunnelled: load_wrappers(&frames::tunnelled(frame_bytes))?,
            plain,
        })
    }

    fn round(&self, repeat: u32) -> Result<Round, DatapathError> {
        let mut round = [0.0; LOOPS.len()];
        for (ns, which) in round.iter_mut().zip(LOOPS) {
            *ns = self.measure(which, repeat)?;
        }
        Ok(round)
    }

    fn measure(&self, which: Loop, repeat: u32) -> Result<f64, DatapathError> {
        let helper = |name| object::program(&self.restore_plain, name);
        match which {
            Loop::Empty => time(&helper("bench_empty"), &self.plain, repeat, XDP_DROP),
            Loop::Pair50 => time(&helper("bench_pair_50"), &self.plain, repeat, XDP_DROP),
            Loop::RestoreForVxlan | Loop::VxlanEncap | Loop::RestoreTunnelled | Loop::VxlanDecap => {
                self.measure_vxlan(which, repeat)
            }
            Loop::L2Forward => time(&self.l2.program(), &self.plain, repeat, XDP_REDIRECT),
        }
    }

    fn measure_vxlan(&self, which: Loop, repeat: u32) -> Result<f64, DatapathError> {
        let program = |program| self.vtep.xdp_program(program).expect("it is loaded with XDP");
        // The wrappers begin by undoing a run that has not been: 50 bytes too many in front, or too few.
        let pushed = || [&[0; 50], &self.plain[..]].concat();
        let popped = || frames::tunnelled(self.frame_bytes)[50..].to_vec();
        let (plain, tunnelled) = (&self.restore_plain, &self.restore_tunnelled);
        match which {
            Loop::RestoreForVxlan => {
                set_target(plain, &object::program(plain, "bench_push_50"))?;
                time(&object::program(plain, "bench_vxlan_encap"), &pushed(), repeat, XDP_DROP)
            }
            Loop::VxlanEncap => {
                set_target(plain, &program(VtepProgram::AccessXdp))?;
                time(&object::program(plain, "bench_vxlan_encap"), &pushed(), repeat, XDP_REDIRECT)
            }
            Loop::RestoreTunnelled => {
                set_target(tunnelled, &object::program(tunnelled, "bench_pop_50"))?;
                time(&object::program(tunnelled, "bench_vxlan_decap"), &popped(), repeat, XDP_DROP)
            }
            _ => {
                set_target(tunnelled, &program(VtepProgram::UplinkXdp))?;
                time(&object::program(tunnelled, "bench_vxlan_decap"), &popped(), repeat, XDP_REDIRECT)
            }
        }
    }
}

/// Nanoseconds of each of [`LOOPS`] in one round.
type Round = [f64; LOOPS.len()];

/// All rounds of one frame size.
struct Samples {
    frame_bytes: usize,
    rounds: Vec<Round>,
}

impl Samples {
    fn new(frame_bytes: usize) -> Self {
        Self { frame_bytes, rounds: Vec::new() }
    }

    fn each(&self, of_round: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(of_round).collect()
    }

    fn report(&self, report: &mut BenchReport) {
        for which in LOOPS {
            report.raw.push(raw(which.name(), self.frame_bytes, &self.each(|round| round[which as usize])));
        }
        let empty_ns = median(&self.each(|round| round[Loop::Empty as usize]));
        for which in LOOPS.into_iter().filter(|which| which.is_shipped()) {
            let ratio = |round: &Round| net_ns(which, round) / net_ns(Loop::L2Forward, round);
            let cost = ProgramCost {
                name: which.name(),
                frame_bytes: self.frame_bytes,
                ns_per_packet: median(&self.each(|round| net_ns(which, round))),
                ratio_to_l2: median(&self.each(ratio)),
            };
            report.ceilings.push(ceiling(which, &cost, empty_ns));
            report.programs.push(cost);
        }
    }
}

/// A round's time of a program without the loop and without its wrapper. Half of a push and a pop is the program's own
/// moving of the head, so that half is not taken off.
fn net_ns(which: Loop, round: &Round) -> f64 {
    let of = |which: Loop| round[which as usize];
    let over_empty = |which: Loop| of(which) - of(Loop::Empty);
    match which {
        Loop::VxlanEncap => {
            over_empty(Loop::VxlanEncap) - over_empty(Loop::RestoreForVxlan) + over_empty(Loop::Pair50) / 2.0
        }
        Loop::VxlanDecap => {
            over_empty(Loop::VxlanDecap) - over_empty(Loop::RestoreTunnelled) + over_empty(Loop::Pair50) / 2.0
        }
        other => over_empty(other),
    }
}

fn ceiling(which: Loop, cost: &ProgramCost, empty_ns: f64) -> Ceiling {
    let (ours, want_max) = match which {
        Loop::VxlanEncap => (cost.ratio_to_l2, VXLAN_ENCAP_RATIO_MAX),
        Loop::VxlanDecap => (cost.ratio_to_l2, VXLAN_DECAP_RATIO_MAX),
        _ => (cost.ns_per_packet / empty_ns, L2_OVER_EMPTY_MAX),
    };
    let baseline = if which == Loop::L2Forward { "empty_loop" } else { "l2_forward" };
    let id = format!("{}_over_{baseline}_{}b", cost.name, cost.frame_bytes);
    Ceiling { id, ours, want_max }
}

pub(super) fn raw(name: &'static str, frame_bytes: usize, samples: &[f64]) -> RawCost {
    let fold = |pick: fn(f64, f64) -> f64| samples.iter().copied().reduce(pick).unwrap_or_default();
    RawCost { name, frame_bytes, ns_median: median(samples), ns_min: fold(f64::min), ns_max: fold(f64::max) }
}

pub(crate) fn load_wrappers(frame: &[u8]) -> Result<Object, DatapathError> {
    let mut open = files::BENCH.open()?;
    object::set_constants(&mut open, ".rodata.start", &frames::start_of(frame));
    files::BENCH.load(open)
}

pub(super) fn set_target(wrappers: &Object, program: &ProgramMut<'_>) -> Result<(), DatapathError> {
    use std::os::fd::{AsFd, AsRawFd};
    let fd = program.as_fd().as_raw_fd().to_ne_bytes();
    object::update(wrappers, "target", &0u32.to_ne_bytes(), &fd)
}

/// CPU nanoseconds per run. Not the kernel's own figure, which is wall time in whole nanoseconds.
pub(super) fn time(program: &ProgramMut<'_>, frame: &[u8], repeat: u32, expected: u32) -> Result<f64, DatapathError> {
    let name = || program.name().to_string_lossy().into_owned();
    let input = ProgramInput { data_in: Some(frame), repeat, ..ProgramInput::default() };
    let before = clock::ns(ClockId::ThreadCPUTime);
    let output =
        program.test_run(input).map_err(|source| DatapathError::from_kernel(format!("running {}", name()), source))?;
    let spent = clock::ns(ClockId::ThreadCPUTime) - before;
    if output.return_value != expected {
        return Err(DatapathError::Verdict { name: name(), verdict: output.return_value, expected });
    }
    Ok(spent as f64 / f64::from(repeat))
}
