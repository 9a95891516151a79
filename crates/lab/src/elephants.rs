//! Few large flows by this kernel's TCP, over switches with emulated links: whole, by multipath TCP (RFC 8684), or in stripes.
//!
//! Every host's own queue has its line's rate, so that TCP meets a queue there; a line between switches polices what is too
//! much for it. For multipath TCP a sending host has an address for each subflow: the kernel's path manager opens one from
//! each of them. Stripes are the same number of TCP connections that share nothing.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, listen, socket_with};
use weft_scenario::engine::Progress;
use weft_scenario::id::NodeId;
use weft_scenario::record::{ElephantRow, Records};
use weft_scenario::topology::LinkSpec;
use weft_scenario::workload::{ElephantSpec, Split};

use crate::batch::Program;
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns;
use crate::tester::TesterError;
use crate::up::Lab;
use crate::wait;

/// Where receivers listen; each turn takes the next port, so that no turn meets packets of the one before.
const FIRST_PORT: u16 = 5_001;
const BACKLOG: i32 = 64;
/// Where the further addresses of sending hosts begin, within the VLAN's network.
const FURTHER_ADDRESSES: u8 = 100;
/// Smallest timeout of retransmission: a policer drops without adding delay, and 200 ms would be most of a turn.
const RTO_MIN_MS: u32 = 10;
/// What a host's line sends at once: more than a frame, little beside a queue.
const BURST_BYTES: u32 = 20_000;
/// How long anybody waits before looking whether the turn is over.
const PATIENCE: Duration = Duration::from_millis(20);
const CHUNK: usize = 1 << 16;
/// How long the subflows of an elephant may take to join.
const JOINING: Duration = Duration::from_secs(3);

/// What all turns of a trial share.
struct Elephants<'a> {
    lab: &'a Lab,
    spec: &'a ElephantSpec,
    progress: &'a dyn Progress,
    pairs: Vec<Pair>,
}

/// Hosts of one elephant.
struct Pair {
    from: NodeId,
    to: NodeId,
    source: Ipv4Addr,
    target: Ipv4Addr,
}

/// Runs one trial.
pub(crate) fn run(lab: &Lab, spec: &ElephantSpec, progress: &dyn Progress) -> Result<Records, TesterError> {
    let servers = lab.server_addresses();
    let (senders, receivers) = servers.split_at(servers.len() / 2);
    let both = senders.iter().copied().zip(receivers.iter().copied());
    let pairs: Vec<Pair> = both.map(|((from, source), (to, target))| Pair { from, to, source, target }).collect();
    let elephants = Elephants { lab, spec, progress, pairs };
    elephants.pairs.iter().zip(0..).try_for_each(|(pair, number)| elephants.prepare(pair, number))?;
    let splits = available(spec, progress);
    let mut records = Records::default();
    records.facts.push(("mptcp.available".to_owned(), f64::from(u8::from(splits.len() == spec.splits.len()))));
    let mut port = FIRST_PORT;
    for round in 0..spec.rounds {
        for split in &splits {
            let text = format!("round {} of {}, {}", round + 1, spec.rounds, split.name());
            progress.advance(f64::from(round) / f64::from(spec.rounds), &text);
            records.elephants.extend(elephants.turn(*split, (port, round))?);
            port += 1;
        }
    }
    Ok(records)
}

/// What this kernel can do; says what it cannot.
fn available(spec: &ElephantSpec, progress: &dyn Progress) -> Vec<Split> {
    let can = |split: &&Split| match (split, socket(**split)) {
        (Split::Mptcp, Err(error)) => {
            progress.note(&format!("mptcp is not available on this kernel: {error}"));
            false
        }
        _ => true,
    };
    spec.splits.iter().filter(can).copied().collect()
}

impl Elephants<'_> {
    /// Runs `work` in a host's namespace.
    fn inside<T: Send>(&self, host: NodeId, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        netns::in_namespace(&namespace_path(&self.lab.plan.node(host).namespace), work)
    }

    fn name(&self, host: NodeId) -> &str {
        &self.lab.plan.node(host).name
    }

    /// A host's interface and its line.
    fn line(&self, host: NodeId) -> (&str, &LinkSpec) {
        let fabric = &self.lab.scenario.fabric;
        let (_, link) = fabric.edge_of(host).expect("a server has an edge switch");
        let link = fabric.link(link);
        (&link.end_at(host).expect("a link of a node ends there").interface, &link.spec)
    }

    /// Addresses, path manager, queue and timeout of both hosts.
    fn prepare(&self, pair: &Pair, number: u8) -> Result<(), LabError> {
        let further = self.spec.subflows as u8 - 1;
        let limits = format!("mptcp limits set subflows {further} add_addr_accepted 0");
        let (interface, _) = self.line(pair.from);
        let mut sending = Vec::new();
        for address in (0..further).map(|place| further_address(pair.target, number * further + place)) {
            sending.push(format!("address replace {address}/24 dev {interface} noprefixroute"));
            sending.push(format!("mptcp endpoint add {address} dev {interface} subflow"));
        }
        let network = further_network(pair.target);
        let mptcp = socket(Split::Mptcp).is_ok();
        for (host, own, mut lines) in [(pair.from, pair.source, sending), (pair.to, pair.target, Vec::new())] {
            let (interface, line) = self.line(host);
            if mptcp {
                lines.insert(0, "mptcp endpoint flush".to_owned());
                lines.push(limits.clone());
            }
            // Without multipath TCP the addresses do no harm.
            lines.retain(|line| mptcp || !line.starts_with("mptcp"));
            // More specific than the route of the network itself.
            lines.push(format!("route replace {network}/24 dev {interface} src {own} rto_min {RTO_MIN_MS}ms"));
            let queue_ms = (line.buffer.0 * 8_000 / line.rate.0.max(1)).max(1);
            let rate = line.rate.0;
            let queue =
                format!("qdisc replace dev {interface} root tbf rate {rate} burst {BURST_BYTES} latency {queue_ms}ms");
            self.lab.batch(host, Program::Ip, &lines)?;
            self.lab.batch(host, Program::Tc, &[queue])?;
        }
        Ok(())
    }

    /// All elephants at once.
    fn turn(&self, split: Split, (port, round): (u16, u32)) -> Result<Vec<ElephantRow>, TesterError> {
        let stripes = if split == Split::Striped { self.spec.subflows } else { 1 };
        let connect = |pair: &Pair| Elephant::connect(self, pair, split, port, stripes);
        let elephants = self.pairs.iter().map(connect).collect::<Result<Vec<_>, LabError>>()?;
        if split == Split::Mptcp {
            for (elephant, pair) in elephants.iter().zip(&self.pairs) {
                elephant.wait_for_subflows(self, pair, port)?;
            }
        }
        let over = &AtomicBool::new(false);
        let received: Vec<AtomicU64> = self.pairs.iter().map(|_| AtomicU64::new(0)).collect();
        let start = Instant::now();
        let (wall_ns, bytes, connections) = std::thread::scope(|scope| {
            for (elephant, bytes) in elephants.iter().zip(&received) {
                for (sending, receiving) in &elephant.streams {
                    scope.spawn(move || send(sending, over));
                    scope.spawn(move || receive(receiving, bytes, over));
                }
            }
            let waited = wait::until(self.progress, start, Duration::from_nanos(self.spec.each.0), |_| ());
            let wall_ns = start.elapsed().as_nanos() as u64;
            let bytes: Vec<u64> = received.iter().map(|bytes| bytes.load(Relaxed)).collect();
            let count = |pair: &Pair| self.inside(pair.from, || established_to(port))?;
            let connections = self.pairs.iter().map(count).collect::<Result<Vec<u32>, LabError>>();
            over.store(true, Relaxed);
            waited.and(Ok((wall_ns, bytes, connections?)))
        })?;
        let row = |(elephant, (received_bytes, connections)): (usize, (u64, u32))| ElephantRow {
            split: split.name().to_owned(),
            round,
            elephant: elephant as u32,
            connections,
            received_bytes,
            wall_ns,
        };
        Ok(bytes.into_iter().zip(connections).enumerate().map(row).collect())
    }
}

fn further_address(of: Ipv4Addr, number: u8) -> Ipv4Addr {
    let [a, b, c, _] = of.octets();
    Ipv4Addr::new(a, b, c, FURTHER_ADDRESSES + number)
}

fn further_network(of: Ipv4Addr) -> Ipv4Addr {
    let [a, b, c, _] = of.octets();
    Ipv4Addr::new(a, b, c, 0)
}

/// The connections of one elephant, with both ends of each.
struct Elephant {
    streams: Vec<(TcpStream, TcpStream)>,
    /// Further subflows join at a listening socket (RFC 8684 section 3.2), so it stays open.
    _listener: TcpListener,
}

impl Elephant {
    fn connect(all: &Elephants<'_>, pair: &Pair, split: Split, port: u16, stripes: u32) -> Result<Self, LabError> {
        let what = || LabError::io(format!("connect {} with {}", all.name(pair.from), all.name(pair.to)));
        let target = SocketAddrV4::new(pair.target, port);
        let listener = all.inside(pair.to, || listening(split, target))?.map_err(what())?;
        let connect = |_| {
            let sending = all.inside(pair.from, || connected(split, target))?.map_err(what())?;
            let (receiving, _) = listener.accept().map_err(what())?;
            let limited = sending.set_write_timeout(Some(PATIENCE)).and(receiving.set_read_timeout(Some(PATIENCE)));
            limited.map_err(what())?;
            Ok((sending, receiving))
        };
        Ok(Self { streams: (0..stripes).map(connect).collect::<Result<_, LabError>>()?, _listener: listener })
    }

    /// Lets subflows join, or some of them, before lines are full: a request to join that is lost there comes again after a
    /// second, when the turn may be over. The first bytes each way allow them (RFC 8684 section 3.1).
    fn wait_for_subflows(&self, all: &Elephants<'_>, pair: &Pair, port: u16) -> Result<(), LabError> {
        let start = Instant::now();
        for (mut sending, mut receiving) in self.streams.iter().map(|(sending, receiving)| (sending, receiving)) {
            let mut byte = [0; 1];
            let greeted = sending.write_all(&byte).and_then(|()| read_patiently(receiving, &mut byte, start));
            let answered = greeted.and_then(|()| receiving.write_all(&byte));
            answered.map_err(LabError::io(format!("greet {} from {}", all.name(pair.to), all.name(pair.from))))?;
        }
        while all.inside(pair.from, || established_to(port))?? < all.spec.subflows && start.elapsed() < JOINING {
            std::thread::sleep(PATIENCE / 4);
        }
        Ok(())
    }
}

/// Reads also past the time that a read waits.
fn read_patiently(mut stream: &TcpStream, buffer: &mut [u8], start: Instant) -> io::Result<()> {
    loop {
        match stream.read_exact(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && start.elapsed() < JOINING => {}
            result => return result,
        }
    }
}

fn socket(split: Split) -> io::Result<OwnedFd> {
    let protocol = (split == Split::Mptcp).then_some(ipproto::MPTCP);
    Ok(socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, protocol)?)
}

fn listening(split: Split, address: SocketAddrV4) -> io::Result<TcpListener> {
    let socket = socket(split)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

fn connected(split: Split, target: SocketAddrV4) -> io::Result<TcpStream> {
    let socket = socket(split)?;
    connect(&socket, &target)?;
    // What is not sent when the turn is over must not be sent in the next one.
    set_socket_linger(&socket, Some(Duration::ZERO))?;
    Ok(socket.into())
}

fn send(mut stream: &TcpStream, over: &AtomicBool) {
    let chunk = vec![0; CHUNK];
    while !over.load(Relaxed) {
        if stream.write(&chunk).is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            return;
        }
    }
}

fn receive(mut stream: &TcpStream, bytes: &AtomicU64, over: &AtomicBool) {
    let mut buffer = vec![0; CHUNK];
    while !over.load(Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => drop(bytes.fetch_add(count as u64, Relaxed)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Connections of the caller's namespace to a port of others, as the kernel's table has them: of multipath TCP every subflow.
fn established_to(port: u16) -> Result<u32, LabError> {
    let table = std::fs::read_to_string("/proc/thread-self/net/tcp").map_err(LabError::io("read /proc/net/tcp"))?;
    Ok(established_in(&table, port))
}

/// Lines begin with number, local address, remote address and state; 01 is ESTABLISHED (RFC 9293 section 3.3.2).
fn established_in(table: &str, port: u16) -> u32 {
    let wanted = |line: &&str| {
        let words: Vec<&str> = line.split_ascii_whitespace().take(4).collect();
        matches!(words[..], [_, _, remote, "01"] if remote.ends_with(&format!(":{port:04X}")))
    };
    table.lines().filter(wanted).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_established_connections_to_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
                     0: 0100000A:1389 00000000:0000 0A 0:0\n   \
                     1: 0100000A:9C40 0200000A:1389 01 0:0\n   \
                     2: 6400000A:9C41 0200000A:1389 01 0:0\n   \
                     3: 6500000A:9C42 0200000A:1389 02 0:0\n   \
                     4: 6500000A:1389 0200000A:9C43 01 0:0\n";
        assert_eq!((established_in(table, 5_001), established_in(table, 5_002)), (2, 0));
    }

    #[test]
    fn elephants_have_addresses_of_their_own() {
        let of =
            |elephant: u8| (0..7).map(move |place| further_address(Ipv4Addr::new(10, 0, 10, 11), elephant * 7 + place));
        let all: std::collections::BTreeSet<Ipv4Addr> = (0..4u8).flat_map(of).collect();
        assert_eq!(all.len(), 28);
        assert!(all.iter().all(|address| address.octets()[..3] == [10, 0, 10]));
    }
}
