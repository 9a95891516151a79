//! Trees that somebody made to have more removed than is in them.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, RenameFlags, mkdirat, openat, renameat_with};
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use super::*;

/// A folder below `/run`, where folders of ours are, with a victim beside the tree.
struct Place {
    path: PathBuf,
    folder: Folder,
}

impl Place {
    /// `None`, with the reason, without root's rights.
    fn new(test: &str) -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let path = PathBuf::from(format!("/run/weft-test-removal-{test}-{}", std::process::id()));
        let folder = Folder::make(&path, 0o700).unwrap();
        fs::create_dir_all(path.join("victim/inner")).unwrap();
        fs::write(path.join("victim/inner/file"), "text").unwrap();
        fs::create_dir(path.join("tree")).unwrap();
        Some(Self { path, folder })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn victim_is_whole(&self) -> bool {
        fs::read_to_string(self.at("victim/inner/file")).is_ok_and(|text| text == "text")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[test]
fn links_go_and_what_they_name_stays() {
    let Some(place) = Place::new("links") else { return };
    fs::create_dir_all(place.at("tree/a/b")).unwrap();
    symlink(place.at("victim"), place.at("tree/folder")).unwrap();
    symlink("../../../victim", place.at("tree/a/b/up")).unwrap();
    symlink(place.at("victim/inner/file"), place.at("tree/a/file")).unwrap();
    symlink("/", place.at("tree/a/root")).unwrap();
    fs::write(place.at("tree/a/b/own"), "text").unwrap();
    fs::create_dir(place.at("tree/removed-1")).unwrap();
    assert!(remove_tree(&place.folder, "tree").unwrap());
    assert!(!place.at("tree").exists() && place.victim_is_whole());
    assert!(!remove_tree(&place.folder, "tree").unwrap(), "what is gone is no error");
}

#[test]
fn a_link_or_a_file_in_place_of_the_tree_is_refused() {
    let Some(place) = Place::new("top") else { return };
    // A relative one stays on this file system.
    symlink("victim", place.at("link")).unwrap();
    for name in ["link", "victim/inner/file"] {
        let error = remove_tree(&place.folder, name).unwrap_err();
        assert!(matches!(error, LabError::UnsafeFolder { .. }), "{name}: {error}");
    }
    assert!(remove_tree(&place.folder, "..").is_err());
    assert!(place.at("link").is_symlink() && place.victim_is_whole());
}

#[test]
fn a_tree_of_any_depth_goes_with_two_open_directories() {
    const DEPTH: usize = 20_000;
    let Some(place) = Place::new("deep") else { return };
    let open = |at: BorrowedFd<'_>, name: &str| openat(at, name, OFlags::DIRECTORY, Mode::empty()).unwrap();
    let mut at = open(place.folder.as_fd(), "tree");
    for level in 0..DEPTH {
        mkdirat(&at, "d", Mode::RWXU).unwrap();
        if level % 1000 == 0 {
            openat(&at, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
        }
        at = open(at.as_fd(), "d");
    }
    assert!(remove_tree(&place.folder, "tree").unwrap());
    assert!(!place.at("tree").exists());
}

#[test]
fn a_wide_tree_goes_too() {
    let Some(place) = Place::new("wide") else { return };
    for number in 0..3000 {
        fs::create_dir_all(place.at(&format!("tree/{number}/x"))).unwrap();
        fs::write(place.at(&format!("tree/{number}/x/file")), "").unwrap();
    }
    assert!(remove_tree(&place.folder, "tree").unwrap());
    assert!(!place.at("tree").exists());
}

#[test]
fn what_is_mounted_inside_stays() {
    let Some(place) = Place::new("mount") else { return };
    for point in ["tree", "tree/a", "tree/a/b"] {
        fs::create_dir_all(place.at("tree/a/b")).unwrap();
        fs::write(place.at("tree/a/file"), "text").unwrap();
        // A bind mount of the same file system: the device's number tells nothing.
        mount_bind(place.at("victim"), place.at(point)).unwrap();
        let error = remove_tree(&place.folder, "tree").unwrap_err().to_string();
        let blind = remove(place.folder.as_fd(), "tree").unwrap_err();
        unmount(place.at(point), UnmountFlags::DETACH).unwrap();
        assert!(error.contains(&format!("umount {}", place.at(point).display())), "{error}");
        assert!([Errno::XDEV, Errno::BUSY].contains(&blind), "also where the list of mounts came too early: {blind}");
        assert!(place.victim_is_whole(), "{point}");
    }
    assert!(remove_tree(&place.folder, "tree").unwrap());
}

#[test]
fn a_tree_that_is_swapped_for_a_link_meanwhile_harms_nothing() {
    let Some(place) = Place::new("swap") else { return };
    let stop = AtomicBool::new(false);
    fs::create_dir(place.at("links")).unwrap();
    // Each stands for what it takes the place of.
    let links =
        [("tree", "victim"), ("tree/a", "../victim"), ("tree/a/b", "../../victim"), ("tree/removed-1", "../victim")];
    for (number, (_, target)) in links.iter().enumerate() {
        symlink(target, place.at(&format!("links/{number}"))).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for (number, (name, _)) in links.iter().enumerate() {
                    let (at, link) = (rustix::fs::CWD, place.at(&format!("links/{number}")));
                    for _ in 0..2 {
                        let _ = renameat_with(at, place.at(name), at, &link, RenameFlags::EXCHANGE);
                    }
                }
            }
        });
        for _ in 0..2000 {
            let _ = fs::create_dir_all(place.at("tree/a/b/c"));
            let _ = fs::write(place.at("tree/a/b/file"), "");
            // Sometimes it is the link that stands there: that is refused.
            let _ = remove_tree(&place.folder, "tree");
            assert!(place.victim_is_whole());
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(place.victim_is_whole());
}
