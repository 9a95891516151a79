//! Network namespaces for tests of daemons that forward: links between them, what is sent over them, pins.
#![allow(dead_code)]

pub(crate) mod tap;
pub(crate) mod trunk;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use weft_datapath::{bpffs, offload};

use crate::common::{PATIENCE, wait_until};

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

    /// Waits until an interface sends. One that comes up before its peer gets its queue when the kernel has heard of the peer,
    /// a moment later, or long after that on a busy machine, and what is sent until then is lost.
    pub(crate) fn wait_up(&self, interface: &str) {
        wait_until(interface, || {
            let output = Command::new("ip").args(["-n", &self.0, "-o", "link", "show", "dev", interface]).output();
            String::from_utf8_lossy(&output.expect("iproute2 is installed").stdout).contains("state UP")
        });
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

/// A veth pair between two namespaces, both ends up and ready to send.
pub(crate) fn link(a: (&Namespace, &str), b: (&Namespace, &str), mtu: u32) {
    a.0.ip(&format!("link add dev {} mtu {mtu} type veth peer name {} mtu {mtu} netns {}", a.1, b.1, b.0.0));
    for (namespace, interface) in [a, b] {
        // No router solicitations among the frames that are counted.
        let _ = namespace.within(|| std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1"));
        namespace.ip(&format!("link set dev {interface} up"));
    }
    for (namespace, interface) in [a, b] {
        namespace.wait_up(interface);
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
const SILENCE: Duration = PATIENCE;

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
    let silence = rustix::event::Timespec { tv_sec: SILENCE.as_secs().cast_signed(), tv_nsec: 0 };
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
    /// What the machine's queues in front of its receivers had dropped before.
    backlog: u64,
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
        let stream = Self { ended, backlog: dropped_from_backlogs(), sender, sink };
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
        // Lost is what has not come when nothing has come for so long.
        let mut last = Instant::now();
        while (arrived.len() as u64) < sent && last.elapsed() < Duration::from_secs(3) {
            match self.sink.recv(&mut number) {
                Ok(8) => {
                    assert!(arrived.insert(u64::from_be_bytes(number)), "each arrives once");
                    last = Instant::now();
                }
                Ok(_) => panic!("a strange datagram"),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        let lost: Vec<u64> = (0..sent).filter(|number| !arrived.contains(number)).collect();
        if let (Some(first), Some(last)) = (lost.first(), lost.last()) {
            let elsewhere = dropped_from_backlogs() - self.backlog;
            eprintln!(
                "of {sent} datagrams {} between number {first} and {last} never arrived; the machine's backlogs dropped {elsewhere}",
                lost.len()
            );
        }
        (sent, lost.len() as u64)
    }
}

/// Frames that the machine had no room for between one interface and the next, of all namespaces: the second column is theirs.
fn dropped_from_backlogs() -> u64 {
    let text = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let dropped = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(dropped).sum()
}

/// A daemon as a process, which ends with this value also when its test fails.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).spawn().expect("it starts"))
    }

    pub(crate) fn crash(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ended");
    }

    /// Waits for its end; whether it went well.
    pub(crate) fn ended(mut self) -> bool {
        self.0.wait().expect("it ends").success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What network cards were told to let in: of each interface its groups as the kernel has them, with their users, and how
/// often it was made promiscuous.
pub(crate) fn hearing(namespace: &Namespace, interfaces: &[&str]) -> BTreeMap<String, Hearing> {
    let table = namespace.within(|| std::fs::read_to_string("/proc/thread-self/net/dev_mcast")).expect("it is there");
    let of = |interface: &&str| {
        let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let groups =
            lines.filter(|words| words[1] == *interface).map(|words| (words[4].to_owned(), words[2].to_owned()));
        let arguments = ["-n", &namespace.0, "-d", "-j", "link", "show", "dev", interface];
        let output = Command::new("ip").args(arguments).output().expect("iproute2 is installed");
        let links: serde_json::Value = serde_json::from_slice(&output.stdout).expect("ip prints JSON");
        let promiscuity = links[0]["promiscuity"].as_u64().expect("a number");
        let features = namespace.within(|| offload::features(interface)).expect("every interface has some");
        let on = features.into_iter().filter(|(_, feature)| feature.is_on).map(|(name, _)| name).collect();
        (interface.to_string(), Hearing { groups: groups.collect(), promiscuity, on })
    };
    interfaces.iter().map(of).collect()
}

/// Of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hearing {
    /// Users of each group.
    pub(crate) groups: BTreeMap<String, String>,
    pub(crate) promiscuity: u64,
    /// Offloads that are on.
    pub(crate) on: BTreeSet<String>,
}

impl Hearing {
    /// What came on top of `before`: groups, and whether it hears everything.
    pub(crate) fn since(&self, before: &Self) -> (Vec<String>, bool) {
        let users = |hearing: &Self, group: &String| hearing.groups.get(group).cloned();
        let groups = self.groups.keys().filter(|group| users(self, group) != users(before, group)).cloned().collect();
        (groups, self.promiscuity > before.promiscuity)
    }
}
