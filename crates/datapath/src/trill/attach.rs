//! XDP links: a program on an interface in the driver or in the stack, kept by a pin across restarts and replaced without
//! a gap.
//!
//! libbpf-rs has no call for the mode, so this goes through libbpf's own.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use libbpf_rs::{Link, ProgramMut};

use crate::error::DatapathError;
use crate::pin::{pin_fd, remove_pin};
use crate::{link, refusal};

/// Where in the kernel an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before anything is allocated.
    Native,
    /// In the stack, on a copy: a third of the speed and more latency.
    Generic,
}

impl XdpMode {
    pub(crate) fn flags(self) -> u32 {
        match self {
            Self::Native => libbpf_sys::XDP_FLAGS_DRV_MODE,
            Self::Generic => libbpf_sys::XDP_FLAGS_SKB_MODE,
        }
    }
}

/// A program on an interface; without a pin it ends with this value.
#[derive(Debug)]
pub(crate) struct PortLink(OwnedFd);

impl PortLink {
    /// Attaches `program` to the interface. If a link on this interface is pinned already, its program is replaced in one
    /// step: every frame meets either the old or the new one.
    pub(crate) fn attach(
        program: &ProgramMut<'_>,
        ifindex: u32,
        interface: &str,
        mode: XdpMode,
        pin: Option<&Path>,
    ) -> Result<Self, DatapathError> {
        let failed = |what: &str, source| DatapathError::from_kernel(format!("{what} on `{interface}`"), source);
        if let Some(pin) = pin
            && let Ok(mut link) = Link::open(pin)
        {
            if link::is_on(&link, ifindex) {
                link.update_prog(program).map_err(|source| failed("replacing the XDP program", source))?;
                let kept = link.as_fd().try_clone_to_owned();
                return kept.map(Self).map_err(|source| DatapathError::Pin {
                    what: "holding",
                    path: pin.into(),
                    source,
                });
            }
            remove_pin(pin)?;
        }
        let refused = |source| match mode {
            XdpMode::Native => refusal::explain(program, (ifindex, interface), "xdp = \"generic\"", source),
            XdpMode::Generic => failed("attaching XDP", source),
        };
        let index = i32::try_from(ifindex).expect("interface indexes are positive ints in the kernel");
        let link = Self(link::create(program.as_fd(), index, libbpf_sys::BPF_XDP, mode.flags()).map_err(refused)?);
        if let Some(pin) = pin {
            pin_fd(link.0.as_fd(), pin)?;
        }
        Ok(link)
    }

    /// Takes the program off at once.
    pub(crate) fn detach(self) -> Result<(), DatapathError> {
        // SAFETY: the descriptor is a link's and open.
        let result = unsafe { libbpf_sys::bpf_link_detach(self.0.as_raw_fd()) };
        match -result {
            // The interface has vanished, and the program with it.
            0 | libc::ENOENT | libc::ENODEV | libc::ENOLINK | libc::EINVAL => Ok(()),
            errno => Err(DatapathError::from_kernel("detaching XDP", libbpf_rs::Error::from_raw_os_error(errno))),
        }
    }
}
