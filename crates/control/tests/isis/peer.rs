//! PDUs as a neighbour would send them, and the shorthand of the cases: node 2 is system 0a00.0000.0002 with port address
//! 02:00:00:00:00:02; `2-00` is fragment 0 of its LSP.

use weft_control::isis::PortId;
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::group::{GroupRecord, GroupSub, Groups};
use weft_wire::isis::hello::{HandshakeState, PortSub, ThreeWay, VlanFlags};
use weft_wire::isis::lsp::{CapabilitySub, InterestedVlans, NicknameRecord, Reach, TreeList};
use weft_wire::isis::pdu::{Csnp, Lsp, P2pHello, Psnp};
use weft_wire::isis::tlv::LspEntry;
use weft_wire::isis::view::LspFlags;
use weft_wire::isis::{LspId, Pdu, SystemId, Tlv};
use weft_wire::listener::Group;

/// The RBridge under test.
pub(crate) const ME: u8 = 1;

pub(crate) fn system(node: u8) -> SystemId {
    SystemId([0x0a, 0, 0, 0, 0, node])
}

/// Address of the port of node `node`.
pub(crate) fn mac(node: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, node])
}

/// Address of our own port.
pub(crate) fn my_mac(port: PortId) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0xff, port.0 as u8])
}

/// A Hello from `node`, as every RBridge of this campus sends it.
pub(crate) fn hello(node: u8, state: HandshakeState, names: Option<(u8, u32)>, holding_time_s: u16) -> P2pHello {
    let flags = VlanFlags { port_id: 9, outer_vlan: 1, designated_vlan: 1, ..VlanFlags::default() };
    let three_way = ThreeWay {
        state,
        local_circuit: Some(u32::from(node) + 100),
        neighbor: names.map(|(node, _)| system(node)),
        neighbor_circuit: names.map(|(_, circuit)| circuit),
    };
    P2pHello {
        circuit_type: 1,
        source: system(node),
        holding_time_s,
        local_circuit: 9,
        tlvs: vec![
            Tlv::Areas(vec![vec![0]]),
            Tlv::Protocols(vec![0xc0]),
            Tlv::FloodingScopes(vec![64, 66]),
            Tlv::PortCapability { topology: 0, subs: vec![PortSub::VlanFlags(flags)] },
            Tlv::ThreeWay(three_way),
        ],
    }
}

/// What an LSP of the cases says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Says {
    pub(crate) reach: Vec<(u8, u32)>,
    /// Nickname, priority, root priority.
    pub(crate) nicknames: Vec<(u16, u8, u16)>,
    pub(crate) vlans: Option<(u16, u16)>,
    /// IP multicast groups that it listens to; `None`: all of them, for it does not snoop.
    pub(crate) groups: Option<Vec<Group>>,
    pub(crate) overloaded: bool,
    /// Trees that it asks for, and that it can compute.
    pub(crate) trees: Option<(u16, u16)>,
    /// Roots that it lists.
    pub(crate) roots: Vec<TreeList>,
    /// Longest LSP that it takes.
    pub(crate) lsp_buffer_bytes: Option<u16>,
    /// A withdrawal does not say who wrote it.
    pub(crate) unsigned: bool,
}

pub(crate) fn lsp(id: LspId, sequence: u32, lifetime_s: u16, says: &Says) -> Pdu {
    let mut subs = vec![CapabilitySub::TrillVersion { max_version: 0, capabilities: 0 }];
    let record = |(nickname, priority, root_priority): &(u16, u8, u16)| NicknameRecord {
        priority: *priority,
        root_priority: *root_priority,
        nickname: *nickname,
    };
    subs.push(CapabilitySub::Nicknames(says.nicknames.iter().map(record).collect()));
    if let Some((start_vlan, end_vlan)) = says.vlans {
        subs.push(CapabilitySub::InterestedVlans(InterestedVlans {
            nickname: 0,
            all_ipv4_groups: says.groups.is_none(),
            all_ipv6_groups: says.groups.is_none(),
            esadi: false,
            start_vlan,
            end_vlan,
            forwarder_lost: 0,
            root_bridges: vec![],
        }));
    }
    if let Some((compute, max)) = says.trees {
        subs.push(CapabilitySub::Trees { compute, max, use_count: 1 });
    }
    subs.extend(says.roots.iter().cloned().map(CapabilitySub::TreeRoots));
    let reach = says.reach.iter().map(|(node, cost)| Reach::plain(system(*node).node(), *cost)).collect();
    let mut tlvs = vec![Tlv::Areas(vec![vec![0]]), Tlv::Protocols(vec![0xc0])];
    tlvs.extend(says.lsp_buffer_bytes.map(Tlv::LspBufferSize));
    tlvs.extend([Tlv::Capability { router_id: 1, flags: 0, subs }, Tlv::Reach(reach)]);
    tlvs.extend(says.groups.iter().flatten().map(|group| {
        let records = vec![GroupRecord { group: group.mac.0, sources: vec![] }];
        Tlv::Groups(vec![GroupSub::Mac(Groups { topology: 0, vlan: group.vlan, records })])
    }));
    if lifetime_s == 0 {
        let signature = Tlv::PurgeOriginator { originator: system(9), received_from: None };
        tlvs = if says.unsigned { vec![] } else { vec![signature] };
    }
    let flags = LspFlags::LEVEL_1.with_overload(says.overloaded);
    Pdu::Lsp(Lsp { lifetime_s, id, sequence, flags, tlvs })
}

pub(crate) fn csnp(node: u8, (start, end): (LspId, LspId), entries: Vec<LspEntry>) -> Pdu {
    let tlvs = entries.chunks(15).map(|chunk| Tlv::LspEntries(chunk.to_vec())).collect();
    Pdu::Csnp(Csnp { source: system(node).node(), start, end, tlvs })
}

pub(crate) fn psnp(node: u8, entries: Vec<LspEntry>) -> Pdu {
    let tlvs = entries.chunks(15).map(|chunk| Tlv::LspEntries(chunk.to_vec())).collect();
    Pdu::Psnp(Psnp { source: system(node).node(), tlvs })
}
