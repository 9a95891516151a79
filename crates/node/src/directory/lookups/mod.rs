//! The read-optimised tier (VL2 4.3.2): answers look-ups over UDP from memory.
//!
//! Each thread has a socket of its own on the one address, reads a batch of datagrams (whole bursts where the kernel
//! hands them over), answers them in place from one look at the table, and sends the answers to one peer as one burst.

mod corrections;
mod counts;
mod socket;

use corrections::Corrections;
pub(super) use counts::LookupCounts;
pub use socket::set_up_socket;

use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use weft_control::directory::{KeyRing, Received, Responder};
use weft_wire::directory::Path;

use super::DirectoryConfig;
use super::card::Card;
use super::replica::{Replica, TableReader};
use crate::error::NodeError;
use crate::stop::Stop;
use crate::sys::{Inbox, Outbox};
use crate::threads::guarded;

/// The sockets and what is needed to answer.
pub(super) struct Lookups {
    sockets: Vec<(UdpSocket, Mutex<LookupCounts>)>,
    listen: SocketAddrV4,
    responder: Mutex<Responder>,
    /// How often the responder has been another one: threads look at this, and take a copy of their own.
    responders: AtomicU64,
    corrections: Corrections,
    replica: Replica,
    /// Answers before us what it can.
    card: Option<Arc<Card>>,
}

impl Lookups {
    /// Binds one socket for each thread.
    pub(super) fn bind(config: &DirectoryConfig, replica: Replica) -> Result<Self, NodeError> {
        let keys = config.keys()?;
        let (sockets, listen) = socket::bind(config.listen, config.lookup_threads()?)?;
        let sockets = sockets.into_iter().map(|socket| (socket, Mutex::default())).collect();
        let corrections = Corrections::new(config, &keys, listen);
        let card = Card::load(config, listen)?.map(Arc::new);
        if let Some(card) = &card {
            card.set_keys(&keys);
            replica.show_at(Arc::clone(card));
            card.attach(config.xdp)?;
        }
        let (responder, responders) = (Mutex::new(Responder { keys }), AtomicU64::new(0));
        Ok(Self { sockets, listen, responder, responders, corrections, replica, card })
    }

    /// Answers and corrects by other settings from now on.
    pub(super) fn reconfigure(&self, config: &DirectoryConfig, keys: KeyRing) {
        self.corrections.reconfigure(config, &keys, self.listen);
        if let Some(card) = &self.card {
            card.set_keys(&keys);
        }
        *self.responder.lock().unwrap_or_else(PoisonError::into_inner) = Responder { keys };
        self.responders.fetch_add(1, Ordering::Release);
    }

    /// Where look-ups are answered.
    pub(super) fn listen(&self) -> SocketAddrV4 {
        self.listen
    }

    /// How many threads there are.
    pub(super) fn threads(&self) -> usize {
        self.sockets.len()
    }

    /// What became of ToRs' reports.
    pub(super) fn corrections(&self) -> &Corrections {
        &self.corrections
    }

    /// What answers before us.
    pub(super) fn card(&self) -> Option<&Card> {
        self.card.as_deref()
    }

    /// What all threads have counted so far.
    pub(super) fn counts(&self) -> LookupCounts {
        let mut sum = LookupCounts::default();
        for (_, counts) in &self.sockets {
            sum.merge(&counts.lock().unwrap_or_else(PoisonError::into_inner));
        }
        sum
    }

    /// Answers on every socket until it is told to stop; a thread that fails stops all.
    pub(super) fn serve(&self, stop: &Stop) -> Result<(), NodeError> {
        std::thread::scope(|scope| {
            let work = |name: &str, (socket, counts): &'_ (UdpSocket, Mutex<LookupCounts>)| {
                guarded(name, stop, || Worker::new(self, socket, counts).serve(stop))
            };
            let mut threads = Vec::new();
            for (index, socket) in self.sockets.iter().enumerate() {
                let name = format!("{THREAD_NAME}{index}");
                let thread = std::thread::Builder::new()
                    .name(name.clone())
                    .spawn_scoped(scope, move || work(&name, socket))
                    .map_err(NodeError::system("starting a look-up thread"));
                if thread.is_err() {
                    stop.request();
                }
                threads.push(thread?);
            }
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).fold(Ok(()), Result::and)
        })
    }
}

/// What the names of the threads that answer look-ups begin with, for whoever measures them.
pub const THREAD_NAME: &str = "lookup-";

/// One thread's part.
struct Worker<'a> {
    lookups: &'a Lookups,
    responder: Responder,
    /// Which one that is.
    responders: u64,
    socket: &'a UdpSocket,
    counts: &'a Mutex<LookupCounts>,
    table: TableReader,
    inbox: Inbox,
    outbox: Outbox,
}

impl<'a> Worker<'a> {
    fn new(lookups: &'a Lookups, socket: &'a UdpSocket, counts: &'a Mutex<LookupCounts>) -> Self {
        let responders = lookups.responders.load(Ordering::Acquire);
        Self {
            lookups,
            responder: lookups.responder.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            responders,
            socket,
            counts,
            table: lookups.replica.reader(),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
        }
    }

    fn serve(mut self, stop: &Stop) -> Result<(), NodeError> {
        loop {
            if self.answer_batch()? == 0 {
                wait(stop, self.socket)?;
            }
            if stop.requested() {
                return Ok(());
            }
        }
    }

    /// Answers one batch. Returns how many messages there were.
    fn answer_batch(&mut self) -> Result<usize, NodeError> {
        let count = self.inbox.receive(self.socket.as_fd()).map_err(NodeError::system("reading look-ups"))?;
        if count == 0 {
            return Ok(0);
        }
        let mut seen = LookupCounts::default();
        let Lookups { listen, corrections, .. } = self.lookups;
        let responders = self.lookups.responders.load(Ordering::Acquire);
        if responders != self.responders {
            self.responder = self.lookups.responder.lock().unwrap_or_else(PoisonError::into_inner).clone();
            self.responders = responders;
        }
        let responder = &self.responder;
        // Rare, and empty it costs nothing.
        let mut reports = Vec::new();
        self.table.read(|table| {
            self.inbox.for_each(|source, datagram| {
                seen.datagrams += 1;
                let path = Path { source, destination: *listen };
                match responder.respond(table, &path, datagram) {
                    Ok(Received::Answered { questions }) => {
                        seen.questions += questions as u64;
                        true
                    }
                    Ok(Received::Report(report)) => {
                        reports.push(report);
                        false
                    }
                    Err(reason) => {
                        seen.ignored.add(reason);
                        false
                    }
                }
            });
        });
        // Held until all is counted: whoever has an answer and then asks for the counters finds it there.
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = self.inbox.send_back(self.socket.as_fd(), &mut self.outbox);
        for report in reports {
            self.table.read(|table| corrections.report(table, &report, self.socket));
            seen.reports += 1;
        }
        seen.answered = sent.datagrams as u64;
        seen.unsent = sent.failed as u64;
        counts.merge(&seen);
        Ok(count)
    }
}

/// Waits until there is something to read or it is time to stop.
fn wait(stop: &Stop, socket: &UdpSocket) -> Result<(), NodeError> {
    let mut fds = [PollFd::new(stop, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
    match poll(&mut fds, None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(NodeError::system("waiting for look-ups")(errno)),
    }
}
