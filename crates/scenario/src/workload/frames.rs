//! What experiments with the test centre share: sizes of frames, runs, and what of them makes sense.

use serde::{Deserialize, Serialize};

use super::WorkloadError;
use crate::units::Nanos;

/// Sizes of Ethernet frames with FCS, bytes.
pub(super) const FRAME_LEAST: u32 = 64;
/// The largest frame of a station whose MTU is 1500 bytes.
pub(super) const FRAME_MOST: u32 = 1518;
/// Most runs of one number.
const RUNS_MOST: u32 = 1_000;

/// How a number is measured: several short runs, of which the least disturbed counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// How many.
    pub count: u32,
    /// How long each takes.
    pub each: Nanos,
}

impl Runs {
    pub(super) fn check(self) -> Result<(), WorkloadError> {
        range("cost.count", self.count, 1, RUNS_MOST)?;
        check_time("cost.each", self.each)
    }
}

pub(super) fn range(setting: &'static str, value: u32, least: u32, most: u32) -> Result<(), WorkloadError> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(WorkloadError::DirectoryRange { setting, value, least, most }),
    }
}

pub(super) fn check_time(setting: &'static str, time: Nanos) -> Result<(), WorkloadError> {
    if time.0 == 0 { Err(WorkloadError::ZeroTime { setting }) } else { Ok(()) }
}

pub(super) fn check_sizes(setting: &'static str, sizes: &[u32]) -> Result<(), WorkloadError> {
    check_distinct(setting, sizes)?;
    sizes.iter().try_for_each(|bytes| range(setting, *bytes, FRAME_LEAST, FRAME_MOST))
}

/// A list has something in it, and nothing twice.
pub(super) fn check_distinct<T: PartialEq>(setting: &'static str, list: &[T]) -> Result<(), WorkloadError> {
    let twice = list.iter().enumerate().any(|(place, item)| list[..place].contains(item));
    if list.is_empty() || twice { Err(WorkloadError::NotAList { setting }) } else { Ok(()) }
}
