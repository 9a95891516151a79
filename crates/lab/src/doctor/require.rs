//! Before anything is made: a lab or an experiment that this machine cannot run is refused, with what is missing and what to do.

use std::collections::BTreeSet;

use weft_scenario::engine::{DirectoryStore, Overlay, Scenario, Trial};
use weft_scenario::id::LinkId;
use weft_scenario::topology::{Fabric, Role};

use super::capability::{self, Capability};
use super::judge::{self, Findings};
use super::kernel::{self, Kernel};
use super::uses::Use;
use super::{machine, needs};
use crate::deps;
use crate::dhcp;
use crate::error::LabError;
use crate::frr;
use crate::options::LabOptions;
use crate::plan::{HOST_MTU_BYTES, VXLAN_OVERHEAD_BYTES, routes_multicast};
use crate::trill;

/// Longest propagation delay that a lab may leave out: what its own queues and scheduling add anyway.
const DELAY_LEFT_OUT_NS: u64 = 100_000;

/// Bytes between an outer and an inner packet: TRILL header, inner Ethernet header with its tag (RFC 6325 section 3).
const TRILL_ROOM_BYTES: u32 = weft_wire::trill::OVERHEAD_BYTES as u32;

/// Refuses a lab that this machine cannot run; `trial`: what will run on it, if that is known.
pub(crate) fn require(scenario: &Scenario, trial: Option<&Trial>, options: &LabOptions) -> Result<(), LabError> {
    scenario.fabric.check_forwarding(scenario.overlay)?;
    trill::check_ports(scenario)?;
    require_beyond_ebpf(scenario, options)?;
    require_ebpf(whose(scenario), &needs::of(scenario, trial))
}

/// Refuses what people ask for that is no lab, before anything is made.
pub fn require_use(wanted: Use) -> Result<(), LabError> {
    require_ebpf(wanted.name(), &capability::tried_for(wanted).collect())
}

fn whose(scenario: &Scenario) -> &'static str {
    Use::of(scenario.overlay).map_or("the plan", Use::name)
}

/// Really loads and attaches what is needed, in namespaces that are gone afterwards.
fn require_ebpf(who: &str, needed: &BTreeSet<Capability>) -> Result<(), LabError> {
    let rows: Vec<_> = needed.iter().map(|capability| capability::row(*capability)).collect();
    let outcomes = kernel::try_all(rows.iter().flat_map(|row| row.probes).copied());
    let found = Findings { kernel: Kernel::running(), outcomes };
    match judge::first_failure(rows, &found) {
        None => Ok(()),
        Some(check) => {
            Err(LabError::not_fit(format!("{who} cannot run here: {}: {}", check.name, check.found), check.remedy))
        }
    }
}

fn require_root() -> Result<(), LabError> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(LabError::not_fit("a lab needs root (namespaces, links, eBPF)", "run it with sudo"))
}

/// Programs, daemons, shapes of fabrics.
fn require_beyond_ebpf(scenario: &Scenario, options: &LabOptions) -> Result<(), LabError> {
    require_root()?;
    let overlays = scenario.overlays();
    let needs_bridge = overlays.iter().any(|one| matches!(one, Overlay::KernelVxlan { .. } | Overlay::Bridge { .. }));
    for program in ["ip", "tc"].into_iter().chain(needs_bridge.then_some("bridge")) {
        if deps::find_program(program).is_none() {
            let remedy = "install Debian's package iproute2: make deps";
            return Err(LabError::not_fit(format!("program `{program}` is missing"), remedy));
        }
    }
    if let Overlay::Layer2 { .. } = scenario.overlay {
        return require_programs(options, "others");
    }
    if scenario.fabric.outside().is_some() && scenario.overlay.takes_frames() {
        let what = format!("fabric `{}` has an outside, which is reached by routes", scenario.fabric.name());
        return Err(LabError::not_fit(what, "choose --overlay vl2, routed, vtep or kernel-vxlan"));
    }
    if scenario.overlay.forwards_frames() {
        require_room(&scenario.fabric, TRILL_ROOM_BYTES, "TRILL")?;
        let is_bridge = |overlay: &Overlay| matches!(overlay, Overlay::Bridge { .. });
        return if overlays.iter().all(is_bridge) { Ok(()) } else { require_programs(options, "others") };
    }
    if scenario.overlay.tunnels_at_tors() {
        require_room(&scenario.fabric, VXLAN_OVERHEAD_BYTES, "VXLAN")?;
    }
    if scenario.fabric.is_campus() && !scenario.overlay.takes_frames() {
        let what = format!("fabric `{}` has RBridges, which carry frames and no routes", scenario.fabric.name());
        return Err(LabError::not_fit(what, "choose --overlay rbridge, bridge, vtep-tor or kernel-vxlan-tor"));
    }
    if ["zebra", "ospfd"].into_iter().any(|daemon| frr::daemon_path(daemon).is_none()) {
        return Err(frr::missing_frr());
    }
    if routes_multicast(scenario) && frr::daemon_path("pimd").is_none() {
        let remedy =
            "install Debian's package frr: make deps; or let agents replicate: broadcast: {delivery: copies, ..}";
        return Err(LabError::not_fit(
            "FRR's pimd is missing, and the fabric's broadcast is delivered by groups",
            remedy,
        ));
    }
    dhcp::require(scenario)?;
    if scenario.fabric.outside().is_some() && frr::daemon_path("bgpd").is_none() {
        return Err(frr::missing_bgpd());
    }
    let control = scenario.transport.congestion_control.kernel_name();
    if !machine::congestion_controls().iter().any(|available| available == control) {
        return Err(LabError::not_fit(
            format!("this kernel has no TCP {control}"),
            "load it (modprobe) or choose another",
        ));
    }
    require_no_delays(&scenario.fabric)?;
    match scenario.overlay {
        Overlay::Vl2 => require_agents(scenario, options),
        _ if overlays.iter().any(|overlay| matches!(overlay, Overlay::Vtep { .. })) => {
            require_programs(options, "others")
        }
        _ => Ok(()),
    }
}

fn require_no_delays(fabric: &Fabric) -> Result<(), LabError> {
    let slow = fabric.links().iter().position(|link| link.spec.delay.0 > DELAY_LEFT_OUT_NS);
    let Some(link) = slow.map(|link| LinkId(link as u32)) else { return Ok(()) };
    let (name, delay) = (fabric.link_name(link), fabric.link(link).spec.delay);
    let what = format!("link `{name}` asks for a delay of {delay}; a lab emulates no propagation delay");
    Err(LabError::not_fit(what, "choose a delay of at most 100 us"))
}

/// What VL2's agents need: a directory and its store.
fn require_agents(scenario: &Scenario, options: &LabOptions) -> Result<(), LabError> {
    if scenario.fabric.with_role(Role::Directory).next().is_none() {
        return Err(LabError::NoDirectory(scenario.fabric.name().to_owned()));
    }
    require_programs(options, "agents")?;
    if scenario.directory != DirectoryStore::Embedded && deps::find_program("etcd").is_none() {
        return Err(LabError::not_fit("program `etcd` is missing", "install Debian's package etcd-server: make deps"));
    }
    Ok(())
}

/// What a campus needs: links with room for TRILL's headers, and RBridges. Its twin has the same room.
fn require_room(fabric: &Fabric, room_bytes: u32, protocol: &str) -> Result<(), LabError> {
    let is_switch = |node| fabric.node(node).role.is_switch();
    let (trunks, others): (Vec<_>, Vec<_>) =
        fabric.links().iter().partition(|link| is_switch(link.a.node) && is_switch(link.b.node));
    let host_mtu = others.iter().map(|link| link.spec.mtu_bytes).max().unwrap_or_default();
    let host_mtu = if fabric.is_campus() { host_mtu } else { host_mtu.min(HOST_MTU_BYTES) };
    if let Some(narrow) = trunks.iter().find(|link| link.spec.mtu_bytes < host_mtu + room_bytes) {
        let end = |port: &weft_scenario::topology::Port| format!("{}:{}", fabric.node(port.node).name, port.interface);
        let what = format!(
            "link `{} - {}` has an MTU of {} bytes, too little for packets of {host_mtu} bytes in {protocol}",
            end(&narrow.a),
            end(&narrow.b),
            narrow.spec.mtu_bytes
        );
        return Err(LabError::not_fit(what, format!("give it at least {}", host_mtu + room_bytes)));
    }
    Ok(())
}

/// What labs with daemons of weft need.
fn require_programs(options: &LabOptions, started: &str) -> Result<(), LabError> {
    if options.weft_binary.is_file() {
        return Ok(());
    }
    let what = format!("no program at {} to start {started} from", options.weft_binary.display());
    Err(LabError::not_fit(what, "build weft first: cargo build --release"))
}
