//! The files that a command in a node sees: mounts in a mount namespace of its own, and the node's name in a UTS namespace.
//!
//! What is made lies in a file system in memory that only the command's mount namespace knows: nothing is written outside of it,
//! and it goes with the last process that sees it, however that ends.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::{bash_rc, names};
use crate::error::LabError;
use crate::frr;
use crate::home::{NETNS_DIR, frr_dir, lab_dir, make_dir};
use crate::state::{LabState, NodeState};

/// Where names are asked for before files are read: a service of the host, which knows the host's names only.
const NAME_CACHE: &str = "/run/nscd";

/// The empty folder of a lab on which each command finds its own things.
fn mount_point(lab: &str) -> PathBuf {
    lab_dir(lab).join("node")
}

/// What `bash` reads at its start.
pub(super) fn rc_file(lab: &str) -> PathBuf {
    mount_point(lab).join("bashrc")
}

/// What differs from the host's files.
pub(super) struct View {
    name: String,
    at: PathBuf,
    /// Files that take the place of the host's.
    etc: [(&'static str, String); 4],
    bash_rc: String,
    /// Run folder of the node's routing daemons.
    routing: Option<PathBuf>,
}

impl View {
    pub(super) fn of(state: &LabState, node: &NodeState) -> Result<Self, LabError> {
        let services = fs::read_to_string("/etc/nsswitch.conf").unwrap_or_default();
        let at = mount_point(&state.lab);
        make_dir(&at)?;
        Ok(Self {
            name: node.name.clone(),
            at,
            etc: [
                ("hosts", names::hosts(state, node)),
                ("hostname", format!("{}\n", node.name)),
                ("resolv.conf", names::RESOLVER.to_owned()),
                ("nsswitch.conf", names::name_services(&services)),
            ],
            bash_rc: bash_rc(&state.lab, &node.name),
            routing: Some(frr_dir(&node.namespace)).filter(|folder| folder.is_dir()),
        })
    }

    /// The folder of programs that stand before the host's.
    pub(super) fn programs(&self) -> PathBuf {
        self.at.join("bin")
    }

    /// Puts all of it before the calling thread, which is in the node's network namespace and becomes the command.
    pub(super) fn put_on(&self) -> Result<(), LabError> {
        let failed = |what: &str| LabError::errno(format!("{what} of node {}", self.name));
        // SAFETY: no file table is unshared, and the thread becomes the command or ends.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::NEWUTS) }
            .map_err(failed("make the files and name"))?;
        keep_own_mounts();
        set_host_name(&self.name).map_err(LabError::io(format!("set the name of node {}", self.name)))?;
        let memory = MountFlags::NOSUID | MountFlags::NODEV;
        mount("weft", &self.at, "tmpfs", memory, Some(c"mode=0755,size=4m")).map_err(failed("mount the files"))?;
        for (file, text) in &self.etc {
            let own = self.write(file, text, 0o644)?;
            // Where the host has no such file, its programs look for none.
            let target = Path::new("/etc").join(file);
            if target.exists() {
                mount_bind(&own, &target).map_err(failed(&format!("mount {}", target.display())))?;
            }
        }
        self.write("bashrc", &self.bash_rc, 0o644)?;
        if Path::new(NAME_CACHE).is_dir() {
            mount("weft", NAME_CACHE, "tmpfs", memory, Some(c"mode=0755,size=4k"))
                .map_err(failed("hide the name cache"))?;
        }
        self.write_programs()?;
        own_sysfs();
        Ok(())
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> Result<PathBuf, LabError> {
        let path = self.at.join(name);
        let set_mode = || fs::set_permissions(&path, fs::Permissions::from_mode(mode));
        fs::write(&path, text).and_then(|()| set_mode()).map_err(LabError::io(format!("write {}", path.display())))?;
        Ok(path)
    }

    /// `vtysh` as the node's own.
    fn write_programs(&self) -> Result<(), LabError> {
        let programs = self.programs();
        fs::create_dir(&programs).map_err(LabError::io(format!("create {}", programs.display())))?;
        let Some((sockets, program)) = self.routing.as_ref().zip(frr::shell_path()) else { return Ok(()) };
        self.write("vtysh.conf", "", 0o644)?;
        let (sockets, settings, program) = (sockets.display(), self.at.display(), program.display());
        // Whoever names another node's daemons means these.
        let text = format!(
            "#!/bin/sh\nfor word; do case $word in -N* | --pathspace* | --vty_socket*) exec {program} \"$@\" ;; esac; done\n\
             exec {program} --vty_socket {sockets} --config_dir {settings} \"$@\"\n"
        );
        self.write("bin/vtysh", &text, 0o755).map(drop)
    }
}

/// What is mounted from here on is seen here alone; what others mount or unmount is still seen here. Named network namespaces stay
/// everybody's, so that those made here can be entered and removed elsewhere.
fn keep_own_mounts() {
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
    let names = mounts.lines().filter_map(mount_point_in).filter(|point| !point.starts_with(NETNS_DIR));
    for point in names {
        // What is hidden below another mount, or not shared, needs no change.
        let _ = mount_change(&point, MountPropagationFlags::DOWNSTREAM);
    }
}

/// The mount point in a line of `mountinfo`, where blanks are written in octal.
fn mount_point_in(line: &str) -> Option<PathBuf> {
    let field = line.split(' ').nth(4)?;
    Some(field.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\").into())
}

fn set_host_name(name: &str) -> std::io::Result<()> {
    // SAFETY: the pointer and the length are those of one string.
    match unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Has `/sys` show the node's interfaces, with everything that is mounted below it in its place. Where the kernel refuses it, it shows
/// the host's.
fn own_sysfs() {
    const SYS: &str = "/sys";
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
    let mut below: Vec<PathBuf> = Vec::new();
    for point in
        mounts.lines().filter_map(mount_point_in).filter(|point| point.starts_with(SYS) && *point != Path::new(SYS))
    {
        if !below.iter().any(|outer| point.starts_with(outer)) {
            below.push(point);
        }
    }
    let held: Vec<(PathBuf, File)> =
        below.into_iter().filter_map(|point| Some((point.clone(), File::open(&point).ok()?))).collect();
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if mount("sysfs", SYS, "sysfs", flags, None::<&CStr>).is_err() {
        return;
    }
    for (point, folder) in &held {
        let source = format!("/proc/self/fd/{}", folder.as_raw_fd());
        // A mount point that this kernel shows to one network namespace only stays away.
        let _ = mount_bind_recursive(&source, point);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_with_blanks_are_read() {
        let line = "36 35 98:0 / /mnt/a\\040b rw,noatime shared:1 - ext3 /dev/root rw";
        assert_eq!(mount_point_in(line), Some("/mnt/a b".into()));
        assert_eq!(mount_point_in("36 35"), None);
    }
}
