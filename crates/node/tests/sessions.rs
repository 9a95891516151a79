//! Sessions with a directory server: mutual TLS, who may do what, many updates at once, watches, HTTP.

mod common;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use common::*;
use weft_node::client::{AdminClient, LookupClient, Target, Watch};
use weft_node::directory::protocol::{AdminRequest, DirectoryStatus, MappingToSet, PolicyRow};
use weft_node::directory::{DirectoryConfig, KeyFile};
use weft_node::{DaemonKind, NodeError, TlsFiles, certs, socket};
use weft_wire::directory::update::{Place, UpdateFrame, Verdict};
use weft_wire::directory::{Secret, Status};

const ANY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

fn aa(k: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x1400_0000 + k)
}

fn of(service: u32, mapping: MappingToSet) -> MappingToSet {
    MappingToSet { service, ..mapping }
}

/// A server with TLS and HTTP, and certificates of an operator and of services 7 and 8.
struct Bed {
    dir: tempfile::TempDir,
    config: DirectoryConfig,
    _daemon: Daemon,
    admin: AdminClient,
    status: DirectoryStatus,
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let wanted = certs::Wanted { services: vec![7, 8], ..certs::Wanted::default() };
        certs::make(&dir.path().join("tls"), &wanted).unwrap();
        let config = DirectoryConfig {
            tls_listen: Some(ANY),
            tls: Some(TlsFiles::in_dir(&dir.path().join("tls"), certs::SERVER)),
            http_listen: Some(ANY),
            ..loopback_config(dir.path())
        };
        let (daemon, mut admin) = start(&config);
        let status = admin.status().unwrap();
        Self { dir, config, _daemon: daemon, admin, status }
    }

    fn files(&self, name: &str) -> TlsFiles {
        TlsFiles::in_dir(&self.dir.path().join("tls"), name)
    }

    fn target(&self, files: TlsFiles) -> Target {
        Target::Server { address: SocketAddr::V4(self.status.tls_listen.unwrap()), files }
    }

    fn connect(&self, name: &str) -> AdminClient {
        AdminClient::open(&self.target(self.files(name))).unwrap()
    }

    fn http(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.status.http_listen.unwrap()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

/// What the first request of a session says that the server does not want.
fn refused_session(target: &Target) -> String {
    // With TLS 1.3 a client learns only after its handshake that its certificate was not taken.
    let outcome = AdminClient::open(target).and_then(|mut client| client.get(aa(1)));
    outcome.expect_err("there must be no session").to_string()
}

#[test]
fn an_operator_does_everything_over_tls() {
    let bed = Bed::new();
    let mut operator = bed.connect(certs::OPERATOR);
    let revision = operator.set(of(7, mapping(aa(1), 1))).unwrap();
    let moved = operator.move_to(aa(1), Ipv4Addr::new(10, 1, 0, 2), None, Some(revision)).unwrap();
    let row = operator.get(aa(1)).unwrap().unwrap();
    assert_eq!((row.tor_la, row.anycast_la, row.service, row.version), (Ipv4Addr::new(10, 1, 0, 2), ANYCAST, 7, moved));
    let stale = operator.move_to(aa(1), Ipv4Addr::new(10, 1, 0, 3), None, Some(revision)).unwrap_err().to_string();
    assert!(stale.contains("expected version"), "{stale}");
    let absent = operator.move_to(aa(2), Ipv4Addr::new(10, 1, 0, 3), None, None).unwrap_err().to_string();
    assert!(absent.contains("no mapping to move"), "{absent}");
    let rule = PolicyRow { from_service: 7, to_service: 8, allow: true };
    operator.set_policy(vec![rule]).unwrap();
    assert_eq!(operator.policy().unwrap(), [rule]);
    assert!(operator.del(aa(1)).unwrap() > moved);
    let status = operator.status().unwrap();
    assert_eq!((status.mappings, status.sessions["open"]), (0, 2));
    assert_eq!(status.table_hash.len(), 16);
}

#[test]
fn a_service_changes_its_own_mappings_and_sees_what_the_policy_lets_it() {
    let mut bed = Bed::new();
    bed.admin.set_many(vec![of(7, mapping(aa(7), 1)), of(8, mapping(aa(8), 1)), mapping(aa(9), 1)]).unwrap();
    let mut seven = bed.connect(&certs::service_name(7));
    seven.set(of(7, mapping(aa(7), 2))).unwrap();
    seven.set(of(7, mapping(aa(70), 2))).expect("nobody had it");
    seven.move_to(aa(7), Ipv4Addr::new(10, 1, 0, 4), None, None).unwrap();
    // Many updates of one AA at once are checked one after the other.
    for tor in 1..=50 {
        seven
            .put(&AdminRequest::SetMany { mappings: vec![of(7, mapping(aa(7), tor))], client: 0, sequence: 0 })
            .unwrap();
    }
    seven.flush().unwrap();
    for _ in 0..50 {
        let response = seven.receive().unwrap();
        assert!(response.ok, "{response:?}");
    }
    assert_eq!(bed.admin.get(aa(7)).unwrap().unwrap().tor_la, Ipv4Addr::new(10, 1, 0, 50));

    let denied = |outcome: Result<u64, NodeError>| {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("its own AAs only") || error.contains("for operators"), "{error}");
    };
    denied(seven.set(of(7, mapping(aa(8), 2))));
    denied(seven.set(of(8, mapping(aa(8), 2))));
    denied(seven.set(of(8, mapping(aa(7), 2))));
    denied(seven.set(mapping(aa(9), 2)));
    denied(seven.del(aa(8)));
    denied(seven.move_to(aa(9), Ipv4Addr::new(10, 1, 0, 4), None, None));
    denied(seven.set_policy(vec![PolicyRow { from_service: 7, to_service: 8, allow: true }]));
    assert!(seven.policy().is_err() && seven.status().is_err());
    let unknown = seven.move_to(aa(8), Ipv4Addr::new(10, 1, 0, 4), None, None).unwrap_err().to_string();
    let never_set = seven.move_to(aa(99), Ipv4Addr::new(10, 1, 0, 4), None, None).unwrap_err().to_string();
    assert_eq!(unknown.replace("20.0.0.8", "X"), never_set.replace("20.0.0.99", "X"));

    let seen = |client: &mut AdminClient| -> Vec<_> { client.list().unwrap().iter().map(|row| row.aa).collect() };
    assert_eq!(seen(&mut seven), [aa(7), aa(9), aa(70)]);
    assert_eq!(seven.get(aa(8)).unwrap(), None);
    bed.admin.set_policy(vec![PolicyRow { from_service: 7, to_service: 8, allow: true }]).unwrap();
    assert_eq!(seen(&mut seven), [aa(7), aa(8), aa(9), aa(70)]);
    assert_eq!(bed.admin.get(aa(8)).unwrap().unwrap().tor_la, Ipv4Addr::new(10, 1, 0, 1), "nothing foreign changed");
}

#[test]
fn who_has_no_certificate_of_the_ca_gets_no_session() {
    let bed = Bed::new();
    let other = bed.dir.path().join("other");
    certs::make(&other, &certs::Wanted::default()).unwrap();
    let own = bed.files(certs::OPERATOR);
    // A certificate of another CA, with the right CA for the server's. Often, because the first request races the
    // refusal, and neither may cost the client the reason.
    let foreign = bed.target(TlsFiles { ca: own.ca.clone(), ..TlsFiles::in_dir(&other, certs::OPERATOR) });
    for _ in 0..200 {
        let error = refused_session(&foreign);
        assert!(error.contains("certificate"), "{error}");
    }
    // A server whose certificate is of another CA.
    let error = refused_session(&bed.target(TlsFiles::in_dir(&other, certs::OPERATOR)));
    assert!(error.contains("certificate"), "{error}");
    // A server's certificate names no client.
    for _ in 0..200 {
        let error = refused_session(&bed.target(bed.files(certs::SERVER)));
        assert!(error.contains("closed"), "{error}");
    }
    // No TLS, and bytes that are none.
    for junk in [&b"{\"op\":\"status\"}\n"[..], &[0x16, 3, 1, 0xff, 0xff, 0, 0], &[0; 100]] {
        let mut stream = TcpStream::connect(bed.status.tls_listen.unwrap()).unwrap();
        stream.write_all(junk).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        // An alert or nothing, then the end.
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.windows(4).any(|window| window == b"true"), "{answer:?}");
    }
    let mut operator = bed.connect(certs::OPERATOR);
    assert_eq!(operator.status().unwrap().mappings, 0, "others are still served");
}

#[test]
fn many_updates_are_open_at_once_and_answered_in_order() {
    let bed = Bed::new();
    let mut operator = bed.connect(certs::OPERATOR);
    let frame = |k: u32, sequence: u64| UpdateFrame {
        aa: aa(k),
        place: Some(Place {
            tor_la: Ipv4Addr::new(10, 1, 0, 1),
            anycast_la: ANYCAST,
            host_la: Some(Ipv4Addr::new(10, 64, 0, k as u8)),
            service: 3,
        }),
        if_version: None,
        version: None,
        client: 77,
        sequence,
    };
    for k in 1..=900 {
        operator.put_frame(&frame(k, u64::from(k)));
    }
    operator.put_frame(&frame(900, 900));
    operator.put_frame(&UpdateFrame { aa: Ipv4Addr::new(21, 0, 0, 1), ..frame(1, 901) });
    operator.put_frame(&UpdateFrame { place: None, client: 0, ..frame(5, 0) });
    operator.put_frame(&UpdateFrame { place: None, client: 0, ..frame(5, 0) });
    operator.put(&AdminRequest::Get { aa: aa(6) }).unwrap();
    operator.flush().unwrap();
    let mut last = 0;
    for k in 1..=901 {
        let verdict = operator.verdict().unwrap();
        assert_eq!(verdict.verdict, Verdict::Committed, "{k}: {verdict:?}");
        assert!(verdict.revision >= last, "in order");
        last = verdict.revision;
    }
    let outside = operator.verdict().unwrap();
    assert!(outside.verdict == Verdict::Refused && outside.text.contains("outside the AA block"), "{outside:?}");
    assert_eq!(operator.verdict().unwrap().verdict, Verdict::Committed);
    let gone = operator.verdict().unwrap();
    assert!(gone.verdict == Verdict::Refused && gone.text.contains("nothing to delete"), "{gone:?}");
    let row = operator.receive().unwrap().mapping.unwrap();
    assert_eq!((row.service, row.host_la), (3, Some(Ipv4Addr::new(10, 64, 0, 6))));
    let updates = operator.status().unwrap().updates;
    assert!(updates["records"] < updates["committed"] / 4, "they shared records: {updates:?}");
}

fn next_change(client: &mut AdminClient) -> (u64, Vec<(Ipv4Addr, bool)>) {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match client.watched(Duration::from_millis(100)).unwrap() {
            Watch::Changed { revision, changes } => {
                return (revision, changes.iter().map(|row| (row.aa, row.tor_la.is_some())).collect());
            }
            Watch::Lagged => panic!("it does not lag"),
            Watch::Silence => {}
        }
    }
    panic!("no change came");
}

#[test]
fn a_watch_tells_every_change_and_goes_on_where_another_ended() {
    let mut bed = Bed::new();
    let first = bed.admin.set(of(7, mapping(aa(1), 1))).unwrap();
    let mut watcher = bed.connect(certs::OPERATOR);
    assert_eq!(watcher.watch(None).unwrap(), first);
    assert_eq!(bed.admin.status().unwrap().sessions["watching"], 1);
    let second = bed.admin.set_many(vec![of(7, mapping(aa(1), 2)), of(8, mapping(aa(2), 2))]).unwrap();
    assert_eq!(next_change(&mut watcher), (second, vec![(aa(1), true), (aa(2), true)]));
    let third = bed.admin.del(aa(2)).unwrap();
    assert_eq!(next_change(&mut watcher), (third, vec![(aa(2), false)]));
    drop(watcher);

    let fourth = bed.admin.set(of(8, mapping(aa(3), 3))).unwrap();
    let mut again = bed.connect(certs::OPERATOR);
    again.watch(Some(second)).unwrap();
    assert_eq!(next_change(&mut again).0, third);
    assert_eq!(next_change(&mut again).0, fourth);
    // A service hears of what it may reach only.
    let mut seven = bed.connect(&certs::service_name(7));
    seven.watch(Some(first)).unwrap();
    assert_eq!(next_change(&mut seven), (second, vec![(aa(1), true)]));
    let fifth = bed.admin.set_many(vec![of(8, mapping(aa(4), 3)), mapping(aa(5), 3)]).unwrap();
    assert_eq!(next_change(&mut seven), (fifth, vec![(aa(5), true)]));
    wait_until("watches end with their sessions", || bed.admin.status().unwrap().sessions["watching"] == 2);
}

#[test]
fn a_watch_of_what_is_gone_says_so() {
    let mut bed = Bed::new();
    bed.admin.set(mapping(aa(1), 1)).unwrap();
    let mut watcher = bed.connect(certs::OPERATOR);
    watcher.watch(Some(1)).unwrap();
    assert_eq!(watcher.watched(PATIENCE).unwrap(), Watch::Lagged);
    let (rows, mut from) = (watcher.list().unwrap().len(), None);
    watcher.list_each(|_| Ok(())).map(|revision| from = Some(revision)).unwrap();
    assert_eq!(rows, 1);
    watcher.watch(from).unwrap();
    let revision = bed.admin.del(aa(1)).unwrap();
    assert_eq!(next_change(&mut watcher).0, revision);
}

#[test]
fn metrics_health_and_readiness_are_told_over_http() {
    let mut bed = Bed::new();
    bed.admin.set(mapping(aa(1), 1)).unwrap();
    assert!(bed.admin.del(aa(2)).is_err());
    let key = client_key(bed.dir.path());
    LookupClient::new(bed.status.listen, Some(&key), 0, 0).unwrap().ask(&[aa(1)], PATIENCE).unwrap();
    LookupClient::new(bed.status.listen, None, 0, 0).unwrap().ask(&[aa(1)], Duration::from_millis(50)).unwrap_err();
    wait_until("both are counted", || bed.admin.status().unwrap().lookups["datagrams"] == 2);
    let metrics = bed.http("/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200") && metrics.contains("application/openmetrics-text"), "{metrics}");
    for line in [
        "weft_directory_mappings 1",
        "weft_directory_lookup_answered_total 1",
        "weft_directory_lookup_datagrams_total 2",
        "weft_directory_ignored_total{reason=\"tag\"} 1",
        "weft_directory_updates_total{outcome=\"committed\"} 1",
        "weft_directory_updates_total{outcome=\"refused\"} 1",
        "weft_directory_store_up 1",
        "weft_directory_sessions_open 1",
        "# TYPE weft_directory_ignored counter",
        "# EOF",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
    }
    assert!(bed.http("/healthz").ends_with("ok\n"));
    assert!(bed.http("/readyz").ends_with("ready\n"));
    assert!(bed.http("/nothing").starts_with("HTTP/1.1 404"));
}

#[test]
fn secrets_are_replaced_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let new = private_file(&dir.path().join("new"), "ff0102030405060708090a0b0c0d0e0f");
    let second = KeyFile { id: 5, file: new.clone() };
    let config = DirectoryConfig { more_keys: vec![second.clone()], ..loopback_config(dir.path()) };
    let (_daemon, mut admin) = start(&config);
    admin.set(mapping(aa(1), 1)).unwrap();
    let server = admin.status().unwrap().listen;
    let derived = Secret::from_hex("ff0102030405060708090a0b0c0d0e0f").unwrap().derive(0, Ipv4Addr::LOCALHOST);
    let new = private_file(&dir.path().join("derived"), &derived.to_hex());
    for (file, id) in [(client_key(dir.path()), 0), (new.clone(), 5)] {
        let answer = LookupClient::new(server, Some(&file), id, 0).unwrap().ask(&[aa(1)], PATIENCE).unwrap();
        assert_eq!(answer.entries[0].status, Status::Ok);
    }
    let mut crossed = LookupClient::new(server, Some(&new), 0, 0).unwrap();
    crossed.ask(&[aa(1)], Duration::from_millis(50)).unwrap_err();
    let twice = DirectoryConfig { more_keys: vec![KeyFile { id: 0, ..second }], ..config };
    assert!(refused(&twice).contains("key id 0 is named twice"));
}

#[test]
fn tls_settings_that_cannot_work_are_refused_in_one_line_with_the_remedy() {
    let bed = Bed::new();
    let second = tempfile::tempdir().unwrap();
    let good =
        || DirectoryConfig { tls_listen: Some(ANY), tls: bed.config.tls.clone(), ..loopback_config(second.path()) };
    let with = |change: &dyn Fn(&mut TlsFiles)| {
        let mut files = bed.files(certs::SERVER);
        change(&mut files);
        DirectoryConfig { tls: Some(files), ..good() }
    };
    let file = |name: &str, text: &str| private_file(&second.path().join(name), text);
    let loose = file("loose", &std::fs::read_to_string(bed.files(certs::SERVER).key).unwrap());
    std::fs::set_permissions(&loose, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let junk = file("junk", "no certificate");
    for (config, says) in [
        (DirectoryConfig { tls: None, ..good() }, "tls_listen: goes with `tls`"),
        (DirectoryConfig { tls_listen: None, ..good() }, "tls_listen: goes with `tls`"),
        (DirectoryConfig { tls_listen: bed.status.tls_listen, ..good() }, "is in use"),
        (DirectoryConfig { http_listen: bed.status.http_listen, ..good() }, "is in use"),
        (with(&|files| files.cert = second.path().join("none")), "weft directory certs"),
        (with(&|files| files.cert = junk.clone()), "no certificate in it"),
        (with(&|files| files.ca = junk.clone()), "no certificate in it"),
        (with(&|files| files.key = loose.clone()), "chmod 600"),
        (with(&|files| files.key = junk.clone()), "TLS file"),
        (with(&|files| files.key = bed.files(certs::OPERATOR).key), "TLS file"),
        (DirectoryConfig { lookup_threads: Some(0), ..good() }, "lookup_threads: 0 is not between"),
    ] {
        let error = refused(&config);
        assert!(error.contains(says), "{error} does not say {says}");
    }
}

#[test]
fn a_folder_of_certificates_grows_and_keeps_its_ca() {
    let dir = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    let made = certs::make(dir.path(), &certs::Wanted::default()).unwrap();
    assert_eq!(made.len(), 3, "{made:?}");
    let before = (read("ca.pem"), read("operator.pem"), read("server.pem"));
    let more = certs::Wanted {
        addresses: vec![IpAddr::from([10, 64, 0, 9])],
        names: vec!["directory.example".to_owned()],
        services: vec![3],
    };
    let made = certs::make(dir.path(), &more).unwrap();
    let names: Vec<_> = made.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["server.pem", "service-3.pem"]);
    assert_eq!((read("ca.pem"), read("operator.pem")), (before.0, before.1));
    assert_ne!(read("server.pem"), before.2);
    for name in ["ca.key", "server.key", "operator.key", "service-3.key"] {
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(dir.path().join(name)).unwrap());
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let bad = certs::Wanted { names: vec!["dï".to_owned()], ..certs::Wanted::default() };
    assert!(certs::make(dir.path(), &bad).is_err());
    assert!(certs::make(Path::new("/proc/none"), &certs::Wanted::default()).is_err());
}

/// Whether the CA's certificate and this one hold so many days from now.
fn holds_in(dir: &Path, name: &str, days: u64) -> bool {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, UnixTime};
    let read = |name: &str| CertificateDer::from_pem_file(dir.join(format!("{name}.pem"))).unwrap();
    let (ca, certificate) = (read("ca"), read(name));
    let anchors = [webpki::anchor_from_trusted_cert(&ca).unwrap()];
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let then = UnixTime::since_unix_epoch(now + Duration::from_secs(days * 86_400));
    let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms.all;
    let certificate = webpki::EndEntityCert::try_from(&certificate).unwrap();
    let usage = webpki::KeyUsage::client_auth();
    certificate.verify_for_usage(algorithms, &anchors, &[], then, usage, None, None).is_ok()
}

#[test]
fn certificates_hold_for_a_year() {
    let dir = tempfile::tempdir().unwrap();
    certs::make(dir.path(), &certs::Wanted { services: vec![7], ..certs::Wanted::default() }).unwrap();
    for name in [certs::SERVER, certs::OPERATOR, "service-7"] {
        assert!(holds_in(dir.path(), name, 364) && !holds_in(dir.path(), name, 367), "{name}");
    }
}

#[test]
fn a_certificate_that_soon_ends_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let wanted = certs::Wanted { services: vec![7], ..certs::Wanted::default() };
    certs::make(dir.path(), &wanted).unwrap();
    let ca = rcgen::KeyPair::from_pem(&std::fs::read_to_string(dir.path().join("ca.key")).unwrap()).unwrap();
    let named = |name: &str| {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params
    };
    let issuer = rcgen::Issuer::new(named("weft directory CA"), ca);
    let mut old = named("operator");
    old.not_after = time::OffsetDateTime::now_utc() + time::Duration::days(30);
    let old = old.signed_by(&rcgen::KeyPair::generate().unwrap(), &issuer).unwrap();
    std::fs::write(dir.path().join("operator.pem"), old.pem()).unwrap();
    let made = certs::make(dir.path(), &wanted).unwrap();
    assert_eq!(made, ["server.pem", "operator.pem"].map(|name| dir.path().join(name)));
    assert!(holds_in(dir.path(), certs::OPERATOR, 300));
}

#[test]
fn certificates_change_and_are_revoked_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let wanted = certs::Wanted { services: vec![7, 8], ..certs::Wanted::default() };
    for folder in [&first, &second] {
        certs::make(folder, &wanted).unwrap();
    }
    let (file, list) = (dir.path().join("directory.toml"), dir.path().join("revoked"));
    std::fs::write(&list, "# nobody\n").unwrap();
    let mut config = DirectoryConfig {
        tls_listen: Some(ANY),
        tls: Some(TlsFiles::in_dir(&first, certs::SERVER)),
        tls_revoked: Some(list.clone()),
        ..loopback_config(dir.path())
    };
    let write = |config: &DirectoryConfig| std::fs::write(&file, weft_node::settings_text(config)).unwrap();
    write(&config);
    let path = file.clone();
    let (_daemon, mut admin) = start_with(&config, move || weft_node::read_settings(&path));
    let address = SocketAddr::V4(admin.status().unwrap().tls_listen.unwrap());
    let as_of = |folder: &Path, name: &str| Target::Server { address, files: TlsFiles::in_dir(folder, name) };
    let (seven, eight) = (certs::service_name(7), certs::service_name(8));
    let mut sevens = AdminClient::open(&as_of(&first, &seven)).unwrap();
    let mut eights = AdminClient::open(&as_of(&first, &eight)).unwrap();
    assert!(sevens.get(aa(1)).is_ok() && eights.get(aa(1)).is_ok());
    let reload = || socket::reload(DaemonKind::Directory, &config.socket);

    let command = std::process::Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
        .arg(first.join(format!("{seven}.pem")))
        .output();
    let print = command.expect("openssl is among the packages that tests need").stdout;
    let print = String::from_utf8(print).unwrap();
    std::fs::write(&list, "none\n").unwrap();
    let error = reload().unwrap_err().to_string();
    assert!(error.contains("line 1 is no fingerprint"), "{error}");
    assert!(sevens.get(aa(1)).is_ok(), "all is as it was");
    std::fs::write(&list, &print).unwrap();
    reload().unwrap();
    wait_until("sessions of a revoked certificate end", || sevens.get(aa(1)).is_err());
    let error = refused_session(&as_of(&first, &seven));
    assert!(error.contains("revoked"), "{error}");
    assert!(eights.get(aa(1)).is_ok() && AdminClient::open(&as_of(&first, &eight)).unwrap().get(aa(1)).is_ok());

    config.tls = Some(TlsFiles::in_dir(&second, certs::SERVER));
    write(&config);
    assert_eq!(
        socket::reload(DaemonKind::Directory, &config.socket).unwrap().changed,
        ["tls.ca", "tls.cert", "tls.key"]
    );
    AdminClient::open(&as_of(&second, &seven)).unwrap().get(aa(1)).expect("of the new CA");
    let error = refused_session(&as_of(&first, &eight));
    assert!(error.contains("certificate"), "{error}");
    assert!(eights.get(aa(1)).is_ok(), "who is there stays");
}
