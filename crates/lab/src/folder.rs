//! Folders of labs, opened before they are used: real directories of root's that nobody else may write, never links.
//!
//! Root works below them, so whoever could put a link in the way would choose what root writes and removes. Only the
//! system's own directories that they stand in ([`SYSTEM_DIRS`]) are trusted as they are.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    CWD, Dir, FileType, Mode, OFlags, RawMode, ResolveFlags, Stat, fchmod, fstat, mkdirat, openat, openat2,
};
use rustix::io::Errno;

use crate::error::LabError;

/// Directories of the system, in which ours stand. Links on the way to them are the system's affair.
const SYSTEM_DIRS: [&str; 3] = ["/run", "/var/run", "/var/lib"];

/// How a directory is opened: itself, and not what a link names.
const OPEN: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open folder that was checked.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder of root's below one of the [`SYSTEM_DIRS`]; `None` if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, LabError> {
        Self::open_of(path, 0)
    }

    /// As [`Self::open`]; the folder may also be `user`'s.
    pub(crate) fn open_of(path: &Path, user: u32) -> Result<Option<Self>, LabError> {
        let (mut at, names) = start(path)?;
        for name in names {
            match at.child_of(name, user)? {
                Some(child) => at = child,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Opens a folder of root's, and makes it, and those on the way to it, where they are missing. One that is already there
    /// loses the rights that this mode does not give.
    pub(crate) fn make(path: &Path, mode: RawMode) -> Result<Self, LabError> {
        let (mut at, names) = start(path)?;
        for (number, name) in names.iter().enumerate() {
            let is_last = number + 1 == names.len();
            // Folders on the way hold what others may look at, too.
            let mode = if is_last { mode } else { 0o755 };
            let new = at.make_child(name, Mode::from_raw_mode(mode))?;
            let gone = || LabError::io(format!("open {}", path.display()))(Errno::NOENT.into());
            at = at.child_of(name, 0)?.ok_or_else(gone)?;
            if new || is_last {
                at.limit(mode, new)?;
            }
        }
        Ok(at)
    }

    fn limit(&self, mode: RawMode, exactly: bool) -> Result<(), LabError> {
        let what = || format!("set the mode of {}", self.path.display());
        let now = fstat(&self.fd).map_err(LabError::errno(what()))?.st_mode & 0o7777;
        let wanted = if exactly { mode } else { now & mode };
        match now == wanted {
            true => Ok(()),
            false => fchmod(&self.fd, Mode::from_raw_mode(wanted)).map_err(LabError::errno(what())),
        }
    }

    /// A folder in this one; `None` if it is not there.
    pub(crate) fn child_of(&self, name: &OsStr, user: u32) -> Result<Option<Self>, LabError> {
        let path = self.path.join(name);
        let fd = match open_directory(self.fd.as_fd(), name, ResolveFlags::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(LabError::UnsafeFolder { path, why: "is no directory but a link or a file".to_owned() });
            }
            opened => opened.map_err(LabError::errno(format!("open {}", path.display())))?,
        };
        let stat = fstat(&fd).map_err(LabError::errno(format!("look at {}", path.display())))?;
        match objection(&stat, user) {
            Some(why) => Err(LabError::UnsafeFolder { path, why }),
            None => Ok(Some(Self { fd, path })),
        }
    }

    /// Makes a directory here; false if something of that name is there.
    pub(crate) fn make_child(&self, name: impl AsRef<OsStr>, mode: Mode) -> Result<bool, LabError> {
        let name = name.as_ref();
        match mkdirat(&self.fd, name, mode) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(LabError::errno(format!("create {}", self.path.join(name).display()))(error)),
        }
    }

    /// Writes a file that was not there, and leaves it open. A link of that name is something that is there.
    pub(crate) fn write_new(&self, name: &str, text: &str) -> Result<File, LabError> {
        let what = || format!("write {}", self.path.join(name).display());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.fd, name, flags, Mode::from_raw_mode(0o644)).map_err(LabError::errno(what()))?;
        let mut file = File::from(file);
        file.write_all(text.as_bytes()).map_err(LabError::io(what()))?;
        Ok(file)
    }

    /// Names of the directories in it, in order; links are none.
    pub(crate) fn directories(&self) -> Vec<String> {
        self.names(|kind| kind == FileType::Directory)
    }

    /// Names of the links in it, in order.
    pub(crate) fn links(&self) -> Vec<String> {
        self.names(|kind| kind == FileType::Symlink)
    }

    /// Names of all that is in it, in order.
    pub(crate) fn all_names(&self) -> Vec<String> {
        self.names(|_| true)
    }

    fn names(&self, wanted: impl Fn(FileType) -> bool) -> Vec<String> {
        let entries = Dir::read_from(&self.fd).into_iter().flatten().flatten();
        let entries = entries.filter(|entry| wanted(self.kind_of(entry)));
        let names = entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        let mut names: Vec<String> = names.filter(|name| name != "." && name != "..").collect();
        names.sort();
        names
    }

    /// Some file systems leave the kind out of their listings.
    fn kind_of(&self, entry: &rustix::fs::DirEntry) -> FileType {
        if entry.file_type() != FileType::Unknown {
            return entry.file_type();
        }
        let stat = rustix::fs::statat(&self.fd, entry.file_name(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens a directory that stands in another one, and no link to one.
pub(crate) fn open_directory(at: BorrowedFd<'_>, name: &OsStr, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    openat2(at, name, OPEN, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | resolve)
}

/// The system's directory that a path stands in, open, and the names from there.
fn start(path: &Path) -> Result<(Folder, Vec<&OsStr>), LabError> {
    let bad = |why: &str| LabError::UnsafeFolder { path: path.to_owned(), why: why.to_owned() };
    let below = |dir: &'static str| Some((Path::new(dir), path.strip_prefix(dir).ok()?));
    let (dir, rest) = SYSTEM_DIRS.into_iter().find_map(below).ok_or_else(|| bad("is in no directory of the system"))?;
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !rest.components().all(plain) || rest.as_os_str().as_bytes().is_empty() {
        return Err(bad("is no path of a folder"));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = openat(CWD, dir, flags, Mode::empty()).map_err(LabError::errno(format!("open {}", dir.display())))?;
    Ok((Folder { fd, path: dir.to_owned() }, rest.iter().collect()))
}

/// Why this is no folder that root may work in, if it is none.
fn objection(stat: &Stat, user: u32) -> Option<String> {
    if stat.st_uid != 0 && stat.st_uid != user {
        return Some(format!("belongs to user {}", stat.st_uid));
    }
    (stat.st_mode & 0o022 != 0).then(|| format!("may be written by others (mode {:04o})", stat.st_mode & 0o7777))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(user: u32, mode: u32) -> Stat {
        let mut stat = fstat(std::fs::File::open("/").unwrap()).unwrap();
        (stat.st_uid, stat.st_mode) = (user, 0o040_000 | mode);
        stat
    }

    #[test]
    fn only_folders_that_nobody_else_may_write_will_do() {
        assert_eq!(objection(&stat(0, 0o755), 0), None);
        assert_eq!(objection(&stat(7, 0o700), 7), None);
        assert_eq!(objection(&stat(7, 0o700), 0).unwrap(), "belongs to user 7");
        for mode in [0o1777, 0o775, 0o757] {
            assert!(objection(&stat(0, mode), 0).unwrap().starts_with("may be written by others (mode "), "{mode:o}");
        }
    }

    /// What the owner of a folder can do while root writes in it.
    #[test]
    fn whatever_stands_under_a_folders_name_meanwhile_is_not_written_to() {
        if !weft_needs::root() {
            return;
        }
        let path = PathBuf::from(format!("/run/weft-test-folder-{}", std::process::id()));
        let parent = Folder::make(&path, 0o700).unwrap();
        let at = |name: &str| path.join(name);
        std::fs::create_dir_all(at("victim")).unwrap();
        assert!(parent.make_child("own", Mode::from_raw_mode(0o755)).unwrap());
        let folder = parent.child_of("own".as_ref(), 0).unwrap().unwrap();
        std::fs::rename(at("own"), at("away")).unwrap();
        std::os::unix::fs::symlink(at("victim"), at("own")).unwrap();
        std::os::unix::fs::symlink(at("victim/linked"), at("away/linked")).unwrap();
        drop(folder.write_new("new", "text").unwrap());
        assert!(folder.write_new("linked", "text").is_err() && folder.write_new("new", "more").is_err());
        let victims = std::fs::read_dir(at("victim")).unwrap().count();
        let written = std::fs::read_to_string(at("away/new"));
        let swapped = parent.child_of("own".as_ref(), 0);
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!((victims, written.unwrap().as_str()), (0, "text"));
        assert!(matches!(swapped, Err(LabError::UnsafeFolder { .. })));
    }

    #[test]
    fn paths_elsewhere_or_upwards_are_refused() {
        for path in ["/tmp/x", "/run", "/run/../etc", "weft", "/var/tmp/weft"] {
            assert!(matches!(Folder::open(Path::new(path)), Err(LabError::UnsafeFolder { .. })), "{path}");
        }
    }
}
