//! The bodies for TRILL: data frames and IS-IS PDUs.

use weft_wire::isis::pdu::{EmitError, Psnp};
use weft_wire::isis::tlv::{LspEntry, code};
use weft_wire::isis::{NodeId, Pdu, Tlv, View};
use weft_wire::trill::{HEADER_LEN, Header, frame};

/// A value takes at most this many times its bytes: two bytes of TLV header become one variant.
const TLV_BYTES_MIN: usize = 2;
/// Most bytes of one TLV's value.
const TLV_VALUE_MAX: usize = 255;

/// Any bytes as an IS-IS PDU: read, written again, read the same.
///
/// # Panics
/// When an invariant of the format is broken.
pub fn isis_pdu(bytes: &[u8]) {
    let view = match View::new(bytes) {
        Ok(view) => view,
        Err(error) => {
            assert_eq!(Pdu::parse(bytes), Err(error), "view and value refuse alike");
            assert!(!error.reason().is_empty() && !error.to_string().is_empty());
            return;
        }
    };
    assert!(bytes.starts_with(view.as_bytes()));
    assert!(view.tlvs().count() * TLV_BYTES_MIN <= view.as_bytes().len(), "bounded by the bytes");
    assert_eq!(Pdu::parse(bytes).is_ok(), view.verify_checksum().is_ok(), "only the checksum stands in between");
    let pdu = Pdu::of_view(&view);
    let again = match pdu.emit() {
        Ok(again) => again,
        // The one layout that is read shorter than it is written: interested labels.
        Err(EmitError::TlvTooLong { code }) => return assert_eq!(code, 242),
        Err(error) => return assert!(view.as_bytes().len() > 60_000, "{error}"),
    };
    assert_eq!(Pdu::parse(&again), Ok(pdu), "written and read again");
    for (code, value) in view.tlvs() {
        if let Tlv::Other { code: kept, value: bytes } = Tlv::parse(code, value) {
            assert_eq!((kept, &bytes[..]), (code, value), "what is not understood is kept");
        }
    }
}

/// Any bytes as one TLV, the first being its type: read, written again, read the same.
///
/// # Panics
/// When an invariant of the format is broken.
pub fn isis_tlv(bytes: &[u8]) {
    let [kind, value @ ..] = bytes else { return };
    let value = &value[..value.len().min(TLV_VALUE_MAX)];
    let tlv = Tlv::parse(*kind, value);
    assert_eq!(tlv.code(), *kind);
    if let Tlv::Other { value: kept, .. } = &tlv {
        assert_eq!(kept, value, "what is not understood is kept");
    }
    if *kind == code::LSP_ENTRIES {
        let entries = LspEntry::iter(value).map(|entries| Tlv::LspEntries(entries.collect()));
        assert_eq!(entries, matches!(tlv, Tlv::LspEntries(_)).then(|| tlv.clone()), "view and value agree");
    }
    let carrier = |tlv: &Tlv| Pdu::Psnp(Psnp { source: NodeId::default(), tlvs: vec![tlv.clone()] });
    let Ok(written) = carrier(&tlv).emit() else {
        // The one layout that is read shorter than it is written: interested labels.
        return assert_eq!(*kind, code::CAPABILITY);
    };
    let Ok(Pdu::Psnp(Psnp { tlvs, .. })) = Pdu::parse(&written) else { panic!("what was written is read") };
    assert_eq!(tlvs, [tlv], "written and read again");
    assert_eq!(carrier(&tlvs[0]).emit(), Ok(written), "written twice alike");
}

/// Any bytes as a TRILL data frame: read and written again.
///
/// # Panics
/// When an invariant of the format is broken.
pub fn trill_frame(bytes: &[u8]) {
    if let Ok(header) = Header::parse(bytes) {
        let again = header.to_bytes();
        assert_eq!(again, bytes[..header.buffer_len()], "the header has no bit that is lost");
        assert!(again.len() >= HEADER_LEN);
    }
    let Ok(view) = frame::View::new(bytes) else { return };
    let kind = view.inner_ethertype();
    let inner = frame::emit_inner(view.inner_destination(), view.inner_source(), view.label(), kind, view.payload());
    assert_eq!(inner.len() + view.header().buffer_len() + outer_len(&view), bytes.len());
    let again = [&bytes[..outer_len(&view)], &view.header().to_bytes(), &inner].concat();
    let read = frame::View::new(&again).expect("what was read is read again");
    assert_eq!((read.header(), read.label(), read.payload()), (view.header(), view.label(), view.payload()));
    isis_pdu(view.payload());
}

fn outer_len(view: &frame::View<'_>) -> usize {
    if view.outer_vlan().is_some() { 18 } else { 14 }
}
