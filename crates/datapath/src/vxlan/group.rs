//! Memberships in underlay multicast groups: sockets that the kernel keeps them by (RFC 7348 4.2).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use crate::error::DatapathError;
use crate::membership::join;

/// One socket for each group and uplink: a socket may be in twenty groups only.
#[derive(Debug, Default)]
pub(super) struct Memberships(BTreeMap<(Ipv4Addr, u32), OwnedFd>);

impl Memberships {
    /// Joins what is missing and leaves what is too many.
    pub(super) fn set(&mut self, groups: &BTreeSet<Ipv4Addr>, uplinks: &[u32]) -> Result<(), DatapathError> {
        self.0.retain(|(group, uplink), _| groups.contains(group) && uplinks.contains(uplink));
        groups.iter().try_for_each(|group| self.add(*group, uplinks))
    }

    /// Joins one group.
    pub(super) fn add(&mut self, group: Ipv4Addr, uplinks: &[u32]) -> Result<(), DatapathError> {
        for uplink in uplinks {
            if let Entry::Vacant(place) = self.0.entry((group, *uplink)) {
                place.insert(join(group, *uplink)?);
            }
        }
        Ok(())
    }
}
