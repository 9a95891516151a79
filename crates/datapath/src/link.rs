//! tcx links: a program on an interface, kept by a pin across restarts and replaced without a gap.
//!
//! libbpf-rs has no call for tcx, so this goes through libbpf's own.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{AsRawLibbpf, ErrorKind, Link, ProgramMut};

use crate::error::DatapathError;
use crate::filter::Place;
use crate::pin::remove_pin;
use crate::{interface, refusal};

/// Attaches `program` (its section names the direction) to the interface, at this end of those already there.
///
/// The link ends when it is dropped.
pub(crate) fn attach(
    program: &ProgramMut<'_>,
    ifindex: u32,
    interface: &str,
    place: Place,
) -> Result<Link, DatapathError> {
    let what = || format!("attaching {} to `{interface}`", program.name().to_string_lossy());
    let index = i32::try_from(ifindex).expect("interface indexes are positive ints in the kernel");
    let options = libbpf_sys::bpf_tcx_opts {
        sz: size_of::<libbpf_sys::bpf_tcx_opts>() as _,
        flags: if place == Place::First { libbpf_sys::BPF_F_BEFORE } else { 0 },
        ..Default::default()
    };
    // SAFETY: the program pointer is valid while `program` is borrowed, and the options outlive the call.
    let link =
        unsafe { libbpf_sys::bpf_program__attach_tcx(program.as_libbpf_object().as_ptr(), index, &raw const options) };
    let Some(link) = NonNull::new(link) else {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        return Err(DatapathError::from_kernel(what(), libbpf_rs::Error::from_raw_os_error(errno)));
    };
    // SAFETY: libbpf returned it, it is not null, and nobody else owns it.
    Ok(unsafe { Link::from_ptr(link) })
}

/// The same, in front of those already there and without a link: the program stays until the interface is gone.
pub(crate) fn attach_for_good(program: &ProgramMut<'_>, ifindex: u32) -> Result<(), DatapathError> {
    let index = i32::try_from(ifindex).expect("interface indexes are positive ints in the kernel");
    let kind = program.attach_type() as libbpf_sys::bpf_attach_type;
    let options = libbpf_sys::bpf_prog_attach_opts {
        sz: size_of::<libbpf_sys::bpf_prog_attach_opts>() as _,
        flags: libbpf_sys::BPF_F_BEFORE,
        ..Default::default()
    };
    let program_fd = program.as_fd().as_raw_fd();
    // SAFETY: the options outlive the call.
    let result = unsafe { libbpf_sys::bpf_prog_attach_opts(program_fd, index, kind, &raw const options) };
    match result {
        0 => Ok(()),
        error => Err(DatapathError::from_kernel(
            format!("attaching {} to interface {ifindex}", program.name().to_string_lossy()),
            libbpf_rs::Error::from_raw_os_error(-error),
        )),
    }
}

/// As [`attach`], behind those already there and pinned at `pin`. If a link on this interface is pinned there already, its program is replaced in one step:
/// every frame meets either the old or the new program.
pub(crate) fn attach_pinned(
    program: &ProgramMut<'_>,
    ifindex: u32,
    interface: &str,
    pin: &Path,
) -> Result<Link, DatapathError> {
    let failed = |what: &str, source| DatapathError::from_kernel(format!("{what} {}", pin.display()), source);
    if let Ok(mut link) = Link::open(pin) {
        if is_on(&link, ifindex) {
            link.update_prog(program).map_err(|source| failed("replacing the program of", source))?;
            return Ok(link);
        }
        remove_pin(pin)?;
    }
    let mut link = attach(program, ifindex, interface, Place::Last)?;
    link.pin(pin).map_err(|source| failed("pinning", source))?;
    Ok(link)
}

/// The same for XDP, in the driver where it can be; pinned if `pin` says where. One program at a time is on an interface.
pub(crate) fn attach_xdp(program: &ProgramMut<'_>, ifindex: u32, pin: Option<&Path>) -> Result<Link, DatapathError> {
    let failed = |what: &str, source| DatapathError::from_kernel(format!("{what} XDP on interface {ifindex}"), source);
    if let Some(earlier) = pin.and_then(|pin| Link::open(pin).ok()) {
        let mut link = earlier;
        if is_on(&link, ifindex) {
            link.update_prog(program).map_err(|source| failed("replacing", source))?;
            return Ok(link);
        }
    }
    let index = i32::try_from(ifindex).expect("interface indexes are positive ints in the kernel");
    let mut link = program.attach_xdp(index).map_err(|source| {
        let name = interface::name_of(ifindex).unwrap_or_else(|| format!("interface {ifindex}"));
        refusal::explain(program, (ifindex, &name), "hook = \"tc\"", source)
    })?;
    if let Some(pin) = pin {
        remove_pin(pin)?;
        link.pin(pin).map_err(|source| failed("pinning", source))?;
    }
    Ok(link)
}

/// Attaches a program by its descriptor.
pub(crate) fn create(
    program: BorrowedFd<'_>,
    index: i32,
    kind: libbpf_sys::bpf_attach_type,
    flags: u32,
) -> Result<OwnedFd, libbpf_rs::Error> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        flags,
        ..Default::default()
    };
    // SAFETY: the program's descriptor is open, and the options live until the call returns, which nobody else has the result of.
    unsafe { owned(libbpf_sys::bpf_link_create(program.as_raw_fd(), index, kind, &raw const options)) }
}

/// What the kernel returned: a descriptor, or a negative error.
///
/// # Safety
/// Nobody else owns the descriptor.
pub(crate) unsafe fn owned(fd: i32) -> Result<OwnedFd, libbpf_rs::Error> {
    if fd < 0 {
        return Err(libbpf_rs::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the caller says so.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes the program off at once; closing or unpinning a link would do so some time later.
pub(crate) fn detach(link: &Link) -> Result<(), DatapathError> {
    match link.detach() {
        Err(error) if error.kind() != ErrorKind::NotFound && !interface_is_gone(link) => {
            Err(DatapathError::from_kernel("detaching a program", error))
        }
        _ => Ok(()),
    }
}

fn interface_is_gone(link: &Link) -> bool {
    is_on(link, 0)
}

/// A link outlives its interface, and then has no index; or the interface was made anew and has another.
pub(crate) fn is_on(link: &Link, ifindex: u32) -> bool {
    match link.info().map(|info| info.info) {
        Ok(LinkTypeInfo::Tcx(tcx)) => tcx.ifindex == ifindex,
        Ok(LinkTypeInfo::Xdp(xdp)) => xdp.ifindex == ifindex,
        _ => false,
    }
}
