//! Whether C and Rust say the same: structures by the BTF of a compiled object, names and numbers by a C header.

use std::str::FromStr;

use libbpf_rs::HasSize;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};

/// Name in C, size in bytes, and the offset of every field in bytes.
pub(crate) type Layout = (&'static str, usize, &'static [(&'static str, usize)]);

/// Size and fields of a structure of an object.
pub(crate) fn in_c(object: &[u8], name: &str) -> (usize, Vec<(String, usize)>) {
    let btf = Btf::from_raw("object", object).expect("the object is readable").expect("it has BTF");
    let found: Struct<'_> = btf.type_by_name(name).unwrap_or_else(|| panic!("struct {name} is in the BTF"));
    let offset = |attr| match attr {
        MemberAttr::Normal { offset } => offset as usize / 8,
        MemberAttr::BitField { .. } => panic!("struct {name} has a bit field"),
    };
    let fields = found.iter().map(|member| {
        let name = member.name.unwrap_or_default().to_string_lossy().into_owned();
        (name, offset(member.attr))
    });
    (found.size(), fields.collect())
}

/// Fields as [`in_c`] has them.
pub(crate) fn owned(fields: &[(&'static str, usize)]) -> Vec<(String, usize)> {
    fields.iter().map(|(field, at)| ((*field).to_owned(), *at)).collect()
}

/// The object has every structure just so.
pub(crate) fn assert_layouts(object: &[u8], layouts: &[Layout]) {
    for (name, size, fields) in layouts {
        assert_eq!(in_c(object, name), (*size, owned(fields)), "struct {name}");
    }
}

/// The names in `#define LIST(X) X(NAME) ...`, in lower case.
pub(crate) fn listed(header: &str, list: &str) -> Vec<String> {
    let start = header.find(&format!("#define {list}(X)")).expect("the list is there");
    let lines = header[start..].lines().skip(1).take_while(|line| line.trim_start().starts_with("X("));
    lines.map(|line| line.trim_start()[2..].split(')').next().unwrap_or_default().to_lowercase()).collect()
}

/// The number in `#define NAME NUMBER`, decimal or hexadecimal.
pub(crate) fn defined(header: &str, name: &str) -> u32 {
    let line = header.lines().find(|line| line.starts_with(&format!("#define {name} "))).expect("it is defined");
    let number = line.split_whitespace().nth(2).expect("with a number");
    let read = number.strip_prefix("0x").map_or_else(|| u32::from_str(number), |hex| u32::from_str_radix(hex, 16));
    read.expect("a number")
}
