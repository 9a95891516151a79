//! Frames taken away from a switch that runs, without a word to whoever set it up.

use std::path::Path;

use libbpf_rs::ProgramMut;
use weft_datapath::DatapathError;
use weft_datapath::hook::{self, Attached, Place};

use crate::detour::Detour;
use crate::kept;

/// What the names of programs that take frames away begin with.
const NAME: &str = "lose_";

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
        match Detour::find(ifindex, interface)? {
            Some(detour) => {
                detour.take_place(xdp, interface)?;
                Ok(Self(Means::Detour(detour)))
            }
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

/// Ends what [`crate::loss::Cuts::cut_for_good`] has begun with this `pin` at an interface of the caller's namespace; it is no error if
/// nothing of it is left.
///
/// # Errors
/// [`DatapathError::Pin`] or [`DatapathError::Program`].
pub fn mend(pin: &Path, interface: &str) -> Result<(), DatapathError> {
    kept::take_off(pin, interface, NAME)
}

/// Whether an interface of the caller's namespace is cut so.
///
/// # Errors
/// [`DatapathError::NoInterface`] or [`DatapathError::Pin`].
pub fn is_cut(pin: &Path, interface: &str) -> Result<bool, DatapathError> {
    kept::is_on(pin, interface, NAME)
}

/// Whether it is so in the place of an XDP program: who takes such a place later must give it back first.
pub fn has_place(pin: &Path) -> bool {
    Detour::is_kept(pin)
}
