//! What the findings about a kernel mean: one line for each capability, and the remedy that fits this kernel.

use std::collections::BTreeMap;

use weft_scenario::judge::Verdict;

use super::Check;
use super::capability::{NEEDS_BTF, Probe, Row, TABLE};
use super::kernel::{BTF_FILE, Kernel, Outcome, Refusal};

/// The oldest kernel that weft is tried on: Debian 12's own.
const KERNEL_LEAST: (u32, u32) = (6, 1);
/// The kernel of Debian 12's backports: if something fails there, a newer one is no help.
const KERNEL_BACKPORTS: (u32, u32) = (6, 12);
const RIGHTS: &str = "run as root; inside a container with CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN and a seccomp filter that allows bpf() \
                      (docker run --privileged)";

/// What was found out about eBPF here.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) kernel: Kernel,
    pub(super) outcomes: BTreeMap<Probe, Outcome>,
}

/// All lines about the kernel and its eBPF.
pub(super) fn judge(found: &Findings) -> Vec<Check> {
    let mut checks = vec![release(&found.kernel), btf(&found.kernel)];
    checks.extend(lockdown(&found.kernel));
    checks.extend(TABLE.iter().filter(|row| !row.probes.is_empty()).map(|row| capability(row, found)));
    checks
}

fn release(kernel: &Kernel) -> Check {
    if kernel.version() >= KERNEL_LEAST {
        return Check::ok("kernel", &kernel.release);
    }
    let (major, minor) = KERNEL_LEAST;
    let remedy = format!("weft is tried on Linux {major}.{minor} and newer; what this one takes is said below");
    Check::warn("kernel", &kernel.release, remedy)
}

fn btf(kernel: &Kernel) -> Check {
    let objects = NEEDS_BTF.join(", ");
    if kernel.btf {
        return Check::ok("BTF", format!("{BTF_FILE}; needed by eBPF object {objects}"));
    }
    let remedy = format!("a kernel with CONFIG_DEBUG_INFO_BTF, as Debian's are; eBPF object {objects} needs it");
    Check::warn("BTF", format!("no {BTF_FILE}"), remedy)
}

fn lockdown(kernel: &Kernel) -> Option<Check> {
    let mode = kernel.lockdown.as_ref()?;
    if mode != "confidentiality" {
        return Some(Check::ok("lockdown", format!("{mode}, which lets eBPF be")));
    }
    let remedy =
        "programs that read the kernel's memory are refused; boot with lockdown=integrity if a line below fails";
    Some(Check::warn("lockdown", mode, remedy))
}

/// One capability: everything that makes it must work.
pub(super) fn capability(row: &Row, found: &Findings) -> Check {
    let outcomes = row.probes.iter().map(|probe| (probe, &found.outcomes[probe]));
    let (good, bad): (Vec<_>, Vec<_>) = outcomes.partition(|(_, outcome)| outcome.is_ok());
    let Some((probe, Err(refusal))) = bad.first() else {
        let words: Vec<&str> = good.iter().filter_map(|(_, outcome)| outcome.as_deref().ok()).collect();
        return Check::has(row, words.join(", "));
    };
    let release = &found.kernel.release;
    let why = match refusal {
        Refusal::NoRights => "not permitted".to_owned(),
        Refusal::NoEbpf => format!("Linux {release} was built without eBPF"),
        Refusal::Verifier(why) => format!("refused by the verifier of Linux {release}: {why}"),
        Refusal::Other(why) => format!("refused by Linux {release}: {why}"),
    };
    let mended = mend(probe, refusal, &found.kernel);
    // A user without root's rights has no other lab to be sent to.
    let remedy = match refusal {
        Refusal::NoRights => mended,
        _ => format!("{mended}; without it: {}", row.remedy),
    };
    Check { remedy, ..Check::lacks(row, format!("{}{why}", subject(probe))) }
}

fn subject(probe: &Probe) -> String {
    match probe {
        Probe::Object(name) => format!("object `{name}`: "),
        Probe::Vl2Works | Probe::VtepWorks => "at work: ".to_owned(),
        Probe::Tc | Probe::XdpNative | Probe::XdpGeneric | Probe::OwnCopies => String::new(),
    }
}

/// What makes a kernel take it.
fn mend(probe: &Probe, refusal: &Refusal, kernel: &Kernel) -> String {
    let needs_btf = matches!(probe, Probe::Object(name) if NEEDS_BTF.contains(name));
    match refusal {
        Refusal::NoRights => RIGHTS.to_owned(),
        Refusal::NoEbpf => "a kernel with CONFIG_BPF_SYSCALL and CONFIG_NET_CLS_BPF".to_owned(),
        _ if needs_btf && !kernel.btf => "a kernel with CONFIG_DEBUG_INFO_BTF, as Debian's are".to_owned(),
        _ if kernel.lockdown.as_deref() == Some("confidentiality") => "boot with lockdown=integrity".to_owned(),
        _ if *probe == Probe::OwnCopies => "a release of this kernel of after June 2026".to_owned(),
        _ if kernel.version() < KERNEL_BACKPORTS => format!(
            "a newer kernel; Debian 12: enable bookworm-backports (https://backports.debian.org explains), then \
             apt install -t bookworm-backports linux-image-{}",
            debian_architecture()
        ),
        _ => "please report it with the kernel's version".to_owned(),
    }
}

fn debian_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The first of these that fails.
pub(super) fn first_failure<'a>(rows: impl IntoIterator<Item = &'a Row>, found: &Findings) -> Option<Check> {
    rows.into_iter().map(|row| capability(row, found)).find(|check| check.verdict == Verdict::Fail)
}

#[cfg(test)]
mod tests {
    use super::super::uses::Use;
    use super::super::{Possible, possible};
    use super::*;

    /// A kernel that takes everything but these probes.
    fn kernel(release: &str, refused: &[(Probe, Refusal)]) -> Findings {
        let probes = TABLE.iter().flat_map(|row| row.probes).copied();
        let mut outcomes: BTreeMap<Probe, Outcome> = probes.map(|probe| (probe, Ok("taken".to_owned()))).collect();
        outcomes.extend(refused.iter().map(|(probe, refusal)| (*probe, Err(refusal.clone()))));
        Findings { kernel: Kernel { release: release.into(), btf: true, lockdown: None }, outcomes }
    }

    fn unbounded(name: &'static str) -> (Probe, Refusal) {
        (Probe::Object(name), Refusal::Verifier("R1 unbounded memory access".into()))
    }

    fn named<'a>(checks: &'a [Check], name: &str) -> &'a Check {
        checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("no line {name}"))
    }

    fn impossible(checks: &[Check]) -> Vec<Use> {
        let uses: Vec<Possible> = possible(checks);
        uses.iter().filter(|one| !one.possible).map(|one| one.what).collect()
    }

    #[test]
    fn a_kernel_that_takes_everything_is_all_green() {
        for release in ["6.1.0-56-amd64", "6.12.95+deb12-amd64", "6.18.44"] {
            let checks = judge(&kernel(release, &[]));
            assert!(checks.iter().all(|check| check.verdict == Verdict::Pass), "{checks:?}");
            assert_eq!(impossible(&checks), []);
        }
    }

    #[test]
    fn on_6_12_a_verifier_that_refuses_trill_leaves_vl2_alone() {
        let checks = judge(&kernel("6.12.95+deb12-amd64", &[unbounded("trill")]));
        let trill = named(&checks, "eBPF: TRILL");
        assert_eq!(trill.verdict, Verdict::Fail);
        assert_eq!(
            trill.found,
            "object `trill`: refused by the verifier of Linux 6.12.95+deb12-amd64: R1 unbounded memory access"
        );
        // Newer is no help there.
        assert!(trill.remedy.contains("report it") && trill.remedy.contains("--engine sim"), "{}", trill.remedy);
        assert_eq!(named(&checks, "eBPF: VL2").verdict, Verdict::Pass);
        let lost = impossible(&checks);
        assert!(lost.contains(&Use::TrillLab) && lost.contains(&Use::RBridge), "{lost:?}");
        for other in [Use::Vl2Lab, Use::RoutedLab, Use::BridgedLab, Use::Vtep, Use::VtepXdp, Use::Measure] {
            assert!(!lost.contains(&other), "{other:?}");
        }
    }

    #[test]
    fn on_6_1_the_backports_kernel_is_the_remedy() {
        let checks = judge(&kernel("6.1.0-56-amd64", &[unbounded("vxlan_xdp")]));
        let line = named(&checks, "eBPF: VXLAN at XDP");
        assert!(line.remedy.contains("apt install -t bookworm-backports linux-image-"), "{}", line.remedy);
        assert!(line.remedy.contains("https://backports.debian.org"), "{}", line.remedy);
        assert!(line.remedy.ends_with("weft node vtep --hook tc"), "{}", line.remedy);
        assert!(!impossible(&checks).contains(&Use::Vtep), "{checks:?}");
        assert_eq!(named(&checks, "kernel").verdict, Verdict::Pass);
        assert_eq!(named(&judge(&kernel("5.10.0-30-amd64", &[])), "kernel").verdict, Verdict::Info);
    }

    #[test]
    fn without_btf_the_object_that_needs_it_says_so() {
        let mut found = kernel("6.12.1", &[(Probe::Object("vxlan_tc"), Refusal::Other("no BTF".into()))]);
        found.kernel.btf = false;
        let checks = judge(&found);
        let btf = named(&checks, "BTF");
        assert!(btf.verdict == Verdict::Info && btf.remedy.contains("vxlan_tc"), "{btf:?}");
        assert!(named(&checks, "eBPF: VXLAN at TC").remedy.contains("CONFIG_DEBUG_INFO_BTF"));
        assert!(!impossible(&checks).contains(&Use::Vl2Lab));
    }

    #[test]
    fn a_container_without_rights_is_told_which() {
        let probes = TABLE.iter().flat_map(|row| row.probes);
        let refused: Vec<_> = probes.map(|probe| (*probe, Refusal::NoRights)).collect();
        let checks = judge(&kernel("6.12.1", &refused));
        let failed: Vec<&Check> = checks.iter().filter(|check| check.verdict == Verdict::Fail).collect();
        assert!(failed.iter().all(|check| check.remedy.contains("CAP_BPF") && check.found.contains("not permitted")));
        assert!(
            failed.iter().all(|check| !check.remedy.contains("without it")),
            "what else needs no rights? {failed:?}"
        );
        let lost = impossible(&checks);
        assert!(lost.contains(&Use::Vl2Lab) && !lost.contains(&Use::RoutedLab), "{lost:?}");
    }

    #[test]
    fn lockdown_is_named_where_it_may_be_the_reason() {
        let mut found = kernel("6.12.1", &[unbounded("vxlan_tc")]);
        found.kernel.lockdown = Some("integrity".into());
        assert_eq!(named(&judge(&found), "lockdown").verdict, Verdict::Pass);
        found.kernel.lockdown = Some("confidentiality".into());
        let checks = judge(&found);
        assert_eq!(named(&checks, "lockdown").verdict, Verdict::Info);
        assert!(named(&checks, "eBPF: VXLAN at TC").remedy.starts_with("boot with lockdown=integrity"));
    }

    #[test]
    fn a_kernel_built_without_ebpf_runs_routed_labs() {
        let probes = TABLE.iter().flat_map(|row| row.probes);
        let refused: Vec<_> = probes.map(|probe| (*probe, Refusal::NoEbpf)).collect();
        let checks = judge(&kernel("6.12.1", &refused));
        assert!(named(&checks, "TC hook").remedy.contains("CONFIG_BPF_SYSCALL"));
        assert!(!impossible(&checks).contains(&Use::RoutedLab));
    }

    #[test]
    fn what_is_needed_first_is_refused_first() {
        let found = kernel("6.12.1", &[unbounded("trill"), unbounded("bed")]);
        assert_eq!(first_failure(TABLE, &found).map(|check| check.name), Some("eBPF: TRILL".to_owned()));
        assert_eq!(first_failure(TABLE, &kernel("6.12.1", &[])), None);
    }
}
