//! The worker: all TCP of one server, in one thread, from inside its namespace.
//!
//! It listens, connects, writes zeroes, counts what arrives, and writes its numbers into the shared table. Its last
//! words on standard error tell the parent what went wrong; otherwise it says nothing.

mod budget;
mod datagrams;
mod mix;
mod receiver;
mod sender;
mod slots;
mod socket;
mod storm;

use std::ffi::OsString;
use std::io::{self, stdin};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use self::datagrams::Datagrams;
use self::mix::Mix;
use self::receiver::Receivers;
use self::sender::{Outcome, Senders, Task};
use self::slots::{Kind, from_token, token};
#[cfg(test)]
pub(super) use self::socket::STORM_PORT;
use self::storm::Storms;
use super::namespace;
use super::table::{Table, now_ns};
use crate::rights;

/// The stop flag is looked at this often.
const ATTENTION_NS: u64 = 200_000_000;
const EVENTS_PER_TURN: usize = 64;

/// Entry of the hidden subcommand: `args` are the server's number and its name (the latter for `ps` only); the table
/// is standard input.
pub fn worker_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match work(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn work(args: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    let me = args.into_iter().next().and_then(|arg| arg.to_str()?.parse::<usize>().ok());
    let table = Table::open(stdin().as_fd().try_clone_to_owned()?)
        .map_err(|error| explain("this command is started by weft itself; read the traffic table", error))?;
    let me = me
        .filter(|&me| me < table.config().hosts.len())
        .ok_or_else(|| io::Error::other("the first argument must be the number of a server"))?;
    settle(&table, me)?;
    let mut worker = Worker::new(&table, me)?;
    rights::become_nobody().map_err(|error| explain("give up root's rights", error))?;
    // Only now: who becomes another forgets it.
    die_with_the_parent(&table)?;
    table.header().ready.fetch_add(1, AcqRel);
    let Some(start_ns) = wait_for_start(&table) else { return Ok(()) };
    match worker.run(start_ns) {
        // Peers end at slightly different times; what they break by that is no error.
        Err(_) if stopped(&table) => Ok(()),
        other => other,
    }
}

fn die_with_the_parent(table: &Table) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().map(Pid::as_raw_nonzero).map(i32::from) == Some(table.config().parent) {
        return Ok(());
    }
    Err(io::Error::other("the process that started this worker is gone"))
}

/// Enters the server's namespace and takes the descriptors and the core that the run needs.
fn settle(table: &Table, me: usize) -> io::Result<()> {
    let config = table.config();
    let path = &config.hosts[me].namespace;
    namespace::enter(path).map_err(|error| explain(&format!("enter {}", path.display()), error))?;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    if let Some(core) = config.cost_core {
        let mut cores = CpuSet::new();
        cores.set(core);
        sched_setaffinity(None, &cores)?;
    }
    Ok(())
}

/// When the run starts; `None` if it never does.
fn wait_for_start(table: &Table) -> Option<u64> {
    loop {
        let start_ns = table.header().start_ns.load(Acquire);
        if start_ns > 0 {
            std::thread::sleep(Duration::from_nanos(start_ns.saturating_sub(now_ns())));
            return Some(start_ns);
        }
        if stopped(table) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn stopped(table: &Table) -> bool {
    table.header().stop.load(Acquire) != 0
}

fn explain(what: &str, error: io::Error) -> io::Error {
    io::Error::other(format!("{what}: {error}"))
}

/// One server's side of the run.
struct Worker<'a> {
    table: &'a Table,
    me: usize,
    epoll: OwnedFd,
    senders: Senders<'a>,
    receivers: Receivers<'a>,
    mix: Option<Mix<'a>>,
    datagrams: Datagrams<'a>,
    storms: Storms<'a>,
    next_tcp_ns: u64,
}

impl<'a> Worker<'a> {
    fn new(table: &'a Table, me: usize) -> io::Result<Self> {
        let config = table.config();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let address = config.hosts[me].address;
        let listener = socket::listener(address)
            .map_err(|error| explain(&format!("listen on {address} port {}", socket::PORT), error))?;
        let receivers = Receivers::new(table, me, listener, config.cost_core.is_some());
        epoll::add(&epoll, receivers.listener(), token(Kind::Listener, 0), epoll::EventFlags::IN)?;
        let senders =
            Senders::new(table, me, config.mix.as_ref().is_some_and(|mix| mix.offered_rate_per_server.is_some()));
        let datagrams = Datagrams::open(table, me).map_err(|error| explain("open sockets for datagrams", error))?;
        if let Some(socket) = datagrams.receiver() {
            epoll::add(&epoll, socket, token(Kind::Datagrams, 0), epoll::EventFlags::IN)?;
        }
        let storms = Storms::open(table, me).map_err(|error| explain("open sockets for broadcast", error))?;
        if let Some(socket) = storms.receiver() {
            epoll::add(&epoll, socket, token(Kind::Storm, 0), epoll::EventFlags::IN)?;
        }
        Ok(Self { table, me, epoll, senders, receivers, mix: None, datagrams, storms, next_tcp_ns: u64::MAX })
    }

    /// Sends and receives until the parent says stop.
    fn run(&mut self, start_ns: u64) -> io::Result<()> {
        let config = self.table.config();
        let deadline_ns = config.duration_ns.map_or(u64::MAX, |duration_ns| start_ns.saturating_add(duration_ns));
        self.next_tcp_ns = config.tcp_interval_ns.map_or(u64::MAX, |interval_ns| start_ns + interval_ns);
        self.plan_flows(start_ns)?;
        self.datagrams.begin(start_ns);
        self.storms.begin(start_ns);
        loop {
            if now_ns() >= deadline_ns {
                return self.end_at_deadline();
            }
            if stopped(self.table) {
                return self.senders.publish_all();
            }
            self.senders.start_due(&self.epoll)?;
            self.tick_mix()?;
            self.datagrams.send_due()?;
            self.storms.send_due()?;
            self.sample_tcp()?;
            self.turn(deadline_ns)?;
        }
    }

    /// The flows that are known at the start: those listed in the table, or the first of the mix.
    fn plan_flows(&mut self, start_ns: u64) -> io::Result<()> {
        let config = self.table.config();
        if let Some(spec) = &config.mix {
            let mut mix = Mix::new(self.table, self.me as u32, spec, start_ns).map_err(io::Error::other)?;
            mix.begin(&mut self.senders);
            self.mix = Some(mix);
            return Ok(());
        }
        let mine = |row: &u32| self.table.flows()[*row as usize].from.load(Relaxed) as usize == self.me;
        for (serial, row) in (0..config.rows).filter(mine).enumerate() {
            let cell = &self.table.flows()[row as usize];
            let bytes = cell.asked_bytes.load(Relaxed);
            self.senders.add(Task {
                row: Some(row),
                to: cell.to.load(Relaxed),
                bytes: (bytes > 0).then_some(bytes),
                serial: serial as u64,
                start_ns: start_ns.saturating_add(cell.asked_start_ns.load(Relaxed)),
            });
        }
        Ok(())
    }

    fn tick_mix(&mut self) -> io::Result<()> {
        match &mut self.mix {
            Some(mix) if now_ns() >= mix.next_tick_ns() => mix.tick(&mut self.senders, &self.epoll),
            _ => Ok(()),
        }
    }

    fn sample_tcp(&mut self) -> io::Result<()> {
        let now_ns = now_ns();
        if let Some(interval_ns) = self.table.config().tcp_interval_ns.filter(|_| now_ns >= self.next_tcp_ns) {
            self.next_tcp_ns += ((now_ns - self.next_tcp_ns) / interval_ns + 1) * interval_ns;
            self.senders.publish_all()?;
        }
        Ok(())
    }

    /// Waits for events, at most until something else is due, and handles them.
    fn turn(&mut self, deadline_ns: u64) -> io::Result<()> {
        let now = now_ns();
        let tick_ns = self.mix.as_ref().map_or(u64::MAX, Mix::next_tick_ns);
        let start_ns = self.senders.next_start_ns().unwrap_or(u64::MAX);
        let due_ns = tick_ns.min(start_ns).min(self.datagrams.next_due_ns()).min(self.storms.next_due_ns());
        let wake_ns = deadline_ns.min(self.next_tcp_ns).min(due_ns).min(now + ATTENTION_NS);
        let timeout = Timespec { tv_sec: 0, tv_nsec: wake_ns.saturating_sub(now) as i64 };
        let none = epoll::Event { flags: epoll::EventFlags::empty(), data: token(Kind::Listener, 0) };
        let mut events = [none; EVENTS_PER_TURN];
        let count = match epoll::wait(&self.epoll, events.as_mut_slice(), Some(&timeout)) {
            Ok(count) => count,
            Err(Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..count] {
            self.handle(event)?;
        }
        Ok(())
    }

    fn handle(&mut self, event: &epoll::Event) -> io::Result<()> {
        let (flags, data) = (event.flags, event.data);
        match from_token(data) {
            Some((Kind::Listener, _)) => self.receivers.accept(&self.epoll),
            Some((Kind::Receiver, slot)) => {
                self.receivers.read(slot);
                Ok(())
            }
            Some((Kind::Sender, slot)) => {
                match (self.senders.event(slot, flags, &self.epoll)?, &mut self.mix) {
                    (Outcome::Finished, Some(mix)) => mix.begin_next(&mut self.senders),
                    (Outcome::Connected, Some(mix)) => mix.admit(slot, &mut self.senders),
                    _ => {}
                }
                Ok(())
            }
            Some((Kind::Datagrams, _)) => self.datagrams.read(),
            Some((Kind::Storm, _)) => self.storms.read(),
            None => Ok(()),
        }
    }

    /// Time is up: what has arrived counts, then nothing moves until the parent has read everything.
    fn end_at_deadline(&mut self) -> io::Result<()> {
        self.receivers.end_open_flows();
        self.senders.publish_all()?;
        self.table.header().ended.fetch_add(1, AcqRel);
        while !stopped(self.table) {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}
