//! Packets that came to a ToR for AAs which are not behind it: a sample of their ends, out of the kernel (VL2 4.3.2).

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use libbpf_rs::MapHandle;

use crate::abi::{Abi, StaleSample};
use crate::error::DatapathError;
use crate::pin;
use crate::ring::Ring;

pub(crate) const STALE_SAMPLES: &str = "stale_samples";

/// Samples that one [`StaleSamples::take`] returns at most.
const TAKE_MAX: usize = 1024;

/// The ends of a packet that the ToR dropped, counted as `no_such_host`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StaleEnds {
    /// The AA that it wanted to go to.
    pub aa: Ipv4Addr,
    /// The address that it came from.
    pub source_aa: Ipv4Addr,
}

/// The samples of one ToR. One reader at a time; readable (`AsFd`) when there is something to take.
#[derive(Debug)]
pub struct StaleSamples(Ring<StaleEnds>);

impl StaleSamples {
    /// The samples of the data path that is pinned at `dir`.
    ///
    /// # Errors
    /// [`DatapathError::NotPinned`], [`DatapathError::NoRights`] or [`DatapathError::Map`].
    pub fn open_pinned(dir: impl AsRef<Path>) -> Result<Self, DatapathError> {
        Self::of_map(pin::open_map(dir.as_ref(), STALE_SAMPLES)?)
    }

    pub(crate) fn of_map(map: MapHandle) -> Result<Self, DatapathError> {
        let read = |bytes: &[u8]| {
            let sample = bytes.get(..size_of::<StaleSample>()).and_then(StaleSample::from_bytes)?;
            Some(StaleEnds { aa: sample.aa.into(), source_aa: sample.source_aa.into() })
        };
        Ring::of_map(STALE_SAMPLES, map, read).map(Self)
    }

    /// What came since the last time, oldest first, at most a thousand. Never waits.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn take(&self) -> Result<Vec<StaleEnds>, DatapathError> {
        self.0.take(TAKE_MAX)
    }
}

impl AsFd for StaleSamples {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
