//! Packets that came to a ToR for AAs which are not behind it: a sample of their ends, out of the kernel (VL2 4.3.2).
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::rc::Rc;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use crate::abi::{Abi, StaleSample};
use crate::error::DatapathError;
use crate::pin;

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
pub struct StaleSamples {
    ring: RingBuffer<'static>,
    taken: Rc<RefCell<Vec<StaleEnds>>>,
    _map: MapHandle,
}

impl StaleSamples {
    /// The samples of the data path that is pinned at `dir`.
    ///
    /// # Errors
    /// [`DatapathError::NotPinned`], [`DatapathError::NoRights`] or [`DatapathError::Map`].
    pub fn open_pinned(dir: impl AsRef<Path>) -> Result<Self, DatapathError> {
        Self::of_map(pin::open_map(dir.as_ref(), STALE_SAMPLES)?)
    }

    pub(crate) fn of_map(map: MapHandle) -> Result<Self, DatapathError> {
        let taken = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&taken);
        let keep = move |bytes: &[u8]| {
            if let Some(sample) = bytes.get(..size_of::<StaleSample>()).and_then(StaleSample::from_bytes) {
                sink.borrow_mut().push(StaleEnds { aa: sample.aa.into(), source_aa: sample.source_aa.into() });
            }
            0
        };
        let failed = |source| DatapathError::Map { map: STALE_SAMPLES, what: "reading", source };
        let mut builder = RingBufferBuilder::new();
        builder.add(&map, keep).map_err(failed)?;
        let ring = builder.build().map_err(failed)?;
        Ok(Self { ring, taken, _map: map })
    }

    /// What came since the last time, oldest first, at most a thousand. Never waits.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn take(&self) -> Result<Vec<StaleEnds>, DatapathError> {
        let count = self.ring.consume_raw_n(TAKE_MAX);
        if count < 0 {
            let source = libbpf_rs::Error::from_raw_os_error(-count);
            return Err(DatapathError::Map { map: STALE_SAMPLES, what: "reading", source });
        }
        Ok(self.taken.take())
    }
}

impl AsFd for StaleSamples {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring buffer owns the descriptor and keeps it open as long as `self` lives.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }
}
