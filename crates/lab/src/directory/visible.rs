//! When an update is visible: issues updates at a low rate and asks every server for their AAs, again and again, until it
//! answers with them; a subscriber is told meanwhile.
//!
//! An update carries its number in its anycast LA ([`mark`]), so that whoever sees the mapping knows which update it is.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use weft_node::client::{AdminClient, Watch};
use weft_testbed::load::Access;
use weft_wire::directory::update::{Place, UpdateFrame, Verdict};
use weft_wire::directory::{DATAGRAM_LEN_MAX, ENTRIES_MAX, Entry, Kind, Message, Path, Status, View};

use super::rows::Latencies;
use super::tier::{ServerView, aa, mark, update_of};
use crate::error::LabError;

/// Between two questions to one server: how finely times are told apart, beside the way there and back.
const PAUSE: Duration = Duration::from_micros(200);
/// A question without an answer after this time is asked again.
const ANSWER_MAX: Duration = Duration::from_millis(20);
/// The subscriber looks this often whether it is over.
const PATIENCE: Duration = Duration::from_millis(20);

/// Updates to issue.
#[derive(Clone, Debug)]
pub(super) struct Issuing {
    /// Through whom, in turn.
    pub(super) servers: Vec<ServerView>,
    /// Clients that each wait for their update.
    pub(super) clients: usize,
    /// Updates per second.
    pub(super) per_s: f64,
    /// AAs that are updated, one after another.
    pub(super) aas: u32,
    /// LA of the ToR that they name.
    pub(super) tor_la: Ipv4Addr,
    pub(super) first_update: u32,
    /// When the first update is due.
    pub(super) start: Instant,
    /// How long updates become due.
    pub(super) duration: Duration,
}

/// What became of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Issued {
    /// Updates sent.
    pub(super) sent: u64,
    /// Updates acknowledged.
    pub(super) answered: u64,
    /// Updates that were not.
    pub(super) wrong: u64,
    /// From when each was due to its acknowledgement.
    pub(super) latencies: Latencies,
    /// When the last acknowledgement came, and the longest time between two.
    last_ns: u64,
    longest_gap_ns: u64,
    /// Of each AA the revision of the last acknowledged update.
    pub(super) acknowledged: BTreeMap<Ipv4Addr, u64>,
    /// The first refusal.
    pub(super) first_error: Option<String>,
}

/// An update that was issued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    pub(super) aa: u32,
    pub(super) update: u32,
    pub(super) due_ns: u64,
}

/// When updates were visible.
#[derive(Clone, Debug, Default)]
pub(super) struct Visible {
    /// At each server.
    pub(super) by_server: Vec<Latencies>,
    /// At the slowest of them.
    pub(super) everywhere: Latencies,
    /// At a subscriber.
    pub(super) pushed: Latencies,
    /// Updates that were not visible everywhere in time.
    pub(super) never: u64,
}

impl Issuing {
    /// Issues updates until the time is over; tells of each before it leaves.
    pub(super) fn run(&self, tell: &Sender<Fresh>) -> Result<Issued, LabError> {
        let (next, sum) = (AtomicU32::new(0), Mutex::new(Issued::default()));
        std::thread::scope(|scope| {
            let one = |number: usize| {
                let (tell, next, sum) = (tell.clone(), &next, &sum);
                let server = &self.servers[number % self.servers.len()];
                scope.spawn(move || self.client(server, &tell, next, sum))
            };
            let threads: Vec<_> = (0..self.clients).map(one).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        Ok(sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// One client: takes the next update when it has an answer to its last one.
    fn client(
        &self,
        server: &ServerView,
        tell: &Sender<Fresh>,
        next: &AtomicU32,
        sum: &Mutex<Issued>,
    ) -> Result<(), LabError> {
        let failed = |error: weft_node::NodeError| super::tier::refused(&server.name, &error);
        let mut client = AdminClient::open(&server.sessions).map_err(failed)?;
        loop {
            let number = next.fetch_add(1, Relaxed);
            let due = Duration::from_secs_f64(f64::from(number) / self.per_s);
            if due >= self.duration {
                return Ok(());
            }
            std::thread::sleep((self.start + due).saturating_duration_since(Instant::now()));
            let update = self.first_update + number;
            let fresh = Fresh { aa: update % self.aas, update, due_ns: due.as_nanos() as u64 };
            // The watcher ends only after the last sender.
            let _ = tell.send(fresh);
            client.put_frame(&self.frame(fresh));
            let answer = client.flush().and_then(|()| client.verdict()).map_err(failed)?;
            let now_ns = self.start.elapsed().as_nanos() as u64;
            let mut sum = sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            sum.sent += 1;
            match answer.verdict {
                Verdict::Committed => sum.acknowledge(fresh, answer.revision, now_ns),
                _ => {
                    sum.wrong += 1;
                    sum.first_error.get_or_insert(answer.text);
                }
            }
        }
    }

    fn frame(&self, fresh: Fresh) -> UpdateFrame {
        let place = Place { tor_la: self.tor_la, anycast_la: mark(fresh.update), host_la: None, service: 0 };
        UpdateFrame { aa: aa(fresh.aa), place: Some(place), if_version: None, version: None, client: 0, sequence: 0 }
    }
}

impl Issued {
    /// The longest time without an acknowledgement, that after the last one to the end of the step included.
    pub(super) fn longest_gap_ns(&self, duration: Duration) -> u64 {
        self.longest_gap_ns.max((duration.as_nanos() as u64).saturating_sub(self.last_ns))
    }

    fn acknowledge(&mut self, fresh: Fresh, revision: u64, now_ns: u64) {
        self.answered += 1;
        self.latencies.add(now_ns.saturating_sub(fresh.due_ns), 1);
        self.longest_gap_ns = self.longest_gap_ns.max(now_ns.saturating_sub(self.last_ns));
        self.last_ns = self.last_ns.max(now_ns);
        let latest = self.acknowledged.entry(aa(fresh.aa)).or_default();
        *latest = revision.max(*latest);
    }
}

/// Subscribes at a server and notes when each update came, until it is over.
pub(super) fn subscribe(server: &ServerView, start: Instant, over: &AtomicBool) -> Result<HashMap<u32, u64>, LabError> {
    let failed = |error: weft_node::NodeError| super::tier::refused(&server.name, &error);
    let mut client = AdminClient::open(&server.sessions).map_err(failed)?;
    client.watch(None).map_err(failed)?;
    let mut seen = HashMap::new();
    while !over.load(Relaxed) {
        match client.watched(PATIENCE).map_err(failed)? {
            Watch::Changed { changes, .. } => {
                let now_ns = start.elapsed().as_nanos() as u64;
                let updates = changes.iter().filter_map(|change| Some(update_of(change.anycast_la?)));
                for update in updates {
                    seen.entry(update).or_insert(now_ns);
                }
            }
            Watch::Lagged => return Err(LabError::DirectoryLoad("the subscriber lagged; lower the rate".to_owned())),
            Watch::Silence => {}
        }
    }
    Ok(seen)
}

/// Watches until nothing new is issued and everything is visible or the timeout is over. Also returns what was issued.
pub(super) fn watch(
    servers: &[ServerView],
    access: &Access,
    start: Instant,
    timeout: Duration,
    fresh: &Receiver<Fresh>,
) -> Result<(Visible, Vec<Fresh>), LabError> {
    let mut askers = servers.iter().map(|server| Asker::new(server.lookups, access)).collect::<Result<Vec<_>, _>>()?;
    let mut visible = Visible { by_server: vec![Latencies::default(); servers.len()], ..Visible::default() };
    // How many servers do not show an update yet.
    let mut missing: BTreeMap<u32, usize> = BTreeMap::new();
    let (mut open, mut issued) = (true, Vec::new());
    loop {
        while open {
            match fresh.try_recv() {
                Ok(update) => {
                    missing.insert(update.update, askers.len());
                    askers.iter_mut().for_each(|asker| asker.waiting.push(update));
                    issued.push(update);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => open = false,
            }
        }
        for (asker, latencies) in askers.iter_mut().zip(&mut visible.by_server) {
            let seen = asker.turn()?;
            let now_ns = start.elapsed().as_nanos() as u64;
            for update in seen {
                let latency_ns = now_ns.saturating_sub(update.due_ns);
                latencies.add(latency_ns, 1);
                let Some(left) = missing.get_mut(&update.update) else { continue };
                *left -= 1;
                if *left == 0 {
                    missing.remove(&update.update);
                    visible.everywhere.add(latency_ns, 1);
                }
            }
            let too_late = |update: &Fresh| now_ns.saturating_sub(update.due_ns) > timeout.as_nanos() as u64;
            for update in asker.waiting.extract_if(.., |update| too_late(update)) {
                visible.never += u64::from(missing.remove(&update.update).is_some());
            }
        }
        if !open && missing.is_empty() {
            return Ok((visible, issued));
        }
        std::thread::sleep(PAUSE);
    }
}

impl Visible {
    /// Adds when a subscriber had each update.
    pub(super) fn add_pushed(&mut self, issued: &[Fresh], seen: &HashMap<u32, u64>) {
        for update in issued {
            if let Some(at_ns) = seen.get(&update.update) {
                self.pushed.add(at_ns.saturating_sub(update.due_ns), 1);
            }
        }
    }
}

/// Asks one server.
struct Asker {
    socket: UdpSocket,
    path: Path,
    access: Access,
    next_request: u64,
    asked_at: Option<Instant>,
    waiting: Vec<Fresh>,
}

impl Asker {
    fn new(server: SocketAddrV4, access: &Access) -> Result<Self, LabError> {
        let failed = || LabError::io(format!("ask directory server {server}"));
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed())?;
        // Connecting chooses the source address, which the tag covers.
        socket.connect(server).map_err(failed())?;
        socket.set_nonblocking(true).map_err(failed())?;
        let source = match socket.local_addr().map_err(failed())? {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(_) => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
        };
        let path = Path { source, destination: server };
        let next_request = u64::from(source.port()) << 32;
        Ok(Self { socket, path, access: access.clone(), next_request, asked_at: None, waiting: Vec::new() })
    }

    /// Reads an answer if there is one and asks the next question. Returns what has become visible.
    fn turn(&mut self) -> Result<Vec<Fresh>, LabError> {
        let seen = self.receive();
        let overdue = self.asked_at.is_none_or(|at| at.elapsed() > ANSWER_MAX);
        if overdue && !self.waiting.is_empty() {
            self.ask()?;
        }
        Ok(seen)
    }

    fn ask(&mut self) -> Result<(), LabError> {
        self.next_request += 1;
        let entries = self.waiting.iter().take(ENTRIES_MAX).map(|update| Entry::question(aa(update.aa), 0));
        let question = Message {
            kind: Kind::Ask,
            service: self.access.service,
            request_id: self.next_request,
            revision: 0,
            key_id: self.access.key_id,
            entries: entries.collect(),
        };
        let mut buffer = [0; DATAGRAM_LEN_MAX];
        let length = question
            .emit_into(&mut buffer, &self.access.key, &self.path)
            .map_err(|error| LabError::DirectoryLoad(error.to_string()))?;
        self.asked_at = Some(Instant::now());
        match self.socket.send(&buffer[..length]) {
            // A full queue is a lost datagram: the question is asked again.
            Err(error) if !matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::WouldBlock) => {
                Err(LabError::io("ask a directory server")(error))
            }
            _ => Ok(()),
        }
    }

    fn receive(&mut self) -> Vec<Fresh> {
        let mut buffer = [0; DATAGRAM_LEN_MAX];
        let mut seen = Vec::new();
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let Ok(view) = View::new(&buffer[..length]) else { continue };
            let ours = view.kind() == Kind::Answer && view.request_id() == self.next_request;
            if !ours || view.verify(&self.access.key, &self.path.reversed()).is_err() {
                continue;
            }
            self.asked_at = None;
            let answers: Vec<Entry> = view.to_message().entries;
            let shows = |update: &Fresh| {
                let entry = answers.iter().find(|entry| entry.aa == aa(update.aa));
                entry.is_some_and(|entry| entry.status == Status::Ok && update_of(entry.anycast_la) >= update.update)
            };
            seen.extend(self.waiting.extract_if(.., |update| shows(update)));
        }
        seen
    }
}
