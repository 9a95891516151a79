//! Frames taken away from a switch that runs, without a word to whoever set it up: a program in the place of its XDP program, and
//! that one's return.
#![allow(unsafe_code)]

use std::mem::size_of_val;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, ProgInfoIter};
use libbpf_rs::{ProgramImpl, ProgramMut};
use weft_datapath::DatapathError;
use weft_datapath::hook::{self, Attached, Place};
use weft_datapath::interface;
use weft_datapath::pin::{pin_fd, remove_pin};

/// A program that takes frames; it goes at once when this is dropped.
#[derive(Debug)]
pub struct Cut(Option<Means>);

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
            Some(detour) => Ok(Self(Some(Means::Detour(detour)))),
            None => hook::attach(tc, ifindex, interface, Place::First).map(Self::from),
        }
    }
}

impl Cut {
    /// Leaves it as it is when this process ends, for whoever [`Self::resume`]s it.
    ///
    /// # Errors
    /// [`DatapathError::Pin`].
    pub fn keep(mut self, pin: &Path) -> Result<(), DatapathError> {
        match self.0.take() {
            Some(Means::Attached(attached)) => attached.keep(pin),
            Some(Means::Detour(detour)) => detour.keep(pin),
            None => Ok(()),
        }
    }

    /// What somebody has kept there, for an interface of the caller's namespace; it goes again when the result is dropped. `None`:
    /// nothing of it is left.
    ///
    /// # Errors
    /// [`DatapathError::Pin`].
    pub fn resume(pin: &Path, interface: &str) -> Result<Option<Self>, DatapathError> {
        if let Some((kept, link)) = kept_detour(pin) {
            let detour = Detour::resume(&kept, link, interface)?;
            return Ok(detour.map(|detour| Self(Some(Means::Detour(detour)))));
        }
        if pin.exists() { Ok(Attached::resume(pin)?.map(Self::from)) } else { Ok(None) }
    }
}

/// What belongs on a link is kept beside `pin`, under the link's ID: neither its program nor its interface tell it from others.
fn of_detour(pin: &Path, link: u32) -> PathBuf {
    let mut path = pin.as_os_str().to_owned();
    path.push(format!("{BESIDE}{link}"));
    path.into()
}

/// Names in a bpffs may not contain dots.
const BESIDE: &str = "-xdp";

fn kept_detour(pin: &Path) -> Option<(PathBuf, u32)> {
    let name = pin.file_name()?.to_str()?;
    std::fs::read_dir(pin.parent()?).ok()?.flatten().find_map(|entry| {
        let link = entry.file_name().to_str()?.strip_prefix(name)?.strip_prefix(BESIDE)?.parse().ok()?;
        Some((entry.path(), link))
    })
}

impl From<Attached> for Cut {
    fn from(attached: Attached) -> Self {
        Self(Some(Means::Attached(attached)))
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; closing a link does the same a little later.
        let _ = match &self.0 {
            Some(Means::Attached(attached)) => attached.detach(),
            Some(Means::Detour(detour)) => detour.end(),
            None => Ok(()),
        };
    }
}

/// Another program on an XDP link until [`Self::end`].
#[derive(Debug)]
struct Detour {
    link: OwnedFd,
    link_id: u32,
    /// What belongs there.
    original: OwnedFd,
}

impl Detour {
    /// Puts `program` in the place of the XDP program of an interface of the caller's namespace; `None` where none is on it by
    /// a link. The two must agree about frames in several buffers.
    fn begin(program: &ProgramMut<'_>, ifindex: u32, interface: &str) -> Result<Option<Self>, DatapathError> {
        let failed = |source| DatapathError::from_kernel(format!("taking the place of XDP on `{interface}`"), source);
        let Some(id) = program_on(ifindex) else { return Ok(None) };
        // Indexes are of a namespace, but no two of them share a program on interfaces of the same index, unless by one loader.
        let is_it = |link: &libbpf_rs::query::LinkInfo| {
            link.prog_id == id && matches!(&link.info, LinkTypeInfo::Xdp(xdp) if xdp.ifindex == ifindex)
        };
        let Some(link) = LinkInfoIter::default().find(is_it) else { return Ok(None) };
        // SAFETY: these take a number and return a new descriptor or an error.
        let (fd, original) =
            unsafe { (libbpf_sys::bpf_link_get_fd_by_id(link.id), libbpf_sys::bpf_prog_get_fd_by_id(id)) };
        let detour =
            Self { link: own(fd).map_err(failed)?, link_id: link.id, original: own(original).map_err(failed)? };
        update(&detour.link, program.as_fd().as_raw_fd()).map_err(failed)?;
        Ok(Some(detour))
    }

    /// The link stays with whoever made it; only what belongs there is remembered.
    fn keep(self, pin: &Path) -> Result<(), DatapathError> {
        let pin = of_detour(pin, self.link_id);
        remove_pin(&pin)?;
        pin_fd(self.original.as_fd(), &pin)
    }

    /// `None`: whoever made the link has put another program there since, or the link is gone.
    fn resume(kept: &Path, link_id: u32, interface: &str) -> Result<Option<Self>, DatapathError> {
        let failed = |source| DatapathError::from_kernel(format!("taking {} back", kept.display()), source);
        let original = ProgramImpl::fd_from_pinned_path(kept).map_err(failed)?;
        // SAFETY: this takes a number and returns a new descriptor or an error.
        let link = own(unsafe { libbpf_sys::bpf_link_get_fd_by_id(link_id) });
        let is_ours = program_on(interface::index_of(interface)?).is_some_and(is_cut);
        remove_pin(kept)?;
        match link {
            Ok(link) if is_ours => Ok(Some(Self { link, link_id, original })),
            _ => Ok(None),
        }
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

/// Whether a program takes frames away, by its name, of which the kernel keeps 15 bytes.
fn is_cut(id: u32) -> bool {
    let mut programs = ProgInfoIter::default();
    programs.any(|program| program.id == id && program.name.to_string_lossy().starts_with("lose_"))
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
