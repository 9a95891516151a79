//! Datagrams between servers at a steady pace, in flows of their own: how long nothing came through.
//!
//! They are marked as those of plans' probes are (`traffic::probe`), and for the same reason: what a queue of data does to them would look
//! like an outage.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use serde::Serialize;
use weft_scenario::id::NodeId;

use crate::error::LabError;
use crate::home::namespace_path;
use crate::traffic::{CS6, TrafficError, visit};
use crate::up::Lab;

/// Distance between two datagrams of a flow: how finely an outage is timed.
const INTERVAL: Duration = Duration::from_millis(20);
const FLOWS_MOST: usize = 12;
/// How long a flow hears nothing until it is said to.
const QUIET_AFTER: Duration = Duration::from_millis(100);
/// Losses that end within this time of each other are one disturbance.
const SETTLED: Duration = Duration::from_millis(400);
/// A flow's number and a datagram's number of turn.
const BYTES: usize = 12;

/// Losses of flows that began and ended together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Disturbance {
    /// When the last one was over, since the watch began.
    #[serde(skip)]
    pub end: Duration,
    /// How many flows lost anything.
    pub flows: u32,
    /// The longest time from a datagram that was lost to the next one that was not.
    pub longest: Duration,
}

/// Flows under way. Dropping it stops them.
pub(super) struct Beats {
    stop: Arc<AtomicBool>,
    ledger: Arc<Mutex<Ledger>>,
    thread: Option<JoinHandle<()>>,
}

struct Flow {
    sender: UdpSocket,
    receiver: UdpSocket,
    count: u32,
    /// Count and turn of the last one that arrived.
    heard: Option<(u32, u64)>,
}

/// What became of all flows.
#[derive(Default)]
struct Ledger {
    pending: Option<Disturbance>,
    over: Vec<Disturbance>,
    hurt: BTreeMap<usize, Duration>,
    quiet: u32,
    heard: u32,
}

impl Beats {
    /// Between servers of the lab; none in one with less than two.
    pub(super) fn start(lab: &Lab) -> Result<Self, LabError> {
        let flows = open(lab).map_err(|error| LabError::Traffic(error.to_string()))?;
        let (stop, ledger) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Ledger::default())));
        let (stopped, book) = (Arc::clone(&stop), Arc::clone(&ledger));
        let thread = (!flows.is_empty()).then(|| std::thread::spawn(move || beat(flows, &book, &stopped)));
        Ok(Self { stop, ledger, thread })
    }

    /// Disturbances that are over since this was asked before.
    pub(super) fn over(&mut self) -> Vec<Disturbance> {
        std::mem::take(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner).over)
    }

    /// Flows that hear nothing now, of those that ever did.
    pub(super) fn quiet(&self) -> (u32, u32) {
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        (ledger.quiet, ledger.heard)
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

/// Servers in turn, spread over all of them, each with the one half the way round.
fn ends(servers: &[(NodeId, Ipv4Addr)]) -> Vec<[(NodeId, Ipv4Addr); 2]> {
    let count = servers.len();
    if count < 2 {
        return Vec::new();
    }
    let flows = count.min(FLOWS_MOST);
    let half = (count / 2).max(1);
    (0..flows).map(|flow| flow * count / flows).map(|from| [servers[from], servers[(from + half) % count]]).collect()
}

fn open(lab: &Lab) -> Result<Vec<Flow>, TrafficError> {
    let ends = ends(&lab.server_addresses());
    let path = |node: NodeId| namespace_path(&lab.plan.node(node).namespace);
    let paths: Vec<_> = ends.iter().map(|[from, to]| (path(from.0), path(to.0))).collect();
    let bound = |address: Ipv4Addr| {
        let socket = UdpSocket::bind(SocketAddrV4::new(address, 0))?;
        socket.set_nonblocking(true)?;
        std::io::Result::Ok(socket)
    };
    let receivers = visit(paths.iter().map(|(_, to)| to.as_path()), |flow| bound(ends[flow][1].1))?;
    let senders = visit(paths.iter().map(|(from, _)| from.as_path()), |flow| {
        let socket = bound(ends[flow][0].1)?;
        sockopt::set_ip_tos(&socket, CS6)?;
        socket.connect(receivers[flow].local_addr()?)?;
        Ok(socket)
    })?;
    let flow = |(sender, receiver)| Flow { sender, receiver, count: 0, heard: None };
    Ok(senders.into_iter().zip(receivers).map(flow).collect())
}

fn beat(mut flows: Vec<Flow>, ledger: &Mutex<Ledger>, stop: &AtomicBool) {
    let start = Instant::now();
    let turn_of = |time: Duration| (time.as_nanos() / INTERVAL.as_nanos()) as u64;
    while !stop.load(Ordering::Acquire) {
        let turn = turn_of(start.elapsed());
        let mut losses = Vec::new();
        for (number, flow) in flows.iter_mut().enumerate() {
            losses.extend(flow.hear().map(|lost| (number, lost)));
            flow.say(turn);
        }
        let quiet = flows.iter().filter(|flow| flow.is_quiet(turn)).count() as u32;
        let heard = flows.iter().filter(|flow| flow.heard.is_some()).count() as u32;
        let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
        (ledger.quiet, ledger.heard) = (quiet, heard);
        ledger.note(start.elapsed(), losses);
        drop(ledger);
        // Turns that a busy machine has missed are not made up for.
        let next = INTERVAL * (turn + 1) as u32;
        std::thread::sleep(next.saturating_sub(start.elapsed()));
    }
}

impl Flow {
    fn say(&mut self, turn: u64) {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.count.to_be_bytes());
        bytes[4..].copy_from_slice(&turn.to_be_bytes());
        // What the kernel refuses to send is lost.
        let _ = self.sender.send(&bytes);
        self.count = self.count.wrapping_add(1);
    }

    /// Takes what has come in; the longest loss that it ends.
    fn hear(&mut self) -> Option<Duration> {
        let (mut bytes, mut longest) = ([0; BYTES + 1], None);
        while let Ok(BYTES) = self.receiver.recv(&mut bytes) {
            let count = u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"));
            let turn = u64::from_be_bytes(bytes[4..BYTES].try_into().expect("eight bytes"));
            longest = longest.max(self.take(count, turn));
        }
        longest
    }

    /// How long those before this one were lost, if any were.
    fn take(&mut self, count: u32, turn: u64) -> Option<Duration> {
        let (last, at) = self.heard.unwrap_or((count.wrapping_sub(1), turn.wrapping_sub(1)));
        let ahead = count.wrapping_sub(last) as i32;
        if ahead <= 0 || turn > 1 << 40 {
            return None;
        }
        self.heard = Some((count, turn));
        // The first one that was lost left a turn after the last one that was not.
        (ahead > 1).then(|| INTERVAL * turn.saturating_sub(at.wrapping_add(1)).max(1) as u32)
    }

    fn is_quiet(&self, turn: u64) -> bool {
        let turns = (QUIET_AFTER.as_nanos() / INTERVAL.as_nanos()) as u64;
        self.heard.is_some_and(|(_, at)| at + turns < turn)
    }
}

impl Ledger {
    /// Losses of flows that ended just now.
    fn note(&mut self, now: Duration, losses: Vec<(usize, Duration)>) {
        for (flow, lost) in losses {
            let worst = self.hurt.entry(flow).or_default();
            *worst = lost.max(*worst);
            let longest = self.hurt.values().max().copied().unwrap_or_default();
            self.pending = Some(Disturbance { end: now, flows: self.hurt.len() as u32, longest });
        }
        if let Some(pending) = self.pending.take_if(|pending| now >= pending.end + SETTLED) {
            self.over.push(pending);
            self.hurt.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> Flow {
        let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (sender, receiver) = (socket(), socket());
        receiver.set_nonblocking(true).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        Flow { sender, receiver, count: 0, heard: None }
    }

    #[test]
    fn a_loss_lasts_from_the_first_that_was_lost_to_the_next_that_was_not() {
        let mut flow = flow();
        assert_eq!((0..3).map(|n| flow.take(n, u64::from(n))).collect::<Vec<_>>(), [None; 3]);
        assert_eq!(flow.take(5, 5), Some(INTERVAL * 2));
        assert_eq!((flow.take(4, 4), flow.take(6, 6)), (None, None), "late is not lost again");
        // A busy machine sends nothing for twenty turns: that is no loss.
        assert_eq!(flow.take(7, 26), None);
        assert_eq!((flow.is_quiet(31), flow.is_quiet(32)), (false, true));
        assert_eq!(flow.take(8, u64::MAX), None, "nonsense from elsewhere");
    }

    #[test]
    fn datagrams_go_through_sockets() {
        let mut flow = flow();
        for turn in [0, 1] {
            flow.say(turn);
        }
        flow.count += 10;
        flow.say(12);
        let start = Instant::now();
        let mut lost = None;
        while lost.is_none() && start.elapsed().as_secs() < 10 {
            lost = flow.hear();
        }
        assert_eq!((lost, flow.heard), (Some(INTERVAL * 10), Some((12, 12))));
    }

    #[test]
    fn losses_that_end_together_are_one_disturbance() {
        let ms = Duration::from_millis;
        let mut ledger = Ledger::default();
        ledger.note(ms(1_000), vec![(0, ms(40)), (1, ms(60))]);
        ledger.note(ms(1_200), vec![(1, ms(20)), (3, ms(240))]);
        ledger.note(ms(1_500), vec![]);
        assert_eq!(ledger.over, []);
        ledger.note(ms(1_600), vec![]);
        assert_eq!(ledger.over, [Disturbance { end: ms(1_200), flows: 3, longest: ms(240) }]);
        ledger.note(ms(9_000), vec![(2, ms(20))]);
        ledger.note(ms(9_400), vec![]);
        assert_eq!(ledger.over[1], Disturbance { end: ms(9_000), flows: 1, longest: ms(20) });
    }

    #[test]
    fn flows_are_spread_over_all_servers() {
        let servers = |count: u32| (0..count).map(|n| (NodeId(n), Ipv4Addr::from(n))).collect::<Vec<_>>();
        let numbers = |count| ends(&servers(count)).iter().map(|[from, to]| (from.0.0, to.0.0)).collect::<Vec<_>>();
        assert_eq!(numbers(1), []);
        assert_eq!(numbers(3), [(0, 1), (1, 2), (2, 0)]);
        let many = numbers(75);
        assert_eq!((many.len(), many[0], many[11]), (FLOWS_MOST, (0, 37), (68, 30)));
    }
}
