//! Programs in front of whatever an interface has, which outlive the process that put them there. A pin says so from before a program is
//! at work until after it is off again: whoever is killed between leaves what [`take_off`] brings back.

use std::path::Path;

use libbpf_rs::ProgramMut;
use weft_datapath::hook::{self, Place};
use weft_datapath::pin::remove_pin;
use weft_datapath::{DatapathError, interface};

use crate::detour::Detour;

/// Puts `tc` in front of all on TC, or, where an XDP program is, `xdp` in its place, after `go_on_with` has heard of that one. Nothing is
/// kept at `pin`.
pub(crate) fn put(
    pin: &Path,
    interface: &str,
    [tc, xdp]: [&ProgramMut<'_>; 2],
    go_on_with: impl FnOnce(&Detour) -> Result<(), DatapathError>,
) -> Result<(), DatapathError> {
    let ifindex = interface::index_of(interface)?;
    match Detour::find(ifindex, interface)? {
        None => hook::attach_kept(tc, ifindex, interface, Place::First, pin),
        Some(detour) => {
            go_on_with(&detour)?;
            detour.keep(pin)?;
            detour.take_place(xdp, interface)
        }
    }
}

/// Takes off what is kept there, whose XDP program's name begins so, at an interface of the caller's namespace. It is no error if
/// nothing is, or if whoever had the place of an XDP program has put another one there.
pub(crate) fn take_off(pin: &Path, interface: &str, xdp: &str) -> Result<(), DatapathError> {
    if let Some((kept, detour)) = Detour::kept(pin, interface, xdp)? {
        if let Some(detour) = detour {
            detour.end()?;
        }
        remove_pin(&kept)?;
    }
    if pin.exists() { hook::detach_pinned(pin) } else { Ok(()) }
}

/// Whether what is kept there is at work.
pub(crate) fn is_on(pin: &Path, interface: &str, xdp: &str) -> Result<bool, DatapathError> {
    match Detour::kept(pin, interface, xdp)? {
        Some((_, detour)) => Ok(detour.is_some()),
        None => Ok(pin.exists() && hook::is_pinned_on(pin, interface::index_of(interface)?)),
    }
}
