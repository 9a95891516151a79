//! A sample of the frames as they leave: what the programs redirect no packet socket sees.

use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use libbpf_rs::MapHandle;

use super::abi::{OUTCOMES, TrillTapped};
use crate::error::DatapathError;
use crate::pin;
use crate::ring::Ring;
use crate::table::Table;

pub(super) const RING: &str = "trill_tap";
pub(super) const EVERY: &str = ".data.trill_tap_every";

/// Records that one [`Tap::take`] returns at most.
const TAKE_MAX: usize = 4096;

/// A frame as it left, or as it came if it was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tapped {
    /// When, on the kernel's monotonic clock.
    pub time_ns: u64,
    /// The port that it came by; of a copy, the one that it left by.
    pub port: u8,
    /// What became of it: one of [`OUTCOMES`].
    pub outcome: &'static str,
    /// Its length, bytes.
    pub length: u32,
    /// Its start, at most [`TRILL_TAP_BYTES`](super::abi::TRILL_TAP_BYTES).
    pub bytes: Vec<u8>,
}

/// The tap of one RBridge, open as long as this lives. One reader at a time; readable (`AsFd`) when there is something.
#[derive(Debug)]
pub struct Tap {
    ring: Ring<Tapped>,
    every: Table,
}

impl Tap {
    /// Opens the tap of the data path that is pinned at `dir`: one frame in `every`, by chance.
    ///
    /// # Errors
    /// [`DatapathError::NotPinned`], [`DatapathError::NoRights`] or [`DatapathError::Map`].
    pub fn open_pinned(dir: impl AsRef<Path>, every: u32) -> Result<Self, DatapathError> {
        let dir = dir.as_ref();
        Self::of_maps(pin::open_map(dir, RING)?, Table::pinned(dir, EVERY)?, every)
    }

    pub(super) fn of_maps(ring_map: MapHandle, every_map: Table, every: u32) -> Result<Self, DatapathError> {
        let tap = Self { ring: Ring::of_map(RING, ring_map, read)?, every: every_map };
        tap.take()?; // what a reader before us left
        tap.set(every.max(1))?;
        Ok(tap)
    }

    /// What came since the last time, oldest first. Never waits.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn take(&self) -> Result<Vec<Tapped>, DatapathError> {
        self.ring.take(TAKE_MAX)
    }

    fn set(&self, every: u32) -> Result<(), DatapathError> {
        self.every.put(&0u32, &every)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // A tap that nobody reads costs a little and does no harm.
        let _left_open = self.set(0);
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

fn read(record: &[u8]) -> Option<Tapped> {
    let start = offset_of!(TrillTapped, bytes);
    let kept = u16::from_ne_bytes(record.get(offset_of!(TrillTapped, kept)..)?.get(..2)?.try_into().ok()?);
    Some(Tapped {
        time_ns: u64::from_ne_bytes(record.get(..8)?.try_into().ok()?),
        port: *record.get(offset_of!(TrillTapped, port))?,
        outcome: OUTCOMES.get(usize::from(*record.get(offset_of!(TrillTapped, outcome))?))?,
        length: u32::from_ne_bytes(record.get(offset_of!(TrillTapped, length)..)?.get(..4)?.try_into().ok()?),
        bytes: record.get(start..start + usize::from(kept))?.to_vec(),
    })
}
