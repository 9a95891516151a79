//! What can go wrong with a lab, one line each: what, why, what to do.

use std::io;

use weft_scenario::engine::EngineError;
use weft_scenario::topology::LoadError;

/// Why a lab could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Switches of the fabric cannot be in one network.
    #[error(transparent)]
    Fabric(#[from] LoadError),
    /// This machine cannot run a lab.
    #[error("{what}; {remedy}")]
    NotFit {
        what: String,
        /// What to do about it.
        remedy: String,
    },
    /// Something else stands where a folder of labs should be.
    #[error(
        "{} {why}; labs work only in directories of root's that nobody else may write: look what it is, then remove it or \
         give it to root (chown root, chmod go-w)", path.display()
    )]
    UnsafeFolder {
        path: std::path::PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// An archive for a bug report could not be written.
    #[error("{path}: {why}; choose another --out")]
    Bundle { path: std::path::PathBuf, why: String },
    /// The user asked to stop; what had been made is removed.
    #[error("interrupted; everything the lab made has been removed")]
    Interrupted,
    /// A lab's name cannot become part of a namespace's name.
    #[error("lab name `{0}` is not usable: {rule}", rule = weft_scenario::name::RULE)]
    BadLabName(String),
    /// The name is taken.
    #[error("a lab called `{0}` is already up; take it down first (weft lab down {0}) or give this one another --name")]
    AlreadyUp(String),
    /// A namespace of that name is there although no lab of that name is.
    #[error(
        "namespace `{0}` exists already; if a killed lab left it: weft lab down --all; if it is somebody else's, give the lab another --name"
    )]
    NamespaceExists(String),
    #[error("no lab called `{name}` is up; labs that are: {up}")]
    NoSuchLab {
        /// The name asked for.
        name: String,
        /// Names of labs that are up, or `none`.
        up: String,
    },
    #[error("lab `{lab}` belongs to a run, which says itself what fails; bring one up for this: weft lab up FABRIC")]
    OfARun { lab: String },
    #[error("`{server}` is at `{edge}` now; take it home before its link fails: weft lab move {server} {home}")]
    Moved { server: String, edge: String, home: String },
    #[error("lab `{lab}` stays as it is: {why}")]
    NotApplied { lab: String, why: String },
    /// A command without a lab's name, and no lab is up.
    #[error("no lab is up; bring one up: weft lab up FABRIC")]
    NoLab,
    /// A command without a lab's name, and several are up.
    #[error("several labs are up ({up}); say which one with --lab NAME")]
    SeveralLabs { up: String },
    #[error("lab `{lab}` has no node `{node}`; it has: {known}")]
    NoSuchNode {
        lab: String,
        /// The name asked for.
        node: String,
        /// The nodes it has.
        known: String,
    },
    #[error("node `{node}` has no log of a daemon `{daemon}`; it has: {known}")]
    NoSuchDaemon {
        node: String,
        /// The daemon asked for.
        daemon: String,
        /// The daemons that have logs there.
        known: String,
    },
    #[error("node `{node}` has no interface `{interface}`; it has: {known}")]
    NoSuchInterface {
        node: String,
        /// The interface asked for.
        interface: String,
        /// The interfaces it has.
        known: String,
    },
    /// A fabric that a lab cannot be made of.
    #[error("fabric `{fabric}`: {reason}")]
    BadFabric { fabric: String, reason: String },
    /// VL2 needs somebody to ask.
    #[error("fabric `{0}` has no directory server; VL2 needs one: add a node of role `directory` below a ToR")]
    NoDirectory(String),
    /// No link between two nodes that a fault names.
    #[error("no link between `{a}` and `{b}`; a fault must name two neighbours")]
    NoSuchLink { a: String, b: String },
    /// Only switches fail as a whole.
    #[error("`{node}` is no switch; name the two ends of its link, such as {node} {neighbour}")]
    NotASwitch { node: String, neighbour: String },
    /// A link cannot be so much worse.
    #[error("{0}")]
    Impairment(String),
    /// What shall be repaired works.
    #[error("nothing of {what} is broken in lab `{lab}`; broken: {broken}")]
    NotBroken {
        what: String,
        lab: String,
        /// What is, or `nothing`.
        broken: String,
    },
    /// A line of an iproute2 batch was refused.
    #[error("node `{node}`: `{program} {line}` (line {number} of its batch) failed: {reason}")]
    Batch {
        /// The node whose namespace it ran in.
        node: String,
        /// `ip`, `tc`, `bridge` or `vtysh`.
        program: &'static str,
        /// The refused line, or all that is known about it.
        line: String,
        /// Its number in the batch, from 1; 0 if the program did not say.
        number: usize,
        /// What the program said.
        reason: String,
    },
    /// An operation of the system failed.
    #[error("cannot {what}: {source}{hint}")]
    Io {
        /// What was tried, with the path.
        what: String,
        source: io::Error,
        /// What to do, with a leading `; `, or nothing.
        hint: &'static str,
    },
    /// A daemon ended or did not become ready.
    #[error("{daemon} of node `{node}` {what}; its log says: {log}")]
    Daemon {
        daemon: &'static str,
        node: String,
        what: String,
        /// The last lines of its log.
        log: String,
    },
    /// Routing did not settle.
    #[error("routing did not converge in {waited_s} s: node `{node}` {missing}; its daemon says: {log}")]
    NotConverged {
        /// The first node whose table is not as expected.
        node: String,
        /// Which route is missing or wrong.
        missing: String,
        /// How long was waited.
        waited_s: u64,
        /// The last lines of the routing daemon's log.
        log: String,
    },
    /// The network is up but carries nothing.
    #[error("`{from}` cannot reach `{to}` although routing converged (waited {waited_s} s); its agent says: {log}")]
    NoFirstPing {
        from: String,
        to: String,
        /// How long was waited.
        waited_s: u64,
        /// The last lines of the first server's agent's log; nothing without an overlay.
        log: String,
    },
    /// A shaped link does not carry what was asked.
    #[error(
        "link self-test: {direction} links carry {got_bps:.0} bit/s, {asked_bps:.0} asked (off by more than {tolerance_percent} %); is the machine busy?"
    )]
    LinkOff {
        /// `sender-receiver`, the roles.
        direction: String,
        got_bps: f64,
        asked_bps: f64,
        /// How much was allowed.
        tolerance_percent: f64,
    },
    /// A lab's state file cannot be used.
    #[error("state of lab `{lab}` cannot be read ({reason}); remove the lab: weft lab down {lab}")]
    BadState { lab: String, reason: String },
    /// A directory server does not take the servers' AAs.
    #[error("directory server `{node}` does not take the servers' AAs: {reason}")]
    Registration {
        /// The directory server's node.
        node: String,
        reason: String,
    },
    /// A server has no agent.
    #[error("`{0}` has no agent")]
    NoAgent(String),
    /// A server cannot move so.
    #[error("{0}")]
    Migration(String),
    /// A part of a daemon that the lab uses itself failed.
    #[error(transparent)]
    Node(#[from] weft_node::NodeError),
    /// A load on a directory system could not be run.
    #[error("{0}")]
    DirectoryLoad(String),
    /// The eBPF part failed.
    #[error("node `{node}`: {reason}")]
    Datapath {
        node: String,
        /// What the loader said.
        reason: String,
    },
    /// The traffic part failed.
    #[error("{0}")]
    Traffic(String),
}

impl LabError {
    /// What this machine has not, and what to do about it.
    pub(crate) fn not_fit(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::NotFit { what: what.into(), remedy: remedy.into() }
    }

    /// Wraps an IO error with what was tried.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| {
            let hint = match source.raw_os_error() {
                Some(libc::ENOSPC) => "; free some space under /run",
                Some(libc::EPERM | libc::EACCES) => "; run as root",
                _ => "",
            };
            Self::Io { what, source, hint }
        }
    }

    /// The same for system calls made through `rustix`.
    pub(crate) fn errno(what: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Self {
        let wrap = Self::io(what);
        move |errno| wrap(errno.into())
    }
}

impl From<LabError> for EngineError {
    fn from(error: LabError) -> Self {
        match error {
            LabError::NotFit { what, remedy } => Self::NotFit { what, remedy },
            LabError::Interrupted => Self::Interrupted,
            LabError::Fabric(error) => Self::Refused(error.to_string()),
            error @ (LabError::BadFabric { .. } | LabError::NoDirectory(_)) => Self::Refused(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_missing_rights_come_with_a_remedy() {
        let full = LabError::io("write /run/weft/x")(io::Error::from_raw_os_error(libc::ENOSPC)).to_string();
        assert!(full.ends_with("; free some space under /run"), "{full}");
        let denied = LabError::errno("mount /run/netns/x")(rustix::io::Errno::PERM).to_string();
        assert!(denied.starts_with("cannot mount /run/netns/x: ") && denied.ends_with("; run as root"), "{denied}");
    }

    #[test]
    fn exit_codes_stay_apart() {
        let not_fit = LabError::not_fit("no root", "use sudo");
        assert!(matches!(EngineError::from(not_fit), EngineError::NotFit { .. }));
        assert!(matches!(EngineError::from(LabError::Interrupted), EngineError::Interrupted));
        assert!(matches!(EngineError::from(LabError::AlreadyUp("x".into())), EngineError::Failed(_)));
        assert!(matches!(EngineError::from(LabError::NoDirectory("x".into())), EngineError::Refused(_)));
    }
}
