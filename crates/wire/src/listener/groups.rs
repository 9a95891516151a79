//! Who listens to which groups, as RBridges tell each other (RFC 6325 section 4.7, RFC 7176 section 2.1).

use std::collections::BTreeSet;

use super::Family;
use crate::ethernet::MacAddress;
use crate::vlan::VlanSet;

/// A group in a VLAN, by the address that Ethernet carries it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    pub vlan: u16,
    pub mac: MacAddress,
}

/// Which groups somebody at some place listens to. Whoever does not know says: to all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    /// VLANs whose groups of IPv4 are all wanted: a multicast router is there, or nobody snoops ("M4").
    pub all_ipv4: VlanSet,
    /// The same of IPv6 ("M6").
    pub all_ipv6: VlanSet,
    /// The groups wanted beside these.
    pub groups: BTreeSet<Group>,
}

impl Listeners {
    /// To all groups of all VLANs.
    pub fn to_all() -> Self {
        Self { all_ipv4: VlanSet::all(), all_ipv6: VlanSet::all(), groups: BTreeSet::new() }
    }

    /// VLANs whose groups of a family are all wanted.
    pub fn all(&self, family: Family) -> &VlanSet {
        match family {
            Family::Ipv4 => &self.all_ipv4,
            Family::Ipv6 => &self.all_ipv6,
        }
    }

    /// The same, to be changed.
    pub fn all_mut(&mut self, family: Family) -> &mut VlanSet {
        match family {
            Family::Ipv4 => &mut self.all_ipv4,
            Family::Ipv6 => &mut self.all_ipv6,
        }
    }

    /// Whether all groups of these VLANs are wanted.
    pub fn want_all_of(&self, vlans: &VlanSet) -> bool {
        vlans.iter().all(|vlan| self.all_ipv4.contains(vlan) && self.all_ipv6.contains(vlan))
    }

    /// What either wants.
    pub fn add(&mut self, other: &Self) {
        self.all_ipv4.add_all(&other.all_ipv4);
        self.all_ipv6.add_all(&other.all_ipv6);
        self.groups.extend(&other.groups);
    }
}
