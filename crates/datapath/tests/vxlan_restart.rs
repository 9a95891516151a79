//! The VTEP's daemon ends and starts again: tables and programs work on without it, and no frame is lost.

#![allow(clippy::print_stderr)]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::netns::Namespace;
use common::pinfs::PinFs;
use common::traffic::{Icmp, transfer};
use common::vxlan::{LOCAL, Node, PEER, hold, settings, vni};
use common::*;
use weft_datapath::vxlan::{
    self, AccessRule, Attachment, Capacities, Hook, Origin, PortRole, Senders, To, VniSettings, Vtep, VtepOptions,
    VtepView, interface_index,
};

const FAR: [u8; 4] = [20, 0, 0, 2];
/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);

/// A station behind our VTEP, a kernel VTEP as the other station, nothing of ours attached yet.
fn bed(test: &str) -> Option<(PinFs, Node, Namespace)> {
    if !weft_needs::root() {
        return None;
    }
    let fs = PinFs::mount(test)?;
    let bed = Node::new(test);
    let station = bed.station(test, "vm", "20.0.0.1/24");
    bed.kernel_peer(42, "20.0.0.2/24", "");
    Some((fs, bed, station))
}

fn options(dir: &Path, hook: Hook) -> VtepOptions {
    VtepOptions { pin_dir: Some(dir.to_owned()), hook, ..VtepOptions::new(LOCAL) }
}

fn first_start(bed: &Node, options: &VtepOptions) -> Option<Vtep> {
    let mut vtep = bed.vtep(options)?;
    vtep.add_vni(vni(42), &settings()).unwrap();
    bed.attach(&mut vtep, "vm", 42, AccessRule::default());
    Some(vtep)
}

fn start_again(bed: &Node, options: &VtepOptions) -> Vtep {
    bed.node.enter_with(|| Vtep::load(options)).expect("it takes over")
}

#[test]
fn nothing_is_lost_over_twenty_restarts() {
    for (test, attachment) in [("vrest", Attachment::Link), ("vrestf", Attachment::Filter)] {
        restart_under_traffic(test, attachment);
    }
}

fn restart_under_traffic(test: &str, attachment: Attachment) {
    let Some((fs, bed, station)) = bed(test) else { return };
    let options = VtepOptions { attachment, ..options(&fs.0.join("v"), Hook::Tc) };
    let Some(vtep) = first_start(&bed, &options) else { return };
    let stop = AtomicBool::new(false);
    let vtep = std::thread::scope(|scope| {
        let mut vtep = vtep;
        let pings = scope.spawn(|| ping_until(&station, &stop));
        let flow = scope.spawn(|| transfer(&station, &bed.far, FAR.into(), 64 << 20).0);
        for _ in 0..20 {
            drop(vtep);
            std::thread::sleep(Duration::from_millis(5));
            vtep = start_again(&bed, &options);
        }
        assert_eq!(flow.join().expect("the flow ends"), 64 << 20);
        stop.store(true, Ordering::Relaxed);
        let (sent, answered) = pings.join().expect("the pings end");
        assert!(sent > 20 && sent == answered, "{answered} of {sent} pings answered");
        vtep
    });
    let entries = vtep.entries(None).unwrap();
    assert!(entries.iter().any(|entry| entry.to == To::Remote(PEER) && entry.origin == Origin::Learned), "{entries:?}");
    let view = VtepView::open_pinned(options.pin_dir.as_ref().unwrap()).unwrap();
    assert_eq!(view.segments().unwrap(), vtep.segments().unwrap());
    assert_eq!(view.counters().unwrap(), vtep.counters().unwrap(), "the counters outlived the daemons");
    bed.node.enter_with(|| vtep.stop()).unwrap();
    assert!(!fs.0.join("v").exists(), "nothing is left behind");
    let icmp = Icmp::open(&station, Duration::from_millis(300));
    assert!(icmp.ping(FAR.into(), 64, 1, 56).is_none(), "the programs are gone");
}

fn ping_until(station: &Namespace, stop: &AtomicBool) -> (u16, u16) {
    let icmp = Icmp::open(station, WAIT);
    let (mut sent, mut answered) = (0, 0);
    while !stop.load(Ordering::Relaxed) || sent <= 20 {
        sent += 1;
        answered += u16::from(icmp.ping(FAR.into(), 64, sent, 56).is_some());
        std::thread::sleep(Duration::from_millis(2));
    }
    (sent, answered)
}

#[test]
fn a_new_daemon_finds_what_the_old_one_left() {
    let Some((fs, bed, station)) = bed("vfind") else { return };
    let dir = fs.0.join("v");
    let Some(mut first) = first_start(&bed, &options(&dir, Hook::Tc)) else { return };
    first.add_vni(vni(7), &vxlan::VniSettings::default()).unwrap();
    first.directory_entry(vni(7), OTHER_MAC, To::Remote([10, 0, 0, 3].into())).unwrap();
    first.set_arp(vni(7), FAR.into(), OTHER_MAC).unwrap();
    let before = (first.segments().unwrap(), first.entries(None).unwrap(), first.arps(None).unwrap());
    let ports = first.ports().unwrap();
    assert_eq!(ports.len(), 2);
    drop(first);

    let icmp = Icmp::open(&station, WAIT);
    assert!(icmp.ping(FAR.into(), 64, 1, 56).is_some(), "it works without a daemon");
    let mut second = start_again(&bed, &options(&dir, Hook::Tc));
    assert_eq!(second.ports().unwrap(), ports);
    assert_eq!(
        second.peers().unwrap().iter().map(|peer| peer.address).collect::<Vec<_>>(),
        [PEER, [10, 0, 0, 3].into()]
    );
    assert_eq!((second.segments().unwrap()[0].clone(), second.arps(None).unwrap()), (before.0[0].clone(), before.2));
    assert!(before.1.iter().all(|entry| second.entries(None).unwrap().iter().any(|now| now.mac == entry.mac)));

    // Ports can be taken off, and numbers that were given out are not given out again.
    let vm = bed.node.enter_with(|| interface_index("vm")).unwrap();
    assert!(second.detach(vm).unwrap() && !second.detach(vm).unwrap());
    let hasty = Icmp::open(&station, Duration::from_secs(2));
    assert!(hasty.ping(FAR.into(), 64, 2, 56).is_none(), "the port is none any more");
    bed.attach(&mut second, "vm", 42, AccessRule::default());
    assert!(icmp.ping(FAR.into(), 64, 3, 56).is_some());
    drop(second);

    // An interface that is gone is forgotten, with what was behind it.
    bed.node.ip("link del vm");
    let third = start_again(&bed, &options(&dir, Hook::Tc));
    let roles: Vec<PortRole> = third.ports().unwrap().iter().map(|port| port.role).collect();
    assert_eq!(roles, [PortRole::Uplink]);
    assert!(third.entries(Some(vni(42))).unwrap().iter().all(|entry| entry.to == To::Remote(PEER)));
    drop(third);

    // Tables of another size begin empty, all of them.
    let capacities = Capacities { macs: 512, ..Capacities::default() };
    let fourth = start_again(&bed, &VtepOptions { capacities, ..options(&dir, Hook::Tc) });
    assert_eq!((fourth.segments().unwrap().len(), fourth.ports().unwrap().len()), (0, 0));
    fourth.stop().unwrap();
    assert!(!dir.exists());
}

#[test]
fn the_hook_may_change_at_a_restart() {
    let Some((fs, bed, station)) = bed("vhook") else { return };
    let dir = fs.0.join("v");
    let Some(first) = first_start(&bed, &options(&dir, Hook::Xdp)) else { return };
    let _polling = (hold(&station, "eth0"), hold(&bed.far, "up"));
    let icmp = Icmp::open(&station, WAIT);
    assert!(icmp.ping(FAR.into(), 64, 1, 56).is_some());
    drop(first);
    for (sequence, hook) in (2..).zip([Hook::Xdp, Hook::Tc, Hook::Xdp, Hook::Tc]) {
        let vtep = start_again(&bed, &options(&dir, hook));
        assert!(icmp.ping(FAR.into(), 64, sequence, 56).is_some(), "{hook:?}");
        drop(vtep);
        let mut pins = std::fs::read_dir(&dir).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
        assert_eq!(pins.any(|pin| pin.ends_with("_xdp")), hook == Hook::Xdp);
    }
    start_again(&bed, &options(&dir, Hook::Tc)).stop().unwrap();
    assert!(!dir.exists());
}

#[test]
fn who_is_named_is_still_heard_and_may_be_named_no_longer() {
    let Some((fs, bed, station)) = bed("vnamed") else { return };
    let options = options(&fs.0.join("v"), Hook::Tc);
    let Some(mut vtep) = first_start(&bed, &options) else { return };
    vtep.add_vni(vni(42), &VniSettings { senders: Senders::Named, ..settings() }).unwrap();
    vtep.set_members(vni(42), &[PEER].into()).unwrap();
    assert!(Icmp::open(&station, WAIT).ping(FAR.into(), 64, 1, 56).is_some());
    drop(vtep);
    let mut vtep = start_again(&bed, &options);
    assert!(Icmp::open(&station, WAIT).ping(FAR.into(), 64, 2, 56).is_some());
    vtep.set_members(vni(42), &[].into()).unwrap();
    assert!(Icmp::open(&station, Duration::from_millis(300)).ping(FAR.into(), 64, 3, 56).is_none());
    bed.node.enter_with(|| vtep.stop()).unwrap();
}
