//! Data paths that the last release has pinned are taken over by this one without a lost frame: as they are, and where a table has
//! another layout.

mod common;

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::bed::{B_MAPPING, Bed, server_config};
use common::netns::Namespace;
use common::pinfs::PinFs;
use common::traffic::Icmp;
use common::vxlan::{LOCAL, Node, PEER, settings, vni};
use common::*;
use libbpf_rs::{MapCore, MapHandle, MapType};
use weft_datapath::host::{HostConfig, HostDatapath};
use weft_datapath::object::with_stand_ins;
use weft_datapath::vxlan::{AccessRule, Attachment, Origin, To, Vtep, VtepOptions};

const FAR: [u8; 4] = [20, 0, 0, 2];
/// For what must come: whoever waits goes on as soon as it has.
const WAIT: Duration = Duration::from_secs(30);

/// The last release's objects.
fn last_release() -> Vec<(&'static str, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/v0.1");
    let read = |name: &'static str| {
        let packed = std::fs::read(folder.join(format!("{name}.bpf.o.gz"))).expect("it is in the repository");
        let mut image = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut image).expect("it is whole");
        (name, image)
    };
    ["vl2_host", "vxlan_tc", "vxlan_xdp"].map(read).into()
}

/// Puts a map that is larger by a word in each value in the place of a pinned one. What is at work keeps its own.
fn change_layout(pin: &Path) {
    let old = MapHandle::from_pinned_path(pin).expect("it is pinned");
    let mut options: libbpf_sys::bpf_map_create_opts = Default::default();
    options.sz = size_of_val(&options) as _;
    let value = old.value_size() + 8;
    let mut other = MapHandle::create(MapType::Hash, Some("other"), old.key_size(), value, old.max_entries(), &options)
        .expect("a map of another layout");
    std::fs::remove_file(pin).expect("the pin is there");
    other.pin(pin).expect("it can be pinned there");
}

/// Pings `to` from `station` as fast as answers come while `work` runs; every one is answered.
fn without_a_loss<T>(station: &Namespace, to: [u8; 4], work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pings = scope.spawn(|| {
            let icmp = Icmp::open(station, WAIT);
            let (mut sent, mut answered) = (0u16, 0u16);
            while !over.load(Ordering::Relaxed) || sent <= 50 {
                sent += 1;
                answered += u16::from(icmp.ping(to.into(), 64, sent, 56).is_some());
            }
            (sent, answered)
        });
        // Some before, some while it happens, some after it.
        std::thread::sleep(Duration::from_millis(50));
        let result = work();
        std::thread::sleep(Duration::from_millis(50));
        over.store(true, Ordering::Relaxed);
        let (sent, answered) = pings.join().expect("the pings end");
        assert!(sent > 50 && sent == answered, "{answered} of {sent} pings answered");
        result
    })
}

/// A VTEP of the last release between two stations and a VTEP of the kernel, all of which know each other.
fn old_vtep(test: &str, attachment: Attachment) -> Option<(PinFs, Node, [Namespace; 2], VtepOptions)> {
    if !weft_needs::root() {
        return None;
    }
    let fs = PinFs::mount(test)?;
    let bed = Node::new(test);
    let stations =
        [("vm", "20.0.0.1/24"), ("vm2", "20.0.0.3/24")].map(|(port, address)| bed.station(test, port, address));
    bed.kernel_peer(42, "20.0.0.2/24", "");
    let options = VtepOptions { pin_dir: Some(fs.0.join("v")), attachment, ..VtepOptions::new(LOCAL) };
    let old = with_stand_ins(last_release(), || {
        let mut old = bed.vtep(&options)?;
        set_up(&bed, &mut old);
        Some(old)
    })?;
    drop(old);
    for to in [FAR, [20, 0, 0, 3]] {
        assert!(
            Icmp::open(&stations[0], WAIT).ping(to.into(), 64, 1, 56).is_some(),
            "the last release's data path works"
        );
    }
    Some((fs, bed, stations, options))
}

fn set_up(bed: &Node, vtep: &mut Vtep) {
    vtep.add_vni(vni(42), &settings()).unwrap();
    for port in ["vm", "vm2"] {
        bed.attach(vtep, port, 42, AccessRule::default());
    }
}

#[test]
fn a_vtep_of_the_last_release_is_taken_over_with_all_that_it_knows() {
    for (test, attachment) in [("upv", Attachment::Link), ("upvf", Attachment::Filter)] {
        let Some((fs, bed, stations, options)) = old_vtep(test, attachment) else { return };
        let mut vtep =
            without_a_loss(&stations[0], FAR, || bed.node.enter_with(|| Vtep::load(&options)).expect("it takes over"));
        assert!(!vtep.succeeds(), "nothing is left to be done");
        vtep.succeed().unwrap();
        let entries = vtep.entries(None).unwrap();
        let far = entries.iter().find(|entry| entry.to == To::Remote(PEER));
        assert!(far.is_some_and(|entry| entry.origin == Origin::Learned), "it is still known: {entries:?}");
        assert_eq!((vtep.segments().unwrap().len(), vtep.ports().unwrap().len()), (1, 3));
        bed.node.enter_with(|| vtep.stop()).unwrap();
        assert!(!fs.0.join("v").exists(), "nothing is left behind");
    }
}

#[test]
fn a_vtep_whose_table_has_another_layout_is_replaced_without_a_lost_frame() {
    for (test, attachment) in [("upl", Attachment::Link), ("uplf", Attachment::Filter)] {
        let Some((fs, bed, stations, options)) = old_vtep(test, attachment) else { return };
        let dir = fs.0.join("v");
        change_layout(&dir.join("vtep_limits"));
        // To a station behind another VTEP, and to one behind another port.
        let mut vtep = without_a_loss(&stations[0], FAR, || {
            without_a_loss(&stations[1], [20, 0, 0, 1], || {
                let mut vtep = bed.vtep(&options).expect("eBPF works here");
                assert!(vtep.succeeds() && vtep.segments().unwrap().is_empty(), "it begins with empty tables");
                // The old one works on for as long as it takes to say everything.
                std::thread::sleep(Duration::from_millis(100));
                set_up(&bed, &mut vtep);
                bed.node.enter_with(|| vtep.succeed()).unwrap();
                vtep
            })
        });
        let entries = vtep.entries(None).unwrap();
        assert!(entries.iter().any(|entry| entry.to == To::Remote(PEER)), "it is learned again: {entries:?}");
        assert!(!vtep.succeeds());
        // One that follows finds its tables.
        drop(vtep);
        vtep = without_a_loss(&stations[0], FAR, || bed.node.enter_with(|| Vtep::load(&options)).unwrap());
        assert!(!vtep.succeeds() && vtep.segments().unwrap().len() == 1);
        bed.node.enter_with(|| vtep.stop()).unwrap();
        assert!(!dir.exists(), "nothing is left behind");
    }
}

#[test]
fn one_that_gives_up_leaves_the_old_vtep_at_work_and_one_that_stops_takes_it_away() {
    let Some((fs, bed, stations, options)) = old_vtep("upg", Attachment::Link) else { return };
    let dir = fs.0.join("v");
    change_layout(&dir.join("vtep_limits"));
    without_a_loss(&stations[0], FAR, || drop(bed.vtep(&options)));
    let vtep = bed.node.enter_with(|| Vtep::load(&options)).unwrap();
    assert!(vtep.succeeds(), "still");
    bed.node.enter_with(|| vtep.stop()).unwrap();
    assert!(!dir.exists(), "nothing is left behind");
    let icmp = Icmp::open(&stations[0], Duration::from_millis(300));
    assert!(icmp.ping(FAR.into(), 64, 1, 56).is_none(), "the old programs are gone");
}

#[test]
fn a_servers_data_path_of_the_last_release_is_taken_over_with_its_mappings() {
    if !weft_needs::root() {
        return;
    }
    let Some(fs) = PinFs::mount("uph") else { return };
    let bed = Bed::new("uph");
    let Some(programs) = bed.attach() else { return };
    programs.a.detach().expect("the bed's own makes way for a pinned one");
    let config = HostConfig { pin_dir: Some(fs.0.join("a")), ..server_config(MY_TOR) };
    let attach = || bed.a.enter(|| HostDatapath::attach(&config)).expect("it attaches");
    let old = bed.a.enter(|| with_stand_ins(last_release(), || HostDatapath::attach(&config))).expect("it attaches");
    old.set(PEER_AA, &B_MAPPING).unwrap();
    drop(old);
    let host = without_a_loss(&bed.a, PEER_AA.octets(), attach);
    assert_eq!(host.get(PEER_AA).unwrap(), Some(B_MAPPING), "the mapping is still known");
    let counters = counted(host.counters().unwrap());
    assert!(counters.iter().any(|(name, count)| *name == "encapsulated" && *count > 50), "{counters:?}");
    for reason in ["packet_miss", "no_mapping", "malformed", "push_failed"] {
        assert!(counters.iter().all(|(name, _)| *name != reason), "{counters:?}");
    }
    host.detach().unwrap();
    assert!(!fs.0.join("a").exists(), "nothing is left behind");
}
