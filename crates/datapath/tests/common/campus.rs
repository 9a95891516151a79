//! The campus of the TRILL papers: S1 and S2, each linked to S3, S4, S5 and S6; a host at S1, another there, one at S2. All
//! in namespaces of their own, with static tables instead of a control plane. S6 is the root of the tree.

use std::path::PathBuf;
use std::time::Duration;

use weft_datapath::offload::{self, Offload};
use weft_datapath::trill::{
    Elision, Fib, Hop, OwnTrees, PortConfig, PortKind, RBridgeConfig, RBridgeDatapath, Tree, XdpMode,
};
use weft_wire::ethernet::MacAddress;
use weft_wire::vlan::VlanSet;

use super::available;
use super::netns::{Namespace, link};

pub const VLAN: u16 = 10;
pub const HOST: u8 = 10;
pub const SECOND_HOST: u8 = 11;
pub const ADDRESSES: [&str; 3] = ["10.0.10.1", "10.0.10.2", "10.0.10.3"];

pub fn nickname(rbridge: usize) -> u16 {
    0x0100 + rbridge as u16
}

/// Of the port of `rbridge` (1 to 6) towards `towards`, or of a host (7 to 9).
pub fn mac(rbridge: usize, towards: usize) -> MacAddress {
    MacAddress([0x02, 0x51, 0, 0, rbridge as u8, towards as u8])
}

pub fn interface(towards: usize) -> String {
    format!("p{towards}")
}

/// Hosts a and c at S1, b at S2.
pub struct Campus {
    /// Of all links between switches.
    pub elision: Elision,
    /// CPUs that every switch spreads its links' frames over.
    pub spread: Vec<u32>,
    pub switches: Vec<Namespace>,
    pub hosts: [Namespace; 3],
    pub mtu: u32,
}

const OUTER: [usize; 2] = [1, 2];
const MIDDLE: [usize; 4] = [3, 4, 5, 6];
const HOSTS: [(usize, u8); 3] = [(1, HOST), (2, HOST), (1, SECOND_HOST)];

impl Campus {
    /// `mtu`: of the hosts; links take what TRILL adds as well.
    pub fn new(test: &str, mtu: u32) -> Self {
        let node = |name: &str| {
            let namespace = Namespace::new(test, name);
            // Else frames would be about that nobody sent on purpose.
            for scope in ["all", "default"] {
                namespace.sysctl(&format!("net.ipv6.conf.{scope}.disable_ipv6"), "1");
            }
            namespace
        };
        let switches: Vec<Namespace> = (1..=6).map(|n| node(&format!("s{n}"))).collect();
        let campus =
            Self { switches, hosts: ["a", "b", "c"].map(node), mtu, elision: Elision::Off, spread: Vec::new() };
        for outer in OUTER {
            for middle in MIDDLE {
                let ends = (campus.switch(outer), campus.switch(middle));
                link((ends.0, &interface(middle)), (ends.1, &interface(outer)), mtu + 64);
                campus.address(outer, middle);
                campus.address(middle, outer);
            }
        }
        for (n, (switch, port)) in HOSTS.into_iter().enumerate() {
            campus.connect_host(n, switch, port);
        }
        campus
    }

    pub fn switch(&self, number: usize) -> &Namespace {
        &self.switches[number - 1]
    }

    fn address(&self, switch: usize, towards: usize) {
        let mac = mac(switch, towards).0.map(|byte| format!("{byte:02x}")).join(":");
        self.switch(switch).ip(&format!("link set dev {} address {mac}", interface(towards)));
    }

    fn connect_host(&self, n: usize, switch: usize, port: u8) {
        let host = &self.hosts[n];
        link((host, "eth0"), (self.switch(switch), &interface(port.into())), self.mtu);
        self.address(switch, port.into());
        host.ip(&format!("addr add {}/24 dev eth0", ADDRESSES[n]));
        host.enter(|| {
            for what in [Offload::TxChecksum, Offload::Tso, Offload::Gso] {
                offload::set("eth0", what, false).expect("veth can do without");
            }
            // So that the host's interface polls and takes what is redirected to it.
            offload::set("eth0", Offload::Gro, true).expect("veth can join frames");
        });
    }

    /// The ports of a switch: number, interface, and what is behind it.
    fn ports(&self, switch: usize) -> Vec<(u8, PortKind)> {
        let neighbors: &[usize] = if switch <= 2 { &MIDDLE } else { &OUTER };
        let link = |towards: &usize| {
            let neighbor = Some(mac(*towards, switch));
            (*towards as u8, PortKind::Link { designated_vlan: 1, neighbor, elision: self.elision })
        };
        let hosts = HOSTS.iter().filter(|(at, _)| *at == switch).map(|(_, port)| (*port, PortKind::access(VLAN)));
        neighbors.iter().map(link).chain(hosts).collect()
    }

    /// Loads, or takes over, the data path of one switch and attaches its ports; what it forwards by is not told yet.
    pub fn load(&self, switch: usize, mode: XdpMode, pin_dir: Option<PathBuf>) -> Option<RBridgeDatapath> {
        available(self.switch(switch).enter(|| {
            let (hash_seed, spread) = (switch as u32 * 0x9e37, self.spread.clone());
            let config = RBridgeConfig { hash_seed, mode, spread, pin_dir, ..RBridgeConfig::default() };
            let mut datapath = RBridgeDatapath::load(&config)?;
            for (number, kind) in self.ports(switch) {
                let mtu = if matches!(kind, PortKind::Link { .. }) { self.mtu + 64 } else { self.mtu };
                let config =
                    PortConfig { interface: interface(number.into()), mac: mac(switch, number.into()), mtu, kind };
                datapath.add_port(number, &config)?;
            }
            Ok(datapath)
        }))
    }

    /// All six with their tables, S1 first.
    pub fn attach(&self, mode: XdpMode) -> Option<Vec<RBridgeDatapath>> {
        let mut all = Vec::new();
        for switch in 1..=6 {
            let mut datapath = self.load(switch, mode, None)?;
            datapath.change(|fib| tables(fib, switch)).unwrap();
            datapath.maps().tick(1).unwrap();
            all.push(datapath);
        }
        // Interfaces with a program come up anew; what is redirected before that is lost.
        for switch in 1..=6 {
            self.ports(switch).iter().for_each(|(port, _)| self.switch(switch).wait_up(&interface((*port).into())));
        }
        std::thread::sleep(Duration::from_millis(50));
        Some(all)
    }
}

/// What the control plane would tell: the vectors of RFC 6325 for this campus with S6 as root. Everybody is interested in
/// the VLAN but S4 and S5, which are leaves and are pruned.
pub fn tables(fib: &mut Fib, switch: usize) {
    let hop = |towards: usize| Hop { port: towards as u8, mac: mac(towards, switch) };
    fib.nickname = Some(nickname(switch));
    let through = |to: usize| -> Vec<Hop> {
        match (switch, to) {
            (1, 2) | (2, 1) => MIDDLE.map(hop).into(),
            (1 | 2, _) => vec![hop(to)],
            (_, 1 | 2) => vec![hop(to)],
            _ => OUTER.map(hop).into(),
        }
    };
    fib.routes = (1..=6).filter(|to| *to != switch).map(|to| (nickname(to), through(to))).collect();
    // S1 - S6 - S2, and S3, S4, S5 at S1.
    let via = |to: usize| match (switch, to) {
        (1, 2) => 6,
        (1, to) => to,
        (2, _) => 6,
        (6, 2) => 2,
        _ => 1,
    };
    let branches: Vec<usize> = match switch {
        1 => MIDDLE.into(),
        2 => vec![6],
        6 => OUTER.into(),
        _ => vec![1],
    };
    let interested =
        |port: usize| if switch == 1 && [4, 5].contains(&port) { VlanSet::default() } else { VlanSet::all() };
    let tree = Tree {
        hop_count: 8,
        branches: branches.into_iter().map(|port| (port as u8, interested(port))).collect(),
        listeners: std::collections::BTreeMap::new(),
        rpf: (1..=6).filter(|from| *from != switch).map(|from| (nickname(from), via(from) as u8)).collect(),
    };
    fib.trees = [(nickname(6), tree)].into();
    fib.own_trees = OwnTrees::of([nickname(6)]);
}
