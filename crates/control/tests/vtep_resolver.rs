//! Directory-driven forwarding in virtual time: segments ask servers that know who may know what, over a network that loses
//! and delays; nothing of one segment enters another, every request is answered or dropped, and moves arrive.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::{Ipv4Addr, SocketAddrV4};

use rand::Rng;
use rand_pcg::Pcg64;
use weft_control::address::Locator;
use weft_control::agent::{Bounds, DropReason, Timing};
use weft_control::directory::{Batch, Change, KeyRing, Received, Request, Responder, Table, Update};
use weft_control::vtep::mac::mac_of;
use weft_control::vtep::{Input, Output, Resolver, ResolverConfig, Vni};
use weft_control::{Machine, NS_PER_MS, NS_PER_S};
use weft_wire::directory::{Path, Secret};
use weft_wire::ethernet::MacAddress;

const SECRET: Secret = Secret::from_bytes([3; 16]);
const LOCAL: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 5301);
const SERVERS: [SocketAddrV4; 2] =
    [SocketAddrV4::new(Ipv4Addr::new(10, 64, 9, 1), 5300), SocketAddrV4::new(Ipv4Addr::new(10, 64, 9, 2), 5300)];

fn vni(number: u32) -> Vni {
    Vni::new(number).unwrap()
}

/// Station `k`; its segment is `1 + k % 3`.
fn ip(k: u32) -> Ipv4Addr {
    Ipv4Addr::from(0xc0a8_0000 + k)
}

fn service(k: u32) -> u32 {
    1 + k % 3
}

fn vtep(k: u64) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 1 + k as u8)
}

type Arrival = Reverse<(u64, u64, bool, SocketAddrV4, Vec<u8>)>;

struct World {
    now_ns: u64,
    rng: Pcg64,
    loss_per_thousand: u64,
    resolver: Resolver<u64>,
    table: Table,
    /// Datagrams on their way; `true`: to us.
    flying: BinaryHeap<Arrival>,
    numbered: u64,
    /// What the data path has.
    fdb: BTreeMap<(Vni, MacAddress), Ipv4Addr>,
    arp: BTreeMap<(Vni, Ipv4Addr), MacAddress>,
    /// Requests without an outcome.
    open: BTreeSet<u64>,
    /// Where each station ever was.
    history: BTreeSet<(u32, Ipv4Addr, Ipv4Addr)>,
    found: usize,
    dropped: Vec<DropReason>,
}

impl World {
    fn new(seed: u64, loss_per_thousand: u64) -> Self {
        let timing = Timing { lifetime_ns: 2 * NS_PER_S, negative_ns: 100 * NS_PER_MS, ..Timing::default() };
        let config = ResolverConfig {
            local: LOCAL,
            servers: SERVERS.to_vec(),
            key_id: 1,
            timing,
            bounds: Bounds { entries_max: 8, ..Bounds::default() },
        };
        let mut resolver = Resolver::new(config, Pcg64::new(seed.into(), 5));
        for number in 1..=3 {
            resolver.add(vni(number), SECRET.derive(number, *LOCAL.ip()));
        }
        Self {
            now_ns: 0,
            rng: Pcg64::new(seed.into(), 6),
            loss_per_thousand,
            resolver,
            table: Table::default(),
            flying: BinaryHeap::new(),
            numbered: 0,
            fdb: BTreeMap::new(),
            arp: BTreeMap::new(),
            open: BTreeSet::new(),
            history: BTreeSet::new(),
            found: 0,
            dropped: Vec::new(),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound
    }

    fn set(&mut self, k: u32, at: u64) {
        let locator = Locator { tor_la: vtep(at), anycast_la: vtep(at) };
        self.history.insert((service(k), ip(k), vtep(at)));
        self.commit(k, Change::Set { locator, service: service(k), host_la: None });
    }

    fn commit(&mut self, k: u32, change: Change) {
        let update = Update { change, ..Update::delete(ip(k)) };
        let request = Request::once(vec![update]);
        self.table.apply(self.table.revision() + 1, &Batch::of(request));
    }

    fn feed(&mut self, input: Input<'_, u64>) {
        let mut outputs = Vec::new();
        self.resolver.handle(self.now_ns, input, &mut outputs);
        for output in outputs {
            self.carry_out(output);
        }
    }

    fn ask(&mut self, number: u32, k: u32) {
        self.numbered += 1;
        self.open.insert(self.numbered);
        self.feed(Input::Ask { vni: vni(number), ip: ip(k), held: Some(self.numbered) });
    }

    fn carry_out(&mut self, output: Output<u64>) {
        match output {
            Output::Send { to, datagram } => self.send(false, to, datagram),
            Output::Install { vni, ip, mac, vtep } => {
                assert_eq!(mac, mac_of(ip));
                let at = vtep.unwrap_or(*LOCAL.ip());
                assert!(self.history.contains(&(vni.get(), ip, at)), "{ip} was never at {at} in VNI {vni}");
                match vtep {
                    Some(vtep) => self.fdb.insert((vni, mac), vtep),
                    None => self.fdb.remove(&(vni, mac)),
                };
                self.arp.insert((vni, ip), mac);
            }
            Output::Remove { vni, ip, mac } => {
                self.fdb.remove(&(vni, mac));
                self.arp.remove(&(vni, ip));
            }
            Output::Found { vni, ip, held } => {
                assert!(self.arp.contains_key(&(vni, ip)), "what is found is installed");
                assert!(self.open.remove(&held), "each request has one outcome");
                self.found += 1;
            }
            Output::Drop { reason, .. } => self.dropped.push(reason),
        }
    }

    fn send(&mut self, to_us: bool, other: SocketAddrV4, bytes: Vec<u8>) {
        if self.below(1000) < self.loss_per_thousand {
            return;
        }
        self.numbered += 1;
        let at_ns = self.now_ns + 50_000 + self.below(NS_PER_MS);
        self.flying.push(Reverse((at_ns, self.numbered, to_us, other, bytes)));
    }

    fn run_to(&mut self, end_ns: u64) {
        loop {
            let arrival = self.flying.peek().map(|Reverse((at_ns, ..))| *at_ns);
            let deadline = self.resolver.next_deadline_ns();
            let Some(next) = [arrival, deadline].into_iter().flatten().min().filter(|at_ns| *at_ns <= end_ns) else {
                break;
            };
            self.now_ns = self.now_ns.max(next);
            if arrival == Some(next) {
                let Reverse((_, _, to_us, other, mut bytes)) = self.flying.pop().expect("it was seen");
                if to_us {
                    self.feed(Input::Datagram { from: other, bytes: &bytes });
                } else {
                    self.serve(other, &mut bytes);
                }
            } else {
                self.feed(Input::Deadline);
            }
        }
        self.now_ns = end_ns;
    }

    fn serve(&mut self, server: SocketAddrV4, question: &mut [u8]) {
        let responder = Responder { keys: KeyRing::new([(1, SECRET)]) };
        let path = Path { source: LOCAL, destination: server };
        match responder.respond(&self.table, &path, question) {
            Ok(Received::Answered { .. }) => self.send(true, server, question.to_vec()),
            other => panic!("a question that is not answered: {other:?}"),
        }
    }
}

#[test]
fn a_station_is_found_in_its_segment_and_in_no_other() {
    let mut world = World::new(1, 0);
    world.set(3, 2);
    world.set(4, 0);
    world.ask(1, 3);
    world.ask(2, 3);
    world.ask(2, 4);
    world.ask(1, 5);
    world.run_to(50 * NS_PER_MS);
    assert_eq!(world.fdb, [((vni(1), mac_of(ip(3))), vtep(2))].into());
    assert_eq!(
        world.arp.keys().copied().collect::<Vec<_>>(),
        [(vni(1), ip(3)), (vni(2), ip(4))],
        "one that is here is answered for and has no tunnel"
    );
    assert_eq!((world.found, world.dropped.len()), (2, 2), "{:?}", world.dropped);
    assert_eq!(world.resolver.strange(), 0);
}

#[test]
fn a_move_arrives_when_the_entry_is_confirmed_and_a_deletion_takes_it_away() {
    let mut world = World::new(2, 0);
    world.set(3, 2);
    world.ask(1, 3);
    world.run_to(100 * NS_PER_MS);
    world.set(3, 4);
    world.run_to(2 * NS_PER_S);
    assert_eq!(world.fdb[&(vni(1), mac_of(ip(3)))], vtep(4));
    world.set(3, 0);
    world.run_to(4 * NS_PER_S);
    assert_eq!(world.fdb, BTreeMap::new(), "it came here");
    assert!(world.arp.contains_key(&(vni(1), ip(3))));
    world.commit(3, Change::Delete);
    world.run_to(6 * NS_PER_S);
    assert_eq!(world.arp, BTreeMap::new());
}

#[test]
fn segments_come_and_go_and_strange_datagrams_change_nothing() {
    let mut world = World::new(3, 0);
    world.set(3, 2);
    world.ask(1, 3);
    world.run_to(50 * NS_PER_MS);
    world.resolver.remove(vni(1));
    assert!(!world.resolver.knows(vni(1)));
    world.ask(1, 3);
    assert_eq!(world.open.len(), 1, "nobody asks for a segment that is gone");
    for bytes in [&b""[..], &[0; 40], &[0xff; 100]] {
        world.feed(Input::Datagram { from: SERVERS[0], bytes });
    }
    assert_eq!(world.resolver.strange(), 3);
    world.resolver.add(vni(1), SECRET.derive(1, *LOCAL.ip()));
    world.feed(Input::Adopt { vni: vni(1), ip: ip(3), vtep: vtep(2) });
    assert_eq!(world.resolver.stations().count(), 1);
    assert_eq!(world.resolver.counters().events.get(weft_control::agent::Event::Installed), 1, "of the past as well");
}

#[test]
fn wishes_that_nothing_waits_for_are_bounded_and_tell_nothing() {
    let mut world = World::new(4, 1000);
    for _ in 0..10_000 {
        world.feed(Input::Ask { vni: vni(1), ip: ip(3), held: None });
    }
    assert!(world.resolver.summary(vni(1)).unwrap().waiting_frames <= 1024);
    let mut world = World::new(4, 0);
    world.set(3, 2);
    world.feed(Input::Ask { vni: vni(1), ip: ip(3), held: None });
    world.run_to(50 * NS_PER_MS);
    assert_eq!((world.found, world.fdb.len()), (0, 1));
}

#[test]
fn seeded_histories_leak_nothing_answer_everything_and_settle() {
    weft_needs::each_seed("vtep-resolver", 0..60, |seed| {
        let mut world = World::new(seed, seed % 4 * 80);
        let mut asked = 0;
        for step in 1..120 {
            for _ in 0..world.below(4) {
                let (k, number) = (world.below(12) as u32, 1 + world.below(3) as u32);
                world.ask(number, k);
                asked += 1;
            }
            match world.below(10) {
                0 => {
                    let k = world.below(12) as u32;
                    world.commit(k, Change::Delete);
                }
                1..=4 => {
                    let (k, at) = (world.below(12) as u32, world.below(5));
                    world.set(k, at);
                }
                _ => {}
            }
            world.run_to(step * 40 * NS_PER_MS);
        }
        world.loss_per_thousand = 0;
        world.run_to(20 * NS_PER_S);
        assert_eq!(world.found + world.dropped.len(), asked, "seed {seed}");
        let settled: Vec<_> = world.resolver.stations().collect();
        for (vni, ip, mapping) in settled {
            let now = world.table.mapping(ip).map(|mapping| mapping.locator.tor_la);
            assert_eq!(Some(mapping.locator.tor_la), now, "seed {seed}: {ip} in VNI {vni}");
        }
        let known: BTreeSet<_> = world.resolver.stations().map(|(vni, ip, _)| (vni, ip)).collect();
        assert_eq!(known, world.arp.keys().copied().collect(), "seed {seed}");
    });
}
