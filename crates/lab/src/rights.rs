//! What the processes of a lab may do on a machine that is somebody's: as little as they need.
//!
//! A daemon starts as root with the capabilities of its systemd unit alone, gains none by what it starts, and writes to the lab's
//! own folders only (Landlock, where the kernel has it). A process that only sends and receives is nobody.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
    path_beneath_rules,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use crate::error::LabError;
use crate::home::{BPF_DIR, lab_dir, store_dir};

/// Of Linux 6.12. Older kernels do what they can of it.
const LANDLOCK: ABI = ABI::V6;
/// `nobody`, and its group.
const NOBODY: u32 = 65_534;

/// What a process may do that is started.
#[derive(Clone, Debug)]
pub(crate) struct Rights {
    capabilities: CapabilitySet,
    /// Folders and files; whatever else is there it may read, as root may.
    writable: Vec<PathBuf>,
}

impl Rights {
    /// Of a daemon of this lab.
    pub(crate) fn of(lab: &str, capabilities: CapabilitySet) -> Self {
        let shared = [BPF_DIR, "/proc/sys/net", "/dev/null"].map(PathBuf::from);
        let writable = [lab_dir(lab), store_dir(lab)].into_iter().chain(shared).collect();
        Self { capabilities, writable }
    }

    /// Of a process that writes to no file.
    pub(crate) fn only(capabilities: CapabilitySet) -> Self {
        Self { capabilities, writable: vec!["/dev/null".into()] }
    }

    /// The command will run with them, and so will whatever it starts.
    pub(crate) fn impose(self, command: &mut Command) -> Result<(), LabError> {
        let handled = AccessFs::from_write(LANDLOCK);
        let mut writes = Some(ruleset(handled, self.writable).map_err(LabError::io("restrict a daemon"))?);
        let restrict = move || {
            // `no_new_privs` comes with it.
            writes.take().map_or(Ok(()), restrict)?;
            keep_in_bounds(self.capabilities)
        };
        // SAFETY: between fork and exec there are only system calls, on a descriptor of its own: nothing allocates or takes a lock.
        unsafe { command.pre_exec(restrict) };
        Ok(())
    }
}

/// From here on the calling thread is nobody: it may use the descriptors that it has and open sockets, and no file.
pub(crate) fn become_nobody() -> io::Result<()> {
    restrict(ruleset(AccessFs::from_all(LANDLOCK), vec![])?)?;
    keep_in_bounds(CapabilitySet::empty())?;
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// What is handled is refused but beneath these paths; so are signals and abstract sockets to the outside.
fn ruleset(handled: landlock::BitFlags<AccessFs>, but: Vec<PathBuf>) -> io::Result<RulesetCreated> {
    let made = || -> Result<RulesetCreated, RulesetError> {
        let scope = Scope::from_all(LANDLOCK);
        Ruleset::default().handle_access(handled)?.scope(scope)?.create()?.add_rules(path_beneath_rules(but, handled))
    };
    made().map_err(io::Error::other)
}

fn restrict(ruleset: RulesetCreated) -> io::Result<()> {
    match ruleset.restrict_self() {
        Ok(_) => Ok(()),
        // A text would be allocated.
        Err(_) => Err(Errno::PERM.into()),
    }
}

/// Nothing that is executed from now on has others than these.
fn keep_in_bounds(capabilities: CapabilitySet) -> io::Result<()> {
    for (_, capability) in CapabilitySet::all().difference(capabilities).iter_names() {
        match remove_capability_from_bounding_set(capability) {
            // The kernel does not know it.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use landlock::{CompatLevel, Compatible};

    use super::*;

    /// What `sh` says with these rights.
    fn said(rights: Rights, script: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        rights.impose(&mut command).unwrap();
        let output = command.output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    fn has_landlock() -> bool {
        let wanted = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(LANDLOCK));
        let is_there = wanted.and_then(Ruleset::create).is_ok();
        if !is_there {
            weft_needs::skip("this kernel has no Landlock");
        }
        is_there
    }

    #[test]
    fn what_is_started_has_these_capabilities_alone() {
        if !weft_needs::root() {
            return;
        }
        let kept = CapabilitySet::NET_ADMIN | CapabilitySet::BPF;
        let said = said(Rights::only(kept), "grep -E '^(CapBnd|CapEff|CapPrm|NoNewPrivs)' /proc/self/status");
        let bits = format!("{:016x}", kept.bits());
        let lines = ["CapPrm", "CapEff", "CapBnd"].map(|name| format!("{name}:\t{bits}"));
        assert_eq!(said.trim(), format!("{}\nNoNewPrivs:\t1", lines.join("\n")));
    }

    #[test]
    fn it_writes_where_it_may_and_nowhere_else() {
        if !weft_needs::root() || !has_landlock() {
            return;
        }
        let (own, host) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |to: &Path| format!("echo x > {0}/new; mkdir {0}/folder; ", to.display());
        let there = host.path().join("there");
        fs::write(&there, "as it was").unwrap();
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let kill = format!("kill -9 {} && echo killed; ", other.id());
        let more = format!("echo x >> {0}; rm {0}; {kill} echo y > /dev/null && echo quiet", there.display());
        let rights =
            Rights { capabilities: CapabilitySet::empty(), writable: vec![own.path().into(), "/dev/null".into()] };
        let said = said(rights, &(write(own.path()) + &write(host.path()) + &more));
        let is_spared = !said.contains("killed") && other.try_wait().unwrap().is_none();
        other.kill().and_then(|()| other.wait()).unwrap();
        assert!(is_spared, "{said}");
        assert!(own.path().join("new").exists() && own.path().join("folder").exists(), "{said}");
        assert_eq!(fs::read_dir(host.path()).unwrap().count(), 1, "{said}");
        assert_eq!(fs::read_to_string(there).unwrap(), "as it was", "{said}");
        assert!(said.contains("quiet\n"), "{said}");
    }

    #[test]
    fn nobody_opens_no_file_and_has_no_capability() {
        if !weft_needs::root() || !has_landlock() {
            return;
        }
        let nobody = || {
            become_nobody().unwrap();
            assert!(fs::read("/etc/hostname").is_err() && fs::read("/proc/self/status").is_err());
            let sets = rustix::thread::capabilities(None).unwrap();
            assert!(sets.permitted.is_empty() && sets.effective.is_empty());
            assert!(rustix::process::geteuid().as_raw() == NOBODY);
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_ok());
        };
        // Of its own, since there is no way back.
        std::thread::spawn(nobody).join().unwrap();
        assert!(fs::read("/etc/hostname").is_ok());
    }
}
