//! A trunk: VLANs of one port in several segments, changed while frames pass, and taken over at a restart.

use std::time::{Duration, Instant};

use weft_node::vtep::protocol::{Answer, Item, Request, Shown, What};
use weft_node::vtep::{EntryTable, PortTable, VtepConfig};
use weft_wire::vlan::VlanId;

use crate::bed::{HOST, Hosts, port, segment};
use crate::common::{PATIENCE, wait_until};
use crate::net::tap::Tap;
use crate::net::{Namespace, Pins, link};

const STATION: [u8; 6] = [2, 0, 0, 0, 0, 1];
const MARK: [u8; 8] = *b"trunk-vm";

fn trunk(vlans: &[&str]) -> PortTable {
    PortTable { vni: None, vlans: vlans.iter().map(|text| (*text).to_owned()).collect(), ..port("tr", 0) }
}

/// A trunk `tr` of the first host; the second host has devices of the kernel for two VNIs.
struct Bed {
    hosts: Hosts,
    config: VtepConfig,
    station: Tap,
    devices: [Tap; 2],
    _vms: Namespace,
}

const VNIS: [i64; 2] = [100, 200];

fn bed(test: &'static str) -> Option<Bed> {
    let hosts = Hosts::new(test)?;
    let vms = Namespace::new(test, "vms");
    link((&hosts.hosts[0], "tr"), (&vms, "eth0"), 1500);
    for vni in VNIS {
        hosts.kernel_vxlan(vni as u32, &format!("remote {}", HOST[0]), &format!("192.168.{vni}.2/24"));
    }
    let mut config = hosts.config(0);
    config.vni = VNIS.map(segment).to_vec();
    config.port = vec![trunk(&["10=100"])];
    let devices = VNIS.map(|vni| Tap::open(&hosts.hosts[1], &format!("vx{vni}"), false));
    let station = Tap::open(&vms, "eth0", false);
    Some(Bed { hosts, config, station, devices, _vms: vms })
}

impl Bed {
    /// Which of the devices a frame of this VLAN comes out of; of none, if none has it when the time is over.
    fn comes_out_in(&mut self, time: Duration, vlan: u16, turn: u8) -> Option<i64> {
        let mark = [&MARK[..], &[turn]].concat();
        let mut frame = [&[0xff; 6][..], &STATION, &[0x88, 0xb5], &mark].concat();
        frame.resize(60, 0);
        self.station.send(&VlanId::new(vlan).unwrap().tag(&frame));
        let sent = Instant::now();
        while sent.elapsed() < time {
            for (device, vni) in self.devices.iter_mut().zip(VNIS) {
                while let Some(seen) = device.poll() {
                    if seen == frame {
                        return Some(vni);
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    fn comes_out(&mut self, vlan: u16, turn: u8) -> Option<i64> {
        self.comes_out_in(PATIENCE, vlan, turn)
    }

    fn is_dropped(&mut self, vlan: u16, turn: u8) -> bool {
        self.comes_out_in(Duration::from_millis(300), vlan, turn).is_none()
    }
}

#[test]
fn a_trunk_grows_and_shrinks_and_outlives_the_daemon() {
    let Some(mut bed) = bed("trunk") else { return };
    let pins = Pins::new(bed.hosts.dir.path());
    bed.config.pin_dir = Some(pins.dir("vtep"));
    let vtep = bed.hosts.vtep(0, bed.config.clone());
    assert_eq!(bed.comes_out(10, 1), Some(100));
    vtep.add(Item::Port(trunk(&["20-20=200-200"])));
    assert_eq!((bed.comes_out(10, 2), bed.comes_out(20, 2)), (Some(100), Some(200)));
    let refused = vtep.refused(Request::Add(Item::Port(trunk(&["20=100"]))));
    assert!(refused.contains("VLAN 20 of `tr` is in VNI 200 already and cannot be in VNI 100 as well"), "{refused}");
    let behind = |vlan| EntryTable {
        vni: 200,
        mac: "02:00:00:00:00:09".to_owned(),
        peer: None,
        port: Some("tr".to_owned()),
        vlan,
        ip: None,
    };
    let refused = vtep.refused(Request::Add(Item::Entry(behind(None))));
    assert!(refused.contains("VNI 200 is VLAN 20 of port `tr`; say so (vlan = 20)"), "{refused}");
    vtep.add(Item::Entry(behind(Some(20))));
    let places = |rows: Vec<weft_node::vtep::protocol::FdbRow>| {
        let mut places: Vec<_> = rows.into_iter().map(|row| (row.vni, row.mac, row.to, row.origin)).collect();
        places.sort();
        places
    };
    let text = |text: &str| text.to_owned();
    let station = text("02:00:00:00:00:01");
    let expected = [
        (100, station.clone(), text("tr.10"), text("learned")),
        (200, station.clone(), text("tr.20"), text("learned")),
        (200, text("02:00:00:00:00:09"), text("tr.20"), text("static")),
    ];
    let known = || places(vtep.fdb()).into_iter().filter(|row| row.2.starts_with("tr")).collect::<Vec<_>>();
    assert_eq!(known(), expected);
    let Shown::Vnis(rows) = vtep.show(What::Vni) else { panic!("segments were asked for") };
    assert_eq!(rows.iter().map(|row| row.ports.join(" ")).collect::<Vec<_>>(), ["tr.10", "tr.20"]);
    let Answer::Config(config) = vtep.ask(Request::Config) else { panic!("the settings were asked for") };
    let config: VtepConfig = toml::from_str(&config).unwrap();
    assert_eq!(config.port, [trunk(&["10=100", "20=200"])]);
    vtep.finish();

    assert_eq!(bed.comes_out(20, 3), Some(200), "it works without the daemon");
    let vtep = bed.hosts.vtep(0, config);
    let known: Vec<_> = places(vtep.fdb()).into_iter().filter(|row| row.2.starts_with("tr")).collect();
    assert_eq!(known, expected);
    let refused = vtep.refused(Request::Remove(Item::Port(trunk(&["10-20"]))));
    assert!(refused.contains("VLAN 11 of `tr` is in no VNI"), "{refused}");
    vtep.remove(Item::Port(trunk(&["20"])));
    assert!(bed.is_dropped(20, 4));
    assert_eq!(bed.comes_out(10, 4), Some(100));
    wait_until("the drop is counted", || vtep.count("frames", "unknown_vlan") == 1);
    assert!(vtep.fdb().iter().all(|row| row.to != "tr.20"), "what was behind the VLAN went with it");
    vtep.remove(Item::Port(trunk(&[])));
    assert!(bed.is_dropped(10, 5));
    vtep.stop();
    assert!(!pins.dir("vtep").exists(), "no pin is left");
}
