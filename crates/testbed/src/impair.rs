//! Links that are worse than they should be, at the end where frames come in. They outlive the process that made them so, by pins,
//! and whatever programs are there go on behind ours.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use libbpf_rs::Object;
use weft_datapath::DatapathError;
use weft_datapath::abi::Abi;
use weft_datapath::object;
use weft_datapath::pin::{pin_fd, remove_pin};
use weft_datapath::table::Table;

use crate::abi::{IMPAIR_OUTCOMES, ImpairConstants};
use crate::detour::Detour;
use crate::files;
use crate::kept;

const CONSTANTS: &str = ".rodata.impair";
const COUNTERS: &str = "impair_counters";
const BEHIND: &str = "impair_behind";
const XDP: &str = "impair_xdp";
/// FCS, preamble, start delimiter and gap: on the line, and not in what the kernel counts.
const OVERHEAD_BYTES: u32 = 24;
const TICKS_PER_NS: u128 = 1024;

/// What becomes of the frames that come in by an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impair {
    /// Share that is lost, percent.
    pub loss_percent: f64,
    /// Decides which.
    pub seed: u64,
    /// What more than a line of this rate would bring is dropped; bits per second on layer 1.
    pub rate_bps: Option<u64>,
    /// Longest wait for that line, nanoseconds: the depth of its queue.
    pub queue_ns: u64,
}

impl Impair {
    fn constants(&self) -> ImpairConstants {
        let threshold = (self.loss_percent / 100.0 * (1u64 << 32) as f64).round() as u64;
        let ticks = |rate: u64| (8_000_000_000 * TICKS_PER_NS / u128::from(rate.max(1))).max(1) as u64;
        ImpairConstants {
            seed: self.seed,
            threshold,
            ticks_per_byte: self.rate_bps.map_or(0, ticks),
            queue_ns: self.queue_ns,
            overhead_bytes: OVERHEAD_BYTES,
            zero: 0,
        }
    }

    /// From now on it is so at an interface of the caller's namespace, in front of all other programs, until [`take_off`] with the
    /// same `pin`. Nothing is there already.
    ///
    /// # Errors
    /// [`DatapathError::NoInterface`] or any other [`DatapathError`]; then it is as before.
    pub fn put(&self, pin: &Path, interface: &str) -> Result<(), DatapathError> {
        let put = self.try_to_put(pin, interface);
        if put.is_err() {
            take_off(pin, interface)?;
        }
        put
    }

    fn try_to_put(&self, pin: &Path, interface: &str) -> Result<(), DatapathError> {
        let mut open = files::IMPAIR.open()?;
        object::set_constants(&mut open, CONSTANTS, &self.constants());
        let object = files::IMPAIR.load(open)?;
        // Whoever is killed behind this leaves pins that lead to what was there.
        for (map, pin) in [COUNTERS, BEHIND].into_iter().zip(map_pins(pin)) {
            remove_pin(&pin)?;
            pin_fd(object::map_handle(&object, map)?.as_fd(), &pin)?;
        }
        let [tc, xdp] = ["impair_tc", XDP].map(|name| object::program(&object, name));
        kept::put(pin, interface, [&tc, &xdp], |detour| go_on_with(&object, detour))
    }
}

/// The program that was there has the frames next.
fn go_on_with(object: &Object, detour: &Detour) -> Result<(), DatapathError> {
    object::update(object, BEHIND, 0u32.bytes(), &detour.original().as_raw_fd().to_ne_bytes())
}

/// Makes the frames of an interface of the caller's namespace as good as before; it is no error if nothing is kept there.
///
/// # Errors
/// [`DatapathError::Pin`] or [`DatapathError::Program`].
pub fn take_off(pin: &Path, interface: &str) -> Result<(), DatapathError> {
    kept::take_off(pin, interface, XDP)?;
    map_pins(pin).iter().try_for_each(|pin| remove_pin(pin))
}

/// What has become of the frames since they are worse: [`IMPAIR_OUTCOMES`] with their numbers. `None`: nothing is kept there.
///
/// # Errors
/// [`DatapathError::Map`].
pub fn counters(pin: &Path) -> Result<Option<Vec<(&'static str, u64)>>, DatapathError> {
    let [counters, _] = map_pins(pin);
    if !counters.exists() {
        return Ok(None);
    }
    Table::at(&counters, COUNTERS)?.counters(&IMPAIR_OUTCOMES).map(Some)
}

/// Of the counters, and of the map of programs, which is emptied when nobody holds it.
fn map_pins(pin: &Path) -> [PathBuf; 2] {
    ["-counters", "-behind"].map(|what| {
        let mut path = pin.as_os_str().to_owned();
        path.push(what);
        path.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_rates_are_what_the_program_compares_with() {
        let threshold = |loss_percent| Impair { loss_percent, ..Impair::default() }.constants().threshold;
        assert_eq!([0.0, 50.0, 100.0].map(threshold), [0, 1 << 31, 1 << 32]);
        let ticks = |rate| Impair { rate_bps: rate, ..Impair::default() }.constants().ticks_per_byte;
        assert_eq!([None, Some(8_000_000_000), Some(1_000_000)].map(ticks), [0, 1024, 8_192_000]);
    }
}
