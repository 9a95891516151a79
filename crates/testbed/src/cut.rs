//! Frames taken away from a switch that runs, without a word to whoever set it up.

use std::path::Path;

use libbpf_rs::ProgramMut;
use weft_datapath::DatapathError;
use weft_datapath::hook::{self, Attached, Place};

use crate::detour::Detour;

/// What the names of programs that take frames away begin with.
const NAME: &str = "lose_";

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
        match Detour::find(ifindex, interface)? {
            Some(detour) => {
                detour.take_place(xdp, interface)?;
                Ok(Self(Some(Means::Detour(detour))))
            }
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
        if Detour::is_kept(pin) {
            let detour = Detour::resume(pin, interface, NAME)?;
            return Ok(detour.map(|detour| Self(Some(Means::Detour(detour)))));
        }
        if pin.exists() { Ok(Attached::resume(pin)?.map(Self::from)) } else { Ok(None) }
    }
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
