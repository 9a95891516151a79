//! What a VTEP tells network cards to let in: in a ToR, servers' frames are for any server.

use std::net::Ipv4Addr;

use weft_node::vtep;
use weft_node::vtep::protocol::{Answer, Item, Request};
use weft_node::vtep::{FloodText, VtepConfig};

use crate::bed::{Hosts, Running, port, segment};
use crate::common::{example_program, wait_until};
use crate::net::{Pins, Process, hearing};

const PORTS: [&str; 3] = ["eth0", "vm1", "vm2"];
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 129, 1, 1);
/// Its address on Ethernet (RFC 1112 section 6.4).
const GROUP_MAC: &str = "01005e010101";

fn spawn(hosts: &Hosts, config: &VtepConfig) -> Process {
    let file = hosts.dir.path().join("vtep.toml");
    std::fs::write(&file, weft_node::settings_text(&config)).unwrap();
    let program = example_program("vtep-daemon");
    let mut command = hosts.hosts[0].command(program.to_str().expect("an ordinary path"));
    let process = Process::start(command.arg(file));
    wait_until("the VTEP is ready", || vtep::ask(&config.socket, &Request::Config).is_ok());
    process
}

fn config(hosts: &Hosts) -> VtepConfig {
    let mut config = hosts.config(0);
    let mut group = segment(100);
    group.flood = Some(FloodText::Word(GROUP.to_string()));
    config.vni = vec![group, segment(200)];
    config.port = vec![port("vm1", 100)];
    config
}

#[test]
fn cards_hear_stations_and_groups_as_long_as_the_data_path_works() {
    let Some(hosts) = Hosts::new("cards") else { return };
    let _vms = [hosts.vm(0, "vm1", "192.168.100.1/24"), hosts.vm(0, "vm2", "192.168.200.1/24")];
    let pins = Pins::new(hosts.dir.path());
    let mut config = config(&hosts);
    config.pin_dir = Some(pins.dir("vtep"));
    let host = &hosts.hosts[0];
    let before = hearing(host, &PORTS);
    let check = |when: &str| {
        let now = hearing(host, &PORTS);
        assert_eq!(now["eth0"].since(&before["eth0"]), (vec![GROUP_MAC.to_owned()], false), "the uplink, {when}");
        assert_eq!(now["vm1"].since(&before["vm1"]), (vec![], true), "the port, {when}");
        assert_eq!(now["vm2"], before["vm2"], "no port, {when}");
        now
    };
    let daemon = spawn(&hosts, &config);
    let first = check("after the start");
    daemon.crash();
    check("after SIGKILL");
    let daemon = spawn(&hosts, &config);
    assert_eq!(check("after a restart"), first);
    assert_eq!(vtep::ask(&config.socket, &Request::Stop).unwrap(), Answer::Done);
    assert!(daemon.ended());
    assert_eq!(hearing(host, &PORTS), before, "after the end");
    assert!(!config.socket.with_extension("cards").exists(), "nothing is left");
}

#[test]
fn ports_and_groups_that_go_are_heard_no_more() {
    let Some(hosts) = Hosts::new("cards-change") else { return };
    let _vms = [hosts.vm(0, "vm1", "192.168.100.1/24"), hosts.vm(0, "vm2", "192.168.200.1/24")];
    let host = &hosts.hosts[0];
    let before = hearing(host, &PORTS);
    let vtep: Running = hosts.vtep(0, config(&hosts));
    vtep.add(Item::Port(port("vm2", 200)));
    assert_eq!(hearing(host, &PORTS)["vm2"].since(&before["vm2"]), (vec![], true));
    vtep.remove(Item::Port(port("vm2", 200)));
    vtep.remove(Item::Port(port("vm1", 100)));
    vtep.remove(Item::Vni(segment(100)));
    assert_eq!(hearing(host, &PORTS), before);
    vtep.finish();
    assert_eq!(hearing(host, &PORTS), before);
}
