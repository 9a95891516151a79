//! What LSPs carry: neighbours (RFC 5305) and what an RBridge can do and wants (RFC 7176 section 2.3).

use super::cursor::{Reader, Writer};
use super::id::NodeId;

/// A neighbour: node ID 7, metric 3, length of sub-TLVs 1, sub-TLVs (RFC 5305 section 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    pub node: NodeId,
    /// Cost of sending to it, 24 bits; [`METRIC_UNUSABLE`](super::METRIC_UNUSABLE): not for shortest paths.
    pub metric: u32,
    /// More about the link.
    pub subs: Vec<ReachSub>,
}

/// A sub-TLV of a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReachSub {
    /// Type 28: the link was tested with frames of this length (RFC 7176 section 2.4).
    Mtu {
        /// "F": the test failed.
        failed: bool,
        /// Length, bytes.
        mtu: u16,
    },
    /// Any other, or one that does not follow its layout.
    Other {
        /// Type.
        code: u8,
        value: Vec<u8>,
    },
}

const REACH_MTU: u8 = 28;

impl Reach {
    /// A neighbour without sub-TLVs.
    pub const fn plain(node: NodeId, metric: u32) -> Self {
        Self { node, metric, subs: Vec::new() }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (node, metric, len) = (NodeId(reader.array()?), reader.u24()?, reader.u8()?);
        let subs = Reader(reader.slice(len.into())?).all(ReachSub::read)?;
        Some(Self { node, metric, subs })
    }

    /// Sub-TLVs longer than 255 bytes overflow the TLV's length as well, and are refused there.
    pub(super) fn write(&self, writer: &mut Writer) {
        writer.slice(&self.node.0);
        writer.u24(self.metric);
        let length_at = writer.bytes.len();
        writer.u8(0);
        self.subs.iter().for_each(|sub| sub.write(writer));
        writer.bytes[length_at] = (writer.bytes.len() - length_at - 1) as u8;
    }
}

impl ReachSub {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (code, value) = reader.tlv()?;
        if let (REACH_MTU, [flags, high, low]) = (code, value) {
            return Some(Self::Mtu { failed: flags & 0x80 != 0, mtu: u16::from_be_bytes([*high, *low]) });
        }
        Some(Self::Other { code, value: value.to_vec() })
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Self::Mtu { failed, mtu } => writer.tlv(REACH_MTU, |writer| {
                writer.u8(if *failed { 0x80 } else { 0 });
                writer.u16(*mtu);
            }),
            Self::Other { code, value } => writer.tlv(*code, |writer| writer.slice(value)),
        }
    }
}

/// A sub-TLV of the router capability TLV (RFC 7176 section 2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapabilitySub {
    /// Type 6: nicknames held, 5 bytes each.
    Nicknames(Vec<NicknameRecord>),
    /// Type 7: numbers of distribution trees.
    Trees {
        /// Trees that the campus shall compute, if the sender is the root that says so.
        compute: u16,
        /// Most trees that the sender can compute.
        max: u16,
        /// Trees that the sender wants to use as an ingress.
        use_count: u16,
    },
    /// Type 8: roots that the first root asks for.
    TreeRoots(TreeList),
    /// Type 9: roots of the trees that the sender uses.
    TreesUsed(TreeList),
    /// Type 10: VLANs that the sender's end stations are in.
    InterestedVlans(InterestedVlans),
    /// Type 13, in fragment 0: largest version and capabilities.
    TrillVersion {
        /// Largest TRILL version spoken.
        max_version: u8,
        /// Capability bits, [`FGL_SAFE`](capability::FGL_SAFE) and others.
        capabilities: u32,
    },
    /// Type 14: VLANs that share learned addresses.
    VlanGroup {
        /// Primary VLAN, 12 bits.
        primary: u16,
        /// Secondary VLANs, 12 bits each.
        secondary: Vec<u16>,
    },
    /// Type 15: fine-grained labels that the sender's end stations are in.
    InterestedLabels(InterestedLabels),
    /// Type 16: RBridge Channel protocols, not looked into.
    Channels(Vec<u8>),
    /// Type 17: whose child the sender shall be in which trees.
    Affinity(Vec<AffinityRecord>),
    /// Type 18: labels that share learned addresses.
    LabelGroup {
        /// Primary label, 24 bits.
        primary: u32,
        /// Secondary labels, 24 bits each.
        secondary: Vec<u32>,
    },
    /// Any other, or one that does not follow its layout.
    Other {
        /// Type.
        code: u8,
        value: Vec<u8>,
    },
}

/// Bits of the TRILL version sub-TLV (RFC 7176 section 2.3.1).
pub mod capability {
    /// Fine-grained labels cross the sender unharmed (RFC 7172).
    pub const FGL_SAFE: u32 = 1 << 30;
    /// E-L1FS flooding (RFC 7780 section 8).
    pub const E_L1FS: u32 = 1 << 27;
}

/// One nickname (RFC 7176 section 2.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NicknameRecord {
    /// Priority to hold it; bit 0x80 only if it was configured.
    pub priority: u8,
    /// Priority to be a distribution tree's root.
    pub root_priority: u16,
    pub nickname: u16,
}

/// Trees by their roots, numbered from `start` (RFC 7176 sections 2.3.4, 2.3.5).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TreeList {
    /// Number of the first.
    pub start: u16,
    /// Nicknames of the roots.
    pub roots: Vec<u16>,
}

/// Interest in a range of VLANs (RFC 7176 section 2.3.6).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterestedVlans {
    /// Nickname that is interested; 0: all of the sender's.
    pub nickname: u16,
    /// "M4": an IPv4 multicast router is there, or no snooping is done.
    pub all_ipv4_groups: bool,
    /// "M6": the same for IPv6.
    pub all_ipv6_groups: bool,
    /// "ES": the sender takes part in ESADI (RFC 7357 section 7.1).
    pub esadi: bool,
    /// First VLAN, 12 bits.
    pub start_vlan: u16,
    /// Last VLAN, 12 bits.
    pub end_vlan: u16,
    /// How often appointed-forwarder status was lost in the range.
    pub forwarder_lost: u32,
    /// Spanning tree roots seen.
    pub root_bridges: Vec<[u8; 6]>,
}

/// Interest in fine-grained labels (RFC 7176 section 2.3.8): 13 + 6n bytes by its fields, 11 + 6n in its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterestedLabels {
    /// Nickname that is interested; 0: all of the sender's.
    pub nickname: u16,
    /// The flags byte: M4, M6, BM (what follows is a bit map), ES.
    pub flags: u8,
    /// First label, 24 bits.
    pub start: u32,
    /// Last label, or bits of 24 labels, 24 bits.
    pub end_or_bits: u32,
    /// How often appointed-forwarder status was lost in the range.
    pub forwarder_lost: u32,
    /// Spanning tree roots seen.
    pub root_bridges: Vec<[u8; 6]>,
}

/// A wish to be a child in trees (RFC 7176 section 2.3.10).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AffinityRecord {
    /// Nickname that shall be the child.
    pub nickname: u16,
    pub flags: u8,
    /// Numbers of the trees, at most 255.
    pub trees: Vec<u16>,
}

mod sub_code {
    pub(super) const NICKNAMES: u8 = 6;
    pub(super) const TREES: u8 = 7;
    pub(super) const TREE_ROOTS: u8 = 8;
    pub(super) const TREES_USED: u8 = 9;
    pub(super) const INTERESTED_VLANS: u8 = 10;
    pub(super) const TRILL_VERSION: u8 = 13;
    pub(super) const VLAN_GROUP: u8 = 14;
    pub(super) const INTERESTED_LABELS: u8 = 15;
    pub(super) const CHANNELS: u8 = 16;
    pub(super) const AFFINITY: u8 = 17;
    pub(super) const LABEL_GROUP: u8 = 18;
}

const M4: u32 = 1 << 31;
const M6: u32 = 1 << 30;
const ES: u32 = 1 << 28;

impl CapabilitySub {
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (code, value) = reader.tlv()?;
        Some(Self::known(code, value).unwrap_or_else(|| Self::Other { code, value: value.to_vec() }))
    }

    fn known(code: u8, value: &[u8]) -> Option<Self> {
        let mut reader = Reader(value);
        let sub = match code {
            sub_code::NICKNAMES => Self::Nicknames(reader.all(NicknameRecord::read)?),
            sub_code::TREES => Self::Trees { compute: reader.u16()?, max: reader.u16()?, use_count: reader.u16()? },
            sub_code::TREE_ROOTS => Self::TreeRoots(TreeList::read(&mut reader)?),
            sub_code::TREES_USED => Self::TreesUsed(TreeList::read(&mut reader)?),
            sub_code::INTERESTED_VLANS => Self::InterestedVlans(InterestedVlans::read(&mut reader)?),
            sub_code::TRILL_VERSION => Self::TrillVersion { max_version: reader.u8()?, capabilities: reader.u32()? },
            sub_code::VLAN_GROUP => Self::VlanGroup {
                primary: reader.u16()? & 0x0fff,
                secondary: reader.all(|rest| rest.u16().map(|vlan| vlan & 0x0fff))?,
            },
            sub_code::INTERESTED_LABELS => Self::InterestedLabels(InterestedLabels::read(&mut reader)?),
            sub_code::CHANNELS => Self::Channels(reader.rest().to_vec()),
            sub_code::AFFINITY => Self::Affinity(reader.all(AffinityRecord::read)?),
            sub_code::LABEL_GROUP => Self::LabelGroup { primary: reader.u24()?, secondary: reader.all(Reader::u24)? },
            _ => return None,
        };
        reader.is_empty().then_some(sub)
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        writer.tlv(self.code(), |writer| self.write_value(writer));
    }

    const fn code(&self) -> u8 {
        match self {
            Self::Nicknames(_) => sub_code::NICKNAMES,
            Self::Trees { .. } => sub_code::TREES,
            Self::TreeRoots(_) => sub_code::TREE_ROOTS,
            Self::TreesUsed(_) => sub_code::TREES_USED,
            Self::InterestedVlans(_) => sub_code::INTERESTED_VLANS,
            Self::TrillVersion { .. } => sub_code::TRILL_VERSION,
            Self::VlanGroup { .. } => sub_code::VLAN_GROUP,
            Self::InterestedLabels(_) => sub_code::INTERESTED_LABELS,
            Self::Channels(_) => sub_code::CHANNELS,
            Self::Affinity(_) => sub_code::AFFINITY,
            Self::LabelGroup { .. } => sub_code::LABEL_GROUP,
            Self::Other { code, .. } => *code,
        }
    }

    fn write_value(&self, writer: &mut Writer) {
        match self {
            Self::Nicknames(records) => {
                for record in records {
                    writer.u8(record.priority);
                    writer.u16(record.root_priority);
                    writer.u16(record.nickname);
                }
            }
            Self::Trees { compute, max, use_count } => {
                writer.u16(*compute);
                writer.u16(*max);
                writer.u16(*use_count);
            }
            Self::TreeRoots(list) | Self::TreesUsed(list) => {
                writer.u16(list.start);
                list.roots.iter().for_each(|root| writer.u16(*root));
            }
            Self::InterestedVlans(interest) => interest.write(writer),
            Self::TrillVersion { max_version, capabilities } => {
                writer.u8(*max_version);
                writer.u32(*capabilities);
            }
            Self::VlanGroup { primary, secondary } => {
                writer.u16(primary & 0x0fff);
                secondary.iter().for_each(|vlan| writer.u16(vlan & 0x0fff));
            }
            Self::InterestedLabels(interest) => interest.write(writer),
            Self::Channels(value) | Self::Other { value, .. } => writer.slice(value),
            Self::Affinity(records) => {
                for record in records {
                    writer.u16(record.nickname);
                    writer.u8(record.flags);
                    writer.u8(record.trees.len() as u8);
                    record.trees.iter().for_each(|tree| writer.u16(*tree));
                }
            }
            Self::LabelGroup { primary, secondary } => {
                writer.u24(*primary);
                secondary.iter().for_each(|label| writer.u24(*label));
            }
        }
    }
}

impl NicknameRecord {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self { priority: reader.u8()?, root_priority: reader.u16()?, nickname: reader.u16()? })
    }
}

impl TreeList {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self { start: reader.u16()?, roots: reader.all(Reader::u16)? })
    }
}

impl InterestedVlans {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        // Flags and the first VLAN, then four reserved bits and the last VLAN, share one 32-bit word.
        let (nickname, first) = (reader.u16()?, reader.u32()?);
        Some(Self {
            nickname,
            all_ipv4_groups: first & M4 != 0,
            all_ipv6_groups: first & M6 != 0,
            esadi: first & ES != 0,
            start_vlan: (first >> 16) as u16 & 0x0fff,
            end_vlan: first as u16 & 0x0fff,
            forwarder_lost: reader.u32()?,
            root_bridges: reader.all(Reader::array)?,
        })
    }

    fn write(&self, writer: &mut Writer) {
        let bit = |set: bool, mask: u32| if set { mask } else { 0 };
        let flags = bit(self.all_ipv4_groups, M4) | bit(self.all_ipv6_groups, M6) | bit(self.esadi, ES);
        let vlans = u32::from(self.start_vlan & 0x0fff) << 16 | u32::from(self.end_vlan & 0x0fff);
        writer.u16(self.nickname);
        writer.u32(flags | vlans);
        writer.u32(self.forwarder_lost);
        self.root_bridges.iter().for_each(|root| writer.slice(root));
    }
}

impl InterestedLabels {
    /// Accepts both lengths: 13 + 6n, and 11 + 6n, whose counter has two bytes less.
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let whole = reader.0.len() >= 13 && (reader.0.len() - 13).is_multiple_of(6);
        let (nickname, flags, start, end_or_bits) = (reader.u16()?, reader.u8()?, reader.u24()?, reader.u24()?);
        let forwarder_lost = if whole { reader.u32()? } else { reader.u16()?.into() };
        Some(Self { nickname, flags, start, end_or_bits, forwarder_lost, root_bridges: reader.all(Reader::array)? })
    }

    fn write(&self, writer: &mut Writer) {
        writer.u16(self.nickname);
        writer.u8(self.flags);
        writer.u24(self.start);
        writer.u24(self.end_or_bits);
        writer.u32(self.forwarder_lost);
        self.root_bridges.iter().for_each(|root| writer.slice(root));
    }
}

impl AffinityRecord {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (nickname, flags, count) = (reader.u16()?, reader.u8()?, reader.u8()?);
        let trees = (0..count).map(|_| reader.u16()).collect::<Option<_>>()?;
        Some(Self { nickname, flags, trees })
    }
}
