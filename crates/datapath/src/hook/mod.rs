//! A program on the TC hook of an interface: by a tcx link where the kernel has them (Linux 6.6), by a classic filter where
//! it has not. Callers need not know which.
#![allow(unsafe_code)]

use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libbpf_rs::{Link, ProgramImpl, ProgramMut};

use crate::error::DatapathError;
use crate::filter::{self, Filter};
use crate::link;
use crate::pin::{pin_fd, remove_pin};

pub use crate::filter::Place;

/// How programs get onto the TC hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcHook {
    /// A link, which ends with its process unless it is pinned. The kernel waits for all CPUs at each: some 16 ms.
    Tcx,
    /// A classic filter (`clsact`), 0.1 ms each, for any kernel. It stays when its process is killed, until the same program
    /// comes again, which takes its place, or its interface goes; `clsact` itself always stays. One program is on a side of an
    /// interface once, therefore.
    Filter,
}

impl TcHook {
    /// tcx where the running kernel has it. `WEFT_TC_HOOK=filter` in the environment makes it filters everywhere: to try
    /// them.
    pub fn available() -> Self {
        static FOUND: OnceLock<TcHook> = OnceLock::new();
        let is_unwanted = || std::env::var_os("WEFT_TC_HOOK").is_some_and(|wanted| wanted == "filter");
        *FOUND.get_or_init(|| if is_unwanted() || !has_tcx() { Self::Filter } else { Self::Tcx })
    }
}

/// A program in its place, on TC or (always by a link) on XDP. It ends when this is dropped, unless it is pinned.
#[derive(Debug)]
pub struct Attached(Means);

#[derive(Debug)]
enum Means {
    Link(Link),
    Filter(Filter),
    /// A filter that outlives this.
    Kept(Filter),
}

/// Attaches `program` (its section names the direction) to the interface, at this end of those already there.
///
/// # Errors
/// [`DatapathError::Program`].
pub fn attach(
    program: &ProgramMut<'_>,
    ifindex: u32,
    interface: &str,
    place: Place,
) -> Result<Attached, DatapathError> {
    attach_by(TcHook::available(), program, ifindex, interface, place)
}

fn attach_by(
    hook: TcHook,
    program: &ProgramMut<'_>,
    ifindex: u32,
    interface: &str,
    place: Place,
) -> Result<Attached, DatapathError> {
    Ok(Attached(match hook {
        TcHook::Tcx => Means::Link(link::attach(program, ifindex, interface, place)?),
        TcHook::Filter => Means::Filter(filter::attach(program, ifindex, place)?),
    }))
}

/// In front of those already there, until the interface is gone.
///
/// # Errors
/// [`DatapathError::Program`].
pub fn attach_for_good(program: &ProgramMut<'_>, ifindex: u32) -> Result<(), DatapathError> {
    match TcHook::available() {
        TcHook::Tcx => link::attach_for_good(program, ifindex),
        TcHook::Filter => filter::attach(program, ifindex, Place::First).map(drop),
    }
}

/// Behind those already there, as `hook` says; with a `pin`, for longer than this process. What an earlier process has pinned
/// there is replaced in one step if it is on this interface, and taken off if it is on another.
pub(crate) fn attach_as(
    hook: TcHook,
    program: &ProgramMut<'_>,
    ifindex: u32,
    interface: &str,
    pin: Option<&Path>,
) -> Result<Attached, DatapathError> {
    match (hook, pin) {
        (hook, None) => attach_by(hook, program, ifindex, interface, Place::Last),
        (TcHook::Tcx, Some(pin)) => {
            let earlier = pinned_filter(pin, Some(ifindex));
            if earlier.is_some() {
                remove_pin(pin)?;
            }
            let link = link::attach_pinned(program, ifindex, interface, pin)?;
            earlier.map_or(Ok(()), |filter| filter.detach())?;
            Ok(Attached(Means::Link(link)))
        }
        (TcHook::Filter, Some(pin)) => {
            // Before it is replaced: afterwards it cannot be told from what is on no interface any more.
            let earlier = pinned_filter(pin, Some(ifindex));
            let filter = filter::attach(program, ifindex, Place::Last)?;
            match earlier {
                Some(earlier) => earlier.detach()?,
                None => detach_pinned_link(pin)?,
            }
            remove_pin(pin)?;
            pin_fd(program.as_fd(), pin)?;
            Ok(Attached(Means::Kept(filter)))
        }
    }
}

/// Puts another program of the same kind in the place of one that this process has attached, in one step. `pin` is where the
/// place is pinned.
pub(crate) fn replace(
    attached: &mut Attached,
    program: &ProgramMut<'_>,
    ifindex: u32,
    pin: Option<&Path>,
) -> Result<(), DatapathError> {
    let failed = |source| DatapathError::from_kernel(format!("replacing a program on interface {ifindex}"), source);
    match &mut attached.0 {
        Means::Link(link) => link.update_prog(program).map_err(failed),
        Means::Filter(place) | Means::Kept(place) => {
            *place = filter::attach(program, ifindex, Place::Last)?;
            let Some(pin) = pin else { return Ok(()) };
            remove_pin(pin)?;
            pin_fd(program.as_fd(), pin)
        }
    }
}

/// Attaches `program` for longer than this process, pinned at `pin` for [`is_pinned_on`] and [`detach_pinned`]. Whoever is killed
/// meanwhile leaves either nothing or the pin.
///
/// # Errors
/// [`DatapathError::Program`] or [`DatapathError::Pin`]; the pin of a filter may be there then.
pub fn attach_kept(
    program: &ProgramMut<'_>,
    ifindex: u32,
    interface: &str,
    place: Place,
    pin: &Path,
) -> Result<(), DatapathError> {
    match TcHook::available() {
        // Until it is pinned it goes with this process.
        TcHook::Tcx => pin_fd(link::attach(program, ifindex, interface, place)?.as_fd(), pin),
        TcHook::Filter => {
            pin_fd(program.as_fd(), pin)?;
            filter::attach(program, ifindex, place).map(drop)
        }
    }
}

/// Whether what is pinned there is at work on this interface of the caller's namespace.
pub fn is_pinned_on(pin: &Path, ifindex: u32) -> bool {
    pinned_filter(pin, Some(ifindex)).is_some() || Link::open(pin).is_ok_and(|link| link::is_on(&link, ifindex))
}

/// Takes off what an earlier process has pinned there, if it has, and then removes the pin.
///
/// # Errors
/// [`DatapathError::Program`] or [`DatapathError::Pin`].
pub fn detach_pinned(pin: &Path) -> Result<(), DatapathError> {
    match pinned_filter(pin, None) {
        Some(filter) => filter.detach()?,
        None => detach_pinned_link(pin)?,
    }
    remove_pin(pin)
}

/// Takes off every program that an earlier process has pinned in a directory, and removes all pins and the directory. Maps go last:
/// whatever is still at work uses them.
///
/// # Errors
/// [`DatapathError::Program`] or [`DatapathError::Pin`].
pub fn detach_all_pinned(dir: &Path) -> Result<(), DatapathError> {
    let failed = |what, source| DatapathError::Pin { what, path: dir.to_owned(), source };
    let entries = std::fs::read_dir(dir).map_err(|source| failed("reading", source))?;
    // A file with a dot is one that the kernel itself has in a bpffs.
    let is_pin = |path: &PathBuf| path.is_file() && path.extension().is_none();
    let pins: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_pin).collect();
    let (maps, programs): (Vec<&PathBuf>, Vec<&PathBuf>) = pins.iter().partition(|pin| is_map(pin));
    programs.into_iter().try_for_each(|pin| detach_pinned(pin))?;
    maps.into_iter().try_for_each(|pin| remove_pin(pin))?;
    match std::fs::remove_dir(dir) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
            Err(failed("removing", error))
        }
        _ => Ok(()),
    }
}

/// Whether the eBPF object that is pinned there is a map.
fn is_map(pin: &Path) -> bool {
    // The library opens any object as what it is asked for; the kernel says what it is.
    let Ok(object) = Link::open(pin) else { return false };
    let said = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", object.as_fd().as_raw_fd()));
    said.is_ok_and(|said| said.contains("map_id:"))
}

impl Attached {
    /// Takes the program off at once; closing or unpinning a link would do so some time later.
    ///
    /// # Errors
    /// [`DatapathError::Program`].
    pub fn detach(&self) -> Result<(), DatapathError> {
        match &self.0 {
            Means::Link(attached) => link::detach(attached),
            Means::Filter(attached) | Means::Kept(attached) => attached.detach(),
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Means::Filter(_) = self.0 {
            // Nothing can be done about a failure here.
            let _ = self.detach();
        }
    }
}

impl From<Link> for Attached {
    fn from(link: Link) -> Self {
        Self(Means::Link(link))
    }
}

/// The filter whose program is pinned there.
fn pinned_filter(pin: &Path, likely: Option<u32>) -> Option<Filter> {
    let program = ProgramImpl::fd_from_pinned_path(pin).ok()?;
    filter::find(program.as_fd(), likely)
}

fn detach_pinned_link(pin: &Path) -> Result<(), DatapathError> {
    let is_program = ProgramImpl::fd_from_pinned_path(pin).is_ok();
    match Link::open(pin) {
        Ok(earlier) if !is_program => link::detach(&earlier),
        _ => Ok(()),
    }
}

/// Asks for the programs of the loopback interface, the first of every namespace: a kernel without tcx does not know the
/// question.
fn has_tcx() -> bool {
    const LOOPBACK: i32 = 1;
    let mut options =
        libbpf_sys::bpf_prog_query_opts { sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as _, ..Default::default() };
    // SAFETY: the options outlive the call, and name no arrays to write to.
    let result = unsafe { libbpf_sys::bpf_prog_query_opts(LOOPBACK, libbpf_sys::BPF_TCX_INGRESS, &raw mut options) };
    result != -libc::EINVAL
}

#[cfg(test)]
mod tests;
