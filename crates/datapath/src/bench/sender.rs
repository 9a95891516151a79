//! Real frames through a bed: as many as the kernel generates, from one end, counted at the other, and what they cost.

use libbpf_rs::{Link, Object, ProgramInput, ProgramMut};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::ClockId;

use super::bed::{ns, setup_failed};
use super::program_run::load_wrappers;
use crate::error::DatapathError;
use crate::hook::{self, Attached};
use crate::{interface, object};

/// `BPF_F_TEST_XDP_LIVE_FRAMES` of `linux/bpf.h`.
const LIVE_FRAMES: u32 = 1 << 1;

/// Frames in one call. Each call has a fixed cost of some 20 ms, so fewer would measure that instead.
const FRAMES_PER_CALL: u32 = 1 << 19;

/// Generator and sink of a bed.
pub(super) struct Sender {
    generator: Object,
    sink: Object,
    frame: Vec<u8>,
    /// Of the generator's port.
    ifindex: u32,
}

/// What some calls have shown.
#[derive(Clone)]
pub(super) struct Sample {
    /// CPU time per frame that arrived.
    pub(super) cpu_ns: f64,
    /// Frames that arrived, millions per second of wall time.
    pub(super) mpps: f64,
    /// Frames that arrived, of those generated.
    pub(super) arrived_ratio: f64,
}

impl Sender {
    /// Of frames like this one.
    pub(super) fn load(frame: Vec<u8>) -> Result<Self, DatapathError> {
        Ok(Self { generator: load_wrappers(&frame)?, sink: load_wrappers(&frame)?, frame, ifindex: 0 })
    }

    /// Frames leave by this interface of the caller's namespace, where [`Self::send`] is called, too.
    pub(super) fn leave_by(&mut self, interface: &str) -> Result<(), DatapathError> {
        self.ifindex = interface::index_of(interface)?;
        object::update(&self.generator, "generator_port", &0u32.to_ne_bytes(), &self.ifindex.to_ne_bytes())
    }

    /// Counts and ends the frames that come in at an interface of the caller's namespace.
    pub(super) fn sink_at(&self, interface: &str) -> Result<Link, DatapathError> {
        attach(&object::program(&self.sink, "bench_sink"), interface)
    }

    /// The same for frames that come as skbs: making XDP frames of them would be the sink's cost, not the switch's.
    pub(super) fn sink_skbs_at(&self, interface: &str) -> Result<Attached, DatapathError> {
        let program = object::program(&self.sink, "bench_sink_tc");
        hook::attach(&program, interface::index_of(interface)?, interface)
    }

    /// Lets a veth end poll, and leaves its frames to the stack.
    pub(super) fn poll_at(&self, interface: &str) -> Result<Link, DatapathError> {
        attach(&object::program(&self.sink, "bench_pass"), interface)
    }

    /// So many calls of half a million frames; `cpu_ns` is a clock of all that spends time on them.
    pub(super) fn send(&self, calls: u32, cpu_ns: impl Fn() -> f64) -> Result<Sample, DatapathError> {
        let sent = f64::from(calls) * f64::from(FRAMES_PER_CALL);
        let before = self.sunk()?;
        let (wall, cpu) = (ns(ClockId::Monotonic), cpu_ns());
        for _ in 0..calls {
            self.send_once()?;
        }
        let (wall, cpu) = (ns(ClockId::Monotonic) - wall, cpu_ns() - cpu);
        let arrived = (self.sunk()? - before) as f64;
        Ok(Sample { cpu_ns: cpu / arrived.max(1.0), mpps: arrived * 1e3 / wall, arrived_ratio: arrived / sent })
    }

    fn send_once(&self) -> Result<(), DatapathError> {
        let mut context = xdp_context(self.frame.len() as u32, self.ifindex);
        let input = ProgramInput {
            data_in: Some(&self.frame),
            context_in: Some(&mut context),
            repeat: FRAMES_PER_CALL,
            flags: LIVE_FRAMES,
            ..ProgramInput::default()
        };
        let generator = object::program(&self.generator, "bench_generate");
        generator.test_run(input).map_err(|source| DatapathError::from_kernel("sending live frames", source))?;
        Ok(())
    }

    fn sunk(&self) -> Result<u64, DatapathError> {
        let value = object::lookup(&self.sink, ".data.sunk", &0u32.to_ne_bytes())?;
        Ok(value.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes))
    }
}

/// `struct xdp_md` of `linux/bpf.h`: the frame's end and the interface it claims to have come from.
fn xdp_context(length: u32, ingress_ifindex: u32) -> [u8; 24] {
    let mut context = [0; 24];
    context[4..8].copy_from_slice(&length.to_ne_bytes());
    context[12..16].copy_from_slice(&ingress_ifindex.to_ne_bytes());
    context
}

/// Puts an XDP program on an interface of the caller's namespace.
pub(super) fn attach(program: &ProgramMut<'_>, interface: &str) -> Result<Link, DatapathError> {
    let index = i32::try_from(interface::index_of(interface)?).expect("interface indexes are positive ints");
    program
        .attach_xdp(index)
        .map_err(|source| DatapathError::from_kernel(format!("attaching XDP to `{interface}`"), source))
}

/// Measures on one CPU, in a thread of its own, because it changes its namespace and its CPU.
pub(super) fn on_cpu<T: Send + 'static>(
    cpu: usize,
    measure: impl FnOnce() -> Result<T, DatapathError> + Send + 'static,
) -> Result<T, DatapathError> {
    let thread = std::thread::spawn(move || {
        let mut cpus = CpuSet::new();
        cpus.set(cpu);
        sched_setaffinity(None, &cpus).map_err(|errno| setup_failed("choosing the CPU", errno.into()))?;
        measure()
    });
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
