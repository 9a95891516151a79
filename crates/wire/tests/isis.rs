//! IS-IS against captures that other code made: each frame decodes to the value written here and encodes to its bytes.

#[allow(unreachable_pub)]
mod captures;

use captures::frames;
use weft_wire::ParseError;
use weft_wire::ethernet::{MacAddress, ethertype};
use weft_wire::isis::authentication::{self, NoSignature, Scheme, Signature};
use weft_wire::isis::group::{GroupRecord, GroupSub, Groups};
use weft_wire::isis::hello::{
    Appointment, HandshakeState, NeighborRecord, Neighbors, PortSub, Restart, ThreeWay, VlanBitmap, VlanFlags,
};
use weft_wire::isis::lsp::{
    AffinityRecord, CapabilitySub, InterestedLabels, InterestedVlans, NicknameRecord, Reach, ReachSub, TreeList,
    capability,
};
use weft_wire::isis::pdu::{Csnp, FsLsp, LanHello, Lsp, Mtu, P2pHello, Psnp};
use weft_wire::isis::tlv::LspEntry;
use weft_wire::isis::view::{LspFlags, with_lifetime};
use weft_wire::isis::{self, EmitError, Kind, LspId, NodeId, Pdu, SystemId, Tlv, View};
use weft_wire::trill::frame;

const ONE: SystemId = SystemId([0x0a, 0, 0, 0, 0, 1]);
const TWO: SystemId = SystemId([0x0a, 0, 0, 0, 0, 2]);
/// Nicknames of the two, and of a third that is a tree's root.
const N1: u16 = 0x11;
const N2: u16 = 0x22;
const ROOT: u16 = 0x33;

/// What follows the Ethertype of an IS-IS frame, padding included.
fn isis_payload(frame: &[u8]) -> &[u8] {
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let at = if word(12) == ethertype::VLAN { 16 } else { 12 };
    assert_eq!(word(at), isis::ETHERTYPE);
    &frame[at + 2..]
}

fn port_mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number])
}

/// The PDU reads as `expected`, also behind padding, and `expected` is written as those bytes.
fn same(payload: &[u8], expected: &Pdu) {
    assert_eq!(&Pdu::parse(payload).unwrap(), expected);
    let bytes = expected.emit().unwrap();
    assert_eq!(bytes, View::new(payload).unwrap().as_bytes());
    assert_eq!(&Pdu::parse(&[&bytes[..], &[0; 50]].concat()).unwrap(), expected);
}

fn common_tlvs() -> Vec<Tlv> {
    vec![Tlv::Areas(vec![vec![0]]), Tlv::Protocols(vec![0xc0]), Tlv::FloodingScopes(vec![64, 66])]
}

fn port_version() -> PortSub {
    PortSub::PortVersion { max_version: 0, capabilities: 1 << 31 }
}

#[test]
fn lan_hello() {
    let flags = VlanFlags {
        port_id: 1,
        nickname: N1,
        forwarder: true,
        bypass_pseudonode: true,
        outer_vlan: 1,
        designated_vlan: 1,
        ..VlanFlags::default()
    };
    let enabled = VlanBitmap { start: 1, bits: vec![0b1100_0000, 0b0010_0000] };
    let appointed = VlanBitmap { start: 10, bits: vec![0b1100_0000] };
    assert_eq!(enabled.iter().collect::<Vec<_>>(), [1, 2, 11]);
    let subs = vec![
        PortSub::VlanFlags(flags),
        PortSub::EnabledVlans(enabled),
        PortSub::AppointedForwarders(vec![Appointment { nickname: N2, start_vlan: 20, end_vlan: 29 }]),
        port_version(),
        PortSub::VlansAppointed(appointed),
    ];
    let record = |mac, mtu, mtu_failed| NeighborRecord { mtu_failed, overload_service: false, mtu, address: mac };
    let records = vec![record(port_mac(2), 1500, false), record(port_mac(3), 0, true)];
    let mut tlvs = common_tlvs();
    tlvs.push(Tlv::PortCapability { topology: 0, subs });
    tlvs.push(Tlv::TrillNeighbors(Neighbors { from_smallest: true, to_largest: true, records }));
    let lan_id = NodeId([0x0a, 0, 0, 0, 0, 1, 1]);
    let hello = LanHello { circuit_type: 1, source: ONE, holding_time_s: 30, priority: 64, lan_id, tlvs };
    same(isis_payload(&frames("hello-lan")[0]), &Pdu::LanHello(hello));
}

#[test]
fn p2p_hellos() {
    let hello = |source, port_id, nickname, three_way| {
        let flags =
            VlanFlags { port_id, nickname, outer_vlan: 1, designated_vlan: 1, trunk: true, ..VlanFlags::default() };
        let mut tlvs = common_tlvs();
        tlvs.push(Tlv::PortCapability { topology: 0, subs: vec![PortSub::VlanFlags(flags), port_version()] });
        tlvs.push(Tlv::ThreeWay(three_way));
        Pdu::P2pHello(P2pHello { circuit_type: 1, source, holding_time_s: 30, local_circuit: 1, tlvs })
    };
    let begins = ThreeWay {
        state: HandshakeState::Initializing,
        local_circuit: Some(1),
        neighbor: None,
        neighbor_circuit: None,
    };
    let up =
        ThreeWay { state: HandshakeState::Up, local_circuit: Some(7), neighbor: Some(ONE), neighbor_circuit: Some(1) };
    let captured = frames("hello-p2p");
    same(isis_payload(&captured[0]), &hello(ONE, 1, N1, begins));
    same(isis_payload(&captured[1]), &hello(TWO, 7, N2, up));
}

/// RFC 8706 section 3.2: 1, 3 or 9 bytes. Another length is kept and means nothing.
#[test]
fn restart_tlvs_of_all_lengths() {
    let of = |value: &[u8]| Tlv::parse(211, value);
    let told = |flags, remaining_s, neighbor| Tlv::Restart(Restart { flags, remaining_s, neighbor });
    let cases: [(&[u8], Tlv); 4] = [
        (&[1], told(Restart::REQUEST, None, None)),
        (&[2, 0x01, 0x2c], told(Restart::ACKNOWLEDGEMENT, Some(300), None)),
        (&[2, 0, 30, 0x0a, 0, 0, 0, 0, 1], told(Restart::ACKNOWLEDGEMENT, Some(30), Some(ONE))),
        (&[0xf4, 0, 0], told(0xf0 | Restart::SUPPRESS, Some(0), None)),
    ];
    for (value, expected) in cases {
        assert_eq!(of(value), expected);
        let tlvs = vec![expected];
        let hello =
            Pdu::P2pHello(P2pHello { circuit_type: 1, source: ONE, holding_time_s: 30, local_circuit: 1, tlvs });
        let bytes = hello.emit().unwrap();
        assert_eq!(&bytes[bytes.len() - value.len()..], value);
        same(&bytes, &hello);
    }
    for len in [0, 2, 4, 5, 6, 7, 8, 10, 200] {
        let value = vec![1; len];
        assert_eq!(of(&value), Tlv::Other { code: 211, value });
    }
}

fn capabilities() -> Tlv {
    let interested_vlans = InterestedVlans {
        nickname: N1,
        all_ipv4_groups: true,
        all_ipv6_groups: true,
        esadi: false,
        start_vlan: 10,
        end_vlan: 19,
        forwarder_lost: 3,
        root_bridges: vec![[2, 0x99, 0, 0, 0, 0x99]],
    };
    let interested_labels = InterestedLabels {
        nickname: N1,
        flags: 0xc0,
        start: 0x12_3456,
        end_or_bits: 0x12_3457,
        forwarder_lost: 1,
        root_bridges: vec![],
    };
    let subs = vec![
        CapabilitySub::TrillVersion { max_version: 0, capabilities: capability::E_L1FS | capability::FGL_SAFE },
        CapabilitySub::Nicknames(vec![
            NicknameRecord { priority: 0xc0, root_priority: 0x8000, nickname: N1 },
            NicknameRecord { priority: 0x40, root_priority: 0x7000, nickname: 0x0111 },
        ]),
        CapabilitySub::Trees { compute: 2, max: 8, use_count: 1 },
        CapabilitySub::TreeRoots(TreeList { start: 1, roots: vec![ROOT, N1] }),
        CapabilitySub::TreesUsed(TreeList { start: 1, roots: vec![ROOT] }),
        CapabilitySub::InterestedVlans(interested_vlans),
        CapabilitySub::VlanGroup { primary: 10, secondary: vec![11, 12] },
        CapabilitySub::InterestedLabels(interested_labels),
        CapabilitySub::Channels(vec![2, 0, 0b0111_0000]),
        CapabilitySub::Affinity(vec![AffinityRecord { nickname: N2, flags: 0, trees: vec![1] }]),
    ];
    Tlv::Capability { router_id: 0, flags: 0, subs }
}

fn lsp() -> Pdu {
    let reach = Reach { node: TWO.node(), metric: 20_000, subs: vec![ReachSub::Mtu { failed: false, mtu: 1500 }] };
    let group = GroupRecord { group: [1, 0, 0x5e, 1, 2, 3], sources: vec![] };
    let tlvs = vec![
        Tlv::Areas(vec![vec![0]]),
        Tlv::Protocols(vec![0xc0]),
        Tlv::LspBufferSize(1470),
        Tlv::Hostname(b"rb1".to_vec()),
        capabilities(),
        Tlv::Reach(vec![reach]),
        Tlv::Groups(vec![GroupSub::Mac(Groups { topology: 0, vlan: 10, records: vec![group] })]),
    ];
    Pdu::Lsp(Lsp { lifetime_s: 1199, id: ONE.lsp(0), sequence: 7, flags: LspFlags::LEVEL_1, tlvs })
}

#[test]
fn lsp_with_everything() {
    same(isis_payload(&frames("lsp")[0]), &lsp());
}

#[test]
fn purge() {
    let tlvs = vec![Tlv::PurgeOriginator { originator: TWO, received_from: None }];
    let purge = Lsp { lifetime_s: 0, id: ONE.lsp(0), sequence: 8, flags: LspFlags::LEVEL_1, tlvs };
    same(isis_payload(&frames("purge")[0]), &Pdu::Lsp(purge));
}

#[test]
fn sequence_number_pdus() {
    let captured = frames("snp");
    let lsp_frame = &frames("lsp")[0];
    let header = View::new(isis_payload(lsp_frame)).unwrap().lsp().unwrap();
    let entry = LspEntry { lifetime_s: 1199, id: ONE.lsp(0), sequence: 7, checksum: header.checksum };
    let tlvs = vec![Tlv::LspEntries(vec![entry])];
    let csnp = Csnp { source: ONE.node(), start: LspId::FIRST, end: LspId::LAST, tlvs: tlvs.clone() };
    same(isis_payload(&captured[0]), &Pdu::Csnp(csnp));
    same(isis_payload(&captured[1]), &Pdu::Psnp(Psnp { source: TWO.node(), tlvs }));
}

#[test]
fn mtu_probe_and_ack() {
    let captured = frames("mtu");
    let mtu = |ack_source| {
        let probe_id = [0, 1, 0, 0, 0, 1];
        Mtu { probe_id, probe_source: ONE, ack_source, tlvs: vec![] }.padded_to(1470)
    };
    same(isis_payload(&captured[0]), &Pdu::MtuProbe(mtu(SystemId::default())));
    same(isis_payload(&captured[1]), &Pdu::MtuAck(mtu(TWO)));
    for len_bytes in 30..800 {
        let padded = Mtu { probe_id: [0; 6], probe_source: ONE, ack_source: TWO, tlvs: vec![] }.padded_to(len_bytes);
        assert_eq!(Pdu::MtuAck(padded).emit().unwrap().len(), usize::from(len_bytes));
    }
}

#[test]
fn esadi_lsp_inside_a_data_frame() {
    let captured = frames("esadi");
    let payload = frame::View::new(&captured[0]).unwrap().payload();
    let geninfo = [&[0, 0, 1][..], &[0, 1, 0, 3, 0x40, 30, 0x80]].concat();
    let reach = [&[0, 0, 0x20, 0, 0][..], &[2, 0xaa, 0, 0, 0, 0x0a]].concat();
    let lsp = FsLsp {
        scope: 64,
        lifetime_s: 1199,
        id: [0x0a, 0, 0, 0, 0, 1, 0, 0],
        sequence: 1,
        flags: LspFlags::LEVEL_1,
        tlvs: vec![(251, geninfo), (147, reach)],
    };
    same(payload, &Pdu::FsLsp(lsp));
}

fn every_capture() -> Vec<Vec<u8>> {
    let names = ["hello-lan", "hello-p2p", "lsp", "purge", "snp", "mtu"];
    let payloads = names.iter().flat_map(|name| frames(name)).map(|frame| isis_payload(&frame).to_vec());
    payloads.map(|payload| View::new(&payload).unwrap().as_bytes().to_vec()).collect()
}

#[test]
fn what_is_cut_anywhere_is_refused() {
    for pdu in every_capture() {
        for len in 0..pdu.len() {
            let refused = Pdu::parse(&pdu[..len]).is_err();
            assert!(refused, "{:?} cut to {len} bytes", View::new(&pdu).unwrap().kind());
        }
    }
}

/// The PDU length says less than what is there: the last TLV is cut, or the header is.
#[test]
fn a_short_pdu_length_is_refused_or_cuts_whole_tlvs() {
    for pdu in every_capture() {
        let kind = View::new(&pdu).unwrap().kind();
        let at = if matches!(kind, Kind::LanHello | Kind::P2pHello) { 17 } else { 8 };
        let whole: Vec<usize> = ends_of_tlvs(&pdu, kind.header_len());
        for len in 0..=pdu.len() + 1 {
            let mut shorter = pdu.clone();
            shorter[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
            assert_eq!(View::new(&shorter).is_ok(), whole.contains(&len), "{kind:?} of {} says {len}", pdu.len());
        }
    }
}

/// Every TLV, and every sub-TLV of those that have some, cut short at every byte with lengths that agree: it is kept as
/// it is, or read as something that is written as the same bytes; the TLVs beside it are what they were.
#[test]
fn every_tlv_cut_short_is_kept_and_spoils_no_other() {
    for pdu in every_capture() {
        let kind = View::new(&pdu).unwrap().kind();
        let at = if matches!(kind, Kind::LanHello | Kind::P2pHello) { 17 } else { 8 };
        let ends = ends_of_tlvs(&pdu, kind.header_len());
        let mut whole = Pdu::of_view(&View::new(&pdu).unwrap());
        let whole = whole.tlvs_mut().unwrap().clone();
        for (nth, span) in ends.windows(2).enumerate() {
            for value in cuts(pdu[span[0]], &pdu[span[0] + 2..span[1]]) {
                let tlv = [&[pdu[span[0]], value.len() as u8][..], &value].concat();
                let mut cut = [&pdu[..span[0]], &tlv, &pdu[span[1]..]].concat();
                let len = cut.len() as u16;
                cut[at..at + 2].copy_from_slice(&len.to_be_bytes());
                let mut read = Pdu::of_view(&View::new(&cut).unwrap());
                let tlvs = read.tlvs_mut().unwrap();
                assert_eq!((&tlvs[..nth], &tlvs[nth + 1..]), (&whole[..nth], &whole[nth + 1..]));
                assert_eq!(written(&tlvs[nth]), tlv, "{:?}", tlvs[nth]);
            }
        }
    }
}

/// The value of a TLV cut at every byte, and with each of its sub-TLVs cut so.
fn cuts(code: u8, value: &[u8]) -> Vec<Vec<u8>> {
    let mut cuts: Vec<Vec<u8>> = (0..value.len()).map(|len| value[..len].to_vec()).collect();
    let subs_at = match code {
        143 => 2,
        242 => 5,
        _ => return cuts,
    };
    for span in ends_of_tlvs(value, subs_at).windows(2) {
        // Interested labels are read in two lengths, and written in one.
        let is_other_length = |len: &usize| (value[span[0]], *len) == (15, 11);
        for len in (0..span[1] - span[0] - 2).filter(|len| !is_other_length(len)) {
            let sub = [&[value[span[0]], len as u8], &value[span[0] + 2..span[0] + 2 + len]].concat();
            cuts.push([&value[..span[0]], &sub, &value[span[1]..]].concat());
        }
    }
    cuts
}

fn written(tlv: &Tlv) -> Vec<u8> {
    let psnp = Pdu::Psnp(Psnp { source: ONE.node(), tlvs: vec![tlv.clone()] });
    psnp.emit().unwrap()[17..].to_vec()
}

fn ends_of_tlvs(pdu: &[u8], header_len: usize) -> Vec<usize> {
    let mut ends = vec![header_len];
    while let Some(end) = ends.last().copied().filter(|end| *end < pdu.len()) {
        ends.push(end + 2 + usize::from(pdu[end + 1]));
    }
    ends
}

#[test]
fn a_wrong_fixed_field_is_refused() {
    let pdu = lsp().emit().unwrap();
    let with = |at: usize, value: u8| {
        let mut changed = pdu.clone();
        changed[at] = value;
        View::new(&changed).map(|view| view.kind()).unwrap_err()
    };
    assert!(matches!(with(0, 0x82), ParseError::Magic(_)));
    assert_eq!(with(1, 28), ParseError::Length { expected_bytes: 27, found_bytes: 28 });
    assert_eq!(with(2, 2), ParseError::Version(2));
    assert_eq!(with(3, 7), ParseError::Count(7));
    assert_eq!(with(4, 19), ParseError::Kind(19));
    assert_eq!(with(5, 0), ParseError::Version(0));
}

#[test]
fn every_damaged_bit_of_an_lsp_is_seen() {
    let good = lsp().emit().unwrap();
    for bit in 12 * 8..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(Pdu::parse(&bad).is_err(), "bit {bit}");
    }
    let mut unsummed = good.clone();
    unsummed[24..26].fill(0);
    assert_eq!(Pdu::parse(&unsummed), Err(ParseError::Checksum(0)), "zero does not mean unchecked");
}

#[test]
fn the_lifetime_is_not_summed() {
    let sent_on = with_lifetime(&lsp().emit().unwrap(), 3);
    let Ok(Pdu::Lsp(read)) = Pdu::parse(&sent_on) else { panic!("an LSP") };
    assert_eq!(read.lifetime_s, 3);
}

#[test]
fn unknown_and_odd_tlvs_survive() {
    let odd = vec![
        Tlv::Other { code: 250, value: vec![1, 2, 3] },
        Tlv::Other { code: 250, value: vec![] },
        Tlv::Other { code: 14, value: vec![1, 2, 3] },
        Tlv::Other { code: 22, value: vec![0; 10] },
        Tlv::Other { code: 8, value: vec![0, 1] },
        Tlv::Other { code: 240, value: vec![9] },
        Tlv::Other { code: 9, value: vec![0; 15] },
        Tlv::Other { code: 242, value: vec![0, 0, 0, 1, 0, 6] },
        Tlv::Capability {
            router_id: 1,
            flags: 1,
            subs: vec![
                CapabilitySub::Other { code: 99, value: vec![7; 9] },
                CapabilitySub::Other { code: 6, value: vec![1, 2, 3, 4] },
                CapabilitySub::Other { code: 10, value: vec![0; 11] },
            ],
        },
        Tlv::PortCapability { topology: 5, subs: vec![PortSub::Other { code: 1, value: vec![0; 7] }] },
        Tlv::Reach(vec![Reach {
            node: TWO.node(),
            metric: 1,
            subs: vec![ReachSub::Other { code: 28, value: vec![1] }],
        }]),
    ];
    let pdu = Pdu::Lsp(Lsp { lifetime_s: 9, id: ONE.lsp(4), sequence: 1, flags: LspFlags::LEVEL_1, tlvs: odd });
    assert_eq!(Pdu::parse(&pdu.emit().unwrap()), Ok(pdu));
}

/// RFC 7176 section 2.3.8 gives the fields 13 + 6n bytes and prints 11 + 6n; both are read.
#[test]
fn interested_labels_of_both_lengths() {
    let read = |value: &[u8]| {
        let sub = [&[15, value.len() as u8][..], value].concat();
        match Tlv::parse(242, &[&[0; 5][..], &sub].concat()) {
            Tlv::Capability { subs, .. } => subs[0].clone(),
            other => panic!("{other:?}"),
        }
    };
    let fields = [0, 0x11, 0xc0, 0, 0, 5, 0, 0, 9];
    let expected = |roots: &[[u8; 6]]| {
        CapabilitySub::InterestedLabels(InterestedLabels {
            nickname: N1,
            flags: 0xc0,
            start: 5,
            end_or_bits: 9,
            forwarder_lost: 2,
            root_bridges: roots.to_vec(),
        })
    };
    assert_eq!(read(&[&fields[..], &[0, 0, 0, 2]].concat()), expected(&[]));
    assert_eq!(read(&[&fields[..], &[0, 2]].concat()), expected(&[]));
    assert_eq!(read(&[&fields[..], &[0, 2], &[7; 6]].concat()), expected(&[[7; 6]]));
    assert!(matches!(read(&[&fields[..], &[0, 0, 2]].concat()), CapabilitySub::Other { .. }));
}

#[test]
fn what_does_not_fit_its_length_field_is_not_written() {
    let with = |tlvs| Pdu::Psnp(Psnp { source: ONE.node(), tlvs }).emit();
    let entry = LspEntry { lifetime_s: 1, id: ONE.lsp(0), sequence: 1, checksum: 1 };
    assert!(with(vec![Tlv::LspEntries(vec![entry; 15])]).is_ok());
    assert_eq!(with(vec![Tlv::LspEntries(vec![entry; 16])]), Err(EmitError::TlvTooLong { code: 9 }));
    let long = vec![Tlv::Padding { len_bytes: 255 }; 256];
    assert_eq!(with(long), Err(EmitError::PduTooLong { len_bytes: 17 + 256 * 257 }));
}

#[test]
fn entries_are_read_without_allocation() {
    let pdu = isis_payload(&frames("snp")[0]).to_vec();
    let (_, value) = View::new(&pdu).unwrap().tlvs().next().unwrap();
    assert_eq!(LspEntry::iter(value).unwrap().count(), 1);
    assert!(LspEntry::iter(&value[1..]).is_none());
}

fn signed(pdu: &Pdu, scheme: Scheme, digest: &[u8]) -> Vec<u8> {
    let mut pdu = pdu.clone();
    pdu.tlvs_mut().unwrap().insert(1, Tlv::Authentication { scheme, digest: digest.to_vec() });
    pdu.emit().unwrap()
}

fn covered(pdu: &[u8]) -> Vec<u8> {
    let mut covered = Vec::new();
    Signature::of(&View::new(pdu).unwrap()).unwrap().covered(|part| covered.extend_from_slice(part));
    covered
}

/// RFC 5310 section 3.3, RFC 5304 section 2: the whole PDU, with other bytes for the digest.
#[test]
fn a_digest_covers_the_whole_pdu() {
    let pdu =
        Pdu::Psnp(Psnp { source: ONE.node(), tlvs: vec![Tlv::Hostname(vec![7; 3]), Tlv::Padding { len_bytes: 4 }] });
    let at = 17 + 5 + 2;
    for (scheme, head, pad) in
        [(Scheme::HmacMd5, 1, [0; 6]), (Scheme::Generic { key_id: 0x102 }, 3, [0x87, 0x8f, 0xe1, 0xf3, 0x87, 0x8f])]
    {
        let bytes = signed(&pdu, scheme, &[9; 6]);
        let digest = at + head..at + head + 6;
        assert_eq!(bytes[digest.clone()], [9; 6]);
        let mut expected = bytes.clone();
        expected[digest].copy_from_slice(&pad);
        assert_eq!(covered(&bytes), expected);
        let view = View::new(&bytes).unwrap();
        let signature = Signature::of(&view).unwrap();
        assert_eq!((signature.scheme(), signature.digest()), (scheme, &[9; 6][..]));
    }
}

/// So that a holder can pass it on with another lifetime, and the originator can put the checksum in afterwards.
#[test]
fn a_digest_covers_neither_lifetime_nor_checksum_of_an_lsp() {
    let mut bytes = signed(&lsp(), Scheme::Generic { key_id: 1 }, &[0; 32]);
    let before = covered(&bytes);
    assert_eq!((before[10..12].to_vec(), before[24..26].to_vec()), (vec![0; 2], vec![0; 2]));
    authentication::seal(&mut bytes, &[0x5a; 32]);
    assert!(View::new(&bytes).unwrap().verify_checksum().is_ok());
    assert_eq!(Signature::of(&View::new(&bytes).unwrap()).unwrap().digest(), [0x5a; 32]);
    assert_eq!((covered(&bytes), covered(&with_lifetime(&bytes, 3))), (before.clone(), before.clone()));
    for at in (0..bytes.len()).filter(|at| ![10, 11, 24, 25].contains(at)) {
        let mut other = bytes.clone();
        other[at] ^= 1;
        let still_one = View::new(&other).is_ok_and(|view| Signature::of(&view).is_ok());
        let is_digest = bytes[at] == 0x5a;
        assert!(!still_one || is_digest || covered(&other) != before, "byte {at}");
    }
}

#[test]
fn a_withdrawal_is_sealed_without_checksum() {
    let purge = Pdu::Lsp(Lsp {
        lifetime_s: 0,
        id: ONE.lsp(0),
        sequence: 8,
        flags: LspFlags::LEVEL_1,
        tlvs: vec![Tlv::Hostname(vec![1])],
    });
    let mut bytes = signed(&purge, Scheme::HmacMd5, &[0; 16]);
    authentication::seal(&mut bytes, &[3; 16]);
    let header = View::new(&bytes).unwrap().lsp().unwrap();
    assert_eq!((header.lifetime_s, header.checksum), (0, 0));
}

#[test]
fn authentication_that_cannot_be_judged() {
    let with = |tlvs| Pdu::Psnp(Psnp { source: ONE.node(), tlvs });
    let why = |tlvs: Vec<Tlv>| {
        let pdu = with(tlvs);
        let bytes = pdu.emit().unwrap();
        assert_eq!(Pdu::parse(&bytes), Ok(pdu), "it is kept as it is");
        Signature::of(&View::new(&bytes).unwrap()).unwrap_err()
    };
    let other = |value: &[u8]| Tlv::Other { code: 10, value: value.to_vec() };
    let good = Tlv::Authentication { scheme: Scheme::Generic { key_id: 7 }, digest: vec![1; 20] };
    assert_eq!(why(vec![]), NoSignature::Missing);
    for value in [&b"\x01password"[..], &[], &[3], &[3, 0], &[255; 255]] {
        assert_eq!(why(vec![other(value)]), NoSignature::UnknownType);
        assert_eq!(why(vec![other(value), good.clone()]), NoSignature::Several);
    }
    assert_eq!(why(vec![good.clone(), good]), NoSignature::Several);
    let longest = Tlv::Authentication { scheme: Scheme::Generic { key_id: 7 }, digest: vec![1; 252] };
    assert_eq!(covered(&with(vec![longest]).emit().unwrap()).len(), 17 + 257);
    let too_long = Tlv::Authentication { scheme: Scheme::HmacMd5, digest: vec![1; 255] };
    assert_eq!(with(vec![too_long]).emit(), Err(EmitError::TlvTooLong { code: 10 }));
}
