//! Measures one link of each class in both directions before a shaped lab is used: does it carry what was declared?
//!
//! Plain UDP datagrams between the link's own addresses. First a train that fits the buffer gives the rate, then one
//! that overflows it gives the buffer, as the queue itself reports its backlog. The queue is made anew afterwards.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use serde::Deserialize;
use weft_scenario::engine::{Progress, Scenario};
use weft_scenario::id::{LinkId, NodeId};
use weft_scenario::units::{BitsPerSec, Bytes};

use crate::batch::{self, Program};
use crate::error::LabError;
use crate::home::namespace_path;
use crate::netns::{self, join};
use crate::plan::iproute::PortQueue;
use crate::process;
use crate::shaping::{Accounting, Shaper};
use crate::up::Lab;

/// Allowed difference between declared and measured rate.
const TOLERANCE_PERCENT: f64 = 5.0;
/// A busy machine gets this many chances.
const ATTEMPTS: u32 = 4;
const PAYLOAD_BYTES: usize = 1400;
/// Payload with UDP, IPv4 and Ethernet headers: a frame as the queue counts it.
const FRAME_BYTES: u64 = PAYLOAD_BYTES as u64 + 8 + 20 + 14;
/// How long the train for the rate takes at the declared rate.
const TRAIN_TIME: Duration = Duration::from_millis(300);
/// Above this, single datagrams measure this machine's cores and not the link.
const RATE_MAX: BitsPerSec = BitsPerSec(1_000_000_000);
const BUFFER_MAX: Bytes = Bytes(32 << 20);

/// One direction of a sample link.
#[derive(Clone, Debug)]
struct Direction {
    /// `sender-receiver`, the roles.
    name: String,
    sender: PathBuf,
    receiver: PathBuf,
    sender_name: String,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    rate: BitsPerSec,
    buffer: Bytes,
    accounting: Accounting,
    queue: PortQueue,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    rate_bps: f64,
    /// What the queue held when it began to drop; `None`: it could not be filled faster than it drains.
    buffer_bytes: Option<f64>,
}

/// Measures all classes; facts for the manifest. Fails if a rate is off by more than 5 %.
pub(crate) fn run(lab: &Lab, progress: &dyn Progress) -> Result<Vec<(String, f64)>, LabError> {
    let classes = sample_directions(lab);
    let mut facts = Vec::new();
    for (number, (class, directions)) in classes.iter().enumerate() {
        progress.advance(number as f64 / classes.len() as f64, class);
        if progress.interrupted() {
            return Err(LabError::Interrupted);
        }
        if directions.is_empty() {
            progress.note(&format!("link self-test: {class} not measured (a switch has no address there)"));
            continue;
        }
        if directions.iter().any(|direction| direction.rate > RATE_MAX || direction.buffer > BUFFER_MAX) {
            progress.note(&format!("link self-test: {class} not measured (faster or deeper than datagrams can test)"));
            continue;
        }
        let measured = measure_class(directions)?;
        progress.note(&note(class, directions, &measured));
        for (direction, measured) in directions.iter().zip(&measured) {
            facts.extend(direction.facts(*measured));
        }
    }
    Ok(facts)
}

/// Both directions at once; again if the machine was busy.
fn measure_class(directions: &[Direction]) -> Result<Vec<Measured>, LabError> {
    let mut attempt = 1;
    loop {
        let measured = std::thread::scope(|scope| {
            let threads: Vec<_> = directions.iter().map(|one| scope.spawn(|| one.measure())).collect();
            threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
        })?;
        let off = directions.iter().zip(&measured).find(|(direction, measured)| !direction.is_met(**measured));
        match off {
            None => return Ok(measured),
            Some((direction, measured)) if attempt == ATTEMPTS => {
                return Err(LabError::LinkOff {
                    direction: direction.name.clone(),
                    got_bps: measured.rate_bps,
                    asked_bps: direction.rate.0 as f64,
                    tolerance_percent: TOLERANCE_PERCENT,
                });
            }
            Some(_) => attempt += 1,
        }
    }
}

fn note(class: &str, directions: &[Direction], measured: &[Measured]) -> String {
    let each = directions.iter().zip(measured).map(|(direction, measured)| {
        let buffer =
            measured.buffer_bytes.map_or("buffer unknown".to_owned(), |bytes| format!("{:.2} MB", bytes / 1e6));
        format!("{:.2} Mbit/s, {buffer} {}", measured.rate_bps / 1e6, direction.name)
    });
    let asked = &directions[0];
    format!("link {class}: asked {}, {}; got {}", asked.rate, asked.buffer, each.collect::<Vec<_>>().join(" and "))
}

/// The first link of each class, both ways; none of it where servers' links end in a tunnel's bridge.
fn sample_directions(lab: &Lab) -> BTreeMap<String, Vec<Direction>> {
    let fabric = &lab.scenario.fabric;
    let shaper = Shaper::new(&lab.scenario);
    let mut classes = BTreeMap::new();
    for index in 0..fabric.links().len() as u32 {
        let link = LinkId(index);
        classes.entry(fabric.link_class(link)).or_insert_with(|| {
            let ends = [fabric.link(link).a.node, fabric.link(link).b.node];
            let is_routed = ends.iter().all(|end| fabric.node(*end).role.is_switch());
            let ends: &[NodeId] = if is_routed || !lab.scenario.overlay.tunnels_at_tors() { &ends } else { &[] };
            ends.iter().map(|sender| Direction::new(lab, &shaper, link, *sender)).collect()
        });
    }
    classes
}

/// An address of `node` that its neighbour on `link` reaches over that link without a routing protocol.
fn address_on(scenario: &Scenario, link: LinkId, node: NodeId) -> Ipv4Addr {
    let (fabric, addresses) = (&scenario.fabric, &scenario.addresses);
    match addresses.link(link) {
        Some((a, b)) => {
            if fabric.link(link).a.node == node {
                a
            } else {
                b
            }
        }
        None => {
            let at_border = addresses.outside().and_then(|outside| outside.at(fabric, link, node));
            at_border.or_else(|| addresses.rack_gateway(node)).unwrap_or_else(|| addresses.la(node))
        }
    }
}

impl Direction {
    fn new(lab: &Lab, shaper: &Shaper, link: LinkId, sender: NodeId) -> Self {
        let fabric = &lab.scenario.fabric;
        let receiver = fabric.link(link).far_end(sender).expect("the sender is an end of the link").node;
        let role = |node: NodeId| format!("{:?}", fabric.node(node).role).to_lowercase();
        let namespace = |node: NodeId| namespace_path(&lab.plan.node(node).namespace);
        let spec = &fabric.link(link).spec;
        Self {
            name: format!("{}-{}", role(sender), role(receiver)),
            sender: namespace(sender),
            receiver: namespace(receiver),
            sender_name: fabric.node(sender).name.clone(),
            source: address_on(&lab.scenario, link, sender),
            destination: address_on(&lab.scenario, link, receiver),
            rate: spec.rate,
            buffer: spec.buffer,
            accounting: shaper.accounting(fabric, link, sender),
            queue: shaper.queue(fabric, link, sender),
        }
    }

    fn is_met(&self, measured: Measured) -> bool {
        (measured.rate_bps / self.rate.0 as f64 - 1.0).abs() * 100.0 <= TOLERANCE_PERCENT
    }

    fn facts(&self, measured: Measured) -> Vec<(String, f64)> {
        let fact = |what: &str, value: f64| (format!("link_selftest.{}.{what}", self.name), value);
        let mut facts = vec![
            fact("asked_bps", self.rate.0 as f64),
            fact("got_bps", measured.rate_bps),
            fact("asked_buffer_bytes", self.buffer.0 as f64),
        ];
        facts.extend(measured.buffer_bytes.map(|bytes| fact("got_buffer_bytes", bytes)));
        facts
    }

    fn measure(&self) -> Result<Measured, LabError> {
        let failed = || LabError::io(format!("test the link from {}", self.sender_name));
        let receiver = self.open(&self.receiver, self.destination, 0)?;
        let port = receiver.local_addr().map_err(failed())?.port();
        let sender = self.open(&self.sender, self.source, 0)?;
        sender.connect(SocketAddrV4::new(self.destination, port)).map_err(failed())?;
        let rate_bps = self.measure_rate(&sender, &receiver).map_err(failed())?;
        let buffer_bytes = self.measure_buffer(&sender)?;
        drop((sender, receiver));
        self.renew_queue()?;
        Ok(Measured { rate_bps, buffer_bytes })
    }

    fn open(&self, namespace: &std::path::Path, address: Ipv4Addr, port: u16) -> Result<UdpSocket, LabError> {
        let open = || -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind(SocketAddrV4::new(address, port))?;
            set_socket_send_buffer_size_force(&socket, 256 << 20)?;
            set_socket_recv_buffer_size_force(&socket, 64 << 20)?;
            Ok(socket)
        };
        netns::in_namespace(namespace, open)?.map_err(LabError::io(format!("open a socket at {address}")))
    }

    /// Sends a train at once and sees at which rate it comes out, not counting what the burst lets through.
    fn measure_rate(&self, sender: &UdpSocket, receiver: &UdpSocket) -> io::Result<f64> {
        let fits = self.buffer.0 * 8 / 10 / FRAME_BYTES;
        let lasts = (self.rate.0 as f64 * TRAIN_TIME.as_secs_f64() / 8.0 / FRAME_BYTES as f64) as u64;
        let burst = self.burst_frames();
        let frames = lasts.min(fits).max(8) + burst;
        let patience = Duration::from_secs_f64(frames as f64 * FRAME_BYTES as f64 * 8.0 / self.rate.0 as f64 * 2.0);
        receiver.set_read_timeout(Some(patience + Duration::from_millis(200)))?;
        let mut arrivals = Vec::with_capacity(frames as usize);
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| -> io::Result<()> {
                let mut buffer = [0; PAYLOAD_BYTES];
                while (arrivals.len() as u64) < frames {
                    match receiver.recv(&mut buffer) {
                        Ok(_) => arrivals.push(Instant::now()),
                        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                            break;
                        }
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            });
            let sent = send_frames(sender, frames);
            join(receiving).and(sent)
        })?;
        let counted = arrivals.get(burst as usize..).unwrap_or_default();
        Ok(typical_span(counted)
            .map_or(0.0, |(frames, span)| self.accounting.declared(frames, FRAME_BYTES, span.as_secs_f64())))
    }

    /// Frames that pass at once before the rate shows, from the queue's own configuration.
    fn burst_frames(&self) -> u64 {
        self.queue.burst / FRAME_BYTES + 1
    }

    /// Overfills the queue, keeps it so, and reads how much it holds. `None` if it drains faster than it can be filled.
    fn measure_buffer(&self, sender: &UdpSocket) -> Result<Option<f64>, LabError> {
        let failed = || LabError::io(format!("test the queue of {}", self.sender_name));
        send_frames(sender, self.buffer.0 / FRAME_BYTES + self.burst_frames()).map_err(failed())?;
        let seen = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let filling = scope.spawn(|| -> io::Result<()> {
                while !seen.load(Ordering::Relaxed) {
                    send_frames(sender, 64)?;
                }
                Ok(())
            });
            let held = self.largest_backlog();
            seen.store(true, Ordering::Relaxed);
            join(filling).map_err(failed())?;
            held
        })
    }

    /// The most that the queue holds while it drops. Several looks, because a look may come when whoever fills it waits
    /// for a core.
    fn largest_backlog(&self) -> Result<Option<f64>, LabError> {
        let mut largest = None;
        for _ in 0..16 {
            let queue = self.queue_state()?;
            if queue.drops > 0 {
                largest = largest.max(Some(queue.backlog));
            }
            if largest.is_some_and(|bytes| bytes >= self.buffer.0 * 19 / 20) {
                break;
            }
        }
        Ok(largest.map(|bytes| bytes as f64))
    }

    fn queue_state(&self) -> Result<QueueState, LabError> {
        let mut command = process::command("tc");
        command.args(["-s", "-j", "qdisc", "show", "dev", &self.queue.device]);
        let output =
            netns::in_namespace(&self.sender, || command.output())?.map_err(LabError::io("run tc -s qdisc show"))?;
        parse_queue(&output.stdout).ok_or_else(|| LabError::Batch {
            node: self.sender_name.clone(),
            program: "tc",
            line: format!("-s -j qdisc show dev {}", self.queue.device),
            number: 0,
            reason: "no bfifo with handle 10: in its output".into(),
        })
    }

    fn renew_queue(&self) -> Result<(), LabError> {
        let lines = [format!("qdisc del dev {} root", self.queue.device), self.queue.to_string()];
        netns::in_namespace(&self.sender, || batch::run(Program::Tc, &self.sender_name, &lines))?
    }
}

/// How long half of the frames took, as the median over all places where that half may begin: a receiver that was
/// late for some frames hardly moves it.
fn typical_span(arrivals: &[Instant]) -> Option<(u64, Duration)> {
    let half = arrivals.len() / 2;
    let mut spans: Vec<Duration> = arrivals.iter().zip(arrivals.get(half..)?).map(|(from, to)| *to - *from).collect();
    spans.sort();
    spans.get(spans.len() / 2).filter(|_| half > 0).map(|span| (half as u64, *span))
}

fn send_frames(sender: &UdpSocket, frames: u64) -> io::Result<()> {
    let payload = [0; PAYLOAD_BYTES];
    for _ in 0..frames {
        match sender.send(&payload) {
            // The queue dropped it, which is what overfilling it is for.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
            result => drop(result?),
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct QueueState {
    #[serde(default)]
    handle: String,
    #[serde(default)]
    backlog: u64,
    #[serde(default)]
    drops: u64,
}

/// The data class's `bfifo` in the output of `tc -s -j qdisc show`.
fn parse_queue(json: &[u8]) -> Option<QueueState> {
    let queues: Vec<QueueState> = serde_json::from_slice(json).ok()?;
    queues.into_iter().find(|queue| queue.handle == "10:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_receiver_does_not_change_the_rate() {
        let start = Instant::now();
        let mut arrivals: Vec<Instant> = (0..100).map(|frame| start + Duration::from_millis(frame)).collect();
        assert_eq!(typical_span(&arrivals), Some((50, Duration::from_millis(50))));
        for late in &mut arrivals[..10] {
            *late = start + Duration::from_millis(10);
        }
        assert_eq!(typical_span(&arrivals), Some((50, Duration::from_millis(50))));
        assert_eq!(typical_span(&arrivals[..1]), None);
        assert_eq!(typical_span(&[]), None);
    }

    #[test]
    fn the_backlog_of_the_data_queue_is_read() {
        let json = br#"[{"kind":"htb","handle":"1:","root":true,"options":{},"drops":3,"backlog":9000,"qlen":6},
            {"kind":"bfifo","handle":"10:","parent":"1:1","options":{"limit":4194304},"bytes":1,"drops":2,"backlog":7000}]"#;
        let queue = parse_queue(json).unwrap();
        assert_eq!((queue.backlog, queue.drops), (7000, 2));
        assert!(parse_queue(b"[]").is_none() && parse_queue(b"").is_none());
    }
}
