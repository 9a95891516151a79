//! Which segments another VTEP may send into. Those that a segment's floods go to may; so may those that an entry of the
//! operator or of the directory names, as long as one does; and what [`Vtep::add_peer`] names, where no list says otherwise.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::abi::{FDB_LEARNED, FDB_PEER, FdbEntry, FdbKey, VtepMember};
use super::{Vtep, VtepView};
use crate::error::DatapathError;

/// How many entries that were told name a VTEP in a segment.
pub(super) type Members = BTreeMap<(u32, [u8; 4]), u32>;

impl Vtep {
    /// An entry is there: if it was told, its VTEP is a member.
    pub(super) fn add_member(&mut self, key: &FdbKey, entry: &FdbEntry) -> Result<(), DatapathError> {
        let Some(member) = member_of(key, entry) else { return Ok(()) };
        let count = self.members.entry((member.vni, member.peer)).or_default();
        *count += 1;
        if *count == 1 { self.view.put_member(member) } else { Ok(()) }
    }

    /// It is no more.
    pub(super) fn drop_member(&mut self, key: &FdbKey, entry: &FdbEntry) -> Result<(), DatapathError> {
        let Some(member) = member_of(key, entry) else { return Ok(()) };
        let Some(count) = self.members.get_mut(&(member.vni, member.peer)) else { return Ok(()) };
        *count -= 1;
        if *count == 0 {
            self.members.remove(&(member.vni, member.peer));
            self.view.tables.members.delete(&member)?;
        }
        Ok(())
    }

    /// In all segments without a list of their own.
    pub(super) fn add_everywhere(&self, peer: Ipv4Addr) -> Result<(), DatapathError> {
        self.view.put_member(VtepMember { vni: 0, peer: peer.octets() })
    }

    pub(super) fn drop_everywhere(&self, peer: Ipv4Addr) -> Result<(), DatapathError> {
        self.view.tables.members.delete(&VtepMember { vni: 0, peer: peer.octets() }).map(|_| ())
    }

    /// Counts what an earlier run left; members that nothing names any more go.
    pub(super) fn take_over_members(&mut self) -> Result<(), DatapathError> {
        for (key, entry) in self.view.tables.fdb.all::<FdbKey, FdbEntry>()? {
            self.add_member(&key, &entry)?;
        }
        for (member, _) in self.view.tables.members.all::<VtepMember, u32>()? {
            if member.vni != 0 && !self.members.contains_key(&(member.vni, member.peer)) {
                self.view.tables.members.delete(&member)?;
            }
        }
        Ok(())
    }
}

impl VtepView {
    fn put_member(&self, member: VtepMember) -> Result<(), DatapathError> {
        self.tables.members.put(&member, &1u32)
    }
}

fn member_of(key: &FdbKey, entry: &FdbEntry) -> Option<VtepMember> {
    let told = entry.kind == FDB_PEER && entry.origin != FDB_LEARNED;
    told.then_some(VtepMember { vni: key.vni, peer: entry.place })
}
