//! A directory server whose store goes away: look-ups go on, updates fail and say why, `/readyz` tells, and all comes back.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::Instant;

use common::*;
use weft_node::client::LookupClient;
use weft_node::directory::{DirectoryConfig, StoreConfig};
use weft_node::store::EtcdSettings;
use weft_testbed::etcd::{EtcdCluster, EtcdClusterSettings};
use weft_wire::directory::Status;

const AA: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);

/// Status code and body.
fn get(server: SocketAddrV4, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole answer");
    let code = head.split(' ').nth(1).expect("a status line").parse().expect("a code");
    (code, body.to_owned())
}

#[test]
fn without_its_store_a_server_answers_lookups_and_says_that_it_is_not_ready() {
    if !weft_needs::program("etcd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let settings = EtcdClusterSettings::loopback(1, dir.path()).unwrap();
    let cluster = EtcdCluster::start(settings).unwrap();
    let config = DirectoryConfig {
        store: StoreConfig::Etcd(EtcdSettings { timeout_ms: 2000, ..cluster.settings("ready/") }),
        http_listen: Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)),
        ..loopback_config(dir.path())
    };
    let (_daemon, mut admin) = start(&config);
    admin.set(mapping(AA, 1)).unwrap();
    let status = admin.status().unwrap();
    let http = status.http_listen.unwrap();
    assert_eq!(get(http, "/readyz"), (200, "ready\n".to_owned()));

    cluster.kill(0);
    wait_until("it says that it is not ready", || get(http, "/readyz").0 == 503);
    let (_, why) = get(http, "/readyz");
    assert!(why.starts_with("not ready: ") && why.contains("http://127.0.0.1") && why.lines().count() == 1, "{why}");
    assert_eq!(get(http, "/healthz"), (200, "ok\n".to_owned()), "the process itself is well");
    let began = Instant::now();
    let refused = admin.set(mapping(AA, 2)).unwrap_err().to_string();
    assert!(began.elapsed() < PATIENCE && !refused.contains('\n'), "{refused}");
    let mut lookups = LookupClient::new(status.listen, Some(&client_key(dir.path())), 0, 0).unwrap();
    let found = lookups.ask(&[AA], PATIENCE).unwrap().entries[0];
    assert_eq!((found.status, found.tor_la), (Status::Ok, Ipv4Addr::new(10, 1, 0, 1)));

    cluster.restart(0);
    wait_until("it is ready again", || get(http, "/readyz").0 == 200);
    wait_until("updates work again", || admin.set(mapping(AA, 3)).is_ok());
}
