//! How many lines of code each room has: without tests, comments and blank lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::checks::files;

/// The table that `cargo run -p xtask -- lines` prints.
pub(crate) fn table(root: &Path) -> String {
    let rooms = count(root);
    let all = rooms.values().fold((0, 0), |(rust, c), room| (rust + room.0, c + room.1));
    let line = |(name, (rust, c)): (&str, (usize, usize))| format!("{name:<20} {rust:>7} {c:>7}\n");
    let rooms = rooms.iter().map(|(name, counts)| line((name, *counts)));
    std::iter::once(format!("{:<20} {:>7} {:>7}\n", "room", "Rust", "C"))
        .chain(rooms)
        .chain([line(("all", all))])
        .collect()
}

/// Lines of Rust and of C of each room: crates, `fuzz` and `xtask`.
fn count(root: &Path) -> BTreeMap<String, (usize, usize)> {
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten().flatten().map(|entry| entry.path());
    let rooms = crates.chain(["fuzz", "xtask"].map(|name| root.join(name)));
    let counted = |room: PathBuf| {
        let name = room.strip_prefix(root).unwrap_or(&room).display().to_string();
        (name, (lines_of(&room, &["rs"], rust_lines), lines_of(&room, &["c", "h"], c_lines)))
    };
    rooms.map(counted).collect()
}

/// Lines of a room's files; what `lines` says of a file are its lines and the files that are tests because of it.
fn lines_of(room: &Path, endings: &[&str], lines: fn(&str) -> (usize, Vec<String>)) -> usize {
    let mut tests = BTreeSet::new();
    let mut counts = Vec::new();
    for path in files(room, endings) {
        let (count, modules) = lines(&fs::read_to_string(&path).unwrap_or_default());
        let folder = module_folder(&path);
        tests.extend(modules.iter().flat_map(|name| [folder.join(name), folder.join(format!("{name}.rs"))]));
        counts.push((path, count));
    }
    tests.extend(["tests", "benches", "examples"].map(|name| room.join(name)));
    let product = counts.iter().filter(|(path, _)| !path.ancestors().any(|part| tests.contains(part)));
    product.map(|(_, count)| count).sum()
}

/// Where a file's own modules lie.
fn module_folder(path: &Path) -> PathBuf {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("mod.rs" | "lib.rs" | "main.rs") => path.parent().unwrap_or(path).to_owned(),
        _ => path.with_extension(""),
    }
}

fn c_lines(text: &str) -> (usize, Vec<String>) {
    (not_blank(&without_comments(text)), Vec::new())
}

/// Lines of a file of Rust without its tests, and the modules in other files that are tests.
fn rust_lines(text: &str) -> (usize, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let code = without_comments(text);
    if code.trim_start().starts_with("#![cfg(test)]") {
        return (0, Vec::new());
    }
    let mut parts = code.split(MARK);
    let mut product = parts.next().unwrap_or_default().to_owned();
    let mut modules = Vec::new();
    for part in parts {
        let (item, rest) = part.split_at(item_end(part));
        let name = item.split_once("mod ").and_then(|(_, rest)| rest.trim_end().strip_suffix(';'));
        modules.extend(name.map(str::to_owned));
        product.push_str(rest);
    }
    (not_blank(&product), modules)
}

fn not_blank(text: &str) -> usize {
    text.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Where the item ends that a piece of code begins with: behind its `;`, or its block.
fn item_end(code: &str) -> usize {
    let mut depth = 0;
    for (place, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        let semicolon = code[place + 1..].trim_start_matches([' ', '\n']).starts_with(';');
        match byte {
            b';' if depth == 0 => return place + 1,
            b'}' if depth == 0 && !semicolon => return place + 1,
            _ if depth < 0 => return place,
            _ => {}
        }
    }
    code.len()
}

/// Code with nothing in place of comments, and with `_` in place of what strings and characters hold; line breaks stay.
fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, is_comment) = token(rest, code.ends_with(|last: char| last.is_alphanumeric() || last == '_'));
        let (taken, left) = rest.split_at(length);
        match (is_comment, length > first.len_utf8()) {
            (true, _) => code.extend(taken.matches('\n')),
            (false, true) => code.extend(taken.chars().map(|one| if one == '\n' { one } else { '_' })),
            (false, false) => code.push(first),
        }
        rest = left;
    }
    code
}

/// How long the comment, the string or the character is that `text` begins with, and whether it is a comment; one character of
/// anything else. `in_word`: what stands before goes on in the first character.
fn token(text: &str, in_word: bool) -> (usize, bool) {
    let up_to = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |place| from + place + end.len());
    let one = text.chars().next().map_or(0, char::len_utf8);
    if text.starts_with("//") {
        (text.find('\n').unwrap_or(text.len()), true)
    } else if text.starts_with("/*") {
        (up_to("*/", 2), true)
    } else if text.starts_with('"') {
        (quoted(text, '"'), false)
    } else if let Some(hashes) = text.strip_prefix('r').filter(|_| !in_word).and_then(raw_string) {
        (up_to(&format!("\"{}", "#".repeat(hashes)), hashes + 2), false)
    } else if text.starts_with("'\\") || (text.starts_with('\'') && text.chars().nth(2) == Some('\'')) {
        (quoted(text, '\''), false)
    } else {
        (one, false)
    }
}

/// Length of a string or character in quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, one) in text.char_indices().skip(1) {
        match one {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if one == quote => return place + one.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// How many hashes stand before the quote of a raw string, behind its `r`.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.bytes().take_while(|byte| *byte == b'#').count();
    text[hashes..].starts_with('"').then_some(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_are_not_counted() {
        let text = "//! Head.\n\nfn f() { // why\n    /* two\n       lines */\n    1; /* and code */\n}\n";
        assert_eq!(rust_lines(text).0, 3);
        assert_eq!(c_lines(text).0, 3);
    }

    #[test]
    fn what_looks_like_a_comment_in_a_string_is_code() {
        for text in
            ["\"/*\";\n1;", "r#\"\"/*\"#;\n1;", "'\"'; '/';\n/**/1;", "'\\''; \"//\\\"/*\";\n1;", "&'a str;\n'x';"]
        {
            assert_eq!(rust_lines(text).0, 2, "{text}");
        }
        assert_eq!(rust_lines("for\"//\n\";").0, 2);
    }

    #[test]
    fn tests_are_not_counted() {
        let inline = "a;\n#[cfg(test)]\nmod tests {\n    fn t() { assert!(x[0] == \"}\") }\n}\nb;\n";
        assert_eq!(rust_lines(inline), (2, Vec::new()));
        let apart = "a;\n#[cfg(test)]\nuse x::{y, z};\n#[cfg(test)]\npub(crate) mod testing;\n";
        assert_eq!(rust_lines(apart), (1, vec!["testing".to_owned()]));
        assert_eq!(rust_lines("#![cfg(test)]\na;\n").0, 0);
    }

    #[test]
    fn a_room_is_counted_without_its_folders_of_tests() {
        let room = std::env::temp_dir().join(format!("weft-xtask-lines-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = room.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("src/lib.rs", "mod a;\n#[cfg(test)]\nmod testing;\n");
        write("src/testing.rs", "1;\n2;\n");
        write("src/a.rs", "1;\n#[cfg(test)]\nmod tests;\n");
        write("src/a/tests.rs", "1;\n");
        write("tests/all.rs", "1;\n");
        let counted = lines_of(&room, &["rs"], rust_lines);
        fs::remove_dir_all(&room).unwrap();
        assert_eq!(counted, 2);
    }
}
