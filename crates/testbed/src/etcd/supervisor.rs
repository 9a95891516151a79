//! The thread that owns the nodes of a cluster.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use etcd_client::{Channel, Client, GetOptions};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tonic::transport::Endpoint;
use tracing::warn;

use super::{ClusterError, EtcdClusterSettings, cluster_error};

/// How often it looks whether a node has died.
const LOOK: Duration = Duration::from_millis(100);
/// How long a node has to answer.
const ANSWER: Duration = Duration::from_millis(500);
/// Shortest time between two starts of a node.
const RESTART: Duration = Duration::from_secs(1);

/// What the cluster's owner wants.
pub(super) enum Order {
    Kill(usize, Sender<()>),
    Restart(usize, Sender<()>),
    Signal(usize, Signal, Sender<()>),
    Leader(Sender<Option<usize>>),
    Pids(Sender<Vec<Option<u32>>>),
    WaitHealthy(Duration, Sender<Result<(), ClusterError>>),
    End,
}

pub(super) fn run(
    mut settings: EtcdClusterSettings,
    inbox: &Receiver<Order>,
    ready: &Sender<Result<(), ClusterError>>,
) {
    let moved = settings.mover.take().map_or(Ok(()), |mover| mover());
    let nodes = moved.map_err(|error| cluster_error(format!("entering its network: {error}"))).and_then(|()| {
        let mut nodes = Nodes::new(settings)?;
        nodes.start_all()?;
        Ok(nodes)
    });
    let mut nodes = match nodes {
        Ok(nodes) => nodes,
        Err(error) => {
            // The owner waits for it.
            let _ = ready.send(Err(error));
            return;
        }
    };
    let _ = ready.send(Ok(()));
    loop {
        match inbox.recv_timeout(LOOK) {
            Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(order) => nodes.carry_out(order),
            Err(RecvTimeoutError::Timeout) => nodes.look_after(),
        }
    }
}

/// One node's process.
#[derive(Default)]
struct Process {
    child: Option<Child>,
    /// It is meant to be down.
    killed: bool,
    started: Option<Instant>,
}

struct Nodes {
    settings: EtcdClusterSettings,
    processes: Vec<Process>,
    clients: Vec<Client>,
    runtime: Runtime,
}

impl Nodes {
    fn new(settings: EtcdClusterSettings) -> Result<Self, ClusterError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| cluster_error(format!("no means to ask it: {error}")))?;
        let clients = runtime.block_on(async {
            let mut clients = Vec::new();
            for node in &settings.nodes {
                let endpoint =
                    Endpoint::from_shared(node.client_url()).map_err(|error| cluster_error(error.to_string()))?;
                let channel = Channel::Tonic(endpoint.connect_timeout(ANSWER).connect_lazy());
                clients
                    .push(Client::from_channel(channel, None).await.map_err(|error| cluster_error(error.to_string()))?);
            }
            Ok::<_, ClusterError>(clients)
        })?;
        let processes = settings.nodes.iter().map(|_| Process::default()).collect();
        Ok(Self { settings, processes, clients, runtime })
    }

    fn start_all(&mut self) -> Result<(), ClusterError> {
        for index in 0..self.processes.len() {
            self.start(index)?;
        }
        self.wait_healthy(self.settings.start_timeout)
    }

    fn start(&mut self, index: usize) -> Result<(), ClusterError> {
        let child = start_node(&self.settings, index).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => cluster_error("etcd is not installed; install etcd-server"),
            _ => cluster_error(format!("node {index}: {error}")),
        })?;
        self.processes[index] = Process { child: Some(child), killed: false, started: Some(Instant::now()) };
        Ok(())
    }

    fn carry_out(&mut self, order: Order) {
        // Whoever gave the order may have stopped waiting.
        match order {
            Order::Kill(index, done) => {
                self.kill(index);
                let _ = done.send(());
            }
            Order::Restart(index, done) => {
                if self.processes.get(index).is_some_and(|process| process.child.is_none()) {
                    self.try_start(index);
                }
                let _ = done.send(());
            }
            Order::Signal(index, signal, done) => {
                if let Some(pid) = self.pid(index) {
                    // It may be dead already.
                    let _ = kill_process(pid, signal);
                }
                let _ = done.send(());
            }
            Order::Leader(done) => drop(done.send(self.leader())),
            Order::Pids(done) => {
                let pids = self.processes.iter().map(|process| process.child.as_ref().map(Child::id)).collect();
                let _ = done.send(pids);
            }
            Order::WaitHealthy(timeout, done) => drop(done.send(self.wait_healthy(timeout))),
            Order::End => {}
        }
    }

    fn pid(&self, index: usize) -> Option<Pid> {
        let child = self.processes.get(index)?.child.as_ref()?;
        Some(Pid::from_child(child))
    }

    fn kill(&mut self, index: usize) {
        let Some(process) = self.processes.get_mut(index) else { return };
        process.killed = true;
        if let Some(mut child) = process.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn try_start(&mut self, index: usize) {
        if let Err(error) = self.start(index) {
            warn!(%error, "etcd node not started");
        }
    }

    /// Restarts nodes that died.
    fn look_after(&mut self) {
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            if let Some(child) = &mut process.child
                && let Ok(Some(status)) = child.try_wait()
            {
                warn!(index, %status, log = %self.settings.nodes[index].log().display(), "etcd node died");
                process.child = None;
            }
            let rested = process.started.is_none_or(|started| started.elapsed() >= RESTART);
            if process.child.is_none() && !process.killed && rested {
                process.started = Some(Instant::now());
                self.try_start(index);
            }
        }
    }

    fn up(&self) -> Vec<usize> {
        (0..self.processes.len()).filter(|index| self.processes[*index].child.is_some()).collect()
    }

    /// The node that says of itself that it leads.
    fn leader(&self) -> Option<usize> {
        self.up().into_iter().find(|index| {
            let mut client = self.clients[*index].clone();
            let status = self.runtime.block_on(async { timeout(ANSWER, client.status()).await });
            matches!(status, Ok(Ok(status)) if status.leader() != 0
                && status.header().is_some_and(|header| header.member_id() == status.leader()))
        })
    }

    fn wait_healthy(&mut self, patience: Duration) -> Result<(), ClusterError> {
        let deadline = Instant::now() + patience;
        let mut sick = self.up();
        loop {
            sick.retain(|index| !self.healthy(*index));
            let Some(index) = sick.first() else { return Ok(()) };
            if Instant::now() >= deadline {
                let log = self.settings.nodes[*index].log();
                let why = format!("node {index} found no leader in time; see {}", log.display());
                return Err(cluster_error(why));
            }
            std::thread::sleep(Duration::from_millis(20));
            self.look_after();
        }
    }

    /// Whether a node takes part: it can only answer a linearizable read with a leader.
    fn healthy(&self, index: usize) -> bool {
        let mut client = self.clients[index].clone();
        let options = GetOptions::new().with_keys_only();
        let answer = self.runtime.block_on(async { timeout(ANSWER, client.get("health", Some(options))).await });
        matches!(answer, Ok(Ok(_)))
    }
}

/// Starts a node in a process group of its own, so that Ctrl-C does not reach it. It dies with the calling thread.
fn start_node(settings: &EtcdClusterSettings, index: usize) -> io::Result<Child> {
    let node = &settings.nodes[index];
    std::fs::create_dir_all(&node.dir)?;
    let log = File::options().create(true).append(true).open(node.log())?;
    let mut command = settings.starter.as_ref().map_or_else(|| Command::new("etcd"), |starter| starter(index));
    command.args(settings.flags(index)).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
    // SAFETY: `prctl` with these arguments only sets an attribute of the calling process, and is safe between fork and
    // exec.
    unsafe {
        command.pre_exec(|| {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 {
                Ok(())
            } else {
                Err(io::Error::last_os_error())
            }
        });
    }
    command.spawn()
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for index in 0..self.processes.len() {
            self.kill(index);
        }
    }
}
