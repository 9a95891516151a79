//! A VM of the VXLAN draft: a process in a server's network namespace that sends and receives UDP, in a control group with the draft's
//! quota where the kernel has the controllers.

pub(super) mod order;
mod worker;

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::CapabilitySet;
use weft_testbed::cpu;

use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::process;
use crate::rights::Rights;
use crate::tester::usage::{Cgroup, Enforced, Quota, pss_bytes};
use order::{Order, PORT, Reply};

pub use worker::worker_main;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A VM that runs until this is dropped.
#[derive(Debug)]
pub(super) struct Vm {
    address: Ipv4Addr,
    process: Child,
    orders: ChildStdin,
    replies: BufReader<ChildStdout>,
    group: Cgroup,
}

impl Vm {
    /// Starts one in a namespace that has the address.
    pub(super) fn start(weft_binary: &Path, namespace: &str, address: Ipv4Addr) -> Result<Self, LabError> {
        let mut command = process::command(weft_binary);
        command.args(["internal", "vm", &address.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        // A well-known port, and buffers beyond the machine's limit.
        Rights::only(CapabilitySet::NET_BIND_SERVICE | CapabilitySet::NET_ADMIN).impose(&mut command)?;
        let child = netns::in_namespace(&namespace_path(namespace), || command.spawn())?;
        let mut process = child.map_err(LabError::io(format!("start {}", weft_binary.display())))?;
        let orders = process.stdin.take().expect("standard input is a pipe");
        let replies = BufReader::new(process.stdout.take().expect("standard output is a pipe"));
        // Quotas hold only where the machine has controllers; without them the VM is counted all the
        // same, and [`Self::enforced`] says so.
        let name = format!("vm-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut vm = Self { address, process, orders, replies, group: Cgroup::create(&name, &Quota::DRAFT_VM)? };
        vm.reply()?;
        vm.group.add(vm.process.id())?;
        Ok(vm)
    }

    /// Which parts of the draft's quota hold it.
    pub(super) fn enforced(&self) -> Enforced {
        self.group.enforced()
    }

    /// CPU time of its process so far, nanoseconds.
    pub(super) fn cpu_ns(&self) -> Result<u64, LabError> {
        cpu::time_ns(self.process.id(), "").map_err(|error| LabError::Traffic(error.to_string()))
    }

    /// Where it receives.
    pub(super) fn socket(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.address, PORT)
    }

    /// Its own pages and its share of those that it shares, bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        pss_bytes(self.process.id()).unwrap_or(0)
    }

    /// Carries an order out.
    pub(super) fn run(&mut self, order: &Order) -> Result<Reply, LabError> {
        self.begin(order)?;
        self.reply()
    }

    /// Gives an order; [`Self::reply`] has what came of it.
    pub(super) fn begin(&mut self, order: &Order) -> Result<(), LabError> {
        let mut line = serde_json::to_string(order).expect("an order is plain data");
        line.push('\n');
        let sent = self.orders.write_all(line.as_bytes());
        sent.map_err(LabError::io(format!("give an order to the VM {}", self.address)))
    }

    /// Gives an order to receive, and returns when it does.
    pub(super) fn begin_receiving(&mut self, order: &Order) -> Result<(), LabError> {
        self.begin(order)?;
        self.reply().map(drop)
    }

    pub(super) fn reply(&mut self) -> Result<Reply, LabError> {
        let what = || format!("hear from the VM {}", self.address);
        let mut line = String::new();
        self.replies.read_line(&mut line).map_err(LabError::io(what()))?;
        let ended = || std::io::Error::other("its process has ended; the reason stands above");
        match line.is_empty() {
            true => Err(LabError::io(what())(ended())),
            false => serde_json::from_str(&line).map_err(|error| LabError::io(what())(std::io::Error::other(error))),
        }
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
