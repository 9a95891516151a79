//! Whether the machine has the memory that a run takes, where its engine can tell ([`weft_scenario::engine::Engine::memory`]).
//!
//! What is available is the kernel's word, so it is an argument; [`available`] asks for it.

use weft_scenario::engine::EngineError;
use weft_scenario::machine::{MEMINFO, available_memory};
use weft_scenario::units::Bytes;

/// Runs that take more than this are announced.
const WORTH_SAYING: Bytes = Bytes(1 << 30);

/// Memory that this machine's programs can have now; `None` if its kernel does not say.
pub fn available() -> Option<Bytes> {
    available_memory(&std::fs::read_to_string(MEMINFO).ok()?)
}

/// A line for people about a run that takes so much, if it is much; an error if there is less than that.
pub fn judge(need: Bytes, available: Option<Bytes>) -> Result<Option<String>, EngineError> {
    match available {
        Some(available) if need > available => Err(EngineError::NotFit {
            what: format!("the run takes about {} of memory, and {} are available", gib(need), gib(available)),
            remedy: "choose a smaller fabric, fewer flows or a longer sampling interval, or a machine with more"
                .to_owned(),
        }),
        _ if need <= WORTH_SAYING => Ok(None),
        Some(available) => {
            Ok(Some(format!("memory: the run takes about {}, {} are available", gib(need), gib(available))))
        }
        None => Ok(Some(format!("memory: the run takes about {}; how much is available is not known", gib(need)))),
    }
}

/// How many runs that take so much fit beside each other, of so many that were wanted; one at least.
pub(crate) fn side_by_side(need: Bytes, available: Option<Bytes>, wanted: usize) -> usize {
    let room = available.map_or(u64::MAX, |available| available.0 / need.0.max(1));
    usize::try_from(room).unwrap_or(usize::MAX).clamp(1, wanted.max(1))
}

fn gib(bytes: Bytes) -> String {
    format!("{:.1} GiB", bytes.0 as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn what_there_is_not_enough_memory_for_is_refused_in_one_line() {
        let refused = judge(Bytes(3 * GIB), Some(Bytes(3 * GIB - 1))).expect_err("a byte is missing").to_string();
        let says = "the run takes about 3.0 GiB of memory, and 3.0 GiB are available; choose a smaller fabric";
        assert!(refused.starts_with(says) && !refused.contains('\n'), "{refused}");
        assert!(matches!(judge(Bytes(u64::MAX), Some(Bytes(0))), Err(EngineError::NotFit { .. })));
    }

    #[test]
    fn what_takes_much_is_announced_and_the_rest_is_not() {
        let says = |need, available: Option<u64>| judge(Bytes(need), available.map(Bytes)).expect("there is enough");
        let line = "memory: the run takes about 1.5 GiB, 22.0 GiB are available";
        assert_eq!(says(3 * GIB / 2, Some(22 * GIB)).as_deref(), Some(line));
        assert_eq!(says(GIB, Some(GIB)), None);
        assert_eq!(says(GIB, None), None);
        let unknown = says(9 * GIB, None).expect("it is much");
        assert!(unknown.ends_with("how much is available is not known"), "nobody is kept from trying: {unknown}");
    }

    #[test]
    fn runs_beside_each_other_share_what_is_there() {
        let fit = |need: u64, available: Option<u64>| side_by_side(Bytes(need), available.map(Bytes), 4);
        assert_eq!(
            [fit(3, Some(10)), fit(2, Some(10)), fit(11, Some(10)), fit(0, Some(10)), fit(9, None)],
            [3, 4, 1, 4, 4]
        );
    }
}
