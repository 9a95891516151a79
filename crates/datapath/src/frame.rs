//! One frame through a loaded program without a network (`BPF_PROG_RUN`): for tests and for self-checks.

use std::time::Duration;

use libbpf_rs::{ProgramInput, ProgramMut, ProgramOutput};

use crate::error::DatapathError;

/// What goes in.
#[derive(Clone, Debug, Default)]
pub struct FrameInput<'frame> {
    /// The frame from its Ethernet header on: 14 bytes to about 3500, which is what the kernel takes for a trial.
    pub bytes: &'frame [u8],
    /// The socket's mark, as [`crate::AGENT_MARK`]. TC only.
    pub mark: u32,
    /// Segment size of a GSO super frame, bytes; 0 for an ordinary frame. TC only.
    pub gso_size: u32,
    /// Interface that the frame is on; 0 for loopback. TC only.
    pub ifindex: u32,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameOutput {
    /// What the program decided.
    pub verdict: Verdict,
    /// The frame as the program left it.
    pub bytes: Vec<u8>,
}

/// What a program decided about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on: to the wire or the stack.
    Next,
    /// Throw away.
    Drop,
    /// Send elsewhere.
    Redirect,
    /// Send back by where it came in: XDP only.
    Return,
    /// Anything else; no program of weft returns it.
    Other(u32),
}

/// Offsets in `struct __sk_buff` of `linux/bpf.h`, which are kernel ABI; and its size.
mod skb {
    pub(super) const MARK: usize = 8;
    pub(super) const INGRESS_IFINDEX: usize = 36;
    pub(super) const IFINDEX: usize = 40;
    pub(super) const GSO_SEGS: usize = 164;
    pub(super) const GSO_SIZE: usize = 176;
    pub(super) const SIZE: usize = 192;
}

/// Room for what a program may push.
const ROOM_BYTES: usize = 256;

/// Runs a TC program.
///
/// # Errors
/// [`DatapathError::Program`] if the kernel refuses the frame.
pub fn run_tc(program: &ProgramMut<'_>, input: &FrameInput<'_>) -> Result<FrameOutput, DatapathError> {
    let (returned, bytes) = run(program, input.bytes, Some(&mut skb_of(input)))?;
    Ok(FrameOutput { verdict: tc_verdict(returned), bytes })
}

/// Runs a TC program on a frame that is new to it: what it decided, and how long it took by the kernel's clock.
///
/// # Errors
/// [`DatapathError::Program`] if the kernel refuses the frame.
pub fn time_tc(program: &ProgramMut<'_>, input: &FrameInput<'_>) -> Result<(Verdict, Duration), DatapathError> {
    let mut context = skb_of(input);
    let output = call(
        program,
        ProgramInput { data_in: Some(input.bytes), context_in: Some(&mut context), repeat: 1, ..Default::default() },
    )?;
    Ok((tc_verdict(output.return_value), output.duration))
}

fn skb_of(input: &FrameInput<'_>) -> [u8; skb::SIZE] {
    let mut context = [0u8; skb::SIZE];
    let mut set = |offset: usize, value: u32| context[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
    set(skb::MARK, input.mark);
    set(skb::IFINDEX, input.ifindex);
    set(skb::INGRESS_IFINDEX, input.ifindex);
    set(skb::GSO_SIZE, input.gso_size);
    set(skb::GSO_SEGS, u32::from(input.gso_size > 0));
    context
}

fn tc_verdict(returned: u32) -> Verdict {
    match returned.cast_signed() {
        -1 | 0 => Verdict::Next,
        2 => Verdict::Drop,
        7 => Verdict::Redirect,
        _ => Verdict::Other(returned),
    }
}

/// Runs an XDP program.
///
/// # Errors
/// [`DatapathError::Program`] if the kernel refuses the frame.
pub fn run_xdp(program: &ProgramMut<'_>, bytes: &[u8]) -> Result<FrameOutput, DatapathError> {
    xdp_output(run(program, bytes, None)?)
}

/// Runs an XDP program on a frame that came in at an interface; it must have a driver that knows XDP.
pub(crate) fn run_xdp_on(program: &ProgramMut<'_>, input: &FrameInput<'_>) -> Result<FrameOutput, DatapathError> {
    /// `struct xdp_md` of `linux/bpf.h`: the frame's end and the interface.
    const SIZE: usize = 24;
    let length = u32::try_from(input.bytes.len()).unwrap_or(u32::MAX);
    let mut context = [0u8; SIZE];
    context[4..8].copy_from_slice(&length.to_ne_bytes());
    context[12..16].copy_from_slice(&input.ifindex.to_ne_bytes());
    let context = (input.ifindex != 0).then_some(&mut context[..]);
    xdp_output(run(program, input.bytes, context)?)
}

fn xdp_output((returned, bytes): (u32, Vec<u8>)) -> Result<FrameOutput, DatapathError> {
    let verdict = match returned {
        1 => Verdict::Drop,
        2 => Verdict::Next,
        3 => Verdict::Return,
        4 => Verdict::Redirect,
        _ => Verdict::Other(returned),
    };
    Ok(FrameOutput { verdict, bytes })
}

fn run(program: &ProgramMut<'_>, bytes: &[u8], context: Option<&mut [u8]>) -> Result<(u32, Vec<u8>), DatapathError> {
    let mut out = vec![0; bytes.len() + ROOM_BYTES];
    let input =
        ProgramInput { data_in: Some(bytes), data_out: Some(&mut out), context_in: context, ..ProgramInput::default() };
    let output = call(program, input)?;
    let returned = output.return_value;
    let length = output.data.map_or(0, |data| data.len());
    out.truncate(length);
    Ok((returned, out))
}

fn call<'io>(program: &ProgramMut<'_>, input: ProgramInput<'io>) -> Result<ProgramOutput<'io>, DatapathError> {
    program.test_run(input).map_err(|source| {
        DatapathError::from_kernel(format!("running {} on a frame", program.name().to_string_lossy()), source)
    })
}
