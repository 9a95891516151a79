//! Configurations, commands and datagrams that cannot work: each refused in one line, or dropped and counted.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

use weft_node::stop::Stop;
use weft_node::vtep::protocol::{Item, Request};
use weft_node::vtep::{self, DirectoryTable, EntryTable, FloodText, PortTable, TaggedText, VtepConfig};
use weft_node::{read_settings, settings_text};
use weft_wire::vxlan::Header;

use crate::bed::{HOST, Hosts, port, segment, segments};
use crate::common::wait_until;

/// What a VTEP at host 0 says that must not start.
fn refused(hosts: &Hosts, config: &VtepConfig) -> String {
    let outcome = hosts.hosts[0].within(|| {
        let stop = Stop::manual().unwrap();
        stop.request();
        vtep::run(&|| Ok(config.clone()), &stop)
    });
    let error = outcome.expect_err("it must not start").to_string();
    assert!(!error.contains('\n'), "one line: {error}");
    error
}

#[test]
fn settings_that_cannot_work_are_refused_in_one_line_with_the_remedy() {
    let Some(hosts) = Hosts::new("bad") else { return };
    let _vm = hosts.vm(0, "vm1", "192.168.100.1/24");
    let good = || {
        let mut config = hosts.config(0);
        config.vni = vec![segment(100)];
        config.port = vec![port("vm1", 100)];
        config
    };
    type Spoil = Box<dyn Fn(&mut VtepConfig)>;
    let cases: Vec<(Spoil, &str)> = vec![
        (Box::new(|config| config.vni[0] = segment(0)), "`0` is no VNI: 0 is reserved"),
        (Box::new(|config| config.vni[0] = segment(1 << 24)), "it has more than 24 bits"),
        (Box::new(|config| config.vni[0] = segment(-1)), "`-1` is no VNI"),
        (Box::new(|config| config.vni[0] = segments("9-3")), "ends before it begins"),
        (Box::new(|config| config.vni.push(segments("90-110"))), "VNI 100 is named twice"),
        (Box::new(|config| config.vni[0].id = None), "has no `id`"),
        (Box::new(|config| config.segment = segment(7)), "segment: has an `id`"),
        (Box::new(|config| config.local = [10, 9, 0, 77].into()), "local: 10.9.0.77 is not an address of this host"),
        (Box::new(|config| config.peers = [HOST[0]].into()), "is this VTEP itself"),
        (Box::new(|config| config.uplink.clear()), "uplink: there is none"),
        (Box::new(|config| config.uplink = vec!["eth7".to_owned()]), "no interface `eth7`"),
        (Box::new(|config| config.port[0].interface = "vm7".to_owned()), "no interface `vm7`"),
        (Box::new(|config| config.port[0].interface = "an-interface-with-a-long-name".to_owned()), "no interface name"),
        (Box::new(|config| config.port[0].interface = "eth0".to_owned()), "`eth0` is an uplink"),
        (Box::new(|config| config.port[0].vni = Some(101)), "there is no VNI 101"),
        (Box::new(|config| config.port[0].vni = None), "`vm1` is in no segment"),
        (Box::new(|config| config.port[0].vlans = vec!["10".to_owned()]), "port: `vm1`: vlans: `10`: names no VNI"),
        (Box::new(|config| config.port[0].vlans = vec!["10-19=100".to_owned()]), "10 VLANs and 1 VNIs"),
        (Box::new(|config| config.port[0].vlans = vec!["4095=100".to_owned()]), "`4095` is no VLAN ID"),
        (Box::new(|config| config.port[0].vlans = vec!["10=101".to_owned()]), "there is no VNI 101"),
        (
            Box::new(|config| {
                config.vni.push(segment(200));
                config.port[0].vlans = vec!["10=100".to_owned(), "10=200".to_owned()];
            }),
            "VLAN 10 of `vm1` is in VNI 100 already and cannot be in VNI 200 as well",
        ),
        (
            Box::new(|config| {
                config.port[0].vlans = vec!["10=100".to_owned()];
                config.port[0].tagged = TaggedText::Keep;
            }),
            "cannot be kept as well",
        ),
        (
            Box::new(|config| {
                config.port[0].vlans = vec!["10=100".to_owned()];
                config.port.push(PortTable { vni: None, ..config.port[0].clone() });
            }),
            "`vm1` is named twice; merge its tables",
        ),
        (
            Box::new(|config| {
                config.vni.push(segment(200));
                config.port.push(port("vm1", 200));
            }),
            "`vm1` is in VNI 100 already and cannot be in VNI 200 as well",
        ),
        (Box::new(|config| config.segment.flood = Some(FloodText::Word("all".to_owned()))), "`all` is not \"peers\""),
        (
            Box::new(|config| config.segment.flood = Some(FloodText::List([Ipv4Addr::new(10, 9, 0, 9)].into()))),
            "10.9.0.9 is no peer",
        ),
        (
            Box::new(|config| {
                config.entry.push(EntryTable {
                    vni: 100,
                    mac: "01:00:5e:00:00:01".to_owned(),
                    peer: Some(HOST[1]),
                    port: None,
                    vlan: None,
                    ip: None,
                });
            }),
            "the MAC of no single station",
        ),
        (Box::new(|config| config.vni[0].directory = Some(true)), "directory: is missing, but VNI 100 asks it"),
        (
            Box::new(|config| {
                config.vni[0].directory = Some(true);
                config.directory = Some(DirectoryTable {
                    servers: Vec::new(),
                    tor_las: Vec::new(),
                    port: 0,
                    key_dir: None,
                    key_id: 0,
                    lifetime_s: 300,
                });
            }),
            "directory.servers: is empty",
        ),
        (Box::new(|config| config.udp_port = 0), "udp_port: 0 is no port"),
        (Box::new(|config| config.pin_dir = Some("/tmp/weft-tvn-no-bpffs".into())), "bpffs"),
    ];
    for (spoil, says) in cases {
        let mut config = good();
        spoil(&mut config);
        let error = refused(&hosts, &config);
        assert!(error.contains(says), "{error} does not say {says}");
        assert!(!config.socket.exists(), "{says}: the socket is gone");
    }
    // The MTU: 1551 bytes and 50 more do not fit 1600; a tag needs four more.
    hosts.hosts[0].ip("link set vm1 mtu 1551");
    let error = refused(&hosts, &good());
    assert!(error.contains("has MTU 1551 and VXLAN adds 50 bytes, but uplink `eth0` carries 1600"), "{error}");
    assert!(error.contains("ip link set vm1 mtu 1550"), "{error}");
    hosts.hosts[0].ip("link set vm1 mtu 1550");
    let mut tagged = good();
    tagged.port[0].tagged = TaggedText::Keep;
    assert!(refused(&hosts, &tagged).contains("adds 54 bytes"));
    hosts.vtep(0, good()).finish();

    // The port is taken: by a kernel device, or by another VTEP's daemon.
    hosts.hosts[0].ip("link add vx9 type vxlan id 9 local 10.9.0.1 dstport 4789 dev eth0");
    hosts.hosts[0].ip("link set vx9 up");
    let error = refused(&hosts, &good());
    assert!(error.contains("UDP 10.9.0.1:4789 is bound already, by a kernel VXLAN device"), "{error}");
    hosts.hosts[0].ip("link del vx9");
    let vtep = hosts.vtep(0, good());
    assert!(refused(&hosts, &good()).contains("belongs to a running process"));
    let mut second = good();
    second.socket = hosts.dir.path().join("second.sock");
    assert!(refused(&hosts, &second).contains("is bound already"));
    vtep.finish();
}

#[test]
fn files_are_refused_with_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vtep.toml");
    let error = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let error = read_settings::<VtepConfig>(&path).expect_err(text).to_string();
        assert!(!error.contains('\n') && error.contains("vtep.toml"), "{error}");
        error
    };
    let base = "local = \"10.0.0.1\"\nuplink = [\"eth0\"]\n";
    for (more, says) in [
        ("colour = \"red\"\n", "line 3: unknown field `colour`"),
        ("[[vni]]\nid = 7\nlearns = true\n", "unknown field `learns`"),
        ("[[port]]\nvni = 7\n", "missing field `interface`"),
        ("hook = \"usb\"\n", "line 3: hook: unknown variant `usb`"),
        ("udp_port = 70000\n", "line 3"),
        ("peers = [\"ten\"]\n", "line 3"),
        ("peers = [\n", "line"),
    ] {
        let error = error(&format!("{base}{more}"));
        assert!(error.contains(says), "{error} does not say {says}");
    }
    assert!(error("uplink = [\"eth0\"]\n").contains("missing field `local`"));
    assert!(read_settings::<VtepConfig>(&dir.path().join("none")).unwrap_err().to_string().contains("No such file"));
    // The example and every other configuration come back as they were written.
    let example = VtepConfig::example();
    std::fs::write(&path, settings_text(&example)).unwrap();
    assert_eq!(read_settings::<VtepConfig>(&path).unwrap(), example);
    let settings = example.settings().unwrap();
    let rewritten = example.with_settings(&settings);
    std::fs::write(&path, settings_text(&rewritten)).unwrap();
    assert_eq!(read_settings::<VtepConfig>(&path).unwrap().settings().unwrap(), settings);
}

#[test]
fn commands_that_cannot_work_change_nothing() {
    let Some(hosts) = Hosts::new("cmd") else { return };
    let _vm = hosts.vm(0, "vm1", "192.168.100.1/24");
    let mut config = hosts.config(0);
    config.vni = vec![segment(100)];
    config.port = vec![port("vm1", 100)];
    let socket = config.socket.clone();
    let vtep = hosts.vtep(0, config);
    assert_eq!(std::fs::metadata(&socket).unwrap().mode() & 0o777, 0o600);
    let before = vtep.ask(Request::Config);
    for (request, says) in [
        (Request::Add(Item::Vni(segment(0))), "0 is reserved"),
        (Request::Add(Item::Vni(segments("90-100"))), "VNI 100 exists already"),
        (Request::Remove(Item::Vni(segment(100))), "port `vm1` is in VNI 100"),
        (Request::Add(Item::Port(port("vm1", 100))), "is in VNI 100 already"),
        (Request::Add(Item::Port(port("lo", 100))), "`lo` has MTU 65536"),
        (Request::Remove(Item::Port(port("vm7", 1))), "is no access port"),
        (Request::Add(Item::Peer(HOST[0])), "is this VTEP itself"),
        (Request::Remove(Item::Peer([10, 9, 0, 9].into())), "is no peer"),
    ] {
        let error = vtep.refused(request);
        assert!(error.contains(says), "{error} does not say {says}");
    }
    for junk in [
        &b"\n"[..],
        b"{}\n",
        b"{\"show\":\"everything\"}\n",
        b"\xff\xfe\n",
        &[b'x'; 100_000],
        b"{\"add\":{\"vni\":{\"colour\":1}}}\n",
    ] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        // The daemon may have seen enough and closed.
        let _ = stream.write_all(junk);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.is_empty() || answer.contains("refused"), "{answer}");
    }
    assert_eq!(vtep.ask(Request::Config), before);
    vtep.finish();
}

#[test]
fn datagrams_that_are_no_vxlan_are_dropped_with_their_reason() {
    let Some(hosts) = Hosts::new("junk") else { return };
    let vm = hosts.vm(0, "vm1", "192.168.100.1/24");
    let mut config = hosts.config(0);
    config.vni = vec![segment(100)];
    config.port = vec![port("vm1", 100)];
    let vtep = hosts.vtep(0, config);
    hosts.hosts[1].ip("addr add 10.9.0.66/24 dev eth0");
    let (peer, stranger) =
        hosts.hosts[1].within(|| (UdpSocket::bind((HOST[1], 0)).unwrap(), UdpSocket::bind(("10.9.0.66", 0)).unwrap()));
    let frame = |vni: u32| {
        let mut datagram = Header { vni }.to_bytes().to_vec();
        datagram.extend([0xff; 6]);
        datagram.extend([2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
        datagram.resize(8 + 60, 0);
        datagram
    };
    let to = (HOST[0], 4789);
    let heard = vm.received("eth0").1;
    peer.send_to(&frame(100)[..7], to).unwrap();
    peer.send_to(&frame(100)[..15], to).unwrap();
    let mut no_flag = frame(100);
    no_flag[0] = 0xf7;
    peer.send_to(&no_flag, to).unwrap();
    peer.send_to(&frame(101), to).unwrap();
    stranger.send_to(&frame(100), to).unwrap();
    let drops = ["malformed", "inner_malformed", "no_vni_flag", "unknown_vni", "unknown_peer"];
    wait_until("all are counted", || drops.iter().map(|name| vtep.count("frames", name)).sum::<u64>() >= 5);
    for name in &drops[2..] {
        assert_eq!(vtep.count("frames", name), 1, "{name}");
    }
    assert_eq!(vm.received("eth0").1, heard, "none came through");
    // Reserved bits are ignored on receipt (RFC 7348 section 5).
    let mut reserved = frame(100);
    (reserved[0], reserved[1], reserved[7]) = (0xff, 0x55, 0xaa);
    peer.send_to(&reserved, to).unwrap();
    wait_until("it comes through", || vm.received("eth0").1 == heard + 1);
    vtep.finish();
}
