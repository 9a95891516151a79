//! The key file of a campus: a line for each key, its ID, algorithm and secret. The first one signs, all are accepted.
//!
//! ```text
//! # ID, algorithm, secret in hexadecimal digits
//! 2 hmac-sha-256 9d5c..
//! 1 hmac-sha-256 46f0..
//! ```

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use weft_control::isis::{Algorithm, Key, KeyChain};

use super::config::AuthenticationTable;
use crate::error::NodeError;
use crate::key;

/// Shorter secrets could be found out from one Hello, bytes.
const SECRET_MIN: usize = 16;
const MAKE: &str = "make one with `(umask 077; echo 1 hmac-sha-256 $(openssl rand -hex 32) > FILE)`";

/// The keys that the settings want.
pub(super) fn read(table: &AuthenticationTable) -> Result<KeyChain, NodeError> {
    let text = key::read_private(&table.key_file, MAKE)?;
    let keys = parse(&text).map_err(|why| fault(&table.key_file, why))?;
    let keys = if table.accept_unsigned { keys.accepting_unsigned() } else { keys };
    let keys = if table.replay_check { keys.checking_numbers() } else { keys };
    // The clock: so that a life which follows has a larger one, wherever it is begun.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(keys.numbered(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX - 1)))
}

fn fault(path: &Path, why: String) -> NodeError {
    NodeError::KeyFile { path: path.to_owned(), why }
}

/// The keys of a file with this text.
///
/// # Errors
/// They name the line, and say nothing of the secret.
pub fn parse(text: &str) -> Result<KeyChain, String> {
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let key = |(number, line): (usize, &str)| parse_line(line).map_err(|why| format!("line {number}: {why}"));
    let keys: Vec<Key> = lines.map(key).collect::<Result<_, _>>()?;
    KeyChain::new(keys).map_err(|error| format!("{error}; {MAKE}"))
}

fn parse_line(line: &str) -> Result<Key, String> {
    let [id, algorithm, secret] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err("is no key; write its ID, algorithm and secret, as in `1 hmac-sha-256 46f0..`".to_owned());
    };
    let id = id.parse().map_err(|_| "its ID is not 0 to 65535".to_owned())?;
    let algorithm = Algorithm::ALL.into_iter().find(|known| known.name() == algorithm).ok_or_else(|| {
        let names = Algorithm::ALL.map(Algorithm::name).join(", ");
        format!("its algorithm is none of {names}")
    })?;
    let secret = bytes(secret).ok_or("its secret is no even number of hexadecimal digits")?;
    if secret.len() < SECRET_MIN {
        return Err(format!("its secret has {} bytes; use at least {SECRET_MIN}", secret.len()));
    }
    Key::new(id, algorithm, secret).map_err(|error| error.to_string())
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| if let [high, low] = pair { Some(digit(*high)? << 4 | digit(*low)?) } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SECRET: &str = "00112233445566778899aabbccddeeff";

    #[test]
    fn every_line_is_a_key_and_the_first_one_signs() {
        let text = format!("# the new one\n\n 2  hmac-sha-256\t{SECRET}\n1 hmac-md5 {}\n", SECRET.to_uppercase());
        let shown = format!("{:?}", parse(&text).unwrap());
        assert!(shown.starts_with("KeyChain { keys: [Key 2 (hmac-sha-256), Key 1 (hmac-md5)],"), "{shown}");
    }

    #[test]
    fn bad_lines_are_named_and_secrets_are_not() {
        for (text, says) in [
            (String::new(), "there is no key"),
            ("# 1\n".to_owned(), "there is no key"),
            (format!("\n1 {SECRET}"), "line 2: is no key"),
            (format!("1 hmac-sha-256 {SECRET} x"), "line 1: is no key"),
            (format!("65536 hmac-sha-256 {SECRET}"), "line 1: its ID is not 0 to 65535"),
            (format!("1 sha256 {SECRET}"), "its algorithm is none of hmac-md5, hmac-sha-1"),
            (format!("1 hmac-sha-256 {SECRET}0"), "no even number of hexadecimal digits"),
            (format!("1 hmac-sha-256 +{SECRET}+"), "no even number of hexadecimal digits"),
            (format!("1 hmac-sha-256 {}", &SECRET[2..]), "its secret has 15 bytes; use at least 16"),
            (format!("1 hmac-sha-1 {SECRET}{SECRET}"), "its secret has 32 bytes; hmac-sha-1 takes 1 to 20"),
            (format!("1 hmac-sha-256 {SECRET}\n1 hmac-sha-512 {SECRET}"), "key 1 is there twice"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(says), "{error} does not say {says}");
            assert!(!error.contains("2233445566") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let key_file = dir.path().join("campus.keys");
        let table = AuthenticationTable { key_file: key_file.clone(), accept_unsigned: false, replay_check: false };
        let why = |table: &AuthenticationTable| read(table).unwrap_err().to_string();
        assert!(why(&table).contains("campus.keys") && why(&table).contains("umask 077"));
        write(&key_file, format!("1 hmac-sha-256 {SECRET}\n")).unwrap();
        set_permissions(&key_file, Permissions::from_mode(0o644)).unwrap();
        assert!(why(&table).contains("mode 0644 lets others use it"));
        set_permissions(&key_file, Permissions::from_mode(0o600)).unwrap();
        assert!(read(&table).is_ok());
        let many: String = (0..2000).map(|id| format!("{id} hmac-sha-256 {SECRET}\n")).collect();
        write(&key_file, many).unwrap();
        assert!(why(&table).contains("longer than"), "a file that is cut would be another one");
    }
}
