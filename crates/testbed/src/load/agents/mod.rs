//! Many agents of one data centre at one place: the machine of each ([`weft_control::agent::Agent`]), with its own LA and key.
//! What is asked when, of whom and how often again is theirs; this only carries, by one UDP socket that is at the agents' port
//! on every address.
//!
//! * [`AgentsLoad`] says who they are, [`Layout`] where; [`Agents::new`] makes them
//! * [`Agents::ask_at_once`]: all ask at one instant, as after a power cut
//! * [`Agents::bounce`]: the same datagrams to sockets that only send back, as the floor of that
//! * [`Agents::learn`] and [`Agents::use_stale`]: mappings that go stale, and packets that find it out at a ToR
//!
//! All of them are one thread, so a time from the common instant on has in it that one thread spoke for each in turn; the time
//! from an agent's own question on has not.

mod bounce;
mod host;
mod layout;
mod outage;
mod socket;
mod stale;
mod timers;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

use rand_pcg::Pcg64;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use weft_node::NodeError;
use weft_wire::directory::{DATAGRAM_LEN_MAX, ENTRIES_MAX, Secret};

use crate::cpu;
use host::Host;
use socket::Socket;
use timers::Timers;

pub use bounce::BounceReport;
pub use layout::Layout;
pub use outage::OutageReport;
pub use stale::{Moved, StaleReport};

/// Memory of an agent that has asked for as much as it may at once.
const AGENT_BYTES: u64 = 10_000;
/// Agents at most: LAs of a block of 10 bits, which loopback has.
pub const AGENTS_MAX: u32 = 1 << 22;
/// Datagrams that are read in one turn, which is over before if there are no more.
const READ_MAX: usize = 1024;
/// Waits are not longer, so that a request to stop is seen.
const WAIT_MAX_NS: u64 = 50_000_000;

/// Who the agents are, and what they ask.
#[derive(Clone, Debug)]
pub struct AgentsLoad {
    /// The directory servers.
    pub servers: Vec<SocketAddrV4>,
    /// The servers' secret, from which each agent's key is derived.
    pub secret: Secret,
    /// Which secret that is.
    pub key_id: u32,
    pub agents: u32,
    /// LA of the first agent; the others' follow. All are addresses of this namespace.
    pub first_la: Ipv4Addr,
    /// UDP port of every agent.
    pub port: u16,
    /// The first AA that has a mapping.
    pub first_aa: Ipv4Addr,
    /// AAs that have one, at least as many as agents: each agent has as many.
    pub aas: u32,
    /// AAs that each agent asks for first, at random.
    pub questions: usize,
    /// CPU that they run on.
    pub cpu: Option<usize>,
    /// Names AAs asked for, servers and request numbers.
    pub seed: u64,
}

/// Agents that are there and know nothing yet.
pub struct Agents {
    load: AgentsLoad,
    socket: Socket,
    hosts: Vec<Host>,
    timers: Timers,
    start: Instant,
    /// How often they have lost all they knew: other numbers each time.
    lives: u64,
}

impl AgentsLoad {
    fn check(&self) -> Result<(), NodeError> {
        let within = |field, value: u64, most: u64| {
            let why = format!("{value} is not between 1 and {most}");
            if (1..=most).contains(&value) { Ok(()) } else { Err(NodeError::config(field, why)) }
        };
        within("servers", self.servers.len() as u64, 256)?;
        within("agents", self.agents.into(), AGENTS_MAX.into())?;
        within("questions", self.questions as u64, ENTRIES_MAX as u64)?;
        if self.aas < self.agents.max(2) {
            let why = format!("{} are fewer than the {} agents, each of which has one", self.aas, self.agents);
            return Err(NodeError::config("aas", why));
        }
        check_room(self.agents)
    }

    /// LA of the agent with this number.
    pub fn la(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.first_la).wrapping_add(number))
    }

    /// The AA that packets of the agent with this number come from.
    pub fn own_aa(&self, number: u32) -> Ipv4Addr {
        self.aa(number * (self.aas / self.agents))
    }

    fn aa(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.first_aa).wrapping_add(number))
    }
}

/// Checks that there is memory for so many agents.
///
/// # Errors
/// [`NodeError::Config`] where there is not.
pub fn check_room(agents: u32) -> Result<(), NodeError> {
    let (needed, free) = (u64::from(agents) * AGENT_BYTES, available_bytes());
    if needed > free {
        let why =
            format!("{agents} need {} MB of memory, of which {} are free; ask for fewer", needed >> 20, free >> 20);
        return Err(NodeError::config("agents", why));
    }
    Ok(())
}

/// A UDP port for all agents that is free on every address now.
///
/// # Errors
/// [`NodeError::System`].
pub fn free_port() -> Result<u16, NodeError> {
    socket::free_port().map_err(NodeError::system("looking for a free UDP port"))
}

/// Memory that this machine can give without taking it from anybody, bytes.
fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024)
}

impl Agents {
    /// Makes them, and binds their port.
    ///
    /// # Errors
    /// [`NodeError::Config`] for agents that cannot be here; [`NodeError::System`].
    pub fn new(load: &AgentsLoad) -> Result<Self, NodeError> {
        load.check()?;
        let socket = Socket::bind(load.port)?;
        let hosts = (0..load.agents).map(|number| Host::new(load, number)).collect();
        Ok(Self { load: load.clone(), socket, hosts, timers: Timers::default(), start: Instant::now(), lives: 0 })
    }

    /// They know nothing again, and what was still on its way to them is gone.
    fn begin(&mut self) -> Result<(), NodeError> {
        if let Some(cpu) = self.load.cpu {
            cpu::take(cpu)?;
        }
        self.lives += 1;
        self.timers = Timers::default();
        for (number, host) in (0..).zip(&mut self.hosts) {
            let stream = u128::from(self.lives) << 32 | u128::from(number);
            host.forget(&self.load, number, Pcg64::new(u128::from(self.load.seed), stream));
        }
        self.socket.drain();
        self.start = Instant::now();
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Carries what has come and what is due. Waits for it no longer than until `wake_ns`, and not at all for a time that has
    /// passed. `seen` is told what each input did. Returns whether all that has come was read: before that nothing is asked again,
    /// as each agent by itself would have read its answer.
    fn turn(&mut self, wake_ns: u64, mut seen: impl FnMut(u32, &mut Host, u64)) -> Result<bool, NodeError> {
        let due_ns = self.timers.next_ns().unwrap_or(u64::MAX).min(wake_ns);
        let wait_ns = due_ns.saturating_sub(self.now_ns()).min(WAIT_MAX_NS);
        if wait_ns > 0 {
            self.wait(wait_ns)?;
        }
        let mut buffer = [0; DATAGRAM_LEN_MAX + 1];
        let mut all_read = false;
        for _ in 0..READ_MAX {
            let Some((to, from, length)) = self.socket.receive(&mut buffer) else {
                all_read = true;
                break;
            };
            let number = u32::from(to).wrapping_sub(u32::from(self.load.first_la));
            let now_ns = self.now_ns();
            let Some(host) = self.hosts.get_mut(number as usize) else { continue };
            host.receive(now_ns, &self.socket, from, &buffer[..length]);
            self.timers.set(number, host);
            seen(number, host, now_ns);
        }
        if !all_read {
            return Ok(false);
        }
        let now_ns = self.now_ns();
        while let Some(number) = self.timers.pop_due(now_ns, &self.hosts) {
            let host = &mut self.hosts[number as usize];
            host.deadline(now_ns, &self.socket);
            self.timers.set(number, host);
            seen(number, host, now_ns);
        }
        Ok(true)
    }

    /// Waits for a datagram.
    fn wait(&self, wait_ns: u64) -> Result<(), NodeError> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(wait_ns).unwrap_or(0) };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(NodeError::system("waiting for answers")(errno)),
        }
    }
}
