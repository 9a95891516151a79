//! Entries: told, removed, aged; and the addresses that ARP is answered for.

use std::net::Ipv4Addr;

use super::abi::{FDB_PEER, FDB_PORT, FdbEntry, FdbKey, VtepArp, VtepArpKey, VtepVni, circuit};
use super::entry::{Entry, Origin, To};
use super::segment::Vni;
use super::{Vtep, check_mac, now_ns};
use crate::error::DatapathError;

impl Vtep {
    /// Says where an address is, on the operator's word. Such an entry neither ages nor moves.
    ///
    /// # Errors
    /// As [`Self::set_entry`].
    pub fn static_entry(&mut self, vni: Vni, mac: [u8; 6], to: To) -> Result<(), DatapathError> {
        self.set_entry(vni, mac, to, Origin::Static)
    }

    /// Says where an address is, on the directory's word. Such an entry neither ages nor moves by frames.
    ///
    /// # Errors
    /// As [`Self::set_entry`].
    pub fn directory_entry(&mut self, vni: Vni, mac: [u8; 6], to: To) -> Result<(), DatapathError> {
        self.set_entry(vni, mac, to, Origin::Directory)
    }

    /// Says where an address is; an earlier entry for it is replaced.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for a segment, port or address that cannot be, or [`DatapathError::Map`] (no room).
    pub fn set_entry(&mut self, vni: Vni, mac: [u8; 6], to: To, origin: Origin) -> Result<(), DatapathError> {
        check_mac(mac)?;
        let vni_slot = self.state_of(vni)?.slot;
        let (kind, target, place) = match to {
            To::Remote(address) => (FDB_PEER, self.peer_index(address)?, address.octets()),
            To::Port(ifindex) => (FDB_PORT, circuit(self.member(vni, ifindex, 0)?, 0), ifindex.to_ne_bytes()),
            To::Vlan(ifindex, vlan) => {
                let vlan = vlan.get();
                (FDB_PORT, circuit(self.member(vni, ifindex, vlan)?, vlan), ifindex.to_ne_bytes())
            }
        };
        let value = FdbEntry { seen_ns: now_ns(), target, place, vni_slot, kind, origin: origin.code(), zero: [0; 2] };
        let key = FdbKey { vni: vni.get(), mac, zero: [0; 2] };
        let before: Option<FdbEntry> = self.view.tables.fdb.get(&key)?;
        self.view.tables.fdb.put(&key, &value)?;
        self.add_member(&key, &value)?;
        self.count_out(&key, before.as_ref())?;
        self.forget_found()
    }

    /// Forgets an address. Returns whether it was known.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn remove_entry(&mut self, vni: Vni, mac: [u8; 6]) -> Result<bool, DatapathError> {
        let key = FdbKey { vni: vni.get(), mac, zero: [0; 2] };
        let before: Option<FdbEntry> = self.view.tables.fdb.get(&key)?;
        let was_there = self.view.tables.fdb.delete(&key)?;
        self.count_out(&key, before.as_ref().filter(|_| was_there))?;
        self.forget_found()?;
        Ok(was_there)
    }

    /// What an entry counted for that is no more.
    fn count_out(&mut self, key: &FdbKey, before: Option<&FdbEntry>) -> Result<(), DatapathError> {
        self.count_forgotten(before)?;
        before.map_or(Ok(()), |before| self.drop_member(key, before))
    }

    /// Forgets learned entries that were not confirmed for as long as their segments say; returns them. `now_ns` as of
    /// [`now_ns`].
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn age_out(&mut self, now_ns: u64) -> Result<Vec<Entry>, DatapathError> {
        let ages: std::collections::BTreeMap<u32, u64> =
            self.view.tables.vnis.all::<u32, VtepVni>()?.iter().map(|(vni, state)| (*vni, state.age_ns)).collect();
        self.sweep(|entry| {
            let age_ns = ages.get(&entry.vni.get()).copied().unwrap_or(0);
            entry.origin == Origin::Learned && age_ns > 0 && entry.age_ns(now_ns) > age_ns
        })
    }

    /// Has ARP requests for an address answered with a MAC.
    ///
    /// # Errors
    /// [`DatapathError::Config`] for a segment or address that cannot be, or [`DatapathError::Map`] (no room).
    pub fn set_arp(&mut self, vni: Vni, address: Ipv4Addr, mac: [u8; 6]) -> Result<(), DatapathError> {
        check_mac(mac)?;
        self.state_of(vni)?;
        let key = VtepArpKey { vni: vni.get(), address: address.octets() };
        self.view.tables.arp.put(&key, &VtepArp { mac, zero: [0; 2] })
    }

    /// No longer answers for an address. Returns whether it did.
    ///
    /// # Errors
    /// [`DatapathError::Map`].
    pub fn remove_arp(&mut self, vni: Vni, address: Ipv4Addr) -> Result<bool, DatapathError> {
        self.view.tables.arp.delete(&VtepArpKey { vni: vni.get(), address: address.octets() })
    }

    /// Removes the entries that `goes` picks; returns them. Whatever it removes, what was learned is counted anew.
    pub(super) fn sweep(&mut self, goes: impl Fn(&Entry) -> bool) -> Result<Vec<Entry>, DatapathError> {
        let mut gone = Vec::new();
        let mut room = self.count_anew()?;
        for (key, value) in self.view.tables.fdb.all::<FdbKey, FdbEntry>()? {
            match Entry::of(&key, &value).filter(&goes) {
                Some(entry) if self.view.tables.fdb.delete(&key)? => {
                    self.drop_member(&key, &value)?;
                    gone.push(entry);
                }
                _ => room.stays(&value),
            }
        }
        self.put_room(&room)?;
        gone.sort_unstable_by_key(|entry| (entry.vni, entry.mac));
        if !gone.is_empty() {
            self.forget_found()?;
        }
        Ok(gone)
    }

    /// After every change of the table, of ports and of their VLANs: the programs no longer go by what they have found.
    pub(super) fn forget_found(&self) -> Result<(), DatapathError> {
        let told = &self.view.tables.told;
        let changes: u32 = told.get(&0u32)?.unwrap_or_default();
        told.put(&0u32, &changes.wrapping_add(1))
    }
}
