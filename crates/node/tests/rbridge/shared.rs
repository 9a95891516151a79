//! Links that RBridges and end stations share: kernel bridges. Each frame of a station arrives once, whoever is DRB or
//! forwarder, and whoever of them dies.
//!
//! S1 to S5 are on the first link, some of them on a second one as well. Of those on a link that serve VLAN 10, S4 is its
//! forwarder, then S1, S5, S2, S3: the order of the hashes of their system IDs (`control::isis::shared::appoint`).

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_datapath::offload::{self, Offload};
use weft_node::rbridge::protocol::{Answer, Request, SharedRow, Shown, What};
use weft_node::rbridge::{self, AuthenticationTable, PortTable, RBridgeConfig, TimingTable};
use weft_wire::ethernet::MacAddress;
use weft_wire::isis::hello::{PortSub, VlanFlags};
use weft_wire::isis::pdu::LanHello;
use weft_wire::isis::{self, NodeId, Pdu, SystemId, Tlv};
use weft_wire::trill::ALL_IS_IS_RBRIDGES;

use crate::bed::{Running, spawn};
use crate::common::{PATIENCE, wait_until};
use crate::forwarding::{A_WHILE, BROADCAST, TEST_TYPE, frame, received};
use crate::net::tap::Tap;
use crate::net::{Namespace, Pins, Process, Stream, link};

pub(crate) const VLAN: u16 = 10;
/// Interface of an RBridge on each link.
pub(crate) const LINKS: [&str; 2] = ["l1", "l2"];

/// Where a station is.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// On a link.
    On(usize),
    /// At an access port.
    At(usize),
}

/// Bridges, and what is at them.
pub(crate) struct Campus {
    pub(crate) bridges: Namespace,
    rbridges: Vec<Namespace>,
    stations: Vec<(String, Place, Namespace)>,
    dir: tempfile::TempDir,
}

pub(crate) fn quiet(test: &str, name: &str) -> Namespace {
    let namespace = Namespace::new(test, name);
    let all = ["all", "default"].map(|scope| format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"));
    namespace.within(|| all.iter().for_each(|path| drop(std::fs::write(path, "1"))));
    namespace
}

impl Campus {
    /// RBridges that are on these links each. `None` where these tests cannot run.
    pub(crate) fn new(test: &str, links: &[&[usize]], stations: &[(&str, Place)]) -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let campus = Self {
            bridges: quiet(test, "br"),
            rbridges: (1..=links.len()).map(|number| quiet(test, &format!("s{number}"))).collect(),
            stations: stations.iter().map(|(name, place)| (name.to_string(), *place, quiet(test, name))).collect(),
            dir: tempfile::tempdir().unwrap(),
        };
        // The first link has no spanning tree: it forwards at once, and passes BPDUs of others on. The second one's bridge says that it
        // is the root, and its ports listen and learn for two seconds each.
        for (bridge, tree) in LINKS.into_iter().zip(["stp_state 0", "stp_state 1 forward_delay 200 hello_time 100"]) {
            campus.bridges.ip(&format!("link add dev {bridge} type bridge {tree} mcast_snooping 0"));
            campus.bridges.ip(&format!("link set dev {bridge} up"));
        }
        for (number, on) in (1..).zip(links) {
            for place in *on {
                let name = format!("s{number}-{place}");
                link((&campus.bridges, &name), (campus.rbridge(number), LINKS[*place]), 1600);
                campus.plug(&name, *place);
            }
        }
        (0..stations.len()).for_each(|station| campus.connect(station));
        Some(campus)
    }

    /// Into a bridge; it takes what is redirected to it.
    pub(crate) fn plug(&self, name: &str, link: usize) {
        self.bridges.within(|| {
            offload::set(name, Offload::Gro, true).expect("veth can join frames");
            offload::set_feature(name, "tx-vlan-hw-insert", false).expect("veth can have tags in frames");
        });
        self.bridges.ip(&format!("link set dev {name} master {}", LINKS[link]));
    }

    fn connect(&self, station: usize) {
        let (name, place, namespace) = &self.stations[station];
        match *place {
            Place::On(on) => {
                link((&self.bridges, name), (namespace, "eth0"), 1600);
                self.plug(name, on);
            }
            Place::At(number) => link((self.rbridge(number), name), (namespace, "eth0"), 1500),
        }
        namespace.ip(&format!("link set dev eth0 mtu 1500 address {}", mac(station)));
        namespace.ip(&format!("addr add {}/24 dev eth0", address(station)));
        namespace.within(|| {
            for what in [Offload::TxChecksum, Offload::Tso, Offload::Gso] {
                offload::set("eth0", what, false).expect("veth can do without");
            }
            offload::set("eth0", Offload::Gro, true).expect("veth can join frames");
        });
    }

    pub(crate) fn rbridge(&self, number: usize) -> &Namespace {
        &self.rbridges[number - 1]
    }

    pub(crate) fn station(&self, station: usize) -> &Namespace {
        &self.stations[station].2
    }

    fn socket(&self, number: usize) -> PathBuf {
        self.dir.path().join(format!("s{number}.sock"))
    }

    /// Silence of a neighbour is known in a fifth of a second where it returns Echoes, and in a second by its Hellos. S1 is the
    /// root of the first tree.
    pub(crate) fn config(&self, number: usize, on: &[usize]) -> RBridgeConfig {
        let mut config = RBridgeConfig::new(format!("s{number}"));
        config.system_id = Some(format!("0200.0000.000{number}"));
        config.nickname = Some(0x100 + number as u16);
        config.root_priority = if number == 1 { 0x9000 } else { 0x8000 };
        config.socket = self.socket(number);
        config.timing = TimingTable {
            hello_ms: Some(200),
            echo_ms: Some(70),
            csnp_ms: Some(500),
            lsp_delay_ms: Some(5),
            lsp_interval_ms: Some(50),
            // A new DRB gives the link another name, which takes several rounds of LSPs until routes lead over it again.
            spf_delay_ms: Some(10),
            spf_interval_ms: Some(50),
            root_change_s: Some(1),
            ..TimingTable::default()
        };
        config.port = on.iter().map(|place| PortTable::shared(LINKS[*place], VLAN)).collect();
        let here = self.stations.iter().filter(|(_, place, _)| matches!(place, Place::At(at) if *at == number));
        config.port.extend(here.map(|(name, ..)| PortTable::access(name, VLAN)));
        config
    }

    pub(crate) fn start(&self, config: &RBridgeConfig, number: usize) -> Running {
        let theirs = config.clone();
        Running::start(self.rbridge(number), config, move || Ok(theirs.clone()))
    }

    /// Waits until spanning tree lets every port of the bridges forward; stations came last.
    fn wait_for_bridges(&self) {
        wait_until("all ports of the bridges forward", || {
            let said = self.bridges.command("bridge").args(["link", "show"]).output().expect("iproute2 is installed");
            let said = String::from_utf8(said.stdout).expect("it prints text");
            said.lines().all(|port| port.contains(" state forwarding "))
        });
    }

    /// Topology changes that the bridge of the second link has heard of by the port of this RBridge, as the kernel counts them.
    fn changes_heard(&self, number: usize) -> u64 {
        let port = format!("s{number}-1");
        let asked = self.bridges.command("ip").args(["link", "xstats", "type", "bridge_slave", "dev", &port]).output();
        let said = String::from_utf8(asked.expect("iproute2 is installed").stdout).expect("it prints text");
        let line = said.split("STP TCN:").nth(1).unwrap_or_else(|| panic!("no count of TCNs: {said}"));
        let count = line.split_whitespace().skip_while(|word| *word != "RX:").nth(1);
        count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no number: {said}"))
    }

    /// What these RBridges say of a link.
    pub(crate) fn said(&self, numbers: &[usize], link: usize) -> Vec<(usize, SharedRow)> {
        let row = |number: &usize| {
            let Ok(answer) = rbridge::ask(&self.socket(*number), &Request::Show(What::Shared)) else { return None };
            let Answer::Shown(Shown::SharedLinks(rows)) = answer else { panic!("{answer:?}") };
            Some((*number, rows.into_iter().find(|row| row.interface == LINKS[link])?))
        };
        numbers.iter().filter_map(row).collect()
    }

    /// Waits until one of them serves the link's stations, the DRB is who it should be, and nobody is inhibited.
    pub(crate) fn wait_for(&self, numbers: &[usize], link: usize, drb: usize, forwarder: usize) {
        wait_until(&format!("S{drb} is DRB of {}, S{forwarder} its forwarder", LINKS[link]), || {
            let said = self.said(numbers, link);
            let are_one = said.iter().all(|(_, row)| row.drb == format!("s{drb}") && row.inhibited.is_empty());
            let serve = said.iter().filter(|(_, row)| !row.carried.is_empty()).map(|(number, _)| *number);
            are_one && said.len() == numbers.len() && serve.eq([forwarder])
        });
    }
}

pub(crate) fn mac(station: usize) -> MacAddress {
    MacAddress([0x02, 0x88, 0, 0, 0, station as u8])
}

fn address(station: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 10, 1 + station as u8)
}

pub(crate) fn wait_for_routes(all: &[Running]) {
    wait_until("all routes are there", || all.iter().all(|running| running.routes().len() == all.len() - 1));
}

/// Sends a broadcast from each station: everybody else has it once, and nobody twice.
pub(crate) fn broadcasts_arrive_once(taps: &mut [Tap]) {
    for from in 0..taps.len() {
        let sent = frame(BROADCAST, mac(from), TEST_TYPE, 60 + from);
        taps[from].send(&sent);
        for (to, tap) in taps.iter_mut().enumerate().filter(|(to, _)| *to != from) {
            assert_eq!(received(tap, 1, PATIENCE), std::slice::from_ref(&sent), "from {from} to {to}");
        }
        for (to, tap) in taps.iter_mut().enumerate() {
            assert_eq!(received(tap, 1, A_WHILE / 3), Vec::<Vec<u8>>::new(), "from {from} to {to} once more");
        }
    }
}

#[test]
fn stations_of_two_shared_links_reach_each_other_once() {
    // Both links have S2 and S3, so whatever both would carry would go round.
    let links: [&[usize]; 3] = [&[0], &[0, 1], &[0, 1]];
    let stations = [("p", Place::On(0)), ("q", Place::On(0)), ("r", Place::On(1)), ("x", Place::At(3))];
    let Some(campus) = Campus::new("shared", &links, &stations) else { return };
    let mut configs: Vec<RBridgeConfig> = (1..=3).map(|number| campus.config(number, links[number - 1])).collect();
    configs[2].port[0].drb_priority = Some(100);
    configs[1].port[1].drb_priority = Some(100);
    let all: Vec<Running> = (1..).zip(&configs).map(|(number, config)| campus.start(config, number)).collect();
    campus.wait_for(&[1, 2, 3], 0, 3, 1);
    campus.wait_for(&[2, 3], 1, 2, 2);
    campus.wait_for_bridges();
    wait_for_routes(&all);

    let mut taps: Vec<Tap> = (0..4).map(|station| Tap::open(campus.station(station), "eth0", false)).collect();
    broadcasts_arrive_once(&mut taps);
    // Bridges hear of who serves stations from now on, and acknowledge it; S3 was alone until its port of the bridge began to forward.
    let heard = || [2, 3].map(|number| campus.changes_heard(number));
    assert!(heard()[0] > 0, "S2 has told of itself: {:?}", heard());
    let before = heard();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(heard(), before, "once it is acknowledged, no more");
    // Now everybody is known everywhere; on a link frames go by themselves.
    for payload in [46, 47, 700, 1500] {
        for (from, to) in [(0, 2), (2, 0), (0, 3), (3, 0), (2, 3), (3, 2), (0, 1)] {
            let sent = frame(mac(to), mac(from), TEST_TYPE, payload);
            taps[from].send(&sent);
            assert_eq!(received(&mut taps[to], 1, PATIENCE), [sent], "{payload} bytes from {from} to {to}");
        }
    }
    for (to, tap) in taps.iter_mut().enumerate() {
        assert_eq!(received(tap, 1, A_WHILE), Vec::<Vec<u8>>::new(), "to {to}, what is for others or comes again");
    }
    assert!(campus.station(0).ping("-c 3 -i 0.05 -W 30 10.0.10.3").contains("3 received"));
    // What is not theirs to carry they see, and count.
    assert!(all[1].count("port l1", "not_forwarder") > 0 && all[2].count("port l2", "not_forwarder") > 0);
    assert!(all[0].count("port l1", "not_forwarder") == 0, "S1 is the forwarder");
    assert!(all[1].count("port l2", "l2_control") > 0, "BPDUs of the same root inhibit nobody");
    assert!(all[2].count("port l1", "not_for_us") == 0, "bridges know where RBridges are");
    every_frame_is_counted(&campus, &all[2], 3);

    // S2 lives on, but leaves the second link: its LSP says so, and S1 forgets who was there before another one serves them.
    let known = || {
        let Shown::Stations(rows) = all[0].show(What::Fdb) else { panic!("no stations") };
        rows.into_iter().find(|row| row.mac == mac(2).to_string()).and_then(|row| row.hostname)
    };
    assert_eq!(known().as_deref(), Some("s2"));
    campus.bridges.ip("link set dev s2-1 down");
    wait_until("S1 forgets a station that was behind S2", || known().as_deref() != Some("s2"));
    assert!(campus.said(&[3], 1)[0].1.carried.is_empty(), "S3 does not serve it yet");
    assert!(all[0].routes().len() == 2, "S2 is still there");
}

/// What the kernel says that came by a link, all of it has an outcome.
fn every_frame_is_counted(campus: &Campus, running: &Running, number: usize) {
    const COPIES: [&str; 3] = ["copy_sent", "copy_delivered", "copy_pruned"];
    const BESIDE: [&str; 7] = ["fdb_full", "port_full", "nickname_full", "fdb_moved", "handed", "copied", "set_missed"];
    let counted = || -> u64 {
        let Shown::Counters(groups) = running.show(What::Counters) else { panic!("no counters") };
        let all = groups["port l1"].iter();
        all.filter(|(name, _)| !COPIES.contains(&&name[..]) && !BESIDE.contains(&&name[..]))
            .map(|(_, count)| count)
            .sum()
    };
    // Frames come at any time; only what is between two equal numbers is compared.
    wait_until("all frames are counted", || {
        let before = campus.rbridge(number).received("l1").1;
        let outcomes = counted();
        campus.rbridge(number).received("l1").1 == before && before >= outcomes && before - outcomes <= FIRST_FRAMES
    });
}

/// Frames before the program was there.
const FIRST_FRAMES: u64 = 40;

/// One flow each way while something happens: what of it never arrived. The sender of datagrams checks that each arrives once.
fn lost_while(campus: &Campus, from: usize, to: usize, happens: impl FnOnce()) -> [(u64, u64); 2] {
    let ping = |count: usize| campus.station(from).ping(&format!("-c {count} -i 0.02 -W 30 {}", address(to)));
    assert!(ping(1).contains("1 received"));
    let there = Stream::start(campus.station(from), campus.station(to), address(to));
    let back = Stream::start(campus.station(to), campus.station(from), address(from));
    happens();
    assert!(ping(50).contains(" received"));
    // Each waits until nothing comes any more.
    std::thread::scope(|scope| [scope.spawn(|| there.end()), scope.spawn(|| back.end())].map(|one| one.join().unwrap()))
}

/// The forwarder, the DRB and one who is neither start anew while their data paths work on: nobody notices (RFC 8706 section 3.3).
#[test]
fn restarts_on_a_shared_link_lose_no_frame() {
    let links: [&[usize]; 3] = [&[0]; 3];
    let stations = [("p", Place::On(0)), ("x", Place::At(2))];
    let Some(campus) = Campus::new("sagain", &links, &stations) else { return };
    let pins = Pins::new(campus.dir.path());
    let config = |number: usize| {
        let mut config = campus.config(number, &[0]);
        config.port[0].drb_priority = Some(if number == 3 { 100 } else { 50 });
        // The DRB wants frames between RBridges to have a tag, which the others find out anew.
        config.port[0].vlans = Some("30".to_owned());
        config.port[0].designated_vlan = (number == 3).then_some(30);
        config.pin_dir = Some(pins.dir(&format!("s{number}")));
        // Neighbours wait six seconds for a daemon that a busy machine starts.
        config.timing.holding_multiplier = Some(30);
        config
    };
    let configs: Vec<RBridgeConfig> = (1..=3).map(config).collect();
    let mut all: Vec<Running> = (1..).zip(&configs).map(|(number, config)| campus.start(config, number)).collect();
    campus.wait_for(&[1, 2, 3], 0, 3, 1);
    wait_for_routes(&all);
    let talk_in = |vlan: u16| campus.said(&[1, 2, 3], 0).iter().all(|(_, row)| row.designated_vlan == vlan);
    assert!(talk_in(30));
    let noticed = |all: &[Running]| all.iter().map(|one| one.count("control", "adjacency_down")).collect::<Vec<_>>();
    for again in 0..3 {
        let mut before = noticed(&all);
        let lost = lost_while(&campus, 0, 1, || {
            all.remove(again).finish();
            std::thread::sleep(A_WHILE);
            all.insert(again, campus.start(&configs[again], again + 1));
            wait_for_routes(&all);
            campus.wait_for(&[1, 2, 3], 0, 3, 1);
            assert!(talk_in(30));
        });
        assert!(lost.iter().all(|(sent, lost)| *sent > 500 && *lost == 0), "S{}: {lost:?}", again + 1);
        before[again] = 0;
        assert_eq!(noticed(&all), before, "S{}: an adjacency was down", again + 1);
    }
}

#[test]
fn who_dies_on_a_shared_link_is_replaced_and_no_frame_comes_twice() {
    let links: [&[usize]; 5] = [&[0]; 5];
    let stations = [("p", Place::On(0)), ("x", Place::At(2))];
    let Some(campus) = Campus::new("sdeath", &links, &stations) else { return };
    let pins = Pins::new(campus.dir.path());
    let mut processes: Vec<Option<Process>> = (1..=5)
        .map(|number| {
            let mut config = campus.config(number, &[0]);
            config.port[0].drb_priority = Some(if number == 5 { 100 } else { 60 - number as u8 });
            // With the DRB the Designated VLAN goes from one with a tag to that without.
            config.port[0].vlans = Some("30".to_owned());
            config.port[0].designated_vlan = (number == 5).then_some(30);
            // What works on without its daemon must end by itself, before another forwarder begins.
            config.pin_dir = (number == 4).then(|| pins.dir("s4"));
            Some(spawn(campus.rbridge(number), &config))
        })
        .collect();
    campus.wait_for(&[1, 2, 3, 4, 5], 0, 5, 4);
    let crash = |process: Option<Process>| process.expect("it runs").crash();

    let drb = processes[4].take();
    let lost = lost_while(&campus, 0, 1, || {
        crash(drb);
        campus.wait_for(&[1, 2, 3, 4], 0, 1, 4);
    });
    eprintln!("the DRB is killed: of {lost:?} datagrams, one in 0.5 ms, there and back, the second number was lost");
    let forwarder = processes[3].take();
    let lost = lost_while(&campus, 0, 1, || {
        crash(forwarder);
        campus.wait_for(&[1, 2, 3], 0, 1, 1);
        assert!(campus.station(0).ping(&format!("-c 5 -i 0.05 -W 30 {}", address(1))).contains("5 received"));
    });
    eprintln!("the forwarder is killed: of {lost:?} datagrams, there and back, the second number was lost");
    let mut taps: Vec<Tap> = (0..2).map(|station| Tap::open(campus.station(station), "eth0", false)).collect();
    broadcasts_arrive_once(&mut taps);
}

fn keys(dir: &Path, number: usize) -> AuthenticationTable {
    use std::os::unix::fs::PermissionsExt;
    let key_file = dir.join(format!("s{number}.keys"));
    std::fs::write(&key_file, format!("1 hmac-sha-256 {}", "0011223344556677".repeat(4))).unwrap();
    std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    AuthenticationTable { key_file, accept_unsigned: false, replay_check: false }
}

/// A Hello of somebody who wants to be DRB, and appoints itself.
fn forged_hello() -> Vec<u8> {
    let source = SystemId([2, 9, 9, 9, 9, 9]);
    let flags = VlanFlags {
        port_id: 1,
        nickname: 0x999,
        outer_vlan: VLAN,
        designated_vlan: VLAN,
        forwarder: true,
        ..VlanFlags::default()
    };
    let tlvs = vec![
        Tlv::Areas(vec![vec![0]]),
        Tlv::Protocols(vec![isis::NLPID_TRILL]),
        Tlv::PortCapability { topology: 0, subs: vec![PortSub::VlanFlags(flags)] },
    ];
    let lan_id = NodeId([2, 9, 9, 9, 9, 9, 1]);
    let hello = LanHello { circuit_type: 1, source, holding_time_s: 30, priority: 127, lan_id, tlvs };
    let mut frame = [&ALL_IS_IS_RBRIDGES.0[..], &mac(0).0, &isis::ETHERTYPE.to_be_bytes()].concat();
    frame.extend(Pdu::LanHello(hello).emit().expect("it fits"));
    frame
}

#[test]
fn without_a_key_nobody_becomes_drb_and_a_new_root_bridge_inhibits_for_a_while() {
    let links: [&[usize]; 2] = [&[0]; 2];
    let Some(campus) = Campus::new("sforged", &links, &[("p", Place::On(0))]) else { return };
    let start = |number| {
        let mut config = campus.config(number, &[0]);
        config.authentication = Some(keys(campus.dir.path(), number));
        config.port[0].drb_priority = Some(60 + number as u8);
        campus.start(&config, number)
    };
    let all: Vec<Running> = (1..=2).map(start).collect();
    campus.wait_for(&[1, 2], 0, 2, 1);
    let tap = Tap::open(campus.station(0), "eth0", false);
    let refused = || -> Vec<u64> {
        let of = |running: &Running| match running.show(What::Adjacency) {
            Shown::Adjacencies(rows) => rows[0].refused,
            other => panic!("{other:?}"),
        };
        all.iter().map(of).collect()
    };
    (0..5).for_each(|_| tap.send(&forged_hello()));
    wait_until("both have refused it", || refused().iter().all(|count| *count >= 5));
    campus.wait_for(&[1, 2], 0, 2, 1);

    // Bridges on the link tell of a root, then of another one: two links may have become one.
    let bpdu = |root: u8| {
        let head = [&[0x01, 0x80, 0xc2, 0, 0, 0][..], &mac(0).0, &[0, 38, 0x42, 0x42, 3, 0, 0, 0, 0, 0]].concat();
        let id = [0x80, 0, 2, 0, 0, 0, 0, root];
        [&head[..], &id, &[0; 4], &id, &[0x80, 1, 0, 0, 20, 0, 2, 0, 15, 0]].concat()
    };
    tap.send(&bpdu(1));
    wait_until("they have seen the BPDU", || all.iter().all(|running| running.count("port l1", "l2_control") >= 1));
    campus.wait_for(&[1, 2], 0, 2, 1);
    let stations = || match all[0].show(What::Fdb) {
        Shown::Stations(rows) => rows.len(),
        other => panic!("{other:?}"),
    };
    tap.send(&frame(BROADCAST, mac(0), TEST_TYPE, 60));
    wait_until("the forwarder knows the station", || stations() == 1);
    tap.send(&bpdu(2));
    wait_until("the forwarder is inhibited", || campus.said(&[1], 0)[0].1.inhibited == VLAN.to_string());
    // Where the station is may have changed when it serves it again (RFC 6325 section 4.8.3).
    assert_eq!(stations(), 0, "it has forgotten the station");
    campus.wait_for(&[1, 2], 0, 2, 1);
}
