//! A model of a host's data path that checks what its agent does to it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use weft_control::address::{Locator, Mapping};
use weft_control::agent::{DropReason, Output};

/// The map, and the fate of every frame.
#[derive(Default)]
pub(crate) struct Datapath {
    map: BTreeMap<Ipv4Addr, Mapping>,
    refused: BTreeSet<Ipv4Addr>,
    /// Highest version ever in force since the agent's last start, or found then.
    newest: BTreeMap<Ipv4Addr, u64>,
    missed: BTreeMap<Ipv4Addr, u64>,
    released: BTreeMap<Ipv4Addr, u64>,
    dropped: BTreeMap<Ipv4Addr, u64>,
    held: BTreeSet<u64>,
    reached: BTreeSet<Ipv4Addr>,
}

impl Datapath {
    /// A frame of the host: true if the map knows its way.
    pub(crate) fn forward(&mut self, aa: Ipv4Addr) -> bool {
        let known = self.map.contains_key(&aa);
        if known {
            self.reached.insert(aa);
        }
        known
    }

    /// A frame goes to the agent.
    pub(crate) fn missed(&mut self, aa: Ipv4Addr, frame: u64) {
        *self.missed.entry(aa).or_default() += 1;
        self.held.insert(frame);
    }

    /// Does what the agent says, and checks that it may say so.
    pub(crate) fn carry_out(&mut self, output: Output, history: &BTreeMap<(Ipv4Addr, u64), Locator>) {
        match output {
            Output::Install { aa, mapping } => {
                let newest = self.newest.entry(aa).or_default();
                assert!(mapping.version >= *newest, "{aa}: version {} after {newest}", mapping.version);
                *newest = mapping.version;
                assert_eq!(history.get(&(aa, mapping.version)), Some(&mapping.locator), "{aa}: never was so");
                self.refused.remove(&aa);
                self.map.insert(aa, mapping);
            }
            Output::Remove { aa } => {
                let known = self.map.remove(&aa).is_some() | self.refused.remove(&aa);
                assert!(known, "{aa}: nothing to remove");
            }
            Output::Refuse { aa } => {
                self.map.remove(&aa);
                self.refused.insert(aa);
            }
            Output::Release { aa, held } => {
                assert!(self.map.contains_key(&aa), "{aa}: released without a mapping in force");
                let frame = u64::from_be_bytes(held.try_into().unwrap());
                assert!(self.held.remove(&frame), "{aa}: frame {frame} released twice");
                *self.released.entry(aa).or_default() += 1;
                self.reached.insert(aa);
            }
            Output::Drop { aa, reason } => {
                assert_ne!(reason, DropReason::TooBig);
                *self.dropped.entry(aa).or_default() += 1;
            }
            Output::IcmpTooBig { .. } | Output::Send { .. } => unreachable!("not for the data path"),
        }
    }

    /// The agent died: frames it held are gone with it, the map stays. Returns the map.
    pub(crate) fn restarted(&mut self) -> Vec<(Ipv4Addr, Mapping)> {
        self.newest = self.map.iter().map(|(aa, mapping)| (*aa, mapping.version)).collect();
        self.held.clear();
        for aa in self.missed.keys().copied().collect::<Vec<_>>() {
            let gone = self.missed[&aa] - self.fate(aa);
            *self.dropped.entry(aa).or_default() += gone;
        }
        self.map.iter().map(|(aa, mapping)| (*aa, *mapping)).collect()
    }

    fn fate(&self, aa: Ipv4Addr) -> u64 {
        self.released.get(&aa).unwrap_or(&0) + self.dropped.get(&aa).unwrap_or(&0)
    }

    /// Each missed frame was released or dropped, once.
    pub(crate) fn assert_conserved(&self) {
        for (aa, missed) in &self.missed {
            assert_eq!(*missed, self.fate(*aa), "{aa}: missed, against released and dropped");
        }
    }

    pub(crate) fn mappings(&self) -> impl Iterator<Item = (Ipv4Addr, Mapping)> + '_ {
        self.map.iter().map(|(aa, mapping)| (*aa, *mapping))
    }

    pub(crate) fn reached(&self, aa: Ipv4Addr) -> bool {
        self.reached.contains(&aa)
    }

    pub(crate) fn forget_reached(&mut self) {
        self.reached.clear();
    }
}
