//! A map's memory, shared with the programs that read it.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use libbpf_rs::Object;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::error::DatapathError;
use crate::object;

/// The values of an array, as words that others read at any time. The kernel keeps the map until this is gone.
#[derive(Debug)]
pub(super) struct Words {
    at: NonNull<AtomicU64>,
    words: usize,
}

impl Words {
    /// The first `words` of a map of a loaded object that user space may have in its memory.
    pub(super) fn of(object: &Object, map: &'static str, words: usize) -> Result<Self, DatapathError> {
        let handle = object::map_handle(object, map)?;
        let failed = |errno: rustix::io::Errno| DatapathError::Map {
            map,
            what: "sharing memory",
            source: libbpf_rs::Error::from_raw_os_error(errno.raw_os_error()),
        };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let length = words * size_of::<AtomicU64>();
        // SAFETY: a new mapping at a place that the kernel chooses, of a map that has at least this length: else it refuses.
        let at = unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, handle.as_fd(), 0) };
        let at = NonNull::new(at.map_err(failed)?.cast()).expect("no mapping is at address 0");
        Ok(Self { at, words })
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: mapped for as long as `self` lives, aligned to a page, and any bytes are words; they are only touched as atomics.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.words) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no slice of it outlives `self`.
        let unmapped = unsafe { munmap(self.at.as_ptr().cast(), self.words * size_of::<AtomicU64>()) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

// SAFETY: it owns the mapping, and all access is atomic.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}
