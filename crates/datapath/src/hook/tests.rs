//! Filters as the kernel's own tool shows them, in network namespaces of the tests' threads.
#![allow(unsafe_code, clippy::print_stderr)]

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use libbpf_rs::Object;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::*;
use crate::object::ObjectFile;
use crate::{bpffs, object};

const LOOPBACK: u32 = 1;
/// Two programs for ingress.
const IN: &str = "vl2_int_decap";
const OTHER: &str = "vl2_tor_decap";

/// Runs `test` in a network namespace of its own, with a loopback interface and a veth pair.
fn in_a_namespace(test: impl FnOnce() + Send) {
    if !weft_needs::root() {
        return;
    }
    let enter_and_test = || {
        // SAFETY: this thread shares no file descriptors with others that it would lose.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("root may make a namespace");
        run("ip", "link add v0 type veth peer name v1");
        test();
    };
    std::thread::scope(|scope| {
        if let Err(panic) = scope.spawn(enter_and_test).join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn run(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split_whitespace()).output().expect("iproute2 is installed");
    assert!(output.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Names of the programs on a hook, in the order in which the kernel asks them.
fn filters(interface: &str, direction: &str) -> Vec<String> {
    let shown = run("tc", &format!("filter show dev {interface} {direction}"));
    // `filter protocol all pref 30582 bpf chain 0 handle 0x7776 NAME:[7] direct-action not_in_hw id 7 ..`
    let name =
        |line: &str| Some(line.split_once(" handle 0x")?.1.split_whitespace().nth(1)?.split(':').next()?.to_owned());
    shown.lines().filter(|line| line.contains(" bpf ")).filter_map(name).collect()
}

fn load(file: ObjectFile) -> Object {
    file.load(file.open().expect("it opens")).expect("it loads")
}

fn put(object: &Object, name: &str, ifindex: u32, pin: Option<&Path>) -> Attached {
    let program = object::program(object, name);
    attach_as(TcHook::Filter, &program, ifindex, "an interface", pin).expect("it attaches")
}

#[test]
fn a_filter_is_on_the_side_that_its_section_names_and_goes_when_it_is_dropped() {
    in_a_namespace(|| {
        let (switch, host) = (load(object::VL2_SWITCH), load(object::VL2_HOST));
        let attached = [put(&switch, IN, LOOPBACK, None), put(&host, "vl2_host_egress", LOOPBACK, None)];
        assert_eq!(filters("lo", "ingress"), [IN]);
        assert_eq!(filters("lo", "egress"), ["vl2_host_egress"]);
        drop(attached);
        assert_eq!([filters("lo", "ingress"), filters("lo", "egress")], [vec![], Vec::<String>::new()]);
    });
}

#[test]
fn the_first_stands_in_front_and_others_filters_stay() {
    in_a_namespace(|| {
        run("tc", "qdisc add dev lo clsact");
        run("tc", "filter add dev lo ingress protocol ip prio 7 u32 match u32 0 0 flowid 1:1");
        // At our place, but with somebody else's program.
        let theirs = load(object::VL2_SWITCH);
        let other = filter::attach(&object::program(&theirs, OTHER), LOOPBACK, Place::Last).unwrap();
        let object = load(object::VL2_SWITCH);
        let last = put(&object, IN, LOOPBACK, None);
        let first = filter::attach(&object::program(&object, OTHER), LOOPBACK, Place::First).unwrap();
        assert_eq!(filters("lo", "ingress"), [OTHER, OTHER, IN]);
        first.detach().unwrap();
        last.detach().unwrap();
        assert_eq!(filters("lo", "ingress"), [OTHER]);
        assert!(run("tc", "filter show dev lo ingress").contains("u32"));
        other.detach().unwrap();
        assert_eq!(filters("lo", "ingress"), Vec::<String>::new());
    });
}

#[test]
fn who_comes_later_stands_further_out_also_when_an_earlier_one_has_gone() {
    in_a_namespace(|| {
        let object = load(object::VL2_SWITCH);
        let attach = |name, place| filter::attach(&object::program(&object, name), LOOPBACK, place).unwrap();
        for (place, expected) in [(Place::Last, [OTHER, IN]), (Place::First, [IN, OTHER])] {
            let gone = attach(IN, place);
            let stays = attach(OTHER, place);
            gone.detach().unwrap();
            let comes = attach(IN, place);
            assert_eq!(filters("lo", "ingress"), expected, "{place:?}");
            [stays, comes].iter().for_each(|filter| filter.detach().unwrap());
        }
    });
}

#[test]
fn what_a_killed_process_left_is_replaced_and_nobody_takes_off_the_new_one() {
    in_a_namespace(|| {
        let (before, after) = (load(object::VL2_SWITCH), load(object::VL2_SWITCH));
        let killed = filter::attach(&object::program(&before, IN), LOOPBACK, Place::Last).unwrap();
        let attached = put(&after, IN, LOOPBACK, None);
        assert_eq!(filters("lo", "ingress"), [IN], "one, not two");
        killed.detach().unwrap();
        assert_eq!(filters("lo", "ingress"), [IN], "the new one is not the old one's to take off");
        attached.detach().unwrap();
        assert_eq!(filters("lo", "ingress"), Vec::<String>::new());
    });
}

#[test]
fn a_filter_is_taken_off_in_the_namespace_where_it_was_put_on() {
    in_a_namespace(|| {
        let object = load(object::VL2_SWITCH);
        let elsewhere = put(&object, IN, LOOPBACK, None);
        let home = File::open("/proc/thread-self/ns/net").expect("procfs is there");
        // SAFETY: as above.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("root may make a namespace");
        let own = put(&object, IN, LOOPBACK, None);
        drop(elsewhere);
        assert_eq!(filters("lo", "ingress"), [IN], "of the same interface number, and not touched");
        move_into_link_name_space(home.as_fd(), Some(LinkNameSpaceType::Network)).expect("it was ours");
        assert_eq!(filters("lo", "ingress"), Vec::<String>::new());
        drop(own);
    });
}

#[test]
fn a_pin_outlives_its_process_moves_with_the_interface_and_changes_kind() {
    in_a_namespace(|| {
        let fs = PinFs::mount();
        let pin = fs.0.join("port");
        let other = crate::interface::index_of("v0").unwrap();
        drop(put(&load(object::VL2_SWITCH), IN, LOOPBACK, Some(&pin)));
        assert_eq!(filters("lo", "ingress"), [IN], "nobody holds it");
        drop(put(&load(object::VL2_SWITCH), IN, other, Some(&pin)));
        assert_eq!([filters("lo", "ingress"), filters("v0", "ingress")], [vec![], vec![IN.to_owned()]]);
        drop(put(&load(object::VL2_SWITCH), OTHER, other, Some(&pin)));
        assert_eq!(filters("v0", "ingress"), [OTHER], "another program has its place");
        if has_tcx() {
            let object = load(object::VL2_SWITCH);
            let program = object::program(&object, OTHER);
            let link = attach_as(TcHook::Tcx, &program, other, "v0", Some(&pin)).expect("tcx is there");
            assert!(matches!(link, Attached(Means::Link(_))));
            assert_eq!(filters("v0", "ingress"), Vec::<String>::new());
            drop(put(&object, OTHER, other, Some(&pin)));
            assert_eq!(filters("v0", "ingress"), [OTHER]);
        }
        detach_pinned(&pin).unwrap();
        assert_eq!(filters("v0", "ingress"), Vec::<String>::new());
        assert!(!pin.exists());
    });
}

/// A bpffs that ends with this value.
struct PinFs(PathBuf);

impl PinFs {
    fn mount() -> Self {
        let path = std::env::temp_dir().join(format!("weft-hook-{}", std::process::id()));
        assert!(bpffs::ensure_mounted(&path).expect("root may mount"));
        Self(path)
    }
}

impl Drop for PinFs {
    fn drop(&mut self) {
        bpffs::unmount(&self.0).expect("nothing is in use");
    }
}
