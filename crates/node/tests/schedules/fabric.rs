//! The network of a schedule: a namespace for each node, directory server and the operator, all behind one hub that forwards between
//! them and loses what it is told to. The namespaces have no names, so nothing is left of them however the test ends.
#![allow(unsafe_code)]

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::SERVERS;

/// Who is somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Operator,
    Server(usize),
    Node(usize),
}

impl Place {
    fn number(self) -> usize {
        match self {
            Self::Operator => 0,
            Self::Server(index) => 1 + index,
            Self::Node(index) => 10 + index,
        }
    }

    pub(crate) fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 9, self.number() as u8, 2)
    }

    fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 9, self.number() as u8, 1)
    }
}

pub(crate) struct Fabric {
    hub: File,
    places: Vec<(Place, File)>,
}

impl Fabric {
    pub(crate) fn new(nodes: usize) -> Self {
        let servers = (0..SERVERS).map(Place::Server);
        let all = [Place::Operator].into_iter().chain(servers).chain((0..nodes).map(Place::Node));
        let fabric = Self { hub: namespace(), places: all.map(|place| (place, namespace())).collect() };
        // The way back may be cut, and what comes over the way there is still taken.
        for setting in ["ip_forward=1", "conf.all.rp_filter=0", "conf.default.rp_filter=0"] {
            let (key, value) = setting.split_once('=').expect("it is written so");
            let path = format!("/proc/sys/net/ipv4/{}", key.replace('.', "/"));
            inside(&fabric.hub, || std::fs::write(path, value)).expect("the sysctl exists");
        }
        for (place, file) in &fabric.places {
            let port = format!("p{}", place.number());
            fabric.hub(&format!("link add dev {port} type veth peer name eth0 netns {}", path_of(file)));
            fabric.hub(&format!("address add {}/24 dev {port}", place.gateway()));
            fabric.hub(&format!("link set dev {port} up"));
            for arguments in [
                "link set dev lo up".to_owned(),
                format!("address add {}/24 dev eth0", place.address()),
                "link set dev eth0 up".to_owned(),
                format!("route add default via {}", place.gateway()),
            ] {
                run(command_in(file, "ip").args(arguments.split_whitespace()));
            }
        }
        fabric
    }

    /// Loses what goes from one place to another.
    pub(crate) fn cut(&self, from: Place, to: Place) {
        self.hub(&format!("rule add {}", rule(from, to)));
    }

    /// Ends a cut.
    pub(crate) fn mend(&self, from: Place, to: Place) {
        self.hub(&format!("rule del {}", rule(from, to)));
    }

    fn hub(&self, arguments: &str) {
        run(command_in(&self.hub, "ip").args(arguments.split_whitespace()));
    }

    fn file(&self, place: Place) -> &File {
        let found = self.places.iter().find(|(other, _)| *other == place);
        &found.expect("the place was made").1
    }

    /// A command inside.
    pub(crate) fn command(&self, place: Place, program: &str) -> Command {
        command_in(self.file(place), program)
    }

    /// Moves the calling thread inside for good.
    pub(crate) fn enter(&self, place: Place) {
        enter(self.file(place));
    }

    /// Runs `work` on a thread inside; threads that it starts are inside, too.
    pub(crate) fn within<T: Send>(&self, place: Place, work: impl FnOnce() -> T + Send) -> T {
        inside(self.file(place), work)
    }
}

fn rule(from: Place, to: Place) -> String {
    format!("from {} to {} blackhole", from.address(), to.address())
}

fn namespace() -> File {
    let make = || {
        // SAFETY: only the network namespace is unshared, no file table, and the thread ends here.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("root may make a namespace");
        File::open("/proc/thread-self/ns/net").expect("procfs is mounted")
    };
    std::thread::spawn(make).join().expect("it does not panic")
}

fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

fn command_in(file: &File, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", path_of(file))).arg(program);
    command
}

fn enter(file: &File) {
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may enter it");
}

fn inside<T: Send>(file: &File, work: impl FnOnce() -> T + Send) -> T {
    let work = || {
        enter(file);
        work()
    };
    std::thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn run(command: &mut Command) {
    let output = command.output().expect("the program is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
