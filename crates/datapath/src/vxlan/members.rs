//! Which segments another VTEP may send into. Those that an entry of the operator or of the directory names may, as long as one
//! does, and those of [`Vtep::set_members`]; where no list says otherwise, those that floods go to, and what [`Vtep::add_peer`] names.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::abi::{FDB_LEARNED, FDB_PEER, FdbEntry, FdbKey, VtepMember};
use super::segment::Vni;
use super::{Vtep, VtepView};
use crate::error::DatapathError;

/// Why a VTEP is a member of a segment.
pub(super) type Members = BTreeMap<(u32, [u8; 4]), Reasons>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reasons {
    /// How many entries that were told name it.
    entries: u32,
    /// By [`Vtep::set_members`].
    is_named: bool,
}

/// In the table, for whoever takes it over; the programs only ask whether there is a member.
const TOLD: u32 = 1;
const NAMED: u32 = 2;

impl Reasons {
    fn word(self) -> u32 {
        u32::from(self.entries > 0) * TOLD + u32::from(self.is_named) * NAMED
    }
}

impl Vtep {
    /// Names the VTEPs that may send into a segment with [`Senders::Named`](super::Senders::Named), beside those that its entries
    /// name; those that were named before may no longer.
    ///
    /// # Errors
    /// [`DatapathError::Map`], for example when there is no room.
    pub fn set_members(&mut self, vni: Vni, members: &BTreeSet<Ipv4Addr>) -> Result<(), DatapathError> {
        let all = (vni.get(), [0; 4])..=(vni.get(), [255; 4]);
        let named = self.members.range(all).filter(|(_, why)| why.is_named);
        let before: BTreeSet<[u8; 4]> = named.map(|((_, peer), _)| *peer).collect();
        let after: BTreeSet<[u8; 4]> = members.iter().map(Ipv4Addr::octets).collect();
        if before == after {
            return Ok(());
        }
        for peer in before.symmetric_difference(&after) {
            self.change_member(vni.get(), *peer, |why| why.is_named = after.contains(peer))?;
        }
        self.forget_found()
    }

    /// A VTEP goes that was named somewhere.
    pub(super) fn forget_member(&mut self, peer: Ipv4Addr) -> Result<(), DatapathError> {
        let of_peer = self.members.keys().filter(|(_, of)| *of == peer.octets());
        let vnis: Vec<u32> = of_peer.map(|(vni, _)| *vni).collect();
        vnis.into_iter().try_for_each(|vni| self.change_member(vni, peer.octets(), |why| why.is_named = false))
    }

    /// An entry is there: if it was told, its VTEP is a member.
    pub(super) fn add_member(&mut self, key: &FdbKey, entry: &FdbEntry) -> Result<(), DatapathError> {
        if !is_told(entry) {
            return Ok(());
        }
        self.change_member(key.vni, entry.place, |why| why.entries += 1)
    }

    /// It is no more.
    pub(super) fn drop_member(&mut self, key: &FdbKey, entry: &FdbEntry) -> Result<(), DatapathError> {
        if !is_told(entry) || !self.members.contains_key(&(key.vni, entry.place)) {
            return Ok(());
        }
        self.change_member(key.vni, entry.place, |why| why.entries = why.entries.saturating_sub(1))
    }

    fn change_member(
        &mut self,
        vni: u32,
        peer: [u8; 4],
        change: impl FnOnce(&mut Reasons),
    ) -> Result<(), DatapathError> {
        let why = self.members.entry((vni, peer)).or_default();
        let before = why.word();
        change(why);
        let after = why.word();
        if after == 0 {
            self.members.remove(&(vni, peer));
        }
        let member = VtepMember { vni, peer };
        match after {
            _ if after == before => Ok(()),
            0 => self.view.tables.members.delete(&member).map(drop),
            _ => self.view.put_member(member, after),
        }
    }

    /// In all segments without a list of their own.
    pub(super) fn add_everywhere(&self, peer: Ipv4Addr) -> Result<(), DatapathError> {
        self.view.put_member(VtepMember { vni: 0, peer: peer.octets() }, NAMED)
    }

    pub(super) fn drop_everywhere(&self, peer: Ipv4Addr) -> Result<(), DatapathError> {
        self.view.tables.members.delete(&VtepMember { vni: 0, peer: peer.octets() }).map(|_| ())
    }

    /// Counts what an earlier run left; members that nothing names any more go.
    pub(super) fn take_over_members(&mut self) -> Result<(), DatapathError> {
        for (member, word) in self.view.tables.members.all::<VtepMember, u32>()? {
            if member.vni != 0 {
                let why = Reasons { entries: 0, is_named: word & NAMED != 0 };
                self.members.insert((member.vni, member.peer), why);
            }
        }
        let before: Vec<(u32, [u8; 4])> = self.members.keys().copied().collect();
        for (key, entry) in self.view.tables.fdb.all::<FdbKey, FdbEntry>()? {
            self.add_member(&key, &entry)?;
        }
        before.into_iter().try_for_each(|(vni, peer)| self.settle_member(vni, peer))
    }

    /// Puts into the table why a VTEP that was found there is a member.
    fn settle_member(&mut self, vni: u32, peer: [u8; 4]) -> Result<(), DatapathError> {
        let member = VtepMember { vni, peer };
        match self.members.get(&(vni, peer)).map_or(0, |why| why.word()) {
            0 => {
                self.members.remove(&(vni, peer));
                self.view.tables.members.delete(&member).map(drop)
            }
            word => self.view.put_member(member, word),
        }
    }
}

impl VtepView {
    fn put_member(&self, member: VtepMember, why: u32) -> Result<(), DatapathError> {
        self.tables.members.put(&member, &why)
    }
}

/// Whether an entry makes its VTEP a member.
fn is_told(entry: &FdbEntry) -> bool {
    entry.kind == FDB_PEER && entry.origin != FDB_LEARNED
}
