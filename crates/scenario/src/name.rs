//! The one rule of names: of fabrics and their labs, of nodes, and of interfaces.
//!
//! A name is at most 32 letters, digits, `-`, `_` and `.`; it begins with a letter, and a dot stands between two of the others. A lab makes
//! of it names of namespaces and hosts, files and folders. Where one of those cannot have a dot, [`undotted`] stands for it: it has a
//! character that no name has, so two names never become one. Names of hosts do not tell capital letters apart, so no two
//! nodes of a fabric differ in those alone.

use std::borrow::Cow;

/// The longest name of a fabric, a lab or a node, bytes: with both, and what weft adds, the path of a Unix socket is full.
pub const NAME_MAX: usize = 32;
/// The longest name that the kernel gives an interface (`IFNAMSIZ` - 1), bytes.
pub const INTERFACE_NAME_MAX: usize = 15;

/// The rule, for messages.
pub const RULE: &str =
    "at most 32 letters, digits, `-`, `_` and `.`, beginning with a letter, and no dot at the end or beside another";
/// The rule of interfaces, for messages.
pub const INTERFACE_RULE: &str = "1 to 15 letters, digits, `-`, `_` and `.`, no `-` first, and none of the kernel's own: `lo`, `all`, `default`, `.`, `..`";

/// What stands for a dot where there can be none: FRR takes it in a path space, a BPF file system in a folder's name, and no name has it.
const FOR_DOT: &str = "+";

/// Whether a fabric, a lab or a node may be called so.
pub fn is_usable(name: &str) -> bool {
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    begins && name.len() <= NAME_MAX && is_plain(name) && !name.ends_with('.') && !name.contains("..")
}

/// Whether an interface of a node may be called so.
pub fn is_usable_interface(name: &str) -> bool {
    let of_the_kernel = matches!(name, "lo" | "all" | "default" | "." | "..");
    let is_option = name.starts_with('-');
    !name.is_empty() && name.len() <= INTERFACE_NAME_MAX && is_plain(name) && !of_the_kernel && !is_option
}

/// What two nodes of one fabric must not have in common: hosts are looked up without regard to capital letters.
pub fn as_host(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// A name without dots, for what cannot have one: FRR's path spaces (`-N`) and folders on a BPF file system. The kernel keeps dots in
/// those for itself.
pub fn undotted(name: &str) -> Cow<'_, str> {
    if name.contains('.') { Cow::Owned(name.replace('.', FOR_DOT)) } else { Cow::Borrowed(name) }
}

/// The name that [`undotted`] was made of.
pub fn dotted(name: &str) -> String {
    name.replace(FOR_DOT, ".")
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_rule_holds_for_every_character_at_every_place() {
        for character in (0u8..=127).map(char::from).chain(['ä', '\u{3000}']) {
            let letter = character.is_ascii_alphabetic();
            let plain = character.is_ascii_alphanumeric() || "-_.".contains(character);
            assert_eq!(is_usable(&format!("a{character}b")), plain, "within: {character:?}");
            assert_eq!(is_usable(&format!("{character}b")), letter, "first: {character:?}");
            assert_eq!(is_usable(&format!("a{character}")), plain && character != '.', "last: {character:?}");
            assert_eq!(is_usable_interface(&format!("a{character}")), plain, "interface: {character:?}");
            assert_eq!(is_usable_interface(&format!("{character}a")), plain && character != '-', "{character:?}");
        }
        let longest = "n".repeat(NAME_MAX);
        assert!(is_usable(&longest) && !is_usable(&format!("{longest}n")) && !is_usable("") && !is_usable("a..b"));
        let longest = "n".repeat(INTERFACE_NAME_MAX);
        assert!(is_usable_interface(&longest) && !is_usable_interface(&format!("{longest}n")));
        for taken in ["", "lo", "all", "default", ".", ".."] {
            assert!(!is_usable_interface(taken), "{taken}");
        }
    }

    proptest! {
        #[test]
        fn two_names_never_become_one(a in "[a-zA-Z][a-zA-Z0-9._-]{0,31}", b in "[a-zA-Z][a-zA-Z0-9._-]{0,31}") {
            prop_assume!(is_usable(&a) && is_usable(&b));
            prop_assert!(!undotted(&a).contains('.'));
            prop_assert_eq!(dotted(&undotted(&a)), a.clone());
            prop_assert_eq!(undotted(&a) == undotted(&b), a == b);
            prop_assert_eq!(undotted(&a).len(), a.len());
        }
    }
}
