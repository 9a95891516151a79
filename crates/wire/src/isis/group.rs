//! TLV 142: which groups an RBridge's end stations listen to (RFC 7176 section 2.1).
//!
//! ```text
//! topology 2 (12 bits)   VLAN 2 (12 bits)   number of records 1   records: number of sources 1, group, sources
//! ```

use super::cursor::{Reader, Writer};
use crate::ethernet::MacAddress;
use crate::listener::Group;

/// A sub-TLV of the group address TLV; addresses have 6, 4 or 16 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupSub {
    /// Type 1: MAC addresses.
    Mac(Groups<6>),
    /// Type 2: IPv4 addresses.
    Ipv4(Groups<4>),
    /// Type 3: IPv6 addresses.
    Ipv6(Groups<16>),
    /// Any other (4 to 6: the same with fine-grained labels), or one that does not follow its layout.
    Other {
        /// Type.
        code: u8,
        value: Vec<u8>,
    },
}

/// Groups of one VLAN, with addresses of `N` bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups<const N: usize> {
    /// Topology ID, 12 bits.
    pub topology: u16,
    /// VLAN, 12 bits.
    pub vlan: u16,
    /// At most 255.
    pub records: Vec<GroupRecord<N>>,
}

/// One group and the sources that are wanted; none: all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRecord<const N: usize> {
    pub group: [u8; N],
    /// Its sources, at most 255.
    pub sources: Vec<[u8; N]>,
}

impl GroupSub {
    /// The groups, by where Ethernet carries them, which is what frames show. Sources are not told apart.
    pub fn groups(&self) -> Vec<Group> {
        match self {
            Self::Mac(groups) => groups.by_mac(MacAddress),
            Self::Ipv4(groups) => groups.by_mac(|group| MacAddress::of_ipv4_group(group.into())),
            Self::Ipv6(groups) => groups.by_mac(|group| MacAddress::of_ipv6_group(group.into())),
            Self::Other { .. } => Vec::new(),
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (code, value) = reader.tlv()?;
        let known = match code {
            1 => Groups::read(value).map(Self::Mac),
            2 => Groups::read(value).map(Self::Ipv4),
            3 => Groups::read(value).map(Self::Ipv6),
            _ => None,
        };
        Some(known.unwrap_or_else(|| Self::Other { code, value: value.to_vec() }))
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        match self {
            Self::Mac(groups) => writer.tlv(1, |writer| groups.write(writer)),
            Self::Ipv4(groups) => writer.tlv(2, |writer| groups.write(writer)),
            Self::Ipv6(groups) => writer.tlv(3, |writer| groups.write(writer)),
            Self::Other { code, value } => writer.tlv(*code, |writer| writer.slice(value)),
        }
    }
}

impl<const N: usize> Groups<N> {
    fn by_mac(&self, mac: impl Fn([u8; N]) -> MacAddress) -> Vec<Group> {
        let groups = self.records.iter().map(|record| Group { vlan: self.vlan, mac: mac(record.group) });
        groups.filter(|group| group.mac.is_group()).collect()
    }

    fn read(value: &[u8]) -> Option<Self> {
        let mut reader = Reader(value);
        let (topology, vlan, count) = (reader.u16()? & 0x0fff, reader.u16()? & 0x0fff, reader.u8()?);
        let mut records = Vec::new();
        for _ in 0..count {
            let sources = reader.u8()?;
            let group = reader.array()?;
            let sources = (0..sources).map(|_| reader.array()).collect::<Option<_>>()?;
            records.push(GroupRecord { group, sources });
        }
        reader.is_empty().then_some(Self { topology, vlan, records })
    }

    /// More than 255 records or sources overflow the TLV's length as well, and are refused there.
    fn write(&self, writer: &mut Writer) {
        writer.u16(self.topology & 0x0fff);
        writer.u16(self.vlan & 0x0fff);
        writer.u8(self.records.len() as u8);
        for record in &self.records {
            writer.u8(record.sources.len() as u8);
            writer.slice(&record.group);
            record.sources.iter().for_each(|source| writer.slice(source));
        }
    }
}
