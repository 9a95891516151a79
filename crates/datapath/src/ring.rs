//! A ring buffer in which programs tell user space something.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use crate::error::DatapathError;

/// The records of one ring, read as `T`. One reader at a time; readable (`AsFd`) when there is something to take.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    map: &'static str,
    ring: RingBuffer<'static>,
    taken: Rc<RefCell<Vec<T>>>,
    _handle: MapHandle,
}

impl<T: 'static> Ring<T> {
    /// Of the map named `map`; records that `read` makes nothing of are left out.
    pub(crate) fn of_map(
        map: &'static str,
        handle: MapHandle,
        read: impl Fn(&[u8]) -> Option<T> + 'static,
    ) -> Result<Self, DatapathError> {
        let taken = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&taken);
        let keep = move |record: &[u8]| {
            sink.borrow_mut().extend(read(record));
            0
        };
        let failed = |source| DatapathError::Map { map, what: "reading", source };
        let mut builder = RingBufferBuilder::new();
        builder.add(&handle, keep).map_err(failed)?;
        let ring = builder.build().map_err(failed)?;
        Ok(Self { map, ring, taken, _handle: handle })
    }

    /// What came since the last time, oldest first, of at most `records_max` records. Never waits.
    pub(crate) fn take(&self, records_max: usize) -> Result<Vec<T>, DatapathError> {
        let count = self.ring.consume_raw_n(records_max);
        if count < 0 {
            let source = libbpf_rs::Error::from_raw_os_error(-count);
            return Err(DatapathError::Map { map: self.map, what: "reading", source });
        }
        Ok(self.taken.take())
    }
}

impl<T> AsFd for Ring<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring buffer owns the descriptor and keeps it open as long as `self` lives.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }
}
