//! Directory-driven forwarding with a real directory server: nothing is flooded, moves arrive, segments stay apart.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use weft_node::client::AdminClient;
use weft_node::directory::DirectoryConfig;
use weft_node::directory::protocol::MappingToSet;
use weft_node::vtep::{DirectoryTable, FloodText, SegmentTable, VtepConfig};

use crate::bed::{HOST, Hosts, port, segment};
use crate::common::{Daemon, derived_key, loopback_config, private_file, start, wait_until};
use crate::net::Namespace;

const AA: [Ipv4Addr; 2] = [Ipv4Addr::new(20, 0, 7, 1), Ipv4Addr::new(20, 0, 7, 2)];
const VNI: u32 = 7;

/// A station: its MAC is what directory-driven segments ask for.
fn station(hosts: &Hosts, k: usize, port: &str, aa: Ipv4Addr) -> Namespace {
    let vm = hosts.vm(k, port, &format!("{aa}/24"));
    let [a, b, c, d] = aa.octets();
    vm.ip(&format!("link set eth0 address 02:42:{a:02x}:{b:02x}:{c:02x}:{d:02x}"));
    vm
}

fn mapping(aa: Ipv4Addr, host: usize) -> MappingToSet {
    let vtep = HOST[host];
    MappingToSet { aa, tor_la: vtep, anycast_la: vtep, service: VNI, host_la: None, if_version: None, version: None }
}

/// A directory server at host 0, for both.
fn directory(hosts: &Hosts) -> (Daemon, AdminClient, SocketAddrV4) {
    let listen = SocketAddrV4::new(HOST[0], 5300);
    let config = DirectoryConfig { listen, ..loopback_config(hosts.dir.path()) };
    let (daemon, client) = hosts.hosts[0].within(|| start(&config));
    (daemon, client, listen)
}

/// Keys of these segments for host `k`, as `weft directory key` writes them.
fn keys(hosts: &Hosts, k: usize, vnis: &[u32]) -> std::path::PathBuf {
    let dir = hosts.dir.path().join(format!("keys{k}"));
    std::fs::create_dir_all(&dir).unwrap();
    for vni in vnis {
        let key = std::fs::read_to_string(derived_key(hosts.dir.path(), *vni, HOST[k])).unwrap();
        private_file(&dir.join(format!("{vni}.key")), &key);
    }
    dir
}

fn config(hosts: &Hosts, k: usize, server: SocketAddrV4) -> VtepConfig {
    let mut config = hosts.config(k);
    let nowhere = Some(FloodText::Word("nowhere".to_owned()));
    config.segment = SegmentTable { directory: Some(true), flood: nowhere, ..SegmentTable::default() };
    config.vni = vec![segment(VNI.into())];
    config.port = vec![port(&format!("vm{k}"), VNI.into())];
    let key_dir = Some(keys(hosts, k, &[VNI, VNI + 1]));
    let (servers, tor_las) = (vec![server], Vec::new());
    config.directory = Some(DirectoryTable { servers, tor_las, port: 5301, key_dir, key_id: 0, lifetime_s: 1 });
    config
}

#[test]
fn a_vtep_that_only_the_directory_names_is_no_peer_unless_that_is_allowed() {
    let Some(hosts) = Hosts::new("dirtor") else { return };
    let vms = [station(&hosts, 0, "vm0", AA[0]), station(&hosts, 1, "vm1", AA[1])];
    let (_directory, mut client, server) = directory(&hosts);
    client.set_many(vec![mapping(AA[0], 0), mapping(AA[1], 1)]).unwrap();
    let far = hosts.vtep(1, config(&hosts, 1, server));
    let mut alone = config(&hosts, 0, server);
    alone.peers.clear();
    let near = hosts.vtep(0, alone.clone());
    assert!(vms[0].ping(&format!("-c 2 -i 0.2 -W 1 {}", AA[1])).contains("0 received"));
    wait_until("it was named", || near.count("daemon", "foreign_vtep") > 0);
    assert!(near.fdb().iter().all(|row| row.origin != "directory"), "{:?}", near.fdb());
    assert_eq!(near.count("frames", "encapsulated"), 0);
    drop(near);
    alone.directory.as_mut().expect("it asks").tor_las = vec![HOST[1]];
    let _near = hosts.vtep(0, alone);
    wait_until("it is believed", || vms[0].ping(&format!("-c 1 -W 1 {}", AA[1])).contains("1 received"));
    drop(far);
}

#[test]
fn stations_find_each_other_without_a_flood_and_a_move_arrives() {
    let Some(hosts) = Hosts::new("dir") else { return };
    let vms = [station(&hosts, 0, "vm0", AA[0]), station(&hosts, 1, "vm1", AA[1])];
    let (_directory, mut client, server) = directory(&hosts);
    client.set_many(vec![mapping(AA[0], 0), mapping(AA[1], 1)]).unwrap();
    let vteps = [0, 1].map(|k| hosts.vtep(k, config(&hosts, k, server)));
    let output = vms[0].ping(&format!("-c 5 -i 0.05 -W 30 {}", AA[1]));
    assert!(output.contains("5 received"), "{output}");
    for (k, vtep) in vteps.iter().enumerate() {
        let fdb = vtep.fdb();
        let far = fdb.iter().find(|row| row.ip == Some(AA[1 - k])).unwrap_or_else(|| panic!("{fdb:?}"));
        assert_eq!((far.to.clone(), far.origin.as_str()), (HOST[1 - k].to_string(), "directory"), "{fdb:?}");
        assert_eq!(vtep.count("events", "copied_to_peer"), 0, "nothing is flooded");
        assert!(vtep.count("directory", "installed") >= 1);
        assert_eq!(vtep.count("daemon", "not_installed") + vtep.count("daemon", "not_answered"), 0);
    }
    // Nobody has this address: the request is not flooded either.
    assert!(vms[0].ping("-c 1 -W 1 20.0.7.99").contains("0 received"));
    assert!(vteps[0].count("directory_dropped", "unknown") >= 1);

    // The second VM moves to the first host.
    let [_stays, leaves] = vms;
    drop(leaves);
    let moved = station(&hosts, 0, "vm2", AA[1]);
    vteps[0].add(weft_node::vtep::protocol::Item::Port(port("vm2", VNI.into())));
    client.move_to(AA[1], HOST[0], None, None).unwrap();
    wait_until("the move arrives", || {
        vteps[0].fdb().iter().all(|row| row.origin != "directory" || row.ip != Some(AA[1]))
    });
    wait_until("it is reached here", || moved.ping(&format!("-c 1 -W 1 {}", AA[0])).contains("1 received"));
}

#[test]
fn a_segment_is_told_nothing_of_another_and_needs_its_key() {
    let Some(hosts) = Hosts::new("dirkey") else { return };
    let other = station(&hosts, 0, "vm0", Ipv4Addr::new(20, 0, 7, 3));
    let _target = station(&hosts, 1, "vm1", AA[1]);
    let (_directory, mut client, server) = directory(&hosts);
    client.set_many(vec![mapping(AA[1], 1)]).unwrap();
    let mut foreign = config(&hosts, 0, server);
    foreign.vni.push(segment(i64::from(VNI) + 1));
    foreign.port[0].vni = foreign.port[0].vni.map(|vni| vni + 1);
    let vteps = [hosts.vtep(0, foreign.clone()), hosts.vtep(1, config(&hosts, 1, server))];
    assert!(other.ping(&format!("-c 2 -i 0.2 -W 1 {}", AA[1])).contains("0 received"));
    assert!(vteps[0].fdb().iter().all(|row| row.origin != "directory"), "{:?}", vteps[0].fdb());
    let dropped = vteps[0].count("directory_dropped", "unknown") + vteps[0].count("directory_dropped", "refused");
    assert!(dropped >= 1);

    let nine = foreign.vni.len() as i64 + 7;
    let segment = weft_node::vtep::protocol::Item::Vni(segment(nine));
    let error = vteps[0].refused(weft_node::vtep::protocol::Request::Add(segment));
    assert!(error.contains("9.key") && error.contains("weft directory key"), "{error}");
    assert!(Path::new(&foreign.socket).exists());
}
