//! A daemon under a service manager: it says that it is ready once it serves, that it lives while it does, and that it ends.

mod common;

use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use common::*;
use rustix::process::{Pid, Signal, kill_process};
use weft_node::{DaemonKind, settings_text};

/// What it must be told as often.
const WATCHDOG: Duration = Duration::from_millis(400);

#[test]
fn units_give_daemons_the_capabilities_that_they_say_they_need() {
    use DaemonKind::{Agent, Directory, Rbridge, Switch, Tor, Vtep};
    for kind in [Agent, Directory, Switch, Tor, Vtep, Rbridge] {
        let path = format!("{}/../../contrib/systemd/weft-{}.service", env!("CARGO_MANIFEST_DIR"), kind.word());
        let unit = std::fs::read_to_string(&path).unwrap();
        let given = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).expect(&path);
        let mut needed: Vec<_> = kind.capabilities().iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
        needed.sort();
        assert_eq!(given, needed.join(" "), "{path}");
    }
}

struct Manager {
    socket: UnixDatagram,
    child: Child,
}

impl Manager {
    fn start() -> (Self, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("directory.toml");
        std::fs::write(&file, settings_text(&loopback_config(dir.path()))).unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let child = Command::new(example_program("directory-daemon"))
            .arg(&file)
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string())
            .spawn()
            .unwrap();
        (Self { socket, child }, dir)
    }

    fn heard(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("it says something in time");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_service_manager_hears_when_a_daemon_is_ready_that_it_lives_and_when_it_ends() {
    let (mut manager, dir) = Manager::start();
    let ready = manager.heard();
    assert!(ready.starts_with("READY=1\nSTATUS=") && ready.contains("directory"), "{ready}");
    assert!(weft_node::client::AdminClient::connect(loopback_config(dir.path()).admin_socket).is_ok());
    let since = Instant::now();
    for _ in 0..6 {
        assert_eq!(manager.heard(), "WATCHDOG=1\n");
    }
    assert!(since.elapsed() >= 2 * WATCHDOG, "twice as often as it must, and no more: {:?}", since.elapsed());
    manager.signal(Signal::TERM);
    while manager.heard() != "STOPPING=1\n" {}
    assert!(manager.child.wait().unwrap().success());
}

#[test]
fn a_daemon_that_hangs_is_not_heard() {
    let (manager, _dir) = Manager::start();
    while manager.heard() != "WATCHDOG=1\n" {}
    manager.signal(Signal::STOP);
    manager.socket.set_nonblocking(true).unwrap();
    while manager.socket.recv(&mut [0; 4096]).is_ok() {}
    std::thread::sleep(2 * WATCHDOG);
    assert!(manager.socket.recv(&mut [0; 4096]).is_err());
    manager.signal(Signal::CONT);
}
