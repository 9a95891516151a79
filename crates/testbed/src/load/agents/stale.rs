//! Mappings that go stale, and how agents come to hear of it (VL2 4.3.2): packets go on to the ToR that the AA has left, which
//! samples and reports them ([`weft_control::tor::Reporter`]), and a directory server corrects the sender.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand_pcg::Pcg64;
use weft_control::Machine;
use weft_control::directory::Stale;
use weft_control::tor::{self, Event, Reporter};
use weft_node::NodeError;
use weft_node::stop::Stop;

use super::{Agents, AgentsLoad};
use crate::load::report::{histogram, record};

/// A server of an agent sends a packet to each AA it talks to so often.
const PACKET_EVERY: Duration = Duration::from_millis(10);

/// Where AAs were, and where they are to be.
#[derive(Clone, Debug)]
pub struct Moved {
    /// LA of the ToR that they leave: an address of this namespace. It reports what still comes for them.
    pub from_tor: Ipv4Addr,
    /// LA of the ToR behind which they are then.
    pub to_tor: Ipv4Addr,
    /// What each agent talks to, the first agent's first.
    pub talks_to: Vec<Vec<Ipv4Addr>>,
}

/// How stale mappings were corrected.
#[derive(Clone, Debug)]
pub struct StaleReport {
    /// Stale mappings, one for each agent and AA that it talks to.
    pub stale: u64,
    /// Those of them that were corrected.
    pub corrected: u64,
    /// Until each was corrected, from the instant that was named, nanoseconds.
    pub corrected_ns: Histogram<u64>,
    /// Packets that came to the ToR which the AA has left.
    pub astray: u64,
    /// Of these, those that the ToR told a directory server.
    pub reported: u64,
}

/// The ToR that is left.
struct Tor {
    reporter: Reporter,
    socket: UdpSocket,
    outputs: Vec<tor::Output>,
}

impl Agents {
    /// The first agents ask for what they will talk to. Returns how many mappings they have then.
    ///
    /// # Errors
    /// [`NodeError::System`].
    pub fn learn(&mut self, moved: &Moved, stop: &Stop) -> Result<u64, NodeError> {
        self.begin()?;
        let mut open = 0;
        for (number, aas) in (0..self.load.agents).zip(&moved.talks_to) {
            self.ask(number, aas);
            open += aas.len() as u64;
        }
        let (wanted, mut known) = (open, 0);
        while open > 0 && !stop.requested() {
            self.turn(u64::MAX, |_, host, _| {
                known +=
                    host.installed.drain(..).filter(|(_, mapping)| mapping.locator.tor_la == moved.from_tor).count()
                        as u64;
            })?;
            let active = self.hosts.iter().take(moved.talks_to.len());
            open = active.map(|host| host.waiting as u64).sum();
        }
        Ok(known.min(wanted))
    }

    /// An agent's packets: one to each of these AAs.
    fn ask(&mut self, number: u32, aas: &[Ipv4Addr]) {
        let now_ns = self.now_ns();
        let host = &mut self.hosts[number as usize];
        host.asked_ns = now_ns;
        aas.iter().for_each(|aa| host.miss(now_ns, &self.socket, *aa));
        self.timers.set(number, host);
    }

    /// They send packets to what they learnt until all of it is corrected or `patience` is over. Times count from `since` on.
    ///
    /// # Errors
    /// [`NodeError::System`].
    pub fn use_stale(
        &mut self,
        moved: &Moved,
        since: Instant,
        patience: Duration,
        stop: &Stop,
    ) -> Result<StaleReport, NodeError> {
        let mut tor = Tor::new(&self.load, moved.from_tor)?;
        let mut stale: HashSet<(u32, Ipv4Addr)> = HashSet::new();
        for (number, aas) in (0..self.load.agents).zip(&moved.talks_to) {
            stale.extend(aas.iter().map(|aa| (number, *aa)));
        }
        let mut report =
            StaleReport { stale: stale.len() as u64, corrected: 0, corrected_ns: histogram(), astray: 0, reported: 0 };
        let mut next_ns = self.now_ns();
        while !stale.is_empty() && since.elapsed() < patience && !stop.requested() {
            let now_ns = self.now_ns();
            if now_ns >= next_ns {
                next_ns = now_ns + PACKET_EVERY.as_nanos() as u64;
                for (number, aa) in &stale {
                    report.astray += 1;
                    tor.sample(now_ns, Stale { aa: *aa, source_aa: self.load.own_aa(*number) });
                }
            }
            tor.pass(now_ns);
            let wake_ns = tor.reporter.next_deadline_ns().unwrap_or(u64::MAX).min(next_ns);
            self.turn(wake_ns, |number, host, _| {
                for (aa, mapping) in host.installed.drain(..) {
                    if mapping.locator.tor_la == moved.to_tor && stale.remove(&(number, aa)) {
                        report.corrected += 1;
                        record(&mut report.corrected_ns, since.elapsed().as_nanos() as u64);
                    }
                }
            })?;
        }
        report.reported = tor.reporter.counts().get(Event::Reported);
        Ok(report)
    }
}

impl Tor {
    fn new(load: &AgentsLoad, la: Ipv4Addr) -> Result<Self, NodeError> {
        let failed = || NodeError::system(format!("binding UDP at the ToR's LA {la}"));
        let socket = UdpSocket::bind((la, 0)).map_err(failed())?;
        let local = match socket.local_addr().map_err(failed())? {
            SocketAddr::V4(local) => local,
            SocketAddr::V6(_) => SocketAddrV4::new(la, 0),
        };
        let config = tor::Config {
            local,
            servers: load.servers.clone(),
            key: load.secret.derive(0, la),
            key_id: load.key_id,
            limits: tor::Limits::default(),
        };
        let random = Pcg64::new(u128::from(load.seed), 0x0074_6f72);
        Ok(Self { reporter: Reporter::new(config, random), socket, outputs: Vec::new() })
    }

    fn sample(&mut self, now_ns: u64, stale: Stale) {
        self.handle(now_ns, tor::Input::Sample(stale));
    }

    fn pass(&mut self, now_ns: u64) {
        if self.reporter.next_deadline_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            self.handle(now_ns, tor::Input::Deadline);
        }
    }

    fn handle(&mut self, now_ns: u64, input: tor::Input) {
        self.reporter.handle(now_ns, input, &mut self.outputs);
        for tor::Output::Send { to, datagram } in self.outputs.drain(..) {
            // One that is lost is followed by the next packet's.
            let _ = self.socket.send_to(&datagram, to);
        }
    }
}
