//! Why the data path could not be set up: one line each, with the remedy.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use weft_wire::block::Block;

use crate::frame::Verdict;

/// What went wrong between user space and the programs in the kernel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatapathError {
    /// The kernel refuses eBPF or mounts to this process.
    #[error(
        "{what}: not permitted; run as root, or with CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and (to mount) CAP_SYS_ADMIN"
    )]
    NoRights { what: String },
    /// The kernel was built without eBPF.
    #[error("{what}: this kernel has no eBPF; use one with CONFIG_BPF_SYSCALL and CONFIG_NET_CLS_BPF")]
    NoEbpf { what: String },
    /// No interface of that name in the caller's network namespace.
    #[error("interface `{name}` does not exist in this network namespace; create it first or correct the name")]
    NoInterface {
        /// The name that was asked for.
        name: String,
    },
    /// A setting that cannot work.
    #[error("{field}: {why}")]
    Config {
        /// Name of the setting.
        field: &'static str,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// An AA outside the block of this data path.
    #[error("AA {aa} is outside the AA block {block}; nothing was changed")]
    OutsideBlock { aa: Ipv4Addr, block: Block },
    /// The kernel's verifier refused a program, whatever rights this process has.
    #[error(
        "eBPF object `{object}`: the kernel's verifier refused the program ({why}); \
         please report it with the kernel's version"
    )]
    Verifier {
        object: &'static str,
        /// The last line of the verifier's log.
        why: String,
    },
    /// The loader refused an object.
    #[error("eBPF object `{object}` does not load: {why}; please report it with the kernel's version")]
    Load {
        object: &'static str,
        /// The loader's last words.
        why: String,
    },
    /// An operation on a map failed.
    #[error("map `{map}`: {what} failed: {source}")]
    Map {
        map: &'static str,
        what: &'static str,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
    /// A program could not be attached, replaced or run.
    #[error("{what} failed: {source}")]
    Program {
        what: String,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
    /// Something about a pin or its file system.
    #[error("{what} {path}: {source}")]
    Pin {
        what: &'static str,
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A running data path was looked for where there is none.
    #[error("no data path is pinned at {path}; start the agent or the lab first")]
    NotPinned {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A benchmark's program did not do what it is measured for.
    #[error("benchmark `{name}` returned verdict {verdict} instead of {expected}; the numbers would mean nothing")]
    Verdict {
        name: String,
        verdict: u32,
        /// What it had to return.
        expected: u32,
    },
    /// The same at TC.
    #[error("benchmark `{name}` decided {verdict:?} instead of {expected:?}; the numbers would mean nothing")]
    Diverted {
        name: &'static str,
        verdict: Verdict,
        /// What it had to decide.
        expected: Verdict,
    },
}

impl DatapathError {
    /// Names the usual causes of a refusal by the kernel; anything else stays as it is.
    pub fn from_kernel(what: impl Into<String>, source: libbpf_rs::Error) -> Self {
        let what = what.into();
        match source.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Self::NoRights { what },
            libbpf_rs::ErrorKind::Unsupported => Self::NoEbpf { what },
            _ => Self::Program { what, source },
        }
    }
}
