//! A directory server that runs out of descriptors or memory: it goes on and answers rightly, or it ends and says why in one
//! line. What it acknowledged is there afterwards.

mod common;

use std::collections::BTreeSet;
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use common::*;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use weft_node::client::{AdminClient, LookupClient};
use weft_node::directory::protocol::MappingToSet;
use weft_node::settings_text;
use weft_wire::directory::Status;

/// How long a server that cannot take anybody in is looked at.
const IDLE: Duration = Duration::from_millis(600);

/// A server in a process of its own, with what it says.
struct Server {
    child: Child,
    admin_socket: PathBuf,
    stderr: PathBuf,
}

impl Server {
    /// Starts in this folder; `limit` is what goes before it on the command line.
    fn start(dir: &Path, limit: &[String]) -> Self {
        let config = loopback_config(dir);
        let (file, stderr) = (dir.join("directory.toml"), dir.join("stderr"));
        std::fs::write(&file, settings_text(&config)).unwrap();
        let program = example_program("directory-daemon").into_os_string();
        let words: Vec<_> = limit.iter().map(Into::into).chain([program, file.into_os_string()]).collect();
        // What it says last is looked at, and a backtrace would come behind it.
        let (mut command, said) = (Command::new(&words[0]), File::create(&stderr).unwrap());
        let child = command.args(&words[1..]).env("RUST_BACKTRACE", "0").stderr(said).spawn().unwrap();
        Self { child, admin_socket: config.admin_socket, stderr }
    }

    /// A session, once it serves; none if it ends.
    fn client(&mut self) -> Option<AdminClient> {
        let mut client = None;
        wait_until("the server serves or ends", || {
            client = AdminClient::connect(&self.admin_socket).ok();
            client.is_some() || self.child.try_wait().unwrap().is_some()
        });
        client
    }

    fn limit(&self, resource: Resource, most: u64) {
        let limit = Rlimit { current: Some(most), maximum: prlimit_of(&self.child, resource).maximum };
        prlimit(Some(Pid::from_child(&self.child)), resource, limit).unwrap();
    }

    /// What the next file that it opens would be called.
    fn next_descriptor(&self) -> u64 {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap();
        let open: BTreeSet<u64> =
            open.filter_map(|entry| entry.unwrap().file_name().into_string().unwrap().parse().ok()).collect();
        (0..).find(|number| !open.contains(number)).unwrap()
    }

    /// How long its threads have run.
    fn worked(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // After the name: its state is the third field, and these are the 14th and 15th, in hundredths of a second.
        let fields = text.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
        Duration::from_millis(fields.map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum())
    }

    /// It has ended, and what it said last.
    fn said(&mut self) -> String {
        assert!(!self.child.wait().unwrap().success());
        let text = std::fs::read_to_string(&self.stderr).unwrap();
        assert!(!text.contains("panicked"), "{text}");
        // What Rust's own handler adds behind a failed allocation.
        let is_said = |line: &&str| !line.starts_with("skipping backtrace") && !line.starts_with("note: ");
        text.lines().rfind(is_said).unwrap_or_default().to_owned()
    }

    fn stop(&mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn prlimit_of(child: &Child, resource: Resource) -> Rlimit {
    // Whoever asks changes, too: to what it is, which nobody else changes meanwhile.
    let text = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let name = if resource == Resource::Nofile { "Max open files" } else { "Max address space" };
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("it is listed");
    let mut words = line.split_whitespace().map(|word| word.parse().ok());
    Rlimit { current: words.next().flatten(), maximum: words.next().flatten() }
}

fn aa(k: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x1400_0000 + k)
}

fn tor(k: u32) -> u8 {
    (k % 251) as u8
}

/// A look-up over UDP finds what was set.
fn assert_found(dir: &Path, admin: &mut AdminClient, k: u32) {
    let listen = admin.status().unwrap().listen;
    let mut lookup = LookupClient::new(listen, Some(&client_key(dir)), 0, 0).unwrap();
    let found = lookup.ask(&[aa(k)], PATIENCE).unwrap().entries[0];
    assert_eq!((found.status, found.tor_la), (Status::Ok, Ipv4Addr::new(10, 1, 0, tor(k))));
}

/// A command line that lets a server open so many files, and no more than `hard` whatever it tries.
fn files(soft: usize, hard: usize) -> [String; 2] {
    ["prlimit".to_owned(), format!("--nofile={soft}:{hard}")]
}

/// How many files it says that it needs.
fn needed(said: &str) -> Option<usize> {
    said.split("needs at least ").nth(1)?.split(';').next()?.parse().ok()
}

#[test]
fn a_server_that_may_open_too_few_files_says_how_many_it_needs_and_serves_with_those() {
    if !weft_needs::program("prlimit") {
        return;
    }
    let end = |most: usize| {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Server::start(dir.path(), &files(most, most));
        assert!(server.client().is_none(), "it serves with {most}");
        server.said()
    };
    for most in [4, 8] {
        let said = end(most);
        assert!(said.contains("open files") || said.contains("Error 24"), "{most}: {said}");
    }
    for most in (16..64).step_by(8) {
        let said = end(most);
        assert!(needed(&said).is_some_and(|needed| needed > most) && said.contains("ulimit"), "{most}: {said}");
    }
    // With as many as it asks for, the second time at the latest, when it knows what it has opened.
    let dir = tempfile::tempdir().unwrap();
    let mut most = needed(&end(16)).unwrap();
    let mut server = Server::start(dir.path(), &files(most, most));
    let mut admin = server.client();
    if admin.is_none() {
        most = needed(&server.said()).expect("it says how many");
        server = Server::start(dir.path(), &files(most, most));
        admin = server.client();
    }
    let mut admin = admin.unwrap_or_else(|| panic!("{most}: {}", server.said()));
    admin.set(mapping(aa(1), tor(1))).unwrap();
    assert_found(dir.path(), &mut admin, 1);
    server.stop();
}

#[test]
fn a_server_takes_as_many_files_as_it_may_open() {
    if !weft_needs::program("prlimit") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path(), &files(100, 333));
    server.client().expect("it serves");
    assert_eq!(prlimit_of(&server.child, Resource::Nofile).current, Some(333));
    server.stop();
}

#[test]
fn a_server_without_descriptors_keeps_its_sessions_and_takes_new_ones_when_it_has_some() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path(), &[]);
    let mut admin = server.client().expect("it serves");
    admin.set(mapping(aa(1), tor(1))).unwrap();
    let before = prlimit_of(&server.child, Resource::Nofile).current.unwrap();
    server.limit(Resource::Nofile, server.next_descriptor());
    // They are not accepted yet.
    let mut other = AdminClient::connect(&server.admin_socket).unwrap();
    let _control = UnixStream::connect(dir.path().join("directory.sock")).unwrap();
    let worked = server.worked();
    std::thread::sleep(IDLE);
    // Who looked all the time would have worked all the time.
    assert!(server.worked() - worked < IDLE / 2, "{:?} in {IDLE:?}", server.worked() - worked);
    for k in 2..40 {
        admin.set(mapping(aa(k), tor(k))).unwrap();
        assert_found(dir.path(), &mut admin, k);
    }
    assert!(!other.wait_input(Duration::ZERO).unwrap());
    server.limit(Resource::Nofile, before);
    assert_eq!(other.list().unwrap().len(), 39);
    server.stop();
}

#[test]
fn a_server_without_memory_ends_and_loses_nothing_that_it_acknowledged() {
    const AT_ONCE: u32 = 2000;
    // For what it has under way at any time, and some more.
    const ROOM_KIB: u64 = 32 << 10;
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path(), &[]);
    let mut admin = server.client().expect("it serves");
    let many = |first: u32| -> Vec<MappingToSet> { (first..first + AT_ONCE).map(|k| mapping(aa(k), tor(k))).collect() };
    // All of its threads are at work, and have their stacks.
    admin.set_many(many(0)).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let size_kib: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:")?.split_whitespace().next()?.parse().ok())
        .expect("a process has a size");
    server.limit(Resource::As, (size_kib + ROOM_KIB) << 10);
    let mut acknowledged = AT_ONCE;
    while admin.set_many(many(acknowledged)).is_ok() {
        acknowledged += AT_ONCE;
        assert!(acknowledged < 4_000_000, "it has more memory than it may");
    }
    let said = server.said();
    assert!(said.contains("memory allocation"), "{said}");
    let mut again = Server::start(dir.path(), &[]);
    let mut admin = again.client().expect("it serves again");
    let rows = admin.list().unwrap();
    // Whether the last ones are there is unknown.
    assert!(rows.len() as u32 == acknowledged || rows.len() as u32 == acknowledged + AT_ONCE, "{}", rows.len());
    for (k, row) in (0..).zip(&rows) {
        assert_eq!((row.aa, row.tor_la), (aa(k), Ipv4Addr::new(10, 1, 0, tor(k))));
    }
    again.stop();
}
