//! The directory server on loopback: updates, look-ups, bad datagrams, bad settings, a full disk.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::*;
use weft_node::client::LookupClient;
use weft_node::directory::protocol::{AdminRequest, AdminResponse, DirectoryStatus, MappingRow};
use weft_node::{DaemonKind, socket};
use weft_wire::directory::{ENTRIES_MAX, Secret, Status};

const AA: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 5);

fn aa(k: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x1400_0000 + k)
}

#[test]
fn a_mapping_is_set_looked_up_listed_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let config = loopback_config(dir.path());
    let (_daemon, mut admin) = start(&config);
    assert_eq!(admin.get(AA).unwrap(), None);
    let revision = admin.set(mapping(AA, 7)).unwrap();
    let row = MappingRow {
        aa: AA,
        tor_la: Ipv4Addr::new(10, 1, 0, 7),
        anycast_la: ANYCAST,
        service: 0,
        host_la: None,
        version: revision,
    };
    assert_eq!(admin.get(AA).unwrap(), Some(row));
    assert_eq!(admin.list().unwrap(), [row]);

    let server = admin.status().unwrap().listen;
    let mut lookup = LookupClient::new(server, Some(&client_key(dir.path())), 0, 0).unwrap();
    let answer = lookup.ask(&[AA, aa(6)], PATIENCE).unwrap();
    assert_eq!(answer.revision, revision);
    assert_eq!((answer.entries[0].status, answer.entries[0].tor_la), (Status::Ok, row.tor_la));
    assert_eq!((answer.entries[0].anycast_la, answer.entries[0].version), (ANYCAST, revision));
    assert_eq!(answer.entries[1].status, Status::Unknown);

    assert!(admin.del(AA).unwrap() > revision);
    assert_eq!(lookup.ask(&[AA], PATIENCE).unwrap().entries[0].status, Status::Unknown);
    let error = admin.del(AA).unwrap_err().to_string();
    assert!(error.contains("nothing to delete"), "{error}");
    let status = admin.status().unwrap();
    assert_eq!((status.mappings, status.lookups["answered"], status.lookups["questions"]), (0, 2, 3));
    assert_eq!((status.updates["committed"], status.updates["refused"]), (2, 1));
}

#[test]
fn a_reload_brings_keys_and_rules_and_a_bad_one_changes_nothing() {
    use weft_node::directory::{DirectoryConfig, KeyFile};
    let dir = tempfile::tempdir().unwrap();
    let (file, mut config) = (dir.path().join("directory.toml"), loopback_config(dir.path()));
    let write = |config: &DirectoryConfig| std::fs::write(&file, weft_node::settings_text(config)).unwrap();
    write(&config);
    let path = file.clone();
    let (_daemon, mut admin) = start_with(&config, move || weft_node::read_settings(&path));
    admin.set(mapping(AA, 7)).unwrap();
    let listen = admin.status().unwrap().listen;
    let second = "f0e0d0c0b0a090807060504030201000";
    let derived = Secret::from_hex(second).unwrap().derive(0, Ipv4Addr::LOCALHOST);
    let theirs = private_file(&dir.path().join("second-client"), &derived.to_hex());
    let asks = |key: &std::path::Path, id: u32, wait| {
        LookupClient::new(listen, Some(key), id, 0).unwrap().ask(&[AA], wait).is_ok()
    };
    assert!(!asks(&theirs, 2, Duration::from_millis(200)), "nobody knows that secret yet");

    let socket = config.socket.clone();
    let file_of_second = private_file(&dir.path().join("second"), second);
    config.more_keys = vec![KeyFile { id: 2, file: file_of_second }];
    config.tor_las = Some(vec![Ipv4Addr::new(10, 1, 0, 7)]);
    write(&config);
    let reload = || socket::reload(DaemonKind::Directory, &socket);
    assert_eq!(reload().unwrap().changed, ["more_keys", "tor_las"]);
    assert!(asks(&theirs, 2, PATIENCE) && asks(&client_key(dir.path()), 0, PATIENCE), "both secrets hold");
    assert!(admin.set(mapping(AA, 8)).unwrap_err().to_string().contains("10.1.0.8"));
    admin.set(mapping(AA, 7)).unwrap();

    for (bad, says) in [
        (DirectoryConfig { listen: "127.0.0.1:1".parse().unwrap(), ..config.clone() }, "listen: cannot change"),
        (DirectoryConfig { tor_las: Some(Vec::new()), ..config.clone() }, "tor_las: is empty"),
        (DirectoryConfig { key_file: Some("/nonexistent".into()), ..config.clone() }, "/nonexistent"),
    ] {
        write(&bad);
        let error = reload().unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error} does not say {says}");
    }
    assert!(asks(&theirs, 2, PATIENCE) && asks(&client_key(dir.path()), 0, PATIENCE));
    let shown: DirectoryStatus = socket::show(DaemonKind::Directory, &socket, ()).unwrap();
    assert_eq!((shown.mappings, shown.sessions["open"]), (1, 1), "{shown:?}");
}

#[test]
fn many_mappings_survive_a_restart_and_fill_many_lists_and_datagrams() {
    let dir = tempfile::tempdir().unwrap();
    let config = loopback_config(dir.path());
    let (daemon, mut admin) = start(&config);
    let mappings: Vec<_> = (1..=10_000).map(|k| mapping(aa(k), (k % 200) as u8 + 1)).collect();
    let revision = admin.set_many(mappings.clone()).unwrap();
    drop(admin);
    daemon.finish().unwrap();
    assert!(!config.admin_socket.exists(), "the socket's path goes with the server");

    let (_daemon, mut admin) = start(&config);
    let rows = admin.list().unwrap();
    assert_eq!(rows.len(), mappings.len());
    for (row, mapping) in rows.iter().zip(&mappings) {
        assert_eq!((row.aa, row.tor_la, row.version), (mapping.aa, mapping.tor_la, revision));
    }
    let server = admin.status().unwrap().listen;
    let mut lookup = LookupClient::new(server, Some(&client_key(dir.path())), 0, 0).unwrap();
    let asked: Vec<_> = (1..=ENTRIES_MAX as u32).map(aa).collect();
    let answer = lookup.ask(&asked, PATIENCE).unwrap();
    assert!(answer.entries.iter().zip(&mappings).all(|(entry, mapping)| entry.tor_la == mapping.tor_la));
    assert!(lookup.ask(&[AA; ENTRIES_MAX + 1], PATIENCE).unwrap_err().to_string().contains("split"));
}

#[test]
fn refused_updates_name_the_place_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let config =
        directory_with_tors(loopback_config(dir.path()), vec![Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)]);
    let (_daemon, mut admin) = start(&config);
    let version = admin.set(mapping(AA, 1)).unwrap();
    let mut refused = |mappings: Vec<_>, says: &str| {
        let error = admin.set_many(mappings).unwrap_err().to_string();
        assert!(error.contains(says), "{error} does not say {says}");
    };
    refused(vec![mapping(aa(9), 1), mapping(Ipv4Addr::new(21, 0, 0, 1), 1)], "update 2, AA 21.0.0.1: outside the AA");
    refused(vec![mapping(aa(9), 3)], "LA 10.1.0.3 is none of the known ToR switches");
    refused(vec![mapping(aa(9), 1), mapping(aa(9), 2)], "update 2, AA 20.0.0.9: named twice");
    refused(
        vec![weft_node::directory::protocol::MappingToSet { version: Some(version), ..mapping(AA, 2) }],
        "goes back",
    );
    refused(vec![weft_node::directory::protocol::MappingToSet { if_version: Some(1), ..mapping(AA, 2) }], "expected");
    refused(Vec::new(), "no updates");
    assert_eq!(admin.list().unwrap().len(), 1);
    assert_eq!(admin.get(AA).unwrap().unwrap().version, version);
}

fn directory_with_tors(
    config: weft_node::directory::DirectoryConfig,
    tor_las: Vec<Ipv4Addr>,
) -> weft_node::directory::DirectoryConfig {
    weft_node::directory::DirectoryConfig { tor_las: Some(tor_las), ..config }
}

#[test]
fn lines_are_answered_in_order_whatever_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let (_daemon, _admin) = start(&loopback_config(dir.path()));
    let mut stream = UnixStream::connect(dir.path().join("admin.sock")).unwrap();
    let set = |k: u32, sequence: u64| {
        let request = AdminRequest::SetMany { mappings: vec![mapping(aa(k), 1)], client: 77, sequence };
        serde_json::to_string(&request).unwrap()
    };
    let lines = [
        set(1, 1),
        set(1, 1),
        "{\"op\":\"get\",\"aa\":\"20.0.0.1\"}".to_owned(),
        "{\"op\":\"fly\"}".to_owned(),
        "{\"op\":\"get\",\"aa\":\"20.0.0.1\",\"speed\":9}".to_owned(),
        "{\"op\":\"get\",\"aa\":\"20.0.0.1000\"}".to_owned(),
        "\u{0}\u{1}garbage".to_owned(),
        set(2, 0),
        set(2, 2),
        "{\"op\":\"status\"}".to_owned(),
    ];
    stream.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    let answers: Vec<AdminResponse> = BufReader::new(&stream)
        .lines()
        .take(lines.len())
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    let kinds: Vec<_> = answers.iter().map(|answer| answer.kind.as_deref().unwrap_or("ok")).collect();
    assert_eq!(
        kinds,
        ["ok", "ok", "ok", "request", "request", "request", "request", "refused", "ok", "ok"],
        "{answers:?}"
    );
    assert_eq!(answers[0].revision, answers[1].revision, "a request that comes again is not applied again");
    assert_eq!(answers[2].mapping.unwrap().version, answers[0].revision.unwrap());
    assert!(answers[4].error.as_deref().unwrap().contains("speed"), "{:?}", answers[4]);
    assert!(answers[7].error.as_deref().unwrap().contains("sequence 0 after 1"), "{:?}", answers[7]);
    assert_eq!(answers[9].status.as_ref().unwrap().mappings, 2);
}

#[test]
fn a_line_without_end_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_daemon, mut admin) = start(&loopback_config(dir.path()));
    let mut stream = UnixStream::connect(dir.path().join("admin.sock")).unwrap();
    let mut answer = String::new();
    // The server stops reading in the middle; the rest may meet a closed socket.
    let _ = stream.write_all(&vec![b'x'; (16 << 20) + 70_000]);
    BufReader::new(&stream).read_line(&mut answer).unwrap();
    assert!(answer.contains("longer than"), "{answer}");
    assert_eq!(admin.status().unwrap().mappings, 0, "others are still served");
}

/// A generator for junk: small, seeded.
struct Junk(u64);

impl Junk {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

#[test]
fn junk_gets_no_answer_changes_nothing_and_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let config = loopback_config(dir.path());
    let (_daemon, mut admin) = start(&config);
    admin.set(mapping(AA, 1)).unwrap();
    let before = admin.list().unwrap();
    let server = admin.status().unwrap().listen;

    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut junk = Junk(7);
    let mut sent = 0;
    let mut all_counted = |sent: u64| {
        wait_until("all junk is counted", || admin.status().unwrap().lookups["datagrams"] == sent);
    };
    for round in 0..3000 {
        let length = if round % 10 == 0 { 9000 } else { junk.next() as usize % 1100 };
        let mut datagram = junk.bytes(length);
        if round % 2 == 0 && length >= 48 {
            // Nearly right: magic, version and kind fit, and sometimes the count.
            datagram[..4].copy_from_slice(&[
                0x57,
                0x44,
                0x10 | (round as u8 % 16),
                ((length - 48) / 24).min(255) as u8,
            ]);
            datagram[28..32].fill(0);
        }
        socket.send(&datagram).unwrap();
        sent += 1;
        // No more at a time than its socket has room for.
        if sent % 20 == 0 {
            all_counted(sent);
        }
    }
    all_counted(sent);
    let mut buffer = [0; 2048];
    assert!(socket.recv(&mut buffer).is_err(), "junk is never answered");
    let status = admin.status().unwrap();
    assert_eq!(status.ignored.values().sum::<u64>(), sent, "{:?}", status.ignored);
    assert!(["length", "magic", "kind", "count"].iter().all(|reason| status.ignored[*reason] > 0), "{status:?}");
    assert_eq!(status.lookups["answered"], 0);
    assert_eq!(admin.list().unwrap(), before);
    let mut lookup = LookupClient::new(server, Some(&client_key(dir.path())), 0, 0).unwrap();
    assert_eq!(lookup.ask(&[AA], PATIENCE).unwrap().entries[0].status, Status::Ok, "good clients are still served");
}

#[test]
fn another_key_service_or_key_id_gets_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let config = loopback_config(dir.path());
    let (_daemon, mut admin) = start(&config);
    let server = admin.status().unwrap().listen;
    let other = private_file(&dir.path().join("other"), "ff0102030405060708090a0b0c0d0e0f");
    let right = client_key(dir.path());
    let right = Some(right.as_path());
    let secret = config.key_file.as_deref();
    for (key, key_id, service, counter) in [
        (Some(other.as_path()), 0, 0, "tag"),
        (None, 0, 0, "tag"),
        (right, 1, 0, "key_id"),
        (right, 0, 1, "tag"),
        (secret, 0, 0, "tag"),
    ] {
        let before = admin.status().unwrap().ignored[counter];
        let mut lookup = LookupClient::new(server, key, key_id, service).unwrap();
        let error = lookup.ask(&[AA], Duration::from_millis(100)).unwrap_err().to_string();
        assert!(error.contains("no valid answer from"), "{error}");
        wait_until(counter, || admin.status().unwrap().ignored[counter] == before + 1);
    }
}

#[test]
fn an_open_server_answers_without_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let config = weft_node::directory::DirectoryConfig { key_file: None, open: true, ..loopback_config(dir.path()) };
    let (_daemon, mut admin) = start(&config);
    admin.set(mapping(AA, 1)).unwrap();
    let mut lookup = LookupClient::new(admin.status().unwrap().listen, None, 0, 0).unwrap();
    assert_eq!(lookup.ask(&[AA], PATIENCE).unwrap().entries[0].status, Status::Ok);
}

#[test]
fn settings_that_cannot_work_are_refused_in_one_line_with_the_remedy() {
    use weft_node::directory::DirectoryConfig;
    let dir = tempfile::tempdir().unwrap();
    let good = || loopback_config(dir.path());
    let at = |ip: [u8; 4]| SocketAddrV4::new(ip.into(), 0);
    let loose = private_file(&dir.path().join("loose"), KEY);
    std::fs::set_permissions(&loose, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let file = private_file(&dir.path().join("file"), "not a socket");
    for (config, says) in [
        (DirectoryConfig { aa_block: "20.0.0.1/8".into(), ..good() }, "aa_block: "),
        (DirectoryConfig { aa_block: "100.64.0.0/16".into(), ..good() }, "flow hashes"),
        (DirectoryConfig { tor_las: Some(vec![[20, 1, 0, 1].into()]), ..good() }, "tor_las: 20.1.0.1 is inside the AA"),
        (DirectoryConfig { listen: at([20, 0, 0, 9]), ..good() }, "listen: 20.0.0.9 is inside the AA block"),
        (DirectoryConfig { tor_las: Some(Vec::new()), ..good() }, "tor_las: "),
        (DirectoryConfig { listen: at([0, 0, 0, 0]), ..good() }, "listen: "),
        (DirectoryConfig { listen: at([192, 0, 2, 1]), ..good() }, "is not an address of this host"),
        (DirectoryConfig { key_file: None, ..good() }, "key_file: is missing"),
        (DirectoryConfig { open: true, ..good() }, "contradicts"),
        (DirectoryConfig { key_file: None, open: true, listen: at([10, 0, 0, 1]), ..good() }, "would let everybody"),
        (DirectoryConfig { key_file: Some(dir.path().join("none")), ..good() }, "openssl rand"),
        (DirectoryConfig { key_file: Some(loose), ..good() }, "chmod 600"),
        (DirectoryConfig { store: dir.path().join("none/store").into(), ..good() }, "directory does not exist"),
        (DirectoryConfig { admin_socket: file, ..good() }, "is no socket"),
    ] {
        let error = refused(&config);
        assert!(error.contains(says), "{error} does not say {says}");
    }
}

#[test]
fn an_address_a_store_or_a_socket_in_use_is_refused() {
    use weft_node::directory::DirectoryConfig;
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let config = loopback_config(one.path());
    let (_daemon, mut admin) = start(&config);
    let listen = admin.status().unwrap().listen;
    let other = loopback_config(two.path());
    let busy = refused(&DirectoryConfig { listen, ..other.clone() });
    assert!(busy.contains("is in use") && busy.contains("ss -lunp"), "{busy}");
    let busy = refused(&DirectoryConfig { store: config.store.clone(), ..other.clone() });
    assert!(busy.contains("another process has it open"), "{busy}");
    let busy = refused(&DirectoryConfig { admin_socket: config.admin_socket.clone(), ..other });
    assert!(busy.contains("belongs to a running process"), "{busy}");
    admin.set(mapping(AA, 1)).expect("the first server is unharmed");
}

#[test]
fn unknown_settings_are_refused_by_name() {
    let mut value = serde_json::to_value(weft_node::directory::DirectoryConfig::example()).unwrap();
    value["speed"] = 9.into();
    let error = serde_json::from_value::<weft_node::directory::DirectoryConfig>(value).unwrap_err().to_string();
    assert!(error.contains("speed"), "{error}");
    let mut value = serde_json::to_value(weft_node::agent::AgentConfig::example()).unwrap();
    value["speed"] = 9.into();
    let error = serde_json::from_value::<weft_node::agent::AgentConfig>(value).unwrap_err().to_string();
    assert!(error.contains("speed"), "{error}");
}
