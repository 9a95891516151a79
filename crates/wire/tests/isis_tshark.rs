//! An independent reader: tshark decodes the PDUs that this crate writes, agrees on every field and marks none malformed.

use std::fs;
use std::path::Path;
use std::process::Command;

use weft_wire::ethernet::{self, MacAddress};
use weft_wire::isis::authentication::Scheme;
use weft_wire::isis::hello::{
    Appointment, HandshakeState, NeighborRecord, Neighbors, PortSub, Restart, ThreeWay, VlanBitmap, VlanFlags,
};
use weft_wire::isis::lsp::{CapabilitySub, InterestedVlans, NicknameRecord, Reach};
use weft_wire::isis::pdu::{Csnp, LanHello, Lsp, P2pHello, Psnp};
use weft_wire::isis::tlv::LspEntry;
use weft_wire::isis::view::LspFlags;
use weft_wire::isis::{self, LspId, NodeId, Pdu, SystemId, Tlv};
use weft_wire::trill::frame::{Label, emit_inner};
use weft_wire::trill::{self, Header};
use weft_wire::vlan::VlanSet;

const ONE: SystemId = SystemId([0x0a, 0, 0, 0, 0, 0x51]);
const TWO: SystemId = SystemId([0x0a, 0, 0, 0, 0, 0x52]);
const PORT: MacAddress = MacAddress([2, 0, 0, 0, 0x51, 1]);
/// The shared link that the first of them speaks for.
const SHARED: NodeId = NodeId([0x0a, 0, 0, 0, 0, 0x51, 3]);

fn isis_frame(pdu: &Pdu) -> Vec<u8> {
    let header = ethernet::Header { destination: trill::ALL_IS_IS_RBRIDGES, source: PORT, ethertype: isis::ETHERTYPE };
    header.emit_with(&pdu.emit().unwrap())
}

fn hello() -> Pdu {
    let flags = VlanFlags { port_id: 9, nickname: 0x51, outer_vlan: 1, designated_vlan: 1, ..VlanFlags::default() };
    let three_way =
        ThreeWay { state: HandshakeState::Up, local_circuit: Some(5), neighbor: Some(TWO), neighbor_circuit: Some(6) };
    let tlvs = vec![
        Tlv::Areas(vec![vec![0]]),
        Tlv::Protocols(vec![isis::NLPID_TRILL]),
        Tlv::PortCapability { topology: 0, subs: vec![PortSub::VlanFlags(flags)] },
        Tlv::Restart(Restart { flags: Restart::ACKNOWLEDGEMENT, remaining_s: Some(27), neighbor: Some(TWO) }),
        Tlv::ThreeWay(three_way),
    ];
    Pdu::P2pHello(P2pHello { circuit_type: 1, source: ONE, holding_time_s: 3, local_circuit: 5, tlvs })
}

/// Of a DRB that hears as many neighbours as one list does not hold.
fn lan_hello() -> Pdu {
    let flags = VlanFlags {
        port_id: 9,
        nickname: 0x51,
        forwarder: true,
        vlan_mapping: true,
        bypass_pseudonode: true,
        outer_vlan: 7,
        trunk: true,
        designated_vlan: 5,
        ..VlanFlags::default()
    };
    let appointments = vec![
        Appointment { nickname: 0x52, start_vlan: 10, end_vlan: 19 },
        Appointment { nickname: 0x53, start_vlan: 30, end_vlan: 30 },
    ];
    let subs = vec![PortSub::VlanFlags(flags), PortSub::AppointedForwarders(appointments)];
    let record = |number: u8| NeighborRecord {
        mtu_failed: number == 1,
        overload_service: false,
        mtu: 0,
        address: MacAddress([2, 0, 0, 0, 0x52, number]),
    };
    let lists = Neighbors::lists((1..=30).map(record).collect());
    let mut tlvs = vec![Tlv::Areas(vec![vec![0]]), Tlv::Protocols(vec![isis::NLPID_TRILL])];
    tlvs.push(Tlv::PortCapability { topology: 0, subs });
    let enabled = VlanBitmap::of_set(&VlanSet::of_ranges(&[(1, 4), (2000, 2000)]));
    tlvs.extend(
        enabled.into_iter().map(|run| Tlv::PortCapability { topology: 0, subs: vec![PortSub::EnabledVlans(run)] }),
    );
    tlvs.extend(lists.into_iter().map(Tlv::TrillNeighbors));
    Pdu::LanHello(LanHello { circuit_type: 1, source: ONE, holding_time_s: 30, priority: 0x41, lan_id: SHARED, tlvs })
}

/// What a DRB says of its shared link: both ends at no cost.
fn pseudonode_lsp() -> Pdu {
    let tlvs = vec![Tlv::Reach(vec![Reach::plain(ONE.node(), 0), Reach::plain(TWO.node(), 0)])];
    Pdu::Lsp(Lsp { lifetime_s: 1200, id: SHARED.lsp(0), sequence: 7, flags: LspFlags::LEVEL_1, tlvs })
}

fn psnp() -> Pdu {
    let entry = LspEntry { lifetime_s: 0, id: SHARED.lsp(0), sequence: 0, checksum: 0 };
    Pdu::Psnp(Psnp { source: TWO.node(), tlvs: vec![Tlv::LspEntries(vec![entry])] })
}

fn lsp() -> Pdu {
    let interest = InterestedVlans {
        nickname: 0x51,
        all_ipv4_groups: true,
        all_ipv6_groups: true,
        esadi: false,
        start_vlan: 100,
        end_vlan: 200,
        forwarder_lost: 0,
        root_bridges: vec![],
    };
    let subs = vec![
        CapabilitySub::TrillVersion { max_version: 0, capabilities: 0 },
        CapabilitySub::Nicknames(vec![NicknameRecord { priority: 0x40, root_priority: 0x8000, nickname: 0x51 }]),
        CapabilitySub::Trees { compute: 1, max: 1, use_count: 1 },
        CapabilitySub::InterestedVlans(interest),
    ];
    let tlvs = vec![
        Tlv::Areas(vec![vec![0]]),
        Tlv::Protocols(vec![isis::NLPID_TRILL]),
        Tlv::LspBufferSize(4000),
        Tlv::Capability { router_id: 0x51, flags: 0, subs },
        Tlv::Reach(vec![Reach::plain(TWO.node(), 2000)]),
    ];
    let flags = LspFlags::LEVEL_1.with_overload(true);
    Pdu::Lsp(Lsp { lifetime_s: 1200, id: ONE.lsp(0), sequence: 0x102, flags, tlvs })
}

fn csnp() -> Pdu {
    let entry = LspEntry { lifetime_s: 9, id: TWO.lsp(1), sequence: 3, checksum: 0x1234 };
    let tlvs = vec![Tlv::LspEntries(vec![entry])];
    Pdu::Csnp(Csnp { source: ONE.node(), start: LspId::FIRST, end: LspId::LAST, tlvs })
}

/// With a digest of every kind and length in turn; none of them is right, which tshark has no key to see.
fn signed(mut pdu: Pdu) -> Vec<Vec<u8>> {
    let generic = [20, 28, 32, 48, 64].map(|len| (Scheme::Generic { key_id: 0x1234 }, len));
    let all = generic.into_iter().chain([(Scheme::HmacMd5, 16)]);
    all.map(|(scheme, len)| {
        let tlvs = pdu.tlvs_mut().expect("its types have eight bits");
        tlvs.retain(|tlv| !matches!(tlv, Tlv::Authentication { .. }));
        tlvs.insert(0, Tlv::Authentication { scheme, digest: vec![0x5a; len] });
        isis_frame(&pdu)
    })
    .collect()
}

fn data() -> Vec<u8> {
    let header = Header { multi_destination: true, hop_count: 7, ..Header::unicast(0x51, 0x52) };
    let label = Label::Vlan { vlan: 100, priority: 0 };
    let inner = emit_inner(MacAddress::BROADCAST, MacAddress([2, 0, 0, 0, 9, 9]), label, 0x88b5, &[0; 46]);
    let outer = ethernet::Header { destination: trill::ALL_RBRIDGES, source: PORT, ethertype: trill::ETHERTYPE };
    outer.emit_with(&[header.to_bytes(), inner].concat())
}

/// A capture file of classic format: link type Ethernet.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for frame in frames {
        let len = frame.len() as u32;
        for word in [0, 0, len, len] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(frame);
    }
    file
}

/// What tshark prints for `frames`, or `None` where there is no tshark.
fn tshark(name: &str, frames: &[Vec<u8>], arguments: &[&str]) -> Option<String> {
    if !weft_needs::program("tshark") {
        return None;
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.pcap", std::process::id()));
    fs::write(&file, capture(frames)).unwrap();
    let output = Command::new("tshark").arg("-r").arg(&file).arg("-n").args(arguments).output();
    fs::remove_file(&file).unwrap();
    let output = output.unwrap();
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    // Flags are written as 1 by older versions and as True by newer ones.
    Some(String::from_utf8(output.stdout).unwrap().replace("True", "1").replace("False", "0"))
}

/// The fields of one frame, in the order asked for.
fn fields(name: &str, frame: Vec<u8>, fields: &[&str]) -> Option<Vec<String>> {
    let mut arguments = vec!["-T", "fields", "-E", "separator=;", "-E", "occurrence=a", "-E", "aggregator=,"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let text = tshark(name, &[frame], &arguments)?;
    Some(text.trim_end_matches('\n').split(';').map(str::to_owned).collect())
}

#[test]
fn hello_fields() {
    let names = [
        "isis.type",
        "isis.max_area_adr",
        "isis.hello.circuit_type",
        "isis.hello.holding_timer",
        "isis.hello.adjacency_state",
        "isis.hello.neighbor_systemid",
        "isis.hello.vlan_flags.port_id",
        "isis.hello.vlan_flags.nickname",
        "isis.hello.clv_restart_flags",
        "isis.hello.clv_restart.remain_time",
        "isis.hello.clv_restart.neighbor",
    ];
    let Some(row) = fields("hello", isis_frame(&hello()), &names) else { return };
    assert_eq!(row[..8], ["17", "1", "0x01", "3", "0", "0a00.0000.0052", "9", "0x0051"]);
    assert_eq!(row[8..], ["0x02", "27", "0a00.0000.0052"], "of a restart");
}

#[test]
fn lan_hello_fields() {
    let names = [
        "isis.type",
        "isis.hello.circuit_type",
        "isis.hello.source_id",
        "isis.hello.holding_timer",
        "isis.hello.priority",
        "isis.hello.lan_id",
        "isis.hello.vlan_flags.port_id",
        "isis.hello.vlan_flags.nickname",
        "isis.hello.vlan_flags.af",
        "isis.hello.vlan_flags.ac",
        "isis.hello.vlan_flags.vm",
        "isis.hello.vlan_flags.by",
        "isis.hello.vlan_flags.outer_vlan",
        "isis.hello.vlan_flags.tr",
        "isis.hello.vlan_flags.designated_vlan",
        "isis.hello.af.nickname",
        "isis.hello.af.start_vlan",
        "isis.hello.af.end_vlan",
        "isis.hello.trill_neighbor.sf",
        "isis.hello.trill_neighbor.lf",
    ];
    let Some(row) = fields("lan-hello", isis_frame(&lan_hello()), &names) else { return };
    let head = ["15", "0x01", "0a00.0000.0051", "30", "65", "0a00.0000.0051.03", "9", "0x0051"];
    assert_eq!(row[..8], head);
    assert_eq!(row[8..15], ["1", "0", "1", "1", "7", "1", "5"], "flags and VLANs");
    assert_eq!(row[15..18], ["0x0052,0x0053", "10,30", "19,30"], "appointed forwarders");
    assert_eq!(row[18..], ["1,0", "0,1"], "the first list begins with the smallest, the last ends with the largest");
    let mut arguments = vec!["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"];
    arguments.extend(["-e", "isis.hello.trill_neighbor.snpa", "-e", "isis.hello.trill_neighbor.ff"]);
    let Some(text) = tshark("lan-neighbors", &[isis_frame(&lan_hello())], &arguments) else { return };
    let (heard, failed) = text.trim().split_once('\t').unwrap();
    let heard: Vec<&str> = heard.split(',').collect();
    assert_eq!(heard.len(), 31, "the 28th is in both lists");
    assert_eq!((heard[0], heard[27], heard[28]), ("0200.0000.5201", "0200.0000.521c", "0200.0000.521c"));
    assert_eq!(failed.matches('1').count(), 1);
}

#[test]
fn a_pseudonodes_lsp() {
    let names = [
        "isis.lsp.lsp_id",
        "isis.lsp.checksum.status",
        "isis.lsp.ext_is_reachability.is_neighbor_id",
        "isis.lsp.ext_is_reachability.metric",
    ];
    let Some(row) = fields("pseudonode", isis_frame(&pseudonode_lsp()), &names) else { return };
    assert_eq!(row, ["0a00.0000.0051.03-00", "1", "0a00.0000.0051.00,0a00.0000.0052.00", "0,0"]);
}

#[test]
fn lsp_fields_and_checksum() {
    let names = [
        "isis.lsp.lsp_id",
        "isis.lsp.sequence_number",
        "isis.lsp.remaining_life",
        "isis.lsp.checksum.status",
        "isis.lsp.overload",
        "isis.lsp.originating_lsp_buffer_size",
        "isis.lsp.ext_is_reachability.is_neighbor_id",
        "isis.lsp.rt_capable.nickname.nickname",
        "isis.lsp.rt_capable.trees.nof_trees_to_compute",
        "isis.lsp.rt_capable.interested_vlans.vlan_start_id",
        "isis.lsp.rt_capable.interested_vlans.vlan_end_id",
    ];
    let Some(row) = fields("lsp", isis_frame(&lsp()), &names) else { return };
    let neighbor = "0a00.0000.0052.00";
    assert_eq!(
        row,
        ["0a00.0000.0051.00-00", "0x00000102", "1200", "1", "1", "4000", neighbor, "0x0051", "1", "100", "200"]
    );
}

/// The control: a reader that would call every checksum good would pass the test above as well.
#[test]
fn a_damaged_lsp_is_called_damaged() {
    let mut damaged = isis_frame(&lsp());
    *damaged.last_mut().unwrap() ^= 1;
    let Some(row) = fields("damaged-lsp", damaged, &["isis.lsp.checksum.status"]) else { return };
    assert_eq!(row, ["0"]);
}

#[test]
fn data_fields() {
    let names =
        ["trill.version", "trill.multi_dst", "trill.hop_cnt", "trill.egress_nick", "trill.ingress_nick", "vlan.id"];
    let Some(row) = fields("data", data(), &names) else { return };
    assert_eq!(row, ["0", "1", "7", "82", "81", "100"]);
}

#[test]
fn nothing_is_marked_malformed() {
    let pdus = [hello(), lan_hello(), lsp(), pseudonode_lsp(), csnp(), psnp()];
    let frames: Vec<Vec<u8>> = pdus.iter().map(isis_frame).chain([data()]).collect();
    let Some(text) = tshark("malformed", &frames, &["-V"]) else { return };
    assert!(!text.to_lowercase().contains("malformed"), "{text}");
    for expected in ["CSNP", "PSNP", "LSP-ID", "Hold", "TRILL Neighbor"] {
        assert!(text.to_lowercase().contains(&expected.to_lowercase()), "no {expected} in:\n{text}");
    }
}

#[test]
fn authentication_fields() {
    for pdu in [hello(), lsp(), csnp()] {
        let frames = signed(pdu);
        for frame in frames.iter().take(5) {
            let Some(row) = fields("key-id", frame.clone(), &["isis.clv.key_id", "isis.lsp.checksum.status"]) else {
                return;
            };
            assert_eq!((row[0].as_str(), row[1] != "0"), ("4660", true));
        }
        let Some(text) = tshark("authentication", &frames, &["-V"]) else { return };
        assert!(!text.to_lowercase().contains("malformed"), "{text}");
        assert_eq!(text.matches("hmac-md5").count(), 1, "{text}");
    }
}
