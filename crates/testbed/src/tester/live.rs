//! Live frames: the kernel runs a program on them (`BPF_PROG_RUN`) in one call for the whole trial, on a thread of its own that is
//! pinned to one CPU. A second call would leave a gap of some 20 ms.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use libbpf_rs::{Object, OpenObject};
use rustix::time::ClockId;
use weft_datapath::DatapathError;
use weft_datapath::abi::Abi;
use weft_datapath::{clock, interface, object};

use super::frames::config;
use crate::abi::{BUCKETS, TESTER_FRAME_BYTES, TesterGenerator};
use crate::{cpu, files};

/// Largest frame that the kernel sends this way, bytes without FCS: one page without head room.
pub const FRAME_BYTES_MAX: usize = TESTER_FRAME_BYTES as usize;

const STATE: &str = ".data.generator";
const GAPS: &str = "tester_gaps";
const LIVE_FRAMES: u32 = 1 << 1; // BPF_F_TEST_XDP_LIVE_FRAMES of linux/bpf.h
const TICKS_PER_NS: f64 = 1024.0;
/// The thread that waits looks up this often; before the first frame, and where a number of frames ends the trial, more often.
const WATCH: Duration = Duration::from_millis(20);
const WATCH_CLOSELY: Duration = Duration::from_millis(2);
/// How long the kernel may take before it runs the program at all.
const BEGIN_NS_MAX: u64 = 10_000_000_000;

/// What one trial sends.
#[derive(Clone, Copy, Debug)]
pub struct SendOrder {
    /// Nanoseconds between frames; 0: as fast as possible.
    pub interval_ns: f64,
    /// How long, from the first frame on, nanoseconds.
    pub duration_ns: u64,
    /// Most frames.
    pub limit: u64,
    /// Frames that the kernel sends in one go: 1 for latency, 64 for throughput.
    pub batch: u32,
    /// Wait inside the program: exact below some 10,000 frames a second.
    pub spin: bool,
    /// A frame that is later than this begins a new schedule, nanoseconds; otherwise lost time is caught up.
    pub slip_ns: u64,
    /// Seed of the trial.
    pub seed: u8,
    pub cpu: usize,
}

/// What was sent.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// Frames handed to the port.
    pub frames: u64,
    /// Times that the schedule was begun anew.
    pub slips: u64,
    /// From the first frame to the latest, nanoseconds.
    pub span_ns: u64,
    /// CPU time of the sending thread, with all soft interrupts that it handled, nanoseconds.
    pub cpu_ns: u64,
    /// Times between frames, by bucket; empty when unpaced.
    pub gaps: Vec<u64>,
}

/// The programs that send, loaded for one port.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) object: Object,
    ifindex: u32,
}

impl Live {
    /// For an interface of the caller's namespace; `size` makes maps as large as they must be.
    pub(super) fn load(
        interface: &str,
        size: impl FnOnce(&mut OpenObject) -> Result<(), DatapathError>,
    ) -> Result<Self, DatapathError> {
        let ifindex = interface::index_of(interface)?;
        let mut open = files::TESTER_GENERATE.open()?;
        size(&mut open)?;
        let live = Self { object: files::TESTER_GENERATE.load(open)?, ifindex };
        object::update(&live.object, "tester_port_out", &0u32.to_ne_bytes(), &ifindex.to_ne_bytes())?;
        Ok(live)
    }

    /// Runs `program` on pages that hold `frame`, from `state` on, until the time is over, the limit is reached or `stop` says so.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for a frame that is too long; [`DatapathError::Program`] where the kernel does not send live frames.
    pub(super) fn send(
        &self,
        program: &str,
        frame: &[u8],
        state: TesterGenerator,
        order: &SendOrder,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Sent, DatapathError> {
        if frame.len() > FRAME_BYTES_MAX {
            return Err(config(&format!("{} bytes; live frames have at most {FRAME_BYTES_MAX}", frame.len())));
        }
        // Until the program says when it began, and so when it ends.
        let end_ns = clock::ns(ClockId::Monotonic).saturating_add(order.duration_ns).saturating_add(BEGIN_NS_MAX);
        let state = TesterGenerator {
            interval: (order.interval_ns * TICKS_PER_NS).round() as u64,
            end_ns,
            duration_ns: order.duration_ns.min(1 << 60),
            limit: order.limit,
            slip_ns: order.slip_ns,
            spin: u32::from(order.spin),
            seed: u32::from(order.seed),
            ..state
        };
        object::update(&self.object, STATE, 0u32.bytes(), state.bytes())?;
        object::update(&self.object, GAPS, 0u32.bytes(), &[0; BUCKETS * 8])?;
        let cpu_ns = self.run(program, frame, order, stop)?;
        let state = self.state()?;
        Ok(Sent {
            frames: state.sent,
            slips: state.slips,
            span_ns: state.last_ns.saturating_sub(state.first_ns),
            cpu_ns,
            gaps: if state.interval == 0 { Vec::new() } else { words(&self.read(GAPS)?) },
        })
    }

    /// The sending thread does nothing but one call after another; this thread watches time and `stop`, and ends a call
    /// with a signal.
    fn run(
        &self,
        program: &str,
        frame: &[u8],
        order: &SendOrder,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<u64, DatapathError> {
        catch_wake_up();
        let program = object::program(&self.object, program);
        let fd = program.as_fd().as_raw_fd();
        let (over, done, thread) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                // SAFETY: it only tells which thread this is.
                thread.store(unsafe { libc::pthread_self() }, Ordering::Release);
                let result = send_until(fd, frame, self.ifindex, order, &over, || self.left(order).is_none());
                done.store(true, Ordering::Release);
                result
            });
            let left = || if stop() { None } else { self.left(order) };
            watch(&thread, &left, &over, &done);
            sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// How long to wait before looking again; `None` when the time is over or the limit reached.
    fn left(&self, order: &SendOrder) -> Option<Duration> {
        let state = self.state().ok()?;
        let now = clock::ns(ClockId::Monotonic);
        if now >= state.end_ns || state.sent >= order.limit {
            return None;
        }
        let pause = if order.limit == u64::MAX && state.began_ns > 0 { WATCH } else { WATCH_CLOSELY };
        Some(pause.min(Duration::from_nanos(state.end_ns - now)))
    }

    fn state(&self) -> Result<TesterGenerator, DatapathError> {
        Ok(TesterGenerator::from_bytes(&self.read(STATE)?).unwrap_or_default())
    }

    fn read(&self, map: &'static str) -> Result<Vec<u8>, DatapathError> {
        Ok(object::lookup(&self.object, map, 0u32.bytes())?.unwrap_or_default())
    }
}

/// CPU nanoseconds that it took.
fn send_until(
    fd: i32,
    frame: &[u8],
    ifindex: u32,
    order: &SendOrder,
    over: &AtomicBool,
    is_finished: impl Fn() -> bool,
) -> Result<u64, DatapathError> {
    cpu::take(order.cpu)?;
    // Unpaced, every run sends a frame; paced, most do not.
    let repeat = if order.interval_ns > 0.0 { i32::MAX } else { order.limit.min(i32::MAX as u64) as i32 };
    let before = clock::ns(ClockId::ThreadCPUTime);
    loop {
        call(fd, frame, ifindex, repeat, order.batch)?;
        if over.load(Ordering::Acquire) || is_finished() {
            return Ok(clock::ns(ClockId::ThreadCPUTime) - before);
        }
    }
}

/// One call; a signal ends it early.
fn call(fd: i32, frame: &[u8], ifindex: u32, repeat: i32, batch: u32) -> Result<(), DatapathError> {
    // `struct xdp_md` of linux/bpf.h: the frame's end, and the interface that it claims to have come from.
    let mut context = [0u32; 6];
    context[1] = u32::try_from(frame.len()).expect("frames are short");
    context[3] = ifindex;
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        data_in: frame.as_ptr().cast(),
        data_size_in: context[1],
        ctx_in: context.as_ptr().cast(),
        ctx_size_in: size_of_val(&context) as u32,
        repeat,
        flags: LIVE_FRAMES,
        batch_size: batch.clamp(1, 256),
        ..Default::default()
    };
    // SAFETY: the pointers describe `frame` and `context`, which outlive the call, with their own lengths.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(fd, &raw mut options) };
    if result < 0 && result != -libc::EINTR {
        let source = libbpf_rs::Error::from_raw_os_error(-result);
        return Err(DatapathError::from_kernel("sending live frames", source));
    }
    Ok(())
}

fn watch(thread: &AtomicU64, left: &dyn Fn() -> Option<Duration>, over: &AtomicBool, done: &AtomicBool) {
    while !done.load(Ordering::Acquire) {
        if let Some(pause) = left() {
            std::thread::sleep(pause);
            continue;
        }
        over.store(true, Ordering::Release);
        // Again and again: a signal that comes just before the call does not end it.
        match thread.load(Ordering::Acquire) {
            0 => {} // it has not begun
            // SAFETY: the thread is joined later, so its handle is valid; the signal has a handler that does nothing.
            sender => _ = unsafe { libc::pthread_kill(sender, wake_up_signal()) },
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn wake_up_signal() -> i32 {
    libc::SIGRTMIN() + 5
}

/// Without a handler the signal would end the process; an ignored one would not end the call.
fn catch_wake_up() {
    extern "C" fn nothing(_: i32) {}
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all-zero is a valid sigaction; the handler is a function that touches nothing, and the signal is ours.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
            libc::sigaction(wake_up_signal(), &raw const action, std::ptr::null_mut());
        }
    });
}

pub(super) fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}
