//! The key file: 32 hexadecimal digits that nobody but the daemon's user may read.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use weft_wire::directory::Key;

use crate::error::NodeError;

/// The key of open mode: everybody has it.
pub(crate) const OPEN: Key = Key::from_bytes([0; 16]);

/// Reads a key file; refuses one that others may read.
pub(crate) fn read(path: &Path) -> Result<Key, NodeError> {
    let fault = |why: String| NodeError::KeyFile { path: path.to_owned(), why };
    let make = "make one with `openssl rand -hex 16 > FILE; chmod 600 FILE`";
    let mut file = File::open(path).map_err(|error| fault(format!("{error}; {make}")))?;
    let metadata = file.metadata().map_err(|error| fault(error.to_string()))?;
    if !metadata.is_file() {
        return Err(fault(format!("is not a file; {make}")));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o177 != 0 {
        return Err(fault(format!("its mode {mode:04o} lets others use it; run `chmod 600 {}`", path.display())));
    }
    let mut text = String::new();
    file.by_ref().take(4096).read_to_string(&mut text).map_err(|error| fault(error.to_string()))?;
    Key::from_hex(&text).map_err(|error| fault(error.to_string()))
}

/// The key of the file, or open mode's key if there is no file.
pub(crate) fn read_or_open(path: Option<&Path>) -> Result<Key, NodeError> {
    path.map_or(Ok(OPEN), read)
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file_with(text: &str, mode: u32) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write(&path, text).unwrap();
        set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn a_private_file_of_32_digits_is_a_key() {
        let (_dir, path) = file_with("000102030405060708090a0b0c0d0e0f\n", 0o600);
        assert!(read(&path).is_ok());
    }

    #[test]
    fn other_files_are_refused_with_the_remedy_and_without_the_secret() {
        let secret = "000102030405060708090a0b0c0d0e0";
        for (text, mode, says) in [
            ("000102030405060708090a0b0c0d0e0f", 0o640, "chmod 600"),
            ("000102030405060708090a0b0c0d0e0f", 0o604, "mode 0604"),
            (secret, 0o600, "31 characters"),
            ("", 0o600, "0 characters"),
        ] {
            let (_dir, path) = file_with(text, mode);
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("key file"), "{error}");
            assert!(!error.contains("0001020304") && !error.contains('\n'), "{error}");
        }
        assert!(read(Path::new("/nonexistent/key")).unwrap_err().to_string().contains("openssl rand"));
        assert!(read(Path::new("/")).unwrap_err().to_string().contains("not a file"));
    }
}
