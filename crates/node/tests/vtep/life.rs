//! A VTEP's life: changes, reloads and restarts while frames pass, and an end that leaves nothing.

use std::net::Ipv4Addr;

use weft_node::vtep::protocol::{Answer, Item, Request, Shown, What};
use weft_node::vtep::{self, EntryTable, FloodText, VtepConfig};

use crate::bed::{HOST, Hosts, port, segment, segments, shared_queues};
use crate::common::{example_program, wait_until};
use crate::net::{Namespace, Pins, Process, Stream};

const KERNEL: Ipv4Addr = Ipv4Addr::new(192, 168, 100, 2);

/// A VM in VNI 100 behind our VTEP, the kernel's device at the other host, and a second VM that nobody has attached yet.
fn hosts(test: &'static str) -> Option<(Hosts, Namespace, Namespace, VtepConfig)> {
    let hosts = Hosts::new(test)?;
    let vm = hosts.vm(0, "vm1", "192.168.100.1/24");
    let second = hosts.vm(0, "vm2", "192.168.200.1/24");
    hosts.kernel_vxlan(100, &format!("remote {}", HOST[0]), "192.168.100.2/24");
    hosts.kernel_vxlan(200, &format!("remote {}", HOST[0]), "192.168.200.2/24");
    let mut config = hosts.config(0);
    config.vni = vec![segment(100)];
    config.port = vec![port("vm1", 100)];
    Some((hosts, vm, second, config))
}

fn entry(vni: i64, mac: &str, peer: Option<Ipv4Addr>) -> EntryTable {
    EntryTable { vni, mac: mac.to_owned(), peer, port: None, vlan: None, ip: None }
}

#[test]
fn what_comes_and_goes_at_run_time_disturbs_nobody_else() {
    let Some((hosts, vm, second, config)) = hosts("change") else { return };
    let _queues = shared_queues();
    let vtep = hosts.vtep(0, config);
    assert!(vm.ping("-c 1 -W 30 192.168.100.2").contains("1 received"));
    let stream = Stream::start(&vm, &hosts.hosts[1], KERNEL);
    for _ in 0..3 {
        vtep.add(Item::Vni(segments("200-399")));
        vtep.add(Item::Port(port("vm2", 200)));
        vtep.add(Item::Peer([10, 9, 0, 77].into()));
        vtep.add(Item::Entry(entry(300, "02:00:00:00:00:09", Some(HOST[1]))));
        assert!(second.ping("-c 2 -i 0.05 -W 30 192.168.200.2").contains("2 received"));
        vtep.remove(Item::Entry(entry(300, "02:00:00:00:00:09", None)));
        vtep.remove(Item::Peer([10, 9, 0, 77].into()));
        vtep.remove(Item::Port(port("vm2", 200)));
        assert!(second.ping("-c 1 -W 1 192.168.200.2").contains("0 received"), "it is in no segment");
        vtep.remove(Item::Vni(segments("200-399")));
        assert!(vtep.fdb().iter().all(|row| row.vni == 100), "what was learned went along");
    }
    let (sent, lost) = stream.end();
    assert!(sent > 500 && lost == 0, "{lost} of {sent} lost");
    let config = vtep.ask(Request::Config);
    assert!(matches!(&config, Answer::Config(text) if text.contains("vm1") && !text.contains("vm2")), "{config:?}");
}

#[test]
fn a_reload_becomes_what_the_file_says_and_a_bad_one_changes_nothing() {
    let Some((hosts, vm, second, config)) = hosts("reload") else { return };
    let _queues = shared_queues();
    let vtep = hosts.vtep(0, config.clone());
    assert!(vm.ping("-c 1 -W 30 192.168.100.2").contains("1 received"));
    let stream = Stream::start(&vm, &hosts.hosts[1], KERNEL);
    let reload_as = |config: &VtepConfig| {
        *vtep.config.lock().unwrap() = config.clone();
        vtep.hang_up();
    };
    let vnis = || match vtep.show(What::Vni) {
        Shown::Vnis(rows) => rows.len(),
        other => panic!("{other:?}"),
    };
    let mut more = config.clone();
    more.vni.push(segments("200-249"));
    more.port.push(port("vm2", 200));
    reload_as(&more);
    wait_until("the segments are there", || vnis() == 51);
    assert!(second.ping("-c 2 -i 0.05 -W 30 192.168.200.2").contains("2 received"));

    for (spoil, says) in [
        (Box::new(|config: &mut VtepConfig| config.port[0].vni = Some(9)) as Box<dyn Fn(&mut VtepConfig)>, "no VNI 9"),
        (Box::new(|config| config.udp_port = 8472), "udp_port: cannot change at run time"),
        (Box::new(|config| config.port.push(port("vm9", 100))), "no interface `vm9`"),
        (Box::new(|config| config.port.push(port("vm1", 200))), "cannot be in VNI 200 as well"),
    ] {
        let mut bad = more.clone();
        spoil(&mut bad);
        *vtep.config.lock().unwrap() = bad;
        let error = vtep.refused(Request::Reload);
        assert!(error.contains(says), "{error} does not say {says}");
        assert_eq!(vnis(), 51);
    }
    // A VM that is started again has a new interface of the same name.
    hosts.hosts[0].ip("link del vm2");
    drop(second);
    let second = hosts.vm(0, "vm2", "192.168.200.1/24");
    reload_as(&more);
    wait_until("the new interface is attached", || second.ping("-c 1 -W 1 192.168.200.2").contains("1 received"));
    reload_as(&config);
    wait_until("they are gone", || vnis() == 1);
    let (sent, lost) = stream.end();
    assert!(sent > 100 && lost == 0, "{lost} of {sent} lost");
}

#[test]
fn a_restart_with_pins_loses_no_frame_and_an_end_leaves_nothing() {
    let Some((hosts, vm, second, mut config)) = hosts("restart") else { return };
    let _queues = shared_queues();
    let pins = Pins::new(hosts.dir.path());
    config.pin_dir = Some(pins.dir("vtep"));
    config.vni.push(segment(200));
    config.port.push(port("vm2", 200));
    config.entry.push(entry(100, "02:00:00:00:00:09", Some(HOST[1])));
    let vtep = hosts.vtep(0, config.clone());
    assert!(vm.ping("-c 1 -W 30 192.168.100.2").contains("1 received"));
    let learned = vtep.fdb().len();
    let stream = Stream::start(&vm, &hosts.hosts[1], KERNEL);
    vtep.finish();
    assert!(vm.ping("-c 2 -i 0.05 -W 30 192.168.100.2").contains("2 received"), "it works without the daemon");
    let vtep = hosts.vtep(0, config.clone());
    assert_eq!(vtep.fdb().len(), learned, "what was learned is still known");
    vtep.finish();
    // Another configuration takes over: what it does not name is swept.
    config.vni.pop();
    config.port.pop();
    config.entry.clear();
    let vtep = hosts.vtep(0, config);
    let (sent, lost) = stream.end();
    assert!(sent > 100 && lost == 0, "{lost} of {sent} lost");
    assert!(second.ping("-c 1 -W 1 192.168.200.2").contains("0 received"));
    assert!(vtep.fdb().iter().all(|row| row.vni == 100 && row.origin == "learned"), "{:?}", vtep.fdb());
    vtep.stop();
    assert!(!pins.dir("vtep").exists(), "no pin is left");
    assert!(vm.ping("-c 1 -W 1 192.168.100.2").contains("0 received"));
}

#[test]
fn tables_of_another_layout_take_the_place_of_the_old_ones_without_a_lost_frame() {
    let Some((hosts, vm, second, mut config)) = hosts("layout") else { return };
    let _queues = shared_queues();
    let pins = Pins::new(hosts.dir.path());
    config.pin_dir = Some(pins.dir("vtep"));
    config.segment.flood = Some(FloodText::Word("peers".to_owned()));
    config.vni.push(segment(200));
    config.port.push(port("vm2", 200));
    let vtep = hosts.vtep(0, config.clone());
    for (vm, far) in [(&vm, "192.168.100.2"), (&second, "192.168.200.2")] {
        assert!(vm.ping(&format!("-c 1 -W 30 {far}")).contains("1 received"));
    }
    let streams = [
        Stream::start(&vm, &hosts.hosts[1], KERNEL),
        Stream::start(&second, &hosts.hosts[1], [192, 168, 200, 2].into()),
    ];
    vtep.finish();
    // Larger tables are other tables; and a port that is none any more is taken off.
    config.capacity.macs *= 2;
    let vtep = hosts.vtep(0, config.clone());
    // From the first frame of its stream that meets the new tables.
    let is_learned = |vni| vtep.fdb().iter().any(|row| row.origin == "learned" && row.vni == vni);
    wait_until("stations of both segments are learned again", || is_learned(100) && is_learned(200));
    vtep.finish();
    config.capacity.macs *= 2;
    config.port.pop();
    let [first, second_stream] = streams;
    let (sent, lost) = second_stream.end();
    assert!(sent > 100 && lost == 0, "{lost} of {sent} lost");
    let vtep = hosts.vtep(0, config);
    let (sent, lost) = first.end();
    assert!(sent > 100 && lost == 0, "{lost} of {sent} lost");
    assert!(second.ping("-c 1 -W 1 192.168.200.2").contains("0 received"), "the port is none any more");
    vtep.stop();
    assert!(!pins.dir("vtep").exists(), "no pin is left");
    assert!(vm.ping("-c 1 -W 1 192.168.100.2").contains("0 received"));
}

fn spawn(hosts: &Hosts, file: &std::path::Path) -> Process {
    let program = example_program("vtep-daemon");
    let mut command = hosts.hosts[0].command(program.to_str().expect("an ordinary path"));
    let process = Process::start(command.arg(file));
    let socket = hosts.config(0).socket;
    wait_until("the VTEP is ready", || vtep::ask(&socket, &Request::Show(What::Peers)).is_ok());
    process
}

#[test]
fn a_crash_loses_no_frame_either_and_the_next_start_takes_over() {
    let Some((hosts, vm, _second, mut config)) = hosts("crash") else { return };
    let _queues = shared_queues();
    let pins = Pins::new(hosts.dir.path());
    config.pin_dir = Some(pins.dir("vtep"));
    config.segment.flood = Some(FloodText::Word("peers".to_owned()));
    let file = hosts.dir.path().join("vtep.toml");
    std::fs::write(&file, weft_node::settings_text(&config)).unwrap();
    let daemon = spawn(&hosts, &file);
    assert!(vm.ping("-c 1 -W 30 192.168.100.2").contains("1 received"));
    let stream = Stream::start(&vm, &hosts.hosts[1], KERNEL);
    daemon.crash();
    assert!(vm.ping("-c 2 -i 0.05 -W 30 192.168.100.2").contains("2 received"), "it works without the daemon");
    let daemon = spawn(&hosts, &file);
    let (sent, lost) = stream.end();
    assert!(sent > 100 && lost == 0, "{lost} of {sent} lost");
    assert_eq!(vtep::ask(&config.socket, &Request::Stop).unwrap(), Answer::Done);
    assert!(daemon.ended());
    assert!(!pins.dir("vtep").exists() && !config.socket.exists(), "nothing is left");
}
