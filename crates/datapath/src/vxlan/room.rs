//! How many addresses were learned: in all, in each segment, behind each port. The programs count those that come, user space
//! those that go, each in a table of its own, since the kernel offers user space no addition that a program cannot come
//! between. What is missed where both change one entry at once is put right whenever the table is listed.

use super::Vtep;
use super::abi::{FDB_LEARNED, FDB_PORT, FdbEntry, VTEP_MACS_ALL, VTEP_MACS_FIRST, of_circuit};
use crate::error::DatapathError;

/// A count that is being made.
#[derive(Debug)]
pub(super) struct Room {
    vnis: u32,
    /// Those that came before the table was listed, and those of them that were found in it.
    counts: Vec<(u32, u32)>,
}

impl Room {
    /// An entry is in the table and stays there.
    pub(super) fn stays(&mut self, entry: &FdbEntry) {
        for place in places(entry, self.vnis) {
            if let Some((_, found)) = self.counts.get_mut(place as usize) {
                *found += 1;
            }
        }
    }
}

impl Vtep {
    /// Begins to count; before the table is listed, so that what comes meanwhile is at worst counted twice until the next time.
    pub(super) fn count_anew(&self) -> Result<Room, DatapathError> {
        let mut came = self.view.tables.learned.all::<u32, u32>()?;
        came.sort_unstable();
        Ok(Room { vnis: self.options.capacities.vnis, counts: came.into_iter().map(|(_, came)| (came, 0)).collect() })
    }

    pub(super) fn put_room(&self, room: &Room) -> Result<(), DatapathError> {
        let went = (0..).zip(&room.counts).map(|(place, (came, found))| (place, came.wrapping_sub(*found)));
        self.view.tables.forgotten.put_all::<u32, u32>(&went.collect::<Vec<_>>())
    }

    /// An entry that is no more, or no longer a learned one.
    pub(super) fn count_forgotten(&self, entry: Option<&FdbEntry>) -> Result<(), DatapathError> {
        let forgotten = &self.view.tables.forgotten;
        entry.into_iter().flat_map(|entry| places(entry, self.options.capacities.vnis)).try_for_each(|place| {
            let went: u32 = forgotten.get(&place)?.unwrap_or_default();
            forgotten.put(&place, &went.wrapping_add(1))
        })
    }
}

/// Where an entry counts: nowhere unless it was learned.
fn places(entry: &FdbEntry, vnis: u32) -> impl Iterator<Item = u32> + use<> {
    let is_learned = entry.origin == FDB_LEARNED;
    let port = (entry.kind == FDB_PORT).then(|| VTEP_MACS_FIRST + vnis + of_circuit(entry.target).0);
    [Some(VTEP_MACS_ALL), Some(VTEP_MACS_FIRST + entry.vni_slot), port]
        .into_iter()
        .flatten()
        .filter(move |_| is_learned)
}
