//! Schedules of faults on real etcd clusters, each from a seed: nodes killed and paused, ways on which only one direction is cut,
//! requests and answers that come late, alone and in pairs. While two directory servers' writers go on, nothing that was
//! acknowledged is lost, nothing happens twice, and in the end servers and store hold the same.
//!
//! A failure names its seed; `WEFT_SEEDS=FIRST..END` runs others, each with its own cluster and ten faults.

#[path = "../common/mod.rs"]
mod common;
mod fabric;
mod schedule;
mod way;
mod writer;

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use common::{PATIENCE, wait_until};
use fabric::{Fabric, Place};
use rand_pcg::Pcg64Mcg;
use schedule::{Bed, Fault};
use way::Ways;
use weft_control::directory::{AaRanges, Rules, Table};
use weft_node::directory::replica::{Replica, ReplicaSettings};
use weft_node::store::{EtcdSettings, EtcdStore, Store, catch_up};
use weft_testbed::etcd::{EtcdCluster, EtcdClusterSettings, EtcdNode};
use writer::Writer;

/// Faults of a seed.
const FAULTS: usize = 10;
/// Directory servers, each with a writer.
pub(crate) const SERVERS: usize = 2;
const CLIENT_PORT: u16 = 2379;
const PEER_PORT: u16 = 2380;
/// How long a fault may have the store silent before a server says so.
const STORE_TIMEOUT_MS: u64 = 3000;

#[test]
fn no_acknowledged_update_is_lost_whatever_the_schedule() {
    if !weft_needs::root() || !weft_needs::program("etcd") {
        return;
    }
    weft_needs::each_seed("etcd-faults", 0..1, live);
}

fn live(seed: u64) {
    let mut random = Pcg64Mcg::new(seed.into());
    let nodes = if seed % 4 == 3 { 5 } else { 3 };
    let dir = tempfile::tempdir().unwrap();
    let fabric = Arc::new(Fabric::new(nodes));
    let cluster = start(&fabric, nodes, dir.path());
    let urls: Vec<String> = cluster.endpoints().to_vec();
    let servers: Vec<Server> = (0..SERVERS).map(|index| Server::start(&fabric, index, &urls)).collect();
    let writers: Vec<Writer> =
        servers.iter().zip(0..).map(|(server, index)| Writer::start(&server.replica, index)).collect();
    let bed =
        Bed { fabric: &fabric, cluster: &cluster, ways: servers.iter().map(|server| &server.ways).collect(), nodes };
    progress(&writers, "updates at the start");
    let kinds = schedule::kinds(&mut random);
    for (number, kind) in kinds.iter().cycle().take(FAULTS).enumerate() {
        let faults = Fault::draw(&mut random, &bed, *kind);
        eprintln!("seed {seed}, fault {number}: {faults:?}");
        let lasts = schedule::lasts(&mut random);
        faults.iter().for_each(|fault| fault.begin(&bed));
        std::thread::sleep(lasts);
        faults.iter().for_each(|fault| fault.end(&bed));
        cluster.wait_healthy(PATIENCE).unwrap_or_else(|error| panic!("after fault {number}: {error}"));
        progress(&writers, &format!("updates after fault {number}, {faults:?}"));
    }
    let repeated: u64 = writers.iter().map(Writer::repeated).sum();
    let acknowledged: Vec<_> = writers.into_iter().flat_map(Writer::finish).collect();
    let table = converged(&servers);
    let lost =
        acknowledged.iter().filter(|(aa, revision)| table.record(*aa).map(|record| record.version) != Some(*revision));
    let lost: Vec<_> = lost.collect();
    assert!(lost.is_empty(), "{} of {} acknowledged updates are lost: {lost:?}", lost.len(), acknowledged.len());
    assert_eq!(servers.iter().map(|server| server.replica.status().repaired).sum::<u64>(), 0, "no table ever differed");
    let stored = fabric.within(Place::Operator, || {
        let store = EtcdStore::open(&cluster.settings("faults/")).unwrap();
        let mut table = store.load().unwrap();
        catch_up(&store, &mut table).unwrap();
        table
    });
    assert_eq!(stored, table, "the store holds what the servers show");
    eprintln!(
        "seed {seed}: {FAULTS} faults on {nodes} nodes, {} updates acknowledged, {repeated} repeated, 0 lost",
        acknowledged.len()
    );
}

/// The nodes in their namespaces; whoever asks them for their health is in one that no fault touches.
fn start(fabric: &Arc<Fabric>, nodes: usize, dir: &std::path::Path) -> EtcdCluster {
    let node = |index| EtcdNode {
        ip: Place::Node(index).address(),
        client_port: CLIENT_PORT,
        peer_port: PEER_PORT,
        dir: dir.join(format!("etcd-{index}")),
    };
    let (theirs, operator) = (Arc::clone(fabric), Arc::clone(fabric));
    let settings = EtcdClusterSettings {
        starter: Some(Box::new(move |index| theirs.command(Place::Node(index), "etcd"))),
        mover: Some(Box::new(move || {
            operator.enter(Place::Operator);
            Ok(())
        })),
        start_timeout: PATIENCE,
        ..EtcdClusterSettings::new((0..nodes).map(node).collect())
    };
    EtcdCluster::start(settings).unwrap_or_else(|error| panic!("{error}"))
}

/// A directory server without its sockets, and its ways to the nodes.
struct Server {
    replica: Replica,
    ways: Ways,
}

impl Server {
    fn start(fabric: &Fabric, index: usize, nodes: &[String]) -> Self {
        let rules = Rules {
            aa_block: "20.0.0.0/8".parse().unwrap(),
            tor_las: None,
            aa_ranges: AaRanges::default(),
            updates_max: 1 << 20,
        };
        let settings = ReplicaSettings {
            snapshot_records: 200,
            compare_every: Duration::from_secs(2),
            ..ReplicaSettings::default()
        };
        // Threads that it starts stay in the namespace, and so do their connections.
        fabric.within(Place::Server(index), || {
            let ways = Ways::open(nodes);
            let store = EtcdSettings { timeout_ms: STORE_TIMEOUT_MS, ..EtcdSettings::plain(ways.urls(), "faults/") };
            let store = Arc::new(EtcdStore::open(&store).unwrap());
            Self { replica: Replica::start(store, rules, settings).unwrap(), ways }
        })
    }
}

/// Each writer goes on.
fn progress(writers: &[Writer], what: &str) {
    let before: Vec<_> = writers.iter().map(Writer::acknowledged).collect();
    wait_until(what, || writers.iter().zip(&before).all(|(writer, before)| writer.acknowledged() >= before + 5));
}

/// Waits until both servers show the same revision, and so must show the same.
fn converged(servers: &[Server]) -> Table {
    let revision = || servers.iter().map(|server| server.replica.table_hash().0);
    wait_until("the servers show the same revision", || revision().min() == revision().max());
    let hashes: Vec<_> = servers.iter().map(|server| server.replica.table_hash()).collect();
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
    servers[0].replica.read(Table::clone)
}

/// What the schedules rely on: a cut way loses one direction and leaves the other.
#[test]
fn a_way_is_cut_in_one_direction_only() {
    if !weft_needs::root() {
        return;
    }
    let fabric = Fabric::new(3);
    let places = [Place::Node(0), Place::Node(2)];
    let socket = |place: Place| fabric.within(place, || UdpSocket::bind((place.address(), 0)).unwrap());
    let sockets = places.map(socket);
    let arrives = |from: usize| {
        sockets[1 - from].set_nonblocking(true).unwrap();
        let mut buffer = [0; 8];
        while sockets[1 - from].recv(&mut buffer).is_ok() {}
        sockets[from].send_to(b"is it on?", sockets[1 - from].local_addr().unwrap()).unwrap();
        sockets[1 - from].set_nonblocking(false).unwrap();
        sockets[1 - from].set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        sockets[1 - from].recv(&mut buffer).is_ok()
    };
    let works = |from: usize| wait_until("datagrams arrive", || arrives(from));
    (0..2).for_each(works);
    fabric.cut(places[0], places[1]);
    assert!(!arrives(0));
    works(1);
    assert!(!arrives(0));
    fabric.mend(places[0], places[1]);
    (0..2).for_each(works);
}
