//! An AA moves to another ToR while a server sends to it: the old ToR reports, the directory corrects the sender's agent,
//! and every packet is accounted for (VL2 4.3.2).

mod bed;
mod common;

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bed::{AA, Bed, TOR_LA};
use common::{Daemon, derived_key, mapping, wait_until};
use weft_datapath::bpffs;
use weft_node::agent::AGENT_PORT;
use weft_node::directory::protocol::MappingToSet;
use weft_node::stop::Stop;
use weft_node::tor::{self, TorConfig, TorStatus};

/// Where packets go to.
const SINK_PORT: u16 = 7;

/// A bpffs of this test alone.
struct Pins(tempfile::TempDir);

impl Pins {
    /// `None` without the right to mount one.
    fn new() -> Option<Self> {
        if !weft_needs::root() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        bpffs::ensure_mounted(dir.path()).unwrap();
        Some(Self(dir))
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        bpffs::unmount(self.0.path()).expect("nothing holds it");
    }
}

fn config(bed: &Bed, pins: &Pins, k: usize) -> TorConfig {
    TorConfig {
        la: TOR_LA[k],
        directory_servers: vec![bed.directory.listen],
        key_file: Some(derived_key(bed.dir.path(), 0, TOR_LA[k])),
        pin_dir: pins.0.path().join(format!("tor{k}")),
        socket: socket(bed, k),
        ..TorConfig::example()
    }
}

fn socket(bed: &Bed, k: usize) -> PathBuf {
    bed.dir.path().join(format!("tor{k}.sock"))
}

/// Starts ToR `k`'s reporter and waits until it is ready.
fn reporter(bed: &Bed, pins: &Pins, k: usize) -> Daemon {
    let (namespace, config) = (bed.tors[k].0.clone(), config(bed, pins, k));
    let daemon = Daemon::spawn(move |stop| {
        bed::Namespace::enter(&namespace);
        tor::run(&|| Ok(config.clone()), stop)
    });
    wait_until("the reporter is ready", || {
        assert!(!daemon.ended(), "the reporter ended");
        tor::read(socket(bed, k)).is_ok()
    });
    daemon
}

fn status(bed: &Bed, k: usize) -> TorStatus {
    tor::read(socket(bed, k)).unwrap()
}

/// What came to a server's sink so far.
struct Sink(UdpSocket);

impl Sink {
    fn open(server: &bed::Namespace) -> Self {
        let socket = server.within(|| UdpSocket::bind((AA[1], SINK_PORT))).unwrap();
        socket.set_nonblocking(true).unwrap();
        // Room for all that comes while nobody looks, or packets would be lost here.
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 64 << 20).expect("root may have long buffers");
        Self(socket)
    }

    fn drain(&self) -> u64 {
        let mut buffer = [0; 64];
        std::iter::from_fn(|| self.0.recv(&mut buffer).ok()).count() as u64
    }
}

fn at(aa: Ipv4Addr, tor: u8, host_la: [u8; 4]) -> MappingToSet {
    MappingToSet { host_la: Some(host_la.into()), ..mapping(aa, tor) }
}

#[test]
fn a_migration_corrects_the_sender_and_every_packet_is_accounted_for() {
    let Some(pins) = Pins::new() else { return };
    let Some(mut bed) = Bed::for_migration("move", pins.0.path()) else { return };
    bed.admin.set_many(vec![at(AA[0], 1, [10, 64, 0, 2]), at(AA[1], 2, [10, 64, 1, 2])]).unwrap();
    let _agent = bed.agent(0, bed.config(0));
    let _reporters = [reporter(&bed, &pins, 0), reporter(&bed, &pins, 1)];
    let (old, new) = (Sink::open(&bed.servers[1]), Sink::open(bed.third.as_ref().unwrap()));
    let (stop, mut sums) = (AtomicBool::new(false), [0, 0]);
    let sent = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            bed::Namespace::enter(&bed.servers[0].0);
            let socket = UdpSocket::bind((AA[0], 0)).unwrap();
            let mut sent = 0u64;
            while !stop.load(Ordering::Relaxed) {
                sent += u64::from(socket.send_to(b"packet", (AA[1], SINK_PORT)).is_ok());
                std::thread::sleep(Duration::from_millis(1));
            }
            sent
        });
        wait_until("packets arrive at the old place", || {
            sums[0] += old.drain();
            sums[0] > 50
        });
        bed.tors[1].ip(&format!("route del {}/32", AA[1]));
        bed.tors[0].ip(&format!("route add {}/32 dev host2", AA[1]));
        wait_until("packets are lost", || status(&bed, 1).datapath["no_such_host"] > 20);
        // Until the directory is told of it, reports are about what is right as far as it knows.
        wait_until("the claim is looked at", || bed.admin.status().unwrap().corrections["still_there"] > 0);
        assert_eq!(bed.status(0).events["corrected"], 0);
        bed.admin.set(at(AA[1], 1, [10, 64, 2, 2])).unwrap();
        wait_until("packets arrive at the new place", || {
            sums[1] += new.drain();
            sums[1] > 50
        });
        stop.store(true, Ordering::Relaxed);
        sender.join().unwrap()
    });
    wait_until("every packet is accounted for", || {
        sums = [sums[0] + old.drain(), sums[1] + new.drain()];
        let lost = status(&bed, 1).datapath["no_such_host"];
        sums[0] + sums[1] + lost == sent
    });
    let (agent, tor, directory) = (bed.status(0), status(&bed, 1), bed.admin.status().unwrap());
    assert_eq!(agent.events["corrected"], 1, "{:?}", agent.events);
    assert!(agent.mappings.iter().any(|mapping| mapping.aa == AA[1] && mapping.tor_la == TOR_LA[0]), "{agent:?}");
    assert_eq!(agent.ignored.values().sum::<u64>(), agent.ignored["nothing_new"] + agent.ignored["older"], "{agent:?}");
    assert!(directory.corrections["corrected"] >= 1, "{directory:?}");
    assert_eq!(directory.ignored.values().sum::<u64>(), 0, "{directory:?}");
    assert!(tor.events["reported"] < tor.events["sampled"], "once in a while is enough: {:?}", tor.events);
    assert_eq!(tor.io["not_sent"], 0);
    assert_eq!(status(&bed, 0).events["sampled"], 0, "the new ToR has nothing to report");
}

#[test]
fn settings_that_cannot_work_are_refused_in_one_line_with_the_remedy() {
    let Some(pins) = Pins::new() else { return };
    let Some(bed) = Bed::for_migration("torbad", pins.0.path()) else { return };
    let good = || config(&bed, &pins, 1);
    for (config, says) in [
        (TorConfig { directory_servers: Vec::new(), ..good() }, "directory_servers: is empty"),
        (TorConfig { la: [10, 1, 0, 77].into(), ..good() }, "is not an address of this host"),
        (TorConfig { key_file: Some("/nonexistent".into()), ..good() }, "weft directory key"),
        (TorConfig { pin_dir: pins.0.path().join("none"), ..good() }, "no data path is pinned"),
    ] {
        let outcome = bed.tors[1].within(|| {
            let stop = Stop::manual().unwrap();
            stop.request();
            tor::run(&|| Ok(config.clone()), &stop)
        });
        let error = outcome.expect_err(says).to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error} does not say {says}");
    }
    let mut value = serde_json::to_value(TorConfig::example()).unwrap();
    value["speed"] = 9.into();
    assert!(serde_json::from_value::<TorConfig>(value).unwrap_err().to_string().contains("speed"));
}

/// Reports from a host that holds an agent's key, not a switch's, or a switch's key at another address.
#[test]
fn only_a_tor_may_report() {
    use weft_node::directory::protocol::DirectoryStatus;
    use weft_wire::directory::{Entry, Kind, Message, Path, Secret};
    let dir = tempfile::tempdir().unwrap();
    let config =
        weft_node::directory::DirectoryConfig { tor_las: Some(TOR_LA.to_vec()), ..common::loopback_config(dir.path()) };
    let (_daemon, mut admin) = common::start(&config);
    // An address of this process alone: the agents' port is a fixed one.
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let host_la = Ipv4Addr::new(127, 64, high, low);
    admin.set_many(vec![at(AA[0], 1, host_la.octets()), at(AA[1], 2, host_la.octets())]).unwrap();
    let listen = admin.status().unwrap().listen;
    let victim = UdpSocket::bind((host_la, AGENT_PORT)).unwrap();
    victim.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let path = Path {
        source: SocketAddrV4::new(Ipv4Addr::LOCALHOST, socket.local_addr().unwrap().port()),
        destination: listen,
    };
    let secret = Secret::from_hex(common::KEY).unwrap();
    let report = |service| Message {
        kind: Kind::ReportStale,
        service,
        request_id: 1,
        revision: 0,
        key_id: 0,
        entries: vec![Entry { anycast_la: AA[0], ..Entry::question(AA[1], 0) }],
    };
    let mut counted = |service, key, what: &str, count: fn(&DirectoryStatus) -> u64| {
        socket.send_to(&report(service).emit(&key, &path), listen).unwrap();
        wait_until(what, || count(&admin.status().unwrap()) == 1);
    };
    let here = Ipv4Addr::LOCALHOST;
    counted(5, secret.derive(5, here), "an agent of a service", |status| status.ignored["service"]);
    counted(0, secret.derive(0, TOR_LA[0]), "a ToR's key elsewhere", |status| status.ignored["tag"]);
    counted(0, secret.derive(0, here), "a stranger", |status| status.corrections["unknown_reporter"]);
    assert_eq!(admin.status().unwrap().corrections["corrected"], 0);
    assert!(victim.recv(&mut [0; 2048]).is_err(), "nobody was corrected");
}
