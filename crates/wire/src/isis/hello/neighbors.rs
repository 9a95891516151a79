//! Whom an RBridge hears on a shared link (RFC 7176 section 2.5, RFC 6325 section 4.4.2.1).

use crate::ethernet::MacAddress;
use crate::isis::cursor::{Reader, Writer};

/// TLV 145: flags and size 1, then records of flags 1, MTU 2, MAC 6, sorted by MAC (RFC 7176 section 2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbors {
    /// "S": the list begins with the smallest address heard.
    pub from_smallest: bool,
    /// "L": the list ends with the largest address heard.
    pub to_largest: bool,
    /// Whom the sender hears.
    pub records: Vec<NeighborRecord>,
}

/// One neighbour on a shared link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NeighborRecord {
    /// "F": the MTU test failed.
    pub mtu_failed: bool,
    /// "O": the OOMF service is offered (RFC 7780 section 2).
    pub overload_service: bool,
    /// Length tested, bytes; 0: not tested.
    pub mtu: u16,
    /// Its port's address.
    pub address: MacAddress,
}

impl Neighbors {
    /// Most records of one TLV.
    pub const RECORDS_MAX: usize = (255 - 1) / 9;

    /// All that are heard, in as few lists as hold them: sorted, and each begins with the last of the list before, so that no
    /// address is left open (RFC 6325 section 4.4.2.1).
    pub fn lists(mut records: Vec<NeighborRecord>) -> Vec<Self> {
        records.sort_unstable_by_key(|record| record.address);
        let (mut lists, mut rest) = (Vec::new(), &records[..]);
        loop {
            let (list, left) = rest.split_at(rest.len().min(Self::RECORDS_MAX));
            let (from_smallest, to_largest) = (lists.is_empty(), left.is_empty());
            lists.push(Self { from_smallest, to_largest, records: list.to_vec() });
            if to_largest {
                return lists;
            }
            rest = &rest[list.len() - 1..];
        }
    }

    /// Whether the sender hears `address`; `None`: this list does not say.
    pub fn hears(&self, address: MacAddress) -> Option<bool> {
        let all = || self.records.iter().map(|record| record.address);
        let from = self.from_smallest || all().min().is_some_and(|least| least <= address);
        let to = self.to_largest || all().max().is_some_and(|most| most >= address);
        (from && to).then(|| all().any(|heard| heard == address))
    }

    const SMALLEST: u8 = 0x80;
    const LARGEST: u8 = 0x40;
    const SIZE: u8 = 0x1f;
    const FAILED: u8 = 0x80;
    const OVERLOAD_SERVICE: u8 = 0x40;

    /// Only addresses of 6 bytes (size 0 or 6) are read.
    pub(in crate::isis) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let flags = reader.u8()?;
        if ![0, 6].contains(&(flags & Self::SIZE)) {
            return None;
        }
        let records = reader.all(|rest| {
            let (flags, mtu, address) = (rest.u8()?, rest.u16()?, MacAddress(rest.array()?));
            let (mtu_failed, overload_service) = (flags & Self::FAILED != 0, flags & Self::OVERLOAD_SERVICE != 0);
            Some(NeighborRecord { mtu_failed, overload_service, mtu, address })
        })?;
        Some(Self { from_smallest: flags & Self::SMALLEST != 0, to_largest: flags & Self::LARGEST != 0, records })
    }

    pub(in crate::isis) fn write(&self, writer: &mut Writer) {
        let bit = |set: bool, mask: u8| if set { mask } else { 0 };
        writer.u8(bit(self.from_smallest, Self::SMALLEST) | bit(self.to_largest, Self::LARGEST));
        for record in &self.records {
            let overload = bit(record.overload_service, Self::OVERLOAD_SERVICE);
            writer.u8(bit(record.mtu_failed, Self::FAILED) | overload);
            writer.u16(record.mtu);
            writer.slice(&record.address.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(number: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, number])
    }

    fn heard(numbers: impl IntoIterator<Item = u8>) -> Vec<NeighborRecord> {
        let record =
            |number| NeighborRecord { mtu_failed: false, overload_service: false, mtu: 0, address: mac(number) };
        numbers.into_iter().map(record).collect()
    }

    fn list(from_smallest: bool, to_largest: bool, numbers: &[u8]) -> Neighbors {
        Neighbors { from_smallest, to_largest, records: heard(numbers.iter().copied()) }
    }

    #[test]
    fn a_list_speaks_for_its_range_alone() {
        let says = |of: Neighbors| [1, 3, 4, 5, 9].map(|number| of.hears(mac(number)));
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(says(list(false, false, &[3, 5])), [None, yes, no, yes, None]);
        assert_eq!(says(list(true, false, &[3, 5])), [no, yes, no, yes, None]);
        assert_eq!(says(list(false, true, &[3, 5])), [None, yes, no, yes, no]);
        assert_eq!(says(list(true, true, &[])), [no; 5], "who hears nobody");
        assert_eq!(says(list(true, false, &[])), [None; 5]);
        assert_eq!(says(list(false, false, &[])), [None; 5]);
    }

    /// Whatever the number of neighbours, each address is spoken of, and those heard are told of.
    #[test]
    fn lists_leave_no_address_open() {
        for count in [0, 1, 27, 28, 29, 55, 56, 100] {
            let lists = Neighbors::lists(heard((0..count).rev().map(|at| 2 * at + 1)));
            assert!(lists.iter().all(|list| list.records.len() <= Neighbors::RECORDS_MAX));
            for number in 0..=u8::MAX {
                let said: Vec<bool> = lists.iter().filter_map(|list| list.hears(mac(number))).collect();
                assert!(!said.is_empty(), "{number} of {count}");
                assert_eq!(said.contains(&true), number % 2 == 1 && number / 2 < count, "{number} of {count}");
            }
        }
    }
}
