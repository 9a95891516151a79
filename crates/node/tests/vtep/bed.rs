//! Namespaces for VTEPs: hosts with an underlay between them, VMs behind access ports, and what they send each other.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use weft_datapath::bpffs;
use weft_node::NodeError;
use weft_node::stop::Hangup;
use weft_node::vtep::protocol::{Answer, FdbRow, Item, Request, What};
use weft_node::vtep::{self, PortTable, SegmentTable, TaggedText, VniIds, VtepConfig};

use crate::common::{Daemon, wait_until};

/// A namespace `weft-tvn-<pid>-<test>-<name>` that ends with this value.
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    pub(crate) fn new(test: &str, name: &str) -> Self {
        let namespace = Self(format!("weft-tvn-{}-{test}-{name}", std::process::id()));
        run(&["ip", "netns", "add", &namespace.0]);
        namespace.ip("link set lo up");
        namespace
    }

    /// `ip -n NAMESPACE ...`
    pub(crate) fn ip(&self, arguments: &str) {
        let mut command = vec!["ip", "-n", &self.0];
        command.extend(arguments.split_whitespace());
        run(&command);
    }

    /// A command inside; unlike with `ip netns exec`, mounts stay as they are.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.0)).arg(program);
        command
    }

    /// Moves the calling thread inside for good.
    pub(crate) fn enter(name: &str) {
        let file = File::open(format!("/run/netns/{name}")).expect("the namespace exists");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may enter it");
    }

    /// Runs `work` on a thread inside.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            Self::enter(&self.0);
            work()
        };
        std::thread::scope(|scope| scope.spawn(inside).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    pub(crate) fn sysctl(&self, key: &str, value: &str) {
        self.within(|| std::fs::write(format!("/proc/sys/net/ipv4/{key}"), value)).expect("the sysctl exists");
    }

    /// Pings; returns what the program printed.
    pub(crate) fn ping(&self, arguments: &str) -> String {
        let output = self.command("ping").args(arguments.split_whitespace()).output().expect("ping is installed");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    /// Bytes and frames that an interface received; a super frame counts once.
    pub(crate) fn received(&self, interface: &str) -> (u64, u64) {
        let table = self.within(|| std::fs::read_to_string("/proc/thread-self/net/dev")).expect("procfs is mounted");
        let prefix = format!("{interface}:");
        let line = table.lines().find_map(|line| line.trim().strip_prefix(&prefix)).expect("the interface exists");
        let mut numbers = line.split_whitespace().map(|number| number.parse().expect("a number"));
        (numbers.next().expect("bytes"), numbers.next().expect("frames"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It may be gone.
        let _ = Command::new("ip").args(["netns", "del", &self.0]).stderr(Stdio::null()).status();
    }
}

pub(crate) fn run(command: &[&str]) {
    let output = Command::new(command[0]).args(&command[1..]).output().expect("the program is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether these tests can run; says why not.
pub(crate) fn can_run() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: network namespaces need root");
    }
    root
}

/// A veth pair between two namespaces, both ends up.
pub(crate) fn link(a: (&Namespace, &str), b: (&Namespace, &str), mtu: u32) {
    a.0.ip(&format!("link add dev {} mtu {mtu} type veth peer name {} mtu {mtu} netns {}", a.1, b.1, b.0.0));
    for (namespace, interface) in [a, b] {
        // No router solicitations among the frames that are counted.
        let _ = namespace.within(|| std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1"));
        namespace.ip(&format!("link set dev {interface} up"));
    }
}

/// Addresses of the hosts in the underlay.
pub(crate) const HOST: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2)];

/// Two hosts with a link of 1600 bytes between their interfaces `eth0`.
pub(crate) struct Hosts {
    pub(crate) test: &'static str,
    pub(crate) hosts: [Namespace; 2],
    pub(crate) dir: tempfile::TempDir,
}

impl Hosts {
    /// `None` where these tests cannot run.
    pub(crate) fn new(test: &'static str) -> Option<Self> {
        if !can_run() {
            return None;
        }
        let hosts = [Namespace::new(test, "h0"), Namespace::new(test, "h1")];
        link((&hosts[0], "eth0"), (&hosts[1], "eth0"), 1600);
        for (host, address) in hosts.iter().zip(HOST) {
            host.ip(&format!("addr add {address}/24 dev eth0"));
        }
        Some(Self { test, hosts, dir: tempfile::tempdir().unwrap() })
    }

    /// A VM behind port `port` of host `k`, with this address at its interface `eth0`.
    pub(crate) fn vm(&self, k: usize, port: &str, address: &str) -> Namespace {
        let vm = Namespace::new(self.test, port);
        link((&self.hosts[k], port), (&vm, "eth0"), 1500);
        vm.ip(&format!("addr add {address} dev eth0"));
        vm
    }

    /// The configuration of host `k`'s VTEP: the other host is its peer.
    pub(crate) fn config(&self, k: usize) -> VtepConfig {
        let mut config = VtepConfig::new(HOST[k], vec!["eth0".to_owned()]);
        config.peers = [HOST[1 - k]].into();
        config.socket = self.dir.path().join(format!("vtep{k}.sock"));
        config
    }

    /// Starts host `k`'s VTEP.
    pub(crate) fn vtep(&self, k: usize, config: VtepConfig) -> Running {
        Running::start(&self.hosts[k], config)
    }

    /// Gives host 1 a VXLAN device of the kernel instead, with this address inside.
    pub(crate) fn kernel_vxlan(&self, vni: u32, to: &str, address: &str) {
        let (name, local) = (format!("vx{vni}"), HOST[1]);
        self.hosts[1].ip(&format!("link add {name} type vxlan id {vni} local {local} {to} dstport 4789 dev eth0"));
        let _ = self.hosts[1].within(|| std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1"));
        self.hosts[1].ip(&format!("link set {name} mtu 1500 up"));
        self.hosts[1].ip(&format!("addr add {address} brd + dev {name}"));
    }
}

pub(crate) fn segment(vni: i64) -> SegmentTable {
    SegmentTable { id: Some(VniIds::One(vni)), ..SegmentTable::default() }
}

pub(crate) fn segments(range: &str) -> SegmentTable {
    SegmentTable { id: Some(VniIds::Range(range.to_owned())), ..SegmentTable::default() }
}

pub(crate) fn port(interface: &str, vni: i64) -> PortTable {
    PortTable { interface: interface.to_owned(), vni, tagged: TaggedText::Drop }
}

/// A VTEP in a thread.
pub(crate) struct Running {
    daemon: Option<Daemon>,
    /// What it reads when it is told to read its configuration again.
    pub(crate) config: Arc<Mutex<VtepConfig>>,
    pub(crate) hangup: Hangup,
    socket: PathBuf,
}

impl Running {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(host: &Namespace, config: VtepConfig) -> Self {
        let (namespace, socket) = (host.0.clone(), config.socket.clone());
        let config = Arc::new(Mutex::new(config));
        let (theirs, hangup) = (Arc::clone(&config), Hangup::manual().unwrap());
        let hung_up = hangup.clone();
        let daemon = Daemon::spawn(move |stop| {
            Namespace::enter(&namespace);
            let load = || Ok::<_, NodeError>(theirs.lock().expect("nobody panics with it").clone());
            vtep::run(&load, stop, &hung_up)
        });
        let mut running = Self { daemon: Some(daemon), config, hangup, socket };
        wait_until("the VTEP is ready", || {
            if running.daemon.as_ref().is_some_and(Daemon::ended) {
                panic!("the VTEP ended: {:?}", running.daemon.take().map(Daemon::finish));
            }
            running.try_ask(Request::Show(What::Config)).is_ok()
        });
        running
    }

    pub(crate) fn try_ask(&self, request: Request) -> Result<Answer, NodeError> {
        vtep::ask(&self.socket, &request)
    }

    pub(crate) fn ask(&self, request: Request) -> Answer {
        self.try_ask(request).expect("it is no bad request")
    }

    pub(crate) fn add(&self, item: Item) {
        assert_eq!(self.ask(Request::Add(item)), Answer::Done);
    }

    pub(crate) fn remove(&self, item: Item) {
        assert_eq!(self.ask(Request::Remove(item)), Answer::Done);
    }

    pub(crate) fn refused(&self, request: Request) -> String {
        let error = self.try_ask(request).expect_err("it cannot work").to_string();
        assert!(!error.contains('\n'), "one line: {error}");
        error
    }

    pub(crate) fn fdb(&self) -> Vec<FdbRow> {
        match self.ask(Request::Show(What::Fdb { vni: None })) {
            Answer::Fdb(rows) => rows,
            other => panic!("{other:?}"),
        }
    }

    /// A counter of a group.
    pub(crate) fn count(&self, group: &str, name: &str) -> u64 {
        match self.ask(Request::Show(What::Counters)) {
            Answer::Counters(groups) => groups[group][name],
            other => panic!("{other:?}"),
        }
    }

    /// Stops it as SIGTERM does.
    pub(crate) fn finish(mut self) {
        self.daemon.take().expect("it runs").finish().expect("it ends well");
    }

    /// Stops it with its data path, as `weft vtep stop` does.
    pub(crate) fn stop(mut self) {
        assert_eq!(self.ask(Request::Stop), Answer::Done);
        let daemon = self.daemon.take().expect("it runs");
        wait_until("the VTEP ends", || daemon.ended());
        daemon.finish().expect("it ends well");
    }
}

/// A bpffs of this test alone.
pub(crate) struct Pins(PathBuf);

impl Pins {
    pub(crate) fn new(dir: &Path) -> Self {
        let path = dir.join("bpf");
        bpffs::ensure_mounted(&path).expect("root may mount a bpffs");
        Self(path)
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        bpffs::unmount(&self.0).expect("nothing holds it");
    }
}

const PERIOD: usize = 1 << 16;

/// A connection that is silent for so long is broken.
const SILENCE: Duration = Duration::from_secs(5);

/// Twice the same 64 KiB of changing bytes, so that any 64 KiB of the stream are a slice of it.
fn pattern() -> Vec<u8> {
    (0..PERIOD).map(|n| (n % 251) as u8).collect::<Vec<u8>>().repeat(2)
}

/// Sends bytes over TCP, each checked at the receiver.
pub(crate) fn transfer(from: &Namespace, to: &Namespace, address: Ipv4Addr, bytes: usize) {
    let listener = to.within(|| TcpListener::bind((address, 0)).expect("the address is the receiver's"));
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || receive_all(&listener));
        scope.spawn(move || {
            Namespace::enter(&from.0);
            let target = SocketAddr::from((address, port));
            let mut stream = TcpStream::connect_timeout(&target, SILENCE).expect("the path works");
            stream.set_write_timeout(Some(SILENCE)).unwrap();
            let pattern = pattern();
            let mut left = bytes;
            while left > 0 {
                let part = left.min(PERIOD);
                stream.write_all(&pattern[..part]).expect("the receiver reads");
                left -= part;
            }
        });
        assert_eq!(receiver.join().expect("the receiver ends"), bytes);
    });
}

fn receive_all(listener: &TcpListener) -> usize {
    let connects = rustix::event::PollFd::new(listener, rustix::event::PollFlags::IN);
    let silence = rustix::event::Timespec { tv_sec: 5, tv_nsec: 0 };
    assert_eq!(rustix::event::poll(&mut [connects], Some(&silence)), Ok(1), "the sender connects");
    let (mut stream, _) = listener.accept().expect("the sender connects");
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    let (pattern, mut buffer, mut total) = (pattern(), vec![0; PERIOD], 0);
    loop {
        match stream.read(&mut buffer).expect("the connection stays") {
            0 => return total,
            length => {
                let place = total % PERIOD;
                assert!(buffer[..length] == pattern[place..place + length], "payload changed on the way");
                total += length;
            }
        }
    }
}

/// Numbered datagrams in a steady stream, while something else happens.
pub(crate) struct Stream {
    ended: Arc<AtomicBool>,
    sender: std::thread::JoinHandle<u64>,
    sink: UdpSocket,
}

impl Stream {
    /// Begins to send from one namespace to this address in the other, twice in a millisecond.
    pub(crate) fn start(from: &Namespace, to: &Namespace, address: Ipv4Addr) -> Self {
        let sink = to.within(|| UdpSocket::bind((address, 0)).expect("the address is the receiver's"));
        sink.set_nonblocking(true).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&sink, 64 << 20).expect("root may have long buffers");
        let target = sink.local_addr().unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let (theirs, name) = (Arc::clone(&ended), from.0.clone());
        let sender = std::thread::spawn(move || {
            Namespace::enter(&name);
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            let mut number = 0u64;
            while !theirs.load(Ordering::Relaxed) {
                socket.send_to(&number.to_be_bytes(), target).expect("it can be sent");
                number += 1;
                std::thread::sleep(Duration::from_micros(500));
            }
            number
        });
        let stream = Self { ended, sender, sink };
        let mut first = [0; 8];
        wait_until("the stream arrives", || stream.sink.peek(&mut first).is_ok());
        stream
    }

    /// Ends it: how many were sent, and how many never arrived.
    pub(crate) fn end(self) -> (u64, u64) {
        self.ended.store(true, Ordering::Relaxed);
        let sent = self.sender.join().expect("the sender ends");
        let mut arrived = std::collections::BTreeSet::new();
        let mut number = [0; 8];
        let deadline = std::time::Instant::now() + Duration::from_secs(3);
        while (arrived.len() as u64) < sent && std::time::Instant::now() < deadline {
            match self.sink.recv(&mut number) {
                Ok(8) => assert!(arrived.insert(u64::from_be_bytes(number)), "each arrives once"),
                Ok(_) => panic!("a strange datagram"),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        (sent, sent - arrived.len() as u64)
    }
}
