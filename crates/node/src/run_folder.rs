//! Folders of sockets and pins under `/run/weft`, which is empty after every boot: daemons make them themselves.

use std::fs::{DirBuilder, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use weft_datapath::bpffs;

use crate::error::NodeError;

/// Where daemons' sockets and pins are by default.
const RUN: &str = "/run/weft";
/// What is wrong with a folder that others may write to.
const CHANGEABLE: &str = "may be changed by others";
/// What everybody may look at and only its owner may change.
const MODE: u32 = 0o755;

/// Makes the folder that `path` is in, if it lies under `/run/weft`; others are their administrator's.
pub(crate) fn for_socket(path: &Path) -> Result<(), NodeError> {
    path.parent().map_or(Ok(()), |folder| ensure(Path::new(RUN), folder))
}

/// Makes weft's own bpffs if pins are to be in it.
pub(crate) fn for_pins(pin_dir: Option<&Path>) -> Result<(), NodeError> {
    if pin_dir.is_some_and(|dir| dir.starts_with(bpffs::MOUNT_POINT)) {
        ensure(Path::new(RUN), Path::new(bpffs::MOUNT_POINT))?;
        bpffs::ensure_mounted(bpffs::MOUNT_POINT)?;
    }
    Ok(())
}

/// Makes `root` and what leads from it to `folder`; refuses what somebody else could have put there.
fn ensure(root: &Path, folder: &Path) -> Result<(), NodeError> {
    let Ok(below) = folder.strip_prefix(root) else { return Ok(()) };
    let mut path = PathBuf::from(root);
    ensure_one(&path)?;
    for part in below.components() {
        if let Component::Normal(name) = part {
            path.push(name);
            ensure_one(&path)?;
        }
    }
    Ok(())
}

fn ensure_one(path: &Path) -> Result<(), NodeError> {
    match DirBuilder::new().mode(MODE).create(path) {
        // The umask may have taken rights away.
        Ok(()) => std::fs::set_permissions(path, Permissions::from_mode(MODE))
            .map_err(NodeError::at("setting the mode of", path))?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(NodeError::at("making the folder", path)(error)),
    }
    let found = std::fs::symlink_metadata(path).map_err(NodeError::at("looking at", path))?;
    let own = rustix::process::geteuid().as_raw();
    let fault = if !found.is_dir() {
        "is no folder"
    } else if found.uid() != 0 && found.uid() != own {
        "belongs to somebody else"
    } else if found.mode() & 0o022 != 0 {
        CHANGEABLE
    } else {
        return Ok(());
    };
    let anew = "it will be made anew (owned by root, mode 0755)";
    let shown = path.display();
    // What is mounted cannot be removed; its mode can be another.
    let remedy = match is_mount(path, &found) {
        true if fault == CHANGEABLE => {
            format!("set its mode (chmod 755 {shown}), or unmount it, and {anew}: umount {shown}")
        }
        true => format!("unmount it, and {anew}: umount {shown}"),
        false => format!("remove it, and {anew}"),
    };
    Err(NodeError::Folder { path: path.to_owned(), fault, remedy })
}

/// Whether a file system is mounted on a folder.
fn is_mount(path: &Path, found: &Metadata) -> bool {
    let above = path.parent().and_then(|above| std::fs::metadata(above).ok());
    found.is_dir() && above.is_some_and(|above| above.dev() != found.dev())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn missing_folders_are_made_for_everybody_to_look_at() {
        let dir = tempfile::tempdir().unwrap();
        let (root, folder) = (dir.path().join("weft"), dir.path().join("weft/a/b"));
        ensure(&root, &folder).unwrap();
        ensure(&root, &folder).unwrap();
        for path in [&root, &folder] {
            assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o755, "{}", path.display());
        }
    }

    #[test]
    fn folders_elsewhere_are_not_ours_to_make() {
        let dir = tempfile::tempdir().unwrap();
        ensure(&dir.path().join("weft"), &dir.path().join("other")).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn links_files_and_what_others_may_change_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("weft");
        let refusal = || ensure(&root, &root.join("a")).unwrap_err().to_string();
        symlink(dir.path(), &root).unwrap();
        assert!(refusal().contains("is no folder"), "{}", refusal());
        std::fs::remove_file(&root).unwrap();
        std::fs::write(&root, "").unwrap();
        assert!(refusal().contains("is no folder"), "{}", refusal());
        std::fs::remove_file(&root).unwrap();
        std::fs::create_dir(&root).unwrap();
        std::fs::set_permissions(&root, Permissions::from_mode(0o777)).unwrap();
        assert!(refusal().contains("may be changed by others"), "{}", refusal());
        assert!(!root.join("a").exists());
    }

    #[test]
    fn what_is_mounted_is_not_to_be_removed_but_unmounted_or_changed() {
        if !weft_needs::root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("weft");
        std::fs::create_dir(&root).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("tmpfs", &root, "tmpfs", flags, c"mode=1777,size=64k").unwrap();
        let shown = root.display();
        let refusal = ensure(&root, &root.join("a")).unwrap_err().to_string();
        std::fs::set_permissions(&root, Permissions::from_mode(0o755)).unwrap();
        let after = ensure(&root, &root.join("a"));
        std::os::unix::fs::chown(&root, Some(1000), Some(1000)).unwrap();
        let of_others = ensure(&root, &root).unwrap_err().to_string();
        rustix::mount::unmount(&root, rustix::mount::UnmountFlags::empty()).unwrap();
        assert!(!refusal.contains("remove it"), "{refusal}");
        for advice in [format!("chmod 755 {shown}"), format!("umount {shown}")] {
            assert!(refusal.contains(&advice), "`{advice}` is not in: {refusal}");
        }
        assert!(after.is_ok(), "the advice helps: {after:?}");
        assert!(of_others.contains(&format!("umount {shown}")) && !of_others.contains("chmod"), "{of_others}");
    }

    #[test]
    fn a_folder_of_somebody_else_is_refused() {
        if !weft_needs::root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("weft");
        std::fs::create_dir(&root).unwrap();
        std::os::unix::fs::chown(&root, Some(1000), Some(1000)).unwrap();
        assert!(ensure(&root, &root).unwrap_err().to_string().contains("belongs to somebody else"));
    }
}
