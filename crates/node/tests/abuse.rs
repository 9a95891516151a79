//! One service with a good certificate takes what it can of a directory server: its share ends, others go on.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use weft_control::directory::REFUSED_COST;
use weft_node::client::{AdminClient, Target, Watch};
use weft_node::directory::protocol::{AdminRequest, DirectoryStatus, MappingToSet};
use weft_node::directory::{DirectoryConfig, QuotaConfig, ServiceConfig, SessionTimers, StoreConfig};
use weft_node::store::EtcdSettings;
use weft_node::{DaemonKind, NodeError, TlsFiles, certs, settings_text, socket};
use weft_testbed::etcd::{EtcdCluster, EtcdClusterSettings};
use weft_wire::directory::update::{Place, UpdateFrame, Verdict};

const ANY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// A server, and certificates of an operator and of services 7 and 8.
struct Bed {
    dir: tempfile::TempDir,
    _daemon: Daemon,
    admin: AdminClient,
    tls: SocketAddr,
    http: SocketAddrV4,
}

impl Bed {
    fn new() -> Self {
        Self::with(|config| config)
    }

    fn with(change: impl FnOnce(DirectoryConfig) -> DirectoryConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tls = dir.path().join("tls");
        certs::make(&tls, &certs::Wanted { services: vec![7, 8], ..certs::Wanted::default() }).unwrap();
        let config = change(DirectoryConfig {
            tls_listen: Some(ANY),
            tls: Some(TlsFiles::in_dir(&tls, certs::SERVER)),
            http_listen: Some(ANY),
            ..loopback_config(dir.path())
        });
        let (daemon, mut admin) = start(&config);
        let status = admin.status().unwrap();
        let (tls, http) = (SocketAddr::V4(status.tls_listen.unwrap()), status.http_listen.unwrap());
        Self { dir, _daemon: daemon, admin, tls, http }
    }

    fn connect(&self, name: &str) -> Result<AdminClient, NodeError> {
        let files = TlsFiles::in_dir(&self.dir.path().join("tls"), name);
        AdminClient::open(&Target::Server { address: self.tls, files })
    }

    /// A session for bytes of any kind.
    fn raw(&self, name: &str) -> StreamOwned<ClientConnection, TcpStream> {
        let files = TlsFiles::in_dir(&self.dir.path().join("tls"), name);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&files.ca).unwrap()).unwrap();
        let (chain, key) = (CertificateDer::from_pem_file(&files.cert), PrivateKeyDer::from_pem_file(&files.key));
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![chain.unwrap()], key.unwrap())
            .unwrap();
        let server = ServerName::from(self.tls.ip());
        let stream = TcpStream::connect(self.tls).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), server).unwrap(), stream)
    }

    fn service(&self, service: u32) -> AdminClient {
        self.connect(&certs::service_name(service)).unwrap()
    }
}

fn aa(k: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x1400_0000 + k)
}

fn of(service: u32, k: u32) -> MappingToSet {
    MappingToSet { service, ..mapping(aa(k), 1) }
}

fn frame(service: u32, k: u32, client: u64, sequence: u64) -> UpdateFrame {
    let place = Place { tor_la: Ipv4Addr::new(10, 1, 0, 1), anycast_la: ANYCAST, host_la: None, service };
    UpdateFrame { aa: aa(k), place: Some(place), if_version: None, version: None, client, sequence }
}

#[test]
fn a_service_has_its_share_of_sessions() {
    let bed = Bed::new();
    let mut kept = Vec::new();
    let refused = (0..100).find_map(|_| {
        let mut session = bed.service(7);
        let outcome = session.get(aa(1));
        kept.push(session);
        outcome.err()
    });
    let refused = refused.expect("a hundred sessions are more than its share").to_string();
    assert!(refused.contains("sessions"), "{refused}");
    assert!(bed.service(8).get(aa(1)).is_ok() && bed.connect(certs::OPERATOR).unwrap().get(aa(1)).is_ok());
    kept.clear();
    wait_until("sessions that ended count no more", || bed.service(7).get(aa(1)).is_ok());
}

#[test]
fn a_service_has_its_share_of_rows_and_those_of_others_are_not_taken() {
    let mut bed = Bed::new();
    let mut seven = bed.service(7);
    let mut k = 0;
    let refused = loop {
        assert!(k < 200_000, "it may not fill the table");
        let mappings = (k..k + 4096).map(|k| of(7, k)).collect();
        match seven.set_many(mappings) {
            Ok(_) => k += 4096,
            // Too fast is another limit.
            Err(error) if error.to_string().contains("a second") => std::thread::sleep(Duration::from_millis(20)),
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("rows"), "{refused}");
    bed.service(8).set(of(8, 1_000_000)).expect("others still have their share");
    bed.admin.set(of(7, 1_000_001)).expect("an operator decides");
    seven.set(of(7, 0)).expect("what it has it may change");
}

#[test]
fn requests_in_parts_are_a_share_of_all_sessions_of_a_service() {
    let part = [b"{".to_vec(), vec![b' '; 60_000]].concat();
    let quota = QuotaConfig { buffered_bytes: Some(part.len() * 3 / 2), ..QuotaConfig::default() };
    let bed = Bed::with(|config| DirectoryConfig { quota: quota.clone(), ..config });
    let begin = |service| {
        let mut session = bed.raw(&certs::service_name(service));
        session.write_all(&part).unwrap();
        session.sock.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        session
    };
    let said = |session: &mut StreamOwned<ClientConnection, TcpStream>| {
        let mut bytes = [0; 4096];
        let count = session.read(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    let (mut sessions, mut eighth) = (vec![begin(7), begin(7)], begin(8));
    let mut refused = None;
    wait_until("one of the two is refused", || {
        let mut answers = sessions.iter_mut().map(said).enumerate();
        refused = answers.find(|(_, answer)| !answer.is_empty());
        refused.is_some()
    });
    let (place, answer) = refused.unwrap();
    assert!(answer.contains("bytes") && answer.contains("\"ok\":false"), "{answer}");
    sessions.remove(place);
    for session in [&mut sessions[0], &mut eighth] {
        session.write_all(b"\"op\":\"get\",\"aa\":\"20.0.0.1\"}\n").unwrap();
        let mut answer = String::new();
        wait_until("it is answered", || {
            answer = said(session);
            !answer.is_empty()
        });
        assert!(answer.contains("\"ok\":true"), "{answer}");
    }
}

#[test]
fn who_is_refused_all_the_time_is_read_more_slowly() {
    let quota = QuotaConfig { updates_per_s: Some(1000), updates_burst: Some(100), ..QuotaConfig::default() };
    let bed = Bed::with(|config| DirectoryConfig { quota: quota.clone(), ..config });
    let mut seven = bed.service(7);
    let began = Instant::now();
    for _ in 0..100 {
        assert!(seven.set(of(8, 1)).is_err(), "not its own");
    }
    // At the rate of requests that are carried out these would have come as one burst.
    let owed = Duration::from_secs_f64(99.0 * REFUSED_COST as f64 / 1000.0) - Duration::from_millis(100);
    assert!(began.elapsed() >= owed, "{:?} of {owed:?}", began.elapsed());
}

#[test]
fn numbers_of_clients_are_their_services_own() {
    let bed = Bed::new();
    let (mut seven, mut eight) = (bed.service(7), bed.service(8));
    let ask = |client: &mut AdminClient, frame: UpdateFrame| {
        client.put_frame(&frame);
        client.flush().unwrap();
        client.verdict().unwrap()
    };
    assert_eq!(ask(&mut seven, frame(7, 1, 99, u64::MAX)).verdict, Verdict::Committed);
    let eights = ask(&mut eight, frame(8, 2, 99, 1));
    assert_eq!(eights.verdict, Verdict::Committed, "{eights:?}");
    let mut operator = bed.connect(certs::OPERATOR).unwrap();
    let first = ask(&mut operator, frame(0, 3, 5, 1));
    // A flood of fresh numbers makes the table forget its own, and nobody else's.
    for batch in 0..10u64 {
        for k in 0..500 {
            seven.put_frame(&frame(7, 100 + k, 1000 + batch * 500 + u64::from(k), 1));
        }
        seven.flush().unwrap();
        for _ in 0..500 {
            assert_eq!(seven.verdict().unwrap().verdict, Verdict::Committed);
        }
    }
    let again = ask(&mut operator, frame(0, 3, 5, 1));
    assert_eq!(again.revision, first.revision, "what came before is not done again");
}

#[test]
fn a_list_in_parts_names_nothing_that_the_asker_may_not_know() {
    let mut bed = Bed::new();
    bed.admin.set_many(vec![of(7, 1), of(8, 2), of(8, 3), of(7, 4), of(8, 5)]).unwrap();
    let mut seven = bed.service(7);
    let (mut from, mut seen) = (None, Vec::new());
    loop {
        let part = seven.request(&AdminRequest::List { from, limit: Some(1) }).unwrap();
        seen.extend(part.mappings.unwrap().iter().map(|row| row.aa));
        let Some(next) = part.next else { break };
        assert!([aa(1), aa(4)].contains(&next), "{next} is not its to know");
        from = Some(next);
    }
    assert_eq!(seen, [aa(1), aa(4)]);
}

#[test]
fn aas_are_reserved_for_services() {
    let services = |service: u32, range: &str| ServiceConfig {
        service,
        aa_ranges: vec![range.to_owned()],
        quota: Default::default(),
    };
    let mut bed = Bed::with(|config| DirectoryConfig {
        services: vec![services(7, "20.7.0.0/16"), services(8, "20.8.0.0/16")],
        ..config
    });
    let set = |client: &mut AdminClient, service: u32, aa: [u8; 4]| {
        let outcome = client.set(MappingToSet { service, ..mapping(aa.into(), 1) });
        outcome.map(drop).map_err(|error| error.to_string())
    };
    let mut seven = bed.service(7);
    assert_eq!(set(&mut seven, 7, [20, 7, 0, 1]), Ok(()));
    let foreign = set(&mut seven, 7, [20, 8, 0, 1]).unwrap_err();
    assert!(foreign.contains("service 7 has its AAs in 20.7.0.0/16"), "{foreign}");
    assert_eq!(
        foreign.replace("20.8.0.1", "X"),
        set(&mut seven, 7, [20, 9, 0, 1]).unwrap_err().replace("20.9.0.1", "X")
    );
    assert_eq!(set(&mut bed.service(8), 8, [20, 8, 0, 1]), Ok(()));
    let reserved = set(&mut bed.admin, 3, [20, 8, 0, 2]).unwrap_err();
    assert!(reserved.contains("reserved"), "{reserved}");
    assert_eq!(set(&mut bed.admin, 3, [20, 9, 0, 2]), Ok(()));
}

#[test]
fn sessions_that_say_nothing_or_do_not_come_to_an_end_go() {
    let timers = SessionTimers { idle_s: 1, stall_s: 1 };
    let mut bed = Bed::with(|config| DirectoryConfig { sessions: timers, ..config });
    let mut watcher = bed.service(7);
    watcher.watch(None).unwrap();
    let mut silent = bed.service(7);
    silent.get(aa(1)).unwrap();
    let mut slow = bed.raw(&certs::service_name(7));
    slow.write_all(b"{\"op\":").unwrap();
    // It asks for more than any buffer holds, and reads nothing of it.
    let mut deaf = bed.connect(certs::OPERATOR).unwrap();
    bed.admin.set_many((0..4096).map(|k| of(7, 100 + k)).collect()).unwrap();
    for _ in 0..200 {
        deaf.put(&AdminRequest::List { from: None, limit: None }).unwrap();
    }
    deaf.flush().unwrap();
    wait_until("three of them are gone", || bed.admin.status().unwrap().sessions["open"] == 2);
    assert!(silent.get(aa(1)).is_err());
    assert_eq!(slow.read_to_end(&mut Vec::new()).unwrap_or(0), 0);
    bed.admin.set(of(7, 2)).unwrap();
    wait_until("who watches may be silent", || {
        matches!(watcher.watched(Duration::from_millis(100)).unwrap(), Watch::Changed { .. })
    });
}

/// A server that may open 200 files, once it listens.
fn limited(config: &DirectoryConfig, dir: &Path) -> (Child, DirectoryStatus) {
    let file = dir.join("directory.toml");
    std::fs::write(&file, settings_text(config)).unwrap();
    let daemon = example_program("directory-daemon");
    let limited = format!("ulimit -n 200; exec {} {}", daemon.display(), file.display());
    let child = Child(std::process::Command::new("sh").args(["-c", &limited]).spawn().unwrap());
    let mut admin = None;
    wait_until("it listens", || {
        admin = AdminClient::connect(&config.admin_socket).ok();
        admin.is_some()
    });
    (child, admin.unwrap().status().unwrap())
}

fn with_all_ports(dir: &Path) -> DirectoryConfig {
    let tls = dir.join("tls");
    certs::make(&tls, &certs::Wanted::default()).unwrap();
    DirectoryConfig {
        tls_listen: Some(ANY),
        tls: Some(TlsFiles::in_dir(&tls, certs::SERVER)),
        http_listen: Some(ANY),
        ..loopback_config(dir)
    }
}

#[test]
fn idle_connections_to_any_port_leave_descriptors_to_who_looks_after_the_server() {
    // A server puts off none of them sooner: so whoever is answered by then has not waited for that.
    const PUT_OFF: Duration = Duration::from_secs(5);
    let dir = tempfile::tempdir().unwrap();
    let config = with_all_ports(dir.path());
    let (_child, status) = limited(&config, dir.path());
    // A SYN that meets a full queue is sent again after a second.
    let limit = Duration::from_secs(3);
    for port in [status.tls_listen.unwrap(), status.http_listen.unwrap()] {
        // More than it has descriptors; the kernel takes some in that it does not.
        let connect = |_| TcpStream::connect_timeout(&port.into(), limit).ok();
        let idle: Vec<_> = (0..250).map_while(connect).collect();
        assert!(idle.len() >= 128, "{} connections", idle.len());
        let began = Instant::now();
        let mut admin = AdminClient::connect(&config.admin_socket).unwrap();
        admin.set(mapping(aa(1), 1)).unwrap();
        let shown = socket::show::<_, DirectoryStatus>(DaemonKind::Directory, &config.socket, ()).unwrap();
        assert_eq!(shown.mappings, 1);
        assert!(began.elapsed() < PUT_OFF, "{:?}", began.elapsed());
    }
}

#[test]
fn idle_sessions_leave_descriptors_to_the_store() {
    if !weft_needs::program("etcd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cluster = EtcdCluster::start(EtcdClusterSettings::loopback(1, dir.path()).unwrap()).unwrap();
    let store = StoreConfig::Etcd(cluster.settings("idle/"));
    let config = DirectoryConfig { store, ..with_all_ports(dir.path()) };
    let (_child, status) = limited(&config, dir.path());
    let mut admin = AdminClient::connect(&config.admin_socket).unwrap();
    admin.set(mapping(aa(1), 1)).unwrap();
    cluster.kill(0);
    wait_until("the store is missed", || admin.status().unwrap().store_error.is_some());
    // Unlike handshakes they are not put off for minutes.
    let files = TlsFiles::in_dir(&dir.path().join("tls"), certs::OPERATOR);
    let target = Target::Server { address: status.tls_listen.unwrap().into(), files };
    let session = |_| AdminClient::open(&target).and_then(|mut session| session.get(aa(1)).map(|_| session)).ok();
    let idle: Vec<_> = (0..200).map_while(session).collect();
    assert!((10..200).contains(&idle.len()), "{} sessions", idle.len());
    cluster.restart(0);
    cluster.wait_healthy(PATIENCE).unwrap();
    wait_until("the store is used again", || admin.set(mapping(aa(2), 2)).is_ok());
    assert_eq!(admin.list().unwrap().len(), 2);
}

/// Kills a child at the end.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn who_connects_to_http_and_says_nothing_is_put_off() {
    let bed = Bed::new();
    for said in ["", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow"] {
        let mut stream = TcpStream::connect(bed.http).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(!matches!(&ended, Err(error) if error.kind() == ErrorKind::WouldBlock), "{said:?}: {ended:?}");
    }
}

#[test]
fn secrets_of_the_store_that_others_may_read_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let password = private_file(&dir.path().join("password"), "secret");
    std::fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let settings = EtcdSettings {
        user: Some("weft".to_owned()),
        password_file: Some(password.clone()),
        timeout_ms: 200,
        ..EtcdSettings::plain(["http://127.0.0.1:9".to_owned()], "p/")
    };
    let with = |settings| DirectoryConfig { store: StoreConfig::Etcd(settings), ..loopback_config(dir.path()) };
    let error = refused(&with(settings.clone()));
    assert!(error.contains("chmod 600") && !error.contains("secret"), "{error}");
    certs::make(dir.path(), &certs::Wanted::default()).unwrap();
    let key = dir.path().join("operator.key");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    let tls = weft_node::store::EtcdTls {
        ca_file: dir.path().join("ca.pem"),
        cert_file: dir.path().join("operator.pem"),
        key_file: key,
        server_name: None,
    };
    let endpoints = vec!["https://127.0.0.1:9".to_owned()];
    let error = refused(&with(EtcdSettings { tls: Some(tls), user: None, password_file: None, endpoints, ..settings }));
    assert!(error.contains("chmod 600"), "{error}");
}
