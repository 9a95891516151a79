//! The checks themselves: rights, kernel, programs, limits.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use weft_datapath::bpffs;
use weft_datapath::host::{HostConfig, HostDatapath};
use weft_datapath::spread::Spread;
use weft_datapath::switch::{SwitchConfig, SwitchDatapath, Tier};
use weft_scenario::addressing::VIRTUAL_MAC;

use super::Check;
use crate::deps::{self, Need};
use crate::error::LabError;
use crate::home::{BPF_DIR, FRR_DIR, NETNS_DIR, PREFIX, RUN_DIR, lab_names, names_in};
use crate::{batch, down, frr, netns, overlay, state, sysctls};

/// Capabilities that a lab uses, with their numbers in `/proc/self/status`.
const CAPABILITIES: [(&str, u32); 4] =
    [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13), ("CAP_SYS_ADMIN", 21), ("CAP_BPF", 39)];
const KERNEL_LEAST: (u32, u32) = (6, 6);
const RUN_FREE_LEAST_BYTES: u64 = 64 << 20;
const MEMORY_LEAST_BYTES: u64 = 2 << 30;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![rights(), kernel(), btf()];
    checks.extend(packages());
    checks.push(versions());
    checks.extend(namespace_checks());
    checks.extend([ebpf(), bpf_file_system(), controls(), neighbours(), disk(), memory(), load(), leftovers()]);
    checks
}

fn rights() -> Check {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    let missing: Vec<&str> =
        CAPABILITIES.iter().filter(|(_, number)| bits >> number & 1 == 0).map(|(name, _)| *name).collect();
    if missing.is_empty() && rustix::process::geteuid().is_root() {
        return Check::ok("rights", "root, with all capabilities that a lab uses");
    }
    let found = if missing.is_empty() { "not root".to_owned() } else { format!("missing: {}", missing.join(", ")) };
    Check::fail("rights", found, "run with sudo; inside a container add these capabilities; or use --engine sim")
}

fn kernel() -> Check {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= KERNEL_LEAST {
        return Check::ok("kernel", release);
    }
    let (major, minor) = KERNEL_LEAST;
    Check::fail("kernel", release, format!("weft attaches eBPF by tcx, which needs Linux {major}.{minor} or later"))
}

fn btf() -> Check {
    let path = "/sys/kernel/btf/vmlinux";
    if Path::new(path).exists() {
        return Check::ok("BTF", path);
    }
    Check::warn(
        "BTF",
        format!("no {path}"),
        "labs run without; a kernel with CONFIG_DEBUG_INFO_BTF shows better errors",
    )
}

fn packages() -> Vec<Check> {
    let check = |need: Need, name: &str, found: &str| {
        let missing = deps::missing_packages(need);
        if missing.is_empty() {
            return Check::ok(name, found);
        }
        let remedy = format!("apt-get install {}, or: make deps", missing.join(" "));
        let found = format!("missing: {}", missing.join(", "));
        if need == Need::Run { Check::fail(name, found, remedy) } else { Check::warn(name, found, remedy) }
    };
    vec![
        check(Need::Run, "programs for labs", "ip, tc, bridge, zebra, ospfd, pimd, dnsmasq, dhcrelay"),
        check(Need::Build, "packages to build weft", "clang and libraries"),
        check(Need::Test, "programs for tests", "tshark, udhcpc, avahi-daemon"),
    ]
}

fn versions() -> Check {
    let first_line = |program: &Path, argument: &str| {
        let output = Command::new(program).arg(argument).output().ok()?;
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
        return vec![Check::fail("namespaces", error.to_string(), "a lab needs the right to make network namespaces")];
    }
    let path = crate::home::namespace_path(&name);
    let try_lines = |check: &str, program, lines: &[&str], remedy: &str| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let result = netns::in_namespace(&path, || batch::run(program, "doctor", &lines)).and_then(|result| result);
        match result {
            Ok(()) => Check::ok(check, lines.last().cloned().unwrap_or_default()),
            Err(error) => Check::fail(check, error.to_string(), remedy),
        }
    };
    use batch::Program::{Bridge, Ip, Tc};
    let checks = vec![
        Check::ok("namespaces", format!("made in {NETNS_DIR}")),
        try_lines(
            "veth of MTU 1600",
            Ip,
            &["link set dev lo up", "link add dev v0 mtu 1600 type veth peer name v1 mtu 1600", "link set dev v0 up"],
            "a kernel with CONFIG_VETH",
        ),
        try_lines(
            "htb, bfifo, u32",
            Tc,
            &[
                "qdisc add dev v0 root handle 1: stab overhead 24 linklayer ethernet htb default 1",
                "class add dev v0 parent 1: classid 1:1 htb rate 20mbit burst 3200",
                "qdisc add dev v0 parent 1:1 handle 10: bfifo limit 100000",
                "filter add dev v0 parent 1: protocol ip prio 1 u32 match ip protocol 89 0xff flowid 1:1",
            ],
            "a kernel with CONFIG_NET_SCH_HTB, NET_SCH_FIFO, NET_CLS_U32; only shaped labs need it",
        ),
        try_lines(
            "vxlan",
            Ip,
            &["link add dev x0 type vxlan id 42 dstport 4789 local 127.0.0.1 dev lo nolearning"],
            "a kernel with CONFIG_VXLAN; only comparisons with kernel VXLAN need it",
        ),
        try_lines(
            "bridge fdb",
            Bridge,
            &["fdb add 02:00:00:00:00:01 dev x0 dst 127.0.0.2 self permanent"],
            "see vxlan",
        ),
    ];
    let _ = netns::delete(&[name]);
    if let Ok(_lock) = crate::home::lock() {
        netns::release_directory();
    }
    checks
}

fn ebpf() -> Check {
    match require_ebpf() {
        Ok(()) => Check::ok("eBPF", "a program was loaded and attached by tcx"),
        Err(LabError::NotFit { what, remedy }) => Check::fail("eBPF", what, remedy),
        Err(error) => Check::fail("eBPF", error.to_string(), "see the reason"),
    }
}

/// Mounts weft's bpffs, unless it is mounted, and unmounts it again if nobody uses it.
fn bpf_file_system() -> Check {
    let result = crate::home::lock().and_then(|_lock| {
        let mounted = bpffs::ensure_mounted(BPF_DIR).map_err(|error| overlay::datapath_error("doctor", &error));
        down::release_bpf_file_system();
        mounted
    });
    down::release_run_dir();
    match result {
        Ok(true) => Check::ok("bpffs", format!("can be mounted at {BPF_DIR}")),
        Ok(false) => Check::ok("bpffs", format!("mounted at {BPF_DIR}")),
        Err(error) => Check::fail("bpffs", error.to_string(), "VL2 labs pin their programs there; see the reason"),
    }
}

/// Really loads and attaches both programs of VL2: to the loopback interface of a namespace that is gone afterwards.
pub(super) fn require_ebpf() -> Result<(), LabError> {
    let switch = SwitchConfig {
        ports: vec!["lo".into()],
        host_ports: Vec::new(),
        own_las: Vec::new(),
        tier: Tier::Intermediate,
        pin_dir: None,
    };
    let host = HostConfig {
        interface: "lo".into(),
        miss_interface: "lo".into(),
        aa_block: (Ipv4Addr::new(20, 0, 0, 0), 8),
        gateway_mac: VIRTUAL_MAC,
        underlay_mtu: 1600,
        own_tor_la: Ipv4Addr::new(10, 1, 0, 1),
        rack_direct: false,
        rate_limit: None,
        map_entries: 16,
        spread: Spread::Never,
        broadcast: None,
        own: None,
        pin_dir: None,
    };
    netns::in_fresh_namespace(|| {
        SwitchDatapath::attach(&switch)?;
        HostDatapath::attach(&host).map(drop)
    })?
    .map_err(|error| overlay::datapath_error("doctor", &error))
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
    if missing.is_empty() {
        return Check::ok("congestion control", available.join(" "));
    }
    Check::fail("congestion control", format!("missing: {}", missing.join(" ")), "a kernel with CONFIG_TCP_CONG_CUBIC")
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

fn disk() -> Check {
    let parent = if Path::new(RUN_DIR).exists() { RUN_DIR } else { "/run" };
    let Ok(stat) = rustix::fs::statvfs(parent) else { return Check::warn("space on /run", "unknown", "") };
    let free = stat.f_bavail * stat.f_frsize;
    let found = format!("{} MiB free", free >> 20);
    if free >= RUN_FREE_LEAST_BYTES {
        return Check::ok("space on /run", found);
    }
    Check::fail("space on /run", found, "free some: logs and state of a lab need up to 64 MiB")
}

fn memory() -> Check {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let bytes = line.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024;
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
    let labs = lab_names();
    let known: Vec<String> = labs
        .iter()
        .filter_map(|lab| state::LabState::load(lab).ok())
        .flat_map(|state| state.nodes.into_iter().map(|node| node.namespace))
        .collect();
    let is_stray = |name: &String| name.starts_with(PREFIX) && !known.contains(name);
    let strays =
        names_in(Path::new(NETNS_DIR)).into_iter().chain(names_in(Path::new(FRR_DIR))).filter(is_stray).count();
    let orphans =
        labs.iter().filter_map(|lab| state::LabState::load(lab).ok()).filter(state::LabState::is_orphan).count();
    if strays + orphans == 0 {
        let up = if labs.is_empty() { "no lab is up".to_owned() } else { format!("up: {}", labs.join(", ")) };
        return Check::ok("leftovers", up);
    }
    Check::warn("leftovers", format!("{orphans} labs of killed runs, {strays} stray things"), "weft lab down --all")
}
