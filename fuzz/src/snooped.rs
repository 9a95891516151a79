//! The bodies for what an RBridge only listens to: who wants which IP multicast groups, and which bridge is the root.

use weft_wire::bpdu;
use weft_wire::checksum;
use weft_wire::ethernet::{self, MacAddress, ethertype};
use weft_wire::listener::{self, Message};

use crate::seeds::{Seed, changed};

/// An IPv4 header with the router alert, and an IPv6 header with the options that hold it.
const BEFORE_IGMP: usize = 24;
const BEFORE_MLD: usize = 48;

/// Any bytes as a packet of IGMP or MLD, also with its checksum made right: what is read names groups, and no more than fit.
///
/// # Panics
/// When that is not so.
pub fn listener_message(bytes: &[u8]) {
    let Some((first, packet)) = bytes.split_first() else { return };
    let (ethertype, start) =
        if first % 2 == 0 { (ethertype::IPV4, BEFORE_IGMP) } else { (ethertype::IPV6, BEFORE_MLD) };
    let mut repaired = packet.to_vec();
    if repaired.len() >= start + 4 {
        repaired[start + 2..start + 4].fill(0);
        let message = &repaired[start..];
        let sum = if start == BEFORE_IGMP { checksum::of(message) } else { mld_sum(&repaired) };
        repaired[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
    }
    for packet in [packet, &repaired] {
        match listener::parse(ethertype, packet) {
            Ok(Some((_, Message::Report(changes)))) => {
                assert!(changes.iter().all(|change| change.group.is_group()));
                assert!(changes.len() * 8 <= packet.len(), "a record has eight bytes at least");
            }
            Ok(Some((_, Message::Query { group: Some(group), .. }))) => assert!(group.0[0] == 1 || group.0[0] == 0x33),
            Ok(_) | Err(_) => {}
        }
    }
}

fn mld_sum(packet: &[u8]) -> u16 {
    let address = |at: usize| <[u8; 16]>::try_from(&packet[at..at + 16]).expect("sixteen bytes").into();
    checksum::of_ipv6_segment(address(8), address(24), 58, &packet[BEFORE_MLD..])
}

/// Any bytes as a BPDU: refused, or it has a root that does not change with what follows it.
///
/// # Panics
/// When it does.
pub fn bpdu(bytes: &[u8]) {
    let Ok(view) = bpdu::View::new(bytes) else { return };
    let root = view.root();
    assert_eq!(&bytes[8..16], root.0);
    let said = |view: bpdu::View<'_>| (view.root(), view.acknowledges_change());
    assert_eq!(bpdu::View::new(&bytes[..bpdu::LEN_MIN]).map(said), Ok(said(view)));
}

pub(crate) fn seeds() -> Vec<Seed> {
    let in_target = |target| move |(name, bytes)| Seed { target, name, bytes };
    let messages = messages().into_iter().map(in_target("listener_message"));
    messages.chain(bpdus().into_iter().map(in_target("bpdu"))).collect()
}

fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let mac = MacAddress([2, 0, 0, 0, 0, 7]);
    let packet = |first: u8, frame: Vec<u8>| [&[first], &frame[ethernet::HEADER_LEN..]].concat();
    let (igmp, mld) = (packet(0, listener::igmp_query(mac, 1000, 125)), packet(1, listener::mld_query(mac, 1000, 125)));
    let of_igmp = |message: &[u8]| {
        let header = changed(&igmp[..=BEFORE_IGMP], 4, (BEFORE_IGMP + message.len()) as u8);
        [&header, message].concat()
    };
    let of_mld = |message: &[u8]| {
        let header = changed(&mld[..=BEFORE_MLD], 6, (8 + message.len()) as u8);
        [&header, message].concat()
    };
    let group = [0xff, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3];
    vec![
        ("igmp-query", igmp.clone()),
        ("igmp-report", of_igmp(&[0x16, 0, 0, 0, 239, 1, 2, 3])),
        ("igmp-leave", of_igmp(&[0x17, 0, 0, 0, 239, 1, 2, 3])),
        ("igmp-records", of_igmp(&[0x22, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 1, 239, 1, 2, 3, 10, 0, 0, 1])),
        ("igmp-more-records-than-there-are", of_igmp(&[0x22, 0, 0, 0, 0, 0, 0xff, 0xff, 2, 0, 0, 0, 239, 1, 2, 3])),
        ("igmp-more-sources-than-there-are", of_igmp(&[0x22, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0xff, 0xff, 239, 1, 2, 3])),
        ("router-advertisement", of_igmp(&[0x30, 20, 0, 0, 0, 125, 0, 2])),
        ("mld-query", mld.clone()),
        ("mld-report", of_mld(&[&[131, 0, 0, 0, 0, 0, 0, 0], &group[..]].concat())),
        ("mld-done", of_mld(&[&[132, 0, 0, 0, 0, 0, 0, 0], &group[..]].concat())),
        ("mld-records", of_mld(&[&[143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0], &group[..]].concat())),
        ("mld-cut", mld[..mld.len() - 1].to_vec()),
    ]
}

fn bpdus() -> Vec<(&'static str, Vec<u8>)> {
    let mut whole = vec![0x42, 0x42, 3, 0, 0, 0, 0, 0];
    whole.extend([0x90, 5, 2, 0, 0, 0, 0, 7]);
    whole.resize(bpdu::LEN_MIN, 0);
    vec![
        ("configuration", whole.clone()),
        ("rapid", changed(&changed(&whole, 5, 2), 6, 2)),
        ("topology-change", changed(&whole, 6, 0x80)),
        ("other-llc", changed(&whole, 0, 0xaa)),
        ("other-protocol", changed(&whole, 4, 1)),
        ("padded", [&whole[..], &[0; 22]].concat()),
        ("cut", whole[..bpdu::LEN_MIN - 1].to_vec()),
        ("multiple", [&changed(&changed(&whole, 5, 3), 6, 2)[..], &[0; 64]].concat()),
        ("unknown-kind", changed(&whole, 6, 1)),
        ("empty", Vec::new()),
    ]
}
