//! Paced datagrams between pairs of servers beside the traffic: what a failure costs a flow that waits for nobody.
//!
//! Every flow has ports of its own and so a path of its own. Its datagrams are marked CS6 and go past the queues of data: rates
//! here are scaled and the times of routing are not, so a data queue would hold datagrams for a time that no real one does,
//! and what it drops would look like an outage. What a failure does to data is in the goodput.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt;
use rustix::process::setpriority_process;
use weft_scenario::engine::ProbeSpec;
use weft_scenario::record::{GapRow, TripRow};

use super::table::now_ns;
use super::{TrafficError, TrafficSetup, namespace};

/// Where the first flow arrives; the others follow.
const FIRST_PORT: u16 = 6_000;
/// Source ports depend on the seed, and with them the paths.
const FIRST_SOURCE_PORT: u16 = 10_000;
const SOURCE_PORTS: u64 = 5_000;
/// Class selector 6, in the byte that was the type of service (RFC 2474): what the shaper keeps apart from data.
pub(crate) const CS6: u8 = 0xc0;
/// How long datagrams that are under way at the end may take.
const GRACE: Duration = Duration::from_millis(500);
/// How long a datagram is waited for whose trip is timed.
const TRIP_MOST_NS: u64 = 1_000_000;
/// Before everything that makes load, as the sampler.
const NICE: i32 = -15;

/// Flows of datagrams under way. Dropping it stops them.
pub(super) struct Prober {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Probed>>,
}

/// What became of them.
#[derive(Debug, Default)]
pub(super) struct Probed {
    pub(super) gaps: Vec<GapRow>,
    pub(super) trips: Vec<TripRow>,
}

/// One flow of datagrams.
struct Flow {
    from: u32,
    to: u32,
    sender: UdpSocket,
    receiver: UdpSocket,
    /// By number of the datagram.
    arrived: Vec<bool>,
    /// Of those that were waited for.
    trips_ns: Vec<u64>,
}

impl Prober {
    /// Begins to send at `start_ns` on the monotonic clock.
    pub(super) fn start(
        setup: &TrafficSetup,
        spec: &ProbeSpec,
        seed: u64,
        start_ns: u64,
    ) -> Result<Self, TrafficError> {
        let flows = open(setup, spec, seed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, spec) = (Arc::clone(&stop), spec.clone());
        let thread = std::thread::spawn(move || run(flows, &spec, start_ns, &stopped));
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends them and says what was lost, and how long the others took.
    pub(super) fn finish(mut self) -> Probed {
        self.stop.store(true, Ordering::Release);
        self.thread.take().map_or_else(Probed::default, |thread| thread.join().expect("probing does not panic"))
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sockets of every flow, in the namespaces of its ends.
fn open(setup: &TrafficSetup, spec: &ProbeSpec, seed: u64) -> Result<Vec<Flow>, TrafficError> {
    let ends = |flow: u64| match setup.probed {
        Some(centre) => across(flow as usize, setup.hosts.len(), centre),
        None => between(flow, setup.hosts.len() as u64, seed),
    };
    let ends: Vec<(usize, usize)> = (0..u64::from(spec.flows)).map(ends).collect();
    let path = |host: usize| setup.hosts[host].namespace.as_path();
    let receivers = namespace::visit(ends.iter().map(|(_, to)| path(*to)), |flow| {
        bound(SocketAddrV4::new(setup.hosts[ends[flow].1].address, FIRST_PORT + flow as u16))
    })?;
    let senders = namespace::visit(ends.iter().map(|(from, _)| path(*from)), |flow| {
        let (from, to) = ends[flow];
        let port = FIRST_SOURCE_PORT + ((seed * 97 + flow as u64 * 13) % SOURCE_PORTS) as u16;
        let socket = bound(SocketAddrV4::new(setup.hosts[from].address, port))?;
        sockopt::set_ip_tos(&socket, CS6)?;
        socket.connect(SocketAddrV4::new(setup.hosts[to].address, FIRST_PORT + flow as u16))?;
        Ok(socket)
    })?;
    let flow = |(((from, to), sender), receiver): (((usize, usize), UdpSocket), UdpSocket)| Flow {
        from: from as u32,
        to: to as u32,
        sender,
        receiver,
        arrived: Vec::new(),
        trips_ns: Vec::new(),
    };
    Ok(ends.into_iter().zip(senders).zip(receivers).map(flow).collect())
}

/// Each server in turn sends to one that is not itself.
fn between(flow: u64, servers: u64, seed: u64) -> (usize, usize) {
    let from = flow % servers;
    let step = 1 + (flow / servers + flow * 7 + seed) % (servers - 1);
    (from as usize, ((from + step) % servers) as usize)
}

/// In turn to and from the host in the centre, with the others in turn.
fn across(flow: usize, hosts: usize, centre: usize) -> (usize, usize) {
    let other = (centre + 1 + flow / 2 % (hosts - 1)) % hosts;
    if flow.is_multiple_of(2) { (centre, other) } else { (other, centre) }
}

fn bound(address: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn run(mut flows: Vec<Flow>, spec: &ProbeSpec, start_ns: u64, stop: &AtomicBool) -> Probed {
    // Of this thread alone, as Linux has it; without the right to, it runs like the others.
    let _ = setpriority_process(None, NICE);
    let mut sent_ns = Vec::new();
    let mut due_ns = start_ns;
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
        let number = sent_ns.len() as u32;
        sent_ns.push(now_ns().saturating_sub(start_ns));
        for flow in &mut flows {
            flow.arrived.push(false);
            let left_ns = now_ns();
            // What the kernel refuses to send is lost.
            let _ = flow.sender.send(&number.to_be_bytes());
            flow.collect();
            if spec.trips {
                flow.wait(number, left_ns);
            }
        }
        due_ns += spec.interval.0;
    }
    std::thread::sleep(GRACE);
    flows.iter_mut().for_each(Flow::collect);
    let gaps = flows.iter().flat_map(|flow| gaps(flow.from, flow.to, &flow.arrived, &sent_ns)).collect();
    Probed { gaps, trips: flows.into_iter().filter_map(Flow::trips).collect() }
}

impl Flow {
    /// Waits until a datagram has come, not for ever.
    fn wait(&mut self, number: u32, left_ns: u64) {
        while !self.arrived[number as usize] && now_ns() - left_ns < TRIP_MOST_NS {
            self.collect();
        }
        if self.arrived[number as usize] {
            self.trips_ns.push(now_ns() - left_ns);
        }
    }

    fn trips(mut self) -> Option<TripRow> {
        self.trips_ns.sort_unstable();
        let all = &self.trips_ns;
        let at = |percent: usize| all.get((all.len() * percent / 100).min(all.len().saturating_sub(1))).copied();
        let mean_ns = all.iter().sum::<u64>() as f64 / all.len() as f64;
        let (p50_ns, p99_ns) = (at(50)?, at(99)?);
        Some(TripRow { from: self.from, to: self.to, datagrams: all.len() as u32, mean_ns, p50_ns, p99_ns })
    }

    /// Takes what has come in.
    fn collect(&mut self) {
        let mut number = [0; 4];
        while let Ok(4) = self.receiver.recv(&mut number) {
            if let Some(arrived) = self.arrived.get_mut(u32::from_be_bytes(number) as usize) {
                *arrived = true;
            }
        }
    }
}

/// Every run of datagrams that did not arrive. It lasts until the next one that did was sent.
fn gaps(from: u32, to: u32, arrived: &[bool], sent_ns: &[u64]) -> Vec<GapRow> {
    let mut gaps = Vec::new();
    let mut number = 0;
    while let Some(first) = arrived[number..].iter().position(|arrived| !arrived).map(|place| number + place) {
        let lost = arrived[first..].iter().take_while(|arrived| !**arrived).count();
        number = first + lost;
        let until_ns = sent_ns.get(number).or(sent_ns.last()).copied().unwrap_or_default();
        let time_ns = sent_ns[first];
        gaps.push(GapRow { from, to, time_ns, lost: lost as u32, outage_ns: until_ns - time_ns });
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_across_a_centre_go_both_ways_with_everybody() {
        let ends: Vec<_> = (0..6).map(|flow| across(flow, 3, 2)).collect();
        assert_eq!(ends, [(2, 0), (0, 2), (2, 1), (1, 2), (2, 0), (0, 2)]);
    }

    #[test]
    fn a_gap_lasts_from_the_first_loss_to_the_next_arrival() {
        let row = |time_ns, lost, outage_ns| GapRow { from: 1, to: 2, time_ns, lost, outage_ns };
        let sent: Vec<u64> = (0..8).map(|number| number * 10).collect();
        let of = |arrived: [u8; 8]| gaps(1, 2, &arrived.map(|one| one == 1), &sent);
        assert_eq!(of([1; 8]), []);
        assert_eq!(of([1, 0, 1, 1, 0, 0, 0, 1]), [row(10, 1, 10), row(40, 3, 30)]);
        assert_eq!(of([0, 1, 1, 1, 1, 1, 0, 0]), [row(0, 1, 10), row(60, 2, 10)]);
        assert_eq!(gaps(1, 2, &[], &[]), []);
    }
}
