//! A VTEP's settings: what is refused, one change at a time, and the steps from any settings to any others, which a strict
//! model of the data path takes in order.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use rand::Rng;
use rand_pcg::Pcg64;
use weft_control::vtep::{
    Change, Entry, Flood, Host, Operation, Port, Segment, Settings, Tagged, To, VlanVnis, Vni, VniRange, difference,
};
use weft_wire::ethernet::MacAddress;
use weft_wire::vlan::VlanId;

const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

fn vni(number: u32) -> Vni {
    Vni::new(number).unwrap()
}

fn vlan(number: u16) -> VlanId {
    VlanId::new(number).unwrap()
}

fn peer(k: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 10 + k)
}

fn mac(k: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, k])
}

fn host() -> Host {
    let mtu = [("eth0", 1550), ("eth1", 9000), ("vm0", 1500), ("vm1", 1500), ("vm2", 1496), ("vm3", 1501)];
    let mtu = mtu.into_iter().map(|(name, mtu)| (name.to_owned(), mtu)).collect();
    Host { local: LOCAL, uplinks: vec!["eth0".to_owned(), "eth1".to_owned()], mtu }
}

/// Two segments, two ports, two peers, an entry.
fn settings() -> Settings {
    let port = |number| Port::access(vni(number));
    Settings {
        vnis: [1, 2].map(|number| (vni(number), Segment::default())).into(),
        ports: [("vm0".to_owned(), port(1)), ("vm1".to_owned(), port(2))].into(),
        peers: [peer(0), peer(1)].into(),
        entries: [((vni(1), mac(1)), Entry { to: To::Peer(peer(0)), ip: None })].into(),
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_remedy() {
    assert_eq!(settings().check(&host()), Ok(()));
    let port = |number, tagged| Port { tagged, ..Port::access(vni(number)) };
    let trunk = |of, number| Port { vlans: [(vlan(of), vni(number))].into(), ..Port::default() };
    type Spoil = Box<dyn Fn(&mut Settings)>;
    let entry = |number: u32, k: u8, to: To, ip: Option<Ipv4Addr>| -> Spoil {
        Box::new(move |settings| {
            settings.entries.insert((vni(number), mac(k)), Entry { to: to.clone(), ip });
        })
    };
    let add_port = |name: &'static str, port: Port| -> Spoil {
        Box::new(move |settings| {
            settings.ports.insert(name.to_owned(), port.clone());
        })
    };
    let add_peer = |peer: Ipv4Addr| -> Spoil {
        Box::new(move |settings| {
            settings.peers.insert(peer);
        })
    };
    let flood = |flood: Flood| -> Spoil {
        Box::new(move |settings| {
            settings.vnis.insert(vni(1), Segment { flood: flood.clone(), ..Segment::default() });
        })
    };
    let to = || To::Peer(peer(0));
    let cases: Vec<(Spoil, &str, &str)> = vec![
        (add_peer(LOCAL), "peers", "is this VTEP itself"),
        (add_peer(Ipv4Addr::new(239, 1, 1, 1)), "peers", "cannot be the address"),
        (add_peer(Ipv4Addr::UNSPECIFIED), "peers", "cannot be the address"),
        (add_peer(Ipv4Addr::LOCALHOST), "peers", "cannot be the address"),
        (flood(Flood::List([peer(7)].into())), "flood", "10.0.0.17 is no peer"),
        (flood(Flood::Group(peer(1))), "flood", "no multicast address"),
        (
            Box::new(|settings| {
                let members = Some([peer(0), peer(7)].into());
                settings.vnis.insert(vni(1), Segment { members, ..Segment::default() });
            }),
            "members",
            "10.0.0.17 is no peer",
        ),
        (
            Box::new(|settings| {
                let quiet = Segment { broadcast_per_s: Some(0), ..Segment::default() };
                settings.vnis.insert(vni(1), quiet);
            }),
            "broadcast_per_s",
            "0 leaves no ARP",
        ),
        (
            add_port("vm3", port(1, Tagged::Drop)),
            "port",
            "MTU 1501 and VXLAN adds 50 bytes, but uplink `eth0` carries 1550",
        ),
        (add_port("vm3", port(1, Tagged::Drop)), "port", "ip link set vm3 mtu 1500"),
        (add_port("vm0", port(1, Tagged::Keep)), "port", "adds 54 bytes"),
        (add_port("vm9", port(1, Tagged::Drop)), "port", "no interface `vm9`"),
        (add_port("eth1", port(1, Tagged::Drop)), "port", "is an uplink"),
        (add_port("vm2", port(3, Tagged::Drop)), "port", "add VNI 3 first"),
        (add_port("vm2", Port::default()), "port", "is in no segment"),
        (add_port("vm2", trunk(10, 3)), "port", "add VNI 3 first"),
        (add_port("vm2", Port { tagged: Tagged::Keep, ..trunk(10, 1) }), "port", "cannot be kept as well"),
        (add_port("vm3", trunk(10, 1)), "port", "VXLAN adds 50 bytes"),
        (entry(2, 2, To::Vlan("vm1".to_owned(), vlan(9)), None), "entry", "port `vm1.9` is in no VNI"),
        (entry(3, 1, to(), None), "entry", "no VNI 3"),
        (entry(1, 2, To::Peer(peer(5)), None), "entry", "is no peer"),
        (entry(1, 2, To::Port("vm1".to_owned()), None), "entry", "port `vm1` is in VNI 2"),
        (entry(1, 2, To::Port("vm2".to_owned()), None), "entry", "no access port"),
        (entry(1, 2, to(), Some(Ipv4Addr::BROADCAST)), "entry", "no single station"),
        (
            Box::new(|settings| {
                let group = MacAddress([1, 0, 0x5e, 0, 0, 1]);
                settings.entries.insert((vni(1), group), Entry { to: To::Peer(peer(0)), ip: None });
            }),
            "entry",
            "no single station",
        ),
        (
            Box::new(|settings| {
                let ip = Some(Ipv4Addr::new(192, 168, 0, 1));
                for k in [2, 3] {
                    settings.entries.insert((vni(1), mac(k)), Entry { to: To::Peer(peer(0)), ip });
                }
            }),
            "entry",
            "an address has one MAC",
        ),
        (
            Box::new(|settings| settings.peers.extend((0..200).map(|k| Ipv4Addr::new(10, 1, 0, k)))),
            "flood",
            "202 peers are more than 128",
        ),
    ];
    for (spoil, setting, why) in cases {
        let mut settings = settings();
        spoil(&mut settings);
        let fault = settings.check(&host()).expect_err(why);
        assert!(fault.setting == setting && fault.why.contains(why), "{fault}; wanted {setting}: {why}");
        assert!(!fault.to_string().contains('\n'));
    }
    let no_uplink = Host { uplinks: vec!["eth9".to_owned()], ..host() };
    assert!(settings().check(&no_uplink).unwrap_err().why.contains("no interface `eth9`"));
    let mut tagged = settings();
    tagged.ports.insert("vm2".to_owned(), port(1, Tagged::Keep));
    assert_eq!(tagged.check(&host()), Ok(()), "1496 and a tag fit 1550");
}

#[test]
fn one_change_at_a_time() {
    let now = settings();
    let range = |text: &str| text.parse::<VniRange>().unwrap();
    let port = |number| Port::access(vni(number));
    for (change, why) in [
        (Change::AddVnis(range("2-9"), Segment::default()), "VNI 2 exists"),
        (Change::RemoveVnis(range("1")), "port `vm0` is in VNI 1"),
        (Change::RemoveVnis(range("5")), "no VNI 5"),
        (Change::AddPort("vm0".to_owned(), port(2)), "is in VNI 1 already and cannot be in VNI 2"),
        (Change::AddPort("vm0".to_owned(), port(1)), "is in VNI 1 already"),
        (Change::RemovePort("vm7".to_owned()), "no access port"),
        (Change::AddPeer(peer(0)), "is a peer already"),
        (Change::RemovePeer(peer(5)), "is no peer"),
        (Change::RemovePeer(peer(0)), "entry 02:00:00:00:00:01 in VNI 1 names"),
        (Change::RemoveEntry(vni(2), mac(1)), "no entry"),
    ] {
        let fault = now.changed(change.clone()).expect_err(why);
        assert!(fault.why.contains(why), "{change:?}: {fault}");
    }
    let changes = [
        Change::AddVnis(range("10-12"), Segment { flood: Flood::List([peer(1)].into()), ..Segment::default() }),
        Change::AddPort("vm2".to_owned(), port(11)),
        Change::SetEntry(vni(11), mac(5), Entry { to: To::Port("vm2".to_owned()), ip: None }),
        Change::SetEntry(vni(12), mac(5), Entry { to: To::Peer(peer(1)), ip: None }),
        Change::RemoveEntry(vni(12), mac(5)),
        Change::RemovePort("vm2".to_owned()),
        Change::RemovePeer(peer(1)),
        Change::AddPeer(peer(1)),
    ];
    let mut changed = now.clone();
    for change in changes {
        changed = changed.changed(change).unwrap();
        assert_eq!(changed.check(&host()), Ok(()));
    }
    assert_eq!(changed.vnis[&vni(10)].flood, Flood::List(BTreeSet::new()), "a peer that went is in no list");
    changed = changed.changed(Change::RemoveVnis(range("10-12"))).unwrap();
    assert_eq!(changed, now);
}

#[test]
fn a_trunk_has_one_segment_for_each_vlan() {
    let now = settings();
    let trunk = |texts: &[&str]| {
        let vlans = texts.iter().flat_map(|text| text.parse::<VlanVnis>().unwrap().iter()).collect();
        Port { vlans, ..Port::default() }
    };
    let add = |texts: &[&str]| Change::AddPort("vm2".to_owned(), trunk(texts));
    let remove = |of: &[u16]| Change::RemoveVlans("vm2".to_owned(), of.iter().map(|of| vlan(*of)).collect());
    let now = now.changed(add(&["10=1", "20=2"])).unwrap();
    assert_eq!(now.check(&host()), Ok(()));
    let behind = |place| Change::SetEntry(vni(2), mac(9), Entry { to: place, ip: None });
    let now = now.changed(behind(To::Vlan("vm2".to_owned(), vlan(20)))).unwrap();
    assert_eq!(now.check(&host()), Ok(()));
    for (change, why) in [
        (add(&["20=1"]), "VLAN 20 of `vm2` is in VNI 2 already and cannot be in VNI 1 as well"),
        (add(&["10=1"]), "VLAN 10 of `vm2` is in VNI 1 already"),
        (add(&[]), "is an access port already"),
        (remove(&[30]), "VLAN 30 of `vm2` is in no VNI"),
        (remove(&[10, 20]), "would be in no VNI any more; remove the port"),
        (Change::RemoveVnis("2".parse().unwrap()), "is in VNI 2; remove the port first"),
        (Change::RemoveVlans("vm7".to_owned(), BTreeSet::new()), "`vm7` is no access port"),
    ] {
        let fault = now.changed(change.clone()).expect_err(why);
        assert!(fault.why.contains(why), "{change:?}: {fault}");
    }
    let wrong = now.changed(behind(To::Port("vm2".to_owned()))).unwrap().check(&host()).unwrap_err();
    assert!(wrong.why.contains("VNI 2 is VLAN 20 of port `vm2`; say so (vlan = 20)"), "{wrong}");
    let wrong = now.changed(behind(To::Vlan("vm2".to_owned(), vlan(10)))).unwrap().check(&host()).unwrap_err();
    assert!(wrong.why.contains("vlan = 20"), "{wrong}");

    // More VLANs and frames without a tag come to the trunk that is there; what was on it is not touched.
    let more = now.changed(add(&["30=1"])).unwrap();
    let more = more.changed(Change::AddPort("vm2".to_owned(), Port::access(vni(1)))).unwrap();
    assert_eq!(more.check(&host()), Ok(()));
    assert_eq!(difference(&now, &more), [Operation::AttachPort("vm2".to_owned(), more.ports["vm2"].clone())]);
    let less = more.changed(remove(&[20, 30])).unwrap();
    assert!(less.entries.keys().all(|key| *key != (vni(2), mac(9))), "what was behind the VLAN goes with it");
    assert_eq!(less.ports["vm2"].circuits().collect::<Vec<_>>(), [(None, vni(1)), (Some(vlan(10)), vni(1))]);
    assert!(less.changed(remove(&[10])).is_ok(), "frames without a tag are left");
}

/// A data path that takes no step that it cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    vnis: BTreeMap<Vni, (Segment, BTreeSet<Ipv4Addr>)>,
    ports: BTreeMap<String, Port>,
    peers: BTreeSet<Ipv4Addr>,
    entries: BTreeMap<(Vni, MacAddress), To>,
    arp: BTreeMap<(Vni, Ipv4Addr), MacAddress>,
}

impl Model {
    fn take(&mut self, step: &Operation) {
        match step {
            Operation::DetachPort(name) => {
                assert!(self.ports.remove(name).is_some());
                self.entries.retain(|_, to| to.port() != Some(name.as_str()));
            }
            Operation::RemoveEntry(vni, mac) => {
                // One behind a port went with it.
                self.entries.remove(&(*vni, *mac));
                assert!(self.vnis.contains_key(vni));
            }
            Operation::RemoveArp(vni, ip) => assert!(self.arp.remove(&(*vni, *ip)).is_some()),
            Operation::RemoveVni(vni) => {
                assert!(self.vnis.remove(vni).is_some());
                let in_one = |port: &Port| !port.is_trunk() && port.vni == Some(*vni);
                assert!(!self.ports.values().any(in_one), "its ports went before; VLANs go with it");
                self.entries.retain(|(of, _), _| of != vni);
                self.arp.retain(|(of, _), _| of != vni);
            }
            Operation::AddPeer(peer) => assert!(self.peers.insert(*peer)),
            Operation::RemovePeer(peer) => {
                assert!(self.peers.remove(peer));
                assert!(self.vnis.values().all(|(_, copies)| !copies.contains(peer)), "no list names it");
            }
            Operation::SetVni(vni, segment, copies) => {
                assert!(copies.is_subset(&self.peers));
                self.vnis.insert(*vni, (segment.clone(), copies.clone()));
            }
            Operation::AttachPort(name, port) => {
                assert!(port.circuits().all(|(_, vni)| self.vnis.contains_key(&vni)));
                let before = self.ports.insert(name.clone(), port.clone()).unwrap_or_default();
                assert!(before == Port::default() || port.is_trunk(), "one segment for a port");
                let stays = |key: &(Vni, MacAddress), to: &To| match to {
                    To::Vlan(of, vlan) if of == name => port.vlans.get(vlan) == Some(&key.0),
                    To::Port(of) if of == name => port.vni == Some(key.0),
                    _ => true,
                };
                self.entries.retain(|key, to| stays(key, to));
            }
            Operation::SetEntry(vni, mac, entry) => {
                assert!(self.vnis.contains_key(vni));
                match &entry.to {
                    To::Peer(peer) => assert!(self.peers.contains(peer)),
                    To::Port(name) => assert_eq!(self.ports[name].vni, Some(*vni)),
                    To::Vlan(name, vlan) => assert_eq!(self.ports[name].vlans[vlan], *vni),
                }
                self.entries.insert((*vni, *mac), entry.to.clone());
                if let Some(ip) = entry.ip {
                    self.arp.insert((*vni, ip), *mac);
                }
            }
        }
    }

    fn built(settings: &Settings) -> Self {
        let copies = |segment| settings.copies_of(segment);
        Self {
            vnis: settings.vnis.iter().map(|(vni, segment)| (*vni, (segment.clone(), copies(segment)))).collect(),
            ports: settings.ports.clone(),
            peers: settings.peers.clone(),
            entries: settings.entries.iter().map(|(key, entry)| (*key, entry.to.clone())).collect(),
            arp: settings.entries.iter().filter_map(|((vni, mac), entry)| Some(((*vni, entry.ip?), *mac))).collect(),
        }
    }
}

/// Settings that could be; not all of them are valid.
fn random(rng: &mut Pcg64) -> Settings {
    let mut below = |bound: u64| rng.next_u64() % bound;
    let mut settings = Settings::default();
    settings.peers.extend((0..4).filter(|_| below(2) == 0).map(peer));
    let peers: Vec<Ipv4Addr> = settings.peers.iter().copied().collect();
    for number in 1..=5 {
        if below(3) == 0 {
            continue;
        }
        let flood = match below(4) {
            0 => Flood::Peers,
            1 => Flood::List(peers.iter().copied().filter(|_| below(2) == 0).collect()),
            2 => Flood::Group(Ipv4Addr::new(239, 0, 0, 1)),
            _ => Flood::Nowhere,
        };
        let members = (below(3) == 0).then(|| peers.iter().copied().filter(|_| below(2) == 0).collect());
        let age_s = below(2) as u32 * 10;
        settings.vnis.insert(vni(number), Segment { flood, members, age_s, ..Segment::default() });
    }
    let vnis: Vec<Vni> = settings.vnis.keys().copied().collect();
    if vnis.is_empty() {
        return settings;
    }
    for k in 0..3 {
        if below(4) > 0 {
            let tagged = if k == 2 && below(2) == 0 { Tagged::Keep } else { Tagged::Drop };
            let mut any = || vnis[below(vnis.len() as u64) as usize];
            let vlans: BTreeMap<VlanId, Vni> = [10, 20].map(|of| (vlan(of), any())).into();
            let vni = any();
            let port = match below(4) {
                0 => Port { vlans, ..Port::default() },
                1 => Port { vlans: vlans.into_iter().take(1).collect(), ..Port::access(vni) },
                _ => Port { tagged, ..Port::access(vni) },
            };
            settings.ports.insert(format!("vm{k}"), port);
        }
    }
    for k in 0..6 {
        let vni = vnis[below(vnis.len() as u64) as usize];
        let to = if below(2) == 0 && !peers.is_empty() {
            To::Peer(peers[below(peers.len() as u64) as usize])
        } else {
            To::at(&format!("vm{}", below(3)), [None, None, Some(vlan(10)), Some(vlan(20))][below(4) as usize])
        };
        let ip = (below(2) == 0).then(|| Ipv4Addr::new(192, 168, 0, below(4) as u8));
        settings.entries.insert((vni, mac(k)), Entry { to, ip });
    }
    settings
}

fn valid(rng: &mut Pcg64) -> Settings {
    loop {
        let settings = random(rng);
        if settings.check(&host()).is_ok() {
            return settings;
        }
    }
}

#[test]
fn the_steps_lead_from_any_settings_to_any_others_and_touch_nothing_else() {
    weft_needs::each_seed("vtep-settings", 0..2000, |seed| {
        let mut rng = Pcg64::new(seed.into(), 7);
        let mut before = Settings::default();
        let mut model = Model::default();
        for _ in 0..6 {
            let after = valid(&mut rng);
            let steps = difference(&before, &after);
            steps.iter().for_each(|step| model.take(step));
            assert_eq!(model, Model::built(&after), "seed {seed}: {before:?} -> {after:?}: {steps:?}");
            for step in &steps {
                match step {
                    Operation::SetVni(vni, ..) => {
                        let copies = |settings: &Settings| {
                            settings.vnis.get(vni).map(|segment| (segment.clone(), settings.copies_of(segment)))
                        };
                        assert_ne!(copies(&before), copies(&after), "seed {seed}: {step:?}");
                    }
                    Operation::DetachPort(name) | Operation::AttachPort(name, _) => {
                        assert_ne!(before.ports.get(name), after.ports.get(name), "seed {seed}: {step:?}");
                    }
                    _ => {}
                }
            }
            assert_eq!(difference(&after, &after), []);
            before = after;
        }
    });
}
