//! What hooks and cards offer, asked without one of our objects: a kernel that refuses an object may still have the hook.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHookBuilder};

use crate::error::DatapathError;
use crate::hook::TcHook;
use crate::trill::XdpMode;
use crate::{interface, link, object};

/// What a driver does with XDP: the bits of `enum netdev_xdp_act` (`linux/netdev.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFeatures(pub u64);

impl XdpFeatures {
    /// Runs programs itself and takes all their verdicts but redirection.
    pub const BASIC: u64 = 1;
    /// Redirects to other interfaces.
    pub const REDIRECT: u64 = 2;
    /// Sends what other interfaces redirect to it, as it is set up now.
    pub const NDO_XMIT: u64 = 4;
    /// Takes frames that came in several buffers.
    pub const RX_SG: u64 = 32;

    /// Whether all of these are there.
    pub fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }
}

/// What the driver of an interface of the caller's namespace offers. Nothing is attached. Kernels before 6.3 say nothing
/// of it: no bit is set.
///
/// # Errors
/// [`DatapathError::NoInterface`], or [`DatapathError::Program`] if the kernel does not answer.
pub fn xdp_features(interface: &str) -> Result<XdpFeatures, DatapathError> {
    let index = i32::try_from(interface::index_of(interface)?).expect("interface indexes are positive ints");
    let mut options = libbpf_sys::bpf_xdp_query_opts {
        sz: size_of::<libbpf_sys::bpf_xdp_query_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    // SAFETY: the options outlive the call, which writes no more than their stated size.
    match unsafe { libbpf_sys::bpf_xdp_query(index, 0, &raw mut options) } {
        0 => Ok(XdpFeatures(options.feature_flags)),
        error => Err(DatapathError::from_kernel(
            format!("asking what `{interface}` does with XDP"),
            libbpf_rs::Error::from_raw_os_error(-error),
        )),
    }
}

/// Attaches a program that passes everything to egress and ingress of an interface of the caller's namespace, and takes it
/// off again: as the data path would ([`TcHook::available`]).
///
/// # Errors
/// Any [`DatapathError`].
pub fn try_tc(interface: &str) -> Result<TcHook, DatapathError> {
    let index = i32::try_from(interface::index_of(interface)?).expect("interface indexes are positive ints");
    let program = pass_everything(libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, TC_ACT_UNSPEC)?;
    let hook = TcHook::available();
    match hook {
        TcHook::Tcx => {
            [libbpf_sys::BPF_TCX_EGRESS, libbpf_sys::BPF_TCX_INGRESS].into_iter().try_for_each(|direction| {
                link_once(&program, index, direction, 0, || format!("attaching to `{interface}` by tcx"))
            })?
        }
        TcHook::Filter => {
            [TC_EGRESS, TC_INGRESS].into_iter().try_for_each(|direction| filter_once(&program, index, direction))?;
        }
    }
    Ok(hook)
}

fn filter_once(program: &OwnedFd, index: i32, direction: TcAttachPoint) -> Result<(), DatapathError> {
    let failed = |source| DatapathError::from_kernel(format!("attaching a filter to interface {index}"), source);
    let mut hook =
        TcHookBuilder::new(program.as_fd()).ifindex(index).replace(true).handle(1).priority(1).hook(direction);
    hook.create().map_err(failed)?;
    hook.attach().map_err(failed)?.detach().map_err(failed)
}

/// Attaches a program that passes everything to an interface of the caller's namespace, and takes it off again.
///
/// # Errors
/// Any [`DatapathError`].
pub fn try_xdp(interface: &str, mode: XdpMode) -> Result<(), DatapathError> {
    let index = i32::try_from(interface::index_of(interface)?).expect("interface indexes are positive ints");
    let program = pass_everything(libbpf_sys::BPF_PROG_TYPE_XDP, XDP_PASS)?;
    link_once(&program, index, libbpf_sys::BPF_XDP, mode.flags(), || format!("attaching XDP to `{interface}`"))
}

/// Makes a link and ends it.
fn link_once(
    program: &OwnedFd,
    index: i32,
    kind: libbpf_sys::bpf_attach_type,
    flags: u32,
    what: impl FnOnce() -> String,
) -> Result<(), DatapathError> {
    let link =
        link::create(program.as_fd(), index, kind, flags).map_err(|error| DatapathError::from_kernel(what(), error))?;
    // Closing it would take the program off some time later.
    // SAFETY: the descriptor is a link's and open.
    let _the_interface_may_be_gone = unsafe { libbpf_sys::bpf_link_detach(link.as_raw_fd()) };
    Ok(())
}

/// Verdict of XDP: to the stack.
const XDP_PASS: i32 = 2;
/// Verdict of TC: whatever comes next decides.
const TC_ACT_UNSPEC: i32 = -1;

/// `return verdict`: two instructions that every verifier takes.
fn pass_everything(kind: libbpf_sys::bpf_prog_type, verdict: i32) -> Result<OwnedFd, DatapathError> {
    const MOVE_TO_R0: u8 = 0xb7;
    const EXIT: u8 = 0x95;
    object::collect_loader_messages();
    let instruction = |code, imm| libbpf_sys::bpf_insn { code, imm, ..Default::default() };
    let program = [instruction(MOVE_TO_R0, verdict), instruction(EXIT, 0)];
    // SAFETY: the strings are terminated, the instructions are as many as stated, null options ask for the defaults.
    let fd = unsafe {
        libbpf_sys::bpf_prog_load(
            kind,
            c"weft_probe".as_ptr(),
            c"Dual BSD/GPL".as_ptr(),
            program.as_ptr(),
            program.len() as libbpf_sys::size_t,
            std::ptr::null_mut(),
        )
    };
    // SAFETY: the kernel returned it just now, and nobody else owns it.
    unsafe { link::owned(fd) }.map_err(|error| DatapathError::from_kernel("loading a program", error))
}

#[cfg(test)]
#[allow(clippy::print_stderr)]
mod tests {
    use super::*;

    #[test]
    fn features_are_sets_of_bits() {
        let virtio = XdpFeatures(XdpFeatures::BASIC | XdpFeatures::REDIRECT);
        assert!(virtio.has(XdpFeatures::BASIC) && !virtio.has(XdpFeatures::BASIC | XdpFeatures::NDO_XMIT));
        assert!(!XdpFeatures(0).has(XdpFeatures::BASIC));
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let none = "weft-none";
        let errors = [xdp_features(none).map(drop), try_xdp(none, XdpMode::Generic), try_tc(none).map(drop)];
        assert!(errors.iter().all(|error| matches!(error, Err(DatapathError::NoInterface { .. }))), "{errors:?}");
    }

    #[test]
    fn loopback_has_no_driver() {
        if weft_needs::kernel(6, 3) {
            let features = xdp_features("lo").unwrap();
            assert!(!features.has(XdpFeatures::BASIC), "{features:?}");
        }
    }
}
