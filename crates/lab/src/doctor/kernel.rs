//! What this kernel takes: programs really loaded and attached, in namespaces that are gone afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use weft_datapath::DatapathError;
use weft_datapath::capability;
use weft_datapath::copies;
use weft_datapath::trill::XdpMode;
use weft_datapath::{TcHook, probe};

use super::capability::Probe;
use super::selfcheck;
use crate::batch;
use crate::error::LabError;
use crate::netns;

/// Where a kernel shows its own types.
pub(super) const BTF_FILE: &str = "/sys/kernel/btf/vmlinux";

/// The running kernel, as it says itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kernel {
    /// `6.1.0-56-amd64`.
    pub(super) release: String,
    /// Whether it shows its types.
    pub(super) btf: bool,
    /// `integrity` or `confidentiality`; `None`: no lockdown.
    pub(super) lockdown: Option<String>,
}

impl Kernel {
    pub(super) fn running() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            release: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            btf: Path::new(BTF_FILE).exists(),
            lockdown: lockdown_in(&text("/sys/kernel/security/lockdown")),
        }
    }

    /// Its first two numbers.
    pub(super) fn version(&self) -> (u32, u32) {
        let mut numbers = self.release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

/// `[none] integrity confidentiality`: what is in brackets, unless it is `none`.
fn lockdown_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (mode, _) = rest.split_once(']')?;
    (mode != "none").then(|| mode.to_owned())
}

/// Why the kernel did not take something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// This process may not.
    NoRights,
    /// It was built without eBPF.
    NoEbpf,
    /// Its verifier looked at a program and refused it: the last line of its log.
    Verifier(String),
    /// Anything else.
    Other(String),
}

impl From<DatapathError> for Refusal {
    fn from(error: DatapathError) -> Self {
        match error {
            DatapathError::NoRights { .. } => Self::NoRights,
            DatapathError::NoEbpf { .. } => Self::NoEbpf,
            DatapathError::Verifier { why, .. } => Self::Verifier(why),
            DatapathError::Load { why, .. } => Self::Other(why),
            other => Self::Other(first_part(&other.to_string())),
        }
    }
}

impl From<LabError> for Refusal {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => Self::NoRights,
            other => Self::Other(first_part(&other.to_string())),
        }
    }
}

/// A remedy of the doctor's own follows.
fn first_part(text: &str) -> String {
    text.split_once("; ").map_or(text, |(what, _)| what).to_owned()
}

/// How a probe came out, with a word about it.
pub(super) type Outcome = Result<String, Refusal>;

/// Tries these, each once in the life of this process: what a kernel takes does not change.
pub(super) fn try_all(probes: impl IntoIterator<Item = Probe>) -> BTreeMap<Probe, Outcome> {
    static KNOWN: Mutex<BTreeMap<Probe, Outcome>> = Mutex::new(BTreeMap::new());
    // Whoever panicked had not put anything in.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    probes.into_iter().map(|probe| (probe, known.entry(probe).or_insert_with(|| attempt(probe)).clone())).collect()
}

fn attempt(probe: Probe) -> Outcome {
    match probe {
        Probe::Object(name) => {
            let file = weft_testbed::objects()
                .find(|file| file.name == name)
                .expect("the table names objects that are shipped");
            capability::load(file).map(|_verified| name.to_owned()).map_err(Refusal::from)
        }
        Probe::Tc => in_namespace(|| probe::try_tc("lo").map(hook_name)),
        Probe::Vl2Works => at_work(&[], selfcheck::vl2),
        Probe::VtepWorks => at_work(&["u0", "p0"], selfcheck::vtep),
        Probe::XdpNative => xdp(XdpMode::Native),
        Probe::XdpGeneric => xdp(XdpMode::Generic),
        Probe::OwnCopies => match copies::are_own()? {
            true => Ok("each has its own bytes".to_owned()),
            false => Err(Refusal::Other("all copies of a broadcast have the same bytes".to_owned())),
        },
    }
}

fn hook_name(hook: TcHook) -> String {
    let name = match hook {
        TcHook::Tcx => "tcx",
        TcHook::Filter => {
            "classic filters (tcx came with Linux 6.6); after SIGKILL a program without a pin stays on its interface until the next start"
        }
    };
    name.to_owned()
}

fn in_namespace(work: impl FnOnce() -> Result<String, DatapathError> + Send) -> Outcome {
    netns::in_fresh_namespace(work)?.map_err(Refusal::from)
}

fn xdp(mode: XdpMode) -> Outcome {
    let done = netns::in_fresh_namespace(|| {
        make_ports(&["x0"])?;
        probe::try_xdp("x0", mode).map_err(Refusal::from)
    })?;
    done.map(|()| "a program was attached to a veth interface".to_owned())
}

/// Ends of veth pairs.
fn make_ports(names: &[&str]) -> Result<(), Refusal> {
    let lines = names.iter().map(|name| format!("link add dev {name} up type veth peer name {name}-far"));
    batch::run(batch::Program::Ip, "doctor", &lines.collect::<Vec<_>>()).map_err(Refusal::from)
}

/// Attaches programs and sends a frame through them: did it come out right?
fn at_work(ports: &[&str], frame_is_right: fn() -> Result<bool, DatapathError>) -> Outcome {
    let right = netns::in_fresh_namespace(|| {
        make_ports(ports)?;
        frame_is_right().map_err(Refusal::from)
    })?;
    match right? {
        true => Ok("a frame came out right".to_owned()),
        false => Err(Refusal::Other("a frame's outer headers were not taken off".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_lockdown_are_read_as_kernels_write_them() {
        let kernel = |release: &str| Kernel { release: release.into(), ..Kernel::default() };
        assert_eq!(kernel("6.1.0-56-amd64").version(), (6, 1));
        assert_eq!(kernel("6.12.95+deb12-amd64").version(), (6, 12));
        assert_eq!(kernel("junk").version(), (0, 0));
        assert_eq!(lockdown_in("none [integrity] confidentiality\n").as_deref(), Some("integrity"));
        assert_eq!(lockdown_in("[none] integrity confidentiality\n"), None);
        assert_eq!(lockdown_in(""), None);
    }

    #[test]
    fn a_frame_that_comes_out_wrong_is_a_refusal() {
        if !weft_needs::root() {
            return;
        }
        assert!(at_work(&["x0"], || Ok(true)).is_ok());
        let Err(Refusal::Other(why)) = at_work(&[], || Ok(false)) else { panic!("it is one") };
        assert!(why.contains("headers"), "{why}");
        let missing = at_work(&[], || weft_datapath::vxlan::interface_index("u0").map(|_| true));
        assert!(matches!(missing, Err(Refusal::Other(why)) if why.contains("u0")));
    }

    #[test]
    fn a_refusal_keeps_the_reason_and_not_the_remedy() {
        let verifier = DatapathError::Verifier { object: "trill", why: "R1 unbounded memory access".into() };
        assert_eq!(Refusal::from(verifier), Refusal::Verifier("R1 unbounded memory access".into()));
        let missing = DatapathError::NoInterface { name: "x0".into() };
        let Refusal::Other(why) = Refusal::from(missing) else { panic!("another kind") };
        assert!(why.contains("x0") && !why.contains("create it"), "{why}");
    }
}
