//! A set of VLANs: one bit for each.

use std::fmt;

use super::VLAN_MAX;

const WORDS: usize = 64;

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
        let mut set = Self::default();
        ranges.iter().for_each(|(first, last)| set.add_range(*first, *last));
        set
    }

    /// All VLANs.
    pub fn all() -> Self {
        Self::of_ranges(&[(1, VLAN_MAX)])
    }

    /// Adds the VLANs from `first` to `last`, as far as they are VLANs (RFC 7176 section 2.3.6: ends are clamped).
    pub fn add_range(&mut self, first: u16, last: u16) {
        let (first, last) = (first.max(1), last.min(VLAN_MAX));
        for word in first / 64..=last / 64 {
            let low = if word == first / 64 { u64::MAX << (first % 64) } else { u64::MAX };
            let high = if word == last / 64 { u64::MAX >> (63 - last % 64) } else { u64::MAX };
            self.0[usize::from(word)] |= if first <= last { low & high } else { 0 };
        }
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0.iter()) {
            *mine |= theirs;
        }
    }

    /// Whether `vlan` is in the set.
    pub fn contains(&self, vlan: u16) -> bool {
        self.0.get(usize::from(vlan / 64)).is_some_and(|word| word & (1 << (vlan % 64)) != 0)
    }

    /// Whether no VLAN is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The VLANs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (1..=VLAN_MAX).filter(|vlan| self.contains(*vlan))
    }

    /// The VLANs as runs, first and last of each.
    pub fn ranges(&self) -> Vec<(u16, u16)> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for vlan in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == vlan => *last = vlan,
                _ => ranges.push((vlan, vlan)),
            }
        }
        ranges
    }
}

impl FromIterator<u16> for VlanSet {
    fn from_iter<I: IntoIterator<Item = u16>>(vlans: I) -> Self {
        let mut set = Self::default();
        vlans.into_iter().for_each(|vlan| set.add_range(vlan, vlan));
        set
    }
}

/// As configurations have it: `10,20-30`.
impl fmt::Display for VlanSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.ranges().into_iter();
        let runs = runs.map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
        out.write_str(&runs.collect::<Vec<_>>().join(","))
    }
}

impl fmt::Debug for VlanSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_their_edges() {
        let mut set = VlanSet::default();
        set.add_range(0, 2);
        set.add_range(4094, 4095);
        set.add_range(9, 8);
        set.add_range(u16::MAX, 1);
        assert_eq!(set.ranges(), [(1, 2), (4094, 4094)]);
        assert!(!set.contains(0) && set.contains(1) && !set.contains(4095) && !set.contains(u16::MAX));
        let mut both: VlanSet = [63, 64].into_iter().collect();
        both.add_all(&set);
        assert_eq!((both.to_string().as_str(), format!("{both:?}").as_str()), ("1-2,63-64,4094", "{1-2,63-64,4094}"));
        let mut long = VlanSet::default();
        long.add_range(100, 300);
        assert_eq!(long.ranges(), [(100, 300)]);
        assert!(VlanSet::default().is_empty() && !both.is_empty());
    }

    #[test]
    fn every_way_to_make_a_set_agrees() {
        assert_eq!(VlanSet::all(), (0..=u16::MAX).collect());
        assert_eq!(VlanSet::all().iter().count(), 4094);
        assert_eq!(
            VlanSet::of_ranges(&[(0, 2), (7, 7), (4093, 9999)]),
            [7, 4093, 1, 4095, 4094, 2, 0].into_iter().collect()
        );
        assert_eq!(VlanSet::of_ranges(&[]), VlanSet::default());
        assert_eq!(VlanSet::of_ranges(&[(60, 70)]).iter().collect::<Vec<_>>(), (60..=70).collect::<Vec<_>>());
    }
}
