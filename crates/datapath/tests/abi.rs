//! What `build/abi.rs` writes in Rust is what the compiled objects have, by their BTF; and the programs' other numbers are `weft_wire`'s.

use std::collections::BTreeMap;

use libbpf_rs::HasSize;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use weft_datapath::abi::Layout;
use weft_datapath::vxlan::abi::{FIRST_DROP, VTEP_OUTCOMES};
use weft_datapath::{abi, directory, trill, vxlan};

/// Size in bytes, and every field with its offset in bytes.
type Found = (usize, Vec<(String, usize)>);

/// Size and fields of a structure of an object; `None`: it has no such one.
fn in_c(btf: &Btf<'_>, name: &str) -> Option<Found> {
    let found: Struct<'_> = btf.type_by_name(name)?;
    let offset = |attr| match attr {
        MemberAttr::Normal { offset } => offset as usize / 8,
        MemberAttr::BitField { .. } => panic!("struct {name} has a bit field"),
    };
    let field = |member: libbpf_rs::btf::types::StructMember<'_>| {
        (member.name.unwrap_or_default().to_string_lossy().into_owned(), offset(member.attr))
    };
    Some((found.size(), found.iter().map(field).collect()))
}

#[test]
fn structures_are_those_of_the_compiled_objects() {
    let all: Vec<&Layout> =
        [abi::LAYOUTS, directory::abi::LAYOUTS, vxlan::abi::LAYOUTS, trill::abi::LAYOUTS, weft_testbed::abi::LAYOUTS]
            .into_iter()
            .flatten()
            .collect();
    let mut seen: BTreeMap<&str, usize> = all.iter().map(|(name, ..)| (*name, 0)).collect();
    for file in weft_testbed::objects() {
        let btf = Btf::from_raw("object", file.image()).expect("the object is readable").expect("it has BTF");
        for (name, size, fields) in &all {
            // Its program has a lock where user space has a word.
            let c_name = if *name == "tester_link" { "locked_link" } else { name };
            let Some(found) = in_c(&btf, c_name) else { continue };
            let fields = fields.iter().map(|(field, at)| ((*field).to_owned(), *at)).collect();
            assert_eq!(found, (*size, fields), "struct {name}");
            *seen.get_mut(name).expect("one of all") += 1;
        }
    }
    let unseen: Vec<&str> = seen.into_iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect();
    assert_eq!(unseen, [""; 0], "no object has them");
    assert!(all.len() > 30, "{}", all.len());
}

#[test]
fn what_the_header_calls_dropped_is_what_comes_from_the_first_drop_on() {
    let header = include_str!("../bpf/vxlan_abi.h");
    let dropped = header.lines().filter(|line| line.contains("/* dropped: ")).count();
    assert_eq!(VTEP_OUTCOMES.iter().skip_while(|name| **name != FIRST_DROP).count(), dropped);
}

#[test]
fn programs_and_wire_agree() {
    let (encapsulation, hash) = (include_str!("../bpf/lib/vl2_encap.h"), include_str!("../bpf/lib/hash.h"));
    let defined = |header: &str, name: &str| -> u32 {
        let line = header.lines().find(|line| line.starts_with(&format!("#define {name} "))).expect("it is defined");
        let number = line.split_whitespace().nth(2).expect("with a number");
        let read = number.strip_prefix("0x").map_or_else(|| number.parse(), |hex| u32::from_str_radix(hex, 16));
        read.expect("a number")
    };
    assert_eq!(defined(encapsulation, "OUTER_TTL"), u32::from(weft_wire::vl2::OUTER_TTL));
    assert_eq!(defined(hash, "HASH_SOURCE_BLOCK"), u32::from(weft_wire::flow::HASH_SOURCE_BLOCK));
    assert_eq!(defined(hash, "HASH_SOURCE_MASK"), weft_wire::flow::HASH_SOURCE_MASK);
    assert_eq!(defined(include_str!("../bpf/trill_abi.h"), "TRILL_CLUSTERS") as usize, trill::CLUSTERS);
}
