//! Frames taken away from a switch that runs, without a word to whoever set it up: a program in the place of its XDP program, and
//! that one's return.
#![allow(unsafe_code)]

use std::mem::size_of_val;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::ProgramMut;
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo};
use weft_datapath::DatapathError;
use weft_datapath::hook::{self, Attached, Place};

/// A program that takes frames; it goes at once when this is dropped.
#[derive(Debug)]
pub struct Cut(Means);

#[derive(Debug)]
enum Means {
    Attached(Attached),
    Detour(Detour),
}

impl Cut {
    /// In the place of an XDP program where there is one, else in front of all on TC.
    pub(crate) fn instead(
        xdp: &ProgramMut<'_>,
        tc: &ProgramMut<'_>,
        ifindex: u32,
        interface: &str,
    ) -> Result<Self, DatapathError> {
        match Detour::begin(xdp, ifindex, interface)? {
            Some(detour) => Ok(Self(Means::Detour(detour))),
            None => hook::attach(tc, ifindex, interface, Place::First).map(Self::from),
        }
    }
}

impl From<Attached> for Cut {
    fn from(attached: Attached) -> Self {
        Self(Means::Attached(attached))
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; closing a link does the same a little later.
        let _ = match &self.0 {
            Means::Attached(attached) => attached.detach(),
            Means::Detour(detour) => detour.end(),
        };
    }
}

/// Another program on an XDP link until [`Self::end`].
#[derive(Debug)]
struct Detour {
    link: OwnedFd,
    /// What belongs there.
    original: OwnedFd,
}

impl Detour {
    /// Puts `program` in the place of the XDP program of an interface of the caller's namespace; `None` where none is on it by
    /// a link. The two must agree about frames in several buffers.
    fn begin(program: &ProgramMut<'_>, ifindex: u32, interface: &str) -> Result<Option<Self>, DatapathError> {
        let Some(id) = program_on(ifindex) else { return Ok(None) };
        let failed = |source| DatapathError::from_kernel(format!("taking the place of XDP on `{interface}`"), source);
        // Indexes are of a namespace, but no two of them share a program on interfaces of the same index, unless by one loader.
        let is_it = |link: &libbpf_rs::query::LinkInfo| {
            link.prog_id == id && matches!(&link.info, LinkTypeInfo::Xdp(xdp) if xdp.ifindex == ifindex)
        };
        let Some(link) = LinkInfoIter::default().find(is_it) else { return Ok(None) };
        // SAFETY: these take a number and return a new descriptor or an error.
        let (link, original) =
            unsafe { (libbpf_sys::bpf_link_get_fd_by_id(link.id), libbpf_sys::bpf_prog_get_fd_by_id(id)) };
        let detour = Self { link: own(link).map_err(failed)?, original: own(original).map_err(failed)? };
        update(&detour.link, program.as_fd().as_raw_fd()).map_err(failed)?;
        Ok(Some(detour))
    }

    /// Puts back what belongs there. A link that is gone needs nothing.
    fn end(&self) -> Result<(), DatapathError> {
        match update(&self.link, self.original.as_raw_fd()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(DatapathError::from_kernel("putting an XDP program back", error)),
        }
    }
}

/// ID of the XDP program of an interface.
fn program_on(ifindex: u32) -> Option<u32> {
    let mut id = 0;
    // SAFETY: the kernel's answer is written to `id` alone.
    let result = unsafe { libbpf_sys::bpf_xdp_query_id(ifindex.cast_signed(), 0, &raw mut id) };
    (result == 0 && id != 0).then_some(id)
}

fn own(fd: i32) -> Result<OwnedFd, libbpf_rs::Error> {
    if fd < 0 {
        return Err(libbpf_rs::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel returned it just now, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn update(link: &OwnedFd, program: i32) -> Result<(), libbpf_rs::Error> {
    let mut options = libbpf_sys::bpf_link_update_opts::default();
    options.sz = size_of_val(&options) as libbpf_sys::size_t;
    // SAFETY: both descriptors are open, and the options outlive the call.
    let result = unsafe { libbpf_sys::bpf_link_update(link.as_raw_fd(), program, &raw const options) };
    if result < 0 { Err(libbpf_rs::Error::from_raw_os_error(-result)) } else { Ok(()) }
}
