//! The checks themselves: rights, programs, what namespaces take, limits. What the kernel takes of our eBPF is in `kernel`.

use std::fs;
use std::path::Path;

use weft_scenario::judge::Verdict;
use weft_scenario::machine::{MEMINFO, available_memory};

use super::capability::{Capability, TABLE, row};
use super::judge::{self, Findings};
use super::kernel::{self, Kernel};
use super::{Check, cards};
use crate::deps::{self, Need};
use crate::home::{BPF_DIR, NETNS_DIR, PREFIX, RUN_DIR, STORES_DIR, lab_names};
use crate::{batch, down, frr, netns, overlay, process, state, sysctls};

/// Capabilities that a lab uses, with their numbers in `/proc/self/status`.
const CAPABILITIES: [(&str, u32); 4] = [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13), (SYS_ADMIN, 21), ("CAP_BPF", 39)];
/// Holds what CAP_BPF allows, too.
const SYS_ADMIN: &str = "CAP_SYS_ADMIN";
/// Since when drivers tell what they do with XDP.
const KERNEL_XDP_FEATURES: (u32, u32) = (6, 3);
const RUN_FREE_LEAST_BYTES: u64 = 64 << 20;
/// Three etcd nodes set aside 64 MB each for their logs, and write on.
const STORES_FREE_LEAST_BYTES: u64 = 1 << 30;
const MEMORY_LEAST_BYTES: u64 = 2 << 30;

pub(super) fn checks() -> Vec<Check> {
    let rights = rights();
    let may = rights.verdict == Verdict::Pass;
    let mut checks = vec![rights];
    checks.extend(ebpf(may));
    checks.extend(packages());
    checks.push(versions());
    if may {
        checks.extend(namespace_checks());
        checks.push(bpf_file_system());
    }
    checks.extend([controls(), neighbours(), run_space(), store_space(), memory(), load()]);
    checks.push(leftovers());
    checks
}

/// The kernel, everything that is loaded and attached, and the network cards.
fn ebpf(may: bool) -> Vec<Check> {
    let kernel = Kernel::running();
    if !may {
        return vec![Check::warn("kernel", kernel.release, "what it takes was not tried: that needs root")];
    }
    let cards = cards::of_this_machine(kernel.version() >= KERNEL_XDP_FEATURES);
    let outcomes = kernel::try_all(TABLE.iter().flat_map(|row| row.probes).copied());
    let mut checks = judge::judge(&Findings { kernel, outcomes });
    checks.extend(cards.iter().map(cards::judge));
    checks
}

fn rights() -> Check {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let missing = missing_rights(&status);
    let root = rustix::process::geteuid().is_root();
    if !root {
        // What a lab needs beside that is said to those who can have it.
        let remedy = "run with sudo, or use --engine sim".to_owned();
        return Check { remedy, ..Check::of(Capability::Rights, false, "not root") };
    }
    let found = match missing.is_empty() {
        true => "root, with all capabilities that a lab uses".to_owned(),
        false => format!("missing: {}", missing.join(", ")),
    };
    Check::of(Capability::Rights, missing.is_empty(), found)
}

/// Capabilities that a process with this `/proc/PID/status` lacks.
fn missing_rights(status: &str) -> Vec<&'static str> {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    let lacks = |(_, number): &&(&str, u32)| bits >> *number & 1 == 0;
    let missing: Vec<&str> = CAPABILITIES.iter().filter(lacks).map(|(name, _)| *name).collect();
    if missing == ["CAP_BPF"] { Vec::new() } else { missing }
}

fn packages() -> Vec<Check> {
    let missing = deps::missing_packages(Need::Run);
    let lacks = |package: &str| missing.iter().any(|name| name == package);
    let of = |capability, package, programs| match lacks(package) {
        true => Check::of(capability, false, "missing"),
        false => Check::of(capability, true, programs),
    };
    let mut checks = vec![
        of(Capability::Iproute, "iproute2", "ip, tc, bridge"),
        of(Capability::Routing, "frr", "zebra, ospfd, pimd, bgpd"),
    ];
    let further = missing.into_iter().filter(|name| name != "iproute2" && name != "frr").collect();
    let sentence = "dnsmasq, dhcrelay, etcd: for fabrics with DHCP, and --directory etcd3";
    checks.push(installed("further programs for labs", sentence, further));
    checks.push(installed("packages to build weft", "clang and libraries", deps::missing_packages(Need::Build)));
    checks.push(installed("programs for tests", "tshark, udhcpc, avahi-daemon", deps::missing_packages(Need::Test)));
    checks
}

/// Packages without which labs run.
fn installed(name: &str, what: &str, missing: Vec<String>) -> Check {
    if missing.is_empty() {
        return Check::ok(name, what);
    }
    let remedy = format!("apt-get install {}, or: make deps; {what}", missing.join(" "));
    Check::warn(name, format!("missing: {}", missing.join(", ")), remedy)
}

fn versions() -> Check {
    let first_line = |program: &Path, argument: &str| {
        let output = process::command(program).arg(argument).output().ok()?;
        let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        Some(String::from_utf8_lossy(&text).lines().next()?.trim().to_owned())
    };
    let ip = first_line(Path::new("ip"), "-V").unwrap_or_else(|| "no ip".into());
    let ospfd = frr::daemon_path("ospfd").and_then(|path| first_line(&path, "--version"));
    let found = format!("{ip}; {}", ospfd.unwrap_or_else(|| "no ospfd".into()));
    Check::ok("versions", found)
}

/// Makes a namespace with the devices that a lab uses, and removes it.
fn namespace_checks() -> Vec<Check> {
    let name = format!("{PREFIX}doctor-{}", std::process::id());
    if let Err(error) = netns::create(std::slice::from_ref(&name), |_| Ok(())) {
        return vec![Check::of(Capability::Namespaces, false, error.to_string())];
    }
    let path = crate::home::namespace_path(&name);
    let try_lines = |capability, program, lines: &[&str]| {
        let result = netns::in_namespace(&path, || batch::run(program, "doctor", lines)).and_then(|result| result);
        match result {
            Ok(()) => Check::of(capability, true, lines.last().copied().unwrap_or_default()),
            Err(error) => Check::of(capability, false, error.to_string()),
        }
    };
    use batch::Program::{Bridge, Ip, Tc};
    let checks = vec![
        Check::of(Capability::Namespaces, true, format!("made in {NETNS_DIR}")),
        try_lines(
            Capability::Veth,
            Ip,
            &["link set dev lo up", "link add dev v0 mtu 1600 type veth peer name v1 mtu 1600", "link set dev v0 up"],
        ),
        try_lines(
            Capability::Shaping,
            Tc,
            &[
                "qdisc add dev v0 root handle 1: stab overhead 24 linklayer ethernet htb default 1",
                "class add dev v0 parent 1: classid 1:1 htb rate 20mbit burst 3200",
                "qdisc add dev v0 parent 1:1 handle 10: bfifo limit 100000",
                "filter add dev v0 parent 1: protocol ip prio 1 u32 match ip protocol 89 0xff flowid 1:1",
            ],
        ),
        try_lines(
            Capability::KernelVxlan,
            Ip,
            &["link add dev x0 type vxlan id 42 dstport 4789 local 127.0.0.1 dev lo nolearning"],
        ),
        try_lines(Capability::BridgeFdb, Bridge, &["fdb add 02:00:00:00:00:01 dev x0 dst 127.0.0.2 self permanent"]),
    ];
    let _ = netns::delete(&[name]);
    if let Ok(_lock) = crate::home::lock() {
        netns::release_directory();
    }
    checks
}

/// Mounts weft's bpffs, unless it is mounted, and unmounts it again if nobody uses it.
fn bpf_file_system() -> Check {
    let result = crate::home::lock().and_then(|_lock| {
        let mounted = overlay::mount_bpffs_locked();
        down::release_bpf_file_system();
        mounted
    });
    down::release_run_dir();
    match result {
        Ok(true) => Check::of(Capability::Bpffs, true, format!("can be mounted at {BPF_DIR}")),
        Ok(false) => Check::of(Capability::Bpffs, true, format!("mounted at {BPF_DIR}")),
        Err(error) => Check::of(Capability::Bpffs, false, error.to_string()),
    }
}

/// TCP congestion controls of this kernel.
pub(super) fn congestion_controls() -> Vec<String> {
    let names = sysctls::read("net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

fn controls() -> Check {
    let available = congestion_controls();
    let missing: Vec<&str> =
        ["cubic", "reno"].into_iter().filter(|needed| !available.iter().any(|have| have == needed)).collect();
    let found = if missing.is_empty() { available.join(" ") } else { format!("missing: {}", missing.join(" ")) };
    Check::of(Capability::CongestionControl, missing.is_empty(), found)
}

fn neighbours() -> Check {
    let limit = sysctls::read("net/ipv4/neigh/default/gc_thresh3").unwrap_or_else(|| "?".into());
    let changed = sysctls::journalled();
    let found = if changed.is_empty() {
        format!("room for {limit} entries")
    } else {
        format!("room for {limit} entries, raised by a lab that is up")
    };
    Check::ok("neighbour table", format!("{found}; a lab raises it and gives it back"))
}

fn run_space() -> Check {
    let Some(free) = free_bytes(RUN_DIR) else { return Check::warn(row(Capability::RunSpace).name, "unknown", "") };
    Check::of(Capability::RunSpace, free >= RUN_FREE_LEAST_BYTES, format!("{} MiB free", free >> 20))
}

/// Where labs keep stores that must be on a disk.
fn store_space() -> Check {
    let name = format!("space for {STORES_DIR}");
    let Some(free) = free_bytes(STORES_DIR) else { return Check::warn(&name, "unknown", "") };
    let found = format!("{} MiB free", free >> 20);
    if free >= STORES_FREE_LEAST_BYTES {
        return Check::ok(&name, found);
    }
    Check::warn(&name, found, "labs and benchmarks with --directory etcd3 want 1 GiB there; others write nothing")
}

/// Free bytes where a folder is or will be.
fn free_bytes(folder: &str) -> Option<u64> {
    let there = Path::new(folder).ancestors().find(|folder| folder.exists())?;
    let stat = rustix::fs::statvfs(there).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

fn memory() -> Check {
    let info = fs::read_to_string(MEMINFO).unwrap_or_default();
    let bytes = available_memory(&info).map_or(0, |available| available.0);
    let found = format!("{} MiB available", bytes >> 20);
    if bytes >= MEMORY_LEAST_BYTES {
        return Check::ok("memory", found);
    }
    Check::warn("memory", found, "the 85-node test bed needs about 2 GiB; smaller fabrics less")
}

fn load() -> Check {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let found = format!("{load:.2} on {cores} cores");
    if load <= cores as f64 / 2.0 {
        return Check::ok("load", found);
    }
    Check::warn("load", found, "measurements want an idle machine; results may come out as inconclusive")
}

fn leftovers() -> Check {
    let name = "leftovers";
    if !rustix::process::geteuid().is_root() {
        // Which labs there are is root's to know, and so is whether what is there belongs to one.
        return Check::warn(name, "cannot tell without root", "sudo weft doctor");
    }
    let strays = match down::count_strays() {
        Ok(strays) => strays,
        Err(error) => return Check::warn(name, "cannot tell", error.to_string()),
    };
    let labs = lab_names();
    let orphans =
        labs.iter().filter_map(|lab| state::LabState::load(lab).ok()).filter(state::LabState::is_orphan).count();
    if strays + orphans == 0 {
        let up = if labs.is_empty() { "no lab is up".to_owned() } else { format!("up: {}", labs.join(", ")) };
        return Check::ok(name, up);
    }
    let remedy = "weft lab down --all lists them and asks; what runs is spared";
    Check::warn(name, format!("{orphans} labs of killed runs, {strays} stray things"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_of_a_container_are_told_from_those_of_root() {
        let status = |bits: u64| format!("Name:\tweft\nCapEff:\t{bits:016x}\nCapBnd:\t0\n");
        assert_eq!(missing_rights(&status(0x1ff_ffff_ffff)), Vec::<&str>::new());
        // Root before Linux 5.8, or in a container with CAP_SYS_ADMIN but without CAP_BPF.
        assert_eq!(missing_rights(&status(1 << 12 | 1 << 13 | 1 << 21)), Vec::<&str>::new());
        // Docker's usual set.
        assert_eq!(missing_rights(&status(0xa804_25fb)), ["CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_BPF"]);
        assert_eq!(missing_rights("junk").len(), 4);
    }

    #[test]
    fn room_is_looked_for_where_a_folder_will_be() {
        assert_eq!(free_bytes("/proc/none/of/that"), free_bytes("/proc"));
        assert!(free_bytes("/").is_some_and(|bytes| bytes > 0));
    }
}
