//! Secrets, and how a text is without them.
//!
//! Daemons never show secrets, and settings name files of them. This is the second line: whatever is in a file that settings name as a
//! key, a certificate or a password is taken out of every text by its value, wherever it comes from; private keys in PEM and
//! passwords in addresses are, too; and a setting whose name says that it is a secret has no value.

use std::collections::BTreeSet;
use std::path::Path;

use toml::{Table, Value};

/// What stands in a secret's place.
const GONE: &str = "(removed)";
/// Keys of settings that name files of secrets, or of certificates.
const FILE_KEYS: [&str; 5] = ["file", "key", "cert", "ca", "tls_revoked"];
/// Parts of names of settings that would hold a secret themselves. No daemon has such a setting; people write them.
const SECRET_KEYS: [&str; 4] = ["password", "secret", "token", "passphrase"];
/// Larger files are no keys.
const FILE_MAX_BYTES: u64 = 256 << 10;
/// Shorter words are no secrets, and would be found everywhere.
const WORD_MIN: usize = 6;

/// Secrets of this machine.
pub(super) struct Scrub {
    /// The longest first, so that none is cut in two by a shorter one.
    secrets: Vec<String>,
}

impl Scrub {
    /// Those that are in files which these settings name, and those in the settings themselves.
    pub(super) fn of(tables: &[Table]) -> Self {
        let mut secrets = BTreeSet::new();
        for table in tables {
            each_text(table, &mut |key, text| {
                if is_file_key(key) {
                    secrets.extend(words_of(Path::new(text)));
                } else if is_secret_key(key) && text.len() >= WORD_MIN {
                    secrets.insert(text.to_owned());
                }
            });
        }
        let mut secrets: Vec<String> = secrets.into_iter().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    /// The text without secrets.
    pub(super) fn clean(&self, text: &str) -> String {
        let mut text = without_private_keys(text);
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), GONE);
            }
        }
        without_passwords_in_addresses(&text)
    }
}

/// Settings as the text of a file, without values of what is called a secret.
pub(super) fn settings(table: &Table) -> String {
    let mut table = table.clone();
    table.iter_mut().for_each(|(key, value)| remove_values(key, value));
    toml::to_string(&table).unwrap_or_else(|error| format!("# {error}\n"))
}

fn remove_values(key: &str, value: &mut Value) {
    match value {
        Value::Table(table) => table.iter_mut().for_each(|(key, value)| remove_values(key, value)),
        Value::Array(array) => array.iter_mut().for_each(|value| remove_values(key, value)),
        _ if is_secret_key(key) => *value = Value::String(GONE.to_owned()),
        _ => {}
    }
}

/// Calls `look` with every text in the settings and the key that it is at.
pub(super) fn each_text(table: &Table, look: &mut impl FnMut(&str, &str)) {
    fn walk(key: &str, value: &Value, look: &mut impl FnMut(&str, &str)) {
        match value {
            Value::String(text) => look(key, text),
            Value::Array(array) => array.iter().for_each(|value| walk(key, value, look)),
            Value::Table(table) => table.iter().for_each(|(key, value)| walk(key, value, look)),
            _ => {}
        }
    }
    table.iter().for_each(|(key, value)| walk(key, value, look));
}

fn is_file_key(key: &str) -> bool {
    FILE_KEYS.contains(&key) || key.ends_with("_file")
}

/// A file of a secret is none.
fn is_secret_key(key: &str) -> bool {
    !is_file_key(key) && SECRET_KEYS.iter().any(|part| key.to_lowercase().contains(part))
}

/// Everything in a file that may be a secret: its lines and their words.
fn words_of(path: &Path) -> Vec<String> {
    let is_small = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= FILE_MAX_BYTES);
    let text = if is_small { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
    let parts = lines.flat_map(|line| std::iter::once(line).chain(line.split_whitespace()));
    parts.filter(|part| part.len() >= WORD_MIN && !part.starts_with("hmac-")).map(str::to_owned).collect()
}

/// Whatever stands between the first and the last line of a private key in PEM, those among it.
fn without_private_keys(text: &str) -> String {
    let mut inside = false;
    let mut clean = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let begins = line.contains("-----BEGIN ") && line.contains("PRIVATE KEY-----");
        if begins && !inside {
            clean += GONE;
            clean.push('\n');
        }
        inside |= begins;
        if !inside {
            clean += line;
        }
        inside &= !line.contains("-----END ");
    }
    clean
}

/// `scheme://user:password@host` without who asks.
fn without_passwords_in_addresses(text: &str) -> String {
    let mut parts = text.split("://");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c == '/' || c == '"' || c == '\'' || c.is_whitespace()).unwrap_or(part.len());
        let host = part[..end].rfind('@').map_or(0, |at| at + 1);
        clean += "://";
        if host > 0 {
            clean += GONE;
            clean.push('@');
        }
        clean += &part[host..];
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_files_go_wherever_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name).display().to_string()
        };
        let key = file("agent.key", "000102030405060708090a0b0c0d0e0f\n");
        let keys = file("campus.keys", "# mine\n2 hmac-sha-256 9d5caffee\n");
        let password = file("password", "two words\n");
        let text = format!(
            "key_file = {key:?}\n[authentication]\nkey_file = {keys:?}\n[store.etcd]\npassword_file = {password:?}\n\
             [[more_keys]]\nfile = {key:?}\nid = 1\n"
        );
        let table: Table = text.parse().unwrap();
        let scrub = Scrub::of(std::slice::from_ref(&table));
        let said = "key 000102030405060708090a0b0c0d0e0f, campus 9d5caffee (hmac-sha-256), etcd `two words`";
        assert_eq!(scrub.clean(said), "key (removed), campus (removed) (hmac-sha-256), etcd `(removed)`");
        let shown = settings(&table);
        assert!(shown.contains(&key) && shown.contains("id = 1"), "names of files stay: {shown}");
    }

    #[test]
    fn settings_that_are_secrets_have_no_value() {
        let table: Table =
            "la = \"10.0.0.1\"\n[store.etcd]\npassword = \"hunter22\"\nApiToken = [\"abcdefgh\"]\n".parse().unwrap();
        let shown = settings(&table);
        assert!(shown.contains("10.0.0.1") && !shown.contains("hunter22") && !shown.contains("abcdefgh"), "{shown}");
        assert_eq!(Scrub::of(&[table]).clean("refused: hunter22"), "refused: (removed)");
    }

    #[test]
    fn private_keys_and_passwords_in_addresses_go() {
        let none = Scrub { secrets: Vec::new() };
        let said = "a\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY-----\nb http://me:pw@etcd1:2379/x c://d\n";
        assert_eq!(none.clean(said), "a\n(removed)\nb http://(removed)@etcd1:2379/x c://d\n");
    }
}
