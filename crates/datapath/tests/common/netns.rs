//! Network namespaces for one test: named after it, entered by threads, deleted at the end.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A namespace `weft-dp-<pid>-<test>-<node>` that ends with this value.
pub struct Namespace {
    pub name: String,
}

impl Namespace {
    pub fn new(test: &str, node: &str) -> Self {
        let name = format!("weft-dp-{}-{test}-{node}", std::process::id());
        run(&["ip", "netns", "add", &name]);
        let namespace = Self { name };
        namespace.ip("link set lo up");
        namespace
    }

    /// Runs `work` on a thread of its own inside this namespace.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.move_here();
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `work` on this thread inside this namespace, and comes back: for what cannot change threads.
    pub fn enter_with<T>(&self, work: impl FnOnce() -> T) -> T {
        let here = File::open("/proc/thread-self/ns/net").expect("procfs is mounted");
        self.move_here();
        let result = work();
        move_into_link_name_space(here.as_fd(), Some(LinkNameSpaceType::Network)).expect("it was ours");
        result
    }

    /// Moves the calling thread into this namespace for good.
    pub fn move_here(&self) {
        let file = File::open(format!("/run/netns/{}", self.name)).expect("the namespace exists");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may enter it");
    }

    /// `ip -n NAMESPACE ...`
    pub fn ip(&self, arguments: &str) {
        let mut command = vec!["ip", "-n", &self.name];
        command.extend(arguments.split_whitespace());
        run(&command);
    }

    /// Waits until an interface sends. One that comes up before its peer gets its queue when the kernel has heard of the peer,
    /// a moment later, or long after that on a busy machine, and what is sent until then is lost.
    pub fn wait_up(&self, interface: &str) {
        let start = Instant::now();
        loop {
            let output = Command::new("ip").args(["-n", &self.name, "-o", "link", "show", "dev", interface]).output();
            let line = output.expect("iproute2 is installed").stdout;
            if String::from_utf8_lossy(&line).contains("state UP") {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{}: {interface} does not come up", self.name);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The MAC of an interface.
    pub fn mac(&self, interface: &str) -> [u8; 6] {
        let output = self.command("ip").args(["-o", "link", "show", "dev", interface]).output().expect("ip runs");
        let line = String::from_utf8_lossy(&output.stdout).into_owned();
        let mac = line.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next()).expect("it has a MAC");
        let bytes: Vec<u8> = mac.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect();
        bytes.try_into().expect("six bytes")
    }

    /// A command inside; unlike `ip netns exec`, mounts stay as they are.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name)).arg(program);
        command
    }

    /// Writes a sysctl of this namespace.
    pub fn sysctl(&self, key: &str, value: &str) {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        self.enter(|| std::fs::write(&path, value)).expect("the sysctl exists");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _already_gone = Command::new("ip").args(["netns", "del", &self.name]).stderr(Stdio::null()).status();
    }
}

/// As `ip` writes it.
pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// A veth pair between two namespaces, both ends up and ready to send.
pub fn link(a: (&Namespace, &str), b: (&Namespace, &str), mtu: u32) {
    a.0.ip(&format!("link add dev {} mtu {mtu} type veth peer name {} mtu {mtu} netns {}", a.1, b.1, b.0.name));
    for (namespace, interface) in [a, b] {
        namespace.ip(&format!("link set dev {interface} up"));
    }
    for (namespace, interface) in [a, b] {
        namespace.wait_up(interface);
    }
}

pub fn run(command: &[&str]) {
    let output = Command::new(command[0]).args(&command[1..]).output().expect("the program is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
