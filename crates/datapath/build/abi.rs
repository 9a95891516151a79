//! The Rust side of the C headers that programs and user space share: structures, numbers and lists of names, with the headers' own
//! comments as documentation. A field of the wrong kind, a hole between two fields or a number that cannot be read ends the build.

use std::fmt::Write;

/// Integer types of the headers. What is in network order stays as bytes.
const INTEGERS: [(&str, &str, &str); 6] = [
    ("__u8", "u8", "0"),
    ("__u16", "u16", "0"),
    ("__u32", "u32", "0"),
    ("__u64", "u64", "0"),
    ("__be16", "[u8; 2]", "[0; 2]"),
    ("__be32", "[u8; 4]", "[0; 4]"),
];

/// One header as a Rust file.
///
/// # Panics
/// With the line that it cannot read.
pub(crate) fn rust_of(header: &str) -> String {
    let mut out = Output::default();
    let mut lines = header.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("struct ").and_then(|rest| rest.strip_suffix(" {")) {
            let body: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with('}')).collect();
            out.structure(name, &body);
        } else if let Some(list) = line.strip_prefix("#define ").and_then(|rest| rest.strip_suffix("(X) \\")) {
            let is_entry = |line: &&str| line.trim_start().starts_with("X(");
            let names: Vec<&str> = std::iter::from_fn(|| lines.next_if(is_entry)).collect();
            out.list(list, &names);
        } else if let Some(rest) = line.strip_prefix("#define ") {
            out.number(rest);
        }
        out.remember(line);
    }
    let _ = writeln!(
        out.text,
        "/// Name, size and offsets of every structure, bytes.\n#[rustfmt::skip]\npub const LAYOUTS: &[Layout] = &[{}];",
        out.layouts
    );
    out.text
}

#[derive(Default)]
struct Output {
    text: String,
    layouts: String,
    /// The comment just above.
    about: String,
}

impl Output {
    /// Keeps a comment for what follows it.
    fn remember(&mut self, line: &str) {
        let text = line.trim().trim_start_matches("/*").trim_end_matches("*/").trim_start_matches('*').trim();
        match line {
            _ if line.starts_with("/*") => self.about = text.to_owned(),
            _ if line.starts_with(" *") => self.about = format!("{} {text}", self.about).trim().to_owned(),
            _ => self.about.clear(),
        }
    }

    /// `NAME VALUE` or `NAME ((__u8)VALUE)`, with a comment behind it or above it. What is no number is the programs' own.
    fn number(&mut self, text: &str) {
        let (code, comment) = split_comment(text);
        let mut words = code.split_whitespace();
        let (Some(name), Some(value), None) = (words.next(), words.next(), words.next()) else { return };
        let cast = |(c, rust, _): &(&str, &'static str, &str)| {
            Some((*rust, value.strip_prefix(&format!("(({c})"))?.strip_suffix(')')?))
        };
        let (kind, value) = INTEGERS.iter().find_map(cast).unwrap_or(("u32", value));
        if !value.starts_with(|first: char| first.is_ascii_digit()) {
            return;
        }
        let about = comment.unwrap_or(&self.about);
        let _ = writeln!(self.text, "{}pub const {name}: {kind} = {value};", doc("", about));
    }

    /// `X(NAME)` of each line; where comments say that frames are `dropped:`, also which.
    fn list(&mut self, name: &str, lines: &[&str]) {
        let names = lines.iter().map(|line| {
            let name = line.trim_start().strip_prefix("X(").and_then(|rest| rest.split(')').next());
            format!("\"{}\"", name.unwrap_or_else(|| panic!("no name in `{line}`")).to_lowercase())
        });
        let names: Vec<String> = names.collect();
        let (count, names) = (names.len(), names.join(", "));
        let _ = writeln!(self.text, "{}pub const {name}: [&str; {count}] = [{names}];", doc("", &self.about));
        let says = |line: &&str| split_comment(line).1.is_some_and(|comment| comment.starts_with("dropped:"));
        if lines.iter().any(says) {
            let dropped: Vec<&str> = lines.iter().map(|line| if says(line) { "true" } else { "false" }).collect();
            let dropped = dropped.join(", ");
            let _ = writeln!(
                self.text,
                "/// Which of [`{name}`] are drops.\n#[rustfmt::skip]\npub const {name}_DROPPED: [bool; {count}] = [{dropped}];"
            );
        }
    }

    fn structure(&mut self, c_name: &str, body: &[&str]) {
        let name = camel_case(c_name);
        let fields: Vec<Field> = body.iter().filter_map(|line| Field::read(line)).collect();
        let _ = writeln!(
            self.text,
            "{}#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n#[repr(C)]\npub struct {name} {{",
            doc("", &self.about)
        );
        let (mut zeros, mut sizes, mut offsets) = (String::new(), String::new(), String::new());
        for Field { name: field, kind, zero, about } in &fields {
            let _ = writeln!(self.text, "{}    pub {field}: {kind},", doc("    ", about));
            let _ = write!(zeros, "{field}: {zero}, ");
            let _ = write!(sizes, "{}size_of::<{kind}>()", if sizes.is_empty() { "" } else { " + " });
            let _ = write!(offsets, "(\"{field}\", std::mem::offset_of!({name}, {field})), ");
        }
        let _ = writeln!(
            self.text,
            "}}\nimpl {name} {{\n    /// All zero.\n    pub const ZERO: Self = Self {{ {zeros}}};\n}}\n\
             impl Default for {name} {{\n    fn default() -> Self {{\n        Self::ZERO\n    }}\n}}\n\
             const _: () = assert!(size_of::<{name}>() == {sizes}, \"struct {c_name} has a hole\");\n\
             // SAFETY: repr(C), made of integers and arrays of them, and without a hole.\n\
             unsafe impl Abi for {name} {{}}"
        );
        let _ = write!(self.layouts, "(\"{c_name}\", size_of::<{name}>(), &[{offsets}]), ");
    }
}

struct Field {
    name: String,
    kind: String,
    zero: String,
    about: String,
}

impl Field {
    /// `__u8 name[N][M]; /* about */`. `None`: an empty line.
    fn read(line: &str) -> Option<Self> {
        let (code, comment) = split_comment(line.trim());
        if code.is_empty() {
            return None;
        }
        let unknown = || -> ! { panic!("a field that cannot be shared: `{line}`") };
        let (kind, declarator) =
            code.strip_suffix(';').and_then(|code| code.rsplit_once(' ')).unwrap_or_else(|| unknown());
        let integer =
            INTEGERS.iter().find(|(c, ..)| *c == kind).map(|(_, rust, zero)| ((*rust).to_owned(), (*zero).to_owned()));
        let (mut kind, mut zero) = match (integer, kind.strip_prefix("struct ")) {
            (Some(integer), _) => integer,
            // A lock is a word that only programs touch.
            (None, Some("bpf_spin_lock")) => ("u32".to_owned(), "0".to_owned()),
            (None, Some(other)) => (camel_case(other), format!("{}::ZERO", camel_case(other))),
            (None, None) => unknown(),
        };
        let mut parts = declarator.split('[');
        let name = parts.next().unwrap_or_else(|| unknown()).to_owned();
        let lengths: Vec<&str> = parts.map(|length| length.trim_end_matches(']')).collect();
        for length in lengths.into_iter().rev() {
            let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
            let length = if is_number { length.to_owned() } else { format!("{length} as usize") };
            kind = format!("[{kind}; {length}]");
            zero = format!("[{zero}; {length}]");
        }
        Some(Self { name, kind, zero, about: comment.unwrap_or_default().to_owned() })
    }
}

/// The code of a line, and the comment behind it.
fn split_comment(line: &str) -> (&str, Option<&str>) {
    match line.split_once("/*") {
        Some((code, comment)) => (code.trim(), Some(comment.trim_end().trim_end_matches("*/").trim())),
        None => (line.trim(), None),
    }
}

fn doc(indent: &str, about: &str) -> String {
    let about = about.trim();
    if about.is_empty() { String::new() } else { format!("{indent}#[doc = {about:?}]\n") }
}

fn camel_case(name: &str) -> String {
    let upper = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(upper).collect()
}
