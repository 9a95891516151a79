//! The replicated store on real etcd clusters: order, exactly once, compaction, nodes killed and paused, no space.

mod common;

use std::fs::{Permissions, set_permissions};
use std::future::Future;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::*;
use etcd_client::{AlarmAction, AlarmOptions, AlarmType, Client, ConnectOptions, DeleteOptions, Permission};
use weft_control::address::Locator;
use weft_control::directory::{AaRanges, Batch, Request, Rules, Table, Update};
use weft_node::directory::replica::{Failure, Replica, ReplicaSettings};
use weft_node::directory::{DirectoryConfig, StoreConfig};
use weft_node::store::{EtcdSettings, EtcdStore, EtcdTls, Store, StoreError, catch_up};
use weft_node::{DaemonKind, socket};
use weft_testbed::etcd::{EtcdCluster, EtcdClusterSettings, EtcdNode};

fn cluster_with(nodes: usize, quota_bytes: u64) -> Option<(tempfile::TempDir, EtcdCluster)> {
    if !weft_needs::program("etcd") {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let settings = EtcdClusterSettings::loopback(nodes, dir.path()).unwrap();
    let cluster = EtcdCluster::start(EtcdClusterSettings { quota_bytes, ..settings });
    Some((dir, cluster.unwrap_or_else(|error| panic!("{error}"))))
}

fn cluster(nodes: usize) -> Option<(tempfile::TempDir, EtcdCluster)> {
    cluster_with(nodes, 1 << 30)
}

/// Asks the cluster itself.
fn raw<T, F: Future<Output = Result<T, etcd_client::Error>>>(
    cluster: &EtcdCluster,
    ask: impl FnOnce(Client) -> F,
) -> T {
    raw_with(cluster, None, ask)
}

fn raw_with<T, F: Future<Output = Result<T, etcd_client::Error>>>(
    cluster: &EtcdCluster,
    options: Option<ConnectOptions>,
    ask: impl FnOnce(Client) -> F,
) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async { ask(Client::connect(cluster.endpoints(), options).await.unwrap()).await.unwrap() })
}

fn aa(k: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x1400_0000 + k)
}

fn set(k: u32) -> Request {
    let locator = Locator { tor_la: Ipv4Addr::from(0x0a01_0000 + k % 250 + 1), anycast_la: ANYCAST };
    Request::once(vec![Update::set(aa(k), locator)])
}

fn batch(k: u32) -> Batch {
    Batch::of(set(k))
}

fn replica(settings: &EtcdSettings) -> Replica {
    let rules = Rules {
        aa_block: "20.0.0.0/8".parse().unwrap(),
        tor_las: None,
        aa_ranges: AaRanges::default(),
        updates_max: 1 << 20,
    };
    let settings_of_replica = ReplicaSettings { snapshot_records: 300, ..ReplicaSettings::default() };
    Replica::start(Arc::new(EtcdStore::open(settings).unwrap()), rules, settings_of_replica).unwrap()
}

fn loaded(store: &EtcdStore) -> Table {
    let mut table = store.load().unwrap();
    catch_up(store, &mut table).unwrap();
    table
}

#[test]
fn what_one_store_appends_another_follows_in_order_from_anywhere() {
    let Some((_dir, cluster)) = cluster(1) else { return };
    let settings = cluster.settings("a/");
    let (one, two) = (EtcdStore::open(&settings).unwrap(), EtcdStore::open(&settings).unwrap());
    let mut table = one.load().unwrap();
    assert!(table.revision() > 1 << 50, "a new log begins at a revision made from the time");
    assert_eq!(two.load().unwrap(), table);
    let mut live = two.follow(table.revision()).unwrap();
    assert_eq!(live.next(Duration::ZERO).unwrap(), []);
    let mut expected = Vec::new();
    for k in 1..=20 {
        let store = if k % 2 == 0 { &one } else { &two };
        let revision = store.append(&batch(k)).unwrap();
        assert!(revision > table.revision());
        table.apply(revision, &batch(k));
        expected.push((revision, batch(k)));
    }
    let mut seen = Vec::new();
    wait_until("all records are seen", || {
        seen.extend(live.next(Duration::from_millis(100)).unwrap());
        seen.len() >= expected.len()
    });
    assert_eq!(seen, expected);
    let mut late = one.follow(expected[9].0).unwrap();
    assert_eq!(late.next(Duration::ZERO).unwrap(), expected[10..], "what is there comes at once");
    let other = EtcdStore::open(&cluster.settings("b/")).unwrap();
    assert_eq!(other.load().unwrap().mapped(), 0, "another prefix is another log");
}

#[test]
fn snapshots_replace_the_log_and_followers_that_lag_too_far_are_told() {
    let Some((_dir, cluster)) = cluster(1) else { return };
    let store = EtcdStore::open(&cluster.settings("s/")).unwrap();
    let mut table = store.load().unwrap();
    let began = table.revision();
    let append = |table: &mut Table, keys: std::ops::Range<u32>| {
        for k in keys {
            table.apply(store.append(&batch(k)).unwrap(), &batch(k));
        }
    };
    append(&mut table, 0..10);
    let mut lagging = store.follow(began).unwrap();
    store.snapshot(&table).unwrap();
    store.compact(table.revision()).unwrap();
    assert!(store.follow(began).is_ok(), "one snapshot later the records are still there");
    store.snapshot(&table).unwrap();
    append(&mut table, 10..20);
    let mut live = store.follow(table.revision()).unwrap();
    store.snapshot(&table).unwrap();
    store.compact(table.revision()).unwrap();
    assert!(matches!(store.follow(began), Err(StoreError::Compacted { .. })));
    // Its first page was read before; the rest is gone by now.
    let mut outcome = Ok(Vec::new());
    for _ in 0..3 {
        outcome = lagging.next(Duration::from_millis(500));
    }
    let is_behind = matches!(outcome, Err(StoreError::Compacted { .. } | StoreError::Behind { .. }));
    assert!(outcome.is_ok() || is_behind, "{outcome:?}");
    append(&mut table, 20..25);
    let mut seen = Vec::new();
    wait_until("a follower that does not lag goes on", || {
        seen.extend(live.next(Duration::from_millis(100)).unwrap());
        seen.len() >= 5
    });
    assert_eq!(loaded(&store), table);
    assert_eq!(loaded(&EtcdStore::open(&cluster.settings("s/")).unwrap()), table);
    let keys = raw(&cluster, |mut client| async move {
        client.get("s/", Some(etcd_client::GetOptions::new().with_prefix().with_keys_only())).await
    });
    let keys: Vec<_> = keys.kvs().iter().map(|pair| String::from_utf8_lossy(pair.key()).into_owned()).collect();
    assert_eq!(keys.iter().filter(|key| key.starts_with("s/page/")).count(), 1, "old pages are swept: {keys:?}");
    assert_eq!(keys.iter().filter(|key| key.starts_with("s/log/")).count(), 15, "old records are gone: {keys:?}");
}

#[test]
fn a_compaction_by_somebody_else_loses_nothing() {
    let Some((_dir, cluster)) = cluster(1) else { return };
    let store = EtcdStore::open(&cluster.settings("c/")).unwrap();
    let mut table = store.load().unwrap();
    let began = table.revision();
    let mut lagging = store.follow(began).unwrap();
    let mut expected = Vec::new();
    for k in 0..50 {
        let revision = store.append(&batch(k)).unwrap();
        table.apply(revision, &batch(k));
        expected.push((revision, batch(k)));
    }
    raw(&cluster, |mut client| async move {
        let now = client.get("x", None).await?.header().unwrap().revision();
        client.compact(now, None).await
    });
    let mut seen = Vec::new();
    wait_until("it says that it is behind before it reads the log", || {
        match lagging.next(Duration::from_millis(100)) {
            Ok(records) => {
                assert_eq!(records, [], "nothing is shown before that is said");
                false
            }
            Err(error) => matches!(error, StoreError::Behind { .. }),
        }
    });
    wait_until("it sees all records", || {
        seen.extend(lagging.next(Duration::from_millis(100)).unwrap());
        seen.len() >= expected.len()
    });
    assert_eq!(seen, expected);
    assert_eq!(loaded(&store), table);
}

#[test]
fn servers_that_snapshot_at_once_leave_one_whole_snapshot() {
    let Some((_dir, cluster)) = cluster(1) else { return };
    let stores: Vec<_> = (0..3).map(|_| EtcdStore::open(&cluster.settings("t/")).unwrap()).collect();
    let mut table = stores[0].load().unwrap();
    for round in 0..4 {
        let many: Vec<_> = (0..6000).flat_map(|k| set(round * 6000 + k).updates).collect();
        let record = Batch::of(Request::once(many));
        table.apply(stores[0].append(&record).unwrap(), &record);
        std::thread::scope(|scope| {
            for store in &stores {
                scope.spawn(|| {
                    store.snapshot(&table).unwrap();
                    store.compact(table.revision()).unwrap();
                });
            }
        });
        assert_eq!(stores[1].load().unwrap(), table);
    }
    stores[2].append(&batch(1)).expect("a server that slept through snapshots appends to what is now");
}

#[test]
fn a_request_is_applied_once_through_whichever_servers_it_comes() {
    let Some((_dir, cluster)) = cluster(3) else { return };
    let replicas: Vec<_> = (0..3).map(|_| replica(&cluster.settings("once/"))).collect();
    for sequence in 1..=20 {
        let request = Request { client: 9, sequence, ..set(sequence as u32) };
        let revisions: Vec<_> = std::thread::scope(|scope| {
            let ask = |replica: &Replica| replica.commit(request.clone(), PATIENCE).unwrap();
            let threads: Vec<_> = replicas.iter().map(|replica| scope.spawn(move || ask(replica))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(revisions.iter().all(|revision| *revision == revisions[0]), "{revisions:?}");
        let version = replicas[0].read(|table| table.record(aa(sequence as u32)).unwrap().version);
        assert_eq!(version, revisions[0]);
    }
    let late = replicas[1].commit(Request { client: 9, sequence: 3, ..set(3) }, PATIENCE);
    assert!(matches!(late, Err(Failure::Refused(_))), "{late:?}");
    converged(&replicas);
}

/// Waits until all replicas show the same, and compares it with the store. Returns the table.
fn converged(replicas: &[Replica]) -> Table {
    wait_until("all replicas show the same revision", || {
        let revision = replicas[0].table_hash().0;
        replicas.iter().all(|replica| replica.table_hash().0 == revision)
    });
    let hashes: Vec<_> = replicas.iter().map(Replica::table_hash).collect();
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
    replicas[0].read(Table::clone)
}

/// Commits AAs of its own, one after the other, and remembers which were acknowledged at which revision.
struct Writer {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<std::sync::atomic::AtomicUsize>,
    thread: JoinHandle<Vec<(u32, u64)>>,
}

impl Writer {
    fn start(replica: &Replica, first: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::default();
        let (theirs, count, replica) = (Arc::clone(&stop), Arc::clone(&acknowledged), replica.clone());
        let thread = std::thread::spawn(move || {
            let mut done = Vec::new();
            for k in first.. {
                if theirs.load(Ordering::Relaxed) {
                    break;
                }
                if let Ok(revision) = replica.commit(set(k), PATIENCE) {
                    done.push((k, revision));
                    std::sync::atomic::AtomicUsize::fetch_add(&count, 1, Ordering::Relaxed);
                }
            }
            done
        });
        Self { stop, acknowledged, thread }
    }

    fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    fn finish(self) -> Vec<(u32, u64)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[test]
fn no_acknowledged_update_is_lost_when_any_node_is_killed_or_paused() {
    let Some((_dir, cluster)) = cluster(3) else { return };
    let settings = cluster.settings("kill/");
    let replicas = [replica(&settings), replica(&settings)];
    let writers: Vec<_> =
        [1, 100_001].into_iter().zip(&replicas).map(|(first, replica)| Writer::start(replica, first)).collect();
    let progress = |what: &str| {
        let before: Vec<_> = writers.iter().map(Writer::acknowledged).collect();
        wait_until(what, || writers.iter().zip(&before).all(|(writer, before)| writer.acknowledged() >= before + 20));
    };
    progress("updates at the start");
    // One of them leads, one follows, and each replica is connected to some of them.
    for node in 0..3 {
        cluster.kill(node);
        progress("updates go on with a node killed");
        cluster.restart(node);
        cluster.wait_healthy(PATIENCE).unwrap();
        cluster.pause(node);
        progress("updates go on with a node paused");
        cluster.resume(node);
        cluster.wait_healthy(PATIENCE).unwrap();
    }
    let leader = cluster.leader().expect("there is a leader");
    cluster.pause(leader);
    progress("updates go on with the leader paused");
    cluster.resume(leader);
    cluster.wait_healthy(PATIENCE).unwrap();
    progress("updates at the end");
    let acknowledged: Vec<_> = writers.into_iter().flat_map(Writer::finish).collect();
    let table = converged(&replicas);
    for (k, revision) in &acknowledged {
        assert_eq!(table.record(aa(*k)).map(|record| record.version), Some(*revision), "AA {k}");
    }
    assert_eq!(loaded(&EtcdStore::open(&settings).unwrap()), table, "the store holds what the replicas show");
    assert_eq!(replicas.iter().map(|replica| replica.status().repaired).sum::<u64>(), 0);
}

#[test]
fn without_most_nodes_reads_go_on_and_updates_fail_in_time_and_say_why() {
    let Some((_dir, cluster)) = cluster(3) else { return };
    let replica = replica(&EtcdSettings { timeout_ms: 2000, ..cluster.settings("lost/") });
    let revision = replica.commit(set(1), PATIENCE).unwrap();
    replica.check().unwrap();
    cluster.kill(0);
    cluster.kill(1);
    let began = Instant::now();
    let failure = replica.commit(set(2), Duration::from_millis(3000)).unwrap_err();
    assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
    let text = failure.to_string();
    assert!(
        matches!(failure, Failure::Store(_)) && text.contains("http://127.0.0.1") && !text.contains('\n'),
        "{text}"
    );
    assert_eq!(replica.read(|table| table.record(aa(1)).unwrap().version), revision);
    wait_until("it says that it is not ready", || replica.check().is_err());
    assert!(replica.status().store_error.is_some());
    cluster.restart(0);
    cluster.restart(1);
    wait_until("updates work again", || replica.commit(set(3), Duration::from_secs(4)).is_ok());
    wait_until("it says that it is ready", || replica.check().is_ok());
    assert!(replica.status().store_error.is_none());
    converged(&[replica]);
}

#[test]
fn a_cluster_without_space_refuses_updates_clearly_and_recovers() {
    let Some((_dir, cluster)) = cluster_with(1, 4 << 20) else { return };
    let replica = replica(&cluster.settings("full/"));
    replica.commit(set(1), PATIENCE).unwrap();
    raw(&cluster, |mut client| async move {
        for k in 0.. {
            if client.put(format!("filler/{k}"), vec![k as u8; 256 << 10], None).await.is_err() {
                break;
            }
        }
        Ok(())
    });
    let failure = replica.commit(set(2), PATIENCE).unwrap_err().to_string();
    assert!(failure.contains("NOSPACE") && failure.contains("nothing was changed"), "{failure}");
    assert_eq!(replica.read(Table::mapped), 1, "look-ups go on");
    wait_until("it says that it is not ready", || replica.check().is_err_and(|why| why.contains("NOSPACE")));
    raw(&cluster, |mut client| async move {
        let all = DeleteOptions::new().with_prefix();
        let now = client.delete("filler/", Some(all)).await?.header().unwrap().revision();
        client.compact(now, Some(etcd_client::CompactionOptions::new().with_physical())).await?;
        client.defragment().await?;
        for alarm in client.alarm(AlarmAction::Get, AlarmType::Nospace, None).await?.alarms() {
            let mut of = AlarmOptions::new();
            of.with_member(alarm.member_id());
            client.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(of)).await?;
        }
        Ok(())
    });
    replica.commit(set(3), PATIENCE).expect("there is space again");
    wait_until("it says that it is ready", || replica.check().is_ok());
    assert_eq!(replica.read(Table::mapped), 2);
}

#[test]
fn a_user_sees_the_prefix_only_and_a_wrong_password_is_refused() {
    let Some((dir, cluster)) = cluster(1) else { return };
    raw(&cluster, |mut client| async move {
        client.user_add("root", "all", None).await?;
        client.role_add("root").await?;
        client.user_grant_role("root", "root").await?;
        client.user_add("weft", "secret", None).await?;
        client.role_add("directory").await?;
        client.role_grant_permission("directory", Permission::read_write("mine/").with_prefix()).await?;
        client.user_grant_role("weft", "directory").await?;
        client.auth_enable().await
    });
    let password_file = |name: &str, text: &str| Some(private_file(&dir.path().join(name), text));
    let as_user = |prefix: &str, password_file| EtcdSettings {
        user: Some("weft".to_owned()),
        password_file,
        timeout_ms: 5000,
        ..cluster.settings(prefix)
    };
    let good = password_file("good", "secret\n");
    let replica = replica(&as_user("mine/", good.clone()));
    replica.commit(set(1), PATIENCE).unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    replica.check().expect("alarms are none of its business");
    for settings in
        [as_user("mine/", password_file("bad", "guess")), as_user("theirs/", good), cluster.settings("mine/")]
    {
        let error = EtcdStore::open(&settings).err().expect("refused");
        assert!(matches!(error, StoreError::Denied { .. } | StoreError::Rejected { .. }), "{error:?}");
        assert!(!error.to_string().contains("secret") && !error.to_string().contains('\n'), "{error}");
    }
    let as_root = ConnectOptions::new().with_user("root", "all");
    raw_with(&cluster, Some(as_root), |mut client| async move { client.user_change_password("weft", "another").await });
    wait_until("the old password is of no use", || replica.commit(set(2), PATIENCE).is_err());
    private_file(&dir.path().join("good"), "another");
    replica.renew_store().unwrap();
    replica.commit(set(3), PATIENCE).expect("the file is read again");
    set_permissions(dir.path().join("good"), Permissions::from_mode(0o640)).unwrap();
    let error = replica.renew_store().unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    replica.commit(set(4), PATIENCE).expect("it goes on as before");
}

#[test]
fn settings_that_cannot_work_are_refused_with_the_remedy() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let plain = |url: &str| EtcdSettings { timeout_ms: 300, ..EtcdSettings::plain([url.to_owned()], "x/") };
    let tls =
        |file: &str| EtcdTls { ca_file: file.into(), cert_file: file.into(), key_file: file.into(), server_name: None };
    let junk = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(junk.path(), "junk").unwrap();
    for (settings, says) in [
        (EtcdSettings::plain([], "x/"), "no endpoints"),
        (EtcdSettings { prefix: String::new(), ..plain("http://127.0.0.1:1") }, "`prefix` is empty"),
        (plain("127.0.0.1:2379"), "is no URL"),
        (plain("https://127.0.0.1:2379"), "needs `tls`"),
        (EtcdSettings { tls: Some(tls("/none")), ..plain("https://127.0.0.1:1") }, "TLS file /none"),
        (EtcdSettings { user: Some("weft".to_owned()), ..plain("http://127.0.0.1:1") }, "go together"),
        (plain(&format!("http://{closed}")), "unreachable"),
    ] {
        let error = EtcdStore::open(&settings).err().expect("refused").to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error} does not say {says}");
    }
    let junk = EtcdSettings { tls: Some(tls(junk.path().to_str().unwrap())), ..plain("https://127.0.0.1:1") };
    assert!(EtcdStore::open(&junk).is_err());
}

#[test]
fn a_log_that_is_not_ours_is_left_alone() {
    let Some((_dir, cluster)) = cluster(1) else { return };
    raw(&cluster, |mut client| async move { client.put("foreign/origin", "precious", None).await });
    let error = EtcdStore::open(&cluster.settings("foreign/")).err().expect("refused");
    assert!(matches!(&error, StoreError::Foreign { key, .. } if key == "foreign/origin"), "{error}");
    let store = EtcdStore::open(&cluster.settings("gone/")).unwrap();
    store.append(&batch(1)).unwrap();
    raw(&cluster, |mut client| async move { client.delete("gone/", Some(DeleteOptions::new().with_prefix())).await });
    let error = store.load().unwrap_err().to_string();
    assert!(error.contains("emptied or restored"), "{error}");
}

/// A CA of its own, and files signed by it.
struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    ca_file: std::path::PathBuf,
    dir: std::path::PathBuf,
}

impl Authority {
    fn new(dir: &std::path::Path, name: &str) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let ca_file = private_file(&dir.join(format!("{name}.pem")), &params.self_signed(&key).unwrap().pem());
        Self { issuer: rcgen::Issuer::new(params, key), ca_file, dir: dir.to_owned() }
    }

    fn sign(&self, name: &str) -> EtcdTls {
        use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![ServerAuth, ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        EtcdTls {
            ca_file: self.ca_file.clone(),
            cert_file: private_file(&self.dir.join(format!("{name}.crt")), &certificate.pem()),
            key_file: private_file(&self.dir.join(format!("{name}.key")), &key.serialize_pem()),
            server_name: None,
        }
    }
}

/// Kills a child at the end.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A node that shows this certificate, and wants those of the same CA.
fn node_with_tls(node: &EtcdNode, tls: &EtcdTls) -> Child {
    let (client, peer) =
        (format!("https://127.0.0.1:{}", node.client_port), format!("http://127.0.0.1:{}", node.peer_port));
    let log = std::fs::File::create(node.dir.with_extension("log")).unwrap();
    let child = std::process::Command::new("etcd")
        .args(["--data-dir", node.dir.to_str().unwrap(), "--client-cert-auth", "--logger", "zap"])
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("default={peer}")])
        .args(["--cert-file".as_ref(), tls.cert_file.as_os_str(), "--key-file".as_ref(), tls.key_file.as_os_str()])
        .args(["--trusted-ca-file".as_ref(), tls.ca_file.as_os_str()])
        .stderr(log)
        .spawn();
    Child(child.unwrap())
}

#[test]
fn certificates_for_the_cluster_change_without_a_restart() {
    if !weft_needs::program("etcd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let settings = EtcdClusterSettings::loopback(1, dir.path()).unwrap();
    let node = &settings.nodes[0];
    let file = |name: &str| dir.path().join(name);
    let shown = EtcdTls {
        ca_file: file("shown-ca"),
        cert_file: file("shown-cert"),
        key_file: file("shown-key"),
        server_name: None,
    };
    let show = |tls: &EtcdTls| {
        for (from, to) in
            [(&tls.ca_file, &shown.ca_file), (&tls.cert_file, &shown.cert_file), (&tls.key_file, &shown.key_file)]
        {
            private_file(to, &std::fs::read_to_string(from).unwrap());
        }
    };
    let (before, after) = (Authority::new(dir.path(), "before"), Authority::new(dir.path(), "after"));
    show(&before.sign("client-before"));
    let child = node_with_tls(node, &before.sign("server-before"));
    let endpoint = format!("https://127.0.0.1:{}", node.client_port);
    let store = EtcdSettings { tls: Some(shown.clone()), timeout_ms: 1000, ..EtcdSettings::plain([endpoint], "x/") };
    wait_until("the node serves", || EtcdStore::open(&store).is_ok());
    let config = DirectoryConfig { store: StoreConfig::Etcd(store.clone()), ..loopback_config(dir.path()) };
    let (_daemon, mut admin) = start(&config);
    admin.set(mapping(aa(1), 1)).unwrap();
    // From now on the node shows and takes certificates of another CA only.
    drop(child);
    let _child = node_with_tls(node, &after.sign("server-after"));
    let client = after.sign("client-after");
    wait_until("the node serves with those", || {
        let tls = Some(client.clone());
        EtcdStore::open(&EtcdSettings { tls, ..store.clone() }).is_ok()
    });
    assert!(admin.set(mapping(aa(2), 2)).is_err(), "nobody trusts the other");
    show(&client);
    assert!(socket::reload(DaemonKind::Directory, &config.socket).unwrap().changed.is_empty(), "only the files did");
    wait_until("they trust each other", || admin.set(mapping(aa(3), 3)).is_ok());
    private_file(&shown.key_file, "junk");
    let error = socket::reload(DaemonKind::Directory, &config.socket).unwrap_err().to_string();
    assert!(error.contains("TLS") && !error.contains('\n'), "{error}");
    admin.set(mapping(aa(4), 4)).expect("it goes on as before");
}

#[test]
fn both_sides_show_certificates_and_strangers_are_refused() {
    if !weft_needs::program("etcd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (ours, foreign) = (Authority::new(dir.path(), "ours"), Authority::new(dir.path(), "foreign"));
    let server = ours.sign("server");
    let settings = EtcdClusterSettings::loopback(1, dir.path()).unwrap();
    let client = format!("https://127.0.0.1:{}", settings.nodes[0].client_port);
    let _child = node_with_tls(&settings.nodes[0], &server);
    let with = |tls| EtcdSettings { tls: Some(tls), timeout_ms: 5000, ..EtcdSettings::plain([client.clone()], "tls/") };
    let good = with(ours.sign("client"));
    let mut store = None;
    wait_until("the node serves us", || {
        store = EtcdStore::open(&good).ok();
        store.is_some()
    });
    let store = store.unwrap();
    store.append(&batch(1)).unwrap();
    assert_eq!(loaded(&store).mapped(), 1);
    // A client of a foreign CA; a server of a foreign CA; no certificate at all.
    let stranger = EtcdTls { ca_file: server.ca_file.clone(), ..foreign.sign("stranger") };
    let deceived = EtcdTls { ca_file: foreign.ca_file.clone(), ..ours.sign("deceived") };
    for tls in [stranger, deceived] {
        let error = EtcdStore::open(&with(tls)).err().expect("refused").to_string();
        assert!(!error.contains('\n'), "{error}");
    }
    let nameless = EtcdSettings { tls: None, ..with(ours.sign("nobody")) };
    assert!(EtcdStore::open(&EtcdSettings { endpoints: vec![client.replace("https", "http")], ..nameless }).is_err());
}

/// A way to a node. What first contains the marker is held back until [`Held::let_go`], and nothing follows it.
struct Held {
    marker: &'static [u8],
    state: Mutex<Holding>,
    change: Condvar,
}

#[derive(PartialEq, Eq)]
enum Holding {
    Nothing,
    It,
    LetGo,
}

impl Held {
    fn new(marker: &'static [u8]) -> Arc<Self> {
        Arc::new(Self { marker, state: Mutex::new(Holding::Nothing), change: Condvar::new() })
    }

    /// Opens one more way to the same node. Returns its URL.
    fn way(self: &Arc<Self>, node: &str) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (held, node) = (Arc::clone(self), node.trim_start_matches("http://").to_owned());
        // They end with the process: nobody waits for them.
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let server = TcpStream::connect(&node).unwrap();
                let (mut back, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut back, &mut to_client));
                let held = Arc::clone(&held);
                std::thread::spawn(move || held.carry(client, server));
            }
        });
        url
    }

    fn carry(&self, mut client: TcpStream, mut server: TcpStream) {
        let mut bytes = vec![0; 1 << 20];
        while let Ok(count @ 1..) = client.read(&mut bytes) {
            let marked = bytes[..count].windows(self.marker.len()).any(|window| window == self.marker);
            let mut state = self.state.lock().unwrap();
            if marked && *state == Holding::Nothing {
                *state = Holding::It;
                self.change.notify_all();
                let _let_go = self.change.wait_while(state, |state| *state != Holding::LetGo).unwrap();
                server.write_all(&bytes[..count]).unwrap();
                // It may not be called off any more.
                std::thread::sleep(PATIENCE);
                return;
            }
            drop(state);
            if server.write_all(&bytes[..count]).is_err() {
                return;
            }
        }
    }

    fn let_go(&self) {
        let mut state = self.state.lock().unwrap();
        assert!(*state == Holding::It, "nothing was held back");
        *state = Holding::LetGo;
        self.change.notify_all();
    }
}

#[test]
fn a_copy_of_an_old_sweep_does_not_take_a_later_snapshots_pages() {
    let Some((_dir, cluster)) = cluster(1) else { return };
    // Where the range of all pages ends: only a sweep names it.
    let held = Held::new(b"sweep/page0");
    let node = &cluster.endpoints()[0];
    let slow = EtcdSettings { endpoints: vec![held.way(node), held.way(node)], ..cluster.settings("sweep/") };
    let (slow, other) = (EtcdStore::open(&slow).unwrap(), EtcdStore::open(&cluster.settings("sweep/")).unwrap());
    for k in 0..10 {
        slow.append(&batch(k)).unwrap();
    }
    slow.snapshot(&loaded(&slow)).unwrap();
    for k in 10..20 {
        other.append(&batch(k)).unwrap();
    }
    let table = loaded(&other);
    other.snapshot(&table).unwrap();
    assert_eq!(other.load().unwrap(), table);
    held.let_go();
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(other.load().expect("the pages are there"), table);
    }
}
