//! CPUs that frames for several ports are copied on: those that this process may use, each for what comes in on it.

use libbpf_rs::{Object, OpenObject};

use super::abi::{TRILL_COPIERS, TrillCopying};
use super::{XdpMode, spread};
use crate::error::DatapathError;
use crate::object;

const COPIERS: &str = "trill_copiers";
const COPYING: &str = ".rodata.trill_copying";
const COPIER: &str = "trill_copier";
const PLACES: usize = TRILL_COPIERS as usize;

/// The CPU that frames are copied on, by the lowest bits of the number of that which they came in on.
pub(super) struct Copiers([u32; PLACES]);

impl Copiers {
    /// # Errors
    /// [`DatapathError::Config`] if this process may use none of the first 1,024 CPUs.
    pub(super) fn of_this_process() -> Result<Self, DatapathError> {
        let allowed = rustix::thread::sched_getaffinity(None).ok();
        let cpus = allowed.iter().flat_map(|set| (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)));
        let none =
            || DatapathError::Config { field: "cpus", why: "this process may use none that can be named".to_owned() };
        Self::of(&cpus.map(|cpu| cpu as u32).collect::<Vec<u32>>()).ok_or_else(none)
    }

    /// Each CPU copies what comes in on it, if there are no more than places; `None` if there are none.
    fn of(cpus: &[u32]) -> Option<Self> {
        let any = |place: usize| cpus.get(place.checked_rem(cpus.len())?);
        let own = |place: usize| cpus.iter().find(|cpu| **cpu as usize % PLACES == place);
        let of_place = |place| own(place).or_else(|| any(place)).copied();
        (0..PLACES).map(of_place).collect::<Option<Vec<u32>>>()?.try_into().ok().map(Self)
    }

    /// Before the programs are loaded.
    pub(super) fn prepare(&self, open: &mut OpenObject, mode: XdpMode) -> Result<(), DatapathError> {
        let in_place = u32::from(mode == XdpMode::Generic);
        object::set_constants(open, COPYING, &TrillCopying { in_place, cpu: self.0 });
        object::set_max_entries(open, COPIERS, spread::entries(&self.0))
    }

    pub(super) fn begin(&self, object: &Object) -> Result<(), DatapathError> {
        let mut cpus = self.0.to_vec();
        cpus.sort_unstable();
        cpus.dedup();
        spread::run_on(object, COPIERS, COPIER, &cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_copies_what_comes_in_on_it_and_others_lend_a_hand() {
        let places = |cpus: &[u32]| Copiers::of(cpus).map(|copiers| copiers.0);
        assert_eq!(places(&[]), None);
        assert_eq!(places(&[5]), Some([5; PLACES]));
        let all: Vec<u32> = (0..16).collect();
        assert_eq!(places(&all).unwrap().to_vec(), all);
        // CPU 3 and 4 for themselves; the others in turn.
        assert_eq!(places(&[3, 4, 20]).unwrap()[..8], [3, 4, 20, 3, 4, 20, 3, 4]);
        let many: Vec<u32> = (0..128).collect();
        assert_eq!(places(&many).unwrap().to_vec(), all, "each serves eight");
    }
}
