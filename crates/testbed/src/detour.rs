//! A program of ours in the place of somebody's XDP program, without a word to whoever set that up, and that one's return.
#![allow(unsafe_code)]

use std::mem::size_of_val;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo};
use libbpf_rs::{ProgramImpl, ProgramMut};
use weft_datapath::DatapathError;
use weft_datapath::interface;
use weft_datapath::pin::pin_fd;

/// An XDP link and the program that belongs there.
#[derive(Debug)]
pub(crate) struct Detour {
    link: OwnedFd,
    link_id: u32,
    /// What belongs there.
    original: OwnedFd,
}

impl Detour {
    /// The XDP program of an interface of the caller's namespace; `None` where none is on it by a link.
    pub(crate) fn find(ifindex: u32, interface: &str) -> Result<Option<Self>, DatapathError> {
        let failed = |source| failed(interface, source);
        let Some(id) = program_on(ifindex) else { return Ok(None) };
        // Indexes are of a namespace, but no two of them share a program on interfaces of the same index, unless by one loader.
        let is_it = |link: &libbpf_rs::query::LinkInfo| {
            link.prog_id == id && matches!(&link.info, LinkTypeInfo::Xdp(xdp) if xdp.ifindex == ifindex)
        };
        let Some(link) = LinkInfoIter::default().find(is_it) else { return Ok(None) };
        // SAFETY: these take a number and return a new descriptor or an error.
        let (fd, original) =
            unsafe { (libbpf_sys::bpf_link_get_fd_by_id(link.id), libbpf_sys::bpf_prog_get_fd_by_id(id)) };
        Ok(Some(Self { link: own(fd).map_err(failed)?, link_id: link.id, original: own(original).map_err(failed)? }))
    }

    /// The program that belongs there.
    pub(crate) fn original(&self) -> BorrowedFd<'_> {
        self.original.as_fd()
    }

    /// Puts `program` there until [`Self::end`]. The two must agree about frames in several buffers.
    pub(crate) fn take_place(&self, program: &ProgramMut<'_>, interface: &str) -> Result<(), DatapathError> {
        update(&self.link, program.as_fd().as_raw_fd()).map_err(|source| failed(interface, source))
    }

    /// The link stays with whoever made it; only what belongs there is remembered, for [`Self::kept`].
    pub(crate) fn keep(&self, pin: &Path) -> Result<(), DatapathError> {
        pin_fd(self.original.as_fd(), &beside(pin, self.link_id))
    }

    /// Whether something is kept there.
    pub(crate) fn is_kept(pin: &Path) -> bool {
        pinned(pin).is_some()
    }

    /// The pin of what is kept there, and how to end it: not if the program is not one with a name that begins so, because it has not
    /// got there, has gone already, or whoever made the link has put another one there since, nor if link or interface is gone.
    pub(crate) fn kept(
        pin: &Path,
        interface: &str,
        name: &str,
    ) -> Result<Option<(PathBuf, Option<Self>)>, DatapathError> {
        let Some((kept, link_id)) = pinned(pin) else { return Ok(None) };
        let failed = |source| DatapathError::from_kernel(format!("opening {}", kept.display()), source);
        let original = ProgramImpl::fd_from_pinned_path(&kept).map_err(failed)?;
        // SAFETY: this takes a number and returns a new descriptor or an error.
        let link = own(unsafe { libbpf_sys::bpf_link_get_fd_by_id(link_id) });
        let is_ours = interface::index_of(interface).ok().and_then(program_on).is_some_and(|id| is_called(id, name));
        let detour = link.ok().filter(|_| is_ours).map(|link| Self { link, link_id, original });
        Ok(Some((kept, detour)))
    }

    /// Puts back what belongs there. A link that is gone needs nothing.
    pub(crate) fn end(&self) -> Result<(), DatapathError> {
        match update(&self.link, self.original.as_raw_fd()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(DatapathError::from_kernel("putting an XDP program back", error)),
        }
    }
}

fn failed(interface: &str, source: libbpf_rs::Error) -> DatapathError {
    DatapathError::from_kernel(format!("taking the place of XDP on `{interface}`"), source)
}

/// What belongs on a link is kept beside `pin`, under the link's ID: neither its program nor its interface tell it from others.
fn beside(pin: &Path, link: u32) -> PathBuf {
    let mut path = pin.as_os_str().to_owned();
    path.push(format!("{BESIDE}{link}"));
    path.into()
}

/// Names in a bpffs may not contain dots.
const BESIDE: &str = "-xdp";

fn pinned(pin: &Path) -> Option<(PathBuf, u32)> {
    let name = pin.file_name()?.to_str()?;
    std::fs::read_dir(pin.parent()?).ok()?.flatten().find_map(|entry| {
        let link = entry.file_name().to_str()?.strip_prefix(name)?.strip_prefix(BESIDE)?.parse().ok()?;
        Some((entry.path(), link))
    })
}

/// Whether a program's name, of which the kernel keeps 15 bytes, begins so.
fn is_called(id: u32, beginning: &str) -> bool {
    let Ok(program) = ProgramImpl::fd_from_id(id) else { return false };
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes.
    let asked = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut length) };
    asked == 0 && beginning.bytes().zip(info.name).all(|(wanted, found)| found.to_ne_bytes() == [wanted])
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
