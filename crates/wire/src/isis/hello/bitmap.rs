//! VLANs of a port as bits (RFC 7176 sections 2.2.2 and 2.2.5).

use crate::isis::cursor::{Reader, Writer};
use crate::vlan::VlanSet;

/// A run of VLANs as bits, the most significant being the first (RFC 7176 section 2.2.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VlanBitmap {
    /// VLAN of the first bit, 12 bits.
    pub start: u16,
    /// At least one byte.
    pub bits: Vec<u8>,
}

impl VlanBitmap {
    /// Most bytes of bits: as many as fit into a port capability TLV beside their headers.
    const BITS_LEN_MAX: usize = 255 - 6;

    /// A set as the fewest runs that fit into a TLV each; they begin and end with a VLAN of the set.
    pub fn of_set(set: &VlanSet) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for vlan in set.iter() {
            let at = |run: &Self| usize::from(vlan - run.start);
            if runs.last().is_none_or(|run| at(run) >= 8 * Self::BITS_LEN_MAX) {
                runs.push(Self { start: vlan, bits: Vec::new() });
            }
            if let Some(run) = runs.last_mut() {
                let at = at(run);
                run.bits.resize(at / 8 + 1, 0);
                run.bits[at / 8] |= 0x80 >> (at % 8);
            }
        }
        runs
    }

    /// The VLANs whose bit is set, below 4095.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        let set = |at: usize| self.bits[at / 8] & (0x80 >> (at % 8)) != 0;
        let vlans = (0..self.bits.len() * 8).filter(move |at| set(*at)).map(|at| usize::from(self.start) + at);
        vlans.take_while(|vlan| *vlan < 0xfff).map(|vlan| vlan as u16)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let start = reader.u16()? & 0x0fff;
        let bits = reader.rest().to_vec();
        (!bits.is_empty()).then_some(Self { start, bits })
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        writer.u16(self.start & 0x0fff);
        writer.slice(&self.bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_of(runs: &[VlanBitmap]) -> VlanSet {
        runs.iter().flat_map(VlanBitmap::iter).collect()
    }

    #[test]
    fn a_set_is_what_its_runs_say() {
        let few: VlanSet = [1, 2, 11].into_iter().collect();
        assert_eq!(VlanBitmap::of_set(&few), [VlanBitmap { start: 1, bits: vec![0b1100_0000, 0b0010_0000] }]);
        assert_eq!(VlanBitmap::of_set(&VlanSet::default()), []);
        let ends: VlanSet = [1, 1992, 1993, 4094].into_iter().collect();
        for set in [few, ends, VlanSet::all(), VlanSet::of_ranges(&[(5, 5), (4000, 4094)])] {
            let runs = VlanBitmap::of_set(&set);
            assert_eq!(set_of(&runs), set);
            assert!(runs.iter().all(|run| run.bits.len() <= VlanBitmap::BITS_LEN_MAX), "{runs:?}");
        }
        assert_eq!(VlanBitmap::of_set(&VlanSet::all()).len(), 3);
    }
}
