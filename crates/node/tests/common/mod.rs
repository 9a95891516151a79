//! A directory server in a thread, and what tests ask it.
#![allow(dead_code, unreachable_pub)]

use std::fs::{Permissions, set_permissions, write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weft_node::NodeError;
use weft_node::client::AdminClient;
use weft_node::directory::protocol::MappingToSet;
use weft_node::directory::{self, DirectoryConfig};
use weft_node::stop::Stop;
use weft_wire::directory::Secret;

pub const KEY: &str = "000102030405060708090a0b0c0d0e0f";
/// The key derived from [`KEY`] for a client of service 0 on loopback, from an independent implementation of SipHash.
pub const LOOPBACK_KEY: &str = "e2f0fcf476e43adda71b936ff1a32ea0";
pub const ANYCAST: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 1);

/// A daemon in a thread. Dropping it stops it and checks that it ended well.
pub struct Daemon {
    stop: Stop,
    thread: Option<JoinHandle<Result<(), NodeError>>>,
}

impl Daemon {
    pub fn spawn(run: impl FnOnce(&Stop) -> Result<(), NodeError> + Send + 'static) -> Self {
        let stop = Stop::manual().unwrap();
        let theirs = stop.clone();
        Self { stop, thread: Some(std::thread::spawn(move || run(&theirs))) }
    }

    /// Asks it to read its settings again, as SIGHUP does.
    pub fn hang_up(&self) {
        self.stop.request_reload();
    }

    /// Whether it ended by itself.
    pub fn ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops it and returns how it ended.
    pub fn finish(mut self) -> Result<(), NodeError> {
        self.stop.request();
        self.thread.take().expect("it was not finished before").join().expect("it does not panic")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            let outcome = thread.join();
            if !std::thread::panicking() {
                outcome.expect("it does not panic").expect("it ends well");
            }
        }
    }
}

/// How long a slow or busy machine may take for what must happen. Whoever waits goes on as soon as it has.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `done` holds.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A file of mode 0600.
pub fn private_file(path: &Path, text: &str) -> PathBuf {
    write(path, text).unwrap();
    set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    path.to_owned()
}

/// A directory server on loopback with its files in `dir`; port 0.
pub fn loopback_config(dir: &Path) -> DirectoryConfig {
    DirectoryConfig {
        listen: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
        socket: dir.join("directory.sock"),
        admin_socket: dir.join("admin.sock"),
        store: dir.join("store.redb").into(),
        key_file: Some(private_file(&dir.join("key"), KEY)),
        tor_las: None,
        ..DirectoryConfig::example()
    }
}

/// The key file of a client of service 0 on loopback.
pub fn client_key(dir: &Path) -> PathBuf {
    private_file(&dir.join("client-key"), LOOPBACK_KEY)
}

/// The key file of a client of this service whose datagrams come from `la`.
pub fn derived_key(dir: &Path, service: u32, la: Ipv4Addr) -> PathBuf {
    let key = Secret::from_hex(KEY).unwrap().derive(service, la);
    private_file(&dir.join(format!("key-{service}-{la}")), &key.to_hex())
}

/// Starts it and connects.
pub fn start(config: &DirectoryConfig) -> (Daemon, AdminClient) {
    let theirs = config.clone();
    start_with(config, move || Ok(theirs.clone()))
}

/// The same with settings that may be others when they are read again.
pub fn start_with(
    config: &DirectoryConfig,
    load: impl Fn() -> Result<DirectoryConfig, NodeError> + Send + 'static,
) -> (Daemon, AdminClient) {
    let daemon = Daemon::spawn(move |stop| directory::run(&load, stop));
    let mut client = None;
    wait_until("the directory server listens", || {
        client = AdminClient::connect(&config.admin_socket).ok();
        client.is_some() || daemon.ended()
    });
    match client {
        Some(client) => (daemon, client),
        None => panic!("the directory server ended: {:?}", daemon.finish()),
    }
}

/// Runs a server that must not start, and returns its error.
pub fn refused(config: &DirectoryConfig) -> String {
    let stop = Stop::manual().unwrap();
    stop.request();
    let error = directory::run(&|| Ok(config.clone()), &stop).expect_err("it must not start").to_string();
    assert!(!error.contains('\n'), "one line: {error}");
    error
}

pub fn mapping(aa: Ipv4Addr, tor: u8) -> MappingToSet {
    let tor_la = Ipv4Addr::new(10, 1, 0, tor);
    MappingToSet { aa, tor_la, anycast_la: ANYCAST, service: 0, host_la: None, if_version: None, version: None }
}

/// The small stand-in for `weft` that cargo builds beside the tests.
pub fn example_program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("a test has a path");
    let target = tests.parent().and_then(Path::parent).expect("tests are in target/*/deps");
    let program = target.join("examples").join(name);
    assert!(program.is_file(), "{} is built by `cargo test` with all targets", program.display());
    program
}
