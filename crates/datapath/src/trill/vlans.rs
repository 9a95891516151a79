//! A set of VLANs: one bit for each.

use std::fmt;

const WORDS: usize = 64;
/// The largest VLAN that a station can be in.
const LARGEST: u16 = 4094;

/// VLANs 1 to 4094; 0 and 4095 name no VLAN and are never in a set.
#[derive(Clone, PartialEq, Eq)]
pub struct VlanSet(Box<[u64; WORDS]>);

impl Default for VlanSet {
    fn default() -> Self {
        Self(Box::new([0; WORDS]))
    }
}

impl VlanSet {
    /// Of the VLANs from the first to the last of each range, as far as they are VLANs.
    pub fn of_ranges(ranges: &[(u16, u16)]) -> Self {
        ranges.iter().flat_map(|(first, last)| *first..=*last).collect()
    }

    /// All VLANs.
    pub fn all() -> Self {
        (1..=LARGEST).collect()
    }

    /// Adds one, if it is a VLAN.
    pub fn insert(&mut self, vlan: u16) {
        if (1..=LARGEST).contains(&vlan) {
            self.0[usize::from(vlan / 64)] |= 1 << (vlan % 64);
        }
    }

    /// Whether `vlan` is in the set.
    pub fn contains(&self, vlan: u16) -> bool {
        self.0.get(usize::from(vlan / 64)).is_some_and(|word| word & (1 << (vlan % 64)) != 0)
    }

    /// The VLANs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (1..=LARGEST).filter(|vlan| self.contains(*vlan))
    }
}

impl FromIterator<u16> for VlanSet {
    fn from_iter<I: IntoIterator<Item = u16>>(vlans: I) -> Self {
        let mut set = Self::default();
        vlans.into_iter().for_each(|vlan| set.insert(vlan));
        set
    }
}

impl fmt::Debug for VlanSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}
