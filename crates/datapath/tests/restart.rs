//! The agent's restart: pinned maps and link work on without it, and a new agent takes them over without a gap.

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::bed::{B_MAPPING, Bed, server_config};
use common::traffic::{Icmp, transfer};
use common::*;
use weft_datapath::host::{HostConfig, HostDatapath, HostMaps};
use weft_datapath::switch::{SwitchConfig, SwitchDatapath, SwitchMaps, Tier};
use weft_datapath::{DatapathError, bpffs};

/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);

/// A bpffs of this test's own.
struct PinFs(PathBuf);

impl PinFs {
    fn mount(test: &str) -> Option<Self> {
        let path = std::env::temp_dir().join(format!("weft-dp-{}-{test}", std::process::id()));
        let newly = available(bpffs::ensure_mounted(&path))?;
        assert!(newly && bpffs::is_mounted(&path));
        assert!(!bpffs::ensure_mounted(&path).unwrap(), "mounting again changes nothing");
        Some(Self(path))
    }
}

impl Drop for PinFs {
    fn drop(&mut self) {
        let unmounted = bpffs::unmount(&self.0);
        assert!(matches!(unmounted, Ok(true)) && !self.0.exists(), "{unmounted:?}");
    }
}

fn pinned(dir: &Path) -> HostConfig {
    HostConfig { pin_dir: Some(dir.to_owned()), ..server_config(MY_TOR) }
}

fn bed(test: &str) -> Option<(PinFs, Bed)> {
    if !weft_needs::root() {
        return None;
    }
    Some((PinFs::mount(test)?, Bed::new(test)))
}

#[test]
fn flows_survive_restarts_of_the_agent() {
    let Some((fs, bed)) = bed("restart") else { return };
    let Some(programs) = bed.attach() else { return };
    let dir = fs.0.join("a");
    let attach = || bed.a.enter(|| HostDatapath::attach(&pinned(&dir))).expect("it attaches");
    programs.a.detach().expect("the bed's own makes way for a pinned one");
    let agent = attach();
    agent.set(PEER_AA, &B_MAPPING).unwrap();

    let stop = AtomicBool::new(false);
    let agent = std::thread::scope(|scope| {
        let mut agent = agent;
        let pings = scope.spawn(|| ping_until(&bed, &stop));
        let flow = scope.spawn(|| transfer(&bed.a, &bed.b, PEER_AA, 64 << 20).0);
        for _ in 0..20 {
            drop(agent);
            std::thread::sleep(Duration::from_millis(5));
            agent = attach();
        }
        assert_eq!(flow.join().expect("the flow ends"), 64 << 20);
        stop.store(true, Ordering::Relaxed);
        let (sent, answered) = pings.join().expect("the pings end");
        assert!(sent > 20 && sent == answered, "{answered} of {sent} pings answered");
        agent
    });
    assert_eq!(agent.get(PEER_AA).unwrap(), Some(B_MAPPING), "the mapping outlived 20 agents");
    let outside = counted(HostMaps::open_pinned(&dir).unwrap().counters().unwrap());
    assert_eq!(outside, counted(agent.counters().unwrap()), "and so did the counters");
    for reason in ["packet_miss", "no_mapping", "malformed", "push_failed"] {
        assert!(outside.iter().all(|(name, _)| *name != reason), "{outside:?}");
    }
}

fn ping_until(bed: &Bed, stop: &AtomicBool) -> (u16, u16) {
    let icmp = Icmp::open(&bed.a, WAIT);
    let (mut sent, mut answered) = (0, 0);
    while !stop.load(Ordering::Relaxed) || sent <= 20 {
        sent += 1;
        answered += u16::from(icmp.ping(PEER_AA, 64, sent, 56).is_some());
        std::thread::sleep(Duration::from_millis(2));
    }
    (sent, answered)
}

#[test]
fn the_data_path_works_without_an_agent_until_it_is_detached() {
    let Some((fs, bed)) = bed("alone") else { return };
    let Some(programs) = bed.attach() else { return };
    programs.a.detach().unwrap();
    let dir = fs.0.join("a");
    let agent = bed.a.enter(|| HostDatapath::attach(&pinned(&dir))).unwrap();
    agent.set(PEER_AA, &B_MAPPING).unwrap();
    drop(agent);
    assert!(Icmp::open(&bed.a, WAIT).ping(PEER_AA, 64, 1, 56).is_some(), "the pinned link works on");

    let agent = bed.a.enter(|| HostDatapath::attach(&pinned(&dir))).unwrap();
    agent.detach().unwrap();
    assert!(!dir.exists(), "nothing is left behind");
    let icmp = Icmp::open(&bed.a, Duration::from_millis(500));
    assert!(icmp.ping(PEER_AA, 64, 2, 56).is_none(), "without the program there is no way to an AA");
    let error = HostMaps::open_pinned(&dir).expect_err("nothing is pinned");
    assert!(matches!(&error, DatapathError::NotPinned { path } if *path == dir), "{error}");
}

#[test]
fn pins_of_another_size_or_another_interface_are_replaced() {
    let Some((fs, bed)) = bed("stale") else { return };
    let dir = fs.0.join("a");
    let attach = |config: &HostConfig| bed.a.enter(|| available(HostDatapath::attach(config)));
    let Some(first) = attach(&pinned(&dir)) else { return };
    first.set(PEER_AA, &B_MAPPING).unwrap();
    drop(first);

    let larger = HostConfig { map_entries: 2048, ..pinned(&dir) };
    let second = attach(&larger).unwrap();
    assert_eq!(second.entries().unwrap(), [], "a map of another size starts empty");
    second.set(PEER_AA, &B_MAPPING).unwrap();
    drop(second);

    bed.a.ip("link del eth0");
    common::netns::link((&bed.a, "eth0"), (&bed.a, "eth0x"), 1500);
    let third = attach(&larger).unwrap();
    assert_eq!(third.get(PEER_AA).unwrap(), Some(B_MAPPING), "the map is the same, the interface a new one");
    third.detach().unwrap();
}

#[test]
fn a_switch_is_taken_over_too() {
    let Some((fs, bed)) = bed("switch") else { return };
    let dir = fs.0.join("i");
    let config = SwitchConfig {
        ports: vec!["left".to_owned(), "right".to_owned()],
        host_ports: Vec::new(),
        own_las: vec![ANYCAST],
        tier: Tier::Intermediate,
        pin_dir: Some(dir.clone()),
    };
    let attach = || bed.intermediate.enter(|| available(SwitchDatapath::attach(&config)));
    let Some(first) = attach() else { return };
    drop(first);
    assert!(SwitchMaps::open_pinned(&dir).unwrap().counters().is_ok());
    let second = attach().unwrap();
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 6, "four maps, two links");
    second.detach().unwrap();
    assert!(!dir.exists());
}

#[test]
fn a_directory_that_cannot_hold_pins_is_refused() {
    if !weft_needs::root() {
        return;
    }
    let dir = std::env::temp_dir().join(format!("weft-dp-{}-plain", std::process::id()));
    let config = HostConfig { pin_dir: Some(dir.clone()), ..host_config() };
    let error = HostDatapath::load(&config).expect_err("not a bpffs").to_string();
    assert!(error.contains("bpffs") && error.contains("weft-dp-"), "{error}");
    assert!(!dir.exists(), "nothing is left behind");
}
